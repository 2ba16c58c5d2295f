//! Checks that a log contains what the simulator knows.

use std::collections::BTreeMap;

use anabranch_scenario::{Plan, Source};
use anabranch_sim::apps::set::SetSender;
use anabranch_sim::events::EventLog;
use anabranch_sim::packet::LinkId;
use anabranch_sim::radio::Station;
use anabranch_sim::sim::Simulation;
use anabranch_sim::trace::TextTrace;
use anabranch_view::replay::{Fate, Place, Repair, Replay, Seen, Transfer};

use crate::replay::world::*;

/// Compares every link's counters in the simulator with those in the log.
#[track_caller]
fn links_agree(sim: &Simulation, replay: &Replay) {
    assert_eq!(replay.links.len(), sim.world().network.links().len());
    for (i, link) in sim.world().network.links().iter().enumerate() {
        let flights = || replay.flights.iter().filter(|flight| flight.link == i as u32);
        let lost = |reason| flights().filter(|flight| flight.fate == Fate::Lost(reason)).count() as u64;
        let metrics = link.metrics();
        let arrived = flights().filter(|flight| flight.fate == Fate::Arrived).count() as u64;
        assert_eq!(arrived, metrics.delivered, "link {i}");
        assert_eq!(lost(0), metrics.dropped_full, "link {i}");
        assert_eq!(lost(1), metrics.dropped_loss, "link {i}");
        assert_eq!(lost(2), metrics.dropped_down + metrics.cut, "link {i}");
        assert_eq!(lost(9), metrics.dropped_early, "link {i}");
    }
}

#[test]
fn links_have_carried_and_lost_what_the_log_says() {
    let codel = [codel("off", ""), codel("request", "")];
    for text in [THREE_GATEWAYS.to_owned(), caching_chain(), lost_gateway()].iter().chain(&codel) {
        let (sim, log) = logged(&scenario(text));
        let replay = replay(&log);
        assert_eq!(replay.cut, None);
        links_agree(&sim, &replay);
    }
}

#[test]
fn phases_of_transfers_are_those_of_the_sender() {
    let later = THREE_GATEWAYS.to_owned() + "start = \"2 s\"\n";
    for text in [THREE_GATEWAYS.to_owned(), lost_gateway(), later] {
        let scenario = scenario(&text);
        let Plan { builder, planned } = scenario.plan(scenario.seed, 0, &BTreeMap::new()).expect("a plan");
        let mut sim = builder.build();
        sim.observe(EventLog::new(Vec::new(), scenario.log_head(scenario.seed, 0)));
        sim.run_until(scenario.stop);
        let log =
            sim.take_observer::<EventLog<Vec<u8>>>().expect("it was attached").finish().expect("memory");
        let replay = replay(&log);
        let moments = *sim.app::<SetSender>(planned.sets[0].sender).moments().expect("it has started");
        let expected = Transfer {
            name: "cn → sn, simulated".to_owned(),
            start: Some(moments.started.as_nanos()),
            phases: moments.phases().map(|span| span.length().as_nanos()).collect(),
        };
        assert_eq!(replay.transfers, [expected]);
    }
    // The baselines have no phases, and their logs are of the first version.
    let split = THREE_GATEWAYS.replace("kind = \"set\"", "kind = \"split\"");
    let (_, log) = logged(&scenario(&split));
    assert_eq!((log[5], replay(&log).transfers.len()), (1, 0));
}

/// A packet that a queue discipline drops has waited until then.
#[test]
fn what_is_dropped_early_waits_until_it_is_dropped() {
    let (sim, log) = logged(&scenario(&codel("off", "")));
    let dropped: u64 = sim.world().network.links().iter().map(|link| link.metrics().dropped_early).sum();
    assert!(dropped > 10, "{dropped}");
    for flight in replay(&log).flights.iter().filter(|flight| flight.fate == Fate::Lost(9)) {
        assert!(flight.leaves == flight.end && flight.end >= flight.sent + 5_000_000, "{flight:?}");
    }
}

#[test]
fn at_any_time_as_much_waits_and_is_under_way_as_in_the_simulator() {
    let rate = "[[event]]\nat = \"0.9 s\"\naction = \"set-rate\"\nfrom = \"gw1\"\nto = \"sn\"\nrate = \"100 kbit/s\"\n";
    let plain =
        [THREE_GATEWAYS.to_owned(), caching_chain(), lost_gateway(), THREE_GATEWAYS.to_owned() + rate];
    let spaced = "spacing = \"4 ms\"";
    let codel = [codel("off", ""), codel("request", ""), codel("off", spaced), codel("request", spaced)];
    for text in plain.iter().chain(&codel) {
        let scenario = scenario(text);
        let (_, log) = logged(&scenario);
        let replay = replay(&log);
        let mut busiest = 0;
        for seconds in (0..60).map(|n| f64::from(n) / 23.0).chain([0.95, 30.0]) {
            let mut sim = simulation(&scenario);
            let now = instant(seconds);
            sim.run_until(now);
            let moment = replay.at(nanos(seconds));
            for (i, link) in sim.world().network.links().iter().enumerate() {
                let waiting = link.cable().map_or(0, |cable| cable.waiting(now));
                assert_eq!(moment.queued[i] as usize, waiting, "link {i} at {seconds} s");
                assert_eq!(
                    moment.under_way[i] as usize,
                    link.in_flight() - waiting,
                    "link {i} at {seconds} s"
                );
                // A log has no acknowledgements of the link layer, which occupy cables too.
                if !text.contains("link_ack_timeout") {
                    let busy = replay.busy(i as u32, nanos(seconds));
                    assert_eq!(busy, link.busy(now).as_nanos(), "link {i} at {seconds} s");
                }
                busiest = busiest.max(waiting);
            }
            let arrived: u64 = sim.world().network.links().iter().map(|l| l.metrics().delivered).sum();
            assert_eq!(moment.arrived, arrived, "at {seconds} s");
        }
        assert!(busiest > 0, "nothing ever waits, so nothing was tested");
    }
}

#[test]
fn every_frame_of_the_trace_is_in_the_log() {
    let scenario = scenario(THREE_HOPS);
    let mut sim = simulation(&scenario);
    sim.observe(TextTrace::new(Vec::new()));
    sim.run_until(scenario.stop);
    let trace = sim.take_observer::<TextTrace<Vec<u8>>>().expect("it was attached").finish().expect("memory");
    let trace = String::from_utf8(trace).expect("text");
    let frames: Vec<&str> = trace.lines().filter(|line| line.split(' ').nth(2) == Some("~")).collect();
    let missed = frames.iter().filter(|line| line.ends_with("missed")).count();
    let replay = replay(&logged(&scenario).1);
    assert_eq!(replay.frames.len(), frames.len());
    let ours = replay.frames.iter().filter(|frame| frame.frame.flags & 1 == 0).count();
    assert_eq!(ours, missed);
    assert!(frames.len() > 1000 && missed > 10);
    // The wait of a packet lasts from its handover to the radio until its first frame begins.
    let waited =
        replay.flights.iter().filter(|flight| flight.leaves > flight.sent && flight.fate == Fate::Arrived);
    assert!(waited.count() > 100);
}

#[test]
fn windows_and_retransmissions_are_those_of_the_connections() {
    let (sim, log) = logged(&scenario(&caching_chain()));
    let replay = replay(&log);
    let near = sim.world().network.find_node("near").expect("the sender");
    let flow =
        replay.flows.iter().position(|f| f.source == near.0 && f.protocol == 6).expect("its flow") as u32;
    let last = replay.states.iter().rfind(|(f, ..)| *f == flow).expect("its figures").2;
    let own = replay.packets.iter().filter(|p| p.packet.flow == flow && p.packet.maker.is_none() && p.again);
    assert_eq!(last.retransmissions, own.count() as u64);
    let caches = sim.world().network.node_count();
    let repeated: u64 = (0..caches as u32)
        .map(|node| sim.world().network.node_metrics(anabranch_sim::packet::NodeId(node)).repeated)
        .sum();
    assert_eq!(replay.packets.iter().filter(|p| p.packet.maker.is_some()).count() as u64, repeated);
    let held: u64 = (0..caches as u32)
        .map(|node| sim.world().network.node_metrics(anabranch_sim::packet::NodeId(node)).held)
        .sum();
    assert_eq!(replay.held, held);
    assert!(last.retransmissions > 0 && repeated > 10 && held > 0 && last.cwnd > 0 && last.srtt > 0);
}

/// Whatever was lost, sent again, cached or fragmented: each byte of a file arrives once.
#[test]
fn goodput_counts_each_byte_of_a_file_once() {
    for (text, sender, bytes) in [(caching_chain(), "near", 200_000), (codel("off", ""), "a", 2_000_000)] {
        let (sim, log) = logged(&scenario(&text));
        let replay = replay(&log);
        let sender = sim.world().network.find_node(sender).expect("the sender");
        let of_sender = |seen: &&Seen| replay.flows[seen.packet.flow as usize].source == sender.0;
        let fresh: u64 = replay.packets.iter().filter(of_sender).map(|seen| seen.fresh).sum();
        assert_eq!(fresh, bytes, "{}", replay.run.name);
        assert!(replay.packets.iter().any(|seen| seen.again && seen.done.is_some()), "{}", replay.run.name);
    }
}

fn repairs(replay: &Replay) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for loss in &replay.losses {
        let name = match loss.repair {
            Repair::None => "none",
            Repair::EndToEnd { .. } => "end to end",
            Repair::LocalCache { .. } => "cache",
            Repair::OtherSubflow { .. } => "other subflow",
            Repair::Session { .. } => "session",
            Repair::LinkLayer { .. } => "link layer",
            Repair::NotMissing => "not missing",
            Repair::NotNeeded => "not needed",
            Repair::GivenUp => "given up",
        };
        *counts.entry(name).or_default() += 1;
    }
    counts
}

/// The flow that repaired a loss: it brought bytes to the destination after the loss that had not
/// arrived before.
#[test]
fn each_loss_is_repaired_where_its_octets_came_from() {
    for (text, expected) in [
        (THREE_GATEWAYS.to_owned(), "end to end"),
        (caching_chain(), "cache"),
        (lost_gateway(), "session"),
        (DIAMOND.to_owned(), "other subflow"),
        (THREE_HOPS.to_owned(), "link layer"),
    ] {
        let replay = replay(&logged(&scenario(&text)).1);
        let counts = repairs(&replay);
        assert!(counts.get(expected).is_some_and(|n| *n >= 5), "{}: {counts:?}", replay.run.name);
        for loss in &replay.losses {
            let lost = &replay.packets[loss.packet as usize].packet;
            let (flow, at) = match loss.repair {
                Repair::EndToEnd { at } | Repair::LocalCache { at, .. } => (lost.flow, at),
                _ => continue,
            };
            let brought = |seen: &&anabranch_view::replay::Seen| {
                seen.packet.flow == flow && seen.packet.piece.is_none() && seen.packet.seq <= lost.seq
            };
            let by = replay.packets.iter().filter(brought).filter(|seen| seen.done == Some(at));
            assert!(by.count() > 0 && at > loss.at, "{loss:?}");
        }
    }
}

#[test]
fn a_lost_gateway_is_repaired_through_the_others_and_nothing_else_is() {
    let replay = replay(&logged(&scenario(&lost_gateway())).1);
    let name = |node: u32| replay.nodes[node as usize].name.as_str();
    let mut through = 0;
    for loss in &replay.losses {
        if let Repair::Session { flow, at } = loss.repair {
            let lost = replay.flows[replay.packets[loss.packet as usize].packet.flow as usize];
            let ends = [lost.source, lost.destination.expect("a node")].map(name);
            assert!(ends.contains(&"gw2"), "{ends:?}");
            let brought = replay.flows[flow as usize];
            assert!(![brought.source, brought.destination.expect("a node")].map(name).contains(&"gw2"));
            assert!(at > loss.at);
            through += 1;
        }
    }
    assert!(through >= 5, "{through}");
    assert!(replay.losses.iter().all(|loss| !matches!(loss.place, Place::Air { .. })));
}

#[test]
fn chunks_of_a_file_cover_it() {
    let (_, log) = logged(&scenario(THREE_GATEWAYS));
    let replay = replay(&log);
    let sender = replay.nodes.iter().position(|node| node.name == "cn").expect("the sender") as u32;
    let mut parts: Vec<(u64, u64)> = replay
        .chunks
        .iter()
        .filter(|chunk| replay.flows[chunk.flow as usize].source == sender)
        .map(|chunk| (chunk.offset, chunk.offset + chunk.len))
        .collect();
    parts.sort_unstable();
    let covered = parts.iter().fold(0, |end, part| if part.0 <= end { end.max(part.1) } else { end });
    assert_eq!(covered, 129_000);
    // Gateways write the same parts on.
    assert!(replay.chunks.len() > parts.len());
}

#[test]
fn a_part_of_a_log_is_what_happens_then() {
    let (_, log) = logged(&scenario(THREE_GATEWAYS));
    let whole = replay(&log);
    let part = anabranch_view::replay::Part { from: nanos(0.8), until: nanos(1.2), ..Default::default() };
    let part = Replay::read(log.as_slice(), part).expect("a log");
    for seconds in [0.8, 1.0, 1.19] {
        let (a, b) = (whole.at(nanos(seconds)), part.at(nanos(seconds)));
        assert_eq!((a.queued, a.under_way), (b.queued, b.under_way), "at {seconds} s");
    }
    assert!(part.flights.len() < whole.flights.len() / 2 && part.packets.len() < whole.packets.len());
    assert!(part.states.len() < whole.states.len() && part.end <= nanos(1.2));
    let limit = anabranch_view::replay::Part { limit: 1000, ..Default::default() };
    let error = Replay::read(log.as_slice(), limit).expect_err("too much");
    assert_eq!(error.to_string(), "the log has more than 1000 rows for a page");
}

/// Links of a run are identified by their ends, in the simulator's order.
#[test]
fn links_and_nodes_keep_their_numbers() {
    let (sim, log) = logged(&scenario(DIAMOND));
    let replay = replay(&log);
    for (i, link) in replay.links.iter().enumerate() {
        let ours = sim.world().network.link(LinkId(i as u32));
        assert_eq!((link.from, link.to), (ours.from().0, ours.to().0));
        assert_eq!(link.rate, ours.config().rate);
    }
    assert_eq!(replay.nodes[2].position, Some((70.0, -60.0)));
    assert_eq!(replay.nodes[0].kind, "router");
    assert_eq!(replay.changes.len(), 2);
}

/// Positions of moving nodes at any time, for each mobility model.
#[test]
fn places_are_those_of_the_movements() {
    let mobile = include_str!("../../../../../scenarios/mobile.toml");
    let markov = "{ width = \"1500 m\", height = \"300 m\", speed = \"10 m/s\", deviation = \"3 m/s\", memory = 0.8, interval = \"1 s\" }";
    for model in [None, Some(format!("nodes.0.mobility={{ gauss-markov = {markov} }}"))] {
        let source = Source::new("mobile.toml", mobile).set("stop=25 s").set("traffic.readings.stop=20 s");
        let source = model.into_iter().fold(source, Source::set);
        let scenario = source.scenario().unwrap_or_else(|error| panic!("{error}"));
        let (_, log) = logged(&scenario);
        assert_eq!(log[5], 2, "the version of a log with nodes that move");
        let replay = replay(&log);
        let drawn = scenario.draw(scenario.seed, 0).expect("places");
        for (node, mut mover) in scenario.movers(&drawn, scenario.seed, 0) {
            for tenth in 0..200 {
                let at = instant(f64::from(tenth) * 0.1);
                let place = mover.place(at);
                let (x, y) = replay.place(node.0, at.as_nanos()).expect("a place");
                assert!((x - place.x).hypot(y - place.y) < 1e-6, "{node:?} at {at}: {x} {y} {place:?}");
            }
        }
        assert!(replay.legs.is_sorted_by_key(|leg| leg.start));
    }
    // The log of fixed nodes still has version 1.
    assert_eq!(logged(&scenario(THREE_HOPS)).1[5], 1);
}

/// Wake-up frames are frames, and do not count as losses of packets.
#[test]
fn wake_up_frames_are_in_the_log() {
    let duty_cycle = include_str!("../../../../../scenarios/duty-cycle.toml");
    let source = Source::new("duty-cycle.toml", duty_cycle).set("stop=60 s");
    let scenario = source.scenario().unwrap_or_else(|error| panic!("{error}"));
    let (sim, log) = logged(&scenario);
    let replay = replay(&log);
    let radio = sim.world().network.radio().expect("a radio");
    let sent: u64 = (0..5).map(|station| radio.metrics(Station(station)).wakeups).sum();
    let seen = replay.frames.iter().filter(|frame| frame.frame.kind == 4).count() as u64;
    assert_eq!((seen, replay.losses.len()), (sent, 0));
    assert!(sent > 800, "{sent}");
}
