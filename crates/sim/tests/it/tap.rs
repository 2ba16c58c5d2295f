//! Frames of IEEE 802.15.4 in a capture, dissected by tshark.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::net::{IpAddr, Ipv6Addr};

use anabranch_core::time::Instant;
use anabranch_sim::pcapng::{CaptureWriter, Direction, InterfaceInfo, LinkType};
use anabranch_testkit::tshark::Tshark;
use anabranch_wire::ieee802154::tap::{self, Tap};
use anabranch_wire::ieee802154::{self, Address, Fcs, Header, Kind};
use anabranch_wire::ip::{self, Protocol};
use anabranch_wire::rpl::{
    self, ALL_RPL_NODES, ControlOption, Dao, DaoAck, Dio, DodagConfiguration, Message, ModeOfOperation,
    NodeType, PathBuilt, PathTraversed, PrefixInformation, Target, TransitInformation,
};
use anabranch_wire::sixlowpan::{self, Context, Contexts, Link};
use anabranch_wire::tcp::{Flags, Options, Segment, SeqNumber, Timestamps};
use bytes::Bytes;

const PAN: u16 = 0xabcd;
/// Room in a frame: 127 bytes minus the header with short addresses and the FCS.
const ROOM: usize = 127 - 9 - 2;

/// The address of the node with this number.
const fn node(number: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, number)
}

/// The link-local address of the node with this short address (RFC 6282 section 3.2.2).
const fn link_local(number: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0xff, 0xfe00, number)
}

/// Context 0 is the prefix of all nodes, and a node's number is its short address.
fn contexts() -> Contexts {
    Contexts::new().with(0, Context::new(node(0), 112).unwrap())
}

/// A capture in progress.
struct Air {
    writer: CaptureWriter<Vec<u8>>,
    time: Instant,
    seq: u8,
    tag: u16,
}

impl Air {
    fn new() -> Self {
        let info = InterfaceInfo {
            name: "mesh".into(),
            description: String::new(),
            link_type: LinkType::IEEE802_15_4_TAP,
        };
        let writer = CaptureWriter::new(Vec::new(), &[info]).unwrap();
        Self { writer, time: Instant::from_nanos(0), seq: 0, tag: 0 }
    }

    fn frame(&mut self, frame: &[u8]) {
        let mut octets = Vec::new();
        let tap = Tap { fcs: Fcs::Crc16, rss: Some(-70.5), channel: Some((15, 0)), lqi: Some(200) };
        tap::emit(&tap, &mut octets);
        octets.extend(frame);
        self.time = Instant::from_nanos(self.time.as_nanos() + 1_000_000);
        self.writer.packet(0, self.time, Direction::Unknown, &octets, None).unwrap();
    }

    /// Adds a packet in as many frames as it takes, each acknowledged if it is unicast. Returns
    /// their number.
    fn packet(&mut self, [src, dst]: [Address; 2], packet: &[u8]) -> usize {
        let mut datagram = Vec::new();
        let lengths = sixlowpan::compress(packet, &Link { src, dst }, &contexts(), &mut datagram).unwrap();
        let pieces = sixlowpan::split(&lengths, ROOM).unwrap();
        let count = pieces.len();
        self.tag += 1;
        for piece in pieces {
            let mut payload = Vec::new();
            piece.emit_header(self.tag, &mut payload);
            payload.extend(&datagram[piece.range]);
            self.seq += 1;
            let ack_request = !dst.is_broadcast();
            let header = Header { kind: Kind::Data, ack_request, seq: self.seq, pan: PAN, dst, src };
            let mut frame = Vec::new();
            ieee802154::emit(&header, &payload, Fcs::Crc16, &mut frame).unwrap();
            assert!(frame.len() <= 127);
            self.frame(&frame);
            if ack_request {
                let mut ack = Vec::new();
                ieee802154::emit_ack(self.seq, Fcs::Crc16, &mut ack);
                self.frame(&ack);
            }
        }
        count
    }

    fn rpl(&mut self, link: [Address; 2], [src, dst]: [Ipv6Addr; 2], message: &Message) -> usize {
        let mut body = Vec::new();
        rpl::emit(message, [src, dst], &mut body).unwrap();
        let header =
            ip::Header { hop_limit: 255, ..ip::Header::new(src.into(), dst.into(), Protocol::ICMPV6) };
        let mut packet = Vec::new();
        ip::emit(&header, &body, &mut packet).unwrap();
        self.packet(link, &packet)
    }
}

/// A segment from `src` to `dst` on the path with this number, which is in the flow label.
fn segment([src, dst]: [Ipv6Addr; 2], path: u8, seq: u32, payload: Bytes) -> Vec<u8> {
    let options = Options { timestamps: Some(Timestamps { value: 1, echo: 2 }), ..Options::default() };
    let flags = Flags::ACK.with(Flags::PSH);
    let (seq, ack) = (SeqNumber(seq), SeqNumber(9));
    let segment = Segment {
        src_port: 40000,
        dst_port: 7,
        seq,
        ack,
        flags,
        window: 500,
        options,
        payload,
        ..Segment::default()
    };
    let mut packet = Vec::new();
    let header = ip::Header::new(IpAddr::V6(src), IpAddr::V6(dst), Protocol::TCP);
    ip::emit_tcp(&header, &segment, &mut packet).unwrap();
    packet[3] = path;
    packet
}

/// Hop-by-Hop options with the RPL option (RFC 6553), destination options with padding only, and
/// UDP with ports compressed to four bits. The UDP checksum is not valid.
fn options_and_udp([src, dst]: [Ipv6Addr; 2]) -> Vec<u8> {
    let hop_by_hop = [60, 0, 0x63, 4, 0, 30, 1, 0];
    let destination = [17, 0, 1, 4, 0, 0, 0, 0];
    let udp = [0xf0, 0xb1, 0xf0, 0xb2, 0, 12, 0xc5, 0xc5];
    let payload = [&hop_by_hop[..], &destination, &udp, b"four"].concat();
    let mut packet = vec![0x60, 0, 0, 0, 0, payload.len() as u8, 0, 64];
    packet.extend([src.octets(), dst.octets()].as_flattened());
    packet.extend(payload);
    packet
}

fn dio() -> Message {
    let configuration = DodagConfiguration {
        authenticated: false,
        path_control_size: 0,
        interval_doublings: 8,
        interval_min: 12,
        redundancy: 10,
        max_rank_increase: 0,
        min_hop_rank_increase: 256,
        objective_code_point: 0,
        default_lifetime: 30,
        lifetime_unit: 60,
    };
    let prefix = PrefixInformation {
        prefix_len: 112,
        on_link: false,
        autonomous: true,
        router_address: false,
        valid_lifetime: u32::MAX,
        preferred_lifetime: u32::MAX,
        prefix: node(0),
    };
    Message::Dio(Dio {
        instance: 0,
        version: 240,
        rank: 512,
        grounded: true,
        mode: ModeOfOperation::STORING,
        preference: 0,
        dtsn: 7,
        dodag: node(1),
        options: vec![
            ControlOption::DodagConfiguration(configuration),
            ControlOption::PrefixInformation(prefix),
            ControlOption::PathTraversed(PathTraversed {
                node_type: NodeType::MultiLink,
                multi_link: 0,
                path: vec![1, 2],
            }),
        ],
    })
}

fn dao() -> Message {
    let transit = TransitInformation {
        external: false,
        path_control: 0,
        path_sequence: 5,
        path_lifetime: 30,
        parent: None,
    };
    Message::Dao(Dao {
        instance: 0,
        ack_request: true,
        sequence: 3,
        dodag: None,
        options: vec![
            ControlOption::Target(Target { prefix_len: 128, prefix: node(7) }),
            ControlOption::TransitInformation(transit),
            ControlOption::PathBuilt(PathBuilt { id: 4, path: vec![7, 2, 1] }),
        ],
    })
}

/// A capture of a conversation, and its number of frames.
fn capture() -> (Vec<u8>, usize) {
    let mut air = Air::new();
    let [seven, two] = [Address::Short(7), Address::Short(2)];
    // Addresses that equal those of the frame; addresses of a forwarded packet, on path 3; and a
    // packet in five fragments.
    let one_hop = segment([node(7), node(2)], 0, 1, Bytes::from_static(b"one hop"));
    assert_eq!(air.packet([seven, two], &one_hop), 1);
    let forwarded = segment([node(9), node(1)], 3, 1, Bytes::from_static(b"path"));
    assert_eq!(air.packet([seven, two], &forwarded), 1);
    let long = segment([node(9), node(1)], 3, 5, (0..400_u32).map(|i| i as u8).collect());
    assert_eq!(air.packet([seven, two], &long), 5);
    let link = [two, Address::BROADCAST];
    assert_eq!(air.rpl(link, [link_local(2), ALL_RPL_NODES], &dio()), 1);
    assert_eq!(air.rpl([seven, two], [link_local(7), link_local(2)], &dao()), 1);
    let ack = DaoAck { instance: 0, sequence: 3, status: 0, dodag: None, options: vec![] };
    assert_eq!(air.rpl([two, seven], [link_local(2), link_local(7)], &Message::DaoAck(ack)), 1);
    assert_eq!(air.packet([seven, two], &options_and_udp([node(7), node(2)])), 1);
    // Eleven data frames, ten of them acknowledged.
    (air.writer.finish().unwrap(), 21)
}

#[test]
fn tshark_reads_what_is_on_the_air() {
    let (octets, frames) = capture();
    let Some(tshark) = Tshark::open("tap", &octets) else { return };
    let run = |arguments: &[&str]| tshark.run(arguments);
    let table = |filter: &str, fields: &str| {
        let fields = fields.split(' ').flat_map(|field| ["-e", field]);
        let arguments: Vec<_> =
            ["-Y", filter, "-T", "fields", "-E", "separator=/s"].into_iter().chain(fields).collect();
        run(&arguments)
    };

    let bad = "_ws.malformed || wpan.fcs_ok == 0 || tcp.checksum.status == \"Bad\"
        || icmpv6.checksum.status == \"Bad\" || 6lowpan.fragment.error || _ws.expert.severity >= \"Warning\"";
    assert_eq!(run(&["-Y", bad]), "");
    // Without the checks enabled, the lines above would prove nothing.
    let counts = tshark.counts([
        "wpan.fcs_ok == 1",
        "tcp.checksum.status == \"Good\"",
        "icmpv6.checksum.status == \"Good\"",
        "wpan.frame_type == 2",
    ]);
    assert_eq!(counts, [frames as u64, 3, 3, 10]);

    let tap = table("frame.number == 1", "wpan-tap.rss wpan-tap.ch_num wpan-tap.lqi wpan-tap.fcs_type");
    assert_eq!(tap, "-70.5 15 200 1\n");
    assert_eq!(
        table("frame.number == 3", "wpan.dst_pan wpan.dst16 wpan.src16 wpan.seq_no"),
        "0xabcd 0x0002 0x0007 2\n"
    );

    // Context 0 has 112 bits: an elided or 16-bit address still decodes to the node's number.
    let fields = "6lowpan.iphc.sam 6lowpan.iphc.dam ipv6.src ipv6.dst ipv6.flow tcp.len";
    let rows = "0x0003 0x0003 fd00::7 fd00::2 0x000000 7\n0x0002 0x0002 fd00::9 fd00::1 0x000003 4\n";
    assert_eq!(table("tcp && !6lowpan.fragments", fields), rows);
    let fields = "6lowpan.reassembled.length 6lowpan.fragment.count ipv6.src ipv6.dst ipv6.flow tcp.len";
    assert_eq!(table("tcp && 6lowpan.fragments", fields), "472 5 fd00::9 fd00::1 0x000003 400\n");

    let fields = "icmpv6.code 6lowpan.iphc.sam 6lowpan.iphc.dam ipv6.src ipv6.dst ipv6.hlim";
    let rows = "1 0x0003 0x0003 fe80::ff:fe00:2 ff02::1a 255\n\
                2 0x0003 0x0003 fe80::ff:fe00:7 fe80::ff:fe00:2 255\n\
                3 0x0003 0x0003 fe80::ff:fe00:2 fe80::ff:fe00:7 255\n";
    assert_eq!(table("icmpv6", fields), rows);
    let fields = "icmpv6.rpl.dio.rank icmpv6.rpl.dio.flag.mop icmpv6.rpl.dio.dagid icmpv6.rpl.opt.type";
    assert_eq!(table("icmpv6.code == 1", fields), "512 0x02 fd00::1 4,8,240\n");
    let fields = "icmpv6.rpl.dao.sequence icmpv6.rpl.opt.target.prefix icmpv6.rpl.opt.transit.pathlifetime";
    assert_eq!(table("icmpv6.code == 2", fields), "3 fd00::7 30\n");
    assert_eq!(table("icmpv6.code == 3", "icmpv6.rpl.daoack.sequence icmpv6.rpl.daoack.status"), "3 0\n");

    let fields = "udp.srcport udp.dstport udp.length udp.payload 6lowpan.nhc.ext.eid ipv6.plen";
    assert_eq!(table("udp", fields), "61617 61618 12 666f7572 0x00,0x03 28\n");
}
