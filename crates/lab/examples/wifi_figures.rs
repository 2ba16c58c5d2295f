//! `wifi_figures full [FOLDER]` draws saturated 802.11 stations against Bianchi's model, and
//! throughput over several hops, with their numbers, for `docs/reference/wifi.md`. The default
//! folder is `docs/evidence/figures`. Without `full` the figures come from short runs and go to a
//! temporary folder.

use std::process::ExitCode;

use anabranch_core::time::Duration;
use anabranch_lab::plot::{Axis, Chart, Look, Point, Scale, Series};
use anabranch_model::dcf::{self, Backoff, Exchange, Times};
use anabranch_sim::wifi::{Rate, Station, WifiConfig};

#[path = "../../sim/benches/support/dcf.rs"]
mod air;
#[path = "support/figures.rs"]
mod figures;
#[path = "../../sim/benches/support/length.rs"]
mod length;

use air::{Dcf, after, row, star};
use figures::{Effort, point};

/// Frame size in bytes: 1000 payload, 24 header, 4 FCS.
const MPDU: u16 = 1028;
const PAYLOAD_BITS: f64 = 8000.0;

fn main() -> ExitCode {
    let (short, full) = (Effort { seconds: 1, runs: 2 }, Effort { seconds: 30, runs: 5 });
    figures::draw(short, full, |effort| {
        [("wifi-saturation", saturation(effort)), ("wifi-hops", hops(effort))]
    })
}

/// n saturated senders at 11 Mbit/s around one receiver: by the standard, with the preset of ns-2,
/// and by the model.
fn saturation(effort: Effort) -> Chart {
    let stations = [1, 2, 3, 5, 7, 10, 15, 20];
    let mut series = Vec::new();
    for (access, rts_threshold) in [("basic", 2347), ("RTS/CTS", 0)] {
        let config = WifiConfig::dsss(100.0).with_data_rate(Rate::Mbps11).with_rts_threshold(rts_threshold);
        let model = |n: u32| Point { x: f64::from(n), y: model(&config, n), ci95: None };
        series.push(Series {
            name: format!("{access}, model"),
            points: stations.map(model).into(),
            look: Look::Marked,
        });
        let ns2 = WifiConfig { initial_energy_j: None, ..WifiConfig::ns2(100.0) };
        let ns2 = ns2.with_data_rate(Rate::Mbps11).with_rts_threshold(rts_threshold);
        for (name, config) in [("standard", config), ("ns-2", ns2)] {
            let points =
                stations.map(|n| point(f64::from(n), effort, |seed| saturated(config, n, seed, effort)));
            series.push(Series {
                name: format!("{access}, {name}"),
                points: points.into(),
                look: Look::Marked,
            });
        }
    }
    Chart {
        title: "Saturated senders, 1000 octets at 11 Mbit/s".into(),
        x: Axis { ticks: vec![1.0, 5.0, 10.0, 15.0, 20.0], ..Axis::new("Senders", "") },
        y: Axis::new("Throughput", "Mbit/s").scaled(Scale::FromZero),
        series,
    }
}

fn saturated(config: WifiConfig, n: u32, seed: u64, effort: Effort) -> f64 {
    let mut dcf = Dcf::new(config, &star(n as usize, 20.0), seed);
    let senders: Vec<u32> = (1..=n).collect();
    dcf.saturate(&senders, 0, MPDU, after(Duration::from_secs(effort.seconds)));
    dcf.wifi.metrics(Station(0)).received as f64 * PAYLOAD_BITS / 1e6 / effort.seconds as f64
}

fn model(config: &WifiConfig, n: u32) -> f64 {
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
    let slot = seconds(phy.slot);
    dcf::throughput(&Backoff::default(), n, &exchange, slot, PAYLOAD_BITS).expect("times of a PHY are sound")
        / 1e6
}

/// Throughput of one saturated sender over a row of stations, as a share of one hop's.
fn hops(effort: Effort) -> Chart {
    let kinds = [
        ("standard, basic", WifiConfig::dsss(100.0)),
        ("standard, RTS/CTS", WifiConfig::dsss(100.0).with_rts_threshold(0)),
        ("ns-2, RTS/CTS", WifiConfig { initial_energy_j: None, ..WifiConfig::ns2(100.0) }),
    ];
    let frames = |config: WifiConfig, hops: usize, seed: u64| {
        Dcf::new(config, &row(hops, 80.0), seed).relay(MPDU, after(Duration::from_secs(effort.seconds)))
            as f64
    };
    let mut series: Vec<Series> = kinds
        .into_iter()
        .map(|(name, config)| Series {
            name: name.into(),
            look: Look::Marked,
            points: (1..=5)
                .map(|hops| {
                    point(hops as f64, effort, |seed| frames(config, hops, seed) / frames(config, 1, seed))
                })
                .collect(),
        })
        .collect();
    let ideal = |hops: f64| Point { x: hops, y: 1.0 / f64::min(hops, 4.0), ci95: None };
    let points = [1.0, 2.0, 3.0, 4.0, 5.0].map(ideal).into();
    series.push(Series { name: "1/hops, 1/4 at least".into(), points, look: Look::Marked });
    Chart {
        title: "One saturated sender over a row of stations, 2 Mbit/s".into(),
        x: Axis { ticks: vec![1.0, 2.0, 3.0, 4.0, 5.0], ..Axis::new("Hops", "") },
        y: Axis::new("Throughput of one hop", "").scaled(Scale::FromZero),
        series,
    }
}
