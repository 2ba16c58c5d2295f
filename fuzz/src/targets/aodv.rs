//! AODV: parses and re-encodes messages, and runs a router whose neighbours send anything.

use std::mem;
use std::net::Ipv4Addr;

use anabranch_core::aodv::{
    Config, Hello, IntermediateReplies, LocalRepair, Passage, ReplyAcks, Router, Undelivered,
};
use anabranch_core::time::{Duration, Instant};
use anabranch_wire::aodv::{self, Message, Parsed};
use arbitrary::{Result, Unstructured};

use crate::probe::Probe;

/// The first byte selects the test. Below 128 it is a message type, mostly a known one, followed by
/// the message; otherwise the rest are events for a router.
pub(super) fn run(input: &[u8], probe: &mut Probe) {
    match input.split_first() {
        Some((choice, rest)) if *choice < 128 => message(*choice, rest, probe),
        // The run ends where the input ends.
        Some((_, rest)) => drop(router(&mut Unstructured::new(rest), probe)),
        None => {}
    }
}

fn message(choice: u8, rest: &[u8], probe: &mut Probe) {
    let mut octets = vec![choice % 6];
    octets.extend_from_slice(rest);
    let parsed = match aodv::parse(&octets) {
        Ok(parsed) => parsed,
        Err(error) => {
            probe.say(|| error);
            assert!(error.offset <= octets.len(), "{error} in {} octets", octets.len());
            return probe.feature((error.field, error.offset.min(64)));
        }
    };
    probe.say(|| format!("{parsed:?}"));
    probe.feature((mem::discriminant(&parsed.message), parsed.unknown_extensions.min(4)));
    match &parsed.message {
        Message::Request(request) => probe.feature(("sequence", request.destination_sequence.is_some())),
        Message::Reply(reply) => probe.feature(("hello", reply.hello_interval.is_some())),
        Message::Error(error) => probe.feature(("destinations", error.unreachable.len().min(16))),
        Message::ReplyAck => {}
    }
    let mut written = Vec::new();
    aodv::emit(&parsed.message, &mut written).unwrap_or_else(|error| panic!("{parsed:?}: {error}"));
    assert!(written.len() <= octets.len(), "{written:02x?}");
    assert_eq!(aodv::parse(&written), Ok(Parsed { unknown_extensions: 0, ..parsed }), "{written:02x?}");
}

/// One of a few nodes, so that messages relate to each other.
fn node(octets: &mut Unstructured<'_>) -> Result<Ipv4Addr> {
    Ok(Ipv4Addr::new(10, 0, 0, octets.int_in_range(1..=6)?))
}

fn config(octets: &mut Unstructured<'_>) -> Result<Config> {
    let base = if octets.arbitrary()? { Config::default() } else { Config::ns2() };
    Ok(Config {
        intermediate_replies: *octets.choose(&[
            IntermediateReplies::Accepted,
            IntermediateReplies::Gratuitous,
            IntermediateReplies::Refused,
        ])?,
        local_repair: *octets.choose(&[LocalRepair::Off, LocalRepair::On])?,
        hello: *octets.choose(&[Hello::Off, Hello::On])?,
        reply_acks: *octets.choose(&[ReplyAcks::Off, ReplyAcks::On])?,
        net_diameter: *octets.choose(&[0, 1, 35, 255])?,
        ttl_start: *octets.choose(&[0, 1, 255])?,
        ttl_increment: *octets.choose(&[0, 2, 255])?,
        request_retries: *octets.choose(&[0, 2, 255])?,
        max_routes: *octets.choose(&[0, 3, 4096])?,
        ..base
    })
}

fn router(octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
    let mut now = Instant::ZERO;
    let config = config(octets)?;
    let mut router = Router::new(config, Ipv4Addr::new(10, 0, 0, 1), now);
    while !octets.is_empty() {
        now += Duration::from_millis(*octets.choose(&[0, 1, 100, 3_000, 20_000])?);
        match octets.int_in_range(0..=8)? {
            0..=3 => {
                let mut payload = vec![octets.int_in_range(1..=4)?];
                for _ in 0..octets.int_in_range(0..=6)? {
                    // Random words as addresses and numbers near each other.
                    let word =
                        if octets.arbitrary()? { node(octets)?.octets() } else { octets.arbitrary()? };
                    payload.extend(word);
                }
                payload.insert(1, octets.arbitrary()?);
                payload.splice(2..2, [0, octets.int_in_range(0..=3)?]);
                router.handle_message(now, node(octets)?, octets.arbitrary()?, &payload);
            }
            4 => {
                let (destination, previous) = (node(octets)?, node(octets)?);
                probe.feature(("forward", mem::discriminant(&router.forward(now, destination, previous))));
            }
            5 => probe.feature(("route", mem::discriminant(&router.route(now, node(octets)?)))),
            6 => {
                let (source, destination) = (node(octets)?, node(octets)?);
                let packet = octets.arbitrary::<bool>()?.then_some(Undelivered { source, destination });
                router.handle_link_break(now, node(octets)?, packet);
            }
            7 => {
                let (previous, next) = (Some(node(octets)?), Some(node(octets)?));
                router.note_use(
                    now,
                    Passage { source: node(octets)?, destination: node(octets)?, previous, next },
                );
            }
            _ if octets.ratio(1, 8)? => router.reset(now),
            _ => router.handle_reply_lost(now, node(octets)?),
        }
        while let Some(at) = router.next_timeout().filter(|at| *at <= now) {
            router.handle_timeout(now);
            assert!(
                router.next_timeout().is_none_or(|next| next > at),
                "a timer that was answered is no longer due"
            );
        }
        look(&mut router, &config, probe);
    }
    Ok(())
}

fn look(router: &mut Router, config: &Config, probe: &mut Probe) {
    while let Some(sent) = router.poll_transmit(u32::MAX) {
        let parsed = aodv::parse(&sent.payload).unwrap_or_else(|error| panic!("{error}: {sent:?}"));
        probe.say(|| format!("{:?} {:?}", sent.to, parsed.message));
        probe.feature(("sent", mem::discriminant(&parsed.message), mem::discriminant(&sent.to)));
        assert!(sent.ttl > 0 && sent.delay <= config.jitter, "{sent:?}");
    }
    while let Some(event) = router.poll_event() {
        probe.say(|| format!("{event:?}"));
        probe.feature(("event", mem::discriminant(&event)));
    }
    assert!(router.entry(router.address()).is_none(), "a route to itself");
    assert!(router.entries().count() <= config.max_routes);
    assert!(router.entries().all(|(_, entry)| entry.hops > 0 && entry.precursors.is_sorted()));
    let counters = router.counters();
    probe.feature(("counted", counters.ignored > 0, counters.repairs > 0, counters.repaired > 0));
    probe.feature(("full", counters.table_full > 0, counters.errors_suppressed > 0));
}
