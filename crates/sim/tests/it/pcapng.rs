//! Captures read back by pcap-file and by tshark.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::io::{self, Write};
use std::net::IpAddr;

use anabranch_core::time::Instant;
use anabranch_sim::pcapng::{CaptureError, CaptureWriter, Direction, InterfaceInfo, LinkType};
use anabranch_testkit::tshark::Tshark;
use anabranch_wire::ip::{self, Header, Protocol};
use anabranch_wire::tcp::{Flags, Options, SackBlock, Segment, SeqNumber, Timestamps};
use bytes::Bytes;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::{Block, PcapNgReader};

const START: u64 = 1_500_000_007;

fn interfaces() -> Vec<InterfaceInfo> {
    let info = |name: &str, description: &str| InterfaceInfo {
        name: name.into(),
        description: description.into(),
        link_type: LinkType::RAW_IP,
    };
    vec![info("server-gw1", "wired, 100 Mbit/s"), info("gw1-node", "wireless, 256 kbit/s, loss 5 %")]
}

fn file() -> Bytes {
    (0..9000_u32).map(|i| ((i * i) >> 3) as u8).collect()
}

struct Sent {
    direction: Direction,
    segment: Segment,
    comment: Option<&'static str>,
}

/// The two ends of a connection, with a record of their segments.
struct Talk {
    all: Vec<Sent>,
}

impl Talk {
    fn say(&mut self, direction: Direction, [seq, ack]: [SeqNumber; 2], flags: Flags, more: Segment) {
        let (src_port, dst_port) = if direction == Direction::Outbound { (40000, 7) } else { (7, 40000) };
        let options =
            Options { timestamps: Some(Timestamps { value: seq.0 >> 20, echo: 5 }), ..more.options };
        let segment = Segment { src_port, dst_port, seq, ack, flags, window: 500, options, ..more };
        self.all.push(Sent { direction, segment, comment: None });
    }
}

/// A connection that carries [`file`] from client to server. The third packet is lost before the
/// capture and retransmitted.
fn exchange() -> Vec<Sent> {
    use Direction::{Inbound, Outbound};
    let (client, server) = (SeqNumber(4_294_960_000), SeqNumber(77));
    let (ack, data, fin) = (Flags::ACK, Flags::ACK.with(Flags::PSH), Flags::ACK.with(Flags::FIN));
    let with = |options| Segment { options, ..Segment::default() };
    let carrying = |payload| Segment { payload, ..Segment::default() };
    let syn = Options { mss: Some(1460), window_scale: Some(7), sack_permitted: true, ..Options::default() };
    let mut talk = Talk { all: Vec::new() };
    talk.say(Outbound, [client, SeqNumber(0)], Flags::SYN, with(syn));
    talk.say(Inbound, [server, client + 1], Flags::SYN.with(ack), with(syn));
    talk.say(Outbound, [client + 1, server + 1], ack, Segment::default());
    let file = file();
    for at in (0..file.len()).step_by(1400).filter(|at| *at != 2800) {
        let payload = file.slice(at..file.len().min(at + 1400));
        talk.say(Outbound, [client + 1 + at as u32, server + 1], data, carrying(payload));
    }
    let sack = [SackBlock { left: client + 4201, right: client + 9001 }].into_iter().collect();
    talk.say(Inbound, [server + 1, client + 2801], ack, with(Options { sack, ..Options::default() }));
    talk.say(Outbound, [client + 2801, server + 1], data, carrying(file.slice(2800..4200)));
    talk.all.last_mut().unwrap().comment = Some("again: größer");
    talk.say(Outbound, [client + 9001, server + 1], fin, Segment::default());
    talk.say(Inbound, [server + 1, client + 9002], fin, Segment::default());
    talk.say(Outbound, [client + 9002, server + 2], ack, Segment::default());
    talk.all
}

/// The exchange over IPv4 on one interface, whole, and over IPv6 on the other, in fragments of at
/// most 600 bytes.
fn capture() -> Vec<u8> {
    let mut writer = CaptureWriter::new(Vec::new(), &interfaces()).unwrap();
    let mut time = START;
    for (interface, ends, mtu) in [(0, ["10.1.0.1", "10.1.0.9"], 1500), (1, ["fd00::1", "fd00::9"], 600)] {
        let [client, server] = ends.map(|address| address.parse::<IpAddr>().unwrap());
        for (ident, Sent { direction, segment, comment }) in exchange().into_iter().enumerate() {
            let (src, dst) =
                if direction == Direction::Outbound { (client, server) } else { (server, client) };
            let header = Header { ident: ident as u32, ..Header::new(src, dst, Protocol::TCP) };
            let mut packet = Vec::new();
            ip::emit_tcp(&header, &segment, &mut packet).unwrap();
            let payload = packet.split_off(header.wire_len());
            for (header, range) in ip::fragment(&header, payload.len(), mtu).unwrap() {
                packet.clear();
                ip::emit(&header, &payload[range], &mut packet).unwrap();
                writer.packet(interface, Instant::from_nanos(time), direction, &packet, comment).unwrap();
                time += 1_000_000;
            }
        }
    }
    writer.finish().unwrap()
}

#[test]
fn pcap_file_reads_what_was_written() {
    let bytes = capture();
    assert_eq!(bytes, capture(), "the same packets, the same bytes");
    let mut reader = PcapNgReader::new(&bytes[..]).unwrap();
    assert!(reader.section().options.is_empty(), "nothing about the host");
    let (mut names, mut times, mut comments) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(block) = reader.next_block() {
        match block.unwrap() {
            Block::InterfaceDescription(block) => {
                assert_eq!(u32::from(block.linktype), 101);
                let has_resolution = block.options.contains(&InterfaceDescriptionOption::IfTsResol(9));
                assert!(has_resolution && block.options.len() == 3);
                names.extend(block.options.iter().find_map(|option| match option {
                    InterfaceDescriptionOption::IfName(name) => Some(name.to_string()),
                    _ => None,
                }));
            }
            Block::EnhancedPacket(block) => {
                assert_eq!(block.original_len as usize, block.data.len());
                let (header, _) = ip::parse(&block.data).unwrap();
                assert_eq!(header.src.is_ipv6(), block.interface_id == 1);
                times.push(block.timestamp.as_nanos() as u64);
                let outbound = block.options.contains(&EnhancedPacketOption::Flags(2));
                assert_ne!(outbound, block.options.contains(&EnhancedPacketOption::Flags(1)));
                comments.extend(block.options.into_iter().find_map(|option| match option {
                    EnhancedPacketOption::Comment(comment) => Some(comment.into_owned()),
                    _ => None,
                }));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(names, ["server-gw1", "gw1-node"]);
    assert_eq!(times, (0..times.len() as u64).map(|i| START + i * 1_000_000).collect::<Vec<_>>());
    assert_eq!(comments, vec!["again: größer"; 1 + 3]);
}

#[test]
fn an_empty_capture_is_a_section_header() {
    let bytes = CaptureWriter::new(Vec::new(), &[]).unwrap().finish().unwrap();
    assert_eq!(bytes.len(), 28);
    assert!(PcapNgReader::new(&bytes[..]).unwrap().next_block().is_none());
}

#[test]
fn what_cannot_be_written_is_an_error() {
    let mut writer = CaptureWriter::new(Vec::new(), &interfaces()).unwrap();
    let mut refusal = |interface, comment: &str| {
        writer.packet(interface, Instant::ZERO, Direction::Unknown, b"", Some(comment)).unwrap_err()
    };
    assert!(matches!(refusal(2, ""), CaptureError::Interface { interface: 2, interfaces: 2 }));
    assert!(matches!(refusal(1, &"x".repeat(65536)), CaptureError::Text { octets: 65536, .. }));

    /// A disk with this number of bytes left.
    struct Disk(usize);
    impl Write for Disk {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(octets.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(octets.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let full = |error| matches!(error, CaptureError::Io(error) if error.kind() == io::ErrorKind::StorageFull);
    assert!(full(CaptureWriter::new(Disk(100), &interfaces()).map(drop).unwrap_err()));
    let mut writer = CaptureWriter::new(Disk(300), &interfaces()).unwrap();
    assert!(full(writer.packet(0, Instant::ZERO, Direction::Unknown, &[0x45; 200], None).unwrap_err()));
}

#[test]
fn tshark_finds_nothing_to_complain_of() {
    let Some(tshark) = Tshark::open("pcapng", &capture()) else { return };
    let run = |arguments: &[&str]| tshark.run(arguments);
    let bad = "_ws.malformed || tcp.checksum.status == \"Bad\" || ip.checksum.status == \"Bad\"";
    assert_eq!(run(&["-Y", bad]), "");
    // Without the check enabled, the line above would prove nothing.
    let segments = exchange().len();
    let good = run(&["-Y", "tcp.checksum.status == \"Good\""]);
    assert_eq!(good.lines().count(), 2 * segments, "{good}");
    assert_eq!(run(&["-Y", "ip.checksum.status == \"Good\""]).lines().count(), segments);

    let fields = ["-T", "fields", "-e", "frame.interface_name", "-e", "frame.time_epoch"];
    let first = run(&fields);
    assert!(first.starts_with("server-gw1\t1.500000007"), "{first}");
    let comments = run(&["-Y", "frame.comment == \"again: größer\" && frame.packet_flags_direction == 2"]);
    assert_eq!(comments.lines().count(), 4, "{comments}");

    for stream in ["0", "1"] {
        let follow = run(&["-q", "-z", &format!("follow,tcp,raw,{stream}")]);
        let hex = |line: &&str| line.bytes().all(|octet| octet.is_ascii_hexdigit());
        let octets: String = follow.lines().filter(hex).collect();
        let sent: String = file().iter().map(|octet| format!("{octet:02x}")).collect();
        assert!(octets == sent, "stream {stream} is not the file");
    }
}
