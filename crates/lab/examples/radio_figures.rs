//! `radio_figures full [FOLDER]` draws the radio's throughput and hidden terminals, with their
//! numbers, for `docs/reference/radio.md`. The default folder is `docs/evidence/figures`. Without
//! `full` the figures come from short runs and go to a temporary folder.

use std::process::ExitCode;

use anabranch_core::time::Duration;
use anabranch_lab::plot::{Axis, Chart, Look, Scale, Series};
use anabranch_sim::radio::{MacConfig, RadioConfig, Station};

#[path = "../../sim/benches/support/air.rs"]
mod air;
#[path = "support/figures.rs"]
mod figures;
#[path = "../../sim/benches/support/length.rs"]
mod length;

use air::{Air, Flow, after, star};
use figures::{Effort, point};

fn main() -> ExitCode {
    let (short, full) = (Effort { seconds: 2, runs: 2 }, Effort { seconds: 60, runs: 5 });
    figures::draw(short, full, |effort| {
        [("radio-throughput", throughput(effort)), ("radio-hidden", hidden(effort))]
    })
}

/// n saturated senders around one receiver: all in range of each other, or each hidden from most
/// others.
fn throughput(effort: Effort) -> Chart {
    let series = [(127, 20.0, "127 octets"), (50, 20.0, "50 octets"), (127, 99.0, "127 octets, many hidden")];
    let one = |psdu_len: u16, radius: f64, n: usize, seed: u64| {
        let mut air = Air::new(RadioConfig::o_qpsk(100.0), &star(n, radius), seed);
        let senders: Vec<u32> = (1..=n as u32).collect();
        air.saturate(&senders, 0, psdu_len, after(Duration::from_secs(effort.seconds)));
        let octets = air.radio.metrics(Station(0)).received as f64 * f64::from(psdu_len);
        octets * 8.0 / 1e3 / effort.seconds as f64
    };
    let series = series.map(|(psdu_len, radius, name)| Series {
        name: name.into(),
        points: (1..=20).map(|n| point(n as f64, effort, |seed| one(psdu_len, radius, n, seed))).collect(),
        look: Look::Marked,
    });
    Chart {
        title: "Saturated senders, O-QPSK, acknowledged".into(),
        x: Axis { ticks: vec![1.0, 5.0, 10.0, 15.0, 20.0], ..Axis::new("Senders", "") },
        y: Axis::new("Throughput", "kbit/s").scaled(Scale::FromZero),
        series: series.into(),
    }
}

/// Share of delivered frames with two senders on both sides of a receiver.
fn hidden(effort: Effort) -> Chart {
    let kinds = [
        ("in range", 40.0, 3, 0),
        ("hidden, no retries", 90.0, 0, 0),
        ("hidden, 3 retries", 90.0, 3, 0),
        ("hidden, 3 retries up to 40 ms later", 90.0, 3, 40),
    ];
    let one = |metres: f64, max_frame_retries: u8, delay: u64, rate: f64, seed: u64| {
        let config = RadioConfig::o_qpsk(100.0);
        let retry_delay = Duration::from_millis(delay);
        let mac = MacConfig { max_frame_retries, retry_delay, ..config.mac };
        let places = [(0.0, 0.0), (-metres, 0.0), (metres, 0.0)];
        let mut air = Air::new(RadioConfig { mac, ..config }, &places, seed);
        let flow = |from| Flow { from, to: Some(0), psdu_len: 127, rate };
        air.poisson(&[flow(1), flow(2)], seed, after(Duration::from_secs(effort.seconds)), |_| {});
        let offered: u64 = [1, 2].iter().map(|&s| air.radio.metrics(Station(s)).offered).sum();
        air.radio.metrics(Station(0)).received as f64 / offered as f64
    };
    let series = kinds.map(|(name, metres, retries, delay)| Series {
        name: name.into(),
        points: (1..=10)
            .map(|i| f64::from(i) * 4.0)
            .map(|rate| point(rate, effort, |seed| one(metres, retries, delay, rate, seed)))
            .collect(),
        look: Look::Marked,
    });
    Chart {
        title: "Two senders of 127 octets, one receiver between them".into(),
        x: Axis::new("Frames of each sender", "1/s"),
        y: Axis::new("Share of frames that arrives", "").scaled(Scale::FromZero),
        series: series.into(),
    }
}
