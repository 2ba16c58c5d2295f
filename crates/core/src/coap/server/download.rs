//! Bodies that leave: Block2 (RFC 7959 section 2.4) and Q-Block2 (RFC 9177 section 4.4).

use alloc::collections::BTreeSet;

use anabranch_wire::coap::{Block, Code, Message, Token, Type, option};
use bytes::Bytes;

use super::super::burst::Burst;
use super::super::config::Config;
use super::super::messages::{blocks, slice};
use super::{Server, all_blocks};
use crate::time::Instant;

/// The resource of a server.
#[derive(Debug)]
pub(super) struct Resource {
    pub(super) body: Bytes,
    /// Identifies this body: it is the only one, so a random number does.
    pub(super) etag: Bytes,
}

/// A body that leaves with Q-Block2.
#[derive(Debug)]
pub(super) struct Download {
    burst: Burst,
    szx: u8,
    /// Token of the request for the body.
    token: Token,
    /// Token of the latest request for missing blocks, which their responses have.
    again: Token,
}

impl Download {
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.burst.next_timeout()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) -> bool {
        self.burst.handle_timeout(now)
    }
}

/// What the Q-Block2 options of a request ask for (RFC 9177 section 4.4).
#[derive(Debug)]
enum Asked {
    /// The whole body.
    Whole,
    /// The set that begins with this block, and all that follow.
    Continue(u32),
    /// These blocks.
    Blocks(BTreeSet<u32>),
}

impl Asked {
    /// `None` if the numbers do not ascend, or a set of options has no place in a request.
    fn of(asked: &[Block], config: &Config) -> Option<Self> {
        let set = config.set();
        if !asked.windows(2).all(|pair| pair[0].num < pair[1].num) {
            return None;
        }
        match asked {
            [Block { num: 0, more: true, .. }] => Some(Self::Whole),
            [Block { num, more: true, .. }] if num.is_multiple_of(set) => Some(Self::Continue(*num)),
            _ => {
                // With M, a block stands for itself and the rest of its set.
                let one = |block: &Block| match block.more {
                    false => block.num..block.num + 1,
                    true => block.num..(block.num / set + 1) * set,
                };
                Some(Self::Blocks(asked.iter().flat_map(one).collect()))
            }
        }
    }
}

impl Server {
    /// A GET, with Block2 or without: the block that is asked for.
    pub(super) fn get(&mut self, request: &Message) -> Message {
        let asked = request.block(option::BLOCK2);
        let szx = self.szx(asked);
        // The number counts blocks of the size that the client says.
        let offset = asked.map_or(0, Block::offset);
        let num = (offset >> (szx + 4)) as u32;
        let Some(resource) = &self.resource else { return self.answer(request, Code::NOT_FOUND) };
        let (len, etag) = (resource.body.len(), resource.etag.clone());
        let more = offset + (16 << szx) < len;
        let block = Block { num, more, szx };
        let is_valid = asked.is_some() || !request.has(option::BLOCK2);
        if !is_valid || offset > 0 && offset >= len || num >= Block::NUMBERS {
            return self.answer(request, Code::BAD_REQUEST);
        }
        let payload = slice(&resource.body, block);
        let answer = self.answer(request, Code::CONTENT).with(option::ETAG, etag).with_payload(payload);
        match asked.is_some() || more {
            true => answer.with_block(option::BLOCK2, block),
            false => answer,
        }
    }

    /// A GET with Q-Block2. Its blocks leave by [`Server::next_block`].
    pub(super) fn q_get(&mut self, now: Instant, request: &Message) -> Option<Message> {
        let asked = all_blocks(request, option::Q_BLOCK2).filter(|all| !all.is_empty());
        let szx = self.szx(asked.as_ref().and_then(|all| all.first().copied()));
        let asked = asked.and_then(|all| Asked::of(&all, &self.config));
        let Some(asked) = asked else { return Some(self.answer(request, Code::BAD_REQUEST)) };
        let len = self.resource.as_ref().map_or(0, |resource| resource.body.len());
        let (total, set) = (blocks(len, szx), self.config.set());
        let fresh = |burst| Download { burst, szx, token: request.token, again: request.token };
        let open = self.download.as_mut().filter(|download| download.szx == szx);
        match (asked, open) {
            (Asked::Continue(num), Some(download)) => download.burst.proceed(num),
            (Asked::Blocks(blocks), Some(download)) => {
                download.again = request.token;
                download.burst.repeat(blocks);
            }
            (Asked::Whole, _) => {
                self.pause = self.messages.wait(self.config.non_timeout, &self.config);
                self.download = Some(fresh(Burst::new(total, set, self.pause)));
            }
            // Nothing is under way: the rest of the body, or single blocks of it.
            (Asked::Continue(num), None) => {
                self.download = Some(fresh(Burst::only(total, set, self.pause, num..total)));
            }
            (Asked::Blocks(blocks), None) => {
                self.download = Some(fresh(Burst::only(total, set, self.pause, blocks)));
            }
        }
        // The answer to a confirmable request is its first block (section 4.4).
        match request.kind {
            Type::Confirmable => {
                let mut block = self.next_block(now)?;
                (block.kind, block.id, block.token) = (Type::Acknowledgement, request.id, request.token);
                Some(block)
            }
            _ => None,
        }
    }

    /// The next block of the body that is under way.
    pub(super) fn next_block(&mut self, now: Instant) -> Option<Message> {
        let (download, resource) = (self.download.as_mut()?, self.resource.as_ref()?);
        let (num, is_again) = download.burst.poll(now)?;
        let (szx, len) = (download.szx, resource.body.len());
        let token = if is_again { download.again } else { download.token };
        let block = Block { num, more: num + 1 < blocks(len, szx), szx };
        self.messages.counters.retransmissions += u64::from(is_again);
        let message = Message::new(Type::NonConfirmable, Code::CONTENT, self.messages.id(), token)
            .with(option::ETAG, resource.etag.clone())
            .with_uint(option::SIZE2, len as u32)
            .with_block(option::Q_BLOCK2, block);
        Some(message.with_payload(slice(&resource.body, block)))
    }
}
