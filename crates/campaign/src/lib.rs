//! The simulated campaigns of `docs/evidence/campaigns.md`: many random cases in search of a bad
//! one.
//!
//! All random values are drawn from named streams, so that a case can be repeated by its number.
//! [`faults`] and [`networks`] test SET, [`chains`] and [`crowds`] distributed TCP caching, and
//! [`paths`] multipath TCP. [`bottleneck`] measures bulk TCP over one bottleneck, [`closed_forms`]
//! compares it with theory, and [`buffers`] tests the policies of send buffers. The campaigns of
//! RDCA need no network: `anabranch_testkit::rdca`.

#![forbid(unsafe_code)]

pub mod bottleneck;
pub mod buffers;
pub mod chains;
pub mod closed_forms;
pub mod crowds;
pub mod faults;
pub mod networks;
pub mod paths;

#[cfg(test)]
mod tests;
