use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn at(time: u64) -> Instant {
    Instant::from_nanos(time)
}

#[test]
fn one_instant_keeps_the_order_of_scheduling() {
    let mut queue = EventQueue::new();
    for n in 0..1000u32 {
        queue.push(at(7), n);
    }
    queue.push(at(3), 5000);
    assert_eq!(queue.pop(), Some((at(3), 5000)));
    for n in 0..1000 {
        assert_eq!(queue.pop(), Some((at(7), n)));
    }
    assert_eq!(queue.pop(), None);
}

#[test]
fn the_end_of_time_can_be_scheduled() {
    let mut queue = EventQueue::new();
    queue.push(at(u64::MAX), 1);
    queue.push(at(u64::MAX - 1), 2);
    queue.push(at(1 << 60), 3);
    assert_eq!(queue.pop_until(at(5)), None);
    queue.push(at(5), 4);
    let order: Vec<_> = std::iter::from_fn(|| queue.pop()).map(|(_, e)| e).collect();
    assert_eq!(order, [4, 3, 2, 1]);
}

/// Repeated insertions before the end of the front, so that the front must be cut.
#[test]
fn a_long_front_goes_back_to_the_slots() {
    let mut queue = EventQueue::new();
    queue.push(at(1 << 40), 0);
    assert_eq!(queue.peek_time(), Some(at(1 << 40)));
    for n in 1..10_000u64 {
        queue.push(at((1 << 40) - n * 17), n);
    }
    let mut last = 0;
    while let Some((time, n)) = queue.pop() {
        assert!(time.as_nanos() > last);
        last = time.as_nanos();
        assert_eq!(last, (1 << 40) - n * 17);
    }
    assert!(queue.is_empty());
}

#[derive(Clone, Debug)]
enum Op {
    Push { ahead: u64 },
    Pop,
    PopUntil { ahead: u64 },
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    // Times of every order of magnitude, with many ties.
    let ahead =
        prop_oneof![Just(0u64), 0..4u64, 0..5_000u64, (0..63u32, any::<u64>()).prop_map(|(s, n)| n >> s)];
    let op = prop_oneof![
        5 => ahead.clone().prop_map(|ahead| Op::Push { ahead }),
        3 => Just(Op::Pop),
        1 => ahead.prop_map(|ahead| Op::PopUntil { ahead }),
    ];
    prop::collection::vec(op, 0..2000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn the_queue_equals_a_sorted_map(ops in ops()) {
        let mut queue = EventQueue::new();
        let mut oracle = BTreeMap::new();
        let mut now = 0u64;
        for (n, op) in ops.into_iter().enumerate() {
            match op {
                Op::Push { ahead } => {
                    let time = now.saturating_add(ahead);
                    queue.push(at(time), n);
                    oracle.insert((time, n), n);
                }
                Op::Pop => {
                    let expected = oracle.pop_first().map(|((time, _), n)| (at(time), n));
                    prop_assert_eq!(queue.pop(), expected);
                    now = expected.map_or(now, |(time, _)| time.as_nanos());
                }
                Op::PopUntil { ahead } => {
                    let stop = now.saturating_add(ahead);
                    let due = oracle.first_key_value().is_some_and(|((time, _), _)| *time <= stop);
                    let expected = if due { oracle.pop_first().map(|((t, _), n)| (at(t), n)) } else { None };
                    prop_assert_eq!(queue.pop_until(at(stop)), expected);
                    now = expected.map_or(now, |(time, _)| time.as_nanos());
                }
            }
            prop_assert_eq!(queue.len(), oracle.len());
        }
        while let Some(((time, _), n)) = oracle.pop_first() {
            prop_assert_eq!(queue.pop(), Some((at(time), n)));
        }
        prop_assert_eq!(queue.pop(), None);
    }
}
