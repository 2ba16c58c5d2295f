//! Acknowledgements: actions 3.1 to 3.4, and the repair of acknowledgements.

use super::cache::Slot;
use super::config::{AckCustody, DuplicateAcks, Samples, Signal, Timeouts};
use super::connection::{AckNews, Half};
use super::data::Fate;
use super::flow::Way;
use super::sack::{Gaps, with_block};
use super::table::Table;
use super::{LinkEvent, Node};
use crate::segment::{Flags, Options, SackBlock, Segment};
use crate::time::{Duration, Instant};

/// Values that the actions on one acknowledgement share.
struct Context {
    now: Instant,
    news: AckNews,
    gaps: Gaps,
    /// Whether the segment has no data.
    bare: bool,
    /// Whether it tells something new besides the gaps.
    tells: bool,
    /// The local time-out.
    rto: Duration,
    /// The guard of actions 3.2 and 3.3.
    guard: Duration,
    /// Whether the duplicates suffice for action 3.2.
    asked_for: bool,
    /// Whether upstream understands SACK.
    sack_spoken: bool,
    /// When the newest retransmission that the receiver has was sent.
    delivered: Option<Instant>,
    /// When the newest segment was sent that the receiver has, and that was sent once.
    sampled: Option<Instant>,
    /// Whether the acknowledgement number covers a retransmission.
    ambiguous: bool,
    /// Number of retransmissions because of gaps.
    repeats: u8,
}

impl Node {
    /// Action 3 for data of the direction opposite to `way`. `options` are the options with which
    /// the acknowledgement is forwarded.
    #[inline]
    pub(super) fn acknowledgement(
        &mut self,
        now: Instant,
        (at, way): (usize, Way),
        segment: &Segment,
        options: &mut Options,
    ) -> Fate {
        let data_way = way.back();
        let flow = self.flow((at, data_way));
        if at == Table::STATELESS {
            // Without state the node does not hold back acknowledgements, but it can still free
            // cached segments.
            self.cache.acknowledged(flow, segment.ack, self.config.flight);
            return Fate::Pass;
        }
        let connection = self.table.get_mut(at);
        let news = connection.half_mut(data_way).observe_ack(now, segment);
        self.counters.rtt_cancelled += u64::from(news.cancelled);
        self.counters.rtt_samples += u64::from(news.measured);
        let bare = segment.seq_len() == 0;
        let gaps = Gaps::of(segment.ack, &segment.options.sack);
        if gaps.any() {
            connection.set_speaks_sack(true);
        }
        let mut fate = if news.advances { Fate::Tell } else { Fate::Pass };
        if let Some(lowest) = self.cache.lowest(flow) {
            let half = self.table.get(at).half(data_way);
            let mut context = Context {
                now,
                news,
                gaps,
                bare,
                // Holding it back would withhold this information from the sender.
                tells: news.advances || segment.flags.contains(Flags::ECE) || !segment.mptcp.is_empty(),
                rto: self.local_rto(half, 0),
                guard: self.config.guard.of(half.srtt().unwrap_or(self.config.initial_rto)),
                asked_for: half.duplicates_suffice(),
                sack_spoken: self.table.get(at).speaks_sack(),
                delivered: None,
                sampled: None,
                ambiguous: false,
                repeats: 0,
            };
            // A segment in a gap is visited again by each acknowledgement.
            let limited = self.config.repeats_per_ack < u8::MAX;
            let mut visits = if limited { LONGEST_WALK } else { usize::MAX };
            let end = context.gaps.edge().unwrap_or(segment.ack);
            let mut next = Some(lowest);
            while let Some(place) = next {
                // Only a signal about a locked segment concerns what the acknowledgement does not
                // reach.
                if self.config.signal != Signal::LockedSegment && self.cache.slot(place).seq().gt(end) {
                    break;
                }
                next = self.cache.above(place).filter(|_| visits > 0);
                let cached = self.cache.len();
                if self.one_place(place, segment, options, &mut context) == Fate::Hold {
                    fate = Fate::Hold;
                }
                visits -= usize::from(self.cache.len() == cached).min(visits);
            }
            if self.config.samples == Samples::EachSegment
                && let Some(sent) = context.sampled.filter(|_| !context.ambiguous)
            {
                self.table.get_mut(at).half_mut(data_way).smooth(now.saturating_since(sent));
                self.counters.rtt_samples += 1;
            }
            if self.config.timeouts == Timeouts::LowestOfFlow && news.advances {
                self.progress(flow, &context);
            }
        }
        if fate == Fate::Hold {
            self.counters.acks_held += 1;
        } else if bare {
            self.acknowledgement_passes(now, (at, data_way), segment);
        }
        fate
    }

    /// Actions 3.1 to 3.4 for one cached segment.
    fn one_place(
        &mut self,
        place: usize,
        segment: &Segment,
        options: &mut Options,
        context: &mut Context,
    ) -> Fate {
        let slot = self.cache.slot(place);
        let held = SackBlock { left: slot.seq(), right: slot.end() };
        if segment.ack.ge(held.right) || context.gaps.cover(held.left, held.right) {
            // Action 3.1, extended to SACK: the receiver has the segment, or a node closer to it.
            if slot.repeated || slot.sent_again {
                context.ambiguous |= segment.ack.ge(held.right);
                self.counters.repaired += u64::from(slot.repeated && !slot.sent_again);
                context.delivered = context.delivered.max(Some(slot.sent_at));
            } else {
                context.sampled = context.sampled.max(Some(slot.sent_at));
            }
            self.cache.clear(place);
            return Fate::Pass;
        }
        if segment.ack.gt(held.left) || slot.segment.flags.contains(Flags::SYN) {
            return Fate::Pass;
        }
        // Without SACK blocks the acknowledgement names only the next missing byte.
        if !context.gaps.any() {
            return self.without_sack(place, segment, options, context);
        }
        if context.gaps.below_edge(held.right) {
            return self.gap(place, options, context);
        }
        let locked = slot.is_locked();
        if locked && self.config.signal == Signal::LockedSegment {
            self.signal(options, held, context);
        }
        Fate::Pass
    }

    /// Actions 3.2 and 3.4.
    fn without_sack(
        &mut self,
        place: usize,
        segment: &Segment,
        options: &mut Options,
        context: &mut Context,
    ) -> Fate {
        let slot = self.cache.slot(place);
        let held = SackBlock { left: slot.seq(), right: slot.end() };
        if segment.ack == held.left {
            let wanted = self.config.duplicate_acks == DuplicateAcks::Repeat && context.asked_for;
            if wanted && context.bare && !context.news.advances && ripe(slot, context) {
                self.cache.repeat(place);
                self.cache.lock_until(place, context.now + context.rto);
            }
        } else if slot.is_locked() && self.config.signal == Signal::LockedSegment && context.sack_spoken {
            self.signal(options, held, context);
        }
        Fate::Pass
    }

    /// Action 3.3 (errata D10 to D12): the cached segment is missing below a reported one.
    fn gap(&mut self, place: usize, options: &mut Options, context: &mut Context) -> Fate {
        let slot = self.cache.slot(place);
        let held = SackBlock { left: slot.seq(), right: slot.end() };
        let most = self.config.repeats_per_ack;
        let may_repeat = most == u8::MAX || context.repeats < most;
        if ripe(slot, context) && slot.repeats < self.config.max_repeats {
            if !may_repeat {
                // The sender must know of a gap that the node does not repair now.
                return Fate::Pass;
            }
            context.repeats = context.repeats.saturating_add(1);
            self.cache.repeat(place);
            // This copy may be lost as well.
            self.cache.lock_until(place, context.now + context.rto);
        }
        let slot = self.cache.slot_mut(place);
        if !slot.pending && !slot.is_locked() {
            return Fate::Pass;
        }
        let filled = context.gaps.filled_by(held);
        let may_hold = context.bare && !context.tells && filled;
        let since = slot.holding_since.min(context.now);
        slot.holding_since = since;
        if may_hold && context.now.saturating_since(since) < context.rto {
            // The sender is not told about this gap, so the node must close it (erratum D12).
            let slot = self.cache.slot(place);
            self.counters.locked += u64::from(!slot.is_locked());
            let deadline = slot.deadline().unwrap_or(context.now + context.rto);
            self.cache.lock_until(place, deadline);
            return Fate::Hold;
        }
        self.signal(options, held, context);
        Fate::Pass
    }

    /// Reports to upstream nodes that this node has the segment.
    fn signal(&mut self, options: &mut Options, held: SackBlock, context: &mut Context) {
        let Some(blocks) = with_block(&options.sack, held) else { return };
        let with = Options { sack: blocks, ..*options };
        if with.wire_len() <= MAX_OPTIONS && context.gaps.add(held) && self.config.signal != Signal::Never {
            *options = with;
            self.counters.sack_added += 1;
        }
    }

    /// The acknowledgement is progress of the flow: its time-out begins again, and segments that
    /// the receiver would have acknowledged with a later one are lost.
    fn progress(&mut self, flow: u32, context: &Context) {
        let mut next = self.cache.lowest(flow);
        for _ in 0..REPEATS_PER_ACK {
            let Some(place) = next else { return };
            next = self.cache.above(place);
            let slot = self.cache.slot(place);
            if slot.pending || !slot.is_locked() {
                return;
            }
            if context.delivered.is_some_and(|at| slot.sent_at < at) && ripe(slot, context) {
                self.cache.repeat(place);
                self.cache.set_timer(place, context.now + context.rto);
            } else if slot.repeats == 0 {
                self.cache.postpone(place, context.now + context.rto);
                return;
            }
        }
    }

    /// Notes an acknowledgement without payload that passes: older ones need not be repeated.
    fn acknowledgement_passes(&mut self, now: Instant, (at, data_way): (usize, Way), segment: &Segment) {
        let half = self.table.get_mut(at).half_mut(data_way);
        if half.is_acked(segment.ack) && segment.ack == half.acked {
            half.set(Half::ACK_PENDING | Half::ACK_ARMED, false);
            half.remember_ack(now, segment);
        }
    }

    /// Handles a report of the link layer about an acknowledgement.
    pub(super) fn link_reports_ack(
        &mut self,
        now: Instant,
        (at, data_way): (usize, Way),
        segment: &Segment,
        event: LinkEvent,
    ) {
        let AckCustody::Repair { after, at_most } = self.config.acks else { return };
        // A newer acknowledgement has replaced this one.
        let half = self.table.get_mut(at).half_mut(data_way);
        if !half.knows_ack() || segment.ack != half.acked {
            return;
        }
        match event {
            LinkEvent::Acknowledged => half.set(Half::ACK_ARMED, false),
            LinkEvent::TimedOut if half.ack_repeats < at_most => {
                half.set(Half::ACK_ARMED, true);
                self.ack_alarm = self.ack_alarm.min((half.ack_sent_at + after).max(now));
            }
            LinkEvent::TimedOut => {}
        }
    }

    /// Schedules repetitions of acknowledgements that no newer one has followed in time.
    pub(super) fn ack_timeouts(&mut self, now: Instant) {
        let AckCustody::Repair { after, .. } = self.config.acks else { return };
        if self.ack_alarm > now {
            return;
        }
        self.ack_alarm = Instant::FAR_FUTURE;
        for at in 0..self.table.len() {
            for way in [Way::FromFirst, Way::FromSecond] {
                let half = self.table.get_mut(at).half_mut(way);
                if !half.has(Half::ACK_ARMED) {
                    continue;
                }
                let deadline = half.ack_sent_at + after;
                if deadline > now {
                    self.ack_alarm = self.ack_alarm.min(deadline);
                    continue;
                }
                half.set(Half::ACK_ARMED, false);
                half.ack_repeats = half.ack_repeats.saturating_add(1);
                self.schedule_ack((at, way));
            }
        }
    }

    /// Schedules a repetition of the newest acknowledgement of a flow.
    pub(super) fn schedule_ack(&mut self, (at, data_way): (usize, Way)) {
        self.table.get_mut(at).half_mut(data_way).set(Half::ACK_PENDING, true);
        let at = at as u32;
        self.acks_from = if self.acks_pending == 0 { at } else { self.acks_from.min(at) };
        self.acks_pending += 1;
    }

    /// The next acknowledgement to repeat.
    pub(super) fn repeat_ack(&mut self, now: Instant) -> Option<(super::FlowKey, Segment)> {
        if self.acks_pending == 0 {
            return None;
        }
        for at in self.acks_from as usize..self.table.len() {
            let connection = self.table.get_mut(at);
            for way in [Way::FromFirst, Way::FromSecond] {
                if !connection.half(way).has(Half::ACK_PENDING) {
                    continue;
                }
                let half = connection.half_mut(way);
                half.set(Half::ACK_PENDING, false);
                half.ack_sent_at = now;
                self.acks_pending -= 1;
                self.acks_from = at as u32;
                self.counters.acks_repeated += 1;
                let ports = connection.key.ports(way.back());
                return Some((connection.key.flow(way.back()), connection.half(way).ack_segment(ports)));
            }
        }
        self.acks_pending = 0;
        None
    }
}

/// Whether the segment is not already scheduled, and was sent long enough ago to be acknowledged.
fn ripe(slot: &Slot, context: &Context) -> bool {
    !slot.pending && context.now.saturating_since(slot.sent_at) > context.guard
}

/// Limit on the segments that one advancing acknowledgement lets the node retransmit. With two, the
/// rate of repairs grows as in slow start.
const REPEATS_PER_ACK: usize = 2;
/// Limit on the cached segments that one acknowledgement compares with its SACK blocks and that
/// stay cached, if [`super::Config::repeats_per_ack`] is a limit.
const LONGEST_WALK: usize = 256;
/// Option space of a TCP header in bytes (RFC 9293 section 3.1).
pub(super) const MAX_OPTIONS: usize = 40;
