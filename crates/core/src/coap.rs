//! Block-wise transfers over CoAP: a [`Client`] and a [`Server`] for one resource.
//!
//! [`Method`] selects one of four ways to carry a body: Block1 and Block2 (RFC 7959) with one
//! confirmable message per round trip (RFC 7252 section 4), or Q-Block1 and Q-Block2 (RFC 9177)
//! with sets of non-confirmable messages. `docs/reference/coap.md` lists the implemented sections
//! and the deviations.
//!
//! Both machines take and give whole datagrams, as [`anabranch_wire::coap`] reads and writes them.
//! Random numbers follow from one number, which the owner passes at the beginning. A client carries
//! one body. A server talks to one client: the driver keeps one server for each peer.
//!
//! Order of calls: any `handle_*`, then `poll_transmit` and `poll_event` until `None`, then
//! `next_timeout`.

mod burst;
mod client;
mod config;
mod exchange;
mod gather;
mod get;
mod messages;
mod put;
mod server;
mod step;

use core::fmt;

use anabranch_wire::coap::Code;
use bytes::Bytes;

pub use client::Client;
pub use config::{Config, Method};
pub use server::Server;

/// What a machine tells its owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A whole body has arrived: at the server of a PUT, or at the client of a GET.
    Received(Bytes),
    /// The client has finished. It sends nothing more, but for acknowledgements.
    Finished(Result<(), Failure>),
    /// The server has discarded the received part of a body, since nothing more arrived.
    Discarded,
}

/// Why a client gave up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// A confirmable message was not answered within the retransmissions of RFC 7252 section 4.2.
    Silent,
    /// Blocks did not arrive although they were requested NON_MAX_RETRANSMIT times (RFC 9177
    /// section 7.2).
    Missing,
    /// All blocks were sent, but the server did not answer within NON_PARTIAL_TIMEOUT.
    Unconfirmed,
    /// The server has reset the exchange.
    Reset,
    /// The server has answered with this code.
    Refused(Code),
    /// The server has answered with blocks that contradict the request.
    Invalid,
    /// The body has more blocks than block numbers.
    TooLong,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent => f.write_str("a confirmable message was not answered"),
            Self::Missing => f.write_str("requested blocks did not arrive"),
            Self::Unconfirmed => f.write_str("the server did not confirm the body"),
            Self::Reset => f.write_str("the server reset the exchange"),
            Self::Refused(code) => write!(f, "the server answered with {code}"),
            Self::Invalid => f.write_str("the server answered with blocks that contradict the request"),
            Self::TooLong => f.write_str("the body has more blocks than block numbers"),
        }
    }
}

/// Counters of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Messages sent, with repeated ones.
    pub sent: u64,
    /// Messages that carry again what an earlier one carried: retransmissions of confirmable
    /// messages, and blocks that were sent before.
    pub retransmissions: u64,
    /// Expired waits: for the answer to a confirmable message, for a missing block
    /// (NON_RECEIVE_TIMEOUT), and for the permission to send the next set (NON_TIMEOUT_RANDOM).
    pub timeouts: u64,
    /// Received datagrams that are not valid messages, or are unexpected.
    pub ignored: u64,
}
