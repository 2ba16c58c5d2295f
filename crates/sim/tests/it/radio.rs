//! The radio, driven alone: small cases by hand, figures against closed forms, what must hold
//! whatever happens.

mod cases;
mod conservation;
mod csl;
mod figures;
mod sinr;
