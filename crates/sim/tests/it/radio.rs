//! The radio without a network: small calculated cases, comparisons with closed forms, and
//! invariants.

mod cases;
mod conservation;
mod csl;
mod figures;
mod sinr;
