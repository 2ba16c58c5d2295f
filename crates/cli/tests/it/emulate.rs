//! Tests of `anabranch emulate` with the kernel's own programs at the ends.
//!
//! Tests that need privileges run in namespaces of their own and transfer little; everything is
//! removed even if a test fails.

use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anabranch_testkit::contents;
use anabranch_testkit::debian::find_or_install;
use anabranch_testkit::executable;
use anabranch_testkit::netns::{self, Broom, Kept, exists, inside, is_root, run, skipped, text};
use tempfile::TempDir;

use crate::emulation::{Emulation, program};

/// A chain of three hops between two ends; LEFT, RIGHT and IP are placeholders.
const CHAIN: &str = r#"
name = "chain"
stop = "60 s"
[network]
ip = IP
[emulation]
lag_limit = "500 ms"
[[node]]
name = "left"
host = "tun"
netns = "LEFT"
[[node]]
name = "r1"
kind = "node"
[[node]]
name = "r2"
kind = "node"
[[node]]
name = "right"
host = "tun"
netns = "RIGHT"
device = "far0"
[[link]]
from = "left"
to = "r1"
rate = "10 Mbit/s"
delay = "10 ms"
[[link]]
name = "middle"
from = "r1"
to = "r2"
rate = "10 Mbit/s"
delay = "10 ms"
[[link]]
from = "r2"
to = "right"
rate = "10 Mbit/s"
delay = "10 ms"
"#;

const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/two-tun-ends.toml");

/// Starts [`CHAIN`] and returns when packets can flow. `test` names the namespaces.
fn start(test: &str, ip: u8, set: &[&str]) -> Emulation {
    let [left, right] = ["l", "r"].map(|side| netns::name(&format!("{test}{side}")));
    let (_folder, path) = chain(&left, &right, ip);
    let set: Vec<_> = set.iter().map(|&assignment| assignment.to_owned()).collect();
    Emulation::start(&path, vec![left, right], &set)
}

fn chain(left: &str, right: &str, ip: u8) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("chain.toml");
    let text = CHAIN.replace("LEFT", left).replace("RIGHT", right).replace("IP", &ip.to_string());
    std::fs::write(&path, text).expect("a file");
    (folder, path)
}

/// Minimum round-trip time of five echoes with this payload, in milliseconds.
fn least_rtt(from: &str, to: &str, octets: &str) -> f64 {
    let mut ping = inside(from, &["ping", "-c", "5", "-i", "0.2", "-w", "20", "-s", octets, to]);
    let output = ping.output().expect("ping runs");
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    let figures = said.split("mdev = ").nth(1).unwrap_or_else(|| panic!("no figures: {said}"));
    figures.split('/').next().and_then(|least| least.parse().ok()).unwrap_or_else(|| panic!("{said}"))
}

#[test]
fn an_echo_over_three_hops_of_10_ms_takes_60_ms() {
    if skipped() {
        return;
    }
    if find_or_install("ping", "iputils-ping").is_none() {
        return;
    }
    for (ip, far) in [(4, "10.0.0.4"), (6, "fd00::4")] {
        let emulation = start(&format!("ping{ip}"), ip, &[]);
        let rtt = least_rtt(&emulation.namespaces[0], far, "56");
        // 84 bytes (IPv6: 104) take 0.07 ms per hop; the rest is the machine's.
        assert!((60.4..90.0).contains(&rtt), "{rtt} ms");
        let cut = least_rtt(&emulation.namespaces[0], far, "4000");
        assert!((63.0..120.0).contains(&cut), "{cut} ms");
        let report = emulation.interrupt();
        assert_eq!(report["ends"][0]["address"], far.replace('4', "1"));
        for end in [0, 1] {
            let traffic = &report["ends"][end]["traffic"];
            assert_eq!((&traffic["bad"], &traffic["refused"]), (&0.into(), &0.into()), "{report}");
            assert!(traffic["packets_out"].as_u64() >= Some(10), "{report}");
        }
        // At least one batch per echo; on a busy machine a batch has several packets.
        assert!(report["lag"]["batches"].as_u64() >= Some(10), "{report}");
        assert!(report["lag"]["max_s"].as_f64() > Some(0.0), "{report}");
    }
}

const CLIENT: &str = "import sys, urllib.request
sys.stdout.buffer.write(urllib.request.urlopen(sys.argv[1], timeout=40).read())";

#[test]
fn the_kernels_tcp_carries_a_file_over_a_lossy_chain() {
    if skipped() {
        return;
    }
    for (ip, far, url) in
        [(4, "10.0.0.4", "http://10.0.0.4:8000/file"), (6, "fd00::4", "http://[fd00::4]:8000/file")]
    {
        let emulation = start(&format!("tcp{ip}"), ip, &["link.middle.loss=1 %"]);
        let folder = tempfile::tempdir().expect("a folder");
        let expected = contents(200_000);
        std::fs::write(folder.path().join("file"), &expected).expect("a file");
        let serve = ["python3", "-u", "-m", "http.server", "--bind", far, "8000"];
        let mut server = inside(&emulation.namespaces[1], &serve);
        server.current_dir(folder.path()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = Kept(server.spawn().expect("python3 runs"));
        let mut said = String::new();
        let mut stdout = BufReader::new(server.0.stdout.take().expect("it is a pipe"));
        stdout.read_line(&mut said).expect("text");
        assert!(said.contains("Serving"), "{said}");

        let client = inside(&emulation.namespaces[0], &["python3", "-c", CLIENT, url]).output();
        let client = client.expect("python3 runs");
        assert!(client.status.success(), "{}", text(&client.stderr));
        assert!(client.stdout == expected, "{} octets that differ", client.stdout.len());
        drop(server);
        let report = emulation.interrupt();
        // With this seed one of the first packets is lost. The total number of packets depends on
        // the kernel.
        let lost = |way: &str| report["metrics"][format!("link.{way}.dropped_loss")]["mean"].as_f64();
        assert!(lost("r2>r1") > Some(0.0), "nothing was lost: {report}");
        assert!(report["ends"][0]["traffic"]["bytes_out"].as_u64() > Some(200_000), "{report}");
    }
}

#[test]
fn a_signal_ends_it_and_leaves_only_what_was_there() {
    if skipped() {
        return;
    }
    for signal in ["-INT", "-TERM"] {
        let ours = netns::name("ours");
        let _broom = Broom::new([&ours]);
        assert!(run("ip", &["netns", "add", &ours]).status.success());
        let assignment = format!("node.right.netns={ours}");
        let emulation = start("signal", 6, &[&assignment]);
        let device = || run("ip", &["-n", &ours, "link", "show", "dev", "far0"]).status.success();
        let (there, made) = (device(), exists(&emulation.namespaces[0]));
        let first = format!("ab{:x}n", emulation.child.id());
        emulation.signal(signal);
        let (status, report, said) = emulation.finish();
        let (left, kept) = (device(), exists(&ours));
        run("ip", &["netns", "delete", &ours]);
        assert_eq!((there, made, left, kept), (true, true, false, true));
        assert_eq!((status.code(), &report["ended"]), (Some(130), &"interrupted".into()), "{said}");
        // Devices are created in the initial namespace before they move.
        let links = text(&run("ip", &["-o", "link"]).stdout);
        assert!(!links.contains(&first), "{links}");
    }
}

#[test]
fn what_fails_half_way_leaves_nothing() {
    if skipped() {
        return;
    }
    let [left, right] = ["l", "r"].map(|side| netns::name(&format!("half{side}")));
    let _broom = Broom::new([&left, &right]);
    let (_folder, path) = chain(&left, &right, 4);
    assert!(run("ip", &["netns", "add", &right]).status.success());
    let taken = run("ip", &["-n", &right, "tuntap", "add", "dev", "far0", "mode", "tun"]);
    let output = run(program(), &["emulate", path.to_str().expect("text")]);
    let (left_over, kept) = (exists(&left), exists(&right));
    let devices = text(&run("ip", &["-n", &right, "-o", "link"]).stdout);
    run("ip", &["netns", "delete", &right]);
    assert!(taken.status.success(), "{}", text(&taken.stderr));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("the network device `far0` already exists\n  hint: "), "{said}");
    assert_eq!((left_over, kept), (false, true));
    assert_eq!(devices.matches("tun").count() + devices.matches("POINTOPOINT").count(), 1, "{devices}");
}

#[test]
fn it_ends_at_stop() {
    if skipped() {
        return;
    }
    let (status, report, said) = start("stop", 4, &["stop=300 ms"]).finish();
    assert_eq!((status.code(), &report["ended"], said.as_str()), (Some(0), &"stop".into(), ""));
    let elapsed = report["elapsed_s"].as_f64();
    assert!(elapsed >= Some(0.3) && elapsed < Some(60.0), "{report}");
}

#[test]
fn a_person_gets_a_table_and_a_capture() {
    if skipped() {
        return;
    }
    let [left, right] = ["l", "r"].map(|side| netns::name(&format!("pcap{side}")));
    let _broom = Broom::new([&left, &right]);
    let (folder, path) = chain(&left, &right, 4);
    let pcap = folder.path().join("all.pcapng");
    let mut command = Command::new(program());
    command.arg("emulate").arg(&path).args(["--for", "300 ms", "--pcap"]).arg(&pcap);
    let output = command.stdin(Stdio::null()).output().expect("the program starts");
    let (said, table) = (text(&output.stderr), text(&output.stdout));
    assert_eq!(output.status.code(), Some(0), "{said}");
    let place = format!("`right` is 10.0.0.4 on device `far0` in namespace `{right}`");
    assert!(said.contains(&place), "{said}");
    assert!(table.starts_with("chain, seed 1, 0.3") && table.contains("packets out"), "{table}");
    assert!(std::fs::read(pcap).is_ok_and(|octets| octets.len() > 100));
    assert!(!exists(&left) && !exists(&right));
}

#[test]
fn events_that_come_late_are_told_of_or_end_it() {
    if skipped() {
        return;
    }
    // The kernel answers echoes, but an accuracy of a nanosecond is impossible.
    let set = ["emulation.lag_limit=1 ns", "emulation.on_lag=stop"];
    let echo = |emulation: &Emulation| {
        let _ = inside(&emulation.namespaces[0], &["python3", "-c", ONE_DATAGRAM]).status();
    };
    let mut emulation = start("warn", 4, &set[..1]);
    echo(&emulation);
    let said = emulation.hear("warning");
    // The emulation continues nevertheless.
    let report = emulation.interrupt();
    assert!(said.starts_with("warning: at ") && said.contains("ms late; the limit is"), "{said}");
    assert!(report["lag"]["over_limit"].as_u64() > Some(0), "{report}");
    let emulation = start("late", 4, &set);
    echo(&emulation);
    let (status, report, said) = emulation.finish();
    assert_eq!((status.code(), &report["ended"]), (Some(1), &"late".into()), "{said}");
    assert!(said.contains("error: events came") && said.contains("hint: "), "{said}");
}

const ONE_DATAGRAM: &str = "import socket
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('10.0.0.4', 9))";

#[test]
fn without_privileges_it_says_which_command_has_them() {
    let (folder, path) = chain("abtnone1", "abtnone2", 4);
    let here = folder.path().join("anabranch");
    let mut command = Command::new(program());
    if is_root() {
        // An unprivileged user needs read access to the program and the scenario.
        executable::copy(std::path::Path::new(program()), &here);
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("it is ours");
        command = Command::new(&here);
        command.uid(65_534).gid(65_534);
    }
    let output = command.arg("emulate").arg(path).output().expect("the program starts");
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(3), ""), "{said}");
    assert!(said.starts_with("error: ") && said.contains("\n  hint: run `sudo "), "{said}");
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(!exists("abtnone1") && !exists("abtnone2"));
}

#[test]
fn what_cannot_be_emulated_is_refused() {
    let three = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/three-gateways.toml");
    for (arguments, expected) in [
        (vec!["emulate", three], "no node of the scenario is a TUN end"),
        (vec!["emulate", SHIPPED, "--for", "0 s"], "'--for <DURATION>'"),
        (vec!["emulate", SHIPPED, "--set", "node.r1.netns=a"], "`netns` has no meaning for a simulated node"),
        (
            vec!["emulate", SHIPPED, "--set", "node.right.netns=left"],
            "give every TUN end a `netns` of its own",
        ),
        (vec!["emulate", "nowhere.toml"], "cannot read nowhere.toml"),
        (vec!["run", SHIPPED], "run it with `anabranch emulate`"),
    ] {
        let output = run(program(), &arguments);
        let said = text(&output.stderr);
        assert_eq!(
            (output.status.code(), text(&output.stdout).as_str()),
            (Some(2), ""),
            "{arguments:?}: {said}"
        );
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}
