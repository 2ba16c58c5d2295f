//! Figures against closed forms.

use anabranch_core::time::Duration;
use anabranch_sim::radio::{RadioConfig, Station};

use crate::air::{Air, after};

/// One sender with acknowledgements and nobody else: what the standard's times add up to.
#[test]
fn a_saturated_sender_reaches_the_sum_of_the_times() {
    let phy = RadioConfig::o_qpsk(100.0).phy;
    let by_hand = 3.5 * 320.0 + 128.0 + 192.0 + 133.0 * 32.0 + 192.0 + 11.0 * 32.0 + 640.0;
    assert_eq!(phy.airtime(127).as_secs_f64() * 1e6, 133.0 * 32.0);
    let seconds = 60;
    let mut air = Air::new(RadioConfig::o_qpsk(100.0), &[(0.0, 0.0), (50.0, 0.0)], 1);
    air.saturate(&[0], 1, 127, after(Duration::from_secs(seconds)));
    let goodput = air.radio.metrics(Station(1)).received as f64 * 127.0 * 8.0 / seconds as f64;
    let bound = 127.0 * 8.0 / (by_hand * 1e-6);
    assert!((goodput / bound - 1.0).abs() < 0.01, "{goodput} against {bound} bit/s");
}
