use anabranch_core::segment::Ecn;

use super::super::tests::{micros, packets};
use super::*;

fn queues(limit: QueueLimit) -> FqCodel {
    FqCodel::new(FqCodelConfig::default(), limit, 1500, 7)
}

const ALL: QueueLimit = QueueLimit::Packets(u32::MAX);

/// The lengths of the next `n` packets that leave.
fn leave(queues: &mut FqCodel, n: usize) -> Vec<u32> {
    let mut verdicts = Verdicts::default();
    (0..n).map_while(|_| queues.dequeue(micros(0), &mut verdicts)).map(|packet| packet.wire_len).collect()
}

fn fill(queues: &mut FqCodel, flow: u64, len: u32, n: usize) -> Verdicts {
    let mut verdicts = Verdicts::default();
    for mut packet in packets(n, Ecn::NotEct) {
        packet.wire_len = len;
        queues.enqueue(micros(0), packet, Flow(flow), &mut verdicts);
    }
    verdicts
}

#[test]
fn flows_take_turns_by_octets() {
    let mut queues = queues(ALL);
    for (flow, len) in [(1, 100), (2, 500), (3, 1500)] {
        fill(&mut queues, flow, len, 1000);
    }
    let left = leave(&mut queues, 900);
    for len in [100, 500, 1500] {
        let octets = u64::from(len) * left.iter().filter(|l| **l == len).count() as u64;
        let share = octets as f64 * 3.0 / left.iter().map(|l| f64::from(*l)).sum::<f64>();
        assert!((share - 1.0).abs() < 0.05, "{len}: {share}");
    }
}

#[test]
fn a_flow_that_begins_comes_first_but_once() {
    let mut queues = queues(ALL);
    fill(&mut queues, 1, 100, 100);
    fill(&mut queues, 2, 101, 100);
    leave(&mut queues, 40);
    fill(&mut queues, 3, 64, 2);
    assert_eq!(leave(&mut queues, 2), [64; 2], "up to a quantum");
    // The flow has nothing to send when its turn comes, and then waits in line with the others: a
    // flow of single packets does not always have priority.
    assert_ne!(leave(&mut queues, 1), [64]);
    fill(&mut queues, 3, 64, 1);
    let after = leave(&mut queues, 40);
    assert!(after[0] != 64 && after.contains(&64), "{after:?}");
    // A flow that sends too much at the same time is no longer a new flow.
    fill(&mut queues, 4, 1000, 3);
    let after = leave(&mut queues, 20);
    assert_eq!(after.iter().take_while(|len| **len == 1000).count(), 2, "{after:?}");
}

#[test]
fn the_longest_queue_gives_way() {
    let mut queues = queues(QueueLimit::Packets(100));
    fill(&mut queues, 1, 1000, 95);
    let verdicts = fill(&mut queues, 2, 1000, 5);
    assert!(verdicts.dropped.is_empty());
    let verdicts = fill(&mut queues, 2, 1000, 1);
    assert_eq!((verdicts.dropped.len(), queues.queued()), (48, (53, 53_000)), "half of the 95");
    let verdicts = fill(&mut queues, 3, 10, 1000);
    // 53 and 47 more; whatever arrives then, the queue with most bytes drops packets.
    assert!(verdicts.dropped.iter().any(|(packet, _)| packet.wire_len == 1000));
    assert!(queues.queued().0 <= 100);
}

#[test]
fn a_limit_in_octets_holds() {
    let mut queues = queues(QueueLimit::Bytes(10_000));
    for flow in 0..50 {
        fill(&mut queues, flow, 900, 3);
        assert!(queues.queued().1 <= 10_000);
    }
    assert_eq!(leave(&mut queues, 100).len(), 11);
}

#[test]
fn flows_share_queues_where_there_are_few() {
    let config = FqCodelConfig { flows: 1, ..FqCodelConfig::default() };
    let mut one = FqCodel::new(config, ALL, 1500, 7);
    fill(&mut one, 1, 1000, 10);
    fill(&mut one, 2, 2000, 10);
    assert_eq!(leave(&mut one, 20), [[1000; 10], [2000; 10]].concat(), "in the order in which they came");
    let mut many = queues(ALL);
    for flow in 0..1000 {
        fill(&mut many, flow, 100, 1);
    }
    // Of 1024 queues, 638 are expected to be used by 1000 random flows.
    assert!(many.queues.len().abs_diff(638) < 60, "{}", many.queues.len());
}

proptest::proptest! {
    /// With a single flow it equals CoDel: the same packets leave at the same times, and the same
    /// packets are dropped.
    #[test]
    fn of_one_flow_it_is_codel(deeds in proptest::collection::vec((0..8000u64, 0..3u8, 40..1500u32), 1..400), ecn: bool) {
        let mut alone = Codel::new(CodelConfig::default(), ALL);
        let mut among = queues(ALL);
        let [mut first, mut second] = [Verdicts::default(), Verdicts::default()];
        let ecn = if ecn { Ecn::Ect0 } else { Ecn::NotEct };
        let mut now = 0;
        for (mut packet, (wait, deed, len)) in packets(deeds.len(), ecn).into_iter().zip(deeds) {
            now += wait;
            packet.wire_len = len;
            if deed > 0 {
                alone.enqueue(micros(now), packet, Flow(5), &mut first);
                among.enqueue(micros(now), packet, Flow(5), &mut second);
            } else {
                let left = alone.dequeue(micros(now), &mut first);
                proptest::prop_assert_eq!(left, among.dequeue(micros(now), &mut second));
            }
            proptest::prop_assert_eq!(alone.queued(), among.queued());
        }
        proptest::prop_assert_eq!(first, second);
        proptest::prop_assert_eq!(alone.clear(micros(now)), among.clear(micros(now)));
    }
}
