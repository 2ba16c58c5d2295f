//! A run, collected from its log: in order of time, ready for a page.

mod collect;
mod repair;

use std::io::BufRead;

use anabranch_wire::eventlog::incident;

use crate::log::{Ending, Flow, Frame, Link, LogError, Medium, Node, Packet, Reader, Run, State};

pub use repair::{Loss, Place, Repair};

/// A second, in nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// Which part of a log is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// From this time on, in nanoseconds.
    pub from: u64,
    /// Until this time, in nanoseconds.
    pub until: u64,
    /// Rows of all tables together, at most: what is more is refused, not left out.
    pub limit: u64,
}

impl Default for Part {
    /// All of it, and 5 million rows: a page of 12 to 40 MB.
    fn default() -> Self {
        Self { from: 0, until: u64::MAX, limit: 5_000_000 }
    }
}

/// A packet and when it was there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// What the log says of it.
    pub packet: Packet,
    /// When it was made, as far as the log tells: when it was first sent or thrown away.
    /// Nanoseconds.
    pub made: u64,
    /// When it arrived at its destination.
    pub done: Option<u64>,
    /// Its source has sent these octets before.
    pub again: bool,
    /// Bytes that it brought to its destination first: of TCP segments the data that no other
    /// packet had brought there before, of other packets the whole with its IP header. 0 if it did
    /// not arrive.
    pub fresh: u64,
}

/// What became of a packet on a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It arrived.
    Arrived,
    /// It was lost for this reason, as [`anabranch_wire::eventlog::reason`] has it.
    Lost(u8),
    /// It was there when the log ended.
    UnderWay,
}

/// A packet on a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flight {
    /// The link.
    pub link: u32,
    /// The packet, by its place in [`Replay::packets`].
    pub packet: u32,
    /// When the link accepted it, in nanoseconds.
    pub sent: u64,
    /// When its transmission began.
    pub leaves: u64,
    /// When it arrived or was lost, or when the log ended.
    pub end: u64,
    /// What became of it.
    pub fate: Fate,
}

/// A frame, its times in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OnAir {
    /// When it began.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// What the log says of it.
    pub frame: Frame,
    /// The packet in it, by its place in [`Replay::packets`].
    pub packet: Option<u32>,
}

/// A part of a file, written to a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chunk {
    /// When, in nanoseconds.
    pub at: u64,
    /// What the connection sends.
    pub flow: u32,
    /// Octets that were written to the connection before.
    pub written_at: u64,
    /// Where in the file.
    pub offset: u64,
    /// Octets.
    pub len: u64,
}

/// Something else that happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Happening {
    /// When, in nanoseconds.
    pub at: u64,
    /// To which node.
    pub node: Option<u32>,
    /// In words.
    pub text: String,
}

/// A node or link breaks, heals or changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// When, in nanoseconds.
    pub at: u64,
    /// What, as [`anabranch_wire::eventlog::incident`] has it.
    pub what: u8,
    /// The node or link.
    pub index: u32,
    /// The new rate in bit/s, if that changes.
    pub value: u64,
}

/// A run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Replay {
    /// What the log says of it.
    pub run: Run,
    /// From when on there is something, in nanoseconds.
    pub start: u64,
    /// When it ended, in nanoseconds.
    pub end: u64,
    /// The log breaks off there, after so many octets.
    pub cut: Option<u64>,
    /// Events in the log.
    pub events: u64,
    /// Nodes, by their numbers.
    pub nodes: Vec<Node>,
    /// Links, by their numbers.
    pub links: Vec<Link>,
    /// Flows, by their numbers.
    pub flows: Vec<Flow>,
    /// The connection and the subflow that each flow is, if it is one of several.
    pub subflows: Vec<Option<(u32, u32)>>,
    /// Packets, in the order in which they were first seen.
    pub packets: Vec<Seen>,
    /// Packets on links, in the order in which they were sent.
    pub flights: Vec<Flight>,
    /// Frames, in the order in which they began.
    pub frames: Vec<OnAir>,
    /// How connections stood, by flow and then by time: flow, since when, how.
    pub states: Vec<(u32, u64, State)>,
    /// Parts of files, in the order of writing.
    pub chunks: Vec<Chunk>,
    /// What broke, healed or changed.
    pub changes: Vec<Change>,
    /// How nodes move, in order of time.
    pub legs: Vec<Leg>,
    /// Notes and what applications learned of connections.
    pub happenings: Vec<Happening>,
    /// How many more of these there were.
    pub more_happenings: u64,
    /// Losses and where each was repaired, in order of time.
    pub losses: Vec<Loss>,
    /// Packets that caching nodes hold back, since they look after them.
    pub held: u64,
}

/// A node goes from one place to another, in a straight line at a constant speed. Places are in
/// metres.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Leg {
    /// Which node.
    pub node: u32,
    /// When it begins.
    pub start: u64,
    /// When the node is there; if another leg of it begins before, it turns there.
    pub end: u64,
    /// Where it begins.
    pub from: (f64, f64),
    /// Where it leads.
    pub to: (f64, f64),
}

impl Leg {
    /// Where the node is at a time.
    pub fn place(&self, time: u64) -> (f64, f64) {
        if time >= self.end {
            return self.to;
        }
        let share = time.saturating_sub(self.start) as f64 / (self.end - self.start) as f64;
        let part = |from: f64, to: f64| from + (to - from) * share;
        (part(self.from.0, self.to.0), part(self.from.1, self.to.1))
    }
}

/// What is where at one time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Moment {
    /// Packets that wait in each link's queue.
    pub queued: Vec<u32>,
    /// Packets that each link is sending or has sent, and that have not arrived.
    pub under_way: Vec<u32>,
    /// Frames on the air.
    pub on_air: u32,
    /// Packets that have arrived at the ends of links, in all.
    pub arrived: u64,
    /// Losses so far.
    pub lost: u64,
}

impl Replay {
    /// Collects a part of a log.
    ///
    /// # Errors
    ///
    /// The log cannot be read, or the part is too large.
    pub fn read(input: impl BufRead, part: Part) -> Result<Self, LogError> {
        let mut reader = Reader::new(input)?;
        let mut collector = collect::Collector::new(part);
        while let Some(record) = reader.next_record()? {
            collector.take(record)?;
        }
        let cut = match reader.ending() {
            Some(Ending::Cut(octets)) => Some(octets),
            Some(Ending::Whole) | None => None,
        };
        let mut replay = collector.finish();
        (replay.cut, replay.events) = (cut, reader.events());
        repair::find(&mut replay);
        Ok(replay)
    }

    /// Where a node is at a time, in metres; `None` if that was never said.
    pub fn place(&self, node: u32, time: u64) -> Option<(f64, f64)> {
        let begun = self.legs[..self.legs.partition_point(|leg| leg.start <= time)].iter();
        let last = begun.rev().find(|leg| leg.node == node);
        last.map(|leg| leg.place(time)).or(self.nodes[node as usize].position)
    }

    /// Nanoseconds that a link has transmitted until `time`, in nanoseconds. A cable transmits
    /// packets at its rate; a link over the air has the frames from its start to its end.
    /// Acknowledgements of a cable's link layer are not in the log and do not count.
    pub fn busy(&self, link: u32, time: u64) -> u64 {
        let Link { from, to, over, rate, .. } = self.links[link as usize];
        if over != Medium::Cable {
            let frames = self.frames.iter().filter(|f| f.frame.from == from && f.frame.to == Some(to));
            return frames.map(|f| f.end.min(time).saturating_sub(f.start)).sum();
        }
        let rates = || self.changes.iter().filter(|c| c.what == incident::RATE && c.index == link);
        let sending = |flight: &Flight| {
            // A transmission that has begun goes on at its rate.
            let rate = rates().rfind(|change| change.at < flight.leaves).map_or(rate, |change| change.value);
            let bits = self.packets[flight.packet as usize].packet.wire_len * 8;
            let end = flight.leaves.saturating_add(bits.saturating_mul(SECOND).div_ceil(rate.max(1)));
            // One that a failure cuts ends there.
            end.min(flight.end).min(time).saturating_sub(flight.leaves)
        };
        self.flights.iter().filter(|flight| flight.link == link).map(sending).sum()
    }

    /// What is where at a time, in nanoseconds. Something that happens at that time has happened.
    pub fn at(&self, time: u64) -> Moment {
        let links = self.links.len();
        let mut moment = Moment { queued: vec![0; links], under_way: vec![0; links], ..Moment::default() };
        for flight in self.flights.iter().take_while(|flight| flight.sent <= time) {
            let link = flight.link as usize;
            if flight.end > time || flight.fate == Fate::UnderWay {
                let place = if flight.leaves > time { &mut moment.queued } else { &mut moment.under_way };
                place[link] += 1;
            } else if flight.fate == Fate::Arrived {
                moment.arrived += 1;
            }
        }
        let begun = self.frames.iter().take_while(|frame| frame.start <= time);
        moment.on_air = begun.filter(|frame| frame.end > time).count() as u32;
        moment.lost = self.losses.iter().take_while(|loss| loss.at <= time).count() as u64;
        moment
    }
}
