//! Writes messages.

use alloc::vec::Vec;

use super::{MAX_PREFIX_SIZE, Message, RouteError, RouteReply, RouteRequest, extension, flag, kind};

/// Why a message cannot be encoded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// [`RouteReply::prefix_size`] does not fit into five bits.
    #[error("prefix size {0} is more than 31")]
    PrefixSize(u8),
    /// [`RouteError::unreachable`] is empty or has more than 255 entries.
    #[error("a route error names 1 to 255 destinations, not {0}")]
    Destinations(usize),
}

/// Appends `message` to `out` as a UDP payload. On error, `out` is unchanged.
pub fn emit(message: &Message, out: &mut Vec<u8>) -> Result<(), EmitError> {
    match message {
        Message::Request(request) => emit_request(request, out),
        Message::Reply(reply) => emit_reply(reply, out)?,
        Message::Error(error) => emit_error(error, out)?,
        Message::ReplyAck => out.extend_from_slice(&[kind::REPLY_ACK, 0]),
    }
    Ok(())
}

fn emit_request(request: &RouteRequest, out: &mut Vec<u8>) {
    let flags = flags(&[
        (request.join, flag::REQUEST_JOIN),
        (request.repair, flag::REQUEST_REPAIR),
        (request.gratuitous, flag::REQUEST_GRATUITOUS),
        (request.destination_only, flag::REQUEST_DESTINATION_ONLY),
        (request.destination_sequence.is_none(), flag::REQUEST_UNKNOWN_SEQUENCE),
    ]);
    out.extend_from_slice(&[kind::REQUEST, flags, 0, request.hop_count]);
    out.extend_from_slice(&request.id.to_be_bytes());
    out.extend_from_slice(&request.destination.octets());
    out.extend_from_slice(&request.destination_sequence.unwrap_or_default().0.to_be_bytes());
    out.extend_from_slice(&request.originator.octets());
    out.extend_from_slice(&request.originator_sequence.0.to_be_bytes());
}

fn emit_reply(reply: &RouteReply, out: &mut Vec<u8>) -> Result<(), EmitError> {
    if reply.prefix_size > MAX_PREFIX_SIZE {
        return Err(EmitError::PrefixSize(reply.prefix_size));
    }
    let flags = flags(&[(reply.repair, flag::REPLY_REPAIR), (reply.acknowledge, flag::REPLY_ACKNOWLEDGE)]);
    out.extend_from_slice(&[kind::REPLY, flags, reply.prefix_size, reply.hop_count]);
    out.extend_from_slice(&reply.destination.octets());
    out.extend_from_slice(&reply.destination_sequence.0.to_be_bytes());
    out.extend_from_slice(&reply.originator.octets());
    out.extend_from_slice(&reply.lifetime.to_be_bytes());
    if let Some(interval) = reply.hello_interval {
        out.extend_from_slice(&[extension::HELLO_INTERVAL, 4]);
        out.extend_from_slice(&interval.to_be_bytes());
    }
    Ok(())
}

fn emit_error(error: &RouteError, out: &mut Vec<u8>) -> Result<(), EmitError> {
    let count = error.unreachable.len();
    let octet = u8::try_from(count).ok().filter(|n| *n > 0).ok_or(EmitError::Destinations(count))?;
    out.extend_from_slice(&[kind::ERROR, flags(&[(error.no_delete, flag::ERROR_NO_DELETE)]), 0, octet]);
    for unreachable in &error.unreachable {
        out.extend_from_slice(&unreachable.destination.octets());
        out.extend_from_slice(&unreachable.sequence.0.to_be_bytes());
    }
    Ok(())
}

fn flags(said: &[(bool, u8)]) -> u8 {
    said.iter().filter(|(is_said, _)| *is_said).fold(0, |flags, (_, bit)| flags | bit)
}
