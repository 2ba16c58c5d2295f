use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

use super::*;

const MICRO: f64 = 1e-6;

/// Table II of Bianchi's paper: frequency hopping at 1 Mbit/s, so one bit takes one microsecond.
fn bianchi() -> Times {
    let header = 272.0 + 128.0;
    Times {
        data: (header + 8184.0) * MICRO,
        ack: (112.0 + 128.0) * MICRO,
        rts: (160.0 + 128.0) * MICRO,
        cts: (112.0 + 128.0) * MICRO,
        sifs: 28.0 * MICRO,
        difs: 128.0 * MICRO,
        delay: MICRO,
    }
}

const SLOT: f64 = 50.0 * MICRO;

fn close(value: f64, expected: f64, tolerance: f64) {
    assert!((value / expected - 1.0).abs() < tolerance, "{value}, not {expected}");
}

/// Below equation (28): K = 9.334 for basic access and 2.042 with RTS/CTS.
#[test]
fn the_two_k_of_the_paper() {
    close(Exchange::basic(&bianchi()).k(SLOT).unwrap(), 9.334, 1e-4);
    close(Exchange::rts_cts(&bianchi()).k(SLOT).unwrap(), 2.042, 2e-4);
}

/// The times of equations (14) and (17), in microseconds.
#[test]
fn the_times_of_an_exchange() {
    let basic = Exchange::basic(&bianchi());
    close(basic.success, 8982.0 * MICRO, 1e-12);
    close(basic.collision, 8713.0 * MICRO, 1e-12);
    let rts_cts = Exchange::rts_cts(&bianchi());
    close(rts_cts.success, 9568.0 * MICRO, 1e-12);
    close(rts_cts.collision, 417.0 * MICRO, 1e-12);
}

/// Equations (7) to (9) in known cases: no collisions, and a single window.
#[test]
fn tau_where_it_is_known() {
    let one_window = |window| Backoff { window, stages: 0, attempts: None };
    for p in [0.0, 0.3, 0.5, 1.0] {
        close(one_window(32).tau(p).unwrap(), 2.0 / 33.0, 1e-12);
        close(Backoff { attempts: Some(4), ..one_window(8) }.tau(p).unwrap(), 2.0 / 9.0, 1e-12);
    }
    close(Backoff::BIANCHI.tau(0.0).unwrap(), 2.0 / 33.0, 1e-12);
    // Equation (7) as printed, which is singular at 1/2.
    for p in [0.1, 0.3, 0.499, 0.501, 0.9] {
        let (w, m) = (32.0, 5);
        let printed =
            2.0 * (1.0 - 2.0 * p) / ((1.0 - 2.0 * p) * (w + 1.0) + p * w * (1.0 - f64::powi(2.0 * p, m)));
        close(Backoff::BIANCHI.tau(p).unwrap(), printed, 1e-9);
    }
    close(Backoff::BIANCHI.tau(1.0).unwrap(), 2.0 / 1025.0, 1e-12);
}

/// A single station sends every (W + 1) / 2 slots.
#[test]
fn one_station_by_hand() {
    let exchange = Exchange::basic(&bianchi());
    let state = solve(&Backoff::BIANCHI, 1).unwrap();
    assert_eq!(state.collision, 0.0);
    close(state.success(), 1.0, 1e-12);
    let throughput = throughput(&Backoff::BIANCHI, 1, &exchange, SLOT, 8184.0).unwrap();
    close(throughput, 8184.0 / (15.5 * SLOT + 8982.0 * MICRO), 1e-9);
}

/// For many stations, equation (28) is the maximum over all tau.
#[test]
fn no_tau_exceeds_the_bound() {
    let n = 200.0;
    for exchange in [Exchange::basic(&bianchi()), Exchange::rts_cts(&bianchi())] {
        let bound = exchange.bound(SLOT, 8184.0).unwrap();
        let at = |tau: f64| {
            let state = Saturation { tau, collision: 0.0, stations: 200 };
            let (busy, success) = (state.busy(), state.success());
            let slots = (1.0 - busy) * SLOT + busy * (1.0 - success) * exchange.collision;
            busy * success * 8184.0 / (slots + busy * success * exchange.success)
        };
        let best = (1..2000).map(|i| at(f64::from(i) * 1e-5)).fold(0.0, f64::max);
        close(best, bound, 5e-3);
        close(at(1.0 / (n * exchange.k(SLOT).unwrap())), best, 5e-3);
    }
}

/// Section V of the paper: with W = 32 and m = 3, the throughput of basic access decreases with the
/// number of stations, and that of RTS/CTS hardly does. The bound holds for many stations; a few
/// can exceed it slightly.
#[test]
fn the_shapes_of_the_paper() {
    let backoff = Backoff { stages: 3, ..Backoff::BIANCHI };
    let share = |exchange: &Exchange, n| throughput(&backoff, n, exchange, SLOT, 8184.0 * MICRO).unwrap();
    let (basic, rts_cts) = (Exchange::basic(&bianchi()), Exchange::rts_cts(&bianchi()));
    let falls: Vec<f64> = [5, 10, 20, 50].iter().map(|&n| share(&basic, n)).collect();
    assert!(falls.windows(2).all(|pair| pair[1] < pair[0]), "{falls:?}");
    for n in [5, 10, 20, 50] {
        assert!((0.80..0.84).contains(&share(&rts_cts, n)), "{}", share(&rts_cts, n));
        assert!(share(&basic, n) < 1.01 * basic.bound(SLOT, 8184.0 * MICRO).unwrap());
        assert!(share(&rts_cts, n) < 1.01 * rts_cts.bound(SLOT, 8184.0 * MICRO).unwrap());
    }
    assert!(share(&rts_cts, 50) > share(&basic, 50));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let good = Backoff::default();
    for bad in
        [Backoff { window: 0, ..good }, Backoff { stages: 17, ..good }, Backoff { attempts: Some(0), ..good }]
    {
        assert!(solve(&bad, 2).is_err(), "{bad:?}");
    }
    assert!(solve(&good, 0).is_err());
    assert!(good.tau(f64::NAN).is_err());
    let error = good.tau(2.0).unwrap_err();
    assert_eq!(error.to_string(), "p must be from 0 to 1");
    let none = Exchange { success: 0.0, collision: f64::NAN };
    assert!(none.k(SLOT).is_err() && throughput(&good, 2, &none, SLOT, 1.0).is_err());
}

fn config() -> Config {
    Config { rng_seed: RngSeed::Fixed(2000), failure_persistence: None, ..Config::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_solution_is_a_fixed_point(
        window in 1_u32..2000, stages in 0_u32..10, attempts in proptest::option::of(1_u32..12), n in 1_u32..300,
    ) {
        let backoff = Backoff { window, stages, attempts };
        let state = solve(&backoff, n).unwrap();
        prop_assert!(state.tau > 0.0 && state.tau <= 1.0);
        prop_assert!((0.0..=1.0).contains(&state.collision));
        prop_assert!((backoff.tau(state.collision).unwrap() / state.tau - 1.0).abs() < 1e-6);
        prop_assert!((0.0..=1.0 + 1e-12).contains(&state.busy()));
    }

    #[test]
    fn a_limit_that_is_never_reached_is_none(p in 0.0_f64..0.9, stages in 0_u32..6) {
        let endless = Backoff { stages, ..Backoff::BIANCHI };
        let limited = Backoff { attempts: Some(1000), ..endless };
        prop_assert!((limited.tau(p).unwrap() / endless.tau(p).unwrap() - 1.0).abs() < 1e-9);
    }
}
