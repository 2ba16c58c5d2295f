//! Packets as IEEE 802.15.4 frames: their lengths and bytes.
//!
//! The short address of a node is its number, counted from 1. Context 0 of 6LoWPAN (RFC 6282) is
//! the prefix of all nodes, so an address takes two bytes or none.

use std::net::{IpAddr, Ipv6Addr};

use anabranch_core::time::Instant;
use anabranch_wire::ieee802154::{self, Address, Fcs, Header, Kind};
use anabranch_wire::ip::{self, EmitError, Protocol, UDP_HEADER_LEN};
use anabranch_wire::sixlowpan::{
    Compressed, Context, Contexts, Ipv6Header, Link, MAX_DATAGRAM, Split, compress, compressed_header_len,
    split, split_at,
};

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

/// The largest packet that the radio carries, in bytes.
pub const MTU: u32 = 1280;
const _: () = assert!(MTU as usize <= MAX_DATAGRAM);

/// The short address of a node.
pub fn short_address(node: NodeId) -> u16 {
    (node.0 + 1) as u16
}

/// Division of a packet into frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    datagram: Compressed,
    /// Bytes of MAC payload for which a frame has room.
    room: usize,
    /// Uncompressed bytes that the first fragment represents, if it is not to carry as many as fit.
    first: Option<u16>,
    pieces: u32,
    fcs: Fcs,
}

/// Length of the MAC header with short addresses, in bytes.
const HEADER: usize = 9;

/// Format of the frames of a physical layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Largest PSDU in bytes, including the FCS.
    pub max_psdu: u16,
    /// Frame check sequence.
    pub fcs: Fcs,
}

impl From<&PhyConfig> for Shape {
    fn from(phy: &PhyConfig) -> Self {
        Self { max_psdu: phy.max_psdu, fcs: phy.fcs }
    }
}

impl Cut {
    /// Number of frames, at least 1.
    pub fn pieces(&self) -> u32 {
        self.pieces
    }

    /// Length of a frame in bytes, including MAC header and FCS.
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

/// Divides a packet from one node to another, or to all, into frames. `None` if it does not fit.
pub fn cut(ip: IpVersion, packet: &Packet, hop: (NodeId, Option<NodeId>), shape: Shape) -> Option<Cut> {
    Cut::new(compressed(ip, packet, packet.hop_limit, &link(hop))?, (room(shape), shape.fcs), None)
}

/// As [`cut`], for fragments that other nodes forward one by one. The first has room for the
/// longest header that any of these nodes may need, which is one without elided addresses and hop
/// limit.
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

/// Divides a packet as the previous hop did (`before`), with the header for this hop. `None` if the
/// header does not fit into the first fragment.
pub fn cut_again(ip: IpVersion, packet: &Packet, hop: (NodeId, Option<NodeId>), before: &Cut) -> Option<Cut> {
    let first = before.split()?.next()?.uncompressed_len;
    Cut::new(compressed(ip, packet, packet.hop_limit, &link(hop))?, (before.room, before.fcs), Some(first))
}

fn room(shape: Shape) -> usize {
    usize::from(shape.max_psdu).saturating_sub(HEADER + shape.fcs.len())
}

/// Lengths of a packet with 6LoWPAN compression on a link.
fn compressed(version: IpVersion, packet: &Packet, hop_limit: u8, link: &Link) -> Option<Compressed> {
    let ports = match &packet.payload {
        Payload::Udp(udp) => Some([udp.src_port, udp.dst_port]),
        // The kernel's packets have headers after that of IP that may be compressed. Simulated
        // nodes send no IP fragments over the air: 6LoWPAN fragments their packets.
        Payload::Fragment(_) => return compressed_from_outside(version, packet, hop_limit, link),
        Payload::Opaque(opaque) if opaque.protocol != Protocol::ICMPV6 => {
            return compressed_from_outside(version, packet, hop_limit, link);
        }
        Payload::Tcp(_) | Payload::Opaque(_) => None,
    };
    let ip::Header { src, dst, traffic_class, flow_label, protocol, .. } = octets::header(version, packet);
    let (IpAddr::V6(src), IpAddr::V6(dst)) = (src, dst) else { return None };
    let header = Ipv6Header { src, dst, traffic_class, flow_label, next_header: protocol, hop_limit };
    let header_len = compressed_header_len(&header, ports, link, &CONTEXTS);
    let uncompressed_len = packet.wire_len as usize;
    // A UDP header is compressed together with that of IP.
    let whole_headers = version.header_len() as usize + ports.map_or(0, |_| UDP_HEADER_LEN);
    let len = uncompressed_len - whole_headers + header_len;
    Some(Compressed { header_len, len, uncompressed_len })
}

fn compressed_from_outside(
    version: IpVersion,
    packet: &Packet,
    hop_limit: u8,
    link: &Link,
) -> Option<Compressed> {
    let written = octets::write(version, &Packet { hop_limit, ..packet.clone() }).ok()?;
    compress(&written, link, &CONTEXTS, &mut Vec::new()).ok()
}

/// The broadcast short address.
const EVERYBODY: u16 = 0xffff;
/// A short address that no node has.
const NOBODY: u16 = 0xfffe;
/// A hop limit that RFC 6282 cannot compress (section 3.1.1).
const INLINE_HOP_LIMIT: u8 = 2;

/// A frame whose transmission has ended. Its bytes are produced only on request.
#[derive(Clone, Copy, Debug)]
pub struct AirFrame<'a> {
    /// Start of the preamble.
    pub start: Instant,
    /// End of its last byte, or of the part that was sent.
    pub end: Instant,
    /// Sender.
    pub from: NodeId,
    /// Destination; `None` for a broadcast.
    pub to: Option<NodeId>,
    /// Sequence number. All transmissions of a frame have the same number; an acknowledgement has
    /// that of the acknowledged frame.
    pub seq: u8,
    /// Length of the PSDU in bytes: from the frame control field to the FCS.
    pub psdu_len: u16,
    /// Frame check sequence.
    pub fcs: Fcs,
    /// Result of the transmission.
    pub reception: Reception,
    /// Content of the frame.
    pub content: Content<'a>,
}

/// Result of a transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reception {
    /// At least one of the destinations has received it.
    Received,
    /// No destination has received it.
    Missed,
    /// The sender went down during the frame, so no station could receive it.
    BrokenOff,
}

/// Content of a frame.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// An acknowledgement; an enhanced one contains the time of its sender's next sample.
    Ack(Option<Csl>),
    /// A wake-up frame, which announces the start of another frame.
    Wakeup {
        /// Time from the end of this frame, in units of 10 symbols.
        rendezvous: u16,
    },
    /// A packet, or a fragment of one.
    Piece {
        /// The packet.
        packet: &'a Packet,
        /// Division of the packet into frames.
        cut: &'a Cut,
        /// Index of the fragment, from 0.
        piece: u32,
        /// Tag that the fragments of a packet share (RFC 4944 section 5.3).
        tag: u16,
        /// Frame version: 2 for a sleeping receiver, otherwise 0 or 1 depending on the length.
        version: u8,
        /// Whether the frame announces another one to its receiver.
        pending: bool,
    },
}

impl AirFrame<'_> {
    /// Appends the bytes of the frame, [`AirFrame::psdu_len`] of them. On an error `out` is
    /// unchanged.
    ///
    /// # Errors
    ///
    /// If the packet cannot be encoded.
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
        // The emitted length equals the one with which the radio timed the frame.
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
