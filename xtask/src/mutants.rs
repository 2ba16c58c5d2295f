//! `cargo xtask mutants`: finds faults that no test detects.
//!
//! cargo-mutants changes one operator, branch or result at a time in a copy of the repository and
//! runs the tests of that package. All mutants of the [`PLACES`] would take a day, so each place
//! contributes a sample spread over its files.

use crate::cargo;
use crate::failure::{Failure, number, numbers};
use crate::tools::{self, Tool};
use std::path::Path;
use std::process::Command;

const MUTANTS: Tool =
    Tool { name: "cargo-mutants", version: "27.1.0", arguments: &[], purpose: "mutation testing" };

/// Default of `--sample`: number of mutants per place.
const SAMPLE: u64 = 40;

/// A module or crate whose tests are tested.
struct Place {
    name: &'static str,
    package: &'static str,
    /// Globs of its files.
    files: &'static [&'static str],
    /// Targets of `cargo test`.
    targets: &'static [&'static str],
    /// Prefixes of the names of tests to skip.
    skipped: &'static [&'static str],
}

/// The skipped tests are those of other transports, and searches of several seconds whose cases
/// shorter tests also cover.
const PLACES: &[Place] = &[
    Place {
        name: "tcp",
        package: "anabranch-core",
        files: &["crates/core/src/tcp.rs", "crates/core/src/tcp/**"],
        targets: &["--lib", "--test=it"],
        skipped: &["aodv_", "rdca_", "dtc_chain::", "set::faults", "mptcp_predictive"],
    },
    Place {
        name: "set",
        package: "anabranch-core",
        files: &["crates/core/src/set.rs", "crates/core/src/set/**"],
        targets: &["--lib", "--test=it"],
        skipped: &["aodv_", "rdca_", "dtc_", "mptcp_", "tcp_"],
    },
    Place {
        name: "wire-set",
        package: "anabranch-wire",
        files: &["crates/wire/src/set.rs", "crates/wire/src/set/**"],
        targets: &["--lib", "--test=it"],
        skipped: &[],
    },
    Place {
        name: "secure",
        package: "anabranch-secure",
        files: &["crates/secure/src/**"],
        targets: &["--lib"],
        skipped: &[],
    },
];

/// Runs `mutants [--sample N] [--seed S] [PLACE...]`.
pub(crate) fn command(args: &[String]) -> Result<(), Failure> {
    let asked = read(args)?;
    let Some(program) = tools::installed(&MUTANTS) else { return Ok(()) };
    let folder = cargo::target().join("mutants");
    let reports = asked.places.iter().map(|place| test(&program, &folder, place, &asked));
    let reports = reports.collect::<Result<Vec<_>, _>>()?;
    reports.iter().for_each(|report| print!("\n{report}"));
    println!("\nlogs and changes: {}", folder.display());
    Ok(())
}

/// Parsed command line.
struct Asked {
    sample: u64,
    seed: u64,
    places: Vec<&'static Place>,
}

fn read(args: &[String]) -> Result<Asked, Failure> {
    let usage = "mutants takes `--sample N` with N above zero, `--seed S`, and then any of tcp, set, wire-set, secure";
    let options = args.chunks(2).take_while(|pair| pair[0].starts_with("--")).flatten().count();
    let (options, names) = args.split_at(options);
    let said = numbers(options, &[("--sample", "sample"), ("--seed", "seed")], usage)?;
    let (sample, seed) = (number(&said, "sample", SAMPLE), number(&said, "seed", 0));
    let chosen = names.iter().map(|name| PLACES.iter().find(|place| place.name == name));
    let places = if names.is_empty() { Some(PLACES.iter().collect()) } else { chosen.collect() };
    match places {
        Some(places) if sample > 0 => Ok(Asked { sample, seed, places }),
        _ => Err(Failure::Usage(usage.into())),
    }
}

/// Tests the sample of one place. Returns its counts and surviving mutants as text.
fn test(program: &Path, folder: &Path, place: &Place, asked: &Asked) -> Result<String, Failure> {
    let mutants = || {
        let mut command = Command::new(program);
        command.args(["mutants", "--package", place.package]).current_dir(cargo::root());
        command.args(place.files.iter().flat_map(|glob| ["--file", glob]));
        // Build the copy in a target folder of its own. In a shared one, cargo would take a mutated
        // crate for the original.
        command.env_remove("CARGO_TARGET_DIR");
        command
    };
    let mut list = mutants();
    list.args(["--list", "--colors=never"]);
    let of = String::from_utf8_lossy(&cargo::output(list)?).lines().count() as u64;
    let output = folder.join(place.name);
    std::fs::create_dir_all(&output)
        .map_err(|error| Failure::Job(format!("cannot create {}: {error}", output.display())))?;
    let mut run = mutants();
    run.args(["--jobs=1", "--minimum-test-timeout=40", "--sharding=round-robin", "--shard"])
        .arg(shard(of, asked.sample, asked.seed))
        // Each mutant is rebuilt, so build time matters more than run time.
        .args(["-C=--locked", "-C=--config=profile.test.debug=false"])
        .arg(format!("-C=--config=profile.test.package.{}.opt-level=1", place.package))
        .arg("--output")
        .arg(&output)
        .arg("--")
        .args(place.targets)
        .arg("--")
        .args(place.skipped.iter().map(|name| format!("--skip={name}")));
    let status = run.status().map_err(|error| cargo::cannot_start(&run, &error))?;
    // Exit code 2 means missed mutants, 3 means time-outs. Both are valid results.
    if !matches!(status.code(), Some(0 | 2 | 3)) {
        return Err(Failure::Job(format!("cargo-mutants ended with {status}, see {}", output.display())));
    }
    let lists = ["caught", "missed", "timeout", "unviable"].map(|kind| {
        let list = output.join("mutants.out").join(format!("{kind}.txt"));
        std::fs::read_to_string(list).unwrap_or_default()
    });
    Ok(report(place.name, of, &lists))
}

/// The sample as a shard of cargo-mutants: the mutant with this number and every k-th after it.
fn shard(of: u64, sample: u64, seed: u64) -> String {
    let k = of.div_ceil(sample).max(1);
    format!("{}/{k}", seed % k)
}

/// Counts and survivors of a place, from the lists of caught, missed, timed-out and unviable
/// mutants.
fn report(name: &str, of: u64, [caught, missed, timeout, unviable]: &[String; 4]) -> String {
    let n = |list: &str| list.lines().count();
    let all = n(caught) + n(missed) + n(timeout) + n(unviable);
    let counts = format!("{} caught, {} missed, {} timeout", n(caught), n(missed), n(timeout));
    format!("{name}: {all} of {of} mutants: {counts}, {} unviable\n{missed}", n(unviable))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_first_and_places_after_them() {
        let asked = |words: &[&str]| {
            let asked = read(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).ok()?;
            Some((asked.sample, asked.seed, asked.places.iter().map(|place| place.name).collect::<Vec<_>>()))
        };
        assert_eq!(asked(&[]), Some((40, 0, vec!["tcp", "set", "wire-set", "secure"])));
        assert_eq!(asked(&["--seed", "3", "--sample", "5", "set"]), Some((5, 3, vec!["set"])));
        for bad in [&["--sample"][..], &["--sample", "0"], &["tpc"], &["tcp", "--seed", "1"]] {
            assert_eq!(asked(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_sample_is_every_kth_mutant() {
        assert_eq!(shard(1334, 40, 0), "0/34");
        assert_eq!(shard(1334, 40, 35), "1/34");
        assert_eq!(shard(7, 40, 5), "0/1");
        assert_eq!(shard(0, 40, 5), "0/1");
    }

    #[test]
    fn a_report_counts_and_names_survivors() {
        let said = report("set", 9, &["a\nb\n", "c\n", "", "d\n"].map(String::from));
        assert_eq!(said, "set: 4 of 9 mutants: 2 caught, 1 missed, 0 timeout, 1 unviable\nc\n");
    }
}
