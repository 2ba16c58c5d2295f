//! Writes datagrams.

use alloc::vec::Vec;

use super::message::{Data, Message, Piece, Ranges, Report, flag, kind};

/// Appends `message` to `out` as one datagram.
pub fn encode(message: &Message, out: &mut Vec<u8>) {
    match message {
        Message::Request(m) => {
            out.push(kind::REQUEST << 4 | m.version & 0xf);
            put(out, m.incarnation.0);
            put(out, m.first.0);
            put(out, m.time.0);
            out.extend_from_slice(&m.datagram.to_be_bytes());
        }
        Message::Reply(m) => {
            out.push(kind::REPLY << 4);
            put(out, m.incarnation.0);
            put(out, m.stream.0);
            put(out, m.echo.0);
            put(out, m.rtt);
        }
        Message::Data(m) => {
            data_header(m, out);
            out.extend_from_slice(&m.payload);
        }
        Message::Snack(m) => {
            put_report(out, kind::SNACK, &m.report);
            put_ranges(out, &m.missing);
        }
        Message::Congestion(report) => put_report(out, kind::CONGESTION, report),
        Message::Confirm(report) => put_report(out, kind::CONFIRM, report),
        Message::Probe(m) => {
            out.push(kind::PROBE << 4 | bit(m.last, flag::LAST));
            put(out, m.stream.0);
            put(out, m.end.0);
            put(out, m.time.0);
        }
        Message::Gone(m) => {
            out.push(kind::GONE << 4);
            put(out, m.stream.0);
            put_ranges(out, &m.ranges);
        }
        Message::Refuse(m) => {
            out.push(kind::REFUSE << 4 | m.reason.code());
            put(out, m.answers);
        }
        Message::Reset(stream) => {
            out.push(kind::RESET << 4);
            put(out, stream.0);
        }
    }
}

/// Appends only the header of `data`, for a driver that sends header and payload from two buffers.
pub fn data_header(data: &Data, out: &mut Vec<u8>) {
    let flags = bit(data.last, flag::LAST)
        | bit(data.confirm, flag::CONFIRM)
        | bit(data.repeated, flag::REPEATED)
        | bit(data.rtt.is_some(), flag::RTT);
    let kind = match data.piece {
        Piece::Whole => kind::DATA,
        Piece::First => kind::FIRST,
        Piece::Middle => kind::MIDDLE,
        Piece::Last => kind::LAST,
    };
    out.push(kind << 4 | flags);
    put(out, data.stream.0);
    put(out, data.seq.0);
    put(out, data.time.0);
    if let Some(rtt) = data.rtt {
        put(out, rtt);
    }
}

fn put_report(out: &mut Vec<u8>, kind: u8, report: &Report) {
    let (flags, words) = report_words(report);
    out.push(kind << 4 | flags);
    words.iter().for_each(|word| put(out, *word));
}

/// The flags and fields of a report.
pub(super) fn report_words(report: &Report) -> (u8, [u32; 6]) {
    let Report { stream, next, echo, interval, rtt, share, delayed, complete } = *report;
    let flags = bit(delayed, flag::DELAYED) | bit(complete, flag::COMPLETE);
    (flags, [stream.0, next.0, echo.0, interval, rtt, share])
}

/// Appends the start of the first range in full, then the length of each range and the distance to
/// the next one.
fn put_ranges(out: &mut Vec<u8>, ranges: &Ranges) {
    let ranges = ranges.as_slice();
    out.push(ranges.len() as u8);
    let Some(first) = ranges.first() else { return };
    put(out, first.start.0);
    let mut at = first.start;
    for range in ranges {
        // The start of the first range is already written in full.
        if range.start != first.start {
            put_step(out, range.start.distance(at));
        }
        put_step(out, range.end.distance(range.start));
        at = range.end;
    }
}

/// Appends a step. [`Ranges`] accepts only ranges whose steps fit into two bytes.
fn put_step(out: &mut Vec<u8>, step: i32) {
    out.extend_from_slice(&(step as u16).to_be_bytes());
}

pub(super) fn put(out: &mut Vec<u8>, word: u32) {
    out.extend_from_slice(&word.to_be_bytes());
}

pub(super) const fn bit(set: bool, flag: u8) -> u8 {
    if set { flag } else { 0 }
}
