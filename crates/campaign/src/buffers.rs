//! Send buffers under one memory budget. Every policy gets the same information, with memory from
//! one segment per connection up to plenty, while connections come and go or a peer stops reading.
//!
//! The fair share of a connection is its throughput in a paired run in which it constantly has 1/n
//! of the memory.

use anabranch_core::sockbuf::PidConfig;
use anabranch_scenario::units::Size;
use rayon::prelude::*;

use anabranch_lab::experiment::{RunError, Settings, plain};
use anabranch_lab::sockbuf::{Constants, Sockbuf, SockbufPoint, Tuner};

/// Payload of a segment in bytes.
const SEGMENT: u64 = 1_460;
/// Interval between arrivals and departures of connections.
const CHURN: &str = "7s";
/// Throughput of all connections in bit/s from which the links count as full: four fifths of the
/// three links' average total of 15 Mbit/s.
const FULL: f64 = 12e6;
/// Number of subflows of the striped connection.
const FLOWS: usize = 3;

/// Policy that divides the memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Divider {
    /// The controller with our constants and our guarantee.
    Pid,
    /// The controller with the paper's constants; the remaining memory is divided by bandwidth.
    PidPaper,
    /// Any other policy.
    Other(Tuner),
}

/// All policies.
pub const DIVIDERS: [Divider; 7] = [
    Divider::Pid,
    Divider::PidPaper,
    Divider::Other(Tuner::Product),
    Divider::Other(Tuner::Atbt),
    Divider::Other(Tuner::AtbtOriginal),
    Divider::Other(Tuner::RightSizing),
    Divider::Other(Tuner::Fixed),
];

impl Divider {
    /// Whether the policy is as printed in its paper, which may let connections starve.
    pub fn is_printed(self) -> bool {
        matches!(self, Self::PidPaper | Self::Other(Tuner::Atbt))
    }
}

/// Link-layer information that a policy receives.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Information {
    /// The rate at every moment.
    Exact,
    /// A sample every 100 ms.
    Sampled {
        /// Delay from the sample to its use, in ms.
        delay: u64,
        /// Probability that a sample is lost.
        loss: f64,
        /// Maximum relative error of a sample.
        noise: f64,
    },
    /// No reports.
    Off,
}

impl Information {
    /// Exact reports; samples with the smallest, a medium and the largest delay, loss and error; no
    /// reports.
    pub fn all() -> Vec<Self> {
        let mut all = vec![Self::Exact];
        for delay in [10, 500] {
            for loss in [0.0, 0.2] {
                all.extend([0.0, 0.2].map(|noise| Self::Sampled { delay, loss, noise }));
            }
        }
        all.push(Self::Sampled { delay: 100, loss: 0.05, noise: 0.1 });
        all.push(Self::Off);
        all
    }
}

/// What happens to connections during a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// Nothing: they stay.
    Nothing,
    /// Single-path connections come and go.
    Churn,
    /// The peer of one connection stops reading.
    Stalled,
}

/// All events.
pub const EVENTS: [Event; 3] = [Event::Nothing, Event::Churn, Event::Stalled];

/// One cell of the grid.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cell {
    /// Policy that divides the memory.
    pub divider: Divider,
    /// Link-layer information.
    pub information: Information,
    /// What happens to connections.
    pub event: Event,
    /// Number of connections including the striped one, at least 2.
    pub connections: usize,
    /// Memory in segments per connection, at least 1.
    pub segments: u64,
}

/// Result of a cell.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// The cell.
    pub cell: Cell,
    /// Throughput of all connections in bit/s.
    pub throughput: f64,
    /// Throughput of all connections with fair shares of the memory, in bit/s.
    pub fair: f64,
    /// Throughput of each connection divided by its fair share, the striped one first; without
    /// connections whose peer stopped reading.
    pub shares: Vec<f64>,
    /// Whether the limits together never exceeded the memory, no buffer exceeded its limit, and no
    /// connection was refused.
    pub within: bool,
}

impl Case {
    /// The smallest share.
    pub fn least(&self) -> f64 {
        self.shares.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Whether the links are nearly full even with fair shares of the memory. Then TCP and not the
    /// memory determines the throughput of each connection.
    pub fn is_full(&self) -> bool {
        self.fair >= FULL
    }

    /// Whether the memory was respected and, unless the links are full, each connection had at
    /// least half of its fair share.
    pub fn fine(&self) -> bool {
        self.within && (self.least() >= 0.5 || self.is_full())
    }
}

impl Cell {
    /// All cells of the grid. Only our controller and the product policy run with each kind of
    /// reports. The controller with the paper's constants runs with the first kind; the other
    /// policies use no reports.
    pub fn all(information: &[Information], connections: &[usize], segments: &[u64]) -> Vec<Self> {
        let mut all = Vec::new();
        for divider in DIVIDERS {
            let reads = matches!(divider, Divider::Pid | Divider::Other(Tuner::Product));
            for &information in if reads { information } else { &information[..1] } {
                for event in EVENTS {
                    for &connections in connections {
                        for &segments in segments {
                            all.push(Self { divider, information, event, connections, segments });
                        }
                    }
                }
            }
        }
        all
    }

    /// Size of all buffers together in bytes.
    fn memory(&self) -> u64 {
        self.connections as u64 * self.segments * SEGMENT
    }

    fn settings(&self) -> Settings {
        let mut settings = Settings::defaults(&Sockbuf)
            .with("connections", self.connections - 1 + FLOWS)
            .with("memory", plain(&Size(self.memory())))
            .with("duration", "50s")
            .with("bandwidth_step", "15s");
        let pid = |gains: Constants, excess, guarantee| {
            vec![
                ("tuner", "pid".to_owned()),
                ("gains", gains.word().to_owned()),
                ("excess", excess),
                guarantee,
            ]
        };
        let divider = match self.divider {
            Divider::Pid => {
                let guarantee = ("guarantee", PidConfig::default().guarantee.to_string());
                pid(Constants::Damped, "product".to_owned(), guarantee)
            }
            Divider::PidPaper => pid(Constants::Paper, "bandwidth".to_owned(), ("guarantee", "0".to_owned())),
            Divider::Other(tuner) => vec![("tuner", tuner.word().to_owned())],
        };
        let information = match self.information {
            Information::Exact => vec![("reports", "on".to_owned())],
            Information::Sampled { delay, loss, noise } => vec![
                ("reports", "sampled".to_owned()),
                ("report_delay", format!("{delay}ms")),
                ("report_loss", loss.to_string()),
                ("report_noise", noise.to_string()),
            ],
            Information::Off => vec![("reports", "off".to_owned())],
        };
        let event = match self.event {
            Event::Nothing => None,
            Event::Churn => Some(("churn", CHURN.to_owned())),
            Event::Stalled => Some(("stalled", "1".to_owned())),
        };
        for (key, value) in divider.into_iter().chain(information).chain(event) {
            settings = settings.with(key, value);
        }
        settings
    }

    /// Key of cells with equal connections, memory and events, which share their fair shares.
    fn place(&self) -> (Event, usize, u64) {
        (self.event, self.connections, self.segments)
    }

    /// Number of connections that are judged: those whose peer keeps reading.
    fn judged(&self) -> usize {
        self.connections - usize::from(self.event == Event::Stalled)
    }

    /// Throughput of each connection with 1/n of the memory in bit/s, mean over the runs.
    fn fair(&self, seed: u64, runs: u64) -> Result<Vec<f64>, RunError> {
        let fixed = self.memory() / self.connections as u64;
        let settings = self.settings().with("tuner", Tuner::Fixed.word()).with("fixed", plain(&Size(fixed)));
        Ok(self.rates(&settings.with("reports", "on"), seed, runs)?.0)
    }

    /// Throughput of each connection in bit/s, mean over the runs, and whether the memory was
    /// respected.
    fn rates(&self, settings: &Settings, seed: u64, runs: u64) -> Result<(Vec<f64>, bool), RunError> {
        let (memory, point) = (self.memory(), SockbufPoint::new(settings)?);
        let (mut rates, mut within) = (vec![0.0; self.judged()], true);
        for run in 0..runs {
            let outcome = point.outcome(seed, run)?;
            let peaks = outcome.buffers;
            within &= peaks.peak_limits <= memory && peaks.overfull == 0 && peaks.refused == 0;
            let each = [outcome.striped_received()].into_iter().chain(outcome.single_rates());
            rates.iter_mut().zip(each).for_each(|(sum, rate)| *sum += rate / runs as f64);
        }
        Ok((rates, within))
    }
}

/// Runs each cell `runs` times, in parallel, and passes each finished case to `tell`.
///
/// # Errors
///
/// The simulator refuses a network.
pub fn campaign(
    cells: &[Cell],
    seed: u64,
    runs: u64,
    tell: impl Fn(&Case) + Sync,
) -> Result<Vec<Case>, RunError> {
    let mut places: Vec<&Cell> = Vec::new();
    for cell in cells {
        if places.iter().all(|known| known.place() != cell.place()) {
            places.push(cell);
        }
    }
    let fair = places.par_iter().map(|cell| Ok((cell.place(), cell.fair(seed, runs)?)));
    let fair = fair.collect::<Result<Vec<_>, RunError>>()?;
    let one = |cell: &Cell| {
        let (rates, within) = cell.rates(&cell.settings(), seed, runs)?;
        let (_, fair) = fair.iter().find(|(place, _)| *place == cell.place()).expect("each place was run");
        let case = Case {
            cell: *cell,
            throughput: rates.iter().sum(),
            fair: fair.iter().sum(),
            shares: rates.iter().zip(fair).map(|(own, fair)| own / fair).collect(),
            within,
        };
        tell(&case);
        Ok(case)
    };
    cells.par_iter().map(one).collect()
}
