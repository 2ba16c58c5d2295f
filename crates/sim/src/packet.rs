//! Packets, and the slab that holds them. Packets do not move in memory between sender and
//! receiver; links and queues pass [`PacketHandle`]s, which contain everything that a router needs.

use std::fmt;
use std::mem;
use std::net::IpAddr;
use std::sync::Arc;

use anabranch_core::aodv;
use anabranch_core::segment::{Ecn, Segment};
use anabranch_wire::icmpv6;
use anabranch_wire::ip::{Protocol, UdpDatagram};
use bytes::Bytes;

/// A node, by its index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// One direction of a link, by its index. [`crate::sim::Builder::cable`] gives both directions of a
/// cable consecutive indices.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// A medium that carries packets over links, by the number that it has chosen; numbers are unique.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MediumId(pub(crate) u8);

impl MediumId {
    /// Cables: point-to-point links with their own queue.
    pub const CABLE: Self = Self(0);
}

impl NodeId {
    /// The index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl NodeId {
    /// Not a node: all nodes in range that build paths (ff02::1a, RFC 6550 section 6).
    pub const ALL_RPL_NODES: Self = Self(u32::MAX);
    /// Not a node: all nodes in range (255.255.255.255, or ff02::1 of RFC 4291 section 2.7.1).
    pub const BROADCAST: Self = Self(u32::MAX - 1);
}

impl LinkId {
    /// The index.
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

/// Internet Protocol of the whole network. It determines header lengths, not addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IpVersion {
    /// IPv4 without options.
    V4,
    /// IPv6 without extension headers, except the fragment header.
    #[default]
    V6,
}

impl IpVersion {
    /// Header length of an unfragmented packet, in bytes.
    pub const fn header_len(self) -> u32 {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }

    /// Default for a missing MSS option of the peer (RFC 9293 section 3.7.1).
    pub const fn default_mss(self) -> u16 {
        match self {
            Self::V4 => 536,
            Self::V6 => 1220,
        }
    }

    /// Header length of a fragment, in bytes: IPv6 needs 8 more (RFC 8200 section 4.5).
    pub const fn fragment_header_len(self) -> u32 {
        match self {
            Self::V4 => 20,
            Self::V6 => 48,
        }
    }
}

/// Bytes of a transport that the simulator does not implement; see
/// [`crate::network::Network::set_outside`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opaque {
    /// Transport protocol.
    pub protocol: Protocol,
    /// Its header and payload.
    pub octets: Bytes,
}

impl Opaque {
    /// Whether it is a control message of RPL.
    pub(crate) fn is_rpl(&self) -> bool {
        self.protocol == Protocol::ICMPV6 && self.octets.first() == Some(&icmpv6::Kind::RPL.0)
    }
}

/// Content of an unfragmented packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Whole {
    /// A TCP segment.
    Tcp(Segment),
    /// A UDP datagram.
    Udp(UdpDatagram),
    /// Any other transport.
    Opaque(Opaque),
}

impl Whole {
    /// Transport protocol.
    pub fn protocol(&self) -> Protocol {
        match self {
            Self::Tcp(_) => Protocol::TCP,
            Self::Udp(_) => Protocol::UDP,
            Self::Opaque(opaque) => opaque.protocol,
        }
    }

    /// Length of the transport header and payload, in bytes.
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
    /// The content with the ECN bits of its packet.
    pub(crate) fn marked(mut self, ecn: Ecn) -> Self {
        if let Self::Tcp(segment) = &mut self {
            segment.ecn = ecn;
        }
        self
    }
}

/// Fields of a header from outside of the simulation that no simulated node reads or changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outer {
    /// Source, if it is a host behind the source node, or another address of that node.
    pub src: Option<IpAddr>,
    /// Destination, if it is a host behind the destination node, or another address of that node.
    pub dst: Option<IpAddr>,
    /// Flow label (RFC 6437), 20 bits.
    pub flow_label: u32,
}

impl Outer {
    /// The form in which a packet carries these fields: `None` if all of them are those of a
    /// simulated node.
    pub fn boxed(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

/// A packet from outside of the simulation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Injected {
    /// Destination, or the node in front of it.
    pub dst: NodeId,
    /// Number of the path that it follows; 0 stands for the best path at each node.
    pub path: u8,
    /// Fields that no simulated node reads.
    pub outer: Outer,
    /// Hop limit: number of routers that may forward it.
    pub hop_limit: u8,
    /// Traffic class, or type of service.
    pub traffic_class: u8,
    /// Content.
    pub whole: Whole,
}

/// A fragment of a packet: `len` bytes from `offset` of the transport bytes of `whole`.
#[derive(Clone, Debug)]
pub struct Fragment {
    /// Content of the original packet, shared between its fragments.
    pub whole: Arc<Whole>,
    /// Number of the original packet.
    pub packet: u64,
    /// First byte of the fragment, counted from the start of the transport header; a multiple of 8.
    pub offset: u32,
    /// Length in bytes; a multiple of 8, except in the last fragment.
    pub len: u32,
}

impl Fragment {
    /// Whether further fragments follow (the M or MF flag).
    pub fn more(&self) -> bool {
        u64::from(self.offset) + u64::from(self.len) < self.whole.wire_len() as u64
    }
}

/// Content of a packet.
#[derive(Clone, Debug)]
pub enum Payload {
    /// A TCP segment.
    Tcp(Segment),
    /// A UDP datagram.
    Udp(UdpDatagram),
    /// Bytes of another transport.
    Opaque(Opaque),
    /// A fragment of one of these.
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

/// Kind of a packet, for loss models that distinguish data from acknowledgements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketKind {
    /// It carries payload, or opens, closes or resets a connection, or is not TCP.
    Data,
    /// A pure TCP acknowledgement.
    Ack,
}

/// An IP packet.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Number of the packet in this run, from 0; its fragments get their own numbers.
    pub id: u64,
    /// Source.
    pub src: NodeId,
    /// Destination.
    pub dst: NodeId,
    /// Length in bytes, including the IP header, without a link header.
    pub wire_len: u32,
    /// Identification field, which the fragments of one packet share; counted per source.
    pub identification: u32,
    /// Remaining number of routers that may forward it.
    pub hop_limit: u8,
    /// Traffic class (RFC 8200 section 7), with the ECN bits that the network has set.
    pub traffic_class: u8,
    /// Number of the path that it follows, in the flow label; 0 stands for the best path at each
    /// node.
    pub path: u8,
    /// Fields of a packet from outside that no simulated node reads.
    pub outer: Option<Box<Outer>>,
    /// Content.
    pub payload: Payload,
}

/// Source, destination and path of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    /// Source.
    pub src: NodeId,
    /// Destination.
    pub dst: NodeId,
    /// Number of the path; 0 stands for the best path at each node.
    pub path: u8,
}

impl Ends {
    /// Over the best path.
    pub const fn new(src: NodeId, dst: NodeId) -> Self {
        Self { src, dst, path: 0 }
    }
}

impl Packet {
    /// Takes over the fields that routers have changed.
    #[inline]
    fn update(&mut self, handle: &PacketHandle) {
        self.hop_limit = handle.hop_limit;
        self.traffic_class = handle.ecn.within(self.traffic_class);
        if let Payload::Tcp(segment) = &mut self.payload {
            segment.ecn = handle.ecn;
        }
    }

    /// Number of the packet, or of the original packet of a fragment.
    pub fn whole_id(&self) -> u64 {
        match &self.payload {
            Payload::Fragment(piece) => piece.packet,
            Payload::Tcp(_) | Payload::Udp(_) | Payload::Opaque(_) => self.id,
        }
    }

    /// Whether it is a routing message of the network: AODV (RFC 3561) or RPL (RFC 6550).
    pub fn is_routing(&self) -> bool {
        match &self.payload {
            Payload::Udp(datagram) => is_of_aodv(datagram),
            Payload::Opaque(opaque) => opaque.is_rpl(),
            Payload::Tcp(_) | Payload::Fragment(_) => false,
        }
    }

    /// Kind for loss models.
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

/// The flow of a packet as a router identifies it: a hash of its addresses, transport and ports.
/// The ports of fragments are not used, since only the first fragment has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flow(pub u64);

impl Packet {
    /// The flow of the packet.
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

/// A bijection in which every bit of the result depends on every bit of the number (Steele, Lea and
/// Flood, "Fast splittable pseudorandom number generators", 2014).
pub(crate) fn mix(bits: u64) -> u64 {
    let bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// Whether it is an AODV message, which routers send from port to port (RFC 3561 section 5). An
/// application's datagram to that port is not.
pub(crate) fn is_of_aodv(datagram: &UdpDatagram) -> bool {
    [datagram.src_port, datagram.dst_port] == [aodv::PORT; 2]
}

/// Position of a packet in the [`PacketSlab`], and its fields that routers and links read. A run
/// has many packets in flight, and reading each packet would miss the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketHandle {
    slot: u32,
    /// Destination.
    pub(crate) dst: NodeId,
    /// Length in bytes, including the IP header.
    pub(crate) wire_len: u32,
    /// Remaining number of routers that may forward it. Authoritative here; [`PacketSlab`] writes
    /// it back.
    pub(crate) hop_limit: u8,
    /// Kind for loss models.
    pub(crate) kind: PacketKind,
    /// ECN bits, which links change. Authoritative here; [`PacketSlab`] writes them back.
    pub(crate) ecn: Ecn,
    /// Whether the link that holds the packet will lose it.
    pub(crate) lost: bool,
}

impl PacketHandle {
    /// Whether both refer to the same packet, whatever has been changed since.
    pub(crate) fn is_of(&self, other: Self) -> bool {
        self.slot == other.slot
    }
}

/// All packets in flight.
#[derive(Debug, Default)]
pub struct PacketSlab {
    slots: Vec<Option<Packet>>,
    free: Vec<u32>,
}

impl PacketSlab {
    /// Inserts a packet.
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

    /// Takes out a packet.
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

    /// Takes out a packet with an unfragmented segment: its source, path and segment, without
    /// copying the rest. `None`, and nothing taken, for another packet.
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

    /// Reads a packet.
    #[inline]
    pub fn peek(&mut self, handle: PacketHandle) -> &Packet {
        let packet = self.slots[handle.slot as usize].as_mut().expect("a handle is used once");
        packet.update(&handle);
        packet
    }

    /// Gives access to a packet for changes.
    #[inline]
    pub fn get_mut(&mut self, handle: PacketHandle) -> &mut Packet {
        let packet = self.slots[handle.slot as usize].as_mut().expect("a handle is used once");
        packet.update(&handle);
        packet
    }

    /// Number of packets in flight.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether no packet is in flight.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
