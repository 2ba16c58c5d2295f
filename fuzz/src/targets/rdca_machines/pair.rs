//! A sender and a sink over a channel that disturbs datagrams in every way, and at the end no
//! longer does.

use std::collections::BTreeSet;

use anabranch_core::rdca::{Incarnation, Message, PeerId, Range, Sender, SenderEvent, Seq, Sink, SinkEvent};
use anabranch_core::time::{Duration, Instant};
use arbitrary::{Result, Unstructured};
use bytes::Bytes;

use super::{MAX_STEPS, MAX_TURNS, check_message, config, pass};
use crate::probe::Probe;

const PEER: PeerId = PeerId(1);

struct Both {
    now: Instant,
    sender: Sender,
    sink: Sink,
    up: Vec<Message>,
    down: Vec<Message>,
    written: BTreeSet<u32>,
    delivered: Vec<Seq>,
    told: BTreeSet<u32>,
    closed: bool,
}

pub(super) fn run(octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
    let mut config = config(octets)?;
    config.sink.senders = 1;
    let mut both = Both {
        now: Instant::ZERO,
        sender: Sender::new(config.sender, Incarnation(4), Seq(u32::MAX - 5)),
        sink: Sink::new(config.sink, 1),
        up: Vec::new(),
        down: Vec::new(),
        written: BTreeSet::new(),
        delivered: Vec::new(),
        told: BTreeSet::new(),
        closed: false,
    };
    let mut lives = 1;
    for _ in 0..MAX_STEPS {
        match octets.int_in_range(0..=16)? {
            0 => pass(octets, &mut both.now)?,
            1..=4 => both.jump(),
            5..=8 => {
                if let Ok(seq) = both.sender.write(both.now, Bytes::from_static(b"octets")) {
                    both.written.insert(seq.0);
                }
            }
            9 if octets.ratio(1, 8)? => {
                lives += 1;
                both.sink = Sink::new(config.sink, 1000 * lives);
            }
            10 => drop(take(octets, &mut both.up)?),
            11 => drop(take(octets, &mut both.down)?),
            12 => both.up.extend(both.up.first().cloned()),
            13 => both.down.extend(both.down.first().cloned()),
            14 => both.store(),
            15 => {
                if let Some(message) = take(octets, &mut both.down)? {
                    both.sender.handle_message(both.now, &message);
                }
            }
            _ => {
                if let Some(message) = take(octets, &mut both.up)? {
                    both.sink.handle_message(both.now, PEER, &message);
                }
            }
        }
        both.settle(probe);
    }
    both.finish(probe);
    Ok(())
}

/// Takes any of the datagrams on the way.
fn take(octets: &mut Unstructured<'_>, messages: &mut Vec<Message>) -> Result<Option<Message>> {
    Ok(match messages.len() {
        0 => None,
        len => Some(messages.remove(octets.choose_index(len)?)),
    })
}

impl Both {
    fn next_timeout(&self) -> Option<Instant> {
        self.sender.next_timeout().into_iter().chain(self.sink.next_timeout()).min()
    }

    fn jump(&mut self) {
        self.now = self.next_timeout().unwrap_or(self.now).max(self.now);
    }

    fn settle(&mut self, probe: &mut Probe) {
        let now = self.now;
        for turn in 0.. {
            assert!(turn < MAX_TURNS, "a timer that was answered is still due");
            while let Some(message) = self.sender.poll_transmit(now) {
                check_message(&message, probe);
                self.up.push(message);
            }
            while let Some((_, message)) = self.sink.poll_transmit(now) {
                check_message(&message, probe);
                self.down.push(message);
            }
            if self.next_timeout().is_none_or(|at| at > now) {
                break;
            }
            self.sender.handle_timeout(now);
            self.sink.handle_timeout(now);
        }
        while let Some(event) = self.sink.poll_event() {
            probe.say(|| format!("{now:?} sink {event:?}"));
            if let SinkEvent::Packet { seq, .. } = event {
                assert!(
                    self.delivered.last().is_none_or(|last| last.lt(seq)),
                    "{seq:?} after {:?}",
                    self.delivered
                );
                assert!(self.written.contains(&seq.0));
                self.delivered.push(seq);
            }
        }
        while let Some(event) = self.sender.poll_event() {
            probe.say(|| format!("{now:?} sender {event:?}"));
            probe.feature(std::mem::discriminant(&event));
            match event {
                SenderEvent::Gone(range) | SenderEvent::SinkLost { unknown: range } => self.tell(range),
                SenderEvent::Closed { unknown, unsent, outcome } => {
                    probe.feature(outcome);
                    self.tell(unknown);
                    self.tell(unsent);
                    self.closed = true;
                }
                _ => {}
            }
        }
    }

    fn tell(&mut self, range: Range) {
        self.told.extend((0..range.len()).map(|i| (range.start + i).0));
    }

    /// The sink's owner stores what it has got.
    fn store(&mut self) {
        if let Some(mark) = self.sink.mark(PEER) {
            self.sink.stored(self.now, PEER, mark);
        }
    }

    /// Runs to the end with a faultless channel.
    fn finish(&mut self, probe: &mut Probe) {
        self.sender.close(self.now);
        for _ in 0..20_000 {
            self.settle(probe);
            for message in std::mem::take(&mut self.up) {
                self.sink.handle_message(self.now, PEER, &message);
            }
            self.settle(probe);
            self.store();
            self.settle(probe);
            for message in std::mem::take(&mut self.down) {
                self.sender.handle_message(self.now, &message);
            }
            self.settle(probe);
            if self.closed {
                let missing = |seq: &&u32| !self.delivered.contains(&Seq(**seq)) && !self.told.contains(seq);
                assert_eq!(self.written.iter().find(missing), None, "lost, and nobody was told");
                return;
            }
            if self.up.is_empty() && self.down.is_empty() {
                self.jump();
            } else {
                self.now += Duration::from_millis(10);
            }
        }
        panic!("it never ends: {:?}", self.sender.info());
    }
}
