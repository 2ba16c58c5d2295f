//! The sender against a sink that sends anything.

use anabranch_core::rdca::{Incarnation, Message, Sender, SenderConfig, SenderEvent, Seq, StreamId};
use anabranch_core::time::Instant;
use anabranch_wire::rdca::TimeStamp;
use arbitrary::{Result, Unstructured};
use bytes::Bytes;

use super::messages::{self, Seen};
use super::{MAX_STEPS, MAX_TURNS, check_message, config, pass};
use crate::probe::Probe;

struct Checked {
    sender: Sender,
    config: SenderConfig,
    seen: Seen,
    /// One past the last packet that was written.
    end: Seq,
    confirmed: Seq,
    closed: bool,
}

pub(super) fn run(octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
    let config = config(octets)?.sender;
    let first = Seq(*octets.choose(&[0, u32::MAX - 3])?);
    let incarnation = Incarnation(4);
    let mut checked = Checked {
        sender: Sender::new(config, incarnation, first),
        config,
        seen: Seen { incarnation, stream: StreamId(9), seq: first, time: TimeStamp(0) },
        end: first,
        confirmed: first,
        closed: false,
    };
    let mut now = Instant::ZERO;
    for _ in 0..MAX_STEPS {
        checked.step(octets, &mut now, probe)?;
        let mut turns = 0;
        while checked.sender.next_timeout().is_some_and(|at| at <= now) {
            turns += 1;
            assert!(turns < MAX_TURNS, "a timer that was answered is still due");
            checked.sender.handle_timeout(now);
            checked.poll(now, probe);
        }
        checked.poll(now, probe);
    }
    Ok(())
}

impl Checked {
    fn step(&mut self, octets: &mut Unstructured<'_>, now: &mut Instant, probe: &mut Probe) -> Result<()> {
        match octets.int_in_range(0..=15)? {
            0 => pass(octets, now)?,
            1..=3 => *now = self.sender.next_timeout().unwrap_or(*now).max(*now),
            4 if octets.ratio(1, 4)? => self.sender.close(*now),
            5 if octets.ratio(1, 8)? => self.sender.abort(),
            6 => self.sender.path_lost(*now),
            7..=10 => {
                let writable = self.sender.is_writable(*now);
                let payload = Bytes::from(vec![0; octets.int_in_range(0..=30)?]);
                // A write longer than a datagram becomes several packets.
                let packets = self.config.pieces(payload.len()) as u32;
                match self.sender.write(*now, payload) {
                    Ok(seq) => {
                        assert!(writable && seq == self.end, "{seq:?} {:?}", self.end);
                        self.end = seq + packets;
                    }
                    Err(error) => probe.feature(std::mem::discriminant(&error)),
                }
            }
            _ => {
                self.seen.time = TimeStamp((now.as_nanos() / 1000) as u32);
                let message = messages::down(octets, &self.seen)?;
                probe.say(|| format!("{now:?} <- {message:?}"));
                self.sender.handle_message(*now, &message);
            }
        }
        Ok(())
    }

    fn poll(&mut self, now: Instant, probe: &mut Probe) {
        let mut turns = 0;
        while let Some(message) = self.sender.poll_transmit(now) {
            turns += 1;
            assert!(turns < MAX_TURNS, "it does not stop sending");
            check_message(&message, probe);
            assert!(!self.closed || matches!(message, Message::Reset(_)), "sent after the end");
            match &message {
                Message::Data(data) => {
                    assert!(data.seq.lt(self.end) && self.confirmed.le(data.seq), "{data:?}");
                    self.seen.seq = data.seq;
                }
                Message::Request(request) => self.seen.incarnation = request.incarnation,
                _ => {}
            }
        }
        while let Some(event) = self.sender.poll_event() {
            probe.say(|| format!("{event:?}"));
            probe.feature(std::mem::discriminant(&event));
            assert!(!self.closed, "told after the end");
            match event {
                SenderEvent::Confirmed { next } => {
                    assert!(self.confirmed.lt(next) && next.le(self.end), "confirmed what was not written");
                    self.confirmed = next;
                }
                SenderEvent::SinkLost { unknown } => self.confirmed = unknown.end,
                SenderEvent::Closed { unsent, .. } => {
                    assert_eq!(unsent.end, self.end);
                    self.closed = true;
                }
                _ => {}
            }
        }
        let info = self.sender.info();
        assert!(info.queued <= 24 && info.window >= 1 && info.rate >= 1, "{info:?}");
        probe.feature((info.phase, info.window.min(40), info.queued));
    }
}
