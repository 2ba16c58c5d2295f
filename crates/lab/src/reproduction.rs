//! A paper as the report wants it: what was printed beside what came out, and how to have it again.
//! What fills these types are the papers' own modules; [`Paper::reproduce`] finds them.

use crate::errata::{self, Erratum};
use crate::experiment::{Experiment, ParameterError, Settings, settings};
use crate::open::Open;
use crate::plot::{ChartError, csv};
use crate::targets::{self, Kind, Target};
use crate::verdict::Verdict;
use crate::work::{Values, Work};

/// A paper.
#[derive(Clone, Copy, Debug)]
pub struct Paper {
    /// Its name on the command line, which is its experiment's.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Who wrote it, and where it stands.
    pub citation: &'static str,
    /// What is reproduced of it, in a sentence or two.
    pub about: &'static str,
    /// The page of this repository's documentation on it.
    pub page: &'static str,
    /// Runs of every random point, unless told otherwise.
    pub runs: usize,
    /// The same with [`Extent::Quick`].
    pub quick_runs: usize,
    /// Roughly how long a run takes, in microseconds of a processor of 2024, on average with those
    /// that need not be made because all of a point are the same: for progress over several papers.
    pub cost: u64,
    /// What it does not print, and what it may have been.
    pub open: &'static [Open],
    /// The setting of these in which it is reproduced, where that is not the defaults: what comes
    /// nearest to its numbers of its baselines (`lab robustness`), and says nothing of its own
    /// protocol.
    pub reference: &'static [(&'static str, &'static str)],
    /// Which numbers, by their names in the list of targets, are of what it compares its own
    /// protocol with.
    pub is_baseline: fn(&str) -> bool,
    /// Its experiment.
    pub experiment: &'static dyn Experiment,
    /// What it prints: see [`Paper::targets`].
    pub(crate) targets: &'static str,
    /// What is wrong or open in it: see [`Paper::errata`].
    pub(crate) errata: &'static str,
    /// Runs that `reproduce` makes.
    pub(crate) planned: fn(&Options) -> usize,
    /// Measures it again.
    pub(crate) reproduce: fn(Options, &Work<'_>) -> Result<Reproduction, ReproduceError>,
}

impl PartialEq for Paper {
    /// No two papers have one name.
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Paper {
    /// Every figure and claim that it prints.
    pub fn targets(&self) -> Vec<Target> {
        targets::read(self.targets)
    }

    /// What is wrong or open in it, and how we read it.
    pub fn errata(&self) -> Vec<Erratum> {
        errata::read(self.errata)
    }

    /// Runs that [`Paper::reproduce`] makes, each of which is told of.
    pub fn planned(&self, options: &Options) -> usize {
        (self.planned)(options)
    }

    /// Measures the paper again, on all threads; `watch` is told of every run that is over. What
    /// comes out depends on the options alone.
    ///
    /// # Errors
    ///
    /// A run that could not be made, a picture that could not be drawn.
    pub fn reproduce(
        &self,
        options: Options,
        watch: &(dyn Fn() + Sync),
    ) -> Result<Reproduction, ReproduceError> {
        self.reproduce_with(options, &self.reference(), watch)
    }

    /// The values of what it leaves open in which it is reproduced.
    pub fn reference(&self) -> Vec<(&'static str, String)> {
        self.reference.iter().map(|(key, value)| (*key, (*value).to_owned())).collect()
    }

    /// The same with other values of parameters that would have their defaults.
    ///
    /// # Errors
    ///
    /// As [`Paper::reproduce`].
    pub fn reproduce_with(
        &self,
        options: Options,
        values: &Values,
        watch: &(dyn Fn() + Sync),
    ) -> Result<Reproduction, ReproduceError> {
        let work = Work::new(options.runs_of(self), options.seed);
        (self.reproduce)(options, &work.watched(watch).with_values(values))
    }
}

/// How many points.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// The papers'.
    Full,
    /// A few, and shorter runs: minutes become seconds.
    Quick,
}

impl Extent {
    /// A few, or the papers'.
    pub const fn of(is_quick: bool) -> Self {
        if is_quick { Self::Quick } else { Self::Full }
    }
}

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// How many points.
    pub extent: Extent,
    /// Runs of every random point; the paper's own number if none is given.
    pub runs: Option<usize>,
    /// The root of all random streams.
    pub seed: u64,
}

impl Options {
    /// Runs of every random point of a paper.
    pub fn runs_of(&self, paper: &Paper) -> usize {
        let own = if self.extent == Extent::Quick { paper.quick_runs } else { paper.runs };
        self.runs.unwrap_or(own).max(1)
    }

    /// The command that makes all of a paper again.
    pub fn command(&self, paper: &Paper) -> String {
        format!("anabranch lab reproduce {} {}", paper.id, self.flags(paper))
    }

    /// These options on a command line, with the number of runs.
    pub fn flags(&self, paper: &Paper) -> String {
        let quick = if self.extent == Extent::Quick { "--quick " } else { "" };
        format!("{quick}--runs {} --seed {}", self.runs_of(paper), self.seed)
    }

    /// The command that runs points of a paper's experiment: `assignments` as `lab run` takes them.
    pub fn run_command(&self, paper: &Paper, runs: usize, assignments: &[String]) -> String {
        let is_said = |key: &str| assignments.iter().any(|a| a.split('=').next() == Some(key));
        let reference = paper
            .reference
            .iter()
            .filter(|(key, _)| !is_said(key))
            .map(|(key, value)| format!("{key}={value}"));
        let set: String =
            assignments.iter().cloned().chain(reference).map(|a| format!(" --set {a}")).collect();
        format!("anabranch lab run {}{set} --runs {runs} --seed {}", paper.id, self.seed)
    }
}

/// A paper, measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Reproduction {
    /// Which.
    pub paper: &'static Paper,
    /// What was asked for.
    pub options: Options,
    /// How it was done, and what is to be known to read it: paragraphs.
    pub notes: Vec<String>,
    /// The paper's tables and the numbers behind its figures.
    pub tables: Vec<Table>,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// Every claim.
    pub verdicts: Vec<Verdict>,
    /// What was put into the experiment.
    pub parameters: Vec<ParameterRow>,
    /// What is wrong or open in print.
    pub errata: Vec<Erratum>,
    /// In how many settings of what is open each claim holds, where that was measured: see
    /// [`crate::robustness`].
    pub map: Option<Figure>,
}

impl Reproduction {
    /// All as files: names and texts. The report itself is not among them.
    pub fn files(&self) -> Vec<(String, String)> {
        let figures = self.figures.iter().chain(&self.map).flat_map(|figure| {
            let Figure { name, svg, csv, .. } = figure;
            [(format!("{name}.svg"), svg.clone()), (format!("{name}.csv"), csv.clone())]
        });
        let tables = self.tables.iter().map(|table| (format!("{}.csv", table.name), table.csv.clone()));
        figures.chain(tables).chain([("verdicts.csv".to_owned(), self.verdicts_csv())]).collect()
    }

    fn verdicts_csv(&self) -> String {
        let mut text = csv::record(&[
            "id",
            "section",
            "claim",
            "printed",
            "unit",
            "found",
            "ci95",
            "runs",
            "ratio",
            "rule",
            "verdict",
            "exceeded",
            "parts",
            "contradicted",
            "instead",
            "erratum",
            "ours",
            "ours_ci95",
            "ours_above",
            "ours_above_ci95",
            "measured",
            "why",
        ]);
        let number = |value: Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
        for v in self.verdicts.iter().map(Verdict::record) {
            text += &csv::record(&[
                v.id.to_owned(),
                v.section.to_owned(),
                v.claim.to_owned(),
                number(v.printed),
                v.unit.to_owned(),
                number(v.found),
                number(v.ci95),
                v.runs.map(|runs| runs.to_string()).unwrap_or_default(),
                number(v.ratio),
                v.rule.unwrap_or_default().to_owned(),
                v.verdict.word().to_owned(),
                v.exceeded.to_string(),
                v.parts.map(|[so, all]| format!("{so} of {all}")).unwrap_or_default(),
                v.contradicted.to_string(),
                number(v.instead),
                v.erratum.unwrap_or_default().to_owned(),
                number(v.ours),
                number(v.ours_ci95),
                number(v.ours_above),
                number(v.ours_above_ci95),
                v.measured.to_owned(),
                v.why.unwrap_or_default().to_owned(),
            ]);
        }
        text
    }
}

/// A table, ours beside what is printed.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    /// Its name: that of its file.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// What is to be known to read it; may be empty.
    pub note: String,
    /// The head of each column.
    pub head: Vec<String>,
    /// Rows, each as long as the head.
    pub rows: Vec<Vec<String>>,
    /// The numbers with all their digits, as CSV.
    pub csv: String,
    /// The command that runs its points.
    pub command: String,
}

/// A figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// Its name: that of its files.
    pub name: String,
    /// Its number, and what it shows.
    pub caption: String,
    /// The picture.
    pub svg: String,
    /// The numbers in it, as CSV.
    pub csv: String,
    /// The command that runs its points.
    pub command: String,
}

/// A parameter of the experiment or a constant that is printed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParameterRow {
    /// Its name.
    pub name: String,
    /// What the paper prints; empty for one of ours.
    pub printed: String,
    /// What we take.
    pub ours: String,
    /// What it is.
    pub about: String,
}

/// Why there is no reproduction.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReproduceError {
    /// A run could not be made.
    #[error(transparent)]
    Run(#[from] crate::experiment::RunError),
    /// A picture could not be drawn.
    #[error(transparent)]
    Chart(#[from] ChartError),
}

/// The printed parameters of a paper, then those of its experiment with their defaults. `ours` says
/// what we take for a printed one, by its name in the list of targets.
pub fn parameters(
    experiment: &dyn Experiment,
    targets: &[Target],
    ours: impl Fn(&str) -> &'static str,
) -> Vec<ParameterRow> {
    let printed = targets.iter().filter(|t| t.kind == Kind::Param).map(|target| {
        let (value, unit) = (target.value.as_ref(), target.unit.as_deref().unwrap_or_default());
        let name = target.id.split_once('.').map_or(target.id.as_str(), |(_, name)| name);
        let name = name.strip_prefix("param.").unwrap_or(name);
        let note = target.note.as_deref().unwrap_or_default();
        ParameterRow {
            name: name.to_owned(),
            printed: value.map(|value| quantity(value, unit)).unwrap_or_default(),
            ours: ours(name).to_owned(),
            about: [target.section.as_str(), note].join("; ").trim_end_matches("; ").to_owned(),
        }
    });
    let own = experiment.parameters().iter().map(|p| ParameterRow {
        name: p.name.to_owned(),
        printed: String::new(),
        ours: p.default.to_owned(),
        about: p.about.to_owned(),
    });
    printed.chain(own).collect()
}

/// A printed parameter as one writes it: 100 Mbit/s, and not 100000000.0 bit/s.
fn quantity(value: &toml::Value, unit: &str) -> String {
    let one = |value: &toml::Value| {
        let number = value.as_float().or(value.as_integer().map(|n| n as f64));
        let steps: &[(f64, &str)] = match unit {
            "bit/s" => &[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")],
            "byte" => &[(1e6, "MB"), (1e3, "kB")],
            _ => &[],
        };
        let of = |number: f64| {
            let step = steps.iter().find(|(factor, _)| number.is_finite() && number.abs() >= *factor);
            let (factor, unit) = step.copied().unwrap_or((1.0, unit));
            format!("{} {unit}", crate::verdict::number(number / factor)).trim().to_owned()
        };
        match (number, value) {
            (Some(number), _) if unit == "s" && 0.0 < number && number < 1.0 => {
                format!("{} ms", crate::verdict::number(1e3 * number))
            }
            (Some(number), _) => of(number),
            (None, toml::Value::String(text)) => format!("{text} {unit}").trim().to_owned(),
            (None, other) => format!("{other} {unit}").trim().to_owned(),
        }
    };
    match value {
        toml::Value::Array(all) => all.iter().map(one).collect::<Vec<_>>().join(", "),
        value => one(value),
    }
}

/// What tells settings from the defaults, as `lab run` takes it: `key=value`, in the experiment's
/// order. Several settings become axes of a grid, which is their hull.
pub fn assignments(experiment: &dyn Experiment, all: &[Vec<(&'static str, String)>]) -> Vec<String> {
    let defaults = resolved_defaults(experiment);
    let mut assignments = Vec::new();
    for (name, default) in &defaults {
        let mut values: Vec<&str> = Vec::new();
        for point in all {
            let value = point.iter().find(|(n, _)| n == name).map_or(default.as_str(), |(_, v)| v);
            if !values.contains(&value) {
                values.push(value);
            }
        }
        if values != [default.as_str()] && !values.is_empty() {
            assignments.push(format!("{name}={}", values.join(",")));
        }
    }
    assignments
}

fn resolved_defaults(experiment: &dyn Experiment) -> Vec<(&'static str, String)> {
    let point = experiment.point(&Settings::defaults(experiment)).expect("the defaults can be");
    point.parameters()
}

/// Whether `lab run` takes these assignments.
///
/// # Errors
///
/// As `lab run` would say.
pub fn check(experiment: &'static dyn Experiment, assignments: &[String]) -> Result<usize, ParameterError> {
    let points = settings(experiment, assignments)?;
    points.iter().try_for_each(|point| experiment.point(point).map(drop))?;
    Ok(points.len())
}
