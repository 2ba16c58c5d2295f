//! Invalid input gets an error, or is ignored and counted.

use std::string::ToString;
use std::vec;

use super::super::{
    Config, ConfigError, ConnectionId, FlowView, Gains, Kind, OpenError, PidConfig, PolicyConfig,
    ThresholdError, Tuner,
};
use super::{MSS, Owner, flow};
use crate::time::{Duration, Instant};

fn refused(config: Config) -> ConfigError {
    Tuner::new(Instant::from_nanos(0), config).expect_err("nonsense")
}

#[test]
fn configurations() {
    let config = Config::default();
    assert_eq!(refused(Config { threshold: 0, ..config }), ConfigError::Threshold(0));
    assert_eq!(refused(Config { threshold: u64::MAX, ..config }), ConfigError::Threshold(u64::MAX));
    assert_eq!(refused(Config { period: Duration::ZERO, ..config }), ConfigError::Period);
    let with = |change: fn(&mut PidConfig)| {
        let mut pid = PidConfig::paper();
        change(&mut pid);
        refused(Config { policy: PolicyConfig::Pid(pid), ..config }).to_string()
    };
    assert_eq!(with(|pid| pid.gains.kd = -1.0), "the gain kd must be 0 to 1000, not -1");
    assert_eq!(
        with(|pid| pid.gains = Gains::PAPER.times(f64::NAN)),
        "the gain kp must be 0 to 1000, not NaN"
    );
    let products = "the set-point must be more than 0 and at most 1000 bandwidth-delay products, not inf";
    assert_eq!(with(|pid| pid.products = f64::INFINITY), products);
    let guarantee = "the guarantee must be 0 to 1 of an equal share, not 1.5";
    assert_eq!(with(|pid| pid.guarantee = 1.5), guarantee);
    assert_eq!(with(|pid| pid.beta = 0.0), "the weight beta must be more than 0 and at most 1, not 0");
}

#[test]
fn a_pool_smaller_than_one_segment_for_each() {
    let config = Config { threshold: 4000, ..Config::default() };
    let mut tuner = Tuner::new(Instant::from_nanos(0), config).unwrap();
    assert_eq!(tuner.open(ConnectionId(1), Kind::Single, 0), Err(OpenError::NoSegment));
    assert_eq!(tuner.open(ConnectionId(1), Kind::Striped, MSS), Ok(()));
    assert_eq!(tuner.open(ConnectionId(1), Kind::Single, MSS), Err(OpenError::Known(ConnectionId(1))));
    assert_eq!(tuner.open(ConnectionId(2), Kind::Single, MSS), Ok(()));
    let full = tuner.open(ConnectionId(3), Kind::Single, MSS).unwrap_err();
    assert_eq!(full, OpenError::Full { needed: 4380, threshold: 4000 });
    assert_eq!(
        full.to_string(),
        "one segment for each connection needs 4380 bytes, more than the threshold of 4000 bytes"
    );
    // Nor may the pool shrink to such a size later.
    let small = ThresholdError::Small { needed: 2920, threshold: 2919 };
    assert_eq!(tuner.set_threshold(2919), Err(small));
    assert_eq!(tuner.set_threshold(0), Err(ThresholdError::Config(ConfigError::Threshold(0))));
    assert_eq!(tuner.connections().iter().map(|c| c.target).sum::<u64>(), 4000);
    tuner.close(ConnectionId(1));
    assert_eq!(tuner.open(ConnectionId(3), Kind::Single, MSS), Ok(()));
}

#[test]
fn no_connections() {
    let mut tuner = Tuner::new(Instant::from_nanos(0), Config::default()).unwrap();
    tuner.handle_views(Instant::from_nanos(1), &[]);
    assert_eq!((tuner.poll_assignment(), tuner.next_timeout()), (None, None));
    tuner.close(ConnectionId(7));
    assert_eq!((tuner.counters().unknown, tuner.counters().decisions), (1, 0));
}

#[test]
fn reports_that_make_no_sense_leave_the_last_one() {
    let mut owner = Owner::new(100_000, PolicyConfig::Pid(PidConfig::paper()));
    owner.open(1, Kind::Single, MSS);
    owner.open(2, Kind::Single, MSS);
    owner.cycle(&[(1, 0, vec![flow(3.0, 50)]), (2, 0, vec![flow(1.0, 50)])]);
    assert_eq!(owner.targets(), [75_000, 25_000]);
    for nonsense in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 1e300] {
        let nonsense = FlowView { bandwidth: Some(nonsense), ..flow(0.0, 50) };
        owner.cycle(&[(1, 0, vec![nonsense]), (9, 0, vec![nonsense])]);
        assert_eq!(owner.targets(), [75_000, 25_000]);
    }
    let counters = owner.tuner.counters();
    assert_eq!((counters.bad_bandwidths, counters.unknown, counters.decisions), (5, 5, 6));
}

#[test]
fn segments_that_make_no_sense_leave_the_last_one() {
    let mut owner = Owner::new(4000, PolicyConfig::Fixed(0));
    owner.open(1, Kind::Striped, MSS);
    owner.open(2, Kind::Single, MSS);
    let segment = |mss| FlowView { mss, ..flow(1.0, 50) };
    owner.cycle(&[(1, 0, vec![segment(0), segment(u32::MAX)])]);
    assert_eq!((owner.targets(), owner.tuner.counters().bad_segments), (vec![1460, 1460], 2));
    owner.cycle(&[(1, 0, vec![segment(500), segment(2000)])]);
    assert_eq!(owner.targets(), [2000, 1460]);
}

#[test]
fn a_buffer_fuller_than_it_may_be_takes_from_nobody() {
    let mut owner = Owner::new(100_000, PolicyConfig::Fixed(50_000));
    owner.open(1, Kind::Single, MSS);
    owner.cycle(&[(1, 90_000, vec![])]);
    owner.open(2, Kind::Single, MSS);
    owner.cycle(&[(1, 90_000, vec![])]);
    assert_eq!(owner.tuner.connections()[1].limit, 10_000);
    owner.cycle(&[(1, u64::MAX, vec![]), (2, u64::MAX, vec![])]);
    owner.cycle(&[(1, 0, vec![]), (2, 0, vec![])]);
    assert_eq!(owner.tuner.connections()[1].limit, 50_000);
    assert_eq!(owner.tuner.counters().overfull, 2);
}
