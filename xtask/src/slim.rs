//! `cargo xtask slim`: builds the small programs as packages do, and checks their size and number
//! of crates.

use crate::cargo;
use crate::failure::Failure;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Package of the small programs.
const PACKAGE: &str = "anabranch-deploy";

/// Small programs that link the same crates.
struct Programs {
    names: &'static [&'static str],
    /// How cargo builds them.
    features: &'static [&'static str],
    /// Limit on the crates that a program links. Procedural macros and build dependencies do not
    /// count, since they leave no code in a program.
    most_crates: usize,
}

/// Those of SET, which border routers have, and all others.
const PROGRAMS: [Programs; 2] = [
    Programs {
        names: &["anabranch-gateway", "anabranch-node", "anabranch-push", "anabranch-key"],
        features: &["--no-default-features"],
        most_crates: 60,
    },
    Programs {
        names: &["anabranch-sense", "anabranch-sink", "anabranch-tune"],
        features: &[],
        most_crates: 80,
    },
];
/// Limit on the size of a stripped program, in bytes.
const MOST_BYTES: u64 = 4_000_000;

/// Runs `slim [--test]`: builds and measures. With `--test`, the deployment tests run with these
/// programs.
pub(crate) fn command(args: &[String]) -> Result<(), Failure> {
    let test = match args {
        [] => false,
        [flag] if flag == "--test" => true,
        _ => return Err(Failure::Usage("slim takes `--test` or nothing".into())),
    };
    let mut faults = Vec::new();
    for Programs { names, features, most_crates } in PROGRAMS {
        let build = ["build", "--locked", "--profile", "slim", "--package", PACKAGE];
        let wanted = names.iter().flat_map(|name| ["--bin", name]);
        let build: Vec<_> = build.into_iter().chain(features.iter().copied()).chain(wanted).collect();
        cargo::run(cargo::command(&build))?;
        let linked = crates(features, "normal,no-proc-macro")?.len();
        let compiled = crates(features, "normal,build")?.len();
        println!("{linked} crates linked (limit {most_crates}), {compiled} compiled");
        if linked > most_crates {
            faults.push(format!("{linked} crates are linked, more than {most_crates}"));
        }
        for name in names {
            let path = folder().join(name);
            let size = std::fs::metadata(&path)
                .map_err(|error| Failure::Job(format!("cannot read {}: {error}", path.display())))?
                .len();
            println!("{name:<18} {size:>9} bytes (limit {MOST_BYTES})");
            if size > MOST_BYTES {
                faults.push(format!("{name} has {size} bytes, more than {MOST_BYTES}"));
            }
        }
    }
    if !faults.is_empty() {
        return Err(Failure::Job(faults.join("; ")));
    }
    if test {
        let mut tests = cargo::command(&["test", "--locked", "--package", PACKAGE, "--test", "it"]);
        tests.env("ANABRANCH_PROGRAMS", folder());
        cargo::run(tests)?;
    }
    Ok(())
}

fn folder() -> PathBuf {
    cargo::target().join("slim")
}

/// Names and versions of the crates on these edges of the dependency graph, including the package
/// itself.
fn crates(features: &[&str], edges: &str) -> Result<BTreeSet<String>, Failure> {
    let args = ["tree", "--locked", "--package", PACKAGE, "--edges", edges, "--prefix", "none"];
    let listed = cargo::output(cargo::command(&[&args, features].concat()))?;
    Ok(names(&String::from_utf8_lossy(&listed)))
}

fn names(listed: &str) -> BTreeSet<String> {
    let name = |line: &str| {
        let mut words = line.split_whitespace();
        Some(format!("{} {}", words.next()?, words.next()?))
    };
    listed.lines().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_counts_once_for_each_version() {
        let listed = "a v1.0.0 (/somewhere)\nb v2.0.0\n\nb v2.0.0 (*)\nb v3.0.0 (proc-macro)\n";
        assert_eq!(names(listed).into_iter().collect::<Vec<_>>(), ["a v1.0.0", "b v2.0.0", "b v3.0.0"]);
    }

    #[test]
    fn the_small_programs_link_few_crates() {
        for Programs { names, features, most_crates } in PROGRAMS {
            let linked = crates(features, "normal,no-proc-macro").expect("cargo knows them");
            assert!(linked.len() <= most_crates, "{names:?}: {}: {linked:?}", linked.len());
        }
    }

    #[test]
    fn slim_knows_one_flag() {
        assert!(matches!(command(&["--tests".to_owned()]), Err(Failure::Usage(_))));
    }
}
