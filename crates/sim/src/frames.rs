//! Packets as frames of IEEE 802.15.4: how long these are, and their octets.
//!
//! A node's short address is its number, counted from 1; context 0 of 6LoWPAN (RFC 6282) is the prefix of all nodes, so
//! that an address takes two octets or none.

use std::net::{IpAddr, Ipv6Addr};

use anabranch_wire::ieee802154::{Address, FCS_LEN};
use anabranch_wire::ip::Protocol;
use anabranch_wire::sixlowpan::{
    Compressed, Context, Contexts, Ipv6Header, Link, MAX_DATAGRAM, compressed_header_len, split,
};

use crate::address::address_of;
use crate::packet::{IpVersion, NodeId, Packet, Payload};

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
    pieces: u32,
}

/// Octets of MAC header and FCS, with short addresses.
const OVERHEAD: usize = 9 + FCS_LEN;

impl Cut {
    /// Frames, at least 1.
    pub fn pieces(&self) -> u32 {
        self.pieces
    }

    /// Octets of a frame, MAC header and FCS included.
    pub fn psdu_len(&self, piece: u32) -> u16 {
        let pieces = split(&self.datagram, self.room).ok();
        let piece = pieces.and_then(|mut pieces| pieces.nth(piece as usize));
        piece.map_or(0, |piece| (OVERHEAD + piece.frame_payload_len()) as u16)
    }
}

fn link((from, to): (NodeId, Option<NodeId>)) -> Link {
    let dst = to.map_or(Address::BROADCAST, |to| Address::Short(short_address(to)));
    Link { src: Address::Short(short_address(from)), dst }
}

/// Cuts a packet that goes from one node to another, or to everybody, into frames of at most `max_psdu` octets. `None`
/// if it does not fit.
pub fn cut(ip: IpVersion, packet: &Packet, hop: (NodeId, Option<NodeId>), max_psdu: u16) -> Option<Cut> {
    let (IpAddr::V6(src), IpAddr::V6(dst)) = (address_of(ip, packet.src), address_of(ip, packet.dst)) else {
        return None;
    };
    let next_header = match &packet.payload {
        Payload::Tcp(_) => Protocol::TCP,
        Payload::Opaque(opaque) => opaque.protocol,
        // IP fragments do not go over the air: a packet that is too long is cut below IP.
        Payload::Fragment(_) => return None,
    };
    let header = Ipv6Header {
        src,
        dst,
        traffic_class: 0,
        flow_label: packet.path.into(),
        next_header,
        hop_limit: packet.hop_limit,
    };
    let header_len = compressed_header_len(&header, None, &link(hop), &CONTEXTS);
    let uncompressed_len = packet.wire_len as usize;
    let len = uncompressed_len - ip.header_len() as usize + header_len;
    let datagram = Compressed { header_len, len, uncompressed_len };
    let room = usize::from(max_psdu).saturating_sub(OVERHEAD);
    let pieces = split(&datagram, room).ok()?.len() as u32;
    Some(Cut { datagram, room, pieces })
}
