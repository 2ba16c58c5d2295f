//! Processes of their own, and what they say.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::programs;

/// Nothing here takes that long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = programs::command(arguments[0]);
    command.current_dir(folder).args(&arguments[1..]).args(keys_for(arguments)).stdin(Stdio::null());
    command.env("XDG_STATE_HOME", folder.join("state"));
    command
}

/// Everybody has keys where nothing else is said.
fn keys_for(arguments: &[&str]) -> &'static [&'static str] {
    let said = |flag: &str| arguments.contains(&flag);
    match arguments[0] {
        _ if said("--insecure") || said("--key") || said("--psk") => &[],
        "node" => &["--key", "node.key", "--senders", "sender.pub"],
        "gateway" => &["--key", "gateway.key", "--senders", "sender.pub"],
        "push" if said("--to") => &["--key", "sender.key", "--node-key", "node.pub"],
        _ => &[],
    }
}

pub(crate) fn push(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, &[&["push"], arguments].concat()).output().expect("the program starts")
}

/// A daemon that is killed when the test is over.
pub(crate) struct Daemon {
    pub(crate) child: Child,
    pub(crate) address: String,
    /// Lines of its standard error.
    lines: Receiver<String>,
}

impl Daemon {
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Self {
        Self::spawn(command(folder, arguments))
    }

    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let (tell, lines) = channel();
        thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
        let mut daemon = Self { child, address: String::new(), lines };
        let line = daemon.says("listening on ");
        daemon.address = line.split("listening on ").nth(1).expect("it says where").to_owned();
        daemon
    }

    /// A gateway with its key, as it is named to others.
    pub(crate) fn known(&self) -> String {
        format!("{}=gateway.pub", self.address)
    }

    /// Waits for a line that contains `text`.
    #[track_caller]
    pub(crate) fn says(&self, text: &str) -> String {
        let mut said = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(text) => return line,
                Ok(line) => said.push(line),
                Err(_) => panic!("never said `{text}`: {said:?}"),
            }
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let done = Command::new("kill").args([name, &id]).status().expect("a shell's kill");
        assert!(done.success());
    }

    /// Its exit code, and what it printed.
    pub(crate) fn ended(&mut self) -> (Option<i32>, String) {
        let code = self.child.wait().expect("it is ours").code();
        let mut out = String::new();
        let stdout = self.child.stdout.as_mut().expect("it is piped");
        stdout.read_to_string(&mut out).expect("the program writes text");
        (code, out)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn gateway(folder: &Path) -> Daemon {
    Daemon::start(folder, &["gateway", "--listen", "127.0.0.1:0", "--allow", "127.0.0.0/8:1-65535"])
}

/// Octets without a short period, so that a chunk in the wrong place shows.
pub(crate) fn contents(octets: usize) -> Vec<u8> {
    (0..octets as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

pub(crate) fn folder(octets: usize) -> TempDir {
    let folder = TempDir::new().expect("a temporary folder");
    fs::write(folder.path().join("file"), contents(octets)).expect("it can be written");
    let made = command(folder.path(), &["key", "new", "sender", "gateway", "node"]).output();
    assert!(made.expect("the program starts").status.success());
    folder
}

pub(crate) fn text(octets: &[u8]) -> &str {
    std::str::from_utf8(octets).expect("the program writes text")
}

pub(crate) fn sha256(octets: &[u8]) -> String {
    Sha256::digest(octets).iter().map(|o| format!("{o:02x}")).collect()
}

pub(crate) fn keys(value: &Value) -> Vec<String> {
    let mut keys: Vec<String> = value.as_object().expect("an object").keys().cloned().collect();
    keys.sort();
    keys
}
