//! Compares one push of SET in three worlds: simulated, by the deployed programs over the same
//! network in real time, and, for cables, by the deployed programs over `tc tbf` and `iptables`.
//!
//! All of them use CUBIC. The deployed programs run without encryption, as the simulated ones do.

mod cables;

use std::env;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use anabranch_stats::quantile;
use anabranch_testkit::contents;
use anabranch_testkit::debian::{find_or_install, skipped};
use anabranch_testkit::netns::{self, Broom, Farewell, mortal, text};
use anabranch_testkit::prng::Prng;
use serde_json::Value;

use super::emulated::{LATE, Repeated, frames, program, with_set};
use super::table::{first_line, origin};
use super::{number, publish, side_by_side};
use cables::{Cables, Spaces};

/// Resamples of an interval of a ratio.
const RESAMPLES: usize = 2000;

/// A border router or gateway, a server and a node, without the rates of the cables.
const CABLES: &str = r#"
name = "cables"
stop = "10 min"
[network]
ip = 4
[tcp.default]
ecn = "off"
[[node]]
name = "server"
[[nodes]]
name = "br{i}"
count = 3
kind = "gateway"
[[node]]
name = "target"
kind = "node"
[[link]]
name = "wired{i}"
from = "server"
to = "br{i}"
rate = "1 Gbit/s"
delay = "100 us"
[[transfer]]
name = "image"
kind = "set"
from = "server"
to = "target"
bytes = "1 kB"
[alias.ends]
kernel = { "node.server.host" = "tun", "node.server.netns" = "server", "node.target.host" = "tun", "node.target.netns" = "target", transfer = [], tcp = {} }
[alias.routers]
kernel = { "nodes.br*.host" = "tun", "nodes.br*.netns" = "br{i}" }
"#;

const FAST: Cables = Cables { name: "50/20/5 Mbit/s", kbit_per_s: [50_000, 20_000, 5_000], queue: 150_000 };
const SLOW: Cables = Cables { name: "256/128/56 kbit/s", kbit_per_s: [256, 128, 56], queue: 30_000 };

/// A network, a file and a number of border routers.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Cell {
    /// `None`: the mesh of scenarios/rivals.
    cables: Option<Cables>,
    bytes: u32,
    gateways: u32,
    /// Additional loss: of frames in the mesh, of packets on cables.
    per_cent: f64,
}

/// One push.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Seen {
    latency_s: f64,
    again: f64,
    /// Frames on the air.
    frames: f64,
    /// Largest lag of the emulator but for 1 % of its batches, in seconds.
    lag_s: f64,
}

/// The runs of a cell in each world. Those in namespaces are empty for the mesh.
struct Row {
    cell: Cell,
    worlds: [Vec<Seen>; 3],
}

impl Cell {
    /// Path of the scenario, which is written into `folder` if it is not one of the project's.
    fn scenario(&self, folder: &Path) -> String {
        let Some(cables) = self.cables else {
            return format!("{}/../../scenarios/rivals/mesh.toml", env!("CARGO_MANIFEST_DIR"));
        };
        let mut text = CABLES.to_owned();
        for (i, rate) in (1..).zip(cables.kbit_per_s) {
            let _ = write!(
                text,
                "[[link]]\nname = \"last{i}\"\nfrom = \"br{i}\"\nto = \"target\"\nrate = \"{rate} kbit/s\"\ndelay = \
                 \"100 us\"\nqueue = \"{} B\"\nloss = \"{} %\"\n",
                cables.queue, self.per_cent
            );
        }
        let path = folder.join("cables.toml");
        fs::write(&path, text).expect("a file");
        path.display().to_string()
    }

    /// Settings of the scenario in both worlds that use it.
    fn settings(&self) -> Vec<String> {
        let loss = format!("radio.loss={} %", self.per_cent);
        if self.cables.is_none() { vec![loss] } else { Vec::new() }
    }

    fn simulate(&self, runs: u64) -> Vec<Seen> {
        let folder = tempfile::tempdir().expect("a folder");
        let gateways: Vec<String> = (1..=self.gateways).map(|i| format!("\"br{i}\"")).collect();
        let mut settings = self.settings();
        settings.push(format!("transfer.image.bytes={} B", self.bytes));
        settings.push(format!("transfer.image.gateways=[{}]", gateways.join(", ")));
        let mut command = Command::new(program());
        command.args([
            "run",
            &self.scenario(folder.path()),
            "--json",
            "--quiet",
            "--runs",
            &runs.to_string(),
        ]);
        let output = command.args(with_set(&settings)).output().expect("the program starts");
        let said = text(&output.stdout);
        assert!(output.status.success(), "{self:?}: {}", text(&output.stderr));
        let of_run = |line: &str| {
            let report: Value = serde_json::from_str(line).expect("a line of JSON");
            let metric = |name: &str| report["metrics"][name]["mean"].as_f64().expect("a metric");
            Seen {
                latency_s: metric("transfer.image.latency_s"),
                again: metric("transfer.image.retransmissions"),
                frames: frames(&report["metrics"]),
                lag_s: 0.0,
            }
        };
        said.lines().map(of_run).collect()
    }

    /// Pushes by the deployed programs over the emulated network.
    fn emulate(&self, worker: usize, run: u64) -> Result<Seen, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name).display().to_string();
        fs::write(at("image"), contents(self.bytes as usize)).expect("a file");
        let names = netns::name(&format!("w{worker}"));
        let ends: Vec<String> = ["s", "t", "b1", "b2", "b3"].map(|end| format!("{names}{end}")).to_vec();
        let _broom = Broom::new(&ends);
        let mut settings = self.settings();
        settings.extend([
            "ends=kernel".to_owned(),
            "routers=kernel".to_owned(),
            "emulation.congestion=cubic".to_owned(),
            format!("node.server.netns={names}s"),
            format!("node.target.netns={names}t"),
            format!("nodes.br*.netns={names}b{{i}}"),
        ]);
        let named: Vec<String> = (1..=self.gateways).map(|i| format!("{{br{i}}}")).collect();
        let bracket = |node: &str| match self.cables {
            None => format!("[{{{node}}}]"),
            Some(_) => format!("{{{node}}}"),
        };
        let mut commands = vec![format!(
            "target: {} node --insecure --listen {}:47200 --gateways {} --out {} > /dev/null 2>&1 &",
            program(),
            bracket("target"),
            named.join(","),
            at("got")
        )];
        commands.extend((1..=self.gateways).map(|i| {
            let listen = bracket(&format!("br{i}"));
            let gateway = format!("{} gateway --insecure --listen {listen}:47201", program());
            format!("br{i}: {gateway} --allow {{target}} > /dev/null 2>&1 &")
        }));
        commands.push(format!(
            "server: sleep 0.5; {} push {} --to {{target}} --insecure --no-resume --json > {}",
            program(),
            at("image"),
            at("push.json")
        ));
        let all =
            ["server".to_owned(), "target".to_owned()].into_iter().chain((1..=3).map(|i| format!("br{i}")));
        commands.extend(all.map(|node| format!("{node}: {COUNT} >> {}", at("again"))));
        let mut command = mortal(program(), Farewell::Interrupt);
        command.args(["emulate", &self.scenario(folder.path()), "--json", "--seed", &run.to_string()]);
        command.args(with_set(&settings)).args(commands.iter().flat_map(|command| ["--run", command]));
        let output = command.output().expect("the program starts");
        if !output.status.success() {
            return Err(text(&output.stderr));
        }
        let report: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
        let lag_s = report["lag"]["p99_s"].as_f64().ok_or("no lag")?;
        let seen = self.result(folder.path(), frames(&report["metrics"]), lag_s)?;
        Ok(seen)
    }

    /// Pushes by the deployed programs over cables that the kernel shapes.
    fn in_namespaces(&self, cables: Cables, worker: usize) -> Result<Seen, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name).display().to_string();
        fs::write(at("image"), contents(self.bytes as usize)).expect("a file");
        let spaces = Spaces::open(worker, &cables, self.per_cent);
        let gateways: Vec<String> = (1..=self.gateways).map(|i| format!("10.1.{i}.2")).collect();
        let (gateways, got) = (gateways.join(","), at("got"));
        let listen =
            ["node", "--insecure", "--listen", "10.9.0.1:47200", "--gateways", &gateways, "--out", &got];
        let mut daemons = vec![spaces.start("t", program(), &listen)];
        daemons.extend((1..=self.gateways).map(|i| {
            let address = format!("10.1.{i}.2:47201");
            let listen = ["gateway", "--insecure", "--listen", &address, "--allow", "10.9.0.1"];
            spaces.start(&format!("b{i}"), program(), &listen)
        }));
        let push = format!(
            "sleep 0.5; {} push {} --to 10.9.0.1 --insecure --no-resume --json > {}",
            program(),
            at("image"),
            at("push.json")
        );
        let pushed = spaces.sh("s", &push);
        spaces.all().for_each(|end| drop(spaces.sh(&end, &format!("{COUNT} >> {}", at("again")))));
        drop(daemons);
        pushed?;
        self.result(folder.path(), 0.0, 0.0)
    }

    /// Result of a push whose files are in this folder.
    fn result(&self, folder: &Path, frames: f64, lag_s: f64) -> Result<Seen, String> {
        let read = |name: &str| fs::read(folder.join(name)).map_err(|error| format!("{name}: {error}"));
        if read("got")? != contents(self.bytes as usize) {
            return Err("the file differs".to_owned());
        }
        let push: Value = serde_json::from_slice(&read("push.json")?).map_err(|error| error.to_string())?;
        let again = String::from_utf8_lossy(&read("again")?)
            .lines()
            .filter_map(|line| line.parse::<f64>().ok())
            .sum();
        Ok(Seen { latency_s: push["latency_s"].as_f64().ok_or("no latency")?, again, frames, lag_s })
    }

    fn name(&self) -> String {
        let network = self.cables.map_or("mesh", |cables| cables.name);
        format!("{network}, {} kB, {}, {} %", self.bytes / 1000, self.gateways, self.per_cent)
    }
}

/// Smallest number of simulated runs: they take milliseconds.
const SIMULATED: usize = 20;

/// Prints the number of retransmitted segments of a namespace.
const COUNT: &str = "awk '/^Tcp:/ && ++n == 2 { print $13 }' /proc/net/snmp";

fn median(runs: &[Seen], of: fn(&Seen) -> f64) -> f64 {
    quantile(&runs.iter().map(of).collect::<Vec<_>>(), 0.5).unwrap_or(f64::NAN)
}

/// The ratio of two medians, and its 95 % interval by the bootstrap.
fn ratio(left: &[Seen], right: &[Seen], of: fn(&Seen) -> f64) -> (f64, f64, f64) {
    let mut luck = Prng::new(1);
    let mut again = |runs: &[Seen]| -> Vec<Seen> {
        (0..runs.len()).map(|_| runs[(luck.below(runs.len() as u64)) as usize]).collect()
    };
    let all: Vec<f64> =
        (0..RESAMPLES).map(|_| median(&again(left), of) / median(&again(right), of)).collect();
    let end = |share| quantile(&all, share).unwrap_or(f64::NAN);
    (median(left, of) / median(right, of), end(0.025), end(0.975))
}

impl Row {
    fn line(&self) -> String {
        let [simulated, emulated, spaces] = &self.worlds;
        let latency = |seen: &Seen| seen.latency_s;
        let mut line = format!("| {} |", self.cell.name());
        for runs in &self.worlds {
            if runs.is_empty() {
                line += " | |";
                continue;
            }
            let _ = write!(line, " {:.3} | {:.0} |", median(runs, latency), median(runs, |seen| seen.again));
        }
        for other in [emulated, spaces] {
            if other.is_empty() {
                line += " |";
                continue;
            }
            let (middle, low, high) = ratio(other, simulated, latency);
            let _ = write!(line, " {middle:.2} ({low:.2} to {high:.2}) |");
        }
        if self.cell.cables.is_some() {
            return line + " | |";
        }
        let (middle, low, high) = ratio(emulated, simulated, |seen| seen.frames);
        let frames = median(emulated, |seen| seen.frames);
        format!("{line} {frames:.0} | {middle:.2} ({low:.2} to {high:.2}) |")
    }

    /// Ratio of the median latency of the other worlds to that of the simulation.
    fn ratios(&self) -> Vec<f64> {
        let [simulated, others @ ..] = &self.worlds;
        let others = others.iter().filter(|runs| !runs.is_empty());
        others.map(|runs| ratio(runs, simulated, |seen| seen.latency_s).0).collect()
    }
}

fn page(rows: &[Row], runs: u64, repeated: u32) -> String {
    let late = rows.iter().flat_map(|row| &row.worlds[1]).filter(|seen| seen.lag_s > LATE).count();
    let most = rows.iter().flat_map(|row| &row.worlds[1]).map(|seen| seen.lag_s).fold(0.0, f64::max);
    let mut text = format!(
        "{} Medians of {runs} run{}; intervals of 95 % by the bootstrap. Largest 99th percentile of the emulator's lag: \
         {:.1} ms; {repeated} late runs were repeated, and {late} of those that count were late.\n\n",
        origin("Linux", &first_line("uname", &["-r"])),
        if runs == 1 { "" } else { "s" },
        most * 1e3
    );
    text += "| network, file, border routers, loss | simulated: s | sent again | emulated: s | sent again | tbf: s | sent \
             again | emulated / simulated | tbf / simulated | frames | emulated / simulated |\n";
    let _ = writeln!(text, "|{}", " --- |".repeat(11));
    rows.iter().for_each(|row| text += &format!("{}\n", row.line()));
    let ratios: Vec<f64> = rows.iter().flat_map(Row::ratios).collect();
    let within = |share: f64| ratios.iter().filter(|ratio| (*ratio - 1.0).abs() <= share).count();
    let _ = writeln!(
        text,
        "\nOf {} ratios of latencies, {} are within 10 %, {} within 20 %; their median is {:.3}.",
        ratios.len(),
        within(0.1),
        within(0.2),
        quantile(&ratios, 0.5).unwrap_or(f64::NAN)
    );
    text
}

fn cells(size: &str) -> Vec<Cell> {
    let mesh = |bytes, gateways, per_cent| Cell { cables: None, bytes, gateways, per_cent };
    let cables = |cables, bytes, per_cent| Cell { cables: Some(cables), bytes, gateways: 3, per_cent };
    match size {
        "whole" | "quick" => {
            let sizes: &[u32] = if size == "quick" { &[10_000] } else { &[10_000, 100_000] };
            let mut cells = Vec::new();
            for bytes in sizes {
                for gateways in 1..=3 {
                    cells.extend([0.0, 2.0].map(|loss| mesh(*bytes, gateways, loss)));
                }
            }
            for loss in [0.0, 1.0] {
                cells.extend([2_000_000, 20_000_000].map(|bytes| cables(FAST, bytes, loss)));
                cells.push(cables(SLOW, 100_000, loss));
            }
            if size == "whole" {
                cells.push(mesh(380_000, 3, 0.0));
                cells.push(mesh(2_000_000, 3, 0.0));
            }
            cells
        }
        // Over cables two seconds, in which a busy machine's delays count little.
        _ => vec![mesh(3_000, 2, 0.0), cables(SLOW, 100_000, 0.0)],
    }
}

#[test]
fn a_push_takes_as_long_in_every_world() {
    if netns::skipped() || find_or_install("iptables", "iptables").is_none() {
        return;
    }
    let size = env::var("ANABRANCH_COMPARE").unwrap_or_default();
    let runs = match &*size {
        "whole" => 20,
        "quick" => 5,
        _ => 1,
    };
    let runs = number("RUNS").unwrap_or(runs);
    let at_once = number("AT_ONCE").unwrap_or(4) as usize;
    let cells = cells(&size);
    let repeated = Repeated::default();
    // Only a busy machine is a reason to repeat a run. What fails has failed.
    let attempt = |cell: &Cell, what: &dyn Fn() -> Result<Seen, String>| {
        let once = || what().unwrap_or_else(|why| panic!("{}: {why}", cell.name()));
        repeated.on_time(once, |seen| seen.lag_s)
    };
    let measured = side_by_side(cells.len() * runs as usize, at_once, |job, worker| {
        let (cell, run) = (&cells[job / runs as usize], (job % runs as usize) as u64 + 1);
        let emulated = attempt(cell, &|| cell.emulate(worker, run));
        let spaces = cell.cables.map(|cables| attempt(cell, &|| cell.in_namespaces(cables, worker)));
        (emulated, spaces)
    });
    let rows = cells.iter().zip(measured.chunks(runs as usize)).map(|(cell, runs)| Row {
        cell: *cell,
        worlds: [
            cell.simulate(runs.len().max(SIMULATED) as u64),
            runs.iter().map(|(emulated, _)| *emulated).collect(),
            runs.iter().filter_map(|(_, spaces)| *spaces).collect(),
        ],
    });
    let rows: Vec<Row> = rows.collect();
    let page = page(&rows, runs, repeated.count());
    publish(&page);
    if size.is_empty() {
        // One run each, against the median of many simulated ones: a mesh is within a factor of
        // two, as simulated runs are among themselves, a cable without loss closer.
        for (row, limit) in rows.iter().zip([2.0, 1.4]) {
            let is_far = |ratio: &f64| !(1.0 / limit..limit).contains(ratio);
            let far: Vec<bool> = row.ratios().iter().map(is_far).collect();
            // The emulator's lag excuses nothing where there is no emulator.
            assert!(!far[1..].contains(&true), "{page}");
            if far[0] && row.worlds[1].iter().any(|seen| seen.lag_s > LATE) {
                skipped("a push in three worlds: the machine was too busy");
            } else {
                assert!(!far[0], "{page}");
            }
        }
    }
}
