//! Tests of `packaging/wireshark/set.lua` with tshark.

mod open;
mod segments;

use std::collections::BTreeMap;
use std::process::Command;

use anabranch_testkit::prng::Prng;
use anabranch_testkit::tshark::Tshark;
use assert_cmd::prelude::*;

use self::segments::{Segments, Stream, Way};

const SCRIPT: &str = concat!("lua_script:", env!("CARGO_MANIFEST_DIR"), "/../../packaging/wireshark/set.lua");
const NODE: u16 = 47_200;
const GATEWAY: u16 = 47_201;

/// The dissector's result for a capture.
struct Read(Tshark);

impl Read {
    fn open(name: &str, capture: &[u8]) -> Option<Self> {
        Tshark::open(&format!("lua-{name}"), capture).map(Self)
    }

    #[track_caller]
    fn run(&self, arguments: &[&str]) -> String {
        let lua = ["-X", SCRIPT, "-o", "tcp.reassemble_out_of_order:TRUE"];
        self.0.run(&[&lua, arguments].concat())
    }

    /// Fields of the frames that pass a filter: one line per frame, tabs between fields, commas
    /// between values.
    #[track_caller]
    fn fields(&self, filter: &str, fields: &str) -> String {
        let fields = fields.split(' ').flat_map(|field| ["-e", field]);
        self.run(&["-Y", filter, "-T", "fields"].into_iter().chain(fields).collect::<Vec<_>>())
    }

    /// All values of each field in the order of the capture, from one start of tshark.
    #[track_caller]
    fn columns<const N: usize>(&self, names: [&str; N]) -> [Vec<String>; N] {
        let lines = self.fields(&names.join(" or "), &names.join(" "));
        let mut columns = [const { Vec::new() }; N];
        for line in lines.lines() {
            extend(&mut columns, line);
        }
        columns
    }

    /// All values of a field, in the order of the capture.
    #[track_caller]
    fn all(&self, field: &str) -> Vec<String> {
        let [values] = self.columns([field]);
        values
    }

    #[track_caller]
    fn count(&self, filter: &str) -> usize {
        self.fields(filter, "frame.number").lines().count()
    }

    /// Checks that the script has no error of its own.
    #[track_caller]
    fn is_sound(&self) {
        let text = self.run(&["-V"]);
        let error = text.lines().find(|line| line.contains("Lua Error") || line.contains("Dissector bug"));
        assert_eq!(error, None);
    }
}

fn octets(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// A chunk: a header and `length` bytes.
fn chunk(header: &str, length: usize) -> Vec<u8> {
    [octets(header), (0..length).map(|i| i as u8).collect()].concat()
}

const ID: &str = "0102030405060708";

/// The sender's messages in the worked examples of docs/reference/set-protocol.md, preceded by the
/// chunk that ends where the first of them begins.
fn examples() -> Vec<u8> {
    [
        octets(&format!("50 {ID} 00 01")),
        chunk("71 00 45 10", 1296),
        chunk("70 44 f8", 1272),
        chunk("71 53 88 3c", 60),
        chunk("a0 00 3c  00 00 13 88  00 00 00 00  00 00 00 01  00 00 00 02  00 07 00 08", 60),
    ]
    .concat()
}

/// Types, offsets, lengths and payloads in each stream of a capture, with more arguments for
/// tshark.
#[track_caller]
fn of_examples(read: &Read, arguments: &[&str]) -> BTreeMap<String, [Vec<String>; 4]> {
    let fields =
        "tcp.stream anabranch.type anabranch.data.offset anabranch.data.length anabranch.data.octets";
    let fields = fields.split(' ').flat_map(|field| ["-e", field]);
    let told = ["-Y", "anabranch", "-T", "fields"].into_iter().chain(fields).collect::<Vec<_>>();
    let mut streams = BTreeMap::<_, [Vec<String>; 4]>::new();
    for line in read.run(&[arguments, &told].concat()).lines() {
        let (stream, line) = line.split_once('\t').expect("several columns");
        extend(streams.entry(stream.to_owned()).or_default(), line);
    }
    streams
}

/// Adds the values in a line of tshark's output to their columns.
fn extend(columns: &mut [Vec<String>], line: &str) {
    for (column, values) in columns.iter_mut().zip(line.split('\t')) {
        column.extend(values.split(',').filter(|value| !value.is_empty()).map(str::to_owned));
    }
}

#[test]
fn the_worked_examples_are_read_as_documented() {
    let mut capture = Segments::new();
    let mut control = capture.stream(NODE);
    capture.say(&mut control, Way::Down, &octets("10 01 01 02 03 04 05 06 07 08 80 01 f7 e8"));
    let mut session = capture.stream(NODE);
    capture.say(&mut session, Way::Down, &examples());
    capture.say(&mut session, Way::Up, &octets("81 49 f0 3c 41 c8 40 64"));
    let Some(read) = Read::open("examples", &capture.pcap) else { return };
    read.is_sound();
    let request = "anabranch.plan anabranch.version anabranch.transfer anabranch.request.length";
    assert_eq!(read.fields("anabranch.type == 1", request), "0\t1\t0x0102030405060708\t129000\n");
    let data = "anabranch.data.offset anabranch.data.length";
    assert_eq!(read.fields("anabranch.type == 7", data), "0,1296,5000,5000\t1296,1272,60,60\n");
    let paper = "anabranch.data.sequence anabranch.data.acknowledgement anabranch.data.intermediate \
                 anabranch.data.final anabranch.data.intermediate_port anabranch.data.final_port";
    assert_eq!(read.fields("anabranch.type == 10", paper), "5000\t0\t0.0.0.1\t0.0.0.2\t7\t8\n");
    let ack = "anabranch.delivered anabranch.ack.received anabranch.ack.ranges anabranch.ack.gap \
               anabranch.ack.held anabranch.ack.start anabranch.ack.end";
    assert_eq!(read.fields("anabranch.type == 8", ack), "2544\t60\t1\t456\t100\t3000\t3100\n");
    assert_eq!(read.count("anabranch.malformed or anabranch.unusual or anabranch.unknown"), 0);
}

#[test]
fn every_message_is_read() {
    let mut capture = Segments::new();
    let v6 = "fd00 0000 0000 0000 0000 0000 0000 0002";
    let mut control = capture.stream(NODE);
    // With options: signature and discard.
    let request = [octets(&format!("16 01 {ID} c0 00 00 01 00 00 00 00 03")), vec![0xd1; 32], vec![0x51; 64]];
    capture.say(&mut control, Way::Down, &request.concat());
    // The part that the node already has, before ACCEPT.
    capture.say(&mut control, Way::Up, &octets("80 50 00 00"));
    let key = "4b".repeat(32);
    let table = format!("22 7d00  20 0007 03 0a000001 b861 0004 0005 0002  07 0008 01 {v6} b861 {key} 0000");
    capture.say(&mut control, Way::Up, &octets(&table));
    // With a digest and without a signature.
    let mut control = capture.stream(NODE);
    capture.say(&mut control, Way::Down, &[octets(&format!("14 01 {ID} 05 00")), vec![0xd2; 32]].concat());
    for reason in 1..=4 {
        let mut control = capture.stream(NODE);
        capture.say(&mut control, Way::Down, &octets(&format!("12 01 {ID} 05")));
        capture.say(&mut control, Way::Up, &[0x30 + reason, reason]);
    }
    for (status, setsyn) in
        [(0, format!("40 {ID} 01 03 0a000005 b860")), (1, format!("41 {ID} 02 03 {v6} b860"))]
    {
        let mut wired = capture.stream(GATEWAY);
        capture.say(&mut wired, Way::Down, &octets(&setsyn));
        capture.say(&mut wired, Way::Up, &[0x60 + status, 1 + status]);
        capture.say(&mut wired, Way::Down, &octets("70 00 90"));
    }
    let Some(read) = Read::open("messages", &capture.pcap) else { return };
    read.is_sound();
    assert_eq!(read.count("anabranch.malformed or anabranch.unusual or anabranch.unknown"), 0);
    let request = "anabranch.request.length anabranch.request.signed anabranch.request.discard \
                   anabranch.request.digest anabranch.request.signature";
    let said = read.fields("anabranch.request.digest", request);
    let (first, second) = said.trim_end().split_once('\n').expect("two of them");
    assert_eq!(first, format!("4294967296\t1\t1\t{}\t{}", "d1".repeat(32), "51".repeat(64)));
    assert_eq!(second, format!("5\t0\t0\t{}", "d2".repeat(32)));
    assert_eq!(read.fields("anabranch.type == 8", "anabranch.delivered"), "4096\n");
    let table = "anabranch.accept.buffer anabranch.accept.rows anabranch.gateway.id anabranch.gateway.hops \
                 anabranch.gateway.neighbours anabranch.gateway.depleted anabranch.address anabranch.address6 \
                 anabranch.port anabranch.gateway.neighbour anabranch.gateway.energies anabranch.gateway.key";
    let row =
        format!("15616\t2\t7,8\t3,1\t2,0\t0,1\t10.0.0.1\tfd00::2\t47201,47201\t4,5\t0x0002,0x0000\t{key}\n");
    assert_eq!(read.fields("anabranch.type == 2", table), row);
    let refuse = "anabranch.refuse.reason anabranch.delivered anabranch.refuse.why";
    assert_eq!(read.fields("anabranch.type == 3", refuse), "1\t1\t\n2\t2\t\n3\t3\t\n4\t\t4\n");
    let setsyn = "anabranch.plan anabranch.transfer anabranch.session anabranch.sessions anabranch.address \
                  anabranch.address6 anabranch.port";
    let id = format!("0x{ID}");
    let said = format!("0\t{id}\t1\t3\t10.0.0.5\t\t47200\n0\t{id}\t2\t3\t\tfd00::2\t47200\n");
    assert_eq!(read.fields("anabranch.type == 4", setsyn), said);
    assert_eq!(
        read.fields("anabranch.type == 6", "anabranch.setack.status anabranch.session"),
        "0\t1\n1\t2\n"
    );
    assert_eq!(read.count("anabranch.type == 9"), 2);
}

/// All streams are in one capture, since starting tshark takes longer than reading it.
#[test]
fn segments_may_cut_a_stream_anywhere() {
    let mut capture = Segments::new();
    let mut whole = capture.stream(NODE);
    capture.say(&mut whole, Way::Down, &examples());
    let sizes = [1, 2, 7, 81, 500];
    for size in sizes {
        let mut stream = capture.stream(NODE);
        capture.say_in_pieces(&mut stream, Way::Down, &examples(), size);
    }
    let Some(read) = Read::open("pieces", &capture.pcap) else { return };
    read.is_sound();
    // Results of the first pass are kept in the second.
    for arguments in [&[][..], &["-2"]] {
        let streams = of_examples(&read, arguments);
        let whole = &streams["0"];
        assert_eq!(whole[0].join(" "), "5 7 7 7 10");
        assert_eq!(streams.len(), 1 + sizes.len());
        for (size, pieces) in sizes.into_iter().zip(streams.values().skip(1)) {
            assert_eq!(pieces, whole, "in pieces of {size}, {arguments:?}");
        }
    }
    assert_eq!(read.count("anabranch.malformed or anabranch.unknown"), 0);
}

#[test]
fn what_follows_a_refusal_to_stripe_or_a_split_plan_is_the_file() {
    let mut capture = Segments::new();
    let mut control = capture.stream(NODE);
    capture.say(&mut control, Way::Down, &octets(&format!("11 01 {ID} 05")));
    capture.say(&mut control, Way::Up, &octets("30 00"));
    capture.say(&mut control, Way::Down, b"\x90\xff\x00\x10\x20");
    capture.say(&mut control, Way::Up, &octets("80 05 05"));
    let mut wired = capture.stream(GATEWAY);
    capture.say(&mut wired, Way::Down, &octets(&format!("44 {ID} 00 01 0a000005 b860 ffff")));
    capture.say(&mut wired, Way::Down, &octets("0000"));
    let Some(read) = Read::open("plain", &capture.pcap) else { return };
    read.is_sound();
    assert_eq!(read.all("anabranch.plain"), ["90ff001020", "ffff", "0000"]);
    assert_eq!(read.count("anabranch.malformed or anabranch.unknown"), 0);
}

#[test]
fn a_copy_behind_a_request_is_read() {
    let mut capture = Segments::new();
    let mut stream = capture.stream(NODE);
    capture.say(&mut stream, Way::Down, &octets(&format!("13 01 {ID} 05 70 05 3132333435")));
    let Some(read) = Read::open("copy", &capture.pcap) else { return };
    read.is_sound();
    assert_eq!(read.fields("anabranch.malformed", "_ws.expert.message"), "");
    let said = read.run(&["-Y", "anabranch"]);
    assert!(said.contains("5 octets, sessions, copy follows") && said.contains("DATA"), "{said}");
}

#[test]
fn a_malformed_message_is_named() {
    let cases: &[(&str, &str)] = &[
        ("13 01 0102030405060708 44b1", "length of a copy"),
        ("18 01 0102030405060708 05 00", "length of a manifest"),
        ("14 01 0102030405060708 05 08", "options of a file"),
        ("46 0102030405060708 00 01 0a000005 b860", "plan"),
        ("50 0102030405060708 01 01", "number of the session"),
    ];
    // After a JOIN, so that the stream is not taken for another protocol.
    let later: &[(&str, &str)] = &[
        ("f0", "type of the message"),
        ("71 ffffffffffffffff 01", "length of a data chunk"),
        ("70 ffffffffffffffff", "length of a data chunk"),
    ];
    let mut capture = Segments::new();
    for (said, _) in cases {
        let mut stream = capture.stream(NODE);
        capture.say(&mut stream, Way::Down, &octets(said));
    }
    for (said, _) in later {
        let mut stream = capture.stream(NODE);
        capture.say(&mut stream, Way::Down, &octets(&format!("50 {ID} 00 01")));
        capture.say(&mut stream, Way::Down, &octets(said));
        capture.say(&mut stream, Way::Down, &octets("00 11 22"));
    }
    let up: &[(&str, &str)] = &[
        ("81 00 00 00 05", "range of an acknowledgement"),
        ("81 00 00 05 00", "range of an acknowledgement"),
        ("81 00 00 ffffffffffffffff 01", "range of an acknowledgement"),
        ("21 00 00 0001 00 0a000001 b861 0000", "hop count of a gateway"),
    ];
    for (said, _) in up {
        let mut stream = capture.stream(NODE);
        capture.say(&mut stream, Way::Up, &octets(said));
    }
    let Some(read) = Read::open("malformed", &capture.pcap) else { return };
    read.is_sound();
    let said = read.fields("anabranch.malformed", "_ws.expert.message");
    let said: Vec<&str> = said.lines().collect();
    let expected: Vec<String> = [cases, later, up]
        .concat()
        .iter()
        .map(|(_, what)| format!("{what} is not valid; nothing after it can be understood"))
        .collect();
    assert_eq!(said, expected);
    // The rest of the stream is one item.
    assert_eq!(read.all("anabranch.unknown"), ["001122"; 3]);
}

#[test]
fn what_is_unusual_is_a_warning_and_goes_on() {
    let mut capture = Segments::new();
    let mut control = capture.stream(NODE);
    capture.say(&mut control, Way::Up, &octets("3f 00 80 00 00"));
    let mut wired = capture.stream(GATEWAY);
    capture.say(&mut wired, Way::Up, &octets("6f 01"));
    let mut session = capture.stream(NODE);
    capture.say(&mut session, Way::Down, &octets(&format!("50 {ID} 00 01 80 00 00")));
    let Some(read) = Read::open("unusual", &capture.pcap) else { return };
    read.is_sound();
    let said = read.fields("anabranch.unusual", "_ws.expert.message");
    let expected = "a reason that is not known\na status that is not known\nACK goes the other way\n";
    assert_eq!(said, expected);
    assert_eq!(read.count("anabranch.malformed"), 0);
}

#[test]
fn a_stream_that_is_not_set_makes_no_noise() {
    let mut capture = Segments::new();
    for first in [0x00, 0x70, 0xb0, 0xc1, 0xff] {
        let mut stream = capture.stream(NODE);
        let octets: Vec<u8> =
            [first, 3, 1, 0xff].into_iter().chain((0..400).map(|i| (i * 37) as u8)).collect();
        capture.say(&mut stream, Way::Down, &octets);
        capture.say(&mut stream, Way::Up, &octets);
    }
    // A session of an encrypted transfer: a plaintext JOIN, followed by records.
    let mut session = capture.stream(NODE);
    capture.say(&mut session, Way::Down, &octets(&format!("50 {ID} 00 01 2000 1234")));
    capture.say(&mut session, Way::Down, &octets("70 ffff"));
    // The control stream of the transfer.
    let mut control = capture.stream(NODE);
    capture.say(&mut control, Way::Down, &[&[0xb1, 0, 48][..], &[0x5a; 48]].concat());
    capture.say(&mut control, Way::Up, &[&[0, 48][..], &[0x5a; 48]].concat());
    // The same through a gateway that requires no key. A repeated SETSYN is not part of these.
    let mut wired = capture.stream(GATEWAY);
    let setsyn = octets(&format!("40 {ID} 00 01 0a000005 b860"));
    capture.say(&mut wired, Way::Down, &[&setsyn[..], &setsyn].concat());
    capture.say(&mut wired, Way::Up, &octets("60 00"));
    capture.say(&mut wired, Way::Down, &octets("4010 7070"));
    capture.say(&mut wired, Way::Up, &octets("0012 8080"));
    let Some(read) = Read::open("unknown", &capture.pcap) else { return };
    read.is_sound();
    assert_eq!(read.count("anabranch.malformed or anabranch.unusual"), 0);
    assert_eq!(read.count("anabranch.unknown"), 16);
    assert_eq!(read.all("anabranch.greeting"), ["1"]);
    assert_eq!(read.all("anabranch.type"), ["5", "4", "4", "6"]);
}

#[test]
fn other_ports_are_a_preference() {
    let mut capture = Segments::new();
    let mut stream = capture.stream(5000);
    capture.say(&mut stream, Way::Down, &octets(&format!("10 01 {ID} 05")));
    let Some(read) = Read::open("ports", &capture.pcap) else { return };
    let length = ["-Y", "anabranch.type", "-T", "fields", "-e", "anabranch.request.length"];
    assert_eq!(read.run(&length), "");
    for ports in ["5000", "47200,4990-5010"] {
        let preference = format!("anabranch.node_ports:{ports}");
        assert_eq!(read.run(&[&["-o", &preference], &length[..]].concat()), "5\n");
    }
}

/// Valid streams in which some bytes were changed, or whose end is missing.
#[test]
fn no_octets_make_the_script_fail() {
    let mut rng = Prng::new(7);
    let mut capture = Segments::new();
    for _ in 0..150 {
        let mut stream: Stream = capture.stream(if rng.below(2) == 0 { NODE } else { GATEWAY });
        let table = octets(
            "22 7d 00  20 0007 03 0a000001 b861 0004 0005 0002  20 0008 01 0a000001 b861 0001 0002 0000",
        );
        let request = [octets(&format!("16 01 {ID} c0 00 00 01 00 00 00 00 03")), vec![0xd1; 96]].concat();
        let (way, mut said) = match rng.below(4) {
            0 => (Way::Down, examples()),
            1 => (Way::Down, request),
            2 => (Way::Up, [octets("82 49 f0 3c 41 c8 40 64 01 01"), table].concat()),
            _ => (
                Way::Down,
                octets(&format!("41 {ID} 00 02 fd000000000000000000000000000005 b860 71 53 88 02 0000 90")),
            ),
        };
        for _ in 0..rng.below(4) {
            // Mostly bytes of headers, which are few.
            let at = rng.below(said.len().min(40) as u64) as usize;
            said[at] = rng.below(256) as u8;
        }
        said.truncate(said.len() - (rng.below(3) * rng.below(20)) as usize % said.len());
        let size = 1 + rng.below(200) as usize;
        capture.say_in_pieces(&mut stream, way, &said, size);
        capture.close(&mut stream, way);
    }
    let Some(read) = Read::open("fuzz", &capture.pcap) else { return };
    read.is_sound();
}

#[test]
fn a_capture_of_the_simulator_is_understood_to_the_last_octet() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("file"), [0x5e; 40_000]).expect("a file");
    let mut push = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    push.current_dir(folder.path())
        .args(["push", "file", "--quiet", "--pcap", "out.pcapng"])
        .assert()
        .success();
    let capture = std::fs::read(folder.path().join("out.pcapng")).expect("a capture");
    let Some(read) = Read::open("simulated", &capture) else { return };
    read.is_sound();
    assert_eq!(
        read.count("anabranch.malformed or anabranch.unusual or anabranch.unknown or anabranch.gap"),
        0
    );
    let [types, requests, offsets, lengths, delivered] = read.columns([
        "anabranch.type",
        "anabranch.request.length",
        "anabranch.data.offset",
        "anabranch.data.length",
        "anabranch.delivered",
    ]);
    assert_eq!(requests, ["40000"]);
    let of = |number| types.iter().filter(|is| *is == number).count();
    assert_eq!((of("2"), of("4"), of("5")), (1, 3, 3));
    // All bytes of the file are sent at least once, and the last acknowledgement covers all of
    // them.
    assert_eq!(offsets.len(), lengths.len());
    let mut there = vec![false; 40_000];
    for (offset, length) in offsets.iter().zip(&lengths) {
        let (offset, length): (usize, usize) = (offset.parse().expect("n"), length.parse().expect("n"));
        there[offset..offset + length].fill(true);
    }
    assert!(there.iter().all(|there| *there));
    assert_eq!(delivered.last().map(String::as_str), Some("40000"));
}
