//! The sink against senders that send anything.

use std::collections::BTreeMap;

use anabranch_core::rdca::{Incarnation, Message, PeerId, Seq, Sink, SinkEvent, StreamId};
use anabranch_core::time::Instant;
use anabranch_wire::rdca::TimeStamp;
use arbitrary::{Result, Unstructured};

use super::messages::{self, PIECE, Seen};
use super::{MAX_STEPS, MAX_TURNS, check_message, config, pass};
use crate::probe::Probe;

pub(super) fn run(octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
    let config = config(octets)?.sink;
    let mut sink = Sink::new(config, u32::MAX);
    let seen =
        Seen { incarnation: Incarnation(1), stream: StreamId(u32::MAX), seq: Seq(0), time: TimeStamp(0) };
    let mut peers: BTreeMap<u64, Seen> = (0..4).map(|peer| (peer, seen)).collect();
    let mut next: BTreeMap<PeerId, Seq> = BTreeMap::new();
    let mut now = Instant::ZERO;
    for _ in 0..MAX_STEPS {
        let id = octets.int_in_range(0..=3)?;
        match octets.int_in_range(0..=15)? {
            0 | 1 => pass(octets, &mut now)?,
            2 => now = sink.next_timeout().unwrap_or(now).max(now),
            3 if octets.ratio(1, 8)? => sink.abort(PeerId(id)),
            _ => {
                let seen = peers.entry(id).or_insert(seen);
                seen.time = TimeStamp((now.as_nanos() / 1000) as u32);
                let message = messages::up(octets, seen)?;
                if let Message::Data(data) = &message {
                    seen.seq = data.seq;
                }
                probe.say(|| format!("{now:?} {id} <- {message:?}"));
                sink.handle_message(now, PeerId(id), &message);
            }
        }
        let mut turns = 0;
        loop {
            while let Some((peer, message)) = sink.poll_transmit(now) {
                turns += 1;
                assert!(turns < MAX_TURNS, "it does not stop sending");
                check_message(&message, probe);
                if let (Message::Reply(reply), Some(seen)) = (&message, peers.get_mut(&peer.0)) {
                    seen.stream = reply.stream;
                }
            }
            if sink.next_timeout().is_none_or(|at| at > now) {
                break;
            }
            turns += 1;
            assert!(turns < MAX_TURNS, "a timer that was answered is still due");
            sink.handle_timeout(now);
        }
        while let Some(event) = sink.poll_event() {
            probe.say(|| format!("{event:?}"));
            probe.feature(std::mem::discriminant(&event));
            check_order(&mut next, &event);
        }
        assert!(sink.held() <= config.held_packets && sink.senders() <= config.senders);
        probe.feature((sink.held(), sink.senders()));
    }
    Ok(())
}

/// Checks that no packet is missing, delivered twice, or delivered outside of a stream.
fn check_order(next: &mut BTreeMap<PeerId, Seq>, event: &SinkEvent) {
    match event {
        SinkEvent::Opened { peer, first } => assert_eq!(next.insert(*peer, *first), None, "{event:?}"),
        SinkEvent::Packet { peer, seq, payload } => {
            // One packet for each piece; all pieces are equal.
            let pieces = payload.len().div_ceil(PIECE.len()).max(1) as u32;
            assert_eq!(next.insert(*peer, *seq + pieces), Some(*seq), "{event:?}");
        }
        SinkEvent::Gone { peer, range } => {
            assert_eq!(next.insert(*peer, range.end), Some(range.start), "{event:?}");
            assert!(!range.is_empty());
        }
        SinkEvent::Ended { peer, next: at, .. } => assert_eq!(next.remove(peer), Some(*at), "{event:?}"),
    }
}
