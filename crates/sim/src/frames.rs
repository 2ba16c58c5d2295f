//! Packets as frames of IEEE 802.15.4: how long these are, and their octets.
//!
//! A node's short address is its number, counted from 1; context 0 of 6LoWPAN (RFC 6282) is the
//! prefix of all nodes, so that an address takes two octets or none.

use std::net::{IpAddr, Ipv6Addr};

use anabranch_core::time::Instant;
use anabranch_wire::ieee802154::{self, Address, Fcs, Header, Kind};
use anabranch_wire::ip::{EmitError, Protocol, UDP_HEADER_LEN};
use anabranch_wire::sixlowpan::{
    Compressed, Context, Contexts, Ipv6Header, Link, MAX_DATAGRAM, Split, compress, compressed_header_len,
    split, split_at,
};

use crate::address::address_of;
use crate::octets;
use crate::packet::{IpVersion, NodeId, Packet, Payload};
use crate::radio::{Csl, PhyConfig};

/// The PAN of all nodes.
pub const PAN: u16 = 0xabcd;

/// The contexts that all nodes share.
pub const CONTEXTS: Contexts = match Context::new(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0), 112) {
    Ok(context) => Contexts::new().with(0, context),
    Err(_) => Contexts::new(),
};

/// The longest packet that the radio carries.
pub const MTU: u32 = 1280;
const _: () = assert!(MTU as usize <= MAX_DATAGRAM);

/// The short address of a node.
pub fn short_address(node: NodeId) -> u16 {
    (node.0 + 1) as u16
}

/// How a packet is cut into frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    datagram: Compressed,
    /// Octets of MAC payload that a frame has room for.
    room: usize,
    /// Octets of the packet that the first piece stands for, if it is to be other than as many as
    /// fit.
    first: Option<u16>,
    pieces: u32,
    fcs: Fcs,
}

/// Octets of the MAC header, with short addresses.
const HEADER: usize = 9;

/// What frames a physical layer has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Octets of the longest PSDU, FCS included.
    pub max_psdu: u16,
    /// How each ends.
    pub fcs: Fcs,
}

impl From<&PhyConfig> for Shape {
    fn from(phy: &PhyConfig) -> Self {
        Self { max_psdu: phy.max_psdu, fcs: phy.fcs }
    }
}

impl Cut {
    /// Frames, at least 1.
    pub fn pieces(&self) -> u32 {
        self.pieces
    }

    /// Octets of a frame, MAC header and FCS included.
    pub fn psdu_len(&self, piece: u32) -> u16 {
        let piece = self.split().and_then(|mut pieces| pieces.nth(piece as usize));
        piece.map_or(0, |piece| (HEADER + piece.frame_payload_len() + self.fcs.len()) as u16)
    }

    fn split(&self) -> Option<Split> {
        match self.first {
            None => split(&self.datagram, self.room).ok(),
            Some(first) => split_at(&self.datagram, self.room, first).ok(),
        }
    }

    fn new(datagram: Compressed, (room, fcs): (usize, Fcs), first: Option<u16>) -> Option<Self> {
        let cut = Self { datagram, room, first, pieces: 0, fcs };
        let pieces = cut.split()?.len() as u32;
        Some(Self { pieces, ..cut })
    }
}

fn link((from, to): (NodeId, Option<NodeId>)) -> Link {
    let dst = to.map_or(Address::BROADCAST, |to| Address::Short(short_address(to)));
    Link { src: Address::Short(short_address(from)), dst }
}

/// Cuts a packet that goes from one node to another, or to everybody, into frames. `None` if it
/// does not fit.
pub fn cut(ip: IpVersion, packet: &Packet, hop: (NodeId, Option<NodeId>), shape: Shape) -> Option<Cut> {
    Cut::new(compressed(ip, packet, packet.hop_limit, &link(hop))?, (room(shape), shape.fcs), None)
}

/// As [`cut`], for pieces that others pass on one by one: the first has room for the longest header
/// that one of them may need, who can leave out neither address nor hop limit.
pub fn cut_to_pass_on(
    ip: IpVersion,
    packet: &Packet,
    hop: (NodeId, Option<NodeId>),
    shape: Shape,
) -> Option<Cut> {
    let cut = cut(ip, packet, hop, shape)?;
    if cut.pieces == 1 {
        return Some(cut);
    }
    let between = Link { src: Address::Short(NOBODY), dst: Address::Short(NOBODY) };
    let longest = compressed(ip, packet, INLINE_HOP_LIMIT, &between)?;
    let first = split(&longest, cut.room).ok()?.next()?.uncompressed_len;
    Cut::new(cut.datagram, (cut.room, cut.fcs), Some(first))
}

/// As the packet was cut by `before`, from whom its pieces come, with the header that it has on
/// this hop. `None` if that does not fit into the first.
pub fn cut_again(ip: IpVersion, packet: &Packet, hop: (NodeId, Option<NodeId>), before: &Cut) -> Option<Cut> {
    let first = before.split()?.next()?.uncompressed_len;
    Cut::new(compressed(ip, packet, packet.hop_limit, &link(hop))?, (before.room, before.fcs), Some(first))
}

fn room(shape: Shape) -> usize {
    usize::from(shape.max_psdu).saturating_sub(HEADER + shape.fcs.len())
}

/// Lengths of a packet as 6LoWPAN has it on a link.
fn compressed(ip: IpVersion, packet: &Packet, hop_limit: u8, link: &Link) -> Option<Compressed> {
    let (IpAddr::V6(src), IpAddr::V6(dst)) = (address_of(ip, packet.src), address_of(ip, packet.dst)) else {
        return None;
    };
    let (next_header, ports) = match &packet.payload {
        Payload::Tcp(_) => (Protocol::TCP, None),
        Payload::Udp(udp) => (Protocol::UDP, Some([udp.src_port, udp.dst_port])),
        Payload::Opaque(opaque) => (opaque.protocol, None),
        // IP fragments do not go over the air: a packet that is too long is cut below IP.
        Payload::Fragment(_) => return None,
    };
    let header = Ipv6Header {
        src,
        dst,
        traffic_class: packet.traffic_class,
        flow_label: packet.path.into(),
        next_header,
        hop_limit,
    };
    let header_len = compressed_header_len(&header, ports, link, &CONTEXTS);
    let uncompressed_len = packet.wire_len as usize;
    // A UDP header is compressed with that of IP.
    let whole_headers = ip.header_len() as usize + ports.map_or(0, |_| UDP_HEADER_LEN);
    let len = uncompressed_len - whole_headers + header_len;
    Some(Compressed { header_len, len, uncompressed_len })
}

/// The short address of all nodes.
const EVERYBODY: u16 = 0xffff;
/// A short address of no node.
const NOBODY: u16 = 0xfffe;
/// One of the hop limits that RFC 6282 has no bits for (section 3.1.1).
const INLINE_HOP_LIMIT: u8 = 2;

/// A frame that has left the air. Its octets are made only if somebody wants them.
#[derive(Clone, Copy, Debug)]
pub struct AirFrame<'a> {
    /// When its preamble began.
    pub start: Instant,
    /// When its last octet, or what was sent of it, ended.
    pub end: Instant,
    /// Its sender.
    pub from: NodeId,
    /// For whom; `None` for all.
    pub to: Option<NodeId>,
    /// Its sequence number. Every transmission of a frame has the same; an acknowledgement has that
    /// of the frame.
    pub seq: u8,
    /// Octets of the PSDU: the frame from its frame control field to its FCS.
    pub psdu_len: u16,
    /// How it ends.
    pub fcs: Fcs,
    /// What became of it.
    pub reception: Reception,
    /// What it carries.
    pub content: Content<'a>,
}

/// What became of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reception {
    /// One of those that it was for, at least, has received it.
    Received,
    /// Nobody that it was for has received it.
    Missed,
    /// Its sender went down in its midst, so that nobody could.
    BrokenOff,
}

/// What a frame carries.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// Nothing: it is an acknowledgement. An enhanced one says when its sender samples the channel.
    Ack(Option<Csl>),
    /// When the frame begins that it announces: it is a wake-up frame.
    Wakeup {
        /// From its end, in units of 10 symbols.
        rendezvous: u16,
    },
    /// A packet, or a piece of one.
    Piece {
        /// The packet.
        packet: &'a Packet,
        /// How it is cut.
        cut: &'a Cut,
        /// Which piece, from 0.
        piece: u32,
        /// What the pieces of a packet have in common: the tag of its datagram (RFC 4944 section
        /// 5.3).
        tag: u16,
        /// The frame version, 2 for a receiver that sleeps; else 0 or 1, by its length.
        version: u8,
        /// It says that another frame for its receiver follows.
        pending: bool,
    },
}

impl AirFrame<'_> {
    /// Appends the octets, [`AirFrame::psdu_len`] of them; on an error `out` is as it was.
    ///
    /// # Errors
    ///
    /// What keeps the packet from being said in octets.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), EmitError> {
        let start = out.len();
        match self.content {
            Content::Ack(None) => ieee802154::emit_ack(self.seq, self.fcs, out),
            Content::Ack(Some(csl)) => {
                ieee802154::emit_enh_ack(self.seq, PAN, self.short_to(), csl, self.fcs, out);
            }
            Content::Wakeup { rendezvous } => {
                ieee802154::emit_wakeup(PAN, self.short_to(), rendezvous, self.fcs, out);
            }
            Content::Piece { packet, cut, piece, tag, version, pending } => {
                self.emit_data((packet, cut), (piece, tag), (version, pending), out)?;
            }
        }
        // What the radio has timed is what is on the air.
        debug_assert_eq!(out.len() - start, usize::from(self.psdu_len), "{self:?}");
        Ok(())
    }

    fn emit_data(
        &self,
        (packet, cut): (&Packet, &Cut),
        (piece, tag): (u32, u16),
        (version, pending): (u8, bool),
        out: &mut Vec<u8>,
    ) -> Result<(), EmitError> {
        let packet = octets::write(IpVersion::V6, packet)?;
        let link = link((self.from, self.to));
        let mut datagram = Vec::with_capacity(packet.len());
        let lengths = compress(&packet, &link, &CONTEXTS, &mut datagram).expect("it is an IPv6 packet");
        debug_assert_eq!(lengths, cut.datagram, "{self:?}");
        let mut pieces = cut.split().expect("it has been cut before");
        let piece = pieces.nth(piece as usize).expect("a piece on the air is one of those that there are");
        let mut payload = Vec::with_capacity(piece.frame_payload_len());
        piece.emit_header(tag, &mut payload);
        payload.extend_from_slice(&datagram[piece.range]);
        let Link { src, dst } = link;
        let header =
            Header { kind: Kind::Data, ack_request: self.to.is_some(), seq: self.seq, pan: PAN, dst, src };
        let emitted = match version {
            2 => ieee802154::emit_version_2(&header, pending, &payload, self.fcs, out),
            _ => ieee802154::emit(&header, &payload, self.fcs, out),
        };
        emitted.expect("no broadcast asks for an acknowledgement");
        Ok(())
    }

    fn short_to(&self) -> u16 {
        self.to.map_or(EVERYBODY, short_address)
    }
}
