//! Who makes way when more have called than there is room for: a caller that has not proven its
//! key, and that costs an honest peer least.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anabranch_core::time::Instant;

/// Callers of one proven host that are kept before strangers, at most: more than that is no
/// gateway's usual load.
const QUOTA: usize = 16;
/// Hosts that are remembered because a caller there has proven its key.
const HOSTS: usize = 64;

/// Where a caller is: an IPv4 address, or the first half of an IPv6 one, all of which one host may
/// well have.
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

/// Hosts on which a caller has proven its key, those that did so last.
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

/// A caller that has not proven its key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller {
    pub(super) host: Host,
    /// Others on its host have proven their keys.
    pub(super) is_known: bool,
    /// It has begun as a known peer does, or repeats one that did.
    pub(super) is_introduced: bool,
    /// When it called.
    pub(super) since: Instant,
}

/// Which caller makes way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Idler {
    /// The one with this index.
    At(usize),
    /// None before what has arrived is read.
    Later,
    /// There is none.
    None,
}

/// First strangers make way, then those who have begun as a known peer does, then those on the
/// hosts of proven peers. Of equals, one of the host that has most of them: a flood from a few
/// hosts pushes out itself. Of those, the one that has had most time. None makes way while its
/// bytes wait to be read, which may prove its key; `has_unread` asks the kernel.
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

    /// A caller on host `host` that called `at` ms.
    fn caller(host: u8, at: u64) -> Caller {
        Caller {
            host: Host::V4([10, 0, 0, host].into()),
            is_known: false,
            is_introduced: false,
            since: Instant::ZERO + Duration::from_millis(at),
        }
    }

    /// A room of `seats`, an honest caller that is there already, and `calls` strangers on `hosts`
    /// hosts after it; whether the honest caller is still there.
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
        // From as many hosts as there are seats, the honest caller is one of many: the oldest.
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

    /// A flood from the host of a gateway does not push out other callers.
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
