//! What SET does beyond the paper when a session disappoints: octets of a lost or silent session travel
//! again on the others, and an idle session carries a copy of the chunk that holds up the rest.

use super::{Reinjection, Sender};
use crate::set::tcp_manager::{Chunk, Ending, TcpManager};
use crate::time::{Duration, Instant};

impl Sender {
    /// The octets on `index`'s way that the node does not have are free to be given to others.
    pub(super) fn take_back(&mut self, index: usize) {
        let Self { sessions, unassigned, acknowledged, .. } = self;
        for chunk in &mut sessions[index].chunks {
            chunk.copied = true;
            unassigned.insert(chunk.start, chunk.end);
        }
        for range in acknowledged.as_slice() {
            unassigned.remove(range.start, range.end);
        }
    }

    /// How long a session with octets on its way may be silent.
    fn silence_of(&self, session: &TcpManager) -> Duration {
        let usual =
            session.estimate.latency().unwrap_or(self.request_time) + session.estimate.variation() * 4;
        let drain = session.estimate.time_for(session.outstanding, 1);
        self.config.silence.max(self.request_time * 8).max(usual * 4).max(drain * 4)
    }

    /// When `session` becomes suspect, or if it is, when it is given up.
    fn silent_at(&self, session: &TcpManager) -> Option<Instant> {
        if !session.is_alive() || session.outstanding == 0 {
            return None;
        }
        let silence = self.silence_of(session);
        Some(session.heard + if session.suspect { silence * 4 } else { silence })
    }

    pub(super) fn silence_timeout(&self) -> Option<Instant> {
        // The last one alive has nobody to leave its octets to: TCP and the stall time-out judge it.
        if self.sessions.iter().filter(|s| s.is_alive()).count() < 2 && self.waiting.is_empty() {
            return None;
        }
        self.sessions.iter().filter_map(|s| self.silent_at(s)).min()
    }

    /// Passes over sessions that have gone silent, and closes those that stay so.
    pub(super) fn find_silent(&mut self, now: Instant) {
        for index in 0..self.sessions.len() {
            if self.silence_timeout().is_none() {
                return;
            }
            if self.silent_at(&self.sessions[index]).is_none_or(|at| at > now) {
                continue;
            }
            if self.sessions[index].suspect {
                self.sessions[index].cut(Ending::Silent, &mut self.effects);
                self.lose(now, index);
            } else {
                self.sessions[index].suspect = true;
                self.take_back(index);
            }
        }
    }

    /// With nothing new to give, idle sessions carry copies of what would otherwise hold up the rest.
    pub(super) fn rescue(&mut self, now: Instant) {
        self.rescue_at = None;
        if self.config.reinjection == Reinjection::Off {
            return;
        }
        while let Some((holder, chunk)) = self.last_expected(now) {
            if !self.copy(now, holder, chunk, Margin::Idle) {
                // What we expect of the holder may turn out wrong: look again.
                self.rescue_at = Some(now + RESCUE_PERIOD);
                return;
            }
        }
    }

    /// Copies the first octets that the node lacks before new ones are given out, if that clearly helps: the
    /// others are running into the end of the node's buffer.
    pub(super) fn rescue_late(&mut self, now: Instant) {
        if self.config.reinjection == Reinjection::Off {
            return;
        }
        while let Some((holder, chunk)) = self.first_missing() {
            if !self.copy(now, holder, chunk, Margin::Busy) {
                return;
            }
        }
    }

    /// Gives a copy of a chunk to the session that would have it there first, if that is before the original by
    /// the margin; false if none would.
    fn copy(&mut self, now: Instant, holder: usize, chunk: usize, margin: Margin) -> bool {
        let (start, end) = {
            let c = &self.sessions[holder].chunks[chunk];
            (c.start, c.end)
        };
        self.view_paths(end - start);
        let views = self.views.iter().enumerate();
        let able = views.filter(|(i, v)| *i != holder && v.usable && v.chunk >= end - start);
        let Some((helper, view)) = able.min_by_key(|(_, v)| v.time_for_chunk) else { return false };
        let needed = match margin {
            Margin::Idle => view.time_for_chunk.mul_ratio(5, 4),
            Margin::Busy => view.time_for_chunk * 2,
        };
        if needed >= self.remaining(now, holder, chunk) {
            return false;
        }
        self.sessions[holder].chunks[chunk].copied = true;
        self.write(now, helper, start, end, true);
        true
    }

    /// How long a chunk will still take: what we said when it was written, or, if that has come to nothing,
    /// what is before it on its session at the rate of today.
    fn remaining(&self, now: Instant, holder: usize, chunk: usize) -> Duration {
        let session = &self.sessions[holder];
        let ahead: u64 = session.chunks.iter().take(chunk).map(|c| c.end - c.start).sum();
        let this = &session.chunks[chunk];
        let promised = this.stamp.expected.saturating_since(now);
        let age = now.saturating_since(this.stamp.written);
        let drain = session.estimate.time_for(ahead, this.end - this.start).saturating_sub(age.min(promised));
        promised.max(drain)
    }

    /// Chunks that only one living session carries.
    fn single_chunks(&self) -> impl Iterator<Item = (usize, usize, &Chunk)> + '_ {
        let alive = self.sessions.iter().enumerate().filter(|(_, s)| s.is_alive());
        let all = alive
            .flat_map(|(s, session)| session.chunks.iter().enumerate().map(move |(c, chunk)| (s, c, chunk)));
        all.filter(|(_, _, chunk)| !chunk.copied)
    }

    /// The chunk that holds up the rest: at the end of the file the one that is expected last; against a full
    /// node buffer the first.
    fn last_expected(&self, now: Instant) -> Option<(usize, usize)> {
        if !self.unassigned.is_empty() {
            return self.first_missing();
        }
        self.single_chunks().max_by_key(|(s, c, _)| self.remaining(now, *s, *c)).map(|(s, c, _)| (s, c))
    }

    fn first_missing(&self) -> Option<(usize, usize)> {
        self.single_chunks().min_by_key(|(_, _, chunk)| chunk.start).map(|(s, c, _)| (s, c))
    }
}

/// How clearly a copy must beat the original.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Margin {
    /// The helper has nothing else to do.
    Idle,
    /// The helper would carry something new instead.
    Busy,
}

/// How often an idle session looks again for something to copy.
const RESCUE_PERIOD: Duration = Duration::from_millis(50);
