//! Fault injection in an emulated mesh: the deployed programs run in the nodes of a mesh of IEEE
//! 802.15.4 whose border routers, relays, wires and channel fail. A push ends with the whole file,
//! or with a reason and in time; repeated or with `--retry-for`, it delivers in the end.
//!
//! This is the short form; the long one is `cargo xtask campaign emulated-faults`.

mod run;
mod schedule;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use anabranch_testkit::netns;

use crate::emulate_faults::run::{Outcome, carry_out};
use crate::emulate_faults::schedule::{Length, Schedule};

/// A number for the long form from the environment.
fn given(name: &str) -> Option<u64> {
    anabranch_testkit::given(&format!("ANABRANCH_EMULATED_FAULTS_{name}"))
}

#[test]
fn whatever_fails_in_a_mesh_a_push_delivers_or_says_why() {
    if netns::skipped() {
        return;
    }
    let (seed, first) = (given("SEED").unwrap_or(1), given("FIRST").unwrap_or(0));
    let (runs, length) = given("RUNS").map_or((2, Length::Short), |runs| (runs, Length::Long));
    let next = AtomicU64::new(first);
    let outcomes = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..given("AT_ONCE").unwrap_or(2).min(runs) {
            scope.spawn(|| {
                loop {
                    let run = next.fetch_add(1, Ordering::Relaxed);
                    if run >= first + runs {
                        return;
                    }
                    let outcome = carry_out(Schedule::draw(seed, run, length));
                    print!("{outcome}");
                    if !outcome.findings.is_empty() && length == Length::Long {
                        println!(
                            "  repeat it: cargo xtask campaign emulated-faults --seed {seed} --first {run} --runs 1"
                        );
                    }
                    outcomes.lock().expect("nobody panics").push(outcome);
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().expect("nobody panics");
    summarise(&outcomes);
    let bad = outcomes.iter().filter(|outcome| !outcome.findings.is_empty()).count();
    assert_eq!((bad, outcomes.len() as u64), (0, runs), "seed {seed}: see what is printed above");
}

fn summarise(outcomes: &[Outcome]) {
    let pushes = || outcomes.iter().flat_map(|outcome| &outcome.pushes);
    let good = outcomes.iter().filter(|outcome| outcome.findings.is_empty()).count();
    let failed = pushes().filter(|push| !push.status.success()).count();
    let most = |seconds: &mut dyn Iterator<Item = f64>| seconds.fold(0.0, f64::max);
    println!(
        "{good} of {} schedules good, {} pushes, of which {failed} failed; longest push {:.1} s; at most {:.1} s from \
         the end of the faults to the delivery; lag: worst p99 {:.1} ms, maximum {:.1} ms",
        outcomes.len(),
        pushes().count(),
        most(&mut pushes().map(|push| push.took.as_secs_f64())),
        most(&mut outcomes.iter().map(|outcome| outcome.after.as_secs_f64())),
        most(&mut outcomes.iter().map(|outcome| outcome.lag_ms.0)),
        most(&mut outcomes.iter().map(|outcome| outcome.lag_ms.1)),
    );
}
