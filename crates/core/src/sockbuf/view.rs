//! Views that the owner reports, and the state that a policy sees.

use alloc::vec::Vec;

use crate::time::Duration;

/// Id of a connection, assigned by the owner.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(pub u32);

/// Whether a connection consists of one or of several flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// One flow; of several flows the tuner sees the sum.
    Single,
    /// Micro-flows over several interfaces with one common buffer. The connection stays striped
    /// while interfaces are down.
    Striped,
}

/// Reported state of a connection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct View<'a> {
    /// Id of the connection.
    pub id: ConnectionId,
    /// Bytes in its send buffer: written and not yet acknowledged.
    pub occupied: u64,
    /// Bytes acknowledged since the start of the connection.
    pub acknowledged: u64,
    /// Its micro-flows, or its only flow. Empty while all interfaces are down.
    pub flows: &'a [FlowView],
}

/// Reported state of a micro-flow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FlowView {
    /// Interface of the flow; a number assigned by the owner.
    pub interface: u32,
    /// Bandwidth reported by the link layer in bit/s: 0 to 10^15. Other values are ignored and
    /// counted, and the last report of the interface stays valid. `None`: no report; the flow's
    /// window per RTT is used instead.
    pub bandwidth: Option<f64>,
    /// Round-trip time, once measured. Use the recent minimum and not the smoothed value: if the
    /// buffer itself causes the queue, a longer RTT would request a larger buffer, which makes the
    /// RTT longer.
    pub rtt: Option<Duration>,
    /// Congestion window in bytes.
    pub window: u64,
    /// Largest segment in bytes, at least 1; 0 is ignored and counted.
    pub mss: u32,
}

impl FlowView {
    /// Bandwidth in bit/s: as reported, otherwise derived from the window.
    pub(super) fn rate(&self) -> Option<f64> {
        let by_window = || {
            let rtt = self.rtt.filter(|rtt| !rtt.is_zero())?;
            Some(self.window as f64 * 8.0 / rtt.as_secs_f64())
        };
        self.bandwidth.or_else(by_window)
    }
}

/// State of a connection in the tuner.
#[derive(Clone, PartialEq, Debug)]
pub struct Connection {
    /// Id of the connection.
    pub id: ConnectionId,
    /// Whether it consists of one or of several flows.
    pub kind: Kind,
    /// Least size of its buffer in bytes: the largest segment of all its flows.
    pub mss: u32,
    /// Decided size in bytes.
    pub target: u64,
    /// Size in force in bytes: above the target until the buffer has drained, below it until others
    /// have drained.
    pub limit: u64,
    /// Bytes in the buffer, according to the last view.
    pub occupied: u64,
    /// Bytes acknowledged, according to the last view.
    pub acknowledged: u64,
    /// Its flows according to the last view, with their last valid bandwidth reports.
    pub flows: Vec<FlowView>,
    /// Target and limit last reported to the owner.
    pub(super) told: (u64, u64),
}

impl Connection {
    /// Total window of all flows in bytes.
    pub(super) fn window(&self) -> u64 {
        self.flows.iter().fold(0, |sum, flow| sum.saturating_add(flow.window))
    }

    /// Total bandwidth of all flows in bit/s; `None` if it is unknown for every flow.
    pub(super) fn rate(&self) -> Option<f64> {
        let mut rates = self.flows.iter().filter_map(FlowView::rate).peekable();
        rates.peek()?;
        Some(rates.sum())
    }

    /// Sum over the flows of bandwidth times RTT in bytes; `None` if they are unknown for every
    /// flow.
    pub(super) fn product(&self) -> Option<f64> {
        let product = |flow: &FlowView| Some(flow.rate()? * flow.rtt?.as_secs_f64() / 8.0);
        let mut products = self.flows.iter().filter_map(product).peekable();
        products.peek()?;
        Some(products.sum())
    }

    /// Longest round-trip time of all flows.
    pub(super) fn slowest(&self) -> Option<Duration> {
        self.flows.iter().filter_map(|flow| flow.rtt).max()
    }
}
