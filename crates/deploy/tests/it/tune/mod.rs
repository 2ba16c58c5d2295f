//! `anabranch tune`, beside programs that know nothing of it.
//!
//! This is the short form; the long one is `cargo xtask campaign tune`.

mod kills;
mod links;

use std::io::Read;
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::thread;

use anabranch_testkit::netns::{is_root, text};
use anabranch_testkit::python::Program;

use crate::programs;

/// A number for the long form from the environment.
fn given(name: &str, otherwise: u64) -> u64 {
    anabranch_testkit::given(&format!("ANABRANCH_TUNE_{name}")).unwrap_or(otherwise)
}

/// A program whose peer reads all that it sends.
fn program() -> Program {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut program = Program::start(&listener);
    for mut far in program.far.drain(..) {
        thread::spawn(move || while far.read(&mut [0; 1 << 16]).is_ok_and(|len| len > 0) {});
    }
    program
}

/// The command, with a folder of its own for its state.
fn tune(state: &tempfile::TempDir, arguments: &[&str]) -> Command {
    let mut command = programs::command("tune");
    command.args(arguments).arg("--state").arg(state.path()).stdin(Stdio::null());
    command
}

fn run(state: &tempfile::TempDir, arguments: &[&str]) -> Output {
    tune(state, arguments).output().expect("it starts")
}

#[track_caller]
fn refused(output: &Output, code: i32, expected: &[&str]) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(expected.iter().all(|words| said.contains(words)), "{said}");
}

#[test]
fn bad_input_is_one_error_with_a_hint() {
    let state = tempfile::tempdir().expect("a folder");
    let pid = std::process::id().to_string();
    refused(&run(&state, &["--pid", "999999999"]), 2, &["--pid 999999999: no such process", "hint: "]);
    refused(&run(&state, &["--pid", &pid, "--budget", "100 kB"]), 2, &["too small", "hint: give at least"]);
    refused(&run(&state, &["--pid", &pid, "--guarantee", "2"]), 2, &["from 0 to 1"]);
    refused(&run(&state, &["--pid", &pid, "--peer", "here"]), 2, &["`here` is no IP address"]);
    refused(&run(&state, &["--pid", &pid, "--pid", &pid]), 2, &["is given twice", "hint: "]);
    refused(&run(&state, &[]), 2, &["--pid"]);
    std::fs::write(state.path().join("7.sockets"), "{").expect("a file");
    refused(&run(&state, &["--restore"]), 2, &["7.sockets is damaged", "hint: remove it"]);
    if is_root() {
        // Another user's process, and another user's folder.
        let program = programs::words("tune");
        let mut stranger = Command::new("setpriv");
        stranger.args([
            "--reuid",
            "65534",
            "--regid",
            "65534",
            "--clear-groups",
            "env",
            "XDG_RUNTIME_DIR=/tmp",
        ]);
        let folder = format!("/tmp/anabranch-test-{pid}");
        stranger.args(&program).args(["--pid", "1", "--state", &folder]);
        refused(&stranger.output().expect("it starts"), 3, &["no permission", "CAP_SYS_PTRACE"]);
        refused(&run_in(&folder), 2, &["belongs to another user"]);
        std::fs::remove_dir_all(folder).expect("it is there");
    }
}

fn run_in(state: &str) -> Output {
    programs::command("tune").args(["--restore", "--state", state]).output().expect("it starts")
}
