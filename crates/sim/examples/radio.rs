//! The tables of `docs/reference/radio.md`:
//! `cargo run --release -p anabranch-sim --example radio -- full`. Without `full`, the same rows
//! from short runs.

use std::io::{self, Write};

use anabranch_core::time::Duration;
use anabranch_sim::radio::{MacConfig, PhyConfig, RadioConfig, Station};

#[path = "../benches/support/air.rs"]
mod air;
#[path = "../benches/support/length.rs"]
mod length;

use air::{Air, Flow, after, star};
use length::Length;

fn main() -> io::Result<()> {
    let out = &mut io::stdout().lock();
    // Simulated seconds for each row.
    let seconds = Length::from_command_line()?.pick(3, 300);
    one_sender(out, seconds)?;
    access_delay(out, seconds)?;
    saturated_senders(out, seconds)?;
    hidden_terminals(out, seconds)
}

/// One saturated sender, compared with the sum of the times.
fn one_sender(out: &mut impl Write, seconds: u64) -> io::Result<()> {
    writeln!(out, "\n| PHY | PSDU | by hand, kbit/s | simulated, kbit/s |\n| --- | --- | --- | --- |")?;
    for (name, config, psdu_len) in [
        ("O-QPSK", RadioConfig::o_qpsk(100.0), 127),
        ("O-QPSK", RadioConfig::o_qpsk(100.0), 50),
        ("SUN FSK", RadioConfig::sun_fsk(100.0), 127),
        ("SUN FSK", RadioConfig::sun_fsk(100.0), 2047),
    ] {
        let PhyConfig { backoff_period, cca, turnaround, ack_psdu, .. } = config.phy;
        let by_hand = backoff_period * 7 / 2
            + cca
            + turnaround
            + config.phy.airtime(psdu_len)
            + turnaround
            + config.phy.airtime(ack_psdu)
            + config.phy.interframe_space(psdu_len);
        let bits = f64::from(psdu_len) * 8.0;
        let mut air = Air::new(config, &star(1, 50.0), 1);
        air.saturate(&[1], 0, psdu_len, after(Duration::from_secs(seconds)));
        let simulated = air.radio.metrics(Station(0)).received as f64 * bits / seconds as f64;
        let by_hand = bits / by_hand.as_secs_f64();
        writeln!(out, "| {name} | {psdu_len} | {:.2} | {:.2} |", by_hand / 1e3, simulated / 1e3)?;
    }
    Ok(())
}

/// Delay of CSMA-CA among five independent interferers, compared with the Markov chain.
fn access_delay(out: &mut impl Write, seconds: u64) -> io::Result<()> {
    writeln!(out, "\n| frames/s of each | p_b | chain, ms | simulated, ms | p_b^5 | failures |")?;
    writeln!(out, "| --- | --- | --- | --- | --- | --- |")?;
    for rate in [20.0, 60.0, 120.0, 200.0, 300.0, 500.0] {
        let config = RadioConfig::o_qpsk(100.0);
        let mut air = Air::new(config, &star(5, 99.0), 1);
        let mut flows = vec![Flow { from: 0, to: None, psdu_len: 5, rate: 25.0 }];
        flows.extend((1..=5).map(|from| Flow { from, to: None, psdu_len: 1, rate }));
        air.poisson(&flows, 1, after(Duration::from_secs(seconds)), |_| {});
        let metrics = air.radio.metrics(Station(0));
        let p = metrics.busy_probability();
        let stage = |(i, w): (i32, f64)| p.powi(i) * ((w - 1.0) / 2.0 * 0.320 + 0.128);
        let chain: f64 = (0..).zip([8.0, 16.0, 32.0, 32.0, 32.0]).map(stage).sum();
        let simulated = metrics.access_time.as_secs_f64() * 1e3 / metrics.accesses as f64;
        let failures = metrics.channel_access_failures as f64 / metrics.accesses as f64;
        writeln!(
            out,
            "| {rate} | {p:.3} | {chain:.3} | {simulated:.3} | {:.4} | {failures:.4} |",
            p.powi(5)
        )?;
    }
    Ok(())
}

/// n saturated senders around one receiver, all in range of each other.
fn saturated_senders(out: &mut impl Write, seconds: u64) -> io::Result<()> {
    writeln!(out, "\n| n | kbit/s | busy CCAs | frames lost | given up, no ACK | given up, no channel |")?;
    writeln!(out, "| --- | --- | --- | --- | --- | --- |")?;
    for n in (1..=10).chain([12, 14, 16, 18, 20]) {
        let mut air = Air::new(RadioConfig::o_qpsk(100.0), &star(n, 20.0), 1);
        let senders: Vec<u32> = (1..=n as u32).collect();
        air.saturate(&senders, 0, 127, after(Duration::from_secs(seconds)));
        let sum =
            |f: fn(&Air, Station) -> u64| senders.iter().map(|&s| f(&air, Station(s))).sum::<u64>() as f64;
        let offered = sum(|air, s| air.radio.metrics(s).offered);
        let sent = sum(|air, s| air.radio.metrics(s).transmissions);
        let acknowledged = sum(|air, s| air.radio.metrics(s).acknowledged);
        let ccas = sum(|air, s| air.radio.metrics(s).ccas);
        let kbit = air.radio.metrics(Station(0)).received as f64 * 127.0 * 8.0 / 1e3 / seconds as f64;
        writeln!(
            out,
            "| {n} | {kbit:.1} | {:.3} | {:.3} | {:.3} | {:.3} |",
            sum(|air, s| air.radio.metrics(s).busy_ccas) / ccas,
            1.0 - acknowledged / sent,
            sum(|air, s| air.radio.metrics(s).no_ack) / offered,
            sum(|air, s| air.radio.metrics(s).channel_access_failures) / offered,
        )?;
    }
    Ok(())
}

/// Two senders and a receiver between them: in range of each other, and hidden from each other.
fn hidden_terminals(out: &mut impl Write, seconds: u64) -> io::Result<()> {
    writeln!(out, "\n| frames/s of each | retries | in range | hidden | frames on air, in range | hidden |")?;
    writeln!(out, "| --- | --- | --- | --- | --- | --- |")?;
    for (max_frame_retries, delay) in [(0, 0), (3, 0), (3, 40)] {
        for rate in [2.0, 5.0, 10.0, 20.0, 30.0, 40.0] {
            let config = RadioConfig::o_qpsk(100.0);
            let retry_delay = Duration::from_millis(delay);
            let mac = MacConfig { max_frame_retries, retry_delay, ..config.mac };
            let [heard, hidden] =
                [40.0, 90.0].map(|x| two_senders(RadioConfig { mac, ..config }, x, rate, seconds));
            let delayed = if delay > 0 { format!(", up to {delay} ms later") } else { String::new() };
            writeln!(
                out,
                "| {rate} | {max_frame_retries}{delayed} | {:.3} | {:.3} | {:.2} | {:.2} |",
                heard[0], hidden[0], heard[1], hidden[1]
            )?;
        }
    }
    Ok(())
}

/// Two senders at this distance to the left and right of a receiver: the fraction of their frames
/// that arrives, and the number of transmissions of each.
fn two_senders(config: RadioConfig, metres: f64, rate: f64, seconds: u64) -> [f64; 2] {
    let mut air = Air::new(config, &[(0.0, 0.0), (-metres, 0.0), (metres, 0.0)], 1);
    let flow = |from| Flow { from, to: Some(0), psdu_len: 127, rate };
    air.poisson(&[flow(1), flow(2)], 1, after(Duration::from_secs(seconds)), |_| {});
    let both = [1, 2].map(|s| air.radio.metrics(Station(s)));
    let offered: u64 = both.iter().map(|m| m.offered).sum();
    let sent: u64 = both.iter().map(|m| m.transmissions).sum();
    [air.radio.metrics(Station(0)).received, sent].map(|n| n as f64 / offered as f64)
}
