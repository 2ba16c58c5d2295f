//! One direction of a link: its ends, its configuration, what it has done, and what it is if it is
//! a cable.
//!
//! There are many more links over the air than cables, one for each pair of neighbours, and most
//! never carry a packet. So a link is small: its medium ([`crate::network`]) queues and sends what
//! goes over the air, and what a link has counted has its place from the first packet on.

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

/// One direction of a link, as configured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkConfig {
    /// Bit/s of IP packets, at least 1.
    pub rate: u64,
    /// From the end of transmission to arrival.
    pub delay: Duration,
    /// Waiting packets.
    pub queue: QueueLimit,
    /// How waiting packets are treated.
    pub discipline: DisciplineConfig,
    /// A packet of a transport that understands ECN is marked if the queue holds more than this
    /// with it (RFC 3168 section 5). Without it none is. For a queue that drops from its tail.
    pub ecn_threshold: Option<QueueLimit>,
    /// Largest IP packet in octets.
    pub mtu: u32,
    /// How packets are lost.
    pub loss: LossModel,
    /// Factors on the loss by kind of packet.
    pub loss_factors: LossFactors,
    /// `Some` if the link layer acknowledges every packet, at its arrival: how long after that the
    /// sender takes it for lost if the acknowledgement does not come. The time that one takes is
    /// part of the delay. The link layer repeats nothing: it only tells a caching node.
    pub link_ack_timeout: Option<Duration>,
    /// `Some` if the link layer repeats packets that the channel has lost.
    pub arq: Option<ArqConfig>,
    /// Packets that arrive late or twice.
    pub disturbance: Disturbance,
    /// How much longer packets take than `delay`.
    pub jitter: Option<JitterConfig>,
    /// From the start of one transmission to that of the next, at least: on a chain of radios that
    /// share a channel a node waits until its packet is out of earshot, some hops on.
    pub spacing: Duration,
}

impl LinkConfig {
    /// A lossless Ethernet-like link with a queue of 100 packets and an MTU of 1500 octets.
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

/// A link layer that repeats what its channel has lost: stop-and-wait ARQ, with the persistence of
/// RFC 3366. The transmitter keeps a packet until it has arrived or is given up, so that packets
/// arrive in order and wait behind one that is repeated. What tells the link layer is never lost,
/// and takes no time of the other direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArqConfig {
    /// How often a packet is repeated at most.
    pub limit: u32,
    /// From the end of a transmission that was lost to the next one.
    pub delay: Duration,
}

/// Why a link lost a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkDrop {
    /// The queue was at its limit.
    QueueFull,
    /// The queue's discipline dropped it to tell of congestion.
    Early,
    /// The channel lost it.
    Loss,
    /// The link was down, or went down while the packet was in it.
    Down,
}

/// What a link has done so far. `enqueued + dropped_full` is all that was offered while it was up;
/// `enqueued = delivered + dropped_early + dropped_loss + cut + in flight`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkMetrics {
    /// Packets accepted.
    pub enqueued: u64,
    /// Packets that arrived.
    pub delivered: u64,
    /// Octets that arrived, IP headers included.
    pub delivered_bytes: u64,
    /// Packets refused by a full queue.
    pub dropped_full: u64,
    /// Packets that the queue's discipline has dropped though there was room.
    pub dropped_early: u64,
    /// Packets that this queue has marked (RFC 3168); they may still be lost behind it.
    pub marked: u64,
    /// Packets lost by the channel; with [`LinkConfig::arq`] those that were given up.
    pub dropped_loss: u64,
    /// Transmissions beyond the first of each packet, planned ones included: see
    /// [`Link::repeated`].
    pub repeated: u64,
    /// Packets refused because the link was down.
    pub dropped_down: u64,
    /// Accepted packets that were in the link when it went down.
    pub cut: u64,
    /// Packets too big that could not be fragmented, counted by the network.
    pub dropped_mtu: u64,
    /// Most packets that waited at once.
    pub peak_packets: u64,
    /// Most octets that waited at once.
    pub peak_bytes: u64,
    /// Time of all transmissions accepted, ended or not, from the first to the last of a packet;
    /// [`Link::busy`] is that of those until now.
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

/// One direction of a link, in operation.
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
    /// Of all links of the medium, as long as this one has no rate of its own.
    config: Arc<LinkConfig>,
    up: bool,
    /// `None` as long as there is nothing to count.
    metrics: Option<Box<LinkMetrics>>,
}

impl Link {
    /// A cable that is idle and up; `stream` makes the random stream for a purpose.
    pub fn new(from: NodeId, to: NodeId, config: LinkConfig, stream: impl Fn(&str) -> Stream) -> Self {
        let kind = Kind::Cable(Box::new(Cable::new(config, stream)));
        Self { from, to, mtu: config.mtu, medium: MediumId::CABLE, kind }
    }

    /// A link of a medium that is no cable, which queues and sends its packets. It is up.
    pub(crate) fn over_air(from: NodeId, to: NodeId, medium: MediumId, config: &Arc<LinkConfig>) -> Self {
        let kind = Kind::Air(Air { config: Arc::clone(config), up: true, metrics: None });
        Self { from, to, mtu: config.mtu, medium, kind }
    }

    /// Where it starts.
    #[inline]
    pub fn from(&self) -> NodeId {
        self.from
    }

    /// Where it ends.
    #[inline]
    pub fn to(&self) -> NodeId {
        self.to
    }

    /// Its configuration, with the rate of now.
    pub fn config(&self) -> &LinkConfig {
        match &self.kind {
            Kind::Cable(cable) => cable.config(),
            Kind::Air(air) => &air.config,
        }
    }

    /// A cable follows a course from now on, before its first packet.
    pub fn follow(&mut self, course: &Course) {
        if let Some(cable) = self.cable_mut() {
            cable.follow(course);
        }
    }

    /// The rate of a moment in bit/s, as [`Cable::rate`] has it.
    pub fn rate(&self, now: Instant) -> u64 {
        self.cable().map_or(self.config().rate, |cable| cable.rate(now))
    }

    /// Largest IP packet in octets.
    #[inline]
    pub fn mtu(&self) -> u32 {
        self.mtu
    }

    /// Packets are accepted.
    pub fn is_up(&self) -> bool {
        match &self.kind {
            Kind::Cable(cable) => cable.is_up(),
            Kind::Air(air) => air.up,
        }
    }

    /// What it has done.
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

    /// What carries its packets.
    #[inline]
    pub fn medium(&self) -> MediumId {
        self.medium
    }

    /// It is over the air.
    #[inline]
    pub fn is_wireless(&self) -> bool {
        self.medium != MediumId::CABLE
    }

    /// Its queue and its transmitter, if it is a cable.
    #[inline]
    pub fn cable(&self) -> Option<&Cable> {
        match &self.kind {
            Kind::Cable(cable) => Some(cable),
            Kind::Air(_) => None,
        }
    }

    /// Its queue and its transmitter, if it is a cable.
    #[inline]
    pub fn cable_mut(&mut self) -> Option<&mut Cable> {
        match &mut self.kind {
            Kind::Cable(cable) => Some(cable),
            Kind::Air(_) => None,
        }
    }

    /// A packet was offered to the radio, and taken if nothing was against it.
    pub(crate) fn count_offer(&mut self, refusal: Option<LinkDrop>) {
        let metrics = self.metrics_mut();
        match refusal {
            None => metrics.enqueued += 1,
            Some(LinkDrop::QueueFull) => metrics.dropped_full += 1,
            Some(LinkDrop::Down | LinkDrop::Loss | LinkDrop::Early) => metrics.dropped_down += 1,
        }
    }

    /// A packet has come over the air.
    pub(crate) fn count_delivered(&mut self, octets: u32) {
        let metrics = self.metrics_mut();
        metrics.delivered += 1;
        metrics.delivered_bytes += u64::from(octets);
    }

    /// The radio has given a packet up that has not arrived.
    pub(crate) fn count_lost(&mut self) {
        self.metrics_mut().dropped_loss += 1;
    }

    /// A packet was with a node that has died.
    pub(crate) fn count_cut(&mut self) {
        self.metrics_mut().cut += 1;
    }

    /// A packet for this link was too big and could not be cut.
    pub(crate) fn count_too_big(&mut self) {
        self.metrics_mut().dropped_mtu += 1;
    }

    /// Packets that a cable has accepted and that have not arrived.
    pub fn in_flight(&self) -> usize {
        self.cable().map_or(0, Cable::in_flight)
    }

    /// Time that the transmitter of a cable has been busy until now.
    pub fn busy(&self, now: Instant) -> Duration {
        self.cable().map_or(Duration::ZERO, |cable| cable.busy(now))
    }

    /// Transmissions beyond the first of each packet that has left a cable's transmitter for good.
    pub fn repeated(&self, now: Instant) -> u64 {
        self.cable().map_or(0, |cable| cable.repeated(now))
    }

    /// Takes the link down, as [`Cable::take_down`] does.
    pub fn take_down(&mut self, now: Instant, cut: impl FnMut(PacketHandle)) -> Option<Instant> {
        match &mut self.kind {
            Kind::Cable(cable) => cable.take_down(now, cut),
            Kind::Air(air) => {
                air.up = false;
                None
            }
        }
    }

    /// Drops what has not left the transmitter of a cable, as [`Cable::cut`] does.
    pub fn cut(&mut self, now: Instant, cut: impl FnMut(PacketHandle)) -> Option<Instant> {
        self.cable_mut()?.cut(now, cut)
    }

    /// Accepts packets again.
    pub fn bring_up(&mut self) {
        match &mut self.kind {
            Kind::Cable(cable) => cable.bring_up(),
            Kind::Air(air) => air.up = true,
        }
    }

    /// Sets the rate in bit/s, as [`Cable::set_rate`] does. Over the air it is noted and no more.
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

/// Time to send `len` octets at `rate` bit/s, rounded up to the nanosecond.
#[inline]
pub fn transmission_time(len: u32, rate: u64) -> Duration {
    Duration::from_nanos((u64::from(len) * 8_000_000_000).div_ceil(rate))
}
