//! Nearly valid messages.

use anabranch_core::rdca::{Incarnation, Message, Range, RefuseReason, Seq, StreamId};
use anabranch_wire::rdca::{
    Data, Gone, Piece, Probe, Ranges, Refuse, Reply, Report, Request, Snack, TimeStamp, decode,
};
use arbitrary::{Result, Unstructured};
use bytes::Bytes;

/// What a peer has seen of the machine.
#[derive(Clone, Copy)]
pub(in crate::targets) struct Seen {
    pub incarnation: Incarnation,
    pub stream: StreamId,
    pub seq: Seq,
    pub time: TimeStamp,
}

/// Payload of each packet.
pub(super) const PIECE: &[u8] = b"octets";

fn near(octets: &mut Unstructured<'_>, mark: u32) -> Result<u32> {
    Ok(match octets.int_in_range(0..=9)? {
        0 => octets.arbitrary()?,
        1..=4 => mark,
        _ => mark.wrapping_add(octets.int_in_range(0..=20)?).wrapping_sub(10),
    })
}

fn seq(octets: &mut Unstructured<'_>, seen: &Seen) -> Result<Seq> {
    near(octets, seen.seq.0).map(Seq)
}

fn stream(octets: &mut Unstructured<'_>, seen: &Seen) -> Result<StreamId> {
    Ok(if octets.ratio(1, 12)? { StreamId(near(octets, seen.stream.0)?) } else { seen.stream })
}

fn time(octets: &mut Unstructured<'_>, seen: &Seen) -> Result<TimeStamp> {
    let back: u32 =
        if octets.ratio(1, 8)? { octets.arbitrary()? } else { octets.int_in_range(0..=400_000)? };
    Ok(TimeStamp(seen.time.0.wrapping_sub(back)))
}

fn ranges(octets: &mut Unstructured<'_>, seen: &Seen) -> Result<Ranges> {
    let mut ranges = Ranges::EMPTY;
    let mut start = seq(octets, seen)?;
    for _ in 0..octets.int_in_range(0..=17)? {
        let end = start + octets.int_in_range(1..=70_000u32)? % if octets.ratio(1, 8)? { 70_000 } else { 4 };
        ranges.push(Range { start, end });
        start = end + octets.int_in_range(0..=3)?;
    }
    Ok(ranges)
}

fn report(octets: &mut Unstructured<'_>, seen: &Seen) -> Result<Report> {
    Ok(Report {
        stream: stream(octets, seen)?,
        next: seq(octets, seen)?,
        echo: time(octets, seen)?,
        interval: *octets.choose(&[0, 1, 75_000, u32::MAX])?,
        rtt: *octets.choose(&[0, 1, 60_000, 2_000_000, u32::MAX])?,
        share: *octets.choose(&[0, 1, 75_000, u32::MAX])?,
        delayed: octets.arbitrary()?,
        complete: octets.arbitrary()?,
    })
}

/// A message from a sink.
pub(super) fn down(octets: &mut Unstructured<'_>, seen: &Seen) -> Result<Message> {
    Ok(match octets.int_in_range(0..=11)? {
        0..=2 => Message::Confirm(report(octets, seen)?),
        3 | 4 => Message::Congestion(report(octets, seen)?),
        5..=7 => Message::Snack(Snack { report: report(octets, seen)?, missing: ranges(octets, seen)? }),
        8 | 9 => {
            let (incarnation, stream) = (seen.incarnation, stream(octets, seen)?);
            Message::Reply(Reply { incarnation, stream, echo: time(octets, seen)?, rtt: octets.arbitrary()? })
        }
        10 => {
            let reasons = [RefuseReason::UnknownStream, RefuseReason::NoRoom, RefuseReason::Version];
            let reason = *octets.choose(&reasons)?;
            let answers =
                if reason == RefuseReason::UnknownStream { seen.stream.0 } else { seen.incarnation.0 };
            Message::Refuse(Refuse { reason, answers })
        }
        _ if octets.ratio(1, 8)? => Message::Reset(stream(octets, seen)?),
        _ => anything(octets)?,
    })
}

/// A message from a sender.
pub(in crate::targets) fn up(octets: &mut Unstructured<'_>, seen: &Seen) -> Result<Message> {
    Ok(match octets.int_in_range(0..=15)? {
        0 | 1 => Message::Request(Request {
            version: if octets.ratio(1, 16)? { 2 } else { 1 },
            incarnation: Incarnation(near(octets, seen.incarnation.0)?),
            first: seq(octets, seen)?,
            time: time(octets, seen)?,
            datagram: octets.arbitrary()?,
        }),
        2 => {
            let (stream, end, time) = (stream(octets, seen)?, seq(octets, seen)?, time(octets, seen)?);
            Message::Probe(Probe { stream, end, time, last: octets.arbitrary()? })
        }
        3 => Message::Gone(Gone { stream: stream(octets, seen)?, ranges: ranges(octets, seen)? }),
        4 if octets.ratio(1, 4)? => Message::Reset(stream(octets, seen)?),
        5 => anything(octets)?,
        _ => Message::Data(Data {
            stream: stream(octets, seen)?,
            seq: seq(octets, seen)?,
            time: time(octets, seen)?,
            last: octets.ratio(1, 16)?,
            confirm: octets.arbitrary()?,
            repeated: octets.arbitrary()?,
            rtt: octets.arbitrary()?,
            piece: *octets.choose(&[Piece::Whole, Piece::Whole, Piece::First, Piece::Middle, Piece::Last])?,
            payload: Bytes::from_static(PIECE),
        }),
    })
}

/// An arbitrary message.
fn anything(octets: &mut Unstructured<'_>) -> Result<Message> {
    let datagram = Bytes::copy_from_slice(octets.bytes(octets.len().min(30))?);
    Ok(decode(&datagram).unwrap_or(Message::Reset(StreamId(0))))
}
