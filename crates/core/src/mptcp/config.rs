//! Options of a Multipath TCP connection.

use super::scheduler::SchedulerKind;
use crate::tcp::{self, DsnWidth, Nagle};
use crate::time::Duration;

/// Options of one Multipath TCP connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Options of each subflow; [`Connection::join`](super::Connection::join) may override them for
    /// one. Send and receive buffer apply to the whole connection. Nagle's algorithm is off,
    /// because the scheduler cuts the segments. For RFC 6356 set the congestion algorithm to
    /// [`tcp::CongestionAlgorithm::Coupled`]; the others are uncoupled.
    pub tcp: tcp::Config,
    /// Scheduler, which assigns data to subflows.
    pub scheduler: SchedulerKind,
    /// When data is also sent on another subflow.
    pub reinjection: Reinjection,
    /// If set, data of a subflow is also sent on others once the subflow has not answered for a
    /// round trip with its deviation, and for this time beyond the round trip at least: the delay
    /// of acknowledgements. The subflow gets no new data before it answers. `None` waits for the
    /// time-out.
    pub silence: Option<Duration>,
    /// Size of the data sequence numbers that we send.
    pub dsn_width: DsnWidth,
    /// Largest number of simultaneous subflows, at most 8; further ones are refused.
    pub max_subflows: u8,
    /// Whether we require checksums of the data (RFC 8684 section 3.3.1). They are also used if the
    /// peer requires them.
    pub checksums: bool,
    /// Whether a connection that we open repeats its keys until the peer is known to have them: in
    /// a segment without data ahead of the first data, and in each data segment, unless mappings
    /// carry checksums. Otherwise only the first data segment carries them. If other data arrives
    /// before any keys, the peer falls back to TCP.
    pub repeat_keys: bool,
    /// Number of SYNs with MP_CAPABLE to send; if none is answered, the next SYN requests plain TCP
    /// (RFC 8684 section 3.7). 0 never falls back that way.
    pub capable_syns: u8,
}

/// When data that was sent on a subflow is also sent on another (RFC 8684 section 3.3.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "MptcpReinjection"))]
pub enum Reinjection {
    /// Only when its subflow is closed: the data would be lost otherwise.
    OnFailure,
    /// Also when the retransmission timer of its subflow expires.
    OnTimeout,
    /// Also when it blocks the window while another subflow has room (opportunistic retransmission:
    /// Raiciu et al., "How Hard Can It Be?", NSDI 2012). The predictive scheduler also uses it at
    /// the end of a transfer.
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
            silence: None,
            dsn_width: DsnWidth::Four,
            max_subflows: 8,
            checksums: false,
            repeat_keys: false,
            capable_syns: 3,
        }
    }
}

impl Config {
    /// The options of a subflow.
    pub(crate) fn subflow(&self) -> tcp::Config {
        tcp::Config { nagle: Nagle::Off, ..self.tcp }
    }
}
