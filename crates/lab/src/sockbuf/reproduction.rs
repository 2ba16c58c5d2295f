//! Section 4 in the report.

use super::Sockbuf;
use super::claims;
use super::figures;
use super::response::{self, Response};
use super::settings::{Grid, Measured};
use super::tables;
use crate::reproduction::{self, Extent, Figure, Options, Paper, ReproduceError, Reproduction, Table};
use crate::work::Work;

/// The paper.
pub const PAPER: Paper = Paper {
    id: "sockbuf",
    title: "An Adaptive Buffer Tuning Mechanism for striped transport layer connection on multi-homed mobile host",
    citation: "F. I. Khan, E.-N. Huh, 2008.",
    about: "Section 4: a mobile host with three wireless interfaces, one striped connection over all of them, and single ones; who \
            gets the memory of the send buffers, by the proposed controller and by ATBT.",
    page: "docs/evidence/sockbuf-experiments.md",
    runs: 10,
    quick_runs: 2,
    cost: 800_000,
    open: super::open::OPEN,
    reference: &[],
    is_baseline: |_| false,
    experiment: &Sockbuf,
    targets: super::TARGETS,
    errata: include_str!("errata.toml"),
    planned,
    reproduce,
};

fn grid(options: &Options) -> Grid {
    match options.extent {
        Extent::Full => Grid::Full,
        Extent::Quick => Grid::Quick,
    }
}

/// Number of runs that [`reproduce`] makes.
pub fn planned(options: &Options) -> usize {
    Measured::planned(grid(options), options.runs_of(&PAPER)) + response::RUNS
}

/// Measures the four settings and the control loop, and judges every claim.
///
/// # Errors
///
/// A run failed, or a figure could not be drawn.
pub fn reproduce(options: Options, work: &Work<'_>) -> Result<Reproduction, ReproduceError> {
    let measured = Measured::run(grid(&options), work)?;
    let responses = Response::run_all(grid(&options), work)?;
    written(options, &measured, &responses)
}

/// Arranges the measurements for the report.
pub(crate) fn written(
    options: Options,
    measured: &Measured,
    responses: &[Response],
) -> Result<Reproduction, ReproduceError> {
    let run = |runs: usize, assignments: &[&str]| {
        let assignments: Vec<String> = assignments.iter().map(|a| (*a).to_owned()).collect();
        options.run_command(&PAPER, runs, &assignments)
    };
    let quick: &[&str] = match options.extent {
        Extent::Full => &[],
        Extent::Quick => &["duration=60s", "bandwidth_step=15s"],
    };
    let command = |points: &[&str]| {
        let contenders = ["tuner=pid,atbt,atbt-original", "gains=damped,paper", "excess=product,bandwidth"];
        run(options.runs_of(&PAPER), &[&contenders[..], points, quick].concat())
    };
    let losses: Vec<String> = measured.losses().iter().map(ToString::to_string).collect();
    let losses = format!("loss={}", losses.join(","));
    let times: &[&str] = match options.extent {
        Extent::Full => &["duration=2400s", "bandwidth_step=400s"],
        Extent::Quick => &["duration=400s", "bandwidth_step=200s"],
    };
    let constants = ["gains=damped,paper", "gain_factor=0.25,0.5,1,2,4"];
    let step = run(1, &[&constants[..], times].concat());
    let figures = figures::draw(measured, responses).into_iter().map(|figure| {
        let command = match figure.id {
            "8" | "9" => command(&["memory=100MB", "connections=4"]),
            "10" | "11" | "12" => command(&["memory=100MB", "connections=8"]),
            "13" | "14" | "15-buffer" => command(&["memory=2MB", "connections=4"]),
            "15" | "16" => command(&["memory=2MB", "connections=8"]),
            "loss" => command(&["memory=2MB", "connections=4", &losses]),
            _ => step.clone(),
        };
        Ok(Figure {
            name: format!("figure-{}", figure.id),
            caption: figure.chart.title.clone(),
            svg: figure.chart.svg()?,
            csv: figure.chart.csv(),
            command,
        })
    });
    let figures = figures.collect::<Result<_, ReproduceError>>()?;
    let mut pages = tables::pages(measured, command);
    pages.push(response::page(responses, step.clone()));
    pages.push(Table {
        name: "numbers".to_owned(),
        title: "All numbers of the four settings with all their digits".to_owned(),
        note: "Only as a file: the tables above have the same numbers.".to_owned(),
        head: Vec::new(),
        rows: Vec::new(),
        csv: tables::csv(measured),
        command: command(&["memory=2MB,100MB", "connections=4,8"]),
    });
    Ok(Reproduction {
        paper: &PAPER,
        options,
        notes: NOTES.map(str::to_owned).to_vec(),
        tables: pages,
        figures,
        verdicts: claims::verdicts(measured, responses),
        parameters: reproduction::parameters(&Sockbuf, &PAPER.targets(), ours),
        errata: PAPER.errata(),
        map: None,
    })
}

const NOTES: [&str; 3] = [
    "The paper prints no numbers that came out: its claims in words are judged, and four goals of our own.",
    "The proposed mechanism is judged with the paper's constants (`gains=paper`, `excess=bandwidth`) against ATBT as it is printed \
     (`tuner=atbt`). Ours is `gains=damped`, `excess=product`; the original ATBT is `tuner=atbt-original`.",
    "Figure 15 is captioned as throughput and cited as buffer (B15): both are drawn. Figures by loss and of a step of the rates are \
     ours. Commands that name several constants run more points than are drawn.",
];

/// The parameter's value in our experiment.
fn ours(name: &str) -> &'static str {
    match name {
        "file" => "without end (B13)",
        "mem_high" | "mem_low" => "the same: memory",
        "default_buffer" => "128 kB",
        "payload" => "1460 octets",
        "kp" | "ki" | "kd" => "as printed with gains=paper; ours are gains=damped, docs/reference/sockbuf.md",
        "threshold_factor" => "2: products",
        "balance_period" => "0.5s: period",
        "sim_time" => "400s: duration",
        "single_flow_start" => "10s: single_at",
        "bandwidth_change_interval" => "50s: bandwidth_step",
        "connections" => "4 and 8: connections",
        "micro_flows" => "3",
        "background_tcp" | "background_udp" => "2",
        "throughput_interval" => "10 s",
        "buffer_interval" => "20 s",
        "wlan_rate" => "11 Mbit/s",
        "wlan_delay" => "10 ms",
        "geo_rate" => "2 Mbit/s",
        "geo_delay" => "120 ms",
        "hsupa_rate" => "7 Mbit/s",
        "hsupa_delay" => "70 ms",
        "backbone_rate" | "last_rate" => "100 Mbit/s",
        "backbone_delay" => "30 ms",
        "last_delay" => "10 ms",
        _ => "see docs/reference/sockbuf.md",
    }
}
