//! An event log of a run as one HTML page that replays it, or as an animated picture. This crate
//! reads logs and knows no simulator: the format is all that both share
//! (`docs/reference/replay.md`; its numbers are [`anabranch_wire::eventlog`]).
//!
//! The simulator decides what a log contains; the program handles options and files. The page loads
//! nothing, and equal logs give equal bytes.
//!
//! Code map, from the ground up:
//!
//! * [`log`] reads records from a stream;
//! * [`replay`] collects them: what each packet did on each link, figures of connections, and where
//!   losses were repaired;
//! * `layout` gives nodes places;
//! * [`page`] makes the page, of columns and of the scripts in `assets`;
//! * [`picture`] makes an animated SVG.

#![forbid(unsafe_code)]

mod layout;
pub mod log;
pub mod page;
pub mod picture;
pub mod replay;
