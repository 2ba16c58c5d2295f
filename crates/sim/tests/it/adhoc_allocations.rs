//! In steady state a packet over an ad hoc network allocates only its payload, whatever the number
//! of hops.

use anabranch_core::aodv;
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::apps::cbr::{CbrConfig, CbrSink, CbrSource};
use anabranch_sim::network::{AdhocConfig, Forwarding, NetworkConfig};
use anabranch_sim::packet::IpVersion;
use anabranch_sim::sim::Builder;
use anabranch_sim::wifi::{Position, WifiConfig};
use anabranch_testkit::counting::allocations;

#[test]
fn hops_allocate_nothing() {
    for hops in [1_u32, 6] {
        let config = NetworkConfig { ip: IpVersion::V4, ..NetworkConfig::default() };
        let mut builder = Builder::new(config, 1, 0);
        let place = |i: u32| Position::new(80.0 * f64::from(i), 0.0);
        let places: Vec<_> =
            (0..=hops).map(|i| (builder.node(&format!("n{i}"), Forwarding::On), place(i))).collect();
        builder.wifi(WifiConfig::dsss(100.0), AdhocConfig::default(), &places).expect("a radio");
        for (node, _) in &places {
            builder.aodv(*node, aodv::Config::default()).expect("IPv4 on the air");
        }
        let (from, to) = (places[0].0, places[hops as usize].0);
        let interval = Duration::from_millis(50);
        let config = CbrConfig { to, port: 9, from_port: 9, packets: u32::MAX, payload: 100, interval };
        let sink = builder.app(to, Instant::ZERO, CbrSink::new(9));
        builder.app(from, Instant::ZERO, CbrSource::new(config));
        let mut sim = builder.build();
        let mut until = |seconds| {
            sim.run_until(Instant::ZERO + Duration::from_secs(seconds));
            (sim.app::<CbrSink>(sink).arrived.len() as u64, allocations())
        };
        let (before, after) = (until(100), until(200));
        let (packets, allocations) = (after.0 - before.0, after.1 - before.1);
        println!("{allocations} allocations for {packets} packets over {hops} hops");
        assert!(packets > 1900, "{packets}");
        // The bytes, and their reference count once there are two users. Sometimes a list grows.
        assert!(allocations <= 2 * packets + 20, "{allocations} for {packets} packets over {hops} hops");
    }
}
