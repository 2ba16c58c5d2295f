//! Gateways that die.

use anabranch_core::set::*;
use anabranch_core::time::{Duration, Instant};

use super::world::*;

/// SplitMix64: the schedules are random, and the same for ever.
struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }
}

fn run_with_deaths(seed: u64, survivors: usize, within_ms: u64) -> World {
    let mut random = Random(seed);
    let n = 2 + random.next(3) as usize;
    let paths: Vec<Path> = (0..n).map(|_| path(2_500 + random.next(120_000), 5 + random.next(495))).collect();
    let mut world = World::new(&paths, file(100_000), SenderConfig::default(), ReceiverConfig::default());
    let mut victims: Vec<usize> = (0..n).collect();
    for _ in 0..survivors {
        // This world's default gateway is the first, and it does not learn new routes.
        victims.remove(random.next(victims.len() as u64) as usize);
    }
    for victim in victims {
        let death = if random.next(2) == 0 { Death::Silent } else { Death::Reset };
        world.kill(victim, Instant::ZERO + Duration::from_millis(random.next(within_ms)), death);
    }
    world.run(Duration::from_secs(4000));
    world
}

#[test]
fn whichever_gateway_is_left_brings_the_file_home() {
    for seed in 0..1000 {
        let world = run_with_deaths(seed, 1, 20_000);
        assert_eq!(
            world.sender.outcome(),
            Some(Outcome::Delivered),
            "seed {seed}: {:#?}",
            world.sender.sessions().collect::<Vec<_>>()
        );
        assert!(world.delivered == file(100_000), "seed {seed}");
    }
}

#[test]
fn without_any_gateway_the_sender_says_how_far_it_got() {
    let mut failed = 0;
    for seed in 0..200 {
        let world = run_with_deaths(seed, 0, 3_000);
        match world.sender.outcome() {
            Some(Outcome::Delivered) => assert!(world.delivered == file(100_000), "seed {seed}"),
            Some(Outcome::Failed(_)) => {
                failed += 1;
                assert!(world.sender.delivered() <= world.delivered.len() as u64, "seed {seed}");
                assert!(world.delivered[..] == file(100_000)[..world.delivered.len()], "seed {seed}");
            }
            None => panic!("seed {seed}: no outcome"),
        }
    }
    assert!(failed > 50, "{failed}");
}
