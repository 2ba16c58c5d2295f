//! Traffic with times and sizes from a file.

use anabranch_core::time::Duration;

use super::*;
use crate::identity::Files;
use crate::record::Metrics;
use crate::traffic::Carrier;
use anabranch_sim::apps::cbr::CbrSink;
use anabranch_sim::apps::messages::MessageSink;
use anabranch_sim::apps::packets::{Arrived, PacketSink};
use anabranch_sim::apps::rdca::RdcaSink;

/// Two nodes, 50 ms apart at 8 Mbit/s, and a traffic that follows `rows`.
fn pair(rows: &'static str, traffic: &str) -> Source {
    Source::new(
        "pair.toml",
        format!(
            "stop = \"60 s\"\n[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n\
             [[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"8 Mbit/s\"\ndelay = \"50 ms\"\nmtu = 65535\nqueue = \"unlimited\"\n\
             [[traffic]]\nname = \"listed\"\nfrom = \"a\"\nto = \"b\"\nkind = {{ trace = \"packets.csv\" }}\n{traffic}"
        ),
    )
    .with_texts(move |name| match name {
        "packets.csv" => Ok(rows.to_owned()),
        _ => Err("no such file".to_owned()),
    })
}

fn files(rows: &str) -> Files {
    [("packets.csv".to_owned(), rows.as_bytes().to_vec().into())].into()
}

/// The packets that arrived, and the metrics.
fn arrivals(source: &Source, seed: u64, rows: &str) -> (Vec<Arrived>, Metrics) {
    let scenario = source.scenario().unwrap_or_else(|e| panic!("{e}"));
    let Plan { builder, planned } = scenario.plan(seed, 0, &files(rows)).unwrap();
    let mut sim = builder.build();
    sim.run_until(scenario.stop);
    let sink = planned.traffic[0].sink;
    let arrived: &[Arrived] = match &scenario.traffic[0].carrier {
        Carrier::Udp => &sim.app::<CbrSink>(sink).arrived,
        Carrier::Tcp(_) if scenario.traffic[0].is_messages() => &sim.app::<MessageSink>(sink).arrived,
        Carrier::Tcp(_) => &sim.app::<PacketSink>(sink).arrived,
        _ => &sim.app::<RdcaSink>(sink).arrived,
    };
    (arrived.to_vec(), scenario.metrics(&planned, &sim))
}

/// The packets that arrived, by generation time in milliseconds, and the metrics.
fn run(source: &Source, rows: &str) -> (Vec<(u64, u32)>, impl Fn(&str) -> f64 + use<>) {
    let (arrived, metrics) = arrivals(source, 1, rows);
    let mut all: Vec<(u64, u32)> = arrived.iter().map(|a| (a.made.as_nanos() / 1_000_000, a.len)).collect();
    all.sort_unstable();
    (all, move |name| metrics[&format!("traffic.listed.{name}")].value.unwrap_or(f64::NAN))
}

/// Every transport generates each packet at its time and delivers it with its size; column names,
/// units and equal times do not matter.
#[test]
fn each_packet_has_its_time_and_its_length() {
    let rows = "time,bytes\n0.25,100\n250 ms,40\n# later\n1, 60 B\n1.5e0,20\n";
    for over in
        ["over = \"udp\"", "over = \"tcp\"", "over = \"tcp\"\nconnection = \"each\"", "over = \"rdca\""]
    {
        let (arrived, figure) = run(&pair(rows, &format!("{over}\nstart = \"2 s\"\n")), rows);
        assert_eq!(arrived, [(2250, 40), (2250, 100), (3000, 60), (3500, 20)], "{over}");
        assert_eq!((figure("packets_made"), figure("packets_delivered")), (4.0, 4.0), "{over}");
    }
    // Over UDP a packet takes the delay plus 1 µs for each of its bytes, with 48 bytes of headers
    // per packet.
    let (_, figure) = run(&pair(rows, ""), rows);
    let expected = 0.05 + ((100.0 + 48.0) + (140.0 + 96.0) + (60.0 + 48.0) + (20.0 + 48.0)) / 4.0 * 1e-6;
    assert!((figure("delay_mean_s") - expected).abs() < 1e-9, "{}", figure("delay_mean_s"));
}

/// A source whose first packet is due later generates none before: nothing arrives earlier than the
/// delay of the link.
#[test]
fn no_packet_comes_before_it_was_made() {
    let off = "kind = { on-off = { on = \"1 s\", off = \"5 s\" } }";
    for kind in [off, &off.replace("on-off", "pareto-on-off"), "kind = { trace = \"packets.csv\" }"] {
        for over in ["udp", "tcp", "rdca"] {
            let more =
                if kind.contains("trace") { "" } else { "payload = \"60 B\"\ninterval = \"100 ms\"\n" };
            let source = pair("3,60\n4,60\n", &format!("over = \"{over}\"\n{more}"));
            let source = source.set(kind.replacen("kind = ", "traffic.0.kind=", 1));
            let mut all = 0;
            for seed in 1..=5 {
                let (arrived, _) = arrivals(&source, seed, "3,60\n4,60\n");
                all += arrived.len();
                let least = arrived.iter().map(|a| a.at.saturating_since(a.made)).min();
                assert!(
                    least.is_none_or(|least| least >= Duration::from_millis(50)),
                    "{kind} {over} {seed}: {least:?}"
                );
            }
            assert!(all > 0, "{kind} {over}");
        }
    }
}

#[test]
fn a_trace_ends_with_the_last_row_the_number_or_the_time() {
    let rows = "0,100\n1,200\n2,300\n3,400\n";
    for (keys, made) in [
        ("", &[0, 1000, 2000, 3000][..]),
        ("packets = 3\n", &[0, 1000, 2000]),
        ("stop = \"1 s\"\n", &[0, 1000]),
        ("start = \"1 s\"\nstop = \"2500 ms\"\n", &[1000, 2000]),
        ("start = \"59.5 s\"\n", &[59500]),
    ] {
        for over in ["udp", "tcp"] {
            let (arrived, _) = run(&pair(rows, &format!("over = \"{over}\"\n{keys}")), rows);
            assert_eq!(arrived.iter().map(|(at, _)| *at).collect::<Vec<_>>(), made, "{over} {keys}");
        }
    }
}

/// Packets that were due while a node was down are never generated; later packets come at their
/// time and with their size.
#[test]
fn a_node_that_was_down_goes_on_where_the_trace_is() {
    // Routes need a second to recover.
    let rows = "0,100\n1,120\n2,140\n3,160\n5,180\n";
    let events = "[[event]]\nat = \"1.5 s\"\naction = \"fail-node\"\nnode = \"a\"\n\
                  [[event]]\nat = \"3.5 s\"\naction = \"recover-node\"\nnode = \"a\"\n";
    for over in ["udp", "tcp", "rdca"] {
        let (arrived, _) = run(&pair(rows, &format!("over = \"{over}\"\n{events}")), rows);
        assert_eq!(arrived, [(0, 100), (1000, 120), (5000, 180)], "{over}");
    }
}

/// Times count from the planned start of the source, also if its node was down at that time.
#[test]
fn a_node_that_is_down_at_the_start_joins_the_trace() {
    let rows = "0,100\n1,120\n2,140\n4,180\n";
    let events = "[[event]]\nat = \"500 ms\"\naction = \"fail-node\"\nnode = \"a\"\n\
                  [[event]]\nat = \"2900 ms\"\naction = \"recover-node\"\nnode = \"a\"\n";
    for over in ["udp", "tcp", "rdca"] {
        let (arrived, _) = run(&pair(rows, &format!("over = \"{over}\"\nstart = \"1 s\"\n{events}")), rows);
        let expected = if over == "udp" { &[(5000, 180)][..] } else { &[(3000, 140), (5000, 180)] };
        assert_eq!(arrived, expected, "{over}");
    }
}

/// Several sources follow the same trace, with random start times if requested.
#[test]
fn sources_follow_one_trace_each() {
    let rows = "0,100\n1,200\n";
    let source = pair(rows, "phase = \"random\"\n").set("traffic.0.over=udp");
    let (arrived, _) = run(&source, rows);
    let [(first, 100), (second, 200)] = arrived[..] else { panic!("{arrived:?}") };
    assert!(first < 1000 && second == first + 1000, "{arrived:?}");
}

#[test]
fn the_file_is_part_of_what_a_run_is() {
    let rows = "0,100\n1,200\n";
    let scenario = pair(rows, "").scenario().unwrap();
    assert_eq!(scenario.files().collect::<Vec<_>>(), ["packets.csv"]);
    let again = Source::new("again", scenario.to_toml()).with_texts(|_| Ok("0,100\n1,200\n".to_owned()));
    assert_eq!(again.scenario().unwrap().hash(), scenario.hash());
    let id = |rows| scenario.root(&files(rows)).run(1, 0);
    assert_ne!(id(rows), id("0,100\n1,201\n"));
}

#[test]
fn what_is_wrong_is_said_where_it_is() {
    let cases = [
        ("", "", "packets.csv: the file has no row with a time and bytes"),
        ("time,bytes\n", "", "packets.csv: the file has no row with a time and bytes"),
        ("0\n", "", "packets.csv:1:1: expected `time,bytes`, found `0`"),
        ("0,1,2\n", "", "packets.csv:1:1: expected `time,bytes`, found `0,1,2`"),
        ("0,100\n2,100\n1,100\n", "", "packets.csv:3:1: 1 is before the time of the row before"),
        ("0,100\n\n1,0\n", "", "packets.csv:3:1: a packet has 1 B to 4 GB, and this one 0 B"),
        ("0,-5\n", "", "packets.csv:1:1: `-5` is negative"),
        ("0,99999999999\n", "", "packets.csv:1:1: a packet has 1 B to 4 GB, and this one 99999999999 B"),
        ("0,nan\n", "", "packets.csv:1:1: `nan` does not begin with a number"),
        ("-1,100\n", "", "packets.csv:1:1: `-1` is negative"),
        (
            "0,5\n",
            "",
            "pair.toml:17:8: a packet of the file is 5 B: expected 12 B, for number and time, to 65 kB",
        ),
        (
            "0,70000\n",
            "",
            "pair.toml:17:8: a packet of the file is 70 kB: expected 12 B, for number and time, to 65 kB",
        ),
        (
            "0,100\n",
            "payload = \"5 kB\"",
            "pair.toml:18:11: the trace says how long packets are, and so does `payload`",
        ),
        (
            "0,100\n",
            "interval = \"1 s\"",
            "pair.toml:18:12: the trace says when packets are made, and so does `interval`",
        ),
        (
            "0,100\n",
            "rate = \"1 kbit/s\"",
            "pair.toml:18:8: the trace says when packets are made, and so does `rate`",
        ),
        ("0,100\n", "over = \"mptcp\"", "pair.toml:13:1: packets over \"mptcp\" are all alike"),
    ];
    for (rows, keys, expected) in cases {
        let error = pair(rows, keys).scenario().expect_err(expected).to_string();
        assert!(error.starts_with(expected), "{error}\ninstead of {expected}");
    }
    let absent = pair("0,100", "").set("traffic.0.kind={ trace = \"other.csv\" }").scenario().unwrap_err();
    assert!(absent.to_string().contains("cannot read `other.csv`: no such file"), "{absent}");
    let word = pair("0,100", "").set("traffic.0.kind=trace").scenario().unwrap_err();
    assert!(word.to_string().contains("trace"), "{word}");
    let cbr = pair("0,100", "interval = \"1 s\"").set("traffic.0.kind=cbr").scenario().unwrap_err();
    assert!(cbr.to_string().contains("missing key `payload`"), "{cbr}");
}
