//! Queues over the radio.

use anabranch_wire::ip::Protocol;
use bytes::Bytes;

use super::*;
use crate::frames::MTU;
use crate::network::{Forwarding, NetworkConfig};
use crate::packet::{Ends, Opaque, Payload};
use crate::radio::{Position, RadioConfig};
use crate::random::Stream;

/// Two nodes on the channel, each with a queue of this many packets.
fn pair(queue: u32) -> (Network, [NodeId; 2], LinkId) {
    let mut network = Network::new(NetworkConfig::default());
    let nodes = ["a", "b"].map(|name| network.add_node(name, Forwarding::On));
    let positions = [Position::new(0.0, 0.0), Position::new(10.0, 0.0)];
    let radio = Radio::new(RadioConfig::o_qpsk(100.0), &positions, |s, purpose| {
        Stream::new(1, 0, &format!("radio {}", s.0), purpose)
    });
    let config = WirelessConfig { queue, ..WirelessConfig::default() };
    network.set_wireless(config, radio.expect("a sound configuration"), nodes.to_vec());
    let config = LinkConfig { mtu: MTU, ..LinkConfig::new(250_000, Duration::ZERO) };
    network.add_wireless_link(nodes[0], nodes[1], &Arc::new(config));
    (network, nodes, LinkId(0))
}

#[test]
fn broadcasts_obey_the_limit_of_the_queue() {
    let (mut network, [from, to], link) = pair(2);
    let packet = |network: &mut Network, to| {
        let payload =
            Payload::Opaque(Opaque { protocol: Protocol::ICMPV6, octets: Bytes::from_static(&[0; 8]) });
        network.make_packet(from, Ends::new(from, to), 255, 8, payload)
    };
    // The first packet is at the radio, two wait.
    for _ in 0..10 {
        let handle = packet(&mut network, NodeId::ALL_RPL_NODES);
        network.broadcast(Instant::ZERO, from, handle);
    }
    let waiting =
        |network: &Network| network.media.wireless.as_ref().expect("on air").interfaces[0].waiting.len();
    assert_eq!(waiting(&network), 2);
    assert_eq!(network.wireless_metrics(from).expect("on air").broadcasts_dropped, 7);
    assert_eq!(network.packets.len(), 3, "what was dropped is gone");
    // Both kinds of packets share the limit.
    let handle = packet(&mut network, to);
    network.transmit(Instant::ZERO, link, Past::NONE, handle);
    assert_eq!((waiting(&network), network.links[link.index()].metrics().dropped_full), (2, 1));
}
