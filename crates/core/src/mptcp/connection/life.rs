//! Time-outs, and the end of subflows and of the connection.

use alloc::vec::Vec;

use super::{Connection, Mode};
use crate::mptcp::config::Reinjection;
use crate::mptcp::info::{Event, SubflowId};
use crate::mptcp::send::{Chunk, Copy};
use crate::mptcp::silence;
use crate::mptcp::subflow::{Stage, Subflow};
use crate::segment::{DataSeqNumber, MpTcpRst, MptcpOption, ResetReason, SeqNumber};
use crate::tcp::{self, CloseReason, Coupling};
use crate::time::{Duration, Instant};

impl Connection {
    /// Closes the sending direction: DATA_FIN follows the last byte. The peer may continue to send
    /// (half-close).
    pub fn close(&mut self, now: Instant) {
        if self.tx.is_closed() || self.over.is_some() {
            return;
        }
        self.tx.close();
        if let (Mode::Plain, Some(first)) = (self.mode, self.subflows.first_mut()) {
            first.tcp.close(now);
        }
        self.refresh();
        self.look_after(now);
    }

    /// Discards all data and resets the connection (MP_FASTCLOSE, RFC 8684 section 3.5).
    pub fn abort(&mut self, now: Instant) {
        if self.over.is_some() {
            return;
        }
        let receiver = self.remote.filter(|_| self.mode == Mode::Multipath).map(|remote| remote.key);
        for subflow in self.subflows.iter_mut().filter(|s| s.is_alive()) {
            if let (Some(multipath), Some(receiver)) = (subflow.tcp.multipath(), receiver) {
                multipath.reset = Some(MptcpOption::MpFastclose { receiver });
            }
            subflow.tcp.abort(now);
        }
        self.rx.discard();
        self.look_after(now);
        self.finish(CloseReason::Aborted);
    }

    /// Closes a subflow after its remaining data; other subflows continue. No effect on the last
    /// subflow.
    pub fn close_subflow(&mut self, now: Instant, subflow: SubflowId) {
        let others = self.subflows.iter().any(|s| s.is_ready() && s.id != subflow);
        if let (true, Some(subflow)) = (others, self.subflows.get_mut(subflow.index())) {
            retire(now, subflow);
        }
    }

    /// Resets a subflow whose path is lost; its unacknowledged data is sent on the others. Returns
    /// false, and has no effect, if no other subflow works.
    pub fn drop_subflow(&mut self, now: Instant, subflow: SubflowId) -> bool {
        if !self.subflows.iter().any(|s| s.is_ready() && s.id != subflow) {
            return false;
        }
        self.reset_subflow(subflow.index(), ResetReason::UNACCEPTABLE_PERFORMANCE);
        self.look_after(now);
        true
    }

    /// As [`tcp::Connection::handle_path_mtu`], for one subflow.
    pub fn handle_path_mtu(&mut self, now: Instant, subflow: SubflowId, mss: u16, seq: SeqNumber) -> bool {
        let subflow = self.subflows.get_mut(subflow.index()).filter(|s| s.is_alive());
        subflow.is_some_and(|subflow| subflow.tcp.handle_path_mtu(now, mss, seq))
    }

    /// When to call [`Connection::handle_timeout`]; may lie in the past.
    pub fn next_timeout(&self) -> Option<Instant> {
        let of = |s: &Subflow| [s.tcp.next_timeout(), s.confirm_at];
        let silent = (0..self.subflows.len()).map(|index| self.silent_at(index));
        let echoes = self.announced.iter().map(|announced| Some(announced.at));
        self.subflows.iter().flat_map(of).chain(silent).chain([self.stall_at]).chain(echoes).flatten().min()
    }

    /// When a subflow counts as silent, so that others send its data.
    fn silent_at(&self, index: usize) -> Option<Instant> {
        let (least, subflow) = (self.config.silence?, self.subflows.get(index)?);
        let others = self.subflows.iter().enumerate().any(|(i, s)| i != index && s.answers());
        if !others || !subflow.is_alive() {
            return None;
        }
        subflow.silence.deadline(&subflow.tcp.info(), least)
    }

    /// Handles expired timers. See [`Connection::next_timeout`]; an early call has no effect.
    pub fn handle_timeout(&mut self, now: Instant) {
        for index in 0..self.subflows.len() {
            let subflow = &mut self.subflows[index];
            subflow.tcp.handle_timeout(now);
            if subflow.confirm_at.is_some_and(|at| at <= now) {
                // The fourth segment or our third may be lost (RFC 8684 section 3.2).
                subflow.confirm_tries = subflow.confirm_tries.saturating_add(1);
                let wait = subflow.tcp.info().rto * (1 << subflow.confirm_tries.min(MAX_SHIFT as u8));
                subflow.confirm_at = Some(now + wait.min(MAX_STALL));
                subflow.tcp.acknowledge();
            }
            let timeouts = subflow.tcp.info().timeouts;
            if timeouts > subflow.timeouts {
                subflow.timeouts = timeouts;
                if self.config.reinjection != Reinjection::OnFailure {
                    self.lose(index);
                }
            }
            if self.silent_at(index).is_some_and(|at| at <= now) {
                let subflow = &mut self.subflows[index];
                subflow.silence.give_up(&subflow.tcp.info());
                self.lose(index);
            }
        }
        self.announce_again(now);
        self.maybe_request_plain();
        if self.stall_at.is_some_and(|at| at <= now) {
            self.stall_at = None;
            self.stalls += 1;
            self.unstall();
        }
        self.look_after(now);
    }

    /// Falls back to plain TCP if SYNs with MP_CAPABLE stay without an answer: a middlebox may drop
    /// them (RFC 8684 section 3.7).
    fn maybe_request_plain(&mut self) {
        let Some(first) = self.subflows.first() else { return };
        let tcp = first.tcp.info();
        let syns = u64::from(self.config.capable_syns);
        if tcp.state == tcp::State::SynSent && syns > 0 && tcp.timeouts >= syns {
            self.fall_back(None);
        }
    }

    /// Marks the unacknowledged chunks of a subflow for re-injection, unless another working
    /// subflow has them too.
    fn lose(&mut self, index: usize) {
        let subflows = &self.subflows;
        self.tx.mark_lost(|chunk| {
            let held = |copy: &Copy| {
                let other = subflows.get(copy.on).filter(|_| copy.on != index);
                other.is_some_and(Subflow::works) || has_arrived(subflows, copy)
            };
            chunk.is_on(index) && !chunk.copies().any(held)
        });
    }

    /// Takes back the marks that the silence of a subflow has set, which speaks again: it repairs
    /// its losses by itself.
    pub(super) fn keep(&mut self, index: usize) {
        let subflows = &self.subflows;
        self.tx.keep(|chunk| chunk.is_on(index) && !chunk.copies().any(|copy| has_in_order(subflows, copy)));
    }

    /// Handles a stall of the data level. Data that subflows have acknowledged and the peer lacks
    /// is sent again, the DATA_FIN is repeated, and a closed window is probed.
    fn unstall(&mut self) {
        if self.mute {
            // The peer answers our keys without an option, or has our data and sends no DATA_ACK: a
            // middlebox removes the options, or the peer has fallen back. Sent again on the same
            // subflow, the data could arrive twice.
            let deliver = self.deliver_oldest();
            if self.may_fall_back() && (!self.confirmed || !deliver.is_empty()) {
                return self.fall_back(Some(self.peer_window()));
            }
            // One segment without options may be an exception.
            if self.stalls > MOST_MUTE {
                deliver.iter().for_each(|index| self.reset_subflow(*index, ResetReason::MIDDLEBOX));
            } else if !deliver.is_empty() && self.subflows.iter().filter(|s| s.is_ready()).count() < 2 {
                return;
            }
        }
        let subflows = &self.subflows;
        let mut first = true;
        self.tx.mark_lost(|chunk| {
            // Only the first chunk: the window may have been too small for the others.
            core::mem::take(&mut first)
                && chunk.copies().all(|copy| {
                    subflows
                        .get(copy.on)
                        .is_none_or(|s| !s.is_alive() || s.tcp.has_delivered(copy.seq, copy.end))
                })
        });
        let (ends, stalls) = (self.ends(), self.stalls as usize);
        let (backups, regular): (Vec<usize>, Vec<usize>) =
            self.speakers().into_iter().partition(|index| self.subflows[*index].is_backup());
        // The first stall may be a false alarm, and a backup may be expensive.
        let backups = if stalls > 1 || regular.is_empty() { backups } else { Vec::new() };
        // Each stall probes on another subflow, because the previous one may have failed.
        for index in [regular, backups].iter().filter_map(|of| of.get(stalls % of.len().max(1))) {
            let Some(multipath) = self.subflows[*index].tcp.multipath() else { continue };
            // While the peer may lack our keys, the probe repeats them.
            if ends && multipath.ack.is_none() {
                multipath.data_fin_due = true;
            } else {
                multipath.probe_due = true;
            }
        }
    }

    /// The open subflows on which the peer has acknowledged the oldest chunk.
    fn deliver_oldest(&self) -> Vec<usize> {
        let delivers = |copy: &Copy| {
            let subflow = self.subflows.get(copy.on).filter(|s| s.is_alive());
            subflow.is_some_and(|s| s.tcp.has_delivered(copy.seq, copy.end))
        };
        let chunk = self.tx.chunk(0);
        chunk.into_iter().flat_map(Chunk::copies).filter(|copy| delivers(copy)).map(|copy| copy.on).collect()
    }

    fn arm_stall(&mut self, now: Instant) {
        let waits = self.mode == Mode::Multipath
            && (self.tx.has_chunks()
                || self.tx.unsent() > 0
                || (self.tx.is_closed() && !self.tx.fin_acked()));
        if !waits || self.over.is_some() {
            self.stall_at = None;
            return;
        }
        if self.stall_at.is_none() {
            let wait = self.patience() * (1 << self.stalls.min(MAX_SHIFT));
            self.stall_at = Some(now + wait.min(MAX_STALL));
        }
    }

    /// Time without progress before the first stall. A DATA_FIN without data is in no flight, so
    /// its subflow does not show a silence by itself.
    fn patience(&self) -> Duration {
        let ready = || self.subflows.iter().filter(|s| s.is_ready());
        if let Some(least) = self.config.silence
            && self.ends()
            && !self.tx.has_chunks()
            && ready().count() > 1
            && let Some(limit) = ready().filter_map(|s| silence::limit(&s.tcp.info(), least)).max()
        {
            return limit;
        }
        // The slowest subflow may still deliver, so the largest time-out counts.
        let rto = ready().map(|s| s.tcp.info().rto).max();
        rto.unwrap_or(Duration::from_secs(1)) * 2
    }

    /// Called after every event: handles state changes of subflows and their consequences.
    pub(super) fn look_after(&mut self, now: Instant) {
        for index in 0..self.subflows.len() {
            self.look_after_subflow(now, index);
        }
        // RFC 8684 section 3.3.3: the subflows are closed after both DATA_FINs are acknowledged.
        if self.mode == Mode::Multipath && self.tx.fin_acked() && self.rx.ended() {
            self.subflows.iter_mut().filter(|s| s.is_alive()).for_each(|s| retire(now, s));
        }
        self.count_kept();
        self.refresh();
        self.couple();
        self.arm_stall(now);
    }

    /// Updates the space that subflows still occupy (see `DataSender::count_kept`).
    fn count_kept(&mut self) {
        if self.mode != Mode::Multipath {
            return;
        }
        let subflows = &self.subflows;
        let una = |index: usize| subflows.get(index).filter(|s| s.is_alive()).map(|s| s.tcp.una());
        if self.tx.count_kept(una) {
            self.raise(Event::Writable);
        }
    }

    fn look_after_subflow(&mut self, now: Instant, index: usize) {
        while let Some(event) = self.subflows[index].tcp.poll_event() {
            match event {
                tcp::Event::Established => self.subflow_opened(now, index),
                tcp::Event::Readable if self.mode == Mode::Plain => self.raise(Event::Readable),
                tcp::Event::Writable if self.mode == Mode::Plain => self.raise(Event::Writable),
                tcp::Event::PeerClosed if self.mode == Mode::Plain => self.raise(Event::PeerClosed),
                tcp::Event::Readable | tcp::Event::Writable => {}
                tcp::Event::PeerClosed => self.peer_leaves(now, index),
                tcp::Event::Closed(reason) => self.bury(index, reason),
            }
        }
    }

    /// Handles the FIN of the peer. The subflow is of no further use for us either, unless it is
    /// the last one after the peer's DATA_FIN: our own data has yet to leave on it (RFC 8684
    /// section 3.3.3).
    fn peer_leaves(&mut self, now: Instant, index: usize) {
        let others = self.subflows.iter().enumerate().any(|(i, s)| i != index && s.is_ready());
        if others || !self.rx.ended() || self.tx.fin_acked() {
            retire(now, &mut self.subflows[index]);
        }
    }

    fn subflow_opened(&mut self, now: Instant, index: usize) {
        let subflow = &mut self.subflows[index];
        subflow.silence.opened(&subflow.tcp.info());
        match subflow.stage {
            Stage::Joining { .. } => {
                subflow.stage = Stage::Unconfirmed;
                subflow.confirm_at = Some(now + subflow.tcp.info().rto);
            }
            Stage::Offering
            | Stage::Ready
            | Stage::Joined { .. }
            | Stage::Unconfirmed
            | Stage::Retiring
            | Stage::Gone => {}
        }
        if index == 0 {
            self.raise(Event::Established);
        }
    }

    /// Handles the end of a subflow.
    pub(super) fn bury(&mut self, index: usize, reason: CloseReason) {
        let Some(subflow) = self.subflows.get_mut(index) else { return };
        if subflow.stage == Stage::Gone {
            return;
        }
        subflow.stage = Stage::Gone;
        subflow.confirm_at = None;
        let id = subflow.id;
        if let Some(multipath) = subflow.tcp.multipath() {
            multipath.data_fin_said = false;
        }
        if self.mode == Mode::Multipath {
            self.lose(index);
        }
        if self.mode != Mode::Plain && self.subflows.len() > 1 {
            self.raise(Event::SubflowClosed(id, reason));
        }
        if !self.subflows.iter().any(Subflow::is_alive) {
            let graceful = self.mode == Mode::Multipath && self.tx.fin_acked() && self.rx.ended();
            // Without both DATA_FINs data may be lost, even if each subflow ends with a FIN.
            let lost = self.mode == Mode::Multipath && reason == CloseReason::Graceful;
            self.finish(match graceful {
                true => CloseReason::Graceful,
                false if lost => CloseReason::Reset,
                false => reason,
            });
        }
    }

    /// Resets one subflow with a reason (RFC 8684 section 3.6).
    pub(super) fn reset_subflow(&mut self, index: usize, reason: ResetReason) {
        let Some(subflow) = self.subflows.get_mut(index).filter(|s| s.is_alive()) else { return };
        if let Some(multipath) = subflow.tcp.multipath() {
            multipath.reset = Some(MptcpOption::MpTcpRst(MpTcpRst { transient: false, reason }));
        }
        // A reset does not depend on the time.
        subflow.tcp.abort(Instant::ZERO);
        self.bury(index, CloseReason::Aborted);
    }

    /// Resets a subflow whose data does not have its checksum (RFC 8684 section 3.7).
    pub(super) fn fail_subflow(&mut self, index: usize, dsn: DataSeqNumber) {
        let Some(subflow) = self.subflows.get_mut(index).filter(|s| s.is_alive()) else { return };
        if let Some(multipath) = subflow.tcp.multipath() {
            multipath.reset = Some(MptcpOption::MpFail { dsn });
        }
        subflow.tcp.abort(Instant::ZERO);
        self.bury(index, CloseReason::Aborted);
    }

    pub(super) fn be_fastclosed(&mut self) {
        for subflow in self.subflows.iter_mut().filter(|s| s.is_alive()) {
            subflow.tcp.abort(Instant::ZERO);
            subflow.stage = Stage::Gone;
        }
        self.finish(CloseReason::Reset);
    }

    fn finish(&mut self, reason: CloseReason) {
        if self.over.is_none() {
            self.over = Some(reason);
            self.stall_at = None;
            self.raise(Event::Closed(reason));
        }
    }

    /// Computes alpha of RFC 6356 section 4 for all subflows.
    fn couple(&mut self) {
        if self.config.tcp.congestion != tcp::CongestionAlgorithm::Coupled || self.mode != Mode::Multipath {
            return;
        }
        let (mut total, mut best, mut sum) = (0_u64, 0.0_f64, 0.0_f64);
        for subflow in self.subflows.iter().filter(|s| s.is_ready()) {
            let info = subflow.tcp.info();
            let Some(rtt) = info.srtt.map(|rtt| rtt.as_secs_f64()).filter(|rtt| *rtt > 0.0) else { continue };
            let cwnd = f64::from(info.cwnd);
            total += u64::from(info.cwnd);
            best = best.max(cwnd / (rtt * rtt));
            sum += cwnd / rtt;
        }
        if total == 0 || sum <= 0.0 {
            return;
        }
        let alpha = total as f64 * best / (sum * sum);
        let coupling = Coupling { alpha: (alpha * Coupling::ONE as f64) as u64, total };
        self.subflows.iter_mut().filter(|s| s.is_ready()).for_each(|s| s.tcp.set_coupling(coupling));
    }
}

/// Whether the peer has a copy on the data level, or will have it once its subflow has repaired
/// what is missing before it. A selective acknowledgement alone does not count on a subflow that
/// repairs nothing: the peer may keep the copy from the data level until then (RFC 8684 section
/// 3.3.6).
pub(super) fn has_arrived(subflows: &[Subflow], copy: &Copy) -> bool {
    let repairs = |s: &Subflow| s.is_alive() && !s.is_black() && s.tcp.has_delivered(copy.seq, copy.end);
    has_in_order(subflows, copy) || subflows.get(copy.on).is_some_and(repairs)
}

/// Whether the peer has a copy, and everything before it on its subflow, so that the copy is on the
/// data level.
pub(super) fn has_in_order(subflows: &[Subflow], copy: &Copy) -> bool {
    subflows.get(copy.on).is_some_and(|subflow| copy.end.le(subflow.tcp.una()))
}

fn retire(now: Instant, subflow: &mut Subflow) {
    if let Stage::Joined { .. } = subflow.stage {
        // Its peer has not proved to be ours: it gets no time to say more.
        subflow.tcp.abort(now);
    } else if subflow.is_alive() && subflow.stage != Stage::Retiring {
        subflow.stage = Stage::Retiring;
        subflow.tcp.close(now);
    }
}

/// Longest interval between checks of data without progress.
const MAX_STALL: Duration = Duration::from_secs(60);
const MAX_SHIFT: u32 = 6;
/// Checks without progress after which a peer that sends no MPTCP options is given up.
const MOST_MUTE: u32 = 3;
