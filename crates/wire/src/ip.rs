//! The IP packet around a segment: IPv4 (RFC 791) and IPv6 (RFC 8200), with checksums, fragments
//! and reassembly.
//!
//! A packet is a [`Header`], which is meaning, and a payload. [`parse`] and [`emit`] go between the
//! two and bytes; [`parse_tcp`] and [`emit_tcp`] do the same for a TCP segment in it, [`parse_udp`]
//! and [`emit_udp`] for a UDP datagram. [`fragment`] cuts a payload to an MTU and [`Reassembler`]
//! joins the pieces.
//!
//! What a header says beyond [`Header`] is not kept: traffic class and ECN, IPv4 options, the
//! don't-fragment bit, IPv6 extension headers other than Fragment. Written packets have zeros
//! there. Jumbograms (RFC 2675) are not read.

mod emit;
mod fragment;
mod parse;
mod reassemble;
mod tcp;
mod udp;

use core::fmt;
use core::net::IpAddr;

pub use emit::{EmitError, emit};
pub use fragment::{Fragments, fragment};
pub use parse::{Field, ParseError, parse};
pub use reassemble::{Reassembler, ReassemblyError, ReassemblyLimits};
pub use tcp::{emit_tcp, has_unknown_tcp_options, parse_tcp};
pub use udp::{UDP_HEADER_LEN, UdpDatagram, emit_udp, parse_udp};

/// Bytes of an IPv4 header without options (RFC 791 section 3.1).
pub const IPV4_HEADER_LEN: usize = 20;
/// Bytes of an IPv6 header (RFC 8200 section 3).
pub const IPV6_HEADER_LEN: usize = 40;
/// Bytes of the IPv6 Fragment header (RFC 8200 section 4.5).
pub const IPV6_FRAGMENT_HEADER_LEN: usize = 8;

/// What the payload is: the protocol field of IPv4, the last next-header field of IPv6 (one
/// registry, RFC 5237).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Protocol(pub u8);

impl Protocol {
    /// ICMP (RFC 792).
    pub const ICMP: Self = Self(1);
    /// TCP (RFC 9293).
    pub const TCP: Self = Self(6);
    /// UDP (RFC 768).
    pub const UDP: Self = Self(17);
    /// ICMPv6 (RFC 4443).
    pub const ICMPV6: Self = Self(58);
    /// For experiments (RFC 3692 section 2.1).
    pub const EXPERIMENT: Self = Self(253);

    /// Hop-by-Hop options (RFC 8200 section 4.3): an extension header, never a payload.
    pub(crate) const HOP_BY_HOP: Self = Self(0);
    /// Routing header (RFC 8200 section 4.4).
    pub(crate) const ROUTING: Self = Self(43);
    /// Fragment header (RFC 8200 section 4.5).
    pub(crate) const FRAGMENT: Self = Self(44);
    /// Destination options (RFC 8200 section 4.6).
    pub(crate) const DESTINATION_OPTIONS: Self = Self(60);

    /// An IPv6 extension header that [`parse`] reads, so that no payload can have this number.
    pub(crate) const fn is_extension(self) -> bool {
        matches!(self, Self::HOP_BY_HOP | Self::ROUTING | Self::FRAGMENT | Self::DESTINATION_OPTIONS)
    }
}

impl fmt::Debug for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ICMP => f.write_str("ICMP"),
            Self::TCP => f.write_str("TCP"),
            Self::UDP => f.write_str("UDP"),
            Self::ICMPV6 => f.write_str("ICMPv6"),
            Self(n) => write!(f, "protocol {n}"),
        }
    }
}

/// Where a piece lies in its datagram's payload (RFC 791 section 3.2, RFC 8200 section 4.5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fragment {
    /// Bytes before this piece: a multiple of 8, at most 65528.
    pub offset: u16,
    /// Another piece follows.
    pub more: bool,
}

/// What this project reads and says in an IP header.
///
/// Both addresses are of one family; [`emit`] refuses a header where they are not, and [`parse`]
/// never returns one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Header {
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// What the payload is.
    pub protocol: Protocol,
    /// How many more routers it may pass (time to live, hop limit).
    pub hop_limit: u8,
    /// The traffic class (RFC 8200 section 7), in IPv4 the type of service: six bits of DSCP (RFC
    /// 2474), two of ECN ([`crate::ecn::Ecn`]).
    pub traffic_class: u8,
    /// The flow label (RFC 6437), 20 bits; IPv4 has none, and says 0.
    pub flow_label: u32,
    /// Identification of the datagram for reassembly: 16 bits in IPv4, 32 in IPv6, which says it
    /// only in fragments (zero is read elsewhere).
    pub ident: u32,
    /// Which piece of a datagram this is; `None` for a whole one. IPv4 cannot tell an unfragmented
    /// packet from a piece at offset 0 without more: it is read as `None`. In IPv6 that piece is an
    /// atomic fragment (RFC 6946).
    pub fragment: Option<Fragment>,
}

impl Header {
    /// A whole datagram with hop limit 64 (RFC 1700), identification 0, traffic class 0 and no flow
    /// label.
    pub const fn new(src: IpAddr, dst: IpAddr, protocol: Protocol) -> Self {
        Self { src, dst, protocol, hop_limit: 64, traffic_class: 0, flow_label: 0, ident: 0, fragment: None }
    }

    /// Bytes that [`emit`] writes before the payload: 20, 40, or 48 for an IPv6 fragment.
    pub const fn wire_len(&self) -> usize {
        match (self.src, self.fragment) {
            (IpAddr::V4(_), _) => IPV4_HEADER_LEN,
            (IpAddr::V6(_), None) => IPV6_HEADER_LEN,
            (IpAddr::V6(_), Some(_)) => IPV6_HEADER_LEN + IPV6_FRAGMENT_HEADER_LEN,
        }
    }

    /// The most bytes that the payload of a whole datagram between these addresses has: what the
    /// 16-bit length leaves. No fragment may end past it.
    pub const fn max_datagram(&self) -> usize {
        match self.src {
            IpAddr::V4(_) => u16::MAX as usize - IPV4_HEADER_LEN,
            IpAddr::V6(_) => u16::MAX as usize,
        }
    }

    /// The most bytes of payload that a packet with this header can carry.
    pub const fn max_payload(&self) -> usize {
        match self.src {
            IpAddr::V4(_) => u16::MAX as usize - IPV4_HEADER_LEN,
            IpAddr::V6(_) => u16::MAX as usize - (self.wire_len() - IPV6_HEADER_LEN),
        }
    }
}
