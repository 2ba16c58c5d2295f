//! Smaller jobs: fuzzing, scripts of packetdrill, generated files.

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
    fn gen_knows_one_flag() {
        assert!(matches!(generate(&args(&["--chek"])), Err(Failure::Usage(_))));
        assert!(matches!(generate(&args(&["--check", "x"])), Err(Failure::Usage(_))));
    }
}
