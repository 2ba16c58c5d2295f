//! Section 4.2, measured: the four settings of memory and connections, and one of them with other
//! losses.

use anabranch_scenario::units::Size;
use rayon::prelude::*;

use super::Sockbuf;
use super::config::{Constants, Tuner};
use crate::experiment::values::{plain, probability};
use crate::experiment::{self, Outcome, RunError, Settings};
use crate::stats::{self, Summary};
use crate::work::Work;

/// Mechanism that divides the memory, in the figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contender {
    /// The controller with our constants; the other connections share by bandwidth times RTT.
    Ours,
    /// The controller with the paper's constants, and shares by bandwidth.
    Paper,
    /// ATBT as Figures 1 and 2 print it, which the paper compares with.
    Atbt,
    /// ATBT as its authors describe it.
    AtbtOriginal,
}

/// All mechanisms, ours first. The paper's "proposed mechanism" is judged by the controller with
/// its constants.
pub const CONTENDERS: [Contender; 4] =
    [Contender::Ours, Contender::Paper, Contender::Atbt, Contender::AtbtOriginal];

impl Contender {
    /// Name in reports.
    pub fn title(self) -> &'static str {
        match self {
            Self::Ours => "PID, ours",
            Self::Paper => "PID, the paper's constants",
            Self::Atbt => "ATBT",
            Self::AtbtOriginal => "ATBT, the original",
        }
    }

    fn settings(self, base: &Settings) -> Settings {
        let controlled = |gains: Constants, excess| {
            let base = base.clone().with("tuner", Tuner::Pid.word());
            base.with("gains", gains.word()).with("excess", excess)
        };
        match self {
            Self::Ours => controlled(Constants::Damped, "product"),
            Self::Paper => controlled(Constants::Paper, "bandwidth"),
            Self::Atbt => base.clone().with("tuner", Tuner::Atbt.word()),
            Self::AtbtOriginal => base.clone().with("tuner", Tuner::AtbtOriginal.word()),
        }
    }
}

/// Memory and number of connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Memory in bytes (Table 1).
    pub memory: u64,
    /// Number of flows of the host, including the three of the striped connection.
    pub connections: usize,
}

/// Table 1's high memory.
pub const HIGH: u64 = 100_000_000;
/// Table 1's low memory.
pub const LOW: u64 = 2_000_000;

/// All four settings, in the order of the figures.
pub const SETTINGS: [Setting; 4] = [
    Setting { memory: HIGH, connections: 4 },
    Setting { memory: HIGH, connections: 8 },
    Setting { memory: LOW, connections: 4 },
    Setting { memory: LOW, connections: 8 },
];

impl Setting {
    /// Description.
    pub fn title(self) -> String {
        format!("{} connections, {} MB", self.connections, self.memory / 1_000_000)
    }

    fn of(self, base: Settings) -> Settings {
        base.with("memory", plain(&Size(self.memory))).with("connections", self.connections)
    }
}

/// Losses tried with low memory and four connections, in addition to the default.
pub const LOSSES: [f64; 6] = [0.0, 0.0002, 0.001, 0.002, 0.01, 0.02];

/// Extent of the measurements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grid {
    /// Runs of 400 s, as in the paper.
    Full,
    /// Runs of 60 s with a change every 15 s, and only the smallest and largest loss.
    Quick,
}

impl Grid {
    fn losses(self) -> Vec<f64> {
        match self {
            Self::Full => LOSSES.to_vec(),
            Self::Quick => vec![LOSSES[0], LOSSES[LOSSES.len() - 1]],
        }
    }

    pub(super) fn base(self) -> Settings {
        let of = |duration, step| {
            Settings::defaults(&Sockbuf).with("duration", duration).with("bandwidth_step", step)
        };
        match self {
            Self::Full => of("400s", "50s"),
            Self::Quick => of("60s", "15s"),
        }
    }
}

/// Loss of the four settings.
fn usual_loss(work: &Work<'_>) -> Result<f64, RunError> {
    let settings = work.settings(&Sockbuf, &Settings::defaults(&Sockbuf));
    Ok(probability("loss", settings.text("loss"))?)
}

/// All measurements.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    cells: Vec<((Setting, Contender), Outcome)>,
    losses: Vec<((f64, Contender), Outcome)>,
    /// Loss of the cells of the four settings.
    usual_loss: f64,
}

/// Name of a metric of the experiment.
pub type Name = &'static str;

/// Sent throughput of the striped connection.
pub const SENT: Name = "striped_throughput_sent_bit_per_s";
/// Received throughput of the striped connection.
pub const RECEIVED: Name = "striped_throughput_received_bit_per_s";
/// Throughput of all single connections.
pub const SINGLE: Name = "single_throughput_bit_per_s";
/// Mean size of the striped connection's buffer.
pub const BUFFER: Name = "striped_buffer_mean_bytes";
/// Peak of all limits together.
pub const PEAK: Name = "pool_peak_bytes";

impl Measured {
    /// Makes `work.runs` runs (at least one) of every cell.
    ///
    /// # Errors
    ///
    /// The first failed run.
    pub fn run(grid: Grid, work: &Work<'_>) -> Result<Self, RunError> {
        let run = |settings: &Settings| experiment::run(&Sockbuf, settings, work);
        let pairs = SETTINGS.iter().flat_map(|s| CONTENDERS.map(|c| (*s, c))).collect::<Vec<_>>();
        let cells = pairs.into_par_iter().map(|(setting, contender)| {
            Ok(((setting, contender), run(&contender.settings(&setting.of(grid.base())))?))
        });
        let losses = grid.losses();
        let pairs = losses.iter().flat_map(|l| CONTENDERS.map(|c| (*l, c))).collect::<Vec<_>>();
        let losses = pairs.into_par_iter().map(|(loss, contender)| {
            let base = SETTINGS[2].of(grid.base()).with("loss", loss);
            Ok(((loss, contender), run(&contender.settings(&base))?))
        });
        Ok(Self {
            cells: cells.collect::<Result<_, RunError>>()?,
            losses: losses.collect::<Result<_, RunError>>()?,
            usual_loss: usual_loss(work)?,
        })
    }

    /// Number of runs that [`Measured::run`] makes.
    pub fn planned(grid: Grid, runs: usize) -> usize {
        (SETTINGS.len() + grid.losses().len()) * CONTENDERS.len() * runs
    }

    /// Results of a cell.
    ///
    /// # Panics
    ///
    /// The setting is not one of [`SETTINGS`].
    pub fn outcome(&self, setting: Setting, contender: Contender) -> &Outcome {
        let found = self.cells.iter().find(|(cell, _)| *cell == (setting, contender));
        &found.expect("every cell was run").1
    }

    /// Summary of a metric in a cell.
    pub fn summary(&self, setting: Setting, contender: Contender, name: Name) -> Option<Summary> {
        self.outcome(setting, contender).metric(name).summary
    }

    /// Losses tried with four connections and low memory, including the default, ascending.
    pub fn losses(&self) -> Vec<f64> {
        let tried = self.losses.iter().filter(|(cell, _)| cell.1 == CONTENDERS[0]).map(|(cell, _)| cell.0);
        let mut losses: Vec<f64> = tried.chain([self.usual_loss]).collect();
        losses.sort_by(f64::total_cmp);
        losses
    }

    /// Results with four connections and low memory at a loss.
    pub fn with_loss(&self, loss: f64, contender: Contender) -> &Outcome {
        let found = self.losses.iter().find(|(cell, _)| *cell == (loss, contender));
        found.map_or_else(|| self.outcome(SETTINGS[2], contender), |(_, outcome)| outcome)
    }

    /// Difference of a metric between two mechanisms, run by run.
    pub fn difference(
        &self,
        setting: Setting,
        (a, b): (Contender, Contender),
        name: Name,
    ) -> Option<Summary> {
        let [a, b] = [a, b].map(|c| values(self.outcome(setting, c), name));
        stats::paired(&a, &b).ok()
    }

    /// Ratio of a metric between two mechanisms minus 1, over paired runs.
    pub fn gain(&self, setting: Setting, (a, b): (Contender, Contender), name: Name) -> Option<Summary> {
        gain(self.outcome(setting, a), self.outcome(setting, b), name)
    }
}

/// As [`Measured::gain`].
pub fn gain(a: &Outcome, b: &Outcome, name: Name) -> Option<Summary> {
    let ratio = stats::ratio(&values(a, name), &values(b, name)).ok()?;
    Some(ratio.scaled(1.0, -1.0))
}

fn values(outcome: &Outcome, name: Name) -> Vec<f64> {
    outcome.metric(name).values.iter().map(|value| value.unwrap_or(f64::NAN)).collect()
}
