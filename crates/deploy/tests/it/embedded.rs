//! Tests of a C program with the static library that receives from `push` through three gateways,
//! all as separate processes.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::mem;
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anabranch_secure::manifest::Manifest;
use anabranch_secure::{FileDigest, KeyText};
use anabranch_testkit::daemon::home;
use anabranch_testkit::debian::find_or_install;
use anabranch_testkit::embedded::{Kind, file, program, sections};
use anabranch_testkit::paths::{self, Paths};
use anabranch_testkit::prng::Prng;
use anabranch_testkit::{contents, given};
use anabranch_wire::set::{
    self as wire, FileIdentity, Join, Layout, Message, PaperAddresses, Plan, Request, TransferId, VERSION,
};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Limit on all memory except that of the TCP stack, in bytes.
const RAM: u64 = 16_000;
const RAM_WITH_NOISE: u64 = 24_000;
/// Limit on code size in bytes, with encryption and the linked parts of the C library.
const TEXT: u64 = 128 << 10;

/// A process that prints where it listens, and is killed when the test is over.
struct Process {
    child: Child,
    address: String,
    errors: BufReader<ChildStderr>,
}

impl Process {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut errors = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut said = String::new();
        let address = loop {
            let mut line = String::new();
            assert_ne!(errors.read_line(&mut line).expect("it writes text"), 0, "it only said: {said}");
            if let Some((_, address)) = line.split_once("listening on ") {
                break address.trim().to_owned();
            }
            said += &line;
        };
        Self { child, address, errors }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn anabranch(arguments: &[&str]) -> Command {
    let mut command = crate::programs::command(arguments[0]);
    command.args(&arguments[1..]);
    command
}

/// The number after `name` on a line of its own.
#[track_caller]
fn figure(said: &[String], name: &str) -> u64 {
    let found = said.iter().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok());
    found.unwrap_or_else(|| panic!("no {name} in {said:?}"))
}

/// Pushes a file of `octets` bytes into the C program. Returns the number of gateways that carried
/// a part, and the program's output. With `paths`, each gateway is behind one path, and the node
/// behind all; otherwise all are on the loopback device.
fn receive(folder: &Path, receiver: &Path, octets: usize, paths: Option<&Paths>) -> (usize, Vec<String>) {
    fs::write(folder.join("file"), contents(octets)).expect("it can be written");
    let far = |command: &mut Command| match paths {
        Some(paths) => paths.far(|| Process::start(command)),
        None => Process::start(command),
    };
    let addresses = paths.map_or(vec![Ipv4Addr::LOCALHOST; 3], |paths| paths.addresses().collect());
    let gateways: Vec<Process> = addresses
        .iter()
        .map(|ip| {
            let allow =
                ["gateway", "--listen", &format!("{ip}:0"), "--allow", "0.0.0.0/0:1-65535", "--insecure"];
            far(anabranch(&allow).stdout(Stdio::null()))
        })
        .collect();
    let mut node = Command::new(receiver);
    // Wrongly: turns end at once.
    node.args(["-c", "1"]).arg(folder.join("got")).arg(format!("{}:0", addresses[0]));
    let mut node = far(node.args(gateways.iter().map(|gateway| &gateway.address)));

    let to = ["push", "file", "--to", &node.address, "--json", "--quiet", "--insecure", "--no-resume"];
    let push = || anabranch(&to).current_dir(folder).output().expect("it starts");
    let push = paths.map_or_else(push, |paths| paths.near(push));
    assert!(push.status.success(), "{}", String::from_utf8_lossy(&push.stderr));
    let report: Value = serde_json::from_slice(&push.stdout).expect("one JSON object");
    let decisions = report["decisions"].as_array().expect("a list");
    let reasons: Vec<&Value> = decisions.iter().map(|decision| &decision["reason"]).collect();
    let expected = match octets {
        0 => &[][..],
        1 => &["sessions"],
        _ => &["sessions", "turns_rate"],
    };
    assert_eq!(reasons, expected, "{report}");
    let gateways = report["gateways"].as_array().expect("a list");
    let carriers = gateways.iter().filter(|gateway| gateway["bytes"].as_u64() > Some(0)).count();

    let said: Vec<String> = node.errors.by_ref().lines().map_while(Result::ok).collect();
    assert!(node.child.wait().expect("it is ours").success(), "{said:?}");
    let got = fs::read(folder.join("got")).expect("it is there");
    assert_eq!(Sha256::digest(&got), Sha256::digest(contents(octets)), "{} octets came: {said:?}", got.len());
    (carriers, said)
}

/// Checks the memory of the program against the limits.
fn weigh(what: &str, kind: Kind, receiver: &Path, said: &[String]) {
    assert_eq!((figure(said, "rejected "), figure(said, "restarts ")), (0, 0), "{said:?}");
    let most = if kind == Kind::Noise { RAM_WITH_NOISE } else { RAM };
    let Some(sizes) = sections(receiver) else { return };
    let stack = figure(said, "stack ");
    let ram = sizes.data + sizes.bss + stack;
    println!(
        "{what}: text {} (and {} for unwinding) data {} bss {} stack {stack}: {ram} octets of RAM, of which memory {}, heap at most {}, held at most {}",
        sizes.text - sizes.unwinding,
        sizes.unwinding,
        sizes.data,
        sizes.bss,
        figure(said, "memory "),
        figure(said, "heap_peak "),
        figure(said, "held_peak "),
    );
    assert!(ram < most && sizes.text - sizes.unwinding < TEXT, "{ram} octets of RAM, {sizes:?}");
}

#[test]
fn a_c_program_receives_a_file_in_sixteen_kilobytes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let receiver = folder.path().join("receive");
    let Some(()) = program(Kind::Plain, &[&file("examples/receive.c")], &receiver) else { return };
    for octets in [0, 1, 300_000] {
        let (_, said) = receive(folder.path(), &receiver, octets, None);
        assert_eq!(figure(&said, "octets "), octets as u64);
        weigh(&format!("{octets} octets"), Kind::Plain, &receiver, &said);
    }
}

/// On the loopback device a segment is larger than the node's buffer and transfers take no time, so
/// one session may carry everything. Here are three paths, each too slow alone.
#[test]
fn a_c_program_receives_from_three_gateways_at_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let receiver = folder.path().join("receive");
    let path = paths::Path { kbit_per_s: 1_000, delay: Duration::from_millis(5), queue: 12_500, loss: 0 };
    let Some(paths) = Paths::open(&[path; 3]) else { return };
    let Some(()) = program(Kind::Plain, &[&file("examples/receive.c")], &receiver) else { return };
    let (carriers, said) = receive(folder.path(), &receiver, 300_000, Some(&paths));
    assert_eq!(carriers, 3, "{said:?}");
    assert!(figure(&said, "held_peak ") > 0, "something came out of order: {said:?}");
    weigh("300000 octets on three paths", Kind::Plain, &receiver, &said);
}

/// Idle limit of transfers in these tests, in milliseconds.
const IDLE: &str = "900";

/// The C program on the loopback device, with one gateway.
struct Rig {
    folder: tempfile::TempDir,
    gateway: Process,
    node: Process,
}

impl Rig {
    fn start() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        program(Kind::Plain, &[&file("examples/receive.c")], &folder.path().join("receive"))?;
        let gateway = ["gateway", "--listen", "127.0.0.1:0", "--allow", "0.0.0.0/0:1-65535", "--insecure"];
        let gateway = Process::start(anabranch(&gateway).stdout(Stdio::null()));
        let node = Self::node(folder.path(), &home(), &gateway);
        Some(Self { folder, gateway, node })
    }

    fn node(folder: &Path, at: &str, gateway: &Process) -> Process {
        let mut node = Command::new(folder.join("receive"));
        Process::start(node.args(["-i", IDLE, "got", at, &gateway.address]).current_dir(folder))
    }

    /// Restarts the node, which loses its state.
    fn reboot(&mut self) {
        let address = self.node.address.clone();
        self.node.child.kill().expect("it is ours");
        self.node.child.wait().expect("it is ours");
        self.node = Self::node(self.folder.path(), &address, &self.gateway);
    }

    fn push(&self, octets: &[u8], more: &[&str]) -> Child {
        // Another push may be reading its own file.
        let name = format!("file-{:?}", octets.first());
        fs::write(self.folder.path().join(&name), octets).expect("it can be written");
        let to = ["push", &name, "--to", &self.node.address, "--quiet", "--insecure"];
        let mut push = anabranch(&to);
        push.args(more)
            .env("XDG_STATE_HOME", self.folder.path())
            .current_dir(self.folder.path())
            .stdout(Stdio::null());
        push.spawn().expect("it starts")
    }

    /// Starts a push and kills it when the node has a part of the file.
    fn killed_push(&self, octets: &[u8]) {
        let mut push = self.push(octets, &["--rate", "2Mbit/s"]);
        let part = self.folder.path().join("got.part");
        while fs::metadata(&part).map_or(0, |part| part.len()) < 20_000 {
            assert!(push.try_wait().expect("it is ours").is_none(), "it ended by itself");
            std::thread::yield_now();
        }
        push.kill().expect("it is ours");
        push.wait().expect("it is ours");
        assert!(!self.folder.path().join("got").exists(), "a part was published");
    }

    /// Waits until the node ends successfully with this file, and returns its output.
    fn ends_with(mut self, octets: &[u8]) -> Vec<String> {
        let said: Vec<String> = self.node.errors.by_ref().lines().map_while(Result::ok).collect();
        assert!(self.node.child.wait().expect("it is ours").success(), "{said:?}");
        let got = fs::read(self.folder.path().join("got")).expect("it is there");
        assert!(got == octets, "{} octets of {}: {said:?}", got.len(), octets.len());
        said
    }
}

/// A file that differs from others at every byte.
fn other(octets: usize) -> Vec<u8> {
    contents(octets).into_iter().map(|octet| !octet).collect()
}

fn finishes(mut push: Child) {
    assert!(push.wait().expect("it is ours").success());
}

#[test]
fn a_push_of_another_file_after_a_killed_one_delivers_that_file() {
    for second in [0, 10_000, 300_000] {
        let Some(rig) = Rig::start() else { return };
        rig.killed_push(&contents(5_000_000));
        finishes(rig.push(&other(second), &["--no-resume", "--wait", "30 s"]));
        let said = rig.ends_with(&other(second));
        assert_eq!(said.iter().filter(|line| line.starts_with("abort ")).count(), 1, "{said:?}");
    }
}

#[test]
fn a_push_of_the_same_file_after_a_killed_one_goes_on() {
    let Some(rig) = Rig::start() else { return };
    let whole = contents(300_000);
    rig.killed_push(&whole);
    finishes(rig.push(&whole, &["--no-resume", "--wait", "30 s"]));
    let said = rig.ends_with(&whole);
    let from = said.iter().filter_map(|line| line.strip_prefix("from ")?.parse::<u64>().ok()).next_back();
    assert!(from >= Some(20_000), "{said:?}");
}

#[test]
fn a_node_that_was_killed_delivers_what_is_pushed_to_it_next() {
    for next in [contents(300_000), other(200_000)] {
        let Some(mut rig) = Rig::start() else { return };
        rig.killed_push(&contents(300_000));
        rig.reboot();
        finishes(rig.push(&next, &["--restart"]));
        rig.ends_with(&next);
    }
}

#[test]
fn of_two_senders_at_once_the_first_delivers() {
    let Some(rig) = Rig::start() else { return };
    let (first, second) = (contents(300_000), other(300_000));
    let mut delivers = rig.push(&first, &["--no-resume", "--rate", "2Mbit/s"]);
    while !rig.folder.path().join("got.part").metadata().is_ok_and(|part| part.len() > 0) {
        assert!(delivers.try_wait().expect("it is ours").is_none(), "it ended by itself");
    }
    let mut is_refused = rig.push(&second, &["--no-resume"]);
    assert!(!is_refused.wait().expect("it is ours").success());
    finishes(delivers);
    rig.ends_with(&first);
}

/// A sender that implements SET itself: it announces `length` bytes with this digest, and sends
/// `octets`, without a gateway.
fn forged_push(node: &str, length: u64, digest: [u8; 32], octets: &[u8]) {
    let transfer = TransferId(7);
    let file = Some(FileIdentity { digest, signature: None, discard: false });
    let request =
        Request { version: VERSION, transfer, length, plan: Plan::Stripe, file, copy: false, manifest: None };
    let mut says = Vec::new();
    wire::encode(&Message::Request(request), &mut says);
    let mut control = TcpStream::connect(node).expect("it listens");
    control.write_all(&says).expect("it reads");
    let mut accept = [0; 1];
    control.read_exact(&mut accept).expect("it answers");
    assert_eq!(accept[0] >> 4, 2, "ACCEPT");

    says.clear();
    wire::encode(&Message::Join(Join { transfer, session: 0, sessions: 1, plan: Plan::Stripe }), &mut says);
    let nowhere = "0.0.0.0:0".parse().expect("an address");
    let nowhere = PaperAddresses { intermediate: nowhere, last: nowhere };
    wire::data_header(Layout::Compact, &nowhere, 0, u64::MAX, octets.len() as u64, &mut says);
    says.extend_from_slice(octets);
    let mut session = TcpStream::connect(node).expect("it listens");
    // The node may reset the stream before it has read everything.
    let _ = session.write_all(&says);
    let mut said = Vec::new();
    let end = session.read_to_end(&mut said);
    let refused = said.ends_with(&[0x34, 3]);
    assert!(end.is_err() || refused, "reset, or the last word is a refusal for the digest: {said:?}");
}

#[test]
fn octets_that_are_not_those_announced_are_not_published() {
    let file = contents(2000);
    let digest = Sha256::digest(&file).into();
    for forged in [other(2000), contents(2001)] {
        let Some(rig) = Rig::start() else { return };
        forged_push(&rig.node.address, 2000, digest, &forged);
        assert!(!rig.folder.path().join("got").exists());
        finishes(rig.push(&file, &["--no-resume", "--wait", "30 s"]));
        rig.ends_with(&file);
    }
}

/// The file in the flash of examples/flash.c, if its journal records one.
fn in_flash(image: &Path) -> Option<Vec<u8>> {
    const BLOCK: usize = 4096;
    let image = fs::read(image).expect("it is there");
    let length = usize::try_from(u64::from_le_bytes(image[8..16].try_into().expect("8 octets"))).ok()?;
    let (valid, done) = (image[48] == 0, image[49] == 0);
    (valid && done).then(|| image[BLOCK..][..length].to_vec())
}

/// Programs on the loopback device, with the options for their keys, if they have any.
struct Fleet {
    kind: Kind,
    folder: tempfile::TempDir,
    gateway: Process,
}

/// Key options of a C node: it knows the sender by public or pre-shared key, accepts files signed
/// by `signer`, and tells the sender the gateway's key.
const NODE_KEYS: [&str; 10] =
    ["-k", "node.key", "-s", "sender.pub", "-p", "both.key", "-v", "signer.pub", "-g", "gateway.pub"];
/// Key options of a push, for Noise IK and NNpsk0.
const PUSH_KEYS: [[&str; 4]; 2] =
    [["--key", "sender.key", "--node-key", "node.pub"], ["--key", "sender.key", "--psk", "both.key"]];

impl Fleet {
    /// Creates a gateway, all keys, and the example of this name.
    fn new(kind: Kind, example: &str) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let here = folder.path();
        program(kind, &[&file(&format!("examples/{example}.c"))], &here.join(example))?;
        let gateway = ["gateway", "--listen", "127.0.0.1:0", "--allow", "0.0.0.0/0:1-65535"];
        let with = if kind == Kind::Plain {
            &["--insecure"][..]
        } else {
            for keys in [
                &["new", "sender", "stranger", "node", "gateway"][..],
                &["new", "--kind", "psk", "both"],
                &["new", "--kind", "signing", "signer", "other"],
            ] {
                does(here, &[&["key"], keys].concat());
            }
            &["--key", "gateway.key", "--senders", "sender.pub"]
        };
        let mut gateway = anabranch(&[&gateway[..], with].concat());
        let gateway = Process::start(gateway.current_dir(here).stdout(Stdio::null()));
        Some(Self { kind, folder, gateway })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Starts the C program with these arguments.
    fn node(&self, words: &[&str], more: &[&str], out: &str) -> Process {
        let mut node = Command::new(words[0]);
        node.args(&words[1..]).args(more);
        if self.kind == Kind::Noise {
            node.args(NODE_KEYS);
        }
        Process::start(node.args([out, "127.0.0.1:0", &self.gateway.address]).current_dir(self.path()))
    }

    /// Writes `file` and, with keys, the signatures of the signer and of another key.
    fn write(&self, octets: &[u8]) {
        fs::write(self.path().join("file"), octets).expect("it can be written");
        for signer in if self.kind == Kind::Noise { &["signer", "other"][..] } else { &[] } {
            let (key, out) = (format!("{signer}.key"), format!("{signer}.sig"));
            let _ = fs::remove_file(self.path().join(&out));
            does(self.path(), &["key", "sign", "file", "--key", &key, "--out", &out]);
        }
    }

    /// A push of `file`, not started yet. `keys` is an index of [`PUSH_KEYS`]; the file is signed
    /// by the signer.
    fn push(&self, to: &str, keys: usize) -> Command {
        self.push_signed(to, keys, "signer.sig")
    }

    fn push_signed(&self, to: &str, keys: usize, signature: &str) -> Command {
        let mut push = anabranch(&["push", "file", "--to", to, "--quiet", "--no-resume"]);
        match self.kind {
            Kind::Plain => push.arg("--insecure"),
            _ => push.args(PUSH_KEYS[keys]).args(["--signature", signature]),
        };
        push.current_dir(self.path()).stdout(Stdio::null());
        push
    }
}

/// Identity of the device in the examples.
const DEVICE: [&str; 2] = ["-d", "01010101010101010101010101010101:02020202020202020202020202020202"];

/// A manifest of `file` for that device.
fn for_device(file: &[u8], sequence: u64) -> Manifest<'static> {
    let file = FileDigest { length: file.len() as u64, sha256: Sha256::digest(file).into() };
    Manifest { sequence, vendor: [1; 16], class: [2; 16], component: b"firmware", file, use_before: None }
}

/// Writes a manifest signed by `key`.
fn sign(here: &Path, out: &str, key: &str, manifest: &Manifest<'_>) {
    let keys = fs::read_to_string(here.join(key)).expect("it is there");
    let key = keys.lines().find_map(|line| line.parse().ok()).expect("a key");
    let KeyText::Signing(key) = key else { panic!("a signing key") };
    fs::write(here.join(out), manifest.sign(&key)).expect("it can be written");
}

/// A device accepts files that its signer has signed for it, with both Noise patterns. For other
/// files the sender is told the reason.
#[test]
fn a_device_in_c_takes_what_its_signer_has_signed_for_it_and_no_older_file() {
    let Some(fleet) = Fleet::new(Kind::Noise, "receive") else { return };
    let here = fleet.path();
    for (keys, sequence) in [(0, 5), (1, u64::MAX)] {
        // A restarted node keeps only its file.
        let mut node = fleet.node(&["./receive"], &DEVICE, "got");
        let push = |manifest: &str| {
            let mut push = fleet.push(&node.address, keys);
            if !manifest.is_empty() {
                push.args(["--manifest", manifest]);
            }
            let push = push.stderr(Stdio::piped()).output().expect("it starts");
            (push.status.success(), String::from_utf8_lossy(&push.stderr).into_owned())
        };
        let whole: Vec<u8> = contents(300_000).into_iter().map(|octet| octet ^ keys as u8).collect();
        fleet.write(&whole);
        let good = for_device(&whole, sequence);
        for (out, key, manifest) in [
            ("good.suit", "signer.key", good),
            ("thief.suit", "other.key", good),
            ("device.suit", "signer.key", Manifest { vendor: [3; 16], ..good }),
            ("expired.suit", "signer.key", Manifest { use_before: Some(1), ..good }),
            ("old.suit", "signer.key", Manifest { sequence: 4, ..good }),
        ] {
            sign(here, out, key, &manifest);
        }
        // No signature covers the suit-text member, a third member of the envelope, which may be
        // cut off.
        let mut long = fs::read(here.join("good.suit")).expect("it is there");
        long[2] += 1;
        long.extend([0x17, 0x58, 200].into_iter().chain([b' '; 200]));
        fs::write(here.join("long.suit"), long).expect("it can be written");
        let mut refused = vec![
            ("", "no signature that it trusts"),
            ("thief.suit", "no signature that it trusts"),
            ("device.suit", "another vendor, class or component"),
            ("expired.suit", "has expired"),
            ("long.suit", "only shorter ones"),
        ];
        if keys == 1 {
            refused.push(("old.suit", "a later version"));
        }
        for (manifest, why) in refused {
            let (delivered, said) = push(manifest);
            assert!(!delivered && said.contains(why), "{manifest}: {said}");
        }
        assert!(!here.join("got").exists());
        let (delivered, said) = push("good.suit");
        assert!(delivered, "{said}");
        let said: Vec<String> = node.errors.by_ref().lines().map_while(Result::ok).collect();
        assert!(node.child.wait().expect("it is ours").success(), "{said:?}");
        assert!(fs::read(here.join("got")).expect("it is there") == whole, "{said:?}");
        fs::remove_file(here.join("got")).expect("it is there");
        weigh(&format!("a device, {}", PUSH_KEYS[keys][2]), Kind::Noise, &here.join("receive"), &said);
    }
}

/// A damaged sequence number does not count as missing.
#[test]
fn a_device_in_c_does_not_start_with_a_damaged_number() {
    let Some(fleet) = Fleet::new(Kind::Noise, "receive") else { return };
    fs::write(fleet.path().join("got.number"), "5").expect("it can be written");
    let mut node = Command::new("./receive");
    node.args(NODE_KEYS).args(DEVICE).args(["got", "127.0.0.1:0", &fleet.gateway.address]);
    let node = node.current_dir(fleet.path()).output().expect("it starts");
    let said = String::from_utf8_lossy(&node.stderr);
    assert!(said.contains("got: it is damaged"), "{said}");
    assert_eq!(node.status.code(), Some(1), "{said}");
}

/// Runs a command that must succeed.
fn does(here: &Path, arguments: &[&str]) {
    let done = anabranch(arguments).current_dir(here).output().expect("it starts");
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Idle limits of nodes in milliseconds. A short limit ends transfers of killed senders soon, but
/// on a busy machine also those of live senders.
const BRIEF: &str = "100";
const PATIENT: &str = "30000";

/// Kills the program with flash, the push, or both at random times, `kills` times in all. After
/// each kill the same file is pushed again, or another one.
///
/// With keys each push is encrypted with one of two patterns, and some have the signature of
/// another signer: none of these may succeed. A device gets a manifest with each file, with growing
/// numbers, and at the end an older one, which it must refuse. Returns how many transfers were
/// interrupted, and how many resumed from a block in the flash.
fn flash_survives(kind: Kind, device: &[&str], seed: u64, kills: u64) -> Option<(u64, u64)> {
    let mut random = Prng::new(seed);
    let fleet = Fleet::new(kind, "flash")?;
    let image = fleet.path().join("image");
    // Idle limit in milliseconds, after which the node gives up a transfer.
    let node = |idle| fleet.node(&["./flash"], &[&["-i", idle], device].concat(), "image");
    let mut sequence = 0;
    let (mut present, mut killed, mut broken, mut resumed) = (Vec::new(), 0, 0, 0);
    // A killed push may have delivered its file, so the node may end while the next push runs.
    let mut before = Vec::new();
    let mut receiver = node(BRIEF);
    loop {
        if present.is_empty() || random.chance(20) {
            let most = if random.chance(20) { 5_000 } else { 500_000 };
            let octets = random.range(0..=most) as usize;
            before = contents(octets).into_iter().map(|octet| octet ^ random.bits() as u8).collect();
            mem::swap(&mut before, &mut present);
            fleet.write(&present);
            sequence += 1 + random.below(3);
            if !device.is_empty() {
                let manifest = for_device(&present, sequence);
                sign(fleet.path(), "signer.suit", "signer.key", &manifest);
                sign(fleet.path(), "other.suit", "other.key", &manifest);
            }
        }
        let is_last = killed == kills;
        let is_forged = kind == Kind::Noise && !is_last && random.chance(10);
        let signature = if is_forged { "other.sig" } else { "signer.sig" };
        let mut push = fleet.push_signed(&receiver.address, random.below(2) as usize, signature);
        if !device.is_empty() {
            push.args(["--manifest", if is_forged { "other.suit" } else { "signer.suit" }]);
        }
        if !is_last {
            // Slow enough that kills hit the transfer.
            push.args(["--rate", "8Mbit/s"]);
        }
        let mut sender = push.args(["--wait", "30 s"]).stderr(Stdio::piped()).spawn().expect("it starts");
        // The last push has a node of its own, since a node that has its file already may be about
        // to end.
        let kill_node = is_last || killed + 1 == kills || random.chance(60);
        if is_last {
            let mut said = String::new();
            sender.stderr.take().expect("it is piped").read_to_string(&mut said).expect("it is text");
            assert!(sender.wait().expect("it is ours").success(), "seed {seed}: the last push: {said}");
        } else {
            // Some pushes have ended by then, and some have not started: a node left alone stays
            // busy for a while.
            let (_keep, never) = mpsc::channel::<()>();
            let is_written = || fs::metadata(&image).and_then(|image| image.modified()).ok();
            let (at_first, mut left) = (is_written(), 400 * random.below(2));
            while left > 0 && is_written() == at_first && sender.try_wait().is_ok_and(|end| end.is_none()) {
                let _ = never.recv_timeout(Duration::from_millis(2));
                left -= 1;
            }
            let _ = never.recv_timeout(Duration::from_micros(random.range(0..=150_000)));
            let first = if kill_node { &mut receiver.child } else { &mut sender };
            first.kill().expect("it is ours");
        }
        let _ = sender.kill();
        let end = sender.wait().expect("it is ours");
        assert!(!is_forged || !end.success(), "seed {seed}: a file of another signer after {killed} kills");
        let has_ended = receiver.child.try_wait().expect("it is ours").is_some();
        if kill_node || has_ended {
            let said: Vec<String> = receiver.errors.by_ref().lines().map_while(Result::ok).collect();
            let lines = |word: &str| said.iter().filter(|line| line.starts_with(word)).count() as u64;
            broken += lines("begin ") - lines("end ");
            let from = said.iter().filter_map(|line| line.strip_prefix("from ")?.parse::<u64>().ok());
            resumed += from.filter(|from| *from > 0).count() as u64;
            let status = receiver.child.wait().expect("it is ours");
            assert!(status.code().is_none_or(|code| code == 0), "seed {seed}: {status}: {said:?}");
            if status.success() {
                let found = in_flash(&image).expect("it has said so");
                let is_right = found == present || found == before && !is_last;
                assert!(is_right, "seed {seed}: a wrong file after {killed} kills: {said:?}");
                // The flash of a device also contains sequence numbers.
                if device.is_empty() {
                    fs::remove_file(&image).expect("it is there");
                } else if is_last {
                    takes_nothing_older(&fleet, &node(PATIENT), &present, sequence);
                }
                present.clear();
            }
            if is_last {
                assert!(status.success(), "seed {seed}: {status}");
                return Some((broken, resumed));
            }
            receiver = node(if killed + 1 == kills { PATIENT } else { BRIEF });
        }
        killed += 1;
    }
}

/// A node that has accepted `sequence` refuses a lower number, and the same number with another
/// file.
fn takes_nothing_older(fleet: &Fleet, node: &Process, present: &[u8], sequence: u64) {
    fleet.write(&other(present.len() + 1));
    for sequence in [sequence - 1, sequence] {
        let manifest = for_device(&other(present.len() + 1), sequence);
        sign(fleet.path(), "old.suit", "signer.key", &manifest);
        let mut push = fleet.push(&node.address, 0);
        let push = push.args(["--manifest", "old.suit"]).stderr(Stdio::piped()).output().expect("it starts");
        let said = String::from_utf8_lossy(&push.stderr);
        assert!(!push.status.success() && said.contains("a later version"), "{sequence}: {said}");
    }
}

fn flash_survives_kills(kind: Kind, device: &[&str]) {
    let kills = given("ANABRANCH_FLASH_KILLS").unwrap_or(12);
    let seed = given("ANABRANCH_FLASH_SEED").unwrap_or(1);
    // On a busy machine the kills may come before anything is in the flash.
    for seed in seed..seed + 5 {
        let Some((broken, resumed)) = flash_survives(kind, device, seed, kills) else { return };
        println!(
            "{kind:?}, seed {seed}: {kills} kills, {broken} transfers broke off, {resumed} went on from what was in the flash"
        );
        if resumed > 0 {
            return;
        }
    }
    panic!("nothing was put to the test");
}

/// The long form is `cargo xtask campaign embedded-flash`.
#[test]
fn flash_survives_kills_at_random_moments() {
    flash_survives_kills(Kind::Plain, &[]);
}

/// Encrypted, signed, resumed. The long form is `cargo xtask campaign embedded-flash`.
#[test]
fn flash_survives_kills_of_an_encrypted_and_signed_transfer() {
    flash_survives_kills(Kind::Noise, &[]);
}

/// With manifests, whose numbers are in the flash beside the file.
#[test]
fn flash_survives_kills_of_a_device_and_takes_nothing_older() {
    flash_survives_kills(Kind::Noise, &DEVICE);
}

/// End-to-end encrypted and signed, through a gateway that knows the sender, with public keys or a
/// shared key. Strangers and files of other signers are refused.
#[test]
fn a_c_program_with_keys_takes_what_is_encrypted_and_signed() {
    let Some(fleet) = Fleet::new(Kind::Noise, "receive") else { return };
    let here = fleet.path();
    let whole = contents(300_000);
    fleet.write(&whole);
    for (keys, shows) in PUSH_KEYS.iter().enumerate() {
        let mut node = fleet.node(&["./receive"], &[], "got");
        let push = |signature: &[&str]| {
            let mut push = anabranch(&["push", "file", "--to", &node.address, "--quiet", "--no-resume"]);
            push.args(PUSH_KEYS[0]).args(signature).current_dir(here).status().expect("it starts")
        };
        assert!(!push(&["--signature", "other.sig"]).success());
        assert!(!push(&[]).success(), "it is not signed");
        assert!(!here.join("got").exists());
        assert!(fleet.push(&node.address, keys).status().expect("it starts").success());
        let said: Vec<String> = node.errors.by_ref().lines().map_while(Result::ok).collect();
        assert!(node.child.wait().expect("it is ours").success(), "{said:?}");
        assert!(fs::read(here.join("got")).expect("it is there") == whole, "{said:?}");
        fs::remove_file(here.join("got")).expect("it is there");
        weigh(&format!("encrypted, {}", shows[2]), Kind::Noise, &here.join("receive"), &said);
    }
}

/// No program listens at the first gateway, so the file uses the second.
#[test]
fn a_single_key_of_gateways_is_that_of_all() {
    let Some(fleet) = Fleet::new(Kind::Noise, "receive") else { return };
    fleet.write(&contents(1000));
    let mut node = Command::new("./receive");
    node.args(NODE_KEYS).args(["got", "127.0.0.1:0", "127.0.0.1:1", &fleet.gateway.address]);
    let node = Process::start(node.current_dir(fleet.path()));
    assert!(fleet.push(&node.address, 0).status().expect("it starts").success());
    assert!(fs::read(fleet.path().join("got")).expect("it is there") == contents(1000));
}

/// Receives with keys, with both Noise patterns, with a push that is killed in the middle.
#[test]
fn valgrind_finds_nothing_in_a_program_that_receives_with_keys() {
    let Some(valgrind) = find_or_install("valgrind", "valgrind") else { return };
    let Some(fleet) = Fleet::new(Kind::Noise, "receive") else { return };
    let here = fleet.path();
    let valgrind = valgrind.to_str().expect("a path that is text");
    let suppressions = file("tests/valgrind.supp").canonicalize().expect("it is there");
    let suppressions = format!("--suppressions={}", suppressions.display());
    let words = [valgrind, "--quiet", "--error-exitcode=99", &suppressions, "./receive"];
    let whole = contents(20_000);
    fleet.write(&whole);
    for keys in 0..PUSH_KEYS.len() {
        let mut node = fleet.node(&words, &["-i", "2000"], "got");
        let mut killed = fleet.push(&node.address, keys);
        let mut killed = killed.args(["--rate", "400kbit/s"]).spawn().expect("it starts");
        while !fs::metadata(here.join("got.part")).is_ok_and(|part| part.len() > 4000) {
            assert!(killed.try_wait().expect("it is ours").is_none(), "it ended by itself");
            std::thread::yield_now();
        }
        killed.kill().expect("it is ours");
        killed.wait().expect("it is ours");
        let mut push = fleet.push(&node.address, keys);
        assert!(push.args(["--wait", "30 s"]).status().expect("it starts").success());
        let said: Vec<String> = node.errors.by_ref().lines().map_while(Result::ok).collect();
        assert_eq!(node.child.wait().expect("it is ours").code(), Some(0), "{said:?}");
        assert!(fs::read(here.join("got")).expect("it is there") == whole, "{said:?}");
        assert!(said.iter().any(|line| line.starts_with("from ") && line != "from 0"), "{said:?}");
        fs::remove_file(here.join("got")).expect("it is there");
    }
}
