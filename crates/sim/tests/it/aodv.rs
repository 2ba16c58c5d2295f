//! AODV as decoded by Wireshark.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::net::{IpAddr, Ipv4Addr};

use anabranch_core::aodv::{Config, IntermediateReplies, PORT, Router, To};
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::pcapng::{CaptureWriter, Direction, InterfaceInfo, LinkType};
use anabranch_testkit::tshark::Tshark;
use anabranch_wire::aodv::{Message, RouteReply, SequenceNumber, emit};
use anabranch_wire::ip::{self, Header, Protocol};
use expect_test::expect;

fn node(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, n)
}

/// A UDP datagram without a checksum (RFC 768) in an IPv4 packet.
fn packet(from: Ipv4Addr, to: Ipv4Addr, ttl: u8, payload: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    let len = 8 + payload.len() as u16;
    datagram.extend([PORT, PORT, len, 0].map(u16::to_be_bytes).as_flattened());
    datagram.extend(payload);
    let header = Header {
        src: IpAddr::V4(from),
        dst: IpAddr::V4(to),
        protocol: Protocol::UDP,
        hop_limit: ttl,
        traffic_class: 0,
        flow_label: 0,
        ident: 1,
        fragment: None,
    };
    let mut out = Vec::new();
    ip::emit(&header, &datagram, &mut out).unwrap();
    out
}

/// Two routers find each other over a third, which then loses the second; and a Hello with its
/// interval.
fn exchange() -> Vec<u8> {
    let interface =
        InterfaceInfo { name: "air".into(), description: String::new(), link_type: LinkType::RAW_IP };
    let mut writer = CaptureWriter::new(Vec::new(), &[interface]).unwrap();
    let mut now = Instant::ZERO;
    let config =
        Config { intermediate_replies: IntermediateReplies::Gratuitous, ttl_start: 3, ..Config::default() };
    let mut routers = [1, 2, 3].map(|n| Router::new(config, node(n), now));
    routers[0].route(now, node(3));
    for round in 0..12 {
        now += Duration::from_millis(10);
        if round == 9 {
            routers[1].handle_link_break(now, node(3), None);
        }
        for at in 0..3_usize {
            while let Some(sent) = routers[at].poll_transmit(0) {
                let to = match sent.to {
                    To::Broadcast => Ipv4Addr::BROADCAST,
                    To::Neighbour(address) => address,
                };
                let from = routers[at].address();
                let octets = packet(from, to, sent.ttl, &sent.payload);
                writer.packet(0, now, Direction::Unknown, &octets, None).unwrap();
                for (other, router) in routers.iter_mut().enumerate() {
                    if other.abs_diff(at) == 1 && (to.is_broadcast() || to == router.address()) {
                        router.handle_message(now, from, sent.ttl, &sent.payload);
                    }
                }
            }
        }
    }
    let hello = RouteReply {
        repair: false,
        acknowledge: true,
        prefix_size: 0,
        hop_count: 0,
        destination: node(2),
        destination_sequence: SequenceNumber(9),
        originator: node(2),
        lifetime: 2_000,
        hello_interval: Some(1_000),
    };
    for message in [Message::Reply(hello), Message::ReplyAck] {
        let mut payload = Vec::new();
        emit(&message, &mut payload).unwrap();
        let octets = packet(node(2), node(1), 1, &payload);
        writer.packet(0, now, Direction::Unknown, &octets, None).unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn tshark_reads_every_message() {
    let Some(tshark) = Tshark::open("aodv", &exchange()) else { return };
    let fields = "ip.src ip.dst ip.ttl aodv.type aodv.hopcount aodv.dest_ip aodv.orig_ip";
    expect![[r#"
        10.0.0.1	255.255.255.255	3	1	0	10.0.0.3	10.0.0.1
        10.0.0.2	255.255.255.255	2	1	1	10.0.0.3	10.0.0.1
        10.0.0.3	10.0.0.2	35	2	0	10.0.0.3	10.0.0.1
        10.0.0.2	10.0.0.1	35	2	1	10.0.0.3	10.0.0.1
        10.0.0.2	10.0.0.1	1	3			
        10.0.0.2	10.0.0.1	1	2	0	10.0.0.2	10.0.0.2
        10.0.0.2	10.0.0.1	1	4			
    "#]]
    .assert_eq(&tshark.fields("aodv", fields));
    let fields =
        "aodv.rreq_id aodv.flags.rreq_gratuitous aodv.flags.rreq_unknown aodv.dest_seqno aodv.orig_seqno";
    expect![[r#"
        1	1	1	0	1
        1	1	1	0	1
    "#]]
    .assert_eq(&tshark.fields("aodv.type == 1", fields));
    // tshark looks for the interval in an extension of type 2; RFC 3561 section 9.1 has type 1.
    let fields = "aodv.lifetime aodv.dest_seqno aodv.flags.rrep_ack aodv.ext_type";
    expect![[r#"
        6000	0	0	
        6000	0	0	
        2000	9	1	1
    "#]]
    .assert_eq(&tshark.fields("aodv.type == 2", fields));
    let fields = "aodv.destcount aodv.unreach_dest_ip aodv.dest_seqno";
    expect![[r#"
        1	10.0.0.3	1
    "#]]
    .assert_eq(&tshark.fields("aodv.type == 3", fields));
    assert_eq!(tshark.count("_ws.malformed || _ws.expert.severity == error"), 0);
}
