//! Linux: the kernel's TCP over an emulated bottleneck.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use anabranch_campaign::bottleneck::Cell;
use anabranch_testkit::netns::{self, Broom, Farewell, Kept, inside, ip, mortal, run as said, within};
use anabranch_testkit::priority::may_be_real_time;
use anabranch_testkit::processors::{Processors, enough};
use serde_json::Value;

use super::table::first_line;
use super::{Measured, Reference, of_flows, start};

const FLOWS: &str = include_str!("flows.py");
const PORT: &str = "5001";
/// Address of the second node.
const TO: &str = "fd00::2";
/// Settings of a namespace: connections must not use metrics of earlier ones, and buffers hold
/// several times the largest bandwidth-delay product and queue of the grid (600 packets), so that
/// they are never the limit.
const SYSCTLS: [(&str, &str); 3] = [
    ("tcp_no_metrics_save", "1"),
    ("tcp_rmem", "4096 8388608 33554432"),
    ("tcp_wmem", "4096 4194304 33554432"),
];

/// The emulator counts as late if more than 1 % of its batches are later than this, in seconds: a
/// tenth of the shortest one-way delay of the grid.
const LATE: f64 = 0.0005;
/// The emulator counts as late if any batch is later than this, in seconds: the shortest round
/// trip. When real-time threads use up a processor, the kernel pauses them for 50 ms in each
/// second, which affects only few batches.
const STALL: f64 = 0.010;

/// How long emulator and connections had to wait for the machine.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Lag {
    /// Lateness of the emulator in seconds: 99th percentile.
    pub(super) p99: f64,
    /// Maximum lateness in seconds.
    pub(super) max: f64,
    /// Number of processors that other programs left. Unlike the emulator, the ends of the
    /// connections wait for a processor.
    pub(super) processors: f64,
}

impl Lag {
    /// Whether the machine was too busy, so that packets came in bursts and the results do not
    /// belong to the cell.
    pub(super) fn is_late(self) -> bool {
        self.p99 > LATE || self.max > STALL || self.processors < enough()
    }
}

/// Linux.
pub(super) struct Kernel;

impl Reference for Kernel {
    const NAME: &'static str = "Linux";
    const AT_ONCE: usize = 8;

    fn version(&self) -> String {
        first_line("uname", &["-r"])
    }

    fn is_deterministic(&self, _: &Cell) -> bool {
        false
    }

    fn run(&self, cell: &Cell, worker: usize, run: u64, seconds: u64) -> Result<Measured, String> {
        emulate(cell, &format!("c{worker}"), run, seconds)
    }
}

/// Runs a cell for `seconds` seconds. `name` distinguishes parallel runs.
fn emulate(cell: &Cell, name: &str, seed: u64, seconds: u64) -> Result<Measured, String> {
    let ends = Ends::new(name);
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = folder.path().join("bottleneck.toml");
    let [from, to] = &ends.names;
    fs::write(&file, scenario(cell, from, to)).map_err(|error| error.to_string())?;
    let flows = Flows { controller: super::controller(cell), flows: cell.flows.into(), seconds };
    let Emulated { sent, report, processors, .. } =
        ends.emulate(&[&file.display().to_string(), "--seed", &seed.to_string()], flows)?;
    measured(&sent, &report, processors).ok_or_else(|| format!("cannot read {sent} and {report}"))
}

/// Flows of the kernel.
#[derive(Clone, Copy)]
pub(super) struct Flows {
    /// The kernel's name of the congestion control.
    pub(super) controller: &'static str,
    pub(super) flows: u64,
    pub(super) seconds: u64,
}

/// Result of an emulation.
pub(super) struct Emulated {
    /// Report of the sender.
    pub(super) sent: Value,
    /// Report of the emulator.
    pub(super) report: Value,
    /// Number of processors that other programs left.
    pub(super) processors: f64,
    /// Seconds from the start of the emulation to that of the first flow.
    pub(super) begun: f64,
}

impl Emulated {
    /// Lateness of the emulator; `None` if it did not report it.
    pub(super) fn lag(&self) -> Option<Lag> {
        let lag = |key: &str| self.report["lag"][key].as_f64();
        Some(Lag { p99: lag("p99_s")?, max: lag("max_s")?, processors: self.processors })
    }
}

/// Namespaces of a sender and a receiver, removed on drop.
pub(super) struct Ends {
    pub(super) names: [String; 2],
    _broom: Broom,
}

impl Ends {
    pub(super) fn new(name: &str) -> Self {
        let names = ["f", "t"].map(|side| netns::name(&format!("{name}{side}")));
        let broom = Broom::new([&names[0], &names[1]]);
        for netns in &names {
            ip(&["netns", "add", netns]);
            within(netns, || {
                for (file, value) in SYSCTLS {
                    fs::write(format!("/proc/sys/net/ipv4/{file}"), value).expect("root may set this");
                }
            });
        }
        Self { names, _broom: broom }
    }

    /// Runs `anabranch-lab emulate` with these arguments, and flows between its first two nodes.
    pub(super) fn emulate(&self, arguments: &[&str], flows: Flows) -> Result<Emulated, String> {
        let [from, to] = &self.names;
        // The link must keep its time whatever else runs on the machine. The flows have normal
        // priority, since their buffers hold seconds.
        let program = assert_cmd::cargo::cargo_bin!("anabranch-lab");
        let mut command = if may_be_real_time() {
            let mut command = mortal("chrt", Farewell::Interrupt);
            command.args(["--rr", "1"]).arg(program);
            command
        } else {
            mortal(program, Farewell::Interrupt)
        };
        command.arg("emulate").args(arguments).arg("--json");
        command.args(["--for", &format!("{} s", flows.seconds + 60)]);
        let mut emulator = spawn(command.stderr(Stdio::piped()))?;
        let mut stderr = BufReader::new(emulator.0.stderr.take().expect("it is a pipe"));
        wait_for(&mut stderr, "running")?;
        let running = uptime();

        let mut sink = spawn(inside(to, &["python3", "-c", FLOWS, "sink", PORT]).stderr(Stdio::null()))?;
        wait_for(&mut BufReader::new(sink.0.stdout.take().expect("it is a pipe")), "ready")?;
        let Flows { controller, flows, seconds } = flows;
        let (flows, seconds) = (flows.to_string(), seconds.to_string());
        let send = ["python3", "-c", FLOWS, "send", TO, PORT, controller, &flows, &seconds];
        let since = Processors::since_now();
        let output = inside(from, &send).output().map_err(|error| error.to_string())?;
        let processors = since.left();
        said("kill", &["-INT", &emulator.0.id().to_string()]);
        let sent: Value = serde_json::from_slice(&output.stdout)
            .map_err(|_| format!("the sender failed: {}", netns::text(&output.stderr).trim()))?;

        let mut report = String::new();
        let mut stdout = emulator.0.stdout.take().expect("it is a pipe");
        stdout.read_to_string(&mut report).map_err(|error| error.to_string())?;
        let report: Value = serde_json::from_str(&report).map_err(|_| format!("no report: {report}"))?;
        let _ = emulator.0.wait();
        let begun = sent["began"].as_f64().map_or(0.0, |began| began - running);
        Ok(Emulated { sent, report, processors, begun })
    }
}

/// Uptime of this machine in seconds, with a resolution of a hundredth; `flows.py` reads it too.
fn uptime() -> f64 {
    let text = fs::read_to_string("/proc/uptime").unwrap_or_default();
    text.split_whitespace().next().and_then(|seconds| seconds.parse().ok()).unwrap_or(0.0)
}

fn measured(sent: &Value, report: &Value, processors: f64) -> Option<Measured> {
    let lag = |key: &str| report["lag"][key].as_f64();
    let elapsed = sent["elapsed"].as_f64()?;
    let link = |key: &str| report["metrics"][format!("link.from>to.{key}")]["mean"].as_f64();
    Some(Measured {
        start: start(sent, elapsed, sent["timeouts"].as_f64()?)?,
        lag: Some(Lag { p99: lag("p99_s")?, max: lag("max_s")?, processors }),
        limited: of_flows(sent, "limited")?.into_iter().fold(0.0, f64::max) / elapsed,
        mss: sent["flows"][0]["mss"].as_u64()?,
        packet: link("queue_peak_bytes")? / link("queue_peak_packets")?.max(1.0),
    })
}

fn scenario(cell: &Cell, from: &str, to: &str) -> String {
    let Cell { rate, delay, loss, .. } = cell;
    // As in the simulated cell, only the forward direction has a short queue and losses.
    format!(
        r#"
name = "bottleneck"
node = [
    {{ name = "from", host = "tun", netns = "{from}" }},
    {{ name = "to", host = "tun", netns = "{to}" }},
]
[[link]]
from = "from"
to = "to"
rate = "{rate} bit/s"
delay = "{} ms"
queue = "{} packets"
loss = {loss:?}
back = {{ queue = "100000 packets", loss = 0.0 }}
"#,
        delay.as_millis(),
        cell.packets(),
    )
}

fn spawn(command: &mut Command) -> Result<Kept, String> {
    command
        .stdout(Stdio::piped())
        .spawn()
        .map(Kept)
        .map_err(|error| format!("cannot start {command:?}: {error}"))
}

/// Reads lines up to one that contains this word.
fn wait_for(from: &mut impl BufRead, word: &str) -> Result<(), String> {
    let mut said = String::new();
    while !said.contains(word) {
        if from.read_line(&mut said).map_err(|error| error.to_string())? == 0 {
            return Err(format!("it did not begin: {said}"));
        }
    }
    Ok(())
}
