//! The two sweeps of section 4, measured: by senders at 4 kB/s each, and by the rate of one sender.

use rayon::prelude::*;

use super::{Protocol, Rdca, RdcaPoint, rate_text};
use crate::experiment::{self, Outcome, RunError, Settings};
use crate::stats::{self, Summary};
use crate::work::Work;

/// A protocol of the figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contender {
    /// What carries the packets.
    pub protocol: Protocol,
    /// Its name in reports.
    pub title: &'static str,
    /// Its name in the list of targets; none where the paper means another.
    pub target: Option<&'static str>,
}

/// All, ours first. The paper's "proposed protocol" is judged by RDCA as it is printed.
pub const CONTENDERS: [Contender; 5] = [
    Contender { protocol: Protocol::Rdca, title: "RDCA, ours", target: None },
    Contender { protocol: Protocol::RdcaPaper, title: "RDCA, the paper's", target: Some("proposed") },
    Contender { protocol: Protocol::NewReno, title: "NewReno", target: Some("newreno") },
    Contender { protocol: Protocol::Westwood, title: "Westwood+", target: Some("westwood") },
    Contender { protocol: Protocol::Elfn, title: "ELFN", target: Some("elfn") },
];

/// The three that the paper compares with.
pub const TCPS: [Protocol; 3] = [Protocol::NewReno, Protocol::Westwood, Protocol::Elfn];

/// What is offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Load {
    /// Nodes that send.
    pub senders: usize,
    /// Octets per second of each.
    pub rate: u64,
}

/// A quantity that the paper's figures show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantity {
    /// kB/s of whole packets at the sink, of all senders (erratum H1: not packets per second).
    Throughput,
    /// kB/s of whole packets made, of all senders.
    Offered,
    /// Of the data packets that left the senders, the share that came to the sink, in per cent.
    DeliveryRatio,
    /// Seconds from a packet's first sending to the sink's application.
    Delay,
    /// Joules drawn by all radios, per 1000 packets (erratum H19: a total of the network).
    Energy,
    /// Control packets of the transport per data packet.
    Control,
    /// Data packets that left a sender and did not come to the sink.
    Lost,
    /// Jain's index over the senders.
    Fairness,
}

impl Quantity {
    /// Of the others less is better.
    pub(super) fn is_better_if_more(self) -> bool {
        matches!(self, Self::DeliveryRatio | Self::Throughput)
    }

    /// Its metric, and what a unit of that is in the quantity's own.
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

/// How many points.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grid {
    /// 1 to 7 senders, ten rates: the paper's.
    Full,
    /// What the tables need, and four rates; runs of 40 s, and the capacity by every third rate.
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

/// The rate of each sender in the sweep by senders, octets per second (erratum H20: it follows from
/// Table 2).
pub const SWEEP_RATE: u64 = 4000;

/// Both sweeps.
#[derive(Clone, PartialEq, Debug)]
pub struct Sweeps {
    senders: Vec<usize>,
    rates: Vec<u64>,
    cells: Vec<(Load, Protocol, Outcome)>,
    /// kB/s, by number of senders.
    capacity: Vec<Summary>,
}

impl Sweeps {
    /// Runs every cell, `runs` times (at least once), and measures the capacity in at most five of
    /// them: one of each placement.
    ///
    /// # Errors
    ///
    /// The first run that could not be made.
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

    /// Runs that [`Sweeps::run`] makes.
    pub fn planned(grid: Grid, runs: usize) -> usize {
        let (senders, rates) = (grid.senders(), grid.rates());
        let cells = loads(&senders, &rates).count() * CONTENDERS.len();
        cells * runs + senders.len() * grid.tried().len() * runs.min(5)
    }

    /// The loads of the sweep by senders.
    pub fn by_senders(&self) -> Vec<Load> {
        self.senders.iter().map(|&senders| Load { senders, rate: SWEEP_RATE }).collect()
    }

    /// The loads of the sweep by rate.
    pub fn by_rate(&self) -> Vec<Load> {
        self.rates.iter().map(|&rate| Load { senders: 1, rate }).collect()
    }

    /// What datagrams bring to the sink at the best of the constant rates that were tried, kB/s of
    /// so many senders.
    ///
    /// # Panics
    ///
    /// If there is no such point.
    pub fn capacity(&self, senders: usize) -> Summary {
        let i = self.senders.iter().position(|&n| n == senders).expect("a point of the sweep");
        self.capacity[i]
    }

    /// A quantity of each run, in order.
    ///
    /// # Panics
    ///
    /// If there is no such point.
    pub fn values(&self, load: Load, protocol: Protocol, quantity: Quantity) -> Vec<Option<f64>> {
        let (metric, unit) = quantity.metric();
        self.outcome(load, protocol).metric(metric).values.iter().map(|v| v.map(|v| v * unit)).collect()
    }

    /// All of a cell.
    pub(super) fn outcome(&self, load: Load, protocol: Protocol) -> &Outcome {
        &self.cells.iter().find(|c| (c.0, c.1) == (load, protocol)).expect("a point of a sweep").2
    }

    /// A quantity over those runs that have it; `None` if none has.
    pub fn summary(&self, load: Load, protocol: Protocol, quantity: Quantity) -> Option<Summary> {
        let values: Vec<f64> = self.values(load, protocol, quantity).into_iter().flatten().collect();
        Summary::of(&values).ok()
    }

    /// Its mean; no number if no run has one.
    pub fn mean(&self, load: Load, protocol: Protocol, quantity: Quantity) -> f64 {
        self.summary(load, protocol, quantity).map_or(f64::NAN, |s| s.mean)
    }

    /// Its standard deviation over the runs; `None` below two.
    pub fn deviation(&self, load: Load, protocol: Protocol, quantity: Quantity) -> Option<Summary> {
        let values: Vec<f64> = self.values(load, protocol, quantity).into_iter().flatten().collect();
        stats::deviation(&values)
    }

    /// What `of` makes of the quantity's values in each run, by protocol, over those runs of which
    /// it makes something.
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

    /// A quantity of one protocol as a multiple of another's, run by run.
    pub fn ratio(&self, load: Load, a: Protocol, b: Protocol, quantity: Quantity) -> Option<Summary> {
        let pairs = self.values(load, a, quantity).into_iter().zip(self.values(load, b, quantity));
        let (left, right): (Vec<f64>, Vec<f64>) = pairs.filter_map(|(a, b)| a.zip(b)).unzip();
        stats::ratio(&left, &right).ok()
    }

    /// A quantity of one protocol less another's, run by run.
    pub fn difference(&self, load: Load, a: Protocol, b: Protocol, quantity: Quantity) -> Option<Summary> {
        let pairs = self.values(load, a, quantity).into_iter().zip(self.values(load, b, quantity));
        let (left, right): (Vec<f64>, Vec<f64>) = pairs.filter_map(|(a, b)| a.zip(b)).unzip();
        stats::paired(&left, &right).ok()
    }
}

/// The point that both sweeps share comes once.
fn loads(senders: &[usize], rates: &[u64]) -> impl Iterator<Item = Load> {
    let first = senders.iter().map(|&senders| Load { senders, rate: SWEEP_RATE });
    let second = rates.iter().map(|&rate| Load { senders: 1, rate });
    first.chain(second.filter(|load| load.rate != SWEEP_RATE)).collect::<Vec<_>>().into_iter()
}

/// Octets per second of all senders that are tried to find the capacity: from below what the
/// longest way carries to above what the shortest does, a sixth apart.
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
