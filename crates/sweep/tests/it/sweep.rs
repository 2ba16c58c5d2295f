//! Tests of sweeps from spec to table: a row must not depend on who executed it, where and when.

use std::path::Path;
use std::sync::atomic::Ordering;

use anabranch_scenario::Source;
use anabranch_sweep::{
    Error, Job, Options, Shard, Spec, Store, Sweep, Table, Watch, execute, execute_alone, pool, row,
};
use tempfile::TempDir;

/// A network whose runs take about a millisecond and differ from each other.
const NETWORK: &str = r#"
name = "cable"
seed = 7
stop = "60 s"
[[node]]
name = "a"
[[node]]
name = "b"
[[link]]
name = "cable"
from = "a"
to = "b"
rate = "1 Mbit/s"
delay = "5 ms"
loss = 0.05
[[transfer]]
name = "file"
kind = "tcp"
from = "a"
to = "b"
bytes = "10 kB"
"#;

const GRID: &str = r#"
seeds = [3, 1]
runs = 4
[set]
"network.ip" = 4
[grid]
"link.cable.loss" = [0.0, "2 %", 0.1]
[[sample]]
count = 3
[sample.axes]
"link.cable.delay" = { uniform = ["1 ms", "20 ms"] }
"link.cable.rate" = { log-uniform = ["100 kbit/s", "10 Mbit/s"] }
"#;

const ENOUGH: &str = r#"
[grid]
"link.cable.loss" = [0.0, 0.5, 0.6]
[enough]
metric = "transfer.file.latency_s"
width = "58 %"
min = 4
max = 40
"#;

#[track_caller]
fn sweep(spec: &str) -> Sweep {
    let scenario = Source::new("network.toml", NETWORK);
    Sweep::new(Spec::parse_for("spec.toml", spec, scenario, Path::new("")).expect("a good spec"))
        .expect("a good spec")
}

/// Executes what is due, and returns the number of runs.
#[track_caller]
fn run(sweep: &Sweep, folder: &Path, threads: usize, shard: Shard) -> u64 {
    let mut store = Store::open(folder).expect("a folder");
    let outcome = execute(
        sweep,
        &sweep.all_points().expect("good points"),
        &mut store,
        Options { threads, shard },
        &Watch::default(),
    )
    .expect("it runs");
    assert!(!outcome.cancelled);
    outcome.made
}

/// CSV, Parquet and Arrow of everything in the store.
#[track_caller]
pub(crate) fn tables_of(sweep: &Sweep, store: &Store) -> [Vec<u8>; 3] {
    let points = sweep.all_points().expect("good points");
    let table = Table::new(sweep, &points, store).expect("a table");
    assert_eq!(table.missing(), 0);
    let mut files = [Vec::new(), Vec::new(), Vec::new()];
    table.write_csv(&mut files[0]).expect("memory takes it");
    table.write_parquet(&mut files[1]).expect("memory takes it");
    table.write_ipc(&mut files[2]).expect("memory takes it");
    files
}

/// CSV, Parquet and Arrow of a folder.
#[track_caller]
fn tables(sweep: &Sweep, folder: &Path) -> [Vec<u8>; 3] {
    tables_of(sweep, &Store::open(folder).expect("good points"))
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// Executed without interruption on one thread.
fn reference(sweep: &Sweep) -> [Vec<u8>; 3] {
    let folder = folder();
    run(sweep, folder.path(), 1, Shard::ALL);
    tables(sweep, folder.path())
}

#[test]
fn a_row_has_all_that_its_run_depends_on() {
    let (sweep, folder) = (sweep(GRID), folder());
    assert_eq!(run(&sweep, folder.path(), 2, Shard::ALL), 3 * 3 * 2 * 4);
    let [csv, ..] = tables(&sweep, folder.path());
    let csv = String::from_utf8(csv).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 1 + 72);
    let first: Vec<(&str, &str)> = lines[0].split(',').zip(lines[1].split(',')).collect();
    assert_eq!(first[0], ("point", "0"));
    let names: Vec<&str> = first[1..9].iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        [
            "link.cable.delay [s]",
            "link.cable.loss",
            "link.cable.rate [bit/s]",
            "network.ip",
            "seed",
            "run",
            "scenario_hash",
            "version"
        ]
    );
    assert_eq!((first[2].1, first[4].1, first[5].1, first[6].1), ("0.0", "4", "3", "0"));
    assert!(
        first
            .iter()
            .any(|(name, value)| *name == "transfer.file.latency_s [s]" && value.parse::<f64>().is_ok())
    );
    // Points, then seeds in the order of the spec, then runs.
    let places: Vec<String> = lines[1..]
        .iter()
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            format!("{} {} {}", fields[0], fields[5], fields[6])
        })
        .collect();
    let expected = (0..9).flat_map(|point| {
        [3, 1].map(|seed| (0..4).map(move |run| format!("{point} {seed} {run}"))).into_iter().flatten()
    });
    assert!(places.into_iter().eq(expected));
}

#[test]
fn threads_are_no_more_than_cores() {
    let cores = std::thread::available_parallelism().expect("a number").get();
    for (asked, there) in [(1, 1), (cores, cores), (cores + 1, cores), (1_000_000_000, cores)] {
        assert_eq!(pool(asked).expect("threads").current_num_threads(), there, "{asked}");
    }
}

#[test]
fn threads_shards_and_workers_elsewhere_make_the_same_tables() {
    for spec in [GRID, ENOUGH] {
        let sweep = sweep(spec);
        let expected = reference(&sweep);
        let two = folder();
        run(&sweep, two.path(), 2, Shard::ALL);
        assert!(tables(&sweep, two.path()) == expected);

        let shards = folder();
        let each: Vec<u64> =
            [3, 1, 4, 2].map(|number| run(&sweep, shards.path(), 1, Shard::new(number, 4).unwrap())).into();
        assert!(tables(&sweep, shards.path()) == expected);
        assert!(each.iter().filter(|made| **made > 0).count() >= 3, "{each:?}");

        let elsewhere = folder();
        let mut store = Store::open(elsewhere.path()).unwrap();
        let points = sweep.all_points().unwrap();
        loop {
            let jobs = sweep.jobs(&points, &store, Shard::ALL, 3).unwrap();
            let Some(job) = jobs.last() else { break };
            let job = Job::from_json(&job.to_json(), &[]).unwrap();
            let rows = job.run(&Watch::default().cancel).unwrap().unwrap();
            store.append(&row::from_bytes(&row::to_bytes(&rows)).unwrap()).unwrap();
        }
        drop(store);
        assert!(tables(&sweep, elsewhere.path()) == expected);
    }
}

#[test]
fn what_is_done_is_not_done_again() {
    let (small, folder) = (sweep(GRID), folder());
    assert_eq!(run(&small, folder.path(), 2, Shard::ALL), 72);
    assert_eq!(run(&small, folder.path(), 2, Shard::ALL), 0);
    // More runs, one seed fewer, another loss.
    let larger = GRID.replace("runs = 4", "runs = 5").replace("[3, 1]", "[1]").replace("0.1]", "0.1, 0.2]");
    let larger = sweep(&larger);
    assert_eq!(run(&larger, folder.path(), 2, Shard::ALL), 9 + 3 * 5);
    assert!(tables(&larger, folder.path()) == reference(&larger));
    // The first spec finds only its own rows.
    assert!(tables(&small, folder.path()) == reference(&small));
}

#[test]
fn a_sweep_that_is_stopped_goes_on_where_it_was() {
    let (sweep, folder) = (sweep(GRID), folder());
    let mut store = Store::open(folder.path()).unwrap();
    let watch = Watch::default();
    watch.cancel.store(true, Ordering::Relaxed);
    let outcome =
        execute(&sweep, &sweep.all_points().unwrap(), &mut store, Options::default(), &watch).unwrap();
    assert!(outcome.cancelled && outcome.made == 0);
    let points = sweep.all_points().unwrap();
    for job in sweep.jobs(&points, &store, Shard::ALL, 5).unwrap().iter().step_by(2) {
        store.append(&job.run(&Watch::default().cancel).unwrap().unwrap()).unwrap();
        assert_eq!(job.run(&watch.cancel).unwrap(), None);
    }
    drop(store);
    let made = run(&sweep, folder.path(), 2, Shard::ALL);
    assert!(0 < made && made < 72);
    assert!(tables(&sweep, folder.path()) == reference(&sweep));
}

#[test]
fn runs_are_added_until_the_mean_is_known_well_enough() {
    let (sweep, folder) = (sweep(ENOUGH), folder());
    run(&sweep, folder.path(), 2, Shard::ALL);
    let (points, store) = (sweep.all_points().unwrap(), Store::open(folder.path()).unwrap());
    let standing: Vec<_> = points.iter().map(|point| sweep.standing(point, &store)).collect();
    // Without losses every run is equal. With the highest loss, forty runs are not enough.
    assert_eq!((standing[0].runs, standing[0].met), (4, Some(true)));
    assert_eq!((standing[2].runs, standing[2].met), (40, Some(false)));
    assert!(4 < standing[1].runs && standing[1].runs < 40 && standing[1].met == Some(true), "{standing:?}");
    let table = Table::new(&sweep, &points, &store).unwrap();
    assert_eq!(table.unmet(), [2]);
    // A stricter spec continues from these runs; a looser one needs fewer of them and shows no
    // more.
    let loose = self::sweep(&ENOUGH.replace("58 %", "500 %"));
    assert_eq!(run(&loose, folder.path(), 2, Shard::ALL), 0);
    assert!(tables(&loose, folder.path()) == reference(&loose));
}

#[test]
fn a_worker_refuses_what_is_not_for_it() {
    let refused = |text: &str| Job::from_json(text, &[]).unwrap_err().to_string();
    assert!(refused("{}").starts_with("not a valid job file"));
    let sweep = sweep("");
    let points = sweep.all_points().unwrap();
    let store = Store::open(folder().path()).unwrap();
    let job = &sweep.jobs(&points, &store, Shard::ALL, 1).unwrap()[0];
    let other = job.to_json().replacen(anabranch_sweep::VERSION, "0.0.0", 1);
    assert!(refused(&other).contains("version 0.0.0"));
    let other = job.to_json().replacen(anabranch_sweep::address::BUILD, "another", 1);
    assert!(refused(&other).contains("another build"));
    assert!(matches!(Shard::new(5, 4), Err(Error::Impossible { .. })));
    assert!(Shard::new(0, 4).is_err());
}

/// Sequential execution without a pool yields the same rows for all kinds of specs, and does not
/// repeat finished runs.
#[test]
fn one_thread_alone_makes_the_same_rows() {
    for spec in [GRID, ENOUGH, ""] {
        let sweep = sweep(spec);
        let points = sweep.all_points().expect("good points");
        let mut store = Store::in_memory();
        let made: Vec<u64> = (0..2)
            .map(|_| {
                let watch = Watch::default();
                execute_alone(&sweep, &points, &mut store, Shard::ALL, &watch, &|| ()).expect("it runs");
                assert_eq!(watch.made.load(Ordering::Relaxed), watch.total.load(Ordering::Relaxed));
                watch.made.load(Ordering::Relaxed)
            })
            .collect();
        assert!(made[0] > 0 && made[1] == 0, "{made:?}");
        assert_eq!(tables_of(&sweep, &store), reference(&sweep));
    }
    // The caller is called between slices of a run, and may stop it.
    let (sweep, watch) = (sweep(GRID), Watch::default());
    let points = sweep.all_points().expect("good points");
    let stop = || watch.cancel.store(true, Ordering::Relaxed);
    execute_alone(&sweep, &points, &mut Store::in_memory(), Shard::ALL, &watch, &stop).expect("it stops");
    assert_eq!(watch.made.load(Ordering::Relaxed), 0);
}
