//! Queueing disciplines: their effect on flows.

use anabranch_core::time::Duration;

use super::*;
use crate::record::Metrics;
use anabranch_sim::link::LinkDrop;
use anabranch_sim::link::discipline::DisciplineConfig;
use anabranch_sim::trace::Point;

/// `flows` unlimited transfers over a bottleneck with a round trip of 40 ms and a queue of 1,000
/// packets, for 20 s; the queue is measured from 5 s on. `more` is appended.
fn bottleneck_of(rate: &str, flows: u32, discipline: &str, tcp: &str, more: &str) -> Metrics {
    let text = format!(
        r#"
        stop = "20 s"
        [tcp.default]
        {tcp}
        [[node]]
        name = "a"
        [[node]]
        name = "r"
        kind = "router"
        [[node]]
        name = "b"
        [[link]]
        name = "access"
        from = "a"
        to = "r"
        rate = "1 Gbit/s"
        delay = "1 ms"
        queue = "10000 packets"
        [[link]]
        name = "bottleneck"
        from = "r"
        to = "b"
        rate = "{rate}"
        delay = "19 ms"
        queue = "1000 packets"
        discipline = {discipline}
        [[transfer]]
        name = "flow{{i}}"
        count = {flows}
        kind = "tcp"
        from = "a"
        to = "b"
        [probe.queue]
        kind = "queues"
        nodes = "r"
        to = "b"
        from = "5 s"
        {more}
        "#
    );
    let scenario = Source::new("bottleneck.toml", text).scenario().unwrap_or_else(|error| panic!("{error}"));
    scenario.run(1, 0, &BTreeMap::new()).unwrap().1
}

/// The bottleneck at 10 Mbit/s with CUBIC.
fn bottleneck(flows: u32, discipline: &str, ecn: &str) -> Metrics {
    let tcp = format!("congestion = \"cubic\"\necn = \"{ecn}\"");
    bottleneck_of("10 Mbit/s", flows, discipline, &tcp, "")
}

/// Mean of the flows' last smoothed round trips in seconds, and the total rate in bit/s.
fn seen(metrics: &Metrics, flows: u32) -> (f64, f64) {
    let of = |name: &str| -> f64 {
        (1..=flows).map(|i| figure(metrics, &format!("transfer.flow{i}.{name}"))).sum()
    };
    (of("srtt_s") / f64::from(flows), of("goodput_bit_per_s"))
}

/// A metric of a run.
fn figure(metrics: &Metrics, name: &str) -> f64 {
    metrics[name].value.unwrap_or_else(|| panic!("{name} has no value"))
}

#[test]
fn codel_keeps_the_queue_short_and_the_link_busy() {
    for flows in [1, 4, 16] {
        let (long, full) = seen(&bottleneck(flows, "\"drop-tail\"", "off"), flows);
        let metrics = bottleneck(flows, "\"codel\"", "off");
        let (short, goodput) = seen(&metrics, flows);
        assert!(long > 0.3, "{flows} flows fill a queue that drops from its tail: {long} s");
        assert!(short < 0.04 + 0.03, "{flows} flows: {short} s");
        assert!(goodput > 0.9 * full && goodput > 8.5e6, "{flows} flows: {goodput} bit/s of {full}");
        assert!(metrics["link.r>b.dropped_early"].value > Some(0.0));
        assert_eq!(metrics["link.r>b.ecn_marked"].value, Some(0.0));
        assert_eq!(metrics["link.b>r.dropped_early"].value, Some(0.0), "the way back is idle");
    }
}

#[test]
fn codel_drops_nothing_of_flows_that_understand_marks() {
    let metrics = bottleneck(4, "\"codel\"", "request");
    let (srtt, goodput) = seen(&metrics, 4);
    assert!(srtt < 0.07 && goodput > 8.5e6, "{srtt} s, {goodput} bit/s");
    assert_eq!(metrics["link.r>b.dropped_early"].value, Some(0.0));
    assert!(metrics["link.r>b.ecn_marked"].value > Some(10.0));
    let again: f64 =
        (1..=4).map(|i| metrics[&format!("transfer.flow{i}.retransmissions")].value.unwrap()).sum();
    assert_eq!(again, 0.0);
}

#[test]
fn options_of_a_discipline_count() {
    let word = bottleneck(2, "\"codel\"", "off");
    let table = bottleneck(2, "{ codel = { target = \"5 ms\", interval = \"100 ms\" } }", "off");
    assert_eq!(word, table, "a word alone has the defaults");
    let (lazy, _) = seen(&bottleneck(2, "{ codel = { target = \"50 ms\" } }", "off"), 2);
    assert!(lazy > seen(&word, 2).0 + 0.02, "{lazy} s");
}

#[test]
fn a_discipline_can_be_chosen_from_outside_and_for_one_direction() {
    let text = "[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n[[link]]\nname = \"l\"\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n";
    let read = |set: &str| Source::new("a.toml", text).set(set).scenario();
    let codel = read("link.l.discipline=codel").unwrap();
    assert!(
        codel.links.iter().all(|link| link.config.discipline == DisciplineConfig::Codel(Default::default()))
    );
    let back = read("link.l.back.discipline.codel.target=7 ms").unwrap();
    assert_eq!(back.links[0].config.discipline, DisciplineConfig::DropTail);
    let again = Source::new("again.toml", back.to_toml()).scenario().unwrap();
    assert_eq!(again.links, back.links, "what was understood can be read again");
    for (set, message) in [
        (
            "link.l.discipline=coddle",
            "unknown word `coddle`, expected one of `drop-tail`, `codel`, `fq-codel`, `pie`, `red`",
        ),
        ("link.l.discipline.codel.taget=7 ms", "unknown key `taget`"),
        ("link.l.discipline.codel.target=0 s", "must not wait at all"),
        ("link.l.discipline.red.min=15 packets", "`max`: expected more than `min`"),
        ("link.l.discipline.red.min=5 kB", "`max`: expected the unit of `min`"),
        (
            "link.l.discipline={ red = { min = \"100 packets\", max = \"300 packets\" } }",
            "`min`: expected less than the link's `queue`",
        ),
        ("link.l.discipline.red.probability=0", "`probability`: expected more than 0"),
        ("link.l.discipline.red.weight=1", "`weight`: expected more than 0 and less than 1"),
        ("link.l.discipline.red.mean_packet=0 B", "`mean_packet`: expected 1 B"),
        ("link.l.discipline.pie.target=0 s", "must not wait at all"),
        ("link.l.discipline.pie.interval=1 h", "`interval`: expected 100 µs to 10 s"),
        ("link.l.discipline.pie.alpha=0", "`alpha`: expected more than 0"),
        ("link.l.discipline.pie.beta=-1", "`beta`: expected 0 to 1000"),
        ("link.l.discipline.pie.mark_up_to=2", "2 is not a probability"),
        ("link.l.discipline.fq-codel.flows=0", "`flows`: expected 1 to 65,536"),
        ("link.l.discipline.fq-codel.quantum=0 B", "`quantum`: expected 1 B"),
        ("link.l.discipline.fq-codel.target=1 s", "expected more than `target`"),
        ("link.l.discipline.codel.target=1 s", "expected more than `target`"),
        ("link.l.discipline=5", "expected a word, or a table"),
        ("link.l.discipline={ codel = { }, interval = 5 }", "options belong into the table of the word"),
    ] {
        let error = read(set).expect_err(set).to_string();
        assert!(error.contains(message), "{set}: {error}");
    }
    let both =
        Source::new("a.toml", text).set("link.l.discipline=codel").set("link.l.ecn_threshold=20 packets");
    let error = both.scenario().expect_err("two ways of marking").to_string();
    assert!(error.contains("`ecn_threshold` beside a `discipline`"), "{error}");
}

#[test]
fn a_word_and_its_table_are_set_alike() {
    let text = "[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n[[link]]\nname = \"l\"\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n";
    let read = |more: &str, set: &str| Source::new("a.toml", format!("{text}{more}")).set(set).scenario();
    let target = |scenario: &Scenario, link: usize| match scenario.links[link].config.discipline {
        DisciplineConfig::Codel(config) => Some(config.target.0),
        _ => None,
    };
    let word = read("discipline = \"codel\"\n", "link.*.discipline.codel.target=7 ms").unwrap();
    assert_eq!(target(&word, 0), Some(Duration::from_millis(7)));
    let error =
        read("discipline = \"drop-tail\"\n", "link.l.discipline.codel.target=7 ms").unwrap_err().to_string();
    assert!(error.contains("it is `drop-tail` now"), "{error}");
    // A threshold in the file is ignored with another discipline, and applies where none is chosen.
    let marks = "ecn_threshold = \"20 packets\"\n";
    let chosen = read(marks, "link.l.discipline=codel").unwrap();
    assert_eq!((target(&chosen, 0).is_some(), chosen.links[0].config.ecn_threshold), (true, None));
    assert_eq!(Source::new("b.toml", chosen.to_toml()).scenario().unwrap().links, chosen.links);
    let kept = read(marks, "link.l.discipline=drop-tail").unwrap();
    assert!(kept.links[0].config.ecn_threshold.is_some());
    let back = read(&format!("{marks}back = {{ discipline = \"codel\" }}\n"), "seed=2").unwrap();
    assert_eq!((target(&back, 0), target(&back, 1).is_some()), (None, true));
    assert!(back.links[0].config.ecn_threshold.is_some() && back.links[1].config.ecn_threshold.is_none());
}

/// Mean wait at the bottleneck in seconds, and the total rate in bit/s.
fn waited(metrics: &Metrics, flows: u32) -> (f64, f64) {
    (figure(metrics, "probe.queue.wait_mean_s"), seen(metrics, flows).1)
}

#[test]
fn pie_has_packets_wait_for_its_target_whatever_flows_there_are() {
    for (rate, congestion, flows) in [
        ("10 Mbit/s", "newreno", 4),
        ("10 Mbit/s", "cubic", 16),
        ("10 Mbit/s", "cubic", 100),
        ("100 Mbit/s", "newreno", 16),
    ] {
        for millis in [15.0, 40.0] {
            let discipline = format!("{{ pie = {{ target = \"{millis} ms\" }} }}");
            let tcp = format!("congestion = \"{congestion}\"");
            let metrics = bottleneck_of(rate, flows, &discipline, &tcp, "");
            let (wait, goodput) = waited(&metrics, flows);
            let of = format!("{flows} flows of {congestion} at {rate} with {millis} ms");
            assert!((wait * 1e3 / millis - 1.0).abs() < 0.2, "{of}: {wait} s");
            let full: f64 = rate.split(' ').next().unwrap().parse().unwrap();
            assert!(goodput > 0.92e6 * full, "{of}: {goodput} bit/s");
        }
    }
}

/// With a mean queue that is long enough to be steady, the fraction of packets that RED drops
/// follows from its mean queue, and TCP's rate from this fraction: Mathis et al., "The macroscopic
/// behavior of the TCP congestion avoidance algorithm", 1997, with an acknowledgement for each
/// segment.
#[test]
fn the_mean_queue_of_red_is_where_its_drops_and_tcp_agree() {
    for flows in [8, 16] {
        let discipline =
            "{ red = { min = \"20 packets\", max = \"220 packets\", probability = 0.1, weight = 0.0005 } }";
        let tcp = "congestion = \"newreno\"\necn = \"off\"\ndelayed_ack = \"off\"\nreceive_buffer = \"4 MiB\"\nwindow_scale = 8";
        let metrics = bottleneck_of("30 Mbit/s", flows, discipline, tcp, "");
        let queue = figure(&metrics, "probe.queue.queue_mean_packets");
        let share = 0.1 * (queue - 20.0) / 200.0;
        // Between two drops are 1 to 1/share packets, all equally likely.
        let expected = 2.0 * share / (1.0 + share);
        let drops = figure(&metrics, "link.r>b.dropped_early");
        let dropped = drops / (drops + figure(&metrics, "link.r>b.packets"));
        assert!((dropped / expected - 1.0).abs() < 0.2, "{flows}: {dropped} instead of {expected}");
        let round_trip = 0.04 + figure(&metrics, "probe.queue.wait_mean_s");
        let mathis = f64::from(flows) * 1440.0 * 8.0 / round_trip * (1.5 / dropped).sqrt();
        let goodput = waited(&metrics, flows).1;
        assert!((goodput / mathis - 1.0).abs() < 0.25, "{flows}: {goodput} instead of {mathis} bit/s");
    }
}

/// A call of 64 kbit/s next to eight unlimited transfers.
fn beside_bulk(discipline: &str) -> Metrics {
    let call = r#"
        [[traffic]]
        name = "call"
        kind = "cbr"
        from = "a"
        to = "b"
        payload = "200 B"
        rate = "64 kbit/s"
        start = "2 s"
        stop = "19 s"
        "#;
    bottleneck_of("10 Mbit/s", 8, discipline, "congestion = \"cubic\"", call)
}

#[test]
fn fq_codel_lets_a_call_pass_by_eight_transfers() {
    // 20 ms on the path, and 1.4 ms each for its own packets and for the one in transmission.
    let alone = |metrics: &Metrics| figure(metrics, "traffic.call.delay_p95_s") - 0.02;
    let metrics = beside_bulk("\"fq-codel\"");
    assert!(alone(&metrics) < 0.01, "{} s", alone(&metrics));
    assert_eq!(figure(&metrics, "traffic.call.delivery_ratio"), 1.0);
    assert!(seen(&metrics, 8).1 > 9e6);
    let [shared, full] = ["\"codel\"", "\"drop-tail\""].map(|discipline| alone(&beside_bulk(discipline)));
    assert!(shared > 0.015 && full > 0.5, "{shared} s, {full} s");
    // In a common queue the call is treated like the other flows.
    let one = alone(&beside_bulk("{ fq-codel = { flows = 1 } }"));
    assert!((one / shared - 1.0).abs() < 0.2, "{one} s");
}

#[test]
fn every_discipline_marks_what_it_would_drop() {
    for discipline in ["codel", "fq-codel", "pie", "red"] {
        for congestion in ["newreno", "cubic"] {
            let run = |ecn: &str| {
                let tcp = format!("congestion = \"{congestion}\"\necn = \"{ecn}\"");
                bottleneck_of("10 Mbit/s", 4, &format!("\"{discipline}\""), &tcp, "")
            };
            let (dropping, marking) = (run("off"), run("request"));
            let of = |metrics: &Metrics, what: &str| figure(metrics, &format!("link.r>b.{what}"));
            let name = format!("{discipline}, {congestion}");
            assert_eq!(of(&dropping, "ecn_marked"), 0.0, "{name}");
            assert!(of(&dropping, "dropped_early") > 100.0, "{name}");
            assert!(of(&marking, "ecn_marked") > 100.0, "{name}");
            // At the start of the flows PIE and RED have probabilities at which RFC 8033 and RFC
            // 3168 require drops.
            match discipline {
                "codel" | "fq-codel" => assert_eq!(of(&marking, "dropped_early"), 0.0, "{name}"),
                _ => assert!(of(&marking, "dropped_early") < of(&dropping, "dropped_early"), "{name}"),
            }
        }
    }
}

/// Packets of one link: those reported as sent, and those then reported as refused by a full queue.
#[derive(Default)]
struct Fates {
    sent: std::collections::BTreeSet<u64>,
    taken_back: u32,
    refused: u32,
}

impl anabranch_sim::trace::Observer for Fates {
    fn on_packet(
        &mut self,
        _: Instant,
        link: anabranch_sim::packet::LinkId,
        point: Point,
        packet: &anabranch_sim::packet::Packet,
    ) {
        // From r to b.
        if link.0 != 2 {
            return;
        }
        match point {
            Point::Sent => drop(self.sent.insert(packet.id)),
            Point::Dropped(LinkDrop::QueueFull) => {
                self.refused += 1;
                self.taken_back += u32::from(self.sent.contains(&packet.id));
            }
            _ => {}
        }
    }
}

/// A packet refused by a full queue is neither marked nor reported as sent; only FQ-CoDel drops
/// packets that it has accepted.
#[test]
fn what_is_refused_was_never_sent() {
    for (discipline, takes_back) in [
        ("drop-tail", false),
        ("codel", false),
        ("pie", false),
        ("{ red = { min = \"2 packets\", max = \"8 packets\", weight = 0.2 } }", false),
        ("fq-codel", true),
    ] {
        let text = include_str!("../../../../scenarios/dumbbell.toml");
        let source = Source::new("dumbbell.toml", text)
            .set("flows=8")
            .set("ecn=request")
            .set("stop=12 s")
            .set("traffic.call.stop=11 s")
            .set("link.bottleneck.queue=8 packets")
            .set(format!("queue={discipline}"));
        let scenario = source.scenario().unwrap_or_else(|error| panic!("{error}"));
        let Plan { builder, planned } = scenario.plan(1, 0, &BTreeMap::new()).unwrap();
        let mut sim = builder.build();
        sim.observe(Fates::default());
        sim.run_until(scenario.stop);
        let metrics = scenario.metrics(&planned, &sim);
        let fates = sim.take_observer::<Fates>().unwrap();
        assert!(fates.refused > 50, "{discipline}: {}", fates.refused);
        assert_eq!(fates.taken_back > 0, takes_back, "{discipline}");
        let of = |name: &str| figure(&metrics, &format!("link.router>receivers.{name}"));
        let marked = if discipline == "drop-tail" { 0.0 } else { of("ecn_marked") };
        assert!(marked <= of("packets") + 9.0, "{discipline}");
    }
}
