//! Tests of successful transfers, and of errors.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::deployed::world::*;

/// Keys of the JSON report of a push, sorted.
const FIELDS: [&str; 14] = [
    "bytes",
    "compare",
    "decisions",
    "delivered_bytes",
    "delivered_sha256",
    "establishment_s",
    "gateways",
    "goodput_bit_per_s",
    "latency_s",
    "network",
    "phases",
    "resumed_from",
    "sha256",
    "verified",
];

#[test]
fn a_file_goes_through_three_gateways_into_a_file() {
    let folder = folder(3_000_000);
    let gateways = [gateway(folder.path()), gateway(folder.path()), gateway(folder.path())];
    let table = gateways.each_ref().map(Daemon::known).join(",");
    let out = ["node", "--listen", "127.0.0.1:0", "--out", "got", "--once", "--json", "--gateways", &table];
    let mut node = start(folder.path(), &out);
    let run = push(folder.path(), &["file", "--to", &node.address, "--json", "--quiet"]);
    assert_eq!((run.status.code(), text(&run.stderr)), (Some(0), ""));
    assert!(fs::read(folder.path().join("got")).expect("it is there") == contents(3_000_000));

    let report: Value = serde_json::from_slice(&run.stdout).expect("one JSON object");
    assert_eq!((&report["bytes"], &report["delivered_bytes"]), (&3_000_000.into(), &3_000_000.into()));
    assert_eq!(report["sha256"], sha256(&contents(3_000_000)));
    assert_eq!(report["gateways"].as_array().map(Vec::len), Some(3));
    // The test of the simulated push has the same lists.
    assert_eq!(keys(&report), FIELDS);
    assert_eq!(keys(&report["gateways"][0]), ["bytes", "name", "retransmissions", "srtt_s", "state"]);
    assert_eq!(report["decisions"], Value::Array(Vec::new()));

    let (code, said) = node.ended();
    assert_eq!(code, Some(0), "--once has ended it");
    let received: Value = serde_json::from_str(&said).expect("one JSON object");
    assert_eq!((&received["bytes"], &received["sha256"]), (&report["bytes"], &report["sha256"]));
}

/// The node says that the gateways share a channel, or the sender says so of its own, or neither.
/// The loopback device is no such channel.
#[test]
fn a_push_says_when_turns_begin_and_why_they_end() {
    let folder = folder(300_000);
    let gateways = [gateway(folder.path()), gateway(folder.path())];
    let table = gateways.each_ref().map(Daemon::known).join(",");
    let shared = "--shared-channel";
    for (of_node, of_sender) in [(&[shared][..], &[][..]), (&[], &["--via", &table, shared]), (&[], &[])] {
        let out = ["node", "--listen", "127.0.0.1:0", "--out", "got", "--gateways", &table];
        let node = start(folder.path(), &[&out, of_node].concat());
        let to = ["file", "--to", &node.address, "--no-resume", "--json"];
        let run = push(folder.path(), &[&to, of_sender].concat());
        assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
        let report: Value = serde_json::from_slice(&run.stdout).expect("one JSON object");
        let decisions = report["decisions"].as_array().expect("a list");
        if [of_node, of_sender].iter().all(|words| words.is_empty()) {
            assert!(decisions.is_empty(), "{report}");
            continue;
        }
        let [begins, ends] = &decisions[..] else { panic!("{report}") };
        assert_eq!(keys(begins), ["at_s", "decision", "limit", "measured", "reason", "unit"]);
        assert_eq!((&begins["decision"], &begins["reason"]), (&"turns".into(), &"sessions".into()));
        assert_eq!(
            (&begins["measured"], &begins["limit"], &begins["unit"]),
            (&2.0.into(), &1.0.into(), &"1".into())
        );
        assert_eq!((&ends["decision"], &ends["reason"]), (&"predictive".into(), &"turns_rate".into()));
        assert_eq!((&ends["limit"], &ends["unit"]), (&80_000.0.into(), &"bit/s".into()));
        assert!(ends["measured"].as_f64() > Some(80_000.0), "{ends}");
        let at = ends["at_s"].as_f64().expect("a time");
        assert!(at > 0.0 && Some(at) <= report["latency_s"].as_f64(), "{report}");
        for line in ["turns: sessions over the shared channel 2, at least 1", "predictive: rate of turns "] {
            let said = text(&run.stderr).lines().filter(|said| said.contains(line));
            assert_eq!(said.count(), 1, "{}", text(&run.stderr));
        }
    }
}

#[test]
fn who_may_read_a_file_is_what_its_place_says() {
    let folder = folder(100_000);
    let gateway = gateway(folder.path());
    let mode =
        |name: &str| folder.path().join(name).metadata().expect("it is there").permissions().mode() & 0o777;
    let set = |name: &str, mode| {
        fs::set_permissions(folder.path().join(name), Permissions::from_mode(mode)).expect("it is ours");
    };
    // The umask determines the permissions of a new file; a replaced file determines those of its
    // successor.
    for (there, options) in
        [(None, &[][..]), (Some(0o640), &[]), (None, &["--no-resume"]), (Some(0o604), &["--no-resume"])]
    {
        let _ = fs::remove_file(folder.path().join("got"));
        if let Some(there) = there {
            fs::write(folder.path().join("got"), "before").expect("room");
            set("got", there);
        }
        let node = start(folder.path(), &["node", "--listen", "127.0.0.1:0", "--out", "got", "--once"]);
        let to = ["file", "--to", &node.address, "--via", &gateway.known(), "--quiet"];
        let run = push(folder.path(), &[&to[..], options].concat());
        assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
        assert!(fs::read(folder.path().join("got")).expect("it is there") == contents(100_000));
        assert_eq!(mode("got"), there.unwrap_or_else(|| mode("file")), "{there:?} {options:?}");
    }
}

#[test]
fn a_command_gets_the_octets_and_has_the_last_word() {
    let folder = folder(200_000);
    let gateway = gateway(folder.path());
    let listen = ["node", "--listen", "127.0.0.1:0", "--once", "--pipe"];
    let mut node = start(folder.path(), &[&listen[..], &["cat > got; echo done > end"]].concat());
    let run = push(folder.path(), &["file", "--to", &node.address, "--via", &gateway.known(), "--quiet"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    // The sender was told only after the command had ended.
    assert_eq!(fs::read_to_string(folder.path().join("end")).expect("the command has ended"), "done\n");
    assert!(fs::read(folder.path().join("got")).expect("it is there") == contents(200_000));
    assert_eq!(node.ended().0, Some(0));

    let mut node = start(folder.path(), &[&listen[..], &["cat > got; exit 3"]].concat());
    let run = push(folder.path(), &["file", "--to", &node.address, "--via", &gateway.known(), "--quiet"]);
    assert_eq!(run.status.code(), Some(1), "the command has not taken it");
    assert_eq!(node.ended().0, Some(1));
    node.says("the command ended with exit status: 3");
}

#[test]
fn an_interrupt_ends_each_of_them() {
    let folder = folder(1_000_000);
    let mut gateway = gateway(folder.path());
    let slow =
        ["node", "--listen", "127.0.0.1:0", "--gateways", &gateway.known(), "--pipe", "sleep 60; cat > got"];
    let mut node = start(folder.path(), &slow);
    let push =
        command(folder.path(), &["push", "file", "--to", &node.address]).stderr(Stdio::piped()).spawn();
    let mut push = push.expect("the program starts");
    node.says("has begun");
    let id = push.id().to_string();
    Command::new("kill").args(["-INT", &id]).status().expect("a shell's kill");
    assert_eq!(push.wait().expect("it is ours").code(), Some(130));
    let mut said = String::new();
    push.stderr.take().expect("it is piped").read_to_string(&mut said).expect("the program writes text");
    assert!(said.contains("interrupted: ") && said.contains(" of 1000000 bytes were delivered"), "{said}");
    node.signal("-INT");
    // The command ends with the node: otherwise it would take the end of its input for the end of
    // the file.
    gateway.signal("-INT");
    assert_eq!((node.ended().0, gateway.ended().0), (Some(130), Some(130)));
    assert!(!folder.path().join("got").exists());
    let mut node = start(folder.path(), &["node", "--listen", "127.0.0.1:0", "--out", "got"]);
    node.signal("-TERM");
    assert_eq!(node.ended().0, Some(0), "this is how a service is stopped");
    assert!(!folder.path().join("got").exists());
}

#[test]
fn a_gateway_without_a_rule_says_so_and_relays_nowhere() {
    let folder = folder(2_000);
    let gateway = start(folder.path(), &["gateway", "--listen", "127.0.0.1:0"]);
    gateway.says("no node can be reached");
    let out = ["node", "--listen", "127.0.0.1:0", "--gateways", &gateway.known(), "--out", "got"];
    let node = start(folder.path(), &out);
    let run = push(folder.path(), &["file", "--to", &node.address, "--quiet"]);
    assert_eq!(run.status.code(), Some(1));
    assert!(text(&run.stdout).contains("forbidden"), "{}", text(&run.stdout));
    assert!(text(&run.stderr).contains("--allow"), "{}", text(&run.stderr));
    gateway.says("outside of --allow");
    assert!(!folder.path().join("got").exists());
}

#[test]
fn what_cannot_be_is_said_with_a_hint() {
    let folder = folder(10);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("it is bound").to_string();
    for (arguments, code, hint) in [
        (&["push", "file", "--to", "127.0.0.1:1", "--quiet"][..], 1, "is `anabranch node` running there"),
        (&["push", "file", "--to", "no.such.host.invalid"], 2, "give an address"),
        (&["push", "file", "--to", "127.0.0.1", "--state", "s", "--no-resume"], 2, "cannot be used with"),
        (&["push", "file", "--via", "127.0.0.1"], 2, "--to"),
        (&["push", "absent", "--to", "127.0.0.1"], 2, "give a file"),
        (&["node", "--listen", "127.0.0.1:0"], 2, "--out"),
        (&["node", "--out", ".", "--listen", "127.0.0.1:0"], 2, "name a file in this directory"),
        (&["node", "--out", "got", "--listen", &taken], 2, "another program listens on this port"),
        (&["node", "--out", "got", "--listen", "192.0.2.1:0"], 2, "use an address of this host"),
        (&["gateway", "--allow", "10.0.0.1/8"], 2, "bits set beyond the prefix"),
        (&["gateway", "--listen", "127.0.0.1:0", "--memory", "1 kB"], 2, "lower --connections"),
    ] {
        let run = command(folder.path(), arguments).output().expect("the program starts");
        assert_eq!(run.status.code(), Some(code), "{arguments:?}: {}", text(&run.stderr));
        assert!(text(&run.stderr).contains(hint), "{arguments:?}: {}", text(&run.stderr));
    }
}

#[test]
fn a_node_with_signers_takes_only_what_they_have_signed() {
    let folder = folder(50_000);
    let path = folder.path();
    let run = |arguments: &[&str]| command(path, arguments).output().expect("the program starts");
    let made = run(&["key", "new", "release", "other", "--kind", "signing"]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    fs::write(path.join("changed"), contents(50_001)).expect("it can be written");
    for (key, signature) in [("release.key", "good"), ("other.key", "theirs")] {
        let signed = run(&["key", "sign", "file", "--key", key, "--out", signature]);
        assert!(signed.status.success(), "{}", text(&signed.stderr));
    }
    let gateway = gateway(path);
    let out = ["node", "--listen", "127.0.0.1:0", "--gateways", &gateway.known(), "--out", "got"];
    let node = start(path, &[&out[..], &["--signers", "release.pub"]].concat());
    let (none, other) = ("no signature, which --signers requires", "not signed by a key of --signers");
    let unsigned: [(&[&str], &str); 3] = [
        (&["file"], none),
        (&["file", "--signature", "theirs"], other),
        (&["changed", "--signature", "good"], other),
    ];
    for (file, why) in unsigned {
        let refused = push(path, &[file, &["--to", &node.address, "--quiet"]].concat());
        assert_eq!(refused.status.code(), Some(1), "{file:?}");
        assert!(text(&refused.stderr).contains("--signature"), "{}", text(&refused.stderr));
        node.says(why);
    }
    assert!(!path.join("got").exists());
    let taken = push(path, &["file", "--signature", "good", "--to", &node.address, "--quiet"]);
    assert_eq!(taken.status.code(), Some(0), "{}", text(&taken.stderr));
    assert!(fs::read(path.join("got")).expect("it is there") == contents(50_000));

    // A command without a spool gets bytes before their signature can be checked.
    let pipe = ["node", "--listen", "127.0.0.1:0", "--pipe", "cat", "--signers", "release.pub"];
    let run = command(path, &pipe).output().expect("the program starts");
    assert_eq!(run.status.code(), Some(2));
    assert!(text(&run.stderr).contains("--spool"), "{}", text(&run.stderr));
}

/// A hint names the missing key and no other.
#[test]
fn a_hint_about_a_key_goes_with_its_message() {
    let folder = folder(10);
    for new in [&["release", "--kind", "signing"][..], &["both", "--kind", "psk"]] {
        let made = command(folder.path(), &[&["key", "new"], new].concat()).output();
        assert!(made.expect("the program starts").status.success());
    }
    let node = ["node", "--check", "--listen", "127.0.0.1:0", "--out", "got"];
    let keyed = ["--key", "node.key", "--senders"];
    let signers = ["--key", "node.key", "--senders", "sender.pub", "--signers"];
    for (keys, last, message, hint) in [
        (&keyed[..], "sender.key", "expected a key of kind `x25519`", "name the NAME.pub"),
        (&keyed, "release.pub", "expected a key of kind `x25519`", "`anabranch key new NAME` makes"),
        (
            &["--senders", "sender.pub", "--key"],
            "node.pub",
            "expected a key of kind `x25519-secret`",
            "name the NAME.key",
        ),
        (&["--psk"], "node.key", "expected a key of kind `psk`", "--kind psk"),
        (&signers, "release.key", "expected a key of kind `ed25519`", "name the NAME.pub"),
        (&signers, "sender.pub", "expected a key of kind `ed25519`", "--kind signing"),
    ] {
        let run = command(folder.path(), &[&node[..], keys, &[last]].concat()).output();
        let run = run.expect("the program starts");
        let said = text(&run.stderr);
        assert_eq!(run.status.code(), Some(2), "{last}: {said}");
        assert!(said.contains(message) && said.contains(hint), "{last}: {said}");
    }
}

/// An input that can be read only once, and is too long to be kept in memory.
#[test]
fn standard_input_is_pushed_with_little_memory() {
    let octets = 60_000_000;
    let folder = folder(octets);
    let gateway = gateway(folder.path());
    let out = ["node", "--listen", "127.0.0.1:0", "--out", "got", "--gateways", &gateway.known()];
    let node = start(folder.path(), &out);
    fs::create_dir(folder.path().join("tmp")).expect("it can be made");
    for name in ["-", "/dev/stdin"] {
        let run = |temporary: &str| {
            let to = ["push", name, "--to", &node.address, "--quiet", "--no-resume", "--restart"];
            let mut push = command(folder.path(), &to);
            push.env("TMPDIR", folder.path().join(temporary)).stdin(Stdio::piped());
            let mut push =
                push.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts");
            let mut input = push.stdin.take().expect("it is piped");
            let writer = std::thread::spawn(move || input.write_all(&contents(octets)));
            let status = format!("/proc/{}/status", push.id());
            let mut most = 0;
            while push.try_wait().expect("it is ours").is_none() {
                let said = fs::read_to_string(&status).unwrap_or_default();
                let line = said.lines().find_map(|line| line.strip_prefix("RssAnon:"));
                let kib = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
                most = most.max(kib.unwrap_or(0_u64) << 10);
                std::thread::yield_now();
            }
            let _ = writer.join().expect("it does not panic");
            (push.wait_with_output().expect("it is ours"), most)
        };
        let (pushed, most) = run("tmp");
        assert_eq!(pushed.status.code(), Some(0), "{}", text(&pushed.stderr));
        assert!(fs::read(folder.path().join("got")).expect("it is there") == contents(octets));
        assert!(most < 48 << 20, "{most} bytes of memory");
        let left = fs::read_dir(folder.path().join("tmp")).expect("it is there").count();
        assert_eq!(left, 0, "nothing is left behind");
        let (failed, _) = run("absent");
        assert_eq!(failed.status.code(), Some(1));
        let said = text(&failed.stderr);
        assert!(said.contains("cannot buffer more than 16 MiB") && said.contains("TMPDIR"), "{said}");
    }
}

#[test]
fn a_file_whose_name_is_no_text_is_delivered() {
    let folder = folder(1_000);
    let gateway = gateway(folder.path());
    let mut node = start(
        folder.path(),
        &["node", "--listen", "127.0.0.1:0", "--out", "got", "--once", "--gateways", &gateway.known()],
    );
    let name = std::ffi::OsStr::from_bytes(b"x\xff\xfe");
    fs::rename(folder.path().join("file"), folder.path().join(name)).expect("any name will do");
    let mut push = command(folder.path(), &["push", "--to", &node.address]);
    let run = push.arg(name).output().expect("the program starts");
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    assert!(text(&run.stderr).contains("cannot resume"), "{}", text(&run.stderr));
    assert_eq!(node.ended().0, Some(0));
    assert!(fs::read(folder.path().join("got")).expect("it is there") == contents(1_000));
}

/// A session number has one byte: a longer list would be truncated without a message.
#[test]
fn more_gateways_than_a_transfer_has_sessions_are_refused() {
    let folder = folder(1);
    for gateways in [256, 270] {
        let via = vec!["127.0.0.1:1=gateway.pub"; gateways].join(",");
        let run = push(folder.path(), &["file", "--to", "127.0.0.1:1", "--via", &via, "--quiet"]);
        assert_eq!(run.status.code(), Some(2), "{gateways} gateways: {}", text(&run.stderr));
    }
}
