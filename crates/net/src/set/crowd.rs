//! Selects the connection to close when the limit is exceeded: a peer that has not proved its key,
//! chosen so that honest peers lose least.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anabranch_core::time::Instant;

/// Number of unproved connections of a proven host that are kept before those of strangers. A
/// gateway normally has fewer.
const QUOTA: usize = 16;
/// Number of hosts remembered because a peer there has proved its key.
const HOSTS: usize = 64;

/// A remote host: an IPv4 address, or the first half of an IPv6 address, since one host may use a
/// whole /64.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Host {
    V4(Ipv4Addr),
    V6(u64),
}

impl Host {
    pub(super) fn of(peer: SocketAddr) -> Self {
        match peer.ip().to_canonical() {
            IpAddr::V4(ip) => Self::V4(ip),
            IpAddr::V6(ip) => Self::V6((u128::from(ip) >> 64) as u64),
        }
    }
}

/// The hosts on which a peer has proved its key most recently.
#[derive(Debug, Default)]
pub(super) struct Hosts(VecDeque<Host>);

impl Hosts {
    pub(super) fn remember(&mut self, host: Host) {
        if self.0.back() == Some(&host) {
            return;
        }
        self.0.retain(|known| *known != host);
        self.0.push_back(host);
        if self.0.len() > HOSTS {
            self.0.pop_front();
        }
    }

    pub(super) fn has(&self, host: Host) -> bool {
        self.0.contains(&host)
    }
}

/// A connection whose peer has not proved its key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller {
    pub(super) host: Host,
    /// True if other peers on this host have proved their keys.
    pub(super) is_known: bool,
    /// True if the peer began as a known peer does, or replays such a beginning.
    pub(super) is_introduced: bool,
    /// When the connection was accepted.
    pub(super) since: Instant,
}

/// The connection to close.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Idler {
    /// The connection with this index.
    At(usize),
    /// Unknown until the bytes that have arrived are read.
    Later,
    /// None of them.
    None,
}

/// Selects the connection to close. Strangers go first, then introduced peers, then peers on proven
/// hosts. Within a class, the host with the most connections loses one, so that a flood from a few
/// hosts displaces itself. Among these, the oldest connection goes, since it has had the most time.
/// A connection with unread bytes is kept, because they may prove its key; `has_unread` asks the
/// kernel.
pub(super) fn idler(callers: &[Caller], has_unread: impl Fn(usize) -> bool) -> Idler {
    let mut weights: HashMap<Host, usize> = HashMap::new();
    callers.iter().for_each(|caller| *weights.entry(caller.host).or_default() += 1);
    let weight = |caller: &Caller| weights.get(&caller.host).copied().unwrap_or(0);
    let class = |caller: &Caller| (caller.is_known && weight(caller) <= QUOTA, caller.is_introduced);
    let Some(last) = callers.iter().map(class).min() else { return Idler::None };
    let lowest = callers.iter().enumerate().filter(|(_, caller)| class(caller) == last);
    let mut lowest: Vec<(usize, &Caller)> = lowest.collect();
    lowest.sort_by_key(|(_, caller)| (usize::MAX - weight(caller), caller.since));
    lowest.iter().find(|(index, _)| !has_unread(*index)).map_or(Idler::Later, |(index, _)| Idler::At(*index))
}

#[cfg(test)]
mod tests {
    use anabranch_core::time::Duration;

    use super::*;

    /// A connection from `host`, accepted at `at` ms.
    fn caller(host: u8, at: u64) -> Caller {
        Caller {
            host: Host::V4([10, 0, 0, host].into()),
            is_known: false,
            is_introduced: false,
            since: Instant::ZERO + Duration::from_millis(at),
        }
    }

    /// Simulates `calls` strangers on `hosts` hosts after an honest peer, with room for `seats`
    /// connections. Returns whether the honest peer stays connected.
    fn outlasts(honest: Caller, seats: usize, hosts: u8, calls: u64) -> bool {
        let mut room = vec![honest];
        for call in 0..calls {
            room.push(caller(100 + (call % u64::from(hosts)) as u8, 1 + call));
            if room.len() > seats {
                let Idler::At(index) = idler(&room, |_| false) else { panic!("no caller has unread octets") };
                if index == 0 {
                    return false;
                }
                room.remove(index);
            }
        }
        true
    }

    #[test]
    fn a_flood_from_a_few_hosts_pushes_out_itself() {
        for (hosts, seats) in [(1, 2), (1, 64), (5, 64), (31, 64), (62, 256)] {
            assert!(outlasts(caller(1, 0), seats, hosts, 10_000), "{hosts} hosts, {seats} seats");
        }
        // If strangers come from as many hosts as there are seats, the honest peer is the oldest of
        // equals.
        assert!(!outlasts(caller(1, 0), 64, 100, 10_000));
    }

    #[test]
    fn a_caller_on_a_host_that_has_proven_its_key_outlasts_strangers_on_any_number_of_hosts() {
        for is_introduced in [false, true] {
            let honest = Caller { is_known: true, is_introduced, ..caller(1, 0) };
            assert!(outlasts(honest, 64, 150, 10_000));
            let honest = Caller { is_introduced: true, ..caller(1, 0) };
            assert!(outlasts(honest, 64, 150, 10_000), "and so does one that was introduced");
        }
    }

    /// A flood from a gateway's host does not displace other peers.
    #[test]
    fn a_proven_host_has_a_quota() {
        let known = |at| Caller { is_known: true, ..caller(2, at) };
        let room: Vec<Caller> = [caller(1, 0)].into_iter().chain((1..=QUOTA as u64).map(known)).collect();
        assert_eq!(idler(&room, |_| false), Idler::At(0));
        let room: Vec<Caller> = [caller(1, 0)].into_iter().chain((1..40).map(known)).collect();
        assert_eq!(idler(&room, |_| false), Idler::At(1));
    }

    #[test]
    fn whose_bytes_wait_is_read_before_anybody_makes_way() {
        let room = [caller(1, 0), caller(1, 1), caller(1, 2)];
        assert_eq!(idler(&room, |index| index == 0), Idler::At(1));
        assert_eq!(idler(&room, |_| true), Idler::Later);
        let introduced = Caller { is_introduced: true, ..caller(1, 0) };
        assert_eq!(idler(&[introduced, caller(1, 1)], |index| index == 1), Idler::Later);
        assert_eq!(idler(&[], |_| false), Idler::None);
    }

    #[test]
    fn hosts_are_remembered_by_their_last_proof() {
        let mut hosts = Hosts::default();
        let host = |n: u8| caller(n, 0).host;
        hosts.remember(host(0));
        for n in 1..=HOSTS as u8 {
            hosts.remember(host(n));
            hosts.remember(host(1));
        }
        assert!(!hosts.has(host(0)) && hosts.has(host(1)) && hosts.has(host(HOSTS as u8)));
        assert_eq!(hosts.0.len(), HOSTS);
    }
}
