//! Random schedules of faults in simulated time.

use anabranch_core::time::Duration;
use anabranch_testkit::prng::Prng;

use super::DRAWN;
use super::world::{Keys, Output, World};

/// Number of schedules; `ANABRANCH_SENSE_RUNS` sets another one.
const RUNS: u64 = 150;

fn given(name: &str, otherwise: u64) -> u64 {
    anabranch_testkit::given(&format!("ANABRANCH_SENSE_{name}")).unwrap_or(otherwise)
}

/// One schedule. Returns the numbers of records delivered and reported, and of faults.
fn schedule(seed: u64, run: u64) -> (u64, u64, u64) {
    DRAWN.set(run << 32);
    let mut prng = Prng::of_run(seed, run);
    let keys = prng.pick(&[Keys::Clear, Keys::Known, Keys::Shared, Keys::Forward]);
    let output = prng.pick(&[Output::Exact, Output::Exact, Output::Repeats]);
    let (senders, records) = (prng.range(1..=4) as usize, prng.range(10..=300) as u32);
    let mut world = World::new(Prng::new(prng.bits()), keys, output, senders, records);
    let ms = Duration::from_millis;
    world.delay = ms(prng.range(1..=300));
    world.jitter = if prng.chance(50) { world.delay * 2 } else { Duration::ZERO };
    world.loss = prng.pick(&[0, 0, 1, 5, 20]);
    world.duplicates = prng.pick(&[0, 0, 10]);
    let faults = prng.below(12);
    for _ in 0..faults {
        let end = world.now + ms(prng.below(8_000));
        world.run(end);
        let at = prng.below(senders as u64) as usize;
        match prng.below(7) {
            0 | 1 => world.kill_sink(),
            2 => world.kill_sender(at),
            3 => world.down_until = world.now + ms(prng.range(100..=30_000)),
            4 => {
                let port = world.hosts[at].address.port();
                world.hosts[at].address.set_port(port + 1);
            }
            // A host was suspended: its clock has moved on, its timers have not run.
            5 => world.hosts[at].ahead += ms(prng.pick(&[10, 1_000, 100_000, 20_000_000])),
            _ => world.sink_ahead += ms(prng.pick(&[10, 1_000, 100_000, 20_000_000])),
        }
    }
    world.run(world.now + Duration::from_secs(900));
    let (delivered, reported) = world.judge();
    (delivered, reported, faults)
}

/// SIGKILL of sink or sender, changed addresses, links down for 0.1 to 30 s, reordering,
/// duplicates and clocks that jump: nothing is lost silently, delivered twice, or corrupted.
#[test]
fn no_fault_loses_doubles_or_changes_a_record_silently() {
    let (runs, first, seed) = (given("RUNS", RUNS), given("FIRST", 0), given("SEED", 1));
    let mut total = (0, 0, 0);
    for run in first..first + runs {
        println!("seed {seed}, run {run}");
        let (delivered, reported, faults) = schedule(seed, run);
        total = (total.0 + delivered, total.1 + reported, total.2 + faults);
    }
    println!("{runs} schedules, {} faults: {} records delivered, {} reported", total.2, total.0, total.1);
    assert!(total.0 > total.1, "most are delivered");
}
