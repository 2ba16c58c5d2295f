//! Every choice of a Multipath TCP connection, as a typed option.

use super::scheduler::SchedulerKind;
use crate::tcp::{self, DsnWidth, Nagle};

/// How one connection behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Each subflow; [`Connection::join`](super::Connection::join) may give another for one. Send
    /// and receive buffer are those of the whole connection; Nagle's algorithm is off, since the
    /// scheduler cuts the segments. For RFC 6356 the congestion algorithm is
    /// [`tcp::CongestionAlgorithm::Coupled`]; others are uncoupled.
    pub tcp: tcp::Config,
    /// Who sends what where.
    pub scheduler: SchedulerKind,
    /// What is sent again on another subflow.
    pub reinjection: Reinjection,
    /// Bytes of the data sequence numbers that we write.
    pub dsn_width: DsnWidth,
    /// Subflows at a time, at most 8; further ones are refused.
    pub max_subflows: u8,
}

/// When data that has been sent on a subflow is also sent on another (RFC 8684 section 3.3.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "MptcpReinjection"))]
pub enum Reinjection {
    /// Only when its subflow is closed, since the data would be lost otherwise.
    OnFailure,
    /// Also when the retransmission timer of its subflow expires.
    OnTimeout,
    /// Also when it blocks the window while another subflow has room (opportunistic retransmission:
    /// Raiciu et al., "How Hard Can It Be?", NSDI 2012), and by the predictive scheduler at the end
    /// of a transfer.
    Opportunistic,
}

impl Default for Config {
    /// A present-day host: uncoupled NewReno, fastest round-trip time first, opportunistic
    /// re-injection.
    fn default() -> Self {
        Self {
            tcp: tcp::Config::default(),
            scheduler: SchedulerKind::FastestRtt,
            reinjection: Reinjection::Opportunistic,
            dsn_width: DsnWidth::Four,
            max_subflows: 8,
        }
    }
}

impl Config {
    /// Of each subflow.
    pub(crate) fn subflow(&self) -> tcp::Config {
        tcp::Config { nagle: Nagle::Off, ..self.tcp }
    }
}
