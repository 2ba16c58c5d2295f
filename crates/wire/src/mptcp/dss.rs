//! The data sequence signal: the position of data in the connection, and the data-level
//! acknowledgement (RFC 8684 section 3.3).

use core::fmt;
use core::ops::{Add, Sub};

/// A data sequence number (RFC 8684 section 3.3): the position of a byte in the connection, modulo
/// 2^64.
///
/// Data sequence numbers have no total order; compare them by distance, as with
/// [`crate::tcp::SeqNumber`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DataSeqNumber(pub u64);

impl DataSeqNumber {
    /// The signed distance from `other` to `self`, in bytes, in -2^63..2^63.
    #[inline]
    pub const fn distance(self, other: Self) -> i64 {
        self.0.wrapping_sub(other.0) as i64
    }

    /// True if `self` comes before `other`.
    #[inline]
    pub const fn lt(self, other: Self) -> bool {
        self.distance(other) < 0
    }

    /// True if `self` comes before `other` or equals it.
    #[inline]
    pub const fn le(self, other: Self) -> bool {
        self.distance(other) <= 0
    }

    /// The later of the two.
    #[inline]
    pub const fn max(self, other: Self) -> Self {
        if self.lt(other) { other } else { self }
    }
}

impl Add<u64> for DataSeqNumber {
    type Output = Self;
    #[inline]
    fn add(self, n: u64) -> Self {
        Self(self.0.wrapping_add(n))
    }
}

impl Sub<u64> for DataSeqNumber {
    type Output = Self;
    #[inline]
    fn sub(self, n: u64) -> Self {
        Self(self.0.wrapping_sub(n))
    }
}

impl fmt::Debug for DataSeqNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for DataSeqNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A data sequence number as encoded in the option: all 64 bits, or the lower half (RFC 8684
/// section 3.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WireDsn {
    /// The lower 32 bits; the receiver infers the upper 32 bits.
    Short(u32),
    /// All 64 bits.
    Long(DataSeqNumber),
}

impl WireDsn {
    /// The full number: of those that match, the one closest to `near`.
    #[inline]
    pub const fn expand(self, near: DataSeqNumber) -> DataSeqNumber {
        match self {
            Self::Long(number) => number,
            Self::Short(low) => {
                let step = low.wrapping_sub(near.0 as u32) as i32;
                DataSeqNumber(near.0.wrapping_add(step as i64 as u64))
            }
        }
    }

    const fn octets(self) -> usize {
        match self {
            Self::Short(_) => 4,
            Self::Long(_) => 8,
        }
    }
}

/// A mapping of subflow bytes to data bytes (RFC 8684 section 3.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Mapping {
    /// Data sequence number of the first byte.
    pub dsn: WireDsn,
    /// Subflow sequence number of the first byte, relative to the initial sequence number: the
    /// first byte of a subflow is 1. 0 for a DATA_FIN without data.
    pub subflow_seq: u32,
    /// Number of bytes mapped, the DATA_FIN included; 0 is an infinite mapping (RFC 8684 section
    /// 3.7).
    pub len: u16,
    /// Checksum over data and mapping, if negotiated.
    pub checksum: Option<u16>,
}

/// The data sequence signal (RFC 8684 section 3.3, figure 9).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Dss {
    // Packed by hand so that a segment grows by no more than 32 bytes. The bool has spare values,
    // in which the compiler stores the variant of the enum around this struct.
    data_ack: u64,
    dsn: u64,
    subflow_seq: u32,
    len: u16,
    checksum: u16,
    pub(super) form: u8,
    pub(super) data_fin: bool,
}

impl Dss {
    pub(super) const ACK: u8 = 0x01;
    pub(super) const ACK_LONG: u8 = 0x02;
    pub(super) const MAPPING: u8 = 0x04;
    pub(super) const DSN_LONG: u8 = 0x08;
    pub(super) const CHECKSUM: u8 = 0x80;

    /// Adds a data-level acknowledgement: all data before `number` has arrived.
    #[inline]
    #[must_use]
    pub const fn with_data_ack(mut self, number: WireDsn) -> Self {
        self.form &= !(Self::ACK | Self::ACK_LONG);
        match number {
            WireDsn::Short(low) => {
                self.data_ack = low as u64;
                self.form |= Self::ACK;
            }
            WireDsn::Long(whole) => {
                self.data_ack = whole.0;
                self.form |= Self::ACK | Self::ACK_LONG;
            }
        }
        self
    }

    /// Adds a mapping of the payload.
    #[inline]
    #[must_use]
    pub const fn with_mapping(mut self, mapping: Mapping) -> Self {
        self.form = (self.form & (Self::ACK | Self::ACK_LONG)) | Self::MAPPING;
        match mapping.dsn {
            WireDsn::Short(low) => self.dsn = low as u64,
            WireDsn::Long(whole) => {
                self.dsn = whole.0;
                self.form |= Self::DSN_LONG;
            }
        }
        self.subflow_seq = mapping.subflow_seq;
        self.len = mapping.len;
        self.checksum = 0;
        if let Some(checksum) = mapping.checksum {
            self.checksum = checksum;
            self.form |= Self::CHECKSUM;
        }
        self
    }

    /// Adds a DATA_FIN, which is the last byte mapped (RFC 8684 section 3.3.3).
    #[inline]
    #[must_use]
    pub const fn with_data_fin(mut self) -> Self {
        self.data_fin = true;
        self
    }

    /// The data-level acknowledgement.
    #[inline]
    pub const fn data_ack(&self) -> Option<WireDsn> {
        match self.form & (Self::ACK | Self::ACK_LONG) {
            0 => None,
            Self::ACK => Some(WireDsn::Short(self.data_ack as u32)),
            _ => Some(WireDsn::Long(DataSeqNumber(self.data_ack))),
        }
    }

    /// The mapping.
    #[inline]
    pub const fn mapping(&self) -> Option<Mapping> {
        if self.form & Self::MAPPING == 0 {
            return None;
        }
        let long = self.form & Self::DSN_LONG != 0;
        let dsn = if long { WireDsn::Long(DataSeqNumber(self.dsn)) } else { WireDsn::Short(self.dsn as u32) };
        let checksum = if self.form & Self::CHECKSUM != 0 { Some(self.checksum) } else { None };
        Some(Mapping { dsn, subflow_seq: self.subflow_seq, len: self.len, checksum })
    }

    /// True if the data stream ends with the mapping.
    #[inline]
    pub const fn data_fin(&self) -> bool {
        self.data_fin
    }

    /// Length of the option in bytes.
    pub const fn wire_len(&self) -> usize {
        let mut n = 4;
        if let Some(ack) = self.data_ack() {
            n += ack.octets();
        }
        if let Some(mapping) = self.mapping() {
            n += mapping.dsn.octets() + 6;
            if mapping.checksum.is_some() {
                n += 2;
            }
        }
        n
    }
}

impl fmt::Debug for Dss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dss")
            .field("data_ack", &self.data_ack())
            .field("mapping", &self.mapping())
            .field("data_fin", &self.data_fin)
            .finish()
    }
}
