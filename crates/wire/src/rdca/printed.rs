//! The header as printed: 32 bits (section 3.2, erratum H15).
//!
//! ```text
//! data      |0|piece| number | time stamp |   payload
//!            1   2      13         16
//! control   |1|type| kind | flags | 0 |       32-bit fields, zeros up to the printed length
//!            1   2     3      4    22
//! ```
//!
//! The paper names the fields but not their widths. The time stamp counts units of 1024
//! microseconds, as in 802.11. The receiver completes number and time stamp to the values nearest
//! to the expected ones, and identifies the stream by its sender alone. The header has no flags for
//! a retransmission, the last packet, or a request for confirmation. Messages that the paper does
//! not define use the type of a message in the same direction.

use alloc::vec::Vec;

use bytes::Bytes;

use super::decode::{DecodeError, Fields, bad, known};
use super::encode::{bit, put, report_words};
use super::message::{
    Data, Gone, Incarnation, Message, Piece, Probe, Range, Ranges, Refuse, RefuseReason, Reply, Request, Seq,
    Snack, StreamId, TimeStamp, flag,
};

/// Length of the header in bytes.
pub(super) const HEADER: usize = 4;
/// Length of a Connection Request and a Connection Reply (section 3.2.2) in bytes.
const CONNECTION: usize = 24;
/// Length of a Congestion Control packet in bytes.
const CONGESTION: usize = 32;
/// Largest number of entries of a list in a datagram of 300 bytes.
const MOST_LISTED: usize = 132;
/// Width of a packet number in bits.
const NUMBER: u32 = 13;
/// Width of a time stamp in bits.
const TIME: u32 = 16;
/// Number of low bits of a microsecond clock that a time stamp omits.
const UNIT: u32 = 10;

/// What a receiver expects in the next packet of a sender. The short fields of the printed header
/// are completed to the nearest values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Expected {
    /// Stream of the sender; 0 if unknown.
    pub stream: StreamId,
    /// The next packet number.
    pub seq: Seq,
    /// The sender's clock.
    pub time: TimeStamp,
}

/// Type and kind of a control packet, in the first byte after the flag bit.
mod kind {
    pub(super) const REQUEST: u32 = 0;
    pub(super) const PROBE: u32 = 1;
    pub(super) const RESET: u32 = 2;
    pub(super) const REPLY: u32 = 1 << 3;
    pub(super) const REFUSE: u32 = 1 << 3 | 1;
    pub(super) const SNACK: u32 = 2 << 3;
    pub(super) const GONE: u32 = 2 << 3 | 1;
    pub(super) const CONGESTION: u32 = 3 << 3;
    pub(super) const CONFIRM: u32 = 3 << 3 | 1;
}

/// Appends `message` to `out` as one datagram.
pub(super) fn encode(message: &Message, out: &mut Vec<u8>) {
    let begin = out.len();
    let control = |out: &mut Vec<u8>, kind: u32, flags: u8, words: &[u32]| {
        put(out, 1 << 31 | kind << 26 | u32::from(flags & 0xf) << 22);
        words.iter().for_each(|word| put(out, *word));
    };
    let length = match message {
        Message::Data(m) => {
            let piece = match m.piece {
                Piece::Whole => 0,
                Piece::First => 1,
                Piece::Middle => 2,
                Piece::Last => 3,
            };
            put(out, piece << 29 | low(m.seq.0, NUMBER) << TIME | low(m.time.0 >> UNIT, TIME));
            out.extend_from_slice(&m.payload);
            return;
        }
        Message::Request(m) => {
            control(
                out,
                kind::REQUEST,
                m.version,
                &[m.incarnation.0, m.first.0, m.time.0, m.datagram.into()],
            );
            CONNECTION
        }
        Message::Reply(m) => {
            control(out, kind::REPLY, 0, &[m.incarnation.0, m.stream.0, m.echo.0, m.rtt]);
            CONNECTION
        }
        Message::Probe(m) => {
            control(out, kind::PROBE, bit(m.last, flag::LAST), &[m.stream.0, m.end.0, m.time.0]);
            CONNECTION
        }
        Message::Refuse(m) => {
            control(out, kind::REFUSE, m.reason.code(), &[m.answers]);
            CONNECTION
        }
        Message::Reset(stream) => {
            control(out, kind::RESET, 0, &[stream.0]);
            CONNECTION
        }
        Message::Snack(m) => {
            let (flags, words) = report_words(&m.report);
            control(out, kind::SNACK, flags, &words);
            return put_list(out, &m.missing);
        }
        Message::Gone(m) => {
            control(out, kind::GONE, 0, &[m.stream.0]);
            return put_list(out, &m.ranges);
        }
        Message::Congestion(report) | Message::Confirm(report) => {
            let (flags, words) = report_words(report);
            let is_notice = matches!(message, Message::Congestion(_));
            control(out, if is_notice { kind::CONGESTION } else { kind::CONFIRM }, flags, &words);
            CONGESTION
        }
    };
    out.resize(begin + length, 0);
}

/// Parses one datagram, as [`super::decode()`] does.
pub(super) fn decode(datagram: &Bytes, expected: Expected) -> Result<Message, DecodeError> {
    let mut fields = Fields::new(datagram);
    let header = fields.word("header")?;
    if header >> 31 == 0 {
        return Ok(data(header, datagram.slice(HEADER..), expected));
    }
    let (kind, flags) = (header >> 26 & 0x1f, (header >> 22 & 0xf) as u8);
    if low(header, 22) != 0 {
        return Err(bad("header", 0));
    }
    let (message, length) = match kind {
        kind::REQUEST => {
            let incarnation = Incarnation(fields.word("incarnation")?);
            let (first, time) = (Seq(fields.word("first packet")?), fields.time()?);
            let at = fields.at();
            let datagram = fields.word("length of datagrams")?;
            let datagram = datagram.try_into().map_err(|_| bad("length of datagrams", at))?;
            (Message::Request(Request { version: flags, incarnation, first, time, datagram }), CONNECTION)
        }
        kind::REPLY => {
            known(flags, 0)?;
            let incarnation = Incarnation(fields.word("incarnation")?);
            let (stream, echo) = (fields.stream()?, fields.time()?);
            let rtt = fields.word("round trip")?;
            (Message::Reply(Reply { incarnation, stream, echo, rtt }), CONNECTION)
        }
        kind::PROBE => {
            known(flags, flag::LAST)?;
            let (stream, end) = (fields.stream()?, Seq(fields.word("end")?));
            let time = fields.time()?;
            (Message::Probe(Probe { stream, end, time, last: flags & flag::LAST != 0 }), CONNECTION)
        }
        kind::REFUSE => {
            let reason = RefuseReason::from_code(flags).ok_or(bad("reason", 0))?;
            let answers = match (fields.word("what it answers")?, reason) {
                // A data packet does not name its stream, so the expected stream applies.
                (0, RefuseReason::UnknownStream) => expected.stream.0,
                (answers, _) => answers,
            };
            (Message::Refuse(Refuse { reason, answers }), CONNECTION)
        }
        kind::RESET => {
            known(flags, 0)?;
            (Message::Reset(fields.stream()?), CONNECTION)
        }
        kind::SNACK => {
            let report = fields.report(flags)?;
            return Ok(Message::Snack(Snack { report, missing: list(&mut fields)? }));
        }
        kind::GONE => {
            known(flags, 0)?;
            let stream = fields.stream()?;
            return Ok(Message::Gone(Gone { stream, ranges: list(&mut fields)? }));
        }
        kind::CONGESTION => (Message::Congestion(fields.report(flags)?), CONGESTION),
        kind::CONFIRM => (Message::Confirm(fields.report(flags)?), CONGESTION),
        _ => return Err(bad("type", 0)),
    };
    // The printed lengths are fixed; unused bytes are zero.
    let zeros = fields.rest().iter().all(|octet| *octet == 0);
    if zeros && datagram.len() == length { Ok(message) } else { Err(bad("end of the datagram", fields.at())) }
}

fn data(header: u32, payload: Bytes, expected: Expected) -> Message {
    let piece = match header >> 29 {
        0 => Piece::Whole,
        1 => Piece::First,
        2 => Piece::Middle,
        _ => Piece::Last,
    };
    let seq = Seq(next_to(expected.seq.0, header >> TIME, NUMBER));
    let time = TimeStamp(next_to(expected.time.0 >> UNIT, header, TIME) << UNIT);
    Message::Data(Data { stream: expected.stream, seq, time, piece, payload, ..Data::default() })
}

/// The number nearest to `expected` whose low `bits` bits equal those of `word`.
fn next_to(expected: u32, word: u32, bits: u32) -> u32 {
    let ahead = low(word.wrapping_sub(expected), bits);
    let half = 1 << (bits - 1);
    expected.wrapping_add(ahead).wrapping_sub(if ahead >= half { 1 << bits } else { 0 })
}

const fn low(word: u32, bits: u32) -> u32 {
    word & ((1 << bits) - 1)
}

/// Appends the first number in full, then the low 16 bits of each number.
fn put_list(out: &mut Vec<u8>, ranges: &Ranges) {
    let ranges = ranges.as_slice();
    let Some(first) = ranges.first() else { return };
    put(out, first.start.0);
    let numbers = ranges.iter().flat_map(|range| (0..range.len()).map(|i| range.start + i));
    for number in numbers.take(MOST_LISTED) {
        out.extend_from_slice(&(number.0 as u16).to_be_bytes());
    }
}

fn list(fields: &mut Fields<'_>) -> Result<Ranges, DecodeError> {
    let mut ranges = Ranges::EMPTY;
    if fields.rest().is_empty() {
        return Ok(ranges);
    }
    let mut next = fields.word("first number")?;
    let mut range: Option<Range> = None;
    while !fields.rest().is_empty() || range.is_none() {
        let at = fields.at();
        let number = fields.short("number")?;
        let seq = Seq(next.wrapping_add(u32::from(number.wrapping_sub(next as u16))));
        let longer = range.filter(|range| range.end == seq && seq.0 == next);
        if let Some(whole) = range.filter(|_| longer.is_none())
            && !ranges.push(whole)
        {
            return Err(bad("number", at));
        }
        range = Some(Range { start: longer.map_or(seq, |range| range.start), end: seq + 1 });
        next = seq.0.wrapping_add(1);
    }
    if range.is_some_and(|range| !ranges.push(range)) {
        return Err(bad("number", fields.at()));
    }
    Ok(ranges)
}
