//! Send buffers under one budget: every policy with the same information, from one segment of
//! memory for each connection up to plenty, while connections come and go or a peer does not read.
//!
//! The fair share of a connection is what it carries when it has an n-th of the memory all the
//! time, in a paired run.

use anabranch_core::sockbuf::PidConfig;
use anabranch_sim::scenario::units::Size;
use rayon::prelude::*;

use anabranch_lab::experiment::{RunError, Settings, plain};
use anabranch_lab::sockbuf::{Constants, Sockbuf, SockbufPoint, Tuner};

/// Bytes of payload of a segment.
const SEGMENT: u64 = 1_460;
/// From one coming or going of a connection to the next.
const CHURN: &str = "7s";
/// Bit/s of all connections from which on links count as full: four fifths of what the three carry,
/// 15 Mbit/s on average.
const FULL: f64 = 12e6;
/// Flows of the striped connection.
const FLOWS: usize = 3;

/// Who divides the memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Divider {
    /// The controller with our constants and our guarantee.
    Pid,
    /// The controller with the paper's, the rest divided by bandwidth.
    PidPaper,
    /// Any other policy.
    Other(Tuner),
}

/// All of them.
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
    /// As the paper prints it, with which connections may starve.
    pub fn is_printed(self) -> bool {
        matches!(self, Self::PidPaper | Self::Other(Tuner::Atbt))
    }
}

/// What link layers report.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Information {
    /// Their rate at each moment.
    Exact,
    /// A sample every 100 ms.
    Sampled {
        /// From a sample to its use, ms.
        delay: u64,
        /// Probability that a sample is lost.
        loss: f64,
        /// The share by which a sample is wrong at most.
        noise: f64,
    },
    /// Nothing.
    Off,
}

impl Information {
    /// Exact reports; samples with the least and greatest delay, loss and noise, and one between;
    /// no reports.
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

/// What happens to connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// They stay.
    Nothing,
    /// The single ones come and go.
    Churn,
    /// The peer of one stops reading.
    Stalled,
}

/// All events.
pub const EVENTS: [Event; 3] = [Event::Nothing, Event::Churn, Event::Stalled];

/// One cell of the grid.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cell {
    /// Who divides.
    pub divider: Divider,
    /// What is reported.
    pub information: Information,
    /// What happens.
    pub event: Event,
    /// Connections, the striped one among them: at least 2.
    pub connections: usize,
    /// Memory in segments for each connection: at least 1.
    pub segments: u64,
}

/// What a cell showed.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// What was run.
    pub cell: Cell,
    /// Bit/s of all connections.
    pub throughput: f64,
    /// The same with fair shares.
    pub fair: f64,
    /// What each connection carries by its fair share, the striped one first; without those that a
    /// peer holds up.
    pub shares: Vec<f64>,
    /// The limits together were never above the memory, no buffer above its limit, and no
    /// connection was refused.
    pub within: bool,
}

impl Case {
    /// The least of the shares.
    pub fn least(&self) -> f64 {
        self.shares.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// With fair shares of the memory the links are nearly full, so that TCP decides who gets how
    /// much, and no longer the memory.
    pub fn is_full(&self) -> bool {
        self.fair >= FULL
    }

    /// The memory is respected, and each connection has at least half of its fair share, if that is
    /// a matter of memory.
    pub fn fine(&self) -> bool {
        self.within && (self.least() >= 0.5 || self.is_full())
    }
}

impl Cell {
    /// The grid. Only our controller and the products have a cell for each kind of reports: the
    /// paper's constants get the first, and the others read none.
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

    /// Bytes of all buffers together.
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

    /// Where the same connections have the same memory and the same happens to them.
    fn place(&self) -> (Event, usize, u64) {
        (self.event, self.connections, self.segments)
    }

    /// Connections that are judged: without those that a peer holds up.
    fn judged(&self) -> usize {
        self.connections - usize::from(self.event == Event::Stalled)
    }

    /// Bit/s of each connection with an n-th of the memory, the mean of some runs.
    fn fair(&self, seed: u64, runs: u64) -> Result<Vec<f64>, RunError> {
        let fixed = self.memory() / self.connections as u64;
        let settings = self.settings().with("tuner", Tuner::Fixed.word()).with("fixed", plain(&Size(fixed)));
        Ok(self.rates(&settings.with("reports", "on"), seed, runs)?.0)
    }

    /// Bit/s of each connection, the mean of some runs; and whether the memory was respected.
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

/// Runs each cell `runs` times, in parallel, and reports each case to `tell` when its runs are
/// done.
///
/// # Errors
///
/// A network that the simulator refuses.
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
