//! Records when the transport first sent the packets of a [`super::PacketSource`] over TCP.

use std::collections::BTreeMap;

use anabranch_core::segment::{Flags, Segment, SeqNumber};
use anabranch_core::time::Instant;

use crate::packet::{LinkId, NodeId, Packet, Payload};
use crate::trace::{Observer, Point};

/// An observer that records when the source first passed the first byte of each packet to a link.
/// The time from the generation of the packet until then is its wait in the transport; it includes
/// waiting for a route.
///
/// The observer reads packet numbers from the segments, so it also follows a source that connects
/// again. If a segment contains fewer than four bytes of a number, the number is assumed to be one
/// more than that of the packet before.
#[derive(Debug)]
pub struct FirstSent {
    port: u16,
    payload: u16,
    from: Vec<NodeId>,
    connections: BTreeMap<(NodeId, u16), Sent>,
    times: BTreeMap<(NodeId, u32), Instant>,
}

/// Data sent on a connection.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// First byte that has not been sent yet.
    next: SeqNumber,
    /// Distance from there to the start of the next packet.
    to_next: u32,
    /// Number of that packet, if the one before is known.
    number: Option<u32>,
}

impl FirstSent {
    /// For packets of `payload` bytes to `port`.
    pub fn new(port: u16, payload: u16) -> Self {
        let (connections, times) = (BTreeMap::new(), BTreeMap::new());
        Self { port, payload: payload.max(super::LEAST_PACKET), from: Vec::new(), connections, times }
    }

    /// Time at which a packet of a source was first sent; `None` if it was not.
    pub fn time(&self, source: NodeId, number: u32) -> Option<Instant> {
        self.times.get(&(source, number)).copied()
    }

    fn note(&mut self, now: Instant, source: NodeId, segment: &Segment) {
        let key = (source, segment.src_port);
        if segment.flags.contains(Flags::SYN) {
            let next = segment.seq + 1;
            self.connections.insert(key, Sent { next, to_next: 0, number: None });
            return;
        }
        let Some(sent) = self.connections.get_mut(&key) else { return };
        let end = segment.seq + segment.payload.len() as u32;
        let new = end.distance(sent.next);
        if new <= 0 {
            return;
        }
        let mut rest = &segment.payload[segment.payload.len().saturating_sub(new as usize)..];
        sent.next = end;
        while rest.len() > sent.to_next as usize {
            rest = &rest[sent.to_next as usize..];
            let said = rest.first_chunk().map(|octets| u32::from_be_bytes(*octets));
            if let Some(number) = said.or(sent.number) {
                self.times.entry((source, number)).or_insert(now);
                sent.number = Some(number.wrapping_add(1));
            }
            sent.to_next = self.payload.into();
        }
        sent.to_next -= rest.len() as u32;
    }
}

impl Observer for FirstSent {
    fn on_attach(&mut self, _: &[&str], links: &[(NodeId, NodeId)]) {
        self.from = links.iter().map(|(from, _)| *from).collect();
    }

    fn on_packet(&mut self, now: Instant, link: LinkId, point: Point, packet: &Packet) {
        if let (Point::Sent, Payload::Tcp(segment)) = (point, &packet.payload)
            && segment.dst_port == self.port
            && self.from[link.index()] == packet.src
        {
            self.note(now, packet.src, segment);
        }
    }
}
