//! Bodies that arrive: Block1 (RFC 7959 section 2.5) and Q-Block1 (RFC 9177 section 4.3).

use alloc::vec::Vec;

use anabranch_wire::coap::{Block, Code, MISSING_BLOCKS, Message, Token, Type, missing, option};
use bytes::Bytes;

use super::super::Event;
use super::super::config::Config;
use super::super::gather::{Answer, Gather};
use super::Server;
use crate::time::Instant;

/// A body that arrives with Block1, in order.
#[derive(Debug)]
pub(super) struct Upload {
    body: Vec<u8>,
    deadline: Instant,
}

impl Upload {
    pub(super) fn octets(&self) -> usize {
        self.body.len()
    }

    /// The time after which the blocks are discarded: EXCHANGE_LIFETIME (RFC 7959 section 2.5).
    pub(super) fn next_timeout(&self) -> Instant {
        self.deadline
    }
}

/// A body that arrives with Q-Block1.
#[derive(Debug)]
pub(super) struct QUpload {
    tag: Bytes,
    /// Token of the latest request: the one to answer.
    token: Token,
    /// The received blocks; `None` once the body is complete.
    gather: Option<Gather>,
    /// The time after which the blocks are discarded.
    deadline: Instant,
}

impl QUpload {
    /// Number of bytes of an incomplete body.
    pub(super) fn octets(&self) -> Option<usize> {
        self.gather.as_ref().map(Gather::octets)
    }

    pub(super) fn is_done(&self) -> bool {
        self.gather.is_none()
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.gather.as_ref().map(|gather| gather.next_timeout().min(self.deadline))
    }
}

impl Server {
    /// A PUT with Block1, or with a body of one message.
    pub(super) fn put(&mut self, now: Instant, request: &Message) -> Message {
        let payload = &request.payload;
        if !request.has(option::BLOCK1) {
            self.upload = None;
            self.take(payload.clone());
            return self.answer(request, Code::CHANGED);
        }
        let Some(block) = request.block(option::BLOCK1) else {
            return self.answer(request, Code::BAD_REQUEST);
        };
        let is_whole = if block.more { payload.len() == block.size() } else { payload.len() <= block.size() };
        if !is_whole {
            return self.answer(request, Code::BAD_REQUEST);
        }
        let deadline = now + self.config.exchange_lifetime();
        // The first block begins a body, whatever was there.
        if block.num == 0 {
            self.upload = Some(Upload { body: Vec::new(), deadline });
        }
        let upload = self.upload.as_mut().filter(|upload| block.offset() <= upload.body.len());
        let Some(upload) = upload else {
            // Earlier blocks are missing (section 2.9.2).
            return self.answer(request, Code::INCOMPLETE).with_block(option::BLOCK1, block);
        };
        // A block that came before in another message replaces what follows it.
        upload.body.truncate(block.offset());
        upload.body.extend_from_slice(payload);
        upload.deadline = deadline;
        let code = match block.more {
            true => Code::CONTINUE,
            false => {
                let body = self.upload.take().map(|upload| upload.body).unwrap_or_default();
                self.take(body.into());
                Code::CHANGED
            }
        };
        // The SZX of the answer is the size that the server wants (section 2.5).
        let szx = self.szx(Some(block));
        self.answer(request, code).with_block(option::BLOCK1, Block { szx, ..block })
    }

    /// A PUT with Q-Block1.
    pub(super) fn q_put(&mut self, now: Instant, request: &Message) -> Option<Message> {
        let block = request.block(option::Q_BLOCK1);
        let (tag, len) = (request.values(option::REQUEST_TAG).next(), request.uint(option::SIZE1));
        // Both options are mandatory (sections 4.3 and 4.6).
        let (Some(block), Some(tag), Some(len)) = (block, tag, len) else {
            return Some(self.answer(request, Code::BAD_REQUEST));
        };
        let len = len as usize;
        // A new tag is a new body.
        if self.q_upload.as_ref().is_none_or(|upload| upload.tag != *tag) {
            let gather = Some(Gather::new(now, len, block.szx, &self.config));
            let (tag, token) = (tag.clone(), request.token);
            self.q_upload = Some(QUpload { tag, token, gather, deadline: now });
        }
        let upload = self.q_upload.as_mut()?;
        upload.token = request.token;
        upload.deadline = now + self.config.non_partial_timeout;
        // A block of a complete body is answered as the last one was (section 4.3).
        let Some(gather) = &mut upload.gather else { return Some(self.answer(request, Code::CHANGED)) };
        if !gather.fits(len, block, &request.payload) {
            return Some(self.answer(request, Code::BAD_REQUEST));
        }
        match gather.insert(now, block.num, request.payload.clone(), &self.config) {
            Answer::Nothing => None,
            Answer::Complete => {
                let body = gather.body();
                upload.gather = None;
                self.take(body);
                Some(self.answer(request, Code::CHANGED))
            }
            // For confirmable requests there is no 2.31 and no list (sections 4.3 and 5).
            Answer::Continue(_) | Answer::Missing(_) if request.kind == Type::Confirmable => None,
            Answer::Continue(next) => {
                let latest = Block { num: next - 1, more: true, szx: block.szx };
                Some(self.answer(request, Code::CONTINUE).with_block(option::Q_BLOCK1, latest))
            }
            Answer::Missing(blocks) => {
                let answer = self.answer(request, Code::INCOMPLETE);
                Some(with_missing(answer, blocks, &self.config))
            }
        }
    }

    /// Requests missing blocks, or discards those that are here.
    pub(super) fn expire_q_upload(&mut self, now: Instant) {
        let Some(upload) = self.q_upload.as_mut().filter(|it| it.next_timeout().is_some_and(|at| at <= now))
        else {
            return;
        };
        self.messages.counters.timeouts += 1;
        let stale = upload.deadline <= now;
        let missing = upload.gather.as_mut().filter(|_| !stale).and_then(|it| it.expire(now, &self.config));
        match missing {
            Some(blocks) => {
                let (token, id) = (upload.token, self.messages.id());
                let answer = Message::new(Type::NonConfirmable, Code::INCOMPLETE, id, token);
                self.messages.send(with_missing(answer, blocks, &self.config));
            }
            None => {
                self.q_upload = None;
                self.messages.events.push_back(Event::Discarded);
            }
        }
    }
}

/// Adds a list of missing blocks that fits into a message of a block's size (RFC 9177 section 5).
fn with_missing(message: Message, blocks: Vec<u32>, config: &Config) -> Message {
    let (payload, _) = missing::encode(blocks, config.block_size.into());
    message.with_uint(option::CONTENT_FORMAT, MISSING_BLOCKS).with_payload(payload)
}
