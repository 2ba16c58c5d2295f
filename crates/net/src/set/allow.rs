//! Relay rules of a gateway: prefixes and ports. A destination that no rule permits is forbidden.

use std::fmt;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use anabranch_wire::prefix::{Prefix, PrefixError};

use super::NODE_PORT;

/// One rule: `PREFIX[:PORTS]`, as in `10.0.0.0/8`, `10.1.2.3:47200`, `[fd00::]/16`,
/// `[fd00::/16]:47200-47210`, `fd00::/16`. A prefix without a length is a single address. Without
/// ports, the rule permits [`NODE_PORT`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Allow {
    prefix: Prefix,
    ports: RangeInclusive<u16>,
}

impl Allow {
    /// True if the rule permits this destination. Unspecified and multicast addresses are never
    /// permitted.
    pub fn permits(&self, to: SocketAddr) -> bool {
        let ip = to.ip().to_canonical();
        let somebody = !ip.is_unspecified() && !ip.is_multicast();
        somebody && self.prefix.contains(ip) && self.ports.contains(&to.port())
    }
}

/// A rule that cannot be parsed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{text}` is not a rule: {what}; expected PREFIX[:PORTS], as in 10.0.0.0/8:47200 or [fd00::/16]:47200-47210"
)]
pub struct BadAllow {
    text: String,
    what: String,
}

impl FromStr for Allow {
    type Err = BadAllow;

    fn from_str(text: &str) -> Result<Self, BadAllow> {
        let bad = |what: &dyn fmt::Display| BadAllow { text: text.to_owned(), what: what.to_string() };
        let (prefix, ports) = split(text).ok_or_else(|| bad(&"a bracket is missing"))?;
        let bare = match prefix.strip_prefix('[') {
            None => prefix.to_owned(),
            // The length is inside of the brackets or after them.
            Some(rest) => match rest.split_once(']') {
                Some((inside, after)) if after.is_empty() || after.starts_with('/') => {
                    format!("{inside}{after}")
                }
                Some(_) => return Err(bad(&"text after a bracket")),
                None => rest.to_owned(),
            },
        };
        let prefix = bare.parse().map_err(|error: PrefixError| bad(&error))?;
        let ports = match ports {
            None => NODE_PORT..=NODE_PORT,
            Some(ports) => {
                let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
                match (first.parse(), last.parse()) {
                    (Ok(first), Ok(last)) if first <= last && first > 0 => first..=last,
                    _ => return Err(bad(&"invalid ports")),
                }
            }
        };
        Ok(Self { prefix, ports })
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

impl fmt::Display for Allow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { prefix, ports } = self;
        match prefix.is_ipv4() {
            true => write!(f, "{prefix}")?,
            false => write!(f, "[{prefix}]")?,
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
            "[fd00::/1]6",
            "[fd00::1]2/128",
            "[[fd00::]]/16",
            "fd00::]/16",
        ] {
            assert!(rule.parse::<Allow>().is_err(), "{rule}");
        }
        for rule in ["10.0.0.0/8:47200", "[fd00::/16]:1-9"] {
            assert_eq!(rule.parse::<Allow>().map(|rule| rule.to_string()).as_deref(), Ok(rule));
        }
    }
}
