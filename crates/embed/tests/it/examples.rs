//! Error messages of the C examples for invalid command lines and files. None of them may start.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use anabranch_testkit::embedded::{Kind, file, program};

/// Exit code and output of a program. A program that starts to listen is killed.
fn run(here: &Path, words: &str) -> (Option<i32>, String) {
    let mut words = words.split_whitespace();
    let mut child = Command::new(here.join(words.next().expect("a program")))
        .args(words)
        .current_dir(here)
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut errors = BufReader::new(child.stderr.take().expect("it is piped"));
    let mut said = String::new();
    errors.read_line(&mut said).expect("it writes text");
    if said.starts_with("listening on") {
        child.kill().expect("it is ours");
    }
    errors.read_to_string(&mut said).expect("it writes text");
    (child.wait().expect("it is ours").code(), said)
}

/// Runs each command line, which must end with this code and this line.
fn refuses(here: &Path, table: &[(&str, i32, &str)]) {
    for &(words, code, message) in table {
        let said = run(here, words);
        assert_eq!(said, (Some(code), format!("{message}\n")), "{words}");
    }
}

const ADDRESS: &str = "not an IPv4 address with a port from 0 to 65535, such as 192.0.2.1:47200";
const GATEWAY: &str = "not an IPv4 address with a port from 1 to 65535, such as 192.0.2.1:47200";
const IDLE: &str = "not a number of milliseconds from 1 to 4294967295";

#[test]
fn a_c_example_refuses_a_bad_command_line_and_says_why() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let here = folder.path();
    for example in ["receive", "flash"] {
        let source = file(&format!("examples/{example}.c"));
        let Some(()) = program(Kind::Plain, &[&source], &here.join(example)) else { return };
    }
    let usage = "usage: [OPTION VALUE]... FILE ADDRESS:PORT [GATEWAY:PORT]..., with at most 3 gateways";
    for example in ["receive", "flash"] {
        for (words, what) in [
            ("got localhost:7000", "localhost:7000: ADDRESS"),
            ("got 127.0.0.1:70000", "127.0.0.1:70000: ADDRESS"),
            ("got 127.0.0.1:18446744073709551617", "127.0.0.1:18446744073709551617: ADDRESS"),
            ("got 999.0.0.1:7000", "999.0.0.1:7000: ADDRESS"),
            ("got 127.0.0.-1:7000", "127.0.0.-1:7000: ADDRESS"),
            ("got 127.0.0.1:7000x", "127.0.0.1:7000x: ADDRESS"),
            ("got 127.0.0.1:", "127.0.0.1:: ADDRESS"),
            ("got 127.0.0.1", "127.0.0.1: ADDRESS"),
            ("got 127.0.0.1:0 gw:1", "gw:1: GATEWAY"),
            ("got 127.0.0.1:0 127.0.0.1:1 127.0.0.1:0", "127.0.0.1:0: GATEWAY"),
            ("-i banana got 127.0.0.1:0", "-i banana: IDLE"),
            ("-i 0 got 127.0.0.1:0", "-i 0: IDLE"),
            ("-c 2 got 127.0.0.1:0", "-c 2: not 1 if the gateways share a radio channel, or 0"),
            ("-i -5 got 127.0.0.1:0", "-i -5: IDLE"),
            ("-i 4294967296 got 127.0.0.1:0", "-i 4294967296: IDLE"),
            ("-idle 900 got 127.0.0.1:0", "-idle: no such option"),
            ("-x 900 got 127.0.0.1:0", "-x: no such option"),
            ("-k node.key got 127.0.0.1:0", "-k: no such option without keys: compile with -DNOISE"),
            ("got", usage),
            ("", usage),
            ("got 127.0.0.1:0 10.0.0.1:1 10.0.0.2:1 10.0.0.3:1 10.0.0.4:1", usage),
        ] {
            let message = what.replace("ADDRESS", ADDRESS).replace("GATEWAY", GATEWAY).replace("IDLE", IDLE);
            let message = if what == usage { usage } else { &message };
            refuses(here, &[(&format!("{example} {words}"), 2, message)]);
        }
        // Nothing is created before all arguments are checked.
        let made = ["got", "got.part"].map(|name| here.join(name).exists());
        assert_eq!(made, [false, false], "{example}");
    }
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = taken.local_addr().expect("it is bound");
    let in_use = format!("cannot listen on {at}: Address already in use");
    let long = "x".repeat(76);
    let too_long = format!("cannot store a file as {long}: File name too long");
    refuses(
        here,
        &[
            (&format!("receive got {at}"), 1, &in_use),
            (&format!("flash image {at}"), 1, &in_use),
            ("receive no/got 127.0.0.1:0", 1, "cannot store a file as no/got: No such file or directory"),
            ("flash no/image 127.0.0.1:0", 1, "cannot store a file as no/image: No such file or directory"),
            (&format!("receive {long} 127.0.0.1:0"), 1, &too_long),
        ],
    );
}

#[test]
fn a_c_example_refuses_keys_with_which_no_file_could_come() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let here = folder.path();
    let Some(()) = program(Kind::Noise, &[&file("examples/receive.c")], &here.join("receive")) else {
        return;
    };
    let key = "07".repeat(32);
    for (name, text) in [
        ("node.key", format!("# the node\nx25519-secret:{key}\n")),
        ("sender.pub", format!("x25519:{key}\n")),
        ("both.key", format!("psk:{key}\n")),
        ("signer.pub", format!("ed25519:{key}\n")),
        ("short.pub", format!("x25519:{}\n", &key[2..])),
        ("odd.pub", format!("x25519:{}0x\n", &key[2..])),
    ] {
        fs::write(here.join(name), text).expect("it can be written");
    }
    let device = format!("{}:{}", "01".repeat(16), "02".repeat(16));
    let no_keys =
        "this program takes only encrypted files: name its secret key with -k, or a pre-shared key with -p";
    let no_secret = "-s needs the secret key of this node: name it with -k";
    let no_public = "no line of x25519: and 64 hexadecimal digits";
    let no_device = "not VENDOR:CLASS, two UUIDs of 32 hexadecimal digits each";
    let five = "-s sender.pub ".repeat(5);
    for (options, message) in [
        ("", no_keys),
        ("-s sender.pub", no_keys),
        ("-v signer.pub", no_keys),
        ("-s sender.pub -p both.key", no_secret),
        ("-k node.key", "-k needs the public key of a sender: name it with -s"),
        (&format!("-p both.key -d {device}"), "-d needs the key that signs the manifests: name it with -v"),
        ("-p both.key -d 01:02", &format!("-d 01:02: {no_device}")),
        (
            &format!("-p both.key -d {}", device.replace(':', "1")),
            &format!("-d {}: {no_device}", device.replace(':', "1")),
        ),
        (
            &format!("-p both.key -d {}", device.replace("02", "0x")),
            &format!("-d {}: {no_device}", device.replace("02", "0x")),
        ),
        ("-k none.key -s sender.pub", "-k none.key: No such file or directory"),
        ("-s node.key", &format!("-s node.key: {no_public}")),
        ("-s short.pub", &format!("-s short.pub: {no_public}")),
        ("-s odd.pub", &format!("-s odd.pub: {no_public}")),
        (&five, "-s sender.pub: at most 4 of this option"),
        (
            "-p both.key -g sender.pub -g sender.pub",
            "-g has to be there once for all gateways, or once for each, in the same order",
        ),
        ("-p both.key -q x", "-q: no such option"),
    ] {
        refuses(here, &[(&format!("receive {options} got 127.0.0.1:0 10.0.0.1:1"), 2, message)]);
    }
    assert!(!here.join("got.part").exists());

    // The maximum number of keys and gateways fits into its memory.
    let all = format!(
        "receive -k node.key {} -p both.key {} -v signer.pub -d {device} got 127.0.0.1:0 10.0.0.1:1 10.0.0.2:1 10.0.0.3:1",
        "-s sender.pub ".repeat(4),
        "-g sender.pub ".repeat(3),
    );
    let (code, said) = run(here, &all);
    assert!(code.is_none() && said.starts_with("listening on"), "{said}");

    // A damaged number file is an error, and an unreadable file does not count as missing.
    let damaged =
        "cannot read the sequence number of got: it is damaged, and without it older files would be taken";
    let device = format!("receive -p both.key -v signer.pub -d {device} got 127.0.0.1:0");
    for octets in [0, 1, 30] {
        fs::write(here.join("got.number"), vec![0; octets]).expect("it can be written");
        refuses(here, &[(&device, 1, damaged)]);
    }
    fs::remove_file(here.join("got.number")).expect("it is there");
    fs::create_dir(here.join("got.number")).expect("a disk");
    refuses(here, &[(&device, 1, "cannot read the sequence number of got: Is a directory")]);
}
