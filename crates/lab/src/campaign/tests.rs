//! Short forms of the campaigns; the long ones are `cargo xtask campaign`.

use super::faults::{self, Left};
use super::networks;

#[test]
fn gateways_die_and_the_file_is_delivered_while_one_lives() {
    for (left, count) in [(Left::One, 40), (Left::None, 6)] {
        let cases = faults::campaign(3, count, left, |_| {}).expect("networks that the simulator takes");
        for case in cases {
            assert!(case.fine(), "{case:?}");
        }
    }
}

#[test]
fn random_networks_are_delivered_and_gain() {
    let cases = networks::campaign(3, 8, 2, |_| {}).expect("networks that the simulator takes");
    assert!(cases.iter().all(|c| c.ratio().is_finite()), "{cases:?}");
    let summary = networks::summary(&cases);
    assert!(summary.median < 0.95, "{summary:?}");
}
