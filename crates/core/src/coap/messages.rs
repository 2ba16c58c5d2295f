//! What both ends do with every message: message IDs, random numbers, duplicates, the queue of
//! messages to send.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use anabranch_wire::coap::{self as wire, Code, Message, Type, option};
use bytes::Bytes;

use super::{Config, Counters, Event};
use crate::time::{Duration, Instant};

/// Number of received messages that are remembered. A duplicate that arrives after more others
/// counts as a new message, which blocks allow: they are idempotent (RFC 7252 section 4.5).
const REMEMBERED: usize = 64;

/// A received message: when it came, its message ID, and the answer to a confirmable one.
type Seen = (Instant, u16, Option<Message>);

/// The state that an end keeps across messages.
#[derive(Debug)]
pub(super) struct Messages {
    next_id: u16,
    random: u64,
    seen: VecDeque<Seen>,
    out: VecDeque<Message>,
    pub(super) events: VecDeque<Event>,
    pub(super) counters: Counters,
}

impl Messages {
    pub(super) fn new(entropy: u64) -> Self {
        let mut messages = Self {
            next_id: 0,
            random: entropy,
            seen: VecDeque::new(),
            out: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
        };
        messages.next_id = messages.bits() as u16;
        messages
    }

    /// Random bits: SplitMix64 over the owner's number.
    pub(super) fn bits(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A time chosen at random between `least` and ACK_RANDOM_FACTOR times it.
    pub(super) fn wait(&mut self, least: Duration, config: &Config) -> Duration {
        let room = config.randomised(least) - least;
        least + room.mul_ratio(self.bits() >> 32, 1 << 32)
    }

    /// The next message ID (RFC 7252 section 4.4).
    pub(super) fn id(&mut self) -> u16 {
        self.next_id = self.next_id.wrapping_add(1);
        self.next_id.wrapping_sub(1)
    }

    /// Whether a message with this ID was one of the latest that were sent.
    pub(super) fn was_sent(&self, id: u16) -> bool {
        let back = self.next_id.wrapping_sub(id);
        (1..=self.counters.sent.min(1 << 12)).contains(&u64::from(back))
    }

    /// Puts a message into the queue.
    pub(super) fn send(&mut self, message: Message) {
        self.out.push_back(message);
    }

    /// The next message of the queue.
    pub(super) fn next(&mut self) -> Option<Message> {
        self.out.pop_front()
    }

    /// Encodes a message that is sent now.
    pub(super) fn encode(&mut self, message: &Message) -> Bytes {
        self.counters.sent += 1;
        let mut octets = Vec::with_capacity(message.payload.len() + 64);
        message.encode(&mut octets);
        octets.into()
    }

    /// Parses a datagram; counts and drops what is no message.
    pub(super) fn decode(&mut self, datagram: &Bytes) -> Option<Message> {
        let message = wire::decode(datagram).ok();
        self.counters.ignored += u64::from(message.is_none());
        message
    }

    /// Whether a message is a duplicate (RFC 7252 section 4.5). The answer to a confirmable one is
    /// sent again.
    pub(super) fn is_duplicate(&mut self, now: Instant, message: &Message, config: &Config) -> bool {
        let lifetime = config.exchange_lifetime();
        while self.seen.front().is_some_and(|(at, ..)| now.saturating_since(*at) >= lifetime) {
            self.seen.pop_front();
        }
        let Some((.., answer)) = self.seen.iter().find(|(_, id, _)| *id == message.id) else { return false };
        self.out.extend(answer.clone());
        true
    }

    /// Remembers a message and its answer.
    pub(super) fn remember(&mut self, now: Instant, id: u16, answer: Option<Message>) {
        if self.seen.len() == REMEMBERED {
            self.seen.pop_front();
        }
        self.seen.push_back((now, id, answer));
    }

    /// Rejects a message: an RST for a confirmable one, else nothing (RFC 7252 section 4.2).
    pub(super) fn reject(&mut self, message: &Message) {
        self.counters.ignored += 1;
        if message.kind == Type::Confirmable {
            self.send(Message::empty(Type::Reset, message.id));
        }
    }
}

/// A request for a path, whose segments are options of their own (RFC 7252 section 6.4).
pub(super) fn request(kind: Type, code: Code, id: u16, token: wire::Token, path: &[Bytes]) -> Message {
    let message = Message::new(kind, code, id, token);
    path.iter().fold(message, |message, segment| message.with(option::URI_PATH, segment.clone()))
}

/// Number of blocks of this size in a body; an empty body has one.
pub(super) fn blocks(len: usize, szx: u8) -> u32 {
    u32::try_from(len.div_ceil(16 << szx)).unwrap_or(u32::MAX).max(1)
}

/// The bytes of a block of a body.
pub(super) fn slice(body: &Bytes, block: wire::Block) -> Bytes {
    let start = block.offset().min(body.len());
    body.slice(start..(start + block.size()).min(body.len()))
}
