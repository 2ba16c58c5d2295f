//! What the datagrams mean.

use core::fmt;
use core::ops::Add;

use bytes::Bytes;

/// The version that we speak; a request with another is refused.
pub const VERSION: u8 = 1;
/// Ranges in one SNACK or GONE, at most.
pub const MAX_RANGES: usize = 16;
/// Bytes of the longest header of a data packet.
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

/// The number of a packet: modulo 2^32, so it has no order of its own. Comparisons are right while
/// the two are less than 2^31 apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Seq(pub u32);

impl Seq {
    /// The signed distance from `other` to `self`, in packets, in -2^31..2^31.
    pub const fn distance(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }

    /// `self` comes before `other`.
    pub const fn lt(self, other: Self) -> bool {
        self.distance(other) < 0
    }

    /// `self` comes before `other` or is it.
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

/// A reading of somebody's clock: microseconds modulo 2^32 (71 minutes). Only differences mean
/// anything, and only while they are shorter than 35 minutes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TimeStamp(pub u32);

impl TimeStamp {
    /// Microseconds from `earlier` to `self`, in -2^31..2^31.
    pub const fn since(self, earlier: Self) -> i32 {
        self.0.wrapping_sub(earlier.0) as i32
    }
}

/// Names one life of a sender: drawn by its owner, different after each restart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Incarnation(pub u32);

/// Names one stream at the sink, which draws it: a sink that has restarted knows none of those it
/// gave before.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct StreamId(pub u32);

/// Packets `start..end`, not empty.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Range {
    /// The first packet.
    pub start: Seq,
    /// One past the last packet.
    pub end: Seq,
}

impl Range {
    /// Packets in it; 0 if `end` does not come after `start`.
    pub fn len(self) -> u32 {
        self.end.distance(self.start).max(0) as u32
    }

    /// There is none in it.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// What of it lies within `other`.
    pub fn within(self, other: Self) -> Self {
        // Measured from one point: of two ends half the number space apart each comes before the
        // other.
        let from = i64::from(self.start.distance(other.start));
        let place = |offset: i64| other.start + offset.clamp(0, i64::from(other.len())) as u32;
        Self { start: place(from), end: place(from + i64::from(self.len())) }
    }
}

/// Up to [`MAX_RANGES`] ranges, ascending and apart from each other, without an allocation.
#[derive(Clone, Copy)]
pub struct Ranges {
    ranges: [Range; MAX_RANGES],
    len: u8,
}

impl Ranges {
    /// None.
    pub const EMPTY: Self = Self { ranges: [Range { start: Seq(0), end: Seq(0) }; MAX_RANGES], len: 0 };

    /// Adds a range. It is not taken, and the answer is `false`, if it is empty, if it does not
    /// begin after the last one or lies too far from it to be written (65535 packets at most, for
    /// the distance and for the length), or if there is no room.
    pub fn push(&mut self, range: Range) -> bool {
        let at = usize::from(self.len);
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

    /// The ranges.
    pub fn as_slice(&self) -> &[Range] {
        &self.ranges[..usize::from(self.len)]
    }
}

/// The longest distance or length that two bytes hold.
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
    /// The sender's version, 0..=15.
    pub version: u8,
    /// This life of the sender.
    pub incarnation: Incarnation,
    /// The number of the first packet.
    pub first: Seq,
    /// The sender's clock.
    pub time: TimeStamp,
    /// Bytes of the longest datagram that the sender will send; the packet in which rates are
    /// counted (erratum H7).
    pub datagram: u16,
}

/// Sink to sender: the stream is open (Connection Reply).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// That of the request.
    pub incarnation: Incarnation,
    /// What every later datagram of this stream bears.
    pub stream: StreamId,
    /// The time stamp of the request, so that the sender measures the round trip on its own clock
    /// (erratum H17).
    pub echo: TimeStamp,
    /// The sink's estimate of the round trip, microseconds: twice the trip time of the request, as
    /// the paper has it. Only a sender whose clock is synchronised with the sink's can use it.
    pub rtt: u32,
}

/// Sender to sink: one packet of the application.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Data {
    /// The stream.
    pub stream: StreamId,
    /// Its number.
    pub seq: Seq,
    /// The sender's clock when this copy was sent.
    pub time: TimeStamp,
    /// Nothing follows: the stream ends with this packet (erratum H12).
    pub last: bool,
    /// The sender wants to be told how far the sink is.
    pub confirm: bool,
    /// It was sent before (erratum H16: the receive rate must not count it).
    pub repeated: bool,
    /// The round trip as the sender has measured it, microseconds.
    pub rtt: Option<u32>,
    /// Which piece of what the application wrote.
    pub piece: Piece,
    /// The application's bytes.
    pub payload: Bytes,
}

/// Which piece of the application's data a packet carries: data that is too long for one packet is
/// cut (section 3.2.1), and its pieces have consecutive numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Piece {
    /// All of it.
    #[default]
    Whole,
    /// The first of several.
    First,
    /// Neither the first nor the last.
    Middle,
    /// The last of several.
    Last,
}

impl Piece {
    /// Piece number `at` of `of`, counted from 0.
    pub const fn of(at: usize, of: usize) -> Self {
        match (at == 0, at + 1 >= of) {
            (true, true) => Self::Whole,
            (true, false) => Self::First,
            (false, false) => Self::Middle,
            (false, true) => Self::Last,
        }
    }
}

/// What every word of the sink about a stream says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// The stream.
    pub stream: StreamId,
    /// Everything before this packet was delivered to the application, or reported to it as gone.
    pub next: Seq,
    /// The sender's clock now, as far as the sink knows it: the time stamp of the last data, plus
    /// the time since.
    pub echo: TimeStamp,
    /// The average interval between packets, microseconds; its reciprocal is the receive rate
    /// (Algorithm 1 line 9). 0: not known.
    pub interval: u32,
    /// The average round trip, microseconds. 0: not known.
    pub rtt: u32,
    /// The average interval between the packets of a sender, if all that are held back had the
    /// same, microseconds. 0: not known.
    pub share: u32,
    /// Packets wait on their way, more than a little: a loss may come from congestion.
    pub delayed: bool,
    /// The sink knows the end of the stream and has everything before it.
    pub complete: bool,
}

/// Sink to sender: these packets are missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Snack {
    /// See [`Report`].
    pub report: Report,
    /// What is missing, ascending, at or after `report.next`.
    pub missing: Ranges,
}

/// Sender to sink: what has been sent so far; the sink is to say what it has (erratum H12).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    /// The stream.
    pub stream: StreamId,
    /// One past the last packet that was sent.
    pub end: Seq,
    /// The sender's clock.
    pub time: TimeStamp,
    /// Nothing follows.
    pub last: bool,
}

/// Sender to sink: these packets were asked for and are not retained any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gone {
    /// The stream.
    pub stream: StreamId,
    /// The packets.
    pub ranges: Ranges,
}

/// Why a sink takes no stream, or no packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RefuseReason {
    /// It knows no such stream: it has restarted, or the sender was silent for too long.
    UnknownStream,
    /// It serves as many senders as it can.
    NoRoom,
    /// It does not speak the request's version.
    Version,
}

/// Sink to sender: no.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refuse {
    /// Why.
    pub reason: RefuseReason,
    /// What it answers: a stream if the stream is unknown, else the incarnation of the request.
    pub answers: u32,
}

/// One datagram.
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
    /// Sink to sender: the answer to a packet or a probe that asks for it.
    Confirm(Report),
    /// See [`Probe`].
    Probe(Probe),
    /// See [`Gone`].
    Gone(Gone),
    /// See [`Refuse`].
    Refuse(Refuse),
    /// Either to the other: the stream is abandoned.
    Reset(StreamId),
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
    /// DATA, PROBE: nothing follows.
    pub(in crate::rdca) const LAST: u8 = 0x1;
    /// DATA: please confirm.
    pub(in crate::rdca) const CONFIRM: u8 = 0x2;
    /// DATA: sent before.
    pub(in crate::rdca) const REPEATED: u8 = 0x4;
    /// DATA: a measured round trip follows the header.
    pub(in crate::rdca) const RTT: u8 = 0x8;
    /// SNACK, CONGESTION, CONFIRM: packets wait on their way.
    pub(in crate::rdca) const DELAYED: u8 = 0x1;
    /// The same: the sink has all of the stream.
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
