//! Compares queue disciplines with those of ns-3 for the same packets at the same times, without
//! the influence of a transport. ns-3's device holds one packet after the discipline, which
//! therefore decides earlier.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write;

use anabranch_core::time::{Duration, Instant};
use anabranch_scenario::{Plan, Source};
use anabranch_sim::apps::cbr::CbrSink;
use anabranch_sim::random::Stream;
use anabranch_stats::Summary;

use super::aqm::Length;
use super::ns3::{self, Program};
use super::table::origin;
use super::{number, publish, side_by_side};

/// Length of the queue in packets.
const QUEUE: u32 = 1000;
/// Size of a packet in bytes, including the IPv6 and UDP headers.
const PACKET: u32 = 1500;
const HEADERS: u32 = 48;

/// A Poisson process of packets, spread over flows.
#[derive(Clone, Copy, Debug)]
struct Cell {
    discipline: &'static str,
    /// Mbit/s.
    rate: u32,
    flows: u32,
    /// Offered load in per cent of the rate.
    load: u32,
}

/// Result of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Measured {
    /// Mean wait in the discipline, in seconds.
    wait: f64,
    /// Delivered packets per second.
    carried: f64,
}

impl Cell {
    /// Arrival times in nanoseconds, with the flow of each packet.
    fn arrivals(self, Length { seconds, .. }: Length, run: u64) -> Vec<(u64, u32)> {
        let mut random =
            Stream::new(1, run, "arrivals", &format!("{} {} {}", self.rate, self.flows, self.load));
        let mean = f64::from(PACKET) * 8e3 / f64::from(self.rate) / (f64::from(self.load) / 100.0);
        let (mut at, mut all) = (0.0, Vec::new());
        loop {
            at += mean * random.exponential();
            if at >= seconds as f64 * 1e9 {
                return all;
            }
            all.push((at as u64, random.range(0..=u64::from(self.flows) - 1) as u32));
        }
    }

    fn ours(self, Length { seconds, warmup, runs: _ }: Length, arrivals: &[(u64, u32)]) -> Measured {
        let Self { discipline, rate, flows, .. } = self;
        let mut text = format!(
            "stop = \"{seconds} s\"\n[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n\
             [[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"{rate} Mbit/s\"\ndelay = \"1 ms\"\nqueue = \"{QUEUE} packets\"\n\
             discipline = \"{discipline}\"\nback = {{ discipline = \"drop-tail\" }}\n\
             [probe.queue]\nkind = \"queues\"\nnodes = \"a\"\nto = \"b\"\nfrom = \"{warmup} s\"\n"
        );
        let mut traces = vec![String::new(); flows as usize];
        for (at, flow) in arrivals {
            let _ = writeln!(traces[*flow as usize], "{at} ns,{}", PACKET - HEADERS);
        }
        for flow in 0..flows {
            let _ = write!(
                text,
                "[[traffic]]\nname = \"flow{flow}\"\nkind = {{ trace = \"{flow}\" }}\nfrom = \"a\"\nto = \"b\"\n"
            );
        }
        let files: BTreeMap<_, _> =
            traces.iter().enumerate().map(|(flow, rows)| (flow.to_string(), rows.clone().into())).collect();
        let read = move |name: &str| {
            name.parse().ok().and_then(|flow: usize| traces.get(flow).cloned()).ok_or_else(String::new)
        };
        let scenario = Source::new("arrivals.toml", text).with_texts(read).scenario();
        let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
        let Plan { builder, planned } = scenario.plan(1, 0, &files).expect("nothing is drawn");
        let mut sim = builder.build();
        sim.run_until(scenario.stop);
        let from = Instant::ZERO + Duration::from_secs(warmup);
        let sinks = planned.traffic.iter().map(|traffic| sim.app::<CbrSink>(traffic.sink));
        let carried: usize =
            sinks.map(|sink| sink.arrived.iter().filter(|packet| packet.at >= from).count()).sum();
        let metrics = scenario.metrics(&planned, &sim);
        Measured {
            wait: metrics["probe.queue.wait_mean_s"].value.expect("packets have waited"),
            carried: carried as f64 / (seconds - warmup) as f64,
        }
    }

    fn theirs(
        self,
        program: &Program,
        Length { seconds, warmup, .. }: Length,
        run: u64,
        arrivals: &[(u64, u32)],
    ) -> Result<Measured, String> {
        let file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
        let rows: String = arrivals.iter().map(|(at, flow)| format!("{at} {flow}\n")).collect();
        std::fs::write(file.path(), rows).map_err(|error| error.to_string())?;
        let report = program.run(&[
            ("rate", (u64::from(self.rate) * 1_000_000).to_string()),
            ("delay", "1".to_owned()),
            ("queue", QUEUE.to_string()),
            ("flows", "0".to_owned()),
            ("seconds", seconds.to_string()),
            ("warmup", warmup.to_string()),
            ("disc", self.discipline.to_owned()),
            ("run", run.to_string()),
            ("arrivals", file.path().display().to_string()),
        ])?;
        let read = || {
            let carried = report["received"].as_f64()? / (seconds - warmup) as f64;
            Some(Measured { wait: report["wait"].as_f64()?, carried })
        };
        read().ok_or_else(|| format!("cannot read {report}"))
    }
}

fn plan() -> (Vec<Cell>, Length) {
    let whole = env::var_os("ANABRANCH_COMPARE").is_some();
    let (flows, loads): (&[u32], &[u32]) =
        if whole { (&[1, 16], &[90, 105, 120, 150]) } else { (&[4], &[120]) };
    let seconds = number("SECONDS").unwrap_or(if whole { 60 } else { 20 });
    let runs = number("RUNS").unwrap_or(if whole { 5 } else { 2 });
    let mut cells = Vec::new();
    for discipline in ["red", "codel", "pie", "fq-codel"] {
        for &flows in flows {
            cells.extend(loads.iter().map(|&load| Cell { discipline, rate: 10, flows, load }));
        }
    }
    (cells, Length { seconds, warmup: seconds / 3, runs })
}

/// The page, and the ratios of the means of all cells, for waits and delivered packets.
fn page(cells: &[Cell], length: Length, results: &[Vec<(Measured, Measured)>]) -> (String, Vec<[f64; 2]>) {
    let Length { seconds, warmup, runs } = length;
    let mut text = format!(
        "# Queue disciplines at which the same packets come, beside those of ns-3\n\n{}\n\nA Poisson process of packets of {PACKET} bytes, each of a \
         random flow; room for {QUEUE} packets; {runs} runs of {seconds} s without the first {warmup} s. Waits in ms, packets carried a second, \
         means of the runs.\n\n\
         | discipline | flows | load | wait, ns-3 | wait, ours | ratio | carried, ns-3 | carried, ours | ratio |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        origin("ns-3", &ns3::version())
    );
    let mut ratios = Vec::new();
    for (cell, runs) in cells.iter().zip(results) {
        let mean = |of: &dyn Fn(&(Measured, Measured)) -> f64| {
            Summary::of(&runs.iter().map(of).collect::<Vec<_>>()).expect("there are runs").mean
        };
        let wait = [mean(&|run| run.0.wait * 1e3), mean(&|run| run.1.wait * 1e3)];
        let carried = [mean(&|run| run.0.carried), mean(&|run| run.1.carried)];
        let both = [wait[1] / wait[0], carried[1] / carried[0]];
        let Cell { discipline, flows, load, .. } = cell;
        let _ = writeln!(
            text,
            "| {discipline} | {flows} | {load} % | {:.2} | {:.2} | {:.3} | {:.1} | {:.1} | {:.3} |",
            wait[0], wait[1], both[0], carried[0], carried[1], both[1]
        );
        ratios.push(both);
    }
    (text, ratios)
}

#[test]
fn our_queues_do_with_the_same_packets_as_ns3_does() {
    let Some(program) = ns3::bottleneck() else { return };
    let (cells, length) = plan();
    let runs = length.runs as usize;
    let measured = side_by_side(cells.len() * runs, number("AT_ONCE").map_or(2, |n| n as usize), |job, _| {
        let (cell, run) = (cells[job / runs], (job % runs) as u64 + 1);
        let arrivals = cell.arrivals(length, run);
        let theirs = cell.theirs(&program, length, run, &arrivals);
        (theirs.unwrap_or_else(|error| panic!("{cell:?}: {error}")), cell.ours(length, &arrivals))
    });
    let results: Vec<Vec<_>> = measured.chunks(runs).map(<[_]>::to_vec).collect();
    let (text, ratios) = page(&cells, length, &results);
    publish(&text);
    if env::var_os("ANABRANCH_COMPARE").is_none() {
        for (cell, [wait, carried]) in cells.iter().zip(ratios) {
            assert!((0.97..1.03).contains(&carried) && (0.9..1.1).contains(&wait), "{cell:?}: {text}");
        }
    }
}
