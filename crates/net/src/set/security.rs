//! Which guard a stream gets, and how often guards had to refuse.

use std::fmt;
use std::io;
use std::ops::AddAssign;
use std::sync::Arc;

use anabranch_core::set::{Leg, SenderId, StreamId, TransferId, transfer_of_request};
use anabranch_secure::{Doorkeeper, Guard, NodeKeys, PublicKey, Refused, SenderKeys};

use super::machine::OverSockets;

/// Whom the streams of one machine have to convince, and who has to convince them.
#[derive(Clone, Debug)]
pub(super) enum Security {
    /// Nobody: nothing is encrypted.
    None,
    /// The streams of a sender.
    Sender(Arc<SenderKeys>),
    /// The streams of a gateway.
    Gateway(Arc<Doorkeeper>),
    /// The streams of a node.
    Node(Arc<NodeKeys>),
}

impl Security {
    /// Of a stream that the machine has dialled.
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

    /// The keys of these transfers are not to be evicted.
    pub(super) fn set_live(&self, live: [Option<TransferId>; 2]) {
        if let Self::Node(keys) = self {
            keys.set_live(live);
        }
    }

    /// At a node: whose request `octets` are, if they begin with a request of a sender with a key
    /// of its own. Holders of pre-shared keys are not told apart.
    pub(super) fn sender_of(&self, octets: &[u8]) -> Option<SenderId> {
        let Self::Node(keys) = self else { return None };
        let PublicKey(key) = keys.of(transfer_of_request(octets)?)?.peer()?;
        Some(SenderId::new(u64::from_be_bytes(*key.first_chunk()?)))
    }

    /// Of a stream on which somebody has called.
    pub(super) fn accepted(&self) -> Guard {
        match self {
            Self::None | Self::Sender(_) => Guard::passing(),
            Self::Gateway(door) => Guard::gateway(door),
            Self::Node(keys) => Guard::node(keys),
        }
    }
}

/// Nobody has told us a gateway's key.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("no public key of this gateway: add it to --via, or to the node's --gateways, as HOST=KEY")]
struct NoKey;

/// Somebody hung up before it had shown who it is.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "the peer closed the connection during the key handshake: it does not have our key, or its key is not the configured one"
)]
pub(super) struct HungUp;

/// An error of a socket that is none of the kernel's.
pub(super) fn refused(refused: Refused) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, refused)
}

/// What was refused, by the reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RefusedCounters {
    /// Somebody who has not shown a key that is known.
    pub strangers: u64,
    /// Something that was said before.
    pub replayed: u64,
    /// A record that does not open.
    pub tampered: u64,
    /// No greeting, no record.
    pub garbled: u64,
    /// A stream that ended within a record.
    pub truncated: u64,
    /// A session of a transfer that nobody has asked for.
    pub unasked: u64,
    /// Somebody who has not said in time who it is.
    pub silent: u64,
    /// A stream of a key that was revoked since it began.
    pub revoked: u64,
    /// One of too many at once: it was not taken, or made way for others before it had said who it
    /// is.
    pub surplus: u64,
}

impl RefusedCounters {
    /// Counts an error of a stream, if it is one of these.
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

    /// All of them.
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
    /// Those that are not 0, in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = self.by_reason();
        let mut said = counted.iter().filter(|(_, count)| *count > 0).enumerate();
        said.try_for_each(|(i, (what, n))| write!(f, "{}{n} {what}", if i == 0 { "" } else { ", " }))
    }
}
