//! Every value and every claim of the list of targets has a row with a verdict, and the same seed makes the same report.
//!
//! One quick reproduction of all papers serves all tests of this file.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use anabranch_lab::reproduction::{Extent, Options, Paper, Reproduction, check};
use anabranch_lab::targets::{self, Kind, Target};
use anabranch_lab::verdict::Holds;
use anabranch_lab::{PAPERS, find, planned, report, reproduce};

const OPTIONS: Options = Options { extent: Extent::Quick, runs: Some(1), seed: 5 };

/// All papers, and how many runs were told of for each.
fn made() -> &'static [(Reproduction, usize)] {
    static MADE: OnceLock<Vec<(Reproduction, usize)>> = OnceLock::new();
    MADE.get_or_init(|| on(2, &PAPERS, OPTIONS))
}

fn on(threads: usize, papers: &[&'static Paper], options: Options) -> Vec<(Reproduction, usize)> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
    let one = |paper: &&'static Paper| {
        let ran = AtomicUsize::new(0);
        let watch = || {
            ran.fetch_add(1, Ordering::Relaxed);
        };
        let made = pool.install(|| reproduce(paper, options, &watch)).expect("it runs");
        (made, ran.into_inner())
    };
    papers.iter().map(one).collect()
}

fn all_targets() -> Vec<Target> {
    [targets::set(), targets::dtc(), targets::mptcp(), targets::rdca(), targets::sockbuf()].concat()
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
        assert_eq!(verdict.holds == Holds::Contradicted, target.suspect || verdict.judged.erratum.is_some());
        // A value has a number of ours with its number of runs, or the reason why there is none.
        match verdict.judged.ours {
            Some(ours) => assert!(
                ours.mean.is_finite() && (ours.runs < 2 || ours.ci95.is_some() || ours.runs == 2),
                "{}",
                target.id
            ),
            None => assert!(target.kind == Kind::Trend || verdict.judged.why.is_some(), "{}", target.id),
        }
        assert!(verdict.reading != Holds::No || verdict.judged.why.is_some(), "{}: no reason", target.id);
    }
    for target in of(Kind::Param) {
        let paper = target.id.split('.').next().unwrap_or_default();
        let (made, _) = made().iter().find(|(made, _)| made.paper.id == paper).expect("a paper");
        let name = target.id.trim_start_matches(paper).trim_start_matches('.').trim_start_matches("param.");
        let row = made.parameters.iter().find(|row| row.name == name && !row.printed.is_empty());
        assert!(row.is_some_and(|row| !row.ours.is_empty()), "{}: what do we take?", target.id);
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

/// Three papers stand for all: with the two that take longer this would be half a minute.
#[test]
fn the_same_seed_is_the_same_report_on_any_number_of_threads() {
    let some = &PAPERS[..3];
    let options = Options { runs: Some(2), ..OPTIONS };
    let pages = |threads| {
        let all: Vec<Reproduction> = on(threads, some, options).into_iter().map(|(made, _)| made).collect();
        (report::page(&all), all.iter().flat_map(Reproduction::files).collect::<Vec<_>>())
    };
    let (one, three) = (pages(1), pages(3));
    assert!(one.0 == three.0, "the page differs");
    assert!(one.1 == three.1, "a file differs");
}

#[test]
fn every_run_is_told_of() {
    for (made, ran) in made() {
        assert_eq!(*ran, planned(made.paper, &OPTIONS), "{}", made.paper.id);
    }
}

/// What stands beside a figure or table can be given to the program.
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
            assert!(command.ends_with("--seed 5"), "{command}");
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
