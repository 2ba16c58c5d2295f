//! Captures of runs with a radio: transmitted frames, read back by tshark.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::collections::BTreeMap;

use anabranch_core::mptcp::{self, SchedulerKind};
use anabranch_core::paths::{self, NodeType};
use anabranch_core::tcp;
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::apps::packets::{PacketSink, PacketSource, PacketSourceConfig};
use anabranch_sim::apps::{BulkSender, BulkSenderConfig, Content, Sink, pattern};
use anabranch_sim::capture::Capture;
use anabranch_sim::event::AppId;
use anabranch_sim::frames::{self, AirFrame, Content as FrameContent};
use anabranch_sim::link::LinkConfig;
use anabranch_sim::network::{
    Forwarding, FragmentForwarding, NetworkConfig, VirtualReassembly, WirelessConfig,
};
use anabranch_sim::packet::{IpVersion, LinkId, NodeId};
use anabranch_sim::radio::{Position, Propagation, RadioConfig, Station, StationMetrics};
use anabranch_sim::sim::{Builder, Fault, Simulation};
use anabranch_sim::trace::{Observer, TextTrace};
use anabranch_sim::world::Failure;
use anabranch_testkit::tshark::Tshark;
use anabranch_wire::ieee802154::{self, Frame};

const RANGE: f64 = 100.0;
const BULK: u64 = 20_000;
const PACKETS: u32 = 200;
/// A port that tshark does not associate with a protocol.
const PORT: u16 = 47_111;

fn after(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// Links lose frames, so that frames are retransmitted.
fn lossy(mut radio: RadioConfig, loss: f64) -> RadioConfig {
    let Propagation::UnitDisk(disk) = &mut radio.propagation else { panic!("a unit disk") };
    disk.loss = loss;
    radio
}

/// Nodes with a radio and routers, the root first.
fn on_air(
    radio: RadioConfig,
    wireless: WirelessConfig,
    places: &[(f64, f64)],
    multi_link: Option<usize>,
) -> (Builder, Vec<NodeId>) {
    let mut builder = Builder::new(NetworkConfig::default(), 1, 0);
    let nodes: Vec<NodeId> =
        (0..places.len()).map(|i| builder.node(&format!("n{i}"), Forwarding::On)).collect();
    let sites: Vec<_> = nodes.iter().copied().zip(places.iter().map(|&(x, y)| Position { x, y })).collect();
    builder.radio(radio, wireless, &sites).unwrap();
    // The paper's rank, with which a relay with a cable is a parent of its neighbours.
    let config = if multi_link.is_some() { paths::Config::paper() } else { paths::Config::default() };
    for (i, &node) in nodes.iter().enumerate() {
        let kind = match i {
            0 => None,
            i if Some(i) == multi_link => Some(NodeType::MultiLink),
            _ => Some(NodeType::Ieee802154),
        };
        builder.router(node, config, kind);
    }
    (builder, nodes)
}

/// TCP over three hops, in both directions at the same time.
fn row(radio: RadioConfig, wireless: WirelessConfig, mss: u16) -> (Builder, Vec<NodeId>, [AppId; 2]) {
    let places = [(0.0, 0.0), (80.0, 0.0), (160.0, 0.0), (240.0, 0.0)];
    let (mut builder, nodes) = on_air(radio, wireless, &places, None);
    let tcp = tcp::Config { mss, ..tcp::Config::default() };
    let mut transfer = |from, to, port| {
        let config = BulkSenderConfig::new(to, port, Content::Pattern(BULK), tcp);
        builder.app(from, after(60), BulkSender::new(config));
        builder.app(to, Instant::ZERO, Sink::new(port, tcp))
    };
    let sinks = [transfer(nodes[3], nodes[0], PORT), transfer(nodes[0], nodes[3], PORT + 1)];
    (builder, nodes, sinks)
}

fn captured(builder: Builder, stop: Instant, observer: impl Observer) -> (Simulation, Vec<u8>) {
    let mut sim = builder.build();
    sim.observe(Capture::new(Vec::new(), IpVersion::V6));
    sim.observe(observer);
    sim.run_until(stop);
    let capture: Capture<Vec<u8>> = sim.take_observer().unwrap();
    (sim, capture.finish().unwrap())
}

fn totals(sim: &Simulation) -> StationMetrics {
    let radio = sim.world().network.radio().unwrap();
    let mut total = StationMetrics::default();
    for station in 0..radio.station_count() {
        let metrics = radio.metrics(Station(station as u32));
        total.transmissions += metrics.transmissions;
        total.acks += metrics.acks;
    }
    total
}

/// Observes every frame.
#[derive(Default)]
struct Lengths {
    frames: Vec<Seen>,
}

struct Seen {
    start: Instant,
    end: Instant,
    from: NodeId,
    is_ack: bool,
}

impl Observer for Lengths {
    fn on_attach_radio(&mut self, _: &[LinkId]) -> bool {
        true
    }

    fn on_frame(&mut self, now: Instant, frame: &AirFrame<'_>) {
        let mut octets = vec![7];
        frame.emit(&mut octets).unwrap();
        assert_eq!(octets.len(), 1 + usize::from(frame.psdu_len), "{frame:?}");
        assert_eq!((octets[0], frame.end), (7, now));
        match ieee802154::parse(&octets[1..], frame.fcs).unwrap() {
            Frame::Ack { seq } => assert_eq!(seq, frame.seq),
            Frame::Addressed(header, _) => {
                assert_eq!((header.seq, header.ack_request), (frame.seq, frame.to.is_some()));
            }
        }
        let &AirFrame { start, end, from, content, .. } = frame;
        self.frames.push(Seen { start, end, from, is_ack: matches!(content, FrameContent::Ack(_)) });
    }
}

/// These fields of the frames that match a filter.
fn table(tshark: &Tshark, filter: &str, fields: &str) -> Vec<Vec<String>> {
    let text = tshark.fields(filter, fields);
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// An acknowledgement with an FCS of 4 bytes. The standard computes the CRC-32 over its 3 bytes and
/// a zero; tshark leaves out the zero and considers the FCS bad. A test of `wire` verifies the FCS.
const LONG_ACK: &str = "wpan.frame_type == 2 && wpan-tap.fcs_type == 2";

/// Checks that nothing is malformed, that no checksum is bad, and that the checks are enabled.
/// Every frame that the radio has counted is in the capture, and the content of frames is IPv6 or
/// part of it.
fn assert_sound(tshark: &Tshark, name: &str, sim: &Simulation) {
    let bad = format!(
        "(_ws.malformed || wpan.fcs_ok == 0 || tcp.checksum.status == \"Bad\"
        || icmpv6.checksum.status == \"Bad\" || 6lowpan.fragment.error
        || _ws.expert.severity == error) && !({LONG_ACK})"
    );
    assert_eq!(tshark.run(&["-Y", &bad]), "");
    let total = totals(sim);
    let [good, acks, no_6lowpan, no_ipv6, no_dio, dio, dao, dao_ack, tcp, joined, lost, mptcp] = tshark
        .counts([
            &format!("wpan.fcs_ok == 1 || ({LONG_ACK})"),
            "wpan.frame_type == 2",
            "wpan && wpan.frame_type == 1 && !6lowpan",
            "6lowpan && !6lowpan.frag.size && !ipv6",
            "icmpv6.code == 1 && !icmpv6.rpl.dio.rank",
            "icmpv6.rpl.dio.rank",
            "icmpv6.rpl.dao.sequence",
            "icmpv6.rpl.daoack.sequence",
            "tcp.checksum.status == \"Good\"",
            "6lowpan.reassembled.length",
            "frame.comment",
            "tcp.options.mptcp.subtype",
        ]);
    assert_eq!((good, acks), (total.transmissions + total.acks, total.acks));
    assert_eq!([no_6lowpan, no_ipv6, no_dio], [0; 3]);
    assert!(dio > 0 && dao > 0 && dao_ack > 0, "{dio} {dao} {dao_ack}");
    println!(
        "{name}: {} frames, {} of them ACKs, {lost} lost; {tcp} TCP segments, {mptcp} with MPTCP options, \
         {joined} datagrams joined; DIO {dio}, DAO {dao}, DAO-ACK {dao_ack}",
        total.transmissions + total.acks,
        total.acks,
    );
}

/// Data sent to a port, in order.
fn stream_to(tshark: &Tshark, port: u16) -> Vec<u8> {
    let segments = table(tshark, &format!("tcp.dstport == {port} && tcp.len > 0"), "tcp.seq tcp.payload");
    join(segments.iter().map(|s| (s[0].parse().unwrap(), octets(&s[1]))), 1)
}

fn octets(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().filter(char::is_ascii_hexdigit).collect();
    let octet = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
    digits.chunks(2).map(octet).collect()
}

/// Joins pieces by the number of their first byte.
fn join(pieces: impl Iterator<Item = (u64, Vec<u8>)>, first: u64) -> Vec<u8> {
    let mut stream = BTreeMap::new();
    for (start, octets) in pieces {
        for (at, octet) in (start - first..).zip(octets) {
            let before = stream.insert(at, octet);
            assert!(before.is_none_or(|b| b == octet), "two segments differ in octet {at}");
        }
    }
    assert!(stream.keys().copied().eq(0..stream.len() as u64), "every octet was on the air");
    stream.into_values().collect()
}

#[test]
fn a_stream_in_fragments_over_three_hops_is_in_the_capture() {
    for (name, radio, mss) in [
        ("o-qpsk", lossy(RadioConfig::o_qpsk(RANGE), 0.02), 400),
        ("sun-fsk", lossy(RadioConfig::sun_fsk(RANGE), 0.02), 1000),
    ] {
        let (builder, nodes, sinks) = row(radio, WirelessConfig::default(), mss);
        let (sim, octets) = captured(builder, after(600), Lengths::default());
        for sink in sinks {
            assert_eq!(sim.app::<Sink>(sink).bytes(), BULK);
        }
        let joined = sim.world().network.wireless_metrics(nodes[1]).unwrap().joined;
        assert_eq!(joined > 0, name == "o-qpsk");

        let Some(tshark) = Tshark::open(&format!("air-{name}"), &octets) else { return };
        assert_sound(&tshark, name, &sim);
        for port in [PORT, PORT + 1] {
            assert!(stream_to(&tshark, port) == pattern()[..BULK as usize], "{name} {port}");
        }
        let other_pan = format!("wpan.dst_pan && wpan.dst_pan != {:#06x}", frames::PAN);
        let [reassembled, lost, elsewhere, other_pan] = tshark.counts([
            "6lowpan.reassembled.length",
            "frame.comment == \"lost: no receiver\"",
            "frame.interface_name != \"radio\"",
            &other_pan,
        ]);
        // Each of three hops reassembles as often as this one.
        assert_eq!(reassembled > 3 * joined / 2, name == "o-qpsk");
        assert!(lost > 10, "{lost}");
        assert_eq!((elsewhere, other_pan), (0, 0));
    }
}

#[test]
fn fragments_that_go_on_one_by_one_are_in_the_capture() {
    let forwarding = FragmentForwarding::Fragments(VirtualReassembly::default());
    let wireless = WirelessConfig { forwarding, ..WirelessConfig::default() };
    let (builder, nodes, sinks) = row(lossy(RadioConfig::o_qpsk(RANGE), 0.02), wireless, 400);
    let (sim, octets) = captured(builder, after(900), Lengths::default());
    for sink in sinks {
        assert_eq!(sim.app::<Sink>(sink).bytes(), BULK);
    }
    let relay = sim.world().network.wireless_metrics(nodes[1]).unwrap();
    assert!(relay.fragments_forwarded > 300 && relay.joined == 0, "{relay:?}");

    let Some(tshark) = Tshark::open("air-fragments", &octets) else { return };
    assert_sound(&tshark, "fragments", &sim);
    for port in [PORT, PORT + 1] {
        assert!(stream_to(&tshark, port) == pattern()[..BULK as usize], "{port}");
    }
    // Every hop has its own tag, and the packet reassembled from its frames is the original packet.
    let hops = table(&tshark, "6lowpan.frag.tag", "wpan.src16 wpan.dst16 6lowpan.frag.tag");
    let mut of_tag: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    hops.iter().for_each(|hop| of_tag.entry(&hop[2]).or_default().push((&hop[0], &hop[1])));
    assert!(of_tag.values().all(|hops| hops.iter().all(|hop| *hop == hops[0])));
    assert!(tshark.count("6lowpan.reassembled.length") > 3 * BULK / 400);
}

/// Multipath TCP with packets of `payload` bytes over two paths over the air and one with a cable.
fn check_multipath(name: &str, radio: RadioConfig, payload: u16) {
    // A source with two relays in range, and a third with a cable to a base station.
    let places = [(0.0, 0.0), (80.0, 50.0), (80.0, -50.0), (160.0, 0.0), (240.0, 0.0)];
    let (mut builder, nodes) = on_air(radio, WirelessConfig::default(), &places, Some(4));
    let station = builder.node("bs", Forwarding::On);
    let cable = LinkConfig::new(10_000_000, Duration::from_millis(15));
    builder.cable(nodes[0], station, cable);
    builder.cable(nodes[4], station, cable);
    builder.router(station, paths::Config::paper(), Some(NodeType::BaseStation));
    let tcp = tcp::Config { mss: payload, ..tcp::Config::default() };
    // Uses every open path.
    let scheduler = SchedulerKind::RoundRobin;
    let transport = mptcp::Config { tcp, scheduler, ..mptcp::Config::default() }.into();
    let sink = builder.app(nodes[0], Instant::ZERO, PacketSink::new(PORT, payload, transport));
    let source = builder.app(
        nodes[3],
        after(60),
        PacketSource::new(PacketSourceConfig {
            to: nodes[0],
            port: PORT,
            packets: PACKETS,
            payload,
            interval: Duration::from_millis(100),
            transport,
            adaptation: None,
            subflows: 3,
        }),
    );
    let (sim, octets_of_capture) = captured(builder, after(600), Lengths::default());
    assert_eq!(sim.app::<PacketSink>(sink).arrived.len(), PACKETS as usize);
    let made = sim.app::<PacketSource>(source).made();

    let Some(tshark) = Tshark::open(&format!("air-{name}"), &octets_of_capture) else { return };
    assert_sound(&tshark, name, &sim);
    // MP_CAPABLE, MP_JOIN, DSS; neither of them; and the interface.
    let [capable, join_option, dss, plain, interfaces @ ..] = tshark.counts([
        "tcp.options.mptcp.subtype == 0",
        "tcp.options.mptcp.subtype == 1",
        "tcp.options.mptcp.subtype == 2",
        "tcp && !tcp.options.mptcp.subtype && tcp.flags.reset == 0",
        "tcp && frame.interface_name == \"radio\"",
        "tcp && frame.interface_name == \"n0-bs\"",
        "tcp && frame.interface_name == \"n4-bs\"",
    ]);
    println!("MP_CAPABLE {capable}, MP_JOIN {join_option}, DSS {dss}");
    assert!(capable >= 3 && join_option >= 3 && u64::from(PACKETS) < dss);
    assert_eq!(plain, 0);
    // The number of a path is in the flow label.
    let fields = "tcp.options.mptcp.rawdataseqno mptcp.expected_idsn tcp.payload ipv6.flow";
    let mapped = table(&tshark, &format!("tcp.dstport == {PORT} && tcp.len > 0"), fields);
    let mut paths: Vec<&str> = mapped.iter().map(|row| &*row[3]).collect();
    paths.sort_unstable();
    paths.dedup();
    assert!(paths.len() >= 2, "{paths:?}");
    println!("segments on the radio and the two cables: {interfaces:?}");
    assert!(interfaces.iter().all(|n| *n > 0));
    let times = table(&tshark, "frame", "frame.time_epoch");
    let seconds: Vec<f64> = times.iter().map(|t| t[0].parse().unwrap()).collect();
    assert!(seconds.is_sorted());

    // The data sequence mappings reconstruct the stream. Data next to MP_CAPABLE is its beginning
    // (RFC 8684 section 3.1), one after the number that follows from the key.
    let begins = |row: &Vec<String>| Some(u64::from(row[1].parse::<u64>().ok()? as u32) + 1);
    let first = mapped.iter().find_map(begins).unwrap();
    let pieces =
        mapped.iter().map(|row| (begins(row).unwrap_or_else(|| row[0].parse().unwrap()), octets(&row[2])));
    let stream = join(pieces, first);
    let mut sent = Vec::new();
    for (number, made) in (0_u32..).zip(made) {
        sent.extend(number.to_be_bytes());
        sent.extend(made.as_nanos().to_be_bytes());
        sent.extend((12..payload).map(|i| i as u8 ^ number as u8));
    }
    assert!(stream == sent);
}

#[test]
fn connections_over_several_paths_are_in_the_capture() {
    check_multipath("multipath-sun-fsk", lossy(RadioConfig::sun_fsk(RANGE), 0.02), 100);
    check_multipath("multipath-o-qpsk", lossy(RadioConfig::o_qpsk(RANGE), 0.01), 300);
}

#[test]
fn a_frame_that_breaks_off_says_so() {
    let (builder, nodes, _) = row(RadioConfig::o_qpsk(RANGE), WirelessConfig::default(), 400);
    let (mut sim, _) = captured(builder, after(70), Lengths::default());
    let lengths: Lengths = sim.take_observer().unwrap();
    // The relay fails during a transmission while the transfer is in progress.
    let of_relay = |f: &&Seen| f.from == nodes[1] && !f.is_ack && f.start > after(61);
    let seen = lengths.frames.iter().find(of_relay).unwrap();
    let (mut builder, ..) = row(RadioConfig::o_qpsk(RANGE), WirelessConfig::default(), 400);
    let at = seen.start + seen.end.saturating_since(seen.start) / 2;
    builder.fault(at, Fault::NodeFails(nodes[1], Failure::Silent));
    builder.fault(after(62), Fault::NodeRecovers(nodes[1]));
    let (sim, octets) = captured(builder, after(120), Lengths::default());
    let Some(tshark) = Tshark::open("air-broken-off", &octets) else { return };
    assert_sound(&tshark, "broken-off", &sim);
    assert_eq!(tshark.count("frame.comment == \"lost: its sender went down\""), 1);
}

#[test]
fn every_frame_has_the_length_that_was_timed_and_observers_change_nothing() {
    let run = |watched: bool| {
        let (builder, _, _) = row(lossy(RadioConfig::o_qpsk(RANGE), 0.02), WirelessConfig::default(), 400);
        let mut sim = builder.build();
        if watched {
            sim.observe(Lengths::default());
        }
        sim.run_until(after(200));
        let total = totals(&sim);
        if let Some(lengths) = sim.take_observer::<Lengths>() {
            assert_eq!(lengths.frames.len() as u64, total.transmissions + total.acks);
        }
        (total, sim.events())
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn the_same_seed_is_the_same_capture_and_trace() {
    let run = || {
        let (builder, _, _) = row(lossy(RadioConfig::o_qpsk(RANGE), 0.02), WirelessConfig::default(), 400);
        let (mut sim, octets) = captured(builder, after(120), TextTrace::new(Vec::new()));
        (octets, sim.take_observer::<TextTrace<Vec<u8>>>().unwrap().finish().unwrap())
    };
    let (octets, trace) = run();
    assert!((octets, trace.clone()) == run());
    let trace = String::from_utf8(trace).unwrap();
    let frames: Vec<_> = trace.lines().filter(|line| line.contains(" ~ ")).collect();
    assert!(
        frames.iter().any(|line| line.contains("/5 seq")) && frames.iter().any(|l| l.ends_with("missed"))
    );
    println!("{}", frames[..8].join("\n"));
}
