//! The tested programs: those with one command each, or `anabranch` if the variable ANABRANCH names
//! its file.

use std::env;
use std::process::Command;

/// The words that begin a command line of `command`.
pub(crate) fn words(command: &str) -> Vec<String> {
    if let Ok(whole) = env::var("ANABRANCH") {
        return vec![whole, command.to_owned()];
    }
    // `manifest` belongs to `anabranch-key`.
    if command == "manifest" {
        return [words("key"), vec![command.to_owned()]].concat();
    }
    // A folder with other builds of the programs, such as the smallest ones.
    if let Ok(folder) = env::var("ANABRANCH_PROGRAMS") {
        return vec![format!("{folder}/anabranch-{command}")];
    }
    let alone = match command {
        "gateway" => env!("CARGO_BIN_EXE_anabranch-gateway"),
        "node" => env!("CARGO_BIN_EXE_anabranch-node"),
        "push" => env!("CARGO_BIN_EXE_anabranch-push"),
        "sense" => env!("CARGO_BIN_EXE_anabranch-sense"),
        "sink" => env!("CARGO_BIN_EXE_anabranch-sink"),
        "tune" => env!("CARGO_BIN_EXE_anabranch-tune"),
        "key" => env!("CARGO_BIN_EXE_anabranch-key"),
        other => panic!("no program is `{other}` alone"),
    };
    vec![alone.to_owned()]
}

/// A command of the tested programs.
pub(crate) fn command(name: &str) -> Command {
    let words = words(name);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}
