//! Addresses and routing tables that nothing else on this host uses.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::RoutesError;
use crate::commands::Family;
use crate::interfaces::{DEFAULT, json};

/// Number of paths with addresses.
pub(super) const SLOTS: u8 = 254;

/// Addresses of the hosts behind the devices. No packet leaves this host with them.
#[derive(Debug)]
pub(super) struct Pool {
    v4: Ipv4Addr,
    v6: Ipv6Addr,
    /// Tables that others use.
    tables: BTreeSet<u32>,
}

impl Pool {
    /// Looks at all routes and rules.
    pub(super) fn find() -> Result<Self, RoutesError> {
        let (mut prefixes, mut tables) = (Vec::new(), BTreeSet::new());
        for family in Family::BOTH {
            let list = |words: &[&str]| json(&[&[family.option()], words].concat());
            // A kernel without IPv6 has no such routes.
            let (routes, rules) = match (list(&["route", "show", "table", "all"]), list(&["rule", "show"])) {
                (Ok(routes), Ok(rules)) => (routes, rules),
                _ if family == Family::V6 => continue,
                (routes, rules) => (routes?, rules?),
            };
            let destinations = routes.iter().filter_map(|route| route["dst"].as_str());
            let destinations = destinations.filter(|to| *to != DEFAULT).filter_map(prefix);
            prefixes.extend(destinations.map(|prefix| (family, prefix)));
            let named = routes.iter().chain(&rules).filter_map(|entry| entry["table"].as_str());
            tables.extend(named.filter_map(|table| table.parse::<u32>().ok()));
        }
        let is_free = |base: IpAddr, len| {
            let is_own = |(family, _): &&(Family, _)| *family == Family::of(base);
            let own = (bits(base), len);
            !prefixes.iter().filter(is_own).any(|(_, other)| overlap(own, *other))
        };
        let v4 = candidates_v4().find(|base| is_free((*base).into(), 24)).ok_or(RoutesError::Full)?;
        let v6 = candidates_v6().find(|base| is_free((*base).into(), 64)).ok_or(RoutesError::Full)?;
        Ok(Self { v4, v6, tables })
    }

    pub(super) fn v4(&self, slot: u8) -> Ipv4Addr {
        (self.v4.to_bits() + u32::from(slot)).into()
    }

    pub(super) fn v6(&self, slot: u8) -> Ipv6Addr {
        (self.v6.to_bits() + u128::from(slot)).into()
    }

    /// Whether nothing else uses the table of this path.
    pub(super) fn has_table(&self, slot: u8) -> bool {
        !self.tables.contains(&table(slot))
    }
}

/// The routing table of a path.
pub(super) fn table(slot: u8) -> u32 {
    TABLES + u32::from(slot)
}

/// Networks of /24. First those for benchmarks (RFC 2544 appendix C.2.2), which no network has that
/// forwards to others, then the private ones (RFC 1918).
fn candidates_v4() -> impl Iterator<Item = Ipv4Addr> {
    let of = |base: [u8; 4], number: u32| {
        (0..number).map(move |i| Ipv4Addr::from(u32::from_be_bytes(base) + (i << 8)))
    };
    of([198, 18, 0, 0], 1 << 9).chain(of([10, 0, 0, 0], 1 << 16)).chain(of([192, 168, 0, 0], 1 << 8))
}

/// Networks of /64 among the local ones (RFC 4193).
fn candidates_v6() -> impl Iterator<Item = Ipv6Addr> {
    (0..=u16::MAX).map(|i| Ipv6Addr::new(0xfdab, 0x616e, 0x6162, i, 0, 0, 0, 0))
}

/// A destination as `ip` lists it: an address with or without a length.
fn prefix(text: &str) -> Option<(u128, u8)> {
    let (address, len) = text.split_once('/').map_or((text, None), |(address, len)| (address, Some(len)));
    let whole = if address.contains(':') { 128 } else { 32 };
    Some((bits(address.parse().ok()?), len.map_or(Some(whole), |len| len.parse().ok())?))
}

/// The bits of an address from the highest on.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()) << 96,
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

fn overlap((one, one_len): (u128, u8), (other, other_len): (u128, u8)) -> bool {
    let len = u32::from(one_len.min(other_len));
    len == 0 || (one ^ other).checked_shr(128 - len).unwrap_or(0) == 0
}

/// The tables before the first path's. Numbers above 255 are free for any use.
const TABLES: u32 = 0xab00;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_overlap_if_one_contains_the_other() {
        let overlap = |one, other| overlap(prefix(one).expect("legal"), prefix(other).expect("legal"));
        assert!(overlap("198.18.0.0/24", "198.18.0.0/15"));
        assert!(overlap("10.0.0.0/8", "10.9.8.7"));
        assert!(overlap("10.0.0.0/8", "0.0.0.0/1"));
        assert!(!overlap("198.18.0.0/24", "198.18.1.0/24"));
        assert!(!overlap("fdab:616e:6162::/64", "fdab:616e:6162:1::/64"));
        assert!(overlap("fdab:616e:6162::/64", "fc00::/7"));
        assert_eq!((prefix("default"), prefix("1.2.3.4/x")), (None, None));
    }

    #[test]
    fn addresses_of_paths_are_different() {
        let pool = Pool { v4: [10, 0, 3, 0].into(), v6: Ipv6Addr::LOCALHOST, tables: [43777].into() };
        assert_eq!((pool.v4(1), pool.v4(254)), ([10, 0, 3, 1].into(), [10, 0, 3, 254].into()));
        assert!(!pool.has_table(1) && pool.has_table(2));
    }
}
