//! Packets of the Linux kernel, parsed and written again: see `ip_vectors.txt`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::collections::BTreeMap;
use std::net::IpAddr;

use anabranch_wire::ip::{self, Field, Fragment, Header, ParseError, Protocol, Reassembler};
use anabranch_wire::tcp::{Flags, Options, SackBlock, Segment, SeqNumber, Timestamps};
use bytes::Bytes;

fn vectors() -> BTreeMap<&'static str, Bytes> {
    let lines = include_str!("ip_vectors.txt").lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split_once(" = ").unwrap()).map(|(name, hex)| (name, unhex(hex))).collect()
}

fn unhex(hex: &str) -> Bytes {
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

fn read(packet: &Bytes) -> (Header, Bytes) {
    let (header, range) = ip::parse(packet).unwrap();
    (header, packet.slice(range))
}

fn header(src: &str, dst: &str, ident: u32) -> Header {
    let [src, dst] = [src, dst].map(|address| address.parse::<IpAddr>().unwrap());
    Header { ident, ..Header::new(src, dst, Protocol::TCP) }
}

fn timestamps(value: u32, echo: u32) -> Option<Timestamps> {
    Some(Timestamps { value, echo })
}

fn expected() -> Vec<(&'static str, Header, Segment)> {
    let (a4, b4, a6, b6) = ("10.8.0.1", "10.8.0.2", "fd08::1", "fd08::2");
    let (syn, ack, urgent) = (Flags::SYN, Flags::ACK, Flags::ACK.with(Flags::PSH).with(Flags::URG));
    let on_syn = |mss, timestamps| Options {
        mss: Some(mss),
        window_scale: Some(10),
        sack_permitted: true,
        timestamps,
        ..Options::default()
    };
    let timed = |timestamps| Options { timestamps, ..Options::default() };
    let blocks = |timestamps, blocks: &[(u32, u32)]| Options {
        timestamps,
        sack: blocks
            .iter()
            .map(|&(left, right)| SackBlock { left: SeqNumber(left), right: SeqNumber(right) })
            .collect(),
        ..Options::default()
    };
    let segment = |src_port, dst_port, seq, ack, flags, window, options, payload| Segment {
        src_port,
        dst_port,
        seq: SeqNumber(seq),
        ack: SeqNumber(ack),
        flags,
        window,
        options,
        payload: Bytes::from_static(payload),
        ..Segment::default()
    };
    let sack4 = [(2448550925, 2448552373), (2448543685, 2448549477), (2448540789, 2448542237)];
    let sack6 = [(1988107791, 1988109219), (1988100651, 1988106363)];
    vec![
        (
            "v4 syn",
            header(a4, b4, 0x59fe),
            segment(41908, 7000, 2448536437, 0, syn, 64240, on_syn(1460, timestamps(79095551, 0)), b""),
        ),
        (
            "v4 syn-ack",
            header(b4, a4, 0),
            segment(
                7000,
                41908,
                3980366594,
                2448536438,
                syn.with(ack),
                65160,
                on_syn(1460, timestamps(118355990, 79095551)),
                b"",
            ),
        ),
        (
            "v4 urgent",
            header(a4, b4, 0x5a00),
            segment(
                41908,
                7000,
                2448536438,
                3980366595,
                urgent,
                63,
                timed(timestamps(79095551, 118355990)),
                b"urgent!",
            ),
        ),
        (
            "v4 three sack blocks",
            header(b4, a4, 0xb3e2),
            segment(
                7000,
                41908,
                3980366595,
                2448539341,
                ack,
                76,
                blocks(timestamps(118355991, 79095551), &sack4),
                b"",
            ),
        ),
        (
            "v4 fin",
            header(b4, a4, 0xb3f8),
            segment(
                7000,
                41908,
                3980366598,
                2448577405,
                Flags::FIN.with(ack),
                78,
                timed(timestamps(118356199, 79095760)),
                b"",
            ),
        ),
        (
            "v4 reset",
            header(b4, a4, 0),
            segment(7001, 51152, 0, 1030642275, Flags::RST.with(ack), 0, Options::default(), b""),
        ),
        (
            "v6 syn",
            header(a6, b6, 0),
            segment(43610, 7000, 1988099215, 0, syn, 64800, on_syn(1440, timestamps(2263559262, 0)), b""),
        ),
        (
            "v6 syn-ack",
            header(b6, a6, 0),
            segment(
                7000,
                43610,
                2077154168,
                1988099216,
                syn.with(ack),
                64260,
                on_syn(1440, timestamps(1470353691, 2263559262)),
                b"",
            ),
        ),
        (
            "v6 urgent",
            header(a6, b6, 0),
            segment(
                43610,
                7000,
                1988099216,
                2077154169,
                urgent,
                64,
                timed(timestamps(2263559263, 1470353691)),
                b"urgent!",
            ),
        ),
        (
            "v6 two sack blocks",
            header(b6, a6, 0),
            segment(
                7000,
                43610,
                2077154169,
                1988099223,
                ack,
                73,
                blocks(timestamps(1470353691, 2263559263), &sack6),
                b"",
            ),
        ),
        (
            "v6 fin",
            header(b6, a6, 0),
            segment(
                7000,
                43610,
                2077154172,
                1988140183,
                Flags::FIN.with(ack),
                78,
                timed(timestamps(1470353693, 2263559265)),
                b"",
            ),
        ),
        (
            "v6 reset",
            header(b6, a6, 0),
            segment(7001, 42390, 0, 2209651861, Flags::RST.with(ack), 0, Options::default(), b""),
        ),
    ]
}

/// [`expected`] with the kernel's flow labels, which are random.
fn labelled() -> Vec<(&'static str, Header, Segment)> {
    let vectors = vectors();
    let label = |packet: &[u8]| u32::from_be_bytes([0, packet[1] & 0xf, packet[2], packet[3]]);
    let mut all = expected();
    for (name, header, _) in all.iter_mut().filter(|(_, header, _)| header.src.is_ipv6()) {
        header.flow_label = label(&vectors[*name]);
        assert_ne!(header.flow_label, 0, "{name}");
    }
    all
}

#[test]
fn kernel_segments_are_read() {
    let vectors = vectors();
    for (name, header, segment) in labelled() {
        let (read_header, payload) = read(&vectors[name]);
        assert_eq!(read_header, header, "{name}");
        assert_eq!(ip::parse_tcp(&header, payload).unwrap(), segment, "{name}");
    }
}

/// Exceptions: we do not keep the don't-fragment bit of IPv4 and the urgent pointer, and we pack
/// SACK blocks more tightly than Linux. Everything else is bit-identical.
#[test]
fn kernel_segments_are_written_as_the_kernel_did() {
    let vectors = vectors();
    for (name, header, segment) in labelled() {
        let mut ours = Vec::new();
        ip::emit_tcp(&header, &segment, &mut ours).unwrap();
        let read_again = ip::parse(&ours).unwrap();
        assert_eq!(read_again.0, header, "{name}");
        if name.contains("urgent") || name.contains("sack") {
            continue;
        }
        let mut theirs = vectors[name].to_vec();
        if header.src.is_ipv4() {
            // The bit and its contribution to the checksum.
            theirs[6] &= !0x40;
            theirs[10..12].copy_from_slice(&ours[10..12]);
            let sum =
                theirs[..20].chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum::<u32>();
            assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "{name}");
        }
        assert_eq!(ours, theirs, "{name}");
    }
}

#[test]
fn kernel_fragments_are_joined_and_cut_alike() {
    let vectors = vectors();
    for family in ["v4", "v6"] {
        let pieces = ["1", "2", "3"].map(|n| read(&vectors[format!("{family} udp piece {n}").as_str()]));
        let mut reassembler = Reassembler::default();
        let mut whole = None;
        for (header, payload) in pieces.iter().rev() {
            assert_eq!(whole, None);
            whole = reassembler.insert(header, payload.clone(), 0).unwrap();
        }
        let (header, payload) = whole.unwrap();
        assert_eq!((header.protocol, header.fragment), (Protocol::UDP, None));
        assert_eq!(payload.len(), 3008);
        assert!(payload[8..].iter().enumerate().all(|(i, &octet)| octet == (i * 7) as u8));
        assert!(reassembler.is_empty() && reassembler.octets() == 0);

        let cut = ip::fragment(&header, payload.len(), 1500).unwrap();
        let ours: Vec<_> = cut.map(|(header, range)| (header, payload.slice(range))).collect();
        assert_eq!(ours, pieces, "{family}");
        let more: Vec<_> = pieces.iter().map(|(header, _)| header.fragment.unwrap().more).collect();
        assert_eq!(more, [true, true, false]);
    }
}

#[test]
fn an_icmp_error_is_a_whole_packet_of_another_protocol() {
    let packet = &vectors()["v4 icmp"];
    let (header, payload) = read(packet);
    assert_eq!((header.protocol, header.ident, payload.len()), (Protocol::ICMP, 0x9e1b, 556));
    let refused = ip::parse_tcp(&header, payload);
    assert_eq!(refused, Err(ParseError { field: Field::Protocol, offset: 0 }));
}

#[test]
fn every_flipped_bit_of_a_kernel_segment_is_noticed_or_not_kept() {
    for (name, header, segment) in labelled() {
        let packet = vectors()[name].clone();
        for bit in 0..packet.len() * 8 {
            let mut bad = packet.to_vec();
            bad[bit / 8] ^= 0x80 >> (bit % 8);
            let read = ip::parse(&bad).and_then(|(header, range)| {
                Ok((header, ip::parse_tcp(&header, Bytes::copy_from_slice(&bad[range]))?))
            });
            // IPv6 has no checksum of its own: traffic class, flow label and hop limit may change.
            let unprotected =
                header.src.is_ipv6() && (4..32).contains(&bit) || header.src.is_ipv6() && bit / 8 == 7;
            match read {
                Err(_) => assert!(!unprotected, "{name}: bit {bit}"),
                Ok(read) if bit / 8 == 7 => assert_eq!(read.1, segment),
                Ok((mut read, mut same)) => {
                    let class = header.src.is_ipv6() && (4..12).contains(&bit);
                    assert_eq!(read.traffic_class != header.traffic_class, class, "{name}: bit {bit}");
                    assert_eq!(same.ecn != segment.ecn, class && bit >= 10, "{name}: bit {bit}");
                    (read.traffic_class, same.ecn) = (header.traffic_class, segment.ecn);
                    let label = header.src.is_ipv6() && (12..32).contains(&bit);
                    assert_eq!(read.flow_label != header.flow_label, label, "{name}: bit {bit}");
                    read.flow_label = header.flow_label;
                    assert!(unprotected && (read, same) == (header, segment.clone()), "{name}: bit {bit}");
                }
            }
        }
    }
}

#[test]
fn errors_say_which_field_is_wrong_and_where() {
    let vectors = vectors();
    let (v4, v6) = (&vectors["v4 syn"], &vectors["v6 syn"]);
    let refused = |packet: &[u8]| {
        let read = ip::parse(packet).and_then(|(header, range)| {
            ip::parse_tcp(&header, Bytes::copy_from_slice(&packet[range])).map(drop)
        });
        read.unwrap_err()
    };
    let with = |packet: &Bytes, at: usize, value: u8| {
        let mut bad = packet.to_vec();
        bad[at] = value;
        if bad[0] >> 4 == 4 && bad[0] & 15 >= 5 {
            bad[10..12].fill(0);
            let sum = bad[..20].chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum::<u32>();
            bad[10..12].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
        }
        bad
    };
    let cases: [(&[u8], Field, usize); 18] = [
        (b"", Field::Version, 0),
        (&with(v4, 0, 0x55), Field::Version, 0),
        (&v4[..19], Field::Ipv4Header, 0),
        (&with(v4, 0, 0x44), Field::Ipv4HeaderLength, 0),
        (&with(&v4.slice(..24), 0, 0x4f), Field::Ipv4HeaderLength, 0),
        (&with(v4, 3, 19), Field::Ipv4TotalLength, 2),
        (&v4[..59], Field::Ipv4TotalLength, 2),
        (&with(v4, 6, 0x1f), Field::Fragment, 0),
        (&[&v4[..10], &[0, 0], &v4[12..]].concat(), Field::Ipv4Checksum, 10),
        (&v6[..39], Field::Ipv6Header, 0),
        (&v6[..79], Field::Ipv6PayloadLength, 4),
        (&with(v6, 5, 8), Field::TcpHeader, 0),
        (&with(v6, 40 + 12, 0x40), Field::TcpDataOffset, 12),
        (&with(v6, 40 + 12, 0xb0), Field::TcpDataOffset, 12),
        (&with(v6, 40 + 16, 0), Field::TcpChecksum, 16),
        (&with(v6, 6, 43), Field::Ipv6Extension, 40),
        (&with(v6, 6, 17), Field::Protocol, 0),
        (&with(v4, 9, 17), Field::Protocol, 0),
    ];
    for (i, (packet, field, offset)) in cases.into_iter().enumerate() {
        assert_eq!(refused(packet), ParseError { field, offset }, "case {i}");
    }
}

#[test]
fn extension_headers_are_skipped() {
    let syn = &vectors()["v6 syn"];
    // Hop-by-Hop with PadN(4), destination options of two words, routing without segments left.
    let hop = [60, 0, 1, 4, 0, 0, 0, 0];
    let destination = [43, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let routing = [6, 0, 0, 0, 0, 0, 0, 0];
    let extensions = [&hop[..], &destination, &routing].concat();
    let mut packet = [&syn[..40], &extensions, &syn[40..]].concat();
    packet[5] += extensions.len() as u8;
    packet[6] = 0;
    let (header, range) = ip::parse(&packet).unwrap();
    assert_eq!((header.protocol, range.clone()), (Protocol::TCP, 72..112));
    ip::parse_tcp(&header, Bytes::copy_from_slice(&packet[range])).unwrap();

    let mut segments_left = packet.clone();
    segments_left[67] = 1;
    assert_eq!(ip::parse(&segments_left), Err(ParseError { field: Field::Ipv6Routing, offset: 64 }));
    let mut hop_late = packet.clone();
    hop_late[40] = 0;
    assert_eq!(ip::parse(&hop_late), Err(ParseError { field: Field::Ipv6HopByHop, offset: 48 }));
    let mut past_end = packet;
    past_end[65] = 9;
    assert_eq!(ip::parse(&past_end), Err(ParseError { field: Field::Ipv6Extension, offset: 64 }));
}

#[test]
fn options_behind_a_fragment_header_are_skipped_when_the_datagram_is_whole() {
    let header = Header {
        protocol: Protocol(60),
        fragment: Some(Fragment { offset: 0, more: true }),
        ..header("fd08::1", "fd08::2", 7)
    };
    let mut packet = Vec::new();
    ip::emit(&header, &[17, 0, 1, 4, 0, 0, 0, 0], &mut packet).unwrap();
    assert_eq!(ip::parse(&packet).unwrap(), (header, 48..56));
    let mut reassembler = Reassembler::default();
    assert_eq!(reassembler.insert(&header, Bytes::from_static(&[17, 0, 1, 4, 0, 0, 0, 0]), 0), Ok(None));
    let last = Header { fragment: Some(Fragment { offset: 8, more: false }), ..header };
    let (whole, payload) = reassembler.insert(&last, Bytes::from_static(b"data"), 0).unwrap().unwrap();
    assert_eq!((whole.protocol, &payload[..]), (Protocol::UDP, &b"data"[..]));
}
