//! Cables that follow a course.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::link::course::{Course, Opportunities, RateCourse, Steps};

pub(super) fn mahimahi(text: &str) -> Course {
    let course = Opportunities::parse(text).unwrap_or_else(|error| panic!("{error}"));
    Course { rate: Some(RateCourse::Opportunities(Arc::new(course))), delay: None }
}

pub(super) fn rates(text: &str, repeats: bool) -> Course {
    let course = Steps::rates(text, repeats).unwrap_or_else(|error| panic!("{error}"));
    Course { rate: Some(RateCourse::Steps(Arc::new(course))), delay: None }
}

fn delays(text: &str, repeats: bool) -> Course {
    let course = Steps::delays(text, repeats).unwrap_or_else(|error| panic!("{error}"));
    Course { rate: None, delay: Some(Arc::new(course)) }
}

/// No course, and one of each kind.
pub(super) fn courses() -> Vec<Course> {
    let rate = rates("0,4 Mbit/s\n0.01,0\n0.03,90 Mbit/s\n0.04,100 kbit/s\n0.08,1", true);
    let both = Course { delay: delays("0,0\n0.02,30 ms\n0.06,0\n0.07,1 ms", true).delay, ..rate.clone() };
    let hold = rates("0,90 Mbit/s\n0.02,300 kbit/s", false);
    vec![Course::default(), mahimahi("0\n2\n2\n2\n7\n30\n"), rate, both, hold]
}

/// The behaviour of `mm-link`, implemented from its description: at each opportunity, packets that
/// have arrived before it leave, in parts if necessary, as long as part of its 1504 bytes is left;
/// a packet counts 4 bytes more than its length. Returns the departure of each packet; `None` if it
/// was refused.
fn mm_link(millis: &[u64], packets: &[(u64, u32)], room: usize) -> Vec<Option<u64>> {
    let mut gone = vec![None; packets.len()];
    let (mut queue, mut in_transit): (VecDeque<usize>, Option<(usize, u32)>) = Default::default();
    let (mut next, mut base) = (0, 0);
    let mut come = 0;
    while gone.len() > come || !queue.is_empty() || in_transit.is_some() {
        let now = (base + millis[next]) * 1000;
        while come < packets.len() && packets[come].0 < now {
            if queue.len() < room {
                queue.push_back(come);
            }
            come += 1;
        }
        let mut left = 1504;
        while left > 0 {
            let Some((packet, rest)) =
                in_transit.or_else(|| queue.pop_front().map(|p| (p, packets[p].1 + 4)))
            else {
                break;
            };
            let part = rest.min(left);
            left -= part;
            in_transit = (rest > part).then_some((packet, rest - part));
            if in_transit.is_none() {
                gone[packet] = Some(now);
            }
        }
        next += 1;
        if next == millis.len() {
            next = 0;
            base += millis[millis.len() - 1];
        }
    }
    gone
}

proptest::proptest! {
    #[test]
    fn packets_leave_as_through_mm_link(
        gaps in proptest::collection::vec(0..4u64, 1..20),
        // Times of packets in microseconds, some of which coincide with opportunities.
        packets in proptest::collection::vec((prop_oneof![0..3000u64, (0..4u64).prop_map(|ms| ms * 1000)], 40..4000u32), 1..100),
        room in 1..20usize,
        asked: bool,
    ) {
        let mut millis: Vec<u64> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
        *millis.last_mut().unwrap() += 1;
        let text: String = millis.iter().map(|ms| format!("{ms}\n")).collect();
        let mut at = 0;
        let packets: Vec<(u64, u32)> = packets.iter().map(|(gap, len)| { at += gap; (at, *len) }).collect();
        let expected = mm_link(&millis, &packets, room);

        let queue = QueueLimit::Packets(room as u32);
        let config = LinkConfig { queue, ..config() };
        let mut cable = if asked { with(Box::new(Tail(Fifo::new(queue))), config) } else { link(config) };
        cable.follow(&mahimahi(&text));
        let mut driven = Driven::new(cable);
        for (handle, (at, len)) in handles(packets.len()).into_iter().zip(&packets) {
            let now = Instant::from_nanos(at * 1000);
            driven.run(now);
            driven.act(now, Deed::Offer(*len), handle);
        }
        driven.run(Instant::FAR_FUTURE);
        let gone = driven.arrived.iter().map(|(at, packet, _)| ((at.as_nanos() - 10_000_000) / 1000, packet.wire_len));
        let expected: Vec<_> = expected.iter().zip(&packets).filter_map(|(gone, (_, len))| Some(((*gone)?, *len))).collect();
        prop_assert_eq!(gone.collect::<Vec<_>>(), expected);
    }

    /// A course with a constant rate equals a cable without a course.
    #[test]
    fn a_course_of_one_rate_changes_nothing(deeds in deeds(), packets in 0..6u32) {
        let queue = QueueLimit::Packets(packets);
        let config = LinkConfig { queue, loss: LossModel::Bernoulli { p: 0.1 }, ..config() };
        let mut paced = link(config);
        paced.follow(&rates("0,8 Mbit/s", false));
        let [mut plain, mut paced] = [Driven::new(link(config)), Driven::new(paced)];
        let mut now = Instant::ZERO;
        for (handle, (wait, deed)) in handles(deeds.len()).into_iter().zip(&deeds) {
            now += Duration::from_micros(*wait);
            if matches!(deed, Deed::Rate(_)) {
                continue;
            }
            for driven in [&mut plain, &mut paced] {
                driven.run(now);
                driven.act(now, *deed, handle);
            }
            prop_assert_eq!(plain.link.queued(now), paced.link.queued(now));
            prop_assert_eq!(plain.link.busy(now), paced.link.busy(now));
        }
        for driven in [&mut plain, &mut paced] {
            driven.run(Instant::FAR_FUTURE);
        }
        let seen = |driven: &Driven| driven.arrived.iter().map(|(at, packet, lost)| (*at, packet.wire_len, *lost)).collect::<Vec<_>>();
        prop_assert_eq!(seen(&plain), seen(&paced));
        prop_assert_eq!(plain.link.metrics(), paced.link.metrics());
    }
}

#[test]
fn a_packet_keeps_its_delay_and_none_overtakes() {
    let mut link = link(LinkConfig { queue: QueueLimit::Packets(10), ..config() });
    // 10 ms, and 1 ms from 5 ms on.
    link.follow(&delays("0,10 ms\n5 ms,1 ms", false));
    let mut driven = Driven::new(link);
    for (handle, ms) in handles(6).into_iter().zip([0, 3, 4, 5, 9, 20]) {
        driven.run(at(ms));
        driven.act(at(ms), Deed::Offer(1000), handle);
    }
    driven.run(Instant::FAR_FUTURE);
    // The second leaves at 4 ms; the third, which leaves at 5 ms, would arrive at 6 ms.
    let arrived: Vec<Instant> = driven.arrived.iter().map(|(at, ..)| *at).collect();
    assert_eq!(arrived, [11, 14, 14, 14, 14, 22].map(at));
}

#[test]
fn what_is_cut_leaves_its_opportunities_to_others() {
    let mut link = link(LinkConfig { queue: QueueLimit::Packets(10), ..config() });
    link.follow(&mahimahi("5\n10\n"));
    let h = handles(8);
    for handle in &h[..5] {
        link.offer(at(0), of_length(*handle, 1500), Flow::default);
    }
    assert_eq!(link.queued(at(7)), (4, 6000));
    let mut cut = 0;
    // The first has left; the others leave no trace.
    assert_eq!(link.cut(at(7), |_| cut += 1), Some(at(15)));
    assert_eq!((cut, link.queued(at(7))), (4, (0, 0)));
    assert_eq!(link.offer(at(8), of_length(h[5], 700), Flow::default), Offer::Accepted);
    link.offer(at(9), of_length(h[6], 700), Flow::default);
    // It has missed its opportunity.
    link.offer(at(10), of_length(h[7], 40), Flow::default);
    let mut arrivals = vec![15];
    let mut due = Some(at(15));
    while let Some(now) = due {
        due = link.arrive(now).next;
        arrivals.extend(due.map(|due| due.as_nanos() / 1_000_000));
    }
    assert_eq!(arrivals, [15, 20, 20, 25]);
    assert_eq!(link.capacity(at(12)), Some(3000));
    assert_eq!(link.rate(at(3)), 8_000_000);
}
