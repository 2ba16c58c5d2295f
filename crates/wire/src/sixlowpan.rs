//! 6LoWPAN: an IPv6 packet as the payload of frames of IEEE 802.15.4.
//!
//! [`compress`] and [`decompress`] go between a packet and a datagram with its headers compressed
//! (RFC 6282): LOWPAN_IPHC with all address modes, with and without [`Contexts`], and LOWPAN_NHC
//! for extension headers and UDP. TCP and ICMPv6 have no compression: their headers stay as they
//! are. [`split`] says how a datagram is cut into frames, and [`parse_dispatch`] what a frame
//! carries (RFC 4944 section 5). The lengths alone, for whoever counts bytes without making them,
//! are [`compressed_header_len`] and [`split`].
//!
//! Absent: mesh addressing and broadcast headers (RFC 4944), HC1 (its predecessor), the IPv6 header
//! inside an IPv6 packet as LOWPAN_NHC, elided UDP checksums, paging dispatch (RFC 8025) and
//! fragment forwarding (RFC 8931). All that is refused with the name of the field. Joining the
//! pieces takes time and memory, so it is not done here.

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

/// The two ends of a link: the MAC addresses of the frame, from which interface identifiers are
/// derived.
///
/// A datagram in fragments has the same link in each of its frames.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Link {
    /// Who sent the frame.
    pub src: Address,
    /// Destination address.
    pub dst: Address,
}

/// All that the IPv6 header says (RFC 8200 section 3), except the payload length, which is never
/// sent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ipv6Header {
    /// Source address.
    pub src: Ipv6Addr,
    /// Destination address.
    pub dst: Ipv6Addr,
    /// Differentiated services in the high six bits, congestion notification in the low two.
    pub traffic_class: u8,
    /// 20 bits; what is above them is not sent.
    pub flow_label: u32,
    /// What follows.
    pub next_header: Protocol,
    /// How many more routers it may pass.
    pub hop_limit: u8,
}
