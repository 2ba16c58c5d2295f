//! Finds where losses were repaired. A loss counts as repaired by the first later packet that
//! brought the same bytes to the destination, whichever node made it and whichever path it took.

use std::collections::BTreeMap;

use anabranch_wire::eventlog::{frame, packet as flag};

use super::{Chunk, Replay, SECOND, Seen};

/// Place of a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// On this link.
    Link(u32),
    /// At this node.
    Node(u32),
    /// On the air: no node received the frame.
    Air {
        /// Node that sent the frame.
        from: u32,
        /// Destination of the frame; `None` for a broadcast.
        to: Option<u32>,
    },
}

/// Place and time of a repair. Times are in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repair {
    /// Not repaired before the log ended.
    None,
    /// Its source retransmitted it on the same connection.
    EndToEnd {
        /// Arrival of the retransmission.
        at: u64,
    },
    /// A node on the path retransmitted it from its cache.
    LocalCache {
        /// The node.
        node: u32,
        /// Arrival of the retransmission.
        at: u64,
    },
    /// Another subflow of the connection carried the bytes.
    OtherSubflow {
        /// The other subflow.
        flow: u32,
        /// Arrival of the bytes.
        at: u64,
    },
    /// The session layer sent the bytes through another gateway.
    Session {
        /// The flow that carried the bytes of the file.
        flow: u32,
        /// Arrival of the bytes.
        at: u64,
    },
    /// The link layer retransmitted the frame.
    LinkLayer {
        /// Time when the frame was received.
        at: u64,
    },
    /// The bytes, or this very packet, had arrived before: nothing was missing.
    NotMissing,
    /// No repair is needed: the packet is an acknowledgement, which a later one replaces, or
    /// carries nothing that TCP retransmits.
    NotNeeded,
    /// The link layer gave up the frame. The loss of its packet is a separate loss.
    GivenUp,
}

/// A loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loss {
    /// Time in nanoseconds.
    pub at: u64,
    /// Place of the loss.
    pub place: Place,
    /// Index of the packet in [`Replay::packets`].
    pub packet: u32,
    /// Reason, as defined in [`anabranch_wire::eventlog::reason`]; `None` for a frame.
    pub reason: Option<u8>,
    /// Repair of the loss.
    pub repair: Repair,
}

/// Bytes that arrived at the destination of a flow.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    /// First byte and length, as sequence numbers, data sequence numbers, or offsets in a file.
    start: i64,
    len: i64,
    at: u64,
    /// Flow that brought the bytes.
    flow: u32,
    maker: Option<u32>,
}

/// Arrivals, ordered by first byte.
#[derive(Debug, Default)]
struct Arrivals {
    rows: Vec<Arrived>,
    longest: i64,
}

impl Arrivals {
    fn push(&mut self, arrived: Arrived) {
        self.longest = self.longest.max(arrived.len);
        self.rows.push(arrived);
    }

    fn sort(&mut self) {
        self.rows.sort_by_key(|row| (row.start, row.at));
    }

    /// All arrivals that contain `octet`.
    fn with(&self, octet: i64) -> impl Iterator<Item = &Arrived> {
        // Rows are ordered by start, and none is longer than `longest`: earlier rows cannot reach
        // `octet`.
        let first = self.rows.partition_point(|row| row.start <= octet.saturating_sub(self.longest));
        let near = self.rows[first..].iter().take_while(move |row| row.start <= octet);
        near.filter(move |row| octet < row.start.saturating_add(row.len))
    }
}

/// Finds the repair of each loss, and orders the losses.
pub(super) fn find(replay: &mut Replay) {
    replay.losses.sort_by_key(|loss| (loss.at, loss.packet));
    if replay.losses.is_empty() {
        return;
    }
    let index = Index::new(replay);
    let repairs: Vec<Repair> = replay
        .losses
        .iter()
        .map(|loss| match loss.place {
            Place::Air { .. } => index.of_frame(loss),
            Place::Link(_) | Place::Node(_) => index.of_packet(loss),
        })
        .collect();
    for (loss, repair) in replay.losses.iter_mut().zip(repairs) {
        loss.repair = repair;
    }
}

/// Index of all arrivals.
struct Index<'a> {
    replay: &'a Replay,
    /// Sequence numbers, by flow.
    segments: Vec<Arrivals>,
    /// Data sequence numbers, by multipath connection and sending node.
    data: BTreeMap<(u32, u32), Arrivals>,
    /// Chunks by their offset in the flow, by flow.
    chunks: BTreeMap<u32, Vec<Chunk>>,
    /// Offsets in files, by the receiving node.
    files: BTreeMap<u32, Arrivals>,
    /// Reception times of frames, by sender, packet and piece.
    frames: BTreeMap<(u32, u32, u64), Vec<u64>>,
    /// Sequence number of the SYN, by flow.
    first: Vec<Option<i64>>,
}

impl<'a> Index<'a> {
    fn new(replay: &'a Replay) -> Self {
        let mut this = Self {
            replay,
            segments: replay.flows.iter().map(|_| Arrivals::default()).collect(),
            data: BTreeMap::new(),
            chunks: BTreeMap::new(),
            files: BTreeMap::new(),
            frames: BTreeMap::new(),
            first: vec![None; replay.flows.len()],
        };
        this.add_packets();
        this.segments.iter_mut().for_each(Arrivals::sort);
        this.data.values_mut().for_each(Arrivals::sort);
        this.add_files();
        for on_air in &replay.frames {
            let (Some(packet), Some((_, piece))) = (on_air.packet, on_air.frame.packet) else { continue };
            if on_air.frame.flags & frame::RECEIVED != 0 {
                this.frames.entry((on_air.frame.from, packet, piece)).or_default().push(on_air.end);
            }
        }
        this
    }

    fn add_packets(&mut self) {
        // Bytes of fragmented packets that have arrived, by flow, and the packet that they belong
        // to.
        let mut cut: BTreeMap<u32, (i64, u64)> = BTreeMap::new();
        let mut pieces: BTreeMap<(u32, i64), u64> = BTreeMap::new();
        for seen in &self.replay.packets {
            let Seen { packet, done, .. } = *seen;
            let flow = packet.flow;
            if packet.flags & flag::TCP == 0 {
                continue;
            }
            if packet.flags & flag::SYN != 0 {
                self.first[flow as usize].get_or_insert(packet.seq);
            }
            // The pieces of a packet are described one after another, and the first has offset 0.
            let whole = packet.piece.map(|piece| {
                let group = cut.entry(flow).or_insert((packet.id, 0));
                if piece.offset == 0 {
                    *group = (packet.id, 0);
                }
                (group.0, piece)
            });
            let Some(at) = done else { continue };
            if let Some((group, piece)) = whole {
                let arrived = pieces.entry((flow, group)).or_default();
                *arrived += piece.len;
                if *arrived < piece.whole {
                    continue;
                }
            }
            let maker = if packet.piece.is_some() { None } else { packet.maker };
            let arrived = Arrived { start: packet.seq, len: packet.seq_len(), at, flow, maker };
            self.segments[flow as usize].push(arrived);
            if let (Some(dsn), Some((group, _))) = (packet.dsn, self.replay.subflows[flow as usize]) {
                let source = self.replay.flows[flow as usize].source;
                let arrived = Arrived { start: dsn, len: packet.len as i64, ..arrived };
                self.data.entry((group, source)).or_default().push(arrived);
            }
        }
    }

    /// Adds bytes of files, at the nodes where their flows end.
    fn add_files(&mut self) {
        for chunk in &self.replay.chunks {
            self.chunks.entry(chunk.flow).or_default().push(*chunk);
            let Some(first) = self.first[chunk.flow as usize] else { continue };
            let Some(destination) = self.replay.flows[chunk.flow as usize].destination else { continue };
            let start = first + 1 + chunk.written_at as i64;
            let last = start + chunk.len as i64 - 1;
            // A chunk has arrived when its first and its last byte have.
            let when = |octet| self.segments[chunk.flow as usize].with(octet).map(|row| row.at).min();
            if let (Some(a), Some(b)) = (when(start), when(last)) {
                let (offset, len) = (chunk.offset as i64, chunk.len as i64);
                let at = a.max(b);
                let arrived = Arrived { start: offset, len, at, flow: chunk.flow, maker: None };
                self.files.entry(destination).or_default().push(arrived);
            }
        }
        self.files.values_mut().for_each(Arrivals::sort);
        self.chunks.values_mut().for_each(|chunks| chunks.sort_by_key(|chunk| chunk.written_at));
    }

    fn of_frame(&self, loss: &Loss) -> Repair {
        let Place::Air { from, .. } = loss.place else { return Repair::None };
        // The loss does not name the lost piece; the frame that ended at its time does.
        let piece = self.piece_of(loss);
        let received = piece.and_then(|piece| self.frames.get(&(from, loss.packet, piece)));
        let Some(received) = received else { return Repair::GivenUp };
        match received.iter().find(|at| **at > loss.at) {
            Some(&at) => Repair::LinkLayer { at },
            None => Repair::NotMissing,
        }
    }

    /// The piece in a lost frame.
    fn piece_of(&self, loss: &Loss) -> Option<u64> {
        let frames = &self.replay.frames;
        let Place::Air { from, .. } = loss.place else { return None };
        // Frames are ordered by start and last less than a second, so this skips only earlier
        // frames.
        let near = frames.partition_point(|f| f.start + SECOND < loss.at);
        let missed = frames[near..].iter().take_while(|f| f.start <= loss.at);
        let mut missed =
            missed.filter(|f| f.end == loss.at && f.frame.from == from && f.packet == Some(loss.packet));
        missed.find_map(|f| f.frame.packet.map(|(_, piece)| piece))
    }

    fn of_packet(&self, loss: &Loss) -> Repair {
        let seen = &self.replay.packets[loss.packet as usize];
        let packet = &seen.packet;
        if packet.flags & flag::TCP == 0 || packet.seq_len() == 0 {
            return Repair::NotNeeded;
        }
        // Another copy of this very packet reached the destination.
        if seen.done.is_some() && packet.piece.is_none() {
            return Repair::NotMissing;
        }
        // The repair is whatever brought the bytes first.
        let ways = [self.on_the_flow(seen), self.on_another_subflow(seen), self.in_session(seen)];
        let first = ways.into_iter().flatten().min_by_key(|(at, _)| *at);
        first.map_or(Repair::None, |(at, repair)| if at <= loss.at { Repair::NotMissing } else { repair })
    }

    fn on_the_flow(&self, seen: &Seen) -> Option<(u64, Repair)> {
        let same = self.segments[seen.packet.flow as usize].with(seen.packet.seq);
        let &Arrived { at, maker, .. } = same.min_by_key(|row| row.at)?;
        Some((at, maker.map_or(Repair::EndToEnd { at }, |node| Repair::LocalCache { node, at })))
    }

    fn on_another_subflow(&self, seen: &Seen) -> Option<(u64, Repair)> {
        let flow = seen.packet.flow as usize;
        let group = (self.replay.subflows[flow]?.0, self.replay.flows[flow].source);
        let others = self.data.get(&group)?.with(seen.packet.dsn?).filter(|row| row.flow != seen.packet.flow);
        let &Arrived { at, flow, .. } = others.min_by_key(|row| row.at)?;
        Some((at, Repair::OtherSubflow { flow, at }))
    }

    /// Looks for the file's bytes on a connection to the same node, or through another gateway.
    fn in_session(&self, seen: &Seen) -> Option<(u64, Repair)> {
        let flow = &self.replay.flows[seen.packet.flow as usize];
        // The SYN takes one sequence number.
        let written = seen.packet.seq - self.first[seen.packet.flow as usize]? - 1;
        let chunks = self.chunks.get(&seen.packet.flow)?;
        let end = written + seen.packet.len.max(1) as i64;
        let last = chunks[..chunks.partition_point(|c| (c.written_at as i64) < end)].last()?;
        let offset = last.offset as i64 + (written - last.written_at as i64).max(0);
        let here = |row: &&Arrived| {
            let other = &self.replay.flows[row.flow as usize];
            row.flow != seen.packet.flow
                && (other.destination == flow.destination || other.source == flow.source)
        };
        let all = self.files.values().flat_map(|arrivals| arrivals.with(offset));
        let &Arrived { at, flow, .. } = all.filter(here).min_by_key(|row| row.at)?;
        Some((at, Repair::Session { flow, at }))
    }
}
