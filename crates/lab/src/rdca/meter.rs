//! What moves between the senders and the sink, counted by an omniscient observer.

use std::collections::BTreeMap;

use anabranch_core::rdca::Message;
use anabranch_core::time::Instant;
use anabranch_sim::packet::{LinkId, NodeId, Packet, Payload};
use anabranch_sim::trace::{Observer, Point};
use anabranch_wire::rdca::decode;

/// What a packet is to the transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Data,
    Control,
}

/// The observer. Packets count where they are made, and where they come to their end; not those that are passed on.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// Port of the sink.
    port: u16,
    links: Vec<(NodeId, NodeId)>,
    /// Data packets by number: when each left its source, and whether it has come to the sink.
    data: BTreeMap<u64, (Instant, bool)>,
    /// Control packets by number.
    control: BTreeMap<u64, Instant>,
}

impl Meter {
    /// For a sink at that port.
    pub(super) fn of(port: u16) -> Self {
        Self { port, ..Self::default() }
    }

    /// Of the data packets sent before `until`, their number and how many came to the sink.
    pub(super) fn data(&self, until: Instant) -> (u64, u64) {
        let sent = self.data.values().filter(|(at, _)| *at < until);
        sent.fold((0, 0), |(sent, came), (_, here)| (sent + 1, came + u64::from(*here)))
    }

    /// Control packets sent before `until`, either way.
    pub(super) fn control(&self, until: Instant) -> u64 {
        self.control.values().filter(|at| **at < until).count() as u64
    }

    fn kind(&self, packet: &Packet) -> Option<Kind> {
        match &packet.payload {
            Payload::Tcp(segment) if segment.payload.is_empty() => Some(Kind::Control),
            Payload::Tcp(_) => Some(Kind::Data),
            Payload::Udp(datagram) if [datagram.dst_port, datagram.src_port].contains(&self.port) => {
                // What is no message of RDCA's is a datagram of nobody's control.
                match decode(&datagram.payload) {
                    Ok(Message::Data(_)) | Err(_) => Some(Kind::Data),
                    Ok(_) => Some(Kind::Control),
                }
            }
            Payload::Udp(_) | Payload::Opaque(_) | Payload::Fragment(_) => None,
        }
    }
}

impl Observer for Meter {
    fn on_attach(&mut self, _: &[&str], links: &[(NodeId, NodeId)]) {
        self.links = links.to_vec();
    }

    fn on_packet(&mut self, now: Instant, link: LinkId, point: Point, packet: &Packet) {
        let (from, to) = self.links[link.index()];
        let (first, last) =
            (from == packet.src && point == Point::Sent, to == packet.dst && point == Point::Received);
        if !first && !last {
            return;
        }
        match self.kind(packet) {
            Some(Kind::Data) => {
                let entry = self.data.entry(packet.id).or_insert((now, false));
                entry.1 |= last;
            }
            Some(Kind::Control) if first => {
                self.control.entry(packet.id).or_insert(now);
            }
            Some(Kind::Control) | None => {}
        }
    }
}
