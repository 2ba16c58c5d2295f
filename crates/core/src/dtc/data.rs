//! Segments with data, SYN or FIN: action 1, reports of the link layer (action 2), and the local
//! time-out (action 4).

use super::cache::{Draw, Place};
use super::config::{AckCustody, Custody, FlyingStart, Suppression, Timeouts};
use super::connection::{Arrival, Half};
use super::flow::{Key, Way};
use super::table::Table;
use super::{FlowKey, LinkEvent, Node};
use crate::segment::{Ecn, Flags, Options, SackBlocks, Segment};
use crate::time::{Duration, Instant};

/// What happens to the segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    Pass,
    /// The segment has new information for an endpoint besides its data, so it always passes.
    Tell,
    Hold,
}

impl Node {
    /// Action 1. `options` are the options with which the segment is forwarded, `told` is the
    /// result of its acknowledgement.
    #[inline]
    pub(super) fn data(
        &mut self,
        now: Instant,
        (at, way): (usize, Way),
        segment: &Segment,
        (options, told): (&Options, Fate),
        random: u32,
    ) -> Fate {
        let half = self.table.get_mut(at).half_mut(way);
        let (arrival, cancelled) =
            half.observe_data(now, segment, (self.config.flying_start, self.config.samples));
        self.counters.rtt_cancelled += u64::from(cancelled);
        let syn = segment.flags.contains(Flags::SYN);
        if arrival == Arrival::Old && half.is_acked(segment.seq_end()) {
            return if syn || told == Fate::Tell { told } else { self.answer(now, (at, way), segment) };
        }
        let flow = self.flow((at, way));
        if let Some(place) = self.cache.find(flow, segment) {
            if self.cache.slot(place).agrees(segment) {
                return self.seen_again(now, (at, way), place, (segment, told));
            }
            // Another segment with these numbers: one of the two is stale or forged.
            self.cache.clear(place);
        }
        if syn && self.config.flying_start == FlyingStart::Off {
            return Fate::Pass;
        }
        let draw = if syn { Draw::Always } else { Draw::Word(random) };
        let place = self.cache.place(&self.config, flow, segment, draw);
        if place == Place::None {
            self.counters.not_cached += 1;
        } else {
            self.store(now, (at, way), place, Segment { options: *options, ..segment.clone() });
        }
        Fate::Pass
    }

    fn store(
        &mut self,
        now: Instant,
        (at, way): (usize, Way),
        place: Place,
        mut segment: Segment,
    ) -> Option<usize> {
        // The blocks would be out of date when the segment is sent again.
        segment.options.sack = SackBlocks::EMPTY;
        let syn = segment.flags.contains(Flags::SYN);
        if !syn {
            // A retransmission is not ECT, and must not repeat an old congestion signal (RFC 3168
            // section 6.1.5). A mark that has not arrived yet is kept.
            segment.flags = segment.flags.without(Flags::ECE.with(Flags::CWR));
            segment.ecn = if segment.ecn == Ecn::Ce { Ecn::Ce } else { Ecn::NotEct };
        }
        let deadline = (syn || self.config.custody == Custody::UntilLinkAck)
            .then(|| now + self.local_rto(self.table.get(at).half(way), 0));
        self.sweep = self.sweep.min(now + self.config.idle);
        self.counters.cached += 1;
        self.counters.locked += u64::from(deadline.is_some());
        self.counters.displaced += u64::from(matches!(place, Place::Instead(_)));
        let connection = self.table.get_mut(at);
        let flow = &mut connection.flows[way as usize];
        let stored = self.cache.put(place, (&connection.key, way, flow), now, segment)?;
        if let Some(deadline) = deadline {
            self.lock_until(stored, deadline);
        }
        Some(stored)
    }

    /// Locks a segment and sets its timer. If the flow has one timer, another segment may have it.
    fn lock_until(&mut self, place: usize, deadline: Instant) {
        match self.config.timeouts {
            Timeouts::LowestOfFlow if !self.cache.is_lowest_locked(place) => self.cache.lock(place),
            _ => self.cache.lock_until(place, deadline),
        }
    }

    /// Handles a segment that is already cached: a retransmission from upstream.
    fn seen_again(
        &mut self,
        now: Instant,
        (at, way): (usize, Way),
        place: usize,
        (segment, told): (&Segment, Fate),
    ) -> Fate {
        let srtt = self.table.get(at).half(way).srtt().unwrap_or(Duration::ZERO);
        let rto = self.local_rto(self.table.get(at).half(way), 0);
        let slot = self.cache.slot_mut(place);
        slot.refresh(segment);
        slot.sent_again = true;
        let since = now.saturating_since(slot.sent_at);
        let held = match self.config.suppression {
            Suppression::AfterRepetition => slot.repeated && since < srtt,
            Suppression::AfterTransmission { at_least } => since < srtt.max(at_least),
        };
        // Without state the node does not know what else the segment tells.
        if (held || slot.pending) && told != Fate::Tell && at != Table::STATELESS {
            self.counters.data_held += 1;
            return Fate::Hold;
        }
        // The last transmission is too old for the same loss: the segment passes and counts as sent
        // by the node.
        slot.sent_at = now;
        slot.pending = false;
        slot.repeats = 0;
        if slot.is_locked() || self.config.custody == Custody::UntilLinkAck {
            self.lock_until(place, now + rto);
        }
        Fate::Pass
    }

    /// Answers a segment that the receiver has acknowledged completely: the sender has missed an
    /// acknowledgement. Probes of at most one byte pass, because they are meant for the receiver.
    fn answer(&mut self, now: Instant, (at, way): (usize, Way), segment: &Segment) -> Fate {
        let AckCustody::Repair { after, at_most } = self.config.acks else { return Fate::Pass };
        let half = self.table.get_mut(at).half_mut(way);
        if !half.knows_ack() || half.answers >= at_most || segment.payload.len() <= LONGEST_PROBE {
            return Fate::Pass;
        }
        half.answers += 1;
        self.counters.data_answered += 1;
        // An acknowledgement that has just passed is still on its way.
        if now.saturating_since(half.ack_sent_at) >= after && !half.has(Half::ACK_PENDING) {
            self.schedule_ack((at, way));
        }
        Fate::Hold
    }

    /// Handles a report of the link layer about a sent or forwarded segment: the next hop has
    /// acknowledged it, or the time-out has passed (action 2). After a time-out the node may cache
    /// `segment`, so it must be complete with its payload; for an acknowledgement, header and
    /// length suffice.
    pub fn handle_link(&mut self, now: Instant, flow: FlowKey, segment: &Segment, event: LinkEvent) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let (key, way) = Key::of(flow, segment);
        let at = self.find_or_blank(key, now);
        if segment.seq_len() == 0 {
            self.link_reports_ack(now, (at, way.back()), segment, event);
            return;
        }
        if event == LinkEvent::TimedOut {
            // A retransmission will follow, here or upstream.
            let cancelled = self.table.get_mut(at).half_mut(way).cancel_sample();
            self.counters.rtt_cancelled += u64::from(cancelled);
        }
        let flow = self.flow((at, way));
        let Some(place) = self.cache.find(flow, segment) else {
            if event == LinkEvent::TimedOut {
                self.rescue(now, (at, way), segment);
            }
            return;
        };
        let syn = segment.flags.contains(Flags::SYN);
        if syn || self.config.custody == Custody::UntilLinkAck {
            self.hand_on(place, event);
        } else if event == LinkEvent::TimedOut {
            self.suspect(now, place);
        }
    }

    /// Action 2 for a segment that only the link layer still holds. It takes an unlocked place,
    /// because it is more likely to be needed than the segment there.
    fn rescue(&mut self, now: Instant, (at, way): (usize, Way), segment: &Segment) {
        let custody = self.config.custody == Custody::UntilLinkAck;
        let syn = segment.flags.contains(Flags::SYN);
        let left = syn && !(custody && self.config.flying_start == FlyingStart::On);
        let half = self.table.get(at).half(way);
        if left || half.is_acked(segment.seq_end()) || !half.fits(segment.seq, self.config.flight) {
            return;
        }
        let mut place = self.cache.place(&self.config, self.flow((at, way)), segment, Draw::Always);
        if place == Place::None && custody {
            place = self.cache.unreported();
        }
        if place == Place::None {
            return;
        }
        let Some(place) = self.store(now, (at, way), place, segment.clone()) else { return };
        match self.config.custody {
            Custody::OnSuspicion => self.suspect(now, place),
            Custody::UntilLinkAck => self.hand_on(place, LinkEvent::TimedOut),
        }
    }

    /// Custody: the next hop has the segment, or it must be sent again.
    fn hand_on(&mut self, place: usize, event: LinkEvent) {
        let slot = self.cache.slot(place);
        if !slot.is_locked() || slot.pending {
            return;
        }
        match event {
            LinkEvent::Acknowledged => self.cache.release(place),
            LinkEvent::TimedOut if slot.repeats < self.config.immediate_repeats => self.cache.repeat(place),
            // The timer has been running since the transmission.
            LinkEvent::TimedOut => {}
        }
    }

    /// Action 2: locks the segment and sets the retransmission timer.
    fn suspect(&mut self, now: Instant, place: usize) {
        if self.cache.slot(place).is_locked() {
            return;
        }
        let rto = self.local_rto(self.half_of(place), 0);
        self.cache.lock_until(place, now + rto);
        self.counters.locked += 1;
    }

    /// Action 4 for every expired timer.
    pub(super) fn local_timeouts(&mut self, now: Instant) {
        while let Some((deadline, place)) = self.cache.next_timer() {
            if deadline > now {
                return;
            }
            let slot = self.cache.slot(place);
            if let Some(later) = slot.deadline().filter(|later| *later > now) {
                self.cache.set_timer(place, later);
                continue;
            }
            if self.config.timeouts == Timeouts::LowestOfFlow {
                if !self.cache.is_lowest_locked(place) {
                    self.cache.stop_timer(place);
                    continue;
                }
                // The timer may be that of an earlier segment.
                let due = slot.sent_at + self.local_rto(self.half_of(place), slot.repeats);
                if due > now {
                    self.cache.set_timer(place, due);
                    continue;
                }
            }
            let (key, way) = self.cache.flow_of(place);
            let at = self.table.find(&key).unwrap_or(Table::STATELESS);
            let most = match self.table.get(at).half(way.back()).is_seen() {
                true => self.config.max_repeats,
                false => self.config.max_repeats.min(self.config.unanswered_repeats),
            };
            if slot.repeats >= most {
                self.give_up(place);
                continue;
            }
            let rto = self.local_rto(self.half_of(place), slot.repeats + 1);
            self.cache.repeat(place);
            self.cache.set_timer(place, now + rto);
            self.counters.local_timeouts += 1;
        }
    }

    /// Leaves a segment to the endpoints. If the flow has one timer, all others would wait behind
    /// this segment.
    fn give_up(&mut self, place: usize) {
        let whole = self.config.timeouts == Timeouts::LowestOfFlow;
        let mut next = Some(place);
        while let Some(place) = next {
            next = self.cache.above(place).filter(|_| whole);
            self.counters.given_up += u64::from(self.cache.slot(place).is_locked());
            self.cache.release(place);
        }
    }

    /// Sends the cached segment at `place` again.
    pub(super) fn repeat_from_cache(&mut self, now: Instant, place: usize) -> (FlowKey, Segment) {
        let (key, way) = self.cache.flow_of(place);
        let slot = self.cache.slot(place);
        let rto = self.local_rto(self.half_of(place), slot.repeats);
        if slot.is_locked() {
            self.cache.set_timer(place, now + rto);
        }
        let slot = self.cache.slot_mut(place);
        slot.repeated = true;
        slot.sent_at = now;
        let segment = slot.segment.clone();
        let at = self.find_or_blank(key, now);
        let cancelled = self.table.get_mut(at).half_mut(way).cancel_sample();
        self.counters.rtt_cancelled += u64::from(cancelled);
        self.counters.local_retransmissions += 1;
        (key.flow(way), segment)
    }

    /// The state of the data that a cached segment belongs to.
    fn half_of(&self, place: usize) -> &Half {
        let (key, way) = self.cache.flow_of(place);
        self.table.get(self.table.find(&key).unwrap_or(Table::STATELESS)).half(way)
    }
}

/// Largest payload of a keep-alive or a window probe in bytes (RFC 9293 sections 3.8.4 and
/// 3.8.6.1).
const LONGEST_PROBE: usize = 1;
