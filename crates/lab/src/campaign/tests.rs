//! Short forms of the campaigns; the long ones are `cargo xtask campaign`.

use super::faults::{self, Left};
use super::{chains, networks, paths};

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
fn several_gateways_are_never_slower_than_the_best_alone() {
    let cases = networks::campaign(2, 40, 10, |_| {}).expect("networks that the simulator takes");
    let summary = networks::summary(&cases);
    assert!(summary.good >= 0.99 && summary.worst <= 1.10, "{summary:?}");
    assert!(summary.median < 0.7, "{summary:?}");
}

#[test]
fn caching_nodes_do_no_harm_on_random_chains() {
    for case in chains::campaign(3, 200, |_| {}).expect("chains that the simulator takes") {
        assert!(case.fine(), "{case:?}");
    }
}

#[test]
fn several_paths_are_never_slower_than_the_best_alone() {
    for case in paths::run(1, 40, 4) {
        assert!(case.ratio() <= 1.02, "{case:?}");
    }
}
