//! Sessions over datagrams: a sender and a sink with keys, and an attacker who changes, repeats,
//! drops and invents datagrams from any address.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use anabranch_secure::datagram::{Accepts, AnyProof, Forward, Initiator, Known, Responder, Shared};
use anabranch_secure::{SecretKey, SharedKey};
use arbitrary::{Result, Unstructured};

use crate::entropy::{self, entropy};
use crate::probe::Probe;

pub(super) fn run(input: &[u8], probe: &mut Probe) {
    entropy::restart();
    // A run ends when the input is used up.
    let _ = steps(&mut Unstructured::new(input), probe);
}

fn address(port: u16) -> SocketAddr {
    ([192, 0, 2, 1], port).into()
}

/// What the attacker has seen and what each address has sent and received.
#[derive(Default)]
struct Wire {
    seen: Vec<Vec<u8>>,
    /// Session and packet numbers of what was sealed, by direction.
    sealed: BTreeSet<(bool, Vec<u8>)>,
    balance: BTreeMap<u16, i64>,
}

impl Wire {
    fn note(&mut self, is_up: bool, datagram: &[u8]) {
        if datagram.first() == Some(&5) {
            assert!(self.sealed.insert((is_up, datagram[..9].to_vec())), "a nonce is used twice");
        }
        self.seen.push(datagram.to_vec());
    }
}

fn steps(octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
    let shared = SharedKey::from_octets([5; 32]);
    let (own, sink_key) = (SecretKey::from_octets([1; 32]), SecretKey::from_octets([3; 32]));
    let proof = match octets.int_in_range(0..=2)? {
        0 => AnyProof::Shared(Shared(shared.clone())),
        1 => AnyProof::Forward(Forward(shared.clone())),
        _ => AnyProof::Known(Known { own: own.clone(), sink: sink_key.public() }),
    };
    let accepts =
        Accepts { own: Some(sink_key), known: vec![own.public()], shared: vec![shared], insecure: false };
    let mut now = Duration::ZERO;
    let mut sink = Responder::new(now, accepts, 3, entropy).expect("there is entropy");
    let name = "probe".parse().expect("a name");
    let mut sender = Initiator::new(proof, &name, 7, entropy);
    sender.call(now);
    let mut home = 1000;
    let (mut wire, mut plain, mut out) = (Wire::default(), Vec::new(), Vec::new());
    let (mut sent, mut received) = (0_u32, BTreeSet::new());
    let mut peer = None;
    for _ in 0..200 {
        // What goes to the sink, from which port.
        let mut up = Vec::new();
        match octets.int_in_range(0..=9)? {
            0..=2 => {
                while sender.poll_transmit(now, &mut out) {
                    wire.note(true, &out);
                    up.push((home, out.clone()));
                }
            }
            3 | 4 => {
                let message = [&[0x30][..], &sent.to_be_bytes()].concat();
                if sender.seal(now, &message, &mut out).is_ok() {
                    sent += 1;
                    wire.note(true, &out);
                    up.push((home, out.clone()));
                }
            }
            5 => {
                if let Some(peer) = peer
                    && let Ok(to) = sink.seal(now, peer, &[0x60, 1], &mut out)
                {
                    wire.note(false, &out);
                    *wire.balance.entry(to.port()).or_default() -= out.len() as i64;
                    if to == address(home) {
                        sender.handle(now, &out, &mut plain);
                    }
                }
            }
            6 => {
                now += Duration::from_millis(
                    u64::from(octets.arbitrary::<u32>()?) >> octets.int_in_range(0..=31)?,
                )
            }
            7 => home = octets.int_in_range(1000..=1003)?,
            _ => {
                let mut datagram = match wire.seen.len() {
                    0 => octets.bytes(octets.len().min(40))?.to_vec(),
                    seen => wire.seen[octets.choose_index(seen)?].clone(),
                };
                for _ in 0..octets.int_in_range(0..=3)? {
                    if !datagram.is_empty() {
                        let at = octets.choose_index(datagram.len())?;
                        datagram[at] = octets.arbitrary()?;
                    }
                }
                if octets.arbitrary()? {
                    let cut = octets.int_in_range(0..=datagram.len())?;
                    datagram.truncate(cut);
                }
                if octets.arbitrary()? {
                    assert!(!sender.handle(now, &datagram, &mut plain) || wire.seen.contains(&datagram));
                } else {
                    up.push((octets.int_in_range(1000..=1005)?, datagram));
                }
            }
        }
        for (port, datagram) in up {
            *wire.balance.entry(port).or_default() += datagram.len() as i64;
            if octets.ratio(1, 8)? {
                continue;
            }
            if let Some(got) = sink.handle(now, address(port), &datagram, &mut plain) {
                peer = Some(got.peer);
                let number = plain[1..].try_into().map(u32::from_be_bytes).expect("as it was sent");
                assert!(number < sent && received.insert(number), "{number} is invented or comes twice");
                probe.feature("received");
            }
        }
        while let Some((to, reply)) = sink.poll_transmit() {
            let balance = wire.balance.entry(to.port()).or_default();
            *balance -= reply.len() as i64;
            wire.note(false, &reply);
            probe.feature((reply[0], sender.is_open(now)));
            // Addresses of the attacker alone prove nothing but a cookie.
            assert!(to.port() <= 1003 || wire.balance[&to.port()] >= 0, "more bytes than it has sent");
            if to == address(home) {
                sender.handle(now, &reply, &mut plain);
            }
        }
    }
    probe.feature((sink.senders(), sender.counters().completed.min(8)));
    Ok(())
}
