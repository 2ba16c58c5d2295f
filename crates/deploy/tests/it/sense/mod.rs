//! `sense` and `sink` as processes: keys, framings, kills, a broker, many senders, and lossy links.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod crowd;
mod kills;
mod lossy;
mod mqtt;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use anabranch_testkit::daemon::{Daemon, home};
use anabranch_testkit::full_pipe;
use anabranch_testkit::netns::Kept;
use serde_json::Value;
use tempfile::TempDir;

use crate::programs;

fn command(folder: &Path, name: &str, arguments: &[&str]) -> Command {
    let mut command = programs::command(name);
    command.current_dir(folder).args(arguments).env("XDG_STATE_HOME", folder.join("state"));
    command.stdin(Stdio::null());
    command
}

fn sink(folder: &Path, arguments: &[&str]) -> Daemon {
    Daemon::spawn(command(folder, "sink", arguments))
}

/// Starts a sender with this input.
fn sense(folder: &Path, to: &str, arguments: &[&str], input: Vec<u8>) -> Child {
    let mut command = command(folder, "sense", &[&["--to", to], arguments].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut pipe = child.stdin.take().expect("it is piped");
    // A sender that is killed takes no more input.
    std::thread::spawn(move || drop(pipe.write_all(&input)));
    child
}

fn sent(folder: &Path, to: &str, arguments: &[&str], input: &[u8]) -> Output {
    sense(folder, to, arguments, input.to_vec()).wait_with_output().expect("it ends")
}

fn folder() -> TempDir {
    let folder = TempDir::new().expect("a temporary folder");
    for arguments in [&["new", "sensor", "sink", "stranger"][..], &["new", "fleet", "--kind", "psk"]] {
        let made = command(folder.path(), "key", arguments).output().expect("the program starts");
        assert!(made.status.success());
    }
    folder
}

/// The lines of an output.
fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("the sink has written it");
    text.lines().map(|line| serde_json::from_str(line).expect("each line is an object")).collect()
}

/// Payloads by sender and run, whose numbers must be complete and in order.
fn payloads(lines: &[Value]) -> BTreeMap<(String, String), Vec<String>> {
    let mut all: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for line in lines.iter().filter(|line| line["number"].is_number()) {
        let text = |key: &str| line[key].as_str().expect("a text").to_owned();
        let records = all.entry((text("sender"), text("run"))).or_default();
        assert_eq!(line["number"], records.len(), "{line}");
        records.push(text("payload"));
    }
    all
}

#[test]
fn records_arrive_under_every_kind_of_key_and_from_no_stranger() {
    let folder = folder();
    let path = folder.path();
    let keys = ["--key", "sink.key", "--senders", "sensor.pub", "--psk", "fleet.key"];
    let daemon = sink(path, &[&["--listen", &home(), "--out", "out.jsonl"], &keys[..]].concat());
    let to = &daemon.address;
    let known = ["--key", "sensor.key", "--sink-key", "sink.pub", "--name", "known", "--json"];
    let output = sent(path, to, &known, "one\n\n21.5 \u{b0}C\nlast".as_bytes());
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["records"], &report["confirmed"]), (&4.into(), &4.into()));
    let shared = ["--psk", "fleet.key", "--name", "shared", "--framing", "length"];
    assert!(sent(path, to, &shared, b"\0\0\0\x02a\nc\0\0\0\x01\xff").status.code() == Some(1), "it is cut");
    let long = vec![b'x'; 70_000];
    let shared = ["--psk", "fleet.key", "--name", "long"];
    assert_eq!(sent(path, to, &shared, &long).status.code(), Some(1), "given up");
    // A name belongs to the key that has used it first.
    let stolen = ["--psk", "fleet.key", "--name", "known", "--linger", "1ms"];
    let mut thief = sense(path, to, &stolen, b"x\n".to_vec());
    daemon.says("the name known belongs to another key");
    thief.kill().unwrap();
    thief.wait().unwrap();
    let stranger = ["--key", "stranger.key", "--sink-key", "sink.pub", "--name", "stranger"];
    let mut stranger = sense(path, to, &stranger, b"x\n".to_vec());
    daemon.says("refused: its key is not accepted here");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    drop(daemon);
    let all = lines(&path.join("out.jsonl"));
    let by_name: BTreeMap<_, _> =
        payloads(&all).into_iter().map(|((name, _), records)| (name, records)).collect();
    assert_eq!(by_name["known"], ["one", "", "21.5 \u{b0}C", "last"]);
    assert_eq!(by_name["shared"], ["a\n"]);
    assert_eq!(by_name.len(), 2);
    assert!(all.iter().all(|line| line["key"].as_str().is_some_and(|key| key.len() == 16)));
}

#[test]
fn a_command_and_standard_output_take_records_too() {
    let folder = folder();
    let path = folder.path();
    for output in [&["--pipe", "cat > piped"][..], &[]] {
        let mut daemon = sink(path, &[&["--listen", &home(), "--insecure"], output].concat());
        let output = sent(path, &daemon.address, &["--insecure", "--name", "a"], b"1\n2\n");
        assert!(output.status.success(), "{output:?}");
        daemon.signal("-TERM");
        let (code, text) = daemon.ended();
        assert_eq!(code, Some(0));
        let text = if text.is_empty() { fs::read_to_string(path.join("piped")).unwrap() } else { text };
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(payloads(&lines).into_values().collect::<Vec<_>>(), [["1", "2"]]);
        assert_eq!(lines[2]["event"], "complete");
    }
    // An output that takes nothing does not keep the sink from ending. The sender keeps the
    // records.
    for output in [["--pipe", "exec sleep 8 > /dev/null 2>&1"], ["--mqtt", "mqtt://127.0.0.1:9/t"]] {
        let mut daemon = sink(path, &[&["--listen", &home(), "--insecure"], &output[..]].concat());
        let many = "x".repeat(1000) + "\n";
        let arguments = ["--insecure", "--name", "a", "--linger", "1 s"];
        let mut child = sense(path, &daemon.address, &arguments, many.repeat(200).into_bytes());
        let error = BufReader::new(child.stderr.take().unwrap());
        error.lines().map_while(Result::ok).find(|line| line.contains("connected")).expect("it connects");
        std::thread::park_timeout(std::time::Duration::from_millis(500));
        daemon.signal("-TERM");
        assert_eq!(daemon.ended().0, Some(0), "{output:?}");
        daemon.says("the output has not taken all records");
        child.kill().unwrap();
        child.wait().unwrap();
    }
    // An output that fails ends the sink with an error.
    let mut daemon = sink(path, &["--listen", &home(), "--insecure", "--pipe", "head -n 1 > first"]);
    let many = (0..200).map(|n| format!("{n}{}\n", "x".repeat(1000))).collect::<String>();
    let mut child = sense(path, &daemon.address, &["--insecure", "--name", "b"], many.into_bytes());
    daemon.says("takes no more records");
    assert_eq!(daemon.ended().0, Some(1));
    child.kill().unwrap();
    child.wait().unwrap();
    // Without a sink, what is not confirmed is reported.
    let mut child =
        sense(path, "127.0.0.1:9", &["--insecure", "--name", "a", "--linger", "1ms"], b"1\n".to_vec());
    std::thread::park_timeout(std::time::Duration::from_millis(200));
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let error = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    assert!(error.contains("records 0 to 0 are given up"), "{error}");
}

/// The second sink would cut and repeat what the first one has acknowledged.
#[test]
fn a_second_sink_with_the_same_files_ends_and_changes_nothing() {
    fn options(listen: &str) -> [&str; 5] {
        ["--listen", listen, "--insecure", "--out", "out.jsonl"]
    }
    let folder = folder();
    let path = folder.path();
    let daemon = sink(path, &options(&home()));
    assert!(sent(path, &daemon.address, &["--insecure", "--name", "a"], b"1\n2\n").status.success());
    // A line whose second half is not yet written.
    let out = path.join("out.jsonl");
    fs::OpenOptions::new().append(true).open(&out).unwrap().write_all(b"{").unwrap();
    let all = || -> BTreeMap<_, _> {
        let state = fs::read_dir(path.join("state/anabranch")).unwrap().map(|entry| entry.unwrap().path());
        state.chain([out.clone()]).map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    };
    let before = all();
    for (listen, says) in [(home(), "another sink uses this file"), (daemon.address.clone(), "cannot listen")]
    {
        let mut second = command(path, "sink", &options(&listen));
        let mut second = Kept(second.stderr(Stdio::piped()).spawn().unwrap());
        let mut error = BufReader::new(second.0.stderr.take().unwrap()).lines();
        let line = error.next().unwrap().unwrap();
        assert!(line.contains(says), "{line}");
        assert!(error.next().unwrap().unwrap().contains("hint: "));
        assert_eq!(second.0.wait().unwrap().code(), Some(2));
        let mut after = all();
        // The lock of the second sink's port is new and empty.
        after.retain(|path, octets| before.contains_key(path) || !octets.is_empty());
        assert_eq!(after, before);
    }
}

#[test]
fn bad_options_are_refused_with_a_hint() {
    let folder = folder();
    for (program, arguments, says) in [
        ("sink", &["--check"][..], "no keys given"),
        ("sink", &["--check", "--insecure", "--mqtt", "mqtts://h/t"], "TLS is not supported"),
        ("sink", &["--check", "--insecure", "--out", "a", "--pipe", "b"], "cannot be used with"),
        ("sense", &["--check", "--to", "::1"], "no keys given"),
        ("sense", &["--check", "--to", "::1", "--insecure", "--name", "a b"], "a name has 1 to 32"),
        ("sense", &["--check", "--to", "::1", "--insecure", "--from", "missing"], "cannot read missing"),
    ] {
        let output = command(folder.path(), program, arguments).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains(says), "{arguments:?}: {error}");
    }
    for (program, arguments) in [
        ("sink", &["--check", "--insecure", "--mqtt", "mqtt://u:p@h:1/t"][..]),
        ("sense", &["--check", "--to", "127.0.0.1", "--psk", "fleet.key", "--name", "a"]),
    ] {
        assert!(command(folder.path(), program, arguments).status().unwrap().success());
    }
}

/// Full pipes in place of standard error stop no record and no end.
#[test]
fn nobody_has_to_read_the_logs() {
    let folder = TempDir::new().expect("a temporary folder");
    let free = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port").local_addr().expect("it is bound");
    let at = free.to_string();
    let ((_sink, stderr), (_sense, own)) = (full_pipe(), full_pipe());
    let mut listens = command(folder.path(), "sink", &["--listen", &at, "--insecure", "--out", "got.jsonl"]);
    let mut sink = Kept(listens.stderr(stderr).spawn().expect("the program starts"));
    let mut sends = command(folder.path(), "sense", &["--to", &at, "--insecure"]);
    sends.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(own);
    let mut sense = Kept(sends.spawn().expect("the program starts"));
    drop((listens, sends));
    let records: String = (0..200).map(|i| format!("{i}\n")).collect();
    sense.0.stdin.take().expect("it is piped").write_all(records.as_bytes()).expect("it reads");
    assert_eq!(sense.0.wait().expect("it is ours").code(), Some(0));
    assert!(Command::new("kill").arg(sink.0.id().to_string()).status().expect("kill").success());
    assert_eq!(sink.0.wait().expect("it is ours").code(), Some(0));
    let got = payloads(&lines(&folder.path().join("got.jsonl")));
    assert_eq!(got.values().map(Vec::len).collect::<Vec<_>>(), [200]);
}
