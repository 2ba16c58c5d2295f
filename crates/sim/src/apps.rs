//! Ready applications.

mod bulk;

pub use bulk::{BulkSender, BulkSenderConfig, Keep, Outcome, Sink, Transfer, pattern};
