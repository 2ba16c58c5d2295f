//! The client that receives a body: [`Get`] with Block2 (RFC 7959 section 2.4), [`QGet`] with
//! Q-Block2 (RFC 9177 section 4.4).

use alloc::vec::Vec;

use anabranch_wire::coap::{Block, Code, Message, Token, Type, option};
use bytes::Bytes;

use super::Failure;
use super::config::{Config, doubled};
use super::gather::{Answer, Gather};
use super::messages::{Messages, request};
use super::step::Step;
use crate::time::Instant;

/// A body that arrives with Block2.
#[derive(Debug)]
pub(super) struct Get {
    body: Vec<u8>,
    szx: u8,
    etag: Option<Bytes>,
    restarts: u8,
}

impl Get {
    pub(super) fn new(config: &Config) -> Self {
        Self { body: Vec::new(), szx: config.szx(), etag: None, restarts: 0 }
    }

    /// Number of bytes that have arrived.
    pub(super) fn octets(&self) -> usize {
        self.body.len()
    }

    /// The request for the next block. The first one proposes a size (RFC 7959 section 2.4).
    pub(super) fn request(&self, path: &[Bytes], token: Token, id: u16) -> Message {
        let num = (self.body.len() >> (self.szx + 4)) as u32;
        let block = Block { num, more: false, szx: self.szx };
        request(Type::Confirmable, Code::GET, id, token, path).with_block(option::BLOCK2, block)
    }

    pub(super) fn handle_response(&mut self, response: &Message, config: &Config) -> Step {
        if response.code != Code::CONTENT {
            let is_success = response.code.class() == 2;
            let failure = if is_success { Failure::Invalid } else { Failure::Refused(response.code) };
            return Step::Over(Err(failure));
        }
        let etag = response.values(option::ETAG).next();
        // The resource has changed: begin again (section 2.4).
        if !self.body.is_empty() && etag != self.etag.as_ref() {
            if self.restarts >= config.max_retransmit {
                return Step::Over(Err(Failure::Invalid));
            }
            *self = Self { restarts: self.restarts + 1, ..Self::new(config) };
            return Step::Next;
        }
        // Without the option the payload is the whole body.
        let block = match response.has(option::BLOCK2) {
            true => response.block(option::BLOCK2),
            false => Some(Block { num: 0, more: false, szx: self.szx }),
        };
        let len = response.payload.len();
        let fits = |block: &Block| {
            let is_whole = if block.more { len == block.size() } else { len <= block.size() };
            block.szx <= self.szx && block.offset() == self.body.len() && is_whole
        };
        let is_alone = !response.has(option::BLOCK2) && self.body.is_empty();
        let Some(block) = block.filter(|block| is_alone || fits(block)) else {
            return Step::Over(Err(Failure::Invalid));
        };
        self.body.extend_from_slice(&response.payload);
        (self.szx, self.etag) = (block.szx, etag.cloned());
        match block.more {
            true if block.num + 1 == Block::NUMBERS => Step::Over(Err(Failure::TooLong)),
            true => Step::Next,
            false => Step::Received(core::mem::take(&mut self.body).into()),
        }
    }
}

/// A body that arrives with Q-Block2.
#[derive(Debug)]
pub(super) struct QGet {
    szx: u8,
    etag: Option<Bytes>,
    /// The received blocks, once the length is known.
    gather: Option<Gather>,
    /// The half of the token that is the same for the whole body.
    base: [u8; 4],
    /// Number of requests: the other half of the next token.
    requests: u32,
    /// Number of requests for the whole body.
    tries: u8,
    /// Time at which the whole body is requested again, as long as nothing has arrived.
    deadline: Instant,
}

impl QGet {
    pub(super) fn new(config: &Config, messages: &mut Messages) -> Self {
        let base = (messages.bits() as u32).to_be_bytes();
        let deadline = Instant::FAR_FUTURE;
        Self { szx: config.szx(), etag: None, gather: None, base, requests: 0, tries: 0, deadline }
    }

    /// Number of bytes that have arrived.
    pub(super) fn octets(&self) -> usize {
        self.gather.as_ref().map_or(0, Gather::octets)
    }

    pub(super) fn next_timeout(&self) -> Instant {
        self.gather.as_ref().map_or(self.deadline, Gather::next_timeout)
    }

    /// Sends a request for blocks.
    fn ask(&mut self, asked: impl IntoIterator<Item = Block>, path: &[Bytes], messages: &mut Messages) {
        let token = [self.base, self.requests.to_be_bytes()].concat();
        let token = Token::new(&token).unwrap_or_default();
        self.requests = self.requests.wrapping_add(1);
        let message = request(Type::NonConfirmable, Code::GET, messages.id(), token, path);
        let with = |message: Message, block| message.with_block(option::Q_BLOCK2, block);
        messages.send(asked.into_iter().fold(message, with));
    }

    /// Requests missing blocks, one option each (RFC 9177 section 4.4).
    fn ask_again(&mut self, missing: Vec<u32>, path: &[Bytes], messages: &mut Messages) {
        let szx = self.szx;
        self.ask(missing.into_iter().map(|num| Block { num, more: false, szx }), path, messages);
    }

    /// Requests the whole body.
    pub(super) fn begin(&mut self, now: Instant, path: &[Bytes], config: &Config, messages: &mut Messages) {
        self.deadline = now + doubled(config.non_receive_timeout, self.tries);
        self.tries += 1;
        self.ask([Block { num: 0, more: true, szx: self.szx }], path, messages);
    }

    pub(super) fn handle_timeout(
        &mut self,
        now: Instant,
        path: &[Bytes],
        config: &Config,
        messages: &mut Messages,
    ) -> Step {
        if now < self.next_timeout() {
            return Step::Wait;
        }
        messages.counters.timeouts += 1;
        match &mut self.gather {
            // Nothing has arrived: the request may be lost.
            None if self.tries > config.non_max_retransmit => return Step::Over(Err(Failure::Missing)),
            None => {
                messages.counters.retransmissions += 1;
                self.begin(now, path, config, messages);
            }
            Some(gather) => match gather.expire(now, config) {
                Some(missing) => self.ask_again(missing, path, messages),
                None => return Step::Over(Err(Failure::Missing)),
            },
        }
        Step::Wait
    }

    /// Whether a response belongs to a request of the body.
    pub(super) fn is_own(&self, token: Token) -> bool {
        token.octets().len() == 8 && token.octets().starts_with(&self.base)
    }

    pub(super) fn handle_response(
        &mut self,
        now: Instant,
        response: &Message,
        path: &[Bytes],
        config: &Config,
        messages: &mut Messages,
    ) -> Step {
        if response.code != Code::CONTENT {
            let is_success = response.code.class() == 2;
            let failure = if is_success { Failure::Invalid } else { Failure::Refused(response.code) };
            return Step::Over(Err(failure));
        }
        if !response.has(option::Q_BLOCK2) && !response.has(option::BLOCK2) && self.gather.is_none() {
            return Step::Received(response.payload.clone());
        }
        let (block, len) = (response.block(option::Q_BLOCK2), response.uint(option::SIZE2));
        // Every block has both options (section 4.6); a larger size than requested is no answer.
        let (Some(block), Some(len)) = (block.filter(|block| block.szx <= self.szx), len) else {
            messages.counters.ignored += 1;
            return Step::Wait;
        };
        let etag = response.values(option::ETAG).next();
        // A new version of the resource replaces the blocks of the old one.
        if self.gather.is_none() || self.etag.as_ref() != etag {
            self.gather = Some(Gather::new(now, len as usize, block.szx, config));
            (self.szx, self.etag) = (block.szx, etag.cloned());
        }
        let Some(gather) = self.gather.as_mut().filter(|it| it.fits(len as usize, block, &response.payload))
        else {
            messages.counters.ignored += 1;
            return Step::Wait;
        };
        match gather.insert(now, block.num, response.payload.clone(), config) {
            Answer::Nothing => {}
            Answer::Complete => return Step::Received(gather.body()),
            Answer::Continue(num) => {
                self.ask([Block { num, more: true, szx: self.szx }], path, messages);
            }
            Answer::Missing(missing) => self.ask_again(missing, path, messages),
        }
        Step::Wait
    }
}
