//! Random networks, with SET over all gateways and over each one alone, to show that SET is never
//! slower than the best single gateway.

use std::fmt::Display;

use anabranch_core::time::Duration;
use anabranch_scenario::Scenario;
use anabranch_scenario::units::{Rate, Size, Span};
use anabranch_sim::random::Stream;
use rayon::prelude::*;

use anabranch_lab::experiment::{RunError, Settings, plain};
use anabranch_lab::set::{self, Scheme, Set, TEMPLATE, simulate};

/// Result of a network. Latencies are means over the runs, in seconds.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// Number of the case.
    pub number: u64,
    /// Bit rate (kbit/s), one-way delay (ms) and loss of each gateway's wireless link.
    pub paths: Vec<(f64, u64, f64)>,
    /// Length of the file in bytes.
    pub file: u64,
    /// Receive buffer of the node in bytes.
    pub node_buffer: u64,
    /// SET over all gateways; `None` if a run was not delivered.
    pub together: Option<f64>,
    /// SET over each gateway alone; infinite if a run was not delivered, or if the gateway cannot
    /// be the best.
    pub alone: Vec<f64>,
    /// Split TCP over each gateway alone; infinite in the same cases.
    pub split: Vec<f64>,
    /// Command that repeats the runs over all gateways.
    pub command: String,
}

impl Case {
    /// SET's latency over all gateways, divided by that over the best one alone.
    pub fn ratio(&self) -> f64 {
        self.together.unwrap_or(f64::INFINITY) / least(&self.alone)
    }

    /// SET's latency over all gateways, divided by that of split TCP over the best one.
    pub fn split_ratio(&self) -> f64 {
        self.together.unwrap_or(f64::INFINITY) / least(&self.split)
    }
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Network `number`: 2 to 5 gateways, 20 to 1000 kbit/s (log-uniform), 5 to 500 ms, 0 to 5 % loss;
/// a file of 100 kB.
pub fn network(seed: u64, number: u64) -> Settings {
    let mut random = Stream::new(seed, number, "campaign set-random-networks", "paths");
    let n = random.range(2..=5) as usize;
    let (mut rates, mut delays, mut losses) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..n {
        rates.push(Rate((20e3 * 50f64.powf(random.uniform())) as u64));
        delays.push(Span(Duration::from_millis(random.range(5..=500))));
        losses.push(random.uniform() * 0.05);
    }
    let set = Settings::defaults(&Set).with("gateways", n).with("file", "100kB");
    let set = set.with("tcp", "modern").with("start", "early").with("open_wait", "none");
    with_paths(set, &rates, &delays, &losses)
}

fn with_paths(settings: Settings, rates: &[Rate], delays: &[Span], losses: &[f64]) -> Settings {
    let settings = settings.with("wireless_rate", joined(rates)).with("wireless_delay", joined(delays));
    settings.with("wireless_loss", joined(losses))
}

/// Joins one value per gateway.
fn joined<T: Display>(values: &[T]) -> String {
    values.iter().map(plain).collect::<Vec<_>>().join("+")
}

/// Network `number` of the wide ranges: 1 to 15 gateways, the fastest with 10 kbit/s to 100 Mbit/s
/// and up to 1000 times as fast as the others, round trips of 4 ms to 5 s, a node buffer of 500
/// bytes to 16 MB and a file of 1 byte to 10 MB, all log-uniform. In every second network each link
/// loses up to 20 %.
pub fn wide_network(seed: u64, number: u64) -> Settings {
    let mut random = Stream::new(seed, number, "campaign set-wide-networks", "paths");
    let mut between = |low: f64, high: f64| low * (high / low).powf(random.uniform());
    let n = between(1.0, 16.0) as usize;
    let fastest = between(10e3, 100e6);
    let (node_buffer, file) = (between(500.0, 16e6), between(1.0, 10e6));
    let first = between(1.0, n as f64 + 1.0) as usize - 1;
    let rate = |i| if i == first { fastest } else { between((fastest / 1000.0).max(10e3), fastest) };
    let rates: Vec<Rate> = (0..n).map(rate).map(|rate| Rate(rate as u64)).collect();
    let delays: Vec<Span> = (0..n).map(|_| Span(Duration::from_micros(between(1e3, 2.5e6) as u64))).collect();
    let most = if number.is_multiple_of(2) { 0.0 } else { 0.2 };
    let losses: Vec<f64> = (0..n).map(|_| random.uniform() * most).collect();
    let set = network(seed, number).with("gateways", n).with("file", plain(&Size(file as u64)));
    let set = set.with("node_buffer", plain(&Size(node_buffer as u64))).with("wired_delay", "1ms");
    with_paths(set, &rates, &delays, &losses)
}

/// Runs the networks `0..count` in parallel, and passes each finished case to `tell`.
///
/// # Errors
///
/// The simulator refuses a network.
pub fn campaign(
    network: fn(u64, u64) -> Settings,
    seed: u64,
    count: u64,
    runs: u64,
    tell: impl Fn(&Case) + Sync,
) -> Result<Vec<Case>, RunError> {
    (0..count)
        .into_par_iter()
        .map(|number| {
            let case = case(&network(seed, number), seed, number, runs)?;
            tell(&case);
            Ok(case)
        })
        .collect()
}

fn case(settings: &Settings, seed: u64, number: u64, runs: u64) -> Result<Case, RunError> {
    let settings = &set::canonical(settings)?;
    let (rates, losses) = (set::quantities::<Rate>(settings, "wireless_rate")?, set::losses(settings)?);
    let spans = |key| set::quantities::<Span>(settings, key);
    let (wired_delays, delays) = (spans("wired_delay")?, spans("wireless_delay")?);
    let size = |key| settings.text(key).parse::<Size>().expect("settings were understood above").0;
    let (file, node_buffer) = (size("file"), size("node_buffer"));
    let lossless = losses.iter().all(|loss| *loss == 0.0);
    let runs = if lossless { 1 } else { runs };
    let seed = seed.wrapping_mul(1_000_003).wrapping_add(number);
    // Lower bound of the latency: the file's bytes over the link, after a request and its answer.
    let least_time = |i: usize| {
        let delay = wired_delays[i].0 + delays[i].0;
        file as f64 * 8.0 / rates[i].0 as f64 + 2.0 * delay.as_secs_f64()
    };
    let mut order: Vec<usize> = (0..rates.len()).collect();
    order.sort_by(|a, b| least_time(*a).total_cmp(&least_time(*b)));
    // The network stays complete and only the node's gateway table shrinks. So the n-th packet of a
    // link meets the same channel in both cases, and the comparison is paired run by run.
    let each = |scheme: Scheme| -> Result<Vec<f64>, RunError> {
        let settings = settings.clone().with("scheme", scheme.word());
        let mut latencies = vec![f64::INFINITY; rates.len()];
        for &i in &order {
            if least_time(i) < least(&latencies) {
                let alone = TEMPLATE.source(&settings)?.set(format!("transfer.*.gateways=[\"gw{}\"]", i + 1));
                let alone = alone.scenario().map_err(|e| RunError::Scenario(e.to_string()))?;
                latencies[i] = mean_latency(&alone, seed, runs).unwrap_or(f64::INFINITY);
            }
        }
        Ok(latencies)
    };
    let path = |i: usize| (rates[i].0 as f64 / 1000.0, delays[i].0.as_millis(), losses[i]);
    Ok(Case {
        number,
        paths: (0..rates.len()).map(path).collect(),
        file,
        node_buffer,
        together: mean_latency(&TEMPLATE.point(settings)?.scenario, seed, runs),
        alone: each(Scheme::Set)?,
        split: each(Scheme::Split)?,
        command: command(settings, seed, runs),
    })
}

fn command(settings: &Settings, seed: u64, runs: u64) -> String {
    let defaults = TEMPLATE.texts(&Settings::defaults(&Set));
    let texts = TEMPLATE.texts(settings).into_iter().zip(defaults).filter(|(text, default)| text != default);
    let sets: String = texts.map(|((name, text), _)| format!(" --set {name}={text}")).collect();
    format!("anabranch-lab lab run set --seed {seed} --runs {runs}{sets}")
}

fn mean_latency(scenario: &Scenario, seed: u64, runs: u64) -> Option<f64> {
    let total: Option<f64> =
        (0..runs).map(|run| simulate(scenario, seed, run).ok()?.latency.map(|d| d.as_secs_f64())).sum();
    total.map(|t| t / runs as f64)
}

/// Summary of all cases.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Summary {
    /// Number of cases.
    pub cases: usize,
    /// Share of cases with a ratio of at most 1.02.
    pub good: f64,
    /// Share of cases with a ratio of at most 1.10.
    pub fair: f64,
    /// Number of networks in which a run over all gateways was not delivered.
    pub undelivered: usize,
    /// Median ratio.
    pub median: f64,
    /// Largest ratio.
    pub worst: f64,
    /// Share with a ratio of at most 1.02 against split TCP.
    pub split_good: f64,
    /// Share with a ratio of at most 1.10 against split TCP.
    pub split_fair: f64,
    /// Largest ratio against split TCP.
    pub split_worst: f64,
}

/// Summarises cases.
pub fn summary(cases: &[Case]) -> Summary {
    let sorted = |f: fn(&Case) -> f64| {
        let mut ratios: Vec<f64> = cases.iter().map(f).collect();
        ratios.sort_by(f64::total_cmp);
        ratios
    };
    let within = |r: &[f64], limit| r.iter().filter(|r| **r <= limit).count() as f64 / r.len().max(1) as f64;
    let (ours, split) = (sorted(Case::ratio), sorted(Case::split_ratio));
    Summary {
        cases: cases.len(),
        good: within(&ours, 1.02),
        fair: within(&ours, 1.10),
        undelivered: cases.iter().filter(|case| case.together.is_none()).count(),
        median: ours.get(ours.len() / 2).copied().unwrap_or(f64::NAN),
        worst: ours.last().copied().unwrap_or(f64::NAN),
        split_good: within(&split, 1.02),
        split_fair: within(&split, 1.10),
        split_worst: split.last().copied().unwrap_or(f64::NAN),
    }
}
