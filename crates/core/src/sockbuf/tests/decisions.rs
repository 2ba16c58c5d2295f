//! Decisions of each policy, by numbers.

use std::format;
use std::vec;
use std::vec::Vec;

use super::super::share::divide;
use super::super::{
    Allocation, Config, ConnectionId, Controller, Deviation, Excess, FlowView, Gains, Kind, PidConfig,
    PolicyConfig, SetPoint, View,
};
use super::{MSS, Owner, PERIOD, flow, window};

fn pid(change: impl FnOnce(&mut PidConfig)) -> PolicyConfig {
    let mut config = PidConfig::paper();
    change(&mut config);
    PolicyConfig::Pid(config)
}

/// WLAN, satellite and HSUPA of section 4.1, with RTTs of twice their delays.
fn striped() -> Vec<FlowView> {
    vec![flow(11.0, 20), flow(2.0, 240), flow(7.0, 140)]
}

#[test]
fn erratum_b9_the_set_point_adds_up_each_flow_with_its_own_rtt() {
    // With kp = 1 and the other gains 0, the first decision is the set-point.
    let deadbeat = Gains { kp: 1.0, ki: 0.0, kd: 0.0 };
    for (set_point, octets) in [
        // 2 (11e6 * 0.02 + 2e6 * 0.24 + 7e6 * 0.14) / 8
        (SetPoint::PerFlow, 420_000),
        // 2 * 20e6 * 0.24 / 8
        (SetPoint::Slowest, 1_200_000),
    ] {
        let policy = pid(|pid| (pid.gains, pid.set_point) = (deadbeat, set_point));
        let mut owner = Owner::new(2_000_000, policy);
        owner.open(0, Kind::Striped, MSS);
        owner.cycle(&[(0, 0, striped())]);
        assert_eq!(owner.targets(), [octets]);
    }
}

#[test]
fn errata_b1_b2_it_takes_what_it_asks_for_if_that_is_unused_and_the_rest_is_divided() {
    let mut owner = Owner::new(1_000_000, pid(|_| ()));
    owner.open(0, Kind::Striped, MSS);
    owner.open(1, Kind::Single, MSS);
    owner.open(2, Kind::Single, MSS);
    // (0.05 + 0.01) (420000 - 128000) = 17520, and there is room.
    owner.cycle(&[(0, 0, striped()), (1, 0, vec![flow(3.0, 50)]), (2, 0, vec![flow(1.0, 50)])]);
    let size = 128_000 + 17_520;
    let rest = 1_000_000 - size;
    assert_eq!(owner.targets(), [size, rest * 3 / 4, rest / 4]);
    // Now both use all of their memory: none is available, and none is taken.
    let [_, first, second] = owner.targets()[..] else { panic!("three connections") };
    for _ in 0..30 {
        owner.cycle(&[(0, 0, striped()), (1, first, vec![flow(3.0, 50)]), (2, second, vec![flow(1.0, 50)])]);
    }
    let still = owner.targets()[0];
    owner.cycle(&[(0, 0, striped()), (1, first, vec![flow(3.0, 50)]), (2, second, vec![flow(1.0, 50)])]);
    assert_eq!(owner.targets()[0], still);
    assert!(owner.targets().iter().sum::<u64>() == 1_000_000);
}

/// All buffers are always full. The links of the striped connection are down for some time, and
/// single connections take the memory that it leaves; their bandwidths differ by a factor of a
/// thousand.
#[test]
fn each_connection_can_count_on_half_of_an_equal_share() {
    for count in [2, 4, 16, 64] {
        for segments in [1, 2, 4, 100] {
            let pool = u64::from(MSS) * u64::from(count) * segments;
            let half = (pool / u64::from(2 * count)).max(u64::from(MSS));
            let mut owner = Owner::new(pool, Config::default().policy);
            owner.open(0, Kind::Striped, MSS);
            (1..count).for_each(|single| owner.open(single, Kind::Single, MSS));
            for cycle in 0..400 {
                let is_gone = (100..150).contains(&cycle);
                let links = if is_gone { vec![flow(0.0, 20)] } else { striped() };
                let single = |n: u32| vec![flow(if n.is_multiple_of(2) { 10.0 } else { 0.01 }, 50)];
                let targets = owner.targets();
                let flows = (0..count).map(|n| if n == 0 { links.clone() } else { single(n) });
                let views: Vec<_> = flows.zip(&targets).zip(0..).map(|((f, t), n)| (n, *t, f)).collect();
                owner.cycle(&views);
                let targets = owner.targets();
                let case = format!("{count} connections, {segments} segments, cycle {cycle}: {targets:?}");
                assert!(targets[1..].iter().all(|target| *target + 1 >= half), "{case}");
                assert!(cycle < 399 || targets[0] + 1 >= half, "{case}");
            }
        }
    }
}

#[test]
fn erratum_b17_a_buffer_in_excess_shrinks_and_the_others_have_it() {
    let mut owner = Owner::new(300_000, pid(|_| ()));
    owner.open(0, Kind::Striped, MSS);
    owner.open(1, Kind::Single, MSS);
    let low = vec![flow(0.1, 20)];
    for _ in 0..400 {
        owner.cycle(&[(0, 0, low.clone()), (1, 0, vec![flow(1.0, 50)])]);
    }
    assert_eq!(owner.targets(), [u64::from(MSS), 300_000 - u64::from(MSS)]);
}

#[test]
fn erratum_b11_the_rest_by_bandwidth_or_by_bandwidth_delay_product() {
    for (excess, sizes) in [(Excess::Bandwidth, [50_000, 50_000]), (Excess::Product, [25_000, 75_000])] {
        let mut owner = Owner::new(100_000, pid(|pid| pid.excess = excess));
        owner.open(1, Kind::Single, MSS);
        owner.open(2, Kind::Single, MSS);
        owner.cycle(&[(1, 0, vec![flow(1.0, 50)]), (2, 0, vec![flow(1.0, 150)])]);
        assert_eq!(owner.targets(), sizes);
    }
}

#[test]
fn erratum_b4_a_signed_deviation_vanishes_and_an_absolute_one_does_not() {
    // The buffer of the single connection alternates between full and half full.
    let grows = |deviation| {
        let fast = Gains { kp: 1.0, ki: 0.0, kd: 0.0 };
        let mut owner = Owner::new(400_000, pid(|pid| (pid.gains, pid.deviation) = (fast, deviation)));
        owner.open(0, Kind::Striped, MSS);
        owner.open(1, Kind::Single, MSS);
        for cycle in 0..40 {
            let limit = owner.tuner.connections()[1].limit;
            let occupied = if cycle % 2 == 0 { limit } else { limit / 2 };
            owner.cycle(&[(0, 0, striped()), (1, occupied, vec![flow(1.0, 50)])]);
        }
        owner.targets()[0]
    };
    assert!(grows(Deviation::Signed) > grows(Deviation::Absolute));
}

#[test]
fn an_interface_that_goes_and_returns_takes_its_part_along_with_a_quarter_to_four_times_the_gains() {
    for factor in [0.25, 0.5, 1.0, 2.0, 4.0] {
        let mut owner = Owner::new(2_000_000, pid(|pid| pid.gains = Gains::DAMPED.times(factor)));
        owner.open(0, Kind::Striped, MSS);
        owner.open(1, Kind::Single, MSS);
        let all = striped();
        let settle = |owner: &mut Owner, flows: &[FlowView]| {
            (0..60).for_each(|_| owner.cycle(&[(0, 0, flows.to_vec()), (1, 20_000, vec![flow(1.0, 50)])]));
            owner.targets()[0]
        };
        let near = |size: u64, octets: u64| assert!(size.abs_diff(octets) < 8_400, "{size} and {octets}");
        near(settle(&mut owner, &all), 420_000);
        near(settle(&mut owner, &all[..2]), 175_000);
        // Without an interface there is no set-point.
        near(settle(&mut owner, &[]), 175_000);
        near(settle(&mut owner, &all), 420_000);
    }
}

#[test]
fn erratum_b8_a_frozen_sum_does_not_wind_up_and_does_not_stick() {
    let mut controller = Controller::new(Gains::PAPER);
    let mut size = 10.0;
    for _ in 0..10_000 {
        size = controller.next(1e9, size, 1.0..=100.0);
        assert!(size <= 100.0);
    }
    let cycles = (0..).take_while(|_| {
        size = controller.next(50.0, size, 1.0..=100.0);
        size > 99.0
    });
    assert!(cycles.count() < 20, "it leaves the end of its range at once");
    for _ in 0..10_000 {
        size = controller.next(50.0, size, 1.0..=100.0);
    }
    assert!((size - 50.0).abs() < 1e-6, "{size}");
}

#[test]
fn erratum_b10_as_printed_an_old_small_connection_stays_small() {
    let sizes = |policy| {
        let mut owner = Owner::new(15_000, policy);
        (0..4).for_each(|number| owner.open(number, Kind::Single, 1));
        let views = |windows: [u64; 4]| -> Vec<_> {
            (0..).zip(windows).map(|(number, octets)| (number, 0, vec![window(octets)])).collect()
        };
        // Two that need 1500 of 15000, and two that need more than is available.
        owner.cycle(&views([750, 750, 9000, 9000]));
        (0..20).for_each(|_| owner.cycle(&views([2950; 4])));
        owner.targets()
    };
    assert_eq!(sizes(PolicyConfig::Atbt), [1600, 1600, 5900, 5900]);
    assert_eq!(sizes(PolicyConfig::AtbtOriginal), [3750; 4]);
}

#[test]
fn erratum_b18_the_original_leaves_a_buffer_between_two_and_four_windows_alone() {
    let mut owner = Owner::new(1_000_000, PolicyConfig::AtbtOriginal);
    owner.open(0, Kind::Single, 1);
    let mut size = |octets| {
        owner.cycle(&[(0, 0, vec![window(octets)])]);
        owner.targets()[0]
    };
    assert_eq!([10_000, 6_000, 5_000, 4_000, 9_000].map(&mut size), [20_000, 20_000, 20_000, 16_000, 18_000]);
}

#[test]
fn right_sizing_is_twice_what_a_round_trip_brings_and_never_less() {
    let mut owner = Owner::new(10_000_000, PolicyConfig::RightSizing);
    owner.open(0, Kind::Single, MSS);
    let flows = [flow(0.0, 100)];
    let mut total = 0;
    let mut size = |octets| {
        total += octets;
        owner.now += PERIOD;
        owner.views(&[View { id: ConnectionId(0), occupied: 0, acknowledged: total, flows: &flows }]);
        owner.targets()[0]
    };
    // Half a second has five round trips.
    assert_eq!([0, 500_000, 5_000_000, 0].map(&mut size), [128_000, 200_000, 2_000_000, 2_000_000]);
}

#[test]
fn fixed_sizes_are_cut_to_the_pool() {
    let mut owner = Owner::new(300_000, PolicyConfig::Fixed(128_000));
    (0..3).for_each(|number| owner.open(number, Kind::Single, MSS));
    owner.cycle(&[]);
    assert_eq!((owner.targets(), owner.tuner.counters().cut), (vec![100_000; 3], 1));
    owner.close(1);
    owner.cycle(&[]);
    assert_eq!(owner.targets(), [128_000; 2]);
}

#[test]
fn shrinking_waits_for_octets_and_growing_waits_for_shrinking() {
    let mut owner = Owner::new(100_000, PolicyConfig::AtbtOriginal);
    owner.open(0, Kind::Single, 1000);
    owner.open(1, Kind::Single, 1000);
    let views = |first, occupied: u64, second| {
        [(0, occupied, vec![window(first)]), (1, 0, vec![window(second)])].to_vec()
    };
    let has =
        |owner: &Owner| -> Vec<_> { owner.tuner.connections().iter().map(|c| (c.target, c.limit)).collect() };
    (0..3).for_each(|_| owner.cycle(&views(45_000, 0, 5_000)));
    assert_eq!(has(&owner), [(90_000, 90_000), (10_000, 10_000)]);
    // The first is full when the second needs as much.
    (0..3).for_each(|_| owner.cycle(&views(45_000, 90_000, 45_000)));
    assert_eq!(has(&owner), [(50_000, 90_000), (50_000, 10_000)]);
    // Drained memory is reassigned before the next decision.
    let flows = [window(45_000)];
    owner.views(&[View { id: ConnectionId(0), occupied: 70_000, acknowledged: 0, flows: &flows }]);
    assert_eq!(has(&owner), [(50_000, 70_000), (50_000, 30_000)]);
    // A third connection is opened, and gets its first bytes when they become free.
    owner.open(2, Kind::Single, 1000);
    assert_eq!(has(&owner).iter().map(|(target, _)| target).sum::<u64>(), 99_999);
    assert_eq!(has(&owner)[2].1, 0);
    owner.close(0);
    assert_eq!(has(&owner), [(33_333, 33_333); 2]);
}

#[test]
fn a_pool_is_divided_to_the_last_octet() {
    assert_eq!(divide(100, &[1.0, 1.0, 1.0], &[1, 1, 1]), [33, 33, 34]);
    assert_eq!(divide(100, &[0.0, 3.0, 1.0], &[10, 10, 10]), [10, 68, 22]);
    assert_eq!(divide(100, &[0.0, 0.0], &[10, 10]), [50, 50]);
    assert_eq!(divide(100, &[f64::MAX, f64::MAX], &[10, 10]), [50, 50]);
    assert_eq!(divide(30, &[1e-300, 1.0, 1.0], &[10, 10, 10]), [10, 10, 10]);
    assert_eq!(divide(30, &[], &[]), [0; 0]);
}

#[test]
fn a_pool_gets_smaller_as_it_drains() {
    let mut owner = Owner::new(1_000_000, PolicyConfig::Fixed(500_000));
    owner.open(1, Kind::Single, MSS);
    owner.open(2, Kind::Single, MSS);
    owner.cycle(&[(1, 400_000, vec![]), (2, 0, vec![])]);
    let limits = |owner: &Owner| owner.limits.values().copied().collect::<Vec<_>>();
    assert_eq!(limits(&owner), [500_000, 500_000]);
    owner.tuner.set_threshold(600_000).unwrap();
    owner.obey();
    // The contents of the first buffer stay. The second has 300 kB, and 100 kB too much are
    // assigned for now.
    assert_eq!((owner.targets(), limits(&owner)), (vec![300_000, 300_000], vec![400_000, 300_000]));
    owner.threshold = 600_000;
    owner.cycle(&[(1, 200_000, vec![]), (2, 0, vec![])]);
    assert_eq!(limits(&owner), [300_000, 300_000]);
    owner.tuner.set_threshold(1_000_000).unwrap();
    owner.threshold = 1_000_000;
    owner.cycle(&[]);
    assert_eq!(limits(&owner), [500_000, 500_000]);
}

/// A striped connection of 1 MB with a low demand, and a single one of 1 MB that leaves 900 kB
/// unused.
fn figure_5(allocation: Allocation, bandwidth: f64) -> Owner {
    let policy = pid(|pid| pid.allocation = allocation);
    let mut owner = Owner::with(Config { initial: 1_000_000, policy, ..Config::paper() });
    owner.open(1, Kind::Striped, MSS);
    owner.open(2, Kind::Single, MSS);
    owner.cycle(&[(1, 0, vec![flow(bandwidth, 100)]), (2, 100_000, vec![flow(30.0, 100)])]);
    owner
}

#[test]
fn errata_b1_and_b2_figure_5_as_printed_gives_what_is_not_there() {
    // 2 BDP are 250 kB: 10 Mbit/s times 0.1 s, twice. The text shrinks the buffer by kp + ki of the
    // excess.
    let said = figure_5(Allocation::Corrected, 10.0);
    assert_eq!(said.targets(), [1_000_000 - 45_000, 1_000_000 + 45_000]);
    assert_eq!(said.tuner.counters().cut, 0);
    // The figure enlarges it by all unused memory: -45 kB < 900 kB. The other one has 2 MB less its
    // own size, times 30 of 40 Mbit/s. Together they need 2.65 MB, which the pool cuts.
    let printed = figure_5(Allocation::Printed, 10.0);
    assert_eq!(printed.targets(), [2_000_000 - 750_000, 750_000]);
    assert_eq!(printed.tuner.counters().cut, 1);
    // An output above the available memory is granted in full: 2 BDP are 25 MB, and 6 % of the
    // error are 1.44 MB.
    let printed = figure_5(Allocation::Printed, 1000.0);
    let other = (1_000_000.0 * 30.0 / 1030.0_f64).round() as u64;
    assert_eq!((printed.targets()[1], printed.tuner.counters().cut), (other, 1));
    // Without a cut, the sizes do not sum to the pool either.
    let mut owner = Owner::new(2_000_000, pid(|pid| pid.allocation = Allocation::Printed));
    (1..4).for_each(|id| owner.open(id, Kind::Single, MSS));
    owner.cycle(&[1, 2, 3].map(|id| (id, 0, vec![flow(10.0, 100)])));
    let third = (1_872_000.0 / 3.0_f64).round() as u64;
    assert_eq!((owner.targets(), owner.tuner.counters().cut), (vec![third; 3], 0));
}
