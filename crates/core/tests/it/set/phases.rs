//! The phases of a transfer, as its sender sees them.

use anabranch_core::set::*;
use anabranch_core::time::Duration;

use super::resume::{asks, with_identity};
use super::world::*;

/// Runs a transfer and returns the durations of its phases, which follow each other without gaps.
fn phases(mut world: World) -> (World, Vec<Duration>) {
    world.run(Duration::from_secs(600));
    let mut before = Duration::ZERO;
    let mut lengths = Vec::new();
    for (span, phase) in world.sender.moments().phases().zip(TransferPhase::ALL) {
        assert_eq!((span.phase, span.start), (phase, before), "{:?}", world.sender.moments());
        before = span.end;
        lengths.push(span.length());
    }
    (world, lengths)
}

#[test]
fn phases_sum_to_the_time_until_the_sender_knows() {
    for length in [0, 1, 80, 500, 5000, 129_000] {
        for n in 1..=3 {
            for config in [SenderConfig::default(), SenderConfig::paper()] {
                let paths = vec![path(18_000, 25); n];
                let world = World::new(&paths, file(length), config, ReceiverConfig::default());
                let (world, lengths) = phases(world);
                assert_eq!(world.sender.outcome(), Some(Outcome::Delivered));
                let moments = world.sender.moments();
                let delivered = moments.delivered.expect("it is").saturating_since(moments.started);
                let sum = lengths.iter().fold(Duration::ZERO, |sum, length| sum + *length);
                assert_eq!((lengths.len(), sum), (6, delivered), "{length} bytes, {n} gateways");
                assert!(moments.delivered > world.completed, "the sender knows later than the node");
                // Of an image, each phase takes time.
                let none = lengths.iter().filter(|length| length.is_zero()).count();
                assert!(length < 129_000 || none == 0, "{lengths:?}");
            }
        }
    }
}

/// The node reports the bytes of an earlier push before its answer. They are no bytes of this push.
#[test]
fn bytes_of_an_earlier_push_are_not_the_first() {
    for has in [0, 60_000] {
        let mut world = World::new(&[path(18_000, 25)], file(129_000), with_identity(), asks());
        world.has(&file(129_000)[..has]);
        let (world, lengths) = phases(world);
        assert_eq!(world.sender.resumed_from(), has as u64);
        // A chunk and its acknowledgement cross the wireless half at least.
        assert!(lengths[2] >= Duration::from_millis(50), "{has}: {lengths:?}");
    }
}

/// The plain file goes on the stream of the request, and has one acknowledgement.
#[test]
fn a_plain_file_has_one_acknowledgement() {
    let node = ReceiverConfig { striping: NodeStriping::Refused, ..ReceiverConfig::default() };
    let (_, lengths) = phases(World::new(&[path(18_000, 25)], file(50_000), SenderConfig::default(), node));
    let takes_time: Vec<bool> = lengths.iter().map(|length| !length.is_zero()).collect();
    assert_eq!(takes_time, [true, false, true, false, false, false], "{lengths:?}");
}

#[test]
fn a_failed_transfer_has_the_phases_before_its_failure() {
    let gateway = [path(18_000, 25)];
    let config = SenderConfig { redials: 0, recovery: Recovery::NoneLeft, ..SenderConfig::default() };
    let mut world = World::new(&gateway, file(129_000), config, ReceiverConfig::default());
    world.kill(0, anabranch_core::time::Instant::ZERO + Duration::from_secs(2), Death::Reset);
    let (world, lengths) = phases(world);
    assert_eq!(world.sender.outcome(), Some(Outcome::Failed(Failure::GatewaysLost)));
    assert_eq!(lengths.len(), 3, "{lengths:?}");
}
