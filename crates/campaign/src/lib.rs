//! Many random cases in search of a bad one: the campaigns of `docs/evidence/campaigns.md` that
//! simulate. Everything random is drawn from named streams, so that a case can be had again by its
//! number; [`faults`] and [`networks`] are what SET must stand, [`chains`] and [`crowds`] what
//! distributed TCP caching must, and [`paths`] multipath TCP; [`bottleneck`] is bulk TCP over one
//! bottleneck and [`closed_forms`] what it is held against, [`buffers`] the policies of send
//! buffers. What RDCA must needs no network: `anabranch_testkit::rdca`.

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
