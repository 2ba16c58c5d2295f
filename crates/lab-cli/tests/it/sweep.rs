//! Tests of `anabranch sweep` on the command line, also after kills.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anabranch_testkit::broken_pipe;
use anabranch_testkit::prng::Prng;
use assert_cmd::prelude::*;
use serde_json::Value;
use tempfile::TempDir;

const NETWORK: &str = r#"
node = [{ name = "a" }, { name = "b" }]
link = [{ name = "cable", from = "a", to = "b", rate = "1 Mbit/s", delay = "5 ms", loss = 0.05 }]
transfer = [{ name = "file", kind = "tcp", from = "a", to = "b", bytes = "1 MB" }]
stop = "5 min"
"#;

/// A folder with a network, a sweep of it, and the results.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new(spec: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("network.toml"), NETWORK).expect("a file");
        fs::write(folder.path().join("spec.toml"), format!("scenario = \"network.toml\"\n{spec}"))
            .expect("a file");
        Self { folder }
    }

    fn out(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, out: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch-lab"));
        command.current_dir(self.folder.path()).args(["sweep", "spec.toml", "--out", out]).args(arguments);
        command
    }

    /// Standard output of a successful sweep.
    #[track_caller]
    fn run(&self, out: &str, arguments: &[&str]) -> String {
        let assert = self.command(out, arguments).assert().success();
        String::from_utf8(assert.get_output().stdout.clone()).expect("text")
    }

    #[track_caller]
    fn fails(&self, out: &str, arguments: &[&str], code: i32) -> String {
        let assert = self.command(out, arguments).assert().code(code);
        String::from_utf8(assert.get_output().stderr.clone()).expect("text")
    }

    /// Number of finished runs, as the next process sees it.
    #[track_caller]
    fn done(&self, out: &str) -> u64 {
        let text = self.run(out, &["--dry-run", "--json"]);
        let standing: Value = serde_json::from_str(&text).expect("an object");
        standing["runs_done"].as_u64().expect("a number")
    }

    #[track_caller]
    fn tables(&self, out: &str) -> [Vec<u8>; 2] {
        ["table.csv", "table.parquet"].map(|name| fs::read(self.out(out).join(name)).expect("a table"))
    }
}

fn grid(runs: u64) -> String {
    format!("runs = {runs}\n[grid]\n\"link.cable.loss\" = [0.0, 0.02, 0.05]\n")
}

/// Length of all logs in a folder, in bytes.
fn logged(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let log = |entry: fs::DirEntry| {
        entry.path().extension().is_some_and(|e| e == "log").then(|| entry.metadata().ok())?
    };
    entries.filter_map(|entry| Some(log(entry.ok()?)?.len())).sum()
}

/// Waits until a process has ended or its logs have this length.
fn wait(child: &mut Child, folder: &Path, octets: u64) {
    while logged(folder) < octets && child.try_wait().expect("a child").is_none() {
        std::thread::park_timeout(Duration::from_millis(1));
    }
}

#[test]
fn a_sweep_says_means_and_writes_tables() {
    let place = Place::new(&grid(4));
    let text = place.run("out", &["--jobs", "2"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].ends_with("transfer.file.latency_s [s]") && lines[0].contains("link.cable.loss  runs"),
        "{text}"
    );
    assert!(lines[1].contains("0.0     4") && lines[1].contains(" ± 0"), "{text}");
    assert!(
        text.contains("spec: 3 points, 12 runs") && text.contains("written: out/table.parquet"),
        "{text}"
    );
    let [csv, parquet] = place.tables("out");
    assert_eq!(csv.iter().filter(|octet| **octet == b'\n').count(), 13);
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    // A second start runs nothing and prints the same.
    let again = place.command("out", &[]).assert().success().stderr("").stdout(text);
    drop(again);
    assert_eq!(place.tables("out"), [csv, parquet]);
}

/// All commands have the same format of results.
#[test]
fn results_of_run_sweep_and_lab_have_the_same_keys() {
    let place = Place::new(&grid(1));
    let said = |command: &mut Command| -> Value {
        let said = command.assert().success().get_output().stdout.clone();
        let first = String::from_utf8(said).expect("text").lines().next().map(str::to_owned);
        serde_json::from_str(&first.expect("a line")).expect("an object")
    };
    let latency = "transfer.file.latency_s";
    let program = |arguments: &[&str]| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch-lab"));
        command.current_dir(place.folder.path()).args(arguments);
        command
    };
    let all = [
        (said(&mut program(&["run", "network.toml", "--json"])), "scenario", latency),
        (said(&mut place.command("out", &["--json", "--metric", latency])), "sweep", latency),
        (said(&mut program(&["lab", "run", "set", "--runs", "1", "--json"])), "experiment", "latency_s"),
    ];
    for (result, name, metric) in &all {
        assert!(result[name].is_string() && result["params"].is_object(), "{name}: {result}");
        assert_eq!((&result["runs"], &result["seed"]), (&1.into(), &1.into()), "{name}");
        let metric = result["metrics"][metric].as_object().expect("a metric");
        let mut keys: Vec<&str> = metric.keys().map(String::as_str).collect();
        keys.sort_unstable();
        assert_eq!(keys, ["ci95", "max", "mean", "min", "unit"], "{name}");
        assert!(metric["ci95"].is_null() && metric["mean"] == metric["max"], "{name}: {metric:?}");
    }
}

#[test]
fn json_has_a_point_a_line_and_then_the_whole() {
    let place = Place::new(&grid(3));
    let text = place.run("out", &["--json", "--metric", "transfer.file.delivered"]);
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(
        (&lines[1]["point"], &lines[1]["runs"], &lines[1]["enough"]),
        (&1.into(), &3.into(), &Value::Null)
    );
    assert_eq!(lines[1]["params"]["link.cable.loss"], 0.02);
    assert_eq!(lines[1]["hash"].as_str().map(str::len), Some(64));
    assert_eq!(lines[1]["metrics"]["transfer.file.delivered"]["mean"], 1.0);
    assert_eq!((&lines[3]["runs_done"], &lines[3]["runs_missing"]), (&9.into(), &0.into()));
    assert!(
        place
            .fails("out", &["--metric", "transfer.file.delivred"], 2)
            .contains("did you mean `transfer.file.delivered`?")
    );
}

#[test]
fn shards_make_what_one_process_makes_and_the_last_writes_it() {
    let place = Place::new(&grid(6));
    place.run("one", &[]);
    assert!(place.run("many", &["--dry-run", "--shard", "2/4"]).contains("shard 2/4: 5 of these"));
    for (shard, missing) in [("3/4", 14), ("1/4", 9), ("4/4", 5)] {
        let text = place.run("many", &["--shard", shard]);
        assert!(text.contains(&format!("{missing} runs of other shards are missing")), "{text}");
        assert!(!place.out("many").join("table.csv").exists());
    }
    let text = place.fails("many", &["--export"], 1);
    assert!(text.contains("13 runs are done, 5 are missing") && text.contains("--partial"), "{text}");
    place.run("many", &["--export", "--partial"]);
    assert_ne!(place.tables("many"), place.tables("one"));
    place.run("many", &["--shard", "2/4"]);
    assert_eq!(place.tables("many"), place.tables("one"));
    assert!(place.fails("many", &["--shard", "5/4"], 2).contains("numbered from 1"));
}

#[test]
fn runs_are_added_until_they_are_enough() {
    let place = Place::new(
        "[grid]\n\"link.cable.loss\" = [0.0, 0.3]\n[enough]\nmetric = \"transfer.file.latency_s\"\nwidth = \"5 %\"\nmin = 3\nmax = 6\n",
    );
    let text = place.run("out", &[]);
    assert!(
        text.contains("6 runs are not enough for the mean of transfer.file.latency_s at 1 points: 1"),
        "{text}"
    );
    assert!(text.contains("2 points, 9 runs"), "{text}");
    let wrong =
        Place::new("[enough]\nmetric = \"transfer.file.latncy_s\"\nwidth = \"5 %\"\nmin = 3\nmax = 6\n");
    assert!(wrong.fails("out", &[], 2).contains("did you mean `transfer.file.latency_s`?"));
}

#[test]
fn a_spec_that_is_wrong_is_shown_where() {
    let place = Place::new("[grid]\n\"link.cabel.loss\" = [0.1]\n");
    let text = place.fails("out", &[], 2);
    assert_eq!(
        text,
        "error: spec.toml:3:21: there is no entry `cabel` in that list (`link.cabel.loss` = 0.1)\n  hint: did you mean `cable`?\n"
    );
    assert!(!place.out("out").exists());
}

/// Traces are read relative to the scenario, and are part of a run's identity.
#[test]
fn a_sweep_follows_traces_and_runs_again_what_follows_another() {
    let place = Place::new("runs = 2\n[grid]\n\"link.cable.trace.mahimahi\" = [\"one.up\", \"two.up\"]\n");
    let write = |name: &str, text: &str| fs::write(place.folder.path().join(name), text).expect("a file");
    write("one.up", "10\n20\n");
    write("two.up", "5\n");
    place.run("out", &["--jobs", "2"]);
    assert_eq!(place.done("out"), 4);
    write("one.up", "11\n20\n");
    assert_eq!(place.done("out"), 2);
    place.run("out", &["--jobs", "2"]);
    assert_eq!(place.done("out"), 4);
    write("two.up", "5\n4\n");
    let said = place.fails("out", &[], 2);
    assert!(said.contains("two.up:2:1: 4 ms is before 5 ms"), "{said}");
    fs::remove_file(place.folder.path().join("two.up")).expect("it was there");
    let said = place.fails("out", &[], 2);
    assert!(said.contains("cannot read the trace `two.up`"), "{said}");
}

#[test]
fn whoever_is_interrupted_says_so_and_goes_on() {
    let place = Place::new(&grid(2_000));
    let mut child = place.command("out", &["--quiet"]).stderr(Stdio::piped()).spawn().expect("the program");
    wait(&mut child, &place.out("out"), 5_000);
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill is here");
    assert!(killed.success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.starts_with("interrupted: ") && text.contains("repeat the command to resume"), "{text}");
    let done = place.done("out");
    assert!(0 < done && done < 6_000, "{done}");
    assert!(text.contains(&format!(" {done} runs ")), "{text}: {done}");
}

#[test]
fn two_processes_at_once_share_a_folder() {
    let place = Place::new(&grid(40));
    place.run("one", &[]);
    let both = [0, 1]
        .map(|_| place.command("both", &["--quiet"]).stdout(Stdio::null()).spawn().expect("the program"));
    for mut child in both {
        assert!(child.wait().expect("it ends").success());
    }
    assert_eq!(place.tables("both"), place.tables("one"));
}

/// A number from the environment, for the long form.
fn asked(name: &str, default: u64) -> u64 {
    anabranch_testkit::given(name).unwrap_or(default)
}

#[test]
fn whoever_is_killed_at_any_moment_loses_nothing_and_doubles_nothing() {
    let (runs, kills) = (asked("ANABRANCH_SWEEP_RUNS", 600), asked("ANABRANCH_SWEEP_KILLS", 8));
    let seed = asked("ANABRANCH_SWEEP_SEED", 1);
    let mut random = Prng::new(seed);
    let place = Place::new(&grid(runs.div_ceil(3)));
    let runs = runs.next_multiple_of(3);
    let undisturbed = place.command("one", &[]).assert().success();
    println!("{}", String::from_utf8_lossy(&undisturbed.get_output().stderr));
    let whole = logged(&place.out("one"));
    let mut done = 0;
    for kill in 0..kills {
        let mut child =
            place.command("killed", &["--quiet"]).stdout(Stdio::null()).spawn().expect("the program");
        // Some processes are killed before they have written anything, the others anywhere in their
        // share of the work.
        let share = whole / kills * 3 / 2;
        let octets = if kill % 8 == 7 { 0 } else { random.below(share.max(1)) };
        let goal = logged(&place.out("killed")) + octets;
        wait(&mut child, &place.out("killed"), goal);
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        let now = place.done("killed");
        assert!(now >= done, "seed {seed}, kill {kill}: {done} were done, now {now}");
        done = now;
    }
    println!("{kills} kills, seed {seed}: {done} of {runs} runs were done before the last process began");
    place.run("killed", &["--quiet"]);
    assert!(place.tables("killed") == place.tables("one"), "seed {seed}");
    // Every row was written once: the logs have the same length, except for their headers.
    let again = logged(&place.out("killed"));
    assert!(again <= whole + whole / 10 + 20_000, "seed {seed}: {again} octets of logs, {whole} undisturbed");
    println!("tables of {runs} runs are those of an undisturbed sweep, octet by octet");
}

/// A sweep of an experiment works like any other, and shares its rows with `lab run`.
#[test]
fn an_experiment_is_swept_sharded_and_resumed() {
    let place = Place::new("");
    let spec = "experiment = \"dtc\"\nseeds = [1, 2]\nruns = 3\n[set]\nsegments = 20\n[grid]\nhops = [2, 3]\nloss = [0, \"5 %\"]\n";
    fs::write(place.out("spec.toml"), spec).expect("a file");
    let text = place.run("one", &[]);
    assert!(text.contains("data_transmissions") && text.contains("spec: 4 points, 24 runs"), "{text}");
    for shard in ["2/3", "1/3", "3/3"] {
        place.run("many", &["--shard", shard]);
    }
    assert_eq!(place.tables("many"), place.tables("one"));
    let csv = String::from_utf8(place.tables("one")[0].clone()).expect("text");
    let head = csv.lines().next().expect("a header");
    assert!(head.starts_with("point,hops,loss,segments,seed,run,scenario_hash,version,"), "{head}");
    assert!(head.contains(",throughput_bit_per_s [bit/s],transmissions_by_node.0,"), "{head}");
    let json =
        place.run("one", &["--json", "--metric", "completion_s", "--metric", "transmissions_by_node.1"]);
    let points: Vec<Value> =
        json.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    assert_eq!(
        (&points[0]["params"]["loss"], &points[0]["metrics"]["completion_s"]["unit"]),
        (&0.into(), &"s".into())
    );
    assert_eq!(
        points[0]["metrics"]["transmissions_by_node.1"]["mean"],
        Value::Null,
        "two hops have one node between"
    );
    assert!(points[2]["metrics"]["transmissions_by_node.1"]["mean"].is_number());

    let out = place.out("one");
    let run = ["lab", "run", "dtc", "--set", "hops=2,3", "--set", "loss=0,5%", "--set", "segments=20"];
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch-lab"));
    command.args(run).args(["--seed", "2", "--runs", "4", "--out"]).arg(&out);
    let said = command.assert().success().get_output().stderr.clone();
    let said = String::from_utf8(said).expect("text");
    assert!(said.contains("4 runs in "), "one more run of each point: {said}");
}

/// The output of `lab run` does not depend on whether rows are stored.
#[test]
fn lab_run_keeps_rows_and_goes_on() {
    let place = Place::new("");
    let program = |arguments: &[&str]| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch-lab"));
        // With one thread a signal comes before the end, even if this process waits for its turn.
        command
            .env("RAYON_NUM_THREADS", "1")
            .current_dir(place.folder.path())
            .args(["lab", "run", "dtc", "--set", "segments=30"])
            .args(arguments);
        command
    };
    let printed = |arguments: &[&str]| program(arguments).assert().success().get_output().stdout.clone();
    for form in [&["--set", "hops=2,3", "--runs", "3"][..], &["--set", "hops=2,3", "--runs", "3", "--json"]] {
        let kept = [form, &["--out", "rows"]].concat();
        let plain = printed(form);
        assert_eq!(printed(&kept), plain);
        let again = program(&kept).assert().success().get_output().clone();
        assert!(again.stdout == plain && again.stderr.is_empty(), "nothing is left to run");
    }
    let tables = place.tables("rows");
    assert_eq!(tables[0].iter().filter(|octet| **octet == b'\n').count(), 1 + 2 * 3);
    assert!(String::from_utf8_lossy(&tables[0]).starts_with("point,hops,segments,seed,"));

    // Killed and interrupted on the way, the grid ends with the same tables.
    let long = ["--set", "loss=0.05,0.1", "--set", "hops=6", "--runs", "800", "--quiet", "--out"];
    let whole = [&long[..], &["whole"]].concat();
    program(&whole).assert().success();
    let parts = [&long[..], &["parts"]].concat();
    for signal in ["-KILL", "-INT"] {
        let before = logged(&place.out("parts"));
        let mut child =
            program(&parts).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program");
        wait(&mut child, &place.out("parts"), before + 5_000);
        assert!(
            Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill").success()
        );
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.stdout.is_empty(), "{signal}");
        if signal == "-INT" {
            assert_eq!(output.status.code(), Some(130), "{said}");
            assert!(
                said.starts_with("interrupted: ") && said.contains("repeat the command to resume"),
                "{said}"
            );
        }
    }
    program(&parts).assert().success();
    assert!(place.tables("parts") == place.tables("whole"));
}

/// The mean of the delivered transfers leaves the slowest out; the median covers all, with a
/// confidence interval.
#[test]
fn latencies_that_are_cut_have_a_median_of_all() {
    let place = Place::new("runs = 11\n[set]\n\"transfer.file.bytes\" = \"20 kB\"\n");
    let point = |out: &str, arguments: &[&str]| -> Value {
        let text = place.run(out, &[&["--json", "--quiet"], arguments].concat());
        serde_json::from_str(text.lines().next().expect("a point")).expect("JSON")
    };
    let latency = |point: &Value| point["metrics"]["transfer.file.latency_s"].clone();
    let whole = latency(&point("whole", &[]));
    assert!(["median", "median_ci95", "censored"].iter().all(|key| whole.get(key).is_none()), "{whole}");
    let column = |out: &str, name: &str| -> Vec<f64> {
        let table = fs::read_to_string(place.out(out).join("table.csv")).expect("a table");
        let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let at = lines.next().expect("a header").iter().position(|of| *of == name).expect("a column");
        lines.filter_map(|line| line[at].parse().ok()).collect()
    };
    let mut all = column("whole", "transfer.file.latency_s [s]");
    all.sort_by(f64::total_cmp);
    assert_eq!(all.len(), 11);
    let stop = f64::midpoint(all[7], all[8]);
    let spec = format!(
        "scenario = \"network.toml\"\nruns = 11\n[set]\n\"transfer.file.bytes\" = \"20 kB\"\nstop = \"{stop} s\"\n"
    );
    fs::write(place.out("spec.toml"), spec).expect("a file");
    let cut = latency(&point("cut", &[]));
    assert_eq!((&cut["censored"], &cut["missing"], &cut["unit"]), (&3.into(), &3.into(), &"s".into()));
    assert_eq!(cut["median"].as_f64(), Some(all[5]), "{cut}");
    let low = cut["median_ci95"][0].as_f64().expect("a lower end");
    assert!(all[0] <= low && low < all[5], "{cut}");
    assert!(
        column("cut", "transfer.file.latency_censored_s [s]").iter().all(|time| (time - stop).abs() < 1e-9)
    );
    let text = place.run("cut", &["--quiet"]);
    assert!(text.contains("(Kaplan-Meier: median ") && text.contains("; 3 censored)"), "{text}");
}

/// Progress and errors that are not read end nothing, and the exit code is that of the outcome.
#[test]
fn what_nobody_reads_leaves_the_exit_code() {
    let place = Place::new("runs = 3\n");
    let code = |mut command: Command| {
        command.stdout(Stdio::null()).stderr(broken_pipe()).status().expect("it starts").code()
    };
    assert_eq!(code(place.command("out", &[])), Some(0));
    for words in
        [&["sweep", "nosuch.toml"][..], &["run", "nosuch.toml"], &["lab", "run", "nosuch"], &["plan", "x"]]
    {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch-lab"));
        command.current_dir(place.folder.path()).args(words);
        assert_eq!(code(command), Some(2), "{words:?}");
    }
}

/// Time series of all runs have the requested format; for experiments, and without a folder, they
/// are refused.
#[test]
fn a_sweep_writes_time_series() {
    let place = Place::new("runs = 2\n[grid]\n\"link.cable.loss\" = [0.0, 0.1]\n");
    let without = place.run("plain", &["--quiet"]);
    for (format, arguments) in
        [("parquet", &[][..]), ("csv", &["--series-format", "csv", "--series-every", "1s"])]
    {
        let folder = place.out(format);
        let given = ["--quiet", "--series", folder.to_str().expect("text")];
        let said = place.run(&format!("{format}-rows"), &[&given, arguments].concat());
        assert_eq!(said.lines().next(), without.lines().next());
        for table in ["connections", "queues", "runs"] {
            let files = fs::read_dir(folder.join(table)).expect("a folder");
            let names: Vec<_> = files.map(|file| file.expect("a file").file_name()).collect();
            assert_eq!(names.len(), 4, "{table}");
            assert!(
                names.iter().all(|name| Path::new(name).extension() == Some(format.as_ref())),
                "{names:?}"
            );
        }
    }
    for (arguments, expected) in [
        (&["--series-every", "1s"][..], "--series <DIR>"),
        (&["--series", "x", "--series-every", "0s"], "0s"),
        (&["--series", "x", "--series-every", "5"], "no unit"),
        (&["--series", "x", "--export"], "cannot be used with"),
    ] {
        let error = place.fails("wrong", arguments, 2);
        assert!(error.contains(expected), "{error}");
    }
    fs::write(place.out("spec.toml"), "experiment = \"dtc\"\n").expect("a file");
    let error = place.fails("wrong", &["--series", "x"], 2);
    assert!(error.contains("the experiment `dtc` makes its runs itself, without time series"), "{error}");
}

/// On a terminal the rate of runs is a number in the colour of the text: a template's precision
/// would be the colour black.
#[test]
fn a_terminal_shows_the_rate_in_the_colour_of_the_text() {
    let place = Place::new("runs = 400\n");
    let program = assert_cmd::cargo::cargo_bin!("anabranch-lab").display().to_string();
    let mut command = Command::new("script");
    command.current_dir(place.folder.path()).env("TERM", "xterm-256color").env_remove("NO_COLOR");
    command
        .args(["-qec", &format!("{program} sweep spec.toml --out shown"), "/dev/null"])
        .stdin(Stdio::null());
    let Ok(output) = command.output() else {
        anabranch_testkit::debian::skipped("a look at a terminal: there is no `script` here (bsdutils)");
        return;
    };
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{shown}");
    let rates: Vec<&str> = shown.split("  ").filter(|part| part.ends_with("/s")).collect();
    assert!(!rates.is_empty(), "{shown:?}");
    for rate in rates {
        assert!(rate.trim_end_matches("/s").chars().all(|c| c.is_ascii_digit()), "{rate:?} in {shown:?}");
    }
    assert!(!shown.contains("\u{1b}[30m"), "{shown:?}");
}
