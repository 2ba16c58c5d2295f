//! Tests of the small node against the sender implementation for hosts, whose handshake is
//! `snow`'s.

use std::sync::atomic::{AtomicU8, Ordering};

use anabranch_wire::set::{FileIdentity, Plan, Request, SetSyn, VERSION};
use proptest::prelude::*;

use super::*;
use crate::guard::Guard;
use crate::node::{NodeKeys, WhoMay};
use crate::sender::{Acquaintance, SenderKeys};

const TRANSFER: TransferId = TransferId(7);

fn secret(octet: u8) -> SecretKey {
    SecretKey::from_octets([octet; KEY])
}

/// Different bytes for each handshake.
fn entropy(octets: &mut [u8]) -> Result<(), NoEntropy> {
    static NEXT: AtomicU8 = AtomicU8::new(100);
    octets.fill(NEXT.fetch_add(1, Ordering::Relaxed));
    Ok(())
}

fn node() -> Node {
    let shared = SharedKey::from_octets([5; KEY]);
    Node::new(Some(secret(3)), Some(shared), vec![secret(1).public()], entropy, 4)
}

/// The node implementation for hosts.
fn host() -> Arc<NodeKeys> {
    let senders = vec![secret(1).public()];
    NodeKeys::new(WhoMay { own: Some(secret(3)), senders, shared: Vec::new() })
}

fn sender(own: u8, is_shared: bool) -> Arc<SenderKeys> {
    let shows = if is_shared {
        Acquaintance::Shared(SharedKey::from_octets([5; KEY]))
    } else {
        Acquaintance::Known(secret(3).public())
    };
    SenderKeys::new(secret(own), shows, || 1)
}

fn encoded(message: &Message) -> Vec<u8> {
    let mut octets = Vec::new();
    encode(message, &mut octets);
    octets
}

fn request() -> Vec<u8> {
    let (transfer, plan) = (TRANSFER, Plan::Stripe);
    encoded(&Message::Request(Request {
        version: VERSION,
        transfer,
        length: 9,
        plan,
        file: None,
        copy: false,
        manifest: None,
    }))
}

fn join(session: u8) -> Join {
    Join { transfer: TRANSFER, session, sessions: 255, plan: Plan::Stripe }
}

fn transmitted(guard: &mut Guard) -> Vec<u8> {
    std::iter::from_fn(|| guard.poll_transmit()).flatten().collect()
}

/// Feeds the bytes in pieces of `cut`. Returns the plaintext for the machine and the answer.
fn read(
    stream: &mut Stream,
    node: &mut Node,
    octets: &[u8],
    cut: usize,
) -> Result<(Vec<u8>, Vec<u8>), Refused> {
    let mut out = (Vec::new(), Vec::new());
    read_into(stream, node, octets, (cut, NO_LIVE), &mut out).map(|()| out)
}

const NO_LIVE: Live = [None, None];

fn read_into(
    stream: &mut Stream,
    node: &mut Node,
    octets: &[u8],
    (cut, live): (usize, Live),
    (plain, answers): &mut (Vec<u8>, Vec<u8>),
) -> Result<(), Refused> {
    for mut piece in octets.chunks(cut) {
        while !piece.is_empty() {
            let (taken, said) = stream.read(node, piece, live)?;
            piece = &piece[taken..];
            match said {
                Said::Nothing => {}
                Said::Answer(octets) => answers.extend(octets),
                Said::Plain(octets) => plain.extend(octets),
            }
        }
    }
    Ok(())
}

/// A control stream whose request has arrived.
fn asked(node: &mut Node, sender: &Arc<SenderKeys>, cut: usize) -> Result<(Guard, Stream), Refused> {
    let (mut guard, mut stream) = (Guard::control(sender).unwrap(), Stream::new(256));
    let (plain, answer) = read(&mut stream, node, &transmitted(&mut guard), cut)?;
    assert!(plain.is_empty() && stream.seal(b"too early").is_err());
    assert_eq!(guard.read(answer.into()), Ok(None));
    guard.write(request().into()).unwrap();
    let (plain, answer) = read(&mut stream, node, &transmitted(&mut guard), cut)?;
    assert_eq!((plain, answer), (request(), vec![]));
    Ok((guard, stream))
}

/// The bytes of a session's sender, after the JOIN that the gateway derives from its greeting.
fn session(sender: &Arc<SenderKeys>, number: u8, most: usize, octets: &[u8]) -> Vec<u8> {
    let guard = Guard::session(sender, secret(9).public()).unwrap();
    let mut guard = guard.sealing_at_most(most);
    let destination = "10.0.0.1:1".parse().unwrap();
    guard.write(encoded(&Message::SetSyn(SetSyn { join: join(number), destination })).into()).unwrap();
    let _greeting = guard.poll_transmit();
    guard.write(Bytes::copy_from_slice(octets)).unwrap();
    [encoded(&Message::Join(join(number))), transmitted(&mut guard)].concat()
}

proptest! {
    #[test]
    fn a_node_understands_the_sender_of_hosts_and_is_understood(
        is_shared: bool,
        cut in 1usize..400,
        // The machine never writes a second SETSYN.
        mut file in proptest::collection::vec(any::<u8>(), 1..3000),
        answer in proptest::collection::vec(any::<u8>(), 1..600),
    ) {
        file[0] = 0x71;
        let (mut node, sender) = (node(), sender(1, is_shared));
        let (mut guard, mut stream) = asked(&mut node, &sender, cut).unwrap();
        let known = (!is_shared).then(|| secret(1).public());
        prop_assert_eq!(node.sender(TRANSFER), known);
        let sealed = stream.seal(&answer).unwrap();
        prop_assert_eq!(guard.read(sealed).unwrap(), Some(answer.into()));

        for number in [0, 200] {
            let mut stream = Stream::new(256);
            let says = session(&sender, number, 256, &file);
            let (plain, _) = read(&mut stream, &mut node, &says, cut).unwrap();
            prop_assert_eq!(plain, [encoded(&Message::Join(join(number))), file.clone()].concat());
            prop_assert!(stream.end().is_ok());
            // A second stream with the number of a session is a replay.
            prop_assert!(read(&mut Stream::new(256), &mut node, &says, cut).is_err());
        }
    }

    #[test]
    fn what_was_changed_is_refused_and_nothing_of_it_comes_out(at in 0usize..400, bit in 0u8..8, cut in 1usize..400) {
        let (mut node, sender) = (node(), sender(1, false));
        asked(&mut node, &sender, 99).unwrap();
        let mut says = session(&sender, 0, 256, &[7; 300]);
        let at = at % says.len();
        says[at] ^= 1 << bit;
        let mut out = (Vec::new(), Vec::new());
        let mut stream = Stream::new(256);
        let outcome = read_into(&mut stream, &mut node, &says, (cut, NO_LIVE), &mut out);
        let plain = out.0;
        // A length that has grown waits for bytes that never arrive.
        prop_assert!(outcome.is_err() || stream.end().is_err(), "octet {at}");
        let right = [encoded(&Message::Join(join(0))), vec![7; 300]].concat();
        prop_assert!(right.starts_with(&plain) && plain.len() < right.len());
    }
}

#[test]
fn strangers_and_records_without_room_are_refused() {
    let mut node = node();
    assert!(asked(&mut node, &sender(2, false), 50).is_err());
    let sender = sender(1, false);
    assert!(
        read(&mut Stream::new(256), &mut node, &encoded(&Message::Join(join(0))), 50).is_err(),
        "unasked"
    );
    asked(&mut node, &sender, 50).unwrap();
    let long = session(&sender, 0, 1000, &[7; 900]);
    assert!(read(&mut Stream::new(256), &mut node, &long, 50).is_err());
    assert!(read(&mut Stream::new(256), &mut node, &request(), 50).is_err(), "not encrypted");
    // The transfer belongs to its sender; the holder of the pre-shared key is another sender.
    assert!(asked(&mut node, &self::sender(1, true), 50).is_err());
}

/// Before it knows the node's buffer, a sender splits a request with a manifest into records that
/// fit into every node.
#[test]
fn a_request_with_a_manifest_comes_in_several_records() {
    for octets in [1, 150, 300, 1024] {
        let mut says = Vec::new();
        let file = FileIdentity { digest: [7; 32], signature: Some([9; 64]), discard: false };
        let request = Request {
            version: VERSION,
            transfer: TRANSFER,
            length: 9,
            plan: Plan::Stripe,
            file: Some(file),
            copy: false,
            manifest: Some(vec![3; octets].into()),
        };
        encode(&Message::Request(request), &mut says);
        for cut in [1, 100, 2000] {
            let (mut node, sender) = (node(), sender(1, false));
            let mut guard = Guard::control(&sender).unwrap();
            let mut stream = Stream::new(256);
            let (_, answer) = read(&mut stream, &mut node, &transmitted(&mut guard), cut).unwrap();
            assert_eq!(guard.read(answer.into()), Ok(None));
            guard.write(says.clone().into()).unwrap();
            let (plain, _) = read(&mut stream, &mut node, &transmitted(&mut guard), cut).unwrap();
            assert!(plain == says, "{octets} octets in pieces of {cut}");
            assert_eq!(node.sender(TRANSFER), Some(secret(1).public()));
        }

        let (host, sender) = (host(), sender(1, false));
        let (mut guard, mut node) = (Guard::control(&sender).unwrap(), Guard::node(&host));
        assert_eq!(node.read(transmitted(&mut guard).into()), Ok(None));
        assert_eq!(guard.read(transmitted(&mut node).into()), Ok(None));
        guard.write(says.clone().into()).unwrap();
        let mut plain = Vec::new();
        for octet in transmitted(&mut guard) {
            plain.extend(node.read(vec![octet].into()).unwrap().unwrap_or_default());
        }
        assert!(plain == says, "{octets} octets to a host");
    }
}

/// A stream that does not begin with a request is refused, even if it is short.
#[test]
fn the_first_record_of_a_control_stream_has_to_begin_with_a_request() {
    for says in [&[0x70][..], &[0x50, 0, 0, 0, 0, 0, 0, 0, 7, 0, 1], &request()[..9]] {
        let (mut node, sender) = (node(), sender(1, false));
        let mut guard = Guard::control(&sender).unwrap();
        let mut stream = Stream::new(256);
        let (_, answer) = read(&mut stream, &mut node, &transmitted(&mut guard), 99).unwrap();
        assert_eq!(guard.read(answer.into()), Ok(None));
        guard.write(Bytes::copy_from_slice(says)).unwrap();
        assert!(read(&mut stream, &mut node, &transmitted(&mut guard), 99).is_err(), "{says:?}");
    }
}

#[test]
fn records_are_an_eighth_of_the_buffer() {
    assert_eq!([0, 2047, 4096, 1 << 17, u64::MAX].map(record), [256, 256, 512, 16 << 10, 16 << 10]);
}

/// Requests a transfer with this plaintext while others are `live`.
fn ask(node: &mut Node, own: u8, says: &[u8], live: Live) -> Result<(Guard, Stream), Refused> {
    let sender = sender(own, false);
    let (mut guard, mut stream) = (Guard::control(&sender).unwrap(), Stream::new(256));
    let (_, answer) = read(&mut stream, node, &transmitted(&mut guard), 100)?;
    assert_eq!(guard.read(answer.into()), Ok(None));
    guard.write(Bytes::copy_from_slice(says)).unwrap();
    read_into(&mut stream, node, &transmitted(&mut guard), (100, live), &mut (Vec::new(), Vec::new()))?;
    Ok((guard, stream))
}

fn request_for(transfer: u64) -> Vec<u8> {
    let mut octets = request();
    octets[2..10].copy_from_slice(&transfer.to_be_bytes());
    octets
}

fn node_of_two_senders() -> Node {
    Node::new(Some(secret(3)), None, vec![secret(1).public(), secret(2).public()], entropy, 4)
}

#[test]
fn no_request_of_another_sender_evicts_the_keys_of_a_live_transfer() {
    let other = Some(TransferId(8));
    for live in
        [[Some(TRANSFER), None], [None, Some(TRANSFER)], [Some(TRANSFER), other], [other, Some(TRANSFER)]]
    {
        let mut node = node_of_two_senders();
        let _honest = ask(&mut node, 1, &request(), NO_LIVE).unwrap();
        for number in 8..20 {
            ask(&mut node, 2, &request_for(number), live).unwrap();
            assert_eq!(node.sender(TRANSFER), Some(secret(1).public()), "after {number}");
        }
        assert!(ask(&mut node, 2, &request(), live).is_err(), "the number is another sender's");
        assert_eq!(node.sender(TRANSFER), Some(secret(1).public()));
        let is_kept = live.contains(&other);
        assert_eq!(
            node.of(TransferId(8)).is_some(),
            is_kept,
            "the other place is free for what is asked for"
        );
    }
}

/// Between two records of one request, another sender evicts its keys and requests the same number.
#[test]
fn a_request_whose_number_another_sender_has_taken_meanwhile_is_refused() {
    for is_taken in [false, true] {
        let mut node = node_of_two_senders();
        let (mut guard, mut stream) = ask(&mut node, 1, &request(), NO_LIVE).unwrap();
        for number in [8, 9] {
            ask(&mut node, 2, &request_for(number), NO_LIVE).unwrap();
        }
        assert!(node.of(TRANSFER).is_none());
        if is_taken {
            ask(&mut node, 2, &request(), NO_LIVE).unwrap();
        }
        guard.write(Bytes::from_static(b"the rest")).unwrap();
        let rest = read(&mut stream, &mut node, &transmitted(&mut guard), 100);
        assert_eq!(rest.is_err(), is_taken);
        assert_eq!(node.sender(TRANSFER), Some(secret(if is_taken { 2 } else { 1 }).public()));
    }
}

/// A session with the number of the control stream would share its keys and nonces. The JOIN
/// decoder refuses that number too, since the number of sessions is smaller.
#[test]
fn no_session_has_the_number_of_the_control_stream() {
    let (mut node, sender) = (node(), sender(1, false));
    asked(&mut node, &sender, 50).unwrap();
    for (session, is_taken) in [(254, true), (CONTROL, false)] {
        let says = encoded(&Message::Join(join(session)));
        let taken = read(&mut Stream::new(256), &mut node, &says, 50);
        assert_eq!(taken.is_ok(), is_taken, "{session}");
    }
}

/// A small node does not remember greetings. It answers a replayed greeting, but the recorded bytes
/// after the greeting do not open under the new keys.
#[test]
fn a_greeting_that_is_replayed_is_answered_and_leads_to_no_transfer() {
    for is_shared in [false, true] {
        let (mut node, sender) = (node(), sender(1, is_shared));
        let (mut guard, mut stream) = (Guard::control(&sender).unwrap(), Stream::new(256));
        let greeting = transmitted(&mut guard);
        let (_, answer) = read(&mut stream, &mut node, &greeting, 99).unwrap();
        guard.read(answer.clone().into()).unwrap();
        guard.write(request().into()).unwrap();
        let record = transmitted(&mut guard);
        for is_asked in [false, true] {
            if is_asked {
                read(&mut stream, &mut node, &record, 99).unwrap();
            }
            let mut replay = Stream::new(256);
            let (plain, again) = read(&mut replay, &mut node, &greeting, 99).unwrap();
            assert!(plain.is_empty() && again.len() == 50 && again != answer);
            assert!(read(&mut replay, &mut node, &record, 99).is_err());
            assert_eq!(node.of(TRANSFER).is_some(), is_asked);
        }
        // The sender's own transfer continues.
        let says = session(&sender, 0, 256, &[7; 300]);
        assert!(read(&mut Stream::new(256), &mut node, &says, 99).is_ok());
    }
}
