//! What SET does beyond the paper when a session disappoints: octets of a lost or silent session travel
//! again on the others, and an idle session carries a copy of the chunk that holds up the rest.

use super::{Reinjection, Sender};
use crate::set::tcp_manager::{Ending, TcpManager};
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
        while let Some((holder, chunk)) = self.last_expected() {
            if !self.copy(now, holder, chunk) {
                let overdue = self.overdue_at(holder, chunk);
                self.rescue_at = Some(overdue).filter(|at| *at > now);
                return;
            }
        }
    }

    /// Copies the first octets that the node lacks, if they are overdue, before new ones are given out.
    pub(super) fn rescue_late(&mut self, now: Instant) {
        if self.config.reinjection == Reinjection::Off {
            return;
        }
        while let Some((holder, chunk)) = self.last_expected().filter(|(h, c)| self.overdue_at(*h, *c) <= now)
        {
            if !self.copy(now, holder, chunk) {
                return;
            }
        }
    }

    /// Gives a copy of a chunk to the session that helps most; false if none does.
    fn copy(&mut self, now: Instant, holder: usize, chunk: usize) -> bool {
        let (start, end) = {
            let c = &self.sessions[holder].chunks[chunk];
            (c.start, c.end)
        };
        let Some(helper) = self.helper_for(now, holder, chunk, end - start) else { return false };
        self.sessions[holder].chunks[chunk].copied = true;
        self.write(now, helper, start, end, true);
        true
    }

    /// The chunk without a copy that holds up the rest: at the end of the file the one that is expected
    /// last; against a full node buffer the first.
    fn last_expected(&self) -> Option<(usize, usize)> {
        let blocked = !self.unassigned.is_empty();
        let all =
            self.sessions.iter().enumerate().flat_map(|(s, session)| {
                session.chunks.iter().enumerate().map(move |(c, chunk)| (s, c, chunk))
            });
        let single = all.filter(|(s, _, chunk)| !chunk.copied && self.sessions[*s].is_alive());
        let found = if blocked {
            single.min_by_key(|(_, _, chunk)| chunk.start)
        } else {
            single.max_by_key(|(_, _, chunk)| chunk.stamp.expected)
        };
        found.map(|(s, c, _)| (s, c))
    }

    /// The session that would have a copy there first, and clearly before the original.
    fn helper_for(&mut self, now: Instant, holder: usize, chunk: usize, octets: u64) -> Option<usize> {
        self.view_paths(octets);
        let expected = self.sessions[holder].chunks[chunk].stamp.expected;
        let overdue = now >= self.overdue_at(holder, chunk);
        let views = self.views.iter().enumerate();
        let able = views.filter(|(i, v)| *i != holder && v.usable && v.chunk >= octets);
        let (helper, view) = able.min_by_key(|(_, v)| v.time_for_chunk)?;
        let there = now + view.time_for_chunk.mul_ratio(5, 4);
        (overdue || there < expected).then_some(helper)
    }

    fn overdue_at(&self, holder: usize, chunk: usize) -> Instant {
        let session = &self.sessions[holder];
        session.chunks[chunk].stamp.expected + session.estimate.variation() * 4
    }
}
