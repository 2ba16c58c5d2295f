//! `sense` and `sink` behind an emulated mesh of IEEE 802.11 and AODV, beside the kernel's TCP and
//! UDP, against simulated runs of the same scenario.
//!
//! This is the short form; the long one is `cargo xtask compare sensors`.

use std::env;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anabranch_testkit::debian::{find_or_install, skipped};
use anabranch_testkit::given;
use anabranch_testkit::netns::{self, Broom, Farewell, mortal, text};
use serde_json::Value;

use crate::emulation::program;

const SENSORS: usize = 7;
const OVER: [&str; 3] = ["rdca", "tcp", "udp"];
/// Bytes of a record.
const RECORD: f64 = 273.0;

/// Lengths of the phases of a run in seconds.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// From the start of the programs to the first record.
    before: u64,
    /// The records.
    records: u64,
    /// After the last record.
    after: u64,
}

/// One run.
#[derive(Clone, Copy, Debug)]
struct Seen {
    delivery_ratio: f64,
    /// Records per second.
    records: f64,
    /// From the creation of a record to its delivery.
    delay_p50_s: f64,
    delay_mean_s: f64,
    /// Of packets with data, in the network.
    packet_p50_s: f64,
    packet_mean_s: f64,
    /// Transport messages of the sink for each delivered packet.
    answers: f64,
    /// Hops of routing messages for each delivered packet.
    routing: f64,
}

/// A figure of the table.
type Figure = (&'static str, fn(&Seen) -> f64);

const FIGURES: [Figure; 8] = [
    ("delivery ratio", |seen| seen.delivery_ratio),
    ("records/s", |seen| seen.records),
    ("delay of records, median, ms", |seen| seen.delay_p50_s * 1e3),
    ("mean", |seen| seen.delay_mean_s * 1e3),
    ("delay of packets, median, ms", |seen| seen.packet_p50_s * 1e3),
    ("mean", |seen| seen.packet_mean_s * 1e3),
    ("answers per packet", |seen| seen.answers),
    ("routing hops per packet", |seen| seen.routing),
];

impl Seen {
    /// What both worlds measure in the network.
    fn of_network(metrics: &Value) -> Self {
        let mean = |name: &str| metrics[name]["mean"].as_f64().unwrap_or(f64::NAN);
        let packets = mean("probe.flows.received_packets");
        Self {
            delivery_ratio: mean("traffic.readings.delivery_ratio"),
            records: 0.0,
            delay_p50_s: mean("traffic.readings.delay_p50_s"),
            delay_mean_s: mean("traffic.readings.delay_mean_s"),
            packet_p50_s: mean("probe.flows.delay_p50_s"),
            packet_mean_s: mean("probe.flows.delay_mean_s"),
            // The emulator takes datagrams of the kernel for data.
            answers: (mean("probe.sink.control_sent") + mean("probe.sink.data_sent")) / packets,
            routing: mean("probe.all.routing_hops") / packets,
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("it exists")
}

fn ended(mut command: Command) -> Output {
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    output
}

impl Times {
    /// Settings of both worlds: the windows of the probes. Programs start within two seconds.
    fn settings(self, seed: u64) -> Vec<String> {
        let Self { before, records, .. } = self;
        let (from, until) = (before + (records / 10).clamp(1, 4), before + records);
        let windows = ["all", "sink", "flows"]
            .map(|probe| [format!("probe.{probe}.from={from} s"), format!("probe.{probe}.until={until} s")]);
        [vec![format!("seed={seed}")], windows.concat()].concat()
    }

    fn simulate(self, over: &str, seed: u64) -> Seen {
        let Self { before, records, after } = self;
        let mut command = Command::new(program());
        command.arg("run").arg(root().join("scenarios/sensors.toml")).args(["--json", "--quiet"]);
        let stop = before + records;
        let of_simulation = [
            format!("over={over}"),
            format!("traffic.readings.start={before} s"),
            format!("traffic.readings.stop={stop} s"),
            format!("stop={} s", stop + after),
        ];
        for setting in self.settings(seed).iter().chain(&of_simulation) {
            command.args(["--set", setting]);
        }
        let report: Value = serde_json::from_slice(&ended(command).stdout).expect("one object");
        let delivered = report["metrics"]["traffic.readings.packets_delivered"]["mean"].as_f64();
        let delivered = delivered.expect("records are delivered");
        Seen { records: delivered / records as f64, ..Seen::of_network(&report["metrics"]) }
    }

    /// The same with programs. Also returns the lag of the emulator in seconds.
    fn emulate(self, over: &str, seed: u64) -> (Seen, f64) {
        let Self { before, records, after } = self;
        let folder = tempfile::tempdir().expect("a folder");
        symlink(root().join("scenarios"), folder.path().join("scenarios")).expect("a link");
        let names = netns::name(over);
        let ends: Vec<String> = (0..=SENSORS)
            .map(|i| format!("{names}{}", if i == 0 { "k".into() } else { i.to_string() }))
            .collect();
        let _broom = Broom::new(&ends);
        let mut command = mortal(program(), Farewell::Interrupt);
        command.current_dir(folder.path()).args(["emulate", "scenarios/sensors.toml", "--json"]);
        let mut settings = self.settings(seed);
        settings.push("ends=kernel".into());
        settings.extend((over != "rdca").then(|| format!("tool={over}")));
        settings.extend([format!("node.sink.netns={names}k"), format!("nodes.s*.netns={names}{{i}}")]);
        for setting in &settings {
            command.args(["--set", setting]);
        }
        let times = [("BEFORE", before), ("RECORDS", records), ("AFTER", after)];
        command.envs(times.map(|(name, seconds)| (name, seconds.to_string())));
        let output = ended(command);
        let report: Value = serde_json::from_slice(&output.stdout).expect("one object");
        let figures = fs::read(folder.path().join("out/sensors.json")).expect("the commands leave figures");
        let figures: Value = serde_json::from_slice(&figures).expect("one object");
        let figure = |name: &str| figures[name].as_f64().unwrap_or(f64::NAN);
        // Datagrams may overtake each other when a route changes.
        assert!(figures["in_order"] == true || over == "udp", "{over}: {figures}");
        let seen = Seen {
            delivery_ratio: figure("delivery_ratio"),
            records: figure("throughput_bit_per_s") / (8.0 * RECORD),
            delay_p50_s: figure("delay_p50_s"),
            delay_mean_s: figure("delay_mean_s"),
            ..Seen::of_network(&report["metrics"])
        };
        (seen, report["lag"]["p99_s"].as_f64().expect("a lag"))
    }
}

fn mean(runs: &[Seen], figure: fn(&Seen) -> f64) -> f64 {
    runs.iter().map(figure).sum::<f64>() / runs.len() as f64
}

/// A row for each transport and world, and one for the ratio of the worlds.
fn table(rows: &[(&str, Vec<Seen>, Vec<Seen>)]) -> String {
    let names = FIGURES.map(|(name, _)| name).join(" | ");
    let mut table = format!("| | {names} |\n|{}\n", " --- |".repeat(FIGURES.len() + 1));
    for (over, simulated, emulated) in rows {
        for (world, runs) in [("simulated", simulated), ("emulated", emulated)] {
            let _ = write!(table, "| {over}, {world} |");
            FIGURES.iter().for_each(|(_, figure)| table += &format!(" {:.3} |", mean(runs, *figure)));
            table.push('\n');
        }
        let _ = write!(table, "| emulated / simulated |");
        for (_, figure) in FIGURES {
            let _ = write!(table, " {:.2} |", mean(emulated, figure) / mean(simulated, figure));
        }
        table.push('\n');
    }
    table
}

#[test]
fn sensors_deliver_over_an_emulated_mesh_what_they_deliver_in_simulation() {
    if netns::skipped() || find_or_install("python3", "python3").is_none() {
        return;
    }
    if !Path::new(program()).with_file_name("anabranch-sink").exists() {
        return skipped("sensors over an emulated mesh: build the package anabranch-deploy, too");
    }
    let long = env::var_os("ANABRANCH_COMPARE").is_some();
    let times = match given("ANABRANCH_COMPARE_SECONDS").or(long.then_some(60)) {
        Some(records) => Times { before: 5, records, after: 5 },
        None => Times { before: 2, records: 2, after: 1 },
    };
    let runs = given("ANABRANCH_COMPARE_RUNS").unwrap_or(if long { 3 } else { 1 });
    let mut lag = 0.0_f64;
    let rows: Vec<_> = OVER[..if long { OVER.len() } else { 1 }]
        .iter()
        .map(|over| {
            let simulated = (1..=runs).map(|seed| times.simulate(over, seed)).collect();
            let emulated = (1..=runs).map(|seed| {
                let (seen, late) = times.emulate(over, seed);
                lag = lag.max(late);
                seen
            });
            (*over, simulated, emulated.collect())
        })
        .collect();
    let page = format!(
        "{}\n{runs} runs of {} s each; largest 99th percentile of the emulator's lag: {:.1} ms.\n",
        table(&rows),
        times.records,
        lag * 1e3
    );
    println!("{page}");
    if let Ok(file) = env::var("ANABRANCH_COMPARE_OUT") {
        fs::write(&file, &page).unwrap_or_else(|error| panic!("cannot write {file}: {error}"));
    }
    let (_, simulated, emulated) = &rows[0];
    for seen in emulated {
        assert!(seen.delivery_ratio >= 0.9 * mean(simulated, |seen| seen.delivery_ratio), "{page}");
    }
}
