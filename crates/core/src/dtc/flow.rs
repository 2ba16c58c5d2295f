//! Identification of a segment's connection.

use core::net::{IpAddr, Ipv4Addr};

use crate::segment::Segment;

/// The addresses of a segment's IP header; the segment itself contains the ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowKey {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
}

/// The direction of a segment within its connection: from the first or the second end of [`Key`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    FromFirst = 0,
    FromSecond = 1,
}

impl Way {
    /// The opposite direction.
    pub(super) const fn back(self) -> Self {
        match self {
            Self::FromFirst => Self::FromSecond,
            Self::FromSecond => Self::FromFirst,
        }
    }
}

/// A connection, identified equally from both sides: the smaller end comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Key {
    addresses: [IpAddr; 2],
    ports: [u16; 2],
}

impl Key {
    /// A key of no connection.
    pub(super) const NONE: Self = Self { addresses: [IpAddr::V4(Ipv4Addr::UNSPECIFIED); 2], ports: [0; 2] };

    /// The connection and direction of a segment.
    #[inline]
    pub(super) fn of(flow: FlowKey, segment: &Segment) -> (Self, Way) {
        let (source, destination) = ((flow.source, segment.src_port), (flow.destination, segment.dst_port));
        let (first, second, way) = match source <= destination {
            true => (source, destination, Way::FromFirst),
            false => (destination, source, Way::FromSecond),
        };
        (Self { addresses: [first.0, second.0], ports: [first.1, second.1] }, way)
    }

    /// The addresses of a segment in direction `way`.
    pub(super) fn flow(&self, way: Way) -> FlowKey {
        FlowKey { source: self.addresses[way as usize], destination: self.addresses[way.back() as usize] }
    }

    /// Source and destination port of a segment in direction `way`.
    pub(super) fn ports(&self, way: Way) -> (u16, u16) {
        (self.ports[way as usize], self.ports[way.back() as usize])
    }

    /// A hash of the key, which saves most comparisons. Collisions only cost time, at most one
    /// comparison per stored connection.
    #[inline]
    pub(super) fn tag(&self) -> u32 {
        let mix = |end: usize| {
            let word = match self.addresses[end] {
                IpAddr::V4(v4) => u64::from(v4.to_bits()),
                IpAddr::V6(v6) => v6.to_bits() as u64 ^ ((v6.to_bits() >> 64) as u64).rotate_left(29),
            };
            (word ^ (u64::from(self.ports[end]) << 48)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        };
        let mixed = mix(0).rotate_left(17) ^ mix(1);
        (mixed >> 32) as u32 ^ mixed as u32
    }
}
