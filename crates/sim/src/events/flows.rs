//! Unidirectional flows, and the values relative to which the next record of each is encoded.

use std::collections::BTreeMap;

use anabranch_core::segment::{Flags, Segment};
use anabranch_core::tcp::Info;
use anabranch_wire::eventlog::{Record, packet as flag, state as figure, tag};
use anabranch_wire::ip::Protocol;
use anabranch_wire::mptcp::WireDsn;

use crate::packet::{LinkId, NodeId, Packet, Payload, Whole};
use crate::trace::ConnectionView;

/// Source, destination, transport, ports.
type Key = (NodeId, NodeId, u8, u16, u16);

/// All flows so far.
#[derive(Debug, Default)]
pub(super) struct Flows {
    numbers: BTreeMap<Key, u32>,
    flows: Vec<Flow>,
    /// The multipath connections, each identified by its node and connection.
    groups: BTreeMap<(NodeId, crate::stream::ConnId), u32>,
    /// Node at which each link begins.
    starts: Vec<NodeId>,
    definition: Record,
}

#[derive(Debug, Default)]
struct Flow {
    seq: u32,
    ack: u32,
    dsn: u64,
    figures: Figures,
    member: bool,
}

/// The statistics of a connection, in the order of their flags.
type Figures = [u64; 8];

/// The statistics that have changed.
#[derive(Debug)]
pub(super) struct Change {
    mask: u8,
    before: Figures,
    now: Figures,
}

impl Change {
    pub(super) fn put(&self, record: &mut Record) {
        record.octet(self.mask);
        for (i, (now, before)) in self.now.iter().zip(&self.before).enumerate() {
            if self.mask >> i & 1 == 1 {
                record.difference(*now as i64, *before as i64);
            }
        }
    }
}

impl Flows {
    pub(super) fn set_links(&mut self, links: &[(NodeId, NodeId)]) {
        self.starts = links.iter().map(|(from, _)| *from).collect();
    }

    pub(super) fn start_of(&self, link: LinkId) -> NodeId {
        self.starts[link.index()]
    }

    /// The flow of a packet. `define` gets the record of a new flow.
    pub(super) fn of_packet(&mut self, packet: &Packet, define: impl FnMut(&[u8])) -> u32 {
        let (protocol, source, destination) = match &packet.payload {
            Payload::Tcp(segment) => (Protocol::TCP.0, segment.src_port, segment.dst_port),
            Payload::Udp(datagram) => (Protocol::UDP.0, datagram.src_port, datagram.dst_port),
            Payload::Opaque(opaque) => (opaque.protocol.0, 0, 0),
            Payload::Fragment(piece) => match &*piece.whole {
                Whole::Tcp(segment) => (Protocol::TCP.0, segment.src_port, segment.dst_port),
                Whole::Udp(datagram) => (Protocol::UDP.0, datagram.src_port, datagram.dst_port),
                Whole::Opaque(opaque) => (opaque.protocol.0, 0, 0),
            },
        };
        self.number((packet.src, packet.dst, protocol, source, destination), define)
    }

    /// The flow from `node` on a TCP connection.
    pub(super) fn of_ends(
        &mut self,
        node: NodeId,
        peer: NodeId,
        (ours, theirs): (u16, u16),
        define: impl FnMut(&[u8]),
    ) -> u32 {
        self.number((node, peer, Protocol::TCP.0, ours, theirs), define)
    }

    /// The flow from a connection's node; for a subflow the record says so.
    pub(super) fn of_connection(&mut self, seen: &ConnectionView<'_>, mut define: impl FnMut(&[u8])) -> u32 {
        let flow = self.of_ends(seen.node, seen.peer, seen.ports, &mut define);
        if let (Some(subflow), false) = (seen.subflow, self.flows[flow as usize].member) {
            self.flows[flow as usize].member = true;
            let next = self.groups.len() as u32;
            let group = *self.groups.entry((seen.node, seen.id)).or_insert(next);
            let record = self.definition.begin(tag::SUBFLOW);
            define(record.number(flow.into()).number(group.into()).number(subflow.into()).octets());
        }
        flow
    }

    fn number(&mut self, key: Key, mut define: impl FnMut(&[u8])) -> u32 {
        let next = self.flows.len() as u32;
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.flows.push(Flow::default());
            let (source, destination, protocol, from, to) = key;
            let record = self.definition.begin(tag::FLOW);
            // 0 stands for a broadcast destination, which is not a node.
            let destination = u64::from(destination.0) + 1;
            record.number(source.0.into()).number(if destination > EVERYBODY { 0 } else { destination });
            define(record.octet(protocol).number(from.into()).number(to.into()).octets());
        }
        number
    }

    /// The record of a packet.
    pub(super) fn describe(
        &mut self,
        record: &mut Record,
        flow: u32,
        packet: &Packet,
        maker: NodeId,
        before: &mut i64,
    ) {
        let number = flow;
        let flow = &mut self.flows[flow as usize];
        // A fragment is described with the segment to which it belongs.
        let (segment, fragment) = match &packet.payload {
            Payload::Tcp(segment) => (Some(segment), None),
            Payload::Udp(_) | Payload::Opaque(_) => (None, None),
            Payload::Fragment(piece) => match &*piece.whole {
                Whole::Tcp(segment) => (Some(segment), Some(piece)),
                Whole::Udp(_) | Whole::Opaque(_) => (None, Some(piece)),
            },
        };
        let mapping = segment.and_then(mapping);
        let mut flags = segment.map_or(0, flags_of);
        flags |= if mapping.is_some() { flag::MAPPED } else { 0 };
        flags |= if fragment.is_some() { flag::FRAGMENT } else { 0 };
        flags |= if maker != packet.src { flag::MADE_BY_ANOTHER } else { 0 };
        record.begin(tag::PACKET).difference(packet.id as i64, *before).number(number.into());
        record.octet(flags).number(packet.wire_len.into()).octet(packet.path);
        *before = packet.id as i64;
        if maker != packet.src {
            record.number(maker.0.into());
        }
        if let Some(piece) = fragment {
            let whole = piece.whole.wire_len() as u64;
            record.number(piece.offset.into()).number(piece.len.into()).number(whole);
        }
        let Some(segment) = segment else { return };
        record.difference(wrapped(segment.seq.0, flow.seq), 0).number(segment.payload.len() as u64);
        flow.seq = segment.seq.0;
        if segment.flags.contains(Flags::ACK) {
            record.difference(wrapped(segment.ack.0, flow.ack), 0);
            flow.ack = segment.ack.0;
        }
        record.number(segment.window.into());
        if let Some(dsn) = mapping {
            let dsn = match dsn {
                WireDsn::Long(number) => number.0,
                WireDsn::Short(low) => flow.dsn.wrapping_add_signed(wrapped(low, flow.dsn as u32)),
            };
            record.difference(dsn as i64, flow.dsn as i64);
            flow.dsn = dsn;
        }
    }

    /// The statistics of a connection that have changed since the last call.
    pub(super) fn change_of(&mut self, flow: u32, info: &Info) -> Option<Change> {
        let mut now = Figures::default();
        let mut set = |flag: u8, figure: u64| now[flag.trailing_zeros() as usize] = figure;
        set(figure::CWND, info.cwnd.into());
        set(figure::SSTHRESH, if info.ssthresh == u32::MAX { 0 } else { info.ssthresh.into() });
        set(figure::SRTT, info.srtt.map_or(0, |srtt| srtt.as_nanos() / 1000));
        set(figure::PEER_WINDOW, info.peer_window.into());
        set(figure::IN_FLIGHT, info.in_flight.into());
        set(figure::UNSENT, info.unsent.into());
        set(figure::RETRANSMISSIONS, info.retransmissions);
        set(figure::TIMEOUTS, info.timeouts);
        let before = std::mem::replace(&mut self.flows[flow as usize].figures, now);
        let differs = |i: usize| u8::from(now[i] != before[i]) << i;
        let mask = (0..now.len()).map(differs).sum();
        (mask != 0).then_some(Change { mask, before, now })
    }
}

/// Position of a segment's bytes in the data of a multipath connection, if the segment contains it.
fn mapping(segment: &Segment) -> Option<WireDsn> {
    let mapping = segment.mptcp.dss()?.mapping()?;
    (!segment.payload.is_empty()).then_some(mapping.dsn)
}

fn flags_of(segment: &Segment) -> u8 {
    let pairs =
        [(Flags::SYN, flag::SYN), (Flags::FIN, flag::FIN), (Flags::RST, flag::RST), (Flags::ACK, flag::ACK)];
    let said = pairs.iter().filter(|(tcp, _)| segment.flags.contains(*tcp)).map(|(_, ours)| ours);
    said.fold(flag::TCP, |flags, ours| flags | ours)
}

/// The signed distance between two numbers of 32 bits.
fn wrapped(now: u32, before: u32) -> i64 {
    (now.wrapping_sub(before) as i32).into()
}

/// One more than the highest number of a node, see [`NodeId::BROADCAST`].
const EVERYBODY: u64 = NodeId::BROADCAST.0 as u64;
