//! Many random cases in search of a bad one. Everything random is drawn from named streams, so that a case
//! can be had again by its number; [`faults`] and [`networks`] are the two that SET must stand.

pub mod faults;
pub mod networks;

#[cfg(test)]
mod tests;
