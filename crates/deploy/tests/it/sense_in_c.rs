//! RDCA's sender in C sends records to the deployed sink over a lossy path, within its memory.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anabranch_testkit::daemon::Daemon;
use anabranch_testkit::embedded::{Kind, program, sections};
use anabranch_testkit::prng::Prng;

use crate::programs::command;

/// Limit on the memory of a sender with 16 records of 100 bytes, in bytes: what it is given, and
/// the stack of the example with all calls of the library.
const RAM: u64 = 8_000;

/// A path to a sink that loses a share of all datagrams in either direction.
struct Relay {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    fn start(sink: SocketAddr, loss: u64) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        socket.set_read_timeout(Some(Duration::from_millis(50))).expect("a socket");
        let address = socket.local_addr().expect("it is bound");
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            let (mut random, mut sender, mut buffer) = (Prng::new(1), None, [0; 2048]);
            while !ends.load(Ordering::Relaxed) {
                let Ok((n, from)) = socket.recv_from(&mut buffer) else { continue };
                let to = if from == sink { sender } else { Some(sink) };
                sender = if from == sink { sender } else { Some(from) };
                if let (Some(to), false) = (to, random.chance(loss)) {
                    socket.send_to(&buffer[..n], to).expect("the loopback device");
                }
            }
        });
        Self { address, is_over, thread: Some(thread) }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn figure(said: &str, name: &str) -> u64 {
    let line = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.expect("it prints all figures").parse().expect("a number")
}

/// Runs the example with this input. Returns its exit code and standard error.
fn send(program: &Path, options: &[&str], to: SocketAddr, input: &str) -> (Option<i32>, String) {
    let mut command = Command::new(program);
    command.args(options).arg(to.to_string());
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    // A program that refuses its arguments reads nothing.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let mut said = String::new();
    child.stderr.take().expect("it is piped").read_to_string(&mut said).expect("it writes text");
    (child.wait().expect("it is ours").code(), said)
}

/// The payloads in a file of a sink, in order.
fn payloads(out: &Path) -> Vec<String> {
    let text = fs::read_to_string(out).expect("the sink has written");
    let lines = text.lines().map(|line| line.parse::<Line>().expect("a line of the sink"));
    lines.filter_map(|line| line.0).collect()
}

/// The payload of a line of JSON. Payloads of this test need no escapes.
struct Line(Option<String>);

impl std::str::FromStr for Line {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let payload = text.split("\"payload\":\"").nth(1);
        Ok(Self(payload.map(|rest| rest.split('"').next().unwrap_or_default().to_owned())))
    }
}

fn sink(folder: &Path, keys: &[&str]) -> (Daemon, SocketAddr) {
    let mut sink = command("sink");
    sink.current_dir(folder).args(["--listen", "127.0.0.1:0", "--out", "out.jsonl", "--state", "state"]);
    let sink = Daemon::spawn({
        sink.args(keys);
        sink
    });
    let address = sink.address.parse().expect("an address");
    (sink, address)
}

#[test]
fn a_sender_in_c_delivers_all_records_over_a_lossy_path() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let here = folder.path();
    let example = here.join("send");
    let Some(()) = program(Kind::Sense, &[&Kind::Sense.file("examples/send.c")], &example) else { return };
    let made = command("key").current_dir(here).args(["new", "--kind", "psk", "shared"]).output();
    assert!(made.expect("it starts").status.success());
    let key = here.join("shared.key");
    let key = key.to_str().expect("text");
    let lines: Vec<String> = (0..300).map(|n| format!("{n} {}", "x".repeat(n % 95))).collect();
    let input = lines.join("\n");
    for (what, keys, options) in [
        ("with a key", &["--psk", key][..], &["-p", key, "-n", "probe-1"][..]),
        ("in clear", &["--insecure"], &["-i", "1"]),
    ] {
        let (sink, address) = sink(here, keys);
        let relay = Relay::start(address, 10);
        let (code, said) = send(&example, options, relay.address, &input);
        drop(sink);
        assert_eq!(code, Some(0), "{what}: {said}");
        assert_eq!(payloads(&here.join("out.jsonl")), lines, "{what}");
        assert!(figure(&said, "repeated") > 10, "{what}: nothing was lost: {said}");
        let Some(sizes) = sections(&example) else { return };
        let ram = figure(&said, "memory") + figure(&said, "stack");
        println!(
            "{what}: text {} data {} bss {}, {ram} bytes of RAM: {said}",
            sizes.text - sizes.unwinding,
            sizes.data,
            sizes.bss
        );
        assert!(ram <= RAM, "{ram} bytes of RAM: {said}");
        fs::remove_file(here.join("out.jsonl")).expect("the sink has written");
    }
}

#[test]
fn a_sender_in_c_refuses_what_it_cannot_send_with() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let here = folder.path();
    let example = here.join("send");
    let Some(()) = program(Kind::Sense, &[&Kind::Sense.file("examples/send.c")], &example) else { return };
    let to = "127.0.0.1:9".parse().expect("an address");
    fs::write(here.join("other.key"), "psk:12\n").expect("it can be written");
    let other = here.join("other.key");
    let other = other.to_str().expect("text");
    let no_key = "this program sends only encrypted records: name a pre-shared key with -p, or allow others with -i 1\n";
    let no_name = "-n a b: not a name of 1 to 32 letters, digits, '.', '_' and '-'\n";
    for (options, message) in [
        (&[][..], no_key.to_owned()),
        (&["-i", "yes"], no_key.to_owned()),
        (&["-i", "1", "-n", "a b"], no_name.to_owned()),
        (&["-p", other], format!("-p {other}: no line of psk: and 64 hexadecimal digits\n")),
        (&["-x", "1"], "-x: no such option\n".to_owned()),
    ] {
        assert_eq!(send(&example, options, to, ""), (Some(2), message), "{options:?}");
    }
    let (code, said) = send(&example, &["-i", "1"], to, &"x".repeat(101));
    assert!(code == Some(1) && said.starts_with("a line has more than 100 bytes"), "{said}");
}
