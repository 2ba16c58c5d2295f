//! What moves through the network: packets, and the slab that holds them. Packets never move in
//! memory between sender and receiver; links and queues pass [`PacketHandle`]s, which tell a router
//! all that it has to know.

use std::fmt;
use std::mem;
use std::sync::Arc;

use anabranch_core::aodv;
use anabranch_core::segment::{Ecn, Segment};
use anabranch_wire::ip::{Protocol, UdpDatagram};
use bytes::Bytes;

/// The ICMPv6 type of RPL's messages (RFC 6550 section 6).
const RPL: u8 = 155;

/// A node of the network, by its index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// One direction of a link, by its index. [`crate::sim::Builder::cable`] gives both directions of a
/// cable consecutive indices.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// What carries packets over links, by the number that it has given itself; no two are alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MediumId(pub(crate) u8);

impl MediumId {
    /// Cables: point-to-point links with a queue of their own.
    pub const CABLE: Self = Self(0);
}

impl NodeId {
    /// As an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl NodeId {
    /// Not a node: everybody in reach that builds paths (ff02::1a, RFC 6550 section 6).
    pub const ALL_RPL_NODES: Self = Self(u32::MAX);
    /// Not a node: everybody in reach (255.255.255.255, or ff02::1 of RFC 4291 section 2.7.1).
    pub const BROADCAST: Self = Self(u32::MAX - 1);
}

impl LinkId {
    /// As an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}", self.0)
    }
}

impl fmt::Debug for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "l{}", self.0)
    }
}

/// Which Internet Protocol the whole network speaks. It decides header lengths, not addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IpVersion {
    /// IPv4, without options.
    V4,
    /// IPv6, without extension headers but the fragment header.
    #[default]
    V6,
}

impl IpVersion {
    /// Octets of the header of a whole packet.
    pub const fn header_len(self) -> u32 {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }

    /// What stands for a peer's MSS option that is missing (RFC 9293 section 3.7.1).
    pub const fn default_mss(self) -> u16 {
        match self {
            Self::V4 => 536,
            Self::V6 => 1220,
        }
    }

    /// Octets of the header of a fragment: IPv6 needs 8 more (RFC 8200 section 4.5).
    pub const fn fragment_header_len(self) -> u32 {
        match self {
            Self::V4 => 20,
            Self::V6 => 48,
        }
    }
}

/// Octets of a transport that the simulator does not speak; see
/// [`crate::network::Network::set_outside`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opaque {
    /// Which transport.
    pub protocol: Protocol,
    /// Its header and what that carries.
    pub octets: Bytes,
}

/// What a whole packet carries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Whole {
    /// A TCP segment.
    Tcp(Segment),
    /// A UDP datagram.
    Udp(UdpDatagram),
    /// Anything else.
    Opaque(Opaque),
}

impl Whole {
    /// Its transport.
    pub fn protocol(&self) -> Protocol {
        match self {
            Self::Tcp(_) => Protocol::TCP,
            Self::Udp(_) => Protocol::UDP,
            Self::Opaque(opaque) => opaque.protocol,
        }
    }

    /// Octets of the transport: its header and what that carries.
    #[inline]
    pub fn wire_len(&self) -> usize {
        match self {
            Self::Tcp(segment) => segment.wire_len(),
            Self::Udp(datagram) => datagram.wire_len(),
            Self::Opaque(opaque) => opaque.octets.len(),
        }
    }
}

impl Whole {
    /// With the ECN bits of the packet that carries it.
    pub(crate) fn marked(mut self, ecn: Ecn) -> Self {
        if let Self::Tcp(segment) = &mut self {
            segment.ecn = ecn;
        }
        self
    }
}

/// A packet that comes from outside of the simulation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Injected {
    /// The node that shall get it.
    pub dst: NodeId,
    /// Routers that may forward it.
    pub hop_limit: u8,
    /// The traffic class, or the type of service.
    pub traffic_class: u8,
    /// What it carries.
    pub whole: Whole,
}

/// A piece of a packet: `len` octets from `offset` of the transport octets of `whole`.
#[derive(Clone, Debug)]
pub struct Fragment {
    /// What was cut, shared between its pieces.
    pub whole: Arc<Whole>,
    /// Number of the packet that was cut.
    pub packet: u64,
    /// First octet of the piece, counted from the first of the transport's header; a multiple of 8.
    pub offset: u32,
    /// Octets of the piece; a multiple of 8, except in the last.
    pub len: u32,
}

impl Fragment {
    /// Further pieces follow (the M or MF flag).
    pub fn more(&self) -> bool {
        u64::from(self.offset) + u64::from(self.len) < self.whole.wire_len() as u64
    }
}

/// What a packet carries.
#[derive(Clone, Debug)]
pub enum Payload {
    /// A TCP segment.
    Tcp(Segment),
    /// A UDP datagram.
    Udp(UdpDatagram),
    /// Octets of another transport.
    Opaque(Opaque),
    /// A piece of one of these.
    Fragment(Fragment),
}

impl From<Whole> for Payload {
    fn from(whole: Whole) -> Self {
        match whole {
            Whole::Tcp(segment) => Self::Tcp(segment),
            Whole::Udp(datagram) => Self::Udp(datagram),
            Whole::Opaque(opaque) => Self::Opaque(opaque),
        }
    }
}

/// What a packet is to a loss model that tells data from acknowledgements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketKind {
    /// It carries payload octets, or opens, closes or resets a connection, or is not TCP.
    Data,
    /// A pure TCP acknowledgement.
    Ack,
}

/// An IP packet.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Number of the packet in this run, from 0; its fragments get numbers of their own.
    pub id: u64,
    /// The node that made it.
    pub src: NodeId,
    /// The node that shall get it.
    pub dst: NodeId,
    /// Octets on the wire, IP header included, link header not.
    pub wire_len: u32,
    /// The identification field, which fragments of one packet share; counted per source.
    pub identification: u32,
    /// Routers that may still forward it.
    pub hop_limit: u8,
    /// The traffic class (RFC 8200 section 7), with the ECN bits that the network has.
    pub traffic_class: u8,
    /// Number of the path that it follows, in the flow label; 0 is the best at each node.
    pub path: u8,
    /// What it carries.
    pub payload: Payload,
}

/// Who sends a packet to whom, and by which path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    /// The node that makes it.
    pub src: NodeId,
    /// The node that shall get it.
    pub dst: NodeId,
    /// Number of the path; 0 is the best at each node.
    pub path: u8,
}

impl Ends {
    /// By the best way.
    pub const fn new(src: NodeId, dst: NodeId) -> Self {
        Self { src, dst, path: 0 }
    }
}

impl Packet {
    /// What routers have changed of it.
    #[inline]
    fn update(&mut self, handle: &PacketHandle) {
        self.hop_limit = handle.hop_limit;
        self.traffic_class = handle.ecn.within(self.traffic_class);
        if let Payload::Tcp(segment) = &mut self.payload {
            segment.ecn = handle.ecn;
        }
    }

    /// Its number, or that of the packet that it is a piece of.
    pub fn whole_id(&self) -> u64 {
        match &self.payload {
            Payload::Fragment(piece) => piece.packet,
            Payload::Tcp(_) | Payload::Udp(_) | Payload::Opaque(_) => self.id,
        }
    }

    /// It is a message of the network's own routing: of AODV (RFC 3561) or RPL (RFC 6550).
    pub fn is_routing(&self) -> bool {
        match &self.payload {
            Payload::Udp(datagram) => is_of_aodv(datagram),
            Payload::Opaque(opaque) => {
                opaque.protocol == Protocol::ICMPV6 && opaque.octets.first() == Some(&RPL)
            }
            Payload::Tcp(_) | Payload::Fragment(_) => false,
        }
    }

    /// What a loss model takes it for.
    #[inline]
    pub fn kind(&self) -> PacketKind {
        let segment = match &self.payload {
            Payload::Tcp(segment) => segment,
            Payload::Udp(_) | Payload::Opaque(_) => return PacketKind::Data,
            Payload::Fragment(fragment) => match &*fragment.whole {
                Whole::Tcp(segment) => segment,
                Whole::Udp(_) | Whole::Opaque(_) => return PacketKind::Data,
            },
        };
        if segment.is_pure_ack() { PacketKind::Ack } else { PacketKind::Data }
    }
}

/// Which flow a packet is of, as a router tells flows apart: a hash of its addresses, its transport
/// and its ports. Those of a fragment are not looked at, since only the first has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flow(pub u64);

impl Packet {
    /// Its flow.
    pub fn flow(&self) -> Flow {
        let (Protocol(protocol), [from, to]) = match &self.payload {
            Payload::Tcp(segment) => (Protocol::TCP, [segment.src_port, segment.dst_port]),
            Payload::Udp(datagram) => (Protocol::UDP, [datagram.src_port, datagram.dst_port]),
            Payload::Opaque(opaque) => (opaque.protocol, [0; 2]),
            Payload::Fragment(fragment) => (fragment.whole.protocol(), [0; 2]),
        };
        let ends = u64::from(self.src.0) << 32 | u64::from(self.dst.0);
        let rest = u64::from(protocol) << 32 | u64::from(from) << 16 | u64::from(to);
        Flow(mix(mix(ends) ^ rest))
    }
}

/// Every bit of the result depends on every bit of the number, and no two numbers have the same
/// (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
pub(crate) fn mix(bits: u64) -> u64 {
    let bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// It is a message of AODV, which routers send from port to port (RFC 3561 section 5). An
/// application's datagram to that port is none.
pub(crate) fn is_of_aodv(datagram: &UdpDatagram) -> bool {
    [datagram.src_port, datagram.dst_port] == [aodv::PORT; 2]
}

/// Where a packet is in the [`PacketSlab`], and what routers and links read of it: so many packets
/// are under way that each look at one would miss the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketHandle {
    slot: u32,
    /// The node that shall get it.
    pub(crate) dst: NodeId,
    /// Octets on the wire.
    pub(crate) wire_len: u32,
    /// Routers that may still forward it. Counts here; [`PacketSlab`] writes it back.
    pub(crate) hop_limit: u8,
    /// What a loss model takes it for.
    pub(crate) kind: PacketKind,
    /// Its ECN bits, which links change. Count here; [`PacketSlab`] writes them back.
    pub(crate) ecn: Ecn,
    /// The link that it is in will lose it.
    pub(crate) lost: bool,
}

impl PacketHandle {
    /// Both are of the same packet, whatever has been done to it since.
    pub(crate) fn is_of(&self, other: Self) -> bool {
        self.slot == other.slot
    }
}

/// All packets under way.
#[derive(Debug, Default)]
pub struct PacketSlab {
    slots: Vec<Option<Packet>>,
    free: Vec<u32>,
}

impl PacketSlab {
    /// Puts a packet in.
    #[inline]
    pub fn insert(&mut self, packet: Packet) -> PacketHandle {
        let Packet { dst, wire_len, hop_limit, traffic_class, .. } = packet;
        let kind = packet.kind();
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(packet);
                slot
            }
            None => {
                let slot = u32::try_from(self.slots.len()).expect("fewer than 2^32 packets are under way");
                self.slots.push(Some(packet));
                slot
            }
        };
        PacketHandle { slot, dst, wire_len, hop_limit, kind, ecn: Ecn::of(traffic_class), lost: false }
    }

    /// Takes a packet out.
    ///
    /// # Panics
    ///
    /// If the handle is stale, as in the other methods.
    #[inline]
    pub fn remove(&mut self, handle: PacketHandle) -> Packet {
        let mut packet = self.slots[handle.slot as usize].take().expect("a handle is used once");
        self.free.push(handle.slot);
        packet.update(&handle);
        packet
    }

    /// Takes out a packet that carries a whole segment: its source, its path and the segment,
    /// without a copy of the rest. `None`, and nothing taken, if it is none.
    #[inline(always)]
    pub fn remove_segment(&mut self, handle: PacketHandle) -> Option<(NodeId, u8, Segment)> {
        let slot = &mut self.slots[handle.slot as usize];
        let Packet { src, path, payload, .. } = slot.as_mut().expect("a handle is used once");
        let Payload::Tcp(segment) = payload else { return None };
        segment.ecn = handle.ecn;
        let taken = (*src, *path, mem::take(segment));
        *slot = None;
        self.free.push(handle.slot);
        Some(taken)
    }

    /// Looks at a packet.
    #[inline]
    pub fn peek(&mut self, handle: PacketHandle) -> &Packet {
        let packet = self.slots[handle.slot as usize].as_mut().expect("a handle is used once");
        packet.update(&handle);
        packet
    }

    /// Looks at a packet, to change it.
    #[inline]
    pub fn get_mut(&mut self, handle: PacketHandle) -> &mut Packet {
        let packet = self.slots[handle.slot as usize].as_mut().expect("a handle is used once");
        packet.update(&handle);
        packet
    }

    /// Packets held.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// True when nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
