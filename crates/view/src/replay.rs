//! A run, collected from its log in order of time.

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
    /// Start in nanoseconds.
    pub from: u64,
    /// End in nanoseconds.
    pub until: u64,
    /// Limit on the rows of all tables together. A larger part is an error; nothing is left out.
    pub limit: u64,
}

impl Default for Part {
    /// The whole log, with at most 5 million rows, which makes a page of 12 to 40 MB.
    fn default() -> Self {
        Self { from: 0, until: u64::MAX, limit: 5_000_000 }
    }
}

/// A packet with its times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// The packet as the log describes it.
    pub packet: Packet,
    /// Time when the packet was first sent or discarded, in nanoseconds; the log does not contain
    /// its creation.
    pub made: u64,
    /// Time when it arrived at its destination, in nanoseconds.
    pub done: Option<u64>,
    /// It is a retransmission: its source had sent these bytes before.
    pub again: bool,
    /// Bytes that it brought to its destination first: of TCP segments the data that no other
    /// packet had brought there before, of other packets the whole with its IP header. 0 if it did
    /// not arrive.
    pub fresh: u64,
}

/// Fate of a packet on a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It arrived.
    Arrived,
    /// It was lost for this reason, as defined in [`anabranch_wire::eventlog::reason`].
    Lost(u8),
    /// It was on the link when the log ended.
    UnderWay,
}

/// A packet on a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flight {
    /// Number of the link.
    pub link: u32,
    /// Index of the packet in [`Replay::packets`].
    pub packet: u32,
    /// Time when the link accepted it, in nanoseconds.
    pub sent: u64,
    /// Time when its transmission began, in nanoseconds.
    pub leaves: u64,
    /// Time when it arrived or was lost, or when the log ended, in nanoseconds.
    pub end: u64,
    /// Fate of the packet.
    pub fate: Fate,
}

/// A frame on the air.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OnAir {
    /// Start in nanoseconds.
    pub start: u64,
    /// End in nanoseconds.
    pub end: u64,
    /// The frame as the log describes it.
    pub frame: Frame,
    /// Index of the frame's packet in [`Replay::packets`].
    pub packet: Option<u32>,
}

/// A part of a file, written to a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chunk {
    /// Time in nanoseconds.
    pub at: u64,
    /// Flow that the connection sends.
    pub flow: u32,
    /// Number of bytes written to the connection before.
    pub written_at: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
}

/// A note, or a notification of an application.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Happening {
    /// Time in nanoseconds.
    pub at: u64,
    /// Node that it concerns.
    pub node: Option<u32>,
    /// Text to show.
    pub text: String,
}

/// A node or link failed, recovered or changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// Time in nanoseconds.
    pub at: u64,
    /// Kind of change, as defined in [`anabranch_wire::eventlog::incident`].
    pub what: u8,
    /// Number of the node or link.
    pub index: u32,
    /// The new rate in bit/s, if that changes.
    pub value: u64,
}

/// A run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Replay {
    /// Description of the run in the log.
    pub run: Run,
    /// Start of the collected part, in nanoseconds.
    pub start: u64,
    /// End of the run, in nanoseconds.
    pub end: u64,
    /// For a log without an end record: number of bytes in its complete records.
    pub cut: Option<u64>,
    /// Number of events in the log.
    pub events: u64,
    /// Nodes by number.
    pub nodes: Vec<Node>,
    /// Links by number.
    pub links: Vec<Link>,
    /// Flows by number.
    pub flows: Vec<Flow>,
    /// For each flow, the connection and subflow number if it is a subflow.
    pub subflows: Vec<Option<(u32, u32)>>,
    /// Packets in order of their first event.
    pub packets: Vec<Seen>,
    /// Packets on links, in order of sending.
    pub flights: Vec<Flight>,
    /// Frames in order of their start.
    pub frames: Vec<OnAir>,
    /// States of connections: flow, start time, state; ordered by flow, then time.
    pub states: Vec<(u32, u64, State)>,
    /// Parts of files, in order of writing.
    pub chunks: Vec<Chunk>,
    /// Failures, recoveries and changes.
    pub changes: Vec<Change>,
    /// Movements of nodes, in order of time.
    pub legs: Vec<Leg>,
    /// Notes and notifications of applications.
    pub happenings: Vec<Happening>,
    /// Number of further notes and notifications that were not kept.
    pub more_happenings: u64,
    /// Losses with their repairs, in order of time.
    pub losses: Vec<Loss>,
    /// SET transfers in the order of their ends, and deployed ones to compare them with.
    pub transfers: Vec<Transfer>,
    /// Number of packets that caching nodes hold, since they retransmit them if needed.
    pub held: u64,
}

/// A node's movement in a straight line at constant speed. Positions are in metres.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Leg {
    /// Number of the node.
    pub node: u32,
    /// Start time in nanoseconds.
    pub start: u64,
    /// Time of arrival in nanoseconds. If the node's next leg starts earlier, it turns there.
    pub end: u64,
    /// Position at the start.
    pub from: (f64, f64),
    /// Destination.
    pub to: (f64, f64),
}

impl Leg {
    /// Position of the node at a time.
    pub fn place(&self, time: u64) -> (f64, f64) {
        if time >= self.end {
            return self.to;
        }
        let share = time.saturating_sub(self.start) as f64 / (self.end - self.start) as f64;
        let part = |from: f64, to: f64| from + (to - from) * share;
        (part(self.from.0, self.to.0), part(self.from.1, self.to.1))
    }
}

/// Phases of a SET transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// Name of the transfer on the page.
    pub name: String,
    /// Start in nanoseconds of the run; `None` for a deployed transfer, which is not part of it.
    pub start: Option<u64>,
    /// Durations in nanoseconds of the phases that have ended, in the order of
    /// [`anabranch_wire::eventlog::PHASES`].
    pub phases: Vec<u64>,
}

/// State of the network at one time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Moment {
    /// For each link, the number of packets in its queue.
    pub queued: Vec<u32>,
    /// For each link, the number of packets sent or being sent that have not arrived.
    pub under_way: Vec<u32>,
    /// Number of frames on the air.
    pub on_air: u32,
    /// Number of packets that have arrived at the ends of links.
    pub arrived: u64,
    /// Number of losses so far.
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

    /// Position of a node at a time, in metres; `None` if it is unknown.
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
