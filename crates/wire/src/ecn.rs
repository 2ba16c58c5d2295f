//! Explicit congestion notification in the IP header (RFC 3168 section 5).

/// The two ECN bits of the traffic class (IPv6) or of the type of service (IPv4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Ecn {
    /// Not-ECT: the transport does not support ECN.
    #[default]
    NotEct,
    /// ECT(1): the transport supports ECN.
    Ect1,
    /// ECT(0): the transport supports ECN. Senders prefer it (RFC 3168 section 5).
    Ect0,
    /// CE: congestion experienced.
    Ce,
}

impl Ecn {
    /// The codepoint in `traffic_class`.
    #[inline]
    pub const fn of(traffic_class: u8) -> Self {
        match traffic_class & BITS {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Returns `traffic_class` with its codepoint replaced by this one.
    #[inline]
    pub const fn within(self, traffic_class: u8) -> u8 {
        traffic_class & !BITS | self as u8
    }

    /// True if a router may mark the packet instead of dropping it.
    #[inline]
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

const BITS: u8 = 0b11;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codepoints_lie_in_the_low_bits() {
        // RFC 3168 figure 1.
        let codes = [(0, Ecn::NotEct), (1, Ecn::Ect1), (2, Ecn::Ect0), (3, Ecn::Ce)];
        for (bits, ecn) in codes {
            assert_eq!(Ecn::of(0b1011_1000 | bits), ecn);
            assert_eq!(ecn.within(0b1011_1011), 0b1011_1000 | bits);
            assert_eq!(ecn.is_capable(), bits != 0);
        }
    }
}
