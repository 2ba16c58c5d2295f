//! Tests of `anabranch node`, `gateway` and `push --to` as separate processes over the loopback
//! device.

mod farewell;
mod hostile;
mod manifests;
mod observed;
mod reasons;
mod reload;
mod replay;
mod resume;
mod transfers;
pub(crate) mod world;
