//! A radio without a network around it, for tests, benchmarks and the example of the radio.

#![allow(dead_code, unreachable_pub, reason = "each user uses its part")]

use anabranch_core::time::{Duration, Instant};
use anabranch_sim::event::{Agenda, Event};
use anabranch_sim::radio::{Effect, Outgoing, Position, Radio, RadioConfig, SendError, Station};
use anabranch_sim::random::Stream;

/// A radio with its events and effects.
#[derive(Debug)]
pub struct Air {
    /// The radio.
    pub radio: Radio,
    /// Its events. [`Event::Fault`] is a timer of the driver.
    pub agenda: Agenda,
    /// The time of the last event.
    pub now: Instant,
    /// Effects that have not been handled.
    pub effects: Vec<Effect>,
}

impl Air {
    /// Stations at these positions, with the random streams of a seed.
    pub fn new(config: RadioConfig, places: &[(f64, f64)], seed: u64) -> Self {
        let positions: Vec<_> = places.iter().map(|&(x, y)| Position::new(x, y)).collect();
        let stream =
            |station: Station, purpose: &str| Stream::new(seed, 0, &format!("radio {}", station.0), purpose);
        let radio = Radio::new(config, &positions, stream).expect("the configuration is sound");
        Self { radio, agenda: Agenda::default(), now: Instant::ZERO, effects: Vec::new() }
    }

    /// As [`Air::new`], with stations that have their own macCslPeriod; all that sleep are asleep.
    pub fn sampling(
        config: RadioConfig,
        places: &[(f64, f64)],
        periods: &[(u32, Duration)],
        seed: u64,
    ) -> Self {
        let mut this = Self::new(config, places, seed);
        for &(station, period) in periods {
            this.radio.set_csl_period(Station(station), period).expect("the period is sound");
        }
        this.radio.start(&mut this.agenda);
        this
    }

    /// Sends a frame to a station.
    pub fn send(&mut self, from: u32, to: u32, psdu_len: u16, tag: u64) -> Result<(), SendError> {
        self.offer(from, Some(to), psdu_len, tag)
    }

    /// Sends a frame to a station or to all.
    pub fn offer(&mut self, from: u32, to: Option<u32>, psdu_len: u16, tag: u64) -> Result<(), SendError> {
        let frame = Outgoing { to: to.map(Station), psdu_len, tag, pending: false };
        self.radio.send(self.now, Station(from), frame, &mut self.agenda)
    }

    /// Sends a frame to a station with the frame pending bit.
    pub fn send_with_more(&mut self, from: u32, to: u32, psdu_len: u16, tag: u64) -> Result<(), SendError> {
        let frame = Outgoing { to: Some(Station(to)), psdu_len, tag, pending: true };
        self.radio.send(self.now, Station(from), frame, &mut self.agenda)
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
                    self.radio.handle_event(now, station, what, generation, &mut self.agenda);
                }
                Event::Fault(number) => answer(self, Happening::Timer(number)),
                other => panic!("{other:?} is nothing that a radio schedules"),
            }
            while let Some(effect) = self.radio.poll_effect() {
                answer(self, Happening::Effect(effect));
            }
        }
        if stop < Instant::FAR_FUTURE {
            self.now = stop;
        }
    }

    /// Runs until nothing is pending, and returns all effects.
    pub fn finish(&mut self) -> Vec<Effect> {
        self.run(Instant::FAR_FUTURE, |this, happening| {
            if let Happening::Effect(effect) = happening {
                this.effects.push(effect);
            }
        });
        std::mem::take(&mut self.effects)
    }

    /// Makes these stations send to `to` continuously until `stop`.
    pub fn saturate(&mut self, senders: &[u32], to: u32, psdu_len: u16, stop: Instant) {
        for &station in senders {
            self.send(station, to, psdu_len, 0).expect("an idle station sends");
        }
        self.run(stop, |this, happening| {
            if let Happening::Effect(Effect::Done { station, tag, .. }) = happening {
                this.send(station.0, to, psdu_len, tag + 1).expect("its last frame is done");
            }
        });
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
    pub psdu_len: u16,
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
    pub fn new(air: &mut Air, flows: &[Flow], seed: u64) -> Self {
        let gaps = flows.iter().map(|f| Stream::new(seed, 0, &format!("flow {}", f.from), "gaps")).collect();
        let mut flow_of = vec![usize::MAX; air.radio.station_count()];
        for (i, flow) in flows.iter().enumerate() {
            flow_of[flow.from as usize] = i;
        }
        let mut this = Self { flows: flows.to_vec(), gaps, waiting: vec![0; flows.len()], flow_of };
        (0..flows.len()).for_each(|i| this.set_timer(air, i));
        this
    }

    fn set_timer(&mut self, air: &mut Air, i: usize) {
        let gap = self.gaps[i].exponential() / self.flows[i].rate;
        air.timer(Duration::from_secs_f64(gap), i as u32);
    }

    /// Runs until `stop`; `watch` is called for every effect.
    pub fn run(&mut self, air: &mut Air, stop: Instant, mut watch: impl FnMut(&Effect)) {
        air.run(stop, |air, happening| {
            let i = match happening {
                Happening::Timer(i) => {
                    self.waiting[i as usize] += 1;
                    self.set_timer(air, i as usize);
                    i as usize
                }
                Happening::Effect(effect) => {
                    watch(&effect);
                    let Effect::Done { station, .. } = effect else { return };
                    self.flow_of[station.0 as usize]
                }
            };
            let Flow { from, to, psdu_len, .. } = self.flows[i];
            if self.waiting[i] > 0 && air.radio.is_idle(Station(from)) {
                self.waiting[i] -= 1;
                air.offer(from, to, psdu_len, 0).expect("an idle station sends");
            }
        });
    }
}

impl Air {
    /// Runs these flows from now until `stop`; `watch` is called for every effect.
    pub fn poisson(&mut self, flows: &[Flow], seed: u64, stop: Instant, watch: impl FnMut(&Effect)) {
        Traffic::new(self, flows, seed).run(self, stop, watch);
    }

    /// Number of transmissions so far, including acknowledgements.
    pub fn transmissions(&self) -> u64 {
        let all = (0..self.radio.station_count() as u32).map(|s| self.radio.metrics(Station(s)));
        all.map(|m| m.transmissions + m.acks).sum()
    }
}

/// One station at the origin, and the others on a circle around it.
pub fn star(n: usize, radius: f64) -> Vec<(f64, f64)> {
    let angle = |i: usize| i as f64 * std::f64::consts::TAU / n as f64;
    let point = |i: usize| (radius * angle(i).cos(), radius * angle(i).sin());
    std::iter::once((0.0, 0.0)).chain((0..n).map(point)).collect()
}

/// An event for the driver.
#[derive(Clone, Copy, Debug)]
pub enum Happening {
    /// An effect of the radio.
    Effect(Effect),
    /// A timer of the driver.
    Timer(u32),
}

/// Time at this distance from the start.
pub fn after(span: Duration) -> Instant {
    Instant::ZERO + span
}

/// Stations at random positions in a square with this side in metres.
pub fn scattered(n: usize, width: f64, seed: u64) -> Vec<(f64, f64)> {
    let mut stream = Stream::new(seed, 0, "scattered", "positions");
    (0..n).map(|_| (width * stream.uniform(), width * stream.uniform())).collect()
}
