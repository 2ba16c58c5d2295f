//! Fragment forwarding over the radio (RFC 8930), and reassembly at each hop.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use anabranch_core::tcp;
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::apps::{BulkSender, BulkSenderConfig, Content, Sink, pattern};
use anabranch_sim::event::AppId;
use anabranch_sim::network::{
    Forwarding, FragmentForwarding, NetworkConfig, VirtualReassembly, WirelessConfig, WirelessMetrics,
};
use anabranch_sim::packet::NodeId;
use anabranch_sim::radio::{Position, Propagation, RadioConfig};
use anabranch_sim::sim::{Builder, Fault, Simulation};
use anabranch_sim::trace::TextTrace;
use anabranch_sim::world::Failure;

const PORT: u16 = 80;
/// Six frames on each hop.
const MSS: u16 = 600;
const OCTETS: u64 = 20_000;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn fragments(entries: usize) -> WirelessConfig {
    let how = VirtualReassembly { entries, ..VirtualReassembly::default() };
    WirelessConfig { forwarding: FragmentForwarding::Fragments(how), ..WirelessConfig::default() }
}

fn modes() -> [WirelessConfig; 2] {
    [WirelessConfig::default(), fragments(16)]
}

/// Delayed retries that avoid each other, and occasional loss of frames.
fn radio(loss: f64) -> RadioConfig {
    let mut radio = RadioConfig::o_qpsk(100.0);
    radio.mac.max_be = 7;
    radio.mac.max_csma_backoffs = 5;
    radio.mac.max_frame_retries = 7;
    radio.mac.retry_delay = Duration::from_millis(10);
    let Propagation::UnitDisk(disk) = &mut radio.propagation else { panic!("a unit disk") };
    disk.loss = loss;
    radio
}

/// A row of nodes in which only neighbours hear each other.
fn row(hops: usize, wireless: WirelessConfig, loss: f64, run: u64) -> (Builder, Vec<NodeId>) {
    let mut builder = Builder::new(NetworkConfig::default(), 1, run);
    let nodes: Vec<NodeId> = (0..=hops).map(|i| builder.node(&format!("n{i}"), Forwarding::On)).collect();
    let places: Vec<_> =
        nodes.iter().enumerate().map(|(i, &n)| (n, Position::new(80.0 * i as f64, 0.0))).collect();
    builder.radio(radio(loss), wireless, &places).unwrap();
    (builder, nodes)
}

fn tcp() -> tcp::Config {
    tcp::Config { mss: 600, timestamps: false, ..tcp::Config::paper() }
}

/// A transfer from the last node to the first.
fn upward(builder: &mut Builder, nodes: &[NodeId], octets: u64) -> AppId {
    let (from, to) = (*nodes.last().unwrap(), nodes[0]);
    let sink = builder.app(to, Instant::ZERO, Sink::keeping(PORT, tcp()));
    let config = BulkSenderConfig::new(to, PORT, Content::Pattern(octets), tcp());
    builder.app(from, Instant::ZERO, BulkSender::new(config));
    sink
}

fn metrics(sim: &Simulation, node: NodeId) -> WirelessMetrics {
    *sim.world().network.wireless_metrics(node).unwrap()
}

/// A run until all data is delivered, and until every wait for lost fragments has timed out.
fn delivered(wireless: WirelessConfig, loss: f64, run: u64) -> (Simulation, Vec<NodeId>) {
    let (mut builder, nodes) = row(4, wireless, loss, run);
    let sink = upward(&mut builder, &nodes, OCTETS);
    let mut sim = builder.build();
    sim.run_until(at(1_800_000));
    assert!(
        sim.app::<Sink>(sink).transfers[0].kept[..] == pattern()[..OCTETS as usize],
        "{wireless:?} {loss}"
    );
    assert_eq!(sim.world().network.packets_in_flight(), 0);
    (sim, nodes)
}

#[test]
fn octets_cross_four_hops_in_fragments() {
    for loss in [0.0, 0.02] {
        let (sim, nodes) = delivered(fragments(16), loss, 0);
        let segments = OCTETS.div_ceil(MSS.into());
        for node in &nodes[1..4] {
            let relay = metrics(&sim, *node);
            assert!(relay.fragments_forwarded >= 5 * segments && relay.joined == 0, "{relay:?}");
        }
        assert!(metrics(&sim, nodes[0]).joined >= segments);
    }
    let (sim, nodes) = delivered(WirelessConfig::default(), 0.02, 0);
    let relay = metrics(&sim, nodes[2]);
    assert!(relay.joined > 0 && relay.fragments_forwarded == 0 && relay.entries_peak == 0, "{relay:?}");
}

#[test]
fn one_packet_in_an_idle_network_is_sooner_there_in_fragments() {
    for hops in [4, 5] {
        let [whole, in_pieces] = modes().map(|wireless| {
            let took = |run| {
                let (mut builder, nodes) = row(hops, wireless, 0.0, run);
                let sink = upward(&mut builder, &nodes, MSS.into());
                let mut sim = builder.build();
                sim.run_until(at(60_000));
                let transfer = &sim.app::<Sink>(sink).transfers[0];
                assert_eq!(transfer.bytes, u64::from(MSS));
                transfer.last.saturating_since(transfer.accepted).as_secs_f64()
            };
            (0..100).map(took).sum::<f64>() / 100.0
        });
        println!("{hops} hops: {whole} s, {in_pieces} s");
        assert!(in_pieces < 0.95 * whole, "{hops} hops: {whole} {in_pieces}");
    }
}

#[test]
fn a_full_virtual_reassembly_buffer_refuses_packets() {
    // A packet from each end is one more than there is room for where they meet. If both ends began
    // at the same time, they would meet again after each time-out.
    let (mut builder, nodes) = row(4, fragments(1), 0.0, 0);
    let down = builder.app(nodes[4], Instant::ZERO, Sink::new(PORT, tcp()));
    let config = BulkSenderConfig::new(nodes[4], PORT, Content::Pattern(OCTETS), tcp());
    builder.app(nodes[0], at(1_000), BulkSender::new(config));
    let up = upward(&mut builder, &nodes, OCTETS);
    let mut sim = builder.build();
    sim.run_until(at(3_600_000));
    assert_eq!([down, up].map(|sink| sim.app::<Sink>(sink).bytes()), [OCTETS; 2]);
    let relays: Vec<_> = nodes[1..4].iter().map(|node| metrics(&sim, *node)).collect();
    assert!(relays.iter().all(|relay| relay.entries_peak == 1), "{relays:?}");
    assert!(relays.iter().any(|relay| relay.entries_refused > 0 && relay.strays > 0), "{relays:?}");
}

#[test]
fn an_entry_whose_fragments_do_not_come_is_forgotten() {
    // The sender goes down during a packet of six frames.
    let (mut builder, nodes) = row(3, fragments(16), 0.0, 0);
    upward(&mut builder, &nodes, MSS.into());
    builder.fault(at(90), Fault::NodeFails(nodes[3], Failure::Silent));
    let mut sim = builder.build();
    sim.run_until(at(1_900));
    let before = metrics(&sim, nodes[2]);
    assert!((1..5).contains(&before.fragments_forwarded) && before.entries_timed_out == 0, "{before:?}");
    assert!(sim.world().network.packets_in_flight() > 0);
    sim.run_until(at(2_200));
    for relay in &nodes[1..3] {
        assert_eq!(metrics(&sim, *relay).entries_timed_out, 1);
    }
    assert_eq!(sim.world().network.packets_in_flight(), 0);
}

#[test]
fn a_run_is_the_same_each_time() {
    let trace = |run| {
        let (mut builder, nodes) = row(4, fragments(16), 0.05, run);
        upward(&mut builder, &nodes, OCTETS);
        let mut sim = builder.build();
        sim.observe(TextTrace::new(Vec::new()));
        sim.run_until(at(120_000));
        sim.take_observer::<TextTrace<Vec<u8>>>().unwrap().finish().unwrap()
    };
    let first = trace(3);
    assert!(first == trace(3));
    assert!(first != trace(4));
}
