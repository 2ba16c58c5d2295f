//! 6LoWPAN: datagrams of arbitrary bytes, packets with arbitrary headers, and their fragments.

use std::net::Ipv6Addr;

use anabranch_wire::ieee802154::Address;
use anabranch_wire::ip::Protocol;
use anabranch_wire::sixlowpan::{
    self, Context, Contexts, Dispatch, Ipv6Header, Link, MAX_DATAGRAM, SplitError,
};
use arbitrary::{Result, Unstructured};

use crate::probe::Probe;

/// The first byte selects the test: received bytes, or a packet to send.
pub(super) fn run(input: &[u8], probe: &mut Probe) {
    let Some((choice, rest)) = input.split_first() else { return };
    let octets = Unstructured::new(rest);
    // An input that ends too early is skipped.
    let _ = if choice % 2 == 0 { received(octets, probe) } else { sent(octets, probe) };
}

fn received(mut octets: Unstructured<'_>, probe: &mut Probe) -> Result<()> {
    let (link, contexts) = (link(&mut octets)?, contexts(&mut octets)?);
    let total_len: Option<u16> = octets.arbitrary()?;
    let payload = octets.take_rest();
    let mut packet = Vec::new();
    let (dispatch, header_len) = match sixlowpan::parse_dispatch(payload) {
        Ok(read) => read,
        Err(error) => {
            probe.say(|| error);
            probe.feature(std::mem::discriminant(&error));
            return Ok(());
        }
    };
    probe.feature(std::mem::discriminant(&dispatch));
    let datagram = &payload[header_len..];
    match sixlowpan::decompress(datagram, &link, &contexts, total_len, &mut packet) {
        Ok(read) => {
            probe.say(|| format!("{read:?} {packet:02x?}"));
            probe.feature(("decompressed", read.header_len.min(64)));
            probe.feature(("headers", read.uncompressed_header_len.min(256)));
            assert_eq!(packet.len() - read.uncompressed_header_len, datagram.len() - read.header_len);
            match total_len {
                None => drop(round_trip(&packet, &link, &contexts, probe)),
                Some(total_len) => assert!(packet.len() <= usize::from(total_len)),
            }
        }
        Err(error) => {
            probe.say(|| error);
            assert!(packet.is_empty() && error.offset <= datagram.len(), "{error}");
            probe.feature((error.field, error.offset.min(64)));
        }
    }
    Ok(())
}

fn sent(mut octets: Unstructured<'_>, probe: &mut Probe) -> Result<()> {
    let (link, contexts) = (link(&mut octets)?, contexts(&mut octets)?);
    let header = Ipv6Header {
        src: address(&mut octets, link.src, &contexts)?,
        dst: address(&mut octets, link.dst, &contexts)?,
        traffic_class: octets.arbitrary()?,
        flow_label: octets.int_in_range(0..=0xf_ffff)?,
        next_header: Protocol(*octets.choose(&[6, 17, 58, 0, 43, 44, 60, 135, 41])?),
        hop_limit: octets.arbitrary()?,
    };
    let room = octets.int_in_range(0..=130)?;
    let more = octets.int_in_range(0..=600)?;
    let mut payload = octets.take_rest().to_vec();
    payload.resize(payload.len() + more, 0x55);
    let packet = packet(&header, &payload);
    let datagram = round_trip(&packet, &link, &contexts, probe);
    let len = datagram.lengths.header_len;
    if header.next_header == Protocol::TCP {
        assert_eq!(sixlowpan::compressed_header_len(&header, None, &link, &contexts), len);
    }
    pieces(&packet, &datagram, room, &link, &contexts, probe);
    Ok(())
}

struct Datagram {
    lengths: sixlowpan::Compressed,
    octets: Vec<u8>,
}

/// Compresses a packet and checks that decompression restores it.
fn round_trip(packet: &[u8], link: &Link, contexts: &Contexts, probe: &mut Probe) -> Datagram {
    let mut octets = Vec::new();
    let lengths = sixlowpan::compress(packet, link, contexts, &mut octets)
        .unwrap_or_else(|error| panic!("{error}: {packet:02x?}"));
    // The two bytes of LOWPAN_IPHC, which name the chosen forms.
    probe.feature(("first", octets[0]));
    probe.feature(("second", octets[1]));
    probe.feature(("compressed", lengths.header_len.min(64)));
    assert!(octets.len() == lengths.len && octets.len() <= packet.len(), "{octets:02x?}");
    let mut again = Vec::new();
    let read = sixlowpan::decompress(&octets, link, contexts, None, &mut again);
    assert_eq!(read.map(|read| read.header_len), Ok(lengths.header_len), "{octets:02x?}");
    assert_eq!(again, packet, "{octets:02x?}");
    Datagram { lengths, octets }
}

/// Fragments a packet and checks that fragments fit and that reassembly restores the packet.
fn pieces(
    packet: &[u8],
    datagram: &Datagram,
    room: usize,
    link: &Link,
    contexts: &Contexts,
    probe: &mut Probe,
) {
    let pieces = match sixlowpan::split(&datagram.lengths, room) {
        Ok(pieces) => pieces,
        Err(SplitError::TooLong { .. }) => return assert!(packet.len() > MAX_DATAGRAM),
        Err(error) => {
            probe.say(|| error);
            return assert!(room < datagram.lengths.header_len + 4 + 8 || room < 13, "{error}");
        }
    };
    probe.feature(("pieces", pieces.len().min(16)));
    let mut joined = Vec::new();
    for piece in pieces {
        let mut frame = Vec::new();
        piece.emit_header(7, &mut frame);
        frame.extend_from_slice(&datagram.octets[piece.range.clone()]);
        assert!(frame.len() <= room && usize::from(piece.offset) == joined.len(), "{piece:?}");
        let (dispatch, header_len) = sixlowpan::parse_dispatch(&frame).expect("we wrote it");
        let piece = &frame[header_len..];
        let total_len = match dispatch {
            Dispatch::Subsequent { offset, .. } => {
                assert_eq!(usize::from(offset), joined.len());
                joined.extend_from_slice(piece);
                continue;
            }
            Dispatch::First { datagram_size, .. } => Some(datagram_size),
            Dispatch::Datagram => None,
        };
        let read = sixlowpan::decompress(piece, link, contexts, total_len, &mut joined);
        assert!(read.is_ok(), "{read:?}");
    }
    assert_eq!(joined, packet);
}

fn link(octets: &mut Unstructured<'_>) -> Result<Link> {
    let mut mac = || {
        Ok(if octets.ratio(3, 4)? {
            Address::Short(octets.arbitrary()?)
        } else {
            Address::Extended(octets.arbitrary()?)
        })
    };
    Ok(Link { src: mac()?, dst: mac()? })
}

fn contexts(octets: &mut Unstructured<'_>) -> Result<Contexts> {
    let mut contexts = Contexts::new();
    for _ in 0..octets.int_in_range(0..=3)? {
        let prefix = Ipv6Addr::from_bits(octets.arbitrary()?);
        let len = octets.int_in_range(0..=128)?;
        contexts = contexts.with(octets.arbitrary()?, Context::new(prefix, len).expect("at most 128 bits"));
    }
    Ok(contexts)
}

/// An address, mostly one that is nearly compressible.
fn address(octets: &mut Unstructured<'_>, mac: Address, contexts: &Contexts) -> Result<Ipv6Addr> {
    let iid = match (octets.int_in_range(0..=2)?, mac) {
        (0, Address::Short(short)) => 0xff_fe00_0000 | u64::from(short),
        (0, Address::Extended(eui64)) => u64::from_be_bytes(eui64) ^ 2 << 56,
        (1, _) => 0xff_fe00_0000 | u64::from(octets.arbitrary::<u16>()?),
        _ => octets.arbitrary()?,
    };
    let all: Vec<_> = contexts.iter().map(|(_, context)| context.prefix().to_bits()).collect();
    Ok(Ipv6Addr::from_bits(match octets.int_in_range(0..=4)? {
        0 => 0xfe80 << 112 | u128::from(iid),
        1 => 0xff02 << 112 | u128::from(octets.arbitrary::<u64>()? >> octets.int_in_range(0..=63)?),
        2 => octets.arbitrary()?,
        3 => 0,
        _ if all.is_empty() => u128::from(iid),
        _ => octets.choose(&all)? | u128::from(iid),
    }))
}

/// Encodes the packet (RFC 8200).
fn packet(header: &Ipv6Header, payload: &[u8]) -> Vec<u8> {
    let first = 6 << 28 | u32::from(header.traffic_class) << 20 | header.flow_label;
    let mut octets = first.to_be_bytes().to_vec();
    octets.extend((payload.len() as u16).to_be_bytes());
    octets.extend([header.next_header.0, header.hop_limit]);
    octets.extend(header.src.octets());
    octets.extend(header.dst.octets());
    octets.extend(payload);
    octets
}
