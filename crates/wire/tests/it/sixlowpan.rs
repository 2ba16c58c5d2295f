//! Tests of 6LoWPAN: every address mode byte by byte; compression and decompression, and
//! fragmentation and reassembly, are inverse; no input makes the parsers panic.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::net::Ipv6Addr;

use anabranch_wire::ieee802154::Address;
use anabranch_wire::ip::Protocol;
use anabranch_wire::sixlowpan::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use smoltcp::wire::{
    Ieee802154Address, SixlowpanFragPacket, SixlowpanFragRepr, SixlowpanIphcPacket, SixlowpanIphcRepr,
    SixlowpanNextHeader, SixlowpanUdpNhcPacket,
};

fn config(cases: u32) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(6282), failure_persistence: None, ..Config::default() }
}

fn ip(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn context(prefix: &str, len: u8) -> Context {
    Context::new(ip(prefix), len).unwrap()
}

const EUI64: [u8; 8] = [0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0];

/// From an extended address to a short one.
const LINK: Link = Link { src: Address::Extended(EUI64), dst: Address::Short(0x0102) };

/// 0: the prefix of all nodes; 1: a /64; 2: shorter than 64 bits; 15: a whole address.
fn contexts() -> Contexts {
    Contexts::new()
        .with(0, context("fd00::", 112))
        .with(1, context("2001:db8:1:2::", 64))
        .with(2, context("2001:db8:2::", 48))
        .with(15, context("2001:db8:3::5", 128))
}

fn header(src: &str, dst: &str) -> Ipv6Header {
    let (src, dst) = (ip(src), ip(dst));
    Ipv6Header { src, dst, traffic_class: 0, flow_label: 0, next_header: Protocol::TCP, hop_limit: 64 }
}

/// The packet as specified in RFC 8200.
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

/// Compresses, checks that decompression is the inverse, and returns the datagram.
fn there_and_back(packet: &[u8], link: &Link, contexts: &Contexts) -> (Compressed, Vec<u8>) {
    let mut datagram = b"before".to_vec();
    let lengths = compress(packet, link, contexts, &mut datagram).unwrap();
    let datagram = datagram.split_off(6);
    assert_eq!((lengths.len, lengths.uncompressed_len), (datagram.len(), packet.len()));
    assert!(lengths.len <= packet.len(), "{datagram:02x?}");
    assert_eq!(parse_dispatch(&datagram), Ok((Dispatch::Datagram, 0)));
    let mut again = b"before".to_vec();
    let read = decompress(&datagram, link, contexts, None, &mut again).unwrap();
    assert_eq!(&again[6..], packet, "{datagram:02x?}");
    assert_eq!(read.header_len, lengths.header_len);
    assert_eq!(read.uncompressed_header_len - read.header_len, packet.len() - datagram.len());
    (lengths, datagram)
}

/// The compressed header, without payload.
fn compressed(header: &Ipv6Header) -> Vec<u8> {
    let (lengths, datagram) = there_and_back(&packet(header, b""), &LINK, &contexts());
    assert_eq!(compressed_header_len(header, None, &LINK, &contexts()), lengths.header_len);
    datagram
}

#[test]
fn every_mode_of_an_address_is_these_octets() {
    // The second byte and the bytes after the next header: source, then destination.
    let of = |src, dst| {
        let octets = compressed(&header(src, dst));
        assert_eq!(octets[0], 0x7a);
        let fields = if octets[1] & 0x80 == 0 { 2 } else { 3 };
        assert_eq!(octets[fields], 6);
        (octets[1], octets[2..fields].to_vec(), octets[fields + 1..].to_vec())
    };
    let none = Vec::new;
    let all = |address: &str| ip(address).octets().to_vec();
    // Stateless.
    assert_eq!(of("fe80::1034:5678:9abc:def0", "fe80::ff:fe00:102"), (0x33, none(), none()));
    assert_eq!(of("fe80::ff:fe00:7", "fe80::ff:fe00:8"), (0x22, none(), vec![0, 7, 0, 8]));
    let both = [1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, 2, 1].to_vec();
    assert_eq!(of("fe80::102:304:506:708", "fe80::807:605:403:201"), (0x11, none(), both));
    let both = [all("fe80::1:0:0:0:1"), all("2001:db8::1")].concat();
    assert_eq!(of("fe80::1:0:0:0:1", "2001:db8::1"), (0x00, none(), both));
    assert_eq!(of("::", "fe80::ff:fe00:102"), (0x43, none(), none()));
    // Context 0 covers all but the short address: elided for the destination, 16 bits for the
    // source.
    assert_eq!(of("fd00::7", "fd00::102"), (0x67, none(), vec![0, 7]));
    // Contexts other than 0, whose number is sent.
    let elided = of("2001:db8:1:2:1034:5678:9abc:def0", "2001:db8:1:2::ff:fe00:102");
    assert_eq!(elided, (0xf7, vec![0x11], none()));
    let short = of("2001:db8:1:2::ff:fe00:7", "2001:db8:2::ff:fe00:8");
    assert_eq!(short, (0xe6, vec![0x12], vec![0, 7, 0, 8]));
    let both = [1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, 2, 1].to_vec();
    assert_eq!(of("2001:db8:2::102:304:506:708", "2001:db8:1:2:807:605:403:201"), (0xd5, vec![0x21], both));
    // Only the source needs one; the destination uses context 0.
    assert_eq!(of("2001:db8:3::5", "fd00::8"), (0xf6, vec![0xf0], vec![0, 8]));
    // A context number costs one byte and saves two.
    let both = [&[0, 7][..], &all("2001:db8::1")].concat();
    assert_eq!(of("2001:db8:1:2::ff:fe00:7", "2001:db8::1"), (0xe0, vec![0x10], both));
}

#[test]
fn every_mode_of_a_multicast_address_is_these_octets() {
    let of = |dst| {
        let octets = compressed(&header("fe80::1034:5678:9abc:def0", dst));
        (octets[1], octets[2..].to_vec())
    };
    // All RPL nodes (RFC 6550 section 6): one byte.
    assert_eq!(of("ff02::1a"), (0x3b, vec![6, 0x1a]));
    assert_eq!(of("ff05::1:3"), (0x3a, vec![6, 5, 1, 0, 3]));
    assert_eq!(of("ff05::1:203:405"), (0x39, vec![6, 5, 1, 2, 3, 4, 5]));
    let whole = ip("ff05:1::1").octets();
    assert_eq!(of("ff05:1::1"), (0x38, [&[6][..], &whole].concat()));
    // A multicast address based on a unicast prefix (RFC 3306), which is context 1.
    assert_eq!(of("ff3e:0040:2001:db8:1:2:506:708"), (0xbc, vec![0x01, 6, 0x3e, 0, 5, 6, 7, 8]));
}

#[test]
fn every_form_of_the_other_fields_is_these_octets() {
    let plain = header("fe80::1034:5678:9abc:def0", "fe80::ff:fe00:102");
    let of = |traffic_class, flow_label, hop_limit| {
        compressed(&Ipv6Header { traffic_class, flow_label, hop_limit, ..plain })
    };
    assert_eq!(of(0, 0, 1), [0x79, 0x33, 6]);
    assert_eq!(of(0, 0, 64), [0x7a, 0x33, 6]);
    assert_eq!(of(0, 0, 255), [0x7b, 0x33, 6]);
    assert_eq!(of(0, 0, 63), [0x78, 0x33, 6, 63]);
    // DSCP 46, ECN 1: the ECN bits come first.
    assert_eq!(of(0xb9, 0, 64), [0x72, 0x33, 0x6e, 6]);
    assert_eq!(of(0x01, 0xabcde, 64), [0x6a, 0x33, 0x4a, 0xbc, 0xde, 6]);
    assert_eq!(of(0, 1, 64), [0x6a, 0x33, 0, 0, 1, 6]);
    assert_eq!(of(0xb9, 0xabcde, 64), [0x62, 0x33, 0x6e, 0x0a, 0xbc, 0xde, 6]);
}

fn udp(src: u16, dst: u16, payload: &[u8]) -> Vec<u8> {
    let len = 8 + payload.len() as u16;
    let fields = [src, dst, len, 0xc5c5].map(u16::to_be_bytes);
    [fields.as_flattened(), payload].concat()
}

#[test]
fn every_form_of_udp_ports_is_these_octets() {
    let header =
        Ipv6Header { next_header: Protocol::UDP, ..header("fe80::1034:5678:9abc:def0", "fe80::ff:fe00:102") };
    let of = |src, dst| {
        let (lengths, datagram) = there_and_back(&packet(&header, &udp(src, dst, b"hi")), &LINK, &contexts());
        let expected = compressed_header_len(&header, Some([src, dst]), &LINK, &contexts());
        assert_eq!(lengths.header_len, expected);
        assert_eq!(
            (&datagram[..2], &datagram[datagram.len() - 4..]),
            (&[0x7e, 0x33][..], &b"\xc5\xc5hi"[..])
        );
        datagram[2..datagram.len() - 4].to_vec()
    };
    assert_eq!(of(0xf0b1, 0xf0b2), [0xf3, 0x12]);
    assert_eq!(of(0xf0c1, 0xf0b2), [0xf1, 0xf0, 0xc1, 0xb2]);
    assert_eq!(of(5683, 0xf0b2), [0xf1, 0x16, 0x33, 0xb2]);
    assert_eq!(of(0xf0b1, 5683), [0xf2, 0xb1, 0x16, 0x33]);
    assert_eq!(of(5683, 5684), [0xf0, 0x16, 0x33, 0x16, 0x34]);
    // A length that differs from the packet's must be sent.
    let mut longer = udp(5683, 5684, b"hi");
    longer.push(b'!');
    let (lengths, datagram) = there_and_back(&packet(&header, &longer), &LINK, &contexts());
    assert_eq!((lengths.header_len, &datagram[..3]), (3, &[0x7a, 0x33, 17][..]));
}

#[test]
fn extension_headers_lose_their_padding_and_nothing_else() {
    let header =
        Ipv6Header { next_header: Protocol(0), ..header("fe80::1034:5678:9abc:def0", "fe80::ff:fe00:102") };
    let of = |payload: &[u8]| there_and_back(&packet(&header, payload), &LINK, &contexts()).1[2..].to_vec();
    // The RPL option (RFC 6553 section 3) in Hop-by-Hop options, then TCP.
    let rpl = [0x63, 4, 0, 30, 1, 0];
    assert_eq!(of(&[&[6, 0][..], &rpl].concat()), [&[0xe0, 6, 6][..], &rpl].concat());
    // Padding that decompression restores is elided; other padding is not.
    assert_eq!(of(&[6, 0, 5, 2, 0, 0, 1, 0]), [0xe0, 6, 4, 5, 2, 0, 0]);
    assert_eq!(of(&[6, 0, 5, 4, 0, 0, 0, 0]), [0xe0, 6, 6, 5, 4, 0, 0, 0, 0]);
    assert_eq!(of(&[6, 0, 1, 4, 0, 0, 0, 0]), [0xe0, 6, 0]);
    assert_eq!(of(&[6, 0, 1, 4, 0, 0, 9, 0]), [0xe0, 6, 6, 1, 4, 0, 0, 9, 0]);
    assert_eq!(of(&[6, 0, 5, 2, 0, 0, 0, 0]), [0xe0, 6, 5, 5, 2, 0, 0, 0]);
    // Destination options, routing and UDP, all compressed; routing has nothing to elide.
    let routing = [17, 0, 3, 0, 1, 0, 0, 0];
    let payload = [&[60, 0, 5, 2, 0, 0, 1, 0][..], &[43, 0, 1, 4, 0, 0, 0, 0], &routing, &udp(1, 2, b"x")];
    let expected = [&[0xe1, 4, 5, 2, 0, 0][..], &[0xe7, 0], &[0xe3, 6], &routing[2..], &[0xf0, 0, 1, 0, 2]];
    assert_eq!(of(&payload.concat()), [&expected.concat()[..], b"\xc5\xc5x"].concat());
    // Nothing after a Fragment header is compressed, since it need not be a header. Its second byte
    // is reserved.
    let payload = [&[44, 0, 1, 4, 0, 0, 0, 0][..], &[17, 9, 0, 1, 0, 0, 0, 7], &udp(1, 2, b"x")].concat();
    assert_eq!(of(&payload)[..], [&[0xe1, 0, 0xe4, 17, 9, 0, 1, 0, 0, 0, 7][..], &payload[16..]].concat());
    // Left uncompressed: too long for a one-byte length, truncated, or a kind without LOWPAN_NHC.
    let long = [&[6, 32][..], &[5, 254], &[0; 254], &[1, 4, 0, 0, 0, 0]].concat();
    for payload in [&long[..], &[6, 1, 1, 4, 0, 0, 0, 0], &[6]] {
        assert_eq!(of(payload)[..], [&[0][..], payload].concat());
    }
}

#[test]
fn nothing_is_derived_from_another_link_or_another_context() {
    let packet = packet(&header("fd00::7", "fd00::102"), b"payload");
    let (_, datagram) = there_and_back(&packet, &LINK, &contexts());
    let mut out = Vec::new();
    let error = decompress(&datagram, &LINK, &Contexts::new(), None, &mut out).unwrap_err();
    assert_eq!((error.field, error.offset), (Field::Context, 3));
    assert_eq!(error.to_string(), "bad context at octet 3 of a 6LoWPAN datagram");
    let link = Link { dst: Address::Short(9), ..LINK };
    decompress(&datagram, &link, &contexts(), None, &mut out).unwrap();
    assert_eq!(out[24..40], ip("fd00::9").octets());
}

#[test]
fn what_is_not_understood_is_refused_by_name() {
    let refusal = |datagram: &[u8]| {
        let mut out = b"before".to_vec();
        let error = decompress(datagram, &LINK, &contexts(), None, &mut out).unwrap_err();
        assert_eq!(out, b"before");
        error.field
    };
    assert_eq!(refusal(b""), Field::Dispatch);
    assert_eq!(refusal(&[0x42, 0]), Field::Dispatch);
    assert_eq!(refusal(&[0x7a]), Field::Iphc);
    assert_eq!(refusal(&[0x7a, 0x33]), Field::Iphc);
    assert_eq!(refusal(&[0x7a, 0x23, 6, 1]), Field::Address);
    assert_eq!(refusal(&[0x7a, 0x34, 6]), Field::AddressMode);
    assert_eq!(refusal(&[0x7a, 0x3d, 6, 1, 2, 3, 4, 5, 6]), Field::AddressMode);
    assert_eq!(refusal(&[0x7a, 0xbf, 0x05, 6]), Field::AddressMode);
    assert_eq!(refusal(&[0x7a, 0xb7, 0x05, 6]), Field::Context);
    // RFC 3306 does not allow a prefix of 112 bits, which context 0 has.
    assert_eq!(refusal(&[0x7a, 0x3c, 6, 1, 2, 3, 4, 5, 6]), Field::Context);
    assert_eq!(refusal(&[0x7e, 0x33]), Field::NextHeader);
    assert_eq!(refusal(&[0x7e, 0x33, 0x80]), Field::NextHeader);
    assert_eq!(refusal(&[0x7e, 0x33, 0xee, 6, 0]), Field::NextHeader);
    assert_eq!(refusal(&[0x7e, 0x33, 0xe0, 6, 5, 1]), Field::Extension);
    assert_eq!(refusal(&[0x7e, 0x33, 0xe2, 6, 5, 1, 2, 3, 4, 5]), Field::Extension);
    assert_eq!(refusal(&[0x7e, 0x33, 0xf3]), Field::Udp);
    assert_eq!(refusal(&[0x7e, 0x33, 0xf7, 0x12]), Field::UdpChecksum);
    assert_eq!(refusal(&[0x41, 0x60]), Field::Ipv6Header);
    assert_eq!(refusal(&[&[0x7a, 0x33, 6][..], &[0; 65536]].concat()), Field::Length);
    let mut out = Vec::new();
    let error = decompress(&[0x7a, 0x33, 6, 1, 2, 3], &LINK, &contexts(), Some(42), &mut out).unwrap_err();
    assert_eq!(error.field, Field::Length);
    assert_eq!(
        compress(&[0x60; 39], &LINK, &contexts(), &mut out),
        Err(CompressError::NotIpv6 { octets: 39 })
    );
    assert_eq!(
        compress(&[0x45; 40], &LINK, &contexts(), &mut out),
        Err(CompressError::NotIpv6 { octets: 40 })
    );
    let mut short = packet(&header("::1", "::2"), b"four");
    short.pop();
    let error = CompressError::PayloadLength { announced: 4, octets: 3 };
    assert_eq!(compress(&short, &LINK, &contexts(), &mut out), Err(error));
    assert!(Context::new(ip("::"), 129).is_err());
}

#[test]
fn an_uncompressed_packet_is_read_too() {
    let packet = packet(&header("fd00::7", "fd00::102"), b"payload");
    let datagram = [&[0x41][..], &packet].concat();
    assert_eq!(parse_dispatch(&datagram), Ok((Dispatch::Datagram, 0)));
    for (cut, total_len) in [(0, None), (3, Some(packet.len() as u16))] {
        let mut out = Vec::new();
        let datagram = &datagram[..datagram.len() - cut];
        let read = decompress(datagram, &LINK, &contexts(), total_len, &mut out).unwrap();
        assert_eq!(read, Decompressed { header_len: 41, uncompressed_header_len: 40 });
        assert_eq!(out, packet[..packet.len() - cut]);
    }
}

#[test]
fn fragment_headers_are_these_octets() {
    let lengths = Compressed { header_len: 5, len: 65, uncompressed_len: 100 };
    let pieces: Vec<_> = split(&lengths, 30).unwrap().collect();
    // 26 bytes of room plus the 35 bytes saved are 61. The offset can express 56 of them, 21 in the
    // frame.
    let ranges: Vec<_> = pieces.iter().map(|piece| (piece.offset, piece.range.clone())).collect();
    assert_eq!(ranges, [(0, 0..21), (56, 21..45), (80, 45..65)]);
    let headers = pieces.iter().map(|piece| {
        let mut out = Vec::new();
        piece.emit_header(0x1234, &mut out);
        assert_eq!(out.len(), piece.header_len());
        assert!(piece.frame_payload_len() <= 30);
        out
    });
    let expected: [&[u8]; 3] =
        [&[0xc0, 100, 0x12, 0x34], &[0xe0, 100, 0x12, 0x34, 7], &[0xe0, 100, 0x12, 0x34, 10]];
    assert!(headers.eq(expected));
    assert_eq!(pieces.iter().map(|piece| piece.uncompressed_len).collect::<Vec<_>>(), [56, 24, 20]);
    let whole: Vec<_> = split(&lengths, 65).unwrap().collect();
    assert_eq!((whole.len(), whole[0].kind, whole[0].header_len()), (1, PieceKind::Whole, 0));
    assert_eq!((whole[0].range.clone(), whole[0].uncompressed_len), (0..65, 100));
}

#[test]
fn what_cannot_be_cut_is_refused() {
    let lengths = Compressed { header_len: 40, len: 1000, uncompressed_len: 1005 };
    let no_room = |room| Err(SplitError::Room { room, header_len: 40 });
    assert_eq!(split(&lengths, 43).map(drop), no_room(43));
    // 47 + 5 - 4 are 48 bytes of the packet, 43 of the datagram.
    assert_eq!(split(&lengths, 47).unwrap().next().unwrap().range, 0..43);
    let bare = Compressed { header_len: 0, ..lengths };
    assert_eq!(split(&bare, 12).map(drop), Err(SplitError::Room { room: 12, header_len: 0 }));
    assert_eq!(split(&bare, 13).unwrap().map(|piece| piece.range.len()).sum::<usize>(), 1000);
    let long = Compressed { len: 2000, uncompressed_len: 2048, header_len: 5 };
    assert_eq!(split(&long, 100).map(drop), Err(SplitError::TooLong { octets: 2048 }));
    assert!(split(&long, 2000).is_ok());
}

#[test]
fn a_frame_that_carries_no_datagram_is_refused() {
    assert_eq!(parse_dispatch(&[]), Err(DispatchError::Empty));
    assert_eq!(parse_dispatch(&[0xc0, 100, 1]), Err(DispatchError::FragmentHeader { octets: 3 }));
    assert_eq!(parse_dispatch(&[0xe0, 100, 1, 2]), Err(DispatchError::FragmentHeader { octets: 4 }));
    for dispatch in [0x00, 0x42, 0x50, 0x80, 0xc8, 0xe8, 0xff] {
        assert_eq!(parse_dispatch(&[dispatch; 9]), Err(DispatchError::Unknown { dispatch }));
    }
}

fn mac() -> impl Strategy<Value = Address> {
    prop_oneof![any::<u16>().prop_map(Address::Short), any::<[u8; 8]>().prop_map(Address::Extended)]
}

fn any_contexts() -> impl Strategy<Value = Contexts> {
    let one = (any::<[u8; 16]>(), prop_oneof![Just(64), Just(112), 0u8..=128]);
    vec(option::weighted(0.3, one), 16).prop_map(|all| {
        (0..).zip(all).fold(Contexts::new(), |contexts, (number, one)| match one {
            Some((prefix, len)) => contexts.with(number, Context::new(prefix.into(), len).unwrap()),
            None => contexts,
        })
    })
}

/// Addresses of every form, with the bytes of the context or the link where `pick` selects them.
fn address(mac: Address, contexts: Contexts) -> impl Strategy<Value = Ipv6Addr> {
    let prefix = any::<prop::sample::Index>().prop_map(move |index| {
        let all: Vec<_> = contexts.iter().map(|(_, context)| (context.prefix(), context.len())).collect();
        let link_local = (Ipv6Addr::from_bits(0xfe80 << 112), 64);
        if all.is_empty() { link_local } else { *index.get(&[&all[..], &[link_local]].concat()) }
    });
    let iid = prop_oneof![
        Just(match mac {
            Address::Short(short) => 0xff_fe00_0000 | u64::from(short),
            Address::Extended(eui64) => u64::from_be_bytes(eui64) ^ 2 << 56,
        }),
        any::<u16>().prop_map(|short| 0xff_fe00_0000 | u64::from(short)),
        any::<u64>(),
    ];
    let made = (prefix, iid).prop_map(|((prefix, len), iid)| {
        let rest = u128::MAX.checked_shr(len.into()).unwrap_or(0);
        Ipv6Addr::from_bits(prefix.to_bits() | u128::from(iid) & rest)
    });
    let multicast = (any::<u128>(), 0u32..=112).prop_map(|(bits, zeros)| {
        let low = bits & u128::MAX.checked_shr(8 + zeros).unwrap_or(0);
        Ipv6Addr::from_bits(0xff << 120 | (bits >> 112 & 0xff) << 112 | low)
    });
    prop_oneof![
        6 => made,
        2 => multicast,
        1 => any::<u8>().prop_map(|low| Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, low.into())),
        1 => Just(Ipv6Addr::UNSPECIFIED),
        1 => any::<[u8; 16]>().prop_map(Ipv6Addr::from),
    ]
}

prop_compose! {
    fn any_header()(link in (mac(), mac()), contexts in any_contexts())(
        src in address(link.0, contexts),
        dst in address(link.1, contexts),
        traffic_class in prop_oneof![Just(0), 0u8..4, any::<u8>()],
        flow_label in prop_oneof![Just(0), 0u32..16, 0u32..1 << 20],
        hop_limit in prop_oneof![Just(1), Just(64), Just(255), any::<u8>()],
        link in Just(Link { src: link.0, dst: link.1 }),
        contexts in Just(contexts),
    ) -> (Ipv6Header, Link, Contexts) {
        let next_header = Protocol::TCP;
        (Ipv6Header { src, dst, traffic_class, flow_label, next_header, hop_limit }, link, contexts)
    }
}

/// A payload and its first protocol number: extension headers, valid or not, and data after them.
fn chain() -> impl Strategy<Value = (u8, Vec<u8>)> {
    let option = prop_oneof![
        Just(vec![0]),
        (0u8..8).prop_map(|len| [vec![1, len], vec![0; len.into()]].concat()),
        (2u8.., vec(any::<u8>(), 0..12))
            .prop_map(|(kind, data)| [vec![kind, data.len() as u8], data].concat()),
    ];
    let options = vec(option, 0..5).prop_map(|options| options.concat());
    let extension = (prop_oneof![Just(0), Just(60), Just(43), Just(44), Just(135)], options, any::<bool>());
    let port = prop_oneof![any::<u16>(), 0xf000u16..=0xf0ff, 0xf0b0u16..=0xf0bf];
    let last = prop_oneof![
        (port.clone(), port, vec(any::<u8>(), 0..300))
            .prop_map(|(src, dst, data)| (17, udp(src, dst, &data))),
        (any::<u8>(), vec(any::<u8>(), 0..60)),
    ];
    (vec(extension, 0..4), last).prop_map(|(extensions, last)| {
        extensions.into_iter().rev().fold(last, |(next, behind), (kind, mut content, is_sound)| {
            if is_sound {
                content.resize((content.len() + 2).next_multiple_of(8) - 2, 0);
            }
            let len = ((content.len() + 2) / 8) as u8;
            (kind, [&[next, len.wrapping_sub(1)][..], &content, &behind].concat())
        })
    })
}

proptest! {
    #![proptest_config(config(4000))]

    #[test]
    fn a_packet_comes_back_as_it_was((mut header, link, contexts) in any_header(), (next, payload) in chain()) {
        header.next_header = Protocol(next);
        there_and_back(&packet(&header, &payload), &link, &contexts);
    }

    #[test]
    fn the_length_is_known_without_octets((header, link, contexts) in any_header(), ports: Option<[u16; 2]>) {
        let header = Ipv6Header { next_header: if ports.is_some() { Protocol::UDP } else { Protocol::TCP }, ..header };
        let payload = ports.map_or(vec![7; 30], |[src, dst]| udp(src, dst, b"data"));
        let (lengths, _) = there_and_back(&packet(&header, &payload), &link, &contexts);
        prop_assert_eq!(compressed_header_len(&header, ports, &link, &contexts), lengths.header_len);
    }

    #[test]
    fn pieces_make_the_whole(
        (mut header, link, contexts) in any_header(),
        (next, mut payload) in chain(),
        more in prop_oneof![Just(0), 0usize..1500],
        room in 13usize..200,
        tag: u16,
    ) {
        header.next_header = Protocol(next);
        payload.resize(payload.len() + more, 0x55);
        let packet = packet(&header, &payload);
        let (lengths, datagram) = there_and_back(&packet, &link, &contexts);
        let Ok(pieces) = split(&lengths, room) else {
            // These are the only reasons.
            prop_assert!(packet.len() > MAX_DATAGRAM || lengths.header_len + 4 + 7 > room);
            return Ok(());
        };
        let count = pieces.len();
        let mut joined = Vec::new();
        for (i, piece) in pieces.enumerate() {
            let mut frame = Vec::new();
            piece.emit_header(tag, &mut frame);
            frame.extend(&datagram[piece.range.clone()]);
            prop_assert!(frame.len() <= room && frame.len() == piece.frame_payload_len());
            let (dispatch, header_len) = parse_dispatch(&frame).unwrap();
            prop_assert_eq!(header_len, piece.header_len());
            prop_assert_eq!(usize::from(piece.offset), joined.len());
            let datagram_size = packet.len() as u16;
            match dispatch {
                Dispatch::Datagram => {
                    prop_assert_eq!(count, 1);
                    decompress(&frame, &link, &contexts, None, &mut joined).unwrap();
                }
                Dispatch::First { .. } => {
                    prop_assert_eq!(dispatch, Dispatch::First { datagram_size, tag });
                    prop_assert!(i == 0 && piece.range.end >= lengths.header_len);
                    decompress(&frame[header_len..], &link, &contexts, Some(datagram_size), &mut joined).unwrap();
                }
                Dispatch::Subsequent { .. } => {
                    prop_assert_eq!(dispatch, Dispatch::Subsequent { datagram_size, tag, offset: piece.offset });
                    joined.extend(&frame[header_len..]);
                }
            }
            prop_assert_eq!(joined.len(), usize::from(piece.offset + piece.uncompressed_len));
            prop_assert!(i + 1 == count || joined.len() % 8 == 0);
        }
        prop_assert_eq!(joined, packet);
    }

    #[test]
    fn no_octets_make_anything_panic(
        mut octets in vec(any::<u8>(), 0..200),
        near: bool,
        contexts in any_contexts(),
        total_len: Option<u16>,
        lengths: [usize; 3],
        room: usize,
    ) {
        if let (true, Some(first)) = (near, octets.first_mut()) {
            *first = 0x60 | *first & 0x1f;
        }
        let mut out = Vec::new();
        let _ = parse_dispatch(&octets);
        match decompress(&octets, &LINK, &contexts, total_len, &mut out) {
            // The result is a packet, but its datagram may have been longer than ours.
            Ok(_) if total_len.is_none() => drop(there_and_back(&out, &LINK, &contexts)),
            Ok(_) => {}
            Err(error) => prop_assert!(error.offset <= octets.len() && out.is_empty()),
        }
        let _ = compress(&octets, &LINK, &contexts, &mut out);
        let [header_len, len, uncompressed_len] = lengths;
        let _ = split(&Compressed { header_len, len, uncompressed_len }, room).map(|split| split.take(3000).count());
    }

    /// smoltcp 0.14 does not write contexts, traffic class and flow label, treats every address of
    /// fe80::/10 as one of fe80::/64, and encodes a whole multicast address in the mode of one
    /// byte. Everything else is equal.
    #[test]
    fn smoltcp_writes_and_reads_the_same((header, link, _) in any_header()) {
        let of = |address: Ipv6Addr, prefix: Ipv6Addr, len: u32| (address.to_bits() ^ prefix.to_bits()) >> (128 - len) == 0;
        let misread = |address| of(address, ip("fe80::"), 10) && !of(address, ip("fe80::"), 64);
        prop_assume!(!misread(header.src) && !misread(header.dst));
        prop_assume!(!header.dst.is_multicast() || header.dst.octets()[2..11] == [0; 9]);
        let header = Ipv6Header { traffic_class: 0, flow_label: 0, ..header };
        let (lengths, datagram) = there_and_back(&packet(&header, b""), &link, &Contexts::new());
        let ll = |mac| Some(match mac {
            Address::Short(short) => Ieee802154Address::Short(short.to_be_bytes()),
            Address::Extended(eui64) => Ieee802154Address::Extended(eui64),
        });
        let repr = SixlowpanIphcRepr {
            src_addr: header.src,
            ll_src_addr: ll(link.src),
            dst_addr: header.dst,
            ll_dst_addr: ll(link.dst),
            next_header: SixlowpanNextHeader::Uncompressed(header.next_header.0.into()),
            hop_limit: header.hop_limit,
            ecn: None,
            dscp: None,
            flow_label: None,
        };
        prop_assert_eq!(lengths.header_len, repr.buffer_len());
        let mut theirs = vec![0; repr.buffer_len()];
        repr.emit(&mut SixlowpanIphcPacket::new_unchecked(&mut theirs[..]));
        prop_assert_eq!(&theirs, &datagram);
        let view = SixlowpanIphcPacket::new_checked(&datagram[..]).unwrap();
        prop_assert_eq!(SixlowpanIphcRepr::parse(&view, ll(link.src), ll(link.dst), &[]), Ok(repr));
    }

    /// smoltcp 0.14 misreads a destination port of which eight or four bits are sent.
    #[test]
    fn smoltcp_reads_the_same_ports(src in any::<u16>(), low: u8, dst in 0u16..0xf000) {
        for src in [src, 0xf000 | u16::from(low)] {
            let addresses = header("fe80::1034:5678:9abc:def0", "fe80::ff:fe00:102");
            let header = Ipv6Header { next_header: Protocol::UDP, ..addresses };
            let (_, datagram) = there_and_back(&packet(&header, &udp(src, dst, b"hi")), &LINK, &contexts());
            let view = SixlowpanUdpNhcPacket::new_checked(&datagram[2..]).unwrap();
            prop_assert_eq!((view.src_port(), view.dst_port(), view.checksum()), (src, dst, Some(0xc5c5)));
            prop_assert_eq!(view.payload(), b"hi");
        }
    }

    #[test]
    fn smoltcp_reads_the_same_fragments(len in 100usize..1900, saved in 0usize..40, room in 60usize..127, tag: u16) {
        let lengths = Compressed { header_len: 40 - saved, len, uncompressed_len: len + saved };
        let size = lengths.uncompressed_len as u16;
        for piece in split(&lengths, room).unwrap().filter(|piece| piece.kind != PieceKind::Whole) {
            let mut frame = Vec::new();
            piece.emit_header(tag, &mut frame);
            frame.push(0);
            let offset = (piece.offset / 8) as u8;
            let expected = match piece.kind {
                PieceKind::Subsequent => SixlowpanFragRepr::Fragment { size, tag, offset },
                _ => SixlowpanFragRepr::FirstFragment { size, tag },
            };
            let view = SixlowpanFragPacket::new_checked(&frame[..]).unwrap();
            prop_assert_eq!(SixlowpanFragRepr::parse(&view), Ok(expected));
        }
    }
}
