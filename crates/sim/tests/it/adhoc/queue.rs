//! The interface queue.

use anabranch_core::aodv;
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::apps::cbr::{CbrConfig, CbrSink, CbrSource};
use anabranch_sim::network::AdhocConfig;
use anabranch_sim::packet::{LinkId, NodeId, Packet, Payload};
use anabranch_sim::trace::{Observer, Point, WifiFrame};
use anabranch_sim::wifi::{PhyConfig, WifiConfig};

use super::support::{after, at_places};

/// The packets that node 1 gets to send and those that it sends: by number, and whether they are
/// routing messages.
#[derive(Debug, Default)]
struct Order {
    from: Vec<NodeId>,
    taken: Vec<(u64, bool)>,
    sent: Vec<(u64, bool)>,
}

fn is_routing(packet: &Packet) -> bool {
    matches!(&packet.payload, Payload::Udp(datagram) if datagram.dst_port == aodv::PORT)
}

impl Observer for Order {
    fn on_attach(&mut self, _: &[&str], links: &[(NodeId, NodeId)]) {
        self.from = links.iter().map(|link| link.0).collect();
    }

    fn on_attach_wifi(&mut self, _: &[LinkId], _: &PhyConfig) -> bool {
        true
    }

    fn on_wifi_frame(&mut self, _: Instant, frame: &WifiFrame<'_>) {
        if let (Some(packet), NodeId(1), false) = (frame.packet, frame.from, frame.frame.retry) {
            self.sent.push((packet.id, is_routing(packet)));
        }
    }

    fn on_packet(&mut self, _: Instant, link: LinkId, point: Point, packet: &Packet) {
        if point == Point::Sent && self.from[link.index()] == NodeId(1) {
            self.taken.push((packet.id, is_routing(packet)));
        }
    }
}

/// When node 0 begins to look for node 2, node 1 has more to send to node 2 than it can.
#[test]
fn routing_messages_overtake_data_in_a_full_queue() {
    let adhoc = AdhocConfig { queue: 50, ..AdhocConfig::default() };
    let places = [(0.0, 0.0), (80.0, 0.0), (160.0, 0.0)];
    let (mut builder, nodes) = at_places(WifiConfig::dsss(100.0), adhoc, &places);
    for node in &nodes {
        builder.aodv(*node, aodv::Config::default()).unwrap();
    }
    let [port, from_port, payload] = [9000, 9001, 1000];
    let config = CbrConfig {
        to: nodes[2],
        port,
        from_port,
        packets: 2000,
        payload,
        interval: Duration::from_millis(2),
    };
    let sink = builder.app(nodes[2], Instant::ZERO, CbrSink::new(9000));
    builder.app(nodes[1], Instant::ZERO, CbrSource::new(config));
    let second = CbrConfig { interval: Duration::from_millis(20), packets: 100, ..config };
    builder.app(nodes[0], after(2000), CbrSource::new(second));
    let mut sim = builder.build();
    sim.observe(Order::default());
    sim.run_until(after(2200));
    let found = sim.world().network.aodv(nodes[0]).unwrap().counters();
    assert_eq!((found.searches, found.requests), (1, 1), "the answer has passed 50 packets");
    assert!(sim.world().network.link(LinkId(0)).metrics().delivered > 0, "node 0 sends by node 1");
    sim.run_until(after(3900));
    assert_eq!(sim.world().network.adhoc_queue(nodes[1]), 50);
    sim.run_until(after(10_000));
    let metrics = *sim.world().network.adhoc_metrics(nodes[1]).unwrap();
    assert_eq!(metrics.queue_peak, 50);
    assert!(metrics.queue_drops > 500 && metrics.routing >= 2, "{metrics:?}");
    let sink: &CbrSink = sim.app(sink);
    let of = |node| sink.arrived.iter().filter(|a| a.from == node).count() as u64;
    let (own, others) = (of(nodes[1]), of(nodes[0]));
    let links = sim.world().network.links();
    let dropped: u64 = links.iter().map(|l| l.metrics().dropped_full).sum();
    let pushed_out: u64 = links.iter().map(|l| l.metrics().cut).sum();
    assert_eq!(dropped + pushed_out, metrics.queue_drops);
    assert_eq!(own + others + dropped + pushed_out, 2100);
    for link in links.iter().map(|l| l.metrics()) {
        assert_eq!(link.enqueued, link.delivered + link.dropped_loss + link.cut);
    }
    let order = sim.take_observer::<Order>().unwrap();
    let data = |list: &[(u64, bool)]| list.iter().filter(|p| !p.1).map(|p| p.0).collect::<Vec<_>>();
    let sent = data(&order.sent);
    assert!(sent.iter().all(|id| data(&order.taken).contains(id)) && sent.is_sorted());
    // A routing message is sent after the one frame at the MAC, although 50 packets are in the
    // queue.
    for (id, _) in order.sent.iter().filter(|p| p.1) {
        let at = order.sent.iter().position(|p| p.0 == *id).unwrap();
        let before = order.sent[..at].iter().filter(|p| !p.1).map(|p| p.0).max();
        let waited = order.sent[at..].iter().filter(|p| !p.1 && p.0 < *id).count();
        assert!(before.is_none_or(|before| before < *id) && (waited >= 40 || at < 5), "{waited}");
    }
}
