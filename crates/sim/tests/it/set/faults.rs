//! Gateways fail: as long as one is up, the file arrives.

use anabranch_core::set::Outcome;
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::random::Stream;
use anabranch_sim::sim::Fault;
use anabranch_sim::world::Failure;

use super::random::network;
use super::star::*;

fn failure(random: &mut Stream) -> Failure {
    if random.range(0..=1) == 0 { Failure::Silent } else { Failure::Reset }
}

fn schedule_of(seed: u64) -> Stream {
    Stream::new(seed, 0, "gateway faults", "schedule")
}

#[test]
fn the_file_arrives_whichever_but_one_gateway_dies() {
    let mut struck = 0;
    for seed in 0..150 {
        let paths = network(seed);
        let mut run = Star { seed, ..Star::new(&paths, LENGTH) }.build();
        let random = &mut schedule_of(seed);
        let survivor = random.range(0..=paths.len() as u64 - 1) as usize;
        let mut faults = Vec::new();
        for (i, gateway) in run.gateways.clone().into_iter().enumerate().filter(|(i, _)| *i != survivor) {
            let at = Instant::ZERO + Duration::from_millis(random.range(0..=20_000));
            let how = failure(random);
            run.fault(at, Fault::NodeFails(gateway, how));
            faults.push((i, at, how));
        }
        run.go();
        let told = format!("seed {seed}, survivor {survivor}, faults {faults:?}");
        let (sender, node) = (run.sender(), run.node());
        assert_eq!(sender.outcome(), Some(Outcome::Delivered), "{told}: {} octets", sender.delivered());
        assert!(node.delivered == run.file, "{told}: not the file");
        struck += u32::from(faults.iter().any(|(_, at, _)| *at < run.sim().now()));
    }
    assert!(struck > 50, "only {struck} transfers lost a gateway before their end");
}

#[test]
fn without_any_gateway_the_transfer_fails_and_says_how_far_it_got() {
    for seed in 0..30 {
        let random = &mut schedule_of(seed);
        let paths = vec![path(64_000, 25, 0.0); random.range(1..=5) as usize];
        let mut run = Star { seed, ..Star::new(&paths, LENGTH) }.build();
        for gateway in run.gateways.clone() {
            // Even five such gateways are not finished by then.
            let at = Instant::ZERO + Duration::from_millis(random.range(0..=1_500));
            run.fault(at, Fault::NodeFails(gateway, failure(random)));
        }
        run.go();
        let (sender, node) = (run.sender(), run.node());
        assert!(matches!(sender.outcome(), Some(Outcome::Failed(_))), "seed {seed}: {:?}", sender.outcome());
        assert!(sender.delivered() <= node.delivered.len() as u64, "seed {seed}: more than the node has");
        assert!(node.delivered.len() < LENGTH, "seed {seed}: it had everything");
        assert!(run.file.starts_with(&node.delivered), "seed {seed}: not the file's beginning");
    }
}

const LENGTH: usize = 50_000;
