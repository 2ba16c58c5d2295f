//! Memory of a node with keys, while a host's sender transfers a file and while strangers
//! interfere.

use std::sync::Arc;

use anabranch_core::set::{Effect, StreamId};
use anabranch_core::time::{Duration, Instant};
use anabranch_node::guards::Keys;
use anabranch_node::node::{Config, Error, Event, Node};
use anabranch_node::sizes::Sizes;
use anabranch_secure::manifest::Manifest;
use anabranch_secure::{
    Acquaintance, FileDigest, Guard, SecretKey, SenderKeys, SharedKey, SigningKey, small,
};
use anabranch_testkit::counting::{in_use, octets};
use anabranch_testkit::prng::Prng;
use anabranch_wire::set::{
    self as wire, FileIdentity, Join, Layout, Message, PaperAddresses, Plan, Request, SetSyn, TransferId,
    VERSION,
};
use bytes::Bytes;
use sha2::{Digest, Sha256};

const LENGTH: usize = 3000;

fn secret(octet: u8) -> SecretKey {
    SecretKey::from_octets([octet; 32])
}

fn encoded(message: &Message) -> Vec<u8> {
    let mut octets = Vec::new();
    wire::encode(message, &mut octets);
    octets
}

/// The keys of the node, also used by `tests/hostile.c`.
fn keys(sizes: &Sizes) -> Box<Keys> {
    let entropy: small::Entropy = |octets| {
        octets.fill(77);
        Ok(())
    };
    let senders = Vec::from_iter([secret(1).public()]);
    Keys::new(
        (sizes.buffer, sizes.connections),
        Some(secret(3)),
        Some(SharedKey::from_octets([5; 32])),
        senders,
        entropy,
    )
}

/// The two ways of authentication.
fn acquaintances() -> [Acquaintance; 2] {
    [Acquaintance::Known(secret(3).public()), Acquaintance::Shared(SharedKey::from_octets([5; 32]))]
}

fn file() -> Vec<u8> {
    (0..LENGTH).map(|i| (i * 7) as u8).collect()
}

fn request(transfer: TransferId, manifest: Option<Bytes>) -> Message {
    let file =
        FileIdentity { digest: Sha256::digest(file()).into(), signature: Some([9; 64]), discard: false };
    let (length, plan) = (LENGTH as u64, Plan::Stripe);
    Message::Request(Request {
        version: VERSION,
        transfer,
        length,
        plan,
        file: Some(file),
        copy: false,
        manifest,
    })
}

/// Input of honest senders for the node of `tests/hostile.c`: the public keys of a sender and of a
/// signer; then, for each way of authentication, without and with a manifest, the control stream
/// and a session, each preceded by its length.
pub(crate) fn recording() -> Vec<u8> {
    let sizes = Sizes { gateways: 0, senders: Some(1), ..Sizes::default() };
    let signer = SigningKey::from_octets([5; 32]);
    let mut recording = [secret(1).public().0, signer.verifying().octets()].concat();
    let digest = FileDigest { length: LENGTH as u64, sha256: Sha256::digest(file()).into() };
    let (vendor, class, component) = ([1; 16], [2; 16], &b"firmware"[..]);
    let manifest = Manifest { sequence: 3, vendor, class, component, file: digest, use_before: None };
    let manifests = [None, Some(Bytes::from(manifest.sign(&signer)))];
    let all = acquaintances().into_iter().flat_map(|shows| manifests.clone().map(|it| (shows.clone(), it)));
    for (transfer, (shows, manifest)) in (1..).map(TransferId).zip(all) {
        let config = Config { sizes, idle: Duration::from_secs(60), gateways: &[], gateway_keys: &[] };
        let mut node = Node::new(config).expect("these are possible").secured(keys(&sizes));
        let stream = node.accepted(Instant::ZERO).expect("there is a place");
        while node.poll().is_some() {}
        let sender = SenderKeys::new(secret(1), shows, || 1);
        let mut guard = Guard::control(&sender).expect("the key is one");
        let mut control = transmitted(&mut guard);
        let mut says = &control[..];
        while let Ok(taken @ 1..) = node.data(Instant::ZERO, stream, says) {
            says = &says[taken..];
            while let Some(event) = node.poll() {
                if let Event::Stream(Effect::Write { octets, .. }) = event {
                    let _ = guard.read(octets).expect("the node has answered");
                }
            }
        }
        guard.write(encoded(&request(transfer, manifest)).into()).expect("it is not over");
        control.extend(transmitted(&mut guard));
        let join = Join { transfer, session: 0, sessions: 3, plan: Plan::Stripe };
        for says in [control, session(&sender, join, &file(), sizes.buffer.into())] {
            recording.extend((says.len() as u16).to_be_bytes());
            recording.extend(says);
        }
    }
    recording
}

struct World {
    node: Node,
    sizes: Sizes,
    before: i64,
    /// Bytes that the node has written, and the file received so far.
    written: Vec<u8>,
    file: Vec<u8>,
    ended: bool,
    reset: Vec<StreamId>,
}

impl World {
    fn new(sizes: Sizes) -> Self {
        let (written, file) = (Vec::with_capacity(100_000), Vec::with_capacity(LENGTH));
        let reset = Vec::with_capacity(64);
        let before = in_use();
        let config = Config { sizes, idle: Duration::from_secs(60), gateways: &[], gateway_keys: &[] };
        let node = Node::new(config).expect("these are possible").secured(keys(&sizes));
        Self { node, sizes, before, written, file, ended: false, reset }
    }

    fn call<T>(&mut self, call: impl FnOnce(&mut Node, Instant) -> Result<T, Error>) -> Result<T, Error> {
        let before = octets();
        let outcome = call(&mut self.node, Instant::ZERO);
        let taken = octets() - before;
        let most = self.sizes.effect() as u64;
        assert!(
            taken + most <= self.sizes.needs() as u64,
            "{taken} octets in one call, and {most} in an effect"
        );
        let mut begin = false;
        loop {
            let before = octets();
            let event = self.node.poll();
            assert!(octets() - before <= most, "{} octets in an effect", octets() - before);
            match event {
                None => break,
                Some(Event::Begin) => begin = true,
                Some(Event::Deliver { octets, .. }) => self.file.extend_from_slice(&octets),
                Some(Event::End { .. }) => self.ended = true,
                Some(Event::Abort(_)) => self.file.clear(),
                Some(Event::Stream(Effect::Write { octets, .. })) => self.written.extend_from_slice(&octets),
                Some(Event::Stream(Effect::Abort { stream })) => self.reset.push(stream),
                Some(Event::Stream(_)) => {}
            }
        }
        let lasts = in_use() - self.before;
        assert!(lasts <= self.sizes.lasting() as i64, "{lasts} octets last, {} may", self.sizes.lasting());
        if begin {
            self.call(Node::accept).expect("it is offered");
        }
        outcome
    }

    /// Sends bytes on a stream in pieces and returns the answers. Allocations of the test itself do
    /// not count.
    fn say(&mut self, stream: StreamId, says: &[u8], cut: usize) -> Vec<u8> {
        for piece in says.chunks(cut) {
            let mut piece = piece;
            while let Ok(n @ 1..) = self.call(|node, now| node.data(now, stream, piece)) {
                piece = &piece[n..];
                if piece.is_empty() {
                    break;
                }
            }
        }
        let before = in_use();
        let answer = self.written.as_slice().to_vec();
        self.before += in_use() - before;
        self.written.clear();
        answer
    }

    /// Runs a part of the test whose allocations do not count.
    fn aside<T>(&mut self, make: impl FnOnce() -> T) -> T {
        let before = in_use();
        let made = make();
        self.before += in_use() - before;
        made
    }
}

fn transmitted(guard: &mut Guard) -> Vec<u8> {
    std::iter::from_fn(|| guard.poll_transmit()).flatten().collect()
}

/// The records of a session, after the JOIN of its gateway.
fn session(sender: &Arc<SenderKeys>, join: Join, file: &[u8], buffer: u64) -> Vec<u8> {
    let guard = Guard::session(sender, secret(9).public()).expect("the node was asked");
    let mut guard = guard.sealing_at_most(small::record(buffer));
    let destination = "10.0.0.1:1".parse().expect("an address");
    guard.write(encoded(&Message::SetSyn(SetSyn { join, destination })).into()).expect("a SETSYN");
    let _greeting = guard.poll_transmit();
    let nowhere = PaperAddresses { intermediate: destination, last: destination };
    let mut chunk = Vec::new();
    wire::data_header(Layout::Compact, &nowhere, 0, u64::MAX, file.len() as u64, &mut chunk);
    chunk.extend_from_slice(file);
    guard.write(chunk.into()).expect("it is not over");
    [encoded(&Message::Join(join)), transmitted(&mut guard)].concat()
}

#[test]
fn a_node_with_keys_stays_within_its_bounds_among_senders_and_strangers() {
    let mut random = Prng::new(7);
    let file = file();
    for run in 0..60u64 {
        let sizes = Sizes {
            buffer: random.range(LENGTH as u64..=20_000) as u32,
            read: random.range(16..=1500) as u16,
            connections: random.range(3..=8) as u8,
            gateways: 0,
            senders: Some(1),
            ..Sizes::default()
        };
        let mut world = World::new(sizes);
        let transfer = TransferId(run);
        let shows = acquaintances()[random.below(2) as usize].clone();
        let cut = random.range(1..=2000) as usize;
        let (sender, mut guard, first) = world.aside(|| {
            let sender = SenderKeys::new(secret(1), shows, || 1);
            let mut guard = Guard::control(&sender).expect("the key is one");
            let first = transmitted(&mut guard);
            (sender, guard, first)
        });
        let control = world.call(Node::accepted).expect("there is a place");
        let answer = world.say(control, &first, cut);
        let says = world.aside(|| {
            let _ = guard.read(answer.into()).expect("the node has answered");
            guard.write(encoded(&request(transfer, None)).into()).expect("it is not over");
            transmitted(&mut guard)
        });
        world.say(control, &says, cut);

        // Strangers: another sender's greeting, complete or truncated, a JOIN of the transfer
        // followed by other bytes, and garbage.
        let join = Join { transfer, session: 0, sessions: 3, plan: Plan::Stripe };
        for _ in 0..20 {
            let says = world.aside(|| match random.below(3) {
                0 => [&first[..random.below(first.len() as u64) as usize], &random.octets(300)].concat(),
                1 => [encoded(&Message::Join(join)), random.octets(700)].concat(),
                _ => random.octets(700),
            });
            let Ok(stream) = world.call(Node::accepted) else { continue };
            world.say(stream, &says, cut);
            // A stream that has only greeted is not authenticated before its first record.
            let _ = world.call(|node, now| node.ended(now, stream));
            let _ = world.call(|node, now| node.closed(now, stream));
        }
        assert!(!world.ended && world.file.is_empty());

        let says = world.aside(|| session(&sender, join, &file, sizes.buffer.into()));
        let stream = world.call(Node::accepted).expect("there is a place");
        world.say(stream, &says, cut);
        assert!(world.ended && world.file == file, "run {run}: {sizes:?}");
        assert!(!world.reset.contains(&stream));
    }
}

/// Sends bytes on a connection. Returns what the node writes, and collects all events.
fn hear(node: &mut Node, stream: StreamId, mut says: &[u8], all: &mut Vec<Event>) -> Vec<u8> {
    let mut written = Vec::new();
    all.extend(std::iter::from_fn(|| node.poll()));
    loop {
        let taken = if says.is_empty() { 0 } else { node.data(Instant::ZERO, stream, says).unwrap_or(0) };
        says = &says[taken..];
        while let Some(event) = node.poll() {
            if let Event::Stream(Effect::Write { octets, .. }) = &event {
                written.extend_from_slice(octets);
            }
            all.push(event);
        }
        if taken == 0 {
            return written;
        }
    }
}

/// The sender with this key requests a transfer, which is accepted if it is offered; then it
/// disconnects.
fn ask(node: &mut Node, own: u8, transfer: TransferId, all: &mut Vec<Event>) -> Arc<SenderKeys> {
    let sender = SenderKeys::new(secret(own), Acquaintance::Known(secret(3).public()), || 1);
    let mut guard = Guard::control(&sender).expect("the key is one");
    let stream = node.accepted(Instant::ZERO).expect("there is a place");
    let answer = hear(node, stream, &transmitted(&mut guard), all);
    let _ = guard.read(answer.into()).expect("the node has answered");
    guard.write(encoded(&request(transfer, None)).into()).expect("it is not over");
    hear(node, stream, &transmitted(&mut guard), all);
    if node.offer().is_some() {
        node.accept(Instant::ZERO).expect("it is offered");
        hear(node, stream, &[], all);
    }
    let _ = node.closed(Instant::ZERO, stream);
    hear(node, stream, &[], all);
    sender
}

/// Session 0 of the sender sends these bytes as the file.
fn join(node: &mut Node, sender: &Arc<SenderKeys>, transfer: TransferId, file: &[u8], all: &mut Vec<Event>) {
    let says = session(
        sender,
        Join { transfer, session: 0, sessions: 1, plan: Plan::Stripe },
        file,
        Sizes::default().buffer.into(),
    );
    let stream = node.accepted(Instant::ZERO).expect("there is a place");
    hear(node, stream, &says, all);
}

#[test]
fn no_transfer_is_taken_over_by_another_sender_that_asks_for_others_first() {
    let sizes = Sizes { gateways: 0, senders: Some(2), ..Sizes::default() };
    let entropy: small::Entropy = |octets| {
        octets.fill(77);
        Ok(())
    };
    let known = vec![secret(1).public(), secret(2).public()];
    let keys = Keys::new((sizes.buffer, sizes.connections), Some(secret(3)), None, known, entropy);
    let config = Config { sizes, idle: Duration::from_secs(60), gateways: &[], gateway_keys: &[] };
    let mut node = Node::new(config).expect("these are possible").secured(keys);
    let (transfer, mut all) = (TransferId(7), Vec::new());
    let honest = ask(&mut node, 1, transfer, &mut all);
    assert!(all.contains(&Event::Begin));
    all.clear();
    let mut thief = None;
    for number in [8, 9, transfer.0] {
        thief = Some(ask(&mut node, 2, TransferId(number), &mut all));
    }
    join(&mut node, &thief.expect("it has asked"), transfer, &[0xee; LENGTH], &mut all);
    let taken = all.iter().filter(|event| matches!(event, Event::Deliver { .. } | Event::Abort(_)));
    assert_eq!(taken.collect::<Vec<_>>(), Vec::<&Event>::new());
    join(&mut node, &honest, transfer, &file(), &mut all);
    assert!(all.iter().any(|event| matches!(event, Event::Deliver { .. })), "its own sender goes on");
}

/// A sender, or an attacker on the path, ends a session after all records or within one.
#[test]
fn a_stream_that_ends_within_a_record_is_reset_and_one_that_ends_behind_it_is_not() {
    let sizes = Sizes { gateways: 0, senders: Some(1), ..Sizes::default() };
    let transfer = TransferId(7);
    let join = Join { transfer, session: 0, sessions: 1, plan: Plan::Stripe };
    for cut in [0, 1, 300] {
        let config = Config { sizes, idle: Duration::from_secs(60), gateways: &[], gateway_keys: &[] };
        let mut node = Node::new(config).expect("these are possible").secured(keys(&sizes));
        let mut all = Vec::new();
        let sender = ask(&mut node, 1, transfer, &mut all);
        let says = session(&sender, join, &file()[..1000], sizes.buffer.into());
        let stream = node.accepted(Instant::ZERO).expect("there is a place");
        hear(&mut node, stream, &says[..says.len() - cut], &mut all);
        all.clear();
        node.ended(Instant::ZERO, stream).expect("it is open");
        hear(&mut node, stream, &[], &mut all);
        let is_reset = all.contains(&Event::Stream(Effect::Abort { stream }));
        assert_eq!((is_reset, node.counters().rejected), (cut > 0, u64::from(cut > 0)), "{cut} octets less");
    }
}
