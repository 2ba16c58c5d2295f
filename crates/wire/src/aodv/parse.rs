//! Parses messages.

use alloc::vec::Vec;
use core::fmt;
use core::net::Ipv4Addr;

use super::{
    MAX_PREFIX_SIZE, Message, RouteError, RouteReply, RouteRequest, SequenceNumber, Unreachable, extension,
    flag, kind,
};
use crate::reader::Reader;

/// The result of [`parse`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Parsed {
    /// The message.
    pub message: Message,
    /// Number of extensions skipped because their type is unknown.
    pub unknown_extensions: usize,
}

/// The field that made [`parse`] refuse a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Field {
    /// The type is missing or unknown. RFC 3561 has a receiver ignore unknown types.
    Kind,
    /// The message is shorter than its type requires.
    Body,
    /// The number of destinations in a route error is 0, or exceeds the bytes that follow.
    Destinations,
    /// An extension runs past the end, has a wrong length, or is unknown and must not be skipped.
    Extension,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kind => "type",
            Self::Body => "body",
            Self::Destinations => "number of destinations",
            Self::Extension => "extension",
        })
    }
}

/// The bytes are not a valid AODV message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("bad {field} at octet {offset} of an AODV message")]
pub struct ParseError {
    /// The invalid or truncated field.
    pub field: Field,
    /// Offset of that field in bytes.
    pub offset: usize,
}

/// Parses a UDP payload. Ignores reserved bits and any bytes after an RERR or an RREP-ACK.
pub fn parse(octets: &[u8]) -> Result<Parsed, ParseError> {
    let mut reader = Reader::new(octets);
    let kind = reader.u8().ok_or(ParseError { field: Field::Kind, offset: 0 })?;
    let cut_off = ParseError { field: Field::Body, offset: 1 };
    match kind {
        kind::REQUEST => {
            let request = read_request(&mut reader).ok_or(cut_off)?;
            let extensions = read_extensions(&mut reader)?;
            Ok(Parsed {
                message: Message::Request(request),
                // The Hello interval belongs to RREPs, so an RREQ that has one counts it as
                // unknown.
                unknown_extensions: extensions.unknown + usize::from(extensions.hello_interval.is_some()),
            })
        }
        kind::REPLY => {
            let reply = read_reply(&mut reader).ok_or(cut_off)?;
            let extensions = read_extensions(&mut reader)?;
            let message = Message::Reply(RouteReply { hello_interval: extensions.hello_interval, ..reply });
            Ok(Parsed { message, unknown_extensions: extensions.unknown })
        }
        kind::ERROR => {
            let message = Message::Error(read_error(&mut reader)?);
            Ok(Parsed { message, unknown_extensions: 0 })
        }
        kind::REPLY_ACK => {
            // The reserved byte.
            reader.u8().ok_or(cut_off)?;
            Ok(Parsed { message: Message::ReplyAck, unknown_extensions: 0 })
        }
        _ => Err(ParseError { field: Field::Kind, offset: 0 }),
    }
}

fn read_request(reader: &mut Reader<'_>) -> Option<RouteRequest> {
    let [flags, _reserved, hop_count] = reader.take()?;
    let id = read_u32(reader)?;
    let destination = read_address(reader)?;
    let sequence = read_sequence(reader)?;
    Some(RouteRequest {
        join: flags & flag::REQUEST_JOIN != 0,
        repair: flags & flag::REQUEST_REPAIR != 0,
        gratuitous: flags & flag::REQUEST_GRATUITOUS != 0,
        destination_only: flags & flag::REQUEST_DESTINATION_ONLY != 0,
        hop_count,
        id,
        destination,
        destination_sequence: (flags & flag::REQUEST_UNKNOWN_SEQUENCE == 0).then_some(sequence),
        originator: read_address(reader)?,
        originator_sequence: read_sequence(reader)?,
    })
}

fn read_reply(reader: &mut Reader<'_>) -> Option<RouteReply> {
    let [flags, prefix, hop_count] = reader.take()?;
    Some(RouteReply {
        repair: flags & flag::REPLY_REPAIR != 0,
        acknowledge: flags & flag::REPLY_ACKNOWLEDGE != 0,
        prefix_size: prefix & MAX_PREFIX_SIZE,
        hop_count,
        destination: read_address(reader)?,
        destination_sequence: read_sequence(reader)?,
        originator: read_address(reader)?,
        lifetime: read_u32(reader)?,
        hello_interval: None,
    })
}

fn read_error(reader: &mut Reader<'_>) -> Result<RouteError, ParseError> {
    let cut_off = ParseError { field: Field::Body, offset: 1 };
    let [flags, _reserved, count] = reader.take().ok_or(cut_off)?;
    let wrong = ParseError { field: Field::Destinations, offset: 3 };
    // The count comes from the network, so the bytes present limit the allocation.
    let mut unreachable = Vec::with_capacity(usize::from(count).min(reader.rest().len() / UNREACHABLE_LEN));
    for _ in 0..count {
        let destination = read_address(reader).ok_or(wrong)?;
        let sequence = read_sequence(reader).ok_or(wrong)?;
        unreachable.push(Unreachable { destination, sequence });
    }
    if unreachable.is_empty() {
        return Err(wrong);
    }
    Ok(RouteError { no_delete: flags & flag::ERROR_NO_DELETE != 0, unreachable })
}

struct Extensions {
    hello_interval: Option<u32>,
    unknown: usize,
}

/// If a type occurs twice, the last extension wins.
fn read_extensions(reader: &mut Reader<'_>) -> Result<Extensions, ParseError> {
    let mut extensions = Extensions { hello_interval: None, unknown: 0 };
    while !reader.rest().is_empty() {
        let wrong = ParseError { field: Field::Extension, offset: reader.at() };
        let [kind, len] = reader.take().ok_or(wrong)?;
        let content = reader.slice(len.into()).ok_or(wrong)?;
        match kind {
            extension::HELLO_INTERVAL => {
                let interval = *content.as_array::<4>().ok_or(wrong)?;
                extensions.hello_interval = Some(u32::from_be_bytes(interval));
            }
            extension::MANDATORY.. => return Err(wrong),
            _ => extensions.unknown += 1,
        }
    }
    Ok(extensions)
}

fn read_u32(reader: &mut Reader<'_>) -> Option<u32> {
    reader.take().map(u32::from_be_bytes)
}

fn read_sequence(reader: &mut Reader<'_>) -> Option<SequenceNumber> {
    read_u32(reader).map(SequenceNumber)
}

fn read_address(reader: &mut Reader<'_>) -> Option<Ipv4Addr> {
    reader.take::<4>().map(Ipv4Addr::from)
}

/// Length of one [`Unreachable`] in bytes.
const UNREACHABLE_LEN: usize = 8;
