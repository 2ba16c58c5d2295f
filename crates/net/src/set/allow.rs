//! Relay rules of a gateway: prefixes and ports. A destination that no rule permits is forbidden.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::NODE_PORT;

/// One rule: `PREFIX[:PORTS]`, as in `10.0.0.0/8`, `10.1.2.3:47200`, `[fd00::]/16`,
/// `[fd00::/16]:47200-47210`, `fd00::/16`. A prefix without a length is a single address. Without
/// ports, the rule permits [`NODE_PORT`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Allow {
    address: IpAddr,
    length: u8,
    ports: RangeInclusive<u16>,
}

impl Allow {
    /// True if the rule permits this destination. Unspecified and multicast addresses are never
    /// permitted.
    pub fn permits(&self, to: SocketAddr) -> bool {
        let ip = to.ip().to_canonical();
        let somebody = !ip.is_unspecified() && !ip.is_multicast();
        let inside = match (self.address, ip) {
            (IpAddr::V4(prefix), IpAddr::V4(ip)) => {
                same(u128::from(prefix.to_bits()), u128::from(ip.to_bits()), 32, self.length)
            }
            (IpAddr::V6(prefix), IpAddr::V6(ip)) => same(prefix.to_bits(), ip.to_bits(), 128, self.length),
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        };
        somebody && inside && self.ports.contains(&to.port())
    }
}

/// True if the first `length` of `width` bits are equal.
fn same(a: u128, b: u128, width: u32, length: u8) -> bool {
    let rest = width - u32::from(length).min(width);
    (a ^ b).checked_shr(rest).is_none_or(|differing| differing == 0)
}

/// A rule that cannot be parsed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{text}` is not a rule: {what}; expected PREFIX[:PORTS], as in 10.0.0.0/8:47200 or [fd00::/16]:47200-47210"
)]
pub struct BadAllow {
    text: String,
    what: &'static str,
}

impl FromStr for Allow {
    type Err = BadAllow;

    fn from_str(text: &str) -> Result<Self, BadAllow> {
        let bad = |what| BadAllow { text: text.to_owned(), what };
        let (prefix, ports) = split(text).ok_or_else(|| bad("a bracket is missing"))?;
        let (address, length) = match prefix.split_once('/') {
            None => (prefix, None),
            Some((address, length)) => (address, Some(length)),
        };
        let address: IpAddr = address
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse()
            .map_err(|_| bad("invalid address"))?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let length = match length {
            None => most,
            Some(length) => {
                length.parse().ok().filter(|n| *n <= most).ok_or_else(|| bad("invalid prefix length"))?
            }
        };
        if !within(address, length, most) {
            return Err(bad("the address has bits set beyond the prefix"));
        }
        let ports = match ports {
            None => NODE_PORT..=NODE_PORT,
            Some(ports) => {
                let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
                match (first.parse(), last.parse()) {
                    (Ok(first), Ok(last)) if first <= last && first > 0 => first..=last,
                    _ => return Err(bad("invalid ports")),
                }
            }
        };
        Ok(Self { address, length, ports })
    }
}

/// The prefix, and the ports if present.
fn split(text: &str) -> Option<(&str, Option<&str>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (inside, after) = rest.split_once(']')?;
        return match after.split_once(':') {
            // [fd00::]/16:47200
            Some((length, ports)) if !length.is_empty() => {
                Some((&text[..text.len() - ports.len() - 1], Some(ports)))
            }
            Some((_, ports)) => Some((inside, Some(ports))),
            None => Some((text, None)),
        };
    }
    Some(match text.matches(':').count() {
        1 => text.split_once(':').map(|(prefix, ports)| (prefix, Some(ports)))?,
        _ => (text, None),
    })
}

/// True if no bit of the address lies past the prefix. A rule with such bits would not match what
/// its author probably meant.
fn within(address: IpAddr, length: u8, width: u8) -> bool {
    let bits = match address {
        IpAddr::V4(ip) => u128::from(ip.to_bits()),
        IpAddr::V6(ip) => ip.to_bits(),
    };
    let rest = u32::from(width - length);
    rest >= 128 && bits == 0 || rest < 128 && bits & ((1 << rest) - 1) == 0
}

impl fmt::Display for Allow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, length, ports } = self;
        match address {
            IpAddr::V4(ip) => write!(f, "{ip}/{length}")?,
            IpAddr::V6(ip) => write!(f, "[{ip}/{length}]")?,
        }
        match ports.start() == ports.end() {
            true => write!(f, ":{}", ports.start()),
            false => write!(f, ":{}-{}", ports.start(), ports.end()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(rule: &str, to: &str) -> bool {
        rule.parse::<Allow>().expect("a rule").permits(to.parse().expect("an address"))
    }

    #[test]
    fn a_rule_permits_its_prefix_and_ports_and_nothing_else() {
        assert!(permits("10.0.0.0/8", "10.255.0.1:47200"));
        assert!(!permits("10.0.0.0/8", "11.0.0.1:47200"));
        assert!(!permits("10.0.0.0/8", "10.0.0.1:22"), "the node's port alone, unless it is said");
        assert!(permits("10.0.0.7:1-65535", "10.0.0.7:22"));
        assert!(!permits("10.0.0.7:1-65535", "10.0.0.6:22"));
        for rule in ["fd00::/16", "[fd00::/16]:47200", "[fd00::]/16", "[fd00::]/16:47200"] {
            assert!(permits(rule, "[fd00:1::9]:47200"), "{rule}");
            assert!(!permits(rule, "[fe80::9]:47200"), "{rule}");
            assert!(!permits(rule, "[fd00:1::9]:47201"), "{rule}");
        }
        assert!(permits("::1", "[::1]:47200") && !permits("::1", "[::2]:47200"));
    }

    #[test]
    fn an_address_in_disguise_or_of_nobody_does_not_slip_through() {
        assert!(permits("10.0.0.0/8", "[::ffff:10.0.0.1]:47200"), "it is that address");
        assert!(!permits("::/0", "[::ffff:10.0.0.1]:47200"), "it is no IPv6 address");
        assert!(!permits("0.0.0.0/0", "0.0.0.0:47200"), "which is this host");
        assert!(!permits("::/0", "[::]:47200"));
        assert!(!permits("::/0", "[ff02::1]:47200"));
        assert!(permits("0.0.0.0/0", "192.0.2.1:47200") && permits("::/0", "[2001:db8::1]:47200"));
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_its_reason() {
        for rule in [
            "",
            "node",
            "10.0.0.0/33",
            "10.0.0.1/8",
            "[fd00::/16",
            "10.0.0.0/8:0",
            "10.0.0.1:9-3",
            "fd00::1/16",
            "::/129",
        ] {
            assert!(rule.parse::<Allow>().is_err(), "{rule}");
        }
        for rule in ["10.0.0.0/8:47200", "[fd00::/16]:1-9"] {
            assert_eq!(rule.parse::<Allow>().map(|rule| rule.to_string()).as_deref(), Ok(rule));
        }
    }
}
