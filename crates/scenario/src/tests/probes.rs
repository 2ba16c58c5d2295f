//! Probes: time windows, and energy by radio state.

use anabranch_core::time::Duration;

use super::*;
use crate::record::Metrics;
use anabranch_sim::frames::AirFrame;
use anabranch_sim::packet::LinkId;
use anabranch_sim::sim::Simulation;
use anabranch_sim::trace::Observer;

/// A line of nodes on the channel, 40 m apart and in range of neighbours only, and one far away on
/// a cable.
fn line(probes: &str) -> Source {
    let nodes = "[[nodes]]\nname = \"n{i}\"\ncount = 4\nplace = { line = { step = [40, 0] } }\n";
    let rest = r#"
        [radio]
        range = "50 m"
        [tcp.default]
        mss = 80
        [[node]]
        name = "far"
        [[link]]
        from = "n4"
        to = "far"
        rate = "1 Mbit/s"
        delay = "5 ms"
        [[transfer]]
        name = "file"
        kind = "tcp"
        from = "n1"
        to = "far"
        bytes = "3 kB"
        start = "2 s"
        [[traffic]]
        name = "readings"
        kind = "cbr"
        from = "n2"
        to = "n3"
        payload = "20 B"
        interval = "500 ms"
        start = "1 s"
        stop = "9 s"
    "#;
    Source::new("line.toml", format!("stop = \"60 s\"\n{nodes}{rest}{probes}"))
}

/// Transmissions: sender, start and end.
#[derive(Default)]
struct OnAir(Vec<(NodeId, Instant, Instant)>);

impl Observer for OnAir {
    fn on_attach_radio(&mut self, _: &[LinkId]) -> bool {
        true
    }

    fn on_frame(&mut self, _: Instant, frame: &AirFrame<'_>) {
        self.0.push((frame.from, frame.start, frame.end));
    }
}

/// Length of the union of intervals within a window.
fn union(mut spans: Vec<(Instant, Instant)>, (from, until): (Instant, Instant)) -> Duration {
    spans.sort();
    let (mut sum, mut reached) = (Duration::ZERO, from);
    for (begin, end) in spans {
        let (begin, end) = (begin.max(reached), end.min(until));
        sum += end.saturating_since(begin);
        reached = reached.max(end);
    }
    sum
}

/// Runs once. Returns the metrics and all frames.
fn run(source: &Source) -> (Metrics, Vec<(NodeId, Instant, Instant)>) {
    let scenario = source.scenario().unwrap_or_else(|error| panic!("{error}"));
    let Plan { builder, planned } = scenario.plan(1, 0, &BTreeMap::new()).unwrap();
    let mut sim = builder.build();
    sim.observe(OnAir::default());
    sim.run_until(scenario.stop);
    let metrics = scenario.metrics(&planned, &sim);
    (metrics, sim.take_observer::<OnAir>().unwrap().0)
}

fn seconds(at: f64) -> Instant {
    Instant::ZERO + Duration::from_nanos((at * 1e9).round() as u64)
}

#[test]
fn the_states_of_a_window_are_what_was_on_air() {
    // Windows end within frames, before all frames, and after all frames.
    for (from, until) in [(0.0, 60.0), (2.0, 3.1), (2.0123, 2.0456), (4.0, 4.001), (30.0, 59.0)] {
        for node in [1, 2, 4] {
            let probe = format!(
                "[probe.p]\nkind = \"energy\"\nnodes = \"n{node}\"\nfrom = \"{from} s\"\nuntil = \"{until} s\"\n"
            );
            let (metrics, frames) = run(&line(&probe));
            let value = |name: &str| metrics[&format!("probe.p.{name}")].value.expect("it was measured");
            let window = (seconds(from), seconds(until));
            // The node `far` is the first.
            let is_own = |from: NodeId| from.index() == node;
            let near = |from: NodeId| from.index().abs_diff(node) == 1;
            let spans = |which: &dyn Fn(NodeId) -> bool| {
                frames.iter().filter(|(from, ..)| which(*from)).map(|(_, a, b)| (*a, *b)).collect::<Vec<_>>()
            };
            let transmit = union(spans(&is_own), window);
            let either = union(spans(&|from| is_own(from) || near(from)), window);
            let whole = window.1.saturating_since(window.0);
            let is = |name: &str, time: Duration| {
                let found = value(name);
                assert!(
                    (found - time.as_secs_f64()).abs() < 1e-9,
                    "{name} of n{node}: {found}, {time:?} on air"
                );
            };
            is("window_s", whole);
            is("transmit_s", transmit);
            is("receive_s", either - transmit);
            is("listen_s", whole - either);
            is("off_s", Duration::ZERO);
            let joules = 0.0522 * transmit.as_secs_f64() + 0.0564 * (whole - transmit).as_secs_f64();
            assert!((value("energy_j") - joules).abs() < 1e-9);
            assert_eq!(value(&format!("n{node}.energy_j")), value("energy_j"));
            let by_state = ["transmit_j", "receive_j", "listen_j", "off_j"].map(&value).iter().sum::<f64>();
            assert!((value("energy_j") - by_state).abs() < 1e-12);
        }
    }
}

#[test]
fn a_window_lasts_as_long_as_what_it_is_named_after() {
    let probes = r#"
        [probe.of-file]
        kind = "energy"
        during = "file"
        [probe.of-readings]
        kind = "energy"
        during = "readings"
        [probe.of-both]
        kind = "energy"
        during = "*"
        [probe.all]
        kind = "energy"
    "#;
    let of = |time_wait: &str| run(&line(probes).set(format!("tcp.default.time_wait={time_wait}"))).0;
    let (short, long) = (of("1 s"), of("50 s"));
    let value = |name: &str| short[name].value.unwrap_or_else(|| panic!("{name} was not measured"));
    // The duration of TIME-WAIT changes neither the energy of the transfer nor that of the run.
    for (name, metric) in short.iter().filter(|(name, _)| name.contains("energy") || name.contains("probe")) {
        assert_eq!(metric.value, long[name].value, "{name}");
    }
    let (file, latency) = (value("probe.of-file.window_s"), value("transfer.file.latency_s"));
    assert!(latency < file && file < latency + 0.2, "{latency} s, and then its acknowledgement: {file} s");
    assert_eq!(value("probe.of-readings.window_s"), 8.0);
    // From the first reading until the file has arrived, which may be later than the last reading.
    assert_eq!(value("probe.of-both.window_s"), f64::max(9.0, 2.0 + file) - 1.0);
    assert_eq!(value("probe.all.window_s"), 60.0);
    let sum: f64 = (1..=4).map(|n| value(&format!("radio.n{n}.energy_j"))).sum();
    assert!((value("probe.all.energy_j") - sum).abs() < 1e-12);
}

#[test]
fn a_transfer_that_does_not_end_is_measured_until_the_end() {
    let probes = "[probe.p]\nkind = \"energy\"\nduring = \"file\"\n";
    let event = "[[event]]\nat = \"2100 ms\"\naction = \"fail-node\"\nnode = \"n3\"\n";
    let (metrics, _) = run(&line(&format!("{probes}{event}")));
    assert_eq!(metrics["transfer.file.delivered"].value, Some(0.0));
    assert_eq!(metrics["probe.p.window_s"].value, Some(58.0));
    assert!((metrics["probe.p.off_s"].value.unwrap() - 57.9).abs() < 1e-9, "n3 is off");
}

#[test]
fn what_never_began_was_not_measured() {
    let probes = "[probe.p]\nkind = \"energy\"\nfrom = \"50 s\"\n";
    let scenario = line(probes).scenario().unwrap();
    let Plan { builder, planned } = scenario.plan(1, 0, &BTreeMap::new()).unwrap();
    let mut sim = builder.build();
    sim.run_until(seconds(20.0));
    let metrics = scenario.metrics_until(&planned, &sim, sim.now());
    let of = |metrics: &Metrics| -> Vec<(String, Option<f64>)> {
        let probe = metrics.iter().filter(|(name, _)| name.starts_with("probe."));
        probe.map(|(name, metric)| (name.clone(), metric.value)).collect()
    };
    let (never, ever) = (of(&metrics), of(&run(&line(probes)).0));
    assert_eq!(never.len(), 14);
    assert!(never.iter().all(|(_, value)| value.is_none()));
    assert!(ever.iter().all(|(_, value)| value.is_some()));
    let names = |figures: &[(String, Option<f64>)]| figures.iter().map(|f| f.0.clone()).collect::<Vec<_>>();
    assert_eq!(names(&never), names(&ever), "a table of many runs has one set of columns");
}

#[test]
fn stepping_and_running_measure_the_same() {
    let scenario = line("[probe.p]\nkind = \"energy\"\nduring = \"*\"\n").scenario().unwrap();
    let start = || {
        let Plan { builder, planned } = scenario.plan(1, 0, &BTreeMap::new()).unwrap();
        (builder.build(), planned)
    };
    let (mut steps, planned) = start();
    while steps.next_event().is_some_and(|at| at <= scenario.stop) {
        steps.step();
    }
    let (mut slices, _) = start();
    for slice in 1..=600 {
        slices.run_until(seconds(f64::from(slice) / 10.0));
    }
    let of = |sim: &Simulation| scenario.metrics_until(&planned, sim, scenario.stop);
    assert_eq!(of(&steps), of(&slices));
}

#[test]
fn other_radios_have_the_same_states() {
    let text = r#"
        stop = "10 s"
        [network]
        ip = 4
        [wifi]
        range = "100 m"
        transmit_w = 2.0
        receive_w = 1.0
        idle_w = 0.5
        [[nodes]]
        name = "n{i}"
        count = 2
        place = { line = { step = [50, 0] } }
        [[transfer]]
        name = "file"
        kind = "tcp"
        from = "n1"
        to = "n2"
        bytes = "20 kB"
        start = "1 s"
        [probe.p]
        kind = "energy"
        during = "file"
    "#;
    let scenario = Source::new("wifi.toml", text).scenario().unwrap_or_else(|error| panic!("{error}"));
    let (_, metrics) = scenario.run(1, 0, &BTreeMap::new()).unwrap();
    let value = |name: &str| metrics[&format!("probe.p.{name}")].value.unwrap();
    let joules = [("transmit", 2.0), ("receive", 1.0), ("listen", 0.5)];
    for (state, watts) in joules {
        let (joules, seconds) = (value(&format!("{state}_j")), value(&format!("{state}_s")));
        assert!(
            seconds > 0.0 && (joules - watts * seconds).abs() < 1e-9,
            "{state}: {joules} J in {seconds} s"
        );
    }
    let all = ["transmit_s", "receive_s", "listen_s", "off_s"].map(value).iter().sum::<f64>();
    assert!((all - 2.0 * value("window_s")).abs() < 1e-9);
    // The energy of a node counts until the end, long after the last event: half a watt for the
    // rest of 10 s.
    let least = 0.5 * (9.0 - value("window_s"));
    assert!(metrics["wifi.n1.energy_j"].value.unwrap() > value("n1.energy_j") + least);
}

#[test]
fn probes_that_cannot_be_are_refused() {
    let error = |probe: &str| line(&format!("[probe.p]\n{probe}")).scenario().expect_err(probe).to_string();
    for (probe, at) in [
        ("kind = \"energy\"\nduring = \"fiel\"", "did you mean `file`?"),
        ("kind = \"energy\"\nduring = \"file\"\nfrom = \"1 s\"", "`during` says when, and so does `from`"),
        ("kind = \"energy\"\nduring = \"file\"\nuntil = \"1 s\"", "`during` says when, and so does `until`"),
        ("kind = \"energy\"\nfrom = \"60 s\"", "the simulation ends at 60 s"),
        ("kind = \"energy\"\nuntil = \"61 s\"", "the simulation ends at 60 s"),
        ("kind = \"energy\"\nfrom = \"5 s\"\nuntil = \"5 s\"", "begins at 5 s and ends before, or then"),
        ("kind = \"energy\"\nnodes = []", "a probe of no nodes"),
        ("kind = \"energy\"\nnodes = \"far\"", "`far` is not on the air"),
        ("kind = \"energy\"\nnodes = [\"n1\", \"n9\"]", "there is no node and no group `n9`"),
        ("kind = \"energy\"\nnodes = \"m*\"", "no node's name is like `m*`"),
        ("kind = \"energy\"\nmedium = \"air\"", "`medium` says which hops of packets count"),
        ("kind = \"packets\"\nmedium = \"water\"", "unknown word `water`"),
        ("kind = \"packets\"\nnodes = []", "hint: remove `nodes` for all nodes"),
        ("kind = \"packets\"\nnodes = \"m*\"", "no node's name is like `m*`"),
        ("kind = \"packets\"\nfrom = \"60 s\"", "the simulation ends at 60 s"),
        ("kind = \"heat\"", "energy"),
        ("during = \"file\"", "kind"),
    ] {
        let error = error(probe);
        assert!(error.contains(at), "{probe}: {error}");
    }
    for name in ["\"\"", "\"p.n1\""] {
        let error =
            line(&format!("[probe.{name}]\nkind = \"energy\"\n")).scenario().expect_err(name).to_string();
        assert!(error.contains("cannot be the name of a probe"), "{name}: {error}");
    }
    let wired = r#"
        [[node]]
        name = "a"
        [[node]]
        name = "b"
        [[link]]
        from = "a"
        to = "b"
        rate = "1 Mbit/s"
        delay = "1 ms"
        [probe.p]
        kind = "energy"
    "#;
    let error = |text: &str| Source::new("wired.toml", text).scenario().expect_err("no radio").to_string();
    assert!(error(wired).contains("no node has a radio whose energy counts"), "{}", error(wired));
    let air = wired.replace("\"energy\"", "\"packets\"\nmedium = \"air\"");
    assert!(error(&air).contains("no node has a radio\n  hint: remove `medium`"), "{}", error(&air));
    let alone = wired
        .split("[[link]]")
        .next()
        .expect("a part")
        .replace("name = \"a\"", "name = \"a\"\nposition = [0, 0]");
    let alone = alone.replace("name = \"b\"", "name = \"b\"\nposition = [9, 0]");
    let cable =
        format!("{alone}[radio]\nrange = \"50 m\"\n[probe.p]\nkind = \"packets\"\nmedium = \"cable\"\n");
    assert!(error(&cable).contains("joined by a cable\n  hint: remove `medium`"), "{}", error(&cable));
}

#[test]
fn windows_of_all_carriers_end_with_their_packets() {
    let probes = "[probe.p]\nkind = \"energy\"\nduring = \"few\"\n";
    let few = "[[traffic]]\nname = \"few\"\nkind = \"cbr\"\nfrom = \"n2\"\nto = \"n3\"\npayload = \"20 B\"\ninterval = \"500 ms\"\nstart = \"10 s\"\npackets = 5\nport = 7000\n";
    for over in ["udp", "tcp", "mptcp", "rdca"] {
        let text = format!("{few}over = \"{over}\"\n{probes}");
        let (metrics, _) = run(&line(&text));
        let value = |name: &str| metrics[name].value.unwrap();
        assert_eq!(value("traffic.few.packets_delivered"), 5.0, "{over}");
        // The last packet is generated 2 s after the first, and arrives immediately.
        let window = value("probe.p.window_s");
        assert!((2.0..3.5).contains(&window), "{over}: {window} s");
        // With a `stop` all transports have the same window.
        let (metrics, _) = run(&line(&format!("{few}over = \"{over}\"\nstop = \"15 s\"\n{probes}")));
        assert_eq!(metrics["probe.p.window_s"].value, Some(5.0), "{over}");
    }
}

#[test]
fn a_window_ends_however_its_transfer_does() {
    let probes = "[probe.p]\nkind = \"energy\"\nduring = \"short\"\n";
    let short = "[[transfer]]\nname = \"short\"\nkind = \"tcp\"\nfrom = \"n1\"\nto = \"n2\"\nstart = \"2 s\"\nstop = \"5 s\"\n";
    let of =
        |events: &str| run(&line(&format!("{short}{probes}{events}"))).0["probe.p.window_s"].value.unwrap();
    let undisturbed = of("");
    // Packets that wait at 5 s are still sent.
    assert!((3.0..58.0).contains(&undisturbed), "{undisturbed} s");
    // The sender fails before the end and recovers after it, when there is nothing left to do.
    let event =
        |at: u32, action: &str| format!("[[event]]\nat = \"{at} s\"\naction = \"{action}\"\nnode = \"n1\"\n");
    let failed = of(&[event(4, "fail-node"), event(6, "recover-node")].concat());
    assert_eq!(failed, 4.0, "from 2 s until it is back");
    // The pool has no room for the connection, which is refused immediately.
    let pool = "[buffers.none]\nmemory = \"1 B\"\n[[node]]\nname = \"extra\"\nkind = \"node\"\nposition = [0, 30]\nbuffers = \"none\"\n";
    let refused = "[[transfer]]\nname = \"refused\"\nkind = \"tcp\"\nfrom = \"extra\"\nto = \"n1\"\nbytes = \"1 kB\"\nstart = \"2 s\"\n";
    let probe = probes.replace("short", "refused");
    let (metrics, _) = run(&line(&format!("{pool}{refused}{probe}")));
    assert_eq!(metrics["probe.p.window_s"].value, Some(0.0));
}

#[test]
fn groups_that_are_drawn_have_the_same_figures_in_every_run() {
    let text = r#"
        stop = "10 s"
        [radio]
        range = "80 m"
        [[node]]
        name = "sink"
        kind = "node"
        position = [0, 0]
        [[nodes]]
        name = "n{i}"
        count = 8
        place = { random = { width = "100 m", height = "100 m" } }
        [deployment]
        connected = false
        [group.some]
        random = { count = 2 }
        [probe.p]
        kind = "energy"
        nodes = "some"
    "#;
    let scenario = Source::new("group.toml", text).scenario().unwrap_or_else(|error| panic!("{error}"));
    let names = |run| {
        let (_, metrics) = scenario.run(1, run, &BTreeMap::new()).unwrap();
        metrics.into_keys().filter(|name| name.starts_with("probe.")).collect::<Vec<_>>()
    };
    let first = names(0);
    assert_eq!(first.len(), 10);
    assert!((1..6).all(|run| names(run) == first));
}

#[test]
fn a_radio_that_is_off_receives_nothing() {
    let event =
        |at: &str, action: &str| format!("[[event]]\nat = \"{at}\"\naction = \"{action}\"\nnode = \"n2\"\n");
    let events = [event("2050 ms", "fail-node"), event("2400 ms", "recover-node")].concat();
    let probes = "[probe.p]\nkind = \"energy\"\nnodes = \"n2\"\n[probe.out]\nkind = \"energy\"\nnodes = \"n2\"\nfrom = \"2050 ms\"\nuntil = \"2400 ms\"\n";
    let (metrics, frames) = run(&line(&format!("{probes}{events}")));
    let value = |name: &str| metrics[name].value.unwrap();
    let heard: Vec<(Instant, Instant)> =
        frames.iter().filter(|(from, ..)| from.index().abs_diff(2) <= 1).map(|(_, a, b)| (*a, *b)).collect();
    let own: Vec<(Instant, Instant)> =
        frames.iter().filter(|(from, ..)| from.index() == 2).map(|(_, a, b)| (*a, *b)).collect();
    let on = [(seconds(0.0), seconds(2.05)), (seconds(2.4), seconds(60.0))];
    let sum = |spans: &[(Instant, Instant)]| {
        on.iter().map(|window| union(spans.to_vec(), *window).as_secs_f64()).sum::<f64>()
    };
    let transmit = sum(&own);
    assert!((value("probe.p.transmit_s") - transmit).abs() < 1e-9);
    assert!((value("probe.p.receive_s") - (sum(&heard) - transmit)).abs() < 1e-9);
    assert!((value("probe.p.off_s") - 0.35).abs() < 1e-9);
    assert!(union(heard, (seconds(2.05), seconds(2.4))) > Duration::ZERO, "there was something to hear");
    assert_eq!((value("probe.out.receive_s"), value("probe.out.listen_s")), (0.0, 0.0));
}

/// Datagrams of 1000 bytes including headers, as a Poisson process, over a link that takes 1 ms for
/// each.
fn poisson(load: f64, seconds: u32, more: &str) -> Source {
    let interval = 1.0 / load;
    Source::new(
        "poisson.toml",
        format!(
            r#"
            stop = "{seconds} s"
            [[node]]
            name = "a"
            [[node]]
            name = "b"
            [[node]]
            name = "c"
            [[link]]
            from = "a"
            to = "b"
            rate = "8 Mbit/s"
            delay = "1 ms"
            queue = "unlimited"
            [[link]]
            from = "a"
            to = "c"
            rate = "1 Mbit/s"
            delay = "1 ms"
            [[traffic]]
            name = "packets"
            kind = "poisson"
            from = "a"
            to = "b"
            payload = "952 B"
            interval = "{interval} ms"
            [[traffic]]
            name = "others"
            kind = "cbr"
            from = "a"
            to = "c"
            payload = "100 B"
            interval = "100 ms"
            {more}
            "#
        ),
    )
}

/// The wait in an M/D/1 queue is load / (2 (1 - load)) service times (Pollaczek and Khinchine).
#[test]
fn packets_wait_as_in_a_queue_of_poisson_arrivals() {
    for (load, seconds) in [(0.5, 500), (0.8, 2000)] {
        let probe = "[probe.queue]\nkind = \"queues\"\nnodes = \"a\"\nto = \"b\"\n";
        let metrics =
            poisson(load, seconds, probe).scenario().unwrap().run(1, 0, &BTreeMap::new()).unwrap().1;
        let figure = |name: &str| metrics[&format!("probe.queue.{name}")].value.unwrap();
        let expected = 1e-3 * load / (2.0 * (1.0 - load));
        let wait = figure("wait_mean_s");
        assert!((wait / expected - 1.0).abs() < 0.02, "{load}: {wait} s instead of {expected} s");
        let expected = load * expected * 1e3;
        let length = figure("queue_mean_packets");
        assert!((length / expected - 1.0).abs() < 0.02, "{load}: {length} packets instead of {expected}");
        // A packet finds an idle transmitter with the probability that it is idle.
        let median = figure("wait_p50_s");
        assert!(if load > 0.5 { median > 0.0 } else { median < 5e-5 }, "{load}: {median} s");
        assert!(figure("wait_p99_s") > figure("wait_p95_s") && figure("wait_max_s") > figure("wait_p99_s"));
    }
}

#[test]
fn a_probe_of_queues_has_the_cables_and_the_time_that_it_is_of() {
    let probes = r#"
        [probe.all]
        kind = "queues"
        [probe.one]
        kind = "queues"
        to = ["c"]
        [probe.none]
        kind = "queues"
        nodes = ["b", "c"]
        to = "a"
        [probe.early]
        kind = "queues"
        to = "b"
        until = "4 s"
        [probe.late]
        kind = "queues"
        to = "b"
        from = "4 s"
        "#;
    let metrics = poisson(0.5, 10, probes).scenario().unwrap().run(1, 0, &BTreeMap::new()).unwrap().1;
    let value = |name: &str| metrics[&format!("probe.{name}")].value;
    let packets = |name: &str| value(&format!("{name}.packets")).unwrap();
    let delivered = metrics["link.a>b.packets"].value.unwrap() + metrics["link.a>c.packets"].value.unwrap();
    // The last one may still be in flight.
    let about = |packets: f64, expected: f64| (expected..=expected + 1.0).contains(&packets);
    assert!(about(packets("all"), delivered));
    assert!(about(packets("one"), metrics["link.a>c.packets"].value.unwrap()));
    assert_eq!(value("one.wait_max_s"), Some(0.0));
    assert_eq!(
        (packets("none"), value("none.wait_mean_s"), value("none.queue_mean_packets")),
        (0.0, None, Some(0.0))
    );
    assert_eq!(packets("early") + packets("late") + packets("one"), packets("all"));
    assert!((packets("early") / packets("late") - 4.0 / 6.0).abs() < 0.05);
}

#[test]
fn what_a_probe_of_queues_cannot_measure_is_refused() {
    for (probe, message) in [
        ("[probe.p]\nkind = \"queues\"\nto = \"d\"\n", "there is no node"),
        ("[probe.p]\nkind = \"packets\"\nto = \"b\"\n", "`to` says where queues or flows end"),
        ("[probe.p]\nkind = \"queues\"\nmedium = \"cable\"\n", "`medium` says which hops"),
        ("[probe.p]\nkind = \"queues\"\nto = []\n", "a probe of no nodes"),
        (
            "[probe.p]\nkind = \"queues\"\nnodes = \"b\"\nto = \"c\"\n",
            "no cable leads from these nodes to those",
        ),
        (
            "[probe.p]\nkind = \"queues\"\nnodes = \"a\"\nto = \"a\"\n",
            "no cable leads from these nodes to those",
        ),
    ] {
        let error = poisson(0.5, 10, probe).scenario().unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

/// The load is four times the capacity: the queue is soon full, whatever the window, and packets
/// wait for the time of a full queue. Packets that a discipline drops from the head have waited,
/// too.
#[test]
fn a_full_queue_is_full_in_every_window() {
    for (discipline, length) in [("drop-tail", 100.0), ("codel", 100.0), ("fq-codel", 100.0)] {
        for (from, until) in [(5.0, 5.02), (5.0, 6.0), (9.0, 10.0), (0.5, 10.0)] {
            let probe = format!(
                "[probe.queue]\nkind = \"queues\"\nnodes = \"a\"\nto = \"b\"\nfrom = \"{from} s\"\nuntil = \"{until} s\"\n"
            );
            let source = poisson(4.0, 10, &probe)
                .set("link.0.queue=100 packets")
                .set(format!("link.0.discipline={discipline}"));
            let metrics = source.scenario().unwrap().run(1, 0, &BTreeMap::new()).unwrap().1;
            let figure = |name: &str| metrics[&format!("probe.queue.{name}")].value.unwrap();
            let mean = figure("queue_mean_packets");
            let least = if discipline == "fq-codel" { 0.7 } else { 0.97 };
            assert!(mean > least * length && mean <= length, "{discipline} {from} {until}: {mean} packets");
            // A packet of 1 ms leaves in each millisecond.
            let expected = (until - from) * 1e3;
            assert!(
                (figure("packets") - expected).abs() <= 1.0,
                "{discipline} {from} {until}: {}",
                figure("packets")
            );
            if discipline == "drop-tail" {
                assert!((figure("wait_mean_s") / 0.1 - 1.0).abs() < 0.05, "{}", figure("wait_mean_s"));
            }
        }
    }
}

/// Both copies of a duplicated packet count, each with its wait: none for the first, and the
/// first's transmission time for the second.
#[test]
fn a_packet_that_is_there_twice_waits_twice() {
    for discipline in ["drop-tail", "fq-codel", "red"] {
        let text = format!(
            r#"
            stop = "10 s"
            [[node]]
            name = "a"
            [[node]]
            name = "r"
            kind = "router"
            [[node]]
            name = "b"
            [[link]]
            from = "a"
            to = "r"
            rate = "1 Gbit/s"
            delay = "1 ms"
            duplication = 1.0
            [[link]]
            from = "r"
            to = "b"
            rate = "8 Mbit/s"
            delay = "1 ms"
            discipline = "{discipline}"
            [[traffic]]
            kind = "cbr"
            from = "a"
            to = "b"
            payload = "952 B"
            interval = "5 ms"
            stop = "9 s"
            [probe.queue]
            kind = "queues"
            nodes = "r"
            to = "b"
            "#
        );
        let metrics =
            Source::new("twice.toml", text).scenario().unwrap().run(1, 0, &BTreeMap::new()).unwrap().1;
        let figure = |name: &str| metrics[&format!("probe.queue.{name}")].value.unwrap();
        assert_eq!(figure("packets"), metrics["link.r>b.packets"].value.unwrap(), "{discipline}");
        assert_eq!(figure("packets"), 2.0 * 1801.0, "{discipline}");
        assert!((figure("wait_mean_s") - 0.5e-3).abs() < 1e-9, "{discipline}: {}", figure("wait_mean_s"));
        assert!((figure("wait_max_s") - 1e-3).abs() < 1e-9, "{discipline}");
    }
}
