//! Tests of shell completions.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use anabranch_cli::companion;
use anabranch_testkit::{debian, executable};
use assert_cmd::prelude::*;

fn anabranch(arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch-lab"));
    command.args(arguments);
    command
}

#[track_caller]
fn printed(arguments: &[&str]) -> String {
    let assert = anabranch(arguments).assert().success().stderr("");
    String::from_utf8(assert.get_output().stdout.clone()).expect("text")
}

/// Every long option in the output of `COMMAND --help`, for all commands.
fn options() -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    gather(&[], &mut found);
    found
}

fn gather(command: &[&str], found: &mut BTreeMap<String, Vec<String>>) {
    let help = printed(&[command, &["--help"]].concat());
    let (_, commands) = help.split_once("Commands:\n").unwrap_or_default();
    let commands = commands.lines().take_while(|line| !line.is_empty());
    for name in
        commands.filter_map(|line| line.strip_prefix("  ")?.split(' ').next().filter(|n| !n.is_empty()))
    {
        let words = [&["anabranch"], command, &[name]].concat();
        let companion = companion::small(&words.iter().map(Into::into).collect::<Vec<_>>());
        let is_here = companion.is_none() || executable::is_built(&format!("anabranch-{name}"));
        if name != "help" && is_here {
            gather(&[command, &[name]].concat(), found);
        }
    }
    let (_, options) = help.split_once("Options:\n").expect("each has --help");
    let long = options.lines().filter_map(|line| {
        let line = line.trim_start();
        let line = if line.starts_with("--") { line } else { line.strip_prefix('-')?.get(3..)? };
        let name = line.strip_prefix("--")?;
        Some(name.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect())
    });
    found.insert([&["anabranch"], command].concat().join("-"), long.collect());
}

#[test]
fn completions_name_every_option_and_bash_reads_them() {
    let options = options();
    for shell in ["bash", "zsh", "fish"] {
        let script = printed(&["completions", shell]);
        for option in options.values().flatten() {
            let named = if shell == "fish" { format!("-l {option}") } else { format!("--{option}") };
            assert!(script.contains(&named), "{shell}: --{option}");
        }
        if shell == "fish" {
            // Only fish can check fish.
            continue;
        }
        let package = if shell == "bash" { "bash" } else { "zsh" };
        let Some(program) = debian::find_or_install(shell, package) else { continue };
        let mut check = Command::new(program);
        let mut check = check.arg("-n").stdin(Stdio::piped()).spawn().expect("a shell");
        check.stdin.take().expect("it is piped").write_all(script.as_bytes()).expect("it reads");
        assert!(check.wait().expect("it ends").success(), "{shell} -n");
    }
    anabranch(&["completions", "tcsh"]).assert().code(2);
}
