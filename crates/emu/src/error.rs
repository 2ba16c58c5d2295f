//! Errors of emulations.

use std::io;

/// Why an emulation cannot start, or ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The scenario has no TUN end.
    #[error("no node of the scenario is a TUN end")]
    NoEnds,
    /// Permission denied by the kernel.
    #[error("not permitted to {doing}: {reason}")]
    Privilege {
        /// The operation.
        doing: String,
        /// The reason, from the kernel or the program `ip`.
        reason: String,
    },
    /// `/dev/net/tun` does not exist.
    #[error("cannot make TUN devices: /dev/net/tun: {0}")]
    NoTun(io::Error),
    /// The program `ip` cannot be run.
    #[error("cannot run the program `ip`: {0}")]
    NoIp(io::Error),
    /// A network device with this name exists already.
    #[error("the network device `{0}` already exists")]
    DeviceExists(String),
    /// The namespace was created by another emulation that runs.
    #[error("the namespace `{name}` is in use by another emulation, process {process}")]
    InUse {
        /// Name of the namespace.
        name: String,
        /// Number of the other emulation's process.
        process: String,
    },
    /// The kernel has no congestion control with this name.
    #[error("the kernel has no congestion control `{0}`, which `emulation.congestion` names")]
    Congestion(String),
    /// A device or namespace cannot be set up.
    #[error("cannot {doing}: {reason}")]
    Setup {
        /// The operation.
        doing: String,
        /// The reason, from the kernel or the program `ip`.
        reason: String,
    },
    /// A device was removed during the emulation.
    #[error("the network device `{0}` has gone")]
    Gone(String),
    /// Waiting for descriptors failed, or signals cannot be caught.
    #[error("cannot wait: {0}")]
    Wait(io::Error),
}
