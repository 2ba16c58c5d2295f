//! In steady state a TCP segment costs no allocation beyond its payload handle (DESIGN section 3).

use anabranch_core::tcp::{self, CongestionAlgorithm};
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::apps::{BulkSender, BulkSenderConfig, Content, Sink};
use anabranch_sim::link::LinkConfig;
use anabranch_sim::loss::LossModel;
use anabranch_sim::network::{Forwarding, NetworkConfig};
use anabranch_sim::sim::{Builder, Simulation};
use anabranch_testkit::counting::{allocations, watch, watched};

/// Payload of a full segment with timestamps.
const PAYLOAD: usize = 1428;

/// An unlimited transfer over one hop. The sender writes 32 KiB or more at a time. Segments are
/// slices of these writes, except where one crosses from one write to the next: its payload is
/// copied.
fn one_hop(loss: LossModel, tcp: tcp::Config) -> Simulation {
    let mut builder = Builder::new(NetworkConfig::default(), 1, 0);
    let [a, b] = ["a", "b"].map(|name| builder.node(name, Forwarding::Off));
    builder.cable(a, b, LinkConfig { loss, ..LinkConfig::new(100_000_000, Duration::from_millis(1)) });
    builder.app(b, Instant::ZERO, Sink::new(80, tcp));
    let config = BulkSenderConfig::new(b, 80, Content::Endless, tcp);
    builder.app(a, Instant::ZERO, BulkSender::new(config));
    builder.build()
}

/// Allocations in ten seconds after ten seconds of warm-up.
#[derive(Debug)]
struct Cost {
    /// Data and acknowledgements that arrived.
    packets: u64,
    /// Payloads that were copied.
    payloads: u64,
    /// Allocations beyond one for each of these.
    others: u64,
}

fn measure(loss: LossModel, tcp: tcp::Config) -> Cost {
    watch(PAYLOAD);
    let mut sim = one_hop(loss, tcp);
    let count = |sim: &Simulation| {
        let packets = sim.world().network.links().iter().map(|link| link.metrics().delivered).sum::<u64>();
        [packets, watched(), allocations()]
    };
    sim.run_until(Instant::ZERO + Duration::from_secs(10));
    let before = count(&sim);
    sim.run_until(Instant::ZERO + Duration::from_secs(20));
    let after = count(&sim);
    let [packets, payloads, all] = [0, 1, 2].map(|i| after[i] - before[i]);
    Cost { packets, payloads, others: all - payloads }
}

/// The standard profile, and the modern one with each of the controllers and with pacing.
fn profiles() -> Vec<tcp::Config> {
    let modern = tcp::Config::modern();
    let controllers = [
        CongestionAlgorithm::NewReno,
        CongestionAlgorithm::Cubic,
        CongestionAlgorithm::Westwood,
        CongestionAlgorithm::Bbr,
    ];
    let with = controllers.map(|congestion| tcp::Config { congestion, ..modern });
    [tcp::Config::default(), tcp::Config { pacing: true, ..modern }].into_iter().chain(with).collect()
}

#[test]
fn a_segment_in_steady_state_allocates_its_payload_at_most() {
    for tcp in profiles() {
        let cost = measure(LossModel::None, tcp);
        println!("without loss: {cost:?}");
        assert!(cost.packets > 100_000, "{cost:?}");
        assert!(cost.payloads < cost.packets / 30, "segments are slices: {cost:?} of {tcp:?}");
        assert!(cost.others < 16, "nothing else is allocated: {cost:?} of {tcp:?}");

        // Losses open gaps at the receiver, whose lists grow sometimes.
        let cost = measure(LossModel::Bernoulli { p: 0.001 }, tcp);
        println!("with 0.1 % loss: {cost:?}");
        assert!(cost.payloads < cost.packets / 30, "{cost:?} of {tcp:?}");
        assert!(cost.others < cost.packets / 1000, "{cost:?} of {tcp:?}");
    }
}
