//! Ready applications.

mod bulk;
pub mod packets;
pub mod set;

pub use bulk::{BulkSender, BulkSenderConfig, Content, Keep, Outcome, Sink, Transfer, pattern};
