//! One direction of a cable, a point-to-point link: a queue, a transmitter, a delay, a lossy
//! channel.
//!
//! # Method
//!
//! A cable needs no event of its own for the end of a transmission. When a packet is accepted, the
//! instants at which its transmission starts and ends and at which it arrives are already decided
//! by those before it; so it goes into one first-in first-out list with these times, and only the
//! arrival at the head of the list is a pending event. The queue's length at any instant follows
//! from the start times.
//!
//! # Semantics
//!
//! * The queue holds packets that wait; the one in transmission has left it (as in ns-2 and ns-3).
//!   A packet is dropped when the queue, at its limit, would have to hold it; an idle transmitter
//!   always accepts.
//! * A lost packet takes its transmission time and is lost at the far end.
//! * Going down cuts what is queued and in transmission; what has left the transmitter arrives.
//!   While down, nothing is accepted.
//! * A new rate holds from the next transmission on; the running one ends as it began. So do new
//!   losses. A new delay holds for all that has not left the transmitter.
//! * A cable that follows a [`Course`] sends by it, and a packet takes the delay of the moment at
//!   which it leaves the transmitter. Packets do not overtake: one with a shorter delay arrives
//!   with the one before it.
//! * A queue with a [`discipline`](super::discipline) of its own is asked for the next packet when
//!   the transmitter is free. Only then the packet enters the list, and there is a second pending
//!   event, for that moment.

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

/// A packet in the link; small, since there are many. It leaves the transmitter at
/// `arrival - delay`, if nothing varies.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    /// Leaves the queue.
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

/// The head of a cable's list, taken out at its arrival time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// The packet.
    pub handle: PacketHandle,
    /// The channel lost it.
    pub lost: bool,
    /// What the link layer tells the sender of it, if it acknowledges.
    pub report: Option<LinkEvent>,
    /// What becomes of it if it is not lost.
    pub fate: Fate,
    /// When the next one arrives.
    pub next: Option<Instant>,
}

/// What became of a packet offered to a cable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offer {
    /// Accepted; its arrival is the cable's next, so an event is due then.
    AcceptedFirst(Instant),
    /// Accepted behind others.
    Accepted,
    /// Not looked at: [`Cable::depart`] is due now, and comes first.
    DepartFirst,
    /// Given to the queue's discipline; at this time, if there is one, [`Cable::depart`] is due.
    /// See [`Cable::take_dropped`].
    Waits(Option<Instant>),
    /// Refused; the caller drops it.
    Refused(LinkDrop),
}

/// One direction of a cable, in operation.
#[derive(Debug)]
pub struct Cable {
    config: LinkConfig,
    up: bool,
    /// It is up, its queue drops from its tail, and nothing varies.
    is_plain: bool,
    /// `None` loses nothing. Apart, since it is large and often absent.
    channel: Option<Box<Channel>>,
    /// Loses the link layer's acknowledgements; `None` without them.
    acks: Option<Box<Channel>>,
    /// Makes packets late or doubles them; `None` does not.
    disturber: Option<Box<Disturber>>,
    /// `None` if rate and delay are those of the configuration.
    varied: Option<Box<Varied>>,
    /// How often new losses were set.
    losses_set: u32,
    metrics: LinkMetrics,
    flights: VecDeque<InFlight>,
    /// How many of `flights`, from the back, still waited when last looked at.
    waiting: usize,
    waiting_bytes: u64,
    /// A queue with a discipline of its own; `None` drops from its tail. Then nothing in `flights`
    /// waits.
    managed: Option<Box<Managed>>,
    /// When the transmitter is free.
    free_at: Instant,
    /// Length and transmission time of the last packet: most are alike, and a division is slow.
    last_transmission: (u32, Duration),
    /// Counts the rebuilds of the list, which make the pending arrival event void.
    generation: u32,
}

/// A queue with a discipline of its own.
#[derive(Debug)]
struct Managed {
    queue: Box<dyn Discipline>,
    /// When the transmitter asks for the next packet; `None` while nothing waits.
    due: Option<Instant>,
    /// Packets that were dropped and counted, until they are taken.
    dropped: Vec<(PacketHandle, LinkDrop)>,
}

/// Whether packets that are planned anew keep what the channel does to them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fates {
    Kept,
    Drawn,
}

/// When the first of the packets in a link begins, or one that begins then.
fn earliest(flights: &VecDeque<InFlight>, start: Instant) -> Instant {
    flights.front().map_or(start, |first| first.start.min(start))
}

/// A channel whose draws have a purpose.
fn channel(config: &LinkConfig, purpose: &str, stream: &impl Fn(&str) -> Stream) -> Box<Channel> {
    let times = || stream("good and bad times");
    Box::new(Channel::new(config.loss, config.loss_factors, stream(purpose), times))
}

/// The transmitter has asked for a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Departure {
    /// The packet that goes now, and when it arrives; `None` if no packet is left.
    pub packet: Option<(PacketHandle, Instant)>,
    /// It is the link's next to arrive, so that an event is due then.
    pub is_first: bool,
    /// When [`Cable::depart`] is due next.
    pub next: Option<Instant>,
}

impl Cable {
    /// An idle cable that is up; `stream` makes the random stream for a purpose.
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

    /// Follows a course from now on, before the first packet.
    pub fn follow(&mut self, course: &Course) {
        self.vary().follow(course);
    }

    /// What varies, from now on if nothing has.
    fn vary(&mut self) -> &mut Varied {
        if self.varied.is_none() {
            let ways = (0..self.flights.len()).map(|i| Way { end: self.end(i), ..Way::default() });
            let varied = Varied { ways: ways.collect(), ..Varied::default() };
            self.varied = Some(Box::new(varied));
            // So that no transmission time is taken from it.
            self.last_transmission = (0, Duration::ZERO);
            self.set_up(self.up);
        }
        self.varied.get_or_insert_default()
    }

    /// Its configuration, with the rate that was set last. See [`Cable::rate`] for that of a
    /// course.
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// What says when packets leave, if the rate does not.
    fn pace(&self) -> Option<&Pace> {
        self.varied.as_ref()?.pace.as_ref()
    }

    /// The rate of a moment in bit/s; the mean if it sends at opportunities.
    pub fn rate(&self, now: Instant) -> u64 {
        self.pace().and_then(|pace| pace.rate(now)).unwrap_or(self.config.rate)
    }

    /// Octets of packets that its course would have let through until then, if it follows one.
    pub fn capacity(&self, until: Instant) -> Option<u64> {
        Some(self.varied.as_ref()?.course.rate.as_ref()?.capacity(until))
    }

    /// Packets are accepted.
    pub fn is_up(&self) -> bool {
        self.up
    }

    /// What it has done.
    pub fn metrics(&self) -> &LinkMetrics {
        &self.metrics
    }

    pub(super) fn metrics_mut(&mut self) -> &mut LinkMetrics {
        &mut self.metrics
    }

    /// An arrival event that carries another generation than this is void.
    #[inline]
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Packets accepted that have not arrived.
    pub fn in_flight(&self) -> usize {
        self.flights.len() + self.managed_packets()
    }

    /// Packets among them that wait for the transmitter.
    pub fn waiting(&self, now: Instant) -> usize {
        self.queued(now).0
    }

    /// Packets in a queue with a discipline of its own.
    fn managed_packets(&self) -> usize {
        self.managed.as_ref().map_or(0, |managed| managed.queue.queued().0)
    }

    /// Time that the transmitter has been busy until now.
    pub fn busy(&self, now: Instant) -> Duration {
        let after = |i: usize| self.end(i).saturating_since(self.flights[i].start.max(now));
        let planned = (self.unsent(now)..self.flights.len()).map(after);
        planned.fold(self.metrics.busy, |busy, time| busy - time)
    }

    /// Transmissions beyond the first of each packet that has left the transmitter for good.
    pub fn repeated(&self, now: Instant) -> u64 {
        let Some(varied) = &self.varied else { return self.metrics.repeated };
        let unsent = self.unsent(now)..self.flights.len();
        let planned = unsent.map(|i| u64::from(varied.way(i, self.flights.len()).repeats));
        self.metrics.repeated - planned.sum::<u64>()
    }

    /// When a packet leaves the transmitter.
    #[inline]
    fn end(&self, i: usize) -> Instant {
        match &self.varied {
            None => Instant::from_nanos(self.flights[i].arrival.as_nanos() - self.config.delay.as_nanos()),
            Some(varied) => varied.way(i, self.flights.len()).end,
        }
    }

    /// The first of the packets that have not left the transmitter.
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

    /// Packets and octets that wait for the transmitter.
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

    /// When the transmitter begins with the packet that was accepted last, if that is still in the
    /// link.
    pub(crate) fn last_start(&self) -> Option<Instant> {
        self.flights.back().map(|flight| flight.start)
    }

    /// The packets that wait for the transmitter, and when it begins with each, if that is decided.
    pub(crate) fn departures(&self, now: Instant) -> impl Iterator<Item = (PacketHandle, Instant)> {
        let waiting = self.flights.partition_point(|f| f.start <= now);
        self.flights.range(waiting..).map(|f| (f.handle, f.start))
    }

    /// Offers a packet, of a flow that is asked for by a discipline only.
    #[inline(always)]
    pub fn offer(&mut self, now: Instant, handle: PacketHandle, flow: impl FnOnce() -> Flow) -> Offer {
        // One comparison for what most links are: up, with a queue that drops from its tail, at a
        // steady rate.
        if !self.is_plain {
            return self.offer_otherwise(now, handle, flow());
        }
        self.offer_to_tail(now, handle, self.free_at.max(now))
    }

    /// Offers a packet that would leave the queue at `start`.
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

    /// The transmitter sends a packet from `start` on: when it arrives, and whether it is the next
    /// that does.
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

    /// When the transmitter can begin with a packet that comes now, if nothing else waits.
    fn next_start(&self, now: Instant) -> Instant {
        self.pace().map_or(self.free_at.max(now), |pace| pace.start(now, self.free_at))
    }

    /// Offers a packet to a link that is down, that varies, or that has a queue with a discipline
    /// of its own.
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

    /// Tells a discipline the rate of a course.
    fn tell_rate(&mut self, now: Instant) {
        let rate = self.pace().and_then(|pace| pace.rate(now));
        if let (Some(rate), Some(managed)) = (rate, &mut self.managed) {
            managed.queue.set_rate(rate.max(1));
        }
    }

    /// The transmitter is free and takes a packet of a queue with a discipline, if it is to do so
    /// now.
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

    /// Takes the packets that the queue's discipline has dropped since this was last called.
    pub fn take_dropped(&mut self) -> Vec<(PacketHandle, LinkDrop)> {
        self.managed.as_mut().map(|managed| std::mem::take(&mut managed.dropped)).unwrap_or_default()
    }

    /// Counts what the discipline has decided.
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

    /// The queue is longer than the threshold.
    #[inline]
    fn marks(&self) -> bool {
        self.config.ecn_threshold.is_some_and(|most| most.is_exceeded(self.waiting, self.waiting_bytes))
    }

    /// Takes the packet that arrives now, the head of the list.
    ///
    /// # Panics
    ///
    /// If none is due at `now`, which is a fault of the caller.
    #[inline(always)]
    pub fn arrive(&mut self, now: Instant) -> Arrival {
        let flight = self.flights.pop_front().expect("an arrival event has its packet");
        assert!(flight.arrival == now, "a packet arrives when it is due");
        // Everything in the list may have left the queue without anyone having looked.
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
            // Begins at its first place again, which is in the cache; else it would wander through
            // all of them.
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

    /// Takes the link down: what has not left the transmitter is cut, in order, and given to `cut`.
    /// Returns when the next packet arrives; the event that was pending is void.
    pub fn take_down(&mut self, now: Instant, cut: impl FnMut(PacketHandle)) -> Option<Instant> {
        self.set_up(false);
        self.cut(now, cut)
    }

    /// Drops what has not left the transmitter, as [`Cable::take_down`] does, but stays up.
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

    /// Accepts packets again.
    pub fn bring_up(&mut self) {
        self.set_up(true);
    }

    fn set_up(&mut self, up: bool) {
        self.up = up;
        self.is_plain = up && self.managed.is_none() && self.varied.is_none();
    }

    /// Sets the rate in bit/s, at least 1, for every transmission that starts after `now`; without
    /// effect on when packets leave if a course says that. Returns as [`Cable::take_down`].
    pub fn set_rate(&mut self, now: Instant, rate: u64) -> Option<Instant> {
        self.config.rate = rate;
        if let Some(managed) = &mut self.managed {
            managed.queue.set_rate(rate);
        }
        self.last_transmission = (0, Duration::ZERO);
        self.plan_again(now, Fates::Kept);
        self.restart()
    }

    /// Sets the delay of all packets that have not left the transmitter; without effect if it
    /// follows a course. None of them overtakes those before it. Returns as [`Cable::take_down`].
    pub fn set_delay(&mut self, now: Instant, delay: Duration) -> Option<Instant> {
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

    /// Sets how packets are lost whose transmission starts after `now`. Those that wait for the
    /// opportunities or rates of a course keep what was decided of them if the link layer repeats
    /// packets. `stream` makes the random stream for a purpose. Returns as [`Cable::take_down`].
    pub fn set_loss(
        &mut self,
        now: Instant,
        loss: LossModel,
        stream: impl Fn(&str) -> Stream,
    ) -> Option<Instant> {
        self.config.loss = loss;
        self.losses_set += 1;
        // A stream of its own for each change, so that the packets after it meet the same channel
        // whatever was before it.
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

    /// Forgets what was planned of all packets but the first ones.
    fn forget_plans(&mut self, kept: usize) {
        let packets = self.flights.len();
        if let Some(varied) = &mut self.varied {
            let repeats = (kept..packets).map(|i| u64::from(varied.way(i, packets).repeats));
            self.metrics.repeated -= repeats.sum::<u64>();
            varied.truncate(packets, kept);
        }
    }

    /// Gives all packets that wait their times anew.
    fn plan_again(&mut self, now: Instant, fates: Fates) {
        let kept = self.flights.partition_point(|f| f.start <= now);
        let Some(first) = self.flights.get(kept) else { return };
        if self.pace().is_some() {
            return;
        }
        self.free_at = first.start;
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

    /// Gives a flight its times from its start on, and occupies the transmitter.
    #[inline]
    fn schedule(&mut self, start: Instant, flight: InFlight) -> InFlight {
        if self.last_transmission.0 != flight.len() {
            // Here, since most links do not come here for most packets: without a length that is
            // remembered, those that vary always do.
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

    /// [`Cable::schedule`] where something varies. `planned` is what was planned of the packet
    /// before.
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

    /// Forgets those that no longer wait.
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
