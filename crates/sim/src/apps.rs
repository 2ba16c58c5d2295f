//! Ready applications.

mod bulk;

pub use bulk::{BulkSender, BulkSenderConfig, Content, Keep, Outcome, Sink, Transfer, pattern};
