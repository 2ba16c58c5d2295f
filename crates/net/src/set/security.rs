//! Selects the guard of each stream, and counts refusals.

use std::fmt;
use std::io;
use std::ops::AddAssign;
use std::sync::Arc;

use anabranch_core::set::{Leg, SenderId, StreamId, TransferId, transfer_of_request};
use anabranch_secure::{Doorkeeper, Guard, NodeKeys, PublicKey, Refused, SenderKeys};

use super::machine::OverSockets;

/// The keys of one machine's streams.
#[derive(Clone, Debug)]
pub(super) enum Security {
    /// No encryption.
    None,
    /// Streams of a sender.
    Sender(Arc<SenderKeys>),
    /// Streams of a gateway.
    Gateway(Arc<Doorkeeper>),
    /// Streams of a node.
    Node(Arc<NodeKeys>),
}

impl Security {
    /// The guard of an outgoing stream.
    pub(super) fn dialled(
        &self,
        machine: &impl OverSockets,
        stream: StreamId,
        leg: Leg,
    ) -> io::Result<Guard> {
        match (self, leg) {
            (Self::Sender(keys), Leg::Control) => Guard::control(keys).map_err(refused),
            (Self::Sender(keys), Leg::Wired) => {
                let key = machine.gateway_of(stream).and_then(|gateway| gateway.key);
                let key = key.ok_or_else(|| io::Error::new(io::ErrorKind::PermissionDenied, NoKey))?;
                let guard = Guard::session(keys, PublicKey(key)).map_err(refused)?;
                Ok(guard.sealing_at_most(machine.record()))
            }
            (Self::None | Self::Gateway(_) | Self::Node(_), _) | (Self::Sender(_), Leg::Wireless) => {
                Ok(Guard::passing())
            }
        }
    }

    /// Protects the keys of these transfers against eviction.
    pub(super) fn set_live(&self, live: [Option<TransferId>; 2]) {
        if let Self::Node(keys) = self {
            keys.set_live(live);
        }
    }

    /// At a node: the sender of the request at the front of `octets`, if the sender has its own
    /// key. Holders of pre-shared keys are not distinguished.
    pub(super) fn sender_of(&self, octets: &[u8]) -> Option<SenderId> {
        let Self::Node(keys) = self else { return None };
        let PublicKey(key) = keys.of(transfer_of_request(octets)?)?.peer()?;
        Some(SenderId::new(u64::from_be_bytes(*key.first_chunk()?)))
    }

    /// The guard of an incoming stream.
    pub(super) fn accepted(&self) -> Guard {
        match self {
            Self::None | Self::Sender(_) => Guard::passing(),
            Self::Gateway(door) => Guard::gateway(door),
            Self::Node(keys) => Guard::node(keys),
        }
    }
}

/// The key of a gateway is unknown.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("no public key of this gateway: add it to --via, or to the node's --gateways, as HOST=KEY")]
struct NoKey;

/// The peer closed the connection before it authenticated.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "the peer closed the connection during the key handshake: it does not have our key, or its key is not the configured one"
)]
pub(super) struct HungUp;

/// Wraps a refusal in an I/O error, next to errors of the kernel.
pub(super) fn refused(refused: Refused) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, refused)
}

/// Number of refusals by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RefusedCounters {
    /// The peer has not shown a known key.
    pub strangers: u64,
    /// A message was replayed.
    pub replayed: u64,
    /// A record does not authenticate.
    pub tampered: u64,
    /// The input is neither a greeting nor a record.
    pub garbled: u64,
    /// A stream ended within a record.
    pub truncated: u64,
    /// A session belongs to a transfer that was not requested.
    pub unasked: u64,
    /// A peer did not authenticate in time.
    pub silent: u64,
    /// The key of a stream was revoked after it began.
    pub revoked: u64,
    /// A connection exceeded the limit: it was not accepted, or was closed in favour of others
    /// before it authenticated.
    pub surplus: u64,
}

impl RefusedCounters {
    /// Counts an error of a stream if it is a refusal.
    pub(super) fn count(&mut self, error: &io::Error) {
        let refused = error.get_ref().and_then(|inner| inner.downcast_ref::<Refused>());
        let Some(refused) = refused else { return };
        *match refused {
            Refused::Stranger => &mut self.strangers,
            Refused::Revoked => &mut self.revoked,
            Refused::Replayed | Refused::Repeated => &mut self.replayed,
            Refused::Tampered => &mut self.tampered,
            Refused::Garbled => &mut self.garbled,
            Refused::Truncated => &mut self.truncated,
            Refused::Unasked => &mut self.unasked,
        } += 1;
    }

    /// Sum of all counts.
    pub fn total(&self) -> u64 {
        self.by_reason().iter().map(|(_, count)| count).sum()
    }

    /// Each count with its reason in words.
    pub fn by_reason(&self) -> [(&'static str, u64); 9] {
        let Self { strangers, replayed, tampered, garbled, truncated, unasked, silent, revoked, surplus } =
            *self;
        [
            ("without a known key", strangers),
            ("replayed", replayed),
            ("tampered with", tampered),
            ("garbled", garbled),
            ("truncated", truncated),
            ("of no transfer", unasked),
            ("silent", silent),
            ("revoked", revoked),
            ("too many", surplus),
        ]
    }
}

impl AddAssign for RefusedCounters {
    fn add_assign(&mut self, more: Self) {
        self.strangers += more.strangers;
        self.replayed += more.replayed;
        self.tampered += more.tampered;
        self.garbled += more.garbled;
        self.truncated += more.truncated;
        self.unasked += more.unasked;
        self.silent += more.silent;
        self.revoked += more.revoked;
        self.surplus += more.surplus;
    }
}

impl fmt::Display for RefusedCounters {
    /// Writes the counts that are not 0, with their reasons.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = self.by_reason();
        let mut said = counted.iter().filter(|(_, count)| *count > 0).enumerate();
        said.try_for_each(|(i, (what, n))| write!(f, "{}{n} {what}", if i == 0 { "" } else { ", " }))
    }
}
