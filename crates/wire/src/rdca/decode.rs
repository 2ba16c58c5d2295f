//! Parses datagrams.

use bytes::Bytes;

use super::message::{
    Data, Gone, Incarnation, Message, Piece, Probe, Range, Ranges, Refuse, RefuseReason, Reply, Report,
    Request, Seq, Snack, StreamId, TimeStamp, flag, kind,
};
use crate::reader::Reader;

/// Why a datagram was refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("octet {offset} of the datagram: {field} is not valid")]
pub struct DecodeError {
    /// The invalid or truncated field.
    pub field: &'static str,
    /// Offset of that field in bytes.
    pub offset: usize,
}

/// Parses one datagram. The payload of a data packet is a slice of `datagram`, not a copy.
///
/// # Errors
///
/// The type or a flag is unknown, a field is truncated or invalid, or bytes follow the message.
pub fn decode(datagram: &Bytes) -> Result<Message, DecodeError> {
    let mut fields = Fields::new(datagram);
    let first = fields.octet("type")?;
    let (kind, flags) = (first >> 4, first & 0xf);
    let message = match kind {
        kind::REQUEST => fields.request(flags).map(Message::Request)?,
        kind::DATA => return fields.data(Piece::Whole, flags, datagram),
        kind::FIRST => return fields.data(Piece::First, flags, datagram),
        kind::MIDDLE => return fields.data(Piece::Middle, flags, datagram),
        kind::LAST => return fields.data(Piece::Last, flags, datagram),
        kind::REFUSE => {
            let reason = RefuseReason::from_code(flags).ok_or(bad("reason", 0))?;
            Message::Refuse(Refuse { reason, answers: fields.word("what it answers")? })
        }
        kind::PROBE => {
            known(flags, flag::LAST)?;
            let stream = fields.stream()?;
            let (end, time) = (Seq(fields.word("end")?), fields.time()?);
            Message::Probe(Probe { stream, end, time, last: flags & flag::LAST != 0 })
        }
        kind::SNACK => {
            let report = fields.report(flags)?;
            Message::Snack(Snack { report, missing: fields.ranges()? })
        }
        kind::CONGESTION => fields.report(flags).map(Message::Congestion)?,
        kind::CONFIRM => fields.report(flags).map(Message::Confirm)?,
        kind::REPLY => {
            known(flags, 0)?;
            let incarnation = Incarnation(fields.word("incarnation")?);
            let (stream, echo) = (fields.stream()?, fields.time()?);
            Message::Reply(Reply { incarnation, stream, echo, rtt: fields.word("round trip")? })
        }
        kind::GONE => {
            known(flags, 0)?;
            Message::Gone(Gone { stream: fields.stream()?, ranges: fields.ranges()? })
        }
        kind::RESET => {
            known(flags, 0)?;
            Message::Reset(fields.stream()?)
        }
        _ => return Err(bad("type", 0)),
    };
    if fields.0.rest().is_empty() { Ok(message) } else { Err(bad("end of the datagram", fields.0.at())) }
}

pub(super) const fn bad(field: &'static str, offset: usize) -> DecodeError {
    DecodeError { field, offset }
}

/// Checks that no flag other than `allowed` is set.
pub(super) const fn known(flags: u8, allowed: u8) -> Result<(), DecodeError> {
    if flags & !allowed == 0 { Ok(()) } else { Err(bad("flags", 0)) }
}

pub(super) struct Fields<'a>(Reader<'a>);

impl<'a> Fields<'a> {
    pub(super) const fn new(octets: &'a [u8]) -> Self {
        Self(Reader::new(octets))
    }

    pub(super) fn at(&self) -> usize {
        self.0.at()
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.0.rest()
    }

    fn octet(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        let at = self.0.at();
        self.0.u8().ok_or(bad(field, at))
    }

    pub(super) fn short(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        let at = self.0.at();
        self.0.u16().ok_or(bad(field, at))
    }

    pub(super) fn word(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        let at = self.0.at();
        self.0.take().map(u32::from_be_bytes).ok_or(bad(field, at))
    }

    pub(super) fn stream(&mut self) -> Result<StreamId, DecodeError> {
        self.word("stream").map(StreamId)
    }

    pub(super) fn time(&mut self) -> Result<TimeStamp, DecodeError> {
        self.word("time stamp").map(TimeStamp)
    }

    fn request(&mut self, version: u8) -> Result<Request, DecodeError> {
        let incarnation = Incarnation(self.word("incarnation")?);
        let (first, time) = (Seq(self.word("first packet")?), self.time()?);
        Ok(Request { version, incarnation, first, time, datagram: self.short("length of datagrams")? })
    }

    fn data(&mut self, piece: Piece, flags: u8, datagram: &Bytes) -> Result<Message, DecodeError> {
        let stream = self.stream()?;
        let (seq, time) = (Seq(self.word("sequence number")?), self.time()?);
        let rtt = if flags & flag::RTT != 0 { Some(self.word("round trip")?) } else { None };
        let payload = datagram.slice(self.0.at()..);
        let (last, confirm) = (flags & flag::LAST != 0, flags & flag::CONFIRM != 0);
        let repeated = flags & flag::REPEATED != 0;
        Ok(Message::Data(Data { stream, seq, time, last, confirm, repeated, rtt, piece, payload }))
    }

    pub(super) fn report(&mut self, flags: u8) -> Result<Report, DecodeError> {
        known(flags, flag::DELAYED | flag::COMPLETE)?;
        let stream = self.stream()?;
        let (next, echo) = (Seq(self.word("next packet")?), self.time()?);
        let (interval, rtt) = (self.word("interval")?, self.word("round trip")?);
        let share = self.word("share")?;
        let (delayed, complete) = (flags & flag::DELAYED != 0, flags & flag::COMPLETE != 0);
        Ok(Report { stream, next, echo, interval, rtt, share, delayed, complete })
    }

    fn ranges(&mut self) -> Result<Ranges, DecodeError> {
        let at = self.0.at();
        let count = self.octet("number of ranges")?;
        let mut ranges = Ranges::EMPTY;
        if count == 0 {
            return Ok(ranges);
        }
        let mut start = Seq(self.word("first missing packet")?);
        for i in 0..count {
            if i > 0 {
                start = start + u32::from(self.short("distance of a range")?);
            }
            let end = start + u32::from(self.short("length of a range")?);
            if !ranges.push(Range { start, end }) {
                return Err(bad("range", at));
            }
            start = end;
        }
        Ok(ranges)
    }
}
