//! Properties that hold for all valid parameters.

use proptest::prelude::*;

use super::super::csma::{Csma, access, mean_periods, periods_at_constant};
use super::super::queue::{Queue, occupied};
use super::super::rtt::{HopTime, Travel, travel, travel_times};
use super::super::*;
use super::{Busy, multi_link, node, route};

fn csma() -> impl Strategy<Value = Csma> {
    (3..=8_u32, 0..=8_u32, 0..=5_u32).prop_map(|(max_be, min_be, max_backoffs)| Csma {
        min_be: min_be.min(max_be),
        max_be,
        max_backoffs,
    })
}

fn readings() -> impl Strategy<Value = Reading> {
    let means =
        [StartPeriod::Distribution, StartPeriod::Mean(Rounding::Down), StartPeriod::Mean(Rounding::Up)];
    proptest::sample::select(means.to_vec()).prop_map(|start| Reading { start, ..Reading::default() })
}

proptest! {
    #[test]
    fn an_attempt_ends_one_way_or_the_other(
        csma in csma(),
        each in proptest::collection::vec(0.0..=1.0_f64, 1..60),
        reading in readings(),
    ) {
        let chain = access(&csma, &Busy::ByPeriod(each), reading).expect("legal");
        prop_assert!((chain.won + chain.lost - 1.0).abs() < 1e-9);
        prop_assert!((chain.won_at.iter().sum::<f64>() - chain.won).abs() < 1e-9);
        prop_assert!(chain.periods >= 1.0 && chain.periods <= f64::from(csma.longest()));
        prop_assert_eq!(chain.stages.len() as u32, csma.max_backoffs + 1);
        for pair in chain.stages.windows(2) {
            prop_assert!((pair[0].busy - pair[1].reached).abs() < 1e-12);
            prop_assert!(pair[1].busy <= pair[1].reached + 1e-12);
        }
    }

    #[test]
    fn the_closed_form_is_the_chain(csma in csma(), busy in 0.0..=1.0_f64) {
        let chain = access(&csma, &Busy::Constant(busy), Reading::default()).expect("legal");
        let closed = periods_at_constant(&csma, busy).expect("legal");
        prop_assert!((chain.periods - closed).abs() < 1e-9);
        prop_assert!((chain.lost - busy.powi(csma.max_backoffs as i32 + 1)).abs() < 1e-9);
    }

    /// Bit-identical, because simulations depend on it.
    #[test]
    fn what_is_computed_in_less_time_is_the_same(
        csma in csma(),
        busy in 0.0..=1.0_f64,
        arrivals in 0.0..10.0_f64,
        reading in readings(),
    ) {
        let constant = Busy::Constant(busy);
        let chain = access(&csma, &constant, reading).expect("legal");
        prop_assert_eq!(mean_periods(&csma, &constant, reading), Ok(chain.periods));
        prop_assert_eq!(access(&csma, &Busy::from_fn(&csma, |_| busy), reading), Ok(chain));
        let route = route(vec![node(arrivals, busy); 2]);
        let whole = travel(&route, reading).expect("legal");
        let without = |hop: HopTime| HopTime { access: None, ..hop };
        let forward = whole.forward.into_iter().map(without).collect();
        prop_assert_eq!(travel_times(&route, reading), Ok(Travel { forward, ..whole }));
    }

    #[test]
    fn a_busier_channel_takes_longer(csma in csma(), busy in 0.0..1.0_f64, more in 0.0..1.0_f64) {
        let busier = busy + (1.0 - busy) * more;
        let [a, b] = [busy, busier].map(|p| {
            access(&csma, &Busy::Constant(p), Reading::default()).expect("legal")
        });
        prop_assert!(a.periods <= b.periods + 1e-9 && a.lost <= b.lost + 1e-12);
    }

    #[test]
    fn a_queue_adds_up(arrivals in 0.0..5.0_f64, service in 0.5..5.0_f64, capacity in 1..200_u32) {
        let queue = Queue { arrivals, service, capacity: Some(capacity) };
        let p: Vec<f64> = (0..=capacity).map(|n| queue.probability(n).expect("legal")).collect();
        prop_assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        let mean: f64 = p.iter().zip(0_u32..).map(|(p, n)| p * f64::from(n)).sum();
        let all = occupied(&queue, Reading::default()).expect("legal");
        prop_assert!((all.packets - mean).abs() < 1e-6 * (1.0 + mean));
        prop_assert!(all.seen <= all.packets + 1e-9 && all.time >= 0.0);
        // By Little's law.
        prop_assert!((all.sojourn * arrivals * (1.0 - all.refused) - all.packets).abs() < 1e-6 * (1.0 + mean));
        let busier = occupied(&Queue { arrivals: arrivals * 1.1, ..queue }, Reading::default()).expect("legal");
        prop_assert!(busier.packets >= all.packets - 1e-9 && busier.refused >= all.refused - 1e-12);
    }

    /// Equation (6) where it can be evaluated as printed.
    #[test]
    fn the_sums_are_equation_6(arrivals in 0.1..0.9_f64, capacity in 1..30_i32) {
        let queue = Queue { arrivals, service: 1.0, capacity: Some(capacity as u32) };
        let power = arrivals.powi(capacity + 1);
        let closed = arrivals / (1.0 - arrivals) - f64::from(capacity + 1) * power / (1.0 - power);
        let packets = occupied(&queue, Reading::default()).expect("legal").packets;
        prop_assert!((packets - closed).abs() < 1e-9);
    }

    #[test]
    fn each_hop_more_takes_longer(busy in 0.0..1.0_f64, arrivals in 0.0..10.0_f64, hops in 1..6_usize) {
        let of = |hops| travel(&route(vec![node(arrivals, busy); hops]), Reading::default()).expect("legal");
        let (short, long) = (of(hops), of(hops + 1));
        prop_assert!(long.rtt() > short.rtt() && long.t_first > short.t_first);
        prop_assert!(long.gained() <= short.gained());
        prop_assert_eq!(long.t_next, short.t_next);
    }

    #[test]
    fn all_readings_give_numbers(busy in 0.0..1.0_f64, arrivals in 0.0..10.0_f64) {
        let hops = vec![node(arrivals, busy), multi_link(arrivals)];
        for reading in [Reading::default(), Reading::printed()] {
            let travelled = travel(&route(hops.clone()), reading).expect("legal");
            prop_assert!(travelled.rtt() > 0.0 && travelled.rtt().is_finite());
            prop_assert!(travelled.t_first >= travelled.syn && travelled.t_next > 0.0);
        }
    }
}
