//! The TCP segment (RFC 9293 section 3.1) with the options that this project supports: maximum
//! segment size, window scale and timestamps (RFC 7323), SACK (RFC 2018) and Multipath TCP (RFC
//! 8684, in [`crate::mptcp`]).
//!
//! A [`Segment`] is a parsed value. Simulated links pass it on unchanged; [`crate::ip`] encodes it
//! for a capture, a TUN device or a radio.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

use bytes::Bytes;

use crate::ecn::Ecn;
use crate::mptcp::Mptcp;

/// A sequence number, modulo 2^32. Sequence numbers have no total order (RFC 9293 section 3.4).
///
/// Compare with [`SeqNumber::lt`] and its siblings, which are right while the two numbers are less
/// than 2^31 apart, or with [`SeqNumber::distance`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SeqNumber(pub u32);

impl SeqNumber {
    /// The signed distance from `other` to `self`, in bytes, in -2^31..2^31.
    #[inline]
    pub const fn distance(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0) as i32
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

    /// True if `self` comes after `other`.
    #[inline]
    pub const fn gt(self, other: Self) -> bool {
        self.distance(other) > 0
    }

    /// True if `self` comes after `other` or equals it.
    #[inline]
    pub const fn ge(self, other: Self) -> bool {
        self.distance(other) >= 0
    }

    /// The later of the two.
    #[inline]
    pub const fn max(self, other: Self) -> Self {
        if self.ge(other) { self } else { other }
    }

    /// The earlier of the two.
    #[inline]
    pub const fn min(self, other: Self) -> Self {
        if self.le(other) { self } else { other }
    }
}

impl Add<u32> for SeqNumber {
    type Output = Self;
    #[inline]
    fn add(self, n: u32) -> Self {
        Self(self.0.wrapping_add(n))
    }
}

impl AddAssign<u32> for SeqNumber {
    #[inline]
    fn add_assign(&mut self, n: u32) {
        *self = *self + n;
    }
}

impl Sub<u32> for SeqNumber {
    type Output = Self;
    #[inline]
    fn sub(self, n: u32) -> Self {
        Self(self.0.wrapping_sub(n))
    }
}

impl fmt::Debug for SeqNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for SeqNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The control bits (RFC 9293 section 3.1, with ECE and CWR of RFC 3168), at their positions in
/// byte 13.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// The sender has no more data.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement field is significant.
    pub const ACK: Self = Self(0x10);
    /// The urgent field is significant (accepted and ignored, RFC 6093).
    pub const URG: Self = Self(0x20);
    /// ECN echo.
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced.
    pub const CWR: Self = Self(0x80);

    /// True if all bits of `other` are set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The bits without those of `other`.
    #[inline]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The union of the bits.
    #[inline]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for Flags {
    /// Formats the bits as tcpdump does: `S`, `F`, `R`, `P`, `.` for ACK, `U`, `E`, `W`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = [
            (Self::SYN, 'S'),
            (Self::FIN, 'F'),
            (Self::RST, 'R'),
            (Self::PSH, 'P'),
            (Self::URG, 'U'),
            (Self::ECE, 'E'),
            (Self::CWR, 'W'),
            (Self::ACK, '.'),
        ];
        letters.iter().filter(|(flag, _)| self.contains(*flag)).try_for_each(|(_, c)| write!(f, "{c}"))
    }
}

/// One SACK block: the bytes from `left` up to, not including, `right` have arrived (RFC 2018
/// section 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlock {
    /// First sequence number of the block.
    pub left: SeqNumber,
    /// The sequence number just past the block.
    pub right: SeqNumber,
}

/// At most [`SackBlocks::MAX`] blocks, the most recent first (RFC 2018 section 4).
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct SackBlocks {
    len: u8,
    blocks: [SackBlock; Self::MAX],
}

impl SackBlocks {
    /// Three blocks fit beside timestamps in the 40 bytes of options; further blocks are never sent
    /// or read.
    pub const MAX: usize = 3;

    /// No blocks.
    pub const EMPTY: Self =
        Self { len: 0, blocks: [SackBlock { left: SeqNumber(0), right: SeqNumber(0) }; Self::MAX] };

    /// Appends a block. Returns false and changes nothing if three blocks are present.
    pub fn push(&mut self, block: SackBlock) -> bool {
        let Some(slot) = self.blocks.get_mut(usize::from(self.len)) else { return false };
        *slot = block;
        self.len += 1;
        true
    }

    /// The blocks in the order of the option.
    #[inline]
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.len)]
    }

    /// True without blocks.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl FromIterator<SackBlock> for SackBlocks {
    /// Collects the first [`SackBlocks::MAX`] blocks.
    fn from_iter<I: IntoIterator<Item = SackBlock>>(iter: I) -> Self {
        let mut all = Self::EMPTY;
        for block in iter.into_iter().take(Self::MAX) {
            all.push(block);
        }
        all
    }
}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice().iter().map(|b| (b.left, b.right))).finish()
    }
}

/// The timestamps option (RFC 7323 section 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Timestamps {
    /// TSval: the sender's timestamp clock.
    pub value: u32,
    /// TSecr: the most recent TSval received from the other side.
    pub echo: u32,
}

/// The options that this project reads and writes; others are skipped when read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Maximum segment size in bytes, on SYN only (RFC 9293 section 3.7.1).
    pub mss: Option<u16>,
    /// Window scale shift count 0..=14, on SYN only (RFC 7323 section 2).
    pub window_scale: Option<u8>,
    /// SACK-permitted, on SYN only (RFC 2018 section 2).
    pub sack_permitted: bool,
    /// Timestamps (RFC 7323 section 3).
    pub timestamps: Option<Timestamps>,
    /// SACK blocks (RFC 2018 section 3).
    pub sack: SackBlocks,
}

impl Options {
    /// Length of the options in the header in bytes, padding included; a multiple of 4.
    pub const fn wire_len(&self) -> usize {
        self.bare_len().next_multiple_of(4)
    }

    /// Length of the options in bytes without padding.
    pub(crate) const fn bare_len(&self) -> usize {
        let mut n = 0;
        if self.mss.is_some() {
            n += 4;
        }
        if self.window_scale.is_some() {
            n += 3;
        }
        if self.sack_permitted {
            n += 2;
        }
        if self.timestamps.is_some() {
            n += 10;
        }
        if self.sack.len > 0 {
            n += 2 + 8 * self.sack.len as usize;
        }
        n
    }
}

/// Number of bytes that the 4-bit data offset leaves for options (RFC 9293 section 3.1).
pub const MAX_OPTIONS_LEN: usize = 40;

/// A TCP segment: header, options, payload.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number of the first byte (of the SYN, if set).
    pub seq: SeqNumber,
    /// The next sequence number that the sender expects, if [`Flags::ACK`] is set.
    pub ack: SeqNumber,
    /// Control bits.
    pub flags: Flags,
    /// The window field of the header: scaled unless the segment is a SYN.
    pub window: u16,
    /// Options.
    pub options: Options,
    /// The options of Multipath TCP.
    pub mptcp: Mptcp,
    /// The payload.
    pub payload: Bytes,
    /// The ECN bits of the IP header (RFC 3168 section 5). They are not part of the segment, but
    /// TCP reacts to them.
    pub ecn: Ecn,
}

impl Segment {
    /// SEG.LEN: payload bytes, plus one each for SYN and FIN (RFC 9293 section 3.3.1).
    #[inline]
    pub fn seq_len(&self) -> u32 {
        self.payload.len() as u32
            + u32::from(self.flags.contains(Flags::SYN))
            + u32::from(self.flags.contains(Flags::FIN))
    }

    /// True if the segment only acknowledges; its ECN bits (RFC 3168) do not matter.
    #[inline]
    pub fn is_pure_ack(&self) -> bool {
        let notes = Flags::ECE.with(Flags::CWR);
        self.payload.is_empty() && self.flags.with(notes) == Flags::ACK.with(notes)
    }

    /// The sequence number just past this segment.
    #[inline]
    pub fn seq_end(&self) -> SeqNumber {
        self.seq + self.seq_len()
    }

    /// Length of the segment on the wire in bytes: 20, the options and the payload.
    #[inline]
    pub fn wire_len(&self) -> usize {
        20 + self.options_len() + self.payload.len()
    }

    /// Length of all options in bytes, padding included; a multiple of 4. More than
    /// [`MAX_OPTIONS_LEN`] cannot be encoded.
    #[inline]
    pub fn options_len(&self) -> usize {
        (self.common_len() + self.mptcp.bare_len()).next_multiple_of(4)
    }

    /// Length of the options other than Multipath TCP in bytes. They have their own padding, unless
    /// all options fit only without it.
    pub(crate) fn common_len(&self) -> usize {
        let (padded, bare) = (self.options.wire_len(), self.options.bare_len());
        let multipath = self.mptcp.bare_len();
        let close = bare + multipath;
        if multipath == 0
            || padded + multipath.next_multiple_of(4) <= MAX_OPTIONS_LEN
            || close > MAX_OPTIONS_LEN
        {
            padded
        } else {
            bare
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_numbers_compare_across_the_wrap() {
        let near_end = SeqNumber(u32::MAX - 1);
        assert!(near_end.lt(near_end + 4));
        assert_eq!((near_end + 4).distance(near_end), 4);
        assert_eq!(near_end.max(SeqNumber(2)), SeqNumber(2));
    }

    #[test]
    fn options_pad_to_words() {
        let syn =
            Options { mss: Some(1460), window_scale: Some(7), sack_permitted: true, ..Options::default() };
        assert_eq!(syn.wire_len(), 12);
        let timestamps = Some(Timestamps::default());
        let full = SackBlocks::from_iter([SackBlock::default(); 5]);
        assert_eq!(full.as_slice().len(), 3);
        assert_eq!(Options { timestamps, sack: full, ..Options::default() }.wire_len(), 36);
    }
}
