//! Transfers of kind "coap".

use anabranch_core::coap::{Failure, Method};
use anabranch_testkit::tshark::Tshark;

use super::ending::Ending;
use super::*;
use anabranch_sim::apps::coap::CoapEnd;
use anabranch_sim::capture::Capture;
use anabranch_sim::sim::Simulation;

const RATE: f64 = 250_000.0;
const DELAY: f64 = 0.02;

/// A sender and a receiver, with a cable between them.
const CABLE: &str = r#"
name = "cable"

[[node]]
name = "a"

[[node]]
name = "b"

[[link]]
name = "wire"
from = "a"
to = "b"
rate = "250 kbit/s"
delay = "20 ms"
queue = "1000 packets"

[coap.p]

[[transfer]]
name = "log"
kind = "coap"
coap = "p"
from = "a"
to = "b"
bytes = "50 kB"
"#;

fn cable(settings: &[&str]) -> Source {
    settings.iter().fold(Source::new("cable.toml", CABLE), |source, setting| source.set(*setting))
}

fn ran(source: &Source, run: u64) -> (Scenario, Planned, Simulation, record::Metrics) {
    let scenario = source.scenario().unwrap_or_else(|error| panic!("{error}"));
    let Plan { builder, planned } = scenario.plan(1, run, &BTreeMap::new()).expect("nothing is drawn");
    let mut sim = builder.build();
    sim.run_until(scenario.stop);
    let metrics = scenario.metrics(&planned, &sim);
    (scenario, planned, sim, metrics)
}

fn figure(metrics: &record::Metrics, name: &str) -> Option<f64> {
    metrics[&format!("transfer.log.{name}")].value
}

fn latency(settings: &[&str]) -> f64 {
    let (.., metrics) = ran(&cable(settings), 0);
    assert_eq!(
        (figure(&metrics, "delivered"), figure(&metrics, "delivered_bytes")),
        (Some(1.0), Some(50_000.0))
    );
    assert_eq!((figure(&metrics, "retransmissions"), figure(&metrics, "timeouts")), (Some(0.0), Some(0.0)));
    figure(&metrics, "latency_s").expect("it was delivered")
}

/// Time on the cable of a message with this many bytes of CoAP over UDP (8) over IPv6 (40).
fn on_air(coap: usize) -> f64 {
    (coap + 48) as f64 * 8.0 / RATE + DELAY
}

/// Bytes of the value of a block option (RFC 7959 section 2.2): 4 bits of number fit into the
/// first.
fn block(num: usize) -> usize {
    if num < 16 { 1 } else { 2 }
}

/// RFC 7252 section 3: header and token of 4 bytes each; the number of an option takes one byte of
/// delta and length, and one more from a delta of 13 on; the payload follows a marker.
#[test]
fn a_put_with_block1_takes_the_closed_form() {
    let blocks = 50_000usize.div_ceil(1024);
    let mut expected = 0.0;
    for num in 0..blocks {
        let payload = if num + 1 < blocks { 1024 } else { 50_000 % 1024 };
        // Uri-Path (11) of one byte, Block1 (27) and, at first, Size1 (60) of two bytes.
        let size1 = if num == 0 { 2 + 2 } else { 0 };
        expected += on_air(4 + 4 + 2 + 2 + block(num) + size1 + 1 + payload);
        if num + 1 < blocks {
            expected += on_air(4 + 4 + 2 + block(num));
        }
    }
    let got = latency(&["coap.p.method=block1"]);
    assert!((got - expected).abs() < 1e-6, "{got} {expected}");
}

#[test]
fn a_get_with_block2_takes_the_closed_form() {
    let blocks = 50_000usize.div_ceil(1024);
    let mut expected = 0.0;
    for num in 0..blocks {
        let payload = if num + 1 < blocks { 1024 } else { 50_000 % 1024 };
        // Uri-Path and Block2 (23), a delta of 12. The answer has ETag (4) and Block2, a delta of
        // 19.
        expected += on_air(4 + 4 + 2 + 1 + block(num)) + on_air(4 + 4 + 1 + 4 + 2 + block(num) + 1 + payload);
    }
    let got = latency(&["coap.p.method=block2"]);
    assert!((got - expected).abs() < 1e-6, "{got} {expected}");
}

/// A set is sent without a wait: one round trip for ten blocks, and the time of all bytes. With the
/// cable's time of a block at 34 ms and its round trip at 40 ms plus the answers, the gain over
/// Block1 is that of the round trips: (34 + 40 + 2) / (34 + 4).
#[test]
fn q_block_saves_nine_of_ten_round_trips() {
    let [block1, q_block1, block2, q_block2] = ["block1", "q-block1", "block2", "q-block2"]
        .map(|method| latency(&[&format!("coap.p.method={method}")]));
    for (slow, fast) in [(block1, q_block1), (block2, q_block2)] {
        let gain = slow / fast;
        assert!((1.9..2.15).contains(&gain), "{gain}");
    }
    // Where the round trip is all, the gain is ten.
    let far = ["link.wire.delay=1 s", "link.wire.rate=1 Gbit/s"];
    let of = |method: &str| latency(&[far[0], far[1], &format!("coap.p.method={method}")]);
    // 49 blocks: 48 round trips and a half, and four and a half.
    let (slow, fast) = (of("block1"), of("q-block1"));
    assert!((slow - 97.0).abs() < 0.01 && (fast - 9.0).abs() < 0.01, "{slow} {fast}");
    // A larger set needs fewer.
    let set = latency(&[far[0], far[1], "coap.p.method=q-block1", "coap.p.max_payloads=49"]);
    assert!((set - 1.0).abs() < 0.01, "{set}");
}

/// The receiver may be the client: the server of a GET is the sender.
#[test]
fn the_body_goes_from_sender_to_receiver_whoever_asks() {
    for (method, is_put) in [("block1", true), ("block2", false), ("q-block1", true), ("q-block2", false)] {
        let (.., metrics) = ran(&cable(&[&format!("coap.p.method={method}")]), 0);
        let bytes = |link: &str| metrics[&format!("link.{link}.bytes")].value.expect("it is a count");
        assert!(bytes("a>b") > 50_000.0 && bytes("b>a") < 5_000.0, "{method}");
        let (scenario, planned, sim, _) = ran(&cable(&[&format!("coap.p.method={method}")]), 0);
        let coap = planned.coaps[0];
        assert_eq!(coap.receiver == coap.server, is_put);
        assert_eq!(scenario.endings(&planned, &sim), [Ending::Delivered]);
        assert_eq!(sim.app::<CoapEnd>(coap.receiver).wrong, 0);
    }
}

#[test]
fn every_method_delivers_over_a_link_that_loses_duplicates_and_reorders() {
    for method in ["block1", "block2", "q-block1", "q-block2"] {
        for size in ["0 B", "1 B", "1023 B", "1 KiB", "1025 B", "100 kB"] {
            let source = cable(&[
                &format!("coap.p.method={method}"),
                &format!("transfer.log.bytes={size}"),
                "link.wire.loss=0.05",
                "link.wire.duplication=0.05",
                "link.wire.reordering=0.05",
            ]);
            for run in 0..5 {
                let (_, planned, sim, metrics) = ran(&source, run);
                assert_eq!(figure(&metrics, "delivered"), Some(1.0), "{method} {size} {run}");
                let ends = [planned.coaps[0].client, planned.coaps[0].server];
                assert!(ends.iter().all(|end| sim.app::<CoapEnd>(*end).wrong == 0));
                // Equal runs are equal.
                assert_eq!(ran(&source, run).3, metrics);
            }
        }
    }
}

/// RFC 7252 section 4.8.2: MAX_TRANSMIT_WAIT is 93 s; RFC 9177 section 7.2: 124 s of requests, or
/// NON_PARTIAL_TIMEOUT of 247 s after the last set.
#[test]
fn a_silent_peer_fails_the_transfer_in_the_time_of_the_rfcs() {
    let cases = [
        ("block1", Failure::Silent, 62.0..93.0, 5.0),
        ("block2", Failure::Silent, 62.0..93.0, 5.0),
        ("q-block2", Failure::Missing, 124.0..124.001, 5.0),
        // Five sets, and a pause of 2 to 3 s between them.
        ("q-block1", Failure::Unconfirmed, 255.0..259.0, 49.0),
    ];
    for (method, expected, time, datagrams) in cases {
        let source = cable(&[&format!("coap.p.method={method}"), "link.wire.loss=1"]);
        let (scenario, planned, sim, metrics) = ran(&source, 0);
        let endings = scenario.endings(&planned, &sim);
        let [Ending::Abandoned(failure, at)] = endings[..] else { panic!("{endings:?}") };
        assert_eq!(failure, expected);
        assert!(time.contains(&at.as_secs_f64()), "{method}: {at}");
        assert_eq!(
            (figure(&metrics, "delivered"), figure(&metrics, "datagrams")),
            (Some(0.0), Some(datagrams))
        );
        assert_eq!(figure(&metrics, "latency_s"), None);
        assert_eq!(figure(&metrics, "latency_censored_s"), Some(3600.0));
        assert!(endings[0].to_string().contains("the client gave up at"));
    }
}

/// One block is lost while the link is down: 2 to 3 s, as the first wait of a message is.
#[test]
fn a_lost_message_costs_the_first_wait() {
    let event = "\n[[event]]\nat = \"100 ms\"\naction = \"link-down\"\nfrom = \"a\"\nto = \"b\"\n\
                 \n[[event]]\nat = \"200 ms\"\naction = \"link-up\"\nfrom = \"a\"\nto = \"b\"\n";
    let (.., metrics) = ran(&Source::new("event.toml", format!("{CABLE}{event}")), 0);
    let extra = figure(&metrics, "latency_s").expect("it was delivered") - latency(&[]);
    assert_eq!(figure(&metrics, "retransmissions"), Some(1.0));
    assert!((1.9..3.0).contains(&extra), "{extra}");
}

/// Blocks of 64 bytes fit into a frame with little more; those of 1024 are ten fragments.
#[test]
fn coap_crosses_three_hops_of_radio() {
    let shipped = include_str!("../../../../scenarios/three-hops-radio.toml");
    let mut goodputs = Vec::new();
    for method in ["block1", "block2", "q-block1", "q-block2"] {
        let text = format!("{shipped}\n[coap.p]\nmethod = \"{method}\"\nblock_size = 512\n");
        let source = Source::new("three-hops-radio.toml", text)
            .set("transfer.log.kind=coap")
            .set("transfer.log.coap=p");
        let (_, planned, sim, metrics) = ran(&source, 0);
        assert_eq!(figure(&metrics, "delivered"), Some(1.0), "{method}");
        assert_eq!(sim.app::<CoapEnd>(planned.coaps[0].receiver).wrong, 0);
        goodputs.push(figure(&metrics, "goodput_bit_per_s").expect("it took a while"));
    }
    println!("{goodputs:?}");
}

/// A sender that fails and starts again begins the body again.
#[test]
fn a_node_that_starts_again_begins_again() {
    for method in ["block1", "block2", "q-block1", "q-block2"] {
        let event = "\n[[event]]\nat = \"1 s\"\naction = \"fail-node\"\nnode = \"a\"\n\
                     \n[[event]]\nat = \"5 s\"\naction = \"recover-node\"\nnode = \"a\"\n";
        let source =
            Source::new("event.toml", format!("{CABLE}{event}")).set(format!("coap.p.method={method}"));
        let (.., metrics) = ran(&source, 0);
        assert_eq!(figure(&metrics, "delivered"), Some(1.0), "{method}");
        assert!(figure(&metrics, "latency_s") > Some(5.0), "{method}");
    }
}

#[test]
fn the_profile_reaches_the_transfer_and_defaults_follow_each_other() {
    let config = |settings: &[&str]| {
        let scenario = cable(settings).scenario().unwrap_or_else(|error| panic!("{error}"));
        let Scheme::Coap(config) = scenario.transfers[0].scheme else { panic!("its kind is coap") };
        config
    };
    assert_eq!(config(&[]), anabranch_core::coap::Config::default());
    let slow = config(&["coap.p.method=q-block2", "coap.p.ack_timeout=5 s", "coap.p.max_retransmit=2"]);
    let seconds = Duration::from_secs;
    assert_eq!(
        (slow.method, slow.non_timeout, slow.non_receive_timeout),
        (Method::QBlock2, seconds(5), seconds(10))
    );
    // 5 s * (2^2 - 1) * 1.5 + 200 s + 5 s
    assert_eq!((slow.non_max_retransmit, slow.non_partial_timeout), (2, Duration::from_millis(227_500)));
    assert_eq!(config(&["coap.p.ack_timeout=200 ms"]).non_receive_timeout, Duration::from_millis(1_300));
    // The resolved scenario has all values, and means the same.
    let resolved = cable(&["coap.p.block_size=64"]).scenario().expect("it is legal").to_toml();
    assert!(resolved.contains("non_receive_timeout = \"4 s\""), "{resolved}");
    let again = Source::new("again.toml", resolved).scenario().expect("it is legal");
    assert!(matches!(again.transfers[0].scheme, Scheme::Coap(config) if config.block_size == 64));
}

#[test]
fn what_contradicts_the_rfcs_is_refused() {
    let error = |settings: &[&str]| cable(settings).scenario().expect_err("it is wrong").to_string();
    for (settings, message) in [
        (&["coap.p.block_size=100"][..], "expected 16, 32, 64, 128, 256, 512 or 1024 bytes"),
        (&["coap.p.block_size=2048"], "expected 16, 32, 64, 128, 256, 512 or 1024 bytes"),
        (&["coap.p.ack_timeout=0 s"], "expected more than no time"),
        (&["coap.p.ack_random_factor=0.5"], "expected 1 to 100"),
        (&["coap.p.max_payloads=0"], "expected at least 1"),
        (&["coap.p.non_receive_timeout=3.5 s"], "and 1 s more"),
        (&["coap.p.max_retransmit=21"], "expected at most 20"),
        (&["coap.p.method=block3"], "unknown word `block3`"),
        (&["coap.p.blocksize=64"], "did you mean `block_size`?"),
        (&["coap.q.block_size=64"], "there is no profile `coap.q`"),
        (&["transfer.log.coap=q"], "there is no profile `coap.q`"),
        (&["transfer.log.bytes=20 MB", "coap.p.block_size=16"], "at most 16777216 with blocks of 16 bytes"),
        (&["transfer.log.reads_for=1 s"], "`reads_for` has no meaning for this kind of transfer"),
        (&["transfer.log.tcp_receiver=default"], "`tcp_receiver` has no meaning for this kind"),
    ] {
        let error = error(settings);
        assert!(error.contains(message), "{settings:?}: {error}");
    }
    let endless = CABLE.replace("bytes = \"50 kB\"\n", "");
    let error = Source::new("endless.toml", endless).scenario().expect_err("it is wrong").to_string();
    assert!(error.contains("`bytes` or `file` is missing"), "{error}");
    let tcp = CABLE.replace("kind = \"coap\"", "kind = \"tcp\"");
    let error = Source::new("tcp.toml", tcp).scenario().expect_err("it is wrong").to_string();
    assert!(error.contains("`coap` has no meaning for this kind of transfer"), "{error}");
    // A kind chosen from outside leaves the keys of others aside.
    assert!(cable(&["transfer.log.kind=tcp"]).scenario().is_ok());
    let unused = CABLE.replace("coap = \"p\"\n", "");
    let error = Source::new("unused.toml", unused).scenario().expect_err("it is wrong").to_string();
    assert!(error.contains("no transfer uses the profile `coap.p`"), "{error}");
    // Two servers on one port of a node.
    let other = format!(
        "{CABLE}port = 5683\n\n[[transfer]]\nname = \"two\"\nkind = \"coap\"\nfrom = \"a\"\nto = \"b\"\nbytes = \"1 kB\"\nport = 5683\n"
    );
    let error = Source::new("ports.toml", other.clone()).scenario().expect_err("it is wrong").to_string();
    assert!(error.contains("`log` receives on port 5683 already"), "{error}");
    // The server of a GET is at the other node.
    assert!(Source::new("ports.toml", other).set("coap.p.method=block2").scenario().is_ok());
    // Above the radio nothing is fragmented.
    let wifi = CABLE.replace("name = \"b\"", "name = \"b\"\nposition = [50, 0]");
    let wifi = wifi.replace("name = \"a\"", "kind = \"node\"\nname = \"a\"\nposition = [0, 0]");
    let (from, to) = wifi.find("[[link]]").zip(wifi.find("[coap.p]")).expect("both are there");
    let wifi = format!("{}{}[wifi]\nrange = \"100 m\"\nmtu = 800\n", &wifi[..from], &wifi[to..]);
    let error = Source::new("wifi.toml", wifi.clone()).scenario().expect_err("it is wrong").to_string();
    assert!(error.contains("has room for 712 bytes of a block"), "{error}");
    assert!(error.contains("set `block_size = 512` or less in `[coap.p]`"), "{error}");
    let small = Source::new("wifi.toml", wifi).set("coap.p.block_size=512");
    assert!(small.scenario().is_ok(), "{:?}", small.scenario().err());
    let traffic = format!(
        "{CABLE}port = 9100\n\n[[traffic]]\nkind = \"cbr\"\nfrom = \"a\"\nto = \"b\"\npayload = \"100 B\"\ninterval = \"1 s\"\n"
    );
    let error = Source::new("traffic.toml", traffic.clone()).scenario().expect_err("it is wrong").to_string();
    assert!(error.contains("received on port 9100 already"), "{error}");
    assert!(Source::new("traffic.toml", traffic).set("traffic.0.over=tcp").scenario().is_ok());
}

/// tshark reads every message, with losses and without, and finds no fault.
#[test]
fn tshark_reads_every_message() {
    for method in ["block1", "block2", "q-block1", "q-block2"] {
        for loss in ["0", "0.1"] {
            let source = cable(&[
                &format!("coap.p.method={method}"),
                &format!("link.wire.loss={loss}"),
                "transfer.log.port=5683",
            ]);
            let scenario = source.scenario().expect("it is legal");
            let Plan { builder, planned } = scenario.plan(1, 0, &BTreeMap::new()).expect("nothing is drawn");
            let mut sim = builder.build();
            sim.observe(Capture::new(Vec::new(), scenario.network.ip));
            sim.run_until(scenario.stop);
            let octets = sim.take_observer::<Capture<Vec<u8>>>().expect("it watched").finish();
            let octets = octets.expect("memory takes everything");
            let Some(tshark) = Tshark::open(&format!("{method}-{loss}"), &octets) else { return };
            let faults = "_ws.expert.severity == error || coap.option_length_bad || udp.checksum.status == 0";
            assert_eq!(tshark.run(&["-Y", faults]), "", "{method} {loss}");
            // tshark 4.0 takes the options of RFC 9177 and RFC 9175 for malformed, and says so.
            let malformed = tshark.fields("_ws.malformed", "_ws.expert.message");
            let new = ["19", "31", "292"].map(|number| format!("Invalid Option Number {number}"));
            // A lost packet has a comment.
            let is_other = |text: &&str| !text.is_empty() && !text.starts_with("lost");
            let messages = malformed.split([',', '\n']).filter(is_other);
            let other: Vec<&str> = messages.filter(|text| new.iter().all(|new| new != text)).collect();
            assert!(other.is_empty(), "{method}: {other:?}");
            assert!(method.starts_with('q') || malformed.is_empty(), "{method}: {malformed}");
            let metrics = scenario.metrics(&planned, &sim);
            let datagrams = figure(&metrics, "datagrams").expect("it is a count") as u64;
            assert_eq!(tshark.count("coap"), datagrams, "{method} {loss}");
            // tshark puts the blocks together to the body.
            if !method.starts_with('q') {
                let whole = tshark.count("coap.block.reassembled.length == 50000");
                assert!(whole >= 1, "{method} {loss}");
            }
        }
    }
}
