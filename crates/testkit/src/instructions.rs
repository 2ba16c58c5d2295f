//! Benchmarks that count instructions.

use std::process::Command;

/// Whether valgrind and gungraun-runner can be started. If one cannot, prints which.
pub fn are_counted() -> bool {
    let runner = std::env::var_os("GUNGRAUN_RUNNER").unwrap_or_else(|| "gungraun-runner".into());
    for program in ["valgrind".into(), runner] {
        if Command::new(&program).arg("--version").output().is_err() {
            let name = program.to_string_lossy();
            eprintln!("SKIPPED: instruction counts need `{name}`, which cannot be started.");
            eprintln!("         `cargo xtask bench` installs what is missing.");
            return false;
        }
    }
    true
}
