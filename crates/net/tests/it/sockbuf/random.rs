//! Random operations on a few sockets. After each step, the test checks the memory that the kernel
//! holds for them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use anabranch_core::sockbuf::{ConnectionId, PidConfig, PolicyConfig};
use anabranch_core::time::{Duration, Instant};
use anabranch_net::buffers::Memory;
use anabranch_net::sockbuf::Tuner;
use anabranch_testkit::prng::Prng;

use super::{OVERRUN, connected, tuner};

const STEPS: usize = 1500;

/// A socket in the tuner, and its peer.
struct Held {
    id: ConnectionId,
    near: Arc<TcpStream>,
    far: TcpStream,
}

struct World {
    tuner: Tuner,
    held: Vec<Held>,
    now: Instant,
    budget: u64,
    /// True if sockets were added `early` and others have not drained since.
    pardoned: bool,
    early: u64,
    prng: Prng,
}

#[test]
fn the_budget_holds_whatever_happens() {
    let policies = [
        PolicyConfig::Pid(PidConfig::paper()),
        PolicyConfig::Atbt,
        PolicyConfig::AtbtOriginal,
        PolicyConfig::RightSizing,
        PolicyConfig::Product,
        PolicyConfig::Fixed(u64::MAX),
    ];
    let mut decisions = 0;
    for (seed, policy) in (0..10 * policies.len()).map(|i| (i as u64, policies[i % policies.len()])) {
        let mut prng = Prng::new(seed);
        let budget = 400_000 + prng.below(1_500_000);
        let tuner = tuner(budget, policy);
        let mut world =
            World { tuner, held: Vec::new(), now: Instant::ZERO, budget, pardoned: false, early: 0, prng };
        for step in 0..STEPS {
            world.act();
            world.check(&format!("seed {seed}, step {step}, {policy:?}"));
        }
        decisions += world.tuner.counters().pool.decisions;
    }
    assert!(decisions > 1000, "{decisions}");
}

impl World {
    fn act(&mut self) {
        let some =
            if self.held.is_empty() { None } else { Some(self.prng.below(self.held.len() as u64) as usize) };
        match (self.prng.below(20), some) {
            (0, _) => {
                let number = 1 + self.prng.below(3);
                let (near, far): (Vec<_>, Vec<_>) = (0..number).map(|_| connected()).unzip();
                far.iter().for_each(|far| far.set_nonblocking(true).expect("a socket"));
                let added =
                    if number == 1 { self.tuner.add(&near[0]) } else { self.tuner.add_striped(&near) };
                let Ok(id) = added else { return };
                self.held.extend(near.into_iter().zip(far).map(|(near, far)| Held { id, near, far }));
            }
            (1, Some(i)) => {
                let id = self.held[i].id;
                self.tuner.remove(id);
                self.held.retain(|held| held.id != id);
            }
            (2, Some(i)) => drop(self.held.swap_remove(i)),
            (3..8, Some(i)) => {
                // Until the socket accepts no more.
                let octets = vec![0; 1 + self.prng.below(100_000) as usize];
                while self.held[i].near.as_ref().write(&octets).is_ok() {}
            }
            (8..13, Some(i)) => {
                let mut octets = vec![0; 1 + self.prng.below(300_000) as usize];
                while self.held[i].far.read(&mut octets).is_ok_and(|len| len > 0) {}
            }
            (13, Some(i)) => {
                let bandwidth = [f64::NAN, -1.0, 1e5, 1e7, 1e9][self.prng.below(5) as usize];
                self.tuner.report(self.held[i].id, 0, bandwidth);
            }
            _ => {
                self.now += Duration::from_millis(self.prng.below(300));
                self.tuner.step(self.now);
            }
        }
    }

    fn check(&mut self, when: &str) {
        let (mut limits, mut queued, mut held) = (0, 0, 0);
        for Held { near, .. } in &self.held {
            let memory = Memory::read(near).expect("it is open");
            limits += memory.send_buffer + OVERRUN;
            queued += memory.queued;
            held += memory.queued.max(memory.send_buffer + OVERRUN);
        }
        assert!(limits <= self.budget, "{when}: {limits} of {}", self.budget);
        let early = self.tuner.counters().early;
        self.pardoned |= early > self.early;
        self.early = early;
        // Once all queues fit into the budget, the exception ends.
        self.pardoned &= held > self.budget;
        assert!(self.pardoned || queued <= self.budget, "{when}: {queued} of {}", self.budget);
    }
}
