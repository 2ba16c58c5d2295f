//! The 802.11 radio, driven alone: small cases by hand, figures against closed forms, what must
//! hold whatever happens.

mod cases;
mod channel;
mod energy;
mod figures;
mod random;
