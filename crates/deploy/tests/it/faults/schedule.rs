//! Faults of one run and their times, drawn from (seed, run).

use std::fmt;
use std::time::Duration;

use anabranch_testkit::prng::Prng;

use crate::faults::flips::Flip;

/// A network, one or two files, and the faults.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    pub(crate) run: u64,
    pub(crate) kind: Kind,
    /// Whether transfers are encrypted.
    pub(crate) secure: bool,
    pub(crate) family: Family,
    /// Length of the file in bytes.
    pub(crate) octets: u64,
    /// Length of the second file in bytes, if there is one.
    pub(crate) other: Option<u64>,
    /// Rate of each gateway in kbit/s.
    pub(crate) rates: Vec<u64>,
    /// Initial size of the node's disk in bytes, if it is too small at first.
    pub(crate) disk: Option<u64>,
    /// Faults in order of time.
    pub(crate) events: Vec<(Duration, Event)>,
    /// Bits that flip in front of the node, and of each gateway.
    pub(crate) flips: Vec<Vec<Flip>>,
}

/// Kind of run, and its requirement.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    /// 1 to 8 faults of any kind. The push is repeated until it has delivered.
    Mixed,
    /// A gateway fails for some seconds. One push delivers, and the gateway gets its share again.
    Return,
    /// All gateways are restarted one after another. One push delivers.
    Rolling,
    /// The node fails for up to a minute. One push with `--retry-for` delivers.
    Absent,
    /// The disk is too small for the first file, which is refused before it is sent, but not for
    /// the second.
    SmallDisk,
    /// Bits flip on the way. The push is repeated until it has delivered.
    Flips,
    /// A push is killed, and another file is delivered.
    OtherFile,
    /// Like `OtherFile`, with a C node.
    OtherFileToC,
    /// No gateway reaches the node, which answers the sender. One push reports that; once a gateway
    /// reaches the node, the file is delivered. Not in [`KINDS`].
    Unreached,
}

/// Kinds that runs use in turn.
pub(crate) const KINDS: [Kind; 8] = [
    Kind::Mixed,
    Kind::Return,
    Kind::Rolling,
    Kind::Absent,
    Kind::SmallDisk,
    Kind::Flips,
    Kind::OtherFile,
    Kind::OtherFileToC,
];

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

/// A fault or its end. An event that has already happened has no effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// SIGKILL. A killed push is repeated.
    Kill(Who),
    /// Starts the program again at the same address.
    Start(Who),
    /// SIGINT.
    Interrupt,
    Cut(Link, End),
    Mend(Link),
    /// SIGSTOP.
    Freeze(Who),
    /// SIGCONT.
    Thaw(Who),
    /// Enlarges the node's disk.
    Enlarge,
    /// Kills the program and starts it again at another address.
    Move(Who),
}

impl Schedule {
    pub(crate) fn draw(seed: u64, run: u64) -> Self {
        let kind = KINDS[(run % KINDS.len() as u64) as usize];
        let mut random = Prng::of_run(seed, run);
        let family = match kind == Kind::OtherFileToC || random.chance(50) {
            true => Family::V4,
            false => Family::V6,
        };
        let secure = kind < Kind::Flips || random.chance(50);
        let gateways = match kind {
            Kind::Return | Kind::Rolling => random.range(2..=4),
            // The C program has space for three gateway addresses.
            Kind::OtherFileToC => random.range(1..=3),
            _ => random.range(1..=4),
        };
        let octets = random.range(200_000..=8_000_000);
        let mut drawing = Drawing { random, gateways: gateways as usize, events: Vec::new(), disk: None };
        let other = drawing.of_kind(kind, octets);
        let flips = drawing.flips(kind, octets);
        // All gateways together need 1.5 to 5 s for the file, or somewhat longer than the events
        // take.
        let end = drawing.events.iter().map(|(at, _)| at.as_millis() as u64).max().unwrap_or(0);
        let time = match kind {
            Kind::Return | Kind::Rolling => end + 13_000,
            Kind::OtherFile | Kind::OtherFileToC => end + 2_000,
            Kind::Absent => 5_000,
            _ => drawing.random.range(1_500..=5_000),
        };
        let total = octets * 8 / time;
        let parts: Vec<u64> = (0..gateways).map(|_| drawing.random.range(1..=4)).collect();
        let sum: u64 = parts.iter().sum();
        let rates: Vec<u64> = parts.iter().map(|part| (total * part / sum).max(100)).collect();
        let Drawing { disk, events, .. } = drawing.finish();
        Self { run, kind, secure, family, octets, other, rates, disk, events, flips }
    }

    /// Time of the last event.
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

    /// Draws the events of a run of this kind, and the length of a second file.
    fn of_kind(&mut self, kind: Kind, octets: u64) -> Option<u64> {
        match kind {
            Kind::Mixed => (0..self.random.range(1..=8)).for_each(|_| self.fault(octets)),
            Kind::Return => self.away(),
            Kind::Rolling => self.rolling(),
            Kind::Absent => self.absent(),
            Kind::SmallDisk => {
                // The disk has space for the node's reserve of 1 MiB, 128 KiB of journals, and the
                // second file.
                let room = self.random.range(octets / 10..=octets * 9 / 10);
                self.disk = Some(room + (1 << 20) + (1 << 17));
                return Some(self.random.range(0..=room / 2));
            }
            Kind::Flips | Kind::Unreached => {}
            Kind::OtherFile | Kind::OtherFileToC => {
                let at = self.ms(0, 3_000);
                self.events.push((at, Event::Kill(Who::Push)));
                if self.random.chance(30) && kind == Kind::OtherFile {
                    let pause = self.ms(0, 2_000);
                    self.events.extend([(at, Event::Kill(Who::Node)), (at + pause, Event::Start(Who::Node))]);
                }
                return Some(self.random.range(0..=octets));
            }
        }
        None
    }

    /// A gateway is killed and restarted, or cut off and reconnected.
    fn away(&mut self) {
        let (at, pause) = (self.ms(1_000, 4_000), self.ms(1_000, 5_000));
        let gateway = self.gateway();
        self.events.extend(match self.random.chance(75) {
            true => {
                [(at, Event::Kill(Who::Gateway(gateway))), (at + pause, Event::Start(Who::Gateway(gateway)))]
            }
            false => {
                let link = Link::Wire(gateway);
                [(at, Event::Cut(link, End::Far)), (at + pause, Event::Mend(link))]
            }
        });
    }

    fn rolling(&mut self) {
        let mut at = self.ms(1_000, 3_000);
        for gateway in 0..self.gateways {
            let pause = self.ms(100, 2_000);
            let who = Who::Gateway(gateway);
            self.events.extend([(at, Event::Kill(who)), (at + pause, Event::Start(who))]);
            at += pause + self.ms(500, 3_000);
        }
    }

    /// The node is killed and restarted, or cut off and reconnected.
    fn absent(&mut self) {
        let (at, pause) = (self.ms(0, 3_000), self.ms(500, 60_000));
        if self.random.chance(60) {
            self.events.extend([(at, Event::Kill(Who::Node)), (at + pause, Event::Start(Who::Node))]);
            return;
        }
        for link in [Link::Direct, Link::Air] {
            self.events.extend([(at, Event::Cut(link, End::Far)), (at + pause, Event::Mend(link))]);
        }
    }

    /// Bits that flip in front of the node and of each gateway, in early connections; equally often
    /// in the first bytes, which are headers, as after them.
    fn flips(&mut self, kind: Kind, octets: u64) -> Vec<Vec<Flip>> {
        if kind != Kind::Flips {
            return Vec::new();
        }
        let most = octets.ilog2();
        let mut flips = vec![Vec::new(); 1 + self.gateways];
        for _ in 0..self.random.range(1..=6) {
            let place = self.random.below(flips.len() as u64) as usize;
            let at = 1 << self.random.range(0..=u64::from(most));
            flips[place].push(Flip {
                connection: self.random.below(4),
                is_answer: self.random.chance(30),
                at: at + self.random.below(at),
                bit: self.random.below(8) as u8,
            });
        }
        flips
    }

    /// Draws one fault, and its end if it has one.
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

    /// Orders the events, and ensures that a gateway lives in the end.
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
        let Self { run, kind, secure, family, octets, other, rates, disk, events, flips } = self;
        let secure = if *secure { "" } else { ", insecure" };
        write!(f, "run {run}, {kind:?}: {octets} octets, IP{family:?}{secure}, {rates:?} kbit/s")?;
        if let Some(other) = other {
            write!(f, ", then {other} octets")?;
        }
        for (place, flips) in flips.iter().enumerate().filter(|(_, flips)| !flips.is_empty()) {
            write!(f, ", before {place} {flips:?}")?;
        }
        if let Some(disk) = disk {
            write!(f, ", a disk of {disk} octets")?;
        }
        events.iter().try_for_each(|(at, event)| write!(f, ", {event:?} at {:.2}", at.as_secs_f64()))
    }
}
