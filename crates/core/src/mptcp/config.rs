//! Every choice of a Multipath TCP connection, as a typed option.

use crate::tcp::{self, DsnWidth, Nagle};

/// How one connection behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Each subflow. Send and receive buffer are those of the whole connection; Nagle's algorithm is off, since the
    /// scheduler cuts the segments. For RFC 6356 the congestion algorithm is
    /// [`tcp::CongestionAlgorithm::Coupled`]; others are uncoupled.
    pub tcp: tcp::Config,
    /// Who sends what where.
    pub scheduler: SchedulerKind,
    /// What is sent again on another subflow.
    pub reinjection: Reinjection,
    /// Octets of the data sequence numbers that we write.
    pub dsn_width: DsnWidth,
    /// Subflows at a time, at most 8; further ones are refused.
    pub max_subflows: u8,
}

/// A scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SchedulerKind {
    /// The subflow with the smallest smoothed round-trip time that has room in its congestion window: the default of
    /// the Linux kernel, and the conventional one of the paper.
    FastestRtt,
    /// One segment on each subflow with room in turn.
    RoundRobin,
    /// Everything on every subflow.
    Redundant,
    /// BLEST (Ferlin, Alay, Mehani, Boreli: "BLEST: Blocking estimation-based MPTCP scheduler for heterogeneous
    /// networks", IFIP Networking 2016): as the first, but wait when the slower path would fill the window before
    /// its segment is acknowledged.
    Blest,
    /// DAPS (Kuhn, Lochin, Mifdaoui, Sarwar, Mehani, Boreli: "DAPS: Intelligent delay-aware packet scheduling for
    /// multipath transport", IEEE ICC 2014): by the ratio of delays, so that segments arrive in order.
    Daps,
    /// Section VII of "Multipath TCP Over Multi-Hop Heterogeneous Wireless IoT Networks" (ICC 2024): each path takes
    /// as many segments as it delivers before the next slower one delivers its first.
    Predictive,
}

/// Data that has been sent on a subflow is sent on another, too (RFC 8684 section 3.3.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reinjection {
    /// Only when its subflow is closed: without that data would be lost.
    OnFailure,
    /// Also when the retransmission timer of its subflow runs out.
    OnTimeout,
    /// Also when it holds back the window while another subflow has room (opportunistic retransmission: Raiciu et
    /// al., "How Hard Can It Be?", NSDI 2012), and by the predictive scheduler at the end of a transfer.
    Opportunistic,
}

impl Default for Config {
    /// A present-day host: uncoupled NewReno, fastest round-trip time first, opportunistic re-injection.
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
