//! How long packets wait for the transmitters of cables.
//!
//! A packet counts if it was given to the link in the window and the transmitter began with it in the window. What the queue's
//! discipline drops, and what waits at the end, does not.

use std::collections::BTreeMap;

use anabranch_core::time::Instant;

use super::{Figure, Measure, Series};
use crate::link::LinkDrop;
use crate::math::quantile;
use crate::network::ObserverId;
use crate::packet::{LinkId, NodeId, Packet};
use crate::trace::{Observer, Point};
use crate::world::World;

/// The queues of the cables that begin at some nodes.
#[derive(Debug)]
pub struct Queues {
    from: Vec<NodeId>,
    /// Where the cables end; `None` is anywhere.
    to: Option<Vec<NodeId>>,
    begun: Instant,
    clock: Option<ObserverId>,
}

impl Queues {
    /// Of the cables that begin and end at these nodes.
    pub fn between(from: Vec<NodeId>, to: Option<Vec<NodeId>>) -> Self {
        Self { from, to, begun: Instant::ZERO, clock: None }
    }

    fn waits(&self, world: &World) -> Vec<(Instant, f64)> {
        let clock = self.clock.and_then(|id| world.network.observer::<Clock>(id));
        let waits = clock.map(|clock| clock.waits.iter());
        // Links tell of a packet when it arrives, not when it begins.
        let mut waits: Vec<(Instant, f64)> = waits.into_iter().flatten().copied().collect();
        waits.sort_by_key(|(start, _)| *start);
        waits
    }
}

impl Measure for Queues {
    fn begin(&mut self, now: Instant, world: &mut World) {
        self.begun = now;
        let counts = |link: &crate::link::Link| {
            let ends_there = self.to.as_ref().is_none_or(|to| to.contains(&link.to()));
            !link.is_wireless() && self.from.contains(&link.from()) && ends_there
        };
        let network = &mut world.network;
        let counts = network.links().iter().map(counts).collect();
        let clock = Clock { counts, until: None, waiting: BTreeMap::new(), waits: Vec::new() };
        self.clock = Some(network.observe(Box::new(clock)));
    }

    fn end(&mut self, now: Instant, world: &mut World) {
        let clock = self.clock.and_then(|id| world.network.observer_mut::<Clock>(id));
        if let Some(clock) = clock {
            clock.until = Some(now);
        }
    }

    fn figures(&self, now: Instant, world: &World) -> Vec<Figure> {
        let mut waits: Vec<f64> = self.waits(world).into_iter().map(|(_, wait)| wait).collect();
        waits.sort_by(f64::total_cmp);
        let count = waits.len();
        let sum: f64 = waits.iter().sum();
        let window = now.saturating_since(self.begun).as_secs_f64();
        [
            ("packets", Some(count as f64), "1"),
            ("wait_mean_s", (count > 0).then(|| sum / count as f64), "s"),
            ("wait_p50_s", quantile(&waits, 0.5), "s"),
            ("wait_p95_s", quantile(&waits, 0.95), "s"),
            ("wait_p99_s", quantile(&waits, 0.99), "s"),
            ("wait_max_s", waits.last().copied(), "s"),
            // Little: the mean number of those that wait is their rate times their wait.
            ("queue_mean_packets", (window > 0.0).then(|| sum / window), "1"),
        ]
        .into_iter()
        .map(|(name, value, unit)| Figure { name: name.to_owned(), value, unit })
        .collect()
    }

    /// Of each packet, when the transmitter began with it, and how long it had waited.
    fn series(&self, world: &World) -> Vec<Series> {
        vec![Series { name: "wait", unit: "s", points: self.waits(world) }]
    }
}

/// A packet that a link has accepted.
#[derive(Debug)]
struct Waiting {
    since: Instant,
    /// When the transmitter begins with it, as things stand.
    start: Instant,
}

/// Watches from the beginning of the window until the end of the run.
#[derive(Debug)]
struct Clock {
    /// By link.
    counts: Vec<bool>,
    /// The end of the window, once it is over.
    until: Option<Instant>,
    waiting: BTreeMap<(u32, u64), Waiting>,
    /// When the transmitter began with each packet, and how long it had waited, in seconds.
    waits: Vec<(Instant, f64)>,
}

impl Observer for Clock {
    fn on_packet(&mut self, now: Instant, link: LinkId, point: Point, packet: &Packet) {
        if !self.counts[link.index()] {
            return;
        }
        let key = (link.0, packet.id);
        match point {
            Point::Sent if self.until.is_none() => {
                self.waiting.insert(key, Waiting { since: now, start: now });
            }
            Point::Sent => {}
            Point::Received | Point::Dropped(LinkDrop::Loss) => {
                let Some(Waiting { since, start }) = self.waiting.remove(&key) else { return };
                if self.until.is_none_or(|until| start < until) {
                    self.waits.push((start, start.saturating_since(since).as_secs_f64()));
                }
            }
            Point::Dropped(_) => {
                self.waiting.remove(&key);
            }
        }
    }

    fn on_departure(&mut self, _: Instant, link: LinkId, packet: u64, start: Instant) {
        if let Some(waiting) = self.waiting.get_mut(&(link.0, packet)) {
            waiting.start = start;
        }
    }
}
