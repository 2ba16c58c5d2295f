//! Busy nodes, and senders that try to occupy them.

use anabranch_core::set::*;
use anabranch_core::time::{Duration, Instant};
use anabranch_wire::set::{Message, Refuse, VERSION};

use super::resume::{Node, asks, identity};
use super::world::chunk;

fn at(milliseconds: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(milliseconds)
}

/// The node's reaction to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    /// The owner has accepted the request.
    Accepted,
    /// The owner has declined the request.
    Declined,
    Busy,
}

/// A node whose owner accepts only some files.
struct Asked(Node);

impl Asked {
    /// A node that has just begun to serve transfer 99 of an honest sender.
    fn busy() -> Self {
        let mut asked = Self(Node::new(asks()));
        assert_eq!(asked.ask(at(1), 99, None, true), Answer::Accepted);
        asked
    }

    fn ask(&mut self, now: Instant, transfer: u64, sender: Option<SenderId>, is_good: bool) -> Answer {
        self.0.now = now;
        let stream = self.0.machine.handle_accepted(now);
        if let Some(sender) = sender {
            self.0.machine.introduce(stream, sender);
        }
        let request = Request {
            version: VERSION,
            transfer: TransferId(transfer),
            length: 100,
            plan: Plan::Stripe,
            file: identity(1),
            copy: false,
            manifest: None,
        };
        self.0.say(stream, &Message::Request(request));
        if self.0.machine.asked().is_some() {
            match is_good {
                true => self.0.grant(transfer, 0),
                false => self.0.machine.decline(now, TransferId(transfer), RefuseReason::Signature, 0),
            }
        }
        let (said, _) = self.0.says(stream);
        self.0.machine.handle_stream(now, stream, StreamEvent::Closed(StreamClose::Graceful));
        match &said[..] {
            [Message::Refuse(Refuse { reason: RefuseReason::Busy, .. })] => Answer::Busy,
            [Message::Refuse(Refuse { reason: RefuseReason::Signature, .. })] => Answer::Declined,
            [.., Message::Accept(_)] => Answer::Accepted,
            other => panic!("{other:?}"),
        }
    }
}

/// A sender that repeatedly requests its accepted transfer and sends no data.
#[test]
fn requests_that_are_repeated_do_not_hold_the_node() {
    let mut node = Asked(Node::new(asks()));
    assert_eq!(node.ask(at(0), 1, None, true), Answer::Accepted);
    for second in 1..61 {
        assert_eq!(node.ask(at(second * 1000 - 500), 2, None, true), Answer::Busy, "{second} s");
        assert_eq!(node.ask(at(second * 1000 - 1), 1, None, true), Answer::Accepted, "{second} s");
    }
    assert_eq!(node.ask(at(60_000), 2, None, true), Answer::Accepted);
}

/// Bytes that the node already holds do not count as progress, in order or not. Other bytes do.
#[test]
fn only_new_octets_hold_the_node() {
    // The node has bytes 0 to 10 and 20 to 30.
    for (octets, is_new) in [
        (0..10, false),
        (5..10, false),
        (20..30, false),
        (22..28, false),
        (5..11, true),
        (10..12, true),
        (25..31, true),
        (40..41, true),
    ] {
        let mut node = Node::new(asks());
        assert_eq!(node.answers(1, 1), "waits");
        node.grant(1, 0);
        node.bring(1, 0..10);
        node.bring(1, 20..30);
        node.pass(50);
        node.bring(1, octets.clone());
        node.pass(9);
        assert_eq!(node.answers(2, 2), "busy", "{octets:?}");
        node.pass(1);
        assert_eq!(node.answers(2, 2), if is_new { "busy" } else { "waits" }, "{octets:?}");
        if is_new {
            node.pass(49);
            assert_eq!(node.answers(2, 2), "busy", "{octets:?}");
            node.pass(1);
            assert_eq!(node.answers(2, 2), "waits", "{octets:?}");
        }
    }
}

/// A sender with many requests that its owner never accepts.
#[test]
fn requests_that_are_declined_delay_nobody() {
    for (thief_period, honest_period) in [(200, 3_000), (1_000, 3_000), (5_000, 3_000), (10_000, 1_000)] {
        for thief in [None, Some(SenderId::new(666))] {
            let mut node = Asked::busy();
            let (mut next_thief, mut next_honest, mut is_free) = (10, 2_000, false);
            let let_in = loop {
                let now = next_thief.min(next_honest);
                assert!(now < 60_000, "{thief_period} and {honest_period} ms: never");
                if now >= 30_000 && !is_free {
                    is_free = true;
                    node.0.machine.forget(at(30_000));
                }
                if next_thief <= next_honest {
                    (1_000..1_016).for_each(|id| _ = node.ask(at(now), id, thief, false));
                    next_thief += thief_period;
                } else {
                    let honest = Some(SenderId::new(1)).filter(|_| thief.is_some());
                    if node.ask(at(now), 7, honest, true) == Answer::Accepted {
                        break now;
                    }
                    next_honest += honest_period;
                }
            };
            assert!(
                let_in <= 30_000 + 10_000 + honest_period,
                "{thief_period}, {honest_period}: {let_in} ms"
            );
        }
    }
}

/// A similar sender that never takes its turn: it repeats only requests that are not first in the
/// queue, and renews the one that lost its turn.
#[test]
fn turns_that_are_not_taken_keep_no_node_idle() {
    for honest_period in [997, 3_001, 7_919] {
        for thief in [None, Some(SenderId::new(666))] {
            let mut node = Asked::busy();
            let ids = 1_000..1_016;
            for now in [10, 20, 29_990] {
                ids.clone().for_each(|id| _ = node.ask(at(now), id, thief, false));
            }
            node.0.machine.forget(at(30_000));
            let mut next_honest = 31_000;
            let let_in = loop {
                assert!(next_honest < 60_000, "every {honest_period} ms: never");
                // In reverse order: one of the requests is accepted out of turn, and the next in
                // turn still does not arrive.
                (1_001..1_016).rev().for_each(|id| _ = node.ask(at(next_honest - 1), id, thief, false));
                let honest = Some(SenderId::new(1)).filter(|_| thief.is_some());
                if node.ask(at(next_honest), 7, honest, true) == Answer::Accepted {
                    break next_honest;
                }
                next_honest += honest_period;
            };
            assert!(let_in <= 40_000 + honest_period, "every {honest_period} ms: {let_in} ms");
        }
    }
}

/// A sender with any number of accepted transfers that sends no data: another sender gets every
/// second turn.
#[test]
fn a_sender_with_many_transfers_takes_turns_with_the_others() {
    let (thief, honest) = (Some(SenderId::new(666)), Some(SenderId::new(1)));
    let mut node = Asked::busy();
    node.0.machine.forget(at(2));
    let (mut now, mut turns) = (10, 0);
    while turns < 5 {
        now += 200;
        assert!(now < 5 * 160_000, "{turns} turns");
        (1_000..1_030).for_each(|id| _ = node.ask(at(now), id, thief, true));
        if now % 5_000 == 10 && node.ask(at(now), 7 + turns, honest, true) == Answer::Accepted {
            turns += 1;
            node.0.bring(6 + turns, 0..100);
            assert!(node.0.machine.is_complete());
        }
    }
}

#[test]
fn a_session_of_another_transfer_is_reset() {
    let mut node = Node::new(asks());
    assert_eq!(node.answers(1, 1), "waits");
    node.grant(1, 0);
    let stream = node.bring(2, 0..50);
    let effects: Vec<Effect> = std::iter::from_fn(|| node.machine.poll_effect()).collect();
    assert!(effects.contains(&Effect::Abort { stream }), "{effects:?}");
    assert_eq!(node.machine.delivered(), Some((TransferId(1), 0)));
    assert_eq!(node.machine.counters().rejected, 1);
}

#[test]
fn a_request_of_another_version_is_refused() {
    for version in [0, VERSION + 1, u8::MAX] {
        let mut node = Node::new(ReceiverConfig::default());
        let stream = node.machine.handle_accepted(node.now);
        let request = Request {
            version,
            transfer: TransferId(1),
            length: 100,
            plan: Plan::Stripe,
            file: None,
            copy: false,
            manifest: None,
        };
        node.say(stream, &Message::Request(request));
        let refuse = Refuse { reason: RefuseReason::Version, delivered: 0 };
        assert_eq!(node.says(stream).0, [Message::Refuse(refuse)]);
        assert_eq!(node.machine.delivered(), None);
    }
}

/// The reason for the abort of a transfer is reported to its own sessions until another transfer
/// starts.
#[test]
fn why_a_transfer_was_given_up_is_not_told_to_sessions_after_the_next_has_begun() {
    let mut node = Node::new(asks());
    node.request(1, 1);
    node.grant(1, 0);
    node.machine.abort(node.now, RefuseReason::NoRoom);
    let refuse = Refuse { reason: RefuseReason::NoRoom, delivered: 0 };
    let stream = node.bring(1, 0..10);
    assert_eq!(node.says(stream).0, [Message::Refuse(refuse)]);
    node.request(2, 2);
    node.grant(2, 0);
    let stream = node.bring(1, 0..10);
    let effects: Vec<Effect> = std::iter::from_fn(|| node.machine.poll_effect()).collect();
    assert!(effects.contains(&Effect::Abort { stream }), "{effects:?}");
    let is_answer = |effect: &Effect| matches!(effect, Effect::Write { stream: to, .. } if *to == stream);
    assert!(!effects.iter().any(is_answer), "{effects:?}");
}

/// A sender sends nothing before the answer, unless its request announces a copy.
#[test]
fn octets_behind_a_request_that_waits_for_the_owner_reset_its_stream() {
    for octets in [vec![0x90], chunk(0, b"12345"), vec![0]] {
        let mut node = Node::new(asks());
        let stream = node.request(1, 1);
        node.machine.handle_stream(node.now, stream, StreamEvent::Data(octets.into()));
        let effects: Vec<Effect> = std::iter::from_fn(|| node.machine.poll_effect()).collect();
        assert_eq!(effects.last(), Some(&Effect::Abort { stream }), "{effects:?}");
        assert_eq!(node.machine.counters().rejected, 1);
        node.grant(1, 0);
        assert_eq!(node.says(stream).0, [], "its stream is gone");
        assert_eq!(node.machine.delivered(), Some((TransferId(1), 0)));
    }
}
