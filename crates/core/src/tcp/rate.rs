//! Delivery-rate samples (draft-ietf-ccwg-bbr, "Delivery Rate Samples"): the rate of the path, from
//! the state when a segment was sent and the state when it arrives.
//!
//! Each transmission adds a record in the order of time, separate from the retransmission queue. A
//! connection whose controller needs no samples therefore pays only a pointer test. The records
//! live in one ring buffer that is reused.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::congestion::{LostSegment, RateSample};
use crate::rates::rate_of;
use crate::segment::SeqNumber;
use crate::time::{Duration, Instant};

/// The state of the estimator of a connection, named C in the draft.
#[derive(Debug, Default)]
pub(crate) struct Rate {
    /// Records in the order of time. Obsolete ones are dropped when they reach the front.
    log: VecDeque<Record>,
    /// C.delivered, in bytes.
    delivered: u64,
    /// C.delivered_time.
    delivered_at: Instant,
    /// C.first_send_time.
    first_sent: Instant,
    /// The end of the segment that `first_sent` belongs to.
    first_end: SeqNumber,
    /// C.lost, in bytes.
    lost: u64,
    /// C.app_limited: samples of segments sent before this many bytes are delivered measure the
    /// application's rate and not the path's.
    app_limited: Option<u64>,
    /// The last-sent one of the segments delivered by the current acknowledgement.
    newest: Option<Record>,
    /// Bytes delivered by the current acknowledgement.
    arrived: u32,
    /// Bytes found lost since the last sample.
    newly_lost: u32,
    /// Lost segments that were not yet reported to the controller.
    losses: Vec<LostSegment>,
    /// The end of the last segment found lost.
    last_lost: Option<SeqNumber>,
    /// The window was full when this was the last byte sent.
    full_until: Option<SeqNumber>,
}

/// One transmission, named P in the draft.
#[derive(Clone, Copy, Debug)]
struct Record {
    /// P.send_time.
    at: Instant,
    /// P.first_send_time.
    first_sent: Instant,
    /// P.delivered_time.
    delivered_at: Instant,
    /// P.delivered.
    delivered: u64,
    /// P.lost.
    lost: u64,
    seq: SeqNumber,
    end: SeqNumber,
    /// P.tx_in_flight, with this segment.
    in_flight: u32,
    again: bool,
    app_limited: bool,
    /// Whether the segment has arrived.
    done: bool,
}

impl Rate {
    /// Records a sent segment; `pipe` holds the bytes in the network without and with it.
    pub(crate) fn sent(&mut self, at: Instant, range: (SeqNumber, SeqNumber), pipe: (u32, u32), again: bool) {
        let ((seq, end), (before, after)) = (range, pipe);
        // Nothing was in the network: the intervals start here, so that idle time does not lower
        // the rate.
        if before == 0 {
            (self.first_sent, self.delivered_at) = (at, at);
            self.first_end = seq;
        }
        self.log.push_back(Record {
            at,
            first_sent: self.first_sent,
            delivered_at: self.delivered_at,
            delivered: self.delivered,
            lost: self.lost,
            seq,
            end,
            in_flight: after,
            again,
            app_limited: self.app_limited.is_some(),
            done: false,
        });
    }

    /// The record of the transmission at `at` that carried the byte before `end`.
    fn find(&mut self, at: Instant, end: SeqNumber) -> Option<&mut Record> {
        let first = self.log.partition_point(|record| record.at < at);
        let holds = |record: &&mut Record| record.seq.lt(end) && record.end.ge(end);
        self.log.iter_mut().skip(first).take_while(|record| record.at == at).find(holds)
    }

    /// Records the arrival of the segment last sent at `at`.
    pub(crate) fn arrived(&mut self, at: Instant, seq: SeqNumber, end: SeqNumber) {
        self.count(end.distance(seq).max(0) as u32);
        let Some(record) = self.find(at, end) else { return };
        record.done = true;
        let record = *record;
        let later =
            record.at > self.first_sent || (record.at == self.first_sent && record.end.gt(self.first_end));
        if self.newest.is_none() || later {
            self.newest = Some(record);
            (self.first_sent, self.first_end) = (record.at, record.end);
        }
    }

    /// Counts delivered bytes of a segment that has not arrived completely.
    pub(crate) fn count(&mut self, bytes: u32) {
        self.delivered += u64::from(bytes);
        self.arrived = self.arrived.saturating_add(bytes);
    }

    /// Drops records below the new SND.UNA.
    pub(crate) fn acknowledged(&mut self, una: SeqNumber) {
        while self.log.front().is_some_and(|first| first.done || first.end.le(una)) {
            self.log.pop_front();
        }
        if self.full_until.is_some_and(|end| una.gt(end)) {
            self.full_until = None;
        }
    }

    /// Records the loss of the segment last sent at `at`.
    pub(crate) fn lost(&mut self, at: Instant, seq: SeqNumber, end: SeqNumber) {
        let size = end.distance(seq).max(0) as u32;
        self.lost += u64::from(size);
        self.newly_lost = self.newly_lost.saturating_add(size);
        let total = self.lost;
        let apart = self.last_lost != Some(seq);
        self.last_lost = Some(end);
        if let Some(record) = self.find(at, end) {
            let loss = LostSegment {
                size,
                tx_in_flight: record.in_flight,
                lost: total - record.lost,
                app_limited: record.app_limited,
                apart,
                delivered: 0,
                in_flight: 0,
            };
            self.losses.push(loss);
        }
    }

    /// Marks the connection as application-limited (MarkConnectionAppLimited): there is no data to
    /// send besides the data in flight.
    pub(crate) fn limit(&mut self, in_flight: u32) {
        self.app_limited = Some((self.delivered + u64::from(in_flight)).max(1));
    }

    /// Whether the connection is application-limited.
    pub(crate) fn is_limited(&self) -> bool {
        self.app_limited.is_some()
    }

    /// Notes that the window is full; `max` is just past the last byte sent.
    pub(crate) fn filled(&mut self, max: SeqNumber) {
        self.full_until = Some(max);
    }

    /// The `i`-th lost segment not yet reported to the controller; `in_flight` bytes are left in
    /// the network.
    pub(crate) fn next_loss(&mut self, i: usize, in_flight: u32) -> Option<LostSegment> {
        match self.losses.get(i) {
            Some(loss) => Some(LostSegment { delivered: self.delivered, in_flight, ..*loss }),
            None => {
                self.losses.clear();
                None
            }
        }
    }

    /// GenerateRateSample(): the sample of the current acknowledgement, if it delivers data.
    /// `min_rtt` is the smallest round-trip time of the connection.
    pub(crate) fn sample(&mut self, now: Instant, min_rtt: Option<Duration>) -> Option<RateSample> {
        let newly_acked = core::mem::take(&mut self.arrived);
        let newest = self.newest.take();
        if newly_acked > 0 {
            self.delivered_at = now;
        }
        if self.app_limited.is_some_and(|until| self.delivered > until) {
            self.app_limited = None;
        }
        let newest = newest?;
        // The rate is measured over the longer of the send and the acknowledgement interval:
        // compressed acknowledgements shorten the latter and would overstate the rate.
        let sent = newest.at.saturating_since(newest.first_sent);
        let interval = sent.max(now.saturating_since(newest.delivered_at));
        let delivered = self.delivered - newest.delivered;
        // An interval below the smallest round-trip time is an artefact; its rate is reported as 0.
        let reliable = !interval.is_zero() && min_rtt.is_none_or(|least| interval >= least);
        let rtt = now.saturating_since(newest.at);
        Some(RateSample {
            delivery_rate: if reliable { rate_of(delivered, interval) } else { 0 },
            interval,
            delivered,
            prior_delivered: newest.delivered,
            total_delivered: self.delivered,
            newly_acked,
            newly_lost: core::mem::take(&mut self.newly_lost),
            tx_in_flight: newest.in_flight,
            lost: self.lost - newest.lost,
            // Karn's rule: a retransmitted segment gives no round-trip time.
            rtt: (!newest.again).then_some(rtt),
            app_limited: newest.app_limited,
            cwnd_limited: self.full_until.is_some(),
            in_flight: 0,
            recovering: false,
            selective: false,
        })
    }
}

#[cfg(test)]
mod tests;
