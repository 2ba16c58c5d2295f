//! `anabranch-packetdrill PATH...`: runs scripts and folders of scripts, and prints one line for
//! each.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anabranch_packetdrill::{Outcome, run};

const USAGE: &str = "\
usage: anabranch-packetdrill PATH...

Runs packetdrill scripts against the TCP and Multipath TCP of this project, in simulated time. A
PATH is a script or a folder, of which all files that end in `.pkt` are run. Prints one line for
each script.
The exit code is 1 if a script failed or is invalid, 2 if a path cannot be read or there is no script.
";

fn main() -> ExitCode {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if paths.is_empty() || paths.iter().any(|path| path.as_os_str() == "--help") {
        print!("{USAGE}");
        return ExitCode::from(if paths.is_empty() { 2 } else { 0 });
    }
    let mut scripts = Vec::new();
    for path in &paths {
        if let Err(error) = collect(path, &mut scripts) {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    }
    if scripts.is_empty() {
        eprintln!("error: no script in {}: a folder's scripts end in `.pkt`", paths[0].display());
        return ExitCode::from(2);
    }
    let mut counts = [0_usize; 4];
    for path in &scripts {
        let name = path.display().to_string();
        let outcome = match std::fs::read(path) {
            Ok(bytes) => run(&String::from_utf8_lossy(&bytes)),
            Err(error) => {
                eprintln!("error: cannot read {name}: {error}");
                return ExitCode::from(2);
            }
        };
        println!("{}", outcome.report(&name));
        counts[match outcome {
            Outcome::Passed => 0,
            Outcome::Failed(_) => 1,
            Outcome::NotApplicable(_) => 2,
            Outcome::Invalid(_) => 3,
        }] += 1;
    }
    let [passed, failed, not_applicable, invalid] = counts;
    println!("{passed} passed, {failed} failed, {not_applicable} not applicable, {invalid} invalid");
    if failed + invalid > 0 { ExitCode::from(1) } else { ExitCode::SUCCESS }
}

/// Adds a script, or the scripts of a folder sorted by name.
fn collect(path: &Path, scripts: &mut Vec<PathBuf>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    if !path.is_dir() {
        std::fs::metadata(path).map_err(failed)?;
        scripts.push(path.to_owned());
        return Ok(());
    }
    let mut inside = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        inside.push(entry.map_err(failed)?.path());
    }
    inside.sort();
    for path in inside {
        if path.is_dir() || path.extension().is_some_and(|extension| extension == "pkt") {
            collect(&path, scripts)?;
        }
    }
    Ok(())
}
