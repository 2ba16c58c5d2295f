//! `cargo xtask first-contact`: measures how long a newcomer and CI wait, in a new clone with an
//! empty target folder.
//!
//! The clone contains the last commit, not the work tree. It has a target folder of its own;
//! cargo's download cache is filled before the measurement. The processor time of a step includes
//! all processes that it started and waited for.

#![expect(clippy::disallowed_types, reason = "what is waited for is real time")]

use crate::cargo;
use crate::failure::Failure;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// State of the clone when a step begins.
#[derive(PartialEq, Eq)]
enum From {
    /// Empty target folder.
    Nothing,
    /// Results of the previous step, and a change in the core.
    Change,
}

/// A measured step.
struct Step {
    name: &'static str,
    what: &'static str,
    /// Limit on the elapsed time in seconds.
    wall: u64,
    /// Limit on the processor time in seconds.
    processor: Option<u64>,
    from: From,
    arguments: &'static [&'static str],
}

/// The steps in order.
const STEPS: [Step; 4] = [
    Step {
        name: "push",
        what: "cargo run --release -- push README.md",
        wall: 120,
        processor: Some(220),
        from: From::Nothing,
        arguments: &["cargo", "run", "--release", "--", "push", "README.md"],
    },
    Step {
        name: "test",
        what: "cargo xtask test",
        wall: 12 * 60,
        processor: None,
        from: From::Nothing,
        arguments: &["cargo", "xtask", "test"],
    },
    Step {
        name: "change",
        what: "cargo xtask test, after a change in core",
        wall: 4 * 60,
        processor: None,
        from: From::Change,
        arguments: &["cargo", "xtask", "test"],
    },
    Step {
        name: "ci",
        what: ".ci/run",
        wall: 18 * 60,
        processor: None,
        from: From::Nothing,
        arguments: &["bash", ".ci/run"],
    },
];

/// Runs `first-contact [STEP...]`: measures the named steps, or push, test, change and ci.
pub(crate) fn command(args: &[String]) -> Result<(), Failure> {
    let known: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
    if let Some(unknown) = args.iter().find(|arg| !known.contains(&arg.as_str())) {
        return Err(Failure::Usage(format!("there is no step `{unknown}`: {}", known.join(", "))));
    }
    let named = |name: &str| args.iter().any(|arg| arg == name);
    if named("change") && !named("test") {
        return Err(Failure::Usage(
            "the step `change` stands on what the step `test` has built: name both".into(),
        ));
    }
    let wanted = |step: &&Step| args.is_empty() || named(step.name);
    let clone = cloned()?;
    let mut rows = Vec::new();
    for step in STEPS.iter().filter(wanted) {
        match step.from {
            From::Nothing => remove(&clone.join("target"))?,
            From::Change => changed(&clone.join("crates/core/src/lib.rs"))?,
        }
        println!("\n=== {}", step.what);
        rows.push(measured(step, &clone)?);
    }
    println!("\n| step | clock | limit | processor | limit |\n| --- | --- | --- | --- | --- |");
    rows.iter().for_each(|row| println!("{}", row.line));
    match rows.iter().all(|row| row.good) {
        true => Ok(()),
        false => Err(Failure::Job("a step failed or took longer than its limit".into())),
    }
}

/// Clones the last commit below the target folder.
fn cloned() -> Result<PathBuf, Failure> {
    let clone = cargo::target().join("first-contact");
    remove(&clone)?;
    let mut git = Command::new("git");
    git.args(["clone", "--quiet"]).arg(cargo::root()).arg(&clone);
    cargo::run(git)?;
    let mut fetch = own(Command::new("cargo"), &clone);
    fetch.args(["fetch", "--locked", "--quiet"]);
    cargo::run(fetch)?;
    Ok(clone)
}

/// Result of one step.
struct Row {
    line: String,
    good: bool,
}

fn measured(step: &Step, clone: &Path) -> Result<Row, Failure> {
    let [program, arguments @ ..] = step.arguments else { unreachable!("every step has a program") };
    let mut command = own(Command::new(program), clone);
    command.args(arguments);
    let (began, before) = (Instant::now(), spent()?);
    let outcome = cargo::run(command);
    let (clock, processor) = (began.elapsed(), spent()?.saturating_sub(before));
    if let Err(Failure::Job(why) | Failure::Usage(why)) = &outcome {
        eprintln!("error: {why}");
    }
    let within = clock <= Duration::from_secs(step.wall)
        && step.processor.is_none_or(|most| processor <= Duration::from_secs(most));
    let most = step.processor.map_or_else(|| "-".to_owned(), |most| format!("{most} s"));
    let failed = if outcome.is_ok() { "" } else { " (failed)" };
    let (clock, processor) = (clock.as_secs_f64(), processor.as_secs_f64());
    let line =
        format!("| `{}`{failed} | {clock:.0} s | {} s | {processor:.0} s | {most} |", step.what, step.wall);
    Ok(Row { line, good: outcome.is_ok() && within })
}

/// Runs a command in the clone as a newcomer's shell would: without the variables that cargo set
/// for this xtask.
fn own(mut command: Command, clone: &Path) -> Command {
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("CARGO") && name != "CARGO_HOME" {
            command.env_remove(name);
        }
    }
    command.current_dir(clone);
    command
}

fn remove(folder: &Path) -> Result<(), Failure> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::Job(format!("cannot remove {}: {error}", folder.display())))
        }
        _ => Ok(()),
    }
}

/// Adds a public function, so that every dependent crate is rebuilt.
fn changed(file: &Path) -> Result<(), Failure> {
    let open = fs::File::options().append(true).open(file);
    open.and_then(|mut file| file.write_all(b"\n/// Nothing.\npub fn first_contact() {}\n"))
        .map_err(|error| Failure::Job(format!("cannot change {}: {error}", file.display())))
}

/// Processor time of ended child processes and their descendants (proc_pid_stat(5): cutime and
/// cstime, in hundredths of a second).
fn spent() -> Result<Duration, Failure> {
    let text = read("/proc/self/stat")?;
    of_children(&text).ok_or_else(|| Failure::Job("/proc/self/stat is not as proc_pid_stat(5) has it".into()))
}

fn of_children(stat: &str) -> Option<Duration> {
    // The name may contain spaces and parentheses, so start after the last parenthesis.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = fields.get(13)?.parse::<u64>().ok()? + fields.get(14)?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 10))
}

fn read(path: &str) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| Failure::Job(format!("cannot read {path}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_that_of_children() {
        let stat = "7 (x) task) S 1 7 7 0 -1 4194304 100 200 0 0 11 12 130 7 20 0 1 0 50 0 0";
        assert_eq!(of_children(stat), Some(Duration::from_millis(1_370)));
        assert_eq!(of_children("nonsense"), None);
    }

    #[test]
    fn steps_are_known_by_name() {
        assert!(matches!(command(&["pushes".to_owned()]), Err(Failure::Usage(_))));
        assert!(matches!(command(&["change".to_owned()]), Err(Failure::Usage(_))));
        assert!(STEPS[2].from == From::Change, "a change is measured on what is built");
    }
}
