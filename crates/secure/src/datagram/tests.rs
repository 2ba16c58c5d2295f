use core::net::SocketAddr;
use core::time::Duration;
use std::sync::atomic::{AtomicU64, Ordering};
use std::vec;
use std::vec::Vec;

use super::*;
use crate::keys::{SecretKey, SharedKey};
use crate::octets::{KEY, NoEntropy};

/// Different bytes for each call: no test depends on their values.
fn entropy(octets: &mut [u8]) -> Result<(), NoEntropy> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let next = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    octets.iter_mut().zip(next.to_be_bytes().iter().cycle()).for_each(|(octet, random)| *octet = *random);
    Ok(())
}

fn secret(octet: u8) -> SecretKey {
    SecretKey::from_octets([octet; KEY])
}

fn shared() -> SharedKey {
    SharedKey::from_octets([5; KEY])
}

fn address(port: u16) -> SocketAddr {
    ([192, 0, 2, 1], port).into()
}

fn name() -> Name {
    "probe-1".parse().unwrap()
}

const HOME: u16 = 1000;
const MESSAGE: &[u8] = &[0x30, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];

fn accepts() -> Accepts {
    Accepts { own: Some(secret(3)), known: vec![secret(1).public()], shared: vec![shared()], insecure: false }
}

fn sink(accepts: Accepts) -> Responder {
    Responder::new(Duration::ZERO, accepts, 100, entropy).unwrap()
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// A sender and a sink, and a wire between them.
struct Pair<P: Proof> {
    sender: Initiator<P>,
    sink: Responder,
    port: u16,
    now: Duration,
    /// All datagrams to the sink, and to the sender.
    to_sink: Vec<Vec<u8>>,
    to_sender: Vec<Vec<u8>>,
}

impl<P: Proof> Pair<P> {
    fn new(proof: P, accepts: Accepts) -> Self {
        let mut sender = Initiator::new(proof, &name(), 7, entropy);
        sender.call(Duration::ZERO);
        let (to_sink, to_sender) = (Vec::new(), Vec::new());
        Self { sender, sink: sink(accepts), port: HOME, now: Duration::ZERO, to_sink, to_sender }
    }

    /// Exchanges datagrams until neither side has any. Returns the messages at the sink.
    fn exchange(&mut self) -> Vec<(Received, Vec<u8>)> {
        let (mut out, mut plain, mut all) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            let mut quiet = true;
            while self.sender.poll_transmit(self.now, &mut out) {
                all.extend(self.arrive(&out.clone()));
                quiet = false;
            }
            while let Some((to, datagram)) = self.sink.poll_transmit() {
                self.to_sender.push(datagram.clone());
                if to == address(self.port) {
                    self.sender.handle(self.now, &datagram, &mut plain);
                }
                quiet = false;
            }
            if quiet {
                return all;
            }
        }
    }

    fn arrive(&mut self, datagram: &[u8]) -> Option<(Received, Vec<u8>)> {
        let mut plain = Vec::new();
        self.to_sink.push(datagram.to_vec());
        let received = self.sink.handle(self.now, address(self.port), datagram, &mut plain);
        received.map(|received| (received, plain))
    }

    /// Sends a message of the sender; returns it as the sink received it.
    fn say(&mut self, message: &[u8]) -> Option<(Received, Vec<u8>)> {
        let mut out = Vec::new();
        self.sender.seal(self.now, message, &mut out).ok()?;
        self.arrive(&out)
    }

    /// Opens a session that the sender has not used yet. Returns the HELLO and its WELCOME.
    fn greet(&mut self) -> [Vec<u8>; 2] {
        let (mut hello, mut answer, mut plain) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..2 {
            assert!(self.sender.poll_transmit(self.now, &mut hello));
            self.arrive(&hello);
            (_, answer) = self.sink.poll_transmit().unwrap();
            self.sender.handle(self.now, &answer, &mut plain);
        }
        assert!(self.sender.is_open(self.now));
        [hello, answer]
    }

    fn open(proof: P, accepts: Accepts) -> Self {
        let mut pair = Self::new(proof, accepts);
        pair.exchange();
        assert!(pair.sender.is_open(pair.now));
        pair
    }
}

/// Checks that both directions work.
fn speaks<P: Proof>(proof: P, accepts: Accepts) {
    let mut pair = Pair::open(proof, accepts);
    let (received, message) = pair.say(MESSAGE).unwrap();
    assert_eq!((received.run, &message[..]), (7, MESSAGE));
    assert_eq!(pair.sink.sender(received.peer).unwrap().1, name());
    let (mut out, mut plain) = (Vec::new(), Vec::new());
    let to = pair.sink.seal(pair.now, received.peer, &[0x60, 9], &mut out).unwrap();
    assert_eq!(to, address(HOME));
    assert!(pair.sender.handle(pair.now, &out, &mut plain) && plain == [0x60, 9]);
    assert!(!pair.sender.handle(pair.now, &out, &mut plain), "a second time");
    assert_eq!(pair.sink.counters().refused, 0);
}

#[test]
fn every_pattern_opens_a_session_in_both_directions() {
    speaks(Known { own: secret(1), sink: secret(3).public() }, accepts());
    speaks(Shared(shared()), accepts());
    speaks(Forward(shared()), accepts());
    speaks(Clear, Accepts { insecure: true, ..Accepts::default() });
}

/// Strangers, wrong sinks, and ends that disagree about encryption.
#[test]
fn no_session_without_the_right_keys() {
    fn refused<P: Proof>(proof: P, accepts: Accepts) {
        let mut pair = Pair::new(proof, accepts);
        pair.exchange();
        assert!(!pair.sender.is_open(pair.now));
        assert_eq!(pair.say(MESSAGE), None);
        assert!(pair.sink.counters().refused > 0 && pair.sink.senders() == 0);
        assert!(pair.sink.poll_refusal().is_some());
    }
    let other = SharedKey::from_octets([6; KEY]);
    refused(Known { own: secret(2), sink: secret(3).public() }, accepts());
    refused(Known { own: secret(1), sink: secret(4).public() }, accepts());
    refused(Shared(other.clone()), accepts());
    refused(Forward(other), accepts());
    refused(Clear, accepts());
    refused(Shared(shared()), Accepts { insecure: true, ..accepts() });
    refused(Known { own: secret(1), sink: secret(3).public() }, Accepts { own: None, ..accepts() });
}

/// The peers of the handshake are `snow`'s, whose state machine is not ours.
#[test]
fn both_noise_patterns_are_those_of_the_library() {
    use crate::greeting::{self, Purpose};
    let greeting = b"\0\0\0\0\0\0\0\x07\x07probe-1";
    let head = [0; HELLO_BODY];
    fn compare<P: Proof>(proof: &P, from: usize, own: greeting::Own<'_>, greeting: &[u8], head: &[u8]) {
        let mut hello = head.to_vec();
        let begun = proof.begin(greeting, entropy, &mut hello).unwrap();
        let mut theirs = greeting::respond(Purpose::Sense(&hello[..from]), own, None).unwrap();
        let mut plain = [0; 256];
        let n = theirs.read_message(&hello[from..], &mut plain).unwrap();
        assert_eq!(&plain[..n], greeting);
        let mut welcome = [0; 256];
        let n = theirs.write_message(&9_u32.to_be_bytes(), &mut welcome[HEAD..]).unwrap();
        let (number, keys) = proof.finish(&begun, &welcome[..HEAD + n]).unwrap();
        let (keys, theirs) = (keys.unwrap(), theirs.into_stateless_transport_mode().unwrap());
        let mut message = MESSAGE.to_vec();
        let tag = keys.seal.seal(3, &[], &mut message).unwrap();
        message.extend(tag);
        let n = theirs.read_message(3, &message, &mut plain).unwrap();
        assert_eq!((number, &plain[..n]), (9, MESSAGE));
        let n = theirs.write_message(4, MESSAGE, &mut welcome).unwrap();
        let mut plain = Vec::new();
        keys.open.open(4, &[], &welcome[..n], &mut plain).unwrap();
        assert_eq!(plain, MESSAGE);
    }
    let known = Known { own: secret(1), sink: secret(3).public() };
    compare(&known, HELLO_BODY, greeting::Own::Known(&secret(3)), greeting, &head);
    compare(&Forward(shared()), HELLO_BODY + 8, greeting::Own::Shared(&shared()), greeting, &head);
}

#[test]
fn an_address_gets_no_more_bytes_than_it_has_sent_and_costs_no_state_before_its_cookie() {
    let mut sink = sink(accepts());
    let mut sender = Initiator::new(Shared(shared()), &name(), 7, entropy);
    sender.call(Duration::ZERO);
    let (mut out, mut plain) = (Vec::new(), Vec::new());
    assert!(sender.poll_transmit(Duration::ZERO, &mut out));
    let before = format!("{:?}", (&sink.senders(), sink.counters().welcomes));
    for port in 0..60_000 {
        sink.handle(Duration::ZERO, address(port), &out, &mut plain);
        let (to, reply) = sink.poll_transmit().unwrap();
        assert!(to == address(port) && reply.len() <= out.len());
    }
    assert_eq!(before, format!("{:?}", (&sink.senders(), sink.counters().welcomes)));
    // A cookie is for one address, one session number, and a short time.
    sink.handle(Duration::ZERO, address(HOME), &out, &mut plain);
    let (_, cookie) = sink.poll_transmit().unwrap();
    sender.handle(Duration::ZERO, &cookie, &mut plain);
    let mut hello = Vec::new();
    assert!(sender.poll_transmit(Duration::ZERO, &mut hello));
    for (now, port, is_valid) in [(0, HOME + 1, false), (200, HOME, true), (400, HOME, false)] {
        sink.handle(seconds(now), address(port), &hello, &mut plain);
        let (_, reply) = sink.poll_transmit().unwrap();
        assert_eq!(reply[0] == kind::WELCOME, is_valid, "{now} {port}");
        assert!(reply.len() <= hello.len());
    }
    // Also after a pause, in which no key was replaced.
    let mut sink = self::sink(accepts());
    sink.handle(Duration::ZERO, address(HOME), &out, &mut plain);
    let (_, cookie) = sink.poll_transmit().unwrap();
    hello[HEAD..HELLO_BODY].copy_from_slice(&cookie[HEAD..]);
    sink.handle(seconds(3600), address(HOME), &hello, &mut plain);
    assert_eq!(sink.poll_transmit().unwrap().1[0], kind::COOKIE);
    let mut unknown = vec![kind::SEALED; SEALED_HEADER];
    sink.handle(Duration::ZERO, address(HOME), &unknown, &mut plain);
    unknown[0] = kind::UNKNOWN;
    assert_eq!(sink.poll_transmit(), Some((address(HOME), unknown)));
}

#[test]
fn what_is_changed_or_repeated_is_dropped_and_changes_nothing() {
    let mut pair = Pair::open(Shared(shared()), accepts());
    let (mut out, mut plain) = (Vec::new(), Vec::new());
    pair.sender.seal(pair.now, MESSAGE, &mut out).unwrap();
    for bit in 0..8 * out.len() {
        let mut changed = out.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(pair.sink.handle(pair.now, address(HOME), &changed, &mut plain), None, "bit {bit}");
    }
    for len in 0..out.len() {
        assert_eq!(pair.sink.handle(pair.now, address(HOME), &out[..len], &mut plain), None);
    }
    assert!(pair.sink.handle(pair.now, address(HOME), &out, &mut plain).is_some());
    let replayed = pair.sink.counters().replayed;
    assert_eq!(pair.sink.handle(pair.now, address(HOME), &out, &mut plain), None);
    assert_eq!(pair.sink.counters().replayed, replayed + 1);
    // So are handshakes, of both patterns of a pre-shared key.
    fn handshake<P: Proof + Clone>(proof: P) {
        let mut pair = Pair::new(proof, accepts());
        pair.exchange();
        let hello = pair.to_sink[1].clone();
        assert_eq!(hello[0], kind::HELLO);
        // The cookie covers the session number, so a change of it is a HELLO without a cookie.
        for bit in 8 * HELLO_BODY..8 * hello.len() {
            let mut changed = hello.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            // The number of handshakes that a host may request in a second is limited.
            pair.now = Duration::from_millis(bit as u64 * 10);
            pair.arrive(&changed);
            assert_eq!(pair.sink.poll_transmit(), None, "bit {bit}");
        }
        // A recorded HELLO is answered, and the session in use stays.
        pair.arrive(&hello);
        assert_eq!(pair.sink.poll_transmit().unwrap().1[0], kind::WELCOME);
        assert!(pair.say(MESSAGE).is_some());
    }
    handshake(Shared(shared()));
    handshake(Forward(shared()));
    handshake(Known { own: secret(1), sink: secret(3).public() });
}

/// An attacker who has recorded a HELLO puts its own cookie into it.
#[test]
fn a_recorded_hello_from_elsewhere_replaces_no_session() {
    fn replayed<P: Proof>(proof: P) {
        let (mut pair, mut plain) = (Pair::new(proof, accepts()), Vec::new());
        // The session waits for the sender's first datagram.
        let [mut hello, _] = pair.greet();
        pair.sink.handle(pair.now, address(HOME + 1), &hello, &mut plain);
        let (_, cookie) = pair.sink.poll_transmit().unwrap();
        hello[HEAD..HELLO_BODY].copy_from_slice(&cookie[HEAD..]);
        for _ in 0..2 {
            pair.sink.handle(pair.now, address(HOME + 1), &hello, &mut plain);
        }
        assert_eq!(pair.sink.counters().refused, 2);
        assert!(pair.say(MESSAGE).is_some());
    }
    replayed(Shared(shared()));
    replayed(Forward(shared()));
    replayed(Known { own: secret(1), sink: secret(3).public() });
}

/// An observer at the sender's address, as behind the same NAT, repeats the HELLO.
#[test]
fn a_repeated_hello_gets_the_same_answer() {
    fn repeated<P: Proof>(proof: P) {
        let (mut pair, mut plain) = (Pair::new(proof, accepts()), Vec::new());
        let [hello, welcome] = pair.greet();
        for _ in 0..3 {
            pair.sink.handle(pair.now, address(HOME), &hello, &mut plain);
            assert_eq!(pair.sink.poll_transmit().unwrap().1, welcome);
        }
        assert!(pair.say(MESSAGE).is_some(), "the session waits");
    }
    repeated(Shared(shared()));
    repeated(Forward(shared()));
    repeated(Known { own: secret(1), sink: secret(3).public() });
}

#[test]
fn a_moment_without_entropy_delays_the_handshake() {
    std::thread_local!(static DRAWS: core::cell::Cell<u32> = const { core::cell::Cell::new(0) });
    // Draws for a session number, for a HELLO, and for one with a cookie.
    fn at_times(octets: &mut [u8]) -> Result<(), NoEntropy> {
        DRAWS.set(DRAWS.get() + 1);
        if [1, 3, 6].contains(&DRAWS.get()) { Err(NoEntropy) } else { entropy(octets) }
    }
    let mut pair = Pair::new(Shared(shared()), accepts());
    pair.sender = Initiator::new(Shared(shared()), &name(), 7, at_times);
    pair.sender.call(pair.now);
    for _ in 0..20 {
        pair.exchange();
        if pair.sender.is_open(pair.now) {
            return assert!(DRAWS.get() > 6);
        }
        pair.now = pair.sender.next_timeout().expect("it tries again");
    }
    panic!("no session");
}

#[test]
fn a_changed_welcome_opens_nothing_and_the_right_one_still_does() {
    fn changed<P: Proof>(proof: P) {
        let mut pair = Pair::new(proof, accepts());
        let (mut out, mut plain) = (Vec::new(), Vec::new());
        for _ in 0..2 {
            assert!(pair.sender.poll_transmit(pair.now, &mut out));
            pair.arrive(&out.clone());
            let (_, reply) = pair.sink.poll_transmit().unwrap();
            if reply[0] == kind::COOKIE {
                pair.sender.handle(pair.now, &reply, &mut plain);
                continue;
            }
            for bit in 8 * HEAD..8 * reply.len() {
                let mut changed = reply.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                pair.sender.handle(pair.now, &changed, &mut plain);
                assert!(!pair.sender.is_open(pair.now), "bit {bit}");
            }
            pair.sender.handle(pair.now, &reply, &mut plain);
        }
        assert!(pair.sender.is_open(pair.now) && pair.say(MESSAGE).is_some());
    }
    changed(Shared(shared()));
    changed(Forward(shared()));
}

#[test]
fn a_restarted_sink_is_found_by_unknown_and_no_forged_unknown_ends_a_session() {
    let mut pair = Pair::open(Shared(shared()), accepts());
    pair.say(MESSAGE).unwrap();
    pair.sink = sink(accepts());
    assert_eq!(pair.say(MESSAGE), None);
    pair.now = seconds(6);
    pair.say(MESSAGE);
    pair.exchange();
    assert_eq!(pair.sender.counters().handshakes, 2);
    assert!(pair.say(MESSAGE).is_some());
    // An attacker who sees datagrams makes the sender begin handshakes, at most one in 5 s.
    for second in 7..70 {
        pair.now = seconds(second);
        pair.say(MESSAGE).unwrap();
        let mut unknown = pair.to_sink.last().unwrap()[..SEALED_HEADER].to_vec();
        unknown[0] = kind::UNKNOWN;
        pair.sender.handle(pair.now, &unknown, &mut Vec::new());
        assert!(pair.say(MESSAGE).is_some());
        pair.exchange();
    }
    assert!(pair.sender.counters().handshakes <= 2 + 64 / 5);
}

/// A sink that owes no answer is silent, and costs no handshakes.
#[test]
fn only_an_answer_that_does_not_come_ends_a_session() {
    let mut pair = Pair::new(Shared(shared()), accepts());
    pair.exchange();
    for (awaits, handshakes) in [(false, 1), (true, 2)] {
        for second in 0..=11 {
            pair.now += seconds(1);
            if awaits && second == 0 {
                pair.sender.await_answer(pair.now);
            }
            assert!(pair.say(MESSAGE).is_some());
            assert_eq!(pair.sender.silent_since().is_some(), awaits);
        }
        assert_eq!(pair.sender.counters().handshakes, handshakes);
    }
}

#[test]
fn a_sender_that_moves_is_followed_once_it_answers_from_there() {
    let mut pair = Pair::open(Shared(shared()), accepts());
    let (peer, mut out) = (pair.say(MESSAGE).unwrap().0.peer, Vec::new());
    let late = {
        pair.sender.seal(pair.now, MESSAGE, &mut out).unwrap();
        out.clone()
    };
    pair.port = HOME + 1;
    pair.say(MESSAGE).unwrap();
    // An old datagram from the old address moves nothing.
    pair.sink.handle(pair.now, address(HOME), &late, &mut Vec::new()).unwrap();
    assert_eq!(pair.sink.address(peer), Some(address(HOME + 1)));
    let long = [0x40; 400];
    assert_eq!(pair.sink.seal(pair.now, peer, &long, &mut out), Err(NotOpen), "not yet validated");
    pair.exchange();
    assert_eq!(pair.sink.seal(pair.now, peer, &long, &mut out), Ok(address(HOME + 1)));
    assert_eq!(pair.sink.counters().moved, 1);
    // An attacker who forwards a datagram from elsewhere: the victim gets no more than that, and
    // the sender's next datagram restores its address without a check.
    pair.sender.seal(pair.now, MESSAGE, &mut out).unwrap();
    let forwarded = out.len();
    pair.sink.handle(pair.now, address(9), &out, &mut Vec::new()).unwrap();
    let mut sent =
        std::iter::from_fn(|| pair.sink.poll_transmit()).map(|(_, octets)| octets.len()).sum::<usize>();
    while let Ok(to) = pair.sink.seal(pair.now, peer, &[0x60], &mut out) {
        assert_eq!(to, address(9));
        sent += out.len();
    }
    assert!(sent <= forwarded, "{sent}");
    pair.say(MESSAGE).unwrap();
    assert_eq!(pair.sink.seal(pair.now, peer, &long, &mut out), Ok(address(HOME + 1)));
}

/// Keys change each hour without a loss, whatever the wall clock does: only durations count.
#[test]
fn keys_change_and_no_nonce_is_used_twice() {
    let mut pair = Pair::open(Known { own: secret(1), sink: secret(3).public() }, accepts());
    for minute in 0..10 * 60 {
        pair.now = seconds(60 * minute);
        let (received, _) = pair.say(MESSAGE).unwrap();
        let (mut out, mut plain) = (Vec::new(), Vec::new());
        pair.sink.seal(pair.now, received.peer, &[0x60], &mut out).unwrap();
        assert!(pair.sender.handle(pair.now, &out, &mut plain), "minute {minute}");
        pair.exchange();
    }
    assert_eq!(pair.sender.counters().handshakes, 10);
    // Session and packet number identify key and nonce.
    let mut used: Vec<_> =
        pair.to_sink.iter().filter(|d| d[0] == kind::SEALED).map(|d| &d[..SEALED_HEADER]).collect();
    let all = used.len();
    used.sort();
    used.dedup();
    assert_eq!(used.len(), all);
    // A pause that is longer than the life of keys: the sender begins anew.
    pair.now += seconds(4 * 3600);
    assert_eq!(pair.say(MESSAGE), None);
    pair.exchange();
    assert!(pair.say(MESSAGE).is_some());
}

#[test]
fn a_new_run_of_a_sender_ends_the_old_one() {
    let mut pair = Pair::open(Shared(shared()), accepts());
    let old = pair.say(MESSAGE).unwrap().0;
    let mut before = Vec::new();
    pair.sender.seal(pair.now, MESSAGE, &mut before).unwrap();
    pair.sender = Initiator::new(Shared(shared()), &name(), 8, entropy);
    pair.sender.call(pair.now);
    pair.exchange();
    let new = pair.say(MESSAGE).unwrap().0;
    assert_eq!((new.peer, new.run, pair.sink.senders()), (old.peer, 8, 1));
    assert_eq!(pair.arrive(&before), None);
}

#[test]
fn a_revoked_key_ends_its_sessions() {
    let mut pair = Pair::open(Shared(shared()), accepts());
    pair.say(MESSAGE).unwrap();
    pair.sink.accept(Accepts { shared: Vec::new(), ..accepts() });
    assert_eq!(pair.say(MESSAGE), None);
    pair.now = seconds(30);
    pair.say(MESSAGE);
    pair.exchange();
    assert_eq!((pair.say(MESSAGE), pair.sink.senders()), (None, 0));
}

/// Connects the sender `s{number}` and sends a message. Returns whether it arrived.
fn join(sink: &mut Responder, proof: impl Proof, now: u64, number: u16) -> bool {
    let (now, name) = (seconds(now), format!("s{number}").parse().unwrap());
    let (mut sender, mut out, mut plain) = (Initiator::new(proof, &name, 1, entropy), Vec::new(), Vec::new());
    sender.call(now);
    while sender.poll_transmit(now, &mut out) {
        sink.handle(now, address(number), &out, &mut plain);
        while let Some((_, reply)) = sink.poll_transmit() {
            sender.handle(now, &reply, &mut plain);
        }
    }
    sender.seal(now, MESSAGE, &mut out).is_ok()
        && sink.handle(now, address(number), &out, &mut plain).is_some()
}

/// A full sink gives the place of a silent sender to a new one, but not that of a busy one.
#[test]
fn places_are_limited_and_go_to_those_who_speak() {
    let mut sink = Responder::new(Duration::ZERO, accepts(), 3, entropy).unwrap();
    let join = |sink: &mut Responder, now, number| join(sink, Shared(shared()), now, number);
    assert!((0..3).all(|number| join(&mut sink, 0, number)));
    assert!(!join(&mut sink, 59, 3));
    assert!(join(&mut sink, 59, 2) && join(&mut sink, 61, 3) && sink.senders() == 3);
}

#[test]
fn one_credential_does_not_take_the_places_of_others() {
    let known = || Known { own: secret(1), sink: secret(3).public() };
    let (mut sink, psk) =
        (Responder::new(Duration::ZERO, accepts(), 20, entropy).unwrap(), || Shared(shared()));
    assert!((0..16).all(|number| join(&mut sink, known(), 0, number)));
    assert!(!join(&mut sink, known(), 59, 16), "a public key has 16 names");
    assert!((20..24).all(|number| join(&mut sink, psk(), 1, number)));
    // Each of these is silent. The first one replaces a sender of its own key; the second one a
    // sender of the key with most names.
    assert!(join(&mut sink, known(), 61, 16) && join(&mut sink, psk(), 61, 24));
    let names: Vec<_> = (0..100).filter_map(|number| Some(sink.sender(PeerNumber(number))?.1)).collect();
    let expected: Vec<Name> =
        (2..16).chain(20..24).chain([16, 24]).map(|number| format!("s{number}").parse().unwrap()).collect();
    assert_eq!(names, expected);
}

/// A sink on [::] sees IPv4 hosts under mapped addresses.
#[test]
fn one_host_does_not_use_up_the_handshakes_of_others() {
    let (mut sink, mut plain) = (sink(accepts()), Vec::new());
    let at = |host: &str| SocketAddr::new(host.parse().unwrap(), HOME);
    let flood = |sink: &mut Responder, host: &str| {
        let mut garbage = vec![0x55; HELLO_BODY + 104];
        garbage[..HEAD].copy_from_slice(&[kind::HELLO, VERSION, pattern::KNOWN, 0, 1, 2, 3, 4]);
        sink.handle(Duration::ZERO, at(host), &garbage, &mut Vec::new());
        let (_, cookie) = sink.poll_transmit().unwrap();
        garbage[HEAD..HELLO_BODY].copy_from_slice(&cookie[HEAD..]);
        for _ in 0..200 {
            sink.handle(Duration::ZERO, at(host), &garbage, &mut Vec::new());
        }
    };
    let mut welcomes = |sink: &mut Responder, host: &str| {
        let proof = Known { own: secret(1), sink: secret(3).public() };
        let (mut sender, mut out) = (Initiator::new(proof, &name(), 7, entropy), Vec::new());
        sender.call(Duration::ZERO);
        while sender.poll_transmit(Duration::ZERO, &mut out) {
            sink.handle(Duration::ZERO, at(host), &out, &mut plain);
            while let Some((_, reply)) = sink.poll_transmit() {
                sender.handle(Duration::ZERO, &reply, &mut plain);
            }
        }
        sender.is_open(Duration::ZERO)
    };
    flood(&mut sink, "::ffff:10.0.0.1");
    assert!(!welcomes(&mut sink, "10.0.0.1"), "it is the same host");
    assert!(welcomes(&mut sink, "::ffff:10.0.0.2"));
    flood(&mut sink, "fd00::1");
    assert!(!welcomes(&mut sink, "fd00::2"), "it is the same /64");
    assert!(welcomes(&mut sink, "fd00:0:0:1::1"));
    // A HELLO whose key is unknown costs no X25519, and does not count.
    let mut stranger = vec![0x55; HELLO_BODY + 72];
    stranger[..HEAD].copy_from_slice(&[kind::HELLO, VERSION, pattern::FORWARD, 0, 1, 2, 3, 4]);
    sink.handle(Duration::ZERO, at("10.0.0.3"), &stranger, &mut Vec::new());
    let (_, cookie) = sink.poll_transmit().unwrap();
    stranger[HEAD..HELLO_BODY].copy_from_slice(&cookie[HEAD..]);
    for _ in 0..300 {
        sink.handle(Duration::ZERO, at("10.0.0.3"), &stranger, &mut Vec::new());
    }
    assert!(welcomes(&mut sink, "10.0.0.3"));
}

#[test]
fn all_hosts_together_have_a_limit_of_handshakes() {
    let mut sink = sink(accepts());
    let mut count = |now: u64| {
        let from = |host: u8| SocketAddr::from(([10, 0, 0, host], 1));
        let may = |host| (0..100).filter(|_| sink.may_compute(seconds(now), from(host)).is_ok()).count();
        (0..100).map(may).sum::<usize>()
    };
    assert_eq!([count(1), count(1), count(2)], [2000, 0, 2000]);
}
