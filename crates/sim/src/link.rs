//! One direction of a link: its ends, configuration and counters, and its queue and transmitter if
//! it is a cable.
//!
//! There are many more links over the air than cables, one for each pair of neighbours, and most
//! never carry a packet. A link is therefore small: packets over the air are queued and sent by
//! their medium ([`crate::network`]), and counters are allocated with the first packet.

mod cable;
pub mod course;
pub mod discipline;

use std::sync::Arc;

use anabranch_core::time::{Duration, Instant};

use crate::loss::{Disturbance, LossFactors, LossModel};
use crate::packet::{MediumId, NodeId, PacketHandle};
use crate::random::Stream;

use crate::jitter::JitterConfig;
pub use anabranch_units::QueueLimit;
pub use cable::{Arrival, Cable, Departure, Offer};
use course::Course;
use discipline::DisciplineConfig;

/// Configuration of one direction of a link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkConfig {
    /// Transmission rate of IP packets in bit/s, at least 1.
    pub rate: u64,
    /// Propagation delay, from the end of the transmission to the arrival.
    pub delay: Duration,
    /// Capacity of the queue.
    pub queue: QueueLimit,
    /// Queueing discipline.
    pub discipline: DisciplineConfig,
    /// Queue length above which a packet of an ECN-capable transport is marked (RFC 3168 section
    /// 5); the packet counts as part of the queue. `None` marks nothing. Only for a drop-tail
    /// queue.
    pub ecn_threshold: Option<QueueLimit>,
    /// Largest IP packet in bytes.
    pub mtu: u32,
    /// Loss model.
    pub loss: LossModel,
    /// Factors on the loss probability by kind of packet.
    pub loss_factors: LossFactors,
    /// `Some` if the link layer acknowledges every packet at its arrival: the time after that at
    /// which the sender considers the packet lost without an acknowledgement. The acknowledgement
    /// takes no time of its own. The link layer does not retransmit; it only informs a caching
    /// node.
    pub link_ack_timeout: Option<Duration>,
    /// `Some` if the link layer retransmits lost packets.
    pub arq: Option<ArqConfig>,
    /// Reordering and duplication.
    pub disturbance: Disturbance,
    /// Random addition to `delay`.
    pub jitter: Option<JitterConfig>,
    /// Least time from the start of one transmission to the start of the next. On a chain of radios
    /// that share a channel, a node waits until its packet has been forwarded out of range, some
    /// hops further on.
    pub spacing: Duration,
}

impl LinkConfig {
    /// A lossless Ethernet-like link with a queue of 100 packets and an MTU of 1500 bytes.
    pub fn new(rate: u64, delay: Duration) -> Self {
        Self {
            rate,
            delay,
            queue: QueueLimit::Packets(100),
            discipline: DisciplineConfig::DropTail,
            ecn_threshold: None,
            mtu: 1500,
            loss: LossModel::None,
            loss_factors: LossFactors::default(),
            link_ack_timeout: None,
            arq: None,
            disturbance: Disturbance::default(),
            jitter: None,
            spacing: Duration::ZERO,
        }
    }
}

/// A link layer that retransmits lost packets: stop-and-wait ARQ with the persistence of RFC 3366.
/// The transmitter keeps a packet until it has arrived or is given up, so packets arrive in order
/// and wait behind a retransmission. Feedback is perfect: it is never lost, and takes no capacity
/// of the other direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArqConfig {
    /// Largest number of retransmissions of a packet.
    pub limit: u32,
    /// Time from the end of a lost transmission to the start of the next attempt.
    pub delay: Duration,
}

/// Reason why a link dropped a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkDrop {
    /// The queue was full.
    QueueFull,
    /// The queueing discipline dropped the packet to signal congestion.
    Early,
    /// The channel lost it.
    Loss,
    /// The link was down, or went down while it held the packet.
    Down,
}

/// Counters of a link. `enqueued + dropped_full` is the number of packets offered while the link
/// was up; `enqueued = delivered + dropped_early + dropped_loss + cut + in flight`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkMetrics {
    /// Packets accepted.
    pub enqueued: u64,
    /// Packets that arrived.
    pub delivered: u64,
    /// Bytes that arrived, including IP headers.
    pub delivered_bytes: u64,
    /// Packets refused by a full queue.
    pub dropped_full: u64,
    /// Packets that the queueing discipline dropped although there was room.
    pub dropped_early: u64,
    /// Packets that this queue marked (RFC 3168). They may still be lost later on.
    pub marked: u64,
    /// Packets lost by the channel; with [`LinkConfig::arq`] those that were given up.
    pub dropped_loss: u64,
    /// Retransmissions, including planned ones: see [`Link::repeated`].
    pub repeated: u64,
    /// Packets refused because the link was down.
    pub dropped_down: u64,
    /// Accepted packets that were in the link when it went down.
    pub cut: u64,
    /// Packets that exceeded the MTU and could not be fragmented, counted by the network.
    pub dropped_mtu: u64,
    /// Peak number of waiting packets.
    pub peak_packets: u64,
    /// Peak number of waiting bytes.
    pub peak_bytes: u64,
    /// Total time of all accepted transmissions, ended or not, including the gaps between attempts
    /// for one packet. [`Link::busy`] is the part until now.
    pub busy: Duration,
}

impl LinkMetrics {
    const NOTHING: Self = Self {
        enqueued: 0,
        delivered: 0,
        delivered_bytes: 0,
        dropped_full: 0,
        dropped_early: 0,
        marked: 0,
        dropped_loss: 0,
        repeated: 0,
        dropped_down: 0,
        cut: 0,
        dropped_mtu: 0,
        peak_packets: 0,
        peak_bytes: 0,
        busy: Duration::ZERO,
    };
}

/// One direction of a link.
#[derive(Debug)]
pub struct Link {
    from: NodeId,
    to: NodeId,
    mtu: u32,
    medium: MediumId,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Cable(Box<Cable>),
    Air(Air),
}

/// A link over the air.
#[derive(Debug)]
struct Air {
    /// Shared by all links of the medium, unless this one has its own rate.
    config: Arc<LinkConfig>,
    up: bool,
    /// `None` until there is something to count.
    metrics: Option<Box<LinkMetrics>>,
}

impl Link {
    /// A cable that is idle and up. `stream` makes the random stream for a purpose.
    pub fn new(from: NodeId, to: NodeId, config: LinkConfig, stream: impl Fn(&str) -> Stream) -> Self {
        let kind = Kind::Cable(Box::new(Cable::new(config, stream)));
        Self { from, to, mtu: config.mtu, medium: MediumId::CABLE, kind }
    }

    /// A link of a medium other than cables, which queues and sends its packets. It is up.
    pub(crate) fn over_air(from: NodeId, to: NodeId, medium: MediumId, config: &Arc<LinkConfig>) -> Self {
        let kind = Kind::Air(Air { config: Arc::clone(config), up: true, metrics: None });
        Self { from, to, mtu: config.mtu, medium, kind }
    }

    /// Node at which the link begins.
    #[inline]
    pub fn from(&self) -> NodeId {
        self.from
    }

    /// Node at which the link ends.
    #[inline]
    pub fn to(&self) -> NodeId {
        self.to
    }

    /// The configuration with the current rate.
    pub fn config(&self) -> &LinkConfig {
        match &self.kind {
            Kind::Cable(cable) => cable.config(),
            Kind::Air(air) => &air.config,
        }
    }

    /// Makes a cable follow a course, before its first packet.
    pub fn follow(&mut self, course: &Course) {
        if let Some(cable) = self.cable_mut() {
            cable.follow(course);
        }
    }

    /// Rate at a given time in bit/s: see [`Cable::rate`].
    pub fn rate(&self, now: Instant) -> u64 {
        self.cable().map_or(self.config().rate, |cable| cable.rate(now))
    }

    /// Largest IP packet in bytes.
    #[inline]
    pub fn mtu(&self) -> u32 {
        self.mtu
    }

    /// Whether the link is up and accepts packets.
    pub fn is_up(&self) -> bool {
        match &self.kind {
            Kind::Cable(cable) => cable.is_up(),
            Kind::Air(air) => air.up,
        }
    }

    /// The counters of the link.
    pub fn metrics(&self) -> &LinkMetrics {
        match &self.kind {
            Kind::Cable(cable) => cable.metrics(),
            Kind::Air(air) => air.metrics.as_deref().unwrap_or(&LinkMetrics::NOTHING),
        }
    }

    fn metrics_mut(&mut self) -> &mut LinkMetrics {
        match &mut self.kind {
            Kind::Cable(cable) => cable.metrics_mut(),
            Kind::Air(air) => air.metrics.get_or_insert_default(),
        }
    }

    /// The medium that carries its packets.
    #[inline]
    pub fn medium(&self) -> MediumId {
        self.medium
    }

    /// Whether the link is over the air.
    #[inline]
    pub fn is_wireless(&self) -> bool {
        self.medium != MediumId::CABLE
    }

    /// Queue and transmitter, if the link is a cable.
    #[inline]
    pub fn cable(&self) -> Option<&Cable> {
        match &self.kind {
            Kind::Cable(cable) => Some(cable),
            Kind::Air(_) => None,
        }
    }

    /// Queue and transmitter, if the link is a cable.
    #[inline]
    pub fn cable_mut(&mut self) -> Option<&mut Cable> {
        match &mut self.kind {
            Kind::Cable(cable) => Some(cable),
            Kind::Air(_) => None,
        }
    }

    /// Counts a packet that was offered to the radio, and refused for this reason or accepted.
    pub(crate) fn count_offer(&mut self, refusal: Option<LinkDrop>) {
        let metrics = self.metrics_mut();
        match refusal {
            None => metrics.enqueued += 1,
            Some(LinkDrop::QueueFull) => metrics.dropped_full += 1,
            Some(LinkDrop::Down | LinkDrop::Loss | LinkDrop::Early) => metrics.dropped_down += 1,
        }
    }

    /// Counts a packet that has arrived over the air.
    pub(crate) fn count_delivered(&mut self, octets: u32) {
        let metrics = self.metrics_mut();
        metrics.delivered += 1;
        metrics.delivered_bytes += u64::from(octets);
    }

    /// Counts a packet that the radio gave up and that has not arrived.
    pub(crate) fn count_lost(&mut self) {
        self.metrics_mut().dropped_loss += 1;
    }

    /// Counts a packet that was held by a node that went down.
    pub(crate) fn count_cut(&mut self) {
        self.metrics_mut().cut += 1;
    }

    /// Counts a packet that exceeded the MTU and could not be fragmented.
    pub(crate) fn count_too_big(&mut self) {
        self.metrics_mut().dropped_mtu += 1;
    }

    /// Number of packets that a cable has accepted and that have not arrived.
    pub fn in_flight(&self) -> usize {
        self.cable().map_or(0, Cable::in_flight)
    }

    /// Time for which the transmitter of a cable has been busy until now.
    pub fn busy(&self, now: Instant) -> Duration {
        self.cable().map_or(Duration::ZERO, |cable| cable.busy(now))
    }

    /// Retransmissions of packets whose last transmission over a cable has ended.
    pub fn repeated(&self, now: Instant) -> u64 {
        self.cable().map_or(0, |cable| cable.repeated(now))
    }

    /// Takes the link down: see [`Cable::take_down`].
    pub fn take_down(&mut self, now: Instant, cut: impl FnMut(PacketHandle)) -> Option<Instant> {
        match &mut self.kind {
            Kind::Cable(cable) => cable.take_down(now, cut),
            Kind::Air(air) => {
                air.up = false;
                None
            }
        }
    }

    /// Drops the packets that have not left the transmitter of a cable: see [`Cable::cut`].
    pub fn cut(&mut self, now: Instant, cut: impl FnMut(PacketHandle)) -> Option<Instant> {
        self.cable_mut()?.cut(now, cut)
    }

    /// Brings the link up.
    pub fn bring_up(&mut self) {
        match &mut self.kind {
            Kind::Cable(cable) => cable.bring_up(),
            Kind::Air(air) => air.up = true,
        }
    }

    /// Sets the rate in bit/s: see [`Cable::set_rate`]. Over the air the rate is only stored.
    pub fn set_rate(&mut self, now: Instant, rate: u64) -> Option<Instant> {
        match &mut self.kind {
            Kind::Cable(cable) => cable.set_rate(now, rate),
            Kind::Air(air) => {
                Arc::make_mut(&mut air.config).rate = rate;
                None
            }
        }
    }
}

/// Transmission time of `len` bytes at `rate` bit/s, rounded up to the nanosecond.
#[inline]
pub fn transmission_time(len: u32, rate: u64) -> Duration {
    Duration::from_nanos((u64::from(len) * 8_000_000_000).div_ceil(rate))
}
