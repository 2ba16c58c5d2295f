use super::*;
use std::collections::BTreeMap;

use crate::record::Metrics;
use crate::{Plan, Planned, Scenario, Source};
use anabranch_sim::sim::Simulation;

/// Flows over a bottleneck whose rate falls and which goes down for a while. Returns the tables and
/// the metrics of a run.
fn run(discipline: &str, every: Duration) -> (Vec<Row>, Vec<Row>, Metrics) {
    let text = format!(
        r#"
        stop = "8 s"
        [tcp.default]
        ecn = "off"
        [[node]]
        name = "a"
        [[node]]
        name = "r, the router"
        kind = "router"
        [[node]]
        name = "b"
        [[link]]
        from = "a"
        to = "r, the router"
        rate = "100 Mbit/s"
        delay = "1 ms"
        [[link]]
        name = "bottleneck"
        from = "r, the router"
        to = "b"
        rate = "5 Mbit/s"
        delay = "20 ms"
        queue = "60 packets"
        discipline = "{discipline}"
        [[event]]
        at = "3 s"
        action = "set-rate"
        from = "r, the router"
        to = "b"
        rate = "1 Mbit/s"
        [[event]]
        at = "4.0003 s"
        action = "link-down"
        from = "r, the router"
        to = "b"
        [[event]]
        at = "4.5 s"
        action = "link-up"
        from = "r, the router"
        to = "b"
        [[transfer]]
        name = "flow{{i}}"
        count = 2
        kind = "tcp"
        from = "a"
        to = "b"
        "#
    );
    let scenario = Source::new("series.toml", text).scenario().unwrap_or_else(|error| panic!("{error}"));
    let Plan { builder, planned } = scenario.plan(1, 0, &BTreeMap::new()).unwrap();
    let mut sim = builder.build();
    let [connections, queues, ..] = series(&scenario, &planned, &mut sim, every);
    (connections, queues, scenario.metrics(&planned, &sim))
}

/// Runs a simulation and reads its tables; with rows at each change if the interval is zero.
fn series(
    scenario: &Scenario,
    planned: &Planned,
    sim: &mut Simulation,
    every: Duration,
) -> [Vec<Row>; TABLES.len()] {
    let csv = Csv::new([const { Some(Vec::new()) }; TABLES.len()]);
    let csv = if every.is_zero() {
        sim.observe(Changes::new(csv));
        sim.run_until(scenario.stop);
        let end = sim.now();
        let mut csv = sim.take_observer::<Changes<Csv<Vec<u8>>>>().unwrap().finish(end);
        flows(sim, scenario.stop, &mut csv);
        csv
    } else {
        let mut sampler = Sampler::new(csv, every, scenario, planned, sim);
        sampler.run_until(sim, scenario.stop);
        sampler.finish(sim)
    };
    csv.finish().unwrap().map(|table| rows(&table.unwrap()))
}

type Row = BTreeMap<String, String>;

fn rows(table: &[u8]) -> Vec<Row> {
    let text = std::str::from_utf8(table).unwrap();
    let fields = |line: &str| -> Vec<String> {
        let mut fields = vec![String::new()];
        let mut is_quoted = false;
        for c in line.chars() {
            match c {
                '"' => is_quoted = !is_quoted,
                ',' if !is_quoted => fields.push(String::new()),
                c => fields.last_mut().unwrap().push(c),
            }
        }
        fields
    };
    let mut lines = text.lines();
    let head = fields(lines.next().unwrap());
    lines
        .map(|line| {
            let row = fields(line);
            assert_eq!(row.len(), head.len(), "{line}");
            head.iter().cloned().zip(row).collect()
        })
        .collect()
}

fn number(row: &Row, name: &str) -> f64 {
    row[name].parse().unwrap_or_else(|_| panic!("{name} of {row:?}"))
}

const DISCIPLINES: [&str; 5] = ["drop-tail", "red", "codel", "pie", "fq-codel"];

#[test]
fn the_queue_of_the_series_is_that_of_the_metrics() {
    for discipline in DISCIPLINES {
        let (_, queues, metrics) = run(discipline, Duration::ZERO);
        let of: Vec<&Row> = queues.iter().filter(|row| row["link"] == "r, the router>b").collect();
        let most = |name| of.iter().map(|row| number(row, name)).fold(0.0, f64::max);
        let metric = |name: &str| {
            metrics.get(&format!("link.r, the router>b.{name}")).map_or(0.0, |m| m.value.unwrap())
        };
        // A queue that accepts a packet and drops another at the same time is never seen with both.
        let peak = metric("queue_peak_packets");
        assert!(
            peak - most("packets") <= if discipline == "fq-codel" { 1.0 } else { 0.0 },
            "{discipline}: {peak}"
        );
        assert!(
            most("bytes") <= metric("queue_peak_bytes") && most("bytes") > 0.9 * metric("queue_peak_bytes")
        );
        let dropped = metric("dropped_queue_full") + metric("dropped_early");
        assert_eq!(most("dropped"), dropped, "{discipline}");
        assert!(dropped > 0.0, "{discipline}");
        let times: Vec<f64> = of.iter().map(|row| number(row, "time_s")).collect();
        assert!(
            times.windows(2).all(|pair| pair[0] < pair[1]),
            "{discipline}: one row for an instant, in order"
        );
        // While the link is down nothing waits.
        let down = of.iter().rfind(|row| number(row, "time_s") < 4.49).unwrap();
        assert_eq!((number(down, "packets"), number(down, "bytes")), (0.0, 0.0), "{discipline}");
        assert!(
            of.windows(2).all(|pair| {
                ["packets", "bytes", "dropped"].iter().any(|name| pair[0][*name] != pair[1][*name])
            }),
            "{discipline}: a row is a change"
        );
    }
}

#[test]
fn connections_end_as_the_metrics_say() {
    let (connections, _, metrics) = run("drop-tail", Duration::ZERO);
    for flow in ["flow1", "flow2"] {
        let metric = |name: &str| metrics[&format!("transfer.{flow}.{name}")].value.unwrap();
        let ends: Vec<&Row> = last_rows(&connections);
        let end = ends.iter().find(|row| {
            row["node"] == "a"
                && (number(row, "srtt_s") - metric("srtt_s")).abs() < 1e-12
                && number(row, "retransmissions") == metric("retransmissions")
        });
        let end = end.unwrap_or_else(|| panic!("{flow}: {ends:?}"));
        assert!(number(end, "sent_bytes") > number(end, "acked_bytes") && number(end, "rto_s") >= 0.2);
        let far = ends.iter().find(|row| row["node"] == "b" && row["peer_port"] == end["port"]).unwrap();
        assert_eq!(number(far, "received_bytes"), metric("delivered_bytes"), "{flow}");
    }
}

/// The last row of each connection.
fn last_rows(rows: &[Row]) -> Vec<&Row> {
    let key = |row: &Row| (row["node"].clone(), row["port"].clone(), row["peer_port"].clone());
    let mut last: BTreeMap<_, &Row> = BTreeMap::new();
    for row in rows {
        last.insert(key(row), row);
    }
    last.into_values().collect()
}

/// Rows at an interval have the state at its multiples.
#[test]
fn rows_at_an_interval_are_what_stands_then() {
    for discipline in ["drop-tail", "codel"] {
        let (all, all_queues, _) = run(discipline, Duration::ZERO);
        let (few, few_queues, _) = run(discipline, Duration::from_millis(50));
        for (every, some, name) in [(&all, &few, "acked_bytes"), (&all_queues, &few_queues, "packets")] {
            assert!(some.len() * 3 < every.len(), "{discipline}: {} of {}", some.len(), every.len());
            let same = |a: &Row, b: &Row| {
                ["link", "node", "port", "peer_port"].iter().all(|key| a.get(*key) == b.get(*key))
            };
            // A queue is empty at the start, which is no change.
            for row in some.iter().filter(|row| number(row, "time_s") > 0.0) {
                let at = number(row, "time_s");
                assert!(at == 8.0 || (at / 0.05 - (at / 0.05).round()).abs() < 1e-9, "{at}");
                let then =
                    every.iter().filter(|other| same(row, other) && number(other, "time_s") <= at + 1e-12);
                let then = then
                    .max_by(|a, b| number(a, "time_s").total_cmp(&number(b, "time_s")))
                    .unwrap_or_else(|| panic!("{row:?}"));
                assert_eq!(row[name], then[name], "{discipline} at {at}");
            }
        }
    }
}

#[test]
fn no_row_is_later_than_the_run() {
    for every in [0, 300, 7000, 20_000] {
        let (connections, queues, _) = run("pie", Duration::from_millis(every));
        assert!(connections.iter().chain(&queues).all(|row| number(row, "time_s") <= 8.0), "{every}");
    }
}

/// A radio has the queue of its MAC, and a cable between the same nodes has its own.
#[test]
fn links_over_the_air_are_no_queues() {
    let text = include_str!("../../../../scenarios/wifi-cell.toml");
    let scenario = Source::new("wifi-cell.toml", text)
        .set("stop=5 s")
        .scenario()
        .unwrap_or_else(|error| panic!("{error}"));
    for every in [0, 100] {
        let Plan { builder, planned } = scenario.plan(1, 0, &BTreeMap::new()).unwrap();
        let [_, queues, radios, ..] =
            series(&scenario, &planned, &mut builder.build(), Duration::from_millis(every));
        assert!(queues.is_empty());
        assert_eq!(radios.is_empty(), every == 0);
    }
}

#[test]
fn a_writer_that_fails_is_told_of_at_the_end() {
    #[derive(Debug)]
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(octets.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(octets.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    for room in 0..TABLES.len() {
        let out = |table| Full(if table == room { 10 } else { 1000 });
        let csv = Csv::new(std::array::from_fn(|table| Some(out(table))));
        assert_eq!(csv.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}

/// The energy of each state, and the packets of RDCA senders, end with the values of the metrics.
#[test]
fn radios_and_senders_end_as_the_metrics_say() {
    let text = include_str!("../../../../scenarios/papers/rdca.toml");
    let scenario = Source::new("rdca.toml", text).set("stop=12 s").set("traffic.event.stop=11 s").scenario();
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    let Plan { builder, planned } = scenario.plan(1, 0, &BTreeMap::new()).unwrap();
    let mut sim = builder.build();
    let [_, _, radios, senders, ..] = series(&scenario, &planned, &mut sim, Duration::from_millis(700));
    let metrics = scenario.metrics(&planned, &sim);
    for node in ["n1", "n50"] {
        let rows: Vec<&Row> = radios.iter().filter(|row| row["node"] == node).collect();
        assert!(rows.len() > 5, "{}", rows.len());
        let joules = |row: &Row| -> Vec<f64> {
            ["transmit", "receive", "listen", "off"].map(|state| number(row, &format!("{state}_j"))).into()
        };
        assert!(rows.is_sorted_by(|a, b| joules(a).iter().zip(joules(b)).all(|(a, b)| *a <= b)), "{node}");
        let metric = metrics[&format!("wifi.{node}.energy_j")].value.unwrap();
        let sum: f64 = joules(rows[rows.len() - 1]).iter().sum();
        assert!((sum - metric).abs() < 1e-9 && metric > 0.0, "{node}: {sum} {metric}");
    }
    let last = senders.last().unwrap();
    assert_eq!(last["traffic"], "event");
    assert_eq!(number(last, "made_packets"), metrics["traffic.event.packets_made"].value.unwrap());
    assert!(number(last, "rate_bytes_per_s") > 0.0 && number(last, "rtt_s") > 0.0);
}

/// Sampling does not change the run.
#[test]
fn looking_changes_nothing() {
    for (text, file) in [
        (include_str!("../../../../scenarios/papers/mptcp.toml"), "mptcp.toml"),
        (include_str!("../../../../scenarios/dumbbell.toml"), "dumbbell.toml"),
        (include_str!("../../../../scenarios/three-gateways.toml"), "three-gateways.toml"),
    ] {
        let scenario = Source::new(file, text).set("stop=70 s").scenario();
        let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
        let (_, alone) = scenario.run(1, 0, &BTreeMap::new()).unwrap();
        for every in [0, 10] {
            let Plan { builder, planned } = scenario.plan(1, 0, &BTreeMap::new()).unwrap();
            let mut sim = builder.build();
            series(&scenario, &planned, &mut sim, Duration::from_millis(every));
            assert_eq!(scenario.metrics(&planned, &sim), alone, "{file} at {every} ms");
        }
    }
}

/// A node that walks 2 m/s to the east and turns north after 10 s, and one that does not move.
#[test]
fn positions_are_where_the_movements_have_the_nodes() {
    let text = r#"
        stop = "30 s"
        [radio]
        range = 100
        [paths]
        root = "root"
        [[node]]
        name = "root"
        kind = "router"
        position = [0, 0]
        [[node]]
        name = "walker"
        kind = "node"
        mobility = { setdest = "walk.tcl" }
    "#;
    let walk = "$node_(0) set X_ 10\n$node_(0) set Y_ 5\n$ns_ at 0.0 \"$node_(0) setdest 30 5 2\"\n\
                $ns_ at 10.0 \"$node_(0) setdest 30 25 4\"\n";
    let scenario = Source::new("walk.toml", text).with_texts(move |_| Ok(walk.to_owned())).scenario();
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    for every in [100, 1000] {
        let Plan { builder, planned } = scenario.plan(1, 0, &BTreeMap::new()).unwrap();
        let mut sim = builder.build();
        let [.., positions] = series(&scenario, &planned, &mut sim, Duration::from_millis(every));
        assert!(positions.iter().all(|row| row["node"] == "walker"));
        // From 0 to 15 s, when it stops.
        assert_eq!(positions.len() as u64, 15_000 / every + 1);
        for row in &positions {
            let t = number(row, "time_s");
            let wanted = if t <= 10.0 { (10.0 + 2.0 * t, 5.0) } else { (30.0, 5.0 + 4.0 * (t - 10.0)) };
            let place = (number(row, "x_m"), number(row, "y_m"));
            assert!((place.0 - wanted.0).abs() < 1e-6 && (place.1 - wanted.1).abs() < 1e-6, "{t}: {place:?}");
        }
    }
    let mobile = include_str!("../../../../scenarios/mobile.toml");
    let scenario = Source::new("mobile.toml", mobile).set("stop=20 s").set("traffic.readings.stop=15 s");
    let scenario = scenario.scenario().unwrap_or_else(|error| panic!("{error}"));
    let (_, alone) = scenario.run(1, 0, &BTreeMap::new()).unwrap();
    let Plan { builder, planned } = scenario.plan(1, 0, &BTreeMap::new()).unwrap();
    let mut sim = builder.build();
    let [.., positions] = series(&scenario, &planned, &mut sim, Duration::from_secs(1));
    assert!(positions.len() > 500, "{}", positions.len());
    assert_eq!(scenario.metrics(&planned, &sim), alone, "looking changes nothing");
}

/// The sampler skips times without events: 3 600 000 000 samples would take an hour.
#[test]
fn silence_costs_nothing() {
    let text = "stop = \"1000 h\"\n[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n\
                [[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n\
                [[transfer]]\nname = \"t\"\nkind = \"tcp\"\nfrom = \"a\"\nto = \"b\"\nbytes = \"100 kB\"\nstart = \"999 h\"\n";
    let scenario = Source::new("silence.toml", text).scenario().unwrap_or_else(|error| panic!("{error}"));
    let Plan { builder, planned } = scenario.plan(1, 0, &BTreeMap::new()).unwrap();
    let [connections, queues, ..] =
        series(&scenario, &planned, &mut builder.build(), Duration::from_millis(1));
    assert!(connections.len() > 100 && queues.len() > 50, "{} {}", connections.len(), queues.len());
    let first = connections.iter().find(|row| row["node"] == "a").unwrap();
    assert!((number(first, "time_s") - 999.0 * 3600.0).abs() < 0.0011, "{first:?}");
}

#[test]
fn flows_have_a_row_each_whatever_is_sampled() {
    let text = r#"
        stop = "20 s"
        [[node]]
        name = "a"
        [[node]]
        name = "b"
        [[link]]
        from = "a"
        to = "b"
        rate = "1 Mbit/s"
        delay = "5 ms"
        [[traffic]]
        name = "cbr"
        kind = "cbr"
        from = "a"
        to = "b"
        port = 700
        payload = "100 B"
        interval = "100 ms"
        packets = 10
        [[transfer]]
        name = "file"
        kind = "tcp"
        from = "b"
        to = "a"
        bytes = "20 kB"
        [probe.all]
        kind = "flows"
        [probe.late]
        kind = "flows"
        from = "500 ms"
        nodes = "a"
    "#;
    let scenario = Source::new("flows.toml", text).scenario().unwrap_or_else(|error| panic!("{error}"));
    let tables = [Duration::ZERO, Duration::from_secs(1)].map(|every| {
        let Plan { builder, planned } = scenario.plan(1, 0, &BTreeMap::new()).unwrap();
        let mut sim = builder.build();
        let [.., flows, _] = series(&scenario, &planned, &mut sim, every);
        (flows, scenario.metrics(&planned, &sim))
    });
    assert_eq!(tables[0].0, tables[1].0);
    let (flows, metrics) = &tables[0];
    let of = |probe: &str, protocol: &str, node: &str| {
        let is_it = |row: &&Row| row["probe"] == probe && row["protocol"] == protocol && row["node"] == node;
        flows.iter().find(is_it).unwrap_or_else(|| panic!("{probe} has no {protocol} from {node}: {flows:?}"))
    };
    let udp = of("all", "udp", "a");
    assert_eq!(
        ["peer", "peer_port", "sent_packets", "payload_bytes"].map(|name| &*udp[name]),
        ["b", "700", "10", "1000"]
    );
    // 20 s, although nothing happens after the first second.
    assert_eq!(number(udp, "goodput_bit_per_s"), 8000.0 / 20.0);
    assert_eq!(number(of("late", "udp", "a"), "sent_packets"), 5.0);
    assert_eq!(number(of("all", "tcp", "b"), "payload_bytes"), 20_000.0);
    assert_eq!(of("all", "tcp", "a")["goodput_bit_per_s"], "", "acknowledgements alone");
    assert!(!flows.iter().any(|row| row["probe"] == "late" && row["node"] == "b"));
    let sum: f64 = flows
        .iter()
        .filter(|row| row["probe"] == "all")
        .filter_map(|row| row["goodput_bit_per_s"].parse::<f64>().ok())
        .sum();
    assert!((sum - metrics["probe.all.goodput_bit_per_s"].value.unwrap()).abs() < 1e-9);
}

#[test]
fn figures_are_written_as_display_writes_them() {
    let written = |figure: f64| {
        let mut text = Vec::new();
        write_figure(&mut text, figure).expect("memory takes it");
        String::from_utf8(text).expect("text")
    };
    let some =
        [0.0, 1.0, -1.0, 0.1, -2.5, 1e-3, 9.99e-4, 1e-7, 123_456.789, 0.1 + 0.2, f64::MAX, f64::EPSILON];
    let edges = [1e14, 1e15, 1e16, 999_999_999_999_999.9, 9_007_199_254_740_993.0, f64::INFINITY, f64::NAN];
    let times = (0..100_000_u32).map(|i| f64::from(i) * 1e-4 + f64::from(i) * 7.3e-9);
    for figure in some.into_iter().chain(edges).chain(times) {
        assert_eq!(written(figure), figure.to_string());
    }
    // The shortest text is not the only one for these, and zero loses its sign.
    let ties = [8_388_608.0 + 1.0 / 1_024.0, 562_949_953_421_312.0 + 0.25, 8.0 + 1.0 / 65_536.0];
    for figure in ties.into_iter().chain([-0.0]) {
        assert_eq!(written(figure).parse(), Ok(figure));
    }
}
