//! Invariants under arbitrary events. [`Owner`] checks each answer.

use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::super::share::{divide, fit};
use super::super::{Allocation, ConnectionId, FlowView, Kind, PidConfig, PolicyConfig, View};
use super::{Owner, window};
use crate::time::Duration;

#[derive(Debug, Clone)]
enum Step {
    Open(u32, bool, u32),
    Close(u32),
    View(u32, u64, Vec<FlowView>),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let bandwidth = prop_oneof![
        4 => (0.0..1e8).prop_map(Some),
        1 => any::<f64>().prop_map(Some),
        1 => Just(None),
    ];
    let rtt = prop::option::weighted(0.9, prop_oneof![9 => 0..2_000_000_000_u64, 1 => any::<u64>()]);
    let octets = prop_oneof![9 => 0..3_000_000_u64, 1 => any::<u64>()];
    let mss = prop_oneof![9 => 1..3000_u32, 1 => any::<u32>()];
    let flow = (0..3_u32, bandwidth, rtt, octets.clone(), mss.clone()).prop_map(
        |(interface, bandwidth, rtt, window, mss)| FlowView {
            interface,
            bandwidth,
            rtt: rtt.map(Duration::from_nanos),
            window,
            mss,
        },
    );
    prop_oneof![
        2 => (0..6_u32, any::<bool>(), mss).prop_map(|(id, striped, mss)| Step::Open(id, striped, mss)),
        1 => (0..6_u32).prop_map(Step::Close),
        8 => (0..6_u32, octets, prop::collection::vec(flow, 0..4)).prop_map(|(id, o, f)| Step::View(id, o, f)),
        4 => (0..2_000_u64).prop_map(Step::Pass),
    ]
}

fn policy() -> impl Strategy<Value = PolicyConfig> {
    prop_oneof![
        Just(PolicyConfig::Pid(PidConfig::paper())),
        Just(PolicyConfig::Pid(PidConfig { allocation: Allocation::Printed, ..PidConfig::paper() })),
        (0.0..1000.0, 0.0..1000.0, 0.0..1000.0).prop_map(|(kp, ki, kd)| {
            let mut pid = PidConfig::paper();
            (pid.gains.kp, pid.gains.ki, pid.gains.kd) = (kp, ki, kd);
            PolicyConfig::Pid(pid)
        }),
        Just(PolicyConfig::Atbt),
        Just(PolicyConfig::AtbtOriginal),
        Just(PolicyConfig::RightSizing),
        any::<u64>().prop_map(PolicyConfig::Fixed),
    ]
}

/// Max-min fairness computed differently: fill all equally until one request is met, and continue
/// with the others.
fn max_min(asks: &[u64], pool: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..asks.len()).collect();
    order.sort_by_key(|i| asks[*i]);
    let mut sizes = vec![0.0; asks.len()];
    let mut left = pool;
    for (done, i) in order.iter().enumerate() {
        sizes[*i] = (asks[*i] as f64).min(left / (asks.len() - done) as f64);
        left -= sizes[*i];
    }
    sizes
}

proptest! {
    #[test]
    fn the_pool_is_never_exceeded_and_each_has_a_segment(
        threshold in prop_oneof![1..20_000_u64, 1..3_000_000_u64, Just(1 << 50)],
        policy in policy(),
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let mut owner = Owner::new(threshold, policy);
        for step in steps {
            match step {
                Step::Open(id, true, mss) => owner.open(id, Kind::Striped, mss),
                Step::Open(id, false, mss) => owner.open(id, Kind::Single, mss),
                Step::Close(id) => owner.close(id),
                Step::View(id, occupied, flows) => {
                    let view = View { id: ConnectionId(id), occupied, acknowledged: occupied, flows: &flows };
                    owner.views(&[view]);
                }
                Step::Pass(millis) => owner.now += Duration::from_millis(millis),
            }
        }
        // When all buffers have drained, limits equal targets.
        let ids: Vec<_> = owner.tuner.connections().iter().map(|c| c.id).collect();
        let flows = [window(0)];
        let views: Vec<_> =
            ids.iter().map(|id| View { id: *id, occupied: 0, acknowledged: 0, flows: &flows }).collect();
        owner.views(&views);
        for connection in owner.tuner.connections() {
            prop_assert_eq!(connection.limit, connection.target);
        }
    }

    #[test]
    fn pid_conserves_the_pool(
        threshold in 10_000..3_000_000_u64,
        cycles in prop::collection::vec(
            prop::collection::vec((0..500_000_u64, 0.0..1e8, 1..300_u64), 4), 1..60),
    ) {
        let mut owner = Owner::new(threshold, PolicyConfig::Pid(PidConfig::paper()));
        owner.open(0, Kind::Striped, 1460);
        (1..4).for_each(|id| owner.open(id, Kind::Single, 1460));
        for cycle in cycles {
            let views: Vec<_> = (0..)
                .zip(cycle)
                .map(|(id, (occupied, bandwidth, rtt))| (id, occupied, vec![super::flow(bandwidth / 1e6, rtt)]))
                .collect();
            owner.cycle(&views);
            prop_assert_eq!(owner.targets().iter().sum::<u64>(), threshold);
            prop_assert_eq!(owner.tuner.counters().cut, 0);
        }
    }

    #[test]
    fn erratum_b10_the_original_settles_at_the_max_min_share(
        threshold in 1_000..1_000_000_u64,
        before in prop::collection::vec(1..300_000_u64, 6),
        windows in prop::collection::vec(1..300_000_u64, 1..6),
    ) {
        let mut owner = Owner::new(threshold, PolicyConfig::AtbtOriginal);
        (0..windows.len() as u32).for_each(|id| owner.open(id, Kind::Single, 1));
        let views = |windows: &[u64]| -> Vec<_> {
            (0..).zip(windows).map(|(id, octets)| (id, 0, vec![window(*octets)])).collect()
        };
        // From any share that earlier demands have left.
        (0..3).for_each(|_| owner.cycle(&views(&before[..windows.len()])));
        // After a window of 0, the request is twice the window and not its previous value.
        owner.cycle(&views(&vec![0; windows.len()]));
        (0..windows.len() + 3).for_each(|_| owner.cycle(&views(&windows)));
        let asks: Vec<u64> = windows.iter().map(|octets| 2 * octets).collect();
        for (size, fair) in owner.targets().into_iter().zip(max_min(&asks, threshold as f64)) {
            // Whole bytes: each connection may leave less than one.
            prop_assert!((size as f64 - fair).abs() <= windows.len() as f64, "{size} and {fair}");
        }
    }

    #[test]
    fn what_does_not_fit_is_cut_to_the_max_min_share(
        asks in prop::collection::vec(0..1_000_000_u64, 1..8), pool in 0..2_000_000_u64,
    ) {
        let sizes = fit(&asks, &vec![0; asks.len()], pool);
        for (size, fair) in sizes.iter().zip(max_min(&asks, pool as f64)) {
            prop_assert!((*size as f64 - fair).abs() <= 1.0, "{size} and {fair}");
        }
    }

    #[test]
    fn a_division_is_exact_and_in_proportion(
        shares in prop::collection::vec((prop_oneof![Just(0.0), 0.0..1e18], 1..3000_u64), 1..8),
        more in 0..(1_u64 << 49),
    ) {
        let (weights, least): (Vec<f64>, Vec<u64>) = shares.into_iter().unzip();
        let pool = least.iter().sum::<u64>() + more;
        let sizes = divide(pool, &weights, &least);
        prop_assert_eq!(sizes.iter().sum::<u64>(), pool);
        for i in 0..sizes.len() {
            prop_assert!(sizes[i] >= least[i]);
            for j in 0..sizes.len() {
                // A connection above its least size has no more than its proportion compared with
                // any other.
                if sizes[i] > least[i] && weights[j] > 0.0 {
                    let fair = sizes[j] as f64 * weights[i] / weights[j];
                    let slack = 8.0 * (1.0 + weights[i] / weights[j]) + fair * 1e-9;
                    prop_assert!(sizes[i] as f64 <= fair + slack, "{sizes:?}");
                }
            }
        }
    }
}
