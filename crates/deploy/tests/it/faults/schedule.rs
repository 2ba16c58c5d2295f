//! What goes wrong in one run, and when: drawn from (seed, run).

use std::fmt;
use std::time::Duration;

use anabranch_testkit::prng::Prng;

/// One network, one file, and what goes wrong.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    pub(crate) run: u64,
    pub(crate) family: Family,
    /// Octets of the file.
    pub(crate) octets: u64,
    /// Of each gateway, kbit/s.
    pub(crate) rates: Vec<u64>,
    /// The node's disk is too small at first, with so many octets.
    pub(crate) disk: Option<u64>,
    /// In the order of time.
    pub(crate) events: Vec<(Duration, Event)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Family {
    V4,
    V6,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Link {
    /// From the sender to a gateway.
    Wire(usize),
    /// From the sender to the node, for the request.
    Direct,
    /// From all gateways to the node.
    Air,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Near,
    Far,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Who {
    Gateway(usize),
    Node,
    Push,
}

/// To do something that is done already is nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// SIGKILL. The push is repeated by itself.
    Kill(Who),
    /// It is started again, where it was.
    Start(Who),
    /// SIGINT.
    Interrupt,
    Cut(Link, End),
    Mend(Link),
    /// SIGSTOP.
    Freeze(Who),
    /// SIGCONT.
    Thaw(Who),
    /// The node's disk gets room.
    Enlarge,
    /// It is killed, and started again at another address.
    Move(Who),
}

impl Schedule {
    pub(crate) fn draw(seed: u64, run: u64) -> Self {
        let mut random = Prng::of_run(seed, run);
        let family = if random.chance(50) { Family::V4 } else { Family::V6 };
        let octets = random.range(200_000..=8_000_000);
        let gateways = random.range(1..=4);
        // All of them together need from 1.5 to 5 s for the file.
        let total = octets * 8 / random.range(1_500..=5_000);
        let parts: Vec<u64> = (0..gateways).map(|_| random.range(1..=4)).collect();
        let sum: u64 = parts.iter().sum();
        let rates: Vec<u64> = parts.iter().map(|part| (total * part / sum).max(100)).collect();
        let mut drawing = Drawing { random, gateways: gateways as usize, events: Vec::new(), disk: None };
        for _ in 0..drawing.random.range(1..=8) {
            drawing.fault(octets);
        }
        let Drawing { disk, events, .. } = drawing.finish();
        Self { run, family, octets, rates, disk, events }
    }

    /// When the last thing happens that was drawn.
    pub(crate) fn end(&self) -> Duration {
        self.events.last().map_or(Duration::ZERO, |(at, _)| *at)
    }
}

struct Drawing {
    random: Prng,
    gateways: usize,
    events: Vec<(Duration, Event)>,
    disk: Option<u64>,
}

impl Drawing {
    fn ms(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(self.random.range(from..=to))
    }

    fn gateway(&mut self) -> usize {
        self.random.range(0..=self.gateways as u64 - 1) as usize
    }

    /// One fault, and its end if it has one.
    fn fault(&mut self, octets: u64) {
        let at = self.ms(0, 5_000);
        match self.random.range(0..=9) {
            0 | 1 => {
                let who = Who::Gateway(self.gateway());
                self.events.push((at, Event::Kill(who)));
                if self.random.chance(60) {
                    let pause = self.ms(0, 4_000);
                    self.events.push((at + pause, Event::Start(who)));
                }
            }
            2 => {
                let pause = self.ms(0, 3_000);
                self.events.extend([(at, Event::Kill(Who::Node)), (at + pause, Event::Start(Who::Node))]);
            }
            3 => self.events.push((at, Event::Kill(Who::Push))),
            4 => self.events.push((at, Event::Interrupt)),
            5 | 6 => {
                let link = match self.random.range(0..=3) {
                    0 => Link::Direct,
                    1 => Link::Air,
                    _ => Link::Wire(self.gateway()),
                };
                let end = if self.random.chance(50) { End::Near } else { End::Far };
                let pause = self.ms(100, 5_000);
                self.events.extend([(at, Event::Cut(link, end)), (at + pause, Event::Mend(link))]);
            }
            7 => {
                let who = match self.random.range(0..=2) {
                    0 => Who::Node,
                    1 => Who::Push,
                    _ => Who::Gateway(self.gateway()),
                };
                let pause = self.ms(100, 3_000);
                self.events.extend([(at, Event::Freeze(who)), (at + pause, Event::Thaw(who))]);
            }
            8 => {
                self.disk = Some((octets * self.random.range(10..=90) / 100).max(64 << 10));
                let until = self.ms(1_000, 6_000);
                self.events.push((until, Event::Enlarge));
            }
            _ => {
                let who = match self.random.chance(50) {
                    true => Who::Node,
                    false => Who::Gateway(self.gateway()),
                };
                self.events.push((at, Event::Move(who)));
            }
        }
    }

    /// In order, and so that some gateway lives in the end.
    fn finish(mut self) -> Self {
        self.events.sort_by_key(|(at, _)| *at);
        let lives = |i: &usize| {
            let last = self.events.iter().rev().find_map(|(_, event)| match event {
                Event::Kill(who) if *who == Who::Gateway(*i) => Some(false),
                Event::Start(who) | Event::Move(who) if *who == Who::Gateway(*i) => Some(true),
                _ => None,
            });
            last.unwrap_or(true)
        };
        if !(0..self.gateways).any(|i| lives(&i)) {
            let last = self.events.last().map_or(Duration::ZERO, |(at, _)| *at);
            let who = Who::Gateway(self.gateway());
            let pause = self.ms(0, 3_000);
            self.events.push((last + pause, Event::Start(who)));
        }
        self
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { run, family, octets, rates, disk, events } = self;
        write!(f, "run {run}: {octets} octets, IP{family:?}, {rates:?} kbit/s")?;
        if let Some(disk) = disk {
            write!(f, ", a disk of {disk} octets")?;
        }
        events.iter().try_for_each(|(at, event)| write!(f, ", {event:?} at {:.2}", at.as_secs_f64()))
    }
}
