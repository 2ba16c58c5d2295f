//! Tests with attackers during a push: refusals are counted, and the file arrives unchanged.

use std::collections::VecDeque;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anabranch_core::set::{Outcome, SetAckStatus};
use anabranch_core::time;
use anabranch_net::set::{GatewayEvent, KnownGateway, Push, PushConfig, RefusedCounters};
use anabranch_secure::{Doorkeeper, Guard, NodeKeys};
use anabranch_testkit::prng::Prng;
use anabranch_wire::set::{
    Decoder, Item, Join, Message, Plan, Request, SetAck, SetSyn, TransferId, VERSION, encode,
};
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use super::keys;
use super::world::*;

/// A push that gives up soon.
fn impatient(mut config: PushConfig) -> PushConfig {
    config.set.request_tries = 4;
    config.set.request_timeout = time::Duration::from_millis(500);
    config.set.redials = 1;
    config.set.patience = time::Duration::from_millis(50);
    config.set.silence = time::Duration::from_millis(200);
    config.set.set_timeout = time::Duration::from_millis(300);
    config.set.set_tries = 3;
    config.set.stall = time::Duration::from_secs(3);
    config
}

/// The refusals of a gateway so far.
fn refused(gateway: &Running) -> RefusedCounters {
    let events = gateway.events.lock().unwrap_or_else(PoisonError::into_inner);
    events.iter().fold(RefusedCounters::default(), |sum, event| match event {
        GatewayEvent::Ended { refused, .. } => RefusedCounters {
            strangers: sum.strangers + refused.strangers,
            replayed: sum.replayed + refused.replayed,
            tampered: sum.tampered + refused.tampered,
            garbled: sum.garbled + refused.garbled,
            truncated: sum.truncated + refused.truncated,
            unasked: sum.unasked + refused.unasked,
            silent: sum.silent + refused.silent,
            revoked: sum.revoked + refused.revoked,
            surplus: sum.surplus + refused.surplus,
        },
        GatewayEvent::Full { .. } | GatewayEvent::Evicted { .. } => {
            RefusedCounters { surplus: sum.surplus + 1, ..sum }
        }
    })
}

/// What an attacker on the path does to one direction of a connection.
type Meddle = Box<dyn FnMut(&mut Vec<u8>) -> Then + Send>;

/// What the attacker does afterwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Then {
    PassOn,
    HangUp,
}

/// An attacker on the path to `to`. `meddler` defines its behaviour in both directions of each
/// connection.
struct Between {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Between {
    async fn stand(to: SocketAddr, mut meddler: impl FnMut() -> [Meddle; 2] + Send + 'static) -> Self {
        let listener = TcpListener::bind((V4, 0)).await.expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let task = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let meddles = meddler();
                tokio::spawn(async move {
                    let Ok(far) = TcpStream::connect(to).await else { return };
                    pass(near, far, meddles).await;
                });
            }
        });
        Self { address, task }
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(near: TcpStream, far: TcpStream, [there, back]: [Meddle; 2]) {
    let (near_in, near_out) = near.into_split();
    let (far_in, far_out) = far.into_split();
    // A disconnect applies to both directions.
    tokio::select! {
        () = one_way(near_in, far_out, there) => {}
        () = one_way(far_in, near_out, back) => {}
    }
}

async fn one_way(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, mut meddle: Meddle) {
    let mut buffer = vec![0; 16 << 10];
    loop {
        let Ok(n) = from.read(&mut buffer).await else { return };
        if n == 0 {
            // The other direction may have more data.
            let _ = to.shutdown().await;
            return std::future::pending().await;
        }
        let mut octets = buffer[..n].to_vec();
        let then = meddle(&mut octets);
        if to.write_all(&octets).await.is_err() || then == Then::HangUp {
            return;
        }
    }
}

fn honest() -> Meddle {
    Box::new(|_| Then::PassOn)
}

/// Randomly changes, drops, repeats, inserts or cuts off bytes.
fn malicious(seed: u64, percent: u64) -> Meddle {
    let mut random = Prng::new(seed);
    Box::new(move |octets| {
        if !random.chance(percent) {
            return Then::PassOn;
        }
        let at = random.below(octets.len() as u64) as usize;
        match random.below(6) {
            0 => octets[at] ^= 1 << random.below(8),
            1 => octets.truncate(at),
            2 => octets.extend_from_within(at..),
            3 => drop(octets.splice(at..at, random.octets(40))),
            4 => octets.clear(),
            _ => {
                octets.truncate(at);
                return Then::HangUp;
            }
        }
        Then::PassOn
    })
}

/// The recorded bytes of each connection, in order.
type Tapes = Arc<Mutex<Vec<Arc<Mutex<Vec<u8>>>>>>;

/// An attacker on the path who records the bytes sent to `to`.
async fn recorder(to: SocketAddr) -> (Between, Tapes) {
    let tapes = Tapes::default();
    let all = Arc::clone(&tapes);
    let between = Between::stand(to, move || {
        let tape = Arc::<Mutex<Vec<u8>>>::default();
        all.lock().expect("nobody panics").push(Arc::clone(&tape));
        let keep: Meddle = Box::new(move |octets| {
            tape.lock().expect("nobody panics").extend_from_slice(octets);
            Then::PassOn
        });
        [keep, honest()]
    });
    (between.await, tapes)
}

/// Sends bytes and waits until the other end disconnects. Returns its answer.
async fn say(to: SocketAddr, octets: &[u8]) -> Vec<u8> {
    let mut answer = Vec::new();
    let talk = async {
        let Ok(mut socket) = TcpStream::connect(to).await else { return };
        let _ = socket.write_all(octets).await;
        let _ = socket.read_to_end(&mut answer).await;
    };
    timeout(Duration::from_secs(20), talk).await.expect("it hangs up");
    answer
}

/// During a push, and before and after it, everything recorded in another push is replayed.
#[test]
fn a_recorded_push_that_is_replayed_gets_nothing() {
    on_one_thread(async {
        let gateway = gateway_with(V4, |config| {
            config.allow = vec!["127.0.0.1:1-65535".parse().expect("a rule")];
            config.setsyn_timeout = time::Duration::from_secs(1);
        });
        let node = node_with(V4, &[&gateway], |config| {
            config.greeting_timeout = time::Duration::from_secs(1);
        });
        let (to_gateway, to_gateway_tapes) = recorder(gateway.address).await;
        let (to_node, to_node_tapes) = recorder(node.address).await;
        let recorded = contents(300_000);
        let via = KnownGateway { address: to_gateway.address, ..gateway.known() };
        let config_1 = PushConfig { via: vec![via], ..config(to_node.address) };
        let (outcome, _) = run(Push::new(config_1, recorded.clone()), |_| {}).await;
        assert_eq!(outcome, Outcome::Delivered);
        assert!(node.sink.look().octets == recorded);

        let tapes = |tapes: &Tapes| -> Vec<Vec<u8>> {
            let tapes = tapes.lock().expect("nobody panics");
            tapes.iter().map(|tape| tape.lock().expect("nobody panics").clone()).collect()
        };
        let at_gateway = tapes(&to_gateway_tapes);
        let at_node = tapes(&to_node_tapes);
        assert_eq!((at_gateway.len(), at_node.len()), (1, 2), "a session; a request and the session");

        let (node_at, gateway_at) = (node.address, gateway.address);
        let replays = tokio::spawn(async move {
            for _ in 0..3 {
                for tape in &at_gateway {
                    assert!(say(gateway_at, tape).await.is_empty(), "whoever repeats learns nothing");
                }
                for tape in &at_node {
                    let answer = say(node_at, tape).await;
                    // The answer to a greeting contains keys that only the sender can use, and
                    // nothing else.
                    assert!(answer.len() <= 2 + 48, "{} octets", answer.len());
                }
            }
        });
        let file = contents(20_000_000);
        let (outcome, _) = run(Push::new(config(node.address), file.clone()), |_| {}).await;
        assert_eq!(outcome, Outcome::Delivered);
        replays.await.expect("each was refused");
        until(|| refused(&gateway).replayed >= 3 && node.refused().total() >= 6).await;
        until(|| node.sink.look().finished >= 2).await;
        let kept = node.sink.look();
        assert!(kept.octets == file);
        assert_eq!((kept.begun, kept.finished), (2, 2));
        drop(kept);
        assert_eq!(refused(&gateway), RefusedCounters { replayed: 3, ..RefusedCounters::default() });
        let refused = node.refused();
        assert_eq!(refused.total(), 6, "{refused}");
    });
}

/// A restarted gateway remembers no greetings: replayed bytes reach the node and no further.
#[test]
fn what_is_replayed_to_a_new_gateway_ends_at_the_node() {
    on_one_thread(async {
        let first = gateway(V4);
        let node = node_with(V4, &[&first], |config| {
            config.greeting_timeout = time::Duration::from_secs(1);
        });
        let (to_gateway, tapes) = recorder(first.address).await;
        let file = contents(300_000);
        let via = KnownGateway { address: to_gateway.address, ..first.known() };
        let config = PushConfig { via: vec![via], ..config(node.address) };
        let (outcome, _) = run(Push::new(config, file.clone()), |_| {}).await;
        assert_eq!(outcome, Outcome::Delivered);
        let tape = tapes.lock().expect("nobody panics")[0].lock().expect("nobody panics").clone();
        for _ in 0..3 {
            say(gateway(V4).address, &tape).await;
        }
        until(|| node.refused().total() >= 3).await;
        let kept = node.sink.look();
        assert!(kept.octets == file && (kept.begun, kept.finished) == (1, 1));
        drop(kept);
        let refused = node.refused();
        assert_eq!((refused.replayed, refused.total()), (3, 3), "{refused}");
    });
}

/// An attacker on the path to one of two gateways: the file arrives. On the only path: it arrives,
/// or the push fails.
#[test]
fn whoever_meddles_on_the_way_changes_nothing() {
    on_one_thread(async {
        let file = contents(1_000_000);
        let mut endings = [0; 2];
        for seed in 0..40 {
            let gateways = [gateway(V4), gateway(V4)];
            let node = node(V4, &[]);
            let percent = [2, 10, 40][seed as usize % 3];
            let meddle = |offset: u64| {
                let mut connection = 0;
                move || {
                    connection += 2;
                    [0, 1].map(|way| malicious(seed * 1_000 + offset + connection + way, percent))
                }
            };
            let on_one = Between::stand(gateways[0].address, meddle(0)).await;
            let on_all = Between::stand(node.address, meddle(500)).await;
            let bad = KnownGateway { address: on_one.address, ..gateways[0].known() };
            let (to, via) = match seed % 2 {
                0 => (node.address, vec![bad, gateways[1].known()]),
                _ => (on_all.address, vec![gateways[0].known(), gateways[1].known()]),
            };
            let config = impatient(PushConfig { via, ..config(to) });
            let (outcome, _) = run(Push::new(config, file.clone()), |_| {}).await;
            let kept = node.sink.look();
            assert!(file.starts_with(&kept.octets), "seed {seed}: it has octets that nobody has sent");
            assert!(kept.finished == 0 || kept.octets == file, "seed {seed}");
            match (seed % 2, outcome) {
                (_, Outcome::Delivered) => {
                    endings[0] += 1;
                    assert!(kept.finished == 1, "seed {seed}");
                }
                (0, _) => panic!("seed {seed}: there was an honest way, and it is {outcome:?}"),
                (_, _) => endings[1] += 1,
            }
        }
        println!("{} delivered, {} failed", endings[0], endings[1]);
        assert!(endings[0] >= 20);
    });
}

/// Attacks of a gateway with a valid key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lie {
    /// Reports an open session, and drops everything.
    Swallow,
    /// Announces the session under another number.
    Session,
    /// Announces the session for another transfer.
    Transfer,
    /// Announces more sessions than there are.
    Sessions,
    /// Announces the session correctly, and then sends bytes of its own.
    Invent,
    /// Sends a message to the sender that no gateway may send.
    Babble,
}

/// A gateway that attacks.
async fn liar(lie: Lie) -> KnownGateway {
    let listener = TcpListener::bind((V4, 0)).await.expect("a port");
    let address = listener.local_addr().expect("it is bound");
    let door = Doorkeeper::new(keys::gateway(), [keys::sender().public()]);
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(lie_to(socket, Guard::gateway(&door), lie));
        }
    });
    KnownGateway { key: Some(keys::gateway().public()), ..address.into() }
}

async fn lie_to(mut sender: TcpStream, mut guard: Guard, lie: Lie) -> Option<()> {
    let mut buffer = vec![0; 16 << 10];
    let mut decoder = Decoder::new();
    let setsyn = loop {
        let n = sender.read(&mut buffer).await.ok().filter(|n| *n > 0)?;
        if let Some(octets) = guard.read(Bytes::copy_from_slice(&buffer[..n])).ok()? {
            decoder.push(octets);
        }
        if let Ok(Some(Item::Message(Message::SetSyn(setsyn)))) = decoder.next_item() {
            break setsyn;
        }
    };
    let SetSyn { mut join, destination } = setsyn;
    let mut answer = Vec::new();
    encode(&Message::SetAck(SetAck { session: join.session, status: SetAckStatus::Open }), &mut answer);
    guard.write(answer.into()).ok()?;
    while let Some(octets) = guard.poll_transmit() {
        sender.write_all(&octets).await.ok()?;
    }
    match lie {
        Lie::Swallow => {
            while sender.read(&mut buffer).await.ok()? > 0 {}
            return None;
        }
        Lie::Babble => {
            let _ = sender.write_all(&[0x17; 300]).await;
            while sender.read(&mut buffer).await.ok()? > 0 {}
            return None;
        }
        Lie::Session => join.session ^= 1,
        Lie::Transfer => join.transfer = TransferId(join.transfer.0 ^ 1),
        Lie::Sessions => join.sessions += 5,
        Lie::Invent => {}
    }
    let mut node = TcpStream::connect(destination).await.ok()?;
    let mut octets = Vec::new();
    encode(&Message::Join(join), &mut octets);
    octets.extend_from_slice(&decoder.into_rest());
    if lie == Lie::Invent {
        octets.extend_from_slice(&[0, 40]);
        octets.extend_from_slice(&[7; 40]);
    }
    node.write_all(&octets).await.ok()?;
    tokio::io::copy_bidirectional(&mut sender, &mut node).await.ok()?;
    Some(())
}

#[test]
fn a_gateway_that_lies_costs_time_and_nothing_else() {
    on_one_thread(async {
        let file = contents(3_000_000);
        let lies = [Lie::Swallow, Lie::Session, Lie::Transfer, Lie::Sessions, Lie::Invent, Lie::Babble];
        for lie in lies {
            let (honest, liar) = (gateway(V4), liar(lie).await);
            let node = node(V4, &[]);
            for via in [vec![liar, honest.known()], vec![honest.known(), liar]] {
                let config = impatient(PushConfig { via, ..config(node.address) });
                let (outcome, _) = run(Push::new(config, file.clone()), |_| {}).await;
                assert_eq!(outcome, Outcome::Delivered, "{lie:?}");
                assert!(node.sink.look().octets == file, "{lie:?}");
            }
            // As the only gateway, it can only prevent the file from arriving.
            let config = impatient(PushConfig { via: vec![liar], ..config(node.address) });
            let (outcome, push) = run(Push::new(config, file.slice(1..)), |_| {}).await;
            assert!(matches!(outcome, Outcome::Failed(_)), "{lie:?}");
            assert_eq!(push.delivered(), 0, "{lie:?}");
            let kept = node.sink.look();
            assert!(kept.octets.is_empty() && kept.finished == 2, "{lie:?}");
            drop(kept);
            let refused = node.refused();
            let RefusedCounters { unasked, tampered, garbled, .. } = refused;
            let counted = match lie {
                Lie::Swallow | Lie::Babble => 0,
                // The announced transfer may be the previous one, whose keys may still exist.
                Lie::Transfer => unasked + tampered,
                // There is no session 1 of 1.
                Lie::Session => tampered + garbled,
                Lie::Sessions | Lie::Invent => tampered,
            };
            assert_eq!(counted, refused.total(), "{lie:?}: {refused}");
            assert_eq!(counted > 0, !matches!(lie, Lie::Swallow | Lie::Babble), "{lie:?}: {refused}");
        }
    });
}

/// Attacks without a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Attack {
    /// Nothing.
    Silence,
    /// Endless random bytes.
    Garbage,
    /// An incomplete greeting.
    HalfGreeting,
    /// The beginning of a JOIN, and no more.
    HalfJoin,
    /// A greeting sent one byte at a time, slower than any peer waits.
    Slowly,
    /// A greeting with an unknown key.
    Stranger,
    /// A session of a transfer that was not requested.
    Unasked,
    /// Disconnects immediately.
    Knock,
}

const ATTACKS: [Attack; 8] = [
    Attack::Silence,
    Attack::Garbage,
    Attack::HalfGreeting,
    Attack::HalfJoin,
    Attack::Slowly,
    Attack::Stranger,
    Attack::Unasked,
    Attack::Knock,
];

/// Attacks once, until the other end disconnects.
async fn attack(to: SocketAddr, attack: Attack, seed: u64) -> Option<()> {
    let mut random = Prng::new(seed);
    let mut socket = TcpStream::connect(to).await.ok()?;
    let stranger = Guard::control(&keys::shown(keys::stranger(), &keys::node())).ok()?.poll_transmit()?;
    let mut join = Vec::new();
    let unasked = Join { transfer: TransferId(random.bits()), session: 0, sessions: 1, plan: Plan::Stripe };
    encode(&Message::Join(unasked), &mut join);
    match attack {
        Attack::Silence => {}
        Attack::Garbage => loop {
            socket.write_all(&random.octets(4_000)).await.ok()?;
        },
        Attack::HalfGreeting => socket.write_all(&stranger[..60]).await.ok()?,
        Attack::HalfJoin => socket.write_all(&join[..join.len() - 1]).await.ok()?,
        Attack::Slowly => {
            for octet in &stranger[..] {
                socket.write_all(&[*octet]).await.ok()?;
                tokio::time::sleep(Duration::from_millis(30)).await;
            }
            panic!("it was let come to its end");
        }
        Attack::Stranger => socket.write_all(&stranger).await.ok()?,
        Attack::Unasked => socket.write_all(&join).await.ok()?,
        Attack::Knock => return None,
    }
    // A stranger gets no answer.
    let n = socket.read(&mut [0; 64]).await.ok()?;
    assert_eq!(n, 0, "{attack:?} was answered");
    None
}

/// Attacks in all ways, five times each in parallel, until it is aborted.
fn besiege(to: SocketAddr) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for (i, way) in ATTACKS.into_iter().cycle().take(5 * ATTACKS.len()).enumerate() {
        tasks.spawn(async move {
            for n in 0.. {
                let done = timeout(Duration::from_secs(20), attack(to, way, i as u64 * 1_000_000 + n)).await;
                assert!(done.is_ok(), "{way:?} was put up with");
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
    }
    tasks
}

#[test]
fn a_siege_of_gateway_and_node_delays_nobody_for_long() {
    on_one_thread(async {
        // On a busy machine an honest sender may have to wait for a second.
        let gateway = gateway_with(V4, |config| {
            config.allow = vec!["127.0.0.1:1-65535".parse().expect("a rule")];
            config.setsyn_timeout = time::Duration::from_secs(2);
        });
        let node = node_with(V4, &[&gateway], |config| {
            config.greeting_timeout = time::Duration::from_secs(2);
        });
        let mut sieges = [besiege(gateway.address), besiege(node.address)];
        for octets in [1_000, 300_000, 10_000_000] {
            let file = contents(octets);
            let (outcome, _) = run(Push::new(config(node.address), file.clone()), |_| {}).await;
            assert_eq!(outcome, Outcome::Delivered, "{octets}: {}", node.refused());
            assert!(node.sink.look().octets == file);
            tokio::time::sleep(Duration::from_millis(1500)).await;
        }
        for siege in &mut sieges {
            assert!(siege.try_join_next().is_none(), "an attack has failed");
            siege.abort_all();
        }
        let each = |refused: RefusedCounters| refused.strangers.min(refused.garbled).min(refused.silent) > 0;
        until(|| each(refused(&gateway)) && each(node.refused()) && node.refused().unasked > 0).await;
        let (at_gateway, at_node) = (refused(&gateway), node.refused());
        println!("gateway: {at_gateway}; node: {at_node}");
        for refused in [at_gateway, at_node] {
            let RefusedCounters { strangers, garbled, silent, .. } = refused;
            assert!(strangers > 0 && garbled > 0 && silent > 0, "{refused}");
        }
        assert!(at_node.unasked > 0, "{at_node}");
    });
}

/// More connections than the limit, none of which authenticates: half of them are silent, half send
/// the beginning of a greeting.
#[test]
fn ten_thousand_who_say_nothing_make_way() {
    const CALLERS: usize = 10_000;
    /// Number of our sockets that are open at the same time.
    const KEPT: usize = 300;
    on_one_thread(async {
        let gateway = gateway_with(V4, |config| {
            config.allow = vec!["127.0.0.1:1-65535".parse().expect("a rule")];
        });
        let node = node(V4, &[&gateway]);
        let callers = [gateway.address, node.address].map(|to| {
            tokio::spawn(async move {
                let mut held = VecDeque::new();
                for i in 0..CALLERS / 2 {
                    if let Ok(Ok(socket)) = timeout(Duration::from_secs(5), TcpStream::connect(to)).await {
                        // Silent connections wait in the kernel.
                        if i % 2 == 1 {
                            let _ = socket.writable().await;
                            let _ = socket.try_write(&[0xb0, 0, 96, 1, 2, 3]);
                        }
                        held.push_back(socket);
                    }
                    if held.len() > KEPT {
                        held.pop_front();
                    }
                    tokio::task::yield_now().await;
                }
            })
        });
        let file = contents(10_000_000);
        let (outcome, _) = run(Push::new(config(node.address), file.clone()), |_| {}).await;
        assert_eq!(outcome, Outcome::Delivered, "{}", node.refused());
        assert!(node.sink.look().octets == file);
        for caller in callers {
            caller.await.expect("it has called");
        }
        until(|| refused(&gateway).surplus > 1_000 && node.refused().surplus > 1_000).await;
        let (at_gateway, at_node) = (refused(&gateway), node.refused());
        println!("gateway: {at_gateway}; node: {at_node}");
        assert!(at_gateway.surplus > 1_000 && at_node.surplus > 1_000, "{at_gateway}; {at_node}");
        // An honest sender is served immediately.
        let next = run(Push::new(config(node.address), contents(1_000)), |_| {});
        let (outcome, _) = timeout(Duration::from_secs(5), next).await.expect("at once");
        assert_eq!(outcome, Outcome::Delivered);
    });
}

/// More simultaneous connections than a gateway or node accepts at a time or keeps unauthenticated.
const BURST: u64 = 200;
/// No connection is reset for its silence, however slow the machine is.
const UNHURRIED: time::Duration = time::Duration::from_secs(600);

/// Opens this many connections, each silent or with the beginning of a greeting. The kernel holds
/// them until they are accepted, which needs the thread of this test, so this function must not
/// wait.
fn burst(to: SocketAddr) -> Vec<std::net::TcpStream> {
    let call = |i| {
        let mut socket = std::net::TcpStream::connect(to).expect("it listens");
        if i % 2 == 1 {
            socket.write_all(&[0xb0, 0, 96, 1, 2, 3]).expect("the kernel takes it");
        }
        socket
    };
    (0..BURST).map(call).collect()
}

/// An honest peer whose greeting is in the kernel before others connect.
fn greet(to: SocketAddr, guard: &mut Guard) -> TcpStream {
    let mut socket = std::net::TcpStream::connect(to).expect("it listens");
    while let Some(octets) = guard.poll_transmit() {
        socket.write_all(&octets).expect("the kernel takes it");
    }
    socket.set_nonblocking(true).expect("a socket");
    TcpStream::from_std(socket).expect("a runtime")
}

/// Reads the answers to an honest peer until there is plaintext for the machine, or `is_enough` is
/// true.
async fn hear(socket: &mut TcpStream, guard: &mut Guard, is_enough: impl Fn(&Guard) -> bool) -> Bytes {
    let mut octets = [0; 1024];
    loop {
        let n = timeout(Duration::from_secs(60), socket.read(&mut octets)).await.expect("an answer");
        let n = n.expect("the connection stays");
        assert!(n > 0, "the other end has hung up on an honest caller");
        let said = guard.read(Bytes::copy_from_slice(&octets[..n])).expect("it holds");
        if said.is_some() || is_enough(guard) {
            return said.unwrap_or_default();
        }
    }
}

/// A node reads what has arrived before it resets a connection in favour of others. A connection
/// without a valid greeting is reset before one that has sent it.
#[test]
fn a_burst_of_callers_pushes_no_honest_sender_out_of_a_node() {
    on_one_thread(async {
        let node = node_with(V4, &[], |config| config.greeting_timeout = UNHURRIED);
        let mut guard = Guard::control(&keys::shown(keys::sender(), &keys::node())).expect("keys");
        let mut honest = greet(node.address, &mut guard);
        let _first = burst(node.address);
        hear(&mut honest, &mut guard, Guard::is_proven).await;

        // The node waits for the request, while more connections arrive.
        let before = node.refused().surplus;
        let _second = burst(node.address);
        until(|| node.refused().surplus >= before + BURST).await;
        let mut request = Vec::new();
        let message = Request {
            version: VERSION,
            transfer: TransferId(7),
            length: 1,
            plan: Plan::Stripe,
            file: None,
            copy: false,
            manifest: None,
        };
        encode(&Message::Request(message), &mut request);
        guard.write(request.into()).expect("the node is known");
        while let Some(octets) = guard.poll_transmit() {
            honest.write_all(&octets).await.expect("the connection stays");
        }
        let said = hear(&mut honest, &mut guard, |_| false).await;
        let mut decoder = Decoder::new();
        decoder.push(said);
        let said = decoder.next_item();
        assert!(matches!(said, Ok(Some(Item::Message(Message::Ack(_) | Message::Accept(_))))), "{said:?}");
    });
}

/// A gateway reads what has arrived before it resets a sender in favour of others.
#[test]
fn a_burst_of_callers_pushes_no_honest_sender_out_of_a_gateway() {
    on_one_thread(async {
        let gateway = gateway_with(V4, |config| {
            config.allow = vec!["127.0.0.1:1-65535".parse().expect("a rule")];
            config.setsyn_timeout = UNHURRIED;
        });
        let destination = std::net::TcpListener::bind((V4, 0)).expect("a port");
        let destination =
            destination.local_addr().map(|address| (destination, address)).expect("it is bound");
        // Session keys require an answered greeting of the node.
        let sender = keys::shown(keys::sender(), &keys::node());
        let (mut a, mut b) =
            (Guard::control(&sender).expect("keys"), Guard::node(&NodeKeys::new(keys::who())));
        b.read(a.poll_transmit().expect("a greeting")).expect("it holds");
        a.read(b.poll_transmit().expect("an answer")).expect("it holds");

        let mut guard = Guard::session(&sender, keys::gateway().public()).expect("the node was greeted");
        let join = Join { transfer: TransferId(7), session: 0, sessions: 1, plan: Plan::Stripe };
        let mut setsyn = Vec::new();
        encode(&Message::SetSyn(SetSyn { join, destination: destination.1 }), &mut setsyn);
        guard.write(setsyn.into()).expect("it is one");
        let mut honest = greet(gateway.address, &mut guard);
        let _burst = burst(gateway.address);
        let said = hear(&mut honest, &mut guard, |_| false).await;
        assert_eq!(said[0], 0x60, "the session is open");
        until(|| refused(&gateway).surplus >= BURST / 2).await;
    });
}
