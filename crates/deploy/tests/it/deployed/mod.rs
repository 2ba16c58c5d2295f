//! `anabranch node`, `gateway` and `push --to` as processes of their own, through the loop device.

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
