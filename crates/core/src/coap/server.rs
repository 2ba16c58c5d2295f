//! The server of one resource, for one client.

mod download;
mod upload;

use alloc::vec::Vec;

use anabranch_wire::coap::{Block, Code, Message, Type, option};
use bytes::Bytes;

use self::download::{Download, Resource};
use self::upload::{QUpload, Upload};
use super::config::Config;
use super::messages::Messages;
use super::{Counters, Event};
use crate::time::{Duration, Instant};

/// The options of requests that a server understands. Other critical options are refused (RFC 7252
/// section 5.4.1).
const KNOWN: [u16; 9] = [
    option::URI_HOST,
    option::URI_PORT,
    option::URI_PATH,
    option::URI_QUERY,
    option::ACCEPT,
    option::BLOCK1,
    option::BLOCK2,
    option::Q_BLOCK1,
    option::Q_BLOCK2,
];

/// A server that receives bodies with PUT, and serves the resource with GET. The path of a request
/// does not matter: there is one resource.
#[derive(Debug)]
pub struct Server {
    config: Config,
    messages: Messages,
    /// The resource, if the server has one.
    resource: Option<Resource>,
    /// NON_TIMEOUT_RANDOM of the next body.
    pause: Duration,
    /// A body that arrives with Block1.
    upload: Option<Upload>,
    /// A body that arrives with Q-Block1, or the latest one that has.
    q_upload: Option<QUpload>,
    /// A body that leaves with Q-Block2.
    download: Option<Download>,
    received: u64,
}

impl Server {
    /// A server that receives bodies. `entropy` is a random number, new for each server.
    pub fn receiving(config: Config, entropy: u64) -> Self {
        let messages = Messages::new(entropy);
        let pause = config.non_timeout;
        Self {
            config,
            messages,
            resource: None,
            pause,
            upload: None,
            q_upload: None,
            download: None,
            received: 0,
        }
    }

    /// A server that also serves this body.
    pub fn serving(config: Config, body: Bytes, entropy: u64) -> Self {
        let mut server = Self::receiving(config, entropy);
        let etag = (server.messages.bits() as u32).to_be_bytes();
        server.resource = Some(Resource { body, etag: Bytes::copy_from_slice(&etag) });
        server
    }

    /// Number of bytes of the latest body that have arrived.
    pub fn received(&self) -> u64 {
        let open = self.upload.as_ref().map(Upload::octets);
        let open = open.or_else(|| self.q_upload.as_ref().and_then(QUpload::octets));
        open.map_or(self.received, |octets| octets as u64)
    }

    /// Counters since the beginning.
    pub fn counters(&self) -> Counters {
        self.messages.counters
    }

    /// A datagram of the client has arrived.
    pub fn handle_datagram(&mut self, now: Instant, datagram: &Bytes) {
        let Some(message) = self.messages.decode(datagram) else { return };
        if message.kind == Type::Reset && self.messages.was_sent(message.id) {
            // The client no longer wants the body (RFC 9177 section 4.3).
            self.download = None;
            if self.q_upload.take_if(|upload| !upload.is_done()).is_some() {
                self.messages.events.push_back(Event::Discarded);
            }
        }
        if matches!(message.kind, Type::Acknowledgement | Type::Reset) {
            return;
        }
        // An empty confirmable message is a ping (RFC 7252 section 4.3).
        if !message.code.is_request() {
            return self.messages.reject(&message);
        }
        if self.messages.is_duplicate(now, &message, &self.config) {
            return;
        }
        let answer = match self.process(now, &message) {
            None if message.kind == Type::Confirmable => {
                Some(Message::empty(Type::Acknowledgement, message.id))
            }
            answer => answer,
        };
        if let Some(answer) = answer.clone() {
            self.messages.send(answer);
        }
        let is_confirmable = message.kind == Type::Confirmable;
        self.messages.remember(now, message.id, answer.filter(|_| is_confirmable));
    }

    /// The answer to a new request, if it has one at once.
    fn process(&mut self, now: Instant, request: &Message) -> Option<Message> {
        let unknown = |number: &u16| option::is_critical(*number) && !KNOWN.contains(number);
        let q_block = request.has(option::Q_BLOCK1) || request.has(option::Q_BLOCK2);
        let block = request.has(option::BLOCK1) || request.has(option::BLOCK2);
        // A message never has options of both kinds (RFC 9177 section 4.1).
        if request.options().iter().any(|(number, _)| unknown(number)) || q_block && block {
            return match request.kind {
                Type::Confirmable => Some(self.answer(request, Code::BAD_OPTION)),
                // Section 5.4.1 of RFC 7252: a non-confirmable message is rejected.
                _ => {
                    self.messages.counters.ignored += 1;
                    None
                }
            };
        }
        match request.code {
            Code::GET if self.resource.is_none() => Some(self.answer(request, Code::NOT_FOUND)),
            Code::GET if q_block => self.q_get(now, request),
            Code::GET => Some(self.get(request)),
            Code::PUT if request.has(option::Q_BLOCK1) => self.q_put(now, request),
            Code::PUT => Some(self.put(now, request)),
            _ => Some(self.answer(request, Code::METHOD_NOT_ALLOWED)),
        }
    }

    /// A response: piggybacked on the ACK of a confirmable request, else non-confirmable (RFC 7252
    /// section 5.2).
    fn answer(&mut self, request: &Message, code: Code) -> Message {
        match request.kind {
            Type::Confirmable => Message::new(Type::Acknowledgement, code, request.id, request.token),
            _ => Message::new(Type::NonConfirmable, code, self.messages.id(), request.token),
        }
    }

    /// A whole body has arrived.
    fn take(&mut self, body: Bytes) {
        self.received = body.len() as u64;
        self.messages.events.push_back(Event::Received(body));
    }

    /// The size of blocks with a client that proposes this SZX.
    fn szx(&self, proposed: Option<Block>) -> u8 {
        proposed.map_or(self.config.szx(), |block| block.szx.min(self.config.szx()))
    }

    /// The next deadline.
    pub fn next_timeout(&self) -> Option<Instant> {
        let upload = self.upload.as_ref().map(Upload::next_timeout);
        let q_upload = self.q_upload.as_ref().and_then(QUpload::next_timeout);
        let download = self.download.as_ref().and_then(Download::next_timeout);
        [upload, q_upload, download].into_iter().flatten().min()
    }

    /// The time of [`Server::next_timeout`] has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.upload.take_if(|upload| upload.next_timeout() <= now).is_some() {
            self.messages.events.push_back(Event::Discarded);
        }
        if self.download.as_mut().is_some_and(|download| download.handle_timeout(now)) {
            self.messages.counters.timeouts += 1;
        }
        self.expire_q_upload(now);
    }

    /// The next datagram to send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Bytes> {
        let message = self.messages.next().or_else(|| self.next_block(now))?;
        Some(self.messages.encode(&message))
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.messages.events.pop_front()
    }
}

/// The valid blocks of the options with a number; `None` if one is invalid.
fn all_blocks(request: &Message, number: u16) -> Option<Vec<Block>> {
    request.blocks(number).collect()
}
