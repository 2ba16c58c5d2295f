//! Counts packets on the chain as an omniscient observer. Nodes are numbered by position: the
//! sender is 0, the receiver is `hops`.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_core::segment::{Flags, Segment, SeqNumber};
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::packet::{LinkId, NodeId, Packet, Payload};
use anabranch_sim::trace::{NodeDrop, Observer, Point};

use super::config::Chain;

/// Counts of one run until the last acknowledgement.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Counts {
    /// Number of data segments sent on all links.
    pub data: u64,
    /// Number of acknowledgements sent on all links.
    pub acks: u64,
    /// Number of time-outs and fast retransmits of the sender, without those of the handshake
    /// (erratum D6).
    pub end_to_end: u64,
    /// Number of data segments that the sender retransmitted.
    pub resent: u64,
    /// Number of data segments that nodes sent from their caches.
    pub local: u64,
    /// Number of segments that the sender retransmitted although a copy already in the network
    /// reached the receiver.
    pub unnecessary: u64,
    /// Time from the SYN until the last acknowledgement; `None` if that did not arrive.
    pub completion: Option<Duration>,
    /// Number of frames on the air, including the handshake; `None` without a radio.
    pub frames: Option<u64>,
    /// Number of data segments sent by each inner node.
    pub by_node: Vec<u64>,
    /// Round-trip times of the sender, for segments during whose round trip nothing was
    /// retransmitted.
    pub rtt: Vec<Sample>,
    /// Local round-trip estimates of each inner node, at each change.
    pub local_rtt: Vec<Vec<Sample>>,
}

/// A round-trip time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// Time of the measurement in seconds, from the start of the run.
    pub at: f64,
    /// Round-trip time in seconds.
    pub rtt: f64,
}

/// The observer.
#[derive(Debug)]
pub(super) struct Meter {
    hops: usize,
    /// Number of bytes that the last acknowledgement covers.
    goal: u32,
    /// Whether to record round trips.
    samples: bool,
    /// Start and end node of each link.
    links: Vec<(NodeId, NodeId)>,
    started: Option<Instant>,
    /// Sequence number of the first data byte.
    first: SeqNumber,
    /// Offset of the first byte that was never sent.
    fresh: u32,
    /// Segments that have not reached the receiver, by their first byte.
    tracks: BTreeMap<u32, Track>,
    reached: BTreeSet<u32>,
    /// Sending times of segments that can be measured, by their end.
    sent: BTreeMap<u32, Instant>,
    /// Once the connection has begun: a segment with its ports and nothing else.
    ports: Option<Segment>,
    /// Number of segments that arrived at an inner node and were not forwarded.
    held: u64,
    /// Number of segments that arrived at inner nodes.
    came: u64,
    done: bool,
    counts: Counts,
}

/// Copies of a segment. The sender's n-th retransmission starts generation n; a segment from a
/// node's cache belongs to the newest generation that reached the node.
#[derive(Debug)]
struct Track {
    newest: u64,
    copies: BTreeMap<u64, u64>,
    at_node: Vec<u64>,
}

impl Meter {
    pub(super) fn new(chain: &Chain, samples: bool) -> Self {
        let hops = chain.hops;
        Self {
            hops,
            goal: chain.segments as u32 * u32::from(chain.payload),
            samples,
            links: Vec::new(),
            started: None,
            first: SeqNumber(0),
            fresh: 0,
            tracks: BTreeMap::new(),
            reached: BTreeSet::new(),
            sent: BTreeMap::new(),
            ports: None,
            held: 0,
            came: 0,
            done: false,
            counts: Counts { by_node: vec![0; hops - 1], ..Counts::default() },
        }
    }

    /// The counts, without time-outs and local round trips, which the caller adds.
    pub(super) fn counts(mut self) -> Counts {
        let by_nodes: u64 = self.counts.by_node.iter().sum();
        // A segment that a node sent without having received it comes from its cache.
        self.counts.local = by_nodes.saturating_sub(self.came.saturating_sub(self.held));
        self.counts
    }

    /// A segment with the ports of the connection and nothing else, once the connection has begun.
    pub(super) fn ports(&self) -> Option<&Segment> {
        self.ports.as_ref()
    }

    fn offset(&self, segment: &Segment) -> u32 {
        segment.seq.0.wrapping_sub(self.first.0)
    }

    fn data(&mut self, now: Instant, (from, to): (usize, usize), point: Point, id: u64, segment: &Segment) {
        let offset = self.offset(segment);
        match point {
            Point::Sent => {
                self.counts.data += 1;
                match from.checked_sub(1) {
                    Some(node) => self.counts.by_node[node] += 1,
                    None => self.sent_by_sender(now, offset, id, segment.payload.len() as u32),
                }
                if let Some(track) = self.tracks.get_mut(&offset) {
                    track.copies.entry(id).or_insert(track.at_node[from]);
                }
            }
            Point::Received => {
                self.came += u64::from(to < self.hops);
                let Some(track) = self.tracks.get_mut(&offset) else { return };
                let generation = track.copies.get(&id).copied().unwrap_or(0);
                if to < self.hops {
                    track.at_node[to] = track.at_node[to].max(generation);
                } else {
                    self.counts.unnecessary += track.newest - generation;
                    self.tracks.remove(&offset);
                    self.reached.insert(offset);
                }
            }
            Point::Dropped(_) => {}
        }
    }

    fn sent_by_sender(&mut self, now: Instant, offset: u32, id: u64, len: u32) {
        let again = offset < self.fresh;
        self.counts.resent += u64::from(again);
        self.fresh = self.fresh.max(offset + len);
        if self.samples {
            if again {
                // A retransmission invalidates all running measurements, as at a sender that times
                // one segment.
                self.sent.clear();
            } else {
                self.sent.insert(offset + len, now);
            }
        }
        if self.reached.contains(&offset) {
            return;
        }
        let nodes = self.hops;
        let track = self.tracks.entry(offset).or_insert_with(|| Track {
            newest: 0,
            copies: BTreeMap::new(),
            at_node: vec![0; nodes],
        });
        track.newest += u64::from(again);
        track.copies.insert(id, track.newest);
    }

    fn ack(&mut self, now: Instant, to: usize, point: Point, segment: &Segment) {
        match point {
            Point::Sent => self.counts.acks += 1,
            Point::Received if to == 0 => {
                let acked = segment.ack.0.wrapping_sub(self.first.0);
                if let Some(at) = self.sent.remove(&acked) {
                    let rtt = now.saturating_since(at).as_secs_f64();
                    self.counts.rtt.push(Sample { at: now.as_secs_f64(), rtt });
                }
                if acked >= self.goal && acked <= self.fresh {
                    self.done = true;
                    self.counts.completion = self.started.map(|at| now.saturating_since(at));
                }
            }
            Point::Received | Point::Dropped(_) => {}
        }
    }
}

impl Observer for Meter {
    fn on_attach(&mut self, _: &[&str], links: &[(NodeId, NodeId)]) {
        self.links = links.to_vec();
    }

    fn on_packet(&mut self, now: Instant, link: LinkId, point: Point, packet: &Packet) {
        let Payload::Tcp(segment) = &packet.payload else { return };
        if self.done {
            return;
        }
        let (from, to) = self.links[link.index()];
        let (from, to) = (from.index(), to.index());
        if segment.flags.contains(Flags::SYN) {
            if from == 0 && self.started.is_none() {
                self.started = Some(now);
                self.first = segment.seq + 1;
                let (src_port, dst_port) = (segment.src_port, segment.dst_port);
                self.ports = Some(Segment { src_port, dst_port, ..Segment::default() });
            }
        } else if to > from && !segment.payload.is_empty() {
            self.data(now, (from, to), point, packet.id, segment);
        } else if to < from && segment.is_pure_ack() {
            self.ack(now, to, point, segment);
        }
    }

    fn on_node_drop(&mut self, _: Instant, node: NodeId, _: NodeDrop, packet: &Packet) {
        let Payload::Tcp(segment) = &packet.payload else { return };
        let between = node.index() > 0 && node.index() < self.hops;
        self.held += u64::from(!self.done && between && !segment.payload.is_empty());
    }
}
