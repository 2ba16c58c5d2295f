//! The sender against gateways and a node that send anything.

use anabranch_core::set::{
    Layout, OpenWhen, Outcome, Reinjection, Sender, SenderConfig, Start, StreamEvent, StreamId, StreamStatus,
    StripingPolicy,
};
use anabranch_core::time::{Duration, Instant};
use anabranch_wire::set::{self as wire, Message, SetAck, SetAckStatus};
use arbitrary::{Result, Unstructured};
use bytes::Bytes;

use super::checked::Streams;
use super::{MAX_STEPS, answer_timers, close, messages, pass};
use crate::probe::Probe;

pub(super) fn run(octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
    let config = config(octets)?;
    probe.say(|| format!("{config:?}"));
    let length = u64::from(octets.int_in_range(0..=20_000u16)?);
    let file: Bytes = (0..length).map(messages::octet_at).collect();
    let mut now = Instant::ZERO;
    let node = "[fd00::100]:47200".parse().expect("an address");
    let mut sender = Sender::new(now, config, node, messages::TRANSFER, file);
    let mut streams = Streams::default();
    let mut ended = None;
    poll(&mut sender, now, &mut streams, probe);
    for _ in 0..MAX_STEPS {
        step(octets, &mut sender, length, &mut now, &mut streams, probe)?;
        // Most drivers poll after each call; the contract permits several calls before.
        if !octets.ratio(1, 8)? {
            poll(&mut sender, now, &mut streams, probe);
        }
        assert!(sender.delivered() <= length && sender.resumed_from() <= length);
        ended = check_outcome(&sender, ended, length, probe);
    }
    Ok(())
}

fn config(octets: &mut Unstructured<'_>) -> Result<SenderConfig> {
    let span = |octets: &mut Unstructured<'_>| Ok(Duration::from_millis(octets.int_in_range(0..=5000)?));
    let base = if octets.arbitrary()? { SenderConfig::default() } else { SenderConfig::paper() };
    Ok(SenderConfig {
        plan: messages::plan(octets)?,
        layout: *octets.choose(&[Layout::Compact, Layout::Paper])?,
        start: *octets.choose(&[Start::Early, Start::AfterSetAck])?,
        open: *octets.choose(&[OpenWhen::OneByOne, OpenWhen::Staggered, OpenWhen::AtOnce])?,
        striping: *octets.choose(&[StripingPolicy::Window, StripingPolicy::Predictive])?,
        reinjection: *octets.choose(&[Reinjection::Off, Reinjection::On])?,
        set_timeout: Duration::from_millis(octets.int_in_range(1..=5000)?),
        set_tries: octets.int_in_range(1..=8)?,
        patience: span(octets)?,
        silence: span(octets)?,
        request_tries: octets.int_in_range(1..=8)?,
        redials: octets.int_in_range(0..=3)?,
        busy_patience: span(octets)?,
        file: messages::identity(octets)?,
        ..base
    })
}

fn step(
    octets: &mut Unstructured<'_>,
    sender: &mut Sender,
    length: u64,
    now: &mut Instant,
    streams: &mut Streams,
    probe: &mut Probe,
) -> Result<()> {
    let stream = streams.choose(octets)?;
    match octets.int_in_range(0..=15)? {
        0 if octets.ratio(1, 32)? => {
            probe.say(|| format!("{now} cancels"));
            sender.cancel(*now);
        }
        0 => pass(octets, now)?,
        1 | 2 => {
            *now = sender.next_timeout().filter(|at| *at < Instant::FAR_FUTURE).unwrap_or(*now).max(*now)
        }
        3..=5 => tell(sender, *now, stream, StreamEvent::Opened, streams, probe),
        6 | 7 => {
            let status = status(octets)?;
            probe.say(|| format!("{now} {stream:?} {status:?}"));
            sender.handle_status(*now, stream, status);
        }
        8 if octets.ratio(1, 4)? => tell(sender, *now, stream, StreamEvent::Ended, streams, probe),
        9 if octets.ratio(1, 4)? => {
            let why = close(octets)?;
            tell(sender, *now, stream, StreamEvent::Closed(why), streams, probe);
            streams.closed(stream);
        }
        choice => {
            let said = match choice {
                10 => encoded(&Message::Accept(messages::accept(octets)?)),
                11 | 12 => {
                    let of = sender.sessions().position(|s| s.stream == stream).unwrap_or(0) as u8;
                    encoded(&Message::SetAck(SetAck { session: of, status: SetAckStatus::Open }))
                }
                13 | 14 => encoded(&Message::Ack(messages::ack(octets, length)?)),
                _ => messages::any(octets, length)?,
            };
            tell(sender, *now, stream, StreamEvent::Data(said.into()), streams, probe);
        }
    }
    if sender.next_timeout().is_some_and(|at| at <= *now) {
        poll(sender, *now, streams, probe);
        answer_timers(sender, *now, Sender::next_timeout, |s| {
            s.handle_timeout(*now);
            poll(s, *now, streams, probe);
        });
    }
    Ok(())
}

fn encoded(message: &Message) -> Vec<u8> {
    let mut out = Vec::new();
    wire::encode(message, &mut out);
    out
}

fn tell(
    sender: &mut Sender,
    now: Instant,
    stream: StreamId,
    event: StreamEvent,
    streams: &mut Streams,
    probe: &mut Probe,
) {
    if streams.may(stream, &event) {
        probe.say(|| format!("{now} {stream:?} {event:?}"));
        sender.handle_stream(now, stream, event);
    }
}

fn status(octets: &mut Unstructured<'_>) -> Result<StreamStatus> {
    let any = |octets: &mut Unstructured<'_>| {
        Ok(*octets.choose(&[0, 0, 0, 81, 1000, 1440, 5000, 14_400, 65_535, 1 << 20, u32::MAX])?)
    };
    Ok(StreamStatus {
        cwnd: any(octets)?,
        peer_window: any(octets)?,
        in_flight: any(octets)?,
        unsent: any(octets)?,
        mss: *octets.choose(&[0, 1, 24, 25, 81, 536, 1440, 65_495, u32::MAX])?,
        srtt: if octets.arbitrary()? {
            Some(Duration::from_micros(octets.int_in_range(0..=2_000_000)?))
        } else {
            None
        },
    })
}

fn poll(sender: &mut Sender, now: Instant, streams: &mut Streams, probe: &mut Probe) {
    let mut effects = 0;
    while let Some(effect) = sender.poll_effect(now) {
        streams.check(&effect, probe);
        effects += 1;
        assert!(effects < 100_000, "the sender never has enough");
    }
}

/// Checks that an outcome does not change, leaves no timer, and is not reported before all bytes
/// were sent.
fn check_outcome(
    sender: &Sender,
    before: Option<Outcome>,
    length: u64,
    probe: &mut Probe,
) -> Option<Outcome> {
    let outcome = sender.outcome();
    if before.is_some() {
        assert_eq!(outcome, before);
    }
    if let Some(outcome) = outcome {
        assert_eq!(sender.next_timeout(), None);
        assert!(outcome != Outcome::Delivered || sender.delivered() == length);
        probe.feature(format!("{outcome:?}"));
    }
    let states: Vec<String> = sender.sessions().take(3).map(|s| format!("{:?}", s.state)).collect();
    probe.feature(states.iter().map(|s| s.split(['(', ' ']).next().unwrap_or_default()).collect::<Vec<_>>());
    outcome
}
