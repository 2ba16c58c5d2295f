//! What can go wrong between the simulator and the kernel.

use std::io;

/// Why an emulation cannot begin, or has ended before its time.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The scenario has no TUN end.
    #[error("no node of the scenario is a TUN end")]
    NoEnds,
    /// The kernel refuses to let us do this.
    #[error("not permitted to {doing}: {reason}")]
    Privilege {
        /// What was tried.
        doing: String,
        /// What the kernel, or the program `ip`, says.
        reason: String,
    },
    /// There is no `/dev/net/tun`.
    #[error("cannot make TUN devices: /dev/net/tun: {0}")]
    NoTun(io::Error),
    /// The program `ip` cannot be run.
    #[error("cannot run the program `ip`: {0}")]
    NoIp(io::Error),
    /// A device of that name is there already.
    #[error("the network device `{0}` already exists")]
    DeviceExists(String),
    /// A device or a namespace cannot be set up.
    #[error("cannot {doing}: {reason}")]
    Setup {
        /// What was tried.
        doing: String,
        /// What the kernel, or the program `ip`, says.
        reason: String,
    },
    /// Somebody has taken a device away.
    #[error("the network device `{0}` has gone")]
    Gone(String),
    /// Descriptors cannot be waited for, or signals not be caught.
    #[error("cannot wait: {0}")]
    Wait(io::Error),
}
