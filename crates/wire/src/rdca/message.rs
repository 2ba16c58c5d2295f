//! The messages and their fields.

use core::fmt;
use core::ops::Add;

use bytes::Bytes;

/// The protocol version. A sink refuses a request with another version.
pub const VERSION: u8 = 1;
/// Largest number of ranges in one SNACK or GONE.
pub const MAX_RANGES: usize = 16;
/// Length of the longest header of a data packet in bytes.
pub const MAX_DATA_HEADER: usize = 17;

/// How datagrams are written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Header {
    /// Ours: fields of 32 bits, 13 or 17 bytes before the data.
    #[default]
    Ours,
    /// 32 bits for all, 4 bytes before the data, and control packets of the printed lengths
    /// (section 3.2, erratum H15).
    Printed,
}

/// Packet number, modulo 2^32. Packet numbers have no total order; comparisons are right while the
/// two numbers are less than 2^31 apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Seq(pub u32);

impl Seq {
    /// The signed distance from `other` to `self`, in packets, in -2^31..2^31.
    pub const fn distance(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }

    /// True if `self` comes before `other`.
    pub const fn lt(self, other: Self) -> bool {
        self.distance(other) < 0
    }

    /// True if `self` comes before `other` or equals it.
    pub const fn le(self, other: Self) -> bool {
        self.distance(other) <= 0
    }

    /// The later of the two.
    pub const fn max(self, other: Self) -> Self {
        if other.lt(self) { self } else { other }
    }

    /// The earlier of the two.
    pub const fn min(self, other: Self) -> Self {
        if self.lt(other) { self } else { other }
    }
}

impl Add<u32> for Seq {
    type Output = Self;
    fn add(self, n: u32) -> Self {
        Self(self.0.wrapping_add(n))
    }
}

impl fmt::Debug for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// A clock reading in microseconds, modulo 2^32 (71 minutes). Only differences shorter than 35
/// minutes are meaningful.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TimeStamp(pub u32);

impl TimeStamp {
    /// Microseconds from `earlier` to `self`, in -2^31..2^31.
    pub const fn since(self, earlier: Self) -> i32 {
        self.0.wrapping_sub(earlier.0) as i32
    }
}

/// Identifies one run of a sender. The sender's owner draws a different value after each restart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Incarnation(pub u32);

/// Identifies a stream at the sink. The sink draws it, so after a restart it does not recognise the
/// streams of its previous run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct StreamId(pub u32);

/// The packets `start..end`. Not empty in a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Range {
    /// The first packet.
    pub start: Seq,
    /// One past the last packet.
    pub end: Seq,
}

impl Range {
    /// Number of packets; 0 if `end` does not come after `start`.
    pub fn len(self) -> u32 {
        self.end.distance(self.start).max(0) as u32
    }

    /// True if the range contains no packet.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The part of the range that lies within `other`.
    pub fn within(self, other: Self) -> Self {
        // Both ends are measured from `other.start`. A direct comparison fails if two ends are half
        // the number space apart, since each then comes before the other.
        let from = i64::from(self.start.distance(other.start));
        let place = |offset: i64| other.start + offset.clamp(0, i64::from(other.len())) as u32;
        Self { start: place(from), end: place(from + i64::from(self.len())) }
    }
}

/// Up to [`MAX_RANGES`] ranges, ascending and disjoint, stored without an allocation.
#[derive(Clone, Copy)]
pub struct Ranges {
    ranges: [Range; MAX_RANGES],
    len: u8,
}

impl Ranges {
    /// No ranges.
    pub const EMPTY: Self = Self { ranges: [Range { start: Seq(0), end: Seq(0) }; MAX_RANGES], len: 0 };

    /// Adds a range. Returns `false` and changes nothing if there is no room, or if the range is
    /// empty, does not begin after the last one, or cannot be encoded. Distance and length are at
    /// most 65535 packets.
    pub fn push(&mut self, range: Range) -> bool {
        let at = usize::from(self.len);
        // The first range may begin anywhere.
        let gap = self.as_slice().last().map_or(1, |last| range.start.distance(last.end));
        if at == MAX_RANGES
            || !(1..=MAX_STEP).contains(&gap)
            || range.is_empty()
            || range.len() > MAX_STEP as u32
        {
            return false;
        }
        self.ranges[at] = range;
        self.len += 1;
        true
    }

    /// The ranges in order.
    pub fn as_slice(&self) -> &[Range] {
        &self.ranges[..usize::from(self.len)]
    }
}

/// The longest distance or length that two bytes can hold.
pub(super) const MAX_STEP: i32 = u16::MAX as i32;

impl PartialEq for Ranges {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Ranges {}

impl fmt::Debug for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice().iter().map(|r| (r.start, r.end))).finish()
    }
}

/// Sender to sink: open a stream (Connection Request, section 3.2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The sender's protocol version, 0..=15.
    pub version: u8,
    /// The current run of the sender.
    pub incarnation: Incarnation,
    /// Number of the first packet.
    pub first: Seq,
    /// The sender's clock.
    pub time: TimeStamp,
    /// Length of the longest datagram that the sender will send, in bytes. The sink counts rates in
    /// packets of this length (erratum H7).
    pub datagram: u16,
}

/// Sink to sender: the stream is open (Connection Reply).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// Incarnation of the request.
    pub incarnation: Incarnation,
    /// Identifier that every later datagram of this stream carries.
    pub stream: StreamId,
    /// Time stamp of the request, from which the sender measures the round-trip time on its own
    /// clock (erratum H17).
    pub echo: TimeStamp,
    /// The sink's estimate of the round-trip time in microseconds: twice the one-way delay of the
    /// request, as in the paper. It is valid only if the clocks of sender and sink are
    /// synchronised.
    pub rtt: u32,
}

/// Sender to sink: one packet of the application.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Data {
    /// The stream.
    pub stream: StreamId,
    /// Packet number.
    pub seq: Seq,
    /// The sender's clock when this copy was sent.
    pub time: TimeStamp,
    /// True for the last packet of the stream (erratum H12).
    pub last: bool,
    /// Asks the sink for a [`Message::Confirm`].
    pub confirm: bool,
    /// True for a retransmission, which the receive rate must not count (erratum H16).
    pub repeated: bool,
    /// The round-trip time measured by the sender, in microseconds.
    pub rtt: Option<u32>,
    /// Position of this packet in the application's message.
    pub piece: Piece,
    /// The application's bytes.
    pub payload: Bytes,
}

/// Position of a packet in the application's message. A message that is too long for one packet is
/// split (section 3.2.1), and its pieces have consecutive packet numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Piece {
    /// The whole message.
    #[default]
    Whole,
    /// The first of several pieces.
    First,
    /// A piece between the first and the last.
    Middle,
    /// The last of several pieces.
    Last,
}

impl Piece {
    /// The position of piece `at` of `of` pieces, counted from 0.
    pub const fn of(at: usize, of: usize) -> Self {
        match (at == 0, at + 1 >= of) {
            (true, true) => Self::Whole,
            (true, false) => Self::First,
            (false, false) => Self::Middle,
            (false, true) => Self::Last,
        }
    }
}

/// The state of a stream at the sink, part of every report to the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// The stream.
    pub stream: StreamId,
    /// Every packet before this one was delivered to the application, or reported to it as lost.
    pub next: Seq,
    /// The sink's estimate of the sender's current clock: the time stamp of the last data packet
    /// plus the time since its arrival.
    pub echo: TimeStamp,
    /// Average interval between packets in microseconds; its reciprocal is the receive rate
    /// (Algorithm 1 line 9). 0 if unknown.
    pub interval: u32,
    /// Average round-trip time in microseconds. 0 if unknown.
    pub rtt: u32,
    /// Average interval between packets of one sender if all throttled senders had equal rates, in
    /// microseconds. 0 if unknown.
    pub share: u32,
    /// True if queueing delay is high, so that a loss may be due to congestion.
    pub delayed: bool,
    /// True if the sink knows the end of the stream and has every packet before it.
    pub complete: bool,
}

/// Sink to sender: a selective negative acknowledgement of missing packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Snack {
    /// State of the stream.
    pub report: Report,
    /// The missing packets, ascending, at or after `report.next`.
    pub missing: Ranges,
}

/// Sender to sink: announces what has been sent and asks for the state of the stream (erratum H12).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    /// The stream.
    pub stream: StreamId,
    /// One past the last packet sent.
    pub end: Seq,
    /// The sender's clock.
    pub time: TimeStamp,
    /// True if no packet follows.
    pub last: bool,
}

/// Sender to sink: the packets were requested but the sender no longer retains them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gone {
    /// The stream.
    pub stream: StreamId,
    /// The packets that cannot be retransmitted.
    pub ranges: Ranges,
}

/// Why a sink refuses a stream or a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RefuseReason {
    /// The stream is unknown: the sink has restarted, or the sender was silent for too long.
    UnknownStream,
    /// The sink already serves its maximum number of senders.
    NoRoom,
    /// The sink does not support the version of the request.
    Version,
}

/// Sink to sender: refuses a request or a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refuse {
    /// The reason.
    pub reason: RefuseReason,
    /// The stream if the stream is unknown, else the incarnation of the request.
    pub answers: u32,
}

/// The content of one datagram.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// See [`Request`].
    Request(Request),
    /// See [`Reply`].
    Reply(Reply),
    /// See [`Data`].
    Data(Data),
    /// See [`Snack`].
    Snack(Snack),
    /// Sink to sender: explicit congestion notification (section 3.5.2).
    Congestion(Report),
    /// Sink to sender: answers a data packet or a probe that asks for confirmation.
    Confirm(Report),
    /// See [`Probe`].
    Probe(Probe),
    /// See [`Gone`].
    Gone(Gone),
    /// See [`Refuse`].
    Refuse(Refuse),
    /// Either direction: aborts the stream.
    Reset(StreamId),
}

impl Message {
    /// Whether a sender's message asks the sink for an answer.
    pub const fn asks(&self) -> bool {
        match self {
            Self::Request(_) | Self::Probe(_) => true,
            Self::Data(data) => data.confirm || data.last,
            _ => false,
        }
    }
}

/// The types, in the high nibble of the first byte.
pub(super) mod kind {
    pub(in crate::rdca) const REQUEST: u8 = 0x1;
    pub(in crate::rdca) const REPLY: u8 = 0x2;
    pub(in crate::rdca) const DATA: u8 = 0x3;
    pub(in crate::rdca) const SNACK: u8 = 0x4;
    pub(in crate::rdca) const CONGESTION: u8 = 0x5;
    pub(in crate::rdca) const CONFIRM: u8 = 0x6;
    pub(in crate::rdca) const PROBE: u8 = 0x7;
    pub(in crate::rdca) const GONE: u8 = 0x8;
    pub(in crate::rdca) const REFUSE: u8 = 0x9;
    pub(in crate::rdca) const RESET: u8 = 0xa;
    pub(in crate::rdca) const FIRST: u8 = 0xb;
    pub(in crate::rdca) const MIDDLE: u8 = 0xc;
    pub(in crate::rdca) const LAST: u8 = 0xd;
}

/// Flags in the low nibble of the first byte.
pub(super) mod flag {
    /// DATA, PROBE: last packet of the stream.
    pub(in crate::rdca) const LAST: u8 = 0x1;
    /// DATA: asks for a confirmation.
    pub(in crate::rdca) const CONFIRM: u8 = 0x2;
    /// DATA: retransmission.
    pub(in crate::rdca) const REPEATED: u8 = 0x4;
    /// DATA: a measured round-trip time follows the header.
    pub(in crate::rdca) const RTT: u8 = 0x8;
    /// SNACK, CONGESTION, CONFIRM: queueing delay is high.
    pub(in crate::rdca) const DELAYED: u8 = 0x1;
    /// SNACK, CONGESTION, CONFIRM: the sink has the whole stream.
    pub(in crate::rdca) const COMPLETE: u8 = 0x2;
}

impl RefuseReason {
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::UnknownStream => 0,
            Self::NoRoom => 1,
            Self::Version => 2,
        }
    }

    pub(super) const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::UnknownStream),
            1 => Some(Self::NoRoom),
            2 => Some(Self::Version),
            _ => None,
        }
    }
}
