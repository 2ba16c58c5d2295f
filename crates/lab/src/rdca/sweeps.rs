//! The two sweeps of section 4, measured: by number of senders at 4 kB/s each, and by the rate of
//! one sender.

use rayon::prelude::*;

use super::{Protocol, Rdca, RdcaPoint, rate_text};
use crate::experiment::{self, Outcome, RunError, Settings};
use crate::stats::{self, Summary};
use crate::work::Work;

/// A protocol of the figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contender {
    /// Transport of the packets.
    pub protocol: Protocol,
    /// Name in reports.
    pub title: &'static str,
    /// Name in the list of targets; none if the paper does not have this protocol.
    pub target: Option<&'static str>,
}

/// All protocols, ours first. The paper's "proposed protocol" is judged by RDCA as printed.
pub const CONTENDERS: [Contender; 5] = [
    Contender { protocol: Protocol::Rdca, title: "RDCA, ours", target: None },
    Contender { protocol: Protocol::RdcaPaper, title: "RDCA, the paper's", target: Some("proposed") },
    Contender { protocol: Protocol::NewReno, title: "NewReno", target: Some("newreno") },
    Contender { protocol: Protocol::Westwood, title: "Westwood+", target: Some("westwood") },
    Contender { protocol: Protocol::Elfn, title: "ELFN", target: Some("elfn") },
];

/// The three TCPs that the paper compares with.
pub const TCPS: [Protocol; 3] = [Protocol::NewReno, Protocol::Westwood, Protocol::Elfn];

/// Offered load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Load {
    /// Number of senders.
    pub senders: usize,
    /// Rate of each sender in bytes per second.
    pub rate: u64,
}

/// A quantity of the paper's figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantity {
    /// Throughput of whole packets at the sink in kB/s, of all senders (erratum H1: not packets per
    /// second).
    Throughput,
    /// Rate of whole packets made in kB/s, of all senders.
    Offered,
    /// Share of the data packets sent that reached the sink, in per cent.
    DeliveryRatio,
    /// Time from the first transmission of a packet to the sink's application, in seconds.
    Delay,
    /// Energy of all radios per 1000 packets, in joules (erratum H19: a total of the network).
    Energy,
    /// Control packets of the transport per data packet.
    Control,
    /// Number of data packets sent that did not reach the sink.
    Lost,
    /// Jain's fairness index of the senders.
    Fairness,
}

impl Quantity {
    /// Whether more is better; for other quantities less is.
    pub(super) fn is_better_if_more(self) -> bool {
        matches!(self, Self::DeliveryRatio | Self::Throughput)
    }

    /// The metric, and the factor from its unit to the quantity's.
    fn metric(self) -> (&'static str, f64) {
        match self {
            Self::Throughput => ("throughput_byte_per_s", 1e-3),
            Self::Offered => ("offered_byte_per_s", 1e-3),
            Self::DeliveryRatio => ("delivery_ratio", 100.0),
            Self::Delay => ("delay_mean_s", 1.0),
            Self::Energy => ("energy_j_per_1000_packets", 1.0),
            Self::Control => ("control_load", 1.0),
            Self::Lost => ("packets_lost", 1.0),
            Self::Fairness => ("fairness", 1.0),
        }
    }
}

/// Extent of the sweeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grid {
    /// As in the paper: 1 to 7 senders, ten rates.
    Full,
    /// Only what the tables need, and four rates; runs of 40 s, and the capacity from every third
    /// rate.
    Quick,
}

impl Grid {
    fn senders(self) -> Vec<usize> {
        match self {
            Self::Full => (1..=7).collect(),
            Self::Quick => vec![1, 3, 5, 7],
        }
    }

    pub(super) fn network(self) -> Settings {
        let settings = Settings::defaults(&Rdca);
        match self {
            Self::Full => settings,
            Self::Quick => settings.with("duration", "40s"),
        }
    }

    fn tried(self) -> Vec<u64> {
        match self {
            Self::Full => TRIED.to_vec(),
            Self::Quick => TRIED.into_iter().skip(1).step_by(3).collect(),
        }
    }

    fn rates(self) -> Vec<u64> {
        match self {
            Self::Full => (1..=10).map(|i| 4000 * i).collect(),
            Self::Quick => vec![4000, 8000, 20_000, 40_000],
        }
    }
}

/// Rate of each sender in the sweep by senders, in bytes per second (erratum H20: it follows from
/// Table 2).
pub const SWEEP_RATE: u64 = 4000;

/// Both sweeps.
#[derive(Clone, PartialEq, Debug)]
pub struct Sweeps {
    senders: Vec<usize>,
    rates: Vec<u64>,
    cells: Vec<(Load, Protocol, Outcome)>,
    /// Capacity in kB/s, by number of senders.
    capacity: Vec<Summary>,
}

impl Sweeps {
    /// Makes `work.runs` runs (at least one) of every cell, and measures the capacity in at most
    /// five of them, one per placement.
    ///
    /// # Errors
    ///
    /// The first failed run.
    pub fn run(grid: Grid, work: &Work<'_>) -> Result<Self, RunError> {
        let network = &grid.network();
        let (senders, rates) = (grid.senders(), grid.rates());
        let cells = loads(&senders, &rates)
            .flat_map(|load| CONTENDERS.iter().map(move |c| (load, c.protocol)))
            .collect::<Vec<_>>()
            .into_par_iter()
            .map(|(load, protocol)| {
                let Load { senders, rate } = load;
                let settings = network.clone().with("protocol", protocol.word()).with("senders", senders);
                let outcome = experiment::run(&Rdca, &settings.with("rate", rate_text(rate)), work)?;
                Ok((load, protocol, outcome))
            });
        let cells = cells.collect::<Result<_, RunError>>()?;
        let capacity = senders
            .par_iter()
            .map(|&n| capacity(network, n, &grid.tried(), &work.with_runs(work.runs.min(5))));
        let capacity = capacity.collect::<Result<_, _>>()?;
        Ok(Self { senders, rates, cells, capacity })
    }

    /// Number of runs that [`Sweeps::run`] makes.
    pub fn planned(grid: Grid, runs: usize) -> usize {
        let (senders, rates) = (grid.senders(), grid.rates());
        let cells = loads(&senders, &rates).count() * CONTENDERS.len();
        cells * runs + senders.len() * grid.tried().len() * runs.min(5)
    }

    /// Loads of the sweep by senders.
    pub fn by_senders(&self) -> Vec<Load> {
        self.senders.iter().map(|&senders| Load { senders, rate: SWEEP_RATE }).collect()
    }

    /// Loads of the sweep by rate.
    pub fn by_rate(&self) -> Vec<Load> {
        self.rates.iter().map(|&rate| Load { senders: 1, rate }).collect()
    }

    /// Capacity for this number of senders in kB/s: throughput of datagrams at the sink, at the
    /// best of the tried rates.
    ///
    /// # Panics
    ///
    /// There is no such point.
    pub fn capacity(&self, senders: usize) -> Summary {
        let i = self.senders.iter().position(|&n| n == senders).expect("a point of the sweep");
        self.capacity[i]
    }

    /// Values of a quantity by run.
    ///
    /// # Panics
    ///
    /// There is no such point.
    pub fn values(&self, load: Load, protocol: Protocol, quantity: Quantity) -> Vec<Option<f64>> {
        let (metric, unit) = quantity.metric();
        self.outcome(load, protocol).metric(metric).values.iter().map(|v| v.map(|v| v * unit)).collect()
    }

    /// All results of a cell.
    pub(super) fn outcome(&self, load: Load, protocol: Protocol) -> &Outcome {
        &self.cells.iter().find(|c| (c.0, c.1) == (load, protocol)).expect("a point of a sweep").2
    }

    /// Summary of a quantity over the runs that have it; `None` if none has.
    pub fn summary(&self, load: Load, protocol: Protocol, quantity: Quantity) -> Option<Summary> {
        let values: Vec<f64> = self.values(load, protocol, quantity).into_iter().flatten().collect();
        Summary::of(&values).ok()
    }

    /// Mean of a quantity; NaN if no run has it.
    pub fn mean(&self, load: Load, protocol: Protocol, quantity: Quantity) -> f64 {
        self.summary(load, protocol, quantity).map_or(f64::NAN, |s| s.mean)
    }

    /// Standard deviation of a quantity over the runs; `None` with fewer than two.
    pub fn deviation(&self, load: Load, protocol: Protocol, quantity: Quantity) -> Option<Summary> {
        let values: Vec<f64> = self.values(load, protocol, quantity).into_iter().flatten().collect();
        stats::deviation(&values)
    }

    /// Summary of `of`, applied to each run's values of the quantity by protocol, over the runs for
    /// which it has a value.
    pub fn by_run(
        &self,
        load: Load,
        quantity: Quantity,
        of: impl Fn(&dyn Fn(Protocol) -> Option<f64>) -> Option<f64>,
    ) -> Option<Summary> {
        let (metric, unit) = quantity.metric();
        let runs = self.outcome(load, CONTENDERS[0].protocol).runs;
        Summary::by_run(runs, |run| {
            of(&|protocol| self.outcome(load, protocol).metric(metric).values[run].map(|value| value * unit))
        })
    }

    /// Ratio of a quantity between two protocols, run by run.
    pub fn ratio(&self, load: Load, a: Protocol, b: Protocol, quantity: Quantity) -> Option<Summary> {
        let pairs = self.values(load, a, quantity).into_iter().zip(self.values(load, b, quantity));
        let (left, right): (Vec<f64>, Vec<f64>) = pairs.filter_map(|(a, b)| a.zip(b)).unzip();
        stats::ratio(&left, &right).ok()
    }

    /// Difference of a quantity between two protocols, run by run.
    pub fn difference(&self, load: Load, a: Protocol, b: Protocol, quantity: Quantity) -> Option<Summary> {
        let pairs = self.values(load, a, quantity).into_iter().zip(self.values(load, b, quantity));
        let (left, right): (Vec<f64>, Vec<f64>) = pairs.filter_map(|(a, b)| a.zip(b)).unzip();
        stats::paired(&left, &right).ok()
    }
}

/// The loads of both sweeps; the point that they share occurs once.
fn loads(senders: &[usize], rates: &[u64]) -> impl Iterator<Item = Load> {
    let first = senders.iter().map(|&senders| Load { senders, rate: SWEEP_RATE });
    let second = rates.iter().map(|&rate| Load { senders: 1, rate });
    first.chain(second.filter(|load| load.rate != SWEEP_RATE)).collect::<Vec<_>>().into_iter()
}

/// Total rates that are tried to find the capacity, in bytes per second of all senders: from below
/// the capacity of the longest path to above that of the shortest, with steps of a sixth.
pub const TRIED: [u64; 14] = [
    12_000, 14_000, 16_000, 19_000, 22_000, 26_000, 30_000, 35_000, 40_000, 47_000, 55_000, 64_000, 75_000,
    88_000,
];

/// See [`Sweeps::capacity`].
fn capacity(network: &Settings, senders: usize, tried: &[u64], work: &Work<'_>) -> Result<Summary, RunError> {
    let settings = network.clone().with("senders", senders);
    let point = RdcaPoint::new(&work.settings(&Rdca, &settings))?;
    let rates: Vec<u64> = tried.iter().map(|all| (all / senders as u64).max(1)).collect();
    let one = |run: usize| Ok(point.capacity(&rates, run as u64, work)?.0 / 1e3);
    let values: Vec<f64> = (0..work.runs).into_par_iter().map(one).collect::<Result<_, RunError>>()?;
    Summary::of(&values).map_err(|_| RunError::NotFinite { metric: "throughput_byte_per_s", run: 0 })
}
