//! Captures: every transmitted frame, read back by tshark.

use std::collections::BTreeMap;

use anabranch_core::time::{Duration, Instant};
use anabranch_core::{aodv, rdca, tcp};
use anabranch_sim::apps::rdca::{RdcaConfig, RdcaSink, RdcaSource, RouteNotices};
use anabranch_sim::apps::{BulkSender, BulkSenderConfig, Content, Sink, pattern};
use anabranch_sim::capture::Capture;
use anabranch_sim::network::AdhocConfig;
use anabranch_sim::packet::{IpVersion, LinkId};
use anabranch_sim::sim::Fault;
use anabranch_sim::trace::{Observer, WifiFrame};
use anabranch_sim::wifi::{FrameKind, PhyConfig, WifiConfig};
use anabranch_sim::world::Failure;
use anabranch_testkit::tshark::Tshark;

use super::support::{after, at_places};

/// Counts frames by kind.
#[derive(Debug, Default)]
struct Count(BTreeMap<&'static str, u64>);

impl Observer for Count {
    fn on_attach_wifi(&mut self, _: &[LinkId], _: &PhyConfig) -> bool {
        true
    }

    fn on_wifi_frame(&mut self, _: Instant, shown: &WifiFrame<'_>) {
        assert_eq!(shown.packet.is_some(), shown.frame.kind == FrameKind::Data);
        *self
            .0
            .entry(match shown.frame.kind {
                FrameKind::Data => "wlan.fc.type_subtype == 32",
                FrameKind::Rts => "wlan.fc.type_subtype == 27",
                FrameKind::Cts => "wlan.fc.type_subtype == 28",
                FrameKind::Ack => "wlan.fc.type_subtype == 29",
            })
            .or_default() += 1;
        *self.0.entry("wlan.fc.retry == 1").or_default() += u64::from(shown.frame.retry);
    }
}

/// A port that tshark does not associate with a protocol.
const PORT: u16 = 47_111;
const PACKETS: u32 = 50;

/// A row of five nodes with RTS and losses, TCP in one direction and RDCA in the other, and a relay
/// that fails during a frame.
#[test]
fn tshark_reads_all_that_was_on_the_air() {
    let mut wifi = WifiConfig::dsss(100.0).with_rts_threshold(300);
    wifi.propagation.loss = 0.05;
    let places: Vec<_> = (0..5).map(|i| (80.0 * f64::from(i), 0.0)).collect();
    let (mut builder, nodes) = at_places(wifi, AdhocConfig::default(), &places);
    for node in &nodes {
        builder.aodv(*node, aodv::Config::default()).unwrap();
    }
    let tcp = tcp::Config { mss: 500, ..tcp::Config::default() };
    let bulk = builder.app(nodes[3], Instant::ZERO, Sink::new(PORT, tcp));
    let config = BulkSenderConfig::new(nodes[3], PORT, Content::Pattern(20_000), tcp);
    builder.app(nodes[0], after(100), BulkSender::new(config));
    let rdca = rdca::Config::default();
    let sink = builder.app(nodes[0], Instant::ZERO, RdcaSink::new(PORT, rdca.sink));
    let source = RdcaConfig {
        to: nodes[0],
        port: PORT,
        from_port: PORT + 1,
        packets: PACKETS,
        payload: 200,
        interval: Duration::from_millis(100),
        sender: rdca.sender,
        notices: RouteNotices::Heeded,
    };
    builder.app(nodes[3], after(200), RdcaSource::new(source));
    // No other traffic needs the last node, so it can fail while it looks for a route.
    let config = BulkSenderConfig::new(nodes[0], PORT + 5, Content::Pattern(5_000), tcp);
    builder.app(nodes[4], after(20_000), BulkSender::new(config));
    builder.fault(after(20_030), Fault::NodeFails(nodes[4], Failure::Silent));
    let mut sim = builder.build();
    sim.observe(Capture::new(Vec::new(), IpVersion::V4));
    sim.observe(Count::default());
    sim.run_until(after(21_000));
    assert_eq!(sim.app::<Sink>(bulk).bytes(), 20_000);
    assert_eq!(sim.app::<RdcaSink>(sink).arrived.len() as u32, PACKETS);
    let counts = sim.take_observer::<Count>().unwrap().0;
    let capture = sim.take_observer::<Capture<Vec<u8>>>().unwrap().finish().unwrap();
    assert_eq!(counts.len(), 5);
    let Some(tshark) = Tshark::open("adhoc", &capture) else { return };
    let filters: [&str; 5] = counts.keys().copied().collect::<Vec<_>>().try_into().unwrap();
    for ((filter, count), read) in counts.into_iter().zip(tshark.counts(filters)) {
        assert!(count > 20, "{filter}");
        assert_eq!(read, count, "{filter}");
    }
    let faults =
        "_ws.malformed || wlan.fcs.status == 0 || ip.checksum.status == 0 || udp.checksum.status == 0";
    assert_eq!(tshark.count(faults), 0);
    let never = tshark.counts([
        "tcp.checksum.status == 0",
        "aodv && !(udp.port == 654)",
        "aodv.type == 1 && !(ip.dst == 255.255.255.255 && wlan.da == ff:ff:ff:ff:ff:ff)",
    ]);
    assert_eq!(never, [0; 3]);
    let [data, aodv, tcp, udp, parts @ ..] = tshark.counts([
        "wlan.fc.type_subtype == 32",
        "aodv",
        "tcp",
        "udp && !aodv",
        "aodv.type == 1",
        "aodv.type == 2",
        "udp.dstport == 47111",
        "udp.srcport == 47111",
    ]);
    assert_eq!(aodv + tcp + udp, data);
    assert!(tcp > 0 && parts.iter().all(|count| *count > 0), "{tcp} {parts:?}");
    // The first transmissions of the first node make up the stream.
    let segments = tshark
        .fields("tcp.len > 0 && ip.src == 10.0.0.1 && wlan.ta == 02:00:00:00:00:00", "tcp.seq tcp.payload");
    let mut stream = BTreeMap::new();
    for line in segments.lines() {
        let (seq, octets) = line.split_once('\t').unwrap();
        let octets = octets.replace(':', "");
        let octets = (0..octets.len()).step_by(2).map(|i| u8::from_str_radix(&octets[i..i + 2], 16).unwrap());
        stream.insert(seq.parse::<usize>().unwrap(), octets.collect::<Vec<u8>>());
    }
    let mut whole = Vec::new();
    for (seq, octets) in stream {
        // Sequence numbers are relative, and the first byte has 1.
        assert!(seq <= whole.len() + 1, "a gap before {seq}");
        whole.truncate(seq - 1);
        whole.extend(octets);
    }
    assert_eq!(whole, pattern()[..20_000]);
}
