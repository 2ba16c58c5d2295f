//! Records: what one write of RDCA carries.

use alloc::vec::Vec;

use bytes::Bytes;

/// Length of a record's header in bytes: number and time of creation.
pub const RECORD_HEADER: usize = 10;

/// A record as RDCA carries it. `number` has the low 32 bits of its number, and `created` the time
/// of its creation as [`Record`] has it.
pub fn encode(number: u32, created: u64, payload: &[u8]) -> Bytes {
    let mut octets = Vec::with_capacity(RECORD_HEADER + payload.len());
    octets.extend_from_slice(&number.to_be_bytes());
    octets.extend_from_slice(&created.min((1 << 48) - 1).to_be_bytes()[2..]);
    octets.extend_from_slice(payload);
    octets.into()
}

/// A record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// The low 32 bits of its number within the run.
    pub number: u32,
    /// Time of creation in milliseconds since 1970-01-01 UTC, below 2^48; 0 if unknown.
    pub created: u64,
    /// The application's bytes.
    pub payload: Bytes,
}

impl Record {
    /// Parses a record. `None` if it is shorter than its header.
    pub fn decode(octets: &Bytes) -> Option<Self> {
        let head: &[u8; RECORD_HEADER] = octets.first_chunk()?;
        let [a, b, c, d, time @ ..] = *head;
        let created = time.iter().fold(0, |time, octet| time << 8 | u64::from(*octet));
        Some(Self {
            number: u32::from_be_bytes([a, b, c, d]),
            created,
            payload: octets.slice(RECORD_HEADER..),
        })
    }

    /// The full number, if it is `expected` or less than 2^31 above. `None` for a record that came
    /// before.
    pub fn number_near(&self, expected: u64) -> Option<u64> {
        let ahead = self.number.wrapping_sub(expected as u32) as i32;
        u64::try_from(ahead).ok().map(|ahead| expected.saturating_add(ahead))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_and_numbers_go_on_after_two_to_the_32() {
        let record = Record { number: 7, created: 0x1234_5678_9abc, payload: Bytes::from_static(b"x") };
        let octets = encode(record.number, record.created, &record.payload);
        assert_eq!(octets[..], [0, 0, 0, 7, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, b'x']);
        assert_eq!(Record::decode(&octets), Some(record.clone()));
        assert_eq!(Record::decode(&octets.slice(..9)), None);
        assert_eq!(record.number_near((1 << 32) - 1), Some((1 << 32) + 7));
        assert_eq!((record.number_near(7), record.number_near(8)), (Some(7), None));
    }
}
