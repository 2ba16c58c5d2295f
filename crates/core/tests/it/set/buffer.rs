//! The node's receive buffer, divided among the sessions of a transfer.

use std::collections::BTreeMap;

use anabranch_core::set::*;
use anabranch_core::time::{Duration, Instant};
use anabranch_wire::set::{self as wire, Join, Message, VERSION};

use super::world::chunk;

/// The new limits of the streams at the node, where they have changed.
fn limits(node: &mut Receiver) -> BTreeMap<StreamId, u32> {
    std::iter::from_fn(|| node.poll_effect())
        .filter_map(|effect| match effect {
            Effect::LimitReceive { stream, octets } => Some((stream, octets)),
            _ => None,
        })
        .collect()
}

fn say(node: &mut Receiver, message: &Message, octets: &[u8]) -> StreamId {
    let stream = node.handle_accepted(Instant::ZERO);
    let mut said = Vec::new();
    wire::encode(message, &mut said);
    said.extend_from_slice(octets);
    node.handle_stream(Instant::ZERO, stream, StreamEvent::Data(said.into()));
    stream
}

/// Section 4.4: share_i = B_2 rate_i / sum of rates, computed again after each period.
#[test]
fn section_4_4_shares_follow_what_each_session_delivers() {
    let mut node = Receiver::new(ReceiverConfig { buffer: 64_000, ..ReceiverConfig::paper() });
    let transfer = TransferId(7);
    let request = Request {
        version: VERSION,
        transfer,
        length: 100_000,
        plan: Plan::Stripe,
        file: None,
        copy: false,
        manifest: None,
    };
    say(&mut node, &Message::Request(request), &[]);
    let join = |session| Message::Join(Join { transfer, session, sessions: 2, plan: Plan::Stripe });
    let good = say(&mut node, &join(0), &chunk(0, &[0; 3000]));
    let poor = say(&mut node, &join(1), &chunk(3000, &[0; 1000]));
    let at_first = limits(&mut node);
    assert_eq!((at_first[&good], at_first[&poor]), (32_000, 32_000), "nothing is measured yet");
    let mut later = BTreeMap::new();
    while later.is_empty() {
        let at = node.next_timeout().expect("the shares are reckoned anew");
        assert!(at < Instant::ZERO + Duration::from_secs(2), "after two seconds they are as they were");
        node.handle_timeout(at);
        later = limits(&mut node);
    }
    assert_eq!((later[&good], later[&poor]), (48_000, 16_000));
}

/// Reads longer than the buffer, from two sessions and with a slow driver: the bytes are delivered
/// in order, regardless of how they are stored.
#[test]
fn what_is_read_at_once_may_be_longer_than_the_buffer() {
    let file: Vec<u8> = (0..5000_u32).map(|i| (i * 7 + i / 256) as u8).collect();
    for holding in [Holding::Pieces, Holding::Ring] {
        for buffer in [1, 2, 7, 81, 500, 1500] {
            for polls_after in 1..4 {
                let config = ReceiverConfig { buffer, holding, ..ReceiverConfig::default() };
                let mut node = Receiver::new(config);
                let transfer = TransferId(7);
                let request = Request {
                    version: VERSION,
                    transfer,
                    length: 5000,
                    plan: Plan::Stripe,
                    file: None,
                    copy: false,
                    manifest: None,
                };
                say(&mut node, &Message::Request(request), &[]);
                let join =
                    |session| Message::Join(Join { transfer, session, sessions: 2, plan: Plan::Stripe });
                let streams = [0, 1].map(|session| say(&mut node, &join(session), &[]));
                let (mut at, mut read, mut delivered) = (0, 0, Vec::new());
                let mut take = |node: &mut Receiver| {
                    while let Some(effect) = node.poll_effect() {
                        if let Effect::Deliver { octets } = effect {
                            delivered.extend_from_slice(&octets);
                        }
                    }
                };
                while at < file.len() {
                    let length = [1, 300, 2, 40, 1000][read % 5].min(file.len() - at);
                    let said = chunk(at as u64, &file[at..at + length]);
                    node.handle_stream(Instant::ZERO, streams[read % 2], StreamEvent::Data(said.into()));
                    (at, read) = (at + length, read + 1);
                    if read % polls_after == 0 {
                        take(&mut node);
                    }
                }
                take(&mut node);
                assert!(
                    delivered == file,
                    "{holding:?}, buffer {buffer}, {polls_after}: {}",
                    delivered.len()
                );
            }
        }
    }
}
