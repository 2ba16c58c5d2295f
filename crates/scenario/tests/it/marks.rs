//! Marks of Explicit Congestion Notification in captures.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::collections::BTreeMap;

use anabranch_core::segment::Ecn;
use anabranch_core::time::{Duration, Instant};
use anabranch_scenario::Source;
use anabranch_sim::capture::Capture;
use anabranch_sim::packet::IpVersion;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::{Block, PcapNgReader};

/// Number of packets with CE on an interface of a capture; all packets are valid.
fn marked(octets: &[u8], ip: IpVersion, name: &str) -> u64 {
    let mut reader = PcapNgReader::new(octets).unwrap();
    let (mut here, mut marked) = (Vec::new(), 0);
    while let Some(block) = reader.next_block() {
        match block.unwrap() {
            Block::InterfaceDescription(interface) => {
                let named = |option: &_| matches!(option, InterfaceDescriptionOption::IfName(n) if n == name);
                here.push(interface.options.iter().any(named));
            }
            Block::EnhancedPacket(packet) => {
                let (header, _) = anabranch_wire::ip::parse(&packet.data).unwrap();
                assert_eq!(header.src.is_ipv4(), ip == IpVersion::V4);
                let ce = Ecn::of(header.traffic_class) == Ecn::Ce;
                marked += u64::from(ce && here[packet.interface_id as usize]);
            }
            _ => {}
        }
    }
    marked
}

/// Queues that mark packets on arrival or on departure, whether or not the packets are lost later.
#[test]
fn what_a_queue_marks_is_marked_in_the_capture_of_its_link() {
    for (version, ip) in [(4, IpVersion::V4), (6, IpVersion::V6)] {
        for marking in ["discipline = \"codel\"", "ecn_threshold = \"20 packets\""] {
            let text = format!(
                r#"
                stop = "100 s"
                network.ip = {version}
                tcp.default = {{ congestion = "cubic", ecn = "request" }}
                node = [{{ name = "a" }}, {{ name = "r", kind = "router" }}, {{ name = "b" }}]
                [[link]]
                from = "a"
                to = "r"
                rate = "100 Mbit/s"
                delay = "1 ms"
                queue = "1000 packets"
                [[link]]
                from = "r"
                to = "b"
                rate = "5 Mbit/s"
                delay = "19 ms"
                queue = "1000 packets"
                loss = "0.1 %"
                {marking}
                [[transfer]]
                name = "flow{{i}}"
                count = 4
                kind = "tcp"
                from = "a"
                to = "b"
                bytes = "1 MB"
                "#
            );
            let scenario = Source::new("marks", text).scenario().unwrap();
            let midst = Instant::ZERO + Duration::from_secs(3);
            for until in [midst, scenario.stop] {
                let mut sim = scenario.plan(1, 0, &BTreeMap::new()).unwrap().builder.build();
                sim.observe(Capture::new(Vec::new(), ip));
                sim.run_until(until);
                let octets = sim.take_observer::<Capture<Vec<u8>>>().unwrap().finish().unwrap();
                let link = &sim.world().network.links()[2];
                let (expected, under_way) = (link.metrics().marked, link.in_flight() as u64);
                assert_eq!(under_way > 0, until == midst, "all has arrived at the end");
                // Marks of packets in flight may not be known yet.
                let (least, marked) = (expected.saturating_sub(under_way), marked(&octets, ip, "r-b"));
                assert!(
                    expected > 5 && (least..=expected).contains(&marked),
                    "{marking}: {marked} of {expected}"
                );
            }
        }
    }
}
