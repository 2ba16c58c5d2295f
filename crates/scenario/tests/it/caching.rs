//! A chain of nodes that cache TCP segments: delivery, cost, and the effect of a reboot.

use std::collections::BTreeMap;

use anabranch_core::dtc::Counters;
use anabranch_core::time::{Duration, Instant};
use anabranch_scenario::Source;
use anabranch_sim::apps::Sink;
use anabranch_sim::link::LinkMetrics;

/// A transfer of 20 kB over six hops with link acknowledgements; `relay` is added to every node on
/// the path.
fn chain(loss: f64, relay: &str, more: &str) -> String {
    let profile = match relay {
        "" => "",
        relay if relay.contains("pap") => "[dtc.paper]\nalgorithm = \"paper\"\n",
        _ => "[dtc.ours]\n",
    };
    let mut text = format!("stop = \"3000 s\"\n{profile}")
        + "\
        [tcp.default]\nbase = \"modern\"\nmss = 100\nwindow_limit = 3\ntimestamps = false\nrto_max = \"16 s\"\n";
    for i in 0..=6 {
        let (kind, relay) = if i % 6 == 0 { ("host", "") } else { ("node", relay) };
        text += &format!("[[node]]\nname = \"n{i}\"\nkind = \"{kind}\"\n{relay}\n");
    }
    for i in 0..6 {
        text += &format!(
            "[[link]]\nfrom = \"n{i}\"\nto = \"n{}\"\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\nloss = {loss}\n\
             loss_factors = {{ ack = 0.5, link_ack = 0.25 }}\nlink_ack_timeout = \"3 ms\"\n",
            i + 1
        );
    }
    text += "[[transfer]]\nkind = \"tcp\"\nfrom = \"n0\"\nto = \"n6\"\nbytes = \"20 kB\"\n";
    text + more
}

/// Bytes at the receiver, the time of the last one, packets sent over all links, and the relays'
/// counters.
fn run(text: &str, run: u64) -> (u64, Duration, u64, Vec<Counters>) {
    let scenario = Source::new("chain.toml", text.to_owned()).scenario().expect("a good scenario");
    let plan = scenario.plan(1, run, &BTreeMap::new()).expect("nothing is drawn");
    let sink = plan.planned.transfers[0].sink;
    let mut sim = plan.builder.build();
    sim.run_until(scenario.stop);
    let network = &sim.world().network;
    let sent = network.links().iter().map(|l| l.metrics()).map(|m: &LinkMetrics| m.enqueued).sum();
    let nodes = (0..network.node_count()).map(|i| anabranch_sim::packet::NodeId(i as u32));
    let counters = nodes.filter_map(|n| network.caching(n).map(|c| *c.counters())).collect();
    let sink = sim.app::<Sink>(sink);
    let took =
        sink.transfers.iter().map(|t| t.last.saturating_since(Instant::ZERO)).max().unwrap_or_default();
    (sink.bytes(), took, sent, counters)
}

#[test]
fn caching_nodes_save_packets_and_time() {
    let plain = run(&chain(0.05, "", ""), 0);
    for relay in ["dtc = \"paper\"", "dtc = \"ours\""] {
        let cached = run(&chain(0.05, relay, ""), 0);
        assert_eq!(cached.0, 20_000);
        assert!(cached.1 < plain.1 && cached.2 < plain.2, "{relay}: {cached:?} against {plain:?}");
        assert_eq!(cached.3.len(), 5);
        assert!(cached.3.iter().map(|c| c.local_retransmissions).sum::<u64>() > 0, "{:?}", cached.3);
    }
}

#[test]
fn without_losses_caching_changes_nothing() {
    let plain = run(&chain(0.0, "", ""), 0);
    let cached = run(&chain(0.0, "dtc = \"paper\"", ""), 0);
    assert_eq!((plain.0, plain.1, plain.2), (cached.0, cached.1, cached.2));
}

#[test]
fn a_node_that_reboots_has_forgotten_and_does_no_harm() {
    let reboot = "[[event]]\nat = \"2 s\"\naction = \"fail-node\"\nnode = \"n3\"\n\
        [[event]]\nat = \"2.5 s\"\naction = \"recover-node\"\nnode = \"n3\"\n";
    for relay in ["dtc = \"paper\"", "dtc = \"ours\""] {
        for n in 0..5 {
            let (bytes, ..) = run(&chain(0.1, relay, reboot), n);
            assert_eq!(bytes, 20_000, "{relay}, run {n}");
        }
    }
}

#[test]
fn a_host_cannot_cache_and_profiles_have_names() {
    let refuse = |text: String| Source::new("chain.toml", text).scenario().unwrap_err().to_string();
    let host = chain(0.0, "", "").replacen("kind = \"host\"\n", "kind = \"host\"\ndtc = \"ours\"", 1);
    assert!(refuse(host).contains("a host passes nothing on"), "a host");
    let error = refuse(chain(0.0, "dtc = \"papr\"", ""));
    assert!(error.contains("there is no profile `dtc.papr`") && error.contains("`paper`"), "{error}");
    let error = refuse(chain(0.0, "dtc = \"ours\"", "").replace("[dtc.ours]", "[dtc.ours]\nconnections = 0"));
    assert!(error.contains("expected 1 to 1000000, found 0"), "{error}");
}

#[test]
fn packets_late_and_twice_are_put_in_order() {
    let disturbed = |relay: &str| {
        chain(0.02, relay, "").replace("[[link]]", "[[link]]\nreordering = 0.1\nduplication = \"5 %\"")
    };
    let plain = run(&disturbed(""), 0);
    assert_eq!(plain.0, 20_000);
    assert!(plain.2 > run(&chain(0.02, "", ""), 0).2, "doubles travel too");
    for relay in ["dtc = \"paper\"", "dtc = \"ours\""] {
        assert_eq!(run(&disturbed(relay), 0).0, 20_000, "{relay}");
    }
}
