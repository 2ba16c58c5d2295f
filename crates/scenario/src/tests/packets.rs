//! Probes of packets: their counts, by calculation and compared with other counters.

use std::collections::BTreeSet;

use anabranch_core::time::Duration;
use proptest::prelude::*;

use super::*;
use crate::record::Metrics;
use anabranch_sim::packet::{LinkId, NodeId, Packet, Payload};
use anabranch_sim::sim::Simulation;
use anabranch_sim::trace::{Observer, Point};

/// Three nodes in a line, of which the first sends to the third.
fn line(medium: &str, traffic: &str, more: &str) -> Source {
    let network = match medium {
        "cable" => {
            "[[node]]\nname = \"n1\"\n[[node]]\nname = \"n2\"\nkind = \"router\"\n[[node]]\nname = \"n3\"\n\
             [[link]]\nname = \"first\"\nfrom = \"n1\"\nto = \"n2\"\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\n\
             [[link]]\nname = \"second\"\nfrom = \"n2\"\nto = \"n3\"\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\n"
                .to_owned()
        }
        radio => {
            let radio = match radio {
                "wifi" => "[network]\nip = 4\n[wifi]\nrange = \"50 m\"\n[aodv]\n",
                _ => "[radio]\nrange = \"50 m\"\n",
            };
            format!(
                "{radio}[[nodes]]\nname = \"n{{i}}\"\ncount = 3\nplace = {{ line = {{ step = [40, 0] }} }}\n"
            )
        }
    };
    let tcp = "[tcp.default]\nmss = 500\ndelayed_ack = \"off\"\ntimestamps = false\n";
    Source::new("line.toml", format!("stop = \"60 s\"\n{network}{tcp}{traffic}{more}"))
}

/// Ten packets in one second.
fn ten(over: &str) -> String {
    let from = "from = \"n1\"\nto = \"n3\"\npayload = \"100 B\"\ninterval = \"100 ms\"\npackets = 10\n";
    format!("[[traffic]]\nname = \"ten\"\nkind = \"cbr\"\nover = \"{over}\"\n{from}")
}

const PROBE: &str = "[probe.p]\nkind = \"packets\"\n";

/// Observed packets at links.
#[derive(Default)]
struct Seen(Vec<(Instant, LinkId, Point, Packet)>);

impl Observer for Seen {
    fn on_packet(&mut self, now: Instant, link: LinkId, point: Point, packet: &Packet) {
        self.0.push((now, link, point, packet.clone()));
    }
}

fn run(source: &Source, seed: u64) -> (Metrics, Simulation, Seen) {
    let (metrics, sim, seen, ()) = run_from(source, seed, |_| ());
    (metrics, sim, seen)
}

/// As [`run`], with an operation before the run.
fn run_from<T>(
    source: &Source,
    seed: u64,
    begin: impl FnOnce(&mut Simulation) -> T,
) -> (Metrics, Simulation, Seen, T) {
    let scenario = source.scenario().unwrap_or_else(|error| panic!("{error}"));
    let Plan { builder, planned } = scenario.plan(seed, 0, &BTreeMap::new()).unwrap();
    let mut sim = builder.build();
    sim.observe(Seen::default());
    sim.keep_series("p");
    sim.keep_series("whole");
    let begun = begin(&mut sim);
    sim.run_until(scenario.stop);
    let metrics = scenario.metrics(&planned, &sim);
    let seen = sim.take_observer::<Seen>().expect("it was put in");
    (metrics, sim, seen, begun)
}

fn value(metrics: &Metrics, name: &str) -> Option<f64> {
    metrics[&format!("probe.p.{name}")].value
}

/// Data sent and arrived; control packets sent; hops of data, of control packets, of
/// acknowledgements among them, and of routing messages.
fn counts(metrics: &Metrics) -> [u64; 7] {
    ["data_sent", "data_arrived", "control_sent", "data_hops", "control_hops", "ack_hops", "routing_hops"]
        .map(|name| value(metrics, name).unwrap_or_else(|| panic!("{name} was measured")) as u64)
}

#[test]
fn packets_of_all_transports_and_media_are_those_that_one_counts_by_hand() {
    let mut wrong = Vec::new();
    let file =
        "[[transfer]]\nname = \"file\"\nkind = \"tcp\"\nfrom = \"n1\"\nto = \"n3\"\nbytes = \"1500 B\"\n";
    for (name, medium, traffic, expected) in [
        ("datagrams", "cable", ten("udp"), [10, 10, 0, 20, 0, 0, 0]),
        // SYN, SYN, ACKs of two segments; the third has FIN and is acknowledged by the FIN of the
        // sink; ACK.
        ("a file over TCP", "cable", file.to_owned(), [3, 3, 6, 6, 12, 6, 0]),
        // SYN, SYN, ten ACKs, FIN, FIN, ACK.
        ("packets over TCP", "cable", ten("tcp"), [10, 10, 15, 20, 30, 22, 0]),
        // As over TCP, plus DATA_FIN on an ACK, and its ACK.
        ("packets over MPTCP", "cable", ten("mptcp"), [10, 10, 17, 20, 34, 26, 0]),
        // REQUEST, REPLY, CONFIRM of the first packet and of all packets.
        ("packets over RDCA", "cable", ten("rdca"), [10, 10, 4, 20, 8, 0, 0]),
        ("datagrams in two frames each", "radio", ten("udp"), [10, 10, 0, 20, 0, 0, 0]),
        // The sender acknowledges the SYN before it has a packet, and the sink the FIN before its
        // own.
        ("packets over TCP and 802.15.4", "radio", ten("tcp"), [10, 10, 17, 20, 34, 26, 0]),
        // RREQ with a reach of one hop, and again with more, which the second node forwards; RREP
        // over two hops.
        ("datagrams over 802.11", "wifi", ten("udp"), [10, 10, 0, 20, 0, 0, 5]),
        ("packets over RDCA and 802.11", "wifi", ten("rdca"), [10, 10, 4, 20, 8, 0, 5]),
    ] {
        let (metrics, ..) = run(&line(medium, &traffic, PROBE), 1);
        let found = counts(&metrics);
        if found != expected {
            wrong.push(format!("{name}: {found:?} in place of {expected:?}"));
        }
        let (sent, control) = (found[0] as f64, found[2] as f64);
        assert_eq!(value(&metrics, "delivery_ratio"), Some(1.0), "{name}");
        assert_eq!(value(&metrics, "control_load"), Some(control / sent), "{name}");
        assert_eq!(value(&metrics, "routing_load"), Some(found[6] as f64 / sent), "{name}");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Two streams with different headers, and a sender whose port is that of the other stream's sink.
#[test]
fn each_stream_of_rdca_is_read_with_its_own_header() {
    let [ours, printed] = [
        "[rdca.ours]\nalgorithm = \"paper\"\n",
        "[rdca.printed]\nalgorithm = \"paper\"\nheader = \"printed\"\n",
    ];
    let stream = |name: &str, port: u16, profile: &str| {
        let more = format!("rdca = \"{profile}\"\nport = {port}\n");
        ten("rdca").replace("\"ten\"", &format!("\"{name}\"")) + &more
    };
    let alone = |port, profile| {
        let table = if profile == "ours" { ours } else { printed };
        counts(&run(&line("cable", &(table.to_owned() + &stream("a", port, profile)), PROBE), 1).0)
    };
    let alone = [alone(9101, "printed"), alone(9100, "ours")];
    let elsewhere = "[[node]]\nname = \"n4\"\n[[link]]\nfrom = \"n2\"\nto = \"n4\"\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\n";
    let both = [
        ours,
        printed,
        &stream("a", 9101, "printed").replace("to = \"n3\"", "to = \"n4\""),
        &stream("b", 9100, "ours"),
        elsewhere,
    ];
    let found = counts(&run(&line("cable", &both.concat(), PROBE), 1).0);
    assert_eq!([0, 2].map(|i| found[i]), [0, 2].map(|i| alone[0][i] + alone[1][i]), "{alone:?}");
    assert!(alone.iter().all(|counts| counts[2] > 0));
}

#[test]
fn messages_of_set_are_data_and_those_of_rpl_are_routing() {
    let text = include_str!("../../../../scenarios/three-gateways.toml");
    let source =
        Source::new("three-gateways.toml", format!("{text}{PROBE}")).set("transfer.update.bytes=5 kB");
    let (metrics, sim, _) = run(&source, 1);
    let [sent, arrived, control, data_hops, control_hops, ..] = counts(&metrics);
    assert_eq!((sent, metrics["transfer.update.delivered"].value), (arrived, Some(1.0)));
    let network = &sim.world().network;
    let own: u64 = (0..5).map(|node| network.node_metrics(NodeId(node)).sent).sum();
    let hops: u64 = network.links().iter().map(|link| link.metrics().delivered).sum();
    assert_eq!((sent + control, data_hops + control_hops), (own, hops));
    // At least 62 segments of 81 bytes over the radio, and the file over the wire to the gateways.
    assert!(sent >= 62 + 4, "{sent}");

    let paths = "[paths]\nroot = \"n3\"\n";
    let far = "[[node]]\nname = \"far\"\n[[link]]\nfrom = \"n3\"\nto = \"far\"\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\n";
    let (mut both, mut rest) = (0, 0);
    for medium in ["", "medium = \"air\"", "medium = \"cable\""] {
        let (metrics, ..) = run(&line("radio", "", &format!("{far}{paths}{PROBE}{medium}\n")), 1);
        let [.., routing] = counts(&metrics);
        assert!(routing > 0, "{medium}");
        if medium.is_empty() { both = routing } else { rest += routing }
    }
    assert_eq!(both, rest, "messages over cables count as those over the air");

    let (metrics, sim, seen) = run(&line("radio", "", &format!("{paths}{PROBE}")), 1);
    let [rest @ .., routing] = counts(&metrics);
    assert_eq!(rest, [0; 6]);
    let unicast = seen.0.iter().filter(|(.., point, _)| *point == Point::Sent).count() as u64;
    let broadcasts: u64 =
        (0..3).map(|node| sim.world().network.wireless_metrics(NodeId(node)).unwrap().broadcasts).sum();
    assert!(unicast > 0 && broadcasts > 0);
    assert_eq!(routing, unicast + broadcasts);
}

#[test]
fn packets_that_are_cut_count_once_and_their_fragments_at_each_hop() {
    // 1008 bytes of transport, of which 552 fit after the header of a fragment.
    let traffic = ten("udp").replace("100 B", "1000 B");
    let source = |mtu: &str| line("cable", &traffic, PROBE).set(mtu);
    let (metrics, ..) = run(&source("link.second.mtu=600"), 1);
    assert_eq!(counts(&metrics), [10, 10, 0, 30, 0, 0, 0]);
    let (metrics, ..) = run(&source("link.first.mtu=600"), 1);
    assert_eq!(counts(&metrics), [10, 10, 0, 40, 0, 0, 0]);
    // A fragment of a fragment.
    let (metrics, ..) = run(&source("link.first.mtu=600").set("link.second.mtu=400"), 1);
    assert_eq!(counts(&metrics), [10, 10, 0, 20 + 40, 0, 0, 0]);
    // A packet has arrived when all of its fragments have.
    let (metrics, _, seen) = run(&source("link.first.mtu=600").set("link.second.loss=30 %"), 1);
    let here = seen.0.iter().filter(|(_, link, point, _)| *link == LinkId(2) && *point == Point::Received);
    let here: Vec<u64> = here.map(|(.., packet)| packet.whole_id()).collect();
    let whole = here.iter().filter(|id| here.iter().filter(|other| other == id).count() == 2).count() / 2;
    assert_eq!(value(&metrics, "data_arrived"), Some(whole as f64));
    assert!((1..9).contains(&whole), "{whole}");
}

#[test]
fn a_window_has_its_beginning_and_not_its_end() {
    let traffic = ten("udp").replace("packets = 10", "packets = 30");
    let of = |window: &str| run(&line("cable", &traffic, &format!("{PROBE}{window}\n")), 1).0;
    let whole = of("from = \"1 s\"\nuntil = \"2 s\"");
    assert_eq!(counts(&whole), [10, 10, 0, 20, 0, 0, 0]);
    // The packet of the first second is on its first link when the window begins; that of 1.9 s is
    // on the second link when it ends.
    let shifted = of("from = \"1003 ms\"\nuntil = \"1910 ms\"");
    assert_eq!(counts(&shifted), [9, 9, 0, 19, 0, 0, 0]);
    assert_eq!(value(&shifted, "hop_delivery_ratio"), Some(1.0));
    for window in ["until = \"1 s\"", "from = \"10 s\"", "from = \"10 s\"\nuntil = \"11 s\""] {
        let metrics =
            run(&line("cable", &format!("{traffic}start = \"1 s\"\n"), &format!("{PROBE}{window}\n")), 1).0;
        assert_eq!(counts(&metrics), [0; 7], "{window}");
        for share in ["delivery_ratio", "control_load", "hop_delivery_ratio", "routing_load"] {
            assert_eq!(value(&metrics, share), None, "{share} has nothing to be a share of");
        }
    }
    let during = of("during = \"ten\"");
    assert_eq!(value(&during, "window_s"), Some(2.9));
}

/// A packet generated at the time of the end belongs to the traffic, however its end is given.
#[test]
fn the_window_of_a_traffic_has_all_of_its_packets() {
    for over in ["udp", "tcp", "rdca"] {
        for (end, packets, seconds) in [("packets = 10", 10, 0.9), ("stop = \"2 s\"", 21, 2.0)] {
            let traffic = ten(over).replace("packets = 10", end);
            let (metrics, ..) = run(&line("cable", &traffic, &format!("{PROBE}during = \"ten\"\n")), 1);
            assert_eq!(counts(&metrics)[0], packets, "{over}, {end}");
            assert_eq!(metrics["traffic.ten.packets_made"].value, Some(packets as f64), "{over}, {end}");
            if over == "udp" {
                assert_eq!(value(&metrics, "window_s"), Some(seconds), "{end}");
            }
        }
    }
}

/// A queue that refuses one copy of a packet may hold another.
#[test]
fn a_copy_that_is_refused_does_not_count_for_the_one_that_waits() {
    let traffic = ten("udp").replace("100 ms", "10 ms");
    let source = line("cable", &traffic, PROBE)
        .set("link.first.duplication=1")
        .set("link.second.rate=100 kbit/s")
        .set("link.second.queue=2 packets");
    let (metrics, sim, seen) = run(&source, 1);
    let refused = seen.0.iter().filter(|(.., point, _)| matches!(point, Point::Dropped(_))).count();
    assert!(refused > 0, "nothing is tested");
    let arrived: u64 = sim.world().network.links().iter().map(|link| link.metrics().delivered).sum();
    assert_eq!(value(&metrics, "data_hops"), Some(arrived as f64));
    assert_eq!(value(&metrics, "hop_delivery_ratio"), Some(1.0));
}

/// A node that restarts between two fragments has lost the first one, and so the packet.
#[test]
fn a_packet_whose_fragments_come_to_a_node_before_and_after_its_restart_has_not_arrived() {
    let traffic = ten("udp").replace("100 B", "1000 B").replace("packets = 10", "packets = 1");
    let event =
        |at: &str, action: &str| format!("[[event]]\nat = \"{at}\"\naction = \"{action}\"\nnode = \"n3\"\n");
    // Each fragment needs half a second.
    let restart = event("600 ms", "fail-node") + &event("700 ms", "recover-node");
    for (events, arrived) in [("", 1), (&*restart, 0)] {
        let source = line("cable", &traffic, &format!("{PROBE}{events}"))
            .set("link.first.mtu=600")
            .set("link.second.rate=10 kbit/s");
        let (metrics, ..) = run(&source, 1);
        assert_eq!(counts(&metrics)[..2], [1, arrived]);
        assert_eq!(metrics["traffic.ten.packets_delivered"].value, Some(arrived as f64));
    }
}

/// Nodes that are down when the window begins receive after they have come up.
#[test]
fn a_node_that_is_down_at_first_receives_later() {
    let event =
        |at: &str, action: &str| format!("[[event]]\nat = \"{at}\"\naction = \"{action}\"\nnode = \"n3\"\n");
    let events = event("100 ms", "fail-node") + &event("500 ms", "recover-node");
    let (metrics, ..) = run(&line("cable", &ten("udp"), &format!("{PROBE}from = \"200 ms\"\n{events}")), 1);
    let [sent, arrived, ..] = counts(&metrics);
    assert_eq!(sent, 8);
    assert!((4..=5).contains(&arrived), "{arrived}");
}

/// The port alone does not identify a routing message: no router sent this datagram.
#[test]
fn a_traffic_at_the_port_of_aodv_is_no_routing() {
    for medium in ["cable", "wifi"] {
        let of = |port: u16| {
            let (metrics, ..) = run(&line(medium, &(ten("udp") + &format!("port = {port}\n")), PROBE), 1);
            (counts(&metrics), metrics["traffic.ten.packets_delivered"].value)
        };
        assert_eq!(of(654), of(655), "{medium}");
        assert_eq!((of(654).0[0], of(654).1), (10, Some(10.0)), "{medium}");
    }
}

/// Adjacent windows add up to the whole, also for routing messages.
#[test]
fn routing_messages_count_in_the_window() {
    let paths = "[paths]\nroot = \"n3\"\n";
    let of = |window: &str| counts(&run(&line("radio", "", &format!("{paths}{PROBE}{window}\n")), 1).0)[6];
    let parts = [of("until = \"10 s\""), of("from = \"10 s\"\nuntil = \"30 s\""), of("from = \"30 s\"")];
    assert!(parts.iter().all(|part| *part > 0), "{parts:?}");
    assert_eq!(parts.iter().sum::<u64>(), of(""));
}

#[test]
fn what_arrives_after_the_window_has_arrived() {
    // One packet needs 1.184 s.
    let source =
        line("cable", &ten("udp"), &format!("{PROBE}until = \"150 ms\"\n")).set("link.first.rate=1 kbit/s");
    let (metrics, ..) = run(&source, 1);
    assert_eq!(counts(&metrics), [2, 2, 0, 2, 0, 0, 0], "the second hop is later than the window");
    assert_eq!(value(&metrics, "hop_delivery_ratio"), Some(1.0));
}

#[test]
fn a_probe_of_some_nodes_counts_what_they_make_and_what_they_pass_on() {
    let of =
        |nodes: &str| counts(&run(&line("cable", &ten("tcp"), &format!("{PROBE}nodes = {nodes}\n")), 1).0);
    let all = of("\"n*\"");
    let each = [of("\"n1\""), of("\"n2\""), of("[\"n3\"]")];
    assert_eq!(each[1][..3], [0, 0, 0], "a router makes nothing");
    assert_eq!([each[0][0], each[2][0]], [10, 0]);
    assert_eq!([each[0][3], each[1][3], each[2][3]], [10, 10, 0]);
    for figure in 0..7 {
        assert_eq!(each.iter().map(|counts| counts[figure]).sum::<u64>(), all[figure], "{figure}");
    }
}

#[test]
fn hops_are_over_the_air_or_cables_or_both() {
    let far = "[[node]]\nname = \"far\"\n[[link]]\nfrom = \"n3\"\nto = \"far\"\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\n";
    let of = |medium: &str| {
        let traffic = ten("udp").replace("to = \"n3\"", "to = \"far\"");
        counts(&run(&line("radio", &traffic, &format!("{far}{PROBE}{medium}\n")), 1).0)
    };
    assert_eq!(of(""), [10, 10, 0, 30, 0, 0, 0]);
    assert_eq!(of("medium = \"air\""), [10, 10, 0, 20, 0, 0, 0]);
    assert_eq!(of("medium = \"cable\""), [10, 10, 0, 10, 0, 0, 0]);
}

#[test]
fn what_is_lost_was_sent() {
    let (metrics, ..) = run(&line("cable", &ten("udp"), PROBE).set("link.second.loss=1"), 1);
    assert_eq!(counts(&metrics), [10, 0, 0, 20, 0, 0, 0]);
    assert_eq!(value(&metrics, "delivery_ratio"), Some(0.0));
    assert_eq!(value(&metrics, "hop_delivery_ratio"), Some(0.5));
    // A packet at a node that is down has not been received.
    let event = "[[event]]\nat = \"450 ms\"\naction = \"fail-node\"\nnode = \"n3\"\n";
    let (metrics, ..) = run(&line("cable", &ten("udp"), &format!("{PROBE}{event}")), 1);
    assert_eq!(counts(&metrics), [10, 5, 0, 20, 0, 0, 0]);
    // A packet that is refused was not sent.
    let event = "[[event]]\nat = \"450 ms\"\naction = \"link-down\"\nfrom = \"n1\"\nto = \"n2\"\n";
    let (metrics, ..) = run(&line("cable", &ten("udp"), &format!("{PROBE}{event}")), 1);
    assert_eq!(counts(&metrics), [5, 5, 0, 10, 0, 0, 0]);
}

#[test]
fn a_segment_from_a_cache_is_a_packet_of_its_own() {
    let dtc = "[dtc.default]\n";
    let source = line("cable", &ten("tcp"), &format!("{dtc}{PROBE}"))
        .set("node.n2.dtc=default")
        .set("link.second.loss=20 %")
        .set("link.second.link_ack_timeout=20 ms");
    let (metrics, sim, _) = run(&source, 1);
    let network = &sim.world().network;
    let [own, repeated] = [NodeId(0), NodeId(1)].map(|node| *network.node_metrics(node));
    assert!(repeated.repeated > 0, "the cache has repeated a segment");
    let sent = value(&metrics, "data_sent").unwrap() + value(&metrics, "control_sent").unwrap();
    let third = network.node_metrics(NodeId(2)).sent;
    assert_eq!(sent as u64, own.sent + third + repeated.repeated);
}

#[test]
fn a_series_has_a_point_for_each_hop() {
    let (metrics, sim, seen) = run(&line("radio", &ten("tcp"), PROBE), 3);
    for (name, wanted) in [("data_hops", true), ("control_hops", false)] {
        let series = sim.probed_series("p", name).expect("it was kept");
        let sent = seen.0.iter().filter(|(.., point, packet)| {
            *point == Point::Sent
                && matches!(&packet.payload, Payload::Tcp(s) if s.payload.is_empty() != wanted)
        });
        let times: Vec<Instant> = sent.map(|(now, ..)| *now).collect();
        assert_eq!(series.points.iter().map(|point| point.0).collect::<Vec<_>>(), times);
        assert_eq!(Some(times.len() as f64), value(&metrics, name));
    }
    let data = sim.probed_series("p", "data_hops").unwrap().points;
    let mean = data.iter().map(|point| point.1).sum::<f64>() / data.len() as f64;
    assert_eq!(value(&metrics, "hop_delivery_ratio"), Some(mean));
    assert_eq!(sim.probed_series("p", "heat"), None);
    assert_eq!(sim.probed_series("q", "data_hops"), None);
}

/// The metrics of a window, counted again from all observations; `first` is the first packet that
/// was made in it.
fn recounted(seen: &Seen, sim: &Simulation, (from, until): (Instant, Instant), first: u64) -> [u64; 5] {
    let links = sim.world().network.links();
    let at_links =
        |at: Point| seen.0.iter().filter(move |(.., point, packet)| *point == at && !packet.is_routing());
    let within = || at_links(Point::Sent).filter(|(now, ..)| (from..until).contains(now));
    let is_data = |packet: &Packet| match &packet.payload {
        Payload::Tcp(segment) => !segment.payload.is_empty(),
        // DATA is type 3 of RDCA, and no other packet begins with this number.
        Payload::Udp(datagram) => matches!(datagram.payload[0] >> 4, 0 | 3),
        Payload::Opaque(_) | Payload::Fragment(_) => unreachable!("nothing is cut"),
    };
    let own = within().filter(|(_, link, _, packet)| links[link.index()].from() == packet.src);
    let (data, control): (BTreeMap<u64, NodeId>, BTreeMap<u64, NodeId>) = {
        let own = own.filter(|(.., packet)| packet.id >= first);
        let (data, control): (Vec<_>, Vec<_>) = own.partition(|(.., packet)| is_data(packet));
        let by_number = |all: Vec<&(Instant, LinkId, Point, Packet)>| {
            all.into_iter().map(|(.., packet)| (packet.id, packet.dst)).collect()
        };
        (by_number(data), by_number(control))
    };
    let came: BTreeSet<(u64, NodeId)> =
        at_links(Point::Received).map(|(_, link, _, p)| (p.id, links[link.index()].to())).collect();
    let arrived = data.iter().filter(|(id, dst)| came.contains(&(**id, **dst))).count();
    let hops = within().filter(|(.., packet)| is_data(packet)).count();
    [data.len(), arrived, control.len(), hops, within().count() - hops].map(|count| count as u64)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn counts_are_those_of_links_and_nodes_and_of_who_watches(
        medium in prop::sample::select(&["cable", "radio", "wifi"][..]),
        over in prop::sample::select(&["udp", "tcp", "mptcp", "rdca"][..]),
        loss in 0_u32..40,
        from in 0_u64..1500,
        length in 1_u64..3000,
        seed in 0_u64..1000,
    ) {
        let at = |millis: u64| Instant::ZERO + Duration::from_millis(millis);
        let window = format!("from = \"{from} ms\"\nuntil = \"{} ms\"\n", from + length);
        let whole = "[probe.whole]\nkind = \"packets\"\n";
        let source = line(medium, &ten(over), &format!("{PROBE}{window}{whole}"));
        let source = match medium {
            "cable" => source.set(format!("link.second.loss={loss} %")),
            medium => source.set(format!("{medium}.loss={loss} %")),
        };
        let begin = |sim: &mut Simulation| {
            if let Some(before) = from.checked_sub(1) {
                sim.run_until(at(before) + Duration::from_nanos(999_999));
            }
            sim.world().network.packets_made()
        };
        let (metrics, sim, seen, first) = run_from(&source, seed, begin);
        let [sent, arrived, control, data_hops, control_hops, ..] = counts(&metrics);
        prop_assert_eq!(
            [sent, arrived, control, data_hops, control_hops],
            recounted(&seen, &sim, (at(from), at(from + length)), first)
        );
        // Over the whole run, compared with the counters of nodes and of the MAC.
        let whole = |name: &str| metrics[&format!("probe.whole.{name}")].value.unwrap_or(0.0);
        let network = &sim.world().network;
        let sum = |of: &dyn Fn(NodeId) -> u64| (0..3).map(|node| of(NodeId(node))).sum::<u64>();
        let sent = sum(&|node| network.node_metrics(node).sent);
        let counted = (whole("data_sent") + whole("control_sent")) as u64;
        if medium == "wifi" {
            prop_assert!(counted <= sent);
            let to_mac = sum(&|node| network.adhoc_metrics(node).unwrap().packets);
            let taken_back = sum(&|node| network.adhoc_metrics(node).unwrap().taken_back);
            let hops = whole("data_hops") + whole("control_hops") + whole("routing_hops");
            prop_assert_eq!(hops as u64, to_mac + taken_back);
        } else {
            prop_assert_eq!(counted, sent, "every node has a route, and every link has room");
        }
        let delivered: u64 = network.links().iter().map(|link| link.metrics().delivered).sum();
        let routing = seen.0.iter().filter(|(.., point, p)| *point == Point::Received && p.is_routing());
        let series = |name| sim.probed_series("whole", name).expect("it was kept").points;
        let came = series("data_hops").into_iter().chain(series("control_hops")).map(|point| point.1);
        prop_assert_eq!(came.sum::<f64>() as u64 + routing.count() as u64, delivered);
    }
}
