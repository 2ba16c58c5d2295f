//! `anabranch emulate`: run a scenario's network in real time behind TUN devices.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anabranch_core::time::{Duration, Instant};
use anabranch_deploy::error::Error;
use anabranch_deploy::output::{self, figure};
use anabranch_deploy::say;
use anabranch_emu::device::End;
use anabranch_emu::driver::Late;
use anabranch_emu::interrupt::Interrupt;
use anabranch_emu::{Ended, Ends, Outcome, Output, Report};
use anabranch_scenario::identity::{BUILD, VERSION};
use anabranch_scenario::record::Metrics;
use anabranch_scenario::units::Span;
use anabranch_scenario::{Plan, Policies, Scenario};
use anabranch_sim::capture::Capture;
use serde_json::json;

use crate::events;
use crate::run;

/// Options of `emulate`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Scenario file, in which `host = "tun"` marks the nodes that this machine's kernel plays
    scenario: PathBuf,
    /// Override a value of the scenario, as in `link.radio1.rate=56 kbit/s`; may be repeated.
    ///
    /// `link.*.loss=0.02` changes every entry of a list.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Seed of the emulation [default: the scenario's seed]
    #[arg(long)]
    seed: Option<u64>,
    /// Stop after this time, as in "90 s" [default: the scenario's `stop`]
    #[arg(long = "for", value_name = "DURATION", value_parser = Span::positive)]
    duration: Option<Duration>,
    /// Command at a TUN end, in place of the scenario's `[emulation] run`; may be repeated
    #[arg(long, value_name = "NODE: COMMAND")]
    run: Vec<String>,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
    /// Write every packet to this pcapng file, for Wireshark
    #[arg(long, value_name = "PATH")]
    pcap: Option<PathBuf>,
}

pub(crate) fn main(arguments: &Arguments, policies: &Policies) -> Result<(), Error> {
    let path = &arguments.scenario;
    let mut set = arguments.set.clone();
    if !arguments.run.is_empty() {
        // JSON's strings are TOML's.
        set.push(format!("emulation.run={}", json!(arguments.run)));
    }
    let points = run::read(path, &set, policies)?;
    let [(point, files)] = &points[..] else {
        let message = format!("{}: a sweep of {} points cannot be emulated", path.display(), points.len());
        return Err(Error::input(message).with_hint("set its axes with --set, or remove `[sweep]`"));
    };
    run::refuse_overwriting(path, &points, &[("--pcap", &arguments.pcap)])?;
    let scenario = &point.scenario;
    let pcap = arguments.pcap.as_ref().map(|path| {
        let file = File::create(path).map_err(|error| Error::unwritable(path, &error))?;
        Ok::<_, Error>((BufWriter::new(file), path.as_path()))
    });
    let pcap = pcap.transpose()?;

    // Catch signals before the devices are created, so that an interrupt cannot leave any behind.
    let interrupt = Interrupt::catch().map_err(|error| failed(path, anabranch_emu::Error::Wait(error)))?;
    let ends = Ends::open(scenario).map_err(|error| failed(path, error))?;
    for end in ends.iter() {
        let place = end.netns.as_ref().map_or(String::new(), |name| format!(" in namespace `{name}`"));
        say!("`{}` is {} on device `{}`{place}", end.name, end.address, end.device);
    }
    for line in &scenario.emulation.run {
        say!("will run: {line}");
    }
    say!("running; Ctrl-C ends it");

    let seed = arguments.seed.unwrap_or(scenario.seed);
    let Plan { builder, planned } = scenario.plan(seed, 0, files).map_err(run::undrawable)?;
    let mut sim = builder.build();
    let pcap = pcap.map(|(out, path)| {
        sim.observe(Capture::new(out, scenario.network.ip));
        path
    });
    let stop = arguments.duration.map_or(scenario.stop, |span| Instant::ZERO + span);
    let warn = |Late { at, lag, limit }: Late| {
        let [lag, limit] = [lag, limit].map(|d| figure(d.as_secs_f64() * 1e3));
        let at = figure(at.as_secs_f64());
        say!("warning: at {at} s events came {lag} ms late; the limit is {limit} ms");
    };
    let output = if arguments.json { Output::Stderr } else { Output::Stdout };
    let report = ends.run(&mut sim, scenario, (&interrupt, stop, output), warn);
    if let Some(path) = pcap {
        let capture = sim.take_observer::<Capture<BufWriter<File>>>().expect("it was attached above");
        let mut out = capture.finish().map_err(|error| events::unfinished(path, &error))?;
        out.flush().map_err(|error| events::unfinished(path, &error))?;
    }
    let report = report.map_err(|error| failed(path, error))?;
    let rows: Vec<Row> = ends.iter().map(Row::of).collect();
    // A reader of the output may be slow or stand still. Nothing of the emulation waits for it.
    drop((ends, interrupt));
    let metrics = scenario.metrics_until(&planned, &sim, sim.now());
    let printed = print(arguments, scenario, seed, &rows, &report, &metrics);
    // A reader that has gone does not turn a failure into a success.
    outcome(&report, stop).and(printed)
}

/// A TUN device in the report.
struct Row {
    node: String,
    address: IpAddr,
    device: String,
    netns: Option<String>,
}

impl Row {
    fn of(end: &End) -> Self {
        let End { name, address, device, netns, .. } = end;
        Self { node: name.clone(), address: *address, device: device.clone(), netns: netns.clone() }
    }
}

/// The result of the emulation.
fn outcome(report: &Report, stop: Instant) -> Result<(), Error> {
    match report.ended {
        Ended::Commands => of_commands(&report.commands),
        Ended::Stop if !report.commands.is_empty() => {
            Err(Error::job(format!("the commands had not ended after {} s", figure(stop.as_secs_f64())))
                .with_hint("raise `stop`, or give more time with --for"))
        }
        Ended::Stop => Ok(()),
        Ended::Interrupted => Err(Error::Interrupted),
        Ended::Late => {
            let [max, limit] = [report.lag.max_s, report.lag.limit_s].map(|s| figure(s * 1e3));
            let message = format!("events came {max} ms late; the limit is {limit} ms");
            let hint = "use a less busy machine, raise `lag_limit`, or set `on_lag = \"warn\"`";
            Err(Error::job(message).with_hint(hint))
        }
    }
}

/// The result of the commands: the first that has failed, of those that were waited for.
fn of_commands(commands: &[Outcome]) -> Result<(), Error> {
    let failed = |background| commands.iter().find(|one| one.background == background && one.has_failed());
    let Some(first) = failed(false).or_else(|| failed(true)) else { return Ok(()) };
    let name = |one: &Outcome| format!("`{}: {}` ended with exit code {}", one.node, one.command, one.code);
    // Often the failure of a server is the cause of its client's.
    for other in commands.iter().filter(|one| one.has_failed() && *one != first) {
        say!("note: {}", name(other));
    }
    let message = name(first);
    Err(Error::Command { message, code: u8::try_from(first.code).unwrap_or(1) })
}

fn failed(path: &Path, error: anabranch_emu::Error) -> Error {
    use anabranch_emu::Error as E;
    let message = error.to_string();
    match error {
        E::NoEnds => Error::input(format!("{}: {message}", path.display()))
            .with_hint("set `host = \"tun\"` on the nodes that the kernel plays, or use `anabranch run`"),
        E::Congestion(_) => Error::input(format!("{}: {message}", path.display()))
            .with_hint("`sysctl net.ipv4.tcp_available_congestion_control` lists the kernel's"),
        E::InUse { .. } => Error::input(message).with_hint("wait for it, or set another `netns`"),
        E::DeviceExists(_) => Error::input(message).with_hint("choose another name with the node's `device`"),
        // File capabilities are not enough: the program `ip` would not inherit them.
        E::Privilege { .. } => Error::missing(message).with_hint(format!("run `{}`", with_sudo())),
        E::NoTun(_) => Error::missing(message).with_hint("run `sudo modprobe tun`"),
        E::NoIp(_) => {
            Error::missing(message).with_hint("install iproute2, as with `sudo apt-get install iproute2`")
        }
        _ => Error::job(message),
    }
}

/// The command line of this process, prefixed with `sudo`.
fn with_sudo() -> String {
    let plain =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "-_./=:,+".contains(c));
    let quoted =
        |word: String| if plain(&word) { word } else { format!("'{}'", word.replace('\'', "'\\''")) };
    let program = std::env::current_exe().map_or("anabranch".to_owned(), |path| path.display().to_string());
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let words: Vec<_> = std::iter::once(program).chain(words).map(quoted).collect();
    format!("sudo {}", words.join(" "))
}

fn print(
    arguments: &Arguments,
    scenario: &Scenario,
    seed: u64,
    rows: &[Row],
    report: &Report,
    metrics: &Metrics,
) -> Result<(), Error> {
    if !arguments.json {
        return output::text(&table(scenario, seed, rows, report));
    }
    let places = rows.iter().zip(&report.traffic).map(|(end, traffic)| {
        json!({
            "node": end.node,
            "address": end.address,
            "device": end.device,
            "netns": end.netns,
            "traffic": traffic,
        })
    });
    output::json(&json!({
        "scenario": scenario.name,
        "params": {},
        "runs": 1,
        "seed": seed,
        "hash": scenario.hash(),
        "version": VERSION,
        "build": BUILD,
        "ended": report.ended,
        "elapsed_s": report.elapsed.as_secs_f64(),
        "ends": places.collect::<Vec<_>>(),
        "lag": report.lag,
        "commands": report.commands,
        "metrics": run::of_run(metrics),
    }))
}

/// Formats the report as text.
fn table(scenario: &Scenario, seed: u64, rows: &[Row], report: &Report) -> String {
    let elapsed = figure(report.elapsed.as_secs_f64());
    let mut text = format!("{}, seed {seed}, {elapsed} s\n", scenario.name);
    text += &format!(
        "  {:16} {:>12} {:>14} {:>12} {:>14} {:>10} {:>10}\n",
        "end", "packets in", "bytes in", "packets out", "bytes out", "foreign", "lost"
    );
    for (end, t) in rows.iter().zip(&report.traffic) {
        text += &format!(
            "  {:16} {:>12} {:>14} {:>12} {:>14} {:>10} {:>10}\n",
            end.node,
            t.packets_in,
            t.bytes_in,
            t.packets_out,
            t.bytes_out,
            t.foreign,
            t.bad + t.refused
        );
    }
    for Outcome { node, command, start_s, end_s, code, stopped, .. } in &report.commands {
        let [start, end] = [start_s, end_s].map(|s| figure(*s));
        let how = if *stopped { "stopped".to_owned() } else { format!("exit code {code}") };
        text += &format!("  {node}, {start} to {end} s, {how}: {command}\n");
    }
    let lag = &report.lag;
    let [median, p99, max, limit] =
        [lag.median_s, lag.p99_s, lag.max_s, lag.limit_s].map(|s| figure(s * 1e3));
    text += &format!(
        "  lag of {} batches of events: median {median} ms, 99 % within {p99} ms, at most {max} ms; {} past the \
         limit of {limit} ms\n",
        lag.batches, lag.over_limit
    );
    text
}
