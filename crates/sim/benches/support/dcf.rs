//! An IEEE 802.11 radio without a network around it, for its tests, benchmarks, example and
//! pictures.

#![allow(dead_code, unreachable_pub, reason = "each user uses its part")]

use std::collections::VecDeque;

use anabranch_core::time::{Duration, Instant};
use anabranch_sim::event::{Agenda, Event};
use anabranch_sim::random::Stream;
use anabranch_sim::wifi::{Effect, Outgoing, Position, SendError, Station, Wifi, WifiConfig};

/// A radio with its events.
#[derive(Debug)]
pub struct Dcf {
    /// The radio.
    pub wifi: Wifi,
    /// Its events. [`Event::Fault`] is a timer of the driver.
    pub agenda: Agenda,
    /// The time of the last event.
    pub now: Instant,
}

/// An event for the driver.
#[derive(Clone, Copy, Debug)]
pub enum Happening {
    /// An effect of the radio.
    Effect(Effect),
    /// A timer of the driver.
    Timer(u32),
}

impl Dcf {
    /// Stations at these positions, with the random streams of a seed.
    pub fn new(config: WifiConfig, places: &[(f64, f64)], seed: u64) -> Self {
        let positions: Vec<_> = places.iter().map(|&(x, y)| Position::new(x, y)).collect();
        let stream =
            |station: Station, purpose: &str| Stream::new(seed, 0, &format!("wifi {}", station.0), purpose);
        let wifi = Wifi::new(config, &positions, stream).expect("the configuration is sound");
        Self { wifi, agenda: Agenda::default(), now: Instant::ZERO }
    }

    /// Sends a frame to a station or to all.
    pub fn send(&mut self, from: u32, to: Option<u32>, mpdu_len: u16, tag: u64) -> Result<(), SendError> {
        let frame = Outgoing { to: to.map(Station), mpdu_len, tag };
        self.wifi.send(self.now, Station(from), frame, &mut self.agenda)
    }

    /// Takes a station down or up.
    pub fn set_up(&mut self, station: u32, up: bool) {
        self.wifi.set_up(self.now, Station(station), up, &mut self.agenda);
    }

    /// Sets a timer, which expires as [`Happening::Timer`].
    pub fn timer(&mut self, after: Duration, number: u32) {
        self.agenda.push(self.now + after, Event::Fault(number));
    }

    /// Runs all events up to and including `stop`; `answer` is called for every effect and every
    /// timer.
    pub fn run(&mut self, stop: Instant, mut answer: impl FnMut(&mut Self, Happening)) {
        while let Some((now, event)) = self.agenda.pop_until(stop) {
            self.now = now;
            match event {
                Event::Medium { station, what, generation, .. } => {
                    self.wifi.handle_event(now, station, what, generation, &mut self.agenda);
                }
                Event::Fault(number) => answer(self, Happening::Timer(number)),
                other => panic!("{other:?} is nothing that a radio schedules"),
            }
            while let Some(effect) = self.wifi.poll_effect() {
                answer(self, Happening::Effect(effect));
            }
        }
        if stop < Instant::FAR_FUTURE {
            self.now = stop;
        }
    }

    /// Gives frames to stations at these times in microseconds, and runs to the end. The tag of a
    /// frame is its index in the list.
    pub fn script(&mut self, frames: &[(u64, u32, Option<u32>, u16)]) -> Vec<Effect> {
        for (i, &(at, ..)) in frames.iter().enumerate() {
            self.timer(Duration::from_micros(at), i as u32);
        }
        let mut effects = Vec::new();
        self.run(Instant::FAR_FUTURE, |this, happening| match happening {
            Happening::Timer(i) => {
                let (_, from, to, len) = frames[i as usize];
                this.send(from, to, len, u64::from(i)).expect("the station is idle");
            }
            Happening::Effect(effect) => effects.push(effect),
        });
        effects
    }

    /// Makes these stations send to `to` continuously until `stop`.
    pub fn saturate(&mut self, senders: &[u32], to: u32, mpdu_len: u16, stop: Instant) {
        for &station in senders {
            self.send(station, Some(to), mpdu_len, 0).expect("an idle station sends");
        }
        self.run(stop, |this, happening| {
            if let Happening::Effect(Effect::Done { station, tag, .. }) = happening {
                this.send(station.0, Some(to), mpdu_len, tag + 1).expect("its last frame is done");
            }
        });
    }

    /// Station 0 sends to the last station continuously until `stop`, over all stations in between,
    /// each of which has a queue of 50 frames. Returns the number of frames that have arrived.
    pub fn relay(&mut self, mpdu_len: u16, stop: Instant) -> u64 {
        let last = self.wifi.station_count() as u32 - 1;
        let mut queues: Vec<VecDeque<u64>> = (0..=last).map(|_| VecDeque::with_capacity(50)).collect();
        let mut next = 0;
        let mut arrived = 0;
        self.send(0, Some(1), mpdu_len, next).expect("an idle station sends");
        self.run(stop, |this, happening| {
            let station = match happening {
                Happening::Effect(Effect::Received { at, .. }) if at.0 == last => {
                    arrived += 1;
                    return;
                }
                Happening::Effect(Effect::Received { at, tag, .. }) => {
                    let queue = &mut queues[at.0 as usize];
                    if queue.len() < 50 {
                        queue.push_back(tag);
                    }
                    at
                }
                Happening::Effect(Effect::Done { station, .. }) => station,
                _ => return,
            };
            if station.0 == 0 {
                next += 1;
                queues[0].push_back(next);
            }
            if this.wifi.is_idle(station)
                && let Some(tag) = queues[station.0 as usize].pop_front()
            {
                this.send(station.0, Some(station.0 + 1), mpdu_len, tag).expect("an idle station sends");
            }
        });
        arrived
    }

    /// Number of transmissions so far.
    pub fn transmissions(&self) -> u64 {
        let all = (0..self.wifi.station_count() as u32).map(|s| self.wifi.metrics(Station(s)));
        all.map(|m| m.transmissions + m.rts + m.cts + m.acks).sum()
    }
}

/// Frames that a station gets at independent random times. Frames wait while another is being sent.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// Sending station; each station has at most one flow.
    pub from: u32,
    /// Destination; `None` for a broadcast.
    pub to: Option<u32>,
    /// Length of each frame in bytes.
    pub mpdu_len: u16,
    /// Frames per second on average.
    pub rate: f64,
}

/// Flows in progress.
#[derive(Debug)]
pub struct Traffic {
    flows: Vec<Flow>,
    gaps: Vec<Stream>,
    /// Frames that wait, by flow.
    waiting: Vec<u64>,
    /// The flow from each station.
    flow_of: Vec<usize>,
}

impl Traffic {
    /// Starts these flows now.
    pub fn new(dcf: &mut Dcf, flows: &[Flow], seed: u64) -> Self {
        let gaps = flows.iter().map(|f| Stream::new(seed, 0, &format!("flow {}", f.from), "gaps")).collect();
        let mut flow_of = vec![usize::MAX; dcf.wifi.station_count()];
        for (i, flow) in flows.iter().enumerate() {
            flow_of[flow.from as usize] = i;
        }
        let mut this = Self { flows: flows.to_vec(), gaps, waiting: vec![0; flows.len()], flow_of };
        (0..flows.len()).for_each(|i| this.set_timer(dcf, i));
        this
    }

    fn set_timer(&mut self, dcf: &mut Dcf, i: usize) {
        let gap = self.gaps[i].exponential() / self.flows[i].rate;
        dcf.timer(Duration::from_secs_f64(gap), i as u32);
    }

    /// Runs until `stop`; `watch` is called for every effect.
    pub fn run(&mut self, dcf: &mut Dcf, stop: Instant, mut watch: impl FnMut(&Effect)) {
        dcf.run(stop, |dcf, happening| {
            let i = match happening {
                Happening::Timer(i) => {
                    self.waiting[i as usize] += 1;
                    self.set_timer(dcf, i as usize);
                    i as usize
                }
                Happening::Effect(effect) => {
                    watch(&effect);
                    let Effect::Done { station, .. } = effect else { return };
                    self.flow_of[station.0 as usize]
                }
            };
            let Flow { from, to, mpdu_len, .. } = self.flows[i];
            if self.waiting[i] > 0 && dcf.wifi.is_idle(Station(from)) && dcf.wifi.is_up(Station(from)) {
                self.waiting[i] -= 1;
                dcf.send(from, to, mpdu_len, 0).expect("an idle station sends");
            }
        });
    }
}

/// One station at the origin, and the others on a circle around it.
pub fn star(n: usize, radius: f64) -> Vec<(f64, f64)> {
    let angle = |i: usize| i as f64 * std::f64::consts::TAU / n as f64;
    let point = |i: usize| (radius * angle(i).cos(), radius * angle(i).sin());
    std::iter::once((0.0, 0.0)).chain((0..n).map(point)).collect()
}

/// Stations in a row, one more than there are hops.
pub fn row(hops: usize, spacing: f64) -> Vec<(f64, f64)> {
    (0..=hops).map(|i| (spacing * i as f64, 0.0)).collect()
}

/// Time at this distance from the start.
pub fn after(span: Duration) -> Instant {
    Instant::ZERO + span
}

/// Stations at random positions in a rectangle, in metres.
pub fn scattered(n: usize, width: f64, height: f64, seed: u64) -> Vec<(f64, f64)> {
    let mut stream = Stream::new(seed, 0, "scattered", "positions");
    (0..n).map(|_| (width * stream.uniform(), height * stream.uniform())).collect()
}
