//! Output: segments of the subflows come first, then the scheduler assigns new data.

use alloc::vec::Vec;

use super::life::{has_arrived, has_in_order};
use super::{Connection, Mode};
use crate::mptcp::config::Reinjection;
use crate::mptcp::info::SubflowId;
use crate::mptcp::scheduler::{Demand, PathView, Pick, Scheduler, SchedulerKind};
use crate::mptcp::send::Copy;
use crate::mptcp::subflow::Subflow;
use crate::segment::{DataSeqNumber, Segment};
use crate::tcp::{self, Push, TIGHTER};
use crate::time::Instant;

impl Connection {
    /// Returns the next segment to send and its subflow, until `None`.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<(SubflowId, Segment)> {
        if let Some(reset) = self.resets.pop_front() {
            return Some(reset);
        }
        if self.leaving && self.tx.unsent() > 0 && self.may_fall_back() {
            self.fall_back(Some(self.peer_window()));
        }
        self.say_end();
        loop {
            // Assign first, so that data carries the subflow's acknowledgement.
            let assigned = self.mode == Mode::Multipath && self.over.is_none() && self.assign_burst(now);
            for i in 0..self.subflows.len() {
                let index = (self.turn + i) % self.subflows.len();
                let (more, copies) = (self.tx.unsent() > 0, self.tx.has_chunks());
                let subflow = &mut self.subflows[index];
                subflow.tcp.set_more(more, copies);
                if let Some(segment) = subflow.tcp.poll_transmit(now) {
                    self.turn = index;
                    let id = subflow.id;
                    return Some((id, segment));
                }
            }
            if !assigned {
                return None;
            }
        }
    }

    /// Schedules the DATA_FIN without data if no subflow that works has sent it. If it is lost, the
    /// stall timer repeats it.
    fn say_end(&mut self) {
        if self.mode != Mode::Multipath || !self.ends() {
            return;
        }
        let said = |s: &mut Subflow| s.tcp.multipath().is_some_and(|m| m.data_fin_said);
        if self.subflows.iter_mut().any(|s| s.works() && said(s)) {
            return;
        }
        if let Some(index) = self.speakers().into_iter().find(|index| !said(&mut self.subflows[*index]))
            && let Some(multipath) = self.subflows[index].tcp.multipath()
        {
            multipath.data_fin_due = true;
            multipath.data_fin_said = true;
            // The keys come first. The answer to a probe shows that the peer has them.
            multipath.probe_due |= multipath.ack.is_some();
        }
    }

    /// Whether only the DATA_FIN may be missing at the peer, besides data under way.
    pub(super) fn ends(&self) -> bool {
        self.tx.is_closed() && !self.tx.fin_acked() && self.tx.unsent() == 0
    }

    /// The subflows for a segment without data, the most promising one first: one that answers,
    /// that is no backup, and from which the peer was heard last.
    pub(super) fn speakers(&self) -> Vec<usize> {
        let mut ready: Vec<usize> =
            (0..self.subflows.len()).filter(|i| self.subflows[*i].is_ready()).collect();
        ready.sort_by_key(|index| {
            let subflow = &self.subflows[*index];
            (!subflow.answers(), subflow.is_backup(), *index != self.last_heard, subflow.tcp.info().srtt)
        });
        ready
    }

    /// Assigns one chunk. If PSH requests one acknowledgement per window, assigns all chunks that
    /// may leave now, because the last one of each subflow must be known. Returns false if there is
    /// none.
    fn assign_burst(&mut self, now: Instant) -> bool {
        let assigned = self.assign(now);
        while assigned && self.config.tcp.push == Push::Window && self.assign(now) {}
        assigned
    }

    /// Assigns one chunk; returns false if there is none, or no room.
    fn assign(&mut self, now: Instant) -> bool {
        let unsent = self.tx.unsent();
        if unsent == 0 && !self.tx.has_chunks() {
            return false;
        }
        let views = self.views(now);
        if views.is_empty() {
            return false;
        }
        if self.reinject(now, &views) {
            return true;
        }
        let in_flight = self.tx.in_flight();
        let demand =
            Demand { unsent, window: self.tx.peer_window(), in_flight, assigned: self.tx.acked + in_flight };
        match self.scheduler.pick(&demand, &views) {
            Pick::Send { index, skip } => self.send_new(now, index, skip) || self.relieve(now, &views),
            Pick::Copy { index } => match self.lacking(index) {
                Some(chunk) => self.send_copy(now, index, chunk),
                None => false,
            },
            Pick::Rescue => self.rescue(now, &views),
            Pick::Wait => unsent > 0 && self.tx.peek(0, 1).is_none() && self.relieve(now, &views),
        }
    }

    /// The subflows that carry data: silent ones only if all are, and backups only if the others
    /// have had a time-out and no answer since (RFC 8684 section 3.3.8). A silence alone may be a
    /// false alarm, and a backup may be expensive.
    fn views(&self, now: Instant) -> Vec<PathView> {
        let regular = self.subflows.iter().any(|s| s.is_ready() && !s.is_backup() && !s.is_condemned());
        let eligible = |s: &Subflow| s.is_ready() && !(regular && s.is_backup());
        let speaks = self.subflows.iter().any(|s| eligible(s) && s.answers());
        let carries = |s: &Subflow| eligible(s) && (!speaks || s.answers());
        let redundant = self.config.scheduler == SchedulerKind::Redundant;
        let mut views = Vec::new();
        for (index, subflow) in self.subflows.iter().enumerate() {
            if carries(subflow) {
                views.push(view(now, index, subflow, redundant && self.lacking(index).is_some()));
            }
        }
        views
    }

    /// The first chunk that was not sent on a subflow.
    fn lacking(&self, index: usize) -> Option<usize> {
        self.tx.chunks().position(|chunk| !chunk.is_on(index))
    }

    /// Sends a chunk that was lost with a subflow, or is assumed lost, on another.
    fn reinject(&mut self, now: Instant, views: &[PathView]) -> bool {
        let subflows = &self.subflows;
        // The chunk may have arrived in the meantime, if its subflow is alive.
        let arrived =
            |copy: &Copy| subflows.get(copy.on).is_some_and(Subflow::is_alive) && has_arrived(subflows, copy);
        while let Some(chunk) = self.tx.first_lost(|chunk| self.stalls == 0 && chunk.copies().any(arrived)) {
            self.tx.found(chunk);
        }
        let mut order: Vec<&PathView> = views.iter().filter(|view| view.takes(u64::from(view.mss))).collect();
        order.sort_by_key(|view| view.rtt);
        for view in order {
            let index = view.index;
            // A subflow that has the chunk retransmits it by itself, unless it considers it
            // delivered.
            let pending = |copy: &Copy| copy.on == index && !has_in_order(subflows, copy);
            let chunk = self.tx.first_lost(|chunk| !chunk.copies().any(pending));
            if let Some(chunk) = chunk {
                return self.send_copy(now, index, chunk);
            }
        }
        false
    }

    /// Sends a copy of the first chunk on a faster subflow with room, because the chunk blocks the
    /// window on a slow one.
    fn relieve(&mut self, now: Instant, views: &[PathView]) -> bool {
        if self.config.reinjection != Reinjection::Opportunistic {
            return false;
        }
        let Some(first) = self.tx.chunk(0) else { return false };
        let mut faster: Vec<&PathView> = views
            .iter()
            .filter(|view| view.takes(u64::from(view.mss)) && !first.is_on(view.index))
            .filter(|view| {
                let slower = |copy: &Copy| {
                    views.iter().find(|other| other.index == copy.on).is_none_or(|other| other.rtt > view.rtt)
                };
                first.copies().all(slower)
            })
            .collect();
        faster.sort_by_key(|view| view.rtt);
        match faster.first() {
            Some(view) => {
                let index = view.index;
                self.send_copy(now, index, 0)
            }
            None => false,
        }
    }

    /// Sends a copy of the first overdue chunk on another subflow with room, when no new data is
    /// left. After the owner has closed, a chunk alone on a slow and lossy subflow is copied too,
    /// if a faster subflow delivers it before its loss would be noticed.
    fn rescue(&mut self, now: Instant, views: &[PathView]) -> bool {
        if self.config.reinjection != Reinjection::Opportunistic {
            return false;
        }
        let mut with_room: Vec<&PathView> =
            views.iter().filter(|view| view.takes(u64::from(view.mss))).collect();
        with_room.sort_by_key(|view| view.arrival());
        let ends = self.tx.is_closed();
        for view in with_room {
            let late = |copy: &Copy| {
                let Some(other) = views.iter().find(|other| other.index == copy.on) else { return true };
                let noticed = copy.at + other.overdue();
                let faster = other.arrival() > view.arrival() && now + view.arrival() < noticed;
                !self.subflows[copy.on].tcp.has_delivered(copy.seq, copy.end)
                    && (noticed < now || (ends && other.loss > 0.0 && faster))
            };
            let chunk =
                self.tx.chunks().position(|chunk| !chunk.is_on(view.index) && chunk.copies().all(late));
            if let Some(chunk) = chunk {
                let index = view.index;
                return self.send_copy(now, index, chunk);
            }
        }
        false
    }

    fn send_new(&mut self, now: Instant, index: usize, skip: u64) -> bool {
        let Some(subflow) = self.subflows.get_mut(index) else { return false };
        let mut most = u32::from(subflow.tcp.info().mss);
        // Data segments repeat the keys, in an option that is larger than a later DSS.
        if subflow.tcp.multipath().is_some_and(|m| m.keys.is_some()) {
            most = most.saturating_sub(TIGHTER).max(1);
        }
        let Some((dsn, len)) = self.tx.peek(skip, most) else { return false };
        // Silly window avoidance (RFC 9293 section 3.8.6.2.1) on the data level.
        if len < most && self.tx.is_cut_by_window(dsn, len) && self.tx.has_chunks() {
            return false;
        }
        let copy = self.put(now, index, dsn, len);
        self.tx.assign(dsn, len, copy);
        true
    }

    fn send_copy(&mut self, now: Instant, index: usize, chunk: usize) -> bool {
        let Some((dsn, len)) = self.tx.chunk(chunk).map(|chunk| (chunk.dsn, chunk.len)) else { return false };
        let copy = self.put(now, index, dsn, len);
        self.diverged = true;
        self.tx.copied(chunk, copy);
        true
    }

    /// The peer's window in bytes, as a subflow counts it.
    pub(super) fn peer_window(&self) -> u32 {
        self.tx.peer_window().min(u64::from(u32::MAX)) as u32
    }

    fn put(&mut self, now: Instant, index: usize, dsn: DataSeqNumber, len: u32) -> Copy {
        let data = self.tx.data(dsn, len);
        let subflow = &mut self.subflows[index];
        subflow.bytes_assigned += u64::from(len);
        let end = subflow.tcp.write_mapped(dsn, data);
        subflow.pace.sent(now);
        subflow.silence.sent(now);
        self.turn = index;
        Copy { on: index, seq: end - len, end, at: now }
    }
}

fn view(now: Instant, index: usize, subflow: &Subflow, lacks: bool) -> PathView {
    let tcp = subflow.tcp.info();
    let rtt = tcp.srtt.or(subflow.facts.rtt).unwrap_or(tcp.rto);
    let (w_min, w_max) = subflow.tcp.window_bounds();
    PathView {
        index,
        service: subflow.pace.service(),
        wait: subflow.pace.wait(now),
        loss: subflow.facts.loss.unwrap_or_else(|| loss(&tcp)),
        stuck: subflow.tcp.repairs_timeout(),
        rtt,
        rttvar: tcp.rttvar,
        min_rtt: tcp.min_rtt.unwrap_or(rtt),
        mss: u32::from(tcp.mss),
        cwnd: tcp.cwnd,
        ssthresh: tcp.ssthresh,
        w_min,
        w_max,
        in_flight: tcp.in_flight + tcp.unsent,
        rto: tcp.rto,
        room: subflow.tcp.room(now),
        lacks,
        facts: subflow.facts,
    }
}

/// Share of retransmitted segments. A constant number of delivered segments is added, which stands
/// for the missing measurements at the beginning.
fn loss(tcp: &tcp::Info) -> f64 {
    let delivered = tcp.bytes_acked / u64::from(tcp.mss.max(1));
    tcp.retransmissions as f64 / (delivered + tcp.retransmissions + UNKNOWN) as f64
}

const UNKNOWN: u64 = 20;
