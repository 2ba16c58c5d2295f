//! RACK-TLP (RFC 8985): a segment is lost when one that was sent sufficiently later has arrived,
//! and a probe finds out what became of the last segments where nothing follows them.

use super::timer::Timer;
use super::{Phase, Sender};
use crate::segment::SackBlock;
use crate::segment::SeqNumber;
use crate::tcp::flight::{Arrivals, Transmission};
use crate::time::{Duration, Instant};

/// What RACK-TLP remembers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rack {
    /// RACK.segment: of the segments that have arrived the one that was sent last.
    newest: Option<Transmission>,
    /// RACK.rtt: the round trip of that one.
    rtt: Duration,
    /// RACK.reordering_seen.
    reordered: bool,
    /// RACK.reo_wnd_mult, without the one that it begins with: round trips with a report of a
    /// spurious retransmission.
    wider: u32,
    /// RACK.reo_wnd_persist: recoveries after which `wider` is forgotten.
    persist: u32,
    /// RACK.dsack_round: until this is acknowledged, further reports are of the same round trip.
    round: Option<SeqNumber>,
    /// The reordering timer.
    pub(super) reorder_at: Option<Instant>,
    /// PTO: when a probe leaves.
    pub(super) probe_at: Option<Instant>,
    /// A probe leaves with the next poll.
    pub(super) probe_due: bool,
    /// The probe that has left and is not answered.
    probe: Option<TailProbe>,
}

/// A loss probe (RFC 8985 section 7.1).
#[derive(Clone, Copy, Debug)]
struct TailProbe {
    /// TLP.end_seq.
    end: SeqNumber,
    /// TLP.is_retrans.
    again: bool,
    /// The window that it probes was reduced for a mark.
    marked: bool,
}

impl Sender {
    /// RACK needs SACK (RFC 8985 section 3.1).
    #[inline]
    pub(super) fn uses_rack(&self) -> bool {
        self.config.rack_tlp && self.sacked
    }

    /// The first part of RACK_update_reo_wnd() (RFC 8985 section 6.2 step 4). `spurious` says that
    /// the peer has had a segment twice that we have sent twice. A packet that the network has
    /// doubled is no reason to wait longer.
    pub(super) fn rack_on_duplicate(&mut self, spurious: bool) {
        if !self.config.dsack {
            return;
        }
        if self.rack.round.is_some_and(|end| self.una.ge(end)) {
            self.rack.round = None;
        }
        if spurious && self.rack.round.is_none() {
            self.rack.round = Some(self.max);
            self.rack.wider = self.rack.wider.saturating_add(1);
            self.rack.persist = PERSISTENCE;
        }
    }

    /// A recovery is over, fast or after a time-out: the window is as before after 16 without a
    /// duplicate.
    pub(super) fn rack_on_recovered(&mut self) {
        self.rack.persist = self.rack.persist.saturating_sub(1);
        if self.rack.persist == 0 {
            self.rack.wider = 0;
        }
    }

    /// A recovery was spurious: segments overtake each other on this path (step 3).
    pub(super) fn rack_was_wrong(&mut self) {
        self.rack.reordered = true;
    }

    /// A recovery begins: what the probe has shown is charged with it.
    pub(super) fn rack_on_recovery(&mut self) {
        (self.rack.probe_at, self.rack.probe_due, self.rack.probe) = (None, false, None);
    }

    /// What has arrived was taken for a later copy of it.
    pub(super) fn rack_forget(&mut self) {
        (self.rack.newest, self.rack.reorder_at) = (None, None);
    }

    /// Step 1 to 5 of RFC 8985 section 6.2, when an acknowledgement has come; `echo` is the round
    /// trip by its timestamp.
    pub(super) fn rack_on_ack(&mut self, now: Instant, arrivals: &Arrivals, echo: Option<Duration>) {
        if let (Some(first), None) = (arrivals.first, arrivals.again) {
            // With each acknowledgement, and in a recovery too: a time-out that lags behind a
            // growing queue is spurious. But what is acknowledged with a repetition may have waited
            // behind the hole. One acknowledgement for two segments (RFC 7323 appendix G).
            let expected = self.max.distance(first.end).max(0) as u32 / (2 * self.mss) + 1;
            self.measured(now, now.saturating_since(first.at), expected);
        }
        let min_rtt = self.rtt.min_rtt().unwrap_or_default();
        for (arrival, again) in [(arrivals.first, false), (arrivals.again, true)] {
            let Some(arrival) = arrival else { continue };
            let rtt = now.saturating_since(arrival.at);
            // A shorter one is of an earlier transmission, and so is one that is shorter than what
            // the timestamp tells (step 2), whose clock counts milliseconds.
            let earlier = rtt < min_rtt || echo.is_some_and(|echo| echo > rtt + TICK);
            let real = !again || !earlier;
            if real && self.rack.newest.is_none_or(|newest| arrival.is_after(&newest)) {
                self.rack.newest = Some(arrival);
                self.rack.rtt = rtt;
            }
        }
        self.rack.reordered |= arrivals.reordered;
        self.rack_detect(now);
    }

    /// Steps 4 and 5.
    pub(super) fn rack_detect(&mut self, now: Instant) {
        let Some(newest) = self.rack.newest else { return };
        let wait = self.rack.rtt + self.reordering_window();
        self.rack.reorder_at = self.flight.lose_by_time(&newest, now, wait);
    }

    /// RACK_update_reo_wnd().
    fn reordering_window(&self) -> Duration {
        let sure = self.phase != Phase::Open || self.flight.reported_bytes() > 2 * self.mss;
        if !self.rack.reordered && sure {
            return Duration::ZERO;
        }
        let (min_rtt, srtt) = (self.rtt.min_rtt().unwrap_or_default(), self.rtt.srtt().unwrap_or_default());
        (min_rtt / 4 * (u64::from(self.rack.wider) + 1)).min(srtt)
    }

    /// The time-out of the retransmission timer (section 6.3).
    pub(super) fn rack_on_timeout(&mut self, now: Instant) {
        let wait = self.rack.rtt + self.reordering_window();
        self.flight.lose_on_timeout(now, wait);
        self.rack.probe = None;
    }

    /// TLP_schedule() and TLP_calc_PTO() (section 7.2): after new data, or when SND.UNA has moved.
    pub(super) fn schedule_probe(&mut self, now: Instant) {
        (self.rack.probe_at, self.rack.probe_due) = (None, false);
        let Timer::Retransmit(timeout) = self.timer else { return };
        let idle = self.una == self.max || self.flight.reported_bytes() > 0;
        if !self.uses_rack() || self.phase != Phase::Open || idle || self.rack.probe.is_some() {
            return;
        }
        let wait = match self.rtt.srtt() {
            None => Duration::from_secs(1),
            // The receiver may wait with its acknowledgement of a single segment.
            Some(srtt) if self.max.distance(self.una) <= self.mss as i32 => srtt * 2 + LONGEST_ACK_DELAY,
            Some(srtt) => srtt * 2,
        };
        self.rack.probe_at = Some((now + wait).min(timeout));
    }

    /// TLP_send_probe() (section 7.3): new data if there is any, else the last segment again.
    pub(super) fn send_tail_probe(&mut self, now: Instant) -> Option<super::Outgoing> {
        self.rack.probe_due = false;
        let run = self.carve(self.max, self.una + self.window.wnd);
        let (seq, run, again) = if run.len() > 0 {
            (self.max, run, false)
        } else {
            let SackBlock { left, right } = self.flight.last()?;
            // The end of the last segment, if options take more of this one.
            let most = self.room_in_segment().min(right.distance(left) as u32);
            let left = left.max(right - most);
            (left, self.carve(left, right), true)
        };
        if run.len() == 0 {
            return None;
        }
        let out = self.emit(now, seq, run);
        self.rack.probe = Some(TailProbe { end: self.max, again, marked: self.is_marked() });
        self.rack.probe_at = None;
        self.timer = Timer::Retransmit(now + self.rtt.rto());
        Some(out)
    }

    /// TLP_process_ack() (section 7.4): what the answer to a probe says. `twice` is what it reports
    /// as a duplicate (RFC 2883); `empty` says that it moves nothing and reports nothing. `flight`
    /// bytes were in flight before.
    pub(super) fn answer_probe(
        &mut self,
        now: Instant,
        ack: SeqNumber,
        twice: Option<SackBlock>,
        empty: bool,
        flight: u32,
    ) {
        let Some(probe) = self.rack.probe else { return };
        if ack.lt(probe.end) {
            return;
        }
        // Both copies have arrived. A block may take in more, since it reports what touches in one.
        let twice = twice.is_some_and(|block| block.right.ge(probe.end));
        if !probe.again || twice || empty {
            self.rack.probe = None;
        } else if ack.gt(probe.end) {
            // The probe has repaired a loss, which counts as any other.
            self.rack.probe = None;
            self.forget_prior();
            if !probe.marked {
                let view = self.view(flight.min(self.cwnd()), self.repair());
                self.congestion.on_loss(now, &view);
            }
            self.say_reduced();
        }
    }
}

/// RFC 8985 section 6.2 step 4: recoveries for which a wider reordering window stays.
const PERSISTENCE: u32 = 16;
/// How much a round trip by timestamps may be off.
const TICK: Duration = Duration::from_millis(1);
/// RFC 8985 section 7.2: the longest that a receiver is expected to wait.
const LONGEST_ACK_DELAY: Duration = Duration::from_millis(200);
