//! Tests of the units and example configurations under `packaging`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anabranch_cli::companion;
use anabranch_testkit::{debian, executable};
use assert_cmd::prelude::*;

const PROGRAMS: [&str; 7] = ["node", "gateway", "cache", "multipath", "sense", "sink", "tune"];

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
}

fn anabranch(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    command.current_dir(folder).args(arguments);
    command
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(packaging().join(path)).expect("it is part of the repository")
}

fn config(program: &str) -> String {
    read(format!("config/{program}.toml"))
}

fn unit(program: &str) -> String {
    // It is a template: its instances are named after other units.
    let at = if program == "tune" { "@" } else { "" };
    read(format!("systemd/anabranch-{program}{at}.service"))
}

/// The value of a line `key = value` or `key=value`.
#[track_caller]
fn value<'t>(text: &'t str, key: &str) -> &'t str {
    let of = |line: &'t str| line.strip_prefix(key)?.trim_start().strip_prefix('=').map(str::trim);
    text.lines().find_map(of).expect("it is there")
}

#[test]
fn the_example_configurations_are_good() {
    let folder = tempfile::tempdir().expect("a folder");
    anabranch(folder.path(), &["key", "new", "me"]).assert().success();
    anabranch(folder.path(), &["key", "new", "release", "--kind", "signing"]).assert().success();
    let is_here = |program: &&str| {
        let is_companion = companion::small(&["anabranch".into(), program.into()]).is_some();
        !is_companion || executable::is_built(&format!("anabranch-{program}"))
    };
    for program in PROGRAMS.into_iter().filter(is_here) {
        // Once as it is, once with all commented-out options enabled.
        let text = config(program);
        let example = |line: &str| {
            let key = line.strip_prefix("# ")?.split_once(" = ")?.0;
            // A sink has one output, and no file of these is here.
            let is_other = program == "sink" && ["pipe", "mqtt", "psk"].contains(&key);
            let is_key = key.chars().all(|c| c.is_ascii_lowercase() || c == '-');
            (is_key && !is_other).then(|| line[2..].to_owned())
        };
        let all: Vec<String> = text.lines().map(|line| example(line).unwrap_or(line.to_owned())).collect();
        assert_ne!(all.join("\n"), text.trim_end());
        for text in [text, all.join("\n")] {
            let here = text.replace("/etc/anabranch/release.pub", "release.pub");
            fs::write(folder.path().join("c.toml"), here).expect("a file");
            // The test's keys and names replace those of the configuration. A cache and a tuner
            // have none.
            let keys: &[&str] = match program {
                "cache" | "multipath" | "tune" => &[],
                "sense" => &["--key", "me.key", "--sink-key", "me.pub", "--to", "::1", "--from", "c.toml"],
                _ => &["--key", "me.key", "--senders", "me.pub"],
            };
            let check = [&[program, "--check", "--config", "c.toml"][..], keys].concat();
            anabranch(folder.path(), &check).assert().success();
        }
    }
}

#[test]
fn the_configuration_in_the_guide_is_good() {
    let guide = read("../docs/guides/operators.md");
    let (_, block) = guide.split_once("```toml,config=gateway\n").expect("there is one");
    let (text, _) = block.split_once("```").expect("it ends");
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("c.toml"), text).expect("a file");
    let check = ["gateway", "--check", "--config", "c.toml", "--insecure"];
    anabranch(folder.path(), &check).assert().success();
}

#[test]
fn the_limits_of_the_units_are_enough_for_the_examples() {
    let (unit, config) = (unit("gateway"), config("gateway"));
    let number = |text: &str| text.parse::<u64>().expect("a number");
    let connections = number(value(&config, "connections"));
    assert!(number(value(&unit, "LimitNOFILE")) > 2 * connections, "two descriptors for each session");
    let memory = number(value(&config, "memory").trim_matches('"').strip_suffix(" MiB").expect("MiB"));
    assert!(memory * 16 >= connections, "64 KiB for each session");
    let most = number(value(&unit, "MemoryMax").strip_suffix('G').expect("GiB")) * 1024;
    assert!(most >= memory * 3 / 2, "and the program beside");
}

#[test]
fn systemd_takes_the_units_and_finds_them_safe() {
    let Some(analyze) = debian::find_or_install("systemd-analyze", "systemd") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    for name in PROGRAMS {
        // systemd searches the program in the folders of installed programs.
        let unit = unit(name).replace(&format!("=anabranch-{name} "), "=/bin/true ");
        let unit = unit.replace("%i.service", "network.target");
        let path = folder.path().join(format!("anabranch-{name}.service"));
        fs::write(&path, unit).expect("a file");
        let verified =
            Command::new(&analyze).args(["verify", "--man=no"]).arg(&path).output().expect("it starts");
        let said = String::from_utf8_lossy(&verified.stderr);
        assert!(verified.status.success() && said.is_empty(), "{name}: {said}");
        // Requires an exposure of at most 1.2 of 10, systemd's own rating of what a unit may do. A
        // cache needs two capabilities, and netlink; a tuner traces processes of other users.
        let threshold = match name {
            "cache" => "--threshold=16",
            "multipath" => "--threshold=25",
            "tune" => "--threshold=33",
            _ => "--threshold=12",
        };
        let security = ["security", "--offline=true", "--no-pager", threshold];
        let judged = Command::new(&analyze).args(security).arg(&path).output().expect("it starts");
        assert!(judged.status.success(), "{name}: {}", String::from_utf8_lossy(&judged.stdout));
    }
}
