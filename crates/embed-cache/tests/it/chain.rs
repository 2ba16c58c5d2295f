//! A chain of forwarders with losses, in simulated time: the received file is bit-exact, and the
//! sender repeats much less than without caches.

use std::collections::BTreeMap;

use anabranch_cache::api::Counters;
use anabranch_cache::cache::Cache;
use anabranch_cache::sizes::Sizes;
use anabranch_core::dtc::{Config, LinkEvent};
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::prng::Prng;
use anabranch_wire::ip;

use crate::ends::{End, addresses, file};

/// Time of one hop.
const HOP: Duration = Duration::from_millis(10);

/// Whether the forwarders cache, and what their link layer reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Nodes {
    Plain,
    Silent,
    Reporting,
}

enum Event {
    /// A packet arrives at a place: 0 and `hops` are the ends.
    Arrival(usize, Vec<u8>),
    /// The link layer of a forwarder reports.
    Report(usize, Vec<u8>, LinkEvent),
}

struct Chain {
    now: Instant,
    ends: [End; 2],
    nodes: Vec<Option<Cache>>,
    events: BTreeMap<(Instant, u64), Event>,
    number: u64,
    loss: u64,
    reports: bool,
    random: Prng,
    version: u8,
    octets: usize,
}

/// What a transfer has cost.
#[derive(Debug)]
struct Outcome {
    seconds: f64,
    /// Data segments that the sender sent again.
    repeated: u32,
    counters: Vec<Counters>,
}

impl Chain {
    fn new(version: u8, hops: usize, loss: u64, nodes: Nodes, octets: usize, seed: u64) -> Self {
        let [sender, receiver] = addresses(version);
        let cache = || Cache::new(&Sizes::default(), Config::improved());
        Self {
            now: Instant::ZERO,
            ends: [End::sender([sender, receiver], file(octets)), End::receiver([receiver, sender])],
            nodes: (1..hops).map(|_| (nodes != Nodes::Plain).then(cache)).collect(),
            events: BTreeMap::new(),
            number: 0,
            loss,
            reports: nodes == Nodes::Reporting,
            random: Prng::new(seed),
            version,
            octets,
        }
    }

    fn at(&mut self, time: Instant, event: Event) {
        self.number += 1;
        self.events.insert((time, self.number), event);
    }

    /// Sends a packet from a place to the next one on its way.
    fn send(&mut self, from: usize, packet: Vec<u8>) {
        let (header, _) = ip::parse(&packet).expect("a packet");
        let is_forth = header.dst == addresses(self.version)[1];
        let to = if is_forth { from + 1 } else { from - 1 };
        let lost = self.random.chance(self.loss);
        if (1..=self.nodes.len()).contains(&from) && self.reports {
            let event = if lost { LinkEvent::TimedOut } else { LinkEvent::Acknowledged };
            self.at(self.now + HOP * 2, Event::Report(from, packet.clone(), event));
        }
        if !lost {
            self.at(self.now + HOP, Event::Arrival(to, packet));
        }
    }

    /// Lets all places send what they have.
    fn settle(&mut self) {
        let hops = self.nodes.len() + 1;
        for (end, place) in [(0, 0), (1, hops)] {
            while let Some(packet) = self.ends[end].poll(self.now) {
                self.send(place, packet);
            }
        }
        for place in 1..hops {
            let mut buffer = [0; 300];
            while let Some(n) =
                self.nodes[place - 1].as_mut().and_then(|cache| cache.poll(self.now, &mut buffer))
            {
                self.send(place, buffer[..n].to_vec());
            }
        }
    }

    fn handle(&mut self, event: Event) {
        let hops = self.nodes.len() + 1;
        match event {
            Event::Arrival(0, packet) => self.ends[0].receive(self.now, &packet),
            Event::Arrival(place, packet) if place == hops => self.ends[1].receive(self.now, &packet),
            Event::Arrival(place, packet) => {
                if self.nodes[place - 1].as_mut().is_none_or(|cache| cache.packet(self.now, &packet)) {
                    self.send(place, packet);
                }
            }
            Event::Report(place, packet, event) => {
                if let Some(cache) = &mut self.nodes[place - 1] {
                    cache.link(self.now, &packet, event);
                }
            }
        }
    }

    /// Runs until all data is acknowledged.
    fn run(mut self) -> Outcome {
        let octets = self.octets;
        loop {
            self.settle();
            if self.ends[0].is_done() && self.ends[1].inbox.len() == octets {
                break;
            }
            let caches = self.nodes.iter().flatten().filter_map(Cache::next_timeout);
            let ends = self.ends.iter().filter_map(End::next_timeout);
            let event = self.events.keys().next().map(|(at, _)| *at);
            let next = caches.chain(ends).chain(event).min().expect("something is to come");
            assert!(next < Instant::ZERO + Duration::from_secs(36_000), "no end: {:?}", self.ends);
            self.now = self.now.max(next);
            while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let event = entry.remove();
                self.handle(event);
            }
            for cache in self.nodes.iter_mut().flatten() {
                if cache.next_timeout().is_some_and(|at| at <= self.now) {
                    cache.timeout(self.now);
                }
            }
            self.ends.iter_mut().for_each(|end| end.timeout(self.now));
        }
        assert_eq!(self.ends[1].inbox, file(octets));
        Outcome {
            seconds: self.now.as_secs_f64(),
            repeated: self.ends[0].repeated,
            counters: self.nodes.iter().flatten().map(Cache::counters).collect(),
        }
    }
}

#[test]
fn files_arrive_whole_and_caches_spare_the_sender() {
    for version in [4, 6] {
        let run = |nodes, seed| Chain::new(version, 4, 10, nodes, 20_000, seed).run();
        let sum = |nodes| {
            let outcomes: Vec<Outcome> = (0..10).map(|seed| run(nodes, seed)).collect();
            let seconds: f64 = outcomes.iter().map(|outcome| outcome.seconds).sum();
            let repeated: u32 = outcomes.iter().map(|outcome| outcome.repeated).sum();
            let unread: u32 = outcomes.iter().flat_map(|o| &o.counters).map(|counters| counters.unread).sum();
            assert_eq!(unread, 0);
            (seconds, repeated)
        };
        let [plain, silent, reporting] = [Nodes::Plain, Nodes::Silent, Nodes::Reporting].map(sum);
        println!("IPv{version}: without {plain:?}, without reports {silent:?}, with {reporting:?}");
        assert!(reporting.0 * 3.0 < plain.0 && reporting.1 * 4 < plain.1);
        assert!(silent.0 < plain.0 && silent.1 < plain.1);
    }
}

#[test]
fn without_losses_a_cache_changes_nothing() {
    let plain = Chain::new(6, 6, 0, Nodes::Plain, 20_000, 0).run();
    let cached = Chain::new(6, 6, 0, Nodes::Reporting, 20_000, 0).run();
    assert_eq!((plain.seconds, plain.repeated), (cached.seconds, cached.repeated));
    for counters in cached.counters {
        assert_eq!((counters.repeated, counters.held, counters.unread), (0, 0, 0));
        assert!(counters.cached > 10, "{counters:?}");
    }
}
