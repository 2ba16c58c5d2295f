//! Tests of `anabranch emulate` with programs at its ends: commands of the scenario, border routers
//! with two devices, hosts behind an end, ICMPv6, and routing protocols below a kernel.

use std::path::PathBuf;
use std::process::Stdio;

use anabranch_testkit::debian::find_or_install;
use anabranch_testkit::netns::{self, Broom, exists, inside, ip, run, skipped, text};
use serde_json::Value;
use tempfile::TempDir;

use crate::emulation::{Emulation, program};

/// A wired server, two border routers, a relay and a sensor in the range of the relay alone.
/// `NAMES-x` are namespaces.
const MESH: &str = r#"
name = "mesh"
stop = "60 s"
[emulation]
lag_limit = "500 ms"
[radio]
range = "100 m"
[[node]]
name = "server"
host = "tun"
netns = "NAMES-s"
[[node]]
name = "border1"
kind = "gateway"
host = "tun"
netns = "NAMES-b"
device = "eth0"
radio_device = "wpan0"
position = [0, 0]
[[node]]
name = "border2"
kind = "gateway"
position = [160, 0]
[[node]]
name = "relay"
kind = "node"
position = [80, 0]
[[node]]
name = "sensor"
kind = "node"
host = "tun"
netns = "NAMES-n"
position = [80, 90]
[[link]]
from = "server"
to = "border1"
rate = "100 Mbit/s"
delay = "5 ms"
[[link]]
from = "server"
to = "border2"
rate = "100 Mbit/s"
delay = "20 ms"
"#;

/// Writes a scenario whose namespaces begin with a name of this test.
fn scenario(test: &str, text: &str, ends: &[&str]) -> (TempDir, PathBuf, Vec<String>) {
    let names = netns::name(test);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("scenario.toml");
    std::fs::write(&path, text.replace("NAMES", &names)).expect("a file");
    (folder, path, ends.iter().map(|end| format!("{names}-{end}")).collect())
}

/// Runs an emulation to the end of its commands; returns its exit code, report and standard error.
fn ended(path: &std::path::Path, namespaces: &[String], arguments: &[&str]) -> (Option<i32>, Value, String) {
    let _broom = Broom::new(namespaces);
    let mut command = std::process::Command::new(program());
    let output = command.arg("emulate").arg(path).arg("--json").args(arguments).output().expect("it starts");
    let said = text(&output.stderr).to_owned();
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no report: {said}"));
    namespaces.iter().for_each(|netns| assert!(!exists(netns), "the namespace {netns} is left"));
    (output.status.code(), report, said)
}

/// Exit code and standard error of `emulate`.
fn said(path: &std::path::Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut emulate = std::process::Command::new(program());
    let output = emulate.arg("emulate").arg(path).args(arguments).output().expect("it starts");
    (output.status.code(), text(&output.stderr))
}

#[test]
fn a_scenario_is_a_whole_experiment() {
    if skipped() || find_or_install("ping", "iputils-ping").is_none() {
        return;
    }
    let (folder, path, ends) = scenario("exp", MESH, &["s", "b", "n"]);
    let served = folder.path().join("served");
    std::fs::write(&served, "the content").expect("a file");
    let got = folder.path().join("got");
    let serve = format!(
        "sensor: cd {} && exec python3 -m http.server --bind {{sensor}} 8000 &",
        folder.path().display()
    );
    let wait = "server: until ping -c 1 -W 1 {sensor} > /dev/null; do :; done";
    let fetch = format!(
        "server: for i in 1 2 3 4 5 6 7 8 9; do curl -s -o {} http://[{{sensor}}]:8000/served && exit; sleep 0.3; \
         done; exit 1",
        got.display()
    );
    let commands = [&*serve, wait, &fetch];
    let arguments: Vec<_> = commands.iter().flat_map(|command| ["--run", command]).collect();
    let (code, report, said) = ended(&path, &ends, &arguments);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(std::fs::read_to_string(got).expect("the copy"), "the content");
    assert_eq!(report["ended"], "commands");
    let rows = report["commands"].as_array().expect("a list");
    let row = |i: usize| (&rows[i]["node"], &rows[i]["background"], &rows[i]["code"], &rows[i]["stopped"]);
    assert_eq!(row(0), (&"sensor".into(), &true.into(), &143.into(), &true.into()), "{report}");
    assert_eq!(row(2), (&"server".into(), &false.into(), &0.into(), &false.into()), "{report}");
    assert!(rows[2]["command"].as_str().is_some_and(|line| line.contains("[fd00::5]:8000")), "{report}");
    assert!(rows[2]["end_s"].as_f64() <= rows[0]["end_s"].as_f64(), "{report}");
}

#[test]
fn the_first_command_that_fails_gives_the_exit_code() {
    if skipped() {
        return;
    }
    for (commands, code, message) in [
        (&["server: exit 7", "server: exit 8"][..], 7, "error: `server: exit 7` ended with exit code 7"),
        (&["sensor: exit 9 &", "server: sleep 0.3"], 9, "error: `sensor: exit 9` ended with exit code 9"),
        (&["sensor: sleep 60 &", "server: true"], 0, ""),
        (&["server: sleep 60"], 1, "error: the commands had not ended after 1 s"),
    ] {
        let (_folder, path, ends) = scenario("code", MESH, &["s", "b", "n"]);
        let stop = if code == 1 { "1 s" } else { "30 s" };
        let arguments = commands.iter().flat_map(|command| ["--run", command]).chain(["--for", stop]);
        let (found, report, said) = ended(&path, &ends, &arguments.collect::<Vec<_>>());
        assert_eq!(found, Some(code), "{commands:?}: {said}");
        assert!(said.contains(message), "{said}");
        assert!(report["elapsed_s"].as_f64() < Some(20.0), "{report}");
    }
    // Bad commands are refused before anything is made.
    for (command, message) in [
        ("true", "`true` names no node"),
        ("sever: true", "did you mean `server`?"),
        ("relay: true", "the simulator plays `relay`, which runs no commands"),
        ("server:", "there is no command after the node"),
        ("server: true &", "all commands are in the background"),
    ] {
        let (_folder, path, _) = scenario("bad", MESH, &[]);
        let (code, said) = said(&path, &["--run", command]);
        assert_eq!((code, said.contains(message)), (Some(2), true), "{command}: {said}");
    }
}

#[test]
fn an_interrupt_stops_the_commands_too() {
    if skipped() {
        return;
    }
    let (_folder, path, ends) = scenario("int", MESH, &["s", "b", "n"]);
    let server = ends[0].clone();
    let set = r#"emulation.run=["sensor: sleep 1234 &", "server: sleep 1234"]"#.to_owned();
    let emulation = Emulation::start(&path, ends, &[set]);
    wait_for_a_process_in(&server);
    let report = emulation.interrupt();
    let stopped = report["commands"].as_array().expect("a list").iter().map(|row| &row["stopped"]);
    assert_eq!(stopped.collect::<Vec<_>>(), [true, true], "{report}");
}

fn wait_for_a_process_in(netns: &str) {
    let until = format!("until [ -n \"$(ip netns pids {netns})\" ]; do sleep 0.02; done");
    assert!(run("sh", &["-c", &until]).status.success());
}

fn netns_pids(netns: &str) -> String {
    text(&run("ip", &["netns", "pids", netns]).stdout).to_owned()
}

#[test]
fn a_start_removes_what_a_killed_emulation_has_left() {
    if skipped() {
        return;
    }
    let (_folder, path, ends) = scenario("kill", MESH, &["s", "b", "n"]);
    let _broom = Broom::new(&ends);
    let set = r#"emulation.run=["sensor: sleep 1234"]"#.to_owned();
    let mut emulation = Emulation::start(&path, ends.clone(), &[set]);
    wait_for_a_process_in(&ends[2]);
    emulation.child.kill().expect("it runs");
    emulation.child.wait().expect("it is a child of ours");
    assert!(ends.iter().all(|netns| exists(netns)), "they stay");
    let left = netns_pids(&ends[2]);
    let pid = left.trim();
    assert!(!pid.is_empty());
    let (code, _, said) = ended(&path, &ends, &["--run", "server: true"]);
    assert_eq!(code, Some(0), "{said}");
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    assert!(stat.map_or(true, |stat| stat.contains(") Z ")), "process {pid} still runs");
    std::mem::forget(emulation);
    // A namespace of the user's is used, and stays.
    let own = format!("{}-s", netns::name("kill"));
    let _broom = Broom::new(std::slice::from_ref(&own));
    ip(&["netns", "add", &own]);
    let output = std::process::Command::new(program())
        .arg("emulate")
        .arg(&path)
        .args(["--run", "server: true"])
        .stdout(Stdio::null())
        .output()
        .expect("it starts");
    assert_eq!((output.status.code(), exists(&own)), (Some(0), true), "{}", text(&output.stderr));
}

#[test]
fn a_border_router_has_a_device_on_each_side() {
    if skipped() || find_or_install("ping", "iputils-ping").is_none() {
        return;
    }
    let (_folder, path, ends) = scenario("two", MESH, &["s", "b", "n"]);
    let show = "border1: ip -o link show dev eth0 | grep -q 'mtu 1500' && ip -o link show dev wpan0 | grep -q 'mtu 1280'";
    let commands = [
        show,
        "border1: ping -q -c 2 -i 0.2 -W 2 {server} > /dev/null",
        "border1: ping -q -c 2 -i 0.2 -W 2 {sensor} > /dev/null",
        "border1: ping -q -c 2 -i 0.2 -W 2 {relay} > /dev/null",
        "border1: ping -q -c 2 -i 0.2 -W 2 {border2} > /dev/null",
        "sensor: ping -q -c 2 -i 0.2 -W 2 {border1} > /dev/null",
        "server: ping -q -c 2 -i 0.2 -W 2 {border1} > /dev/null",
        // 1400 bytes fit into the wired packet, and not into one of the mesh.
        "server: ping -q -M do -s 1400 -c 2 -i 0.2 -W 2 {border1} > /dev/null",
    ];
    let arguments: Vec<_> = commands.iter().flat_map(|command| ["--run", command]).collect();
    let (code, report, said) = ended(&path, &ends, &arguments);
    assert_eq!(code, Some(0), "{said}");
    let traffic = |device: &str, key: &str| {
        let rows = report["ends"].as_array().expect("a list");
        let row = rows.iter().find(|row| row["device"] == device).unwrap_or_else(|| panic!("{report}"));
        row["traffic"][key].as_u64().unwrap_or_else(|| panic!("{report}"))
    };
    // Each echo and each answer is on the device of the other end's side.
    assert_eq!((traffic("eth0", "packets_in"), traffic("eth0", "packets_out")), (8, 8), "{report}");
    assert_eq!((traffic("wpan0", "packets_in"), traffic("wpan0", "packets_out")), (6, 6), "{report}");
}

#[test]
fn the_network_speaks_icmpv6() {
    if skipped() || find_or_install("ping", "iputils-ping").is_none() {
        return;
    }
    let (folder, path, ends) = scenario("icmp", MESH, &["s", "b", "n"]);
    let unreachable = "import errno, socket, sys
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.settimeout(5)
# Without IPV6_RECVERR, only some errors end a call.
s.setsockopt(socket.IPPROTO_IPV6, 25, 1)
s.connect((sys.argv[1], 9))
s.send(b'x')
try:
    s.recv(10)
except OSError as error:
    sys.exit(0 if errno.errorcode.get(error.errno) == sys.argv[2] else 2)
sys.exit(3)";
    let script = folder.path().join("udp.py");
    std::fs::write(&script, unreachable).expect("a file");
    let says = |arguments: &str, what: &str| format!("server: ping {arguments} | grep -q '{what}'");
    let commands = [
        // The relay is simulated; border1 forwards to it.
        says("-c 1 -W 3 {relay}", "1 received"),
        says("-c 1 -W 3 -t 1 {sensor}", "Time exceeded"),
        says("-c 1 -W 3 -t 2 {sensor}", "From fd00::4"),
        // To the radio's 1280 bytes from the link's 1500.
        "server: ping -c 2 -i 0.3 -W 2 -M do -s 1400 {sensor} | grep -q 'mtu.1280'".to_owned(),
        format!("server: python3 {} {{relay}} ECONNREFUSED", script.display()),
        format!("server: python3 {} fd00::99 EHOSTUNREACH", script.display()),
    ];
    let set = ["--set", "network.fragmentation=forbidden"];
    let arguments: Vec<_> = commands.iter().flat_map(|command| ["--run", command]).chain(set).collect();
    let (code, _, said) = ended(&path, &ends, &arguments);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_namespace_forwards_for_the_hosts_behind_it() {
    if skipped() || find_or_install("ping", "iputils-ping").is_none() {
        return;
    }
    let behind = MESH.replace("netns = \"NAMES-s\"", "netns = \"NAMES-s\"\nprefixes = [\"2001:db8:1::/64\"]");
    let (_folder, path, ends) = scenario("fwd", &behind, &["s", "b", "n"]);
    let host = format!("{}-h", netns::name("fwd"));
    let _broom = Broom::new(std::slice::from_ref(&host));
    ip(&["netns", "add", &host]);
    let attach = format!(
        "server: ip link add lan0 type veth peer name lan1 netns {host} && ip address add 2001:db8:1::1/64 dev lan0 \
         nodad && ip link set lan0 up && sysctl -q -w net.ipv6.conf.all.forwarding=1 && ip -n {host} address add \
         2001:db8:1::2/64 dev lan1 nodad && ip -n {host} link set lan1 up && ip -n {host} route add default via \
         2001:db8:1::1"
    );
    let from_host = format!(
        "server: ip netns exec {host} ping -q -c 2 -i 0.2 -W 3 {{sensor}} > /dev/null && ip netns exec {host} ping -c 1 \
         -W 3 -t 2 {{sensor}} | grep -q 'Time exceeded'"
    );
    let commands = [&*attach, &from_host, "sensor: ping -q -c 2 -i 0.2 -W 3 2001:db8:1::2 > /dev/null"];
    let arguments: Vec<_> = commands.iter().flat_map(|command| ["--run", command]).collect();
    let (code, report, said) = ended(&path, &ends, &arguments);
    assert_eq!(code, Some(0), "{said} {report}");
}

/// The kernel's packets follow routes that simulated routers have found.
#[test]
fn routing_protocols_run_below_a_kernel() {
    if skipped() || find_or_install("ping", "iputils-ping").is_none() {
        return;
    }
    let row = |radio: &str| {
        let node = |(i, name): (usize, &str)| {
            let tun = match name {
                "root" | "leaf" => format!("host = \"tun\"\nnetns = \"NAMES-{}\"\n", &name[..1]),
                _ => String::new(),
            };
            format!("[[node]]\nname = \"{name}\"\nkind = \"node\"\nposition = [{}, 0]\n{tun}", 80 * i)
        };
        let nodes: String = ["root", "one", "two", "leaf"].into_iter().enumerate().map(node).collect();
        format!("stop = \"60 s\"\n[emulation]\nlag_limit = \"500 ms\"\n{radio}\n{nodes}")
    };
    for (test, radio) in [
        ("rpl", "[radio]\nrange = \"100 m\"\n[paths]\nroot = \"root\""),
        ("aodv", "[wifi]\nrange = \"100 m\"\n[aodv]"),
    ] {
        let (_folder, path, ends) = scenario(test, &row(radio), &["r", "l"]);
        let until = |from: &str, to: &str| {
            format!(
                "{from}: for i in 1 2 3 4 5 6 7 8 9; do ping -q -c 2 -i 0.2 -W 2 {{{to}}} && exit; sleep 1; done; exit 1"
            )
        };
        let commands = [until("leaf", "root"), until("root", "leaf")];
        let mut arguments: Vec<_> = commands.iter().flat_map(|command| ["--run", command]).collect();
        if test == "aodv" {
            arguments.extend(["--set", "network.ip=4"]);
        }
        let (code, report, said) = ended(&path, &ends, &arguments);
        assert_eq!(code, Some(0), "{test}: {said} {report}");
    }
}

/// Commands see their own standard output, and nothing of the namespace's loopback is missing.
#[test]
fn commands_print_where_the_user_looks() {
    if skipped() {
        return;
    }
    let (_folder, path, ends) = scenario("out", MESH, &["s", "b", "n"]);
    let _broom = Broom::new(&ends);
    let mut emulate = std::process::Command::new(program());
    let commands = ["--run", "server: echo hello", "--run", "server: anabranch --version"];
    let output = emulate.arg("emulate").arg(&path).args(commands).output().expect("it starts");
    let printed = text(&output.stdout);
    assert!(printed.starts_with("hello\nanabranch "), "{printed}");
    assert!(printed.contains("lag of"), "the report follows: {printed}");
    assert!(!inside(&ends[0], &["true"]).output().expect("it starts").status.success(), "it is gone");
}

#[test]
fn a_scenario_names_the_kernels_congestion_control() {
    if skipped() {
        return;
    }
    // The one that is not the host's default.
    let default = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").expect("TCP");
    let name = if default.trim() == "reno" { "cubic" } else { "reno" };
    for ip in [6, 4] {
        let wired =
            MESH.replace("[radio]\nrange = \"100 m\"\n", "").replace("radio_device = \"wpan0\"\n", "");
        let wired = wired.lines().filter(|line| !line.starts_with("position")).collect::<Vec<_>>().join("\n");
        let links: String = ["relay", "sensor"]
            .iter()
            .map(|to| {
                format!(
                    "\n[[link]]\nfrom = \"border1\"\nto = \"{to}\"\nrate = \"10 Mbit/s\"\ndelay = \"1 ms\"\n"
                )
            })
            .collect();
        let (folder, path, ends) = scenario(&format!("cc{ip}"), &(wired + &links), &["s", "b", "n"]);
        let show = folder.path().join("ss");
        let serve = "sensor: python3 -m http.server --bind {sensor} 8000 > /dev/null 2>&1 &";
        let open = format!(
            "server: python3 -c 'import socket, subprocess, time\nfor i in range(100):\n  try:\n    s = \
             socket.create_connection((\"{{sensor}}\", 8000)); break\n  except OSError: \
             time.sleep(0.1)\nprint(subprocess.run([\"ss\", \"-tin\"], capture_output=True, text=True).stdout)' > {}",
            show.display()
        );
        let set = [format!("network.ip={ip}"), format!("emulation.congestion={name}")];
        let arguments = ["--run", serve, "--run", &open, "--set", &set[0], "--set", &set[1]];
        let (code, _, said) = ended(&path, &ends, &arguments);
        assert_eq!(code, Some(0), "{ip}: {said}");
        let seen = std::fs::read_to_string(show).expect("the output");
        assert!(seen.contains(&format!(" {name} ")), "{seen}");
    }
}

/// A reader that has gone, or reads nothing, neither hides a failure nor keeps anything.
#[test]
fn the_reader_of_the_report_decides_nothing() {
    if skipped() {
        return;
    }
    let (_folder, path, ends) = scenario("reader", MESH, &["s", "b", "n"]);
    let _broom = Broom::new(&ends);
    let emulate = |command: &str| {
        let mut emulate = std::process::Command::new(program());
        emulate.arg("emulate").arg(&path).args(["--run", command]).stderr(Stdio::piped());
        emulate
    };
    let mut failing = emulate("server: exit 9");
    let mut child = failing.stdout(Stdio::piped()).spawn().expect("it starts");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it is a child of ours").code(), Some(9));
    // A pipe that is full before the report.
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let full = "dd if=/dev/zero bs=4096 count=16 status=none";
    let mut fill = std::process::Command::new("sh");
    fill.args(["-c", full]).stdout(writer.try_clone().expect("a copy"));
    assert!(fill.status().expect("it starts").success());
    let mut good = emulate("server: sleep 1");
    let mut child = good.stdout(writer).spawn().expect("it starts");
    let gone = format!("while ip netns list | grep -q {}; do sleep 0.05; done", ends[0]);
    let made = format!("until ip netns list | grep -q {}; do sleep 0.01; done", ends[0]);
    assert!(run("sh", &["-c", &made]).status.success() && run("sh", &["-c", &gone]).status.success());
    drop(reader);
    assert_eq!(child.wait().expect("it is a child of ours").code(), Some(0));
}

#[test]
fn what_the_kernel_or_another_emulation_refuses_is_named() {
    if skipped() {
        return;
    }
    let (_folder, path, ends) = scenario("named", MESH, &["s", "b", "n"]);
    let (code, why) = said(&path, &["--set", "emulation.congestion=nosuch"]);
    assert_eq!(code, Some(2), "{why}");
    assert!(why.contains("the kernel has no congestion control `nosuch`"), "{why}");
    let emulation = Emulation::start(&path, ends.clone(), &[]);
    let (code, why) = said(&path, &[]);
    assert_eq!(code, Some(2), "{why}");
    assert!(why.contains(&format!("the namespace `{}` is in use by another emulation", ends[0])), "{why}");
    emulation.interrupt();
}

/// An emulation removes only what an emulation has made.
#[test]
fn a_namespace_made_anew_by_hand_stays() {
    if skipped() {
        return;
    }
    let (_folder, path, ends) = scenario("anew", MESH, &["s", "b", "n"]);
    let _broom = Broom::new(&ends);
    let mut emulation = Emulation::start(&path, ends.clone(), &[]);
    emulation.child.kill().expect("it runs");
    emulation.child.wait().expect("it is a child of ours");
    ip(&["netns", "delete", &ends[0]]);
    ip(&["netns", "add", &ends[0]]);
    let (code, why) = said(&path, &["--run", "server: true"]);
    assert_eq!(code, Some(0), "{why}");
    assert_eq!(ends.iter().map(|netns| exists(netns)).collect::<Vec<_>>(), [true, false, false]);
    std::mem::forget(emulation);
}

#[test]
fn an_end_has_a_device_for_each_interface() {
    if skipped() || find_or_install("ping", "iputils-ping").is_none() {
        return;
    }
    if !std::path::Path::new("/proc/sys/net/mptcp/enabled").exists() {
        println!("SKIPPED: the kernel has no Multipath TCP");
        return;
    }
    let text = include_str!("../../../../scenarios/mptcp-emulated.toml")
        .replace("netns = \"dc\"", "netns = \"NAMES-d\"")
        .replace("netns = \"node\"", "netns = \"NAMES-n\"");
    let (folder, path, ends) = scenario("if", &text, &["d", "n"]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/mptcp_transfer.py");
    let got = folder.path().join("got");
    let commands = [
        format!("dc: exec python3 {script} serve &"),
        "node: for own in {node.cellular} {node.radio}; do ping -c 1 -W 5 -I $own {dc} || exit; done"
            .to_owned(),
        // The address of one interface does not leave by the other.
        "node: ! ping -c 1 -W 1 -I cellular -I {node.radio} {dc}".to_owned(),
        format!(
            "node: exec python3 {script} send {{dc}} --cellular {{node.cellular}} --radio {{node.radio}} \
             --bytes 6000 --modes cellular radio kernel --pause 0.3 > {}",
            got.display()
        ),
    ];
    let arguments: Vec<_> = commands.iter().flat_map(|command| ["--run", command.as_str()]).collect();
    let (code, report, said) = ended(&path, &ends, &arguments);
    assert_eq!(code, Some(0), "{said}");
    let devices = report["ends"].as_array().expect("a list");
    let device = |i: usize| (devices[i]["device"].as_str(), devices[i]["address"].as_str());
    assert_eq!(device(1), (Some("cellular"), Some("fd00::2")), "{report}");
    assert_eq!(device(2), (Some("radio"), Some("fd00::6")), "{report}");
    assert_eq!(devices[1]["traffic"]["foreign"], 1, "{report}");
    let lines = std::fs::read_to_string(got).expect("the results");
    let shares: Vec<[f64; 2]> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("an object"))
        .map(|result| ["cellular", "radio"].map(|name| result["share"][name].as_f64().expect("a share")))
        .collect();
    assert_eq!(shares[..2], [[1.0, 0.0], [0.0, 1.0]], "plain TCP keeps to the interface of its address");
    assert!(shares[2].iter().all(|share| *share > 0.0), "the kernel opens two subflows: {lines}");
}
