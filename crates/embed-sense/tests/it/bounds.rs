//! A sender and a sink over a lossy path: every record arrives once and in order, and a call
//! allocates at most one record or one answer with its reference count. The library for C relies on
//! this, because a failed allocation would be fatal.

use std::net::SocketAddr;

use anabranch_core::rdca::{PeerId, Sink, SinkConfig, SinkEvent};
use anabranch_core::time::{Duration, Instant};
use anabranch_secure::datagram::{Accepts, PeerNumber, Responder};
use anabranch_secure::{SharedKey, entropy};
use anabranch_sense::api::kind;
use anabranch_sense::node::Node;
use anabranch_sense::record::Record;
use anabranch_sense::since_start;
use anabranch_sense::sizes::Sizes;
use anabranch_testkit::counting::{allocations, in_use};
use anabranch_testkit::prng::Prng;
use anabranch_wire::rdca::encode;
use bytes::Bytes;

const FROM: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1);

/// A sink that counts records.
struct Receiver {
    responder: Responder,
    sink: Sink,
    plain: Vec<u8>,
    next: u32,
}

impl Receiver {
    fn new(shared: Option<SharedKey>) -> Self {
        let accepts = Accepts {
            insecure: shared.is_none(),
            shared: shared.into_iter().collect(),
            ..Accepts::default()
        };
        let responder =
            Responder::new(since_start(Instant::ZERO), accepts, 10, entropy).expect("there is entropy");
        Self { responder, sink: Sink::new(SinkConfig::default(), 3), plain: Vec::new(), next: 0 }
    }

    /// Handles a datagram, and returns the answers.
    fn datagram(&mut self, now: Instant, datagram: &[u8]) -> Vec<Vec<u8>> {
        if let Some(received) = self.responder.handle(since_start(now), FROM, datagram, &mut self.plain) {
            let message = Bytes::copy_from_slice(&self.plain);
            self.sink.handle_datagram(now, PeerId(received.peer.0), &message);
        }
        self.answers(now)
    }

    fn answers(&mut self, now: Instant) -> Vec<Vec<u8>> {
        if self.sink.next_timeout().is_some_and(|at| at <= now) {
            self.sink.handle_timeout(now);
        }
        while let Some(event) = self.sink.poll_event() {
            if let SinkEvent::Packet { payload, .. } = event {
                let record = Record::decode(&payload).expect("a record");
                assert_eq!((record.number, &record.payload[..]), (self.next, &payload_of(self.next)[..]));
                self.next += 1;
            }
        }
        let mut answers = Vec::new();
        while let Some((_, datagram)) = self.responder.poll_transmit() {
            answers.push(datagram);
        }
        while let Some((peer, message)) = self.sink.poll_transmit(now) {
            let (mut octets, mut out) = (Vec::new(), Vec::new());
            encode(&message, &mut octets);
            let sealed = self.responder.seal(since_start(now), PeerNumber(peer.0), &octets, &mut out);
            answers.extend(sealed.is_ok().then_some(out));
        }
        answers
    }
}

/// The payload of a record.
fn payload_of(number: u32) -> Vec<u8> {
    vec![number as u8; number as usize % 101]
}

fn run(shared: Option<&SharedKey>, loss: u64) {
    let sizes = Sizes::default();
    let before = in_use();
    let name = "probe".parse().expect("a name");
    let mut node = Node::new(&sizes, &name, 77, shared.cloned(), entropy);
    let lasting = in_use() - before;
    // The counters round each of ten allocations.
    let parts: usize = sizes.parts().iter().map(|(_, octets)| octets).sum::<usize>() - sizes.parts()[1].1;
    assert!(lasting <= parts as i64 + 10 * 16, "{lasting} bytes of {parts}");
    let mut random = Prng::new(5);
    let mut receiver = Receiver::new(shared.cloned());
    let (mut now, mut up, mut down) = (Instant::ZERO, Vec::<Vec<u8>>::new(), Vec::<Vec<u8>>::new());
    let (mut written, mut is_over) = (0, false);
    // No more than two allocations in a call.
    let call = |node: &mut Node, method: &mut dyn FnMut(&mut Node)| {
        let before = allocations();
        method(node);
        assert!(allocations() - before <= 2);
    };
    call(&mut node, &mut |node| node.open(now));
    for _ in 0..40_000 {
        now += Duration::from_millis(5);
        if written < 500 {
            let payload = payload_of(written);
            call(&mut node, &mut |node| written += u32::from(node.write(now, 0, &payload).is_ok()));
        } else {
            call(&mut node, &mut |node| node.close(now));
        }
        for datagram in std::mem::take(&mut down) {
            if !random.chance(loss) {
                call(&mut node, &mut |node| node.datagram(now, &datagram));
            }
        }
        if node.next_timeout().is_some_and(|at| at <= now) {
            call(&mut node, &mut |node| node.timeout(now));
        }
        while let Some(datagram) = node.poll(now) {
            assert!(datagram.len() <= sizes.longest());
            if !random.chance(loss) {
                up.push(datagram.to_vec());
            }
        }
        while let Some(event) = node.event() {
            is_over |= event.kind == kind::ENDED && event.complete == 1;
            assert!(event.confirmed <= receiver.next.into() && event.written == u64::from(written));
        }
        if is_over {
            break;
        }
        for datagram in std::mem::take(&mut up) {
            down.extend(receiver.datagram(now, &datagram));
        }
        down.extend(receiver.answers(now));
    }
    assert!(is_over && receiver.next == 500, "{} of 500, {:?}", receiver.next, node.counters());
    assert!(loss == 0 || node.counters().repeated > 10, "{:?}", node.counters());
}

#[test]
fn records_arrive_once_and_in_order_and_no_call_allocates_more_than_two_blocks() {
    let key = SharedKey::from_octets([9; 32]);
    for loss in [0, 10, 30] {
        run(Some(&key), loss);
        run(None, loss);
    }
}
