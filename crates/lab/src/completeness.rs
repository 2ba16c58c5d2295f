//! Tests that every value and every claim in the list of targets has a row with a verdict, and that
//! equal seeds give equal reports.
//!
//! The papers with the longest runs are measured once for all tests of this crate: [`Once`].

use std::fmt::Debug;
use std::slice::from_ref;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::reproduction::{Extent, Options, Paper, ReproduceError, Reproduction, check};
use crate::targets::{Kind, Target};
use crate::verdict::Holds;
use crate::work::Work;
use crate::{PAPERS, dtc, find, mptcp, rdca, report, set, sockbuf};

/// Few points, two runs each, one seed for all tests.
pub(crate) const OPTIONS: Options = Options { extent: Extent::Quick, runs: Some(2), seed: 1 };

/// A measurement with [`OPTIONS`] by the first test that needs it, with the number of runs that
/// were reported.
pub(crate) struct Once<T>(OnceLock<(T, usize)>);

impl<T> Once<T> {
    pub(crate) const fn new() -> Self {
        Self(OnceLock::new())
    }

    pub(crate) fn get<E: Debug>(&self, measure: impl FnOnce(&Work<'_>) -> Result<T, E>) -> &(T, usize) {
        self.0.get_or_init(|| watched(measure))
    }
}

fn watched<T, E: Debug>(measure: impl FnOnce(&Work<'_>) -> Result<T, E>) -> (T, usize) {
    let ran = AtomicUsize::new(0);
    let watch = || {
        ran.fetch_add(1, Ordering::Relaxed);
    };
    let runs = OPTIONS.runs.expect("a number of runs");
    let made = measure(&Work::new(runs, OPTIONS.seed).watched(&watch)).expect("it runs");
    (made, ran.into_inner())
}

/// All papers, each with the number of runs that were reported.
fn made() -> &'static [(Reproduction, usize)] {
    static MADE: OnceLock<Vec<(Reproduction, usize)>> = OnceLock::new();
    MADE.get_or_init(|| {
        let with = |written: Result<Reproduction, ReproduceError>, ran| (written.expect("it is drawn"), ran);
        let (tables, mptcp_ran) = mptcp::claims::tests::measured();
        let (sweeps, rdca_ran) = rdca::claims::tests::measured();
        let ((measured, responses), sockbuf_ran) = sockbuf::tests::measured();
        vec![
            watched(|work| set::reproduction::reproduce(OPTIONS, work)),
            watched(|work| dtc::reproduction::reproduce(OPTIONS, work)),
            with(mptcp::reproduction::written(OPTIONS, tables), *mptcp_ran),
            with(rdca::reproduction::written(OPTIONS, sweeps), *rdca_ran),
            with(sockbuf::reproduction::written(OPTIONS, measured, responses), *sockbuf_ran),
        ]
    })
}

fn all_targets() -> Vec<Target> {
    PAPERS.iter().flat_map(|paper| paper.targets()).collect()
}

#[test]
fn every_value_and_trend_of_the_targets_has_a_row_with_a_verdict() {
    let page = report::page(&made().iter().map(|(made, _)| made.clone()).collect::<Vec<_>>());
    let targets = all_targets();
    let of = |kind| targets.iter().filter(move |target| target.kind == kind);
    assert_eq!(
        (of(Kind::Value).count(), of(Kind::Trend).count()),
        (296, 50),
        "the list of targets is complete"
    );
    for target in of(Kind::Value).chain(of(Kind::Trend)) {
        let verdicts = made().iter().flat_map(|(made, _)| &made.verdicts);
        let found: Vec<_> = verdicts.filter(|verdict| verdict.id == target.id).collect();
        let [verdict] = found[..] else { panic!("{} has {} verdicts", target.id, found.len()) };
        assert_eq!(page.matches(&format!("<tr id=\"{}\">", target.id)).count(), 1, "{}", target.id);
        assert_eq!(verdict.printed, target.number(), "{}", target.id);
        let text = &verdict.judged.measured;
        assert!(!text.contains("nothing measures") && !text.contains("NaN"), "{}: {text}", target.id);
        assert_eq!(verdict.contradicted, target.suspect || verdict.judged.erratum.is_some());
        // A value has either a number with its number of runs, or a reason why there is none.
        match verdict.judged.found() {
            Some(found) => assert!(
                found.mean.is_finite() && (found.runs < 2 || found.ci95.is_some() || found.runs == 2),
                "{}",
                target.id
            ),
            None => assert!(target.kind == Kind::Trend || !text.is_empty(), "{}", target.id),
        }
        assert!(verdict.holds != Holds::No || verdict.judged.why.is_some(), "{}: no reason", target.id);
    }
    for target in of(Kind::Param) {
        let paper = target.id.split('.').next().unwrap_or_default();
        let (made, _) = made().iter().find(|(made, _)| made.paper.id == paper).expect("a paper");
        let name = target.id.trim_start_matches(paper).trim_start_matches('.').trim_start_matches("param.");
        let row = made.parameters.iter().find(|row| row.name == name && !row.printed.is_empty());
        assert!(row.is_some_and(|row| !row.ours.is_empty()), "{}: what do we take?", target.id);
    }
}

/// The rules of verdicts are stated once; the notes of a paper have no rules of their own.
#[test]
fn notes_say_what_is_measured_and_not_how_it_is_judged() {
    for (made, _) in made() {
        for note in &made.notes {
            for word in ["judged by our", "confirmed", "is better", "on either side", "%"] {
                assert!(!note.contains(word), "{}: {word} in {note}", made.paper.id);
            }
        }
    }
}

#[test]
fn errata_that_verdicts_name_are_in_the_report() {
    for (made, _) in made() {
        let named = made.verdicts.iter().filter_map(|verdict| verdict.judged.erratum);
        for erratum in named {
            assert!(made.errata.iter().any(|e| e.id == erratum), "{}: {erratum}", made.paper.id);
        }
    }
}

/// One paper stands for all; the tests of the program check two others.
#[test]
fn the_same_seed_is_the_same_report_on_any_number_of_threads() {
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
    let paper: &Paper = PAPERS[2];
    let alone = one.install(|| paper.reproduce(OPTIONS, &|| ())).expect("it runs");
    let (among_others, _) = &made()[2];
    assert!(report::page(from_ref(&alone)) == report::page(from_ref(among_others)), "the page differs");
    assert!(alone.files() == among_others.files(), "a file differs");
}

#[test]
fn every_run_is_told_of() {
    for (made, ran) in made() {
        assert_eq!(*ran, made.paper.planned(&OPTIONS), "{}", made.paper.id);
    }
}

/// The command shown beside a figure or table is valid for the program.
#[test]
fn every_command_is_one() {
    for (made, _) in made() {
        let commands = made.figures.iter().map(|f| &f.command).chain(made.tables.iter().map(|t| &t.command));
        for command in commands {
            let words: Vec<&str> = command.split(' ').collect();
            assert_eq!(words[..3], ["anabranch", "lab", "run"], "{command}");
            let experiment = find(words[3]).expect("an experiment");
            let pairs = words.windows(2).filter(|pair| pair[0] == "--set");
            let assignments: Vec<String> = pairs.map(|pair| pair[1].to_owned()).collect();
            assert!(check(experiment, &assignments).is_ok_and(|points| points > 0), "{command}");
            assert!(command.ends_with("--seed 1"), "{command}");
        }
    }
}

#[test]
fn every_picture_has_units_on_both_axes_and_every_table_is_whole() {
    for (made, _) in made() {
        for figure in &made.figures {
            let header = figure.csv.lines().next().unwrap_or_default();
            let fields: Vec<&str> = header.split(',').filter(|field| field.contains('(')).collect();
            let is_map = header.starts_with("group");
            assert!(is_map || header.matches(" (").count() >= 2, "{}: {header} {fields:?}", figure.name);
            assert!(figure.svg.starts_with("<svg xmlns=") && !figure.svg.contains("NaN"), "{}", figure.name);
        }
        for table in &made.tables {
            assert!(table.rows.iter().all(|row| row.len() == table.head.len()), "{}", table.name);
            assert!(table.csv.lines().count() > 1, "{}", table.name);
        }
    }
}
