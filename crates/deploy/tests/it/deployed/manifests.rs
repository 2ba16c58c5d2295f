//! Tests of manifests from `manifest create` to the node's disk: which files are accepted and
//! refused, and what a node stores.

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::deployed::world::*;

/// Options that give a node the identity of the device.
const DEVICE: [&str; 6] = ["--signers", "release.pub", "--vendor", "example.com", "--class", "sensor"];

/// A node with a gateway, and the keys of two signers. The node knows the signer `release`.
struct Site {
    folder: tempfile::TempDir,
    gateway: Daemon,
    node: Option<Daemon>,
    address: String,
}

impl Site {
    /// Starts a node with `options`; see [`DEVICE`].
    fn new(options: &[&str]) -> Self {
        let folder = folder(1);
        let gateway = gateway(folder.path());
        let mut site = Self { folder, gateway, node: None, address: home() };
        site.did(&["key", "new", "release", "stranger", "--kind", "signing"]);
        site.start(options);
        site
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        command(self.path(), arguments).output().expect("the program starts")
    }

    /// Runs a command that must succeed.
    #[track_caller]
    fn did(&self, arguments: &[&str]) {
        let run = self.run(arguments);
        assert_eq!(run.status.code(), Some(0), "{arguments:?}: {}", text(&run.stderr));
    }

    fn node_command(&self, options: &[&str]) -> std::process::Command {
        let listen = ["node", "--listen", &self.address, "--gateways", &self.gateway.known()];
        command(self.path(), &[&listen[..], options].concat())
    }

    fn start(&mut self, options: &[&str]) {
        let node = Daemon::spawn(self.node_command(options));
        self.address.clone_from(&node.address);
        self.node = Some(node);
    }

    /// Kills the node with SIGKILL, like a power cut that spares the disk.
    fn kill(&mut self) {
        let mut node = self.node.take().expect("it was started");
        node.child.kill().expect("it is ours");
        node.child.wait().expect("it is ours");
    }

    fn restart(&mut self, options: &[&str]) {
        self.kill();
        self.start(options);
    }

    fn node(&self) -> &Daemon {
        self.node.as_ref().expect("it was started")
    }

    fn write(&self, name: &str, octets: &[u8]) {
        fs::write(self.path().join(name), octets).expect("it can be written");
    }

    /// Makes `NAME.suit` for the device, with this sequence number.
    #[track_caller]
    fn manifest(&self, name: &str, sequence: u64, options: &[&str]) {
        let (sequence, vendor) = (sequence.to_string(), ["--vendor", "example.com"]);
        let said = |option: &str| options.contains(&option);
        let create = ["manifest", "create", name, "--sequence", &sequence];
        let key: &[&str] = if said("--key") { &[] } else { &["--key", "release.key"] };
        let vendor: &[&str] = if said("--vendor") { &[] } else { &vendor };
        let class: &[&str] = if said("--class") { &[] } else { &["--class", "sensor"] };
        self.did(&[&create[..], key, vendor, class, options].concat());
    }

    fn push_with(&self, name: &str, options: &[&str]) -> Output {
        push(self.path(), &[&[name, "--to", &self.address, "--quiet", "--no-resume"], options].concat())
    }

    /// Pushes a file with the manifest beside it.
    fn push(&self, name: &str) -> Output {
        self.push_with(name, &["--manifest", &format!("{name}.suit")])
    }

    #[track_caller]
    fn takes(&self, name: &str) {
        let run = self.push(name);
        assert_eq!(run.status.code(), Some(0), "{name}: {}", text(&run.stderr));
        assert_eq!(self.got(), fs::read(self.path().join(name)).ok(), "{name}");
    }

    /// Pushes a file that must be refused with this reason and hint; the old file stays.
    #[track_caller]
    fn refuses(&self, run: &Output, before: Option<&[u8]>, reason: &str, hint: &str) {
        let said = text(&run.stderr);
        assert_eq!(run.status.code(), Some(1), "{said}");
        assert!(said.contains(reason), "no `{reason}` in {said}");
        assert!(said.contains("hint: ") && said.contains(hint), "no `{hint}` in {said}");
        assert_eq!(self.got().as_deref(), before, "{said}");
    }

    fn got(&self) -> Option<Vec<u8>> {
        fs::read(self.path().join("got")).ok()
    }

    /// Path of the file with the sequence number of a component.
    fn stored(&self) -> PathBuf {
        let all = fs::read_dir(self.path().join("state/anabranch")).expect("it was made");
        let mut paths = all.map(|entry| entry.expect("it can be read").path());
        let is = |path: &PathBuf| {
            let name = path.file_name().expect("it has a name").to_string_lossy().into_owned();
            name.starts_with("sequence-") && name.ends_with("-firmware")
        };
        paths.find(is).expect("the node stores a number")
    }

    /// The stored number; `None` before the first.
    fn number(&self) -> Option<u64> {
        let text = fs::read_to_string(self.stored()).expect("it is there");
        text.split(' ').next().and_then(|number| number.parse().ok())
    }
}

fn with<'a>(options: &[&'a str]) -> Vec<&'a str> {
    [&DEVICE[..], options].concat()
}

const ROLLBACK: [&str; 2] = ["it has accepted a later version of the file", "--sequence"];

/// An attacker has a sender key and everything that was ever signed: the node must refuse older
/// files.
#[test]
fn an_old_signed_image_or_one_for_another_device_is_taken_by_signature_and_not_by_manifest() {
    let mut site = Site::new(&["--out", "got", "--signers", "release.pub"]);
    for (name, octets) in [("old", &b"version 1"[..]), ("new", b"version 2"), ("pump", b"for pumps")] {
        site.write(name, octets);
        site.did(&["key", "sign", name, "--key", "release.key"]);
    }
    for name in ["new", "old", "pump"] {
        let run = site.push_with(name, &["--signature", &format!("{name}.sig")]);
        assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
        assert_eq!(site.got(), fs::read(site.path().join(name)).ok(), "whatever was signed is taken");
    }
    site.restart(&with(&["--out", "got"]));
    site.manifest("old", 1, &[]);
    site.manifest("new", 2, &[]);
    site.manifest("pump", 3, &["--class", "pump"]);
    site.takes("new");
    site.refuses(&site.push("old"), Some(b"version 2"), ROLLBACK[0], ROLLBACK[1]);
    site.node().says("a higher sequence number was accepted before");
    site.refuses(&site.push("pump"), Some(b"version 2"), "for another vendor, class or component", "--class");
    // A plain signature does not bypass that.
    for name in ["old", "pump", "new"] {
        let run = site.push_with(name, &["--signature", &format!("{name}.sig")]);
        site.refuses(&run, Some(b"version 2"), "no signature that it trusts", "anabranch manifest create");
    }
}

#[test]
fn a_number_is_kept_across_restarts_and_never_falls() {
    let mut site = Site::new(&with(&["--out", "got"]));
    for (name, sequence) in [("four", 4), ("five", 5), ("other", 5), ("six", 6), ("back", 7)] {
        site.write(name, if name == "back" { b"four" } else { name.as_bytes() });
        site.manifest(name, sequence, &[]);
    }
    assert_eq!(site.number(), None);
    site.takes("five");
    assert_eq!(site.number(), Some(5));
    for _ in 0..2 {
        site.takes("five");
        site.refuses(&site.push("four"), Some(b"five"), ROLLBACK[0], ROLLBACK[1]);
        site.refuses(&site.push("other"), Some(b"five"), ROLLBACK[0], ROLLBACK[1]);
        site.restart(&with(&["--out", "got"]));
    }
    site.takes("six");
    // To return to the older file, its signer gives it a higher number.
    site.takes("back");
    assert_eq!((site.number(), site.got().as_deref()), (Some(7), Some(&b"four"[..])));
    // A file that was removed from the device is delivered again.
    fs::remove_file(site.path().join("got")).expect("it is there");
    site.takes("back");
}

#[test]
fn a_manifest_that_does_not_fit_is_refused_with_its_reason() {
    let site = Site::new(&with(&["--out", "got"]));
    site.write("image", b"an image");
    let device = ["the file is for another vendor, class or component", "manifest show"];
    let signer = ["no signature that it trusts", "a key of the node's --signers"];
    for (options, [reason, hint], line) in [
        (&["--vendor", "example.org"][..], device, "for another --vendor"),
        (&["--class", "pump"], device, "for another --class"),
        (&["--component", "radio"], device, "for another --component"),
        (&["--expires", "2020-01-01"], ["has expired", "the node's clock"], "has expired"),
        (&["--key", "stranger.key"], signer, "no manifest of this file is signed by a key of --signers"),
    ] {
        site.manifest("image", 9, options);
        site.refuses(&site.push("image"), None, reason, hint);
        site.node().says(line);
    }
    // Without a manifest, with and without a signature.
    site.did(&["key", "sign", "image", "--key", "release.key"]);
    for options in [&[][..], &["--signature", "image.sig"]] {
        site.refuses(&site.push_with("image", options), None, signer[0], "anabranch manifest create");
        site.node().says("no manifest, which --vendor requires");
    }
    assert_eq!(site.number(), None, "nothing that was refused counts");
    site.manifest("image", 1, &["--expires", "1 d"]);
    site.takes("image");
}

#[test]
fn a_manifest_of_another_file_and_what_is_none_are_refused_by_the_sender() {
    let site = Site::new(&with(&["--out", "got"]));
    site.write("image", b"an image");
    site.manifest("image", 1, &[]);
    site.write("image", b"changed since");
    let run = site.push("image");
    site.refuses(&run, None, "describes another file: 8 bytes", "the file has changed since");
    for (name, octets) in [("empty", &b""[..]), ("text", b"sequence 1"), ("long", &[0xd8; 2_000])] {
        site.write(name, octets);
        let run = push(site.path(), &["image", "--to", &site.address, "--manifest", name]);
        assert_eq!(run.status.code(), Some(2), "{name}: {}", text(&run.stderr));
        assert!(text(&run.stderr).contains("not a valid manifest"), "{}", text(&run.stderr));
    }
    assert_eq!(site.node().line_within(Duration::from_millis(1)), None, "the node was not asked");
    // No number could follow the largest one.
    let last = ["manifest", "create", "image", "--key", "release.key", "--sequence", "18446744073709551615"];
    let run = site.run(&[&last[..], &["--vendor", "example.com", "--class", "sensor"]].concat());
    assert_eq!(run.status.code(), Some(2));
    assert!(text(&run.stderr).contains("has no successor"), "{}", text(&run.stderr));
    let pending = fs::read_dir(site.path().join("state/anabranch")).expect("it was made");
    let names = pending.map(|entry| entry.expect("it can be read").file_name());
    assert!(names.into_iter().all(|name| !name.as_encoded_bytes().starts_with(b"push-")));
}

/// Random pauses from the seed of this test, in milliseconds.
fn pauses(seed: u64, most: u64) -> impl Iterator<Item = Duration> {
    let next =
        |x: &u64| Some(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
    std::iter::successors(Some(seed), next).skip(1).map(move |x| Duration::from_millis((x >> 33) % most))
}

fn pause(time: Duration) {
    let (_keep, never) = mpsc::channel::<()>();
    let _ = never.recv_timeout(time);
}

/// Starts a push in the background.
fn begin(site: &Site, name: &str, options: &[&str]) -> Child {
    let manifest = format!("{name}.suit");
    let to = ["push", name, "--to", &site.address, "--quiet", "--manifest", &manifest];
    let mut push = command(site.path(), &[&to[..], options].concat());
    push.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts")
}

/// Whenever SIGKILL hits the node, a file that is in place has its number stored.
#[test]
fn a_node_that_is_killed_at_any_moment_takes_no_lower_number_afterwards() {
    let mut site = Site::new(&with(&["--out", "got"]));
    site.write("first", b"first");
    site.manifest("first", 1, &[]);
    site.takes("first");
    let (mut before, mut after) = (0, 0);
    for (n, time) in (2..18).zip(pauses(20, 80)) {
        let name = format!("file{n}");
        site.write(&name, format!("{n} {}", "x".repeat(60_000)).as_bytes());
        site.manifest(&name, n, &[]);
        let mut push = begin(&site, &name, &["--no-resume", "--restart"]);
        pause(time);
        site.kill();
        push.kill().expect("it is ours");
        push.wait().expect("it is ours");
        let got = String::from_utf8(site.got().expect("there was one before")).expect("text");
        let there = got.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(1);
        let number = site.number().expect("there was one before");
        assert!(number >= there, "killed after {time:?}: file {there} is in its place, {number} is stored");
        *(if there == n { &mut after } else { &mut before }) += 1;
        site.start(&with(&["--out", "got"]));
        if there == n {
            site.refuses(&site.push("first"), Some(got.as_bytes()), ROLLBACK[0], ROLLBACK[1]);
        }
        let manifest = format!("{name}.suit");
        let again = site.push_with(&name, &["--manifest", &manifest, "--restart"]);
        assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
        let got = site.got();
        site.refuses(&site.push("first"), got.as_deref(), ROLLBACK[0], ROLLBACK[1]);
    }
    println!("killed {before} times before the file was in its place, {after} times after");
}

/// The number is stored before a command gets the file: a kill between the two loses the delivery,
/// not the number.
#[test]
fn a_node_that_is_killed_between_number_and_delivery_takes_the_same_file_again_and_no_older_one() {
    let mut site = Site::new(&with(&["--out", "unused"]));
    fs::create_dir(site.path().join("spool")).expect("it can be made");
    for (name, sequence) in [("old", 1), ("new", 2)] {
        site.write(name, name.as_bytes());
        site.manifest(name, sequence, &[]);
    }
    let options = |command| with(&["--spool", "spool", "--pipe", command]);
    site.restart(&options("echo begun > begun; sleep 60; cat > got"));
    let mut push = begin(&site, "new", &["--no-resume"]);
    while !site.path().join("begun").exists() {
        assert_eq!(push.try_wait().expect("it is ours"), None, "the command is still at work");
        pause(Duration::from_millis(5));
    }
    assert_eq!(site.number(), Some(2));
    site.kill();
    push.kill().expect("it is ours");
    push.wait().expect("it is ours");
    site.start(&options("cat > got"));
    site.refuses(&site.push("old"), None, ROLLBACK[0], ROLLBACK[1]);
    site.takes("new");
}

#[test]
fn a_node_with_a_damaged_number_takes_nothing() {
    let mut site = Site::new(&with(&["--out", "got"]));
    for (name, sequence) in [("low", 3), ("high", 12), ("higher", 13)] {
        site.write(name, name.as_bytes());
        site.manifest(name, sequence, &[]);
    }
    site.takes("high");
    let stored = site.stored();
    let whole = fs::read(&stored).expect("it is there");
    // A number damaged while the node runs: neither lower nor higher numbers are accepted, since
    // the comparison is impossible.
    for torn in [&b""[..], b"1", &whole[..whole.len() - 1], b"nonsense\n"] {
        fs::write(&stored, torn).expect("it is there");
        for name in ["low", "higher"] {
            site.refuses(&site.push(name), Some(b"high"), "it could not store the file", "the node's log");
            site.node().says("sequence number");
        }
        site.kill();
        let run = site.node_command(&with(&["--out", "got"])).output().expect("the program starts");
        assert_eq!(run.status.code(), Some(2), "{}", text(&run.stderr));
        let named = stored.file_name().expect("it has a name").to_string_lossy().into_owned();
        assert!(text(&run.stderr).contains(&named), "{}", text(&run.stderr));
        fs::write(&stored, &whole).expect("it is there");
        site.start(&with(&["--out", "got"]));
    }
    site.refuses(&site.push("low"), Some(b"high"), ROLLBACK[0], ROLLBACK[1]);
    // If the next number cannot be written, its file does not get its place.
    let mut new = stored.into_os_string();
    new.push("+new");
    fs::create_dir(&new).expect("it can be made");
    site.refuses(&site.push("higher"), Some(b"high"), "it could not store the file", "the node's log");
    site.node().says("sequence number");
    assert_eq!(site.number(), Some(12));
    // A node that starts with such a disk still knows which numbers are lower.
    site.restart(&with(&["--out", "got"]));
    site.refuses(&site.push("low"), Some(b"high"), ROLLBACK[0], ROLLBACK[1]);
    site.refuses(&site.push("higher"), Some(b"high"), "it could not store the file", "the node's log");
    assert_eq!(site.number(), Some(12));
    fs::remove_dir(&new).expect("it is there");
    site.takes("higher");
}

/// Neither standard output nor a command without a spool can wait until a file is known to be
/// admitted.
#[test]
fn a_device_that_would_hand_on_a_file_before_it_is_whole_does_not_start() {
    let folder = folder(1);
    let new = ["key", "new", "release", "--kind", "signing"];
    assert!(command(folder.path(), &new).status().expect("the program starts").success());
    let listen = ["node", "--listen", "127.0.0.1:0"];
    for output in [&["--pipe", "cat"][..], &["--out", "-"], &["--out", "/dev/null"]] {
        let options = [&listen[..], output, &DEVICE].concat();
        let run = command(folder.path(), &options).output().expect("the program starts");
        assert_eq!(run.status.code(), Some(2), "{output:?}: {}", text(&run.stderr));
        assert!(text(&run.stderr).contains("--spool"), "{}", text(&run.stderr));
    }
    for half in [&DEVICE[..4], &DEVICE[2..], &["--class", "sensor"]] {
        let options = [&listen[..], &["--out", "got"], half].concat();
        let run = command(folder.path(), &options).output().expect("the program starts");
        assert_eq!(run.status.code(), Some(2), "{half:?}: {}", text(&run.stderr));
    }
}

#[test]
fn a_command_with_a_spool_gets_what_manifests_admit() {
    let mut site = Site::new(&with(&["--out", "unused"]));
    fs::create_dir(site.path().join("spool")).expect("it can be made");
    site.restart(&with(&["--spool", "spool", "--pipe", "cat > got; echo $ANABRANCH_TRANSFER >> log"]));
    for (name, sequence) in [("one", 1), ("two", 2)] {
        site.write(name, name.as_bytes());
        site.manifest(name, sequence, &[]);
        site.takes(name);
    }
    site.refuses(&site.push("one"), Some(b"two"), ROLLBACK[0], ROLLBACK[1]);
    let log = fs::read_to_string(site.path().join("log")).expect("it is there");
    assert_eq!(log.lines().count(), 2);
}

/// A signing key is revoked while a file that it has signed is in transfer.
#[test]
fn a_signer_that_is_revoked_while_its_file_arrives_is_not_trusted_when_it_is_there() {
    let mut site = Site::new(&["--out", "got"]);
    site.write("revoked", b"");
    site.write("image", &contents(2_000_000));
    site.write("small", b"small");
    site.manifest("image", 7, &[]);
    site.manifest("small", 3, &["--key", "stranger.key"]);
    let signers = ["--signers", "release.pub,stranger.pub", "--revoked", "revoked"];
    site.restart(&[&["--out", "got"], &signers[..], &DEVICE[2..]].concat());
    let slow = ["push", "image", "--to", &site.address, "--quiet", "--manifest", "image.suit"];
    let mut push = command(site.path(), &[&slow[..], &["--rate", "8 Mbit/s"]].concat());
    let push = push.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts");
    site.node().says("has begun");
    let key = fs::read(site.path().join("release.pub")).expect("it was made");
    site.write("revoked", &key);
    site.node().signal("-HUP");
    site.node().says("keys were read again");
    let run = push.wait_with_output().expect("it is ours");
    site.refuses(&run, None, "no signature that it trusts", "a key of the node's --signers");
    site.node().says("refused after it was received");
    assert_eq!(site.number(), None);
    // The refused file does not block the next one.
    site.takes("small");
    // The last signer is revoked: now no signer is trusted, which must not mean every signer.
    let both = [key, fs::read(site.path().join("stranger.pub")).expect("it was made")].concat();
    site.write("revoked", &both);
    site.node().signal("-HUP");
    site.node().says("no file is accepted");
    site.manifest("small", 4, &["--key", "stranger.key"]);
    let signer = ["no signature that it trusts", "a key of the node's --signers"];
    site.refuses(&site.push("small"), Some(b"small"), signer[0], signer[1]);
    site.refuses(&site.push_with("small", &[]), Some(b"small"), signer[0], "");
}

/// The temporary file and the lock of one component's number are not the number of another
/// component.
#[test]
fn a_component_named_like_a_temporary_file_keeps_its_number_beside_another() {
    let named = |component| with(&["--out", "got", "--component", component, "--state", "shared"]);
    let mut site = Site::new(&named("firmware.new"));
    for (name, sequence) in [("old", 1), ("new", 2)] {
        site.write(name, name.as_bytes());
        site.manifest(name, sequence, &["--component", "firmware.new"]);
    }
    site.takes("new");
    // The node of the other component stores its first number.
    let other = ["node", "--listen", "127.0.0.1:0", "--out", "other", "--state", "shared"];
    let other = |component| {
        Daemon::spawn(command(site.path(), &[&other[..], &DEVICE, &["--component", component]].concat()))
    };
    let others = ["firmware", "firmware.lock"].map(other);
    site.refuses(&site.push("old"), Some(b"new"), ROLLBACK[0], ROLLBACK[1]);
    drop(others);
    site.restart(&named("firmware.new"));
    site.refuses(&site.push("old"), Some(b"new"), ROLLBACK[0], ROLLBACK[1]);
}

/// Two nodes with one number would each miss what the other stores.
#[test]
fn two_nodes_of_one_device_need_folders_of_their_own() {
    let mut site = Site::new(&with(&["--out", "got"]));
    let listen = ["node", "--listen", "127.0.0.1:0", "--out", "other"];
    let device = |options: &[&str]| command(site.path(), &[&listen[..], options].concat());
    let run = device(&DEVICE).output().expect("the program starts");
    assert_eq!(run.status.code(), Some(2));
    assert!(text(&run.stderr).contains("another node uses this file"), "{}", text(&run.stderr));
    // A node of another component, class or folder may start.
    drop(Daemon::spawn(device(&with(&["--component", "radio"]))));
    drop(Daemon::spawn(device(&[&DEVICE[..5], &["pump"]].concat())));
    drop(Daemon::spawn(device(&with(&["--state", "elsewhere"]))));
    site.restart(&with(&["--out", "got"]));
}

/// Resume: the node is killed in the middle, and the manifest is sent with each request.
#[test]
fn a_push_with_a_manifest_outlives_a_node_that_is_started_again() {
    let octets = 20_000_000;
    let mut site = Site::new(&with(&["--out", "got"]));
    site.write("image", &contents(octets));
    site.write("old", b"old");
    site.manifest("image", 7, &["--expires", "1 d"]);
    site.manifest("old", 6, &[]);
    let mut push = begin(&site, "image", &["--rate", "50 Mbit/s", "--retry-for", "1min"]);
    site.node().says("has begun");
    pause(Duration::from_millis(1_500));
    site.restart(&with(&["--out", "got"]));
    site.node().says("resumes at byte");
    assert_eq!(push.wait().expect("it is ours").code(), Some(0));
    assert!(site.got() == Some(contents(octets)));
    let got = site.got();
    site.refuses(&site.push("old"), got.as_deref(), ROLLBACK[0], ROLLBACK[1]);
}

/// Two releases at once: the node accepts one at a time, and the earlier one does not resume after
/// the later one.
#[test]
fn a_push_that_a_later_release_has_overtaken_is_refused_when_it_goes_on() {
    let site = Site::new(&with(&["--out", "got"]));
    site.write("image", &contents(4_000_000));
    site.write("later", b"later");
    site.manifest("image", 2, &[]);
    site.manifest("later", 3, &[]);
    let mut push = begin(&site, "image", &["--rate", "8 Mbit/s"]);
    site.node().says("has begun");
    site.refuses(&site.push("later"), None, "it is busy with another transfer", "--wait");
    let id = push.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().expect("a kill").success());
    assert_eq!(push.wait().expect("it is ours").code(), Some(130));
    let run = site.push_with("later", &["--manifest", "later.suit", "--restart", "--wait", "30 s"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    // With the stored state, and with `--restart`.
    for options in [&[][..], &["--restart"]] {
        let again = ["image", "--to", &site.address, "--quiet", "--manifest", "image.suit"];
        let run = super::world::push(site.path(), &[&again[..], options].concat());
        site.refuses(&run, Some(b"later"), ROLLBACK[0], ROLLBACK[1]);
    }
    assert_eq!(site.number(), Some(3));
}

/// A node without support for manifests resets the stream of the request, as
/// docs/reference/set-protocol.md says.
#[test]
fn a_node_of_before_manifests_gives_an_error_that_says_so() {
    let folder = folder(1_000);
    let path = folder.path();
    let did = |arguments: &[&str]| {
        let run = command(path, arguments).output().expect("the program starts");
        assert!(run.status.success(), "{}", text(&run.stderr));
    };
    did(&["key", "new", "release", "--kind", "signing"]);
    let names = ["--vendor", "example.com", "--class", "sensor"];
    did(&[&["manifest", "create", "file", "--key", "release.key", "--sequence", "1"][..], &names].concat());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it is bound").to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut decoder = anabranch_wire::set::Decoder::of_node();
            let (mut stream, mut octets) = (stream.expect("it calls"), [0; 2_048]);
            let n = stream.read(&mut octets).expect("it speaks first");
            decoder.push(bytes::Bytes::copy_from_slice(&octets[..n]));
            assert!(decoder.next_item().is_err(), "a request with a manifest is none");
            // Closing a socket with unread data sends a reset.
        }
    });
    let run = push(path, &["file", "--to", &address, "--insecure", "--quiet", "--manifest", "file.suit"]);
    assert_eq!(run.status.code(), Some(1));
    assert!(text(&run.stderr).contains("does its version support manifests"), "{}", text(&run.stderr));
}

/// An image as MCUboot's `imgtool sign` makes it without a key.
fn image([major, minor]: [u8; 2], code: &[u8]) -> Vec<u8> {
    let mut image = vec![0; 32];
    image[..4].copy_from_slice(&0x96f3_b83d_u32.to_le_bytes());
    image[8..10].copy_from_slice(&32_u16.to_le_bytes());
    image[12..16].copy_from_slice(&(code.len() as u32).to_le_bytes());
    image[20..22].copy_from_slice(&[major, minor]);
    image.extend_from_slice(code);
    let hash = <sha2::Sha256 as sha2::Digest>::digest(&image);
    for short in [0x6907_u16, 40, 0x10, 32] {
        image.extend(short.to_le_bytes());
    }
    image.extend_from_slice(&hash);
    image
}

#[test]
fn only_whole_mcuboot_images_of_no_lower_version_get_to_their_place() {
    let mut site = Site::new(&["--out", "got", "--mcuboot"]);
    let (old, new) = (image([1, 2], &[7; 5_000]), image([1, 3], &[8; 5_000]));
    let mut flipped = new.clone();
    flipped[2_000] ^= 1;
    for (name, octets) in
        [("old", &old), ("new", &new), ("short", &new[..3_000].to_vec()), ("flipped", &flipped)]
    {
        site.write(name, octets);
    }
    let push = |site: &Site, name| site.push_with(name, &["--restart"]);
    for name in ["short", "flipped"] {
        site.refuses(&push(&site, name), None, "not a complete image for its boot loader", "imgtool sign");
        site.node().says("not a complete MCUboot image");
    }
    for (name, octets) in [("old", &old), ("new", &new), ("new", &new)] {
        assert_eq!(push(&site, name).status.code(), Some(0));
        assert_eq!(site.got().as_ref(), Some(octets));
    }
    site.refuses(&push(&site, "old"), Some(&new), "it has accepted a later version", "");
    site.node().says("version 1.2.0+0 is lower than the installed 1.3.0+0");
    // A refused file does not block the next one.
    site.write("third", &image([2, 0], &[9; 50]));
    assert_eq!(site.push_with("third", &[]).status.code(), Some(0));

    // The manifest's number is the image's version, and only complete images get a manifest.
    fs::remove_file(site.path().join("got")).expect("it is there");
    site.restart(&with(&["--out", "got", "--mcuboot"]));
    let create = ["--key", "release.key", "--vendor", "example.com", "--class", "sensor"];
    for name in ["old", "new"] {
        site.did(&[&["manifest", "create", name], &create[..]].concat());
    }
    for name in ["short", "flipped"] {
        let run = site.run(&[&["manifest", "create", name, "--sequence", "9"], &create[..]].concat());
        assert_eq!(run.status.code(), Some(2), "{}", text(&run.stderr));
        assert!(text(&run.stderr).contains("not a complete MCUboot image"), "{}", text(&run.stderr));
    }
    site.takes("new");
    assert_eq!(site.number(), Some(0x0103_0000_0000_0000));
    fs::remove_file(site.path().join("got")).expect("it is there");
    site.refuses(&site.push("old"), None, ROLLBACK[0], ROLLBACK[1]);
}
