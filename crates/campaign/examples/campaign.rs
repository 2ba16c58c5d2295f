//! Runs a campaign: `campaign NAME [--count N] [--runs N] [--seed S]` simulates many random cases
//! in search of a bad one. Prints one line per case and a summary; fails if a requirement is not
//! met.

use std::process::ExitCode;

use anabranch_campaign::faults::{self, Left};
use anabranch_campaign::{bottleneck, buffers, chains, crowds, networks, paths};
use anabranch_core::{rdca, tcp};
use anabranch_testkit::rdca::{Case, Faults, fault_run, step_run};
use rayon::prelude::*;

const USAGE: &str = "usage: campaign set-random-networks|set-wide-networks|set-faults|dtc-chains|mptcp-paths|rdca-faults|\
                     rdca-steps|sockbuf-reports|tcp-bottleneck \
                     [--count N] [--runs N] [--seed S]";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, options)) = words.split_first() else { return usage() };
    let Some(options) = Options::parse(options) else { return usage() };
    let result = match name.as_str() {
        "set-random-networks" => random_networks(networks::network, &options),
        "set-wide-networks" => random_networks(networks::wide_network, &options),
        "set-faults" => set_faults(&options),
        "dtc-chains" => dtc_chains(&options),
        "mptcp-paths" => Ok(mptcp_paths(&options)),
        "tcp-bottleneck" => Ok(tcp_bottleneck()),
        "rdca-faults" => Ok(rdca_faults(&options)),
        "sockbuf-reports" => sockbuf_reports(&options),
        "rdca-steps" => Ok(rdca_steps(&options)),
        _ => return usage(),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

struct Options {
    count: Option<u64>,
    runs: u64,
    seed: u64,
}

impl Options {
    fn parse(words: &[String]) -> Option<Self> {
        let mut options = Self { count: None, runs: 10, seed: 1 };
        for pair in words.chunks(2) {
            let [name, value] = pair else { return None };
            let value = value.parse().ok()?;
            match name.as_str() {
                "--count" => options.count = Some(value),
                "--runs" if value > 0 => options.runs = value,
                "--seed" => options.seed = value,
                _ => return None,
            }
        }
        Some(options)
    }
}

/// Requires a latency of at most 1.02 times that of the best single gateway in 99 % of the
/// networks, and at most 1.10 times in all of them.
fn random_networks(
    network: fn(u64, u64) -> anabranch_lab::experiment::Settings,
    options: &Options,
) -> Result<bool, anabranch_lab::experiment::RunError> {
    let cases =
        networks::campaign(network, options.seed, options.count.unwrap_or(500), options.runs, |case| {
            let paths: Vec<String> = case
                .paths
                .iter()
                .map(|(rate, delay, loss)| format!("{rate:.0}k/{delay}ms/{:.1}%", loss * 100.0))
                .collect();
            println!(
                "{:4} file {} buffer {} ratio {:.3} split {:.3} together {:.2} alone {:.2?} split {:.2?} {}",
                case.number,
                case.file,
                case.node_buffer,
                case.ratio(),
                case.split_ratio(),
                case.together.unwrap_or(f64::NAN),
                case.alone,
                case.split,
                paths.join(" ")
            );
        })?;
    let mut worst: Vec<&networks::Case> = cases.iter().collect();
    worst.sort_by(|a, b| b.ratio().max(b.split_ratio()).total_cmp(&a.ratio().max(a.split_ratio())));
    for case in worst.iter().take(10) {
        println!(
            "{} ratio {:.3} split {:.3}: {}",
            case.number,
            case.ratio(),
            case.split_ratio(),
            case.command
        );
    }
    let s = networks::summary(&cases);
    println!(
        "{} networks: at most 1.02 in {:.1} %, 1.10 in {:.1} %, median {:.3}, worst {:.3}; against split TCP {:.1} %, {:.1} %, \
         worst {:.3}; not delivered {}",
        s.cases,
        s.good * 100.0,
        s.fair * 100.0,
        s.median,
        s.worst,
        s.split_good * 100.0,
        s.split_fair * 100.0,
        s.split_worst,
        s.undelivered
    );
    Ok(s.good >= 0.99 && s.worst <= 1.10 && s.undelivered == 0)
}

/// Requires delivery while one gateway lives, and a reported failure if none does.
fn set_faults(options: &Options) -> Result<bool, anabranch_lab::experiment::RunError> {
    let count = options.count.unwrap_or(1000);
    let tell = |case: &faults::Case| {
        println!(
            "{:4} {:?} left: {} of {} octets, {:?} after {:.1} s (undisturbed {:.1} s) {}",
            case.number,
            case.left,
            case.delivered,
            case.octets,
            case.outcome,
            case.took,
            case.undisturbed.unwrap_or(f64::NAN),
            if case.fine() { "" } else { "BAD" }
        );
    };
    let mut fine = true;
    for (left, count) in [(Left::One, count), (Left::None, count.div_ceil(10))] {
        let cases = faults::campaign(options.seed, count, left, tell)?;
        let bad: Vec<u64> = cases.iter().filter(|c| !c.fine()).map(|c| c.number).collect();
        let longest = cases.iter().map(|c| c.took).fold(0.0, f64::max);
        println!("{left:?} left: {count} schedules, {} bad {bad:?}, longest {longest:.0} s", bad.len());
        fine &= bad.is_empty();
    }
    Ok(fine)
}

/// Requires in-order, exactly-once delivery, and no stall longer than with plain TCP by more than
/// one time-out. In every network the time is at most 1.02 times that over the best path alone.
fn mptcp_paths(options: &Options) -> bool {
    let cases = paths::run(options.seed, options.count.unwrap_or(200), options.runs);
    let mut ratios: Vec<f64> = cases.iter().map(paths::Case::ratio).collect();
    for case in cases.iter().filter(|case| case.ratio() > 1.02) {
        println!("{:.3} {case:?}", case.ratio());
    }
    ratios.sort_by(f64::total_cmp);
    let good = ratios.iter().filter(|ratio| **ratio <= 1.02).count();
    let (median, worst) = (ratios[ratios.len() / 2], ratios[ratios.len() - 1]);
    println!("{good} of {} at most 1.02; worst {worst:.3}, median {median:.3}", ratios.len());
    good == ratios.len()
}

/// Requires 0.85 of the capacity and a Jain index of 0.9 from 10 s after each step, and no packet
/// given up without confirmation.
fn rdca_steps(options: &Options) -> bool {
    let count = options.count.unwrap_or(500);
    let good = (0..count).into_par_iter().map(|number| {
        let seed = options.seed << 32 | number;
        let case = Case::random(seed, 200);
        let mut config = rdca::Config::default();
        // The queue holds twice the highest rate times the longest round trip.
        config.sender.queue_packets = 512;
        config.sink.reorder_packets = 512;
        config.sender.release = rdca::Release::Confirmed;
        let steps = step_run(&case, config, seed);
        let (utilisation, jain) = steps.worst();
        let good = utilisation >= 0.85 && jain >= 0.9 && steps.gone == 0;
        println!(
            "{number:4} {:3} senders, {:.0} of {:.0} packets/s, queue {}, {} ms, loss {:.1} %: utilisation {utilisation:.3}, \
             Jain {jain:.3}, {} gone, {} overflows, control {:.3} {}",
            case.joins.len(),
            case.offered * case.joins.len() as f64,
            case.capacity,
            case.queue,
            case.delay.as_millis(),
            case.loss as f64 / 10.0,
            steps.gone,
            steps.overflows,
            steps.control,
            if good { "" } else { "BAD" }
        );
        if !good {
            for judged in &steps.judged {
                println!("     {number} {:.3} {:.3} after {:?}", judged.utilisation, judged.jain, judged.change);
            }
        }
        good
    });
    let good = good.filter(|good| *good).count() as u64;
    println!("{good} of {count} have it after every step");
    good == count
}

/// Requires that every accepted packet arrives once and in order, or is reported to its
/// application.
fn rdca_faults(options: &Options) -> bool {
    let count = options.count.unwrap_or(2000);
    let (mut sum, mut complete, mut bad) = (Faults::default(), 0, 0);
    // The seed is in the upper half, so campaigns of different seeds share no run.
    for seed in (0..count).map(|number| options.seed << 32 | number) {
        match fault_run(seed) {
            Ok(run) => {
                sum.accepted += run.accepted;
                sum.delivered += run.delivered;
                sum.told += run.told;
                sum.sinks += run.sinks;
                complete += u64::from(run.complete);
            }
            Err(what) => {
                bad += 1;
                println!("{what} BAD");
            }
        }
    }
    println!(
        "{count} runs, {bad} bad, {complete} complete; packets: {} accepted, {} delivered, {} told; {} sinks",
        sum.accepted, sum.delivered, sum.told, sum.sinks
    );
    bad == 0
}

fn dtc_chains(options: &Options) -> Result<bool, anabranch_lab::experiment::RunError> {
    let cases = chains::campaign(options.seed, options.count.unwrap_or(10_000), |case| {
        if !case.fine() || case.paper_stalls() {
            println!("{case:?} {}", if case.fine() { "the paper's stalls" } else { "BAD" });
        }
    })?;
    let bad = cases.iter().filter(|c| !c.fine()).count();
    let complete = |took: fn(&chains::Case) -> bool| cases.iter().filter(|c| took(c)).count();
    println!(
        "{} chains, {bad} bad, the paper's stalls in {}; complete: plain {}, paper {}, ours {}",
        cases.len(),
        cases.iter().filter(|c| c.paper_stalls()).count(),
        complete(|c| c.plain.took.is_some()),
        complete(|c| c.paper.took.is_some()),
        complete(|c| c.ours.took.is_some())
    );
    let met = crowded_chains(options)?;
    Ok(bad == 0 && met)
}

/// Runs 1 to 200 connections over one chain, and judges how much the nodes' memory helps.
fn crowded_chains(options: &Options) -> Result<bool, anabranch_lab::experiment::RunError> {
    let cases = crowds::campaign(options.seed, options.count.unwrap_or(2_000), |case| {
        if !case.fine() {
            println!("BAD {case:?}");
        }
    })?;
    let mut fairness: Vec<f64> = cases.iter().map(|case| case.ours.jain).collect();
    fairness.sort_by(f64::total_cmp);
    let at = |share: f64| fairness.get((fairness.len() as f64 * share) as usize).copied().unwrap_or(f64::NAN);
    let bad = cases.iter().filter(|case| !case.fine()).count();
    println!(
        "{} crowds, {bad} bad; Jain's index: median {:.3}, at least 0.85 in {}, least {:.3}; below that without caching by \
         more than 0.02 in {}",
        cases.len(),
        at(0.5),
        fairness.iter().filter(|jain| **jain >= 0.85).count(),
        at(0.0),
        cases.iter().filter(|case| case.ours.jain < case.plain.jain - 0.02).count()
    );
    for crowd in crowds::JUDGED {
        println!("{crowd:?}");
        for (connections, segments) in crowds::MEMORIES {
            let c = crowd.with_memory(connections, segments, options.seed, options.runs)?;
            println!(
                "{connections} connections, {segments} segments: median {:.1} s, longest {:.1} s, Jain {:.3}",
                c.median, c.longest, c.jain
            );
        }
    }
    Ok(bad == 0)
}

/// Requires at least half of its fair share for each connection, and buffers that never exceed the
/// memory.
fn sockbuf_reports(options: &Options) -> Result<bool, anabranch_lab::experiment::RunError> {
    let cells = buffers::Cell::all(&buffers::Information::all(), &[2, 4, 16, 64], &[1, 4, 16, 512]);
    let cells = &cells[..options.count.map_or(cells.len(), |count| (count as usize).min(cells.len()))];
    let cases = buffers::campaign(cells, options.seed, options.runs, |case| {
        let buffers::Case { cell, throughput, fair, shares, within } = case;
        println!(
            "{:?} {:?} {:?} {} connections, {} segments: {:.3} of {:.3} Mbit/s, striped {:.2}, least {:.2}{}{}",
            cell.divider,
            cell.information,
            cell.event,
            cell.connections,
            cell.segments,
            throughput / 1e6,
            fair / 1e6,
            shares[0],
            case.least(),
            if *within { "" } else { ", above the memory" },
            match (case.fine(), case.is_full()) {
                (false, _) => " BAD",
                (true, true) => " full links",
                (true, false) => "",
            }
        );
    })?;
    let (printed, ours): (Vec<_>, Vec<_>) = cases.iter().partition(|case| case.cell.divider.is_printed());
    let bad = |cases: &[&buffers::Case]| cases.iter().filter(|case| !case.fine()).count();
    println!("{} cells of {} bad; as printed {} of {}", bad(&ours), ours.len(), bad(&printed), printed.len());
    Ok(bad(&ours) == 0)
}

/// Checks utilisation, time-outs, retransmissions and fairness of TCP over one bottleneck, at 10
/// and 100 Mbit/s.
fn tcp_bottleneck() -> bool {
    let cells = bottleneck::Grid { rates: &[10_000_000, 100_000_000], ..Default::default() }.cells();
    let cases = bottleneck::run(&cells, tcp::Config::modern(), |case| {
        let bottleneck::Case { cell, sawtooth, outcome, faults } = case;
        println!(
            "{:?} {} Mbit/s {} ms {} BDP {} flows: utilisation {:.3} of {:.3}, {:.2} time-outs, {:.4} sent again, \
             fairness {:.3} {}{}",
            cell.controller,
            cell.rate / 1_000_000,
            cell.delay.as_millis(),
            cell.queue,
            cell.flows,
            outcome.utilisation,
            sawtooth.utilisation,
            outcome.timeouts,
            outcome.retransmitted,
            outcome.jain,
            if cell.is_crowded() { "crowded " } else { "" },
            if faults.is_empty() { String::new() } else { format!("MISSED {}", faults.join(", ")) }
        );
    });
    let good = cases.iter().filter(|case| case.faults.is_empty()).count();
    println!("{good} of {} cells meet all limits", cases.len());
    good == cases.len()
}
