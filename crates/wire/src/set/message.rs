//! The messages and their fields.

use alloc::vec::Vec;
use core::net::SocketAddr;

use bytes::Bytes;

/// The protocol version. A node refuses a request with another version.
pub const VERSION: u8 = 1;
/// Largest number of gateways in one table.
pub const MAX_GATEWAYS: usize = 15;
/// Largest number of neighbours of one gateway in the table.
pub const MAX_NEIGHBOURS: usize = 15;
/// Largest number of ranges in one acknowledgement.
pub const MAX_RANGES: usize = 15;
/// Length limit of a manifest in bytes.
pub const MAX_MANIFEST: usize = 1024;
/// Length of a file's digest in bytes.
pub(super) const DIGEST: usize = 32;
/// Length of a signature in bytes.
pub(super) const SIGNATURE: usize = 64;

/// Identifies one transfer between a sender and a receiver. The sender draws it at random.
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

/// The addresses that [`Layout::Paper`] repeats in every chunk. An IPv6 address is truncated to its
/// last four bytes, since the paper's field has 32 bits (errata S16). Receivers ignore these
/// addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PaperAddresses {
    /// The gateway, where the wired session ends.
    pub intermediate: SocketAddr,
    /// The node, where the wireless session ends.
    pub last: SocketAddr,
}

/// How the sender transfers the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plan {
    /// SET sessions through several gateways.
    Stripe,
    /// The bytes follow on the control stream (end-to-end TCP).
    EndToEnd,
    /// The bytes are sent through one gateway as a plain split connection.
    Split,
}

/// Sender to node, first message on a control stream: the code-update request of section 4.2.3.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// The sender's protocol version.
    pub version: u8,
    /// Identifier of the transfer.
    pub transfer: TransferId,
    /// Length of the file in bytes.
    pub length: u64,
    /// How the sender transfers the file.
    pub plan: Plan,
    /// The whole file follows on this stream in DATA messages, in addition to the sessions. Only
    /// valid with [`Plan::Stripe`] and at most [`MAX_COPY`] bytes.
    pub copy: bool,
    /// Identity of the file. Without it, another transfer cannot resume from the bytes of this one.
    pub file: Option<FileIdentity>,
    /// The signer's statement about the file, 1 to [`MAX_MANIFEST`] bytes; opaque to this crate.
    pub manifest: Option<Bytes>,
}

/// Length limit in bytes of a file that may follow a request.
pub const MAX_COPY: u64 = 1200;

/// Identifies a file, together with its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileIdentity {
    /// SHA-256 of the whole file.
    pub digest: [u8; DIGEST],
    /// A signature, which the node may require; opaque to this crate.
    pub signature: Option<[u8; SIGNATURE]>,
    /// The node must discard the bytes that it has stored, of this file or another.
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

/// A neighbour of a gateway, one hop away (Table 1: N-Id, N-EL).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Neighbour {
    /// Identifier of the neighbour, as in link-layer neighbour tables.
    pub id: u16,
    /// Energy level of the neighbour.
    pub energy: Energy,
}

/// A row of the gateway table (Table 1). The neighbour count NC is the length of `neighbours`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gateway {
    /// GW-Id.
    pub id: u16,
    /// Address at which the gateway accepts SET sessions.
    pub address: SocketAddr,
    /// X25519 public key of the gateway, if gateways are identified by keys. The paper's table has
    /// none.
    pub key: Option<[u8; 32]>,
    /// Energy level of the gateway.
    pub energy: Energy,
    /// HC: hops between the gateway and the node, at least 1.
    pub hops: u8,
    /// Whether the gateway's path to the node shares a radio channel with the paths of all other
    /// rows that say so, and the MAC of that channel gives a frame up after few retries, as with
    /// the macMaxFrameRetries of 3 of IEEE 802.15.4. The paper's table has no such field.
    pub shared_channel: bool,
    /// The gateway's one-hop neighbours on the node's side, at most [`MAX_NEIGHBOURS`].
    pub neighbours: Vec<Neighbour>,
}

/// Node to sender: accepts the request (the paper's ACK) and lists the gateways that the node
/// knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Accept {
    /// Size of the node's receive buffer in bytes. No byte may arrive further than this ahead of
    /// the bytes delivered by then; earlier bytes of the same session count as delivered.
    pub buffer: u64,
    /// The table, at most [`MAX_GATEWAYS`] rows.
    pub gateways: Vec<Gateway>,
}

/// Why a node refuses sessions (the paper's NACK) or aborts a transfer that it had accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefuseReason {
    /// The node does not support striping; the sender may use plain TCP.
    NoStriping,
    /// Another transfer is in progress.
    Busy,
    /// The node does not support the version of the request.
    Version,
    /// Another file is incomplete on the node; `delivered` is its progress.
    Unfinished,
    /// The node's policy refuses the file, for a reason that is unknown or not disclosed.
    Unwanted,
    /// The file exceeds the size limit of the node.
    TooLarge,
    /// The node has no space for the file.
    NoRoom,
    /// The bytes received do not match the announced digest.
    Digest,
    /// The file has no signature of a trusted signer.
    Signature,
    /// The bytes could not be stored: the node's disk, or the command that receives them, failed.
    Failed,
    /// The node has already accepted a file with a higher sequence number, another file with the
    /// same sequence number, or a later version.
    Rollback,
    /// The file is for another vendor, class or component.
    WrongDevice,
    /// The manifest of the file has expired.
    Expired,
    /// The file is not a complete image for the boot loader of the node.
    Image,
    /// The node does not accept manifests, or only shorter ones.
    LongManifest,
}

/// Node to sender: refuses SET sessions (the paper's NACK).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refuse {
    /// The reason.
    pub reason: RefuseReason,
    /// Number of bytes of this transfer that the node already has; plain TCP continues from there.
    /// 0 with a reason for which [`RefuseReason::is_final`] is true.
    pub delivered: u64,
}

/// Sender to gateway: open the wireless half (the paper's SETSYN).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SetSyn {
    /// The join that the gateway passes on to the node.
    pub join: Join,
    /// Address of the node.
    pub destination: SocketAddr,
}

/// Gateway to node, first message on the wireless stream: the SETSYN without its addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Join {
    /// The transfer to which this session belongs.
    pub transfer: TransferId,
    /// Number of this session, counted from 0.
    pub session: u8,
    /// Number of sessions that the sender intends to open, at least 1.
    pub sessions: u8,
    /// How the sender transfers the file.
    pub plan: Plan,
}

/// Result of a SETSYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetAckStatus {
    /// The wireless half is open.
    Open,
    /// The node did not answer or refused the connection.
    Unreachable,
    /// The gateway is not allowed to relay to this address.
    Forbidden,
    /// The gateway has no capacity for another session; the sender may retry later.
    Congested,
}

/// Gateway to sender: the answer to a SETSYN (the paper's SETACK).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SetAck {
    /// The session of the SETSYN.
    pub session: u8,
    /// Result of the SETSYN.
    pub status: SetAckStatus,
}

/// The bytes `start..end` of the file. Not empty in a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
}

/// Node to sender: acknowledges received bytes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ack {
    /// Every byte before this one is delivered.
    pub delivered: u64,
    /// Number of chunk bytes received on this stream, duplicates included. The stream delivers in
    /// order, so the sender can tell which of its bytes are still in flight.
    pub received: u64,
    /// Ranges held beyond `delivered`: ascending, disjoint, at most [`MAX_RANGES`].
    pub held: Vec<Range>,
}

/// Any message except DATA, whose bytes the decoder returns as they arrive.
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
    /// Sender to node or gateway: aborts the transfer.
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

/// Flag of [`kind::DATA`]: the header contains the offset. Without it, the chunk follows the
/// previous chunk of the session.
pub(super) const DATA_HAS_OFFSET: u8 = 0x1;
/// Flag of [`kind::DATA`]: the node is to acknowledge the chunk at once.
pub(super) const DATA_AT_ONCE: u8 = 0x2;
/// Value of the plan field of a [`kind::REQUEST`]: [`Plan::Stripe`] with a [`Request::copy`].
pub(super) const REQUEST_COPY: u8 = 3;
/// Flag of [`kind::REQUEST`]: a [`FileIdentity`] follows.
pub(super) const REQUEST_HAS_FILE: u8 = 0x4;
/// Flag of [`kind::REQUEST`]: a manifest follows.
pub(super) const REQUEST_HAS_MANIFEST: u8 = 0x8;
/// Flag of a row of a [`kind::ACCEPT`]: see [`Gateway::shared_channel`].
pub(super) const ROW_SHARED_CHANNEL: u8 = 0x8;
/// Option of a [`FileIdentity`]: its signature follows.
pub(super) const FILE_HAS_SIGNATURE: u8 = 0x1;
/// Option of a [`FileIdentity`]: see [`FileIdentity::discard`].
pub(super) const FILE_DISCARD: u8 = 0x2;
/// Length of the paper's header in bytes.
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
    /// True if the node's policy refuses this file, so that asking again does not help.
    pub const fn is_final(self) -> bool {
        matches!(self.codes(0), (UNWANTED, _))
    }

    /// The code in the flags and the number after it. The number is the reason for code 4 and
    /// `delivered` for the other codes. Peers that know only these five codes ignore the number
    /// after code 4.
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

    /// The reason for a code and the number after it; `None` if REFUSE has no such code.
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
            // Later versions may send other numbers.
            (UNWANTED, _) => Some(Self::Unwanted),
            _ => None,
        }
    }
}

/// Code of all reasons for which a node's policy refuses a file.
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
