//! The client of one transfer.

use alloc::vec::Vec;

use anabranch_wire::coap::{Block, Message, Token, Type, option};
use bytes::Bytes;

use super::config::{Config, Method};
use super::exchange::{Exchange, Expiry, is_empty_ack};
use super::get::{Get, QGet};
use super::messages::{Messages, blocks};
use super::put::{Put, QPut};
use super::step::Step;
use super::{Counters, Event, Failure};
use crate::time::Instant;

#[derive(Debug)]
enum Transfer {
    Put(Put),
    Get(Get),
    QPut(QPut),
    QGet(QGet),
}

/// The client of one transfer: it sends a body with PUT, or receives one with GET.
#[derive(Debug)]
pub struct Client {
    config: Config,
    /// Segments of the path.
    path: Vec<Bytes>,
    messages: Messages,
    transfer: Transfer,
    /// The confirmable request that waits for its response, with Block1 and Block2.
    exchange: Option<Exchange>,
    outcome: Option<Result<(), Failure>>,
    received: u64,
}

impl Client {
    /// Begins to send `body` to the resource at `path`, whose segments slashes separate. With
    /// Q-Block1, a body of one block goes in one confirmable message without the option, since a
    /// lost non-confirmable one would never be missed. `entropy` is a random number, new for each
    /// client.
    pub fn put(now: Instant, config: Config, path: &str, body: Bytes, entropy: u64) -> Self {
        let mut messages = Messages::new(entropy);
        let count = blocks(body.len(), config.szx());
        let transfer = match config.method {
            Method::QBlock1 if count > 1 => Transfer::QPut(QPut::new(body, &config, &mut messages)),
            _ => Transfer::Put(Put::new(body, &config)),
        };
        Self::begin(now, config, path, messages, transfer, count)
    }

    /// Begins to request the resource at `path`.
    pub fn get(now: Instant, config: Config, path: &str, entropy: u64) -> Self {
        let mut messages = Messages::new(entropy);
        let transfer = match config.method {
            Method::QBlock2 => Transfer::QGet(QGet::new(&config, &mut messages)),
            _ => Transfer::Get(Get::new(&config)),
        };
        Self::begin(now, config, path, messages, transfer, 1)
    }

    fn begin(
        now: Instant,
        config: Config,
        path: &str,
        messages: Messages,
        transfer: Transfer,
        blocks: u32,
    ) -> Self {
        let path = path.split('/').filter(|segment| !segment.is_empty());
        let path = path.map(|segment| Bytes::copy_from_slice(segment.as_bytes())).collect();
        let (exchange, outcome) = (None, None);
        let mut client = Self { config, path, messages, transfer, exchange, outcome, received: 0 };
        if blocks > Block::NUMBERS {
            client.finish(Err(Failure::TooLong));
        } else if let Transfer::QGet(get) = &mut client.transfer {
            get.begin(now, &client.path, &client.config, &mut client.messages);
        } else {
            client.follow(now, Step::Next);
        }
        client
    }

    /// The outcome, once the transfer has ended.
    pub fn outcome(&self) -> Option<Result<(), Failure>> {
        self.outcome
    }

    /// Number of bytes of the body that a GET has received.
    pub fn received(&self) -> u64 {
        match (&self.transfer, self.outcome) {
            (_, Some(Ok(()))) => self.received,
            (Transfer::Get(get), _) => get.octets() as u64,
            (Transfer::QGet(get), _) => get.octets() as u64,
            (Transfer::Put(_) | Transfer::QPut(_), _) => 0,
        }
    }

    /// Counters since the beginning.
    pub fn counters(&self) -> Counters {
        self.messages.counters
    }

    /// A datagram of the server has arrived.
    pub fn handle_datagram(&mut self, now: Instant, datagram: &Bytes) {
        let Some(message) = self.messages.decode(datagram) else { return };
        match message.kind {
            Type::Reset => self.handle_reset(&message),
            Type::Acknowledgement if is_empty_ack(&message) => {
                if let Some(exchange) = self.exchange.as_mut().filter(|it| it.has_id(message.id)) {
                    exchange.acknowledge(now, &self.config);
                }
            }
            // A piggybacked response (RFC 7252 section 5.2.1).
            Type::Acknowledgement => match &self.exchange {
                Some(exchange) if exchange.has_id(message.id) => self.handle_response(now, &message),
                _ => self.messages.counters.ignored += 1,
            },
            Type::Confirmable | Type::NonConfirmable => {
                if self.messages.is_duplicate(now, &message, &self.config) {
                    return;
                }
                let is_own = message.code.is_response() && self.is_own(message.token);
                // A critical option that is not understood (RFC 7252 section 5.4.1).
                if !is_own || has_unknown(&message) {
                    return self.messages.reject(&message);
                }
                let ack = (message.kind == Type::Confirmable)
                    .then(|| Message::empty(Type::Acknowledgement, message.id));
                if let Some(ack) = ack.clone() {
                    self.messages.send(ack);
                }
                self.messages.remember(now, message.id, ack);
                self.handle_response(now, &message);
            }
        }
    }

    /// Whether a response belongs to an open request.
    fn is_own(&self, token: Token) -> bool {
        match &self.transfer {
            _ if self.outcome.is_some() => false,
            Transfer::QPut(put) => put.is_own(token),
            Transfer::QGet(get) => get.is_own(token),
            Transfer::Put(_) | Transfer::Get(_) => {
                self.exchange.as_ref().is_some_and(|exchange| exchange.token() == token)
            }
        }
    }

    fn handle_reset(&mut self, message: &Message) {
        let is_own = match &self.exchange {
            Some(exchange) => exchange.has_id(message.id),
            None => self.messages.was_sent(message.id),
        };
        match is_own && self.outcome.is_none() {
            true => self.finish(Err(Failure::Reset)),
            false => self.messages.counters.ignored += 1,
        }
    }

    fn handle_response(&mut self, now: Instant, response: &Message) {
        let is_response = response.code.is_response() && self.is_own(response.token);
        if !is_response || has_unknown(response) {
            self.messages.counters.ignored += 1;
            return;
        }
        let Self { config, path, messages, transfer, .. } = self;
        let step = match transfer {
            Transfer::Put(put) => put.handle_response(response, config),
            Transfer::Get(get) => get.handle_response(response, config),
            Transfer::QPut(put) => put.handle_response(now, response, config),
            Transfer::QGet(get) => get.handle_response(now, response, path, config, messages),
        };
        self.follow(now, step);
    }

    /// The time of [`Client::next_timeout`] has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.outcome.is_some() {
            return;
        }
        let Self { config, path, messages, transfer, exchange, .. } = self;
        let step = match (transfer, exchange) {
            (Transfer::QPut(put), _) => put.handle_timeout(now, &mut messages.counters),
            (Transfer::QGet(get), _) => get.handle_timeout(now, path, config, messages),
            (_, Some(exchange)) if exchange.deadline() <= now => match exchange.expire(now, messages, config)
            {
                Expiry::Again => Step::Wait,
                Expiry::Silent => Step::Over(Err(Failure::Silent)),
            },
            _ => Step::Wait,
        };
        self.follow(now, step);
    }

    fn follow(&mut self, now: Instant, step: Step) {
        match step {
            Step::Wait => {}
            Step::Next => {
                // A new token for each request, with 32 random bits (RFC 7252 section 5.3.1).
                let token = (self.messages.bits() as u32).to_be_bytes();
                let (token, id) = (Token::new(&token).unwrap_or_default(), self.messages.id());
                let request = match &self.transfer {
                    Transfer::Put(put) => put.request(&self.path, token, id),
                    Transfer::Get(get) => get.request(&self.path, token, id),
                    Transfer::QPut(_) | Transfer::QGet(_) => return,
                };
                self.exchange = Some(Exchange::begin(now, request, &mut self.messages, &self.config));
            }
            Step::Received(body) => {
                self.received = body.len() as u64;
                self.messages.events.push_back(Event::Received(body));
                self.finish(Ok(()));
            }
            Step::Over(outcome) => self.finish(outcome),
        }
    }

    fn finish(&mut self, outcome: Result<(), Failure>) {
        self.exchange = None;
        self.outcome = Some(outcome);
        self.messages.events.push_back(Event::Finished(outcome));
    }

    /// The next deadline.
    pub fn next_timeout(&self) -> Option<Instant> {
        let deadline = match (&self.transfer, &self.exchange) {
            _ if self.outcome.is_some() => return None,
            (Transfer::QPut(put), _) => put.next_timeout(),
            (Transfer::QGet(get), _) => get.next_timeout(),
            (_, exchange) => exchange.as_ref()?.deadline(),
        };
        (deadline < Instant::FAR_FUTURE).then_some(deadline)
    }

    /// The next datagram to send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Bytes> {
        let Self { config, path, messages, transfer, outcome, .. } = self;
        let message = messages.next().or_else(|| match transfer {
            Transfer::QPut(put) if outcome.is_none() => put.poll(now, path, config, messages),
            _ => None,
        })?;
        Some(self.messages.encode(&message))
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.messages.events.pop_front()
    }
}

/// Whether a response has a critical option that a client does not understand (RFC 7252 section
/// 5.4.1).
fn has_unknown(response: &Message) -> bool {
    const KNOWN: [u16; 4] = [option::BLOCK1, option::BLOCK2, option::Q_BLOCK1, option::Q_BLOCK2];
    response.options().iter().any(|(number, _)| option::is_critical(*number) && !KNOWN.contains(number))
}
