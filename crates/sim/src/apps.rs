//! Ready applications.

mod bulk;
pub mod cbr;
pub mod packets;
pub mod rdca;
pub mod set;

pub use bulk::{BulkSender, BulkSenderConfig, Content, Keep, Outcome, Sink, Transfer, pattern};
