//! The gateway against senders and nodes that send anything. Peers respect the offered window,
//! since TCP forces them to.

use anabranch_core::set::{Relay, RelayConfig, StreamEvent, StreamStatus};
use anabranch_core::time::{Duration, Instant};
use arbitrary::{Result, Unstructured};

use super::checked::Streams;
use super::{MAX_STEPS, answer_timers, close, messages, pass};
use crate::probe::Probe;

pub(super) fn run(octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
    let config = if octets.arbitrary()? { RelayConfig::default() } else { RelayConfig::paper() };
    let mut relay = Relay::new(config);
    let mut streams = Streams::default();
    let mut now = Instant::ZERO;
    for _ in 0..MAX_STEPS {
        step(octets, &mut relay, &mut now, &mut streams, probe)?;
        answer_timers(&mut relay, now, Relay::next_timeout, |r| r.handle_timeout(now));
        while let Some(effect) = relay.poll_effect() {
            streams.check(&effect, probe);
        }
        let counters = relay.counters();
        probe.feature((
            counters.opened.min(3),
            counters.unreachable.min(3),
            counters.rejected.min(3),
            counters.octets_down.min(1),
            counters.octets_up.min(1),
        ));
        let said = counters.octets_down + counters.octets_up + (counters.opened + counters.unreachable) * 32;
        assert!(streams.written <= said + 32 * MAX_STEPS as u64, "more was written than said");
    }
    Ok(())
}

fn step(
    octets: &mut Unstructured<'_>,
    relay: &mut Relay,
    now: &mut Instant,
    streams: &mut Streams,
    probe: &mut Probe,
) -> Result<()> {
    let stream = streams.choose(octets)?;
    let event = match octets.int_in_range(0..=13)? {
        0 | 1 => {
            let stream = relay.handle_accepted(*now);
            probe.say(|| format!("{now} accepts {stream:?}"));
            streams.accepted(stream);
            return Ok(());
        }
        2 => return pass(octets, now),
        3 => {
            *now = relay.next_timeout().unwrap_or(*now).max(*now);
            return Ok(());
        }
        4 => {
            let status = StreamStatus {
                peer_window: octets.int_in_range(0..=100_000)?,
                in_flight: octets.int_in_range(0..=100_000)?,
                unsent: octets.int_in_range(0..=100_000)?,
                ..StreamStatus::default()
            };
            relay.handle_status(*now, stream, status);
            return Ok(());
        }
        5 => {
            relay.handle_round_trip(*now, stream, Duration::from_micros(octets.int_in_range(0..=5_000_000)?));
            return Ok(());
        }
        6 => StreamEvent::Ended,
        7 if octets.ratio(1, 2)? => StreamEvent::Closed(close(octets)?),
        8 | 9 => StreamEvent::Opened,
        _ => {
            let said = messages::any(octets, 1000)?;
            let window = streams.window(stream);
            let n = said.len().min(*window as usize);
            *window -= n as u32;
            StreamEvent::Data(said[..n].to_vec().into())
        }
    };
    if !streams.may(stream, &event) {
        return Ok(());
    }
    probe.say(|| format!("{now} {stream:?} {event:?}"));
    let closed = matches!(event, StreamEvent::Closed(_));
    relay.handle_stream(*now, stream, event);
    if closed {
        streams.closed(stream);
    }
    Ok(())
}
