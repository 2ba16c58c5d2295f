//! Many senders, with changes of networks and clocks during the run. The long form is
//! `cargo xtask campaign rdca-steps`.

use anabranch_core::rdca::{Config, Release};
use anabranch_core::time::Duration;
use anabranch_testkit::rdca::{Case, Change, Skew, Steps, step_run};

fn run(case: &Case) -> Steps {
    step_run(case, Config::default(), 1)
}

fn holds(case: &Case, utilisation: f64, jain: f64) {
    let steps = run(case);
    let worst = steps.worst();
    assert!(worst.0 >= utilisation && worst.1 >= jain, "{case:?}\n{steps:#?}");
}

/// Regression test: a stream that started during a full queue took the queueing delay for its
/// minimum, and losses did not slow it down.
#[test]
fn fifty_senders_share_a_path_whose_queue_is_full() {
    let steps = run(&Case::plain(50, 13.3, 333.3, vec![]));
    let (utilisation, jain) = steps.worst();
    assert!(utilisation >= 0.9 && jain >= 0.97 && steps.overflows < 1000, "{steps:#?}");
    holds(&Case::plain(200, 4.0, 400.0, vec![]), 0.9, 0.97);
    // The paper's own reaction is unchanged.
    let paper = step_run(&Case::plain(50, 13.3, 333.3, vec![]), Config::paper(), 1);
    assert!(paper.worst().0 >= 0.85, "{paper:#?}");
}

#[test]
fn a_step_of_route_or_clock_stops_no_sender() {
    let ms = Duration::from_millis;
    let delays = [170, 20, 1020, 20].map(|delay| Change::Delay(ms(delay)));
    let clocks = [-150, 150, 1000, -1000].map(|step| Change::Clock(1, step));
    for changes in [delays.to_vec(), clocks.to_vec()] {
        for senders in [1, 5] {
            holds(&Case::plain(senders, 13.3, 100.0, changes.clone()), 0.97, 0.99);
        }
    }
}

#[test]
fn h17_clocks_that_drift_slow_no_sender() {
    for ppm in [-500, -300, 300, 500] {
        let skews = vec![Skew { offset: 0, ppm }; 2];
        let changes = vec![Change::Clock(1, 0); 3];
        holds(&Case { skews, ..Case::plain(2, 13.3, 100.0, changes) }, 0.99, 0.99);
    }
}

#[test]
fn ten_times_the_capacity_is_used_again_within_ten_seconds() {
    let changes = [13.3, 133.0].map(Change::Capacity).to_vec();
    for loss in [0, 50] {
        let case = Case { loss, ..Case::plain(1, 133.0, 133.0, changes.clone()) };
        let mut config = Config::default();
        // A queue of 24 packets is too short to repair losses at this rate.
        config.sender.queue_packets = 100;
        let steps = step_run(&case, config, 1);
        assert!(steps.worst().0 >= 0.85, "{steps:#?}");
    }
}

/// Unconfirmed packets are not discarded: the application is refused instead.
#[test]
fn nothing_that_was_taken_is_gone_if_the_sink_must_confirm_it() {
    // The paper's configuration loses most.
    let mut config = Config::paper();
    let case = Case::plain(20, 13.3, 133.3, vec![]);
    assert!(step_run(&case, config, 1).gone > 0);
    config.sender.release = Release::Confirmed;
    assert_eq!(step_run(&case, config, 1).gone, 0);
}

/// One packet in 1.5 s does not count as a pause.
#[test]
fn a_slow_source_needs_no_control_packet_for_each_of_its_own() {
    let steps = run(&Case::plain(1, 200.0 / 300.0, 100.0, vec![Change::Clock(1, 0); 40]));
    assert!(steps.control < 0.03, "{}", steps.control);
}

#[test]
fn random_steps_of_capacity_route_and_clock() {
    let mut sum = (0.0, 0.0);
    for seed in 0..8 {
        let case = Case::random(seed, 5);
        let mut config = Config::default();
        config.sender.queue_packets = 512;
        config.sink.reorder_packets = 512;
        let steps = step_run(&case, config, seed);
        let worst = steps.worst();
        assert!(worst.0 >= 0.5 && worst.1 >= 0.5 && steps.gone == 0, "seed {seed}: {case:?}\n{steps:#?}");
        sum = (sum.0 + worst.0 / 8.0, sum.1 + worst.1 / 8.0);
    }
    assert!(sum.0 >= 0.85 && sum.1 >= 0.95, "{sum:?}");
}
