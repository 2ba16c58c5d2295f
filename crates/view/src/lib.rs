//! Turns the event log of a run into one HTML page that replays the run. This crate reads logs and
//! does not depend on the simulator: they share only the log format (`docs/reference/replay.md`;
//! its numbers are in [`anabranch_wire::eventlog`]).
//!
//! The simulator decides what a log contains; the program handles options and files. The page loads
//! nothing, and equal logs give equal bytes.
//!
//! Code map, from the ground up:
//!
//! * [`log`] reads records from a stream;
//! * [`replay`] collects them: the fate of each packet on each link, the states of connections,
//!   and where losses were repaired;
//! * `layout` computes positions of nodes;
//! * [`page`] makes the page from columns and from the scripts in `assets`.

#![forbid(unsafe_code)]

mod layout;
pub mod log;
pub mod page;
pub mod replay;
