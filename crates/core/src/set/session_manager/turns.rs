//! Turns: one chunk after another at intervals, on one session after another.
//!
//! All paths to a node of a mesh share the radio channel around it. A packet takes many frames and
//! several hops there, and two packets that meet destroy each other, although the channel is far
//! from full. Packets that follow each other at a sufficient interval do not meet. The sender is
//! the only place that knows of all of them, so it sets the interval.
//!
//! Control of the interval: it shrinks with each chunk that is acknowledged in time. A late chunk
//! was lost on its way, and the TCP of its gateway sends it again, out of turn. So the sender waits
//! until nothing is in flight, then goes on with a longer interval, and stays above the one that
//! failed for some time. The interval never exceeds the shortest latency of a chunk: then a chunk
//! arrives before the next one starts. What is late depends on the session, since paths may differ
//! in length; a path that has become longer is believed after some late chunks.

use alloc::vec::Vec;

use super::Sender;
use crate::rates::rate_of;
use crate::set::path::Stamp;
use crate::set::tcp_manager::{State, TcpManager};
use crate::time::{Duration, Instant};

/// Size of a chunk in bytes. With its header and two records of encryption it fits into one segment
/// of a path with the smallest MTU of IPv6: 1280 bytes less 72 of headers and timestamps.
pub(super) const CHUNK: u64 = 1160;
/// Number of bytes over which the rate of turns is measured.
const SPAN: u64 = 16 * CHUNK;
/// Number of chunks in flight at which a session loses its turn.
pub(super) const IN_FLIGHT: u64 = 3;
/// A chunk is late after this multiple of its session's shortest latency, in tenths.
const LATE: u64 = 16;
/// Growth of a session's shortest latency with each chunk that is late, in percent.
const LONGER: u64 = 110;
/// Growth of the interval after a late chunk, in percent.
const GROWTH: u64 = 115;
/// Decrease of the interval with a chunk in time, in percent.
const DECREASE: u64 = 97;
/// Distance to the interval that failed, in percent.
const DISTANCE: u64 = 105;
/// Number of chunks in time after which the interval that failed is forgotten: each further one in
/// time shortens it by 0.5 %.
const PATIENCE: u32 = 20;

/// State of the turns.
#[derive(Debug)]
pub(super) struct Turns {
    /// Chunks that were written earlier are not counted: they were sent by another policy.
    began: Instant,
    /// When the last chunk was written, and on which session.
    last: Option<(Instant, usize)>,
    /// Interval between two chunks; `None` before the first acknowledgement.
    interval: Option<Duration>,
    /// Shortest latency of a chunk of each session; a session without one is not there, or has
    /// [`Duration::MAX`].
    shortest: Vec<Duration>,
    /// Length of the longest chunk in bytes.
    longest: u64,
    /// When the current span of [`SPAN`] began, and the number of bytes acknowledged in it.
    span: Option<(Instant, u64)>,
    /// Highest rate of a chunk from its writing to its acknowledgement, and of a span, in bytes
    /// per second.
    pub(super) fastest: u64,
    /// The interval at which the last late chunk was sent.
    failed: Duration,
    /// Number of chunks in time since then.
    in_time: u32,
    /// Chunks that were written earlier have been judged.
    judged: Instant,
    /// Whether to wait until nothing is in flight.
    settle: bool,
    /// When the next turn begins.
    pub(super) at: Option<Instant>,
}

impl Turns {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            began: now,
            last: None,
            interval: None,
            shortest: Vec::new(),
            longest: 0,
            span: None,
            fastest: 0,
            failed: Duration::ZERO,
            in_time: 0,
            judged: now,
            settle: true,
            at: None,
        }
    }

    /// Records the acknowledgement of a chunk of `octets` bytes of a session.
    pub(super) fn acknowledged(&mut self, now: Instant, session: usize, stamp: &Stamp, octets: u64) {
        if stamp.written < self.began {
            return;
        }
        self.longest = self.longest.max(octets);
        self.measure(now, octets);
        // A piece of a chunk that another session has lost takes less time than a whole one.
        let latency = now.saturating_since(stamp.written).mul_ratio(self.longest, octets.max(1));
        self.fastest = self.fastest.max(rate_of(self.longest, latency));
        if self.shortest.len() <= session {
            self.shortest.resize(session + 1, Duration::MAX);
        }
        if let Some(shortest) = self.shortest.get_mut(session) {
            *shortest = latency.min(*shortest);
        }
        let interval = self.interval.unwrap_or(latency).min(self.least());
        self.interval = Some(interval);
        if self.is_late(now, session, stamp) {
            if let Some(shortest) = self.shortest.get_mut(session) {
                *shortest = shortest.mul_ratio(LONGER, 100).min(latency);
            }
            return self.late(now, stamp);
        }
        self.in_time += 1;
        if self.in_time > PATIENCE {
            self.failed = self.failed.mul_ratio(995, 1000);
        }
        let shorter = interval.mul_ratio(DECREASE, 100).max(self.failed.mul_ratio(DISTANCE, 100));
        self.interval = Some(interval.min(shorter));
    }

    /// Shortest latency of a chunk of any session.
    fn least(&self) -> Duration {
        self.shortest.iter().copied().min().unwrap_or(Duration::MAX)
    }

    /// Adds acknowledged bytes to the span. A span has enough chunks for those that arrive at once
    /// after a pause to matter little.
    fn measure(&mut self, now: Instant, octets: u64) {
        let (since, sum) = self.span.map_or((now, 0), |(since, sum)| (since, sum + octets));
        let is_whole = sum >= SPAN;
        if is_whole {
            self.fastest = self.fastest.max(rate_of(sum, now.saturating_since(since)));
        }
        self.span = Some(if is_whole { (now, 0) } else { (since, sum) });
    }

    /// Whether an acknowledgement of a chunk of this session at `now` is too late. Without an
    /// earlier one nothing is known.
    fn is_late(&self, now: Instant, session: usize, stamp: &Stamp) -> bool {
        let known = self.shortest.get(session).filter(|shortest| **shortest < Duration::MAX);
        known.is_some_and(|shortest| now.saturating_since(stamp.written) > shortest.mul_ratio(LATE, 10))
    }

    fn late(&mut self, now: Instant, stamp: &Stamp) {
        if stamp.written < self.judged {
            return;
        }
        self.judged = now;
        self.in_time = 0;
        self.settle = true;
        let least = self.least();
        if let Some(interval) = &mut self.interval {
            self.failed = *interval;
            *interval = interval.mul_ratio(GROWTH, 100).min(least);
        }
    }
}

impl Sender {
    /// Whether a session is being opened for the first time and may answer soon, or will be opened.
    /// Its handshake would meet packets.
    fn is_opening(&self, now: Instant) -> bool {
        let is_first =
            |s: &TcpManager| s.lost.is_none() && matches!(s.state, State::Calling | State::OpenWait { .. });
        !self.waiting.is_empty() || now < self.patience && self.sessions.iter().any(is_first)
    }

    /// Sends the next chunk if its turn has come.
    pub(super) fn take_turns(&mut self, now: Instant) {
        self.turns.at = None;
        let sessions = self.sessions.iter().enumerate();
        for (index, session) in sessions.filter(|(_, session)| session.is_alive() && !session.suspect) {
            if let Some(first) = session.chunks.front()
                && self.turns.is_late(now, index, &first.stamp)
            {
                self.turns.late(now, &first.stamp);
            }
        }
        if self.turns.settle {
            // The chunks of a suspect session go to the others.
            let is_busy = |s: &TcpManager| s.is_alive() && !s.suspect && s.outstanding() > 0;
            if self.sessions.iter().any(is_busy) {
                return;
            }
            if self.turns.last.is_some() && self.is_opening(now) {
                self.turns.at = Some(self.patience);
                return;
            }
            self.turns.settle = false;
            self.turns.judged = now;
        }
        let Some(next) = self.unassigned.next_from(0) else { return };
        if let (Some((last, _)), Some(interval)) = (self.turns.last, self.turns.interval)
            && now < last + interval
        {
            self.turns.at = Some(last + interval);
            return;
        }
        self.view_paths(now, next.start, next.end.min(next.start + CHUNK));
        // One round, from the session after the last.
        let after = self.turns.last.map_or(0, |(_, last)| last + 1);
        let count = self.views.len();
        let order = (after..count).chain(0..after.min(count));
        let may_send = |index: &usize| self.views[*index].usable && self.views[*index].chunk > 0;
        let Some(index) = order.into_iter().find(may_send) else { return };
        let end = next.start + self.views[index].chunk;
        self.unassigned.remove(next.start, end);
        self.write(now, index, next.start, end);
        self.turns.last = Some((now, index));
        match self.turns.interval {
            Some(interval) => self.turns.at = Some(now + interval),
            // Nothing is known yet: the first chunk measures the path.
            None => self.turns.settle = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::path::Estimate;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn chunk(written: u64) -> Stamp {
        Estimate::new(at(0)).stamp(at(written), 0, CHUNK)
    }

    fn interval(turns: &Turns) -> u64 {
        turns.interval.expect("measured").as_millis()
    }

    #[test]
    fn the_interval_shrinks_until_a_chunk_is_late_and_stays_above_what_failed() {
        let mut turns = Turns::new(at(0));
        turns.acknowledged(at(300), 0, &chunk(0), CHUNK);
        for i in 0..10 {
            turns.acknowledged(at(600 + i * 300), 0, &chunk(300 + i * 300), CHUNK);
        }
        assert!((210..225).contains(&interval(&turns)), "{}", interval(&turns));
        let failed = interval(&turns);
        turns.settle = false;
        turns.acknowledged(at(5000), 0, &chunk(4500), CHUNK);
        assert!(turns.settle);
        assert_eq!(interval(&turns), failed * 115 / 100);
        // Another chunk of the same time says nothing new.
        turns.acknowledged(at(5001), 0, &chunk(4400), CHUNK);
        assert_eq!(interval(&turns), failed * 115 / 100);
        for i in 0..u64::from(PATIENCE) {
            turns.acknowledged(at(6300 + i), 0, &chunk(6000 + i), CHUNK);
        }
        assert!(interval(&turns).abs_diff(failed * 105 / 100) <= 1, "{}", interval(&turns));
        for i in 0..50 {
            turns.acknowledged(at(7300 + i), 0, &chunk(7000 + i), CHUNK);
        }
        assert!(interval(&turns) < failed);
    }

    /// A piece of a chunk takes less time than a whole one, but the path is no faster.
    #[test]
    fn the_time_of_a_chunk_counts_by_its_bytes() {
        let mut turns = Turns::new(at(0));
        turns.acknowledged(at(500), 0, &chunk(0), CHUNK);
        assert_eq!(turns.fastest, 2 * CHUNK);
        let before = interval(&turns);
        turns.acknowledged(at(1_060), 1, &chunk(1_000), CHUNK / 10);
        assert_eq!(turns.fastest, 2 * CHUNK);
        assert!((before * DECREASE / 100..=before).contains(&interval(&turns)), "{}", interval(&turns));
    }

    /// No chunk is fast alone, but many are under way at once, and some arrive together.
    #[test]
    fn the_rate_of_turns_counts_many_chunks() {
        let mut turns = Turns::new(at(0));
        for i in 0..100 {
            turns.acknowledged(at(1_000 + i / 4 * 400), 0, &chunk(i / 4 * 400), CHUNK);
        }
        assert!((10 * CHUNK..=13 * CHUNK).contains(&turns.fastest), "{}", turns.fastest);
    }

    #[test]
    fn the_interval_is_at_most_the_shortest_latency() {
        let mut turns = Turns::new(at(0));
        turns.acknowledged(at(300), 0, &chunk(0), CHUNK);
        for i in 1..20 {
            turns.acknowledged(at(i * 1000 + 500), 0, &chunk(i * 1000), CHUNK);
        }
        // It has grown until 500 ms are no longer late.
        assert!((300..=330).contains(&interval(&turns)), "{}", interval(&turns));
    }

    /// Chunks of a path that is ten times as long are in time, and so are, soon, those of a path
    /// that has become longer.
    #[test]
    fn what_is_late_depends_on_the_session() {
        let mut turns = Turns::new(at(0));
        turns.settle = false;
        for i in 0..20 {
            turns.acknowledged(at(i * 1000 + 30), 0, &chunk(i * 1000), CHUNK);
            turns.acknowledged(at(i * 1000 + 300), 1, &chunk(i * 1000), CHUNK);
        }
        assert!(!turns.settle);
        assert!(interval(&turns) < 30, "{}", interval(&turns));
        for i in 20..80 {
            turns.settle = false;
            turns.acknowledged(at(i * 1000 + 400), 0, &chunk(i * 1000), CHUNK);
        }
        assert!(!turns.settle);
    }
}
