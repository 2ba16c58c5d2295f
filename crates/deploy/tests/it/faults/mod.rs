//! Fault injection with real processes and kernel sockets: gateways, nodes and pushes are killed or
//! stopped, links are cut, disks are full, addresses change, bits flip. In the end the file must be
//! delivered unchanged, and a returned gateway must have its share again.
//!
//! This is the short form; the long one is `cargo xtask campaign deployed-faults`.

mod flips;
mod meter;
mod network;
mod recovery;
mod run;
mod schedule;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anabranch_testkit::debian::find_or_install;
use anabranch_testkit::netns;

use crate::faults::meter::{Returned, SOON};
use crate::faults::run::{Outcome, carry_out};
use crate::faults::schedule::{End, Event, Family, KINDS, Kind, Link, Schedule};

/// Number of schedules of the short form: two of each kind.
const RUNS: u64 = 2 * KINDS.len() as u64;

/// A number for the long form from the environment.
fn given(name: &str, otherwise: u64) -> u64 {
    anabranch_testkit::given(&format!("ANABRANCH_FAULTS_{name}")).unwrap_or(otherwise)
}

#[test]
fn whatever_fails_the_file_arrives_or_is_refused_for_a_reason() {
    if netns::skipped() || find_or_install("tc", "iproute2").is_none() {
        return;
    }
    let (runs, seed, first) = (given("RUNS", RUNS), given("SEED", 1), given("FIRST", 0));
    let next = AtomicU64::new(first);
    let outcomes = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..given("AT_ONCE", 6).min(runs) {
            scope.spawn(|| {
                loop {
                    let run = next.fetch_add(1, Ordering::Relaxed);
                    if run >= first + runs {
                        return;
                    }
                    let outcome = carry_out(Schedule::draw(seed, run));
                    print!("{outcome}");
                    if !outcome.findings.is_empty() {
                        println!("  repeat it: cargo xtask campaign deployed-faults --seed {seed} --first {run} --runs 1");
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
    let returned: Vec<&Returned> = outcomes.iter().flat_map(|outcome| &outcome.returned).collect();
    let late = returned.iter().filter(|returned| returned.used.is_none_or(|used| used > SOON)).count();
    println!(
        "{late} of {} gateways that returned had their share again later than after {SOON:?}",
        returned.len()
    );
    // A few gateways may be late on a busy machine.
    assert!(late * 20 <= returned.len().max(20), "{late} of {} gateways", returned.len());
}

/// The node answers the sender, but no gateway reaches it.
#[test]
fn a_push_says_that_its_gateways_do_not_reach_the_node() {
    if netns::skipped() || find_or_install("tc", "iproute2").is_none() {
        return;
    }
    let schedule = Schedule {
        run: u64::from(u32::MAX),
        kind: Kind::Unreached,
        secure: true,
        family: Family::V4,
        octets: 200_000,
        other: None,
        rates: vec![2_000],
        disk: None,
        flips: Vec::new(),
        events: vec![(Duration::ZERO, Event::Cut(Link::Air, End::Near))],
    };
    let outcome = carry_out(schedule);
    print!("{outcome}");
    assert_eq!(outcome.findings, Vec::<String>::new());
    let first = outcome.pushes.first().expect("there was one");
    assert!(first.why.contains("every gateway was lost (a gateway cannot reach the node)"), "{}", first.why);
}

fn summarise(outcomes: &[Outcome]) {
    let mut endings: BTreeMap<String, u64> = BTreeMap::new();
    for push in outcomes.iter().flat_map(|outcome| &outcome.pushes) {
        // Without numbers and addresses.
        let why = push.why.split([';', '(', ',']).next().unwrap_or_default().trim();
        *endings.entry(why.to_owned()).or_default() += 1;
    }
    for (why, times) in endings {
        println!("{times} pushes: {why}");
    }
    let pushes = || outcomes.iter().flat_map(|outcome| &outcome.pushes);
    let longest = pushes().map(|push| push.took).max().unwrap_or(Duration::ZERO);
    let most = outcomes.iter().map(|outcome| outcome.pushes.len()).max().unwrap_or(0);
    let late = outcomes.iter().map(|o| o.took.saturating_sub(o.schedule.end())).max().unwrap_or_default();
    let resumed =
        pushes().filter(|push| push.why.starts_with("delivered") && !push.why.contains(" 0 ")).count();
    let good = outcomes.iter().filter(|outcome| outcome.findings.is_empty()).count();
    println!(
        "{good} of {} schedules good, {} pushes, at most {most} in one; {resumed} went on from some octet; longest push \
         {:.1} s; at most {:.1} s from the last fault to the end",
        outcomes.len(),
        pushes().count(),
        longest.as_secs_f64(),
        late.as_secs_f64()
    );
}
