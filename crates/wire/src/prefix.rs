//! Prefixes of IP addresses (RFC 4291 section 2.3, RFC 4632 section 3.1).

use core::fmt;
use core::net::IpAddr;
use core::str::FromStr;

/// A prefix, as in `fd00:1::/64` or `10.1.0.0/16`. An address without a length is a prefix that
/// covers this address alone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

/// Text that is not a prefix.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrefixError {
    /// The text before the slash is not an address.
    #[error("invalid address")]
    Address,
    /// The length is not a number, or exceeds 32 for IPv4 or 128 for IPv6.
    #[error("invalid prefix length")]
    Length,
    /// Such a prefix would not cover what its author probably meant.
    #[error("the address has bits set beyond the prefix")]
    Bits,
}

impl Prefix {
    /// Whether the prefix covers the address. Addresses of the other family are not covered.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                shifted(u128::from(own.to_bits() ^ other.to_bits()), 32 - self.length) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                shifted(own.to_bits() ^ other.to_bits(), 128 - self.length) == 0
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }

    /// Length in bits.
    pub fn length(&self) -> u8 {
        self.length
    }

    /// Whether it is a prefix of IPv4 addresses.
    pub fn is_ipv4(&self) -> bool {
        self.address.is_ipv4()
    }

    /// Whether both prefixes cover an address.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.contains(other.address) || other.contains(self.address)
    }
}

/// The bits without the last `places`.
fn shifted(bits: u128, places: u8) -> u128 {
    bits.checked_shr(places.into()).unwrap_or(0)
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let (address, length) = match text.split_once('/') {
            None => (text, None),
            Some((address, length)) => (address, Some(length)),
        };
        let address: IpAddr = address.parse().map_err(|_| PrefixError::Address)?;
        let (width, bits) = match address {
            IpAddr::V4(address) => (32, u128::from(address.to_bits())),
            IpAddr::V6(address) => (128, address.to_bits()),
        };
        let length = match length {
            None => width,
            Some(length) => {
                length.parse().ok().filter(|length| *length <= width).ok_or(PrefixError::Length)?
            }
        };
        let places = width - length;
        if shifted(bits, places).checked_shl(places.into()).unwrap_or(0) != bits {
            return Err(PrefixError::Bits);
        }
        Ok(Self { address, length })
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap()
    }

    #[test]
    fn a_prefix_covers_the_addresses_that_begin_with_it() {
        for (text, inside, outside) in [
            ("10.1.0.0/16", &["10.1.0.0", "10.1.255.255"][..], &["10.2.0.0", "fd00::1", "::10.1.0.0"][..]),
            ("10.1.2.3", &["10.1.2.3"], &["10.1.2.2"]),
            ("0.0.0.0/0", &["0.0.0.0", "255.255.255.255"], &["::"]),
            ("fd00:1::/32", &["fd00:1::", "fd00:1:ffff::1"], &["fd00:2::", "10.0.0.1"]),
            ("fd00::7/128", &["fd00::7"], &["fd00::6"]),
            ("::/0", &["::", "ffff::"], &["0.0.0.0"]),
        ] {
            inside.iter().for_each(|a| assert!(prefix(text).contains(a.parse().unwrap()), "{text} {a}"));
            outside.iter().for_each(|a| assert!(!prefix(text).contains(a.parse().unwrap()), "{text} {a}"));
        }
        assert_eq!(prefix("10.1.2.3").to_string(), "10.1.2.3/32");
        assert!(prefix("10.0.0.0/8").overlaps(&prefix("10.9.0.0/16")));
        assert!(prefix("10.9.0.0/16").overlaps(&prefix("10.0.0.0/8")));
        assert!(!prefix("10.8.0.0/16").overlaps(&prefix("10.9.0.0/16")));
    }

    #[test]
    fn other_text_is_refused() {
        let error = |text: &str| text.parse::<Prefix>().unwrap_err();
        assert_eq!(["", "10.0.0", "[::]/0", "x/8"].map(error), [PrefixError::Address; 4]);
        assert_eq!(["10.0.0.0/33", "::/129", "::/-1", "::/"].map(error), [PrefixError::Length; 4]);
        assert_eq!(["10.1.0.0/8", "fd00::1/64", "0.0.0.1/0", "::1/0"].map(error), [PrefixError::Bits; 4]);
    }
}
