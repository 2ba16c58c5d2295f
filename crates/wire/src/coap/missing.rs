//! The payload of the content format application/missing-blocks+cbor-seq (RFC 9177 section 5): a
//! CBOR sequence (RFC 8742) of unsigned integers (RFC 8949 section 3.1), the numbers of missing
//! blocks in ascending order.

use alloc::vec::Vec;

use crate::reader::Reader;

/// Encodes the numbers of blocks, each in as few bytes as possible, until the next one would exceed
/// `room` bytes. Returns the bytes and the number of blocks in them.
pub fn encode(blocks: impl IntoIterator<Item = u32>, room: usize) -> (Vec<u8>, usize) {
    let (mut out, mut count) = (Vec::new(), 0);
    for block in blocks {
        let before = out.len();
        match block {
            0..24 => out.push(block as u8),
            24..0x100 => out.extend([24, block as u8]),
            0x100..0x1_0000 => {
                out.push(25);
                out.extend((block as u16).to_be_bytes());
            }
            _ => {
                out.push(26);
                out.extend(block.to_be_bytes());
            }
        }
        if out.len() > room {
            out.truncate(before);
            break;
        }
        count += 1;
    }
    (out, count)
}

/// Parses the numbers of blocks. `None` if the payload is empty, has something else than unsigned
/// integers of at most 32 bits, or is not strictly ascending: a client drops such a list.
pub fn decode(payload: &[u8]) -> Option<Vec<u32>> {
    let (mut reader, mut blocks) = (Reader::new(payload), Vec::new());
    while let Some(head) = reader.u8() {
        // Major type 0 has the argument's length in the lower five bits.
        let block = match head {
            0..24 => head.into(),
            24 => reader.u8()?.into(),
            25 => reader.u16()?.into(),
            26 => u32::from_be_bytes(reader.take()?),
            27 => u32::try_from(u64::from_be_bytes(reader.take()?)).ok()?,
            _ => return None,
        };
        if blocks.last().is_some_and(|last| *last >= block) {
            return None;
        }
        blocks.push(block);
    }
    (!blocks.is_empty()).then_some(blocks)
}
