//! The node against senders and gateways that send anything.

use std::collections::BTreeMap;

use anabranch_core::set::{
    Effect, Grant, Holding, MAX_MANIFEST, NodeStriping, Receiver, ReceiverConfig, RefuseReason, StreamEvent,
    StreamId,
};
use anabranch_core::time::Instant;
use anabranch_wire::set::{self as wire, Join, MAX_COPY, Message, Plan, Request, VERSION};
use arbitrary::{Result, Unstructured};

use super::checked::Streams;
use super::{MAX_STEPS, answer_timers, close, messages, pass};
use crate::probe::Probe;

/// The node, and what it was told.
struct Node {
    receiver: Receiver,
    streams: Streams,
    length: u64,
    buffer: u32,
    /// By session, offset at which a continuation of its last chunk would begin.
    expected: BTreeMap<StreamId, u64>,
    /// Only well-formed chunks of the one file were sent.
    is_honest: bool,
    /// Offset in the file at which the delivered bytes begin.
    from: u64,
    delivered: Vec<u8>,
}

pub(super) fn run(octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
    let base = if octets.arbitrary()? { ReceiverConfig::default() } else { ReceiverConfig::paper() };
    let striping = if octets.ratio(1, 8)? { NodeStriping::Refused } else { NodeStriping::Supported };
    let buffer = *octets.choose(&[0, 1, 81, 1000, 5000, 64_000])?;
    let grant = *octets.choose(&[Grant::AtOnce, Grant::Ask])?;
    let gateways = messages::accept(octets)?.gateways;
    let holding = *octets.choose(&[Holding::Pieces, Holding::Ring])?;
    let manifest = *octets.choose(&[0, 300, MAX_MANIFEST])?;
    let config = ReceiverConfig { buffer, striping, grant, gateways, holding, manifest, ..base };
    let mut node = Node {
        receiver: Receiver::new(config),
        streams: Streams::default(),
        length: u64::from(octets.int_in_range(0..=10_000u16)?),
        buffer,
        expected: BTreeMap::new(),
        is_honest: striping == NodeStriping::Supported,
        from: 0,
        delivered: Vec::new(),
    };
    let mut now = Instant::ZERO;
    for _ in 0..MAX_STEPS {
        node.step(octets, &mut now, probe)?;
        answer_timers(&mut node.receiver, now, Receiver::next_timeout, |r| r.handle_timeout(now));
        // An owner with a ring buffer polls after each call.
        if holding == Holding::Ring || !octets.ratio(1, 8)? {
            node.poll(probe);
        }
    }
    Ok(())
}

impl Node {
    fn step(&mut self, octets: &mut Unstructured<'_>, now: &mut Instant, probe: &mut Probe) -> Result<()> {
        let stream = self.streams.choose(octets)?;
        let event = match octets.int_in_range(0..=15)? {
            0 => return pass(octets, now),
            1 => {
                *now = self.receiver.next_timeout().unwrap_or(*now).max(*now);
                return Ok(());
            }
            2 | 5 | 6 if self.receiver.asked().is_some() => return self.own(octets, *now, probe),
            2 => StreamEvent::Ended,
            3 if octets.ratio(1, 2)? => StreamEvent::Closed(close(octets)?),
            4 if octets.ratio(1, 4)? => {
                self.is_honest = false;
                StreamEvent::Data(messages::any(octets, self.length)?.into())
            }
            choice => {
                // A peer introduces itself first.
                if !self.streams.is_known(stream) || choice <= 6 {
                    return self.accept(octets, *now, probe);
                }
                let said = self.chunk(octets, stream)?;
                let n = if octets.ratio(1, 8)? { octets.int_in_range(0..=said.len())? } else { said.len() };
                // The rest of an incomplete chunk is never sent, so what follows is parsed as part
                // of it.
                self.is_honest &= n == said.len();
                StreamEvent::Data(said[..n].to_vec().into())
            }
        };
        if !self.streams.may(stream, &event) {
            return Ok(());
        }
        probe.say(|| format!("{now} {stream:?} {event:?}"));
        let closed = matches!(event, StreamEvent::Closed(_));
        self.receiver.handle_stream(*now, stream, event);
        if closed {
            self.streams.closed(stream);
        }
        Ok(())
    }

    /// The owner accepts a transfer, or refuses it.
    fn own(&mut self, octets: &mut Unstructured<'_>, now: Instant, probe: &mut Probe) -> Result<()> {
        let Some(request) = self.receiver.asked().cloned() else { return Ok(()) };
        let from = octets.int_in_range(0..=request.length.min(self.length))?;
        probe.say(|| format!("{now} the owner is asked for {request:?}, and has {from}"));
        if octets.ratio(1, 4)? {
            let before = self.receiver.delivered();
            self.receiver.decline(now, request.transfer, RefuseReason::Unfinished, from);
            assert_eq!(self.receiver.delivered(), before);
        } else {
            // Bytes delivered by the previous transfer do not belong to this one.
            self.poll(probe);
            self.receiver.grant(now, request.transfer, from);
            // A copy behind the request may have waited for this.
            let granted = self.receiver.delivered();
            let is_right = |at: u64| if request.copy { at >= from } else { at == from };
            assert!(granted.is_some_and(|(id, at)| id == request.transfer && is_right(at)), "{granted:?}");
            self.from = from;
            self.delivered.clear();
        }
        assert_eq!(self.receiver.asked(), None);
        Ok(())
    }

    fn accept(&mut self, octets: &mut Unstructured<'_>, now: Instant, probe: &mut Probe) -> Result<()> {
        let stream = self.receiver.handle_accepted(now);
        self.streams.accepted(stream);
        let message = if self.receiver.delivered().is_none() || octets.ratio(1, 8)? {
            let (version, transfer) = (VERSION, messages::TRANSFER);
            Message::Request(Request {
                version,
                transfer,
                length: self.length,
                plan: messages::plan(octets)?,
                file: messages::identity(octets)?,
                copy: self.length <= MAX_COPY && octets.ratio(1, 4)?,
                manifest: messages::manifest(octets)?,
            })
        } else {
            let join = messages::join(octets)?;
            // A split connection carries the file from its start, without chunks.
            let plan = if octets.ratio(1, 16)? { join.plan } else { Plan::Stripe };
            self.is_honest &= plan == Plan::Stripe;
            Message::Join(Join { plan, ..join })
        };
        if let Message::Request(Request { plan: Plan::EndToEnd, .. }) = message {
            self.is_honest = false;
        }
        probe.say(|| format!("{now} {stream:?} says {message:?}"));
        let mut said = Vec::new();
        wire::encode(&message, &mut said);
        // Bytes delivered by the previous transfer do not belong to this one.
        self.poll(probe);
        let before = self.receiver.delivered();
        self.receiver.handle_stream(now, stream, StreamEvent::Data(said.into()));
        // A complete transfer gives way to another file with the same identifier, which begins at
        // byte 0.
        if self.receiver.delivered().map(|(_, at)| at) < before.map(|(_, at)| at) {
            self.from = 0;
            self.delivered.clear();
        }
        Ok(())
    }

    fn chunk(&mut self, octets: &mut Unstructured<'_>, stream: StreamId) -> Result<Vec<u8>> {
        let delivered = self.receiver.delivered().map_or(0, |(_, delivered)| delivered);
        let reach = (delivered + u64::from(self.buffer)).min(self.length);
        let offset = match octets.int_in_range(0..=3)? {
            0 => delivered,
            1 => octets.int_in_range(0..=reach)?,
            _ => *self.expected.get(&stream).unwrap_or(&delivered),
        };
        // Seldom beyond the node's buffer.
        let most = if octets.ratio(1, 32)? { 2000 } else { reach.saturating_sub(offset).min(2000) };
        let n = octets.int_in_range(0..=most)?;
        let expected = self.expected.insert(stream, offset + n).unwrap_or(0);
        messages::chunk(octets, offset, expected, n)
    }

    fn poll(&mut self, probe: &mut Probe) {
        while let Some(effect) = self.receiver.poll_effect() {
            self.streams.check(&effect, probe);
            if let Effect::Deliver { octets } = effect {
                self.delivered.extend_from_slice(&octets);
            }
        }
        let counters = self.receiver.counters();
        assert!(counters.held_peak <= u64::from(self.buffer), "more is held than the buffer has");
        if self.is_honest {
            let right = |(i, octet): (usize, &u8)| *octet == messages::octet_at(self.from + i as u64);
            assert!(self.delivered.iter().enumerate().all(right) || self.receiver.delivered().is_none());
        }
        probe.feature((
            self.receiver.delivered().map(|(_, n)| n.checked_ilog2()),
            self.receiver.is_complete(),
            counters.rejected.min(3),
            counters.duplicate_octets.min(1),
            counters.held_peak.min(1),
        ));
    }
}
