//! Measures how far a paper's claims depend on the parameters that it leaves open.
//!
//! Settings of all open parameters are drawn together (a Latin hypercube), and the paper is
//! measured in each setting with the same random streams. For each claim the result says how often
//! it holds, and which parameters determine that most. The same settings show which of them is
//! nearest to the printed numbers of the paper's baselines.

use std::collections::BTreeMap;

use anabranch_sweep::spec::{Distribution, Method, Samples, Scale};
use serde::{Deserialize, Serialize};

use crate::experiment::RunError;
use crate::open::Open;
use crate::plot::csv;
use crate::plot::shares::{self, Bar};
use crate::reproduction::{Figure, Options, Paper, ReproduceError};
use crate::stats::{self, Share};
use crate::targets::{self, Target, is_percent};
use crate::verdict::{Holds, Verdict, number};
use crate::work::Values;

/// A setting of all open parameters.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting {
    /// Number from 1 on; 0 is the paper's reference.
    pub number: usize,
    /// Position of each open parameter in its range, 0 to 1.
    places: Vec<f64>,
    /// Values of the parameters.
    pub values: Vec<(&'static str, String)>,
}

impl Setting {
    /// The values in the form of a row.
    fn parameters(&self) -> BTreeMap<String, String> {
        self.values.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect()
    }
}

/// Draws `count` settings after the given first one. Each has its index as its number.
pub fn draw(open: &[Open], first: Vec<(&'static str, String)>, count: u32, seed: u64) -> Vec<Setting> {
    let evenly = Distribution::Uniform { low: 0.0, high: 1.0, scale: Scale::Number };
    let axes = open.iter().map(|open| (open.parameter.to_owned(), evenly.clone())).collect();
    let drawn = Samples { method: Method::LatinHypercube, count, axes }.values(seed, 0);
    let setting = |i: usize| {
        let place = |open: &Open| drawn[open.parameter][i].as_f64().unwrap_or_default();
        let places: Vec<f64> = open.iter().map(place).collect();
        let values = open.iter().zip(&places).map(|(open, u)| (open.parameter, open.range.text(*u)));
        Setting { number: i + 1, values: values.collect(), places }
    };
    let first = Setting { number: 0, places: Vec::new(), values: first };
    std::iter::once(first).chain((0..count as usize).map(setting)).collect()
}

/// Results of a setting.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Row {
    /// Number of the setting.
    pub setting: usize,
    /// Values of the open parameters; a parameter that is missing has its default.
    pub parameters: BTreeMap<String, String>,
    /// Why this setting has no valid network or run; `None` if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impossible: Option<String>,
    /// Results by the claim's name.
    pub claims: BTreeMap<String, Found>,
}

/// Result of a claim in a setting.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Found {
    /// Verdict by the means: see [`Verdict::by_means`].
    pub holds: Holds,
    /// See [`Verdict::measure`].
    pub measure: Option<f64>,
    /// Number of our protocol in the same network.
    pub ours: Option<f64>,
}

impl Row {
    /// Measures the paper in a setting.
    ///
    /// # Errors
    ///
    /// An error that the setting's values do not cause.
    pub fn measure(
        paper: &Paper,
        options: Options,
        setting: &Setting,
        watch: &(dyn Fn() + Sync),
    ) -> Result<Self, ReproduceError> {
        let values: &Values = &setting.values;
        let (number, parameters) = (setting.number, setting.parameters());
        let row = Self { setting: number, parameters, impossible: None, claims: BTreeMap::new() };
        match paper.reproduce_with(options, values, watch) {
            Ok(reproduction) => Ok(Self { claims: found(&reproduction.verdicts), ..row }),
            Err(ReproduceError::Run(
                error @ (RunError::Impossible { .. } | RunError::Scenario(_) | RunError::NotFinite { .. }),
            )) => Ok(Self { impossible: Some(error.to_string()), ..row }),
            Err(error) => Err(error),
        }
    }
}

impl Found {
    /// See [`Robust::ours`].
    fn change(&self, unit: &str) -> Option<f64> {
        let (ours, paper) = (self.ours?, self.measure?);
        let change = if is_percent(unit) { ours - paper } else { 100.0 * (ours / paper - 1.0) };
        change.is_finite().then_some(change)
    }
}

fn found(verdicts: &[Verdict]) -> BTreeMap<String, Found> {
    let one = |verdict: &Verdict| {
        let ours = verdict.judged.ours.map(|ours| ours.figure.mean).filter(|mean| mean.is_finite());
        let found = Found { holds: verdict.by_means(), measure: verdict.measure(), ours };
        (verdict.id.clone(), found)
    };
    verdicts.iter().map(one).collect()
}

/// Significance level of the tests of all open parameters and all claims together, by which a
/// parameter is reported to matter.
const LEVEL: f64 = 0.01;
/// Minimum number of settings for statements on dependence.
const LEAST: usize = 40;
/// Limit on the groups of a parameter's values.
const GROUPS: usize = 10;

/// A claim over all settings.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Robust {
    /// Name in the list of targets.
    pub id: String,
    /// Section of the paper.
    pub section: String,
    /// The claim in words, or the printed number.
    pub claim: String,
    /// Unit; empty for a pure number.
    pub unit: String,
    /// Verdict in the paper's reference setting, by the means.
    pub in_reference: Option<Holds>,
    /// Number of settings with each verdict, in the order of [`Holds::ALL`].
    pub counts: [u64; 4],
    /// Share of the settings that can be judged in which the claim is reproduced; `None` without
    /// such settings.
    pub reproduced: Option<Share>,
    /// Share of these settings in which the claim is reproduced at least in trend.
    pub in_trend: Option<Share>,
    /// Median over the settings of how far our protocol's number exceeds that of the paper's
    /// protocol: in per cent of it, or in points if it is a percentage.
    pub ours: Option<f64>,
    /// At most two parameters on which the claim depends most, each with the share of the number's
    /// variance that it alone explains.
    pub deciding: Vec<(&'static str, f64)>,
}

/// A share in per cent, with its interval.
fn percent(share: &Option<Share>) -> String {
    let Some(Share { share, low, high }) = share else { return "-".to_owned() };
    let [share, low, high] = [share, low, high].map(|share| 100.0 * share);
    format!("{share:.0} % ({low:.0} to {high:.0})")
}

/// Parameters of a robustness study.
#[derive(Clone, Copy, Debug)]
pub struct Study {
    /// The paper.
    pub paper: &'static Paper,
    /// Number of settings in addition to the reference.
    pub settings: u32,
    /// Runs of every point, and seed of all random streams, including that of the settings.
    pub options: Options,
}

impl Study {
    /// Command that repeats the study.
    pub fn command(&self) -> String {
        let Self { paper, settings, options } = self;
        format!("anabranch lab robustness {} --settings {settings} {}", paper.id, options.flags(paper))
    }

    /// The reference and the settings.
    pub fn drawn(&self) -> Vec<Setting> {
        draw(self.paper.open, self.paper.reference(), self.settings, self.options.seed)
    }

    /// Rows that belong to this study: they have its values and every claim. Each setting occurs
    /// once.
    pub fn own(&self, rows: Vec<Row>) -> BTreeMap<usize, Row> {
        let drawn = self.drawn();
        let claims: Vec<Target> = self.claims();
        let is_whole =
            |row: &Row| row.impossible.is_some() || claims.iter().all(|c| row.claims.contains_key(&c.id));
        let is_drawn =
            |row: &Row| drawn.get(row.setting).is_some_and(|setting| setting.parameters() == row.parameters);
        let own = rows.into_iter().filter(|row| is_drawn(row) && is_whole(row));
        own.map(|row| (row.setting, row)).collect()
    }

    fn claims(&self) -> Vec<Target> {
        targets::claims(self.paper.targets).collect()
    }

    /// Evaluates rows, in any order. Rows of other studies are ignored.
    pub fn map(&self, rows: Vec<Row>) -> Map {
        let rows = self.own(rows).into_values().collect();
        let mut map = Map { study: *self, rows, claims: self.claims(), robust: Vec::new() };
        let drawn = self.drawn();
        map.robust = map.claims.iter().map(|target| map.claim(target, &drawn)).collect();
        map
    }
}

/// All claims of a paper over the settings.
#[derive(Clone, Debug)]
pub struct Map {
    study: Study,
    rows: Vec<Row>,
    claims: Vec<Target>,
    /// Claims in order.
    robust: Vec<Robust>,
}

impl Map {
    /// Rows of settings with a valid network.
    fn possible(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.setting > 0 && row.impossible.is_none())
    }

    /// All claims, in the order of the list of targets.
    pub fn robust(&self) -> &[Robust] {
        &self.robust
    }

    fn claim(&self, target: &Target, drawn: &[Setting]) -> Robust {
        let found = |row: &Row| row.claims.get(&target.id).copied();
        let all: Vec<Found> = self.possible().filter_map(found).collect();
        let counts = Holds::ALL.map(|holds| all.iter().filter(|found| found.holds == holds).count() as u64);
        // A claim that nothing measures counts neither way.
        let judged = counts[0] + counts[1] + counts[2];
        let of = |count| stats::wilson(count, judged).ok();
        let unit = target.unit.as_deref().unwrap_or_default();
        let printed = target.number().map(|value| format!("{} {unit}", number(value)).trim_end().to_owned());
        let circumstances = target.circumstances();
        Robust {
            id: target.id.clone(),
            section: target.section.clone(),
            unit: unit.to_owned(),
            claim: match (&target.text, printed) {
                (Some(text), _) => text.clone(),
                (None, Some(printed)) if circumstances.is_empty() => printed,
                (None, Some(printed)) => format!("{circumstances}: {printed}"),
                (None, None) => circumstances,
            },
            in_reference: self.rows.iter().find(|row| row.setting == 0).and_then(found).map(|f| f.holds),
            counts,
            reproduced: of(counts[0]),
            in_trend: of(counts[0] + counts[1]),
            ours: stats::quantile(
                &all.iter().filter_map(|found| found.change(unit)).collect::<Vec<_>>(),
                0.5,
            ),
            deciding: self.deciding(&target.id, drawn),
        }
    }

    /// The two parameters that explain most of the variance of a claim's number, or of its
    /// logarithm if all values are positive.
    fn deciding(&self, id: &str, drawn: &[Setting]) -> Vec<(&'static str, f64)> {
        let measured = self
            .possible()
            .filter_map(|row| Some((&drawn[row.setting].places, row.claims.get(id)?.measure?)));
        let (places, mut values): (Vec<&Vec<f64>>, Vec<f64>) = measured.unzip();
        if values.iter().all(|value| *value > 0.0) {
            values.iter_mut().for_each(|value| *value = value.ln());
        }
        // Fewer settings do not determine a variance.
        if values.len() < LEAST {
            return Vec::new();
        }
        // At least twenty settings per group.
        let most = (values.len() / 20).clamp(2, GROUPS);
        let share = |(i, open): (usize, &Open)| {
            let groups: Vec<usize> = places.iter().map(|places| open.range.group(places[i], most)).collect();
            let found = stats::explained(&groups, &values)?;
            let tests = self.study.paper.open.len() * self.claims.len();
            let is_told = found.p * tests as f64 <= LEVEL;
            is_told.then_some((open.parameter, found.share))
        };
        let mut shares: Vec<(&str, f64)> =
            self.study.paper.open.iter().enumerate().filter_map(share).collect();
        shares.sort_by(|a, b| b.1.total_cmp(&a.1));
        shares.truncate(2);
        shares
    }

    /// Number of baseline rows that a setting reproduces, and number of all baseline rows.
    fn baselines(&self, row: &Row) -> [usize; 2] {
        let is_baseline = |target: &&Target| (self.study.paper.is_baseline)(&target.id);
        let found = self.claims.iter().filter(is_baseline).filter_map(|target| row.claims.get(&target.id));
        let found: Vec<&Found> = found.collect();
        [found.iter().filter(|found| found.holds == Holds::Yes).count(), found.len()]
    }

    /// The first of the settings that reproduce the most printed numbers of the baselines: its row,
    /// that number and the number of all, and how many settings do equally well. `None` if the
    /// paper prints no number of a baseline, or no setting can be run.
    pub fn nearest(&self) -> Option<(&Row, [usize; 2], usize)> {
        let rows = self.rows.iter().filter(|row| row.impossible.is_none());
        let counted: Vec<(&Row, [usize; 2])> =
            rows.map(|row| (row, self.baselines(row))).filter(|(_, [_, all])| *all > 0).collect();
        let most = counted.iter().map(|(_, [count, _])| *count).max()?;
        let mut best = counted.iter().filter(|(_, [count, _])| *count == most);
        let (row, found) = best.next()?;
        Some((row, *found, best.count()))
    }

    /// How near the reference and the best setting are to the baselines, in sentences.
    pub fn fit(&self) -> String {
        if !self.claims.iter().any(|target| (self.study.paper.is_baseline)(&target.id)) {
            return "The paper prints no number of a baseline, so that no setting can be fitted to one.\n"
                .to_owned();
        }
        let Some((nearest, [most, all], others)) = self.nearest() else {
            return "No setting could be run.\n".to_owned();
        };
        let reference = self.rows.iter().find(|row| row.setting == 0 && row.impossible.is_none());
        let in_reference = reference.map_or(0, |row| self.baselines(row)[0]);
        let values: Vec<String> = nearest.parameters.iter().map(|(k, v)| format!("`{k}={v}`")).collect();
        let as_well = match others {
            0 => String::new(),
            n => format!(" ({n} more do as well)"),
        };
        let which = match nearest.setting {
            0 => format!("None of the settings does better{as_well}"),
            n => format!("Setting {n} reproduces most of them, {most}{as_well}: {}", values.join(" ")),
        };
        format!("Of the {all} rows of the baselines the reference reproduces {in_reference}. {which}.\n")
    }

    /// Reasons why settings could not be run.
    fn reasons(&self) -> Vec<&str> {
        let mut reasons: Vec<&str> = self.rows.iter().filter_map(|row| row.impossible.as_deref()).collect();
        reasons.sort_unstable();
        reasons.dedup();
        reasons
    }

    /// The page in Markdown; the figure is `NAME.svg` beside it.
    pub fn page(&self) -> String {
        let Study { paper, settings, options } = self.study;
        let possible = self.possible().count();
        let impossible = self.rows.iter().filter(|row| row.setting > 0).count() - possible;
        let mut text = format!(
            "# How far the claims of `{id}` hold\n\n{title}: what the paper leaves open, drawn {settings} times, {runs} \
             {word} of every point with seed {seed}. {aside}\n\n```console,long\n$ {command}\n```\n\n",
            id = paper.id,
            title = paper.title,
            runs = options.runs_of(paper),
            word = if options.runs_of(paper) == 1 { "run" } else { "runs" },
            seed = options.seed,
            aside = match impossible {
                0 => "All settings could be run.".to_owned(),
                n =>
                    format!("{n} settings could not be run and do not count: {}.", self.reasons().join("; ")),
            },
            command = self.study.command(),
        );
        text += "| parameter | erratum | reference | drawn from |\n| --- | --- | --- | --- |\n";
        for Open { parameter, erratum, range } in paper.open {
            let reference =
                paper.reference.iter().find(|(name, _)| name == parameter).map(|(_, value)| *value);
            let default = paper.experiment.parameters().iter().find(|p| p.name == *parameter);
            let reference = reference.or(default.map(|p| p.default)).unwrap_or_default();
            text += &format!("| `{parameter}` | {erratum} | {reference} | {} |\n", range.said());
        }
        text += &format!(
            "\n{}\n![The share of settings in which each claim holds]({}.svg)\n\n| row | claim | in the reference | reproduced | \
             at least in trend | ours | depends on |\n| --- | --- | --- | --- | --- | --- | --- |\n",
            self.fit(),
            paper.id
        );
        for robust in &self.robust {
            let claim = robust.claim.replace('|', "\\|");
            text += &format!(
                "| {} | {claim} | {} | {} | {} | {} | {} |\n",
                robust.id,
                robust.in_reference.map_or("-", Holds::word),
                percent(&robust.reproduced),
                percent(&robust.in_trend),
                robust.ours_text(),
                robust.depends_on()
            );
        }
        text
    }

    /// The figure with its numbers, for a report.
    pub fn figure(&self) -> Figure {
        Figure {
            name: "robustness".to_owned(),
            caption: format!(
                "In how many of {} settings of what is open each claim holds",
                self.possible().count()
            ),
            svg: self.svg(),
            csv: self.csv(),
            command: self.study.command(),
        }
    }

    /// Command that repeats the study.
    pub fn command(&self) -> String {
        self.study.command()
    }

    /// Number of settings without a row.
    pub fn missing(&self) -> usize {
        self.study.settings as usize + 1 - self.rows.len()
    }

    /// The figure as SVG.
    pub fn svg(&self) -> String {
        let bars = self.robust.iter().map(|robust| {
            let all = robust.counts.iter().sum::<u64>().max(1) as f64;
            Bar {
                parts: robust.counts.map(|count| count as f64 / all).to_vec(),
                interval: robust.reproduced.map(|share| (share.low, share.high)),
                note: robust.depends_on().replace('`', ""),
                label: robust.id.clone(),
            }
        });
        let title = format!("{}: {} settings of what is open", self.study.paper.id, self.possible().count());
        shares::svg(&title, &Holds::ALL.map(Holds::word), &bars.collect::<Vec<_>>())
    }

    /// A record for each claim, as CSV.
    pub fn csv(&self) -> String {
        let mut head = vec!["id".to_owned(), "section".into(), "claim".into(), "in_reference".into()];
        head.extend(Holds::ALL.map(|holds| holds.word().replace(' ', "_")));
        head.extend(["share", "share_low", "share_high", "trend", "trend_low", "trend_high"].map(Into::into));
        head.extend(["ours", "first", "first_share", "second", "second_share"].map(Into::into));
        let mut text = csv::record(&head);
        for robust in &self.robust {
            let word = robust.in_reference.map_or("", Holds::word).to_owned();
            let mut fields = vec![robust.id.clone(), robust.section.clone(), robust.claim.clone(), word];
            fields.extend(robust.counts.map(|count| count.to_string()));
            for share in [robust.reproduced, robust.in_trend] {
                let ends =
                    share.map(|Share { share, low, high }| [share, low, high].map(|x| format!("{x:.4}")));
                fields.extend(ends.unwrap_or_default());
            }
            fields.push(robust.ours.map(|ours| format!("{ours:.4}")).unwrap_or_default());
            for i in 0..2 {
                let deciding = robust.deciding.get(i);
                fields.push(deciding.map_or("", |(name, _)| name).to_owned());
                fields.push(deciding.map(|(_, share)| format!("{share:.3}")).unwrap_or_default());
            }
            text += &csv::record(&fields);
        }
        text
    }
}

impl Robust {
    fn ours_text(&self) -> String {
        let unit = if is_percent(&self.unit) { "points" } else { "%" };
        self.ours.map_or("-".to_owned(), |ours| format!("{ours:+.0} {unit}"))
    }

    fn depends_on(&self) -> String {
        let one = |(name, share): &(&str, f64)| format!("`{name}` {:.0} %", 100.0 * share);
        self.deciding.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests;
