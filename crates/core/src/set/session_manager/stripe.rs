//! The striping engine: cuts chunks and hands them to sessions (section 4.5).

use anabranch_wire::set::Plan;

use super::{Sender, Start};
use crate::set::striping::{FileView, PathView, StripingPolicy};
use crate::set::tcp_manager::{State, TcpManager};
use crate::time::Instant;

/// The most that a data header takes in either layout.
const HEADER: u64 = 24;
/// Chunks that the session which was established fastest may have on its way before anything is known of it.
const FIRST_CHUNKS: u64 = 8;
/// Chunks that any other may have.
const PROBE_CHUNKS: u64 = 4;
/// Towards the end of the file chunks shrink, so that sessions can end together, down to so many octets: four
/// segments of the smallest wireless connection.
const SMALLEST_CHUNK: u64 = 324;

impl Sender {
    /// Gives sessions what they may have until nobody may have more.
    pub(super) fn stripe(&mut self, now: Instant) {
        if self.config.plan == Plan::Split {
            return self.pour();
        }
        self.pass_over_unopened(now);
        while let Some(next) = self.unassigned.next_from(0) {
            // No octet may lie further ahead than the node's buffer reaches.
            let end = next.end.min(self.delivered + self.buffer);
            if next.start >= end {
                break;
            }
            if next.start > self.delivered + self.buffer / 2 {
                // Somebody is late, and the others are running into the end of the node's buffer.
                self.rescue_late(now);
            }
            self.view_paths((end - next.start).min(self.grain()));
            let file = FileView { unassigned: self.unassigned.octets(), buffer: self.buffer };
            let Some(index) = self.striping.choose(&self.views, &file) else { break };
            let end = next.start + self.views[index].chunk;
            self.unassigned.remove(next.start, end);
            self.write(now, index, next.start, end);
        }
        self.rescue(now);
    }

    pub(super) fn write(&mut self, now: Instant, index: usize, start: u64, end: u64) {
        let part = self.file.part(start, end);
        self.sessions[index].write(now, start, part, &mut self.effects);
    }

    /// The largest chunk to cut now: half of a session's part of what is left.
    fn grain(&self) -> u64 {
        match self.config.striping {
            StripingPolicy::Window | StripingPolicy::Custom(_) => u64::MAX,
            StripingPolicy::Predictive => {
                (self.unassigned.octets() / (2 * self.selected.max(1) as u64)).max(SMALLEST_CHUNK)
            }
        }
    }

    /// Fills `self.views`: what each session would get of `available` octets.
    pub(super) fn view_paths(&mut self, available: u64) {
        let first_alive = self.sessions.iter().position(TcpManager::is_alive);
        // Whoever was established in the shortest time is the best guess before anything is measured.
        let alive = self.sessions.iter().enumerate().filter(|(_, s)| s.is_alive());
        let established = alive.filter_map(|(i, s)| s.establishment.map(|took| (took, i)));
        let fastest = established.min().map(|(_, i)| i);
        let Self { views, sessions, config, .. } = self;
        views.clear();
        views.extend(sessions.iter().enumerate().map(|(i, session)| {
            let early = config.start == Start::Early && Some(i) == first_alive;
            let usable = match session.state {
                State::Opened => !session.suspect,
                State::OpenWait { .. } => early,
                State::Calling | State::Released | State::Closed(_) => false,
            };
            let bound = match config.striping {
                StripingPolicy::Window | StripingPolicy::Custom(_) => u64::MAX,
                StripingPolicy::Predictive => enough_for(session, Some(i) == fastest, config.spare_chunks),
            };
            let chunk =
                if usable && session.outstanding() < bound { chunk_for(session, available) } else { 0 };
            PathView {
                room: session.status.room(),
                chunk,
                outstanding: session.outstanding(),
                rate: session.estimate.rate(),
                time_for_chunk: session.estimate.time_for(session.outstanding(), chunk.max(1)),
                usable,
            }
        }));
    }

    /// A plain split connection gets the whole file at once.
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

/// Octets on its way at which a session gets no more. Before anything is known of it, the one established fastest
/// may fill a window as TCP does; any other has to show with less what it is.
fn enough_for(session: &TcpManager, fastest: bool, spare_chunks: u64) -> u64 {
    let chunk = u64::from(session.status.mss);
    match (session.estimate.rate(), fastest) {
        (Some(_), _) => session.estimate.enough(spare_chunks * chunk),
        (None, true) => FIRST_CHUNKS * chunk,
        (None, false) => PROBE_CHUNKS * chunk,
    }
}

/// A chunk fills one segment of the wired connection with its header; less only where the window or the file
/// leaves less, and crumbs not at all while something is on its way.
fn chunk_for(session: &TcpManager, available: u64) -> u64 {
    let full = u64::from(session.status.mss).saturating_sub(HEADER).max(1);
    let room = u64::from(session.status.room()).saturating_sub(HEADER);
    let chunk = full.min(available).min(room);
    let idle = session.status.in_flight == 0 && session.status.unsent == 0;
    if chunk < full.min(available) / 4 && !idle { 0 } else { chunk }
}
