//! The IEEE 802.11 radio without a network: small calculated cases, comparisons with closed forms,
//! and invariants.

mod cases;
mod channel;
mod energy;
mod figures;
mod random;
