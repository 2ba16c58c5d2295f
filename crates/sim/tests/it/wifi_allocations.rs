//! In steady state the IEEE 802.11 radio allocates nothing, whatever is sent.

use anabranch_core::time::Duration;
use anabranch_sim::wifi::WifiConfig;
use anabranch_testkit::counting::allocations;

use crate::dcf::{Dcf, Flow, Traffic, after, scattered};

#[test]
fn frames_in_steady_state_allocate_nothing() {
    for config in [WifiConfig::dsss(100.0), WifiConfig::ns2(100.0)] {
        let mut dcf = Dcf::new(config, &scattered(50, 450.0, 200.0, 1), 1);
        let flow = |from| Flow { from, to: Some((from + 1) % 50), mpdu_len: 300, rate: 2.0 };
        let flows: Vec<Flow> = (0..50).map(flow).collect();
        let mut traffic = Traffic::new(&mut dcf, &flows, 1);
        traffic.run(&mut dcf, after(Duration::from_secs(60)), |_| {});
        let before = (dcf.transmissions(), allocations());
        traffic.run(&mut dcf, after(Duration::from_secs(120)), |_| {});
        let now = (dcf.transmissions(), allocations());
        let (frames, allocations) = (now.0 - before.0, now.1 - before.1);
        println!("{allocations} allocations in {frames} frames");
        assert!(frames > 10_000, "{frames} frames");
        // Sometimes a list grows to a new maximum length.
        assert!(allocations < frames / 1000, "{allocations} allocations in {frames} frames");
    }
}
