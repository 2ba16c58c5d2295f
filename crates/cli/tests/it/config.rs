//! Tests of `--config FILE` and `--check` on the command line.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};

use anabranch_testkit::uninterrupted;
use assert_cmd::prelude::*;
use tempfile::TempDir;

/// A folder with a file of this text.
fn folder(config: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("c.toml"), config).expect("a file");
    folder
}

fn anabranch(folder: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    command.current_dir(folder.path()).args(arguments).stdin(Stdio::null());
    command
}

/// `COMMAND --config c.toml --check` with more arguments must succeed. The keys of SET are not
/// checked here.
#[track_caller]
fn good(command: &str, config: &str, more: &[&str]) {
    let folder = folder(config);
    let arguments = [&[command, "--config", "c.toml", "--check", "--insecure"], more].concat();
    anabranch(&folder, &arguments)
        .assert()
        .success()
        .stdout(format!("{command}: the options are valid\n"))
        .stderr("");
}

/// Error message about a file that is refused.
#[track_caller]
fn refused(command: &str, config: &str, more: &[&str]) -> String {
    let folder = folder(config);
    let arguments = [&[command, "--config", "c.toml", "--insecure"], more].concat();
    let assert = anabranch(&folder, &arguments).assert().code(2).stdout("");
    String::from_utf8(assert.get_output().stderr.clone()).expect("text")
}

const NODE: &str = r#"
listen = "[::]:47200"
out = "firmware.bin"
gateways = ["10.0.0.1", "[fd00::1]:47201"]
buffer = "16 MiB"
connections = 128
idle = "90 s"
once = true
json = false
"#;

#[test]
fn every_kind_of_value_is_taken() {
    good("node", NODE, &[]);
    good("node", "out = \"x\"\ngateways = \"10.0.0.1,10.0.0.2\"\nconnections = 0x40", &[]);
    good("gateway", "allow = [\"10.1.0.0/16\", \"[fd00::/64]:47200-47210\"]\nmemory = \"1 GiB\"", &[]);
    good("gateway", "", &[]);
    good("gateway", "rate-mesh = \"40 kbit/s\"\nrate-node = \"20 kbit/s\"\nper-node = 4", &[]);
}

#[test]
fn the_command_line_goes_before_the_file() {
    // The file's value would be refused, but the command line's replaces it.
    good("node", "out = \"x\"\nbuffer = \"1\"", &["--buffer", "1 MiB"]);
    // An option that conflicts with the file's option also replaces it, and a list replaces a list.
    good("node", "out = \"x\"", &["--pipe", "cat"]);
    good("node", "pipe = \"cat\"", &["--out=x"]);
    let many = format!("out = \"x\"\ngateways = [{}]", "\"10.0.0.1\", ".repeat(16));
    assert!(refused("node", &many, &["--check"]).contains("16 gateways"));
    good("node", &many, &["--gateways", "10.0.0.1"]);
}

#[test]
fn an_option_of_the_file_may_be_what_the_command_line_lacks() {
    let without = refused("node", "", &["--check"]);
    assert!(without.contains("--out") && without.contains("from c.toml too"), "{without}");
    good("node", "out = \"x\"", &[]);
}

#[test]
fn a_value_that_begins_with_a_dash_is_a_value() {
    good("node", "out = \"-\"", &[]);
    let said = refused("node", "out = \"x\"\nlisten = \"--quiet\"", &["--check"]);
    assert!(said.contains("`--quiet`: no such host"), "{said}");
}

#[test]
fn a_fault_has_its_place_and_a_hint() {
    for (command, config, expected) in [
        (
            "node",
            "out = \"x\"\nbufer = 1",
            "error: c.toml:2:1: `node` has no option `bufer`\n  hint: did you mean `buffer`?\n",
        ),
        (
            "gateway",
            "  out = \"x\"",
            "error: c.toml:1:3: `gateway` has no option `out`\n  hint: see anabranch gateway --help: keys are its long options\n",
        ),
        (
            "node",
            "[node]\nout = \"x\"",
            "error: c.toml:1:2: `node` has no option `node`\n  hint: the file is for one command and has no sections\n",
        ),
        (
            "node",
            "out = \"x\"\nonce = \"yes\"",
            "error: c.toml:2:8: `once` is a text; expected true or false\n  hint: once = true\n",
        ),
        (
            "node",
            "out = true",
            "error: c.toml:1:7: `out` is true or false; expected a text or a number\n  hint: out = \"FILE\"; options have no sections\n",
        ),
        (
            "node",
            "out = [\"x\"]",
            "error: c.toml:1:7: `out` is a list; expected a text or a number\n  hint: out = \"FILE\"; options have no sections\n",
        ),
        (
            "node",
            "[out]\nx = 1",
            "error: c.toml:1:1: `out` is a table; expected a text or a number\n  hint: out = \"FILE\"; options have no sections\n",
        ),
        (
            "gateway",
            "allow = [[\"x\"]]",
            "error: c.toml:1:9: `allow` is a list; expected a text, a number, or a list of them\n  hint: allow = \"PREFIX[:PORTS]\"; options have no sections\n",
        ),
        (
            "node",
            "out = \"x\"\npipe = \"cat\"",
            "error: c.toml:1:7: `out` conflicts with --pipe <CMD>\n  hint: remove one of them\n",
        ),
        (
            "node",
            "out = \"x\"\nconfig = \"y\"",
            "error: c.toml:2:1: `config` is allowed on the command line only\n  hint: remove it from this file and give --config\n",
        ),
        ("node", "out = \"x\"\nout = \"y\"", "error: c.toml:2:1: duplicate key\n"),
    ] {
        assert_eq!(refused(command, config, &["--check"]), expected, "{config}");
    }
    let said = refused("node", "out = \"x\"\nbuffer = \"4 MiX\"", &["--check"]);
    assert!(
        said.starts_with("error: c.toml:2:10: buffer: `4 MiX`: ") && said.contains("\n  hint: "),
        "{said}"
    );
    let said = refused("gateway", "connections = 0", &["--check"]);
    assert!(said.starts_with("error: c.toml:1:15: connections: `0`: "), "{said}");
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let folder = folder("");
    for (file, what) in [("nowhere.toml", "No such file"), (".", "Is a directory")] {
        let assert = anabranch(&folder, &["gateway", "--config", file]).assert().code(2);
        let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(said.starts_with(&format!("error: cannot read {file}: {what}")), "{said}");
        assert!(said.contains("hint: "), "{said}");
    }
}

#[test]
fn what_is_wrong_on_the_command_line_is_said_as_without_a_file() {
    let said = refused("node", "out = \"x\"", &["--bufer", "1"]);
    assert!(said.contains("'--bufer'") && said.contains("'--buffer'"), "{said}");
    let folder = folder(NODE);
    let help = anabranch(&folder, &["node", "--config", "c.toml", "--help"]).assert().success();
    assert!(String::from_utf8_lossy(&help.get_output().stdout).contains("--config <FILE>"));
}

#[test]
fn a_push_takes_its_options_from_a_file_too() {
    let folder = folder("json = true\nquiet = true\ngateways = 2\nseed = 7");
    // Longer than a file that needs no gateway.
    fs::write(folder.path().join("f"), [7; 2000]).expect("a file");
    let run = |more: &[&str]| {
        let arguments = [&["push", "f", "--config", "c.toml"], more].concat();
        let assert = anabranch(&folder, &arguments).assert().success().stderr("");
        let out = &assert.get_output().stdout;
        let report: serde_json::Value = serde_json::from_slice(out).expect("JSON, as the file wants it");
        report["gateways"].as_array().map(Vec::len)
    };
    assert_eq!(run(&[]), Some(2));
    assert_eq!(run(&["--gateways", "1"]), Some(1));
}

#[test]
fn a_key_on_the_command_line_puts_insecure_in_the_file_out_of_force() {
    let folder = folder("out = \"x\"\ninsecure = true");
    anabranch(&folder, &["key", "new", "me"]).assert().success();
    let check = ["node", "--config", "c.toml", "--check"];
    anabranch(&folder, &check).assert().success();
    anabranch(&folder, &[&check[..], &["--key", "me.key", "--senders", "me.pub"]].concat())
        .assert()
        .success();
    // `--key` replaces the file's option, so the keys are read and a missing file is an error.
    anabranch(&folder, &[&check[..], &["--key", "no.key", "--senders", "me.pub"]].concat()).assert().code(2);
    fs::write(folder.path().join("c.toml"), "out = \"x\"\nkey = \"me.key\"\nsenders = [\"me.pub\"]")
        .expect("a file");
    anabranch(&folder, &check).assert().success();
}

#[test]
fn check_finds_what_no_single_option_shows() {
    let said = refused("gateway", "memory = \"1 MiB\"", &["--check"]);
    assert!(said.contains("is too small for 256 sessions"), "{said}");
    let said = refused("node", "out = \"x\"\ngateways = [\"no.such.host.invalid\"]", &["--check"]);
    assert!(said.contains("no such host"), "{said}");
}

#[test]
fn a_service_manager_is_told_when_it_is_ready_and_when_it_stops() {
    for (command, config) in [
        ("node", "listen = \"127.0.0.1:0\"\ninsecure = true\nout = \"x\""),
        ("gateway", "listen = \"127.0.0.1:0\"\ninsecure = true"),
    ] {
        let folder = folder(config);
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        socket.set_read_timeout(Some(std::time::Duration::from_secs(60))).expect("a limit");
        let mut daemon = anabranch(&folder, &[command, "--config", "c.toml"]);
        let mut daemon = daemon.env("NOTIFY_SOCKET", &path).stderr(Stdio::null()).spawn().expect("it starts");
        let mut told = [0; 64];
        let n = uninterrupted(|| socket.recv(&mut told)).expect("it tells");
        assert_eq!(&told[..n], b"READY=1");
        Command::new("kill").arg(daemon.id().to_string()).status().expect("a kill");
        let n = uninterrupted(|| socket.recv(&mut told)).expect("it tells");
        assert_eq!(&told[..n], b"STOPPING=1");
        assert_eq!(daemon.wait().expect("it is ours").code(), Some(0));
    }
}
