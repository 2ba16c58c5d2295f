//! Completions and manual pages, as whoever installs them sees them.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use anabranch_testkit::debian;
use assert_cmd::prelude::*;

fn anabranch(arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    command.args(arguments);
    command
}

#[track_caller]
fn printed(arguments: &[&str]) -> String {
    let assert = anabranch(arguments).assert().success().stderr("");
    String::from_utf8(assert.get_output().stdout.clone()).expect("text")
}

/// Every long option that `COMMAND --help` names, of all commands, by the name of their page.
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
        if name != "help" {
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
            // Nothing here reads fish but fish.
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

#[test]
fn there_is_a_page_for_each_command_with_all_of_its_options() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = folder.path().to_str().expect("a path of text");
    assert_eq!(printed(&["man", pages]), "");
    let options = options();
    assert!(options["anabranch-node"].contains(&"config".to_owned()), "{options:?}");
    assert!(options.contains_key("anabranch-lab-run"), "{options:?}");
    for (page, options) in &options {
        let text = fs::read_to_string(folder.path().join(format!("{page}.1"))).expect("the page is there");
        for option in options {
            let named = format!("\\-\\-{}", option.replace('-', "\\-"));
            assert!(text.contains(&named), "{page}: --{option}");
        }
        assert!(text.contains("EXIT STATUS"), "{page}");
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), options.len());
    let node = fs::read_to_string(folder.path().join("anabranch-node.1")).expect("a page");
    for section in [".SH FILES", ".SH EXAMPLES", ".SH \"SEE ALSO\""] {
        assert!(node.contains(section), "{section}: {node}");
    }
}

#[test]
fn groff_has_nothing_to_say_of_the_pages() {
    let folder = tempfile::tempdir().expect("a folder");
    printed(&["man", folder.path().to_str().expect("a path of text")]);
    let Some(groff) = debian::find_or_install("groff", "groff-base") else { return };
    let mut pages: Vec<_> =
        fs::read_dir(folder.path()).expect("a folder").map(|page| page.expect("a page").path()).collect();
    pages.sort();
    for page in pages {
        // What `man --warnings` does, without what it needs of the system.
        let output = Command::new(&groff)
            .args(["-man", "-Tutf8", "-ww", "-z", "-rLL=80n"])
            .arg(&page)
            .output()
            .expect("groff starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{}: {said}", page.display());
    }
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let assert = anabranch(&["man", "no-such-folder"]).assert().code(2);
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert_eq!(said, "error: no-such-folder is no folder\n  hint: make it first\n");
}
