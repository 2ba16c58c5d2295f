//! One direction of a cable, which is a point-to-point link: a queue, a transmitter, a delay and a
//! lossy channel.
//!
//! # Method
//!
//! A cable needs no event for the end of a transmission. When a packet is accepted, the packets
//! before it already determine when its transmission starts and ends and when it arrives. It is
//! added to one first-in first-out list with these times, and only the arrival of the first packet
//! in the list is a pending event. The queue length at any time follows from the start times.
//!
//! # Semantics
//!
//! * The queue holds waiting packets, without the packet in transmission (as in ns-2 and ns-3). A
//!   packet is dropped if it would have to wait in a full queue; an idle transmitter always accepts
//!   it.
//! * A lost packet takes its transmission time and is lost at the far end.
//! * Going down drops the packets in the queue and in transmission; packets that have left the
//!   transmitter arrive. While down, the cable accepts nothing.
//! * A new rate or loss model applies from the next transmission on; the current transmission ends
//!   as it began. A new delay applies to all packets that have not left the transmitter.
//! * A cable that follows a [`Course`] sends according to it, and a packet takes the delay at the
//!   time at which it leaves the transmitter. Packets do not overtake: one with a shorter delay
//!   arrives together with the one before it.
//! * A queue with its own [`discipline`](super::discipline) is asked for the next packet when the
//!   transmitter is free. Only then does the packet enter the list, and there is a second pending
//!   event for this time.

mod varied;

use std::collections::VecDeque;

use anabranch_core::dtc::LinkEvent;
use anabranch_core::segment::Ecn;
use anabranch_core::time::{Duration, Instant};

use super::course::{Course, Pace};
use super::discipline::{Discipline, Verdicts};
use super::{LinkConfig, LinkDrop, LinkMetrics, transmission_time};
use crate::jitter::Jitter;
use crate::loss::{Channel, Disturber, Fate, LossModel};
use crate::packet::{Flow, PacketHandle};
use crate::random::Stream;
use varied::{Varied, Way};

/// A packet in the link; small, since there are many. Without variation it leaves the transmitter
/// at `arrival - delay`.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    /// Start of the transmission, when it leaves the queue.
    start: Instant,
    arrival: Instant,
    handle: PacketHandle,
}

impl InFlight {
    #[inline]
    fn len(&self) -> u32 {
        self.handle.wire_len
    }
}

/// The first packet in a cable's list, taken out at its arrival time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// The packet.
    pub handle: PacketHandle,
    /// Whether the channel lost it.
    pub lost: bool,
    /// The link layer's report to the sender, if the link layer acknowledges.
    pub report: Option<LinkEvent>,
    /// Reordering or duplication, if the packet is not lost.
    pub fate: Fate,
    /// Time of the next arrival.
    pub next: Option<Instant>,
}

/// Result of offering a packet to a cable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offer {
    /// Accepted. Its arrival at this time is the cable's next, so the caller schedules an event.
    AcceptedFirst(Instant),
    /// Accepted behind other packets.
    Accepted,
    /// Not handled: [`Cable::depart`] is due now and has to be called first.
    DepartFirst,
    /// Passed to the queueing discipline. [`Cable::depart`] is due at this time, if there is one.
    /// See [`Cable::take_dropped`].
    Waits(Option<Instant>),
    /// Refused; the caller drops the packet.
    Refused(LinkDrop),
}

/// One direction of a cable.
#[derive(Debug)]
pub struct Cable {
    config: LinkConfig,
    up: bool,
    /// Whether the cable is up, has a drop-tail queue, and nothing varies.
    is_plain: bool,
    /// `None` loses nothing. Boxed, since it is large and often absent.
    channel: Option<Box<Channel>>,
    /// Loses link-layer acknowledgements; `None` if there are none.
    acks: Option<Box<Channel>>,
    /// Delays or duplicates packets; `None` does neither.
    disturber: Option<Box<Disturber>>,
    /// `None` if rate and delay are those of the configuration.
    varied: Option<Box<Varied>>,
    /// Number of times that the loss model was changed.
    losses_set: u32,
    metrics: LinkMetrics,
    flights: VecDeque<InFlight>,
    /// Number of packets at the end of `flights` that were waiting at the last update.
    waiting: usize,
    waiting_bytes: u64,
    /// A queue with its own discipline; `None` for drop-tail. With it, no packet in `flights`
    /// waits.
    managed: Option<Box<Managed>>,
    /// Time at which the transmitter is free.
    free_at: Instant,
    /// Length and transmission time of the last packet. Cached because most packets have equal
    /// length, and a division is slow.
    last_transmission: (u32, Duration),
    /// Number of rebuilds of the list, each of which makes the pending arrival event void.
    generation: u32,
}

/// A queue with its own discipline.
#[derive(Debug)]
struct Managed {
    queue: Box<dyn Discipline>,
    /// Time at which the transmitter takes the next packet; `None` while nothing waits.
    due: Option<Instant>,
    /// Packets that were dropped and counted, until they are taken.
    dropped: Vec<(PacketHandle, LinkDrop)>,
}

/// Whether packets that are planned again keep the channel's decision about them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fates {
    Kept,
    Drawn,
}

/// Start of the first packet in a link, or of a packet that begins at `start`.
fn earliest(flights: &VecDeque<InFlight>, start: Instant) -> Instant {
    flights.front().map_or(start, |first| first.start.min(start))
}

/// A channel with its own random streams for a purpose.
fn channel(config: &LinkConfig, purpose: &str, stream: &impl Fn(&str) -> Stream) -> Box<Channel> {
    let times = || stream("good and bad times");
    Box::new(Channel::new(config.loss, config.loss_factors, stream(purpose), times))
}

/// The transmitter has taken a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Departure {
    /// The packet with its arrival time; `None` if there was none.
    pub packet: Option<(PacketHandle, Instant)>,
    /// Whether it is the link's next arrival, so that the caller schedules an event.
    pub is_first: bool,
    /// Time at which [`Cable::depart`] is due next.
    pub next: Option<Instant>,
}

impl Cable {
    /// An idle cable that is up. `stream` makes the random stream for a purpose.
    pub fn new(config: LinkConfig, stream: impl Fn(&str) -> Stream) -> Self {
        let managed = config.discipline.make(&config, &stream).map(Self::managed_by);
        let jitter = |overtaking| {
            let jitter = config.jitter.filter(|jitter| jitter.overtaking == overtaking)?;
            Some(Jitter::new(jitter.distribution, stream("jitter")))
        };
        let (in_order, overtaking) = (jitter(false), jitter(true));
        let is_varied = in_order.is_some() || config.arq.is_some();
        let is_disturbed = !config.disturbance.is_none() || overtaking.is_some();
        let disturber = || Disturber::new(config.disturbance, overtaking, stream("disturbance"));
        Self {
            config,
            up: true,
            is_plain: managed.is_none() && !is_varied,
            channel: (config.loss != LossModel::None).then(|| channel(&config, "loss", &stream)),
            acks: config.link_ack_timeout.map(|_| channel(&config, "link acknowledgement loss", &stream)),
            disturber: is_disturbed.then(|| Box::new(disturber())),
            varied: is_varied.then(|| Box::new(Varied { jitter: in_order, ..Varied::default() })),
            losses_set: 0,
            metrics: LinkMetrics::default(),
            flights: VecDeque::new(),
            waiting: 0,
            waiting_bytes: 0,
            managed,
            free_at: Instant::ZERO,
            last_transmission: (0, Duration::ZERO),
            generation: 0,
        }
    }

    fn managed_by(queue: Box<dyn Discipline>) -> Box<Managed> {
        Box::new(Managed { queue, due: None, dropped: Vec::new() })
    }

    /// Makes the cable follow a course, before the first packet.
    pub fn follow(&mut self, course: &Course) {
        self.vary().follow(course);
    }

    /// The state for variation, created if there is none.
    fn vary(&mut self) -> &mut Varied {
        if self.varied.is_none() {
            let ways = (0..self.flights.len()).map(|i| Way { end: self.end(i), ..Way::default() });
            let varied = Varied { ways: ways.collect(), ..Varied::default() };
            self.varied = Some(Box::new(varied));
            // Prevents the use of the cached transmission time.
            self.last_transmission = (0, Duration::ZERO);
            self.set_up(self.up);
        }
        self.varied.get_or_insert_default()
    }

    /// The configuration with the rate that was set last. See [`Cable::rate`] for that of a course.
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// The course that determines when packets leave; `None` if the rate does.
    fn pace(&self) -> Option<&Pace> {
        self.varied.as_ref()?.pace.as_ref()
    }

    /// Rate at a given time in bit/s; the mean for transmission opportunities.
    pub fn rate(&self, now: Instant) -> u64 {
        self.pace().and_then(|pace| pace.rate(now)).unwrap_or(self.config.rate)
    }

    /// Bytes of packets that the course would have let through until then, if the cable follows
    /// one.
    pub fn capacity(&self, until: Instant) -> Option<u64> {
        Some(self.varied.as_ref()?.course.rate.as_ref()?.capacity(until))
    }

    /// Whether the cable is up and accepts packets.
    pub fn is_up(&self) -> bool {
        self.up
    }

    /// The counters.
    pub fn metrics(&self) -> &LinkMetrics {
        &self.metrics
    }

    pub(super) fn metrics_mut(&mut self) -> &mut LinkMetrics {
        &mut self.metrics
    }

    /// Number that arrival events carry; an event with another generation is void.
    #[inline]
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Number of accepted packets that have not arrived.
    pub fn in_flight(&self) -> usize {
        self.flights.len() + self.managed_packets()
    }

    /// Number of these that wait for the transmitter.
    pub fn waiting(&self, now: Instant) -> usize {
        self.queued(now).0
    }

    /// Number of packets in a queue with its own discipline.
    fn managed_packets(&self) -> usize {
        self.managed.as_ref().map_or(0, |managed| managed.queue.queued().0)
    }

    /// Time for which the transmitter has been busy until now.
    pub fn busy(&self, now: Instant) -> Duration {
        let after = |i: usize| self.end(i).saturating_since(self.flights[i].start.max(now));
        // The counter includes planned transmissions, so their part after `now` is subtracted.
        let planned = (self.unsent(now)..self.flights.len()).map(after);
        planned.fold(self.metrics.busy, |busy, time| busy - time)
    }

    /// Retransmissions of packets whose last transmission has ended.
    pub fn repeated(&self, now: Instant) -> u64 {
        let Some(varied) = &self.varied else { return self.metrics.repeated };
        // Planned retransmissions are counted already.
        let unsent = self.unsent(now)..self.flights.len();
        let planned = unsent.map(|i| u64::from(varied.way(i, self.flights.len()).repeats));
        self.metrics.repeated - planned.sum::<u64>()
    }

    /// Time at which a packet leaves the transmitter.
    #[inline]
    fn end(&self, i: usize) -> Instant {
        match &self.varied {
            None => Instant::from_nanos(self.flights[i].arrival.as_nanos() - self.config.delay.as_nanos()),
            Some(varied) => varied.way(i, self.flights.len()).end,
        }
    }

    /// Index of the first packet that has not left the transmitter.
    fn unsent(&self, now: Instant) -> usize {
        let (mut first, mut end) = (0, self.flights.len());
        while first < end {
            let middle = first.midpoint(end);
            match self.end(middle) <= now {
                true => first = middle + 1,
                false => end = middle,
            }
        }
        first
    }

    /// Number of waiting packets and bytes.
    pub fn queued(&self, now: Instant) -> (usize, u64) {
        match &self.managed {
            Some(managed) => managed.queue.queued(),
            None => self.departures(now).fold((0, 0), |(packets, octets), (handle, _)| {
                (packets + 1, octets + u64::from(handle.wire_len))
            }),
        }
    }

    /// The packet that was accepted last, as it will arrive, if it is still in the link.
    pub(crate) fn last(&self) -> Option<PacketHandle> {
        self.flights.back().map(|flight| flight.handle)
    }

    /// Start of the transmission of the packet that was accepted last, if it is still in the link.
    pub(crate) fn last_start(&self) -> Option<Instant> {
        self.flights.back().map(|flight| flight.start)
    }

    /// The waiting packets, and the planned start of each transmission, if it is decided.
    pub(crate) fn departures(&self, now: Instant) -> impl Iterator<Item = (PacketHandle, Instant)> {
        let waiting = self.flights.partition_point(|f| f.start <= now);
        self.flights.range(waiting..).map(|f| (f.handle, f.start))
    }

    /// Offers a packet. `flow` is called only if a discipline needs it.
    #[inline(always)]
    pub fn offer(&mut self, now: Instant, handle: PacketHandle, flow: impl FnOnce() -> Flow) -> Offer {
        // One comparison for the common case: up, drop-tail, constant rate.
        if !self.is_plain {
            return self.offer_otherwise(now, handle, flow());
        }
        self.offer_to_tail(now, handle, self.free_at.max(now))
    }

    /// Offers a packet whose transmission would begin at `start`.
    #[inline(always)]
    fn offer_to_tail(&mut self, now: Instant, mut handle: PacketHandle, start: Instant) -> Offer {
        let len = handle.wire_len;
        if start > now {
            self.settle(now);
            let full = self.config.queue.is_exceeded(self.waiting + 1, self.waiting_bytes + u64::from(len));
            if full {
                self.metrics.dropped_full += 1;
                return Offer::Refused(LinkDrop::QueueFull);
            }
            self.waiting += 1;
            self.waiting_bytes += u64::from(len);
            self.note_peak(self.waiting, self.waiting_bytes);
            if self.marks() && handle.ecn.is_capable() && handle.ecn != Ecn::Ce {
                handle.ecn = Ecn::Ce;
                self.metrics.marked += 1;
            }
        } else {
            self.waiting = 0;
            self.waiting_bytes = 0;
        }
        self.metrics.enqueued += 1;
        let (arrival, first) = self.transmit(start, handle);
        if first { Offer::AcceptedFirst(arrival) } else { Offer::Accepted }
    }

    /// Plans the transmission of a packet from `start`. Returns its arrival time, and whether it is
    /// the next arrival.
    #[inline(always)]
    fn transmit(&mut self, start: Instant, mut handle: PacketHandle) -> (Instant, bool) {
        let since = || earliest(&self.flights, start);
        handle.lost = self.channel.as_mut().is_some_and(|channel| channel.loses(handle.kind, start, since));
        let flight = self.schedule(start, InFlight { start, arrival: start, handle });
        let first = self.flights.is_empty();
        self.flights.push_back(flight);
        (flight.arrival, first)
    }

    #[inline]
    fn note_peak(&mut self, packets: usize, octets: u64) {
        self.metrics.peak_packets = self.metrics.peak_packets.max(packets as u64);
        self.metrics.peak_bytes = self.metrics.peak_bytes.max(octets);
    }

    /// Earliest start of a transmission for a packet that arrives now, if nothing else waits.
    fn next_start(&self, now: Instant) -> Instant {
        self.pace().map_or(self.free_at.max(now), |pace| pace.start(now, self.free_at))
    }

    /// Offers a packet to a link that is down, varies, or has a queueing discipline.
    #[cold]
    fn offer_otherwise(&mut self, now: Instant, mut handle: PacketHandle, flow: Flow) -> Offer {
        if !self.up {
            self.metrics.dropped_down += 1;
            return Offer::Refused(LinkDrop::Down);
        }
        let start = self.next_start(now);
        self.tell_rate(now);
        let Some(managed) = self.managed.as_mut() else {
            return self.offer_to_tail(now, handle, start);
        };
        if managed.due == Some(now) {
            return Offer::DepartFirst;
        }
        self.metrics.enqueued += 1;
        let mut verdicts = Verdicts::default();
        if start <= now && managed.due.is_none() {
            let passes = managed.queue.pass(now, &mut handle, flow, &mut verdicts);
            self.count(verdicts);
            if !passes {
                return Offer::Waits(None);
            }
            let (arrival, first) = self.transmit(now, handle);
            return if first { Offer::AcceptedFirst(arrival) } else { Offer::Accepted };
        }
        managed.queue.enqueue(now, handle, flow, &mut verdicts);
        let (packets, octets) = managed.queue.queued();
        let is_new = managed.due.is_none() && packets > 0;
        if is_new {
            managed.due = Some(start);
        }
        self.note_peak(packets, octets);
        self.count(verdicts);
        Offer::Waits(is_new.then_some(start))
    }

    /// Informs the discipline of the rate of a course.
    fn tell_rate(&mut self, now: Instant) {
        let rate = self.pace().and_then(|pace| pace.rate(now));
        if let (Some(rate), Some(managed)) = (rate, &mut self.managed) {
            managed.queue.set_rate(rate.max(1));
        }
    }

    /// The transmitter is free and takes a packet from a queue with its own discipline, if that is
    /// due now.
    pub fn depart(&mut self, now: Instant) -> Departure {
        self.tell_rate(now);
        let Some(managed) = self.managed.as_mut().filter(|managed| managed.due == Some(now)) else {
            return Departure::default();
        };
        managed.due = None;
        let mut verdicts = Verdicts::default();
        let next = managed.queue.dequeue(now, &mut verdicts);
        self.count(verdicts);
        let Some(handle) = next else { return Departure::default() };
        let (arrival, is_first) = self.transmit(now, handle);
        let managed = self.managed.as_mut().expect("it was there");
        managed.due = (managed.queue.queued().0 > 0).then_some(self.free_at);
        Departure { packet: Some((handle, arrival)), is_first, next: managed.due }
    }

    /// Takes the packets that the discipline has dropped since the last call.
    pub fn take_dropped(&mut self) -> Vec<(PacketHandle, LinkDrop)> {
        self.managed.as_mut().map(|managed| std::mem::take(&mut managed.dropped)).unwrap_or_default()
    }

    /// Counts the decisions of the discipline.
    fn count(&mut self, Verdicts { dropped, marked }: Verdicts) {
        self.metrics.marked += marked;
        for (_, why) in &dropped {
            match why {
                LinkDrop::QueueFull => {
                    self.metrics.enqueued -= 1;
                    self.metrics.dropped_full += 1;
                }
                _ => self.metrics.dropped_early += 1,
            }
        }
        if let Some(managed) = &mut self.managed {
            managed.dropped.extend(dropped);
        }
    }

    /// Whether the queue is longer than the ECN threshold.
    #[inline]
    fn marks(&self) -> bool {
        self.config.ecn_threshold.is_some_and(|most| most.is_exceeded(self.waiting, self.waiting_bytes))
    }

    /// Takes the packet that arrives now, the first in the list.
    ///
    /// # Panics
    ///
    /// If no packet is due at `now`, which is an error of the caller.
    #[inline(always)]
    pub fn arrive(&mut self, now: Instant) -> Arrival {
        let flight = self.flights.pop_front().expect("an arrival event has its packet");
        assert!(flight.arrival == now, "a packet arrives when it is due");
        // All packets in the list may have left the queue since the last update.
        if self.waiting > self.flights.len() {
            self.waiting -= 1;
            self.waiting_bytes -= u64::from(flight.len());
        }
        if flight.handle.lost {
            self.metrics.dropped_loss += 1;
        } else {
            self.metrics.delivered += 1;
            self.metrics.delivered_bytes += u64::from(flight.len());
        }
        let next = self.flights.front().map(|f| f.arrival);
        if next.is_none() {
            // Restarts at the first slot of the ring, which is in the cache; otherwise the list
            // would cycle through all slots.
            self.flights.clear();
        }
        let lost = flight.handle.lost;
        let report = self.acks.as_mut().map(|acks| match lost || acks.loses_link_ack(now) {
            true => LinkEvent::TimedOut,
            false => LinkEvent::Acknowledged,
        });
        let fate = self.disturber.as_mut().map_or(Fate::Plain, |disturber| disturber.next_fate());
        Arrival { handle: flight.handle, lost, report, fate, next }
    }

    /// Takes the link down. Packets that have not left the transmitter are passed to `cut`, in
    /// order. Returns the time of the next arrival; the pending event is void.
    pub fn take_down(&mut self, now: Instant, cut: impl FnMut(PacketHandle)) -> Option<Instant> {
        self.set_up(false);
        self.cut(now, cut)
    }

    /// Drops the packets that have not left the transmitter, like [`Cable::take_down`], but stays
    /// up.
    pub fn cut(&mut self, now: Instant, cut: impl FnMut(PacketHandle)) -> Option<Instant> {
        let kept = self.unsent(self.pace().map_or(now, |pace| pace.last_before(now)));
        self.metrics.cut += (self.flights.len() - kept) as u64;
        self.metrics.busy = self.busy(now);
        let managed = self.managed.as_mut().map(|managed| {
            managed.due = None;
            managed.queue.clear(now)
        });
        let waiting = managed.unwrap_or_default();
        self.metrics.cut += waiting.len() as u64;
        self.forget_plans(kept);
        self.flights.drain(kept..).map(|f| f.handle).chain(waiting).for_each(cut);
        self.waiting = 0;
        self.waiting_bytes = 0;
        let pace = self.varied.as_mut().and_then(|varied| varied.pace.as_mut());
        self.free_at = pace.map_or(self.free_at.min(now), |pace| pace.cut(now, self.free_at));
        self.restart()
    }

    /// Brings the cable up.
    pub fn bring_up(&mut self) {
        self.set_up(true);
    }

    fn set_up(&mut self, up: bool) {
        self.up = up;
        self.is_plain = up && self.managed.is_none() && self.varied.is_none();
    }

    /// Sets the rate in bit/s, at least 1, for transmissions that start after `now`. If the cable
    /// follows a course, packets still leave according to it. Returns as [`Cable::take_down`].
    pub fn set_rate(&mut self, now: Instant, rate: u64) -> Option<Instant> {
        self.config.rate = rate;
        if let Some(managed) = &mut self.managed {
            managed.queue.set_rate(rate);
        }
        self.last_transmission = (0, Duration::ZERO);
        self.plan_again(now, Fates::Kept);
        self.restart()
    }

    /// Sets the delay of all packets that have not left the transmitter, without effect if the
    /// cable follows a course. Packets do not overtake those before them. Returns as
    /// [`Cable::take_down`].
    pub fn set_delay(&mut self, now: Instant, delay: Duration) -> Option<Instant> {
        // From here on, the end of a transmission can no longer be derived from the arrival: `vary`
        // records the ends with the old delay.
        self.vary();
        self.config.delay = delay;
        let packets = self.flights.len();
        for i in self.unsent(now)..packets {
            let Some(varied) = &self.varied else { break };
            let way = varied.way(i, packets);
            let arrival = way.end + varied.delay(way.end, delay) + way.extra;
            let before = i.checked_sub(1).map_or(Instant::ZERO, |before| self.flights[before].arrival);
            self.flights[i].arrival = arrival.max(before);
        }
        self.restart()
    }

    /// Sets the loss model for transmissions that start after `now`. Packets that wait for a course
    /// keep the decision about them if the link layer retransmits. `stream` makes the random stream
    /// for a purpose. Returns as [`Cable::take_down`].
    pub fn set_loss(
        &mut self,
        now: Instant,
        loss: LossModel,
        stream: impl Fn(&str) -> Stream,
    ) -> Option<Instant> {
        self.config.loss = loss;
        self.losses_set += 1;
        // Each change has its own stream, so the packets after it meet the same channel whatever
        // happened before.
        let stream = |purpose: &str| stream(&format!("{purpose} {}", self.losses_set));
        self.channel = (loss != LossModel::None).then(|| channel(&self.config, "loss", &stream));
        if self.acks.is_some() {
            self.acks = Some(channel(&self.config, "link acknowledgement loss", &stream));
        }
        if self.config.arq.is_some() {
            self.plan_again(now, Fates::Drawn);
        } else {
            for i in self.flights.partition_point(|f| f.start <= now)..self.flights.len() {
                let InFlight { start, handle, .. } = self.flights[i];
                let lost = self.channel.as_mut().is_some_and(|c| c.loses(handle.kind, start, || now));
                self.flights[i].handle.lost = lost;
            }
        }
        self.restart()
    }

    /// Discards the plans of all packets but the first `kept`.
    fn forget_plans(&mut self, kept: usize) {
        let packets = self.flights.len();
        if let Some(varied) = &mut self.varied {
            let repeats = (kept..packets).map(|i| u64::from(varied.way(i, packets).repeats));
            self.metrics.repeated -= repeats.sum::<u64>();
            varied.truncate(packets, kept);
        }
    }

    /// Plans all waiting packets again.
    fn plan_again(&mut self, now: Instant, fates: Fates) {
        let kept = self.flights.partition_point(|f| f.start <= now);
        let Some(first) = self.flights.get(kept) else { return };
        // A course determines when packets leave; the rate has no effect.
        if self.pace().is_some() {
            return;
        }
        self.free_at = first.start;
        // Takes back the planned transmissions, which `schedule` counts again.
        for i in kept..self.flights.len() {
            self.metrics.busy = self.metrics.busy - self.end(i).saturating_since(self.flights[i].start);
        }
        let packets = self.flights.len();
        let ways: Vec<Way> = match &self.varied {
            Some(varied) => (kept..packets).map(|i| varied.way(i, packets)).collect(),
            None => Vec::new(),
        };
        self.forget_plans(kept);
        for (i, mut flight) in self.flights.split_off(kept).into_iter().enumerate() {
            let start = self.free_at;
            if fates == Fates::Drawn {
                let kind = flight.handle.kind;
                flight.handle.lost = self.channel.as_mut().is_some_and(|c| c.loses(kind, start, || now));
            }
            let flight = match ways.get(i) {
                Some(way) => self.schedule_varied(start, flight, Some((*way, fates))),
                None => self.schedule(start, flight),
            };
            self.flights.push_back(flight);
        }
    }

    /// Plans the end and arrival of a packet from its start, and occupies the transmitter.
    #[inline]
    fn schedule(&mut self, start: Instant, flight: InFlight) -> InFlight {
        if self.last_transmission.0 != flight.len() {
            // Checked here because most packets of most links hit the cached transmission time
            // above; links that vary have no cached time and always reach this branch.
            if self.varied.is_some() {
                return self.schedule_varied(start, flight, None);
            }
            self.last_transmission = (flight.len(), transmission_time(flight.len(), self.config.rate));
        }
        let transmission = self.last_transmission.1;
        let end = start + transmission;
        self.free_at = end.max(start + self.config.spacing);
        self.metrics.busy += transmission;
        InFlight { start, arrival: end + self.config.delay, ..flight }
    }

    /// [`Cable::schedule`] for a cable that varies. `planned` is the previous plan of the packet.
    #[cold]
    fn schedule_varied(
        &mut self,
        start: Instant,
        mut flight: InFlight,
        planned: Option<(Way, Fates)>,
    ) -> InFlight {
        let Some(varied) = &mut self.varied else { unreachable!("something varies") };
        let LinkConfig { rate, delay, spacing, arq, .. } = self.config;
        let len = flight.len();
        let mut send = |start: Instant| match &mut varied.pace {
            Some(pace) => pace.send(start, len),
            None => {
                let end = start + transmission_time(len, rate);
                (end, end)
            }
        };
        let (mut end, mut free) = send(start);
        let (mut latest, mut repeats) = (start, 0);
        if let Some(arq) = arq {
            let known = planned.filter(|(_, fates)| *fates == Fates::Kept).map(|(way, _)| way.repeats);
            while known.map_or(flight.handle.lost && repeats < arq.limit, |known| repeats < known) {
                latest = (end + arq.delay).max(latest + spacing);
                (end, free) = send(latest);
                repeats += 1;
                if known.is_none() {
                    let since = || earliest(&self.flights, start);
                    let channel = self.channel.as_mut();
                    flight.handle.lost =
                        channel.is_some_and(|channel| channel.loses(flight.handle.kind, latest, since));
                }
            }
            self.metrics.repeated += u64::from(repeats);
        }
        self.free_at = free.max(latest + spacing);
        self.metrics.busy += end.saturating_since(start);
        let jitter = || varied.jitter.as_mut().map_or(Duration::ZERO, Jitter::draw);
        // A new plan keeps the jitter of the packet.
        let extra = planned.map_or_else(jitter, |(way, _)| way.extra);
        // Packets do not overtake.
        let before = self.flights.back().map_or(Instant::ZERO, |last| last.arrival);
        let arrival = (end + varied.delay(end, delay) + extra).max(before);
        varied.push(Way { end, extra, repeats }, self.flights.len());
        InFlight { start, arrival, ..flight }
    }

    fn restart(&mut self) -> Option<Instant> {
        self.generation = self.generation.wrapping_add(1);
        self.flights.front().map(|f| f.arrival)
    }

    /// Removes packets that no longer wait from the counts.
    #[inline]
    fn settle(&mut self, now: Instant) {
        while self.waiting > 0 {
            let first = self.flights[self.flights.len() - self.waiting];
            if first.start > now {
                break;
            }
            self.waiting -= 1;
            self.waiting_bytes -= u64::from(first.len());
        }
    }
}

#[cfg(test)]
mod tests;
