//! Starts the programs as separate processes and reads their output.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

pub(crate) use anabranch_testkit::contents;
pub(crate) use anabranch_testkit::daemon::{Daemon, home};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::programs;

pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = programs::command(arguments[0]);
    command.current_dir(folder).args(&arguments[1..]).args(keys_for(arguments)).stdin(Stdio::null());
    command.env("XDG_STATE_HOME", folder.join("state"));
    command
}

/// Options for keys, unless the arguments choose otherwise.
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

/// Names of daemons for other programs.
pub(crate) trait Named {
    /// Address of the gateway with its key, as others name it.
    fn known(&self) -> String;
}

impl Named for Daemon {
    fn known(&self) -> String {
        format!("{}=gateway.pub", self.address)
    }
}

pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Daemon {
    Daemon::spawn(command(folder, arguments))
}

pub(crate) fn gateway(folder: &Path) -> Daemon {
    start(folder, &["gateway", "--listen", "127.0.0.1:0", "--allow", "127.0.0.0/8:1-65535"])
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
