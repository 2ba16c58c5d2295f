//! 6LoWPAN: IPv6 packets in frames of IEEE 802.15.4.
//!
//! [`compress`] and [`decompress`] convert between a packet and a datagram with compressed headers
//! (RFC 6282): LOWPAN_IPHC with all address modes, with and without [`Contexts`], and LOWPAN_NHC
//! for extension headers and UDP. TCP and ICMPv6 headers are not compressed. [`split`] computes how
//! a datagram is cut into frames, and [`parse_dispatch`] tells what a frame carries (RFC 4944
//! section 5). [`compressed_header_len`] and [`split`] compute lengths without producing the bytes.
//!
//! Not supported: mesh addressing and broadcast headers (RFC 4944), HC1 (the predecessor of
//! LOWPAN_IPHC), IPv6 headers inside IPv6 packets as LOWPAN_NHC, elided UDP checksums, paging
//! dispatch (RFC 8025) and fragment recovery (RFC 8931). The parsers refuse these with the name
//! of the field. Reassembly needs time and memory, so another crate implements it.

mod address;
mod compress;
mod context;
mod decompress;
mod fragment;
mod input;
mod iphc;
mod nhc;

use core::net::Ipv6Addr;

pub use compress::{CompressError, Compressed, compress, compressed_header_len};
pub use context::{Context, Contexts, PrefixTooLong};
pub use decompress::{Decompressed, decompress};
pub use fragment::{
    Dispatch, DispatchError, FIRST_FRAGMENT_HEADER_LEN, FRAGMENT_HEADER_LEN, MAX_DATAGRAM, Piece, PieceKind,
    Split, SplitError, parse_dispatch, split, split_at,
};

pub use input::{DecompressError, Field};

use crate::ieee802154::Address;
use crate::ip::Protocol;

/// The link-layer source and destination of a frame, from which interface identifiers are derived.
///
/// All frames of a fragmented datagram have the same link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Link {
    /// Source address.
    pub src: Address,
    /// Destination address.
    pub dst: Address,
}

/// All fields of the IPv6 header (RFC 8200 section 3) except the payload length, which is never
/// sent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ipv6Header {
    /// Source address.
    pub src: Ipv6Addr,
    /// Destination address.
    pub dst: Ipv6Addr,
    /// Traffic class: differentiated services in the high six bits, ECN in the low two.
    pub traffic_class: u8,
    /// Flow label, 20 bits; higher bits are not sent.
    pub flow_label: u32,
    /// Protocol of the next header.
    pub next_header: Protocol,
    /// Number of further routers that may forward the packet.
    pub hop_limit: u8,
}
