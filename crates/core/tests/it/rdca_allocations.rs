//! In the steady state, including losses and retransmissions, neither sender nor sink allocates
//! memory for a packet; payloads are passed on without copying.

use anabranch_core::rdca::{Config, Incarnation, Message, PeerId, Sender, Seq, Sink, SinkEvent};
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::counting::allocations;
use bytes::Bytes;

struct Pair {
    now: Instant,
    sender: Sender,
    sink: Sink,
    /// Messages in transit, delivered one round later.
    up: Vec<Message>,
    down: Vec<Message>,
    delivered: u32,
    datagrams: u32,
}

impl Pair {
    fn round(&mut self, payload: &Bytes) {
        self.now += Duration::from_millis(20);
        let now = self.now;
        // The sender may refuse the packet while it repairs a loss.
        let _ = self.sender.write(now, payload.clone());
        for message in self.up.drain(..) {
            self.sink.handle_message(now, PeerId(7), &message);
        }
        for message in self.down.drain(..) {
            self.sender.handle_message(now, &message);
        }
        if self.sender.next_timeout().is_some_and(|at| at <= now) {
            self.sender.handle_timeout(now);
        }
        if self.sink.next_timeout().is_some_and(|at| at <= now) {
            self.sink.handle_timeout(now);
        }
        while let Some(message) = self.sender.poll_transmit(now) {
            self.datagrams += 1;
            if !self.datagrams.is_multiple_of(23) {
                self.up.push(message);
            }
        }
        while let Some((_, message)) = self.sink.poll_transmit(now) {
            self.down.push(message);
        }
        while let Some(event) = self.sink.poll_event() {
            self.delivered += u32::from(matches!(event, SinkEvent::Packet { .. }));
        }
        while self.sender.poll_event().is_some() {}
    }
}

#[test]
fn packets_allocate_nothing() {
    for config in [Config::default(), Config::paper()] {
        let mut pair = Pair {
            now: Instant::ZERO,
            sender: Sender::new(config.sender, Incarnation(1), Seq(u32::MAX - 1000)),
            sink: Sink::new(config.sink, 5),
            up: Vec::with_capacity(64),
            down: Vec::with_capacity(64),
            delivered: 0,
            datagrams: 0,
        };
        // A slice as in drivers: the buffer is already shared.
        let payload = Bytes::from(vec![0_u8; 284]).slice(..283);
        for _ in 0..2_000 {
            pair.round(&payload);
        }
        let (before, delivered) = (allocations(), pair.delivered);
        for _ in 0..10_000 {
            pair.round(&payload);
        }
        assert_eq!(allocations() - before, 0);
        assert!(pair.delivered - delivered > 4_000, "{}", pair.delivered);
        assert!(pair.sender.info().counters.snacks > 50);
    }
}
