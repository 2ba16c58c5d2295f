//! IP packets: IPv4 (RFC 791) and IPv6 (RFC 8200), with checksums, fragmentation and reassembly.
//!
//! A packet consists of a [`Header`] and a payload. [`parse`] and [`emit`] convert between these
//! and bytes; [`parse_tcp`] and [`emit_tcp`] do so for a packet with a TCP segment, [`parse_udp`]
//! and [`emit_udp`] for one with a UDP datagram. [`parse_tcp_header`] and [`write_tcp`] work in the
//! caller's memory. [`fragment`] cuts a payload to an MTU, and [`Reassembler`] joins the fragments.
//!
//! [`Header`] does not keep IPv4 options, the don't-fragment bit and IPv6 extension headers other
//! than Fragment; written packets have zeros there. Jumbograms (RFC 2675) are not read.

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
pub use tcp::{
    emit_tcp, has_unknown_tcp_options, parse_tcp, parse_tcp_header, parse_tcp_offloaded, write_tcp,
};
pub use udp::{UDP_HEADER_LEN, UdpDatagram, emit_udp, parse_udp};

/// Length of an IPv4 header without options in bytes (RFC 791 section 3.1).
pub const IPV4_HEADER_LEN: usize = 20;
/// Length of an IPv6 header in bytes (RFC 8200 section 3).
pub const IPV6_HEADER_LEN: usize = 40;
/// Length of the IPv6 Fragment header in bytes (RFC 8200 section 4.5).
pub const IPV6_FRAGMENT_HEADER_LEN: usize = 8;

/// The payload protocol: the protocol field of IPv4 and the last next-header field of IPv6, which
/// share one registry (RFC 5237).
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
    /// Experimental use (RFC 3692 section 2.1).
    pub const EXPERIMENT: Self = Self(253);

    /// Hop-by-Hop options (RFC 8200 section 4.3): an extension header, never a payload.
    pub(crate) const HOP_BY_HOP: Self = Self(0);
    /// Routing header (RFC 8200 section 4.4).
    pub(crate) const ROUTING: Self = Self(43);
    /// Fragment header (RFC 8200 section 4.5).
    pub(crate) const FRAGMENT: Self = Self(44);
    /// Destination options (RFC 8200 section 4.6).
    pub(crate) const DESTINATION_OPTIONS: Self = Self(60);

    /// True for an IPv6 extension header that [`parse`] skips. No payload can have this number.
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

/// Position of a fragment in the payload of its datagram (RFC 791 section 3.2, RFC 8200 section
/// 4.5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fragment {
    /// Bytes before this fragment: a multiple of 8, at most 65528.
    pub offset: u16,
    /// True if another fragment follows.
    pub more: bool,
}

/// The fields of an IP header that this project reads and writes.
///
/// Both addresses belong to one family: [`emit`] refuses a header with mixed families, and
/// [`parse`] never returns one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Header {
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// Payload protocol.
    pub protocol: Protocol,
    /// Number of further routers that may forward the packet (time to live, hop limit).
    pub hop_limit: u8,
    /// The traffic class (RFC 8200 section 7) or, in IPv4, the type of service: six bits of DSCP
    /// (RFC 2474) and two of ECN ([`crate::ecn::Ecn`]).
    pub traffic_class: u8,
    /// The flow label (RFC 6437), 20 bits; 0 in IPv4, which has none.
    pub flow_label: u32,
    /// Identification of the datagram for reassembly: 16 bits in IPv4, 32 bits in IPv6. In IPv6
    /// only fragments carry it; [`parse`] returns 0 for a whole IPv6 datagram.
    pub ident: u32,
    /// Position of this fragment; `None` for a whole datagram. IPv4 cannot distinguish a whole
    /// packet from a fragment at offset 0 without more, so [`parse`] returns `None` for both. In
    /// IPv6 such a fragment is an atomic fragment (RFC 6946).
    pub fragment: Option<Fragment>,
}

impl Header {
    /// A header of a whole datagram with hop limit 64 (RFC 1700), identification 0, traffic class 0
    /// and no flow label.
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

    /// Largest payload of a whole datagram between these addresses, in bytes. The 16-bit length
    /// field limits it, and no fragment may end past it.
    pub const fn max_datagram(&self) -> usize {
        match self.src {
            IpAddr::V4(_) => u16::MAX as usize - IPV4_HEADER_LEN,
            IpAddr::V6(_) => u16::MAX as usize,
        }
    }

    /// Largest payload of a packet with this header, in bytes.
    pub const fn max_payload(&self) -> usize {
        match self.src {
            IpAddr::V4(_) => u16::MAX as usize - IPV4_HEADER_LEN,
            IpAddr::V6(_) => u16::MAX as usize - (self.wire_len() - IPV6_HEADER_LEN),
        }
    }
}
