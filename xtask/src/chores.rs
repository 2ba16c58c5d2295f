//! Longer jobs: fuzzing, campaigns, generated files.

use crate::cargo;
use crate::failure::{Failure, expect_none, number, numbers};
use crate::parallel;
use crate::reference;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

/// A generated file.
struct Generated {
    /// Path relative to the root.
    path: &'static str,
    content: fn() -> Result<Vec<u8>, Failure>,
}

/// Every generated file of the repository.
const GENERATED: &[Generated] = &[
    Generated { path: "docs/reference/scenario.schema.json", content: schema },
    Generated { path: "docs/reference/scenario.md", content: reference::page },
    Generated { path: "docs/replay.svg", content: picture },
];

/// The schema, as the crate `manual` generates it.
fn schema() -> Result<Vec<u8>, Failure> {
    cargo::output(cargo::manual(&["schema"]))
}

/// The picture of the README: a file on its way through three gateways, of which one fails.
fn picture() -> Result<Vec<u8>, Failure> {
    let [log, svg] = ["replay.ablog", "replay.svg"].map(|name| cargo::target().join(name));
    let [log_name, svg_name] = [&log, &svg].map(|path| path.to_string_lossy());
    let push = ["push", "LICENSE-APACHE", "--fail", "gw2@0.25s", "--events", &log_name];
    cargo::output(cargo::anabranch(&push))?;
    cargo::output(cargo::anabranch(&["view", &log_name, "--until", "0.85 s", "--out", &svg_name]))?;
    std::fs::read(&svg).map_err(|error| Failure::Job(format!("cannot read {svg_name}: {error}")))
}

/// `fuzz [--seconds N] [--seed S]`: the targets that `anabranch-fuzz list` names, as many at a time
/// as there are processors.
pub(crate) fn fuzz(args: &[String]) -> Result<(), Failure> {
    let (seconds, seed) = length_and_seed(args)?;
    if !cargo::root().join("fuzz/Cargo.toml").exists() {
        eprintln!("SKIPPED: there is no package anabranch-fuzz under fuzz/ yet");
        return Ok(());
    }
    let fuzzer = |args: &[&str]| cargo::program_as("fuzz", "anabranch-fuzz", "anabranch-fuzz", args);
    let list = cargo::output(fuzzer(&["list"]))?;
    let list = String::from_utf8_lossy(&list).into_owned();
    let targets: Vec<&str> = list.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if targets.is_empty() {
        return Err(Failure::Job("anabranch-fuzz lists no target".into()));
    }
    let fuzzed = |target: &str| {
        println!("fuzz {target}: {seconds} s, seed {seed}");
        cargo::run(fuzzer(&[target, "--seconds", &seconds.to_string(), "--seed", &seed.to_string()]))
    };
    let failure = Mutex::new(None);
    parallel::each(targets.iter().copied(), |target| match fuzzed(target) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            ControlFlow::Break(())
        }
    });
    if let Some(failure) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(failure);
    }
    println!("{} fuzz targets ran clean", targets.len());
    Ok(())
}

/// Runs `packetdrill PATH...`; paths are relative to the folder in which xtask was started.
pub(crate) fn packetdrill(args: &[String]) -> Result<(), Failure> {
    let here = std::env::current_dir()
        .map_err(|error| Failure::Job(format!("cannot tell the current folder: {error}")))?;
    let absolute = |arg: &String| match arg.starts_with('-') {
        true => arg.clone(),
        false => here.join(arg).display().to_string(),
    };
    let args: Vec<String> = args.iter().map(absolute).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    cargo::run(cargo::program("anabranch-packetdrill", "anabranch-packetdrill", &args))
}

/// Seconds per fuzz target, and the seed of its inputs.
fn length_and_seed(args: &[String]) -> Result<(u64, u64), Failure> {
    let usage = "fuzz takes `--seconds N` with a whole N above zero, and `--seed S`";
    let said = numbers(args, &[("--seconds", "seconds"), ("--seed", "seed")], usage)?;
    match number(&said, "seconds", 60) {
        0 => Err(Failure::Usage(usage.into())),
        seconds => Ok((seconds, number(&said, "seed", 1))),
    }
}

/// Runs `campaign NAME [ARGS...]`. Simulated campaigns are in the example `campaign` of
/// anabranch-campaign; campaigns with processes are long forms of tests.
pub(crate) fn campaign(args: &[String]) -> Result<(), Failure> {
    match args.split_first() {
        None => Err(Failure::Usage("campaign needs the name of a campaign".into())),
        Some((name, options)) if name == "deployed-faults" => deployed_faults(options),
        Some((name, options)) if name == "emulated-faults" => emulated_faults(options),
        Some((name, options)) if name == "deployed-recovery" => {
            expect_none(options)?;
            longer(&[], "anabranch-deploy", "faults::recovery", &[("ANABRANCH_RECOVERY", 1)], &[])
        }
        Some((name, options)) if name == "deployed-goodput" => {
            expect_none(options)?;
            deployed_goodput()
        }
        Some((name, options)) if name == "sense" => {
            expect_none(options)?;
            longer(&[], "anabranch-net", "rdca::faults", &[("ANABRANCH_SENSE_RUNS", 500)], &[])?;
            let long = [("ANABRANCH_SENSE_KILLS", 60), ("ANABRANCH_SENSE_LONG", 1)];
            longer(&[], "anabranch-deploy", "sense::", &long, &[])
        }
        Some((name, options)) if name == "cache" => cache(options),
        Some((name, options)) if name == "multipath" => multipath(options),
        Some((name, options)) if name == "tune" => tune(options),
        Some((name, options)) if name == "mptcp-linux" => mptcp_linux(options),
        Some((name, options)) if name == "sweep" => sweep(options),
        Some((name, options)) if name == "suite-under-load" => crate::load::campaign(options),
        Some((name, options)) if name == "aodv-loops" => aodv_loops(options),
        Some((name, options)) if name == "rpl" => rpl(options),
        Some((name, options)) if name == "embedded-flash" => embedded_flash(options),
        Some(_) => {
            let mut command =
                cargo::command(&["run", "--profile", "dist", "--locked", "--package", "anabranch-campaign"]);
            command.args(["--example", "campaign", "--"]).args(args);
            cargo::run(command)
        }
    }
}

/// Runs `campaign deployed-faults [--runs N] [--first N] [--seed S] [--at-once N]`: the long form
/// of the test `faults` of anabranch-deploy.
fn deployed_faults(options: &[String]) -> Result<(), Failure> {
    longer(
        &[],
        "anabranch-deploy",
        "faults::whatever",
        &[("ANABRANCH_FAULTS_RUNS", 500)],
        &variables(options)?,
    )
}

/// Runs `campaign emulated-faults [--runs N] [--first N] [--seed S] [--at-once N]`: the long form
/// of the test `emulate_faults` of anabranch-cli.
fn emulated_faults(options: &[String]) -> Result<(), Failure> {
    let known = [
        ("--runs", "ANABRANCH_EMULATED_FAULTS_RUNS"),
        ("--first", "ANABRANCH_EMULATED_FAULTS_FIRST"),
        ("--seed", "ANABRANCH_EMULATED_FAULTS_SEED"),
        ("--at-once", "ANABRANCH_EMULATED_FAULTS_AT_ONCE"),
    ];
    let usage = "emulated-faults takes `--runs N`, `--first N`, `--seed S` and `--at-once N`";
    let given = numbers(options, &known, usage)?;
    longer(
        &[],
        "anabranch-cli",
        "emulate_faults::whatever",
        &[("ANABRANCH_EMULATED_FAULTS_RUNS", 50)],
        &given,
    )
}

/// The integration tests of a package whose names begin with this prefix. The environment variables
/// make them long; variables given by the user come last and override others.
fn longer(
    profile: &[&str],
    package: &str,
    tests: &str,
    long: &[(&str, u64)],
    given: &[(&str, u64)],
) -> Result<(), Failure> {
    let mut command = cargo::command(&["test", "--locked", "--package", package, "--test", "it"]);
    command.args(profile).args([tests, "--", "--nocapture"]);
    command.envs(long.iter().chain(given).map(|(name, value)| (*name, value.to_string())));
    cargo::run(command)
}

/// Runs `campaign deployed-goodput`: the tests `set::goodput` of anabranch-net with strict limits.
fn deployed_goodput() -> Result<(), Failure> {
    let mut command = cargo::command(&["test", "--locked", "--package", "anabranch-net", "--test", "it"]);
    command.args(["set::goodput", "--", "--nocapture", "--test-threads=1"]).env("ANABRANCH_GOODPUT", "whole");
    cargo::run(command)
}

/// Runs `campaign mptcp-linux [--bytes N] [--at-once N]`: the whole matrix of the test
/// `linux_mptcp` of anabranch-emu, each cell with 10 MB in each direction.
fn mptcp_linux(options: &[String]) -> Result<(), Failure> {
    let known = [("--bytes", "ANABRANCH_MPTCP_BYTES"), ("--at-once", "ANABRANCH_MPTCP_AT_ONCE")];
    let given = numbers(options, &known, "mptcp-linux takes `--bytes N` and `--at-once N`")?;
    let long = [("ANABRANCH_MPTCP_ALL", 1), ("ANABRANCH_MPTCP_BYTES", 10_000_000)];
    longer(&[], "anabranch-emu", "linux_mptcp", &long, &given)
}

/// Runs `campaign cache [--transfers N] [--kills N]`, the long forms of the tests `chain` of
/// anabranch-host: transfers over lossy hops with and without caches, and caches that are killed.
fn cache(options: &[String]) -> Result<(), Failure> {
    let known = [("--transfers", "ANABRANCH_CACHE_TRANSFERS"), ("--kills", "ANABRANCH_CACHE_KILLS")];
    let given = numbers(options, &known, "cache takes `--transfers N` and `--kills N`")?;
    let long = [("ANABRANCH_CACHE_TRANSFERS", 20), ("ANABRANCH_CACHE_KILLS", 100)];
    longer(&["--release"], "anabranch-host", "chain::", &long, &given)
}

/// Runs `campaign multipath [--runs N] [--case N] [--means N] [--tries N] [--failing-at-once N]
/// [--kills N] [--seed S]`, the long forms of the tests `routes` and `links` of anabranch-host:
/// processes that are killed at random moments, then load, pages in a browser, requests, rates and
/// failures, beside the kernel's Multipath TCP. `--case` and `--means` are numbers in the lists of
/// the tests, from 0.
fn multipath(options: &[String]) -> Result<(), Failure> {
    let known = [
        ("--runs", "ANABRANCH_MULTIPATH_RUNS"),
        ("--case", "ANABRANCH_MULTIPATH_CASE"),
        ("--means", "ANABRANCH_MULTIPATH_MEANS"),
        ("--tries", "ANABRANCH_MULTIPATH_TRIES"),
        ("--failing-at-once", "ANABRANCH_MULTIPATH_FAILING_AT_ONCE"),
        ("--kills", "ANABRANCH_MULTIPATH_KILLS"),
        ("--seed", "ANABRANCH_MULTIPATH_SEED"),
    ];
    let usage = "multipath takes `--runs N`, `--case N`, `--means N`, `--tries N`, `--failing-at-once N`, \
                 `--kills N` and `--seed S`";
    let given = numbers(options, &known, usage)?;
    let long = [
        ("ANABRANCH_MULTIPATH_RUNS", 3),
        ("ANABRANCH_MULTIPATH_TRIES", 100),
        ("ANABRANCH_MULTIPATH_KILLS", 500),
        ("ANABRANCH_MULTIPATH_AT_ONCE", 1000),
        ("ANABRANCH_MULTIPATH_IN_TURN", 10_000),
        ("ANABRANCH_MULTIPATH_PAGES", 50),
    ];
    longer(&["--release"], "anabranch-host", "nothing_remains_of_a_process_that_is_killed", &long, &given)?;
    // One after the other: they measure.
    for tests in [
        "links::load",
        "links::browser",
        "links::requests",
        "links::rates::all",
        "links::failures::a_failing",
    ] {
        longer(&["--release"], "anabranch-host", tests, &long, &given)?;
    }
    Ok(())
}

/// Runs `campaign tune [--runs N] [--case N] [--kills N] [--seed S]`, the long forms of the tests
/// `tune` of anabranch-deploy: programs over three paths against the kernel's tuning, and commands
/// that are killed at random moments.
fn tune(options: &[String]) -> Result<(), Failure> {
    let known = [
        ("--runs", "ANABRANCH_TUNE_RUNS"),
        ("--case", "ANABRANCH_TUNE_CASE"),
        ("--kills", "ANABRANCH_TUNE_KILLS"),
        ("--seed", "ANABRANCH_TUNE_SEED"),
    ];
    let given = numbers(options, &known, "tune takes `--runs N`, `--case N`, `--kills N` and `--seed S`")?;
    let long = [("ANABRANCH_TUNE_RUNS", 3), ("ANABRANCH_TUNE_KILLS", 500)];
    longer(&[], "anabranch-deploy", "tune::kills::the_buffers", &long, &given)?;
    longer(&[], "anabranch-deploy", "tune::links::a_striped", &long, &given)
}

/// Runs `campaign sweep [--runs N] [--kills N] [--seed S]`: the long form of the test of
/// anabranch-lab-cli that kills sweeps.
fn sweep(options: &[String]) -> Result<(), Failure> {
    let known = [
        ("--runs", "ANABRANCH_SWEEP_RUNS"),
        ("--kills", "ANABRANCH_SWEEP_KILLS"),
        ("--seed", "ANABRANCH_SWEEP_SEED"),
    ];
    let given = numbers(options, &known, "sweep takes `--runs N`, `--kills N` and `--seed S`")?;
    let long = [("ANABRANCH_SWEEP_RUNS", 10_000), ("ANABRANCH_SWEEP_KILLS", 100)];
    longer(&["--profile", "dist"], "anabranch-lab-cli", "sweep::killed", &long, &given)
}

/// Runs `campaign aodv-loops [--runs N]`: the long search for routing loops of anabranch-core.
fn aodv_loops(options: &[String]) -> Result<(), Failure> {
    let known = [("--runs", "ANABRANCH_AODV_RUNS")];
    let given = numbers(options, &known, "aodv-loops takes `--runs N`")?;
    longer(&[], "anabranch-core", "aodv_loops::no_loop", &[("ANABRANCH_AODV_RUNS", 20_000)], &given)
}

/// Runs `campaign rpl [--runs N]`: the long forms of the tests of anabranch-sim with reboots,
/// deaths and changing link quality in meshes.
fn rpl(options: &[String]) -> Result<(), Failure> {
    let known = [("--runs", "ANABRANCH_RPL_RUNS")];
    let given = numbers(options, &known, "rpl takes `--runs N`")?;
    longer(&["--profile", "dist"], "anabranch-sim", "rpl::", &[("ANABRANCH_RPL_RUNS", 100)], &given)
}

/// Runs `campaign embedded-flash [--kills N] [--seed S]`: the long form of the test that kills the
/// C program with flash while it receives.
fn embedded_flash(options: &[String]) -> Result<(), Failure> {
    let known = [("--kills", "ANABRANCH_FLASH_KILLS"), ("--seed", "ANABRANCH_FLASH_SEED")];
    let given = numbers(options, &known, "embedded-flash takes `--kills N` and `--seed S`")?;
    longer(&[], "anabranch-deploy", "embedded::flash", &[("ANABRANCH_FLASH_KILLS", 200)], &given)
}

/// Environment variables for the test of faults.
fn variables(options: &[String]) -> Result<Vec<(&'static str, u64)>, Failure> {
    let known = [
        ("--runs", "ANABRANCH_FAULTS_RUNS"),
        ("--first", "ANABRANCH_FAULTS_FIRST"),
        ("--seed", "ANABRANCH_FAULTS_SEED"),
        ("--at-once", "ANABRANCH_FAULTS_AT_ONCE"),
    ];
    numbers(options, &known, "deployed-faults takes `--runs N`, `--first N`, `--seed S` and `--at-once N`")
}

/// Runs `man DIR`: writes the manual pages into an existing folder.
pub(crate) fn man(args: &[String]) -> Result<(), Failure> {
    let [folder] = args else { return Err(Failure::Usage("man takes a folder".into())) };
    // Make the path absolute: the generator runs in the root.
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.into());
    let Some(folder) = folder.to_str() else {
        return Err(Failure::Usage("the folder's name is no text".into()));
    };
    cargo::run(cargo::manual(&["man", folder]))
}

/// Runs `gen [--check]`: writes the generated files, or lists those that are stale.
pub(crate) fn generate(args: &[String]) -> Result<(), Failure> {
    let check = match args {
        [flag, rest @ ..] if flag == "--check" => expect_none(rest).map(|()| true)?,
        rest => expect_none(rest).map(|()| false)?,
    };
    let mut stale = Vec::new();
    for file in GENERATED {
        let content = (file.content)()?;
        let path = cargo::root().join(file.path);
        if std::fs::read(&path).is_ok_and(|now| now == content) {
            continue;
        }
        if check {
            stale.push(file.path);
        } else {
            let written = std::fs::write(&path, content);
            written.map_err(|error| Failure::Job(format!("cannot write {}: {error}", file.path)))?;
            println!("wrote {}", file.path);
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    Err(Failure::Job(format!("stale: {}; run `cargo xtask gen`", stale.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn fuzz_takes_whole_seconds_above_zero_and_a_seed() {
        assert_eq!(length_and_seed(&[]), Ok((60, 1)));
        assert_eq!(length_and_seed(&args(&["--seconds", "5"])), Ok((5, 1)));
        assert_eq!(length_and_seed(&args(&["--seed", "7", "--seconds", "5"])), Ok((5, 7)));
        for bad in [&["--seconds"][..], &["--seconds", "0"], &["--seconds", "x"], &["5"], &["--sead", "1"]] {
            assert!(matches!(length_and_seed(&args(bad)), Err(Failure::Usage(_))), "{bad:?}");
        }
    }

    #[test]
    fn a_campaign_needs_a_name_and_gen_knows_one_flag() {
        assert!(matches!(campaign(&[]), Err(Failure::Usage(_))));
        assert!(matches!(campaign(&args(&["deployed-faults", "--runs"])), Err(Failure::Usage(_))));
        assert!(matches!(campaign(&args(&["deployed-recovery", "--runs", "2"])), Err(Failure::Usage(_))));
        assert!(matches!(campaign(&args(&["sweep", "--at-once", "2"])), Err(Failure::Usage(_))));
        assert!(matches!(campaign(&args(&["aodv-loops", "--seed", "2"])), Err(Failure::Usage(_))));
        assert!(matches!(campaign(&args(&["rpl", "--seed", "2"])), Err(Failure::Usage(_))));
        assert!(matches!(campaign(&args(&["tune", "--at-once", "2"])), Err(Failure::Usage(_))));
        assert!(matches!(campaign(&args(&["multipath", "--at-once", "2"])), Err(Failure::Usage(_))));
        assert!(matches!(campaign(&args(&["embedded-flash", "--runs", "2"])), Err(Failure::Usage(_))));
        let seed = variables(&args(&["--seed", "7"]));
        assert_eq!(seed, Ok(vec![("ANABRANCH_FAULTS_SEED", 7)]));
        assert!(matches!(generate(&args(&["--chek"])), Err(Failure::Usage(_))));
        assert!(matches!(generate(&args(&["--check", "x"])), Err(Failure::Usage(_))));
    }
}
