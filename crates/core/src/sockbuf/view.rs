//! What the owner tells, and what a policy sees of it.

use alloc::vec::Vec;

use crate::time::Duration;

/// Which connection; its owner's number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(pub u32);

/// Of how many flows a connection is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// One; of several the tuner sees the sum.
    Single,
    /// Micro-flows over several interfaces, one buffer for all. It stays striped while interfaces
    /// are gone.
    Striped,
}

/// How a connection stands.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct View<'a> {
    /// Which.
    pub id: ConnectionId,
    /// Bytes in its send buffer: written, and not acknowledged yet.
    pub occupied: u64,
    /// Bytes acknowledged since the connection began.
    pub acknowledged: u64,
    /// Its micro-flows, or its only one. None while all interfaces are gone.
    pub flows: &'a [FlowView],
}

/// How a micro-flow stands.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FlowView {
    /// Which interface it uses; the owner's number.
    pub interface: u32,
    /// What the link layer reports, bit/s: 0 to 10^15. Anything else is ignored and counted, and
    /// the interface's last report stays. `None`: no report; then the flow's window in each RTT is
    /// taken for it.
    pub bandwidth: Option<f64>,
    /// Round trip, once measured. The least of late is right, the smoothed one is not: where the
    /// buffer itself makes the queue, a longer RTT asks for a larger buffer, which makes the RTT
    /// longer.
    pub rtt: Option<Duration>,
    /// The congestion window, bytes.
    pub window: u64,
    /// Bytes of the longest segment, at least 1; 0 is ignored and counted.
    pub mss: u32,
}

impl FlowView {
    /// Bandwidth, bit/s: as reported, else as the window tells.
    pub(super) fn rate(&self) -> Option<f64> {
        let by_window = || {
            let rtt = self.rtt.filter(|rtt| !rtt.is_zero())?;
            Some(self.window as f64 * 8.0 / rtt.as_secs_f64())
        };
        self.bandwidth.or_else(by_window)
    }
}

/// A connection as the tuner knows it.
#[derive(Clone, PartialEq, Debug)]
pub struct Connection {
    /// Which.
    pub id: ConnectionId,
    /// Of how many flows it is made.
    pub kind: Kind,
    /// The least size of its buffer, bytes: the longest segment of all its flows.
    pub mss: u32,
    /// The size that was decided, bytes.
    pub target: u64,
    /// The size that holds, bytes: more than the target until the buffer has drained, less until
    /// others have.
    pub limit: u64,
    /// Bytes in the buffer, by the last view.
    pub occupied: u64,
    /// Bytes acknowledged, by the last view.
    pub acknowledged: u64,
    /// Its flows, by the last view, with the last bandwidth report that made sense.
    pub flows: Vec<FlowView>,
    /// Target and limit that the owner was told.
    pub(super) told: (u64, u64),
}

impl Connection {
    /// The windows of all flows, bytes.
    pub(super) fn window(&self) -> u64 {
        self.flows.iter().fold(0, |sum, flow| sum.saturating_add(flow.window))
    }

    /// Bandwidth of all flows, bit/s; `None` if no flow knows its own.
    pub(super) fn rate(&self) -> Option<f64> {
        let mut rates = self.flows.iter().filter_map(FlowView::rate).peekable();
        rates.peek()?;
        Some(rates.sum())
    }

    /// Bandwidth times RTT of each flow, bytes; `None` if no flow knows both.
    pub(super) fn product(&self) -> Option<f64> {
        let product = |flow: &FlowView| Some(flow.rate()? * flow.rtt?.as_secs_f64() / 8.0);
        let mut products = self.flows.iter().filter_map(product).peekable();
        products.peek()?;
        Some(products.sum())
    }

    /// The longest round trip.
    pub(super) fn slowest(&self) -> Option<Duration> {
        self.flows.iter().filter_map(|flow| flow.rtt).max()
    }
}
