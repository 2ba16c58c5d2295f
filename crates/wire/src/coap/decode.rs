//! The parser of messages.

use alloc::vec::Vec;

use bytes::Bytes;

use super::{Code, EXTENDED_ONE, EXTENDED_TWO, MARKER, Message, Token, Type};
use crate::reader::Reader;

/// Why a datagram is not a message. A message format error (RFC 7252 section 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DecodeError {
    /// The datagram ends within a field.
    #[error("the datagram ends within {0}")]
    Truncated(&'static str),
    /// The version is not 1. Such a message is ignored.
    #[error("version {0} of CoAP, expected 1")]
    Version(u8),
    /// The token length is 9 or more.
    #[error("a token of {0} bytes, expected at most 8")]
    Token(u8),
    /// An empty message has bytes after its message ID (section 4.1).
    #[error("an empty message has further bytes")]
    NotEmpty,
    /// A delta or length has the reserved value 15.
    #[error("an option with the reserved value 15")]
    Reserved,
    /// The number of an option exceeds 65,535.
    #[error("the number of an option is above 65535")]
    Number,
    /// A payload marker without a payload.
    #[error("a payload marker without a payload")]
    NoPayload,
}

/// Parses one datagram. Option values and payload share its memory.
///
/// # Errors
///
/// If the datagram is not a message of version 1.
pub fn decode(datagram: &Bytes) -> Result<Message, DecodeError> {
    use DecodeError::Truncated;
    let mut reader = Reader::new(datagram);
    let first = reader.u8().ok_or(Truncated("the header"))?;
    if first >> 6 != 1 {
        return Err(DecodeError::Version(first >> 6));
    }
    let kind = Type::ALL[usize::from(first >> 4 & 3)];
    let code = Code(reader.u8().ok_or(Truncated("the header"))?);
    let id = reader.u16().ok_or(Truncated("the header"))?;
    let token_len = first & 15;
    if code == Code::EMPTY && (token_len > 0 || !reader.rest().is_empty()) {
        return Err(DecodeError::NotEmpty);
    }
    let token = reader.slice(token_len.into()).ok_or(Truncated("the token"));
    let token = Token::new(token?).ok_or(DecodeError::Token(token_len))?;
    let (mut options, mut number) = (Vec::new(), 0u16);
    while let Some(octet) = reader.u8() {
        if octet == MARKER {
            let payload = datagram.slice(reader.at()..);
            if payload.is_empty() {
                return Err(DecodeError::NoPayload);
            }
            return Ok(Message { kind, code, id, token, options, payload });
        }
        let delta = extended(octet >> 4, &mut reader)?;
        let len = extended(octet & 15, &mut reader)? as usize;
        number = u16::try_from(u32::from(number) + delta).map_err(|_| DecodeError::Number)?;
        let start = reader.at();
        reader.slice(len).ok_or(Truncated("an option"))?;
        options.push((number, datagram.slice(start..start + len)));
    }
    Ok(Message { kind, code, id, token, options, payload: Bytes::new() })
}

/// A delta or length: the nibble and its extended bytes.
fn extended(nibble: u8, reader: &mut Reader<'_>) -> Result<u32, DecodeError> {
    let truncated = DecodeError::Truncated("an option");
    match nibble {
        13 => Ok(u32::from(reader.u8().ok_or(truncated)?) + EXTENDED_ONE),
        14 => Ok(u32::from(reader.u16().ok_or(truncated)?) + EXTENDED_TWO),
        15 => Err(DecodeError::Reserved),
        value => Ok(value.into()),
    }
}
