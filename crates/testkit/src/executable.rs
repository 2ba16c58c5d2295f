//! Creates programs that a test then starts.
//!
//! A test binary never opens such files for writing itself. It has many threads, and a process
//! started by another thread inherits the open file until its `exec`; a file that is open for
//! writing anywhere cannot be executed ("Text file busy", execve(2)).

use std::path::Path;
use std::process::{Command, Stdio};

use crate::debian;

/// Whether the program `name` of another package of this build is here. The tests of the whole
/// workspace build all programs; those of one package do not build others'. If not, prints a skip
/// line.
///
/// # Panics
/// The path of the test binary is unknown.
#[must_use]
pub fn is_built(name: &str) -> bool {
    let own = std::env::current_exe().expect("a path");
    // The test binary is in `deps`, below the programs.
    let built = own.ancestors().nth(2).is_some_and(|folder| folder.join(name).exists());
    if !built {
        debian::skipped(&format!("{name} is not built: run `cargo build --workspace --bins --profile test`"));
    }
    built
}

/// Copies a program.
///
/// # Panics
/// The file cannot be written.
pub fn copy(program: &Path, to: &Path) {
    install(program, Stdio::null(), to);
}

/// Writes a script whose first line names its interpreter.
///
/// # Panics
/// The file cannot be written.
pub fn script(text: &str, to: &Path) {
    let mut echo = Command::new("printf");
    let mut echo = echo.args(["%s", text]).stdout(Stdio::piped()).spawn().expect("printf is here");
    install(Path::new("/dev/stdin"), echo.stdout.take().expect("it is piped").into(), to);
    assert!(echo.wait().expect("it is ours").success());
}

fn install(from: &Path, input: Stdio, to: &Path) {
    let mut install = Command::new("install");
    let status = install.arg("-m755").args([from, to]).stdin(input).status().expect("install is here");
    assert!(status.success(), "cannot write {}", to.display());
}

#[cfg(test)]
mod tests {
    use std::process::Child;
    use std::{env, fs, thread};

    use super::*;

    #[test]
    fn it_starts_while_another_thread_starts_programs() {
        let folder = env::temp_dir().join(format!("anabranch-executable-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let place = folder.clone();
        let scripts = thread::spawn(move || {
            let run = |number: u32| {
                let path = place.join(number.to_string());
                script("#!/bin/sh\nexit 42\n", &path);
                Command::new(&path).status().map(|status| status.code())
            };
            (0..100).map(run).filter(|run| !matches!(run, Ok(Some(42)))).collect::<Vec<_>>()
        });
        while !scripts.is_finished() {
            let started: Vec<Child> =
                (0..4).map(|_| Command::new("true").spawn().expect("it starts")).collect();
            started.into_iter().for_each(|mut child| assert!(child.wait().expect("it is ours").success()));
        }
        let bad = scripts.join().expect("no script panics");
        assert!(bad.is_empty(), "{bad:?}");
        fs::remove_dir_all(folder).expect("it is ours");
    }
}
