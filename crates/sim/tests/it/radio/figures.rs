//! Throughput and delays compared with closed forms.

use anabranch_core::time::Duration;
use anabranch_sim::radio::{MacConfig, PhyConfig, RadioConfig, Station};

use crate::air::{Air, Flow, after, star};

/// A single sender with acknowledgements: the sum of the standard's times.
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

/// The sum for SUN FSK, whose acknowledgements take 15 bytes: 8 before the PSDU, 3, and
/// an FCS of 4.
#[test]
fn an_acknowledgement_of_sun_fsk_has_an_fcs_of_four_octets() {
    for psdu_len in [127, 2047] {
        let frame = 80.0 * (8.0 + f64::from(psdu_len));
        let by_hand = 3.5 * 1080.0 + 80.0 + 1000.0 + frame + 1000.0 + 15.0 * 80.0 + 1000.0;
        let seconds = 300;
        let mut air = Air::new(RadioConfig::sun_fsk(100.0), &star(1, 50.0), 1);
        air.saturate(&[1], 0, psdu_len, after(Duration::from_secs(seconds)));
        let octets = air.radio.metrics(Station(0)).received as f64 * f64::from(psdu_len);
        let (goodput, bound) = (octets * 8.0 / seconds as f64, f64::from(psdu_len) * 8.0 / (by_hand * 1e-6));
        println!("{psdu_len} octets: {goodput:.0} against {bound:.0} bit/s");
        // Two bytes fewer are 0.9 % of the time of the shorter frame.
        assert!((goodput / bound - 1.0).abs() < 0.004, "{goodput} against {bound} bit/s");
    }
}

/// The exact Markov chain of CSMA-CA for a constant probability `p` of a busy CCA, in seconds. The
/// i-th backoff, i = 0 to 4, occurs with probability p^i, takes (W_i - 1) / 2 periods on average
/// with W = 8, 16, 32, 32, 32, and ends with a CCA. If a CCA takes a whole period, these are the
/// (W_i + 1) / 2 periods of N_bp.
fn access_time(p: f64, phy: &PhyConfig) -> f64 {
    let stages = [8.0, 16.0, 32.0, 32.0, 32.0].into_iter().zip(0..);
    let stage =
        |(w, i)| p_to(p, i) * ((w - 1.0) / 2.0 * phy.backoff_period.as_secs_f64() + phy.cca.as_secs_f64());
    stages.map(stage).sum()
}

fn p_to(p: f64, i: i32) -> f64 {
    p.powi(i)
}

/// A station among five others that it hears and that do not hear each other. Each of them sends
/// short frames at random times, so the channel is busy at random.
#[test]
fn access_delay_is_that_of_the_chain_under_independent_interferers() {
    let whole_period = PhyConfig { cca: Duration::from_micros(320), ..PhyConfig::o_qpsk() };
    for (phy, rate, likely) in [
        (PhyConfig::o_qpsk(), 60.0, 0.05..0.15),
        (PhyConfig::o_qpsk(), 200.0, 0.2..0.35),
        (PhyConfig::o_qpsk(), 500.0, 0.4..0.65),
        (whole_period, 150.0, 0.2..0.4),
    ] {
        let config = RadioConfig { phy, ..RadioConfig::o_qpsk(100.0) };
        let mut air = Air::new(config, &star(5, 99.0), 1);
        let mut flows = vec![Flow { from: 0, to: None, psdu_len: 5, rate: 25.0 }];
        flows.extend((1..=5).map(|from| Flow { from, to: None, psdu_len: 1, rate }));
        air.poisson(&flows, 1, after(Duration::from_secs(400)), |_| {});
        let metrics = air.radio.metrics(Station(0));
        let p = metrics.busy_probability();
        let measured = metrics.access_time.as_secs_f64() / metrics.accesses as f64;
        let chain = access_time(p, &phy);
        assert!(metrics.accesses > 8000 && likely.contains(&p), "{} accesses at p = {p}", metrics.accesses);
        assert!((measured / chain - 1.0).abs() < 0.05, "{measured} against {chain} s at p = {p}");
        let failures = metrics.channel_access_failures as f64 / metrics.accesses as f64;
        assert!((failures - p_to(p, 5)).abs() < 0.01, "{failures} failures at p = {p}");
    }
}

/// Frames per second that arrive from `n` saturated senders, and the fraction that is given up.
fn saturated(n: u32, seconds: u64) -> (f64, f64) {
    let mut air = Air::new(RadioConfig::o_qpsk(100.0), &star(n as usize, 20.0), 1);
    let senders: Vec<u32> = (1..=n).collect();
    air.saturate(&senders, 0, 127, after(Duration::from_secs(seconds)));
    let all = senders.iter().map(|&s| air.radio.metrics(Station(s)));
    let (given_up, offered) =
        all.fold((0, 0), |(g, o), m| (g + m.no_ack + m.channel_access_failures, o + m.offered));
    (air.radio.metrics(Station(0)).received as f64 / seconds as f64, given_up as f64 / offered as f64)
}

#[test]
fn throughput_falls_with_the_number_of_senders() {
    let table: Vec<_> = [1, 2, 3, 5, 8, 12, 20].into_iter().map(|n| (n, saturated(n, 20))).collect();
    for pair in table.windows(2) {
        let [(n, (more, kept)), (m, (fewer, given_up))] = [pair[0], pair[1]];
        assert!(fewer < more && given_up > kept, "{m} senders against {n}: {pair:?}");
    }
    let kbit = |i: usize| table[i].1.0 * 127.0 * 8.0 / 1000.0;
    assert!((135.0..147.0).contains(&kbit(1)), "two take turns: {} kbit/s", kbit(1));
    assert!((50.0..85.0).contains(&kbit(6)), "twenty collide: {} kbit/s", kbit(6));
}

/// Fraction of frames that two senders deliver to the station between them, each with `rate` frames
/// per second and `retries` retries: in range of each other, and hidden from each other.
fn two_senders(rate: f64, retries: u8) -> [f64; 2] {
    let config = RadioConfig::o_qpsk(100.0);
    let config = RadioConfig { mac: MacConfig { max_frame_retries: retries, ..config.mac }, ..config };
    [40.0, 90.0].map(|x| {
        let mut air = Air::new(config, &[(0.0, 0.0), (-x, 0.0), (x, 0.0)], 1);
        let flow = |from| Flow { from, to: Some(0), psdu_len: 127, rate };
        air.poisson(&[flow(1), flow(2)], 1, after(Duration::from_secs(100)), |_| {});
        let offered: u64 = [1, 2].map(|s| air.radio.metrics(Station(s)).offered).iter().sum();
        air.radio.metrics(Station(0)).received as f64 / offered as f64
    })
}

#[test]
fn hidden_senders_deliver_less() {
    let mut before = 0.0;
    for rate in [5.0, 10.0, 20.0, 40.0] {
        let [heard, hidden] = two_senders(rate, 0);
        assert!(heard > 0.95, "{heard} at {rate} frames/s");
        // Each frame is vulnerable to the other's for about 8.5 ms, twice its length. Backoffs
        // spread them.
        let expected = (-rate * 2.0 * 133.0 * 32e-6f64).exp();
        assert!((hidden - expected).abs() < 0.06, "{hidden} against {expected} at {rate} frames/s");
        assert!(heard - hidden > before, "the difference grows with the load");
        before = heard - hidden;
    }
    // Retries help senders in range of each other, and hidden senders up to a certain load; above
    // it retries are the load.
    assert!(two_senders(20.0, 3)[0] > 0.999);
    let [few, many] = [two_senders(5.0, 3)[1], two_senders(40.0, 3)[1]];
    assert!(few > two_senders(5.0, 0)[1] && many < 0.1, "{few}, {many}");
}
