//! What the messages mean.

use alloc::vec::Vec;
use core::net::SocketAddr;

use bytes::Bytes;

/// The version that we speak; a request with another is refused.
pub const VERSION: u8 = 1;
/// Gateways in one table, at most.
pub const MAX_GATEWAYS: usize = 15;
/// Neighbours of one gateway in the table, at most.
pub const MAX_NEIGHBOURS: usize = 15;
/// Ranges in one acknowledgement, at most.
pub const MAX_RANGES: usize = 15;
/// Bytes of a manifest, at most.
pub const MAX_MANIFEST: usize = 1024;
/// Bytes of a file's digest.
pub(super) const DIGEST: usize = 32;
/// Bytes of a signature.
pub(super) const SIGNATURE: usize = 64;

/// Names one transfer between its sender and its receiver; drawn at random by the sender.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct TransferId(pub u64);

/// Layout of the header of a data chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Layout {
    /// Only what the receiver cannot know: 2 to 17 bytes, mostly 2 to 4.
    #[default]
    Compact,
    /// The 20 bytes of the paper (section 4.2.2) behind type and length: 23 bytes.
    Paper,
}

/// The addresses that [`Layout::Paper`] repeats in every chunk. An IPv6 address is cut to its last
/// four bytes: the paper's field has 32 bits (errata S16), and no receiver reads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PaperAddresses {
    /// Where the wired session ends: the gateway.
    pub intermediate: SocketAddr,
    /// Where the wireless session ends: the node.
    pub last: SocketAddr,
}

/// How the sender means to move the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plan {
    /// SET sessions through several gateways.
    Stripe,
    /// The bytes follow on this very stream (end-to-end TCP).
    EndToEnd,
    /// The bytes come through one gateway as a plain split connection.
    Split,
}

/// Sender to node, first on a control stream: the code-update request of section 4.2.3.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// The sender's version.
    pub version: u8,
    /// The transfer.
    pub transfer: TransferId,
    /// Bytes of the file.
    pub length: u64,
    /// How the sender means to move it.
    pub plan: Plan,
    /// The whole file follows on this stream, in DATA messages, beside the sessions: only with
    /// [`Plan::Stripe`], and at most [`MAX_COPY`] bytes.
    pub copy: bool,
    /// Which file it is; without, what came of it once is no use to another transfer.
    pub file: Option<FileIdentity>,
    /// What a signer says of the file, from 1 to [`MAX_MANIFEST`] bytes; nothing here reads it.
    pub manifest: Option<Bytes>,
}

/// The longest file that may follow a request, in bytes.
pub const MAX_COPY: u64 = 1200;

/// What tells a file from all others, beside its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileIdentity {
    /// SHA-256 of the whole file.
    pub digest: [u8; DIGEST],
    /// Somebody's signature, which the node's owner may ask for; nothing here reads it.
    pub signature: Option<[u8; SIGNATURE]>,
    /// What the node has of another file, or of this one, is to be thrown away.
    pub discard: bool,
}

/// An energy level (table 1 of the SET paper).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Energy {
    /// E+.
    #[default]
    High,
    /// E-: depleted; the node is better not asked to forward.
    Low,
}

/// A neighbour of a gateway: a node one hop from it (Table 1: N-Id, N-EL).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Neighbour {
    /// The neighbour's identity, as link-layer neighbour tables have it.
    pub id: u16,
    /// Its energy level.
    pub energy: Energy,
}

/// A row of the gateway table (Table 1). The neighbour count NC is the length of `neighbours`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gateway {
    /// GW-Id.
    pub id: u16,
    /// Where the gateway takes SET sessions.
    pub address: SocketAddr,
    /// The gateway's X25519 public key, where gateways are known by one: the paper's table has
    /// none.
    pub key: Option<[u8; 32]>,
    /// Energy level of the gateway itself.
    pub energy: Energy,
    /// HC: hops between the gateway and the node, at least 1.
    pub hops: u8,
    /// The gateway's one-hop neighbours on the node's side, at most [`MAX_NEIGHBOURS`].
    pub neighbours: Vec<Neighbour>,
}

/// Node to sender: the request is granted (the paper's ACK), with the gateways that the node knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Accept {
    /// Bytes of the node's receive buffer: no byte may arrive further ahead than this of what is
    /// delivered by then, to which what came before it on the same session counts.
    pub buffer: u64,
    /// The table, at most [`MAX_GATEWAYS`] rows.
    pub gateways: Vec<Gateway>,
}

/// Why a node does not take sessions (the paper's NACK), or gives up a transfer that it had
/// accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefuseReason {
    /// The node does not stripe: the bytes may come as plain TCP.
    NoStriping,
    /// Another transfer is under way.
    Busy,
    /// The request's version is not spoken here.
    Version,
    /// Another file is unfinished here; `delivered` says how far it has come.
    Unfinished,
    /// The node's owner does not take it, for a reason that this side does not know or does not
    /// tell.
    Unwanted,
    /// The file is longer than the node's owner allows.
    TooLarge,
    /// The node has no space for the file.
    NoRoom,
    /// The bytes that arrived do not have the digest that was announced.
    Digest,
    /// The file bears no signature of a signer that the node trusts.
    Signature,
    /// The bytes could not be kept: the node's disk, or the command that gets them, failed.
    Failed,
    /// The node has taken a file with a higher sequence number, or another one with the same, or a
    /// later version.
    Rollback,
    /// The file is for another vendor, class or component.
    WrongDevice,
    /// The manifest of the file has expired.
    Expired,
    /// The file is no whole image for the boot loader of the node.
    Image,
    /// The node takes no manifests, or only shorter ones.
    LongManifest,
}

/// Node to sender: no SET sessions (the paper's NACK).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refuse {
    /// Why.
    pub reason: RefuseReason,
    /// Bytes of this transfer that the node has already: plain TCP goes on from here. 0 with a
    /// reason that [`RefuseReason::is_final`].
    pub delivered: u64,
}

/// Sender to gateway: open the wireless half (the paper's SETSYN).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SetSyn {
    /// What the gateway passes on to the node.
    pub join: Join,
    /// The final destination.
    pub destination: SocketAddr,
}

/// Gateway to node, first on the wireless stream: the SETSYN without its addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Join {
    /// The transfer that this session belongs to.
    pub transfer: TransferId,
    /// This session, 0 is the first.
    pub session: u8,
    /// Sessions that the sender means to open, at least 1.
    pub sessions: u8,
    /// What follows on the stream.
    pub plan: Plan,
}

/// What became of a SETSYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetAckStatus {
    /// The wireless half is open.
    Open,
    /// The node did not answer or refused the connection.
    Unreachable,
    /// The gateway may not relay there.
    Forbidden,
    /// The gateway has no room for another session now: it may be called again later.
    Congested,
}

/// Gateway to sender: the answer to a SETSYN (the paper's SETACK).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SetAck {
    /// The session of the SETSYN.
    pub session: u8,
    /// What became of it.
    pub status: SetAckStatus,
}

/// Bytes `start..end` of the file, not empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
}

/// Node to sender: what has arrived.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ack {
    /// Everything before this byte is delivered.
    pub delivered: u64,
    /// Bytes of chunks that have come on this stream, whether new or not: it delivers in order, so
    /// the sender knows what of it is still on its way.
    pub received: u64,
    /// Beyond it, what is held: ascending, apart from each other, at most [`MAX_RANGES`].
    pub held: Vec<Range>,
}

/// Every message but data, whose bytes the decoder hands out as they come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// See [`Request`].
    Request(Request),
    /// See [`Accept`].
    Accept(Accept),
    /// See [`Refuse`].
    Refuse(Refuse),
    /// See [`SetSyn`].
    SetSyn(SetSyn),
    /// See [`Join`].
    Join(Join),
    /// See [`SetAck`].
    SetAck(SetAck),
    /// See [`Ack`].
    Ack(Ack),
    /// Sender to node or gateway: the transfer is abandoned.
    Cancel,
}

/// The types, in the high nibble of the first byte.
pub(super) mod kind {
    pub(in crate::set) const REQUEST: u8 = 0x1;
    pub(in crate::set) const ACCEPT: u8 = 0x2;
    pub(in crate::set) const REFUSE: u8 = 0x3;
    pub(in crate::set) const SETSYN: u8 = 0x4;
    pub(in crate::set) const JOIN: u8 = 0x5;
    pub(in crate::set) const SETACK: u8 = 0x6;
    pub(in crate::set) const DATA: u8 = 0x7;
    pub(in crate::set) const ACK: u8 = 0x8;
    pub(in crate::set) const CANCEL: u8 = 0x9;
    /// A data chunk in the paper's layout.
    pub(in crate::set) const PAPER_DATA: u8 = 0xa;
}

/// Flag of [`kind::DATA`]: the offset stands in the header; without it the chunk follows the
/// session's last.
pub(super) const DATA_HAS_OFFSET: u8 = 0x1;
/// In place of the plan of a [`kind::REQUEST`]: [`Plan::Stripe`], and a [`Request::copy`] follows.
pub(super) const REQUEST_COPY: u8 = 3;
/// Flag of [`kind::REQUEST`]: a [`FileIdentity`] follows.
pub(super) const REQUEST_HAS_FILE: u8 = 0x4;
/// Flag of [`kind::REQUEST`]: a manifest follows.
pub(super) const REQUEST_HAS_MANIFEST: u8 = 0x8;
/// Option of a [`FileIdentity`]: its signature follows.
pub(super) const FILE_HAS_SIGNATURE: u8 = 0x1;
/// Option of a [`FileIdentity`]: see [`FileIdentity::discard`].
pub(super) const FILE_DISCARD: u8 = 0x2;
/// Bytes of the paper's header.
pub(super) const PAPER_HEADER: usize = 20;

impl Plan {
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Stripe => 0,
            Self::EndToEnd => 1,
            Self::Split => 2,
        }
    }

    pub(super) const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Stripe),
            1 => Some(Self::EndToEnd),
            2 => Some(Self::Split),
            _ => None,
        }
    }
}

impl RefuseReason {
    /// The node's owner does not take this file; asking again does not help.
    pub const fn is_final(self) -> bool {
        matches!(self.codes(0), (UNWANTED, _))
    }

    /// The code in the flags and the number after it. With code 4 the number says why, with the
    /// others it is `delivered`: peers that know the five codes only ignore it there.
    pub(super) const fn codes(self, delivered: u64) -> (u8, u64) {
        match self {
            Self::NoStriping => (0, delivered),
            Self::Busy => (1, delivered),
            Self::Version => (2, delivered),
            Self::Unfinished => (3, delivered),
            Self::Unwanted => (UNWANTED, 0),
            Self::TooLarge => (UNWANTED, 1),
            Self::NoRoom => (UNWANTED, 2),
            Self::Digest => (UNWANTED, 3),
            Self::Signature => (UNWANTED, 4),
            Self::Failed => (UNWANTED, 5),
            Self::Rollback => (UNWANTED, 6),
            Self::WrongDevice => (UNWANTED, 7),
            Self::Expired => (UNWANTED, 8),
            Self::Image => (UNWANTED, 9),
            Self::LongManifest => (UNWANTED, 10),
        }
    }

    /// The reason of a code and the number after it; `None` if the code is not one of REFUSE.
    pub const fn from_codes(code: u8, number: u64) -> Option<Self> {
        match (code, number) {
            (0, _) => Some(Self::NoStriping),
            (1, _) => Some(Self::Busy),
            (2, _) => Some(Self::Version),
            (3, _) => Some(Self::Unfinished),
            (UNWANTED, 1) => Some(Self::TooLarge),
            (UNWANTED, 2) => Some(Self::NoRoom),
            (UNWANTED, 3) => Some(Self::Digest),
            (UNWANTED, 4) => Some(Self::Signature),
            (UNWANTED, 5) => Some(Self::Failed),
            (UNWANTED, 6) => Some(Self::Rollback),
            (UNWANTED, 7) => Some(Self::WrongDevice),
            (UNWANTED, 8) => Some(Self::Expired),
            (UNWANTED, 9) => Some(Self::Image),
            (UNWANTED, 10) => Some(Self::LongManifest),
            // Also what later versions may say.
            (UNWANTED, _) => Some(Self::Unwanted),
            _ => None,
        }
    }
}

/// Code of all reasons for which a node's owner does not take a file.
const UNWANTED: u8 = 4;

impl SetAckStatus {
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Open => 0,
            Self::Unreachable => 1,
            Self::Forbidden => 2,
            Self::Congested => 3,
        }
    }

    pub(super) const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Open),
            1 => Some(Self::Unreachable),
            2 => Some(Self::Forbidden),
            3 => Some(Self::Congested),
            _ => None,
        }
    }
}
