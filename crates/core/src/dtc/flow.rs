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
    ends: [(IpAddr, u16); 2],
}

impl Key {
    /// A key of no connection.
    pub(super) const NONE: Self = Self { ends: [(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0); 2] };

    /// The connection and direction of a segment.
    #[inline]
    pub(super) fn of(flow: FlowKey, segment: &Segment) -> (Self, Way) {
        let (source, destination) = ((flow.source, segment.src_port), (flow.destination, segment.dst_port));
        if source <= destination {
            (Self { ends: [source, destination] }, Way::FromFirst)
        } else {
            (Self { ends: [destination, source] }, Way::FromSecond)
        }
    }

    /// The addresses of a segment in direction `way`.
    pub(super) fn flow(&self, way: Way) -> FlowKey {
        FlowKey { source: self.ends[way as usize].0, destination: self.ends[way.back() as usize].0 }
    }

    /// Source and destination port of a segment in direction `way`.
    pub(super) fn ports(&self, way: Way) -> (u16, u16) {
        (self.ends[way as usize].1, self.ends[way.back() as usize].1)
    }

    /// A hash of the key, which saves most comparisons. Collisions only cost time, at most one
    /// comparison per stored connection.
    #[inline]
    pub(super) fn tag(&self) -> u32 {
        let mix = |(address, port): (IpAddr, u16)| {
            let word = match address {
                IpAddr::V4(v4) => u64::from(v4.to_bits()),
                IpAddr::V6(v6) => v6.to_bits() as u64 ^ ((v6.to_bits() >> 64) as u64).rotate_left(29),
            };
            (word ^ (u64::from(port) << 48)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        };
        let mixed = mix(self.ends[0]).rotate_left(17) ^ mix(self.ends[1]);
        (mixed >> 32) as u32 ^ mixed as u32
    }
}
