//! Ready applications.

mod bulk;
pub mod set;

pub use bulk::{BulkSender, BulkSenderConfig, Keep, Outcome, Sink, Transfer, pattern};
