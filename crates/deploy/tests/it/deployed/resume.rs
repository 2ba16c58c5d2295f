//! Tests of pushes and nodes that are killed and resume.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anabranch_testkit::netns;
use serde_json::Value;

use crate::deployed::world::*;

/// Long enough for interruptions and several checkpoints.
const OCTETS: usize = 60_000_000;

/// A node with a gateway of its own, at a fixed address.
struct Place {
    folder: tempfile::TempDir,
    gateway: Daemon,
    node: Option<Daemon>,
    address: String,
}

impl Place {
    /// Creates them with a file of `octets` bytes to push.
    fn new(octets: usize) -> Self {
        let folder = folder(octets);
        let gateway = gateway(folder.path());
        let mut place = Self { folder, gateway, node: None, address: home() };
        place.start(&["--out", "got"]);
        place
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn start(&mut self, output: &[&str]) {
        let listen = ["node", "--listen", &self.address, "--gateways", &self.gateway.known()];
        let node = start(self.folder.path(), &[&listen[..], output].concat());
        self.address.clone_from(&node.address);
        self.node = Some(node);
    }

    fn node(&self) -> &Daemon {
        self.node.as_ref().expect("it was started")
    }

    /// Kills the node, like a power cut that spares the disk.
    fn kill_node(&mut self) {
        let mut node = self.node.take().expect("it was started");
        node.child.kill().expect("it is ours");
        node.child.wait().expect("it is ours");
    }

    /// Stored unfinished pushes. Digests of files and numbers of greetings are stored beside them.
    fn pending(&self) -> Vec<PathBuf> {
        let all = fs::read_dir(self.path().join("state/anabranch")).expect("it was made");
        let paths = all.map(|entry| entry.expect("it can be read").path());
        let is_push = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"push-"))
        };
        paths.filter(is_push).collect()
    }

    fn push(&self, options: &[&str]) -> std::process::Output {
        push(self.path(), &[&["file", "--to", &self.address, "--json", "--quiet"], options].concat())
    }

    /// Starts a push and returns when at least a tenth is delivered.
    fn push_partly(&self, options: &[&str]) -> Child {
        // Slow enough to be interrupted even on a busy machine.
        let slow = ["push", "file", "--to", &self.address, "--rate", "100 Mbit/s"];
        let mut push = command(self.path(), &[&slow, options].concat());
        let mut push = push.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let mut lines = BufReader::new(push.stderr.take().expect("it is piped")).lines();
        let told = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("bytes delivered (")));
        assert!(told.is_some(), "it has ended before");
        // Read the remaining output, so that the push never blocks.
        thread::spawn(move || lines.for_each(drop));
        push
    }

    /// Starts a push and kills it in the middle.
    fn kill_push(&self) {
        let mut push = self.push_partly(&[]);
        push.kill().expect("it is ours");
        push.wait().expect("it is ours");
        assert!(!self.path().join("got").exists(), "it was too quick to be interrupted");
    }

    /// Pushes the rest, and returns the number of bytes that the node already had.
    fn rest(&self) -> u64 {
        let run = self.push(&[]);
        assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
        let report: Value = serde_json::from_slice(&run.stdout).expect("one JSON object");
        assert_eq!(report["delivered_bytes"], OCTETS);
        assert!(fs::read(self.path().join("got")).expect("it is there") == contents(OCTETS));
        assert!(!self.path().join(".got.part").exists());
        assert_eq!(self.pending(), [] as [PathBuf; 0], "what is delivered is forgotten");
        report["resumed_from"].as_u64().expect("a number")
    }
}

/// The node is down for several seconds, twice.
#[test]
fn a_push_with_patience_outlives_a_node_that_is_started_again() {
    let mut place = Place::new(OCTETS);
    let mut push = place.push_partly(&["--retry-for", "1min"]);
    for _ in 0..2 {
        place.kill_node();
        let (_keep, never) = mpsc::channel::<()>();
        let _ = never.recv_timeout(Duration::from_secs(2));
        assert_eq!(push.try_wait().expect("it is ours"), None, "it tries again");
        place.start(&["--out", "got"]);
        place.node().says("resumes at byte");
    }
    assert_eq!(push.wait().expect("it is ours").code(), Some(0));
    assert!(fs::read(place.path().join("got")).expect("it is there") == contents(OCTETS));
    assert_eq!(place.pending(), [] as [PathBuf; 0], "what is delivered is forgotten");
}

/// The error does not blame gateways that worked.
#[test]
fn a_push_says_that_the_node_was_started_again_or_is_gone() {
    for (comes_back, why) in
        [(true, "the node has lost the transfer"), (false, "a gateway cannot reach the node")]
    {
        let mut place = Place::new(OCTETS);
        let path = place.path().join("said");
        let slow = ["push", "file", "--to", &place.address, "--rate", "100 Mbit/s"];
        let said = || fs::read_to_string(&path).expect("it is there");
        let mut push = command(place.path(), &slow);
        let push = push.stdout(Stdio::null()).stderr(fs::File::create(&path).expect("room"));
        let mut push = push.spawn().expect("the program starts");
        while !said().contains("bytes delivered (") {
            assert_eq!(push.try_wait().expect("it is ours"), None, "{}", said());
            thread::yield_now();
        }
        place.kill_node();
        if comes_back {
            place.start(&["--out", "got"]);
        }
        assert_eq!(push.wait().expect("it is ours").code(), Some(1));
        assert!(said().contains(why) && said().contains("`--retry-for 10min`"), "{}", said());
    }
}

/// A copy of the push has the transfer identifier and the keys of the first, whose sessions it
/// would end.
#[test]
fn a_second_copy_of_a_push_ends_and_the_first_delivers() {
    let place = Place::new(OCTETS);
    let mut first = place.push_partly(&[]);
    let signal = |name: &str| {
        let id = first.id().to_string();
        assert!(std::process::Command::new("kill").args([name, &id]).status().expect("a kill").success());
    };
    signal("-STOP");
    for (options, why) in [
        (&[][..], "another push of this file to this node is running"),
        (&["--restart"], "another push of this file to this node is running"),
        (&["--no-resume"], "it is busy with another transfer"),
    ] {
        let run = place.push(options);
        assert_eq!(run.status.code(), Some(1), "{options:?}: {}", text(&run.stderr));
        assert!(text(&run.stderr).contains(why), "{options:?}: {}", text(&run.stderr));
    }
    signal("-CONT");
    assert_eq!(first.wait().expect("it is ours").code(), Some(0));
    assert!(fs::read(place.path().join("got")).expect("it is there") == contents(OCTETS));
    assert_eq!(place.pending(), [] as [PathBuf; 0], "what is delivered is forgotten");
    assert_eq!(place.rest(), 0, "nothing is locked any more");
}

/// Another user who can open the folder can lock it, so pushes lock a private file.
#[test]
fn a_lock_on_the_state_folder_blocks_no_push() {
    let place = Place::new(1_000);
    let state = place.path().join("state/anabranch");
    fs::create_dir_all(&state).expect("a disk");
    let locked = fs::File::open(&state).expect("it is there");
    locked.lock().expect("a file system with locks");
    place.gateway.signal("-STOP");
    let mut push = command(place.path(), &["push", "file", "--to", &place.address, "--quiet"]);
    let mut push = push.stdout(Stdio::null()).spawn().expect("the program starts");
    place.node().says("has begun");
    for file in place.pending().into_iter().chain([state.join("push.lock")]) {
        let mode = file.metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
    place.gateway.signal("-CONT");
    assert_eq!(push.wait().expect("it is ours").code(), Some(0));
}

#[test]
fn of_copies_that_start_at_once_one_delivers() {
    let place = Place::new(3_000_000);
    let slow = ["push", "file", "--to", &place.address, "--quiet", "--rate", "10 Mbit/s"];
    let copy = || command(place.path(), &slow).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let copies: Vec<Child> = (0..4).map(|_| copy().expect("the program starts")).collect();
    let ended = copies.into_iter().map(|copy| copy.wait_with_output().expect("it is ours"));
    let said: Vec<(Option<i32>, String)> =
        ended.map(|run| (run.status.code(), text(&run.stderr).to_owned())).collect();
    assert_eq!(said.iter().filter(|(code, _)| *code == Some(0)).count(), 1, "{said:?}");
    let others =
        said.iter().filter(|(_, said)| said.contains("another push of this file to this node is running"));
    assert_eq!(others.count(), 3, "{said:?}");
    assert!(fs::read(place.path().join("got")).expect("it is there") == contents(3_000_000));
}

/// Retries end after the time limit, and at once where retrying cannot help.
#[test]
fn a_push_with_patience_gives_up_as_well() {
    let mut place = Place::new(OCTETS);
    place.kill_node();
    let run = push(place.path(), &["file", "--to", &place.address, "--retry-for", "8 s"]);
    assert_eq!(run.status.code(), Some(1));
    let said = text(&run.stderr);
    assert!(said.contains("did not answer the request; trying again in 1 s"), "{said}");
    place.start(&["--out", "got", "--max-size", "1 MB"]);
    assert_eq!(place.push(&["--retry-for", "1000 h"]).status.code(), Some(1));
}

#[test]
fn a_push_that_is_killed_goes_on_when_it_is_repeated() {
    let place = Place::new(OCTETS);
    place.kill_push();
    let there = place.rest();
    assert!(there > 0 && there < OCTETS as u64, "{there}");
}

#[test]
fn a_node_that_is_killed_goes_on_with_what_is_on_its_disk() {
    let mut place = Place::new(OCTETS);
    let mut push = place.push_partly(&[]);
    place.kill_node();
    assert_ne!(push.wait().expect("it is ours").code(), Some(0));
    place.start(&["--out", "got"]);
    let there = place.rest();
    assert!(there > 0 && there < OCTETS as u64, "{there}");
    place.node().says("resumes at byte");
}

#[test]
fn both_are_killed() {
    let mut place = Place::new(OCTETS);
    for _ in 0..2 {
        place.kill_push();
        place.kill_node();
        place.start(&["--out", "got"]);
    }
    assert!(place.rest() > 0);
}

#[test]
fn a_push_that_is_interrupted_says_how_it_goes_on() {
    let place = Place::new(OCTETS);
    // At this rate the transfer takes 8 minutes, so it is in progress whenever the signal arrives.
    let slow = ["push", "file", "--to", &place.address, "--quiet", "--rate", "1 Mbit/s"];
    let mut push = command(place.path(), &slow);
    let push = push.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts");
    place.node().says("has begun");
    let id = push.id().to_string();
    std::process::Command::new("kill").args(["-INT", &id]).status().expect("a shell's kill");
    let run = push.wait_with_output().expect("it is ours");
    assert_eq!(run.status.code(), Some(130));
    assert!(text(&run.stderr).contains("repeat the command to resume"), "{}", text(&run.stderr));
    place.rest();
}

#[test]
fn a_file_that_has_changed_is_not_taken_for_what_it_was() {
    let mut place = Place::new(OCTETS);
    place.kill_push();
    fs::write(place.path().join("file"), &contents(OCTETS)[1..]).expect("it can be written");
    let run = place.push(&[]);
    assert_eq!(run.status.code(), Some(2));
    assert!(text(&run.stderr).contains("has changed since"), "{}", text(&run.stderr));
    assert!(text(&run.stderr).contains("--restart"), "{}", text(&run.stderr));

    // Another file for the same node: the unfinished file waits for the rest.
    fs::write(place.path().join("other"), b"other").expect("it can be written");
    let address = place.address.clone();
    let other = ["other", "--to", &address, "--quiet"];
    place.kill_node();
    place.start(&["--out", "got"]);
    let run = push(place.path(), &other);
    assert_eq!(run.status.code(), Some(1));
    assert!(
        text(&run.stderr).contains("bytes of an unfinished transfer of another file"),
        "{}",
        text(&run.stderr)
    );
    place.node().says("was refused: ");
    let run = push(place.path(), &[&other[..], &["--restart"]].concat());
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    assert!(fs::read(place.path().join("got")).expect("it is there") == b"other");

    let run = place.push(&["--restart"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    assert!(fs::read(place.path().join("got")).expect("it is there") == contents(OCTETS)[1..]);
}

#[test]
fn a_push_to_a_busy_node_waits_in_line() {
    let mut place = Place::new(3_000_000);
    place.kill_node();
    place.start(&["--pipe", "cat > got"]);
    // Without its gateway the first push cannot end before the second was refused. It then takes
    // half a second, for which the third has to wait.
    place.gateway.signal("-STOP");
    let slow = ["push", "file", "--to", &place.address, "--quiet", "--rate", "50 Mbit/s"];
    let mut first = command(place.path(), &slow);
    let mut first = first.stdout(Stdio::null()).spawn().expect("the program starts");
    place.node().says("has begun");
    fs::write(place.path().join("other"), b"other").expect("it can be written");
    let other = ["other", "--to", &place.address, "--quiet"];
    let run = push(place.path(), &other);
    assert_eq!(run.status.code(), Some(1));
    assert!(text(&run.stderr).contains("--wait"), "{}", text(&run.stderr));
    place.gateway.signal("-CONT");
    let run = push(place.path(), &[&other[..], &["--wait", "30 s"]].concat());
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    assert_eq!(first.wait().expect("it is ours").code(), Some(0));
    assert!(fs::read(place.path().join("got")).expect("it is there") == b"other");
}

/// After a lost answer, a push stores the same state as during the transfer.
#[test]
fn a_push_that_was_killed_before_it_heard_hears_it_at_once() {
    let mut place = Place::new(OCTETS);
    // Without its gateway the push cannot end before its state is read.
    place.gateway.signal("-STOP");
    let mut push = command(place.path(), &["push", "file", "--to", &place.address, "--quiet"]);
    let mut push = push.stdout(Stdio::null()).spawn().expect("the program starts");
    place.node().says("has begun");
    let [state] = &place.pending()[..] else { panic!("one push is under way: {:?}", place.pending()) };
    let kept = fs::read(state).expect("it is there");
    place.gateway.signal("-CONT");
    assert_eq!(push.wait().expect("it is ours").code(), Some(0));
    assert!(!state.exists());
    fs::write(state, kept).expect("it can be written");
    // The node has only its journal left.
    place.kill_node();
    place.start(&["--out", "got"]);
    let run = place.push(&[]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let report: Value = serde_json::from_slice(&run.stdout).expect("one JSON object");
    assert_eq!((&report["resumed_from"], &report["delivered_bytes"]), (&OCTETS.into(), &OCTETS.into()));
    assert_eq!(report["gateways"].as_array().map(Vec::len), Some(0), "nothing was sent");
    assert!(fs::read(place.path().join("got")).expect("it is there") == contents(OCTETS));
}

#[test]
fn a_disk_that_is_full_keeps_what_it_has() {
    let mut place = Place::new(OCTETS);
    place.kill_node();
    // 40 000 blocks of 512 or 1024 bytes, depending on the shell.
    let program = crate::programs::words("node").join(" ");
    let limited = format!(
        "trap '' XFSZ; ulimit -f 40000; exec {program} --listen {} --gateways {} --out got \
         --key node.key --senders sender.pub",
        place.address,
        place.gateway.known()
    );
    place.node = Some(Daemon::spawn({
        let mut shell = std::process::Command::new("sh");
        shell.current_dir(place.path()).args(["-c", &limited]);
        shell
    }));
    let run = place.push(&[]);
    assert_eq!(run.status.code(), Some(1));
    place.node().says("File too large");
    place.kill_node();
    place.start(&["--out", "got"]);
    let there = place.rest();
    assert!(there > 15_000_000 && there < OCTETS as u64, "{there}");
}

/// The node has a file system of 30 MB. The file that is being replaced takes space as well.
#[test]
fn a_disk_that_is_too_small_refuses_before_anything_is_sent() {
    if netns::skipped() {
        return;
    }
    let mut place = Place::new(OCTETS);
    place.kill_node();
    for (name, octets) in [("one", 20_000_000), ("two", 20_000_000), ("three", 5_000_000)] {
        fs::write(place.path().join(name), contents(octets)).expect("there is room here");
    }
    fs::create_dir(place.path().join("small")).expect("it can be made");
    let program = crate::programs::words("node").join(" ");
    let script = format!(
        "mount -t tmpfs -o size=30m tmpfs small && exec {program} --listen {} --gateways {} --out small/got \
         --key node.key --senders sender.pub",
        place.address,
        place.gateway.known()
    );
    place.node = Some(Daemon::spawn({
        let mut unshare = std::process::Command::new("unshare");
        unshare.current_dir(place.path()).args(["--mount", "sh", "-c", &script]);
        unshare
    }));
    let pushed = |name: &str| push(place.path(), &[name, "--to", &place.address, "--quiet", "--restart"]);
    for (name, fits) in [("file", false), ("one", true), ("two", false), ("file", false), ("three", true)] {
        let run = pushed(name);
        let said = text(&run.stderr);
        assert_eq!(run.status.code(), Some(i32::from(!fits)), "{name}: {said}");
        let refused = said.contains("it has no space for the file") && said.contains("; 0 of ");
        assert_eq!(refused, !fits, "{name}: {said}");
    }
}

/// `--max-size` and `--reserve`.
#[test]
fn a_node_takes_no_more_than_its_owner_allows() {
    let mut place = Place::new(OCTETS);
    for (options, said, figures) in [
        (
            ["--max-size", "59 MB"],
            "the file is larger than its limit",
            "60000000 bytes, more than --max-size 59000000",
        ),
        (
            ["--reserve", "1000000 GB"],
            "it has no space for the file",
            "bytes, less than the file needs: 60000000 bytes, 131072 for journals and --reserve 1000000000000000",
        ),
    ] {
        place.kill_node();
        place.start(&[&["--out", "got"], &options[..]].concat());
        let run = place.push(&[]);
        assert_eq!(run.status.code(), Some(1));
        assert!(text(&run.stderr).contains(said), "{}", text(&run.stderr));
        let line = place.node().says("was refused: ");
        assert!(line.contains(figures), "{line}");
    }
    place.kill_node();
    place.start(&["--out", "got", "--max-size", "60 MB"]);
    assert_eq!(place.rest(), 0);
}

#[test]
fn a_command_with_a_spool_gets_the_whole_file_once() {
    let mut place = Place::new(OCTETS);
    place.kill_node();
    fs::create_dir(place.path().join("spool")).expect("it can be made");
    let pipe = ["--pipe", "cat > got; echo once >> log", "--spool", "spool"];
    place.start(&pipe);
    place.kill_push();
    place.kill_node();
    place.start(&pipe);
    assert!(place.rest() > 0);
    assert_eq!(fs::read_to_string(place.path().join("log")).expect("it is there"), "once\n");
}
