//! Why packets are dropped, as ICMPv6 says it (RFC 4443), and how often a node says so.

use anabranch_core::time::{Duration, Instant};
use anabranch_wire::icmpv6::{Header, Kind};

/// Number of errors that a node sends at once, and the time after which it may send one more: the
/// values that RFC 4443 section 2.4 (f) recommends for a small or mid-size device.
const BURST: u32 = 10;
const INTERVAL: Duration = Duration::from_millis(100);
/// Position of the next header field in an IPv6 header, in bytes.
const NEXT_HEADER: u32 = 6;

/// Why a node does not forward or accept a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Problem {
    NoRoute,
    /// Routing on demand has found no route to the address, or no node has the address.
    NoSuchAddress,
    NoListener,
    /// The packet is longer than this MTU of the next link.
    TooBig(u32),
    HopLimit,
    UnknownProtocol,
}

impl Problem {
    /// Type, code and the four bytes before the packet in question (RFC 4443 section 3).
    pub(super) fn message(self) -> (Header, u32) {
        let (kind, code, word) = match self {
            Self::NoRoute => (Kind::DESTINATION_UNREACHABLE, 0, 0),
            Self::NoSuchAddress => (Kind::DESTINATION_UNREACHABLE, 3, 0),
            Self::NoListener => (Kind::DESTINATION_UNREACHABLE, 4, 0),
            Self::TooBig(mtu) => (Kind::PACKET_TOO_BIG, 0, mtu),
            Self::HopLimit => (Kind::TIME_EXCEEDED, 0, 0),
            Self::UnknownProtocol => (Kind::PARAMETER_PROBLEM, 1, NEXT_HEADER),
        };
        (Header { kind, code }, word)
    }
}

/// A token bucket for the errors of one node.
#[derive(Debug, Default)]
pub(super) struct ErrorLimit {
    /// Errors sent that still count.
    sent: u32,
    since: Instant,
}

impl ErrorLimit {
    /// Whether another error may be sent now; if so, it is counted.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let passed = now.saturating_since(self.since).as_nanos() / INTERVAL.as_nanos();
        if passed > 0 {
            self.sent = self.sent.saturating_sub(u32::try_from(passed).unwrap_or(u32::MAX));
            self.since = now;
        }
        let free = self.sent < BURST;
        self.sent += u32::from(free);
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_sends_ten_errors_at_once_and_ten_a_second() {
        let mut limit = ErrorLimit::default();
        let mut sent = |ms: u64| {
            let now = Instant::ZERO + Duration::from_millis(ms);
            (0..20).filter(|_| limit.take(now)).count()
        };
        assert_eq!([0, 99, 100, 350, 10_000].map(&mut sent), [10, 0, 1, 2, 10]);
    }
}
