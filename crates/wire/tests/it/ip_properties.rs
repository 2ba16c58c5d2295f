//! Properties of all packets: writing and parsing, and fragmentation and reassembly, are inverse.
//! No input makes the parsers or the reassembler panic or exceed their limits.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::net::IpAddr;

use anabranch_wire::ecn::Ecn;
use anabranch_wire::ip::{self, EmitError, Fragment, Header, Protocol, Reassembler};
use anabranch_wire::ip::{ReassemblyError, ReassemblyLimits};
use anabranch_wire::mptcp::{DataSeqNumber, Dss, Mapping, Mptcp, MptcpOption, WireDsn};
use anabranch_wire::tcp::{Flags, Options, SackBlock, Segment, SeqNumber, Timestamps};
use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

fn config(cases: u32) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(9293), failure_persistence: None, ..Config::default() }
}

fn addresses() -> impl Strategy<Value = (IpAddr, IpAddr)> {
    prop_oneof![
        any::<[[u8; 4]; 2]>().prop_map(|[a, b]| (a.into(), b.into())),
        any::<[[u8; 16]; 2]>().prop_map(|[a, b]| (a.into(), b.into())),
    ]
}

/// A header of a whole datagram, as parsing can return it.
fn header() -> impl Strategy<Value = Header> {
    (addresses(), any::<[u8; 2]>(), any::<u16>()).prop_map(|((src, dst), [hop_limit, class], ident)| Header {
        hop_limit,
        traffic_class: class,
        flow_label: if src.is_ipv6() { u32::from(ident) << 4 | 5 } else { 0 },
        ident: if src.is_ipv4() { ident.into() } else { 0 },
        ..Header::new(src, dst, Protocol::TCP)
    })
}

prop_compose! {
    fn options()(
        mss in option::of(any::<u16>()),
        window_scale in option::of(0_u8..=14),
        sack_permitted: bool,
        timestamps in option::of(any::<(u32, u32)>()),
        blocks in vec(any::<(u32, u32)>(), 0..=3),
    ) -> Options {
        let block = |(left, right)| SackBlock { left: SeqNumber(left), right: SeqNumber(right) };
        Options {
            mss,
            window_scale,
            sack_permitted,
            timestamps: timestamps.map(|(value, echo)| Timestamps { value, echo }),
            sack: blocks.into_iter().map(block).collect(),
        }
    }
}

/// The options of most segments of a subflow; `wire::mptcp` tests all kinds.
fn mptcp() -> impl Strategy<Value = Mptcp> {
    let dss = any::<(u64, u32, u16, bool)>().prop_map(|(ack, low, len, backup)| {
        let mapping = Mapping { dsn: WireDsn::Short(low), subflow_seq: low, len, checksum: None };
        let ack = WireDsn::Long(DataSeqNumber(ack));
        let mut mptcp = Mptcp::dss_only(Dss::default().with_data_ack(ack).with_mapping(mapping));
        if backup {
            mptcp.push(MptcpOption::MpPrio { backup });
        }
        mptcp
    });
    prop_oneof![4 => Just(Mptcp::NONE), 1 => dss]
}

prop_compose! {
    fn segment()(
        (src_port, dst_port, window) in any::<(u16, u16, u16)>(),
        (seq, ack, flags) in any::<(u32, u32, u8)>(),
        (options, mptcp) in (options(), mptcp()),
        ecn in any::<u8>().prop_map(Ecn::of),
        payload in vec(any::<u8>(), 0..200),
    ) -> Segment {
        Segment {
            src_port,
            dst_port,
            seq: SeqNumber(seq),
            ack: SeqNumber(ack),
            flags: Flags(flags),
            window,
            options,
            mptcp,
            payload: payload.into(),
            ecn,
        }
    }
}

fn read(packet: &[u8]) -> Option<(Header, Segment)> {
    let (header, range) = ip::parse(packet).ok()?;
    let segment = ip::parse_tcp(&header, Bytes::copy_from_slice(&packet[range])).ok()?;
    Some((header, segment))
}

/// Damage that a network may do to a packet.
#[derive(Clone, Debug)]
enum Damage {
    Set(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Append(Vec<u8>),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        8 => any::<(prop::sample::Index, u8)>().prop_map(|(at, value)| Damage::Set(at, value)),
        1 => any::<prop::sample::Index>().prop_map(Damage::Cut),
        1 => vec(any::<u8>(), 1..9).prop_map(Damage::Append),
    ]
}

proptest! {
    #![proptest_config(config(2000))]

    #[test]
    fn a_segment_survives_its_bytes(header in header(), segment in segment(), junk in vec(any::<u8>(), 0..9)) {
        let mut packet = junk.clone();
        match ip::emit_tcp(&header, &segment, &mut packet) {
            Err(error) => {
                let octets = segment.options_len();
                prop_assert_eq!(error, EmitError::Options { octets });
                prop_assert!(octets > 40);
                prop_assert_eq!(packet, junk);
            }
            Ok(()) => {
                let packet = &packet[junk.len()..];
                let octets = header.wire_len() + segment.wire_len();
                prop_assert_eq!(packet.len(), octets);
                let mut buffer = std::vec![0xff; octets - 1];
                prop_assert_eq!(ip::write_tcp(&header, &segment, &mut buffer), Err(EmitError::Buffer { octets }));
                prop_assert!(buffer.iter().all(|octet| *octet == 0xff));
                buffer.resize(octets + junk.len(), 0xff);
                prop_assert_eq!(ip::write_tcp(&header, &segment, &mut buffer), Ok(octets));
                prop_assert_eq!(&buffer[..octets], packet);
                let header = Header { traffic_class: segment.ecn.within(header.traffic_class), ..header };
                prop_assert_eq!(read(packet), Some((header, segment.clone())));
                // Padding of the link layer changes nothing.
                prop_assert_eq!(read(&[packet, &junk].concat()), Some((header, segment)));
            }
        }
    }

    #[test]
    fn a_piece_survives_its_bytes(
        header in header(),
        (protocol, ident, words, more) in any::<(u8, u16, u16, bool)>(),
        payload in vec(any::<u8>(), 0..100),
    ) {
        let fragment = Some(Fragment { offset: words / 8 * 8, more });
        let header = Header { protocol: Protocol(protocol), ident: ident.into(), fragment, ..header };
        let mut packet = Vec::new();
        if ip::emit(&header, &payload, &mut packet).is_ok() {
            let (mut parsed, range) = ip::parse(&packet).unwrap();
            prop_assert_eq!(&packet[range], &payload[..]);
            if parsed.src.is_ipv4() && words < 8 && !more {
                parsed.fragment = fragment;
            }
            prop_assert_eq!(parsed, header);
        }
    }

    #[test]
    fn random_octets_are_refused_or_read(mut octets in vec(any::<u8>(), 0..150), version in 4_u8..=6) {
        let _ = ip::parse(&octets);
        if let Some(first) = octets.first_mut() {
            *first = *first & 15 | version << 4;
        }
        let _ = read(&octets);
    }

    #[test]
    fn damaged_packets_are_refused_or_read(
        header in header(),
        segment in segment(),
        damages in vec(damage(), 1..6),
        tcp_only: bool,
    ) {
        let mut packet = Vec::new();
        let written = ip::emit_tcp(&header, &segment, &mut packet);
        prop_assume!(written.is_ok());
        for damage in damages {
            match damage {
                Damage::Set(at, value) if !packet.is_empty() => {
                    let at = at.index(packet.len());
                    packet[at] = value;
                }
                Damage::Set(..) => {}
                Damage::Cut(at) => packet.truncate(at.index(packet.len() + 1)),
                Damage::Append(more) => packet.extend(more),
            }
        }
        if tcp_only {
            // With right checksums, as from a faulty sender: then only the options can be wrong.
            let payload = packet.get(header.wire_len()..).unwrap_or_default();
            let _ = ip::parse_tcp(&header, with_checksum(&header, payload));
        } else {
            let _ = read(&packet);
        }
    }

    #[test]
    fn a_datagram_survives_being_cut(
        header in header(),
        ident: u16,
        payload in vec(any::<u8>(), 0..3000),
        mtu in 56_usize..1500,
        order in vec(any::<prop::sample::Index>(), 0..400),
        again in option::of(56_usize..600),
    ) {
        let header = Header { ident: ident.into(), protocol: Protocol::UDP, ..header };
        let payload = Bytes::from(payload);
        let mut pieces = Vec::new();
        for (piece, range) in ip::fragment(&header, payload.len(), mtu).unwrap() {
            let octets = payload.slice(range);
            prop_assert!(piece.wire_len() + octets.len() <= mtu);
            // A second link with a smaller MTU.
            for (smaller, range) in ip::fragment(&piece, octets.len(), again.unwrap_or(mtu)).unwrap() {
                pieces.push((smaller, octets.slice(range)));
            }
        }
        // Each index delivers one fragment, most of them more than once; then all arrive in order.
        let shuffled = order.iter().map(|index| index.get(&pieces));
        let mut reassembler = Reassembler::default();
        let mut whole = None;
        for (piece, octets) in shuffled.chain(&pieces) {
            // Encode and parse.
            let mut packet = Vec::new();
            ip::emit(piece, octets, &mut packet).unwrap();
            let (mut read, _) = ip::parse(&packet).unwrap();
            if read.fragment.is_none() {
                // A whole IPv6 datagram does not carry the identification.
                read.ident = header.ident;
            }
            prop_assert_eq!(&read, piece);
            whole = whole.or(reassembler.insert(&read, octets.clone(), 0).unwrap());
            if whole.is_some() {
                break;
            }
        }
        prop_assert_eq!(whole, Some((header, payload)));
        prop_assert_eq!((reassembler.len(), reassembler.octets()), (0, 0));
    }

    #[test]
    fn the_reassembler_stays_within_its_limits(
        (src, dst) in addresses(),
        inserts in vec((0_u32..4, 0_u16..40, 0_usize..60, any::<bool>(), 0_u8..2), 0..200),
    ) {
        let limits = ReassemblyLimits { octets: 600, datagrams: 3 };
        let mut reassembler = Reassembler::new(limits);
        for (tag, (ident, word, len, more, fill)) in inserts.into_iter().enumerate() {
            let fragment = Some(Fragment { offset: word * 8, more });
            let header = Header { ident, fragment, ..Header::new(src, dst, Protocol::UDP) };
            let len = if more { len / 8 * 8 } else { len };
            let inserted = reassembler.insert(&header, Bytes::from(vec![fill; len]), tag as u64);
            if let Ok(Some((whole, payload))) = inserted {
                prop_assert_eq!(whole.fragment, None);
                prop_assert!(payload.len() <= 40 * 8 + 60);
            }
            prop_assert!(reassembler.octets() <= limits.octets);
            prop_assert!(reassembler.len() <= limits.datagrams);
            if tag % 16 == 15 {
                reassembler.expire(tag as u64 - 8);
                prop_assert!(reassembler.oldest().is_none_or(|oldest| oldest >= tag as u64 - 8));
            }
        }
        reassembler.expire(u64::MAX);
        prop_assert_eq!((reassembler.len(), reassembler.octets()), (0, 0));
    }
}

/// The TCP bytes with a right checksum.
fn with_checksum(header: &Header, octets: &[u8]) -> Bytes {
    let mut octets = octets.to_vec();
    if octets.len() >= 20 {
        octets[16..18].fill(0);
        let mut pseudo = Vec::new();
        for address in [header.src, header.dst] {
            match address {
                IpAddr::V4(address) => pseudo.extend(address.octets()),
                IpAddr::V6(address) => pseudo.extend(address.octets()),
            }
        }
        pseudo.extend([0, 6]);
        pseudo.extend((octets.len() as u16).to_be_bytes());
        pseudo.extend(&octets);
        let words = pseudo.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], *w.get(1).unwrap_or(&0)])));
        let mut sum: u32 = words.sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        octets[16..18].copy_from_slice(&(!sum as u16).to_be_bytes());
    }
    octets.into()
}

fn piece(ident: u32, offset: u16, more: bool) -> Header {
    let [src, dst] = ["fd00::1", "fd00::2"].map(|address| address.parse::<IpAddr>().unwrap());
    let fragment = Some(Fragment { offset, more });
    Header { ident, fragment, ..Header::new(src, dst, Protocol::UDP) }
}

fn octets(len: usize, fill: u8) -> Bytes {
    vec![fill; len].into()
}

#[test]
fn an_overlap_refuses_its_datagram_until_it_expires() {
    let mut reassembler = Reassembler::default();
    assert_eq!(reassembler.insert(&piece(1, 0, true), octets(16, 1), 10), Ok(None));
    assert_eq!(reassembler.insert(&piece(1, 0, true), octets(16, 1), 10), Ok(None), "a duplicate");
    let overlap = Err(ReassemblyError::Overlap);
    assert_eq!(reassembler.insert(&piece(1, 8, true), octets(16, 1), 11), overlap);
    let refused = Err(ReassemblyError::Refused);
    assert_eq!(reassembler.insert(&piece(1, 16, false), octets(3, 1), 12), refused);
    assert_eq!((reassembler.len(), reassembler.octets()), (1, 0));
    assert_eq!(reassembler.expire(10), 0);
    assert_eq!(reassembler.expire(11), 1);
    assert_eq!(reassembler.insert(&piece(1, 16, false), octets(3, 1), 13), Ok(None));

    // Same position and length with other bytes; an end before existing data; two ends.
    for (id, second, len, fill) in [(2, (0, true), 16, 9), (3, (8, false), 4, 1), (4, (16, false), 4, 1)] {
        reassembler.insert(&piece(id, 0, true), octets(16, 1), 20).unwrap();
        reassembler.insert(&piece(id, 24, id != 4), octets(8, 1), 20).unwrap();
        let result = reassembler.insert(&piece(id, second.0, second.1), octets(len, fill), 20);
        assert_eq!(result, overlap, "datagram {id}");
    }
}

#[test]
fn pieces_that_no_sender_makes_are_refused() {
    let mut reassembler = Reassembler::default();
    let mut refusal = |offset, more, len| reassembler.insert(&piece(1, offset, more), octets(len, 0), 0);
    assert_eq!(refusal(0, true, 9), Err(ReassemblyError::Length { octets: 9 }));
    assert_eq!(refusal(8, true, 0), Err(ReassemblyError::Length { octets: 0 }));
    assert_eq!(refusal(4, true, 8), Err(ReassemblyError::Offset { offset: 4 }));
    assert_eq!(refusal(65528, false, 8), Err(ReassemblyError::Offset { offset: 65528 }));
    assert_eq!(refusal(65528, false, 7), Ok(None));
    assert!(matches!(refusal(0, false, 0), Ok(Some(_))), "an atomic fragment (RFC 6946) is whole");
}

#[test]
fn the_datagram_that_began_first_makes_room() {
    let mut reassembler = Reassembler::new(ReassemblyLimits { octets: 1000, datagrams: 2 });
    for ident in 1..=3 {
        assert_eq!(reassembler.insert(&piece(ident, 0, true), octets(8, 0), ident.into()), Ok(None));
    }
    assert_eq!((reassembler.evicted(), reassembler.oldest()), (1, Some(2)));
    assert_eq!(reassembler.insert(&piece(3, 8, true), octets(800, 0), 4), Ok(None));
    assert_eq!((reassembler.evicted(), reassembler.oldest()), (2, Some(3)));
    assert_eq!(reassembler.insert(&piece(3, 808, false), octets(200, 0), 5), Err(ReassemblyError::Full));
}

#[test]
fn what_no_packet_can_say_is_refused() {
    let v4 = Header::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), Protocol::UDP);
    let v6 = Header { fragment: None, ..piece(1, 0, false) };
    let mut out = Vec::new();
    let mut refusal = |header: &Header, len| ip::emit(header, &vec![0; len], &mut out).unwrap_err();
    assert_eq!(refusal(&Header { dst: v6.dst, ..v4 }, 1), EmitError::MixedFamilies);
    assert_eq!(refusal(&v4, 65516), EmitError::TooLong { octets: 65516 });
    assert_eq!(refusal(&v6, 65536), EmitError::TooLong { octets: 65536 });
    assert_eq!(refusal(&Header { protocol: Protocol(43), ..v6 }, 1), EmitError::Extension { protocol: 43 });
    assert_eq!(refusal(&piece(1, 8, true), 9), EmitError::FragmentOffset { offset: 8 });
    assert!(out.is_empty());
    assert_eq!(ip::fragment(&v4, 9, 27).unwrap_err(), EmitError::Mtu { mtu: 27 });
    assert_eq!(ip::fragment(&v6, 9, 48).unwrap_err(), EmitError::Mtu { mtu: 48 });
    assert_eq!(ip::fragment(&v4, usize::MAX, 1500).unwrap_err(), EmitError::TooLong { octets: usize::MAX });
    assert_eq!(ip::fragment(&v4, 0, 20).unwrap().collect::<Vec<_>>(), [(v4, 0..0)]);
}
