//! Guards of SET streams, against peers that send anything, and with an attacker on the path who
//! changes, drops, repeats and inserts bytes.

use std::sync::Arc;

use anabranch_secure::{Acquaintance, Doorkeeper, Guard, NodeKeys, Refused, SecretKey, SenderKeys, WhoMay};
use anabranch_wire::set::{Join, Message, Plan, Request, SetSyn, TransferId, VERSION, encode};
use arbitrary::{Result, Unstructured};
use bytes::{Bytes, BytesMut};

use crate::probe::Probe;

const TRANSFER: TransferId = TransferId(7);
const JOIN: Join = Join { transfer: TRANSFER, session: 0, sessions: 2, plan: Plan::Stripe };

/// The first byte selects the test. An input that ends in the middle of a step ends the run there.
pub(super) fn run(input: &[u8], probe: &mut Probe) {
    let Some((choice, rest)) = input.split_first() else { return };
    let mut octets = Unstructured::new(rest);
    let world = World::new();
    // A run ends when the input is used up.
    let _ = match choice % 5 {
        0 => stranger(Guard::node(&world.node), &mut octets, probe),
        1 => stranger(Guard::gateway(&world.door), &mut octets, probe),
        2 => stranger(world.control(), &mut octets, probe),
        3 => stranger(world.session(), &mut octets, probe),
        _ => meddler(&world, &mut octets, probe),
    };
}

struct World {
    sender: Arc<SenderKeys>,
    door: Arc<Doorkeeper>,
    node: Arc<NodeKeys>,
}

pub(super) fn key(octet: u8) -> SecretKey {
    SecretKey::from_octets([octet; 32])
}

pub(super) fn encoded(message: &Message) -> Bytes {
    let mut octets = Vec::new();
    encode(message, &mut octets);
    octets.into()
}

fn setsyn() -> Bytes {
    let destination = ([10, 0, 0, 1], 47200).into();
    encoded(&Message::SetSyn(SetSyn { join: JOIN, destination }))
}

/// All bytes that a guard has for its socket.
pub(super) fn sent(guard: &mut Guard) -> Bytes {
    let mut all = BytesMut::new();
    while let Some(octets) = guard.poll_transmit() {
        all.extend_from_slice(&octets);
    }
    all.freeze()
}

impl World {
    fn new() -> Self {
        let node =
            NodeKeys::new(WhoMay { own: Some(key(3)), senders: vec![key(1).public()], shared: Vec::new() });
        let sender = SenderKeys::new(key(1), Acquaintance::Known(key(3).public()), || 1);
        Self { sender, door: Doorkeeper::new(key(2), [key(1).public()]), node }
    }

    fn control(&self) -> Guard {
        Guard::control(&self.sender).expect("the keys are keys")
    }

    /// A session of a transfer that was requested and announced.
    fn session(&self) -> Guard {
        let (mut a, mut b) = (self.control(), Guard::node(&self.node));
        let request = Request {
            version: VERSION,
            transfer: TRANSFER,
            length: 1 << 20,
            plan: Plan::Stripe,
            file: None,
            copy: false,
            manifest: None,
        };
        a.write(encoded(&Message::Request(request))).expect("it may write");
        b.read(sent(&mut a)).expect("it holds");
        a.read(sent(&mut b)).expect("it holds");
        assert!(b.read(sent(&mut a)).expect("it holds").is_some());
        let mut session = Guard::session(&self.sender, key(2).public()).expect("the node was greeted");
        session.write(setsyn()).expect("it is one");
        session
    }
}

/// A peer without a key sends anything: nothing of it reaches the machine.
fn stranger(mut guard: Guard, octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
    loop {
        let length = octets.int_in_range(0..=300)?;
        let mut said = octets.bytes(length.min(octets.len()))?.to_vec();
        if octets.ratio(1, 2)? && said.len() > 3 {
            // A greeting or a record with a matching length.
            let n = (said.len() - 3) as u16;
            said[0] = 0xb0 | (said[0] & 1);
            said[1..3].copy_from_slice(&n.to_be_bytes());
        }
        probe.say(|| format!("{said:02x?}"));
        match guard.read(said.into()) {
            Ok(None) => probe.feature((guard.is_proven(), guard.end().is_ok())),
            Ok(Some(octets)) => panic!("{octets:02x?} of a stranger for the machine"),
            Err(refused) => {
                probe.feature(refused);
                assert_eq!(guard.read(Bytes::from_static(&[0])), Err(Refused::Garbled), "it is over");
                return Ok(());
            }
        }
        assert!(guard.waiting() < 1 << 10, "an answer that is longer than a greeting");
        sent(&mut guard);
        if octets.is_empty() {
            return Ok(());
        }
    }
}

/// One direction, with an attacker on the path.
struct Way {
    written: Vec<u8>,
    flying: Vec<u8>,
    got: Vec<u8>,
    over: bool,
}

impl Way {
    fn new() -> Self {
        Self { written: Vec::new(), flying: Vec::new(), got: Vec::new(), over: false }
    }

    /// The attacker modifies the stream.
    fn meddle(&mut self, octets: &mut Unstructured<'_>) -> Result<()> {
        if self.flying.is_empty() {
            return Ok(());
        }
        let at = octets.choose_index(self.flying.len())?;
        match octets.int_in_range(0..=4)? {
            0 => self.flying[at] ^= 1 << octets.int_in_range(0..=7)?,
            1 => drop(self.flying.remove(at)),
            2 => self.flying.insert(at, octets.arbitrary()?),
            3 => self.flying.truncate(at),
            _ => self.flying.extend_from_within(at..),
        }
        Ok(())
    }

    fn arrive(&mut self, to: &mut Guard, n: usize, probe: &mut Probe) {
        let n = n.min(self.flying.len());
        let piece: Vec<u8> = self.flying.drain(..n).collect();
        match to.read(piece.into()) {
            Ok(octets) => self.got.extend_from_slice(&octets.unwrap_or_default()),
            Err(refused) => {
                probe.feature((1, refused));
                self.over = true;
            }
        }
        assert!(self.written.starts_with(&self.got), "the machine gets what nobody has written");
        probe.feature((2, self.got.len().min(40_000) / 1_000, self.over));
    }
}

/// A session from the sender's gateway on, with an attacker at the gateway who modifies its bytes
/// in any way.
fn meddler(world: &World, octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
    let mut sender = world.session();
    let mut gateway = Guard::gateway(&world.door);
    let mut node = Guard::node(&world.node);
    let passed = gateway.read(sent(&mut sender)).expect("it holds").expect("the SETSYN");
    let (mut down, mut up) = (Way::new(), Way::new());
    let join = encoded(&Message::Join(JOIN));
    down.written.extend_from_slice(&join);
    down.flying.extend_from_slice(&join);
    down.flying.extend_from_slice(&passed[setsyn().len()..]);
    gateway.write(Bytes::from_static(&[0x60, 0])).expect("the SETACK");
    sender.read(sent(&mut gateway)).expect("it holds");
    while !down.over && !up.over && !octets.is_empty() {
        match octets.int_in_range(0..=9)? {
            0..=2 => {
                let piece = vec![octets.arbitrary()?; octets.int_in_range(1..=40_000)?];
                down.written.extend_from_slice(&piece);
                sender.write(piece.into()).expect("it may write");
                down.flying.extend_from_slice(&sent(&mut sender));
            }
            3 if node.is_proven() => {
                let piece = vec![octets.arbitrary()?; octets.int_in_range(1..=100)?];
                up.written.extend_from_slice(&piece);
                node.write(piece.into()).expect("it may write");
                up.flying.extend_from_slice(&sent(&mut node));
            }
            4..=6 => down.arrive(&mut node, octets.int_in_range(1..=70_000)?, probe),
            7 => up.arrive(&mut sender, octets.int_in_range(1..=1_000)?, probe),
            8 => down.meddle(octets)?,
            _ => up.meddle(octets)?,
        }
    }
    Ok(())
}
