//! `anabranch wireshark`: with tshark in place of the window.

use std::fs;
use std::path::Path;
use std::process::Command;

use anabranch_testkit::debian::find_or_install;
use assert_cmd::prelude::*;

fn anabranch(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    command.current_dir(folder).env("TMPDIR", folder).args(arguments);
    command
}

fn scenario(name: &str) -> String {
    format!("{}/../../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

/// No packet of any medium is malformed, has a bad checksum, or is taken for another protocol.
#[test]
fn captures_of_every_medium_are_read_without_a_fault() {
    if find_or_install("tshark", "tshark").is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let cases = [
        ("three-gateways", "anabranch"),
        ("three-hops-radio", "6lowpan && tcp"),
        ("duty-cycle", "6lowpan && udp"),
        ("mobile", "aodv"),
        ("diamond-mptcp", "tcp.option_kind == 30"),
    ];
    for (name, some) in cases {
        let run = ["run", &scenario(name), "--pcap", "c.pcapng", "--quiet"];
        // Runs that deliver nothing end with 1: what is captured counts here.
        let _ = anabranch(folder.path(), &run).output().expect("it starts");
        let count = |filter: &str| {
            let arguments = [
                "wireshark",
                "c.pcapng",
                "--with",
                "tshark",
                "--",
                "-Y",
                filter,
                "-T",
                "fields",
                "-e",
                "frame.number",
            ];
            let output = anabranch(folder.path(), &arguments).assert().success();
            String::from_utf8_lossy(&output.get_output().stdout).lines().count()
        };
        assert!(count(some) > 0, "{name}: {some}");
        let faults = "_ws.malformed || tcp.checksum.status == 0 || udp.checksum.status == 0 || ip.checksum.status == 0 || _ws.lua.error";
        assert_eq!(count(faults), 0, "{name}");
        assert_eq!(count("gsm_ipa || rpc || dns || http || sip"), 0, "{name} is taken for another protocol");
    }
    let left = fs::read_dir(folder.path()).expect("it is here").flatten().map(|entry| entry.file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["c.pcapng"], "the script goes with the program");
}

#[test]
fn what_is_no_capture_and_a_missing_program_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("text"), "no capture").expect("a file");
    fs::write(folder.path().join("empty"), "").expect("a file");
    fs::write(folder.path().join("c.pcapng"), [0x0a, 0x0d, 0x0d, 0x0a]).expect("a file");
    for (arguments, code, said) in [
        (&["wireshark", "text"][..], 2, "text is not a capture"),
        (&["wireshark", "empty"], 2, "empty is not a capture"),
        (&["wireshark", "nowhere"], 2, "nowhere"),
        (&["wireshark", "c.pcapng", "--with", "./nothing"], 3, "cannot start ./nothing"),
    ] {
        let output = anabranch(folder.path(), arguments).assert().code(code);
        let stderr = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
        assert!(stderr.contains(said), "{stderr}");
    }
}
