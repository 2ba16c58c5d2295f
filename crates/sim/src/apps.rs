//! Ready-made applications.

mod bulk;
pub mod cbr;
pub mod coap;
pub mod messages;
pub mod pace;
pub mod packets;
pub mod rdca;
pub mod schedule;
pub mod set;
pub mod sizes;
mod subflows;

pub use bulk::{
    BulkSender, BulkSenderConfig, Content, Keep, MultipathInfo, Outcome, Sink, Transfer, pattern,
};
pub use subflows::{Interfaces, PathUse};
