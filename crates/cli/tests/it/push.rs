//! Tests of `anabranch push` on the command line: input files, exit code, output, and output files.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use anabranch_deploy::push::DEPLOYED;
use anabranch_testkit::contents;
use expect_test::{Expect, expect};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// Runs `anabranch push` in `folder`.
fn push(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().expect("the program starts")
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    command.current_dir(folder).arg("push").args(arguments).stdin(Stdio::null());
    command
}

/// A folder that contains `file` with this number of bytes.
fn folder(octets: usize) -> TempDir {
    let folder = TempDir::new().expect("a temporary folder");
    fs::write(folder.path().join("file"), contents(octets)).expect("it can be written");
    folder
}

fn text(octets: &[u8]) -> &str {
    std::str::from_utf8(octets).expect("the program writes text")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let mut names: Vec<String> =
        entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn keys(object: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = object.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// Checks that the phases of a delivered file follow each other without gaps. Returns the name, the
/// end and the length of each.
pub(crate) fn phases(report: &Value) -> Vec<(String, f64, f64)> {
    let mut before = 0.0;
    let phases = report["phases"].as_array().expect("a list").iter().map(|phase| {
        assert_eq!(keys(phase), ["end_s", "name", "start_s"]);
        let end = phase["end_s"].as_f64().expect("a number");
        assert_eq!(phase["start_s"].as_f64(), Some(before), "{report}");
        let length = end - std::mem::replace(&mut before, end);
        assert!(length >= 0.0, "{report}");
        (phase["name"].as_str().expect("a name").to_owned(), end, length)
    });
    let phases: Vec<_> = phases.collect();
    let names: Vec<&str> = phases.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["request", "handshakes", "first_byte", "striping", "tail", "confirmation"]);
    phases
}

fn delivers(octets: usize) -> Value {
    let folder = folder(octets);
    let run = push(folder.path(), &["file", "--json", "--quiet", "--out", "got"]);
    assert_eq!(run.status.code(), Some(0), "{octets} octets: {}", text(&run.stderr));
    assert_eq!(text(&run.stderr), "");
    assert!(fs::read(folder.path().join("got")).expect("--out is there") == contents(octets));
    let report: Value = serde_json::from_slice(&run.stdout).expect("one JSON object");
    let sum: String = Sha256::digest(contents(octets)).iter().map(|o| format!("{o:02x}")).collect();
    assert_eq!(report["bytes"], octets);
    assert_eq!(report["sha256"], sum);
    assert_eq!(report["delivered_sha256"], sum);
    assert_eq!(report["verified"], true);
    report
}

#[test]
fn an_empty_file_is_delivered() {
    let report = delivers(0);
    assert_eq!(report["gateways"].as_array().map(Vec::len), Some(0), "nothing to carry");
}

#[test]
fn one_octet_is_delivered() {
    delivers(1);
}

#[test]
fn a_small_file_is_delivered() {
    delivers(5_000);
}

#[test]
fn an_image_is_delivered_through_three_gateways() {
    let report = delivers(129_000);
    let carried: u64 = (0..3).map(|i| report["gateways"][i]["bytes"].as_u64().expect("a number")).sum();
    assert!(carried >= 129_000, "{report}");
    let latency = report["latency_s"].as_f64().expect("a number");
    let goodput = report["goodput_bit_per_s"].as_f64().expect("a number");
    assert!((goodput * latency / (129_000.0 * 8.0) - 1.0).abs() < 1e-9, "{report}");
    assert!(report["establishment_s"].as_f64().expect("a number") < latency);
}

#[test]
fn ten_megabytes_are_delivered() {
    delivers(10_000_000);
}

#[test]
fn the_json_has_the_documented_fields() {
    let folder = folder(5_000);
    let run = push(folder.path(), &["file", "--json", "--compare"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let report: Value = serde_json::from_slice(&run.stdout).expect("one JSON object");
    let mut fields = [
        "bytes",
        "sha256",
        "delivered_sha256",
        "verified",
        "network",
        "latency_s",
        "establishment_s",
        "phases",
        "decisions",
        "goodput_bit_per_s",
        "gateways",
        "compare",
        // Progress of a failed transfer.
        "delivered_bytes",
        // Bytes that a resumed push does not send again.
        "resumed_from",
    ];
    fields.sort_unstable();
    assert_eq!(keys(&report), fields);
    for gateway in report["gateways"].as_array().expect("a list") {
        assert_eq!(keys(gateway), ["bytes", "name", "retransmissions", "srtt_s", "state"]);
    }
    let schemes: Vec<(&str, u64)> = report["compare"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|row| {
            assert_eq!(keys(row), ["gateways", "latency_s", "scheme"]);
            assert!(row["latency_s"].as_f64().expect("each delivers") > 0.0);
            (row["scheme"].as_str().expect("a name"), row["gateways"].as_u64().expect("a number"))
        })
        .collect();
    assert_eq!(schemes, [("end-to-end", 1), ("split", 1), ("set", 1), ("set", 2), ("set", 3)]);
    assert_eq!(report["compare"][4]["latency_s"], report["latency_s"], "the same network, seed and scheme");
}

/// The sender knows that the file is there when the last acknowledgement has crossed both halves of
/// a path of 35 ms. `run` has the same phases.
#[test]
fn phases_follow_each_other_until_the_sender_knows() {
    let report = delivers(129_000);
    let phases = phases(&report);
    let [latency, establishment] =
        ["latency_s", "establishment_s"].map(|name| report[name].as_f64().expect("a number"));
    assert_eq!(phases[1].1, establishment, "{report}");
    assert!((0.035..0.06).contains(&(phases[5].1 - latency)), "{report}");
    let folder = folder(129_000);
    fs::write(folder.path().join("net.toml"), network()).expect("it can be written");
    let mut run = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    let run = run.current_dir(folder.path()).args(["run", "net.toml", "--json"]).output().expect("it starts");
    let run: Value = serde_json::from_slice(&run.stdout).expect("one JSON object");
    for (name, end, length) in &phases {
        let metric = &run["metrics"][format!("transfer.update.phase.{name}_s")]["mean"];
        assert!((metric.as_f64().expect(name) - length).abs() < 1e-9, "{name} until {end}: {metric}");
    }
}

#[test]
fn each_scheme_of_a_comparison_is_what_a_scenario_file_says() {
    let folder = folder(20_000);
    fs::write(folder.path().join("net.toml"), network()).expect("it can be written");
    let run = push(folder.path(), &["file", "--network", "net.toml", "--compare", "--json", "--seed", "3"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let pushed: Value = serde_json::from_slice(&run.stdout).expect("one JSON object");
    for row in pushed["compare"].as_array().expect("a list") {
        let scheme = row["scheme"].as_str().expect("a name");
        let mut run = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
        run.current_dir(folder.path()).args(["run", "net.toml", "--json", "--seed", "3"]);
        run.args([
            "--set",
            "transfer.update.bytes=20000 B",
            "--set",
            &format!("transfer.update.kind={scheme}"),
        ]);
        if scheme != "end-to-end" {
            run.args(["--set", &format!("transfer.update.gateways={}", row["gateways"])]);
        }
        let run = run.output().expect("the program starts");
        assert_eq!(run.status.code(), Some(0), "{scheme}: {}", text(&run.stderr));
        let report: Value = serde_json::from_slice(&run.stdout).expect("one JSON object");
        assert_eq!(row["latency_s"], report["metrics"]["transfer.update.latency_s"]["mean"], "{row}");
    }
}

#[test]
fn the_report_for_people_says_how_it_went_and_how_much_faster() {
    let folder = folder(5_000);
    let run = push(folder.path(), &["file", "--compare"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let report = text(&run.stdout);
    for part in [
        "5000 bytes delivered in ",
        "SHA-256 equal",
        "phases (s): request 0.",
        "gw1 ",
        "gw3 ",
        "end-to-end",
        "times as fast",
    ] {
        assert!(report.contains(part), "no {part:?} in\n{report}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let folder = folder(42_000);
    let lossy = network().replace("mtu = 141", "mtu = 141\nloss = \"2 %\"");
    fs::write(folder.path().join("lossy.toml"), lossy).expect("it can be written");
    let run = |seed: &str, pcap: &str| {
        let fail = "gw2@700ms:reset";
        let arguments =
            ["file", "--network", "lossy.toml", "--seed", seed, "--fail", fail, "--json", "--pcap", pcap];
        let run = push(folder.path(), &arguments);
        assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
        (run.stdout, fs::read(folder.path().join(pcap)).expect("--pcap is there"))
    };
    let (first, second, other) = (run("7", "a.pcapng"), run("7", "b.pcapng"), run("8", "c.pcapng"));
    assert_eq!(text(&first.0), text(&second.0));
    assert!(first.1 == second.1, "the captures differ");
    assert!(first.1 != other.1, "the seed does nothing");
}

#[test]
fn without_gateways_it_says_how_far_it_got_and_leaves_no_file() {
    let folder = folder(129_000);
    let run = push(folder.path(), &["file", "--out", "got", "--fail", "gw1@1s+gw2@1s+gw3@1s:reset"]);
    assert_eq!(run.status.code(), Some(1));
    assert_eq!(names(folder.path()), ["file"]);
    let error = text(&run.stderr);
    let got: u64 = error
        .split_once(" of 129000 bytes were delivered")
        .and_then(|(before, _)| before.rsplit(' ').next()?.parse().ok())
        .unwrap_or_else(|| panic!("does not say how far: {error}"));
    assert!(0 < got && got < 129_000, "{error}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = folder(5_000);
    let mut command = command(folder.path(), &["file", "--json", "--quiet"]);
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    drop(child.stdout.take());
    let run = child.wait_with_output().expect("it ends");
    assert_eq!((run.status.code(), text(&run.stderr)), (Some(0), ""));
}

/// Checks the refusal of bad input: exit code 2, nothing on standard output, nothing written, and
/// the whole message.
fn refuses(arguments: &[&str], network: Option<String>, message: Expect) {
    message.assert_eq(&refusal(arguments, network));
}

fn refusal(arguments: &[&str], network: Option<String>) -> String {
    let folder = folder(100);
    fs::create_dir(folder.path().join("directory")).expect("a folder");
    let mut arguments = arguments.to_vec();
    if let Some(text) = network {
        fs::write(folder.path().join("network.toml"), text).expect("it can be written");
        arguments.extend(["--network", "network.toml"]);
    }
    if !arguments.contains(&"--out") {
        arguments.extend(["--out", "got"]);
    }
    arguments.extend(["--pcap", "packets.pcapng"]);
    let before = names(folder.path());
    let run = push(folder.path(), &arguments);
    assert_eq!(run.status.code(), Some(2), "{arguments:?}: {}", text(&run.stderr));
    assert_eq!(text(&run.stdout), "", "{arguments:?}");
    assert_eq!(names(folder.path()), before, "{arguments:?}");
    assert!(names(&folder.path().join("directory")).is_empty(), "{arguments:?}");
    text(&run.stderr).to_owned()
}

/// Text of the built-in network.
fn network() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/three-gateways.toml");
    fs::read_to_string(path).expect("the scenario is shipped")
}

#[test]
fn bad_options_are_refused() {
    // clap writes these messages; only the named option is checked.
    for (arguments, named) in [
        (&["file", "--colour"][..], "--colour"),
        (&["file", "--gateways", "0"], "--gateways"),
        (&["file", "--gateways", "most"], "expected a number of gateways or `best`"),
        (&["file", "--fail", "nonsense"], "`nonsense` is not of the form `gw2@1.5s`"),
        (&["file", "--fail", "gw1@soon"], "`soon` is not a time"),
        (&["file", "--seed", "often"], "--seed"),
    ] {
        let error = refusal(arguments, None);
        assert!(error.contains(named), "{arguments:?}: {error}");
    }
}

/// The built-in network with one gateway behind a radio of 2 kbit/s and two seconds. SET eventually
/// avoids that gateway; the model does so before the transfer.
fn lopsided() -> String {
    let radio3 = "name = \"radio3\"\nfrom = \"gw3\"\nto = \"sn\"\nrate = \"256 kbit/s\"\ndelay = \"25 ms\"";
    let slow = radio3.replace("256 kbit/s", "2 kbit/s").replace("25 ms", "2 s");
    network().replace(radio3, &slow)
}

/// Names of the gateways that a push used, and its standard error.
fn used(folder: &Path, arguments: &[&str]) -> (Vec<String>, String) {
    let run = push(folder, &[&["file", "--json"][..], arguments].concat());
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let report: Value = serde_json::from_slice(&run.stdout).expect("one JSON object");
    assert_eq!(report["verified"], true);
    let gateways = report["gateways"].as_array().expect("a list").iter();
    let names = gateways.map(|g| g["name"].as_str().expect("a name").to_owned()).collect();
    (names, text(&run.stderr).to_owned())
}

#[test]
fn as_many_gateways_are_used_as_the_model_finds_best() {
    let large = folder(129_000);
    let small = folder(300);
    // By default such a small file is sent with its request and needs no gateway.
    let sessions = lopsided() + "\n[transfer.set]\nstart = \"after-setack\"\n";
    for (folder, network) in [(&large, lopsided()), (&small, sessions)] {
        fs::write(folder.path().join("net.toml"), network).expect("it can be written");
    }
    let best = ["--network", "net.toml", "--gateways", "best"];
    let (names, said) = used(large.path(), &best);
    assert_eq!(names, ["gw1", "gw2"]);
    assert!(said.contains("2 of 3 gateways are best by the model, which predicts "), "{said}");
    let (names, said) = used(small.path(), &best);
    assert_eq!(names, ["gw1"], "{said}");
    fs::write(small.path().join("net.toml"), lopsided()).expect("it can be written");
    assert_eq!(used(small.path(), &best).0, [""; 0], "it needs none");
    // `--quiet` suppresses the message, and the default is unchanged.
    assert_eq!(used(large.path(), &[&best[..], &["--quiet"]].concat()).1, "");
    assert_eq!(used(large.path(), &["--network", "net.toml", "--quiet"]).0, ["gw1", "gw2", "gw3"]);
}

#[test]
fn a_network_can_ask_for_the_best_number_of_gateways() {
    let folder = folder(129_000);
    let asks = lopsided().replace("bytes = \"129 kB\"", "bytes = \"129 kB\"\ngateways = \"best\"");
    fs::write(folder.path().join("net.toml"), asks).expect("it can be written");
    let network = ["--network", "net.toml", "--quiet"];
    assert_eq!(used(folder.path(), &network).0, ["gw1", "gw2"]);
    assert_eq!(used(folder.path(), &[&network[..], &["--gateways", "3"]].concat()).0.len(), 3);
}

#[test]
fn more_gateways_than_there_are_is_refused() {
    refuses(
        &["file", "--gateways", "9"],
        None,
        expect![[r#"
        error: --gateways 9: the network has only 3
          hint: use a smaller number, or give another network with --network
    "#]],
    );
}

#[test]
fn an_unknown_gateway_is_refused() {
    refuses(
        &["file", "--fail", "gw7@1s"],
        None,
        expect![[r#"
        error: --fail: the network has no gateway `gw7`
          hint: did you mean `gw1`?
    "#]],
    );
}

#[test]
fn an_unreadable_file_is_refused() {
    refuses(
        &["nowhere"],
        None,
        expect![[r#"
        error: cannot read nowhere: No such file or directory (os error 2)
          hint: give a file that you can read
    "#]],
    );
    refuses(
        &["directory"],
        None,
        expect![[r#"
        error: cannot read directory: Is a directory (os error 21)
          hint: give a file that you can read
    "#]],
    );
}

#[test]
fn an_unwritable_output_is_refused() {
    refuses(
        &["file", "--out", "missing/got"],
        None,
        expect![[r#"
        error: cannot write missing/got: No such file or directory (os error 2)
          hint: choose a path that you can write
    "#]],
    );
    refuses(
        &["file", "--out", "directory"],
        None,
        expect![[r#"
        error: cannot write directory: it is a directory
          hint: name a file in this directory
    "#]],
    );
}

#[test]
fn an_unreadable_network_is_refused() {
    refuses(
        &["file", "--network", "nowhere.toml"],
        None,
        expect![[r#"
        error: cannot read nowhere.toml: No such file or directory (os error 2)
    "#]],
    );
}

#[test]
fn a_network_with_an_unknown_key_is_refused() {
    let network = network().replacen("mtu = 141", "mtu = 141\ncolour = \"red\"", 1);
    refuses(
        &["file"],
        Some(network),
        expect![[r#"
            error: network.toml:67:1: unknown key `colour`, expected one of `name`, `from`, `via`, `to`, `only`, `enabled`, `rate`, `delay`, `trace`, `queue`, `discipline`, `ecn_threshold`, `mtu`, `loss`, `loss_factors`, `link_ack_timeout`, `arq`, `jitter`, `reordering`, `lateness`, `duplication`, `spacing`, `back`
        "#]],
    );
}

#[test]
fn a_network_with_a_wrong_unit_is_refused() {
    let network = network().replacen("\"256 kbit/s\"", "\"256 kg\"", 1);
    refuses(
        &["file"],
        Some(network),
        expect![[r#"
        error: network.toml:64:8: unknown unit `kg`, expected one of `bit/s`, `kbit/s`, `Mbit/s`, `Gbit/s`
    "#]],
    );
}

#[test]
fn a_network_with_a_negative_rate_is_refused() {
    let network = network().replacen("\"256 kbit/s\"", "\"-256 kbit/s\"", 1);
    refuses(
        &["file"],
        Some(network),
        expect![[r#"
        error: network.toml:64:8: `-256 kbit/s` is negative
          hint: leave out the sign: no quantity is negative
    "#]],
    );
}

#[test]
fn a_network_that_is_not_connected_is_refused() {
    let network = network() + "\n\n[[node]]\nname = \"lonely\"\n";
    refuses(
        &["file"],
        Some(network),
        expect![[r#"
        error: network.toml:94:8: the network is not connected: no link leads from `cn` to `lonely`
          hint: add a `[[link]]` that joins `lonely` to the others
    "#]],
    );
}

#[test]
fn a_network_without_a_set_transfer_is_refused() {
    let without = network().replace("kind = \"set\"", "kind = \"split\"");
    refuses(
        &["file"],
        Some(without),
        expect![[r#"
        error: network.toml: no transfer of kind "set"
          hint: add a `[[transfer]]` with kind = "set", from and to
    "#]],
    );
}

/// A device is written in place and still exists afterwards, whether full or not.
#[test]
fn a_device_is_neither_replaced_nor_removed() {
    if !Path::new("/dev/full").exists() {
        println!("SKIPPED: this machine has no /dev/full");
        return;
    }
    let folder = folder(1000);
    for option in ["--out", "--pcap"] {
        let output = push(folder.path(), &["file", "--quiet", option, "/dev/full"]);
        assert_eq!(output.status.code(), Some(1), "{option}");
        let still = fs::metadata("/dev/full").expect("it is still there");
        assert!(!still.is_file(), "{option}");
    }
}

#[test]
fn options_of_a_simulation_do_not_go_with_a_deployed_node() {
    let folder = folder(10);
    for option in
        ["--network=n.toml", "--out=o", "--compare", "--fail=gw1@1s", "--seed=1", "--pcap=p", "--events=e"]
    {
        let run = push(folder.path(), &["file", "--to", "127.0.0.1:1", "--insecure", option]);
        assert_eq!(run.status.code(), Some(2), "{option}: {}", text(&run.stderr));
        assert!(text(&run.stderr).contains("cannot be used with"), "{option}: {}", text(&run.stderr));
    }
}

/// What only a deployed push has is not ignored, whatever option of a simulated one is there.
#[test]
fn a_simulated_push_refuses_each_option_of_a_deployed_one() {
    let folder = folder(100);
    let value = |name: &str| match name {
        "restart" | "no_resume" | "insecure" | "shared_channel" => None,
        "rate" | "rate_gateway" => Some("1 kbit/s"),
        "wait" | "retry_for" => Some("1 s"),
        "striping" => Some("turns"),
        "to" | "via" => Some("127.0.0.1"),
        _ => Some("file"),
    };
    for simulated in [&["--seed", "1"][..], &["--compare"]] {
        for name in DEPLOYED {
            let option = format!("--{}", name.replace('_', "-"));
            let arguments = [&["file", &option], value(name).as_slice(), simulated].concat();
            let output = push(folder.path(), &arguments);
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
            assert!(said.contains("cannot be used with") && said.contains(&option), "{arguments:?}: {said}");
        }
    }
    // Each option is of one kind.
    let help = push(folder.path(), &["--help"]);
    let options = text(&help.stdout).lines().filter_map(|line| {
        let line = line.trim_start().trim_start_matches("-q, ").trim_start_matches("-h, ");
        line.strip_prefix("--").map(|rest| rest.split([' ', ',']).next().expect("a name").replace('-', "_"))
    });
    let both = ["gateways", "json", "quiet", "config", "help"];
    let simulated = ["network", "out", "compare", "fail", "seed", "pcap", "events"];
    let all = [&DEPLOYED[..], &both, &simulated].concat();
    let options: Vec<String> = options.collect();
    assert!(options.iter().all(|name| all.contains(&name.as_str())), "{options:?}");
    assert_eq!(options.len(), all.len());
}
