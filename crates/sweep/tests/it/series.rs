//! Tests of time series of sweeps.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anabranch_core::time::Duration;
use anabranch_scenario::Plan;
use anabranch_scenario::series::Sampler;
use anabranch_sweep::series::{Columns, Format, Series};
use anabranch_sweep::table::{Frame, Values};
use anabranch_sweep::{Error, Options, Spec, Store, Sweep, Table, Watch, execute};

const SPEC: &str = r#"
scenario = "network.toml"
runs = 2
[grid]
"link.cable.loss" = ["0 %", "2 %"]
"transfer.file.bytes" = ["40 kB", "50 kB"]
"#;

const NETWORK: &str = r#"
node = [{ name = "a" }, { name = "b" }]
link = [{ name = "cable", from = "a", to = "b", rate = "1 Mbit/s", delay = "20 ms" }]
transfer = [{ name = "file", kind = "tcp", from = "a", to = "b", bytes = "1 MB" }]
stop = "20 s"
"#;

const EVERY: Duration = Duration::from_millis(50);

fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a folder");
    fs::write(place.path().join("network.toml"), NETWORK).expect("a file");
    place
}

fn sweep(place: &Path) -> Sweep {
    Sweep::new(Spec::parse("spec.toml", SPEC, place, &[]).expect("a spec")).expect("a sweep")
}

fn series(place: &Path, format: Format) -> Series {
    Series { folder: place.join("series"), every: EVERY, format }
}

fn with(sweep: Sweep, series: Series) -> Result<Sweep, Error> {
    let points = sweep.all_points().expect("points");
    sweep.with_series(series, &points)
}

/// Executes what is due. Returns the number of runs and the table.
fn done(sweep: &Sweep, place: &Path) -> (u64, Vec<u8>) {
    let points = sweep.all_points().expect("points");
    let mut store = Store::open(place.join("rows")).expect("a store");
    let made = execute(sweep, &points, &mut store, Options::default(), &Watch::default()).expect("runs").made;
    let mut csv = Vec::new();
    Table::new(sweep, &points, &store).and_then(|table| table.write_csv(&mut csv)).expect("a table");
    (made, csv)
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

fn numbers(frame: &Frame, name: &str) -> Vec<f64> {
    match frame.values(name) {
        Some(Values::Numbers(values)) => values.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect(),
        Some(Values::Integers(values)) => {
            values.into_iter().map(|value| value.unwrap_or(-1) as f64).collect()
        }
        other => panic!("{name}: {other:?}"),
    }
}

/// Each run has the rows that a sampler of that run alone yields, preceded by its identifying
/// columns. Results equal those of a sweep without time series.
#[test]
fn files_have_what_a_run_alone_says() {
    let place = place();
    let (_, without) = done(&sweep(place.path()), &place.path().join("without"));
    let sweep = with(sweep(place.path()), series(place.path(), Format::Parquet)).expect("a scenario");
    assert_eq!(done(&sweep, place.path()), (8, without));
    let points = sweep.all_points().expect("points");
    let mut seen = BTreeMap::new();
    for file in files(&place.path().join("series/connections")) {
        let frame = Frame::read_parquet(fs::read(&file).expect("a file").into()).expect("Parquet");
        let of = |name: &str| {
            let all = numbers(&frame, name);
            assert!(all.iter().all(|value| *value == all[0]), "{name} {all:?}");
            all[0]
        };
        let (point, run) = (of("point") as usize, of("run") as u64);
        assert_eq!(of("link.cable.loss"), [0.0, 0.02][point / 2]);
        assert_eq!(of("transfer.file.bytes"), [40e3, 50e3][point % 2]);
        let (scenario, contents) = sweep.simulated(&points[point]).expect("a point").expect("a scenario");
        let Plan { builder, planned } = scenario.plan(of("seed") as u64, run, &contents).expect("a plan");
        let mut sim = builder.build();
        let mut sampler = Sampler::new(Columns::default(), EVERY, &scenario, &planned, &mut sim);
        sampler.run_until(&mut sim, scenario.stop);
        let (name, columns) = sampler.finish(&mut sim).tables().swap_remove(0);
        assert_eq!(name, "connections");
        for column in columns {
            assert_eq!(frame.values(&column.name), Some(column.values), "{point} {run} {}", column.name);
        }
        assert!(seen.insert((point, run), ()).is_none());
    }
    assert_eq!(seen.len(), 8);
    let units =
        Frame::read_parquet(fs::read(&files(&place.path().join("series/queues"))[0]).expect("a file").into());
    let units = units.expect("Parquet");
    let units: Vec<_> = units.columns().filter(|(_, unit)| *unit != "1").collect();
    assert_eq!(units, [("transfer.file.bytes", "B"), ("time_s", "s"), ("bytes", "B")]);
    assert_eq!(files(&place.path().join("series/runs")).len(), 8);
    // No radio, no file.
    assert!(!place.path().join("series/radios").exists());
}

/// Only missing files are written again; an incomplete run counts as missing.
#[test]
fn a_sweep_goes_on_with_the_files_that_are_missing() {
    let place = place();
    let (_, without) = done(&sweep(place.path()), place.path());
    let sweep = with(sweep(place.path()), series(place.path(), Format::Csv)).expect("a scenario");
    assert_eq!(done(&sweep, place.path()), (8, without.clone()), "rows are there, and their series are not");
    assert_eq!(done(&sweep, place.path()).0, 0);
    let all = || {
        let tables =
            ["connections", "queues", "runs"].map(|table| files(&place.path().join("series").join(table)));
        tables.into_iter().flatten().map(|file| (fs::read(&file).expect("a file"), file)).collect::<Vec<_>>()
    };
    let before = all();
    let header = String::from_utf8(before[0].0.clone()).expect("text").lines().next().map(str::to_owned);
    assert!(
        header.as_deref().is_some_and(|header| {
            header.starts_with("point,link.cable.loss,transfer.file.bytes [B],seed,run,time_s [s],node,")
        }),
        "{header:?}"
    );
    fs::remove_file(&files(&place.path().join("series/runs"))[3]).expect("it is there");
    fs::remove_file(&files(&place.path().join("series/queues"))[3]).expect("it is there");
    assert_eq!(done(&sweep, place.path()), (1, without));
    assert_eq!(all(), before);
}

#[test]
fn what_cannot_be_written_ends_the_sweep_with_its_name() {
    let place = place();
    let sweep = with(sweep(place.path()), series(place.path(), Format::Parquet)).expect("a scenario");
    fs::write(place.path().join("series/connections"), "a file").expect("a file");
    let points = sweep.all_points().expect("points");
    let mut store = Store::open(place.path().join("rows")).expect("a store");
    let error = execute(&sweep, &points, &mut store, Options::default(), &Watch::default()).unwrap_err();
    assert!(matches!(error, Error::Run { .. }) && error.to_string().contains("connections"), "{error}");
    let taken = Series { folder: place.path().join("network.toml"), every: EVERY, format: Format::Csv };
    assert!(matches!(with(self::sweep(place.path()), taken).unwrap_err(), Error::Store { .. }));
}

/// A folder has the series of the same points at one interval; the number of runs may grow.
#[test]
fn a_folder_is_of_one_table() {
    let place = place();
    let of = |spec: &str| {
        Sweep::new(Spec::parse("spec.toml", spec, place.path(), &[]).expect("a spec")).expect("a sweep")
    };
    let first = with(of(SPEC), series(place.path(), Format::Csv)).expect("a new folder");
    assert_eq!(done(&first, place.path()).0, 8);
    let more = with(of(&SPEC.replace("runs = 2", "runs = 3")), series(place.path(), Format::Csv))
        .expect("more runs");
    assert_eq!(done(&more, place.path()).0, 4);
    for spec in [SPEC.replace("\"50 kB\"", "\"50 kB\", \"60 kB\""), SPEC.replace("\"0 %\"", "0.0")] {
        let error = with(of(&spec), series(place.path(), Format::Csv)).unwrap_err();
        assert!(error.to_string().contains("other points"), "{error}");
    }
    let slower = Series { every: EVERY * 2, ..series(place.path(), Format::Csv) };
    assert!(with(of(SPEC), slower).unwrap_err().to_string().contains("another interval"));
    let large = of(&format!("seeds = [18446744073709551615]\n{SPEC}"));
    assert!(with(large, series(place.path(), Format::Csv)).unwrap_err().to_string().contains("too large"));
}

/// Points with equal meaning have separate files.
#[test]
fn equal_points_have_series_each() {
    let place = place();
    let spec = "scenario = \"network.toml\"\nruns = 3\n[grid]\n\"link.cable.delay\" = [\"10 ms\", \"10000 us\", \"20 ms\"]\n";
    for turn in 0..10 {
        let sweep =
            Sweep::new(Spec::parse("spec.toml", spec, place.path(), &[]).expect("a spec")).expect("a sweep");
        let folder = place.path().join(format!("series{turn}"));
        let sweep = with(sweep, Series { folder: folder.clone(), every: EVERY, format: Format::Csv })
            .expect("a folder");
        done(&sweep, &place.path().join(format!("rows{turn}")));
        assert_eq!(files(&folder.join("runs")).len(), 9);
        assert_eq!(files(&folder.join("queues")).len(), 9);
    }
}

#[test]
fn a_parameter_with_the_name_of_a_column_is_refused() {
    let place = place();
    let network = format!("{NETWORK}[alias]\nbytes = \"transfer.file.bytes\"\n");
    fs::write(place.path().join("network.toml"), network).expect("a file");
    let spec = "scenario = \"network.toml\"\n[grid]\nbytes = [\"10 kB\"]\n";
    let sweep =
        Sweep::new(Spec::parse("spec.toml", spec, place.path(), &[]).expect("a spec")).expect("a sweep");
    let error = with(sweep, series(place.path(), Format::Csv)).unwrap_err();
    assert_eq!(error.to_string(), "the parameter `bytes` has the name of a column of time series");
}
