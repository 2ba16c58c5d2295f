//! The striping engine: cuts chunks and assigns them to sessions (section 4.5).

use anabranch_wire::set::Plan;

use super::{OpenWhen, Sender, Start, turns};
use crate::rates::octets_in;
use crate::set::striping::{self, FileView, PathView, SMALLEST_CHUNK, StripingPolicy};
use crate::set::tcp_manager::{Chunk, State, TcpManager};
use crate::time::{Duration, Instant};

/// Upper bound of the data header in bytes, in either layout.
const HEADER: u64 = 24;
/// Number of chunks in flight allowed on an unmeasured session if it was established the fastest.
pub(super) const FIRST_CHUNKS: u64 = 8;
/// Number of chunks in flight allowed on any other unmeasured session.
const PROBE_CHUNKS: u64 = 4;
/// Divisor of the remaining data. The quotient is the amount that a leading session may have in
/// flight beyond the needs of its path, if it is the only selected one; each further session
/// divides it by four.
const LATE_PART: u64 = 8;
/// Time that the chunks of [`super::SenderConfig::spare_chunks`] may take on their path. The delays
/// that they bridge do not grow with the time of a chunk. On a slow path more chunks only wait
/// longer: twelve on each of three sessions of a mesh made a latency of 20 s, after which a change
/// of policy came too late. A lossy path needs them, as the node acknowledges nothing behind a
/// loss.
const SPARE_TIME: Duration = Duration::from_millis(500);
/// Number of spare chunks on the slowest path.
const LEAST_SPARE: u64 = 2;
/// Round trips of data that a leading session may have in flight until the others have proved
/// slower. Before that any session may seem to lead, and data in flight on a slow one blocks all
/// others.
const UNSURE: u64 = 8;

impl Sender {
    /// Assigns chunks until no session may take more.
    pub(super) fn stripe(&mut self, now: Instant) {
        if self.config.plan == Plan::Split {
            return self.pour();
        }
        self.pass_over_unopened(now);
        self.adapt(now);
        match self.policy() {
            StripingPolicy::Turns => self.take_turns(now),
            StripingPolicy::Window
            | StripingPolicy::Predictive
            | StripingPolicy::Adaptive
            | StripingPolicy::Custom(_) => self.hand_out(now),
        }
        if self.unassigned.is_empty() && self.config.open == OpenWhen::Staggered && !self.waiting.is_empty() {
            self.call_next(now);
        }
        // A copy that falls out of the turns would meet other packets.
        if self.policy() == StripingPolicy::Turns && !self.unassigned.is_empty() {
            self.rescue_at = None;
        } else {
            self.rescue(now);
        }
    }

    /// Assigns chunks by the policy.
    fn hand_out(&mut self, now: Instant) {
        while let Some(next) = self.unassigned.next_from(0) {
            if next.start > self.delivered + self.buffer / 2 {
                // A session is late, and the others are about to fill the node's buffer.
                self.rescue_late(now);
            }
            let file = self.file_view();
            let end = next.end.min(next.start.saturating_add(self.grain(&file)));
            self.view_paths(now, next.start, end);
            let Some(index) = self.striping.choose(&self.views, &file) else { break };
            let end = next.start + self.views[index].chunk;
            self.unassigned.remove(next.start, end);
            self.write(now, index, next.start, end);
        }
    }

    pub(super) fn write(&mut self, now: Instant, index: usize, start: u64, end: u64) {
        let part = self.file.part(start, end);
        let at_once = self.policy() == StripingPolicy::Turns;
        self.sessions[index].write(now, start, part, at_once, &mut self.effects);
    }

    /// Largest chunk to cut now: half of a session's part of the remaining data and, if several
    /// sessions share the node's buffer, at most half of the buffer. Chunks shrink towards the end
    /// of the file, so that the sessions finish together.
    fn grain(&self, file: &FileView) -> u64 {
        match self.policy() {
            StripingPolicy::Window | StripingPolicy::Turns | StripingPolicy::Custom(_) => u64::MAX,
            StripingPolicy::Predictive | StripingPolicy::Adaptive => {
                let part = file.unassigned / (2 * self.selected.max(1) as u64);
                let shared = if self.alone(file) { u64::MAX } else { self.buffer / 2 };
                part.min(shared).max(SMALLEST_CHUNK)
            }
        }
    }

    /// Whether one session carries the file alone, because no other would get a chunk.
    pub(super) fn alone(&self, file: &FileView) -> bool {
        let Some((index, leader)) = self.leader() else { return false };
        let helps = |s: &TcpManager| {
            let time = s.estimate.time_for(s.outstanding(), SMALLEST_CHUNK);
            striping::fits(SMALLEST_CHUNK, time, leader.estimate.capacity(), file)
        };
        self.waiting.is_empty() && !self.others(index).any(helps)
    }

    /// The current state of the file for a policy.
    pub(super) fn file_view(&self) -> FileView {
        FileView { unassigned: self.unassigned.octets(), buffer: self.buffer }
    }

    /// The live sessions except session `index`.
    fn others(&self, index: usize) -> impl Iterator<Item = &TcpManager> {
        self.sessions.iter().enumerate().filter(move |(i, s)| *i != index && s.is_alive()).map(|(_, s)| s)
    }

    /// The session with the highest recent rate.
    fn leader(&self) -> Option<(usize, &TcpManager)> {
        let alive = self.sessions.iter().enumerate().filter(|(_, s)| s.is_alive());
        alive.max_by_key(|(_, s)| s.estimate.capacity())
    }

    /// Computes how far each session may write if the next byte to write is `start`.
    fn reach(&self, start: u64) -> Reach {
        let lacking = |c: &&Chunk| !self.acknowledged.covers(c.start, c.end);
        let mut reach = Reach { buffer: self.buffer, first: start, carrier: usize::MAX, second: start };
        for (index, session) in self.sessions.iter().enumerate() {
            let Some(first) = session.chunks.iter().filter(lacking).map(|c| c.start).min() else { continue };
            if first < reach.first {
                reach = Reach { first, carrier: index, second: reach.first, ..reach };
            } else {
                reach.second = reach.second.min(first);
            }
        }
        reach
    }

    /// Fills `self.views`: what each session would get of the bytes from `start` to `end`.
    pub(super) fn view_paths(&mut self, now: Instant, start: u64, end: u64) {
        // Avoids a scan of all chunks in flight for every chunk.
        let within = end <= self.delivered + self.buffer;
        let reach = (!within).then(|| self.reach(start));
        let first_alive = self.sessions.iter().position(TcpManager::is_alive);
        // Before the first measurement, the session with the shortest establishment is assumed to
        // be the fastest.
        let alive = self.sessions.iter().enumerate().filter(|(_, s)| s.is_alive());
        let established = alive.filter_map(|(i, s)| s.establishment.map(|took| (took, i)));
        let fastest = established.min().map(|(_, i)| i);
        let all_given = self.unassigned.is_empty();
        let policy = self.policy();
        let leader = if policy == StripingPolicy::Predictive { self.clear_leader(now) } else { None };
        let Self { views, sessions, config, .. } = self;
        views.clear();
        views.extend(sessions.iter().enumerate().map(|(i, session)| {
            let early = config.start == Start::Early && (all_given || Some(i) == first_alive);
            let usable = match session.state {
                State::Opened => !session.suspect,
                State::OpenWait { .. } => early,
                State::Calling | State::Released | State::Closed(_) => false,
            };
            let bound = match policy {
                StripingPolicy::Window | StripingPolicy::Custom(_) => u64::MAX,
                StripingPolicy::Turns => turns::IN_FLIGHT * turns::CHUNK,
                StripingPolicy::Predictive | StripingPolicy::Adaptive => {
                    let plenty = leader.filter(|(leader, _)| *leader == i).map(|(_, plenty)| plenty);
                    enough_for(session, Some(i) == fastest, plenty, config.spare_chunks)
                }
            };
            let end = reach.as_ref().map_or(end, |reach| end.min(reach.of(i)));
            let available = end.saturating_sub(start);
            let chunk =
                if usable && session.outstanding() < bound { chunk_for(session, available) } else { 0 };
            PathView {
                room: session.status.room(),
                chunk,
                outstanding: session.outstanding(),
                rate: session.estimate.rate(),
                capacity: session.estimate.capacity(),
                time_for_chunk: session.estimate.time_for(session.outstanding(), chunk.max(1)),
                usable,
            }
        }));
    }

    /// Finds the session that is at least twice as fast as any other, and the number of bytes that
    /// it may have in flight even if its path needs less.
    ///
    /// The bound is the node's buffer, but at most a small part of the remaining bytes, so that the
    /// sessions still finish together. Without it, a gateway that runs empty receives the next
    /// chunks as a burst. Its queue drops part of the burst, and its TCP, with little in flight,
    /// sets its threshold (RFC 5681 section 3.1) far below the capacity of the path.
    fn clear_leader(&self, now: Instant) -> Option<(usize, u64)> {
        let (index, leader) = self.leader()?;
        let half = leader.estimate.capacity() / 2;
        if self.others(index).any(|s| s.estimate.capacity() > half) {
            return None;
        }
        let others = self.selected.saturating_sub(1).min(16);
        let plenty = (self.unassigned.octets() / (LATE_PART << (2 * others))).min(self.buffer);
        let unsure = if self.leads_for_sure(now, index) { u64::MAX } else { leader.estimate.pipes(UNSURE) };
        Some((index, plenty.min(unsure)))
    }

    /// Whether each other session is measured, or has its first chunk in flight for longer than the
    /// latency of session `index`.
    fn leads_for_sure(&self, now: Instant, index: usize) -> bool {
        let Some(latency) = self.sessions[index].estimate.latency() else { return false };
        self.others(index).all(|s| {
            let first = s.chunks.front().map(|chunk| chunk.stamp.written);
            s.estimate.rate().is_some() || first.is_some_and(|first| now.saturating_since(first) > latency)
        })
    }

    /// Assigns the whole file to a plain split connection.
    fn pour(&mut self) {
        let Some(session) = self.sessions.last_mut().filter(|s| s.state == State::Opened && s.written == 0)
        else {
            return;
        };
        let length = self.file.length();
        self.unassigned.remove(0, length);
        session.write_plain(self.file.part(0, length), &mut self.effects);
    }
}

/// Limits of writing. No byte may reach the node further ahead of the delivered bytes than the size
/// of its buffer. A session delivers in order, so bytes that it carries itself arrive before its
/// next chunk. Only the first missing byte that another session carries counts.
#[derive(Debug)]
struct Reach {
    buffer: u64,
    /// The first byte in flight.
    first: u64,
    /// The session that carries it.
    carrier: usize,
    /// The first byte in flight that any other session carries.
    second: u64,
}

impl Reach {
    /// One past the last byte that session `index` may write.
    fn of(&self, index: usize) -> u64 {
        self.buffer.saturating_add(if index == self.carrier { self.second } else { self.first })
    }
}

/// Number of bytes in flight at which a session gets no more. Of the unmeasured sessions, the one
/// that was established the fastest may fill an initial window of TCP; any other is tested with
/// less. A clear leader may have at least `plenty`.
fn enough_for(session: &TcpManager, fastest: bool, plenty: Option<u64>, spare_chunks: u64) -> u64 {
    let chunk = u64::from(session.status.mss);
    match (session.estimate.rate(), fastest) {
        (Some(rate), _) => {
            let least = spare_chunks.min(LEAST_SPARE);
            let spare = (octets_in(rate, SPARE_TIME) / chunk.max(1)).clamp(least, spare_chunks);
            let enough = session.estimate.enough(plenty.is_some(), spare * chunk);
            enough.max(plenty.unwrap_or(0))
        }
        (None, true) => FIRST_CHUNKS * chunk,
        (None, false) => PROBE_CHUNKS * chunk,
    }
}

/// Size of the next chunk: one segment of the wired connection with its header. It is smaller only
/// if the window or the file leaves less; a very small chunk waits while data is in flight.
fn chunk_for(session: &TcpManager, available: u64) -> u64 {
    let full = u64::from(session.status.mss).saturating_sub(HEADER).max(1);
    let room = u64::from(session.status.room()).saturating_sub(HEADER);
    let chunk = full.min(available).min(room);
    let idle = session.status.in_flight == 0 && session.status.unsent == 0;
    if chunk < full.min(available) / 4 && !idle { 0 } else { chunk }
}
