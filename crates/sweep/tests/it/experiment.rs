//! Tests of sweeps of an experiment that is defined here: rows equal the measurements of its
//! points, regardless of where and when they were executed.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_scenario::{Scenario, Source};
use anabranch_sim::random::Stream;
use anabranch_sweep::experiment::{
    Chance, Experiment, Measured, Metric, Parameter, ParameterError, Point, RunError, Settings, parameter,
};
use anabranch_sweep::spec::{Runs, Subject};
use anabranch_sweep::{Error, Job, Options, Shard, Spec, Store, Sweep, Watch, execute, execute_here, row};
use expect_test::{Expect, expect};
use proptest::prelude::*;

use crate::sweep::tables_of;

const NETWORK: &str = r#"
node = [{ name = "a" }, { name = "b" }]
link = [{ name = "cable", from = "a", to = "b", rate = "1 Mbit/s", delay = "5 ms" }]
transfer = [{ name = "file", kind = "tcp", from = "a", to = "b", bytes = "3 kB" }]
stop = "1 min"
"#;

/// Throws of dice, independent of the scenario. Dice with a single side give equal runs.
#[derive(Debug)]
struct Dice {
    build: &'static str,
}

const DICE: &dyn Experiment = &Dice { build: "1" };
const KNOWN: &[&dyn Experiment] = &[DICE];

/// Runs with this seed are counted.
const COUNTED: u64 = 4_242;
static MADE: AtomicU64 = AtomicU64::new(0);

#[derive(Debug)]
struct Throw {
    settings: Settings,
    dice: u64,
    sides: u64,
    scenario: Scenario,
}

impl Experiment for Dice {
    fn name(&self) -> &'static str {
        "dice"
    }

    fn about(&self) -> &'static str {
        "throws of dice"
    }

    fn build(&self) -> &'static str {
        self.build
    }

    fn parameters(&self) -> &'static [Parameter] {
        const { &[parameter("dice", "2", "0 or more", "dice"), parameter("sides", "6", "1 or more", "sides")] }
    }

    fn metrics(&self) -> &'static [Metric] {
        const {
            &[
                Metric { name: "sum", unit: "s", about: "all" },
                Metric { name: "last", unit: "1", about: "one" },
            ]
        }
    }

    fn arrays(&self) -> &'static [Metric] {
        const {
            &[
                Metric { name: "each", unit: "B", about: "each" },
                Metric { name: "few", unit: "1", about: "three" },
            ]
        }
    }

    fn point(&self, settings: &Settings) -> Result<Box<dyn Point>, ParameterError> {
        let number = |key: &'static str| {
            let text = settings.text(key);
            let hint = Some("such as 6".to_owned());
            text.parse().map_err(|_| ParameterError::bad(key, text, "expected a whole number", hint))
        };
        let (dice, sides) = (number("dice")?, number("sides")?);
        if dice * sides > 1_000 {
            let message = "too many spots".to_owned();
            return Err(ParameterError::Scenario { message, hint: Some("take fewer `dice`".to_owned()) });
        }
        let scenario = Source::new("dice.toml", NETWORK).scenario().expect("a good scenario");
        Ok(Box::new(Throw { settings: settings.clone(), dice, sides, scenario }))
    }
}

impl Point for Throw {
    fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        ["dice", "sides"].map(|name| (name, self.settings.text(name).to_owned())).to_vec()
    }

    fn chance(&self) -> Chance {
        if self.sides == 1 { Chance::None } else { Chance::Random }
    }

    fn run(&self, seed: u64, run: u64) -> Result<Vec<Option<f64>>, RunError> {
        Ok(self.measure(seed, run)?.values)
    }

    fn measure(&self, seed: u64, run: u64) -> Result<Measured, RunError> {
        if seed == COUNTED {
            MADE.fetch_add(1, Ordering::Relaxed);
        }
        if self.sides == 0 {
            return Err(RunError::Impossible {
                message: "a die of no side".to_owned(),
                hint: "take `sides=6`",
            });
        }
        assert_ne!(self.sides, 13, "nobody throws that");
        let mut stream = Stream::new(seed, run, "dice", "throw");
        let each: Vec<f64> = (0..self.dice).map(|_| stream.range(1..=self.sides) as f64).collect();
        let sum = if self.sides == 99 { f64::NAN } else { each.iter().sum() };
        let few = (each.len() < 4).then(|| each.clone());
        Ok(Measured { values: vec![Some(sum), each.last().copied()], arrays: vec![Some(each), few] })
    }
}

fn read(text: &str) -> Result<Sweep, Error> {
    Sweep::new(Spec::parse("s.toml", &format!("experiment = \"dice\"\n{text}"), Path::new(""), KNOWN)?)
}

/// Executes what is due, and returns the number of runs.
#[track_caller]
fn run(sweep: &Sweep, store: &mut Store, shard: Shard) -> u64 {
    let points = sweep.all_points().expect("good points");
    execute(sweep, &points, store, Options { threads: 2, shard }, &Watch::default()).expect("it runs").made
}

const GRID: &str = "seeds = [3, 1]\nruns = 4\n[set]\nsides = 6\n[grid]\ndice = [0, 1, \"2\", 5]\n";

#[test]
fn a_row_has_the_metrics_under_their_own_names() {
    let (sweep, mut store) =
        (read("[set]\nsides = 6\n[grid]\ndice = [0, 2, 5]\n").unwrap(), Store::in_memory());
    run(&sweep, &mut store, Shard::ALL);
    let csv = String::from_utf8(tables_of(&sweep, &store)[0].clone()).unwrap();
    let without_hash: Vec<String> = csv
        .lines()
        .map(|line| line.split(',').filter(|cell| cell.len() < 40).collect::<Vec<_>>().join(","))
        .collect();
    expect![[r#"
        point,dice,sides,seed,run,scenario_hash,version,each.0 [B],each.1 [B],each.2 [B],each.3 [B],each.4 [B],few.0,few.1,last,sum [s]
        0,0,6,1,0,0.2.0,,,,,,,,,-0.0
        1,2,6,1,0,0.2.0,5.0,2.0,,,,5.0,2.0,2.0,7.0
        2,5,6,1,0,0.2.0,5.0,2.0,5.0,6.0,6.0,,,6.0,24.0"#]]
    .assert_eq(&without_hash.join("\n"));
}

#[test]
fn shards_jobs_and_interruptions_make_what_one_process_makes() {
    let sweep = read(GRID).unwrap();
    let mut whole = Store::in_memory();
    assert_eq!(run(&sweep, &mut whole, Shard::ALL), 32);

    let folder = tempfile::tempdir().unwrap();
    for number in [2, 3, 1] {
        run(&sweep, &mut Store::open(folder.path()).unwrap(), Shard::new(number, 3).unwrap());
    }
    let mut sharded = Store::open(folder.path()).unwrap();
    assert!(tables_of(&sweep, &sharded) == tables_of(&sweep, &whole));
    assert_eq!(run(&sweep, &mut sharded, Shard::ALL), 0);

    // Some jobs go through another process, which knows the experiment only by name; then
    // everything is stopped, and the rest is executed here.
    let (points, mut far) = (sweep.all_points().unwrap(), Store::in_memory());
    for job in sweep.jobs(&points, &far, Shard::ALL, 3).unwrap().iter().step_by(2) {
        let job = Job::from_json(&job.to_json(), KNOWN).unwrap();
        let rows = job.run(&Watch::default().cancel).unwrap().unwrap();
        far.append(&row::from_bytes(&row::to_bytes(&rows)).unwrap()).unwrap();
    }
    let stopped = Watch::default();
    stopped.cancel.store(true, Ordering::Relaxed);
    let outcome = execute(&sweep, &points, &mut far, Options::default(), &stopped).unwrap();
    assert!(outcome.cancelled && outcome.made == 0);
    let left = run(&sweep, &mut far, Shard::ALL);
    assert!(0 < left && left < 32, "{left}");
    assert!(tables_of(&sweep, &far) == tables_of(&sweep, &whole));
}

#[test]
fn a_worker_refuses_an_experiment_that_is_not_its_own() {
    let sweep = read(GRID).unwrap();
    let points = sweep.all_points().unwrap();
    let job = sweep.jobs(&points, &Store::in_memory(), Shard::ALL, 1).unwrap()[0].to_json();
    let refused = |known: &[&'static dyn Experiment]| Job::from_json(&job, known).unwrap_err().to_string();
    assert!(refused(&[]).contains("there is no experiment `dice`"), "{}", refused(&[]));
    assert!(refused(&[&Dice { build: "2" }]).contains("another build"));
    let other = job.replace("\"dice\":", "\"dies\":");
    assert!(Job::from_json(&other, KNOWN).unwrap_err().to_string().contains("unknown key `dies`"));
}

/// Equivalent spellings of a point lead to the same rows, and nothing else does.
#[test]
fn a_row_belongs_to_the_parameters_the_experiment_and_its_build() {
    let address = |sweep: &Sweep| {
        let points = sweep.all_points().unwrap();
        let run = sweep.addresses(&points[0], 1).next().unwrap();
        (run.1, points[0].hash.clone())
    };
    let (two, hash) = address(&read("[set]\ndice = 2\n").unwrap());
    assert_eq!(address(&read("").unwrap()).0, two, "the default, said or not");
    let assigned = Sweep::new(Spec::assigned(DICE, &["dice=2"]).unwrap()).unwrap();
    assert_eq!(address(&assigned).0, two);
    // The scenario is the same: only the metrics depend on the dice.
    let (three, same) = address(&read("[set]\ndice = 3\n").unwrap());
    assert!(three != two && same == hash);
    const REBUILT: &[&dyn Experiment] = &[&Dice { build: "2" }];
    let spec = Spec::parse("s.toml", "experiment = \"dice\"\n", Path::new(""), REBUILT).unwrap();
    assert_ne!(address(&Sweep::new(spec).unwrap()).0, two);
    let scenario = Subject::Scenario { source: Source::new("dice.toml", NETWORK), folder: "".into() };
    let (plain, same) = address(&Sweep::new(Spec::new("plain", scenario)).unwrap());
    assert!(plain != two && same == hash);
}

#[test]
fn a_metric_of_the_experiment_can_be_enough() {
    let enough = |metric: &str| {
        format!(
            "[grid]\nsides = [1, 2, 90]\n[enough]\nmetric = \"{metric}\"\nwidth = \"25 %\"\nmin = 4\nmax = 30\n"
        )
    };
    let (sweep, mut store) = (read(&enough("sum")).unwrap(), Store::in_memory());
    run(&sweep, &mut store, Shard::ALL);
    let points = sweep.all_points().unwrap();
    let standing: Vec<_> = points.iter().map(|point| sweep.standing(point, &store)).collect();
    assert_eq!((standing[0].runs, standing[0].met), (4, Some(true)), "all throws of one side are the same");
    assert!(4 < standing[2].runs && standing[2].missing.is_empty(), "{standing:?}");
    let (sweep, mut store) = (read(&enough("sun")).unwrap(), Store::in_memory());
    let points = sweep.all_points().unwrap();
    let error = execute(&sweep, &points, &mut store, Options::default(), &Watch::default()).unwrap_err();
    assert!(error.hint().unwrap().contains("did you mean `sum`?"), "{error}");
}

#[test]
fn one_run_is_made_for_all_where_nothing_is_random() {
    let sweep = read(&format!("seeds = [{COUNTED}]\nruns = 50\n[grid]\nsides = [1]\n")).unwrap();
    let mut store = Store::in_memory();
    assert_eq!(run(&sweep, &mut store, Shard::ALL), 50);
    assert_eq!(MADE.load(Ordering::Relaxed), 1);
    assert_eq!(store.len(), 50, "a row for each run");
}

#[test]
fn points_can_be_listed_and_each_run_is_told_of() {
    let mut spec = Spec::new("listed", Subject::Experiment(DICE));
    let settings = [(1, 6), (4, 2), (1, 6)]
        .map(|(dice, sides)| Settings::defaults(DICE).with("dice", dice).with("sides", sides));
    spec.listed = settings.iter().map(Settings::parameters).collect();
    spec.runs = Runs::Fixed(5);
    let sweep = Sweep::new(spec).unwrap();
    assert_eq!(sweep.settings().unwrap(), settings);
    let (points, mut store, told) = (sweep.all_points().unwrap(), Store::in_memory(), AtomicU64::new(0));
    let each = || {
        told.fetch_add(1, Ordering::Relaxed);
    };
    let watch = Watch { each: Some(&each), ..Watch::default() };
    execute_here(&sweep, &points, &mut store, Shard::ALL, &watch).unwrap();
    assert_eq!((told.load(Ordering::Relaxed), store.len()), (15, 10), "two points are the same");
}

#[test]
fn the_last_assignment_is_the_fastest_axis() {
    let sweep = Sweep::new(Spec::assigned(DICE, &["sides=4,6", " dice = 1,2"]).unwrap()).unwrap();
    let said: Vec<String> = sweep
        .settings()
        .unwrap()
        .iter()
        .map(|point| format!("{}d{}", point.text("dice"), point.text("sides")))
        .collect();
    assert_eq!(said, ["1d4", "2d4", "1d6", "2d6"]);
}

/// Errors before anything is run.
#[track_caller]
fn refuse(text: &str, expected: Expect) {
    let spec = Spec::parse("s.toml", text, Path::new(""), KNOWN);
    let points = spec.and_then(Sweep::new).and_then(|sweep| sweep.all_points());
    let error = points.expect_err("it is refused");
    assert!(error.is_input(), "{error}");
    expected.assert_eq(&error.to_string());
}

#[test]
fn what_a_spec_says_wrong_is_shown_where() {
    refuse(
        "experiment = \"dcie\"",
        expect![[r#"
        s.toml:1:14: there is no experiment `dcie`
          hint: did you mean `dice`?"#]],
    );
    refuse(
        "experiment = \"Cargo.toml\"",
        expect![[r#"
        s.toml:1:14: there is no experiment `Cargo.toml`
          hint: this is a file: write `scenario = "Cargo.toml"`"#]],
    );
    refuse(
        "scenario = \"dice\"",
        expect![[r#"
        s.toml:1:12: cannot read dice: No such file or directory (os error 2)
          hint: this is an experiment: write `experiment = "dice"`"#]],
    );
    refuse(
        "scenario = \"n.toml\"\nexperiment = \"dice\"",
        expect![[r#"
        s.toml:2:14: a scenario and an experiment are both to be run
          hint: make a spec of each: their parameters and metrics differ"#]],
    );
    refuse(
        "experiment = \"dice\"\n[set]\ndies = 3",
        expect![[r#"
        s.toml:3:8: unknown key `dies`
          hint: did you mean `dice`?"#]],
    );
    refuse(
        "experiment = \"dice\"\n[grid]\ndice = [2, \"many\"]",
        expect![[r#"
        s.toml:3:8: expected a whole number (`dice` = "many")
          hint: such as 6"#]],
    );
    refuse(
        "experiment = \"dice\"\n[set]\ndice = [2, 3]",
        expect![[r#"
        s.toml:3:8: expected a number or a text (`dice` = [2,3])
          hint: an axis belongs in `[grid]`; several values of one point are a text such as "5ms+10ms""#]],
    );
    refuse(
        "experiment = \"dice\"\n[grid]\ndies = [[2]]",
        expect![[r#"
        s.toml:3:8: unknown key `dies`
          hint: did you mean `dice`?"#]],
    );
    refuse(
        "experiment = \"dice\"\n[set]\nsides = 90\n[grid]\ndice = [2, 50]",
        expect![[r#"
        s.toml: too many spots, at the point `dice` = 50
          hint: take fewer `dice`"#]],
    );
    refuse(
        "experiment = \"dice\"\n[[sample]]\ncount = 2\naxes = { dice = { uniform = [1, 2] } }",
        expect![[r#"
        s.toml:4:17: expected a whole number (`dice` = 1.9981893738082206)
          hint: such as 6"#]],
    );
    let given = Source::new("n.toml", NETWORK);
    let both = Spec::parse_for("s.toml", "experiment = \"dice\"", given, Path::new("")).unwrap_err();
    expect![[r#"
        s.toml:1:14: a scenario and an experiment are both to be run
          hint: make a spec of each: their parameters and metrics differ"#]]
    .assert_eq(&both.to_string());
}

/// An invalid run is detected only when it is executed.
#[test]
fn runs_that_cannot_be_made_end_the_sweep() {
    let failed = |sides: u64| {
        let sweep = Sweep::new(Spec::assigned(DICE, &[format!("sides={sides}")]).unwrap()).unwrap();
        let points = sweep.all_points().unwrap();
        let error = execute(&sweep, &points, &mut Store::in_memory(), Options::default(), &Watch::default());
        let error = error.unwrap_err();
        let said = format!("{error}; {}", error.hint().unwrap_or_default());
        format!("{said}; {:?}", RunError::from(error))
    };
    expect![[r#"run 0 with seed 1 of point 0: a die of no side; take `sides=6`; Impossible { message: "a die of no side", hint: "take `sides=6`" }"#]].assert_eq(&failed(0));
    expect![[r#"
        run 0 with seed 1 of point 0 panicked: assertion `left != right` failed: nobody throws that
          left: 13
         right: 13; this is a fault of anabranch: please report it with the scenario; other points go on if this one is left out; Failed("run 0 with seed 1 of point 0 panicked: assertion `left != right` failed: nobody throws that\n  left: 13\n right: 13")"#]].assert_eq(&failed(13));
    expect![[r#"run 0 with seed 1 of point 0: the metric `sum` of run 0 is not a finite number; ; NotFinite { metric: "sum", run: 0 }"#]].assert_eq(&failed(99));
}

proptest! {
    /// The store contains all measurements and nothing else.
    #[test]
    fn rows_are_what_points_measure(dice in 0u64..12, sides in 1u64..12, seed: u64, runs in 1u64..4) {
        let mut spec = Spec::assigned(DICE, &[format!("dice={dice}"), format!("sides={sides}")]).unwrap();
        (spec.seeds, spec.runs) = (vec![seed], Runs::Fixed(runs));
        let point = DICE.point(&Sweep::new(spec.clone()).unwrap().settings().unwrap()[0]).unwrap();
        let (sweep, mut store) = (Sweep::new(spec).unwrap(), Store::in_memory());
        let points = sweep.all_points().unwrap();
        execute_here(&sweep, &points, &mut store, Shard::ALL, &Watch::default()).unwrap();
        for (key, address) in sweep.addresses(&points[0], runs) {
            let Measured { values, arrays } = point.measure(key.seed, key.run).unwrap();
            let mut expected = vec![("sum".to_owned(), values[0]), ("last".to_owned(), values[1])];
            for (name, array) in ["each", "few"].into_iter().zip(arrays) {
                match array {
                    Some(array) => expected.extend((0..).zip(array).map(|(i, v)| (format!("{name}.{i}"), Some(v)))),
                    None => expected.push((format!("{name}.0"), None)),
                }
            }
            expected.sort_by(|a, b| a.0.cmp(&b.0));
            let (schema, values) = store.values(&address).unwrap();
            let found: Vec<_> = schema.0.iter().map(|(name, _)| name.clone()).zip(values.iter().copied()).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
