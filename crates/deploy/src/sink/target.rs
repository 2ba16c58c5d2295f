//! The output that the options name.

use std::path::PathBuf;

use super::mqtt::Broker;

/// An output.
#[derive(Clone, Debug)]
pub(super) enum Target {
    File(PathBuf),
    Standard,
    Command(String),
    Broker(Broker),
}
