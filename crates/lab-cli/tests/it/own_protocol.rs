//! A crate outside the workspace adds a congestion control, a scheduler and a striping policy.
//!
//! Its program is an example of this package, so that cargo builds it beside the tests with the
//! libraries of the workspace. A build in its own workspace compiles all dependencies again and
//! takes 90 s of processor time. What that build would show in addition is tested separately: cargo
//! resolves the external crate to the same packages as the program `anabranch`, and `.ci/run`
//! builds it there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace")
}

/// Path of the user's program, which `cargo test` builds unless `--test` restricts it to tests.
///
/// # Panics
/// The program is missing or older than one of its sources.
fn program() -> PathBuf {
    let folder = assert_cmd::cargo::cargo_bin!("anabranch-lab").with_file_name("examples");
    let program = folder.join(format!("own-protocol{}", std::env::consts::EXE_SUFFIX));
    let advice = "build it: `cargo test -p anabranch-lab-cli --no-run`";
    let changed = |file: &Path| fs::metadata(file).and_then(|of| of.modified()).ok();
    let built = changed(&program).unwrap_or_else(|| panic!("no {}; {advice}", program.display()));
    // `PROGRAM: SOURCE SOURCE ...`, with the sources of all workspace crates in it.
    let sources = fs::read_to_string(folder.join("own-protocol.d")).expect("cargo writes it");
    let sources: Vec<&str> = sources.split_once(": ").expect("a rule of make").1.split_whitespace().collect();
    assert!(sources.iter().any(|file| file.ends_with("own-protocol/src/congestion.rs")), "{sources:?}");
    for source in sources {
        assert!(changed(Path::new(source)) <= Some(built), "{source} is newer than the program; {advice}");
    }
    program
}

/// Runs the user's program in the root.
fn own(arguments: &[&str]) -> Output {
    Command::new(program()).args(arguments).current_dir(root()).output().expect("the program starts")
}

/// Packages by name and version, each with the sets of features that cargo would build. `default`
/// is left out, since it stands for other features in the set.
type Packages = BTreeMap<String, BTreeSet<Vec<String>>>;

fn resolved(selection: &[&str]) -> Packages {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--offline", "--edges", "normal,build", "--prefix", "none", "--format", "{p}\t{f}"]);
    let run = cargo.args(selection).current_dir(root()).output().expect("cargo starts");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let mut packages = Packages::new();
    for line in String::from_utf8_lossy(&run.stdout).lines() {
        let (package, features) = line.split_once('\t').expect("a package and its features");
        let features = features.trim_end_matches(" (*)").split(',');
        let features = features.filter(|feature| *feature != "default").map(str::to_owned).collect();
        packages.entry(package.to_owned()).or_default().insert(features);
    }
    packages
}

#[test]
fn outside_the_workspace_cargo_resolves_it_to_what_the_program_is_built_with() {
    let folder = root().join("examples/own-protocol");
    // The same versions as in the workspace, without a registry.
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).expect("it may be written");
    let mut outside = resolved(&["--manifest-path", "examples/own-protocol/Cargo.toml"]);
    let own: Vec<String> = outside.keys().filter(|name| name.starts_with("own-protocol ")).cloned().collect();
    assert_eq!(own.len(), 1, "{own:?}");
    outside.remove(&own[0]);
    assert_eq!(outside, resolved(&["--locked", "--package", "anabranch-cli"]));
}

fn records(run: &Output) -> Vec<Value> {
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let text = String::from_utf8_lossy(&run.stdout);
    text.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect()
}

fn metric(record: &Value, name: &str) -> f64 {
    record["metrics"][name]["mean"].as_f64().expect("a number")
}

#[test]
fn a_protocol_of_a_users_own_is_compared_with_ours() {
    let queues = records(&own(&["run", "examples/own-protocol/compare.toml", "--json"]));
    let axes: Vec<&str> =
        queues.iter().map(|r| r["params"]["tcp.default.congestion"].as_str().expect("a name")).collect();
    assert_eq!(axes, ["newreno", "cubic", "vegas"]);
    let [newreno, cubic, vegas] = &queues[..] else { panic!("{axes:?}") };
    assert!(queues.iter().all(|record| metric(record, "transfer.file.delivered") == 1.0));
    // Purpose of a delay-based controller: the link stays full, and its queue almost empty.
    for loss_based in [newreno, cubic] {
        let peak = |record| metric(record, "link.a>b.queue_peak_bytes");
        assert!(peak(vegas) * 3.0 < peak(loss_based));
        assert!(metric(vegas, "transfer.file.latency_s") <= metric(loss_based, "transfer.file.latency_s"));
        let again = |record| metric(record, "transfer.file.retransmissions");
        assert!(again(vegas) == 0.0 && again(loss_based) > 0.0);
    }

    let striped = ["run", "scenarios/three-gateways.toml", "--json", "--set"];
    let ours = records(&own(&striped[..3]));
    let theirs = records(&own(&[&striped[..], &["transfer.0.set.striping=least-outstanding"]].concat()));
    assert_eq!(metric(&theirs[0], "transfer.update.delivered"), 1.0);
    assert_ne!(ours[0]["metrics"], theirs[0]["metrics"]);

    let scheduled = ["run", "scenarios/diamond-mptcp.toml", "--json", "--set", "transfer.log.bytes=50 kB"];
    let by = |scheduler: &str| {
        let scheduler = format!("transfer.log.mptcp.scheduler={scheduler}");
        records(&own(&[&scheduled[..], &["--set", &scheduler]].concat()))
    };
    let (ours, theirs) = (by("redundant"), by("soonest"));
    assert_eq!(metric(&theirs[0], "transfer.log.delivered"), 1.0);
    assert_ne!(ours[0]["metrics"], theirs[0]["metrics"]);
}

#[test]
fn whoever_has_not_brought_it_is_told_so() {
    let mut plain = Command::new(assert_cmd::cargo::cargo_bin!("anabranch-lab"));
    let run = plain.args(["run", "examples/own-protocol/compare.toml"]).current_dir(root()).output();
    let run = run.expect("the program starts");
    assert_eq!(run.status.code(), Some(2));
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(said.contains("this program has no congestion control `vegas`"), "{said}");
}
