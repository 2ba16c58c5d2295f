//! Probes of flows, compared with closed forms and with the delays of single packets.

use std::collections::BTreeMap;

use super::*;
use crate::record::Metrics;
use anabranch_sim::link::LinkDrop;
use anabranch_sim::packet::{LinkId, NodeId, Packet, Payload};
use anabranch_sim::probe::flows::{FlowFigures, FlowProtocol};
use anabranch_sim::sim::Simulation;
use anabranch_sim::trace::{NodeDrop, Observer, Point};

const PROBE: &str = "[probe.p]\nkind = \"flows\"\n";

/// A cable of 5 ms and 1 Mbit/s from `a` to `b`.
fn cable(link: &str, traffic: &str, more: &str) -> Source {
    let nodes = "[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n";
    let link = format!(
        "[[link]]\nname = \"cable\"\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\n{link}\n"
    );
    Source::new("cable.toml", format!("stop = \"200 s\"\n{nodes}{link}{traffic}{more}"))
}

/// Packets of 100 bytes, 148 with their headers, which take 1.184 ms to transmit.
fn packets(name: &str, count: u32, interval: &str) -> String {
    format!(
        "[[traffic]]\nname = \"{name}\"\nkind = \"cbr\"\nfrom = \"a\"\nto = \"b\"\npayload = \"100 B\"\n\
         interval = \"{interval}\"\npackets = {count}\n"
    )
}

/// Observed packets.
#[derive(Default)]
struct Seen {
    ends: Vec<(NodeId, NodeId)>,
    events: Vec<(Instant, NodeId, NodeId, Point, Packet)>,
    node_drops: Vec<(NodeDrop, Packet)>,
}

impl Observer for Seen {
    fn on_attach(&mut self, _: &[&str], links: &[(NodeId, NodeId)]) {
        self.ends = links.to_vec();
    }

    fn on_packet(&mut self, now: Instant, link: LinkId, point: Point, packet: &Packet) {
        let (from, to) = self.ends[link.index()];
        self.events.push((now, from, to, point, packet.clone()));
    }

    fn on_node_drop(&mut self, _: Instant, _: NodeId, reason: NodeDrop, packet: &Packet) {
        self.node_drops.push((reason, packet.clone()));
    }
}

struct Made {
    metrics: Metrics,
    flows: Vec<FlowFigures>,
    seen: Seen,
}

impl Made {
    fn value(&self, name: &str) -> Option<f64> {
        self.metrics[&format!("probe.p.{name}")].value
    }

    #[track_caller]
    fn is(&self, name: &str, expected: f64, slack: f64) {
        let found = self.value(name).unwrap_or_else(|| panic!("{name} was not measured"));
        assert!((found - expected).abs() <= slack, "{name} is {found}, and not {expected}");
    }
}

fn run(source: &Source, seed: u64) -> Made {
    let scenario = source.scenario().unwrap_or_else(|error| panic!("{error}"));
    let Plan { builder, planned } = scenario.plan(seed, 0, &BTreeMap::new()).unwrap();
    let mut sim: Simulation = builder.build();
    sim.observe(Seen::default());
    sim.run_until(scenario.stop);
    let metrics = scenario.metrics(&planned, &sim);
    let end = sim.now().max(scenario.stop);
    let flows = sim.probes()[0].flows(end, sim.world());
    Made { metrics, flows, seen: sim.take_observer::<Seen>().expect("it was put in") }
}

#[test]
fn on_a_cable_the_delay_is_that_of_transmission_and_propagation() {
    let made = run(&cable("", &packets("cbr", 10, "100 ms"), PROBE), 1);
    made.is("flows", 1.0, 0.0);
    for name in ["sent_packets", "received_packets"] {
        made.is(name, 10.0, 0.0);
    }
    for name in ["sent_bytes", "received_bytes"] {
        made.is(name, 1480.0, 0.0);
    }
    for name in ["delay_mean_s", "delay_p50_s", "delay_p95_s", "delay_p99_s", "delay_max_s"] {
        made.is(name, 0.006_184, 1e-12);
    }
    for name in ["lost_packets", "loss_ratio", "loss_ratio_worst", "jitter_mean_s", "reordered_ratio"] {
        made.is(name, 0.0, 0.0);
    }
    for name in
        ["goodput_bit_per_s", "goodput_min_bit_per_s", "goodput_p50_bit_per_s", "goodput_max_bit_per_s"]
    {
        made.is(name, 8000.0 / 200.0, 1e-9);
    }
    made.is("fairness", 1.0, 0.0);
    let [flow] = &made.flows[..] else { panic!("{:?}", made.flows) };
    assert_eq!((flow.key.src.index(), flow.key.dst.index()), (0, 1));
    assert_eq!((flow.key.protocol, flow.payload_bytes), (FlowProtocol::Udp, 1000));
    // From the first packet until the last has arrived: nine intervals and a delay.
    let throughput = flow.throughput.unwrap();
    assert!((throughput - 1480.0 * 8.0 / 0.906_184).abs() < 1e-6, "{throughput}");
}

#[test]
fn jitter_of_even_delays_is_a_third_of_their_range() {
    // The difference of two uniform numbers from 0 to 1 has an absolute value with mean 1/3 and
    // standard deviation 1/sqrt(18); neighbours share a number.
    let made = run(&cable("jitter = { uniform = \"6 ms\" }", &packets("cbr", 8000, "20 ms"), PROBE), 3);
    let error = 0.006 / f64::sqrt(18.0 * 8000.0);
    made.is("jitter_mean_s", 0.002, 6.0 * error);
    made.is("delay_mean_s", 0.006_184 + 0.003, 6.0 * 0.006 / f64::sqrt(12.0 * 8000.0));
    made.is("delay_p95_s", 0.006_184 + 0.95 * 0.006, 0.000_1);
    made.is("reordered_ratio", 0.0, 0.0);
}

#[test]
fn what_is_lost_is_what_the_channel_loses() {
    let made = run(&cable("loss = 0.1", &packets("cbr", 8000, "20 ms"), PROBE), 2);
    let error = f64::sqrt(0.1 * 0.9 / 8000.0);
    made.is("loss_ratio", 0.1, 5.0 * error);
    let lost = made.metrics["link.a>b.dropped_loss"].value.unwrap();
    made.is("lost_packets", lost, 0.0);
    made.is("received_packets", 8000.0 - lost, 0.0);
}

/// With delays uniform from 0 to 2 T and a packet every T, only the next packet can overtake:
/// `P(D1 > T + D2) = 1/8`.
#[test]
fn an_eighth_is_reordered_where_the_jitter_is_two_intervals() {
    let link = "jitter = { uniform = \"40 ms\", overtaking = true }";
    let made = run(&cable(link, &packets("cbr", 8000, "20 ms"), PROBE), 5);
    made.is("reordered_ratio", 0.125, 6.0 * f64::sqrt(0.125 * 0.875 / 8000.0));
}

/// The metrics computed from a list of all arrivals: the sorted delays, and the reordering by RFC
/// 4737's `NextExp`.
fn by_hand(seen: &Seen, (src, dst): (NodeId, NodeId), wanted: impl Fn(&Packet) -> bool) -> [f64; 6] {
    let counts = |packet: &Packet| packet.src == src && packet.dst == dst && wanted(packet);
    let mut sent: Vec<(u64, Instant)> = Vec::new();
    let mut arrived: Vec<u64> = Vec::new();
    let (mut delays, mut next, mut reordered) = (Vec::new(), 0, 0);
    for (now, _, to, point, packet) in seen.events.iter().filter(|(.., packet)| counts(packet)) {
        let number = sent.iter().position(|(id, _)| *id == packet.id);
        match (point, number) {
            (Point::Sent | Point::Dropped(LinkDrop::QueueFull), None) => sent.push((packet.id, *now)),
            (Point::Received, Some(number)) if *to == dst && !arrived.contains(&packet.id) => {
                arrived.push(packet.id);
                delays.push(now.saturating_since(sent[number].1).as_secs_f64());
                reordered += usize::from(number < next);
                next = next.max(number + 1);
            }
            _ => {}
        }
    }
    let count = delays.len() as f64;
    let jitter: f64 = delays.windows(2).map(|pair| (pair[1] - pair[0]).abs()).sum();
    let mean = delays.iter().sum::<f64>() / count;
    let longest = delays.iter().copied().fold(0.0, f64::max);
    [sent.len() as f64, count, mean, longest, jitter / (count - 1.0), reordered as f64 / count]
}

#[track_caller]
fn alike(flow: &FlowFigures, by_hand: [f64; 6]) {
    let found = [
        Some(flow.sent_packets as f64),
        Some(flow.received_packets as f64),
        flow.delay_mean,
        flow.delay_max,
        flow.jitter_mean,
        flow.reordered_ratio,
    ];
    for (found, expected) in found.into_iter().zip(by_hand) {
        let found = found.expect("packets arrived");
        assert!((found - expected).abs() < 1e-9, "{flow:?} is not {by_hand:?}");
    }
}

#[test]
fn packets_that_overtake_are_lost_and_doubled_are_those_of_a_list() {
    let link = "jitter = { exponential = \"30 ms\", overtaking = true }\nloss = 0.2\nduplication = 0.5\n\
                reordering = 0.1\nqueue = \"5 packets\"";
    // The second flow comes in bursts, parts of which the queue refuses.
    let burst =
        packets("burst", 400, "500 us").replace("[[traffic]]\n", "[[traffic]]\nport = 99\nstart = \"1 s\"\n");
    let made = run(&cable(link, &(packets("cbr", 600, "7 ms") + &burst), PROBE), 7);
    assert_eq!(made.flows.len(), 2);
    assert!(made.metrics["link.a>b.dropped_queue_full"].value.unwrap() > 50.0);
    for flow in &made.flows {
        let is_own = |packet: &Packet| match &packet.payload {
            Payload::Udp(datagram) => datagram.dst_port == flow.key.dst_port,
            _ => false,
        };
        alike(flow, by_hand(&made.seen, (flow.key.src, flow.key.dst), is_own));
        assert!(flow.reordered_ratio.unwrap() > 0.05, "{flow:?}");
        assert_eq!(
            flow.lost_packets,
            flow.sent_packets - flow.received_packets,
            "nothing is under way at last"
        );
    }
    // The source has passed all its packets to the cable, or tried to.
    assert_eq!(made.flows.iter().map(|flow| flow.sent_packets).collect::<Vec<_>>(), [600, 400]);
}

#[test]
fn jains_index_is_that_of_the_rates() {
    let flow = |port: u32, payload: u32| {
        packets("cbr", 100, "100 ms")
            .replace("\"cbr\"\nfrom", &format!("\"cbr\"\nport = {port}\nfrom"))
            .replace("name = \"cbr\"", &format!("name = \"of{port}\""))
            .replace("100 B", &format!("{payload} B"))
    };
    let traffic = flow(1001, 100) + &flow(1003, 200) + &flow(1005, 300);
    let made = run(&cable("", &traffic, PROBE), 1);
    // (1 + 2 + 3)^2 / (3 (1 + 4 + 9))
    made.is("fairness", 36.0 / 42.0, 1e-12);
    for (name, packets) in [("min", 100.0), ("p50", 200.0), ("max", 300.0)] {
        made.is(&format!("goodput_{name}_bit_per_s"), 100.0 * packets * 8.0 / 200.0, 1e-9);
    }
    made.is("goodput_bit_per_s", 100.0 * 600.0 * 8.0 / 200.0, 1e-9);
}

#[test]
fn the_probe_says_whose_flows_and_when() {
    let back = packets("back", 50, "100 ms").replace("from = \"a\"\nto = \"b\"", "from = \"b\"\nto = \"a\"");
    let traffic = packets("forth", 100, "100 ms") + &back;
    for (keys, sent) in [
        ("", [Some(100), Some(50)]),
        ("nodes = \"a\"", [Some(100), None]),
        ("nodes = \"*\"\nto = \"a\"", [None, Some(50)]),
        // The packets of 2.0, 2.1, ... 3.9 s.
        ("from = \"2 s\"\nuntil = \"4 s\"\nnodes = \"a\"", [Some(20), None]),
        ("during = \"back\"", [Some(50), Some(50)]),
        ("from = \"20 s\"", [None, None]),
    ] {
        let made = run(&cable("", &traffic, &format!("{PROBE}{keys}\n")), 1);
        let of = |src: usize| {
            let flow = made.flows.iter().find(|flow| flow.key.src.index() == src);
            flow.map(|flow| flow.sent_packets)
        };
        assert_eq!([of(0), of(1)], sent, "{keys}");
        let names = made.metrics.keys().filter(|name| name.starts_with("probe."));
        assert_eq!(names.count(), 21, "as many for any number of flows");
    }
}

#[test]
fn nothing_received_is_no_division_by_zero() {
    for (link, lost) in [("loss = 1", 10), ("", 0)] {
        let window = if lost == 0 { "from = \"100 s\"\n" } else { "" };
        let made = run(&cable(link, &packets("cbr", 10, "100 ms"), &format!("{PROBE}{window}")), 1);
        assert_eq!(made.value("flows"), Some(f64::from(u8::from(lost > 0))));
        assert_eq!(made.value("received_packets"), Some(0.0));
        assert_eq!(made.value("lost_packets"), Some(f64::from(lost)));
        assert_eq!(made.value("loss_ratio"), (lost > 0).then_some(1.0));
        for name in
            ["delay_mean_s", "delay_p50_s", "delay_max_s", "jitter_mean_s", "reordered_ratio", "fairness"]
        {
            assert_eq!(made.value(name), None, "{name}");
        }
        for flow in &made.flows {
            let none =
                [flow.delay_mean, flow.delay_p99, flow.jitter_mean, flow.reordered_ratio, flow.throughput];
            assert_eq!((none, flow.goodput), ([None; 5], Some(0.0)));
        }
    }
    // Only one packet has a delay, so there is no difference.
    let made = run(&cable("", &packets("cbr", 1, "100 ms"), PROBE), 1);
    assert_eq!((made.value("jitter_mean_s"), made.value("reordered_ratio")), (None, Some(0.0)));
    made.is("delay_mean_s", 0.006_184, 1e-12);
}

#[test]
fn payload_that_tcp_sends_again_counts_once() {
    let transfer =
        "[[transfer]]\nname = \"file\"\nkind = \"tcp\"\nfrom = \"a\"\nto = \"b\"\nbytes = \"300 kB\"\n";
    let link = "loss = 0.03\nduplication = 0.05\njitter = { uniform = \"20 ms\", overtaking = true }";
    let made = run(&cable(link, transfer, PROBE), 4);
    let [data, acks] = &made.flows[..] else { panic!("{:?}", made.flows) };
    assert_eq!(made.metrics["transfer.file.delivered"].value, Some(1.0));
    assert!(made.metrics["transfer.file.retransmissions"].value.unwrap() > 5.0);
    assert_eq!((data.payload_bytes, acks.payload_bytes), (300_000, 0));
    assert_eq!(
        (data.key.protocol, acks.key.src, acks.key.src_port),
        (FlowProtocol::Tcp, data.key.dst, data.key.dst_port)
    );
    let ends = (data.key.src, data.key.dst);
    alike(data, by_hand(&made.seen, ends, |_| true));
    alike(acks, by_hand(&made.seen, (ends.1, ends.0), |_| true));
    // Metrics over all flows leave out the flow of acknowledgements.
    made.is("flows", 1.0, 0.0);
    made.is("sent_packets", data.sent_packets as f64, 0.0);
    assert_eq!((acks.goodput, made.value("fairness")), (None, Some(1.0)));
}

#[test]
fn a_packet_that_is_cut_is_one() {
    let traffic = packets("cbr", 500, "100 ms").replace("100 B", "1000 B");
    let made = run(&cable("mtu = 400\nloss = 0.05", &traffic, PROBE), 6);
    let [flow] = &made.flows[..] else { panic!("{:?}", made.flows) };
    assert_eq!((flow.sent_packets, flow.sent_bytes), (500, 500 * 1048));
    assert_eq!(flow.lost_packets + flow.received_packets, 500);
    // 1008 bytes in fragments of 352: three of them have to arrive.
    let lost = 1.0 - 0.95_f64.powi(3);
    made.is("loss_ratio", lost, 5.0 * f64::sqrt(lost * (1.0 - lost) / 500.0));
    // The last fragment, of 304 bytes and 48 of headers, arrives after two of 400.
    made.is("delay_mean_s", 0.005 + (400.0 + 400.0 + 352.0) * 8e-6, 1e-9);
}

/// Three nodes in a line, of which the first sends to the third.
fn line(radio: &str, over: &str) -> Source {
    let nodes = "[[nodes]]\nname = \"n{i}\"\ncount = 3\nplace = { line = { step = [40, 0] } }\n";
    let traffic = format!(
        "[[traffic]]\nname = \"cbr\"\nkind = \"cbr\"\nover = \"{over}\"\nfrom = \"n1\"\nto = \"n3\"\n\
         payload = \"60 B\"\ninterval = \"30 ms\"\npackets = 200\n"
    );
    Source::new("line.toml", format!("stop = \"60 s\"\n{radio}{nodes}{traffic}{PROBE}"))
}

#[test]
fn over_both_radios_they_are_those_of_a_list() {
    for radio in [
        "[radio]\nrange = \"50 m\"\nloss = 0.2\nmax_frame_retries = 1\n",
        "[network]\nip = 4\n[wifi]\nrange = \"50 m\"\n[aodv]\n",
    ] {
        let made = run(&line(radio, "udp"), 1);
        let [flow] = &made.flows[..] else { panic!("{radio}: {:?}", made.flows) };
        let dropped_by_nodes = made.seen.node_drops.len() as u64;
        assert_eq!(flow.sent_packets, 200, "{radio}");
        assert!(flow.received_packets > 50, "{radio} {flow:?}");
        assert_eq!(flow.payload_bytes, flow.received_packets * 60, "{radio}");
        if dropped_by_nodes == 0 {
            alike(flow, by_hand(&made.seen, (flow.key.src, flow.key.dst), |packet| !packet.is_routing()));
        }
        let arrived = made.metrics["traffic.cbr.packets_delivered"].value;
        assert_eq!(arrived, Some(flow.received_packets as f64), "{radio}");
        assert_eq!(flow.lost_packets + flow.received_packets, 200, "{radio} {flow:?}");
        let over_rdca = run(&line(radio, "rdca"), 1);
        let [data, control] = &over_rdca.flows[..] else { panic!("{radio}: {:?}", over_rdca.flows) };
        assert_eq!([data.key.protocol, control.key.protocol], [FlowProtocol::Rdca; 2]);
        let arrived = over_rdca.metrics["traffic.cbr.packets_delivered"].value.unwrap();
        assert_eq!((data.payload_bytes as f64, control.payload_bytes), (arrived * 60.0, 0), "{radio}");
        over_rdca.is("flows", 1.0, 0.0);
    }
}

#[test]
fn a_run_is_the_same_with_and_without_the_probe() {
    let link = "loss = 0.1\njitter = { uniform = \"20 ms\", overtaking = true }";
    let transfer =
        "[[transfer]]\nname = \"file\"\nkind = \"tcp\"\nfrom = \"a\"\nto = \"b\"\nbytes = \"50 kB\"\n";
    let of = |probe: &str| {
        let scenario = cable(link, transfer, probe).scenario().unwrap();
        let mut metrics = scenario.run(3, 0, &BTreeMap::new()).unwrap().1;
        metrics.retain(|name, _| !name.starts_with("probe."));
        metrics
    };
    assert_eq!(of(PROBE), of(""));
}

#[test]
fn keys_of_other_probes_are_refused() {
    let error = |keys: &str| {
        cable("", &packets("cbr", 1, "1 s"), &format!("{PROBE}{keys}\n")).scenario().unwrap_err().to_string()
    };
    assert!(error("medium = \"cable\"").contains("`medium` says which hops of packets count"));
    assert!(error("to = []").contains("a probe of no nodes measures nothing"));
    assert!(error("nodes = \"c\"").contains('c'));
}
