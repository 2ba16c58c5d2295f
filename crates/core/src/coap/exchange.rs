//! One confirmable message and its retransmissions (RFC 7252 section 4.2). A client has one at a
//! time: NSTART is 1 (section 4.7).

use anabranch_wire::coap::{Message, Token, Type};

use super::config::Config;
use super::messages::Messages;
use crate::time::{Duration, Instant};

/// What an expired wait means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Expiry {
    /// The message is sent again.
    Again,
    /// The sender gives up.
    Silent,
}

/// A confirmable message that waits for its answer.
#[derive(Debug)]
pub(super) struct Exchange {
    message: Message,
    deadline: Instant,
    timeout: Duration,
    retransmissions: u8,
    /// An empty ACK has arrived, and the response will be a message of its own (RFC 7252 section
    /// 5.2.2).
    acknowledged: bool,
}

impl Exchange {
    /// Sends a message for the first time.
    pub(super) fn begin(now: Instant, message: Message, messages: &mut Messages, config: &Config) -> Self {
        let timeout = messages.wait(config.ack_timeout, config);
        messages.send(message.clone());
        Self { message, deadline: now + timeout, timeout, retransmissions: 0, acknowledged: false }
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    pub(super) fn token(&self) -> Token {
        self.message.token
    }

    /// Whether an ACK or RST belongs to the message.
    pub(super) fn has_id(&self, id: u16) -> bool {
        self.message.id == id
    }

    /// An empty ACK has arrived. The response may take as long as an exchange lives; the RFC sets
    /// no limit.
    pub(super) fn acknowledge(&mut self, now: Instant, config: &Config) {
        self.acknowledged = true;
        self.deadline = now + config.exchange_lifetime();
    }

    /// The wait has ended: the timeout doubles with each retransmission, up to MAX_RETRANSMIT of
    /// them.
    pub(super) fn expire(&mut self, now: Instant, messages: &mut Messages, config: &Config) -> Expiry {
        messages.counters.timeouts += 1;
        if self.acknowledged || self.retransmissions >= config.max_retransmit {
            return Expiry::Silent;
        }
        self.retransmissions += 1;
        self.timeout = self.timeout * 2;
        self.deadline = now + self.timeout;
        messages.counters.retransmissions += 1;
        messages.send(self.message.clone());
        Expiry::Again
    }
}

/// Whether a message acknowledges without a response.
pub(super) fn is_empty_ack(message: &Message) -> bool {
    message.kind == Type::Acknowledgement && message.code.0 == 0
}
