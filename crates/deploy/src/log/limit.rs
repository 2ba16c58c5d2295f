//! Rate limit for log lines that peers cause, so that they cannot fill the disk. Suppressed lines
//! are counted and reported.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use tokio::time::Instant;

/// Burst of lines of one kind about one host, and the time after which one more is allowed.
const LINES: u32 = 5;
const LINE_EVERY: Duration = Duration::from_secs(10);
/// Limit on the pairs of host and kind with a count of their own. All others share one count per
/// kind.
const COUNTED: usize = 256;
/// Burst in bytes of all lines of a class, and the rate per second: two classes and the reports
/// stay below 1 kB/s.
const BURST: f64 = 1_500.0;
const RATE: f64 = 300.0;
/// Interval between reports of suppressed lines.
pub(crate) const REPORT_EVERY: Duration = Duration::from_secs(10);

/// Class of a log line, with a budget of its own: a flood of refusals cannot suppress the lines
/// about sessions that were served.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Class {
    Served,
    Refused,
}

/// State of the rate limit.
#[derive(Debug)]
pub(crate) struct Limiter {
    /// Bytes available to each class, and when that was computed.
    budgets: [(f64, Instant); 2],
    /// Lines available to each kind and host, and when that was computed.
    lines: BTreeMap<(&'static str, Option<IpAddr>), (u32, Instant)>,
    /// Number of lines of each kind suppressed since the last report.
    left_out: BTreeMap<&'static str, u64>,
    /// Number of lines suppressed since the start.
    suppressed: u64,
    reported: Instant,
}

impl Limiter {
    pub(crate) fn new(now: Instant) -> Self {
        let (lines, left_out) = (BTreeMap::new(), BTreeMap::new());
        Self { budgets: [(BURST, now); 2], lines, left_out, suppressed: 0, reported: now }
    }

    /// Whether a line of this kind about this host may be written. If not, it is counted as
    /// suppressed.
    pub(crate) fn admit(
        &mut self,
        now: Instant,
        (class, kind): (Class, &'static str),
        host: IpAddr,
        line: &str,
    ) -> bool {
        let (bytes, since) = &mut self.budgets[class as usize];
        *bytes = (*bytes + RATE * now.duration_since(*since).as_secs_f64()).min(BURST);
        *since = now;
        // Includes the line end.
        let length = line.len() as f64 + 1.0;
        let has_room = *bytes >= length;
        let may = has_room && (class == Class::Served || self.may(now, kind, host));
        if may {
            self.budgets[class as usize].0 -= length;
        } else {
            *self.left_out.entry(kind).or_default() += 1;
            self.suppressed += 1;
        }
        may
    }

    /// Number of lines suppressed since the start.
    pub(crate) fn suppressed(&self) -> u64 {
        self.suppressed
    }

    /// Whether the host has lines of this kind left.
    fn may(&mut self, now: Instant, kind: &'static str, host: IpAddr) -> bool {
        let full =
            |(lines, since): &(u32, Instant)| now.duration_since(*since) >= LINE_EVERY * (LINES - lines);
        if self.lines.len() >= COUNTED {
            self.lines.retain(|_, entry| !full(entry));
        }
        let is_counted = self.lines.len() < COUNTED || self.lines.contains_key(&(kind, Some(host)));
        let key = (kind, is_counted.then_some(host));
        let (lines, since) = self.lines.entry(key).or_insert((LINES, now));
        let more = (now.duration_since(*since).as_nanos() / LINE_EVERY.as_nanos()) as u32;
        *lines = lines.saturating_add(more).min(LINES);
        *since += LINE_EVERY * more;
        let may = *lines > 0;
        *lines -= u32::from(may);
        may
    }

    /// The report of suppressed lines, if one is due.
    pub(crate) fn report(&mut self, now: Instant) -> Option<String> {
        if self.left_out.is_empty() || now.duration_since(self.reported) < REPORT_EVERY {
            return None;
        }
        let seconds = now.duration_since(self.reported).as_secs();
        self.reported = now;
        let left_out = std::mem::take(&mut self.left_out);
        let total: u64 = left_out.values().sum();
        let kinds: Vec<String> = left_out.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
        Some(format!("{total} more lines left out in the last {seconds} s: {}", kinds.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(n: u32) -> IpAddr {
        IpAddr::V4(n.into())
    }

    const LINE: &str =
        "gateway: [fd00:1234:5678:9abc::1]:54321 reset: not identified while --half-open was reached";

    /// Simulates `hosts` hosts that cause 4,400 lines per second for `seconds`, of each kind
    /// equally often. Returns the bytes written, the reports, and the lines accounted for.
    fn flood(hosts: u32, seconds: u64) -> (usize, u64, u64) {
        let begin = Instant::now();
        let mut log = Limiter::new(begin);
        let (mut bytes, mut said, mut left_out) = (0, 0, 0);
        let calls = 4_400 * seconds;
        for call in 0..calls {
            let now = begin + Duration::from_micros(call * 1_000_000 / 4_400);
            let (class, kind) =
                [(Class::Refused, "reset"), (Class::Refused, "full"), (Class::Served, "ended")]
                    [(call % 3) as usize];
            if log.admit(now, (class, kind), host(call as u32 % hosts), LINE) {
                bytes += LINE.len() + 1;
                said += 1;
            }
            bytes += log.report(now).map_or(0, |report| report.len() + 10);
            assert!(log.lines.len() <= COUNTED + 2);
        }
        left_out += log.left_out.values().sum::<u64>();
        (bytes, said, left_out)
    }

    #[test]
    fn no_flood_writes_a_kilobyte_a_second() {
        for hosts in [1, 2, 100, 300, 100_000] {
            for seconds in [9, 25, 120] {
                let (bytes, said, _) = flood(hosts, seconds);
                assert!(bytes < 1_000 * seconds as usize, "{hosts} hosts, {seconds} s: {bytes} bytes");
                assert!(said > 0);
            }
        }
        let (_, said, left_out) = flood(1, 9);
        assert_eq!(said + left_out, 9 * 4_400, "each line was said or counted");
    }

    /// Lines about served senders are written while others are refused.
    #[test]
    fn refusals_leave_room_for_the_others_and_hosts_for_each_other() {
        let begin = Instant::now();
        let mut log = Limiter::new(begin);
        for n in 0..1_000 {
            log.admit(begin, (Class::Refused, "reset"), host(n), LINE);
        }
        assert!(log.admit(begin, (Class::Served, "ended"), host(1), LINE));
        let later = begin + Duration::from_secs(60);
        let may = |log: &mut Limiter, n| log.admit(later, (Class::Refused, "reset"), host(n), LINE);
        let count = (0..100).filter(|_| may(&mut log, 7)).count();
        assert_eq!(count, LINES as usize);
        assert!(may(&mut log, 8), "another host");
        let report = log.report(later).unwrap();
        assert!(
            report.contains("more lines left out in the last 60 s: ") && report.contains(" reset"),
            "{report}"
        );
        assert_eq!(log.report(later), None);
    }
}
