//! Captures of whole runs, read back by tshark.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::collections::BTreeSet;
use std::io::{self, Write};

use anabranch_core::set::{Plan, SenderConfig};
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::apps::set::{NODE_PORT, SetNode};
use anabranch_sim::capture::Capture;
use anabranch_sim::packet::IpVersion;
use anabranch_sim::pcapng::CaptureError;
use anabranch_sim::sim::Simulation;
use anabranch_testkit::tshark::Tshark;
use anabranch_wire::set::{Decoder, Item, Message};

use crate::set::star::{Star, path};

const LENGTH: usize = 60_000;

/// Three lossy gateways. End to end, where a packet is 15 fragments, losses are rarer.
fn star(ip: IpVersion, plan: Plan) -> Star {
    let loss = if plan == Plan::Stripe { 0.03 } else { 0.004 };
    let star = Star::new(&[path(256_000, 25, loss), path(128_000, 40, loss), path(56_000, 10, loss)], LENGTH);
    Star { ip, set: SenderConfig { plan, ..star.set }, seed: 7, ..star }
}

/// Runs it to the end with a capture.
fn captured<W: Write + Send + 'static>(star: &Star, out: W) -> (Simulation, Capture<W>) {
    let mut run = star.build();
    let mut sim = run.builder.take().unwrap().build();
    sim.observe(Capture::new(out, star.ip));
    sim.run_until(Instant::ZERO + Duration::from_secs(1000));
    assert!(sim.app::<SetNode>(run.node).delivered == star.file, "not delivered");
    let capture = sim.take_observer().unwrap();
    (sim, capture)
}

/// The data of the sides that connected to the node, one stream each.
fn streams_to_node(tshark: &Tshark) -> Vec<Vec<u8>> {
    let to_node = format!("tcp.dstport == {NODE_PORT} && tcp.len > 0");
    let streams: BTreeSet<String> = tshark
        .run(&["-Y", &to_node, "-T", "fields", "-e", "tcp.stream"])
        .lines()
        .map(str::to_owned)
        .collect();
    let follow: Vec<String> = streams.iter().map(|stream| format!("follow,tcp,raw,{stream}")).collect();
    let arguments = follow.iter().flat_map(|f| ["-z", f]);
    let text = tshark.run(&["-q"].into_iter().chain(arguments).collect::<Vec<_>>());
    text.split("Follow: tcp,raw").skip(1).map(outbound).collect()
}

/// Checks that no packet is malformed or has a bad checksum, and that these checks are enabled.
fn assert_sound(tshark: &Tshark) {
    let bad = "_ws.malformed || tcp.checksum.status == \"Bad\" || ip.checksum.status == \"Bad\" \
               || _ws.expert.severity == error";
    assert_eq!(tshark.run(&["-Y", bad]), "");
    assert!(tshark.count("tcp.checksum.status == \"Good\"") > 100);
}

/// The bytes of the connecting side in tshark's output of a stream; lines of the other side begin
/// with a tab.
fn outbound(follow: &str) -> Vec<u8> {
    let hex = |line: &&str| !line.is_empty() && line.bytes().all(|octet| octet.is_ascii_hexdigit());
    let digits: Vec<u8> = follow.lines().filter(hex).flat_map(str::bytes).collect();
    let octet = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(octet).collect()
}

/// Puts the chunks of SET streams at their positions in the file.
fn reassemble(streams: Vec<Vec<u8>>) -> Vec<u8> {
    let mut file = vec![None; LENGTH];
    for stream in streams {
        let mut decoder = Decoder::new();
        decoder.push(stream.into());
        while let Some(item) = decoder.next_item().unwrap() {
            let Item::Data { offset, octets } = item else { continue };
            for (i, octet) in octets.into_iter().enumerate() {
                let before = file[offset as usize + i].replace(octet);
                assert!(before.is_none_or(|b| b == octet), "two chunks differ in octet {offset} + {i}");
            }
        }
    }
    file.into_iter().map(|octet| octet.expect("every octet was captured")).collect()
}

fn check_set(ip: IpVersion) {
    let star = star(ip, Plan::Stripe);
    let (sim, capture) = captured(&star, Vec::new());
    let Some(tshark) = Tshark::open(&format!("set-{ip:?}"), &capture.finish().unwrap()) else { return };
    assert_sound(&tshark);

    let network = &sim.world().network;
    let fields =
        ["frame.interface_name", "frame.packet_flags_direction", "frame.comment", "frame.time_epoch"];
    let arguments = ["-T", "fields"].into_iter().chain(fields.iter().flat_map(|f| ["-e", f]));
    let frames = tshark.run(&arguments.collect::<Vec<_>>());
    let frames: Vec<Vec<&str>> = frames.lines().map(|line| line.split('\t').collect()).collect();
    assert!(frames.is_sorted_by_key(|f| Instant::ZERO + Duration::from_secs_f64(f[3].parse().unwrap())));
    for link in network.links() {
        let [from, to] = [link.from(), link.to()].map(|node| network.node_name(node));
        let of_link = |f: &&Vec<&str>| match f[1].trim_start_matches("0x0000000") {
            "2" => f[0] == format!("{from}-{to}"),
            _ => f[0] == format!("{to}-{from}"),
        };
        let metrics = link.metrics();
        assert_eq!(frames.iter().filter(of_link).count() as u64, metrics.enqueued, "{from} to {to}");
        let lost = frames.iter().filter(of_link).filter(|f| f[2] == "lost: by the channel").count();
        assert_eq!(lost as u64, metrics.dropped_loss, "{from} to {to}");
    }
    assert!(network.links().iter().map(|l| l.metrics().dropped_loss).sum::<u64>() > 10);

    let streams = streams_to_node(&tshark);
    assert_eq!(streams.len(), 1 + 3, "the request and three sessions");
    assert!(reassemble(streams) == star.file);
}

fn check_fragments(ip: IpVersion) {
    let star = star(ip, Plan::EndToEnd);
    let (sim, capture) = captured(&star, Vec::new());
    let octets = capture.finish().unwrap();
    let Some(tshark) = Tshark::open(&format!("end-to-end-{ip:?}"), &octets) else { return };
    assert_sound(&tshark);
    let lost = sim.world().network.links().iter().map(|l| l.metrics().dropped_loss).sum::<u64>();
    assert!(lost > 0, "losses among the fragments");
    let fragments = match ip {
        IpVersion::V4 => "ip.flags.mf == 1 || ip.frag_offset > 0",
        IpVersion::V6 => "ipv6.fraghdr",
    };
    assert!(tshark.count(fragments) > 12 * LENGTH as u64 / 1296);

    // The stream passes two links. Over the narrow one alone, its fragments make up the file.
    let narrow = tshark.only(&format!("narrow-{ip:?}"), "frame.interface_name matches \"^gw.-sn$\"");
    let [stream] = &streams_to_node(&narrow)[..] else { panic!("one connection") };
    let mut decoder = Decoder::new();
    decoder.push(stream.clone().into());
    assert!(matches!(decoder.next_item(), Ok(Some(Item::Message(Message::Request(_))))));
    assert!(decoder.into_rest() == star.file);
}

#[test]
fn streams_of_set_over_ipv4_contain_the_file() {
    check_set(IpVersion::V4);
}

#[test]
fn streams_of_set_over_ipv6_contain_the_file() {
    check_set(IpVersion::V6);
}

#[test]
fn fragments_of_ipv4_contain_the_file() {
    check_fragments(IpVersion::V4);
}

#[test]
fn fragments_of_ipv6_contain_the_file() {
    check_fragments(IpVersion::V6);
}

#[test]
fn a_full_disk_is_an_error_at_the_end() {
    /// A disk with this number of bytes left.
    struct Disk(usize);
    impl Write for Disk {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(octets.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(octets.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    for left in [0, 100, 100_000] {
        let (_, capture) = captured(&star(IpVersion::V6, Plan::Stripe), Disk(left));
        let error = capture.finish().map(drop).unwrap_err();
        assert!(matches!(error, CaptureError::Io(e) if e.kind() == io::ErrorKind::StorageFull));
    }
}

#[test]
fn a_capture_of_nothing_is_a_capture() {
    assert_eq!(Capture::new(Vec::new(), IpVersion::V6).finish().unwrap().len(), 28);
}
