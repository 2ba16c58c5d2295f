//! The tables of `docs/reference/wifi.md`:
//! `cargo run --release -p anabranch-sim --example wifi -- full`. Without `full`, the same rows
//! from short runs.

use std::io::{self, Write};

use anabranch_core::time::Duration;
use anabranch_model::dcf::{self, Backoff, Exchange, ModelError, Times};
use anabranch_sim::wifi::{Rate, Station, StationMetrics, WifiConfig};

#[path = "../benches/support/dcf.rs"]
mod air;
#[path = "../benches/support/length.rs"]
mod length;

use air::{Dcf, Flow, Traffic, after, row, star};
use length::Length;

/// 1000 bytes of payload, 24 of header, 4 of FCS.
const MPDU: u16 = 1028;
const PAYLOAD_BITS: f64 = 8000.0;

fn main() -> io::Result<()> {
    let out = &mut io::stdout().lock();
    // Simulated seconds for each row.
    let seconds = Length::from_command_line()?.pick(1, 120);
    one_sender(out, seconds)?;
    saturated_senders(out, seconds)?;
    hops(out, seconds)?;
    hidden_terminals(out, seconds)
}

fn name(rate: Rate) -> String {
    format!("{} Mbit/s", f64::from(rate.half_mbps()) / 2.0)
}

fn access(rts: bool) -> (&'static str, u16) {
    if rts { ("RTS/CTS", 0) } else { ("basic", 2347) }
}

/// Payload in kbit/s, and the fraction of RTS or data without an answer, of n senders around a
/// receiver.
fn saturated(config: WifiConfig, n: u32, seconds: u64) -> (f64, f64) {
    let mut dcf = Dcf::new(config, &star(n as usize, 20.0), 1);
    let senders: Vec<u32> = (1..=n).collect();
    dcf.saturate(&senders, 0, MPDU, after(Duration::from_secs(seconds)));
    let sum = |f: fn(&StationMetrics) -> u64| {
        senders.iter().map(|&s| f(&dcf.wifi.metrics(Station(s)))).sum::<u64>() as f64
    };
    let sent = if config.mac.rts_threshold == 0 { sum(|m| m.rts) } else { sum(|m| m.transmissions) };
    let missing = sum(|m| m.cts_missing + m.acks_missing);
    let received = dcf.wifi.metrics(Station(0)).received as f64;
    (received * PAYLOAD_BITS / seconds as f64 / 1e3, missing / sent)
}

/// One saturated sender, compared with the sum of the times.
fn one_sender(out: &mut impl Write, seconds: u64) -> io::Result<()> {
    writeln!(out, "\n| rate | access | cycle, µs | by hand, kbit/s | simulated, kbit/s |")?;
    writeln!(out, "| --- | --- | --- | --- | --- |")?;
    for rate in Rate::ALL {
        for rts in [false, true] {
            let (access, threshold) = access(rts);
            let config = WifiConfig::dsss(100.0).with_data_rate(rate).with_rts_threshold(threshold);
            let phy = config.phy;
            let mut cycle = phy.difs() + phy.slot * 31 / 2;
            if rts {
                cycle += phy.airtime(20, phy.basic_rate) + phy.ack_time() + phy.sifs * 2;
            }
            cycle += phy.airtime(MPDU, rate) + phy.sifs + phy.ack_time();
            let by_hand = PAYLOAD_BITS / cycle.as_secs_f64() / 1e3;
            let (simulated, _) = saturated(config, 1, seconds);
            writeln!(
                out,
                "| {} | {access} | {} | {by_hand:.1} | {simulated:.1} |",
                name(rate),
                cycle.as_nanos() / 1000
            )?;
        }
    }
    Ok(())
}

fn model(config: &WifiConfig, n: u32) -> Result<(f64, f64), ModelError> {
    let phy = config.phy;
    let seconds = |time: Duration| time.as_secs_f64();
    let times = Times {
        data: seconds(phy.airtime(MPDU, phy.data_rate)),
        ack: seconds(phy.ack_time()),
        rts: seconds(phy.airtime(20, phy.basic_rate)),
        cts: seconds(phy.ack_time()),
        sifs: seconds(phy.sifs),
        difs: seconds(phy.difs()),
        delay: 0.0,
    };
    let rts = config.mac.rts_threshold == 0;
    let exchange = if rts { Exchange::rts_cts(&times) } else { Exchange::basic(&times) };
    let backoff = Backoff::default();
    let throughput = dcf::throughput(&backoff, n, &exchange, seconds(phy.slot), PAYLOAD_BITS)?;
    Ok((throughput / 1e3, dcf::solve(&backoff, n)?.collision))
}

/// n saturated senders around one receiver, compared with Bianchi's model.
fn saturated_senders(out: &mut impl Write, seconds: u64) -> io::Result<()> {
    writeln!(
        out,
        "\n| rate | access | n | model, kbit/s | simulated | difference | ns-2 | p, model | p, simulated |"
    )?;
    writeln!(out, "| --- | --- | --- | --- | --- | --- | --- | --- | --- |")?;
    for rate in [Rate::Mbps1, Rate::Mbps2, Rate::Mbps11] {
        for rts in [false, true] {
            for n in [1, 2, 5, 10, 20] {
                let (access, threshold) = access(rts);
                let with = |config: WifiConfig| config.with_data_rate(rate).with_rts_threshold(threshold);
                let config = with(WifiConfig::dsss(100.0));
                let (model, p) = model(&config, n).map_err(io::Error::other)?;
                let (simulated, p_simulated) = saturated(config, n, seconds);
                let (ns2, _) = saturated(with(WifiConfig::ns2(100.0)), n, seconds);
                let difference = (simulated / model - 1.0) * 100.0;
                writeln!(
                    out,
                    "| {} | {access} | {n} | {model:.0} | {simulated:.0} | {difference:+.1} % | {ns2:.0} | {p:.3} | {p_simulated:.3} |",
                    name(rate),
                )?;
            }
        }
    }
    Ok(())
}

/// One saturated sender over a row of stations.
fn hops(out: &mut impl Write, seconds: u64) -> io::Result<()> {
    writeln!(out, "\n| MAC | access | 1 hop, kbit/s | 2 | 3 | 4 | 5 | 6 | 8 | 10 |")?;
    writeln!(out, "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")?;
    for (mac, config) in [("standard", WifiConfig::dsss(100.0)), ("ns-2", WifiConfig::ns2(100.0))] {
        for rts in [false, true] {
            let (access, threshold) = access(rts);
            let config = WifiConfig { initial_energy_j: None, ..config.with_rts_threshold(threshold) };
            write!(out, "| {mac} | {access} |")?;
            let mut first = 0.0;
            for hops in [1, 2, 3, 4, 5, 6, 8, 10] {
                let mut dcf = Dcf::new(config, &row(hops, 80.0), 1);
                let frames = dcf.relay(MPDU, after(Duration::from_secs(seconds)));
                let kbits = frames as f64 * PAYLOAD_BITS / seconds as f64 / 1e3;
                first = if hops == 1 { kbits } else { first };
                write!(out, " {kbits:.0} ({:.2}) |", kbits / first)?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

/// Two senders at random times, in range of each other or hidden from each other.
fn hidden_terminals(out: &mut impl Write, seconds: u64) -> io::Result<()> {
    writeln!(
        out,
        "\n| frames/s of each | in range | hidden | hidden, RTS/CTS | on air, in range | hidden | hidden, RTS/CTS |"
    )?;
    writeln!(out, "| --- | --- | --- | --- | --- | --- | --- |")?;
    for rate in [5.0, 10.0, 20.0, 30.0, 40.0, 60.0] {
        let mut results = [(0.0, 0.0); 3];
        for (result, (metres, rts)) in results.iter_mut().zip([(40.0, false), (90.0, false), (90.0, true)]) {
            let mut config = WifiConfig::dsss(100.0).with_rts_threshold(access(rts).1);
            config.propagation.carrier_sense_range = 100.0;
            let mut dcf = Dcf::new(config, &[(0.0, 0.0), (-metres, 0.0), (metres, 0.0)], 1);
            let flow = |from| Flow { from, to: Some(0), mpdu_len: MPDU, rate };
            let mut traffic = Traffic::new(&mut dcf, &[flow(1), flow(2)], 1);
            traffic.run(&mut dcf, after(Duration::from_secs(seconds)), |_| {});
            let sum = |f: fn(&StationMetrics) -> u64| {
                [1, 2].iter().map(|&s| f(&dcf.wifi.metrics(Station(s)))).sum::<u64>() as f64
            };
            let offered = sum(|m| m.offered);
            let received = dcf.wifi.metrics(Station(0)).received as f64;
            *result = (received / offered, sum(|m| m.transmissions) / offered);
        }
        let [near, hidden, reserved] = results;
        writeln!(
            out,
            "| {rate} | {:.3} | {:.3} | {:.3} | {:.2} | {:.2} | {:.2} |",
            near.0, hidden.0, reserved.0, near.1, hidden.1, reserved.1
        )?;
    }
    Ok(())
}
