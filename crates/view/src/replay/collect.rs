//! Collects records into a replay: assigns packets to links, and events to what they concern.

use std::collections::BTreeMap;

use anabranch_wire::eventlog::{frame, incident, packet as flag, reason, stream};

use super::repair::{Loss, Place, Repair};
use super::{Change, Chunk, Fate, Flight, Happening, Leg, OnAir, Part, Replay, Seen, Transfer};
use crate::log::{Event, Frame, LogError, Medium, Packet, Record};

/// Limit on the notes of a page; further ones are only counted.
const HAPPENINGS: usize = 20_000;

/// State of the collection.
pub(super) struct Collector {
    replay: Replay,
    part: Part,
    now: u64,
    /// Indices of packets, by their numbers in the run.
    places: BTreeMap<i64, u32>,
    /// Packets on links.
    open: BTreeMap<(u32, u32), Flight>,
    /// Radio links, by their end nodes.
    on_air: BTreeMap<(u32, u32), u32>,
    /// For each flow, the end of the highest bytes sent.
    highest: Vec<Option<i64>>,
    /// Index of the last leg of each moving node.
    legs: BTreeMap<u32, usize>,
    over: bool,
}

impl Collector {
    pub(super) fn new(part: Part) -> Self {
        Self {
            replay: Replay::default(),
            part,
            now: 0,
            places: BTreeMap::new(),
            open: BTreeMap::new(),
            on_air: BTreeMap::new(),
            highest: Vec::new(),
            legs: BTreeMap::new(),
            over: false,
        }
    }

    pub(super) fn take(&mut self, record: Record) -> Result<(), LogError> {
        match record {
            Record::Run(run) => self.replay.run = run,
            Record::Node(node) => self.replay.nodes.push(node),
            Record::Link(link) => {
                if link.over != Medium::Cable {
                    self.on_air.insert((link.from, link.to), self.replay.links.len() as u32);
                }
                self.replay.links.push(link);
            }
            Record::Flow(flow) => {
                self.replay.flows.push(flow);
                self.replay.subflows.push(None);
                self.highest.push(None);
            }
            Record::Subflow { flow, group, subflow } => {
                self.replay.subflows[flow as usize] = Some((group, subflow));
            }
            Record::Packet(packet) if !self.over => self.define(packet),
            Record::Packet(_) => {}
            Record::Event(now, event) => {
                self.over |= now > self.part.until;
                if !self.over {
                    self.now = now;
                    self.happen(event);
                }
            }
        }
        let replay = &self.replay;
        let rows = replay.packets.len()
            + replay.flights.len()
            + replay.frames.len()
            + replay.states.len()
            + replay.chunks.len()
            + replay.legs.len();
        let limit = self.part.limit;
        if rows as u64 > limit { Err(LogError::TooMuch { limit }) } else { Ok(()) }
    }

    /// Ends the collection and orders the tables.
    pub(super) fn finish(mut self) -> Replay {
        let end = self.now;
        // Packets still on a link stay there beyond the end.
        let under_way = self.open.into_values();
        self.replay.flights.extend(under_way.map(|f| Flight { end, leaves: f.leaves.min(end + 1), ..f }));
        let replay = &mut self.replay;
        replay.packets.iter_mut().filter(|p| p.made == UNKNOWN).for_each(|p| p.made = end);
        (replay.start, replay.end) = (self.part.from.min(end), end);
        replay.flights.sort_by_key(|f| (f.sent, f.packet, f.link));
        replay.frames.sort_by_key(|f| (f.start, f.end, f.frame.from));
        replay.states.sort_by_key(|(flow, at, _)| (*flow, *at));
        count_fresh(replay);
        if self.part.from > 0 {
            forget_before(replay, self.part.from);
        }
        self.replay
    }

    fn define(&mut self, packet: Packet) {
        if self.places.contains_key(&packet.id) {
            return;
        }
        self.places.insert(packet.id, self.replay.packets.len() as u32);
        let mut again = false;
        let len = packet.seq_len();
        if let (true, None) = (len > 0, packet.maker) {
            let highest = &mut self.highest[packet.flow as usize];
            let end = packet.seq + len;
            again = highest.is_some_and(|highest| packet.seq < highest);
            *highest = Some(highest.map_or(end, |highest| highest.max(end)));
        }
        // The event that is about it follows: its time is not known yet.
        self.replay.packets.push(Seen { packet, made: UNKNOWN, done: None, again, fresh: 0 });
    }

    /// Index of a packet; `None` if the log does not describe it.
    fn place(&mut self, id: i64) -> Option<u32> {
        let place = self.places.get(&id).copied()?;
        let seen = &mut self.replay.packets[place as usize];
        if seen.made == UNKNOWN {
            seen.made = self.now;
        }
        Some(place)
    }

    fn happen(&mut self, event: Event) {
        let at = self.now;
        match event {
            Event::Sent { link, packet } => {
                if let Some(packet) = self.place(packet) {
                    // On a radio link, transmission starts with the first frame.
                    let cable = self.replay.links[link as usize].over == Medium::Cable;
                    let leaves = if cable { at } else { u64::MAX };
                    let flight = Flight { link, packet, sent: at, leaves, end: at, fate: Fate::UnderWay };
                    // The packet is on this link again, and the log has no end of its first flight:
                    // count that flight as lost.
                    if let Some(before) = self.open.insert((link, packet), flight) {
                        self.close(before, Fate::Lost(reason::CHANNEL));
                    }
                }
            }
            Event::Waits { link, packet, nanos } => {
                if let Some(packet) = self.place(packet)
                    && let Some(flight) = self.open.get_mut(&(link, packet))
                {
                    flight.leaves = at + nanos;
                }
            }
            Event::Received { link, packet } => self.received(link, packet),
            Event::Lost { link, packet, reason } => {
                if let Some(packet) = self.place(packet) {
                    match self.open.remove(&(link, packet)) {
                        Some(flight) => self.close(flight, Fate::Lost(reason)),
                        // The link refused the packet, so it was never on the link.
                        None => {
                            let fate = Fate::Lost(reason);
                            let refused = Flight { link, packet, sent: at, leaves: at, end: at, fate };
                            self.replay.flights.push(refused);
                        }
                    }
                    self.lose(Place::Link(link), packet, reason);
                }
            }
            Event::Discarded { reason: reason::HELD, packet, .. } => {
                self.place(packet);
                self.replay.held += 1;
            }
            Event::Discarded { node, packet, reason } => {
                if let Some(packet) = self.place(packet) {
                    self.lose(Place::Node(node), packet, reason);
                }
            }
            Event::Frame(frame) => self.frame(frame),
            Event::State { flow, state } => self.replay.states.push((flow, at, state)),
            Event::Stream { flow, what } => {
                let node = self.replay.flows[flow as usize].source;
                let text = format!("{}: {}", self.flow_name(flow), stream_words(what));
                self.note(Some(node), text);
            }
            Event::Chunk { flow, written_at, offset, len } => {
                self.replay.chunks.push(Chunk { at, flow, written_at, offset, len });
            }
            Event::Incident { what, index, value } => {
                self.replay.changes.push(Change { at, what, index, value });
                if let Some(text) = self.incident_words(what, index, value) {
                    self.note(None, text);
                }
            }
            Event::Note { node, text } => self.note(node, text),
            Event::Leg { node, nanos, to } => self.leg(node, nanos, to),
            Event::Phases { source, destination, passed, phases } => {
                let name = |node: u32| &self.replay.nodes[node as usize].name;
                let name = format!("{} → {}, simulated", name(source), name(destination));
                let start = Some(at.saturating_sub(passed));
                self.replay.transfers.push(Transfer { name, start, phases });
            }
            Event::End { .. } => {}
        }
    }

    fn leg(&mut self, node: u32, nanos: u64, to: (f64, f64)) {
        let start = self.now;
        let before = self.legs.get(&node).map(|at| self.replay.legs[*at].place(start));
        let from = before.or(self.replay.nodes[node as usize].position).unwrap_or(to);
        self.legs.insert(node, self.replay.legs.len());
        self.replay.legs.push(Leg { node, start, end: start.saturating_add(nanos), from, to });
    }

    fn received(&mut self, link: u32, packet: i64) {
        let Some(packet) = self.place(packet) else { return };
        // A duplicated packet was sent once, so its second arrival has no flight.
        if let Some(flight) = self.open.remove(&(link, packet)) {
            self.close(flight, Fate::Arrived);
        }
        let to = self.replay.links[link as usize].to;
        let seen = &mut self.replay.packets[packet as usize];
        if self.replay.flows[seen.packet.flow as usize].destination == Some(to) {
            seen.done = seen.done.or(Some(self.now));
        }
    }

    fn close(&mut self, flight: Flight, fate: Fate) {
        let end = self.now;
        self.replay.flights.push(Flight { end, leaves: flight.leaves.min(end), fate, ..flight });
    }

    fn lose(&mut self, place: Place, packet: u32, reason: u8) {
        let at = self.now;
        self.replay.losses.push(Loss { at, place, packet, reason: Some(reason), repair: Repair::None });
    }

    fn frame(&mut self, frame: Frame) {
        let (start, end) = (self.now.saturating_sub(frame.nanos), self.now);
        let packet = frame.packet.and_then(|(id, _)| self.place(id));
        if let Some(packet) = packet {
            // The first frame of a packet ends its time in the queue.
            let link = frame.to.and_then(|to| self.on_air.get(&(frame.from, to)));
            if let Some(flight) = link.and_then(|link| self.open.get_mut(&(*link, packet))) {
                flight.leaves = flight.leaves.min(start.max(flight.sent));
            }
            if frame.kind == frame::DATA && frame.flags & frame::RECEIVED == 0 && frame.to.is_some() {
                let place = Place::Air { from: frame.from, to: frame.to };
                let (at, repair) = (self.now, Repair::None);
                self.replay.losses.push(Loss { at, place, packet, reason: None, repair });
            }
        }
        self.replay.frames.push(OnAir { start, end, frame, packet });
    }

    fn note(&mut self, node: Option<u32>, text: String) {
        if self.now < self.part.from {
            return;
        }
        if self.replay.happenings.len() < HAPPENINGS {
            self.replay.happenings.push(Happening { at: self.now, node, text });
        } else {
            self.replay.more_happenings += 1;
        }
    }

    fn node_name(&self, node: u32) -> &str {
        &self.replay.nodes[node as usize].name
    }

    fn flow_name(&self, flow: u32) -> String {
        let flow = &self.replay.flows[flow as usize];
        let to = flow.destination.map_or("all", |node| self.node_name(node));
        format!("{}:{} to {to}:{}", self.node_name(flow.source), flow.ports.0, flow.ports.1)
    }

    /// Text of an incident; `None` for nodes, which log their own failure and recovery.
    fn incident_words(&self, what: u8, index: u32, value: u64) -> Option<String> {
        let words = match what {
            incident::LINK_DOWN => "is down".to_owned(),
            incident::LINK_UP => "is up".to_owned(),
            incident::RATE => format!("has {value} bit/s"),
            _ => return None,
        };
        let link = &self.replay.links[index as usize];
        Some(format!("link {} to {} {words}", self.node_name(link.from), self.node_name(link.to)))
    }
}

/// Time of a packet without an event so far.
const UNKNOWN: u64 = u64::MAX;

fn stream_words(what: u8) -> &'static str {
    match what {
        stream::ACCEPTED => "open, accepted",
        stream::OPENED => "open",
        stream::PEER_CLOSED => "the peer has finished",
        stream::CLOSED => "closed",
        _ => match what - stream::CLOSED {
            1 => "closed by a reset",
            2 => "aborted",
            3 => "refused",
            _ => "closed, timed out",
        },
    }
}

/// Counts the bytes that each packet brought to its destination first.
fn count_fresh(replay: &mut Replay) {
    let packets = &mut replay.packets;
    let arrived = |(i, seen): (usize, &Seen)| seen.done.map(|at| (at, i));
    let mut order: Vec<(u64, usize)> = packets.iter().enumerate().filter_map(arrived).collect();
    order.sort_unstable();
    // Data that has arrived, by flow: ranges that neither overlap nor touch, by their beginnings.
    let mut ranges: Vec<BTreeMap<i64, i64>> = vec![BTreeMap::new(); replay.flows.len()];
    for (_, i) in order {
        let packet = packets[i].packet;
        packets[i].fresh = if packet.flags & flag::TCP == 0 {
            packet.wire_len
        } else {
            add_range(
                &mut ranges[packet.flow as usize],
                packet.seq,
                packet.seq.saturating_add(packet.len as i64),
            )
        };
    }
}

/// Adds a range to others; how much of it was in none of them.
fn add_range(ranges: &mut BTreeMap<i64, i64>, mut start: i64, mut end: i64) -> u64 {
    let mut fresh = end - start;
    if fresh == 0 {
        return 0;
    }
    while let Some((&first, &last)) = ranges.range(..=end).next_back().filter(|(_, last)| **last >= start) {
        // The range grows by what it takes in. As the others do not overlap each other, the rest of
        // them overlap the range as it was at first only.
        fresh -= last.min(end) - first.max(start);
        (start, end) = (start.min(first), end.max(last));
        ranges.remove(&first);
    }
    ranges.insert(start, end);
    fresh as u64
}

/// Forgets what was over before a time, and the packets that nothing is left of.
fn forget_before(replay: &mut Replay, from: u64) {
    replay.flights.retain(|f| f.end >= from);
    replay.frames.retain(|f| f.end >= from);
    replay.losses.retain(|l| l.at >= from);
    replay.chunks.retain(|c| c.at >= from);
    // Nodes that arrived before `from` start at their destination.
    for node in 0..replay.nodes.len() {
        replay.nodes[node].position = replay.place(node as u32, from);
    }
    replay.legs.retain(|leg| leg.end > from);
    // The last state before `from` is the state at the start.
    let mut later = replay.states.iter().skip(1).map(|s| Some((s.0, s.1))).chain([None]);
    let states: Vec<_> = replay
        .states
        .iter()
        .filter(|s| {
            let next = later.next().flatten();
            s.1 >= from || next.is_none_or(|(flow, at)| flow != s.0 || at > from)
        })
        .map(|&(flow, at, state)| (flow, at.max(from), state))
        .collect();
    replay.states = states;
    let mut kept = vec![false; replay.packets.len()];
    let of_flights = replay.flights.iter().map(|f| f.packet);
    let of_frames = replay.frames.iter().filter_map(|f| f.packet);
    let of_losses = replay.losses.iter().map(|l| l.packet);
    of_flights.chain(of_frames).chain(of_losses).for_each(|p| kept[p as usize] = true);
    // Removing packets shifts the others, so all indices into `packets` are renumbered.
    let mut places = Vec::with_capacity(kept.len());
    let mut next = 0;
    for kept in &kept {
        places.push(next);
        next += u32::from(*kept);
    }
    let mut kept = kept.iter();
    replay.packets.retain(|_| *kept.next().expect("one for each packet"));
    replay.flights.iter_mut().for_each(|f| f.packet = places[f.packet as usize]);
    replay.frames.iter_mut().for_each(|f| f.packet = f.packet.map(|p| places[p as usize]));
    replay.losses.iter_mut().for_each(|l| l.packet = places[l.packet as usize]);
}
