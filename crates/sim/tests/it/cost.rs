//! Cost of a run, in events and bytes of trace instead of seconds.

use anabranch_core::tcp;
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::app::{App, Ctx};
use anabranch_sim::apps::Sink;
use anabranch_sim::link::LinkConfig;
use anabranch_sim::network::{Forwarding, NetworkConfig};
use anabranch_sim::packet::NodeId;
use anabranch_sim::sim::Builder;
use anabranch_sim::stream::{ConnId, StreamEvent};
use anabranch_sim::trace::TextTrace;
use bytes::Bytes;
use expect_test::expect;
use sha2::{Digest, Sha256};

use crate::networks::{Star, after, delivered, dumbbell};

/// A change of speed alone does not change these numbers. A change of behaviour updates them, in a
/// commit that gives the reason.
#[test]
fn a_traced_dumbbell_is_what_it_was() {
    let mut sim = dumbbell(10, tcp::Config::default());
    sim.observe(TextTrace::new(Vec::new()));
    sim.run_until(after(Duration::from_secs(1)));
    let trace = sim.take_observer::<TextTrace<Vec<u8>>>().expect("it was added").finish().expect("memory");
    let digest: String = Sha256::digest(&trace)[..8].iter().map(|b| format!("{b:02x}")).collect();
    let lost: u64 = sim.world().network.links().iter().map(|l| l.metrics().dropped_full).sum();
    let said = format!(
        "{} packets, {lost} lost, {} events, {} octets of trace, SHA-256 {digest}...",
        delivered(&sim),
        sim.events(),
        trace.len(),
    );
    expect![
        "112967 packets, 2934 lost, 343550 events, 79242294 octets of trace, SHA-256 009e9ab71972a84b..."
    ]
    .assert_eq(&said);
}

/// Number of events of a complete SET transfer of `octets` bytes.
fn events_of_set(octets: usize) -> u64 {
    let mut star = Star::new(octets);
    star.run();
    star.sim.events()
}

/// Every packet costs one event for each link, and time-outs are negligible.
#[test]
fn events_are_linear_in_packets() {
    for flows in [10, 50] {
        let mut sim = dumbbell(flows, tcp::Config::default());
        let mut before = (0, 0);
        for seconds in 1..=4 {
            sim.run_until(after(Duration::from_secs(seconds)));
            let now = (sim.events(), delivered(&sim));
            let per_packet = (now.0 - before.0) as f64 / (now.1 - before.1) as f64;
            assert!((2.95..3.2).contains(&per_packet), "{per_packet} with {flows} flows in second {seconds}");
            before = now;
        }
    }
    // Large enough that opening sessions is negligible.
    let [small, large] = [400_000, 3_200_000].map(events_of_set);
    let ratio = large as f64 / small as f64;
    assert!((6.5..9.0).contains(&ratio), "8 times the octets took {ratio} times the events");
}

/// Open but silent connections cost nothing.
#[test]
fn events_are_flat_in_simulated_idle_time() {
    let mut builder = Builder::new(NetworkConfig::default(), 1, 0);
    let [a, b] = ["a", "b"].map(|n| builder.node(n, Forwarding::Off));
    builder.cable(a, b, LinkConfig::new(1_000_000, Duration::from_millis(10)));
    let tcp = tcp::Config::default();
    builder.app(b, Instant::ZERO, Sink::new(80, tcp));
    for _ in 0..50 {
        builder.app(a, Instant::ZERO, Silent { to: b, tcp });
    }
    let mut sim = builder.build();
    sim.run_until(after(Duration::from_secs(60)));
    assert_eq!(sim.world().connection_count(a), 50);
    let before = sim.events();
    sim.run_until(after(Duration::from_secs(365 * 86_400)));
    assert_eq!(sim.world().connection_count(a), 50);
    assert_eq!(sim.events(), before);
}

/// Opens a connection, writes one byte, and then stays silent.
struct Silent {
    to: NodeId,
    tcp: tcp::Config,
}

impl App for Silent {
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        ctx.connect(self.to, 80, self.tcp).expect("ports are left");
    }

    fn on_stream(&mut self, ctx: &mut Ctx<'_>, connection: ConnId, event: StreamEvent) {
        if event == StreamEvent::Opened {
            ctx.write(connection, &mut Bytes::from_static(b"!")).expect("it is open");
        }
    }
}
