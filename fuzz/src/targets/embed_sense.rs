//! The sender for C programs against a sink without keys that says anything, or against an attacker
//! who repeats and changes datagrams of a session with a key.

use std::cell::Cell;

use anabranch_core::time::{Duration, Instant};
use anabranch_secure::{NoEntropy, SharedKey};
use anabranch_sense::api::kind;
use anabranch_sense::node::Node;
use anabranch_sense::sizes::Sizes;
use anabranch_wire::rdca::{
    Expected, Header, Message, Range, Ranges, Refuse, RefuseReason, Reply, Report, Seq, Snack, StreamId,
    TimeStamp, encode,
};
use arbitrary::{Result, Unstructured};
use bytes::Bytes;

use crate::probe::Probe;

thread_local! {
    static DRAWN: Cell<u64> = const { Cell::new(0) };
}

/// Different bytes for each call, the same in each run.
fn entropy(octets: &mut [u8]) -> std::result::Result<(), NoEntropy> {
    for octet in octets {
        let next = DRAWN.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        DRAWN.set(next);
        *octet = (next >> 56) as u8;
    }
    Ok(())
}

struct Checked {
    node: Node,
    sizes: Sizes,
    now: Instant,
    has_key: bool,
    /// The session number in HELLO, and the next packet number of the sink.
    session: [u8; 4],
    packet: u32,
    /// Fields of the sender's last messages.
    last: Vec<u8>,
    reply: Option<Reply>,
    time: TimeStamp,
    newest: Seq,
    written: u64,
    confirmed: u64,
    ended: bool,
}

/// An input that ends in the middle of a step ends the run there.
pub(super) fn run(input: &[u8], probe: &mut Probe) {
    let mut octets = Unstructured::new(input);
    let _ = steps(&mut octets, probe);
}

fn steps(octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
    DRAWN.set(1);
    let sizes = Sizes { payload: *octets.choose(&[1, 100, 400])?, packets: *octets.choose(&[4, 16])? };
    let has_key = octets.ratio(1, 8)?;
    let shared = has_key.then(|| SharedKey::from_octets([5; 32]));
    let name = "probe".parse().expect("a name");
    let node = Node::new(&sizes, &name, 1, shared, entropy);
    let mut checked = Checked {
        node,
        sizes,
        now: Instant::ZERO,
        has_key,
        session: [0; 4],
        packet: 0,
        last: vec![1],
        reply: None,
        time: TimeStamp(0),
        newest: Seq(0),
        written: 0,
        confirmed: 0,
        ended: false,
    };
    checked.node.open(checked.now);
    for _ in 0..MAX_STEPS {
        checked.poll(probe);
        checked.step(octets, probe)?;
        checked.poll(probe);
        let mut turns = 0;
        while checked.node.next_timeout().is_some_and(|at| at <= checked.now) {
            turns += 1;
            assert!(turns < MAX_TURNS, "a timer that was answered is still due");
            checked.node.timeout(checked.now);
            checked.poll(probe);
        }
    }
    Ok(())
}

impl Checked {
    fn step(&mut self, octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
        match octets.int_in_range(0..=11)? {
            0 => self.now += Duration::from_micros(octets.int_in_range(0..=500_000)?),
            1 => self.now += Duration::from_millis(octets.int_in_range(0..=4_000_000)?),
            2 => self.now = self.node.next_timeout().unwrap_or(self.now).max(self.now),
            3 if octets.ratio(1, 8)? => self.node.close(self.now),
            4 if octets.ratio(1, 4)? => self.node.path_lost(self.now),
            5..=6 => {
                let length = octets.int_in_range(0..=usize::from(self.sizes.payload) + 1)?;
                match self.node.write(self.now, 0, &vec![7; length]) {
                    Ok(number) => {
                        assert_eq!(number, self.written);
                        assert!(length <= usize::from(self.sizes.payload));
                        self.written += 1;
                    }
                    Err(error) => probe.feature(std::mem::discriminant(&error)),
                }
            }
            _ => {
                let datagram = self.datagram(octets)?;
                probe.say(|| format!("{:?} <- {datagram:02x?}", self.now));
                self.node.datagram(self.now, &datagram);
            }
        }
        let counters = self.node.counters();
        assert!(counters.queued <= self.sizes.packets.into(), "{counters:?}");
        assert!(!self.has_key || counters.records == 0, "a session without the key");
        probe.feature((counters.queued, counters.records.min(20), counters.repeated.min(20)));
        probe.feature((counters.strange.min(3), counters.rejected.min(3), counters.handshakes.min(4)));
        Ok(())
    }

    /// A datagram of the sink, or one of the sender's own; now and then changed.
    fn datagram(&mut self, octets: &mut Unstructured<'_>) -> Result<Vec<u8>> {
        let mut datagram = if octets.ratio(1, 16)? { self.last.clone() } else { self.answer(octets)? };
        if octets.ratio(1, 8)? && !datagram.is_empty() {
            let at = octets.choose_index(datagram.len())?;
            datagram[at] = octets.arbitrary()?;
        }
        if octets.ratio(1, 32)? {
            datagram.resize(octets.int_in_range(0..=300)?, 16);
        }
        Ok(datagram)
    }

    fn answer(&mut self, octets: &mut Unstructured<'_>) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        if self.last[0] == 1 || octets.ratio(1, 64)? {
            let is_cookie = octets.ratio(1, 4)?;
            out.extend([if is_cookie { 2 } else { 3 }, 0, 0, 0]);
            out.extend(self.session);
            out.resize(if is_cookie { 24 } else { 12 }, 9);
            return Ok(out);
        }
        if octets.ratio(1, 32)? {
            out.push(4);
            out.extend(self.last.get(1..9).unwrap_or_default());
            return Ok(out);
        }
        out.push(5);
        out.extend(self.session);
        out.extend(self.packet.to_be_bytes());
        self.packet += 1;
        if octets.ratio(1, 32)? {
            out.extend([1; 9]);
            return Ok(out);
        }
        encode(&self.message(octets)?, &mut out);
        Ok(out)
    }

    fn message(&self, octets: &mut Unstructured<'_>) -> Result<Message> {
        let near = |octets: &mut Unstructured<'_>| -> Result<Seq> {
            let back = octets.int_in_range(0..=6)?;
            Ok(Seq(self.newest.0.wrapping_add(2).wrapping_sub(back)))
        };
        if let Some(reply) = self.reply.filter(|_| self.confirmed == 0 && self.newest == Seq(0)) {
            return Ok(Message::Reply(reply));
        }
        let report = Report {
            stream: StreamId(7),
            next: near(octets)?,
            echo: self.time,
            interval: *octets.choose(&[0, 1000, u32::MAX])?,
            rtt: *octets.choose(&[0, 20_000, u32::MAX])?,
            share: *octets.choose(&[0, 1000])?,
            delayed: octets.arbitrary()?,
            complete: octets.arbitrary()?,
        };
        Ok(match octets.int_in_range(0..=9)? {
            0 => Message::Reset(StreamId(7)),
            1 => {
                let reason = *octets.choose(&[
                    RefuseReason::UnknownStream,
                    RefuseReason::NoRoom,
                    RefuseReason::Version,
                ])?;
                let incarnation = self.reply.map_or(0, |reply| reply.incarnation.0);
                Message::Refuse(Refuse { reason, answers: *octets.choose(&[7, incarnation])? })
            }
            2..=4 => {
                let mut missing = Ranges::EMPTY;
                let start = near(octets)?;
                missing.push(Range { start, end: start + octets.int_in_range(1..=3u32)? });
                Message::Snack(Snack { report, missing })
            }
            5 => Message::Congestion(report),
            6 => self.reply.map_or(Message::Confirm(report), Message::Reply),
            _ => Message::Confirm(report),
        })
    }

    fn poll(&mut self, probe: &mut Probe) {
        let mut turns = 0;
        while let Some(datagram) = self.node.poll(self.now) {
            turns += 1;
            assert!(turns < MAX_TURNS, "it does not stop sending");
            assert!(datagram.len() <= self.sizes.longest());
            self.last = datagram.to_vec();
            probe.say(|| format!("-> {:02x?}", self.last));
            if self.last[0] == 1 {
                self.session.copy_from_slice(&self.last[4..8]);
            } else if let Some(message) =
                self.last.get(9..).filter(|message| !message.is_empty() && !self.has_key)
            {
                self.learn(message.to_vec(), probe);
            }
        }
        while let Some(event) = self.node.event() {
            assert!(!self.ended, "told after the end");
            assert!(self.confirmed <= event.confirmed && event.confirmed <= event.written, "{event:?}");
            assert_eq!(event.written, self.written);
            self.confirmed = event.confirmed;
            self.ended = event.kind == kind::ENDED;
            probe.reach(["", "connected", "confirmed", "writable", "ended"][event.kind as usize]);
        }
    }

    fn learn(&mut self, message: Vec<u8>, probe: &mut Probe) {
        if message[0] < 16 {
            return;
        }
        match Header::Ours
            .decode(&Bytes::from(message), Expected::default())
            .expect("what is sent can be read")
        {
            Message::Request(request) => {
                let (incarnation, echo) = (request.incarnation, request.time);
                self.reply = Some(Reply { incarnation, stream: StreamId(7), echo, rtt: 20_000 });
            }
            Message::Data(data) => {
                (self.newest, self.time) = (data.seq, data.time);
                if data.repeated {
                    probe.reach("a record repeated");
                }
                assert!(data.payload.len() <= usize::from(self.sizes.payload) + 10);
            }
            _ => {}
        }
    }
}

/// Limit on the steps of a run.
const MAX_STEPS: usize = 300;
/// Limit on the calls at one instant.
const MAX_TURNS: usize = 200;
