//! Many random cases in search of a bad one. Everything random is drawn from named streams, so that a case
//! can be had again by its number; [`faults`] and [`networks`] are what SET must stand, [`chains`] and [`crowds`]
//! what distributed TCP caching must, and [`paths`] multipath TCP. What RDCA must needs no network: `anabranch_testkit::rdca`.

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
