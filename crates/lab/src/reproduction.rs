//! A paper in the form that the report needs: printed results beside ours, and commands that repeat
//! them. The papers' own modules fill these types; [`Paper::reproduce`] calls them.

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
    /// Name on the command line; equals the name of its experiment.
    pub id: &'static str,
    /// Title.
    pub title: &'static str,
    /// Authors and publication.
    pub citation: &'static str,
    /// What is reproduced, in one or two sentences.
    pub about: &'static str,
    /// Page of the documentation about the paper.
    pub page: &'static str,
    /// Default number of runs of every point with random input.
    pub runs: usize,
    /// Default number of runs with [`Extent::Quick`].
    pub quick_runs: usize,
    /// Average duration of a run in microseconds of a processor of 2024, including runs that are
    /// skipped because all runs of a point are equal. It weights the progress over several papers.
    pub cost: u64,
    /// Parameters that the paper does not print, with plausible ranges.
    pub open: &'static [Open],
    /// Values of these parameters for the reproduction, if they differ from the defaults. They are
    /// chosen to match the paper's numbers of its baselines (`lab robustness`), regardless of its
    /// own protocol.
    pub reference: &'static [(&'static str, &'static str)],
    /// Whether a number of the list of targets belongs to a baseline of the paper.
    pub is_baseline: fn(&str) -> bool,
    /// Experiment of the paper.
    pub experiment: &'static dyn Experiment,
    /// Text of the list of targets: see [`Paper::targets`].
    pub(crate) targets: &'static str,
    /// Text of the list of errata: see [`Paper::errata`].
    pub(crate) errata: &'static str,
    /// Number of runs that `reproduce` makes.
    pub(crate) planned: fn(&Options) -> usize,
    /// Measures the paper's results.
    pub(crate) reproduce: fn(Options, &Work<'_>) -> Result<Reproduction, ReproduceError>,
}

impl PartialEq for Paper {
    /// Names of papers are unique.
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Paper {
    /// All published figures and claims.
    pub fn targets(&self) -> Vec<Target> {
        targets::read(self.targets)
    }

    /// Errors and gaps in the paper, and how we read them.
    pub fn errata(&self) -> Vec<Erratum> {
        errata::read(self.errata)
    }

    /// Number of runs that [`Paper::reproduce`] makes and reports.
    pub fn planned(&self, options: &Options) -> usize {
        (self.planned)(options)
    }

    /// Measures the paper's results on all threads; `watch` is called after every run. The results
    /// depend only on the options.
    ///
    /// # Errors
    ///
    /// A run failed, or a figure could not be drawn.
    pub fn reproduce(
        &self,
        options: Options,
        watch: &(dyn Fn() + Sync),
    ) -> Result<Reproduction, ReproduceError> {
        self.reproduce_with(options, &self.reference(), watch)
    }

    /// Values of the open parameters for the reproduction.
    pub fn reference(&self) -> Vec<(&'static str, String)> {
        self.reference.iter().map(|(key, value)| (*key, (*value).to_owned())).collect()
    }

    /// Like [`Paper::reproduce`], with other values for parameters that would have their defaults.
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

/// Number of points to measure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// As many as in the papers.
    Full,
    /// Few points and shorter runs: seconds instead of minutes.
    Quick,
}

impl Extent {
    /// `Quick` or `Full`.
    pub const fn of(is_quick: bool) -> Self {
        if is_quick { Self::Quick } else { Self::Full }
    }
}

/// Options of a reproduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Number of points.
    pub extent: Extent,
    /// Number of runs of every point with random input; `None` means the paper's default.
    pub runs: Option<usize>,
    /// Seed of all runs.
    pub seed: u64,
}

impl Options {
    /// Number of runs of every point with random input of a paper.
    pub fn runs_of(&self, paper: &Paper) -> usize {
        let own = if self.extent == Extent::Quick { paper.quick_runs } else { paper.runs };
        self.runs.unwrap_or(own).max(1)
    }

    /// Command that reproduces a paper.
    pub fn command(&self, paper: &Paper) -> String {
        format!("anabranch lab reproduce {} {}", paper.id, self.flags(paper))
    }

    /// These options on the command line, with the number of runs.
    pub fn flags(&self, paper: &Paper) -> String {
        let quick = if self.extent == Extent::Quick { "--quick " } else { "" };
        format!("{quick}--runs {} --seed {}", self.runs_of(paper), self.seed)
    }

    /// Command that runs points of a paper's experiment; `assignments` are as `lab run` takes them.
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

/// Results of a reproduced paper.
#[derive(Clone, PartialEq, Debug)]
pub struct Reproduction {
    /// The paper.
    pub paper: &'static Paper,
    /// Options of the reproduction.
    pub options: Options,
    /// Method and remarks for the reader, as paragraphs.
    pub notes: Vec<String>,
    /// The paper's tables, and the numbers behind its figures.
    pub tables: Vec<Table>,
    /// The paper's figures.
    pub figures: Vec<Figure>,
    /// Verdicts of all claims.
    pub verdicts: Vec<Verdict>,
    /// Parameters of the experiment.
    pub parameters: Vec<ParameterRow>,
    /// Errors and gaps in print.
    pub errata: Vec<Erratum>,
    /// Share of settings of the open parameters in which each claim holds, if it was measured: see
    /// [`crate::robustness`].
    pub map: Option<Figure>,
}

impl Reproduction {
    /// All results as files: names and contents, without the report itself.
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

/// A table with our numbers beside the printed ones.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    /// File name.
    pub name: String,
    /// Title.
    pub title: String,
    /// Remarks for the reader; may be empty.
    pub note: String,
    /// Column headers.
    pub head: Vec<String>,
    /// Rows, each as long as the header.
    pub rows: Vec<Vec<String>>,
    /// The numbers with full precision, as CSV.
    pub csv: String,
    /// Command that runs the points.
    pub command: String,
}

/// A figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// File name.
    pub name: String,
    /// Number and title.
    pub caption: String,
    /// The figure as SVG.
    pub svg: String,
    /// The numbers of the figure, as CSV.
    pub csv: String,
    /// Command that runs the points.
    pub command: String,
}

/// A parameter of the experiment, or a printed constant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParameterRow {
    /// Name.
    pub name: String,
    /// Printed value; empty for a parameter of ours.
    pub printed: String,
    /// Our value.
    pub ours: String,
    /// Description.
    pub about: String,
}

/// Why a paper could not be reproduced.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReproduceError {
    /// A run failed.
    #[error(transparent)]
    Run(#[from] crate::experiment::RunError),
    /// A figure could not be drawn.
    #[error(transparent)]
    Chart(#[from] ChartError),
}

/// Printed parameters of a paper, followed by those of its experiment with their defaults. `ours`
/// maps a printed parameter's name in the list of targets to our value.
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

/// Formats a printed parameter in a usual unit: 100 Mbit/s instead of 100000000.0 bit/s.
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

/// Differences between settings and the defaults as assignments for `lab run`: `key=value`, in the
/// experiment's order. Several settings become the axes of the smallest grid that contains them.
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

/// Checks that `lab run` accepts these assignments, and returns the number of points.
///
/// # Errors
///
/// As `lab run` reports them.
pub fn check(experiment: &'static dyn Experiment, assignments: &[String]) -> Result<usize, ParameterError> {
    let points = settings(experiment, assignments)?;
    points.iter().try_for_each(|point| experiment.point(point).map(drop))?;
    Ok(points.len())
}
