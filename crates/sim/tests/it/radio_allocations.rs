//! In steady state the radio allocates nothing, whatever is sent.

use anabranch_core::time::Duration;
use anabranch_sim::radio::{LogDistance, RadioConfig};
use anabranch_testkit::counting::allocations;

use crate::air::{Air, Flow, Traffic, after, scattered};

#[test]
fn frames_in_steady_state_allocate_nothing() {
    let disk = RadioConfig::o_qpsk(60.0);
    for config in [disk, disk.with_log_distance(LogDistance::default())] {
        let mut air = Air::new(config, &scattered(50, 220.0, 1), 1);
        let flow = |from| Flow { from, to: Some((from + 1) % 50), psdu_len: 80, rate: 4.0 };
        let flows: Vec<Flow> = (0..50).map(flow).collect();
        let mut traffic = Traffic::new(&mut air, &flows, 1);
        traffic.run(&mut air, after(Duration::from_secs(60)), |_| {});
        let before = (air.transmissions(), allocations());
        traffic.run(&mut air, after(Duration::from_secs(120)), |_| {});
        let now = (air.transmissions(), allocations());
        let (frames, allocations) = (now.0 - before.0, now.1 - before.1);
        println!("{allocations} allocations in {frames} frames");
        assert!(frames > 20_000, "{frames} frames");
        // Sometimes a list grows to a new maximum length.
        assert!(allocations < frames / 1000, "{allocations} allocations in {frames} frames");
    }
}
