//! A TCP segment as the payload of a packet (RFC 9293 section 3.1).

use alloc::vec::Vec;
use core::net::IpAddr;

use bytes::Bytes;
use smoltcp::wire::{IpAddress, TcpOption, TcpPacket, TcpSeqNumber};

use super::emit::{check, write_header};
use super::{EmitError, Field, Header, ParseError, Protocol};
use crate::ecn::Ecn;
use crate::mptcp::{self, Mptcp};
use crate::tcp::{Flags, MAX_OPTIONS_LEN, Options, SackBlock, Segment, SeqNumber, Timestamps};

/// Length of a TCP header without options in bytes.
const TCP_HEADER_LEN: usize = 20;
/// The no-operation option (RFC 9293 section 3.1).
const NO_OPERATION: u8 = 1;
/// Offset of the checksum in the TCP header.
const CHECKSUM_OFFSET: usize = 16;
/// The largest valid shift count (RFC 7323 section 2.3).
const MAX_WINDOW_SCALE: u8 = 14;

/// Appends the packet that carries `segment` to `out`. On error, `out` is unchanged.
///
/// The packet's protocol is TCP regardless of [`Header::protocol`], and its ECN bits are those of
/// the segment. The urgent pointer is zero.
pub fn emit_tcp(header: &Header, segment: &Segment, out: &mut Vec<u8>) -> Result<(), EmitError> {
    let (header, octets) = checked(header, segment)?;
    let start = out.len();
    out.resize(start + octets, 0);
    write(&header, segment, &mut out[start..]);
    Ok(())
}

/// As [`emit_tcp`], to the beginning of `out`, which the caller provides. Returns the length of the
/// packet in bytes. On error, `out` is unchanged.
pub fn write_tcp(header: &Header, segment: &Segment, out: &mut [u8]) -> Result<usize, EmitError> {
    let (header, octets) = checked(header, segment)?;
    let out = out.get_mut(..octets).ok_or(EmitError::Buffer { octets })?;
    // Options are padded with zeros.
    out[..octets - segment.payload.len()].fill(0);
    write(&header, segment, out);
    Ok(octets)
}

/// The header that is written before a segment, and the length of the packet in bytes.
fn checked(header: &Header, segment: &Segment) -> Result<(Header, usize), EmitError> {
    let options_len = segment.options_len();
    if options_len > MAX_OPTIONS_LEN {
        return Err(EmitError::Options { octets: options_len });
    }
    let traffic_class = segment.ecn.within(header.traffic_class);
    let header = Header { protocol: Protocol::TCP, traffic_class, ..*header };
    check(&header, segment.wire_len())?;
    Ok((header, header.wire_len() + segment.wire_len()))
}

/// Writes a packet that [`checked`] has accepted to `out`, which has its length. The bytes of the
/// headers must be zeros.
fn write(header: &Header, segment: &Segment, out: &mut [u8]) {
    let (ip, tcp) = out.split_at_mut(header.wire_len());
    write_header(header, segment.wire_len(), ip);
    let head = TCP_HEADER_LEN + segment.options_len();
    tcp[head..].copy_from_slice(&segment.payload);
    let mut view = TcpPacket::new_unchecked(&mut *tcp);
    view.set_src_port(segment.src_port);
    view.set_dst_port(segment.dst_port);
    view.set_seq_number(TcpSeqNumber(segment.seq.0 as i32));
    view.set_ack_number(TcpSeqNumber(segment.ack.0 as i32));
    view.set_header_len(head as u8);
    emit_flags(segment.flags, &mut view);
    view.set_window_len(segment.window);
    let (common, multipath) = view.options_mut().split_at_mut(segment.common_len());
    emit_options(&segment.options, common);
    if !segment.mptcp.is_empty() {
        // The NOPs after the last option remain as padding.
        multipath.fill(NO_OPERATION);
        segment.mptcp.emit(multipath);
    }
    view.fill_checksum(&header.src.into(), &header.dst.into());
}

fn emit_flags(flags: Flags, view: &mut TcpPacket<&mut [u8]>) {
    view.set_fin(flags.contains(Flags::FIN));
    view.set_syn(flags.contains(Flags::SYN));
    view.set_rst(flags.contains(Flags::RST));
    view.set_psh(flags.contains(Flags::PSH));
    view.set_ack(flags.contains(Flags::ACK));
    view.set_urg(flags.contains(Flags::URG));
    view.set_ece(flags.contains(Flags::ECE));
    view.set_cwr(flags.contains(Flags::CWR));
}

/// Writes the options in the order of common stacks: MSS, SACK-permitted, timestamps, window scale,
/// SACK. A data segment then begins with NOP NOP timestamps, which the header prediction of these
/// stacks expects (RFC 7323 appendix A). The NOPs that pad `space` come before the window scale if
/// there is one, else after the MSS. The options of Multipath TCP come last.
fn emit_options(options: &Options, space: &mut [u8]) {
    let shift = options.window_scale;
    let mut nops = space.len() - options.bare_len();
    let mut rest = space;
    if let Some(mss) = options.mss {
        rest = TcpOption::MaxSegmentSize(mss).emit(rest);
    }
    while nops > 0 && shift.is_none() {
        rest = TcpOption::NoOperation.emit(rest);
        nops -= 1;
    }
    if options.sack_permitted {
        rest = TcpOption::SackPermitted.emit(rest);
    }
    if let Some(Timestamps { value, echo }) = options.timestamps {
        rest = TcpOption::TimeStamp { tsval: value, tsecr: echo }.emit(rest);
    }
    if let Some(shift) = shift {
        for _ in 0..nops {
            rest = TcpOption::NoOperation.emit(rest);
        }
        rest = TcpOption::WindowScale(shift).emit(rest);
    }
    if !options.sack.is_empty() {
        let mut ranges = [None; 3];
        for (range, block) in ranges.iter_mut().zip(options.sack.as_slice()) {
            *range = Some((block.left.0, block.right.0));
        }
        TcpOption::SackRange(ranges).emit(rest);
    }
}

/// Parses the segment in `payload`, which is the whole payload of a packet with this header.
///
/// Every combination of flags is accepted; the state machine judges it. The urgent pointer and the
/// reserved bits are not kept. Unknown options are skipped; of duplicate options the last wins. A
/// window scale above 14 is read as 14 (RFC 7323 section 2.3). Of four SACK blocks the first three
/// are kept.
///
/// Offsets in errors count from the start of `payload`.
pub fn parse_tcp(header: &Header, payload: Bytes) -> Result<Segment, ParseError> {
    let (segment, head) = parse_tcp_header(header, &payload)?;
    Ok(Segment { payload: payload.slice(head..), ..segment })
}

/// As [`parse_tcp`], but returns the segment without its payload, and the length of its header in
/// bytes. The payload of the segment is the rest of `payload`.
pub fn parse_tcp_header(header: &Header, payload: &[u8]) -> Result<(Segment, usize), ParseError> {
    let (src, dst) = addresses(header)?;
    parse_verified(header, payload, |view| view.verify_checksum(&src, &dst))
}

/// Parses a segment whose checksum a device is still to compute, or has verified. Otherwise like
/// [`parse_tcp`].
pub fn parse_tcp_offloaded(header: &Header, payload: Bytes) -> Result<Segment, ParseError> {
    addresses(header)?;
    let (segment, head) = parse_verified(header, &payload, |_| true)?;
    Ok(Segment { payload: payload.slice(head..), ..segment })
}

fn parse_verified(
    header: &Header,
    payload: &[u8],
    verify: impl FnOnce(&TcpPacket<&[u8]>) -> bool,
) -> Result<(Segment, usize), ParseError> {
    if header.protocol != Protocol::TCP {
        return Err(ParseError::at(Field::Protocol, 0));
    }
    if header.fragment.is_some_and(|fragment| fragment.offset != 0 || fragment.more) {
        return Err(ParseError::at(Field::Fragment, 0));
    }
    if payload.len() < TCP_HEADER_LEN {
        return Err(ParseError::at(Field::TcpHeader, 0));
    }
    if payload.len() > usize::from(u16::MAX) {
        return Err(ParseError::at(Field::TcpLength, 0));
    }
    let view = TcpPacket::new_unchecked(payload);
    let header_len = usize::from(view.header_len());
    if header_len < TCP_HEADER_LEN || header_len > payload.len() {
        return Err(ParseError::at(Field::TcpDataOffset, 12));
    }
    if !verify(&view) {
        return Err(ParseError::at(Field::TcpChecksum, CHECKSUM_OFFSET));
    }
    let (options, mptcp) = parse_options(view.options())?;
    let segment = Segment {
        src_port: view.src_port(),
        dst_port: view.dst_port(),
        seq: SeqNumber(view.seq_number().0 as u32),
        ack: SeqNumber(view.ack_number().0 as u32),
        // The view offers single bits; the whole byte is our [`Flags`].
        flags: Flags(payload[13]),
        window: view.window_len(),
        options,
        mptcp,
        payload: Bytes::new(),
        ecn: Ecn::of(header.traffic_class),
    };
    Ok((segment, header_len))
}

/// smoltcp panics on a pseudo-header with mixed families, so check first.
pub(super) fn addresses(header: &Header) -> Result<(IpAddress, IpAddress), ParseError> {
    match (header.src, header.dst) {
        (IpAddr::V4(_), IpAddr::V4(_)) | (IpAddr::V6(_), IpAddr::V6(_)) => {
            Ok((header.src.into(), header.dst.into()))
        }
        _ => Err(ParseError::at(Field::Addresses, 0)),
    }
}

fn parse_options(octets: &[u8]) -> Result<(Options, Mptcp), ParseError> {
    let mut options = Options::default();
    let mut mptcp = Mptcp::NONE;
    let mut rest = octets;
    while !rest.is_empty() {
        let offset = TCP_HEADER_LEN + (octets.len() - rest.len());
        let (next, option) = TcpOption::parse(rest).map_err(|_| ParseError::at(Field::TcpOption, offset))?;
        match option {
            TcpOption::EndOfList => break,
            TcpOption::Unknown { kind: mptcp::KIND, data } => {
                // A malformed MPTCP option is ignored, as an unknown option is (RFC 9293 section
                // 3.1).
                mptcp.read(data);
            }
            TcpOption::NoOperation | TcpOption::Unknown { .. } => {}
            TcpOption::MaxSegmentSize(mss) => options.mss = Some(mss),
            TcpOption::WindowScale(shift) => options.window_scale = Some(shift.min(MAX_WINDOW_SCALE)),
            TcpOption::SackPermitted => options.sack_permitted = true,
            TcpOption::SackRange(ranges) => options.sack = ranges.iter().flatten().map(sack_block).collect(),
            TcpOption::TimeStamp { tsval, tsecr } => {
                options.timestamps = Some(Timestamps { value: tsval, echo: tsecr });
            }
        }
        rest = next;
    }
    Ok((options, mptcp))
}

/// True if the TCP header has an option that [`parse_tcp`] would skip: one of an unknown kind, or
/// a Multipath TCP option that is malformed or of a later version. False if `payload` is not a TCP
/// header.
pub fn has_unknown_tcp_options(payload: &[u8]) -> bool {
    let Some(offset) = payload.get(12) else { return false };
    let mut rest = payload.get(TCP_HEADER_LEN..usize::from(offset >> 4) * 4).unwrap_or_default();
    while !rest.is_empty() {
        match TcpOption::parse(rest) {
            Ok((next, TcpOption::Unknown { kind: mptcp::KIND, data })) if Mptcp::default().read(data) => {
                rest = next
            }
            Ok((_, TcpOption::Unknown { .. })) => return true,
            Ok((_, TcpOption::EndOfList)) | Err(_) => return false,
            Ok((next, _)) => rest = next,
        }
    }
    false
}

fn sack_block(&(left, right): &(u32, u32)) -> SackBlock {
    SackBlock { left: SeqNumber(left), right: SeqNumber(right) }
}
