//! Waiting times in the queues of cables.
//!
//! The wait of a packet counts if its transmission began within the window. The mean queue length
//! is an average over time; it includes packets that a discipline drops and packets that still wait
//! at the end.

use anabranch_core::time::{Duration, Instant};

use super::{Figure, Measure, Series};
use crate::link::Link;
use crate::math::quantile;
use crate::network::ObserverId;
use crate::packet::{LinkId, NodeId, Packet};
use crate::trace::line::{Line, Waiting};
use crate::trace::{Observer, Point};
use crate::world::World;

/// The queues of the cables that begin at some nodes.
#[derive(Debug)]
pub struct Queues {
    from: Vec<NodeId>,
    /// Nodes at which the cables end; `None` for all.
    to: Option<Vec<NodeId>>,
    clock: Option<ObserverId>,
}

impl Queues {
    /// Measures the cables that begin and end at these nodes.
    pub fn between(from: Vec<NodeId>, to: Option<Vec<NodeId>>) -> Self {
        Self { from, to, clock: None }
    }

    fn clock<'w>(&self, world: &'w World) -> Option<&'w Clock> {
        world.network.observer(self.clock?)
    }

    fn clock_mut<'w>(&self, world: &'w mut World) -> Option<&'w mut Clock> {
        world.network.observer_mut(self.clock?)
    }
}

impl Measure for Queues {
    fn prepare(&mut self, world: &mut World) {
        let counts = |link: &Link| {
            let ends_there = self.to.as_ref().is_none_or(|to| to.contains(&link.to()));
            !link.is_wireless() && self.from.contains(&link.from()) && ends_there
        };
        let network = &mut world.network;
        let lines = network.links().iter().map(|link| counts(link).then(Line::default)).collect();
        let clock = Clock { from: None, until: None, lines, waits: Vec::new(), waited: Duration::ZERO };
        self.clock = Some(network.observe(Box::new(clock)));
    }

    fn begin(&mut self, now: Instant, world: &mut World) {
        if let Some(clock) = self.clock_mut(world) {
            clock.from = Some(now);
        }
    }

    fn end(&mut self, now: Instant, world: &mut World) {
        if let Some(clock) = self.clock_mut(world) {
            clock.until = Some(now);
        }
    }

    fn figures(&self, now: Instant, world: &World) -> Vec<Figure> {
        let clock = self.clock(world);
        let waits = clock.into_iter().flat_map(|clock| clock.waits(now));
        let mut waits: Vec<f64> = waits.map(|(_, wait)| wait).collect();
        waits.sort_by(f64::total_cmp);
        let count = waits.len();
        let sum: f64 = waits.iter().sum();
        [
            ("packets", Some(count as f64), "1"),
            ("wait_mean_s", (count > 0).then(|| sum / count as f64), "s"),
            ("wait_p50_s", quantile(&waits, 0.5), "s"),
            ("wait_p95_s", quantile(&waits, 0.95), "s"),
            ("wait_p99_s", quantile(&waits, 0.99), "s"),
            ("wait_max_s", waits.last().copied(), "s"),
            ("queue_mean_packets", clock.and_then(|clock| clock.mean(now)), "1"),
        ]
        .into_iter()
        .map(|(name, value, unit)| Figure { name: name.to_owned(), value, unit })
        .collect()
    }

    /// For each packet: the start of its transmission, and its waiting time.
    fn series(&self, world: &World) -> Vec<Series> {
        let clock = self.clock(world);
        let mut points: Vec<_> = clock.into_iter().flat_map(|clock| clock.waits(world.now())).collect();
        // Links report a packet when it arrives, not when its transmission begins.
        points.sort_by_key(|(start, _)| *start);
        vec![Series { name: "wait", unit: "s", points }]
    }
}

/// The observer of the whole run: packets that wait when the window begins have arrived before.
#[derive(Debug)]
struct Clock {
    /// The window, as far as it is known.
    from: Option<Instant>,
    until: Option<Instant>,
    /// By link; `None` for links that are not measured.
    lines: Vec<Option<Line>>,
    /// Waits of packets that have left the link.
    waits: Vec<(Instant, f64)>,
    /// Sum of the waiting times within the window.
    waited: Duration,
}

impl Clock {
    /// Start of transmission and waiting time in seconds of each packet, in a window that has
    /// lasted until `now`.
    fn waits(&self, now: Instant) -> impl Iterator<Item = (Instant, f64)> {
        let on_their_way = self.lines.iter().flatten().flat_map(Line::packets);
        let on_their_way =
            on_their_way.filter(move |waiting| waiting.start < now && self.counts_at(waiting.start));
        self.waits.iter().copied().chain(on_their_way.map(|waiting| wait(waiting.since, waiting.start)))
    }

    /// Whether a time is in the window.
    fn counts_at(&self, moment: Instant) -> bool {
        self.from.is_some_and(|from| from <= moment) && self.until.is_none_or(|until| moment < until)
    }

    /// The part of a wait until `end` that is in the window.
    fn within(&self, since: Instant, end: Instant) -> Duration {
        let Some(from) = self.from else { return Duration::ZERO };
        let until = self.until.unwrap_or(Instant::FAR_FUTURE);
        end.min(until).saturating_since(since.max(from))
    }

    /// Mean number of waiting packets in a window that has lasted until `now`.
    fn mean(&self, now: Instant) -> Option<f64> {
        let window = now.saturating_since(self.from?).as_secs_f64();
        let still = self.lines.iter().flatten().flat_map(Line::packets);
        let still = still.map(|Waiting { since, start, .. }| self.within(*since, now.min(*start)));
        let waited = still.fold(self.waited, |sum, wait| sum + wait).as_secs_f64();
        (window > 0.0).then(|| waited / window)
    }
}

impl Observer for Clock {
    fn on_packet(&mut self, now: Instant, link: LinkId, point: Point, packet: &Packet) {
        let gone = self.lines[link.index()].as_mut().and_then(|line| line.watch(now, point, packet));
        let Some(Waiting { since, start, .. }) = gone else { return };
        self.waited += self.within(since, start.min(now));
        if start <= now && self.counts_at(start) {
            self.waits.push(wait(since, start));
        }
    }

    fn on_departure(&mut self, now: Instant, link: LinkId, packet: u64, start: Instant) {
        if let Some(line) = &mut self.lines[link.index()] {
            line.expect(now, packet, start);
        }
    }
}

/// Start of a packet's transmission, and its waiting time in seconds.
fn wait(since: Instant, start: Instant) -> (Instant, f64) {
    (start, start.saturating_since(since).as_secs_f64())
}
