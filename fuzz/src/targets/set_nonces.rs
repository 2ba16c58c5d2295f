//! Key schedule of SET streams: no key seals twice with one nonce, whatever the order of
//! handshakes, sessions, writes and replays, and whatever the numbers of sessions.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_secure::{Acquaintance, Guard, NodeKeys, SenderKeys, SharedKey, WhoMay};
use anabranch_wire::set::{Join, MAX_COPY, Message, Plan, Request, SetSyn, TransferId, VERSION};
use arbitrary::{Result, Unstructured};
use bytes::Bytes;

use super::set_guard::{encoded, key, sent};
use crate::probe::Probe;

const TRANSFER: TransferId = TransferId(7);

pub(super) fn run(input: &[u8], probe: &mut Probe) {
    let mut octets = Unstructured::new(input);
    let mut schedule = Schedule::new();
    // A run ends when the input is used up.
    let _ = schedule.run(&mut octets, probe);
}

/// A number for each greeting.
fn number() -> u64 {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// A session of the sender, with all its records so far.
struct Session {
    guard: Guard,
    join: Join,
    records: Vec<u8>,
}

struct Schedule {
    senders: Vec<Arc<SenderKeys>>,
    node: Arc<NodeKeys>,
    controls: Vec<Guard>,
    sessions: Vec<Session>,
    /// Guards of sessions that gateways have opened to the node.
    led: Vec<Guard>,
    /// The first bytes of each record. Plaintexts begin with equal bytes at equal places, so an
    /// equal key and nonce would give equal first bytes.
    sealed: HashSet<[u8; 8]>,
}

impl Schedule {
    fn new() -> Self {
        let shared = SharedKey::from_octets([9; 32]);
        let who = WhoMay {
            own: Some(key(3)),
            senders: vec![key(1).public()],
            shared: vec![("small".into(), shared.clone())],
        };
        let known = SenderKeys::new(key(1), Acquaintance::Known(key(3).public()), number);
        let small = SenderKeys::new(key(1), Acquaintance::Shared(shared), number);
        let (controls, sessions, led) = (Vec::new(), Vec::new(), Vec::new());
        let node = NodeKeys::new(who);
        Self { senders: vec![known, small], node, controls, sessions, led, sealed: HashSet::new() }
    }

    fn run(&mut self, octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
        while !octets.is_empty() {
            match octets.int_in_range(0..=9)? {
                0 => self.greet(octets, probe)?,
                1..=3 => self.begin(octets, probe)?,
                4 => self.write(octets)?,
                5..=7 => self.lead(octets, probe)?,
                8 => self.speak(octets, |schedule| &mut schedule.led)?,
                _ => self.speak(octets, |schedule| &mut schedule.controls)?,
            }
            probe.feature((self.sessions.len().min(300), self.led.len().min(300)));
        }
        Ok(())
    }

    /// Checks records that were just sealed.
    fn check(&mut self, mut records: &[u8]) {
        while let [high, low, rest @ ..] = records {
            let (record, rest) = rest.split_at(usize::from(u16::from_be_bytes([*high, *low])));
            let beginning = record.first_chunk().expect("a tag alone is longer");
            assert!(self.sealed.insert(*beginning), "a key and a nonce have sealed twice");
            records = rest;
        }
    }

    /// Writes bytes through the guard and checks all records.
    fn seal(&mut self, guard: &mut Guard, octets: Vec<u8>) -> Bytes {
        guard.write(octets.into()).expect("it may write");
        let said = sent(guard);
        self.check(&said);
        said
    }

    /// One of these guards writes a few bytes.
    fn speak(
        &mut self,
        octets: &mut Unstructured<'_>,
        pick: impl Fn(&mut Self) -> &mut Vec<Guard>,
    ) -> Result<()> {
        if pick(self).is_empty() {
            return Ok(());
        }
        let index = octets.choose_index(pick(self).len())?;
        let mut guard = pick(self).swap_remove(index);
        self.seal(&mut guard, vec![0; octets.int_in_range(8..=100)?]);
        pick(self).push(guard);
        Ok(())
    }

    /// A handshake with the node, possibly with a request and a copy of the file.
    fn greet(&mut self, octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
        let sender = Arc::clone(octets.choose(&self.senders)?);
        let mut near = Guard::control(&sender).expect("the keys are keys");
        let mut far = Guard::node(&self.node);
        far.read(sent(&mut near)).expect("it holds");
        near.read(sent(&mut far)).expect("it holds");
        if octets.ratio(3, 4)? {
            let copy = octets.arbitrary()?;
            let request = Request {
                version: VERSION,
                transfer: TransferId(TRANSFER.0 + u64::from(Arc::ptr_eq(&sender, &self.senders[1]))),
                length: if copy { MAX_COPY } else { 1 << 20 },
                plan: Plan::Stripe,
                file: None,
                copy,
                manifest: None,
            };
            near.write(encoded(&Message::Request(request))).expect("it may write");
            if !copy || octets.arbitrary()? {
                let said = sent(&mut near);
                self.check(&said);
                assert!(far.read(said).expect("it holds").is_some());
            }
            if copy {
                // In the record of the request, or in separate records.
                let said = self.seal(&mut near, vec![0; MAX_COPY as usize]);
                assert!(far.read(said).expect("it holds").is_some());
                probe.reach("a copy behind a request");
            }
        }
        self.controls.extend([near, far]);
        Ok(())
    }

    /// A session with any number, possibly used before, through a gateway that may not exist.
    fn begin(&mut self, octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
        let which = octets.choose_index(self.senders.len())?;
        let Ok(mut guard) = Guard::session(&self.senders[which], key(2).public()) else { return Ok(()) };
        let transfer = TransferId(TRANSFER.0 + which as u64);
        let join = Join { transfer, session: octets.arbitrary()?, sessions: 255, plan: Plan::Stripe };
        let destination = ([10, 0, 0, 1], 47200).into();
        let setsyn = encoded(&Message::SetSyn(SetSyn { join, destination }));
        let begun = guard.write(setsyn.clone());
        probe.feature(begun);
        if begun.is_err() {
            probe.reach("a number that was given before");
            assert!(guard.poll_transmit().is_none());
            return Ok(());
        }
        if octets.arbitrary()? {
            guard.write(setsyn).expect("it is repeated");
        }
        let said = sent(&mut guard);
        let greeting = 3 + usize::from(u16::from_be_bytes([said[1], said[2]]));
        let records = said[greeting..].to_vec();
        self.check(&records);
        self.sessions.push(Session { guard, join, records });
        Ok(())
    }

    fn write(&mut self, octets: &mut Unstructured<'_>) -> Result<()> {
        if self.sessions.is_empty() {
            return Ok(());
        }
        let index = octets.choose_index(self.sessions.len())?;
        let mut session = self.sessions.swap_remove(index);
        let said = self.seal(&mut session.guard, vec![0; octets.int_in_range(8..=20_000)?]);
        session.records.extend_from_slice(&said);
        session.records.truncate(1 << 17);
        self.sessions.push(session);
        Ok(())
    }

    /// A gateway passes records of a session to the node, possibly a second time or under another
    /// number.
    fn lead(&mut self, octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
        if self.sessions.is_empty() {
            return Ok(());
        }
        let session = octets.choose(&self.sessions)?;
        let session_number = if octets.ratio(3, 4)? { session.join.session } else { octets.arbitrary()? };
        let join = Join { session: session_number, ..session.join };
        let mut said = encoded(&Message::Join(join)).to_vec();
        said.extend_from_slice(&session.records);
        let mut guard = Guard::node(&self.node);
        let led = guard.read(said.into());
        probe.feature(led.as_ref().err().copied());
        if led.is_ok() && guard.is_proven() {
            probe.reach("a session at the node");
            self.led.push(guard);
        }
        Ok(())
    }
}
