//! The client that sends a body: [`Put`] with Block1 (RFC 7959 section 2.5), [`QPut`] with Q-Block1
//! (RFC 9177 section 4.3).

use alloc::vec::Vec;

use anabranch_wire::coap::{Block, Code, MISSING_BLOCKS, Message, Token, Type, missing, option};
use bytes::Bytes;

use super::burst::Burst;
use super::config::Config;
use super::messages::{Messages, blocks, request, slice};
use super::step::Step;
use super::{Counters, Failure};
use crate::time::Instant;

/// A body on its way with Block1.
#[derive(Debug)]
pub(super) struct Put {
    body: Bytes,
    /// Present size of blocks; the server may reduce it.
    szx: u8,
    /// First byte of the block that is being sent.
    offset: usize,
    /// Number of times that the body was begun again.
    restarts: u8,
}

impl Put {
    pub(super) fn new(body: Bytes, config: &Config) -> Self {
        Self { body, szx: config.szx(), offset: 0, restarts: 0 }
    }

    /// The block that is being sent.
    fn block(&self) -> Block {
        let size = 16 << self.szx;
        let more = self.offset + size < self.body.len();
        Block { num: (self.offset / size) as u32, more, szx: self.szx }
    }

    /// The request with the present block. A body of one block needs no option.
    pub(super) fn request(&self, path: &[Bytes], token: Token, id: u16) -> Message {
        let block = self.block();
        let mut message = request(Type::Confirmable, Code::PUT, id, token, path);
        if block.num > 0 || block.more {
            message = message.with_block(option::BLOCK1, block);
        }
        // The length is a hint that the first request carries (RFC 7959 section 4).
        if block.num == 0 && block.more {
            message = message.with_uint(option::SIZE1, self.body.len() as u32);
        }
        message.with_payload(slice(&self.body, block))
    }

    pub(super) fn handle_response(&mut self, response: &Message, config: &Config) -> Step {
        let block = self.block();
        let answer = response.block(option::BLOCK1);
        match response.code {
            // The server may ask for smaller blocks; the next number counts these (section 2.5).
            Code::CONTINUE if block.more => {
                self.offset += block.size();
                self.szx = answer.map_or(self.szx, |answer| answer.szx.min(self.szx));
                Step::Next
            }
            Code::CHANGED | Code::CREATED if !block.more => Step::Over(Ok(())),
            // The server has lost the earlier blocks (section 2.9.2).
            Code::INCOMPLETE if self.restarts < config.max_retransmit => self.restart(),
            // The block is too large, and the server says which size is not (section 2.9.3).
            Code::TOO_LARGE if answer.is_some_and(|answer| answer.szx < self.szx) => {
                self.szx = answer.map_or(self.szx, |answer| answer.szx);
                self.restart()
            }
            code if code.class() == 2 => Step::Over(Err(Failure::Invalid)),
            code => Step::Over(Err(Failure::Refused(code))),
        }
    }

    fn restart(&mut self) -> Step {
        self.restarts += 1;
        self.offset = 0;
        Step::Next
    }
}

/// A body on its way with Q-Block1.
#[derive(Debug)]
pub(super) struct QPut {
    body: Bytes,
    szx: u8,
    burst: Burst,
    /// Request-Tag: the same for all blocks of the body.
    tag: [u8; 4],
    /// The half of the token that is the same for the whole body (RFC 9177 section 6,
    /// implementation note).
    base: [u8; 4],
    /// Number of requests: the other half of the next token.
    requests: u32,
    /// Number of the first request of the latest set.
    set_began: u32,
    restarts: u8,
    /// Time at which the client gives up, after the last block.
    deadline: Instant,
}

impl QPut {
    pub(super) fn new(body: Bytes, config: &Config, messages: &mut Messages) -> Self {
        let szx = config.szx();
        let pause = messages.wait(config.non_timeout, config);
        let burst = Burst::new(blocks(body.len(), szx), config.set(), pause);
        let (tag, base) = (messages.bits() as u32, messages.bits() as u32);
        let (tag, base) = (tag.to_be_bytes(), base.to_be_bytes());
        let deadline = Instant::FAR_FUTURE;
        Self { body, szx, burst, tag, base, requests: 0, set_began: 0, restarts: 0, deadline }
    }

    pub(super) fn next_timeout(&self) -> Instant {
        self.burst.next_timeout().unwrap_or(self.deadline)
    }

    /// The next block, as a request of its own with a new token (RFC 9177 section 6).
    pub(super) fn poll(
        &mut self,
        now: Instant,
        path: &[Bytes],
        config: &Config,
        messages: &mut Messages,
    ) -> Option<Message> {
        let (num, is_again) = self.burst.poll(now)?;
        if !is_again && num.is_multiple_of(config.set()) {
            self.set_began = self.requests;
        }
        messages.counters.retransmissions += u64::from(is_again);
        let token = [self.base, self.requests.to_be_bytes()].concat();
        self.requests = self.requests.wrapping_add(1);
        if self.burst.is_sent() {
            self.deadline = now + config.non_partial_timeout;
        }
        let more = num + 1 < blocks(self.body.len(), self.szx);
        let block = Block { num, more, szx: self.szx };
        let token = Token::new(&token).unwrap_or_default();
        let message = request(Type::NonConfirmable, Code::PUT, messages.id(), token, path)
            .with_block(option::Q_BLOCK1, block)
            .with_uint(option::SIZE1, self.body.len() as u32)
            .with(option::REQUEST_TAG, Bytes::copy_from_slice(&self.tag));
        Some(message.with_payload(slice(&self.body, block)))
    }

    pub(super) fn handle_timeout(&mut self, now: Instant, counters: &mut Counters) -> Step {
        if self.burst.handle_timeout(now) {
            counters.timeouts += 1;
        } else if self.burst.is_sent() && self.deadline <= now {
            return Step::Over(Err(Failure::Unconfirmed));
        }
        Step::Wait
    }

    /// Whether a response belongs to a request of the body.
    pub(super) fn is_own(&self, token: Token) -> bool {
        token.octets().len() == 8 && token.octets().starts_with(&self.base)
    }

    pub(super) fn handle_response(&mut self, now: Instant, response: &Message, config: &Config) -> Step {
        self.deadline = now + config.non_partial_timeout;
        match response.code {
            // The option has the last block that the server has. Without it, the token says which
            // set is meant (RFC 9177 section 4.3).
            Code::CONTINUE => {
                let number = response.token.octets().last_chunk().map_or(0, |n| u32::from_be_bytes(*n));
                match response.block(option::Q_BLOCK1) {
                    Some(block) => self.burst.proceed(block.num + 1),
                    None if number >= self.set_began => self.burst.proceed(u32::MAX),
                    None => {}
                }
                Step::Wait
            }
            Code::CHANGED | Code::CREATED => Step::Over(Ok(())),
            Code::INCOMPLETE if response.uint(option::CONTENT_FORMAT) == Some(MISSING_BLOCKS) => {
                let list: Vec<u32> = missing::decode(&response.payload).unwrap_or_default();
                self.burst.repeat(list);
                Step::Wait
            }
            // As with Block1, the server has lost the earlier blocks.
            Code::INCOMPLETE if self.restarts < config.max_retransmit => {
                self.restarts += 1;
                self.burst.repeat(0..config.set());
                Step::Wait
            }
            code if code.class() == 2 => Step::Over(Err(Failure::Invalid)),
            code => Step::Over(Err(Failure::Refused(code))),
        }
    }
}
