//! RACK-TLP (RFC 8985). A segment is lost when a segment that was sent sufficiently later has
//! arrived. A tail loss probe tests the last segments, which no later segment follows.

use super::timer::Timer;
use super::{Phase, Sender};
use crate::segment::SackBlock;
use crate::segment::SeqNumber;
use crate::tcp::flight::{Arrivals, Transmission};
use crate::time::{Duration, Instant};

/// State of RACK-TLP.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rack {
    /// RACK.segment: the last-sent one of the segments that have arrived.
    newest: Option<Transmission>,
    /// RACK.rtt: the round-trip time of that segment.
    rtt: Duration,
    /// RACK.reordering_seen.
    reordered: bool,
    /// RACK.reo_wnd_mult minus its initial 1: number of round trips with a report of a spurious
    /// retransmission.
    wider: u32,
    /// RACK.reo_wnd_persist: number of recoveries after which `wider` is reset.
    persist: u32,
    /// RACK.dsack_round: until this is acknowledged, further reports belong to the same round trip.
    round: Option<SeqNumber>,
    /// Expiry of the reordering timer.
    pub(super) reorder_at: Option<Instant>,
    /// PTO: when a tail loss probe is sent.
    pub(super) probe_at: Option<Instant>,
    /// Whether the next poll sends a probe.
    pub(super) probe_due: bool,
    /// The unanswered probe.
    probe: Option<TailProbe>,
}

/// A tail loss probe (RFC 8985 section 7.1).
#[derive(Clone, Copy, Debug)]
struct TailProbe {
    /// TLP.end_seq.
    end: SeqNumber,
    /// TLP.is_retrans.
    again: bool,
    /// The window of the probe was already reduced for a mark.
    marked: bool,
}

impl Sender {
    /// RACK needs SACK (RFC 8985 section 3.1).
    #[inline]
    pub(super) fn uses_rack(&self) -> bool {
        self.config.rack_tlp && self.sacked
    }

    /// The first part of RACK_update_reo_wnd() (RFC 8985 section 6.2 step 4). `spurious`: the peer
    /// has received both copies of a retransmitted segment. A packet duplicated by the network does
    /// not widen the window.
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

    /// Called at the end of a recovery, fast or after a time-out. The window is reset after 16
    /// recoveries without a report of a duplicate.
    pub(super) fn rack_on_recovered(&mut self) {
        self.rack.persist = self.rack.persist.saturating_sub(1);
        if self.rack.persist == 0 {
            self.rack.wider = 0;
        }
    }

    /// A recovery was spurious, so the path reorders segments (step 3).
    pub(super) fn rack_was_wrong(&mut self) {
        self.rack.reordered = true;
    }

    /// A recovery begins and takes over the losses that a pending probe would have shown.
    pub(super) fn rack_on_recovery(&mut self) {
        (self.rack.probe_at, self.rack.probe_due, self.rack.probe) = (None, false, None);
    }

    /// Discards the last arrival: it was attributed to a retransmission, but the original had
    /// arrived.
    pub(super) fn rack_forget(&mut self) {
        (self.rack.newest, self.rack.reorder_at) = (None, None);
    }

    /// Steps 1 to 5 of RFC 8985 section 6.2, on every acknowledgement. `echo` is the round-trip
    /// time derived from its timestamp.
    pub(super) fn rack_on_ack(&mut self, now: Instant, arrivals: &Arrivals, echo: Option<Duration>) {
        if let (Some(first), None) = (arrivals.first, arrivals.again) {
            // Measures on every acknowledgement, in a recovery too: a time-out that lags behind a
            // growing queue is spurious. Data acknowledged together with a retransmission is
            // excluded, because it may have waited behind the hole. `expected` assumes one
            // acknowledgement per two segments (RFC 7323 appendix G).
            let expected = self.max.distance(first.end).max(0) as u32 / (2 * self.mss) + 1;
            self.measured(now, now.saturating_since(first.at), expected);
        }
        let min_rtt = self.rtt.min_rtt().unwrap_or_default();
        for (arrival, again) in [(arrivals.first, false), (arrivals.again, true)] {
            let Some(arrival) = arrival else { continue };
            let rtt = now.saturating_since(arrival.at);
            // A round trip below the minimum belongs to an earlier transmission (step 2). So does
            // one below the timestamp's round trip, whose clock ticks in milliseconds.
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

    /// Steps 4 and 5: detects losses and sets the reordering timer.
    pub(super) fn rack_detect(&mut self, now: Instant) {
        let Some(newest) = self.rack.newest else { return };
        let wait = self.rack.rtt + self.reordering_window();
        self.rack.reorder_at = self.flight.lose_by_time(&newest, now, wait);
    }

    /// RACK_update_reo_wnd(): the reordering window.
    fn reordering_window(&self) -> Duration {
        let sure = self.phase != Phase::Open || self.flight.reported_bytes() > 2 * self.mss;
        // Without evidence of reordering, a recovery or enough reported data justifies a window of
        // zero (step 4): waiting would only delay the repair.
        if !self.rack.reordered && sure {
            return Duration::ZERO;
        }
        // Step 4: min(RACK.reo_wnd_mult * RACK.min_RTT / 4, SRTT).
        let (min_rtt, srtt) = (self.rtt.min_rtt().unwrap_or_default(), self.rtt.srtt().unwrap_or_default());
        (min_rtt / 4 * (u64::from(self.rack.wider) + 1)).min(srtt)
    }

    /// RACK's part of a retransmission time-out (section 6.3).
    pub(super) fn rack_on_timeout(&mut self, now: Instant) {
        let wait = self.rack.rtt + self.reordering_window();
        self.flight.lose_on_timeout(now, wait);
        self.rack.probe = None;
    }

    /// TLP_schedule() and TLP_calc_PTO() (section 7.2), after new data was sent or SND.UNA has
    /// moved.
    pub(super) fn schedule_probe(&mut self, now: Instant) {
        (self.rack.probe_at, self.rack.probe_due) = (None, false);
        let Timer::Retransmit(timeout) = self.timer else { return };
        // Section 7.2: no probe with reported data, in a recovery, or while another probe is
        // unanswered.
        let idle = self.una == self.max || self.flight.reported_bytes() > 0;
        if !self.uses_rack() || self.phase != Phase::Open || idle || self.rack.probe.is_some() {
            return;
        }
        let wait = match self.rtt.srtt() {
            // Section 7.2: 1 s without a round-trip time.
            None => Duration::from_secs(1),
            // The receiver may delay its acknowledgement of a single segment.
            Some(srtt) if self.max.distance(self.una) <= self.mss as i32 => srtt * 2 + LONGEST_ACK_DELAY,
            Some(srtt) => srtt * 2,
        };
        // The probe must precede the time-out.
        self.rack.probe_at = Some((now + wait).min(timeout));
    }

    /// TLP_send_probe() (section 7.3): sends new data if there is any, otherwise the last segment
    /// again.
    pub(super) fn send_tail_probe(&mut self, now: Instant) -> Option<super::Outgoing> {
        self.rack.probe_due = false;
        let run = self.carve(self.max, self.una + self.window.wnd);
        let (seq, run, again) = if run.len() > 0 {
            (self.max, run, false)
        } else {
            let SackBlock { left, right } = self.flight.last()?;
            // Takes the end of the last segment if SACK blocks leave less room in the probe.
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

    /// TLP_process_ack() (section 7.4): evaluates the answer to a probe. `twice` is the duplicate
    /// that it reports (RFC 2883); `empty`: it neither moves SND.UNA nor reports data. `flight`
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
        // Both copies have arrived. The block may extend further, because adjacent duplicates are
        // reported as one.
        let twice = twice.is_some_and(|block| block.right.ge(probe.end));
        // No loss was repaired: the probe had new data, or both copies have arrived.
        if !probe.again || twice || empty {
            self.rack.probe = None;
        } else if ack.gt(probe.end) {
            // The probe has repaired a loss, which counts as any other: without this, a loss at the
            // tail would not reduce the window (section 7.4).
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

/// RFC 8985 section 6.2 step 4: number of recoveries for which a wider reordering window stays.
const PERSISTENCE: u32 = 16;
/// Tolerance of round-trip times measured by timestamps.
const TICK: Duration = Duration::from_millis(1);
/// RFC 8985 section 7.2: longest acknowledgement delay expected of a receiver.
const LONGEST_ACK_DELAY: Duration = Duration::from_millis(200);
