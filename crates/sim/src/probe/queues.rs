//! How long packets wait for the transmitters of cables.
//!
//! A packet's wait counts if the transmitter began with it in the window. The mean number of those
//! that wait is over time: what a queue's discipline drops, and what still waits at the end, has
//! its part in it.

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
    /// Where the cables end; `None` is anywhere.
    to: Option<Vec<NodeId>>,
    clock: Option<ObserverId>,
}

impl Queues {
    /// Of the cables that begin and end at these nodes.
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

    /// Of each packet, when the transmitter began with it, and how long it had waited.
    fn series(&self, world: &World) -> Vec<Series> {
        let clock = self.clock(world);
        let mut points: Vec<_> = clock.into_iter().flat_map(|clock| clock.waits(world.now())).collect();
        // Links tell of a packet when it arrives, not when it begins.
        points.sort_by_key(|(start, _)| *start);
        vec![Series { name: "wait", unit: "s", points }]
    }
}

/// Watches all of the run: what waits when the window begins has come before.
#[derive(Debug)]
struct Clock {
    /// The window, as far as it is known.
    from: Option<Instant>,
    until: Option<Instant>,
    /// By link; `None` for those that do not count.
    lines: Vec<Option<Line>>,
    /// Those of packets that have left the link.
    waits: Vec<(Instant, f64)>,
    /// Time that packets have waited in the window, together.
    waited: Duration,
}

impl Clock {
    /// When the transmitter began with each packet in a window that has lasted until `now`, and how
    /// long it had waited, in seconds.
    fn waits(&self, now: Instant) -> impl Iterator<Item = (Instant, f64)> {
        let on_their_way = self.lines.iter().flatten().flat_map(Line::packets);
        let on_their_way =
            on_their_way.filter(move |waiting| waiting.start < now && self.counts_at(waiting.start));
        self.waits.iter().copied().chain(on_their_way.map(|waiting| wait(waiting.since, waiting.start)))
    }

    /// That moment is in the window.
    fn counts_at(&self, moment: Instant) -> bool {
        self.from.is_some_and(|from| from <= moment) && self.until.is_none_or(|until| moment < until)
    }

    /// How much of a wait that ends at `end` is in the window.
    fn within(&self, since: Instant, end: Instant) -> Duration {
        let Some(from) = self.from else { return Duration::ZERO };
        let until = self.until.unwrap_or(Instant::FAR_FUTURE);
        end.min(until).saturating_since(since.max(from))
    }

    /// Mean number of packets that wait in a window that has lasted until `now`.
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

/// When the transmitter begins with a packet, and how long it has waited then, in seconds.
fn wait(since: Instant, start: Instant) -> (Instant, f64) {
    (start, start.saturating_since(since).as_secs_f64())
}
