//! README's five minutes, as they are written there.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use anabranch_net::set::{GATEWAY_PORT, NODE_PORT};
use tempfile::TempDir;

/// Killed when the test is over.
struct Kept(Child);

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program instead of cargo, which would build it.
fn command(folder: &Path, line: &str) -> Command {
    let arguments = line.strip_prefix("cargo run --release -- ").expect("README runs it by cargo");
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    command.current_dir(folder).args(arguments.split(' ')).stdin(Stdio::null());
    command
}

/// Starts it, and waits until it listens.
fn daemon(folder: &Path, line: &str) -> Kept {
    let mut child = command(folder, line).stderr(Stdio::piped()).spawn().expect("the program starts");
    let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let child = Kept(child);
    let listens = lines.by_ref().map_while(Result::ok).any(|line| line.contains("listening on"));
    assert!(listens, "`{line}` does not listen");
    // Nobody else reads what it says, and it must not wait for that.
    thread::spawn(move || lines.map_while(Result::ok).count());
    child
}

#[test]
fn the_three_terminals_of_the_readme() {
    for port in [NODE_PORT, GATEWAY_PORT] {
        if let Err(error) = TcpListener::bind(("::", port)) {
            println!("SKIPPED: the_three_terminals_of_the_readme: port {port}: {error}");
            return;
        }
    }
    let readme = include_str!("../../../README.md");
    let section = readme.split("## Five minutes with real sockets").nth(1).expect("the section is there");
    let block = section.split("```").nth(1).expect("its commands are there");
    let lines: Vec<&str> = block.lines().filter(|line| !line.is_empty()).collect();
    let [key, node, gateway, push] = &lines[..] else { panic!("four commands, not {lines:?}") };

    let folder = TempDir::new().expect("a temporary folder");
    fs::write(folder.path().join("README.md"), readme).expect("it can be written");
    let made = command(folder.path(), key).output().expect("the program starts");
    assert_eq!(made.status.code(), Some(0));
    let _node = daemon(folder.path(), node);
    let _gateway = daemon(folder.path(), gateway);
    let run = command(folder.path(), push).output().expect("the program starts");
    let said = String::from_utf8_lossy(&run.stdout);
    assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
    assert!(said.contains("acknowledged by the node"), "{said}");
    let received = fs::read_to_string(folder.path().join("received.md")).expect("the node has it");
    assert!(received == readme);
}
