//! Writes packets.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use smoltcp::wire::{Ipv4Packet, Ipv6FragmentHeader, Ipv6Packet};

use super::{Header, IPV4_HEADER_LEN, IPV6_HEADER_LEN, Protocol};

/// Why a packet cannot be encoded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// One address is IPv4 and the other is IPv6.
    #[error("source and destination are not of one address family")]
    MixedFamilies,
    /// The payload exceeds [`super::Header::max_payload`] bytes.
    #[error("{octets} octets of payload do not fit into one packet")]
    TooLong {
        /// Payload length in bytes.
        octets: usize,
    },
    /// The offset of the fragment is not a multiple of 8, the fragment ends past
    /// [`super::Header::max_datagram`], or a fragment other than the last has a length that is not
    /// a multiple of 8.
    #[error("a fragment at octet {offset} cannot be said in a header")]
    FragmentOffset {
        /// Offset of the fragment in its datagram.
        offset: u16,
    },
    /// The protocol is the number of an IPv6 extension header, which [`super::parse`] would skip.
    #[error("protocol {protocol} is an IPv6 extension header")]
    Extension {
        /// The protocol number.
        protocol: u8,
    },
    /// The TCP options exceed the 40 bytes that the header has for them.
    #[error("{octets} octets of TCP options do not fit into the header's 40")]
    Options {
        /// Length of the options in bytes, padding included.
        octets: usize,
    },
    /// A packet of this size has no room for the header and 8 bytes of payload.
    #[error("a packet of {mtu} octets cannot carry a fragment")]
    Mtu {
        /// The MTU in bytes.
        mtu: usize,
    },
    /// The buffer is shorter than the packet.
    #[error("a packet of {octets} octets does not fit into the buffer")]
    Buffer {
        /// Length of the packet in bytes.
        octets: usize,
    },
}

/// Appends the packet to `out`. On error, `out` is unchanged.
///
/// An IPv4 packet carries the low 16 bits of the identification; a whole IPv6 datagram does not
/// carry it.
pub fn emit(header: &Header, payload: &[u8], out: &mut Vec<u8>) -> Result<(), EmitError> {
    emit_header(header, payload.len(), out)?;
    out.extend_from_slice(payload);
    Ok(())
}

/// Appends a header for `payload_len` bytes of payload, which the caller appends.
pub(super) fn emit_header(header: &Header, payload_len: usize, out: &mut Vec<u8>) -> Result<(), EmitError> {
    check(header, payload_len)?;
    let start = out.len();
    out.resize(start + header.wire_len(), 0);
    write_header(header, payload_len, &mut out[start..]);
    Ok(())
}

/// Writes a header that [`check`] has accepted to `out`, which has its length and zeros.
pub(super) fn write_header(header: &Header, payload_len: usize, out: &mut [u8]) {
    match (header.src, header.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => write_v4(header, src, dst, payload_len, out),
        (IpAddr::V6(src), IpAddr::V6(dst)) => write_v6(header, src, dst, payload_len, out),
        _ => {}
    }
}

/// Checks that a header can be written before `payload_len` bytes.
pub(super) fn check(header: &Header, payload_len: usize) -> Result<(), EmitError> {
    if header.src.is_ipv4() != header.dst.is_ipv4() {
        return Err(EmitError::MixedFamilies);
    }
    if payload_len > header.max_payload() {
        return Err(EmitError::TooLong { octets: payload_len });
    }
    if let Some(fragment) = header.fragment {
        let past_end = usize::from(fragment.offset) + payload_len > header.max_datagram();
        let odd = !fragment.offset.is_multiple_of(8) || fragment.more && !payload_len.is_multiple_of(8);
        if past_end || odd {
            return Err(EmitError::FragmentOffset { offset: fragment.offset });
        }
    }
    // Nothing is skipped after a Fragment header, so every protocol number is allowed there.
    if header.src.is_ipv6() && header.fragment.is_none() && header.protocol.is_extension() {
        return Err(EmitError::Extension { protocol: header.protocol.0 });
    }
    Ok(())
}

/// The caller has checked all lengths, so no cast below truncates.
fn write_v4(header: &Header, src: Ipv4Addr, dst: Ipv4Addr, payload_len: usize, out: &mut [u8]) {
    let mut view = Ipv4Packet::new_unchecked(out);
    view.set_version(4);
    view.set_header_len(IPV4_HEADER_LEN as u8);
    view.set_total_len((IPV4_HEADER_LEN + payload_len) as u16);
    view.set_ident(header.ident as u16);
    if let Some(fragment) = header.fragment {
        view.set_more_frags(fragment.more);
        view.set_frag_offset(fragment.offset);
    }
    view.set_dscp(header.traffic_class >> 2);
    view.set_ecn(header.traffic_class & 3);
    view.set_hop_limit(header.hop_limit);
    view.set_next_header(header.protocol.0.into());
    view.set_src_addr(src);
    view.set_dst_addr(dst);
    view.fill_checksum();
}

fn write_v6(header: &Header, src: Ipv6Addr, dst: Ipv6Addr, payload_len: usize, out: &mut [u8]) {
    let extensions = header.wire_len() - IPV6_HEADER_LEN;
    let next = if header.fragment.is_some() { Protocol::FRAGMENT } else { header.protocol };
    let mut view = Ipv6Packet::new_unchecked(&mut out[..]);
    view.set_version(6);
    view.set_traffic_class(header.traffic_class);
    view.set_flow_label(header.flow_label & FLOW_LABEL);
    view.set_payload_len((extensions + payload_len) as u16);
    view.set_next_header(next.0.into());
    view.set_hop_limit(header.hop_limit);
    view.set_src_addr(src);
    view.set_dst_addr(dst);
    if let Some(fragment) = header.fragment {
        let octets = &mut out[IPV6_HEADER_LEN..];
        octets[0] = header.protocol.0;
        // The view of smoltcp begins after the next header and reserved bytes.
        let mut view = Ipv6FragmentHeader::new_unchecked(&mut octets[2..]);
        view.set_frag_offset(fragment.offset / 8);
        view.set_more_frags(fragment.more);
        view.set_ident(header.ident);
    }
}

/// The bits of a flow label.
const FLOW_LABEL: u32 = 0xf_ffff;
