//! A client and a server of CoAP over a network that delays, loses, duplicates and reorders.

use std::collections::BTreeMap;

use anabranch_core::coap::{Client, Config, Counters, Event, Failure, Server};
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::prng::Prng;
use anabranch_wire::coap::{Message, decode};
use bytes::Bytes;

/// What happens to a datagram.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Fate {
    Arrives,
    Lost,
    /// Arrives twice.
    Twice,
    /// Arrives later by this time.
    Late(Duration),
}

/// Sender of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum From {
    Client,
    Server,
}

/// A message: when it was sent, its sender, and whether it was lost.
pub(crate) type Sent = (Instant, From, Message, bool);

/// The result of a transfer.
#[derive(Debug)]
pub(crate) struct Run {
    pub sent: Vec<Sent>,
    pub client: Counters,
    pub server: Counters,
    /// The bodies that arrived, and when.
    pub received: Vec<(Instant, Bytes)>,
    /// The outcome of the client, and its time.
    pub outcome: Option<(Instant, Result<(), Failure>)>,
    /// Times at which the server discarded blocks.
    pub discarded: Vec<Instant>,
}

impl Run {
    /// The messages of one end.
    pub(crate) fn by(&self, from: From) -> impl Iterator<Item = &Sent> {
        self.sent.iter().filter(move |(_, by, ..)| *by == from)
    }
}

/// Bytes in which no two blocks are equal.
pub(crate) fn body(len: usize) -> Bytes {
    (0..len).map(|i| (i ^ i >> 8 ^ i >> 13) as u8).collect()
}

/// Carries a body. Each direction takes `delay`; `fate` is asked for each datagram, with the number
/// of datagrams of that end before it.
pub(crate) fn run(
    [client, server]: [Config; 2],
    body: &Bytes,
    (delay, seed): (Duration, u64),
    mut fate: impl FnMut(From, usize, &Message) -> Fate,
) -> Run {
    let mut now = Instant::ZERO;
    let (mut client, mut server) = if client.method.is_put() {
        (Client::put(now, client, "a/b", body.clone(), seed), Server::receiving(server, !seed))
    } else {
        (Client::get(now, client, "a/b", seed), Server::serving(server, body.clone(), !seed))
    };
    let mut run = Run {
        sent: Vec::new(),
        client: Counters::default(),
        server: Counters::default(),
        received: Vec::new(),
        outcome: None,
        discarded: Vec::new(),
    };
    let mut flying: BTreeMap<(Instant, usize), (From, Bytes)> = BTreeMap::new();
    let (mut counts, mut number) = ([0; 2], 0);
    loop {
        loop {
            let next = client.poll_transmit(now).map(|octets| (From::Client, octets));
            let Some((from, octets)) =
                next.or_else(|| server.poll_transmit(now).map(|octets| (From::Server, octets)))
            else {
                break;
            };
            let message = decode(&octets).expect("what is sent is a message");
            let count = &mut counts[usize::from(from == From::Server)];
            let what = fate(from, *count, &message);
            *count += 1;
            run.sent.push((now, from, message, what == Fate::Lost));
            let arrivals = match what {
                Fate::Arrives => vec![now + delay],
                Fate::Lost => vec![],
                Fate::Twice => vec![now + delay, now + delay],
                Fate::Late(more) => vec![now + delay + more],
            };
            for at in arrivals {
                number += 1;
                flying.insert((at, number), (from, octets.clone()));
            }
        }
        for event in std::iter::from_fn(|| client.poll_event().or_else(|| server.poll_event())) {
            match event {
                Event::Received(body) => run.received.push((now, body)),
                Event::Finished(outcome) => {
                    assert_eq!(run.outcome, None, "a client finishes once");
                    run.outcome = Some((now, outcome));
                }
                Event::Discarded => run.discarded.push(now),
            }
        }
        (run.client, run.server) = (client.counters(), server.counters());
        let arrival = flying.keys().next().map(|(at, _)| *at);
        let timeouts = [arrival, client.next_timeout(), server.next_timeout()];
        let Some(next) = timeouts.into_iter().flatten().min() else { return run };
        assert!(next >= now, "a deadline has passed: {timeouts:?} at {now}");
        assert!(run.sent.len() < 1_000_000, "the transfer never ends");
        now = next;
        match flying.first_entry().filter(|entry| entry.key().0 <= now) {
            Some(entry) => match entry.remove() {
                (From::Client, octets) => server.handle_datagram(now, &octets),
                (From::Server, octets) => client.handle_datagram(now, &octets),
            },
            None => {
                client.handle_timeout(now);
                server.handle_timeout(now);
            }
        }
    }
}

/// Loses `loss` percent, and duplicates and delays as many.
pub(crate) fn faults(seed: u64, loss: u64) -> impl FnMut(From, usize, &Message) -> Fate {
    let mut random = Prng::new(seed);
    move |_, _, _| match random.below(100) {
        n if n < loss => Fate::Lost,
        n if n < 2 * loss => Fate::Twice,
        n if n < 3 * loss => Fate::Late(Duration::from_millis(random.below(500))),
        _ => Fate::Arrives,
    }
}
