//! Recovery beyond the paper. Bytes of a lost or silent session are reassigned to the others, and
//! an idle session sends a copy of a chunk that holds up others.

use alloc::vec::Vec;
use core::cmp::Reverse;

use anabranch_wire::set::{Gateway, SetAckStatus};

use super::stripe::FIRST_CHUNKS;
use super::{Again, Recovery, Reinjection, Sender};
use crate::set::stream::StreamClose;
use crate::set::striping::SMALLEST_CHUNK;
use crate::set::tcp_manager::{Chunk, Ending, State, TcpManager};
use crate::time::{Duration, Instant};

impl Sender {
    /// Makes the unacknowledged bytes in flight on session `index` available to other sessions.
    pub(super) fn take_back(&mut self, index: usize) {
        let Self { sessions, unassigned, acknowledged, .. } = self;
        for chunk in &sessions[index].chunks {
            unassigned.insert(chunk.start, chunk.end);
        }
        for range in acknowledged.as_slice() {
            unassigned.remove(range.start, range.end);
        }
    }

    /// Whether to call a lost gateway again while other sessions are open.
    pub(super) fn probes(&self, again: &Again) -> bool {
        again.lost.is_some() && self.config.recovery == Recovery::Always
    }

    /// Schedules another call of a gateway that may return.
    pub(super) fn leave(&mut self, now: Instant, index: usize, gateway: Gateway) {
        let always = self.config.recovery == Recovery::Always;
        let session = &self.sessions[index];
        let gone = match session.state {
            State::Closed(Ending::Refused(SetAckStatus::Unreachable)) => always,
            State::Closed(Ending::Refused(_) | Ending::Protocol | Ending::Stream(StreamClose::Forbidden)) => {
                false
            }
            _ => true,
        };
        let lost = session.lost.filter(|_| session.establishment.is_none()).unwrap_or(now);
        let alive = self.sessions.iter().any(TcpManager::is_alive);
        let patience = self.config.patience;
        if gone && (alive && always || self.calls < self.selected * (1 + self.config.redials)) {
            let pause = if alive {
                // New session numbers are only available when no session is alive, so the minimum
                // pause grows as the numbers run out.
                let least = patience * (1 << (self.numbers / 32));
                (now.saturating_since(lost) / 8).min(LONGEST_PAUSE).max(least).max(SHORTEST_PAUSE)
            } else {
                patience
            };
            self.again.push_back(Again { gateway, at: now + pause, lost: Some(lost) });
        }
        if !alive {
            self.again.iter_mut().for_each(|again| again.at = again.at.min(now + patience));
        }
    }

    /// When an unanswered call is abandoned, so that it can be repeated.
    fn unanswered_at(&self, session: &TcpManager) -> Option<Instant> {
        let waits = matches!(session.state, State::Calling | State::OpenWait { .. });
        let limited = waits && self.config.recovery == Recovery::Always;
        (limited && self.sessions.iter().any(|s| s.state == State::Opened))
            .then(|| session.called + (self.config.patience * 5).max(self.request_time * 8))
    }

    /// How long a session with bytes in flight may be silent.
    fn silence_of(&self, session: &TcpManager) -> Duration {
        let usual =
            session.estimate.latency().unwrap_or(self.request_time) + session.estimate.variation() * 4;
        let drain = session.estimate.drain(session.outstanding());
        let asked = (self.request_time * 8).min(self.config.silence * 5);
        self.config.silence.max(asked).max(usual * 4).max(drain * 4)
    }

    /// When `session` becomes suspect or, if it already is, when it is closed.
    fn silent_at(&self, session: &TcpManager) -> Option<Instant> {
        let unanswered = self.unanswered_at(session);
        if !session.is_alive() || session.outstanding() == 0 {
            return unanswered;
        }
        let silence = self.silence_of(session);
        let silent = session.heard + if session.suspect { silence * 4 } else { silence };
        Some(unanswered.map_or(silent, |at| at.min(silent)))
    }

    pub(super) fn silence_timeout(&self) -> Option<Instant> {
        // The last live session has no other to take its bytes: only TCP and the stall time-out end
        // it.
        if self.sessions.iter().filter(|s| s.is_alive()).count() < 2 && self.waiting.is_empty() {
            return None;
        }
        self.sessions.iter().filter_map(|s| self.silent_at(s)).min()
    }

    /// Marks silent sessions as suspect, and closes those that stay silent.
    pub(super) fn find_silent(&mut self, now: Instant) {
        for index in 0..self.sessions.len() {
            if self.silence_timeout().is_none() {
                return;
            }
            if self.silent_at(&self.sessions[index]).is_none_or(|at| at > now) {
                continue;
            }
            let session = &self.sessions[index];
            if session.suspect || self.unanswered_at(session).is_some_and(|at| at <= now) {
                self.sessions[index].cut(Ending::Silent, &mut self.effects);
                self.lose(now, index);
            } else {
                self.sessions[index].suspect = true;
                self.take_back(index);
            }
        }
    }

    /// Sends copies on idle sessions when there is no new data to assign: copies of the chunks that
    /// would otherwise hold up the rest.
    pub(super) fn rescue(&mut self, now: Instant) {
        self.rescue_at = None;
        if self.config.reinjection == Reinjection::Off {
            return;
        }
        let order = if self.unassigned.is_empty() { Order::LongestFirst } else { Order::FirstFirst };
        if self.copy_all(now, order, Margin::Idle) {
            // The estimates of the carriers may prove wrong, so the check is repeated.
            self.rescue_at = Some(now + RESCUE_PERIOD);
        }
        let unmeasured = self.sessions.iter().all(|s| s.estimate.rate().is_none());
        let all_given = self.unassigned.is_empty();
        if all_given == unmeasured && (all_given || self.buffer >= 4 * SMALLEST_CHUNK) {
            self.spread(now, unmeasured);
        }
    }

    /// Measures sessions by copies, which delay no other data. A session that has sent less than
    /// eight segments and has nothing in flight sends a copy of the chunk with the fewest carriers.
    /// The first chunks through a distant gateway take the round trips of TCP's slow start, and a
    /// policy that judged the path by them would not use it again. If no session is measured and
    /// all chunks fit into one segment, the session sends all of them.
    fn spread(&mut self, now: Instant, unmeasured: bool) {
        let mut on_the_way = self.on_the_way(now);
        let total: u64 = on_the_way.iter().map(|h| h.end - h.start).sum();
        for helper in 0..self.sessions.len() {
            on_the_way.sort_by_key(|h| (h.carriers.count_ones(), Reverse(h.remaining)));
            for held in on_the_way.iter_mut().filter(|h| h.carriers & bit(helper) == 0) {
                let session = &self.sessions[helper];
                let segment = u64::from(session.status.mss);
                let one_only = !unmeasured || total > segment;
                if session.written >= FIRST_CHUNKS * segment || one_only && session.outstanding() > 0 {
                    break;
                }
                self.view_paths(now, held.start, held.end);
                let view = &self.views[helper];
                if view.usable && view.chunk >= held.end - held.start {
                    self.write(now, helper, held.start, held.end);
                    held.carriers |= bit(helper);
                }
            }
        }
    }

    /// Sends copies of the first missing bytes before new ones are assigned, if that clearly helps:
    /// the other sessions are about to fill the node's buffer.
    pub(super) fn rescue_late(&mut self, now: Instant) {
        if self.config.reinjection == Reinjection::Off {
            return;
        }
        self.copy_all(now, Order::FirstFirst, Margin::Busy);
    }

    /// Sends copies that help, in `order`; returns false if there is no chunk in flight to copy.
    fn copy_all(&mut self, now: Instant, order: Order, margin: Margin) -> bool {
        let mut on_the_way = self.on_the_way(now);
        on_the_way.retain(|h| h.measured < MOST_CARRIERS);
        match order {
            Order::FirstFirst => {}
            Order::LongestFirst => on_the_way.sort_by_key(|h| Reverse(h.remaining)),
        }
        for held in &on_the_way {
            self.copy(now, held, margin);
        }
        !on_the_way.is_empty()
    }

    /// Sends a copy of a chunk on the session that would deliver it first, if the copy beats the
    /// original by `margin`. Sessions with a measured rate are preferred.
    fn copy(&mut self, now: Instant, held: &Held, margin: Margin) {
        // This runs for every chunk in flight, and usually no session can carry a copy: check that
        // first.
        let spare = |s: &TcpManager| s.is_alive() && !s.suspect && s.status.room() > 0;
        if !self.sessions.iter().enumerate().any(|(i, s)| held.carriers & bit(i) == 0 && spare(s)) {
            return;
        }
        let octets = held.end - held.start;
        self.view_paths(now, held.start, held.end);
        let views = self.views.iter().enumerate();
        let few = held.carriers.count_ones() < MOST_CARRIERS;
        let able = views.filter(|(i, v)| {
            held.carriers & bit(*i) == 0 && v.usable && v.chunk >= octets && (few || v.rate.is_some())
        });
        let best = able.min_by_key(|(_, v)| (v.rate.is_none(), v.time_for_chunk));
        let Some((helper, view)) = best else { return };
        let needed = match margin {
            Margin::Idle => view.time_for_chunk.mul_ratio(5, 4),
            Margin::Busy => view.time_for_chunk * 2,
        };
        if needed >= held.remaining || margin == Margin::Busy && !held.late {
            return;
        }
        self.write(now, helper, held.start, held.end);
    }

    /// Estimated remaining time of a chunk on its session: the estimate made when it was written,
    /// or the time for the bytes before it at the current rate. For a late chunk it is at least its
    /// delay so far, and on a silent session at least the length of the silence: a delay of this
    /// length may well last as long again.
    fn remaining(now: Instant, session: &TcpManager, chunk: &Chunk) -> Duration {
        let promised = chunk.stamp.expected.saturating_since(now);
        let length = chunk.end - chunk.start;
        let ahead = session.before_end_of(chunk).saturating_sub(length);
        let late = now.saturating_since(chunk.stamp.expected);
        let silence = now.saturating_since(session.heard.max(chunk.stamp.written));
        promised.max(late).max(silence).max(session.estimate.drain(ahead))
    }

    /// Whether the chunk is overdue by more than a quarter of its estimated time.
    fn is_late(now: Instant, chunk: &Chunk) -> bool {
        let promised = chunk.stamp.expected.saturating_since(chunk.stamp.written);
        now.saturating_since(chunk.stamp.expected) > promised / 4
    }

    /// Once another session is open, takes back the early bytes of a session that is not open
    /// within 1.5 times the fastest establishment time.
    pub(super) fn pass_over_unopened(&mut self, now: Instant) {
        let Some(fastest) = self.sessions.iter().filter_map(|s| s.establishment).min() else { return };
        let overdue = |s: &TcpManager| {
            matches!(s.state, State::OpenWait { .. })
                && !s.suspect
                && s.written > 0
                && now.saturating_since(s.called) > fastest.mul_ratio(3, 2)
        };
        // Any other unopened session only carries copies.
        let first = self.sessions.iter().position(TcpManager::is_alive);
        if let Some(index) = first.filter(|i| overdue(&self.sessions[*i])) {
            self.sessions[index].suspect = true;
            self.take_back(index);
        }
    }

    /// The chunks in flight, first to last.
    fn on_the_way(&self, now: Instant) -> Vec<Held> {
        let mut all: Vec<Held> = Vec::new();
        // A fast session that is to work alone does not wait for an unmeasured session.
        let alone = self.alone(&self.file_view());
        for (index, session) in self.sessions.iter().enumerate().filter(|(_, s)| s.is_alive()) {
            for chunk in session.chunks.iter().filter(|c| !self.acknowledged.covers(c.start, c.end)) {
                let unknown = alone && session.estimate.rate().is_none();
                let remaining = if unknown { Duration::MAX } else { Self::remaining(now, session, chunk) };
                let late = unknown || Self::is_late(now, chunk);
                let (start, end, carriers) = (chunk.start, chunk.end, bit(index));
                let measured = u32::from(session.estimate.rate().is_some());
                all.push(Held { start, end, remaining, late, carriers, measured });
            }
        }
        all.sort_unstable_by_key(|h| (h.start, h.end));
        all.dedup_by(|next, kept| {
            let same = next.start == kept.start && next.end == kept.end;
            if same {
                kept.remaining = kept.remaining.min(next.remaining);
                kept.late &= next.late;
                kept.carriers |= next.carriers;
                kept.measured += next.measured;
            }
            same
        });
        all
    }
}

/// A chunk in flight on one or several sessions.
#[derive(Debug)]
struct Held {
    start: u64,
    end: u64,
    /// Estimated time until the first carrier delivers it.
    remaining: Duration,
    /// Whether it is overdue.
    late: bool,
    /// Bit set of the carrying sessions.
    carriers: u64,
    /// Number of carriers with a measured rate.
    measured: u32,
}

/// The bit of a session. Sessions from the 64th on share the last bit.
fn bit(session: usize) -> u64 {
    1 << session.min(63)
}

/// Order in which chunks are copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    /// First missing chunk first: against a full node buffer it holds up the rest.
    FirstFirst,
    /// Chunk with the longest remaining time first: it determines the end of the transfer.
    LongestFirst,
}

/// How clearly a copy must beat the original.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Margin {
    /// The helper is idle.
    Idle,
    /// The helper could send new data instead: only overdue chunks are copied.
    Busy,
}

/// Longest pause between two calls of a lost gateway while other sessions are open.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Shortest pause. With zero patience, a call that fails at once would otherwise be repeated
/// forever at the same instant.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
/// Interval at which an idle session looks for chunks to copy.
const RESCUE_PERIOD: Duration = Duration::from_millis(50);
/// Largest number of sessions that carry the same chunk. For a helper with a measured rate, only
/// carriers with a measured rate count.
const MOST_CARRIERS: u32 = 3;
