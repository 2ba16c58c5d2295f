//! Measures the time that a gateway's outage, or that of links, costs.
//!
//! This is the short form; the long one is `cargo xtask campaign deployed-recovery`.

use std::env;
use std::thread;
use std::time::Duration;

use anabranch_testkit::debian::find_or_install;
use anabranch_testkit::netns;
use anabranch_testkit::processors::{Busy, Processors};

use crate::faults::run::carry_out;
use crate::faults::schedule::{End, Event, Family, Kind, Link, Schedule, Who};

/// A transfer with an outage.
struct Trial {
    octets: u64,
    /// Rates in kbit/s.
    rates: [u64; 3],
    /// Start and end of the outage of the first gateway.
    gateway: [u64; 2],
    /// Start and end of the outage of the node's links.
    links: [u64; 2],
}

const WHOLE: Trial =
    Trial { octets: 200_000_000, rates: [50_000, 20_000, 5_000], gateway: [6, 9], links: [6, 26] };
const SHORT: Trial = Trial { octets: 10_000_000, rates: [5_000, 2_000, 500], gateway: [3, 5], links: [3, 9] };

/// A gateway's outage costs at most a quarter of the undisturbed time; that of links half a minute
/// for 20 s.
const MOST: f64 = 1.25;
const BESIDE_OUTAGE: Duration = Duration::from_secs(10);

#[test]
fn an_outage_costs_little_more_than_itself() {
    if netns::skipped() || find_or_install("tc", "iproute2").is_none() {
        return;
    }
    let whole = env::var_os("ANABRANCH_RECOVERY").is_some();
    // On a busy machine waiting for a processor may cost more than an outage, but hardly three
    // times in a row.
    let attempts = if whole { 1 } else { 3 };
    let (mut costs, mut busy) = (Vec::new(), Busy::default());
    for attempt in 0..attempts {
        let since = Processors::since_now();
        match cost(whole, attempt) {
            Some(too_much) => costs.push(too_much),
            None => return,
        }
        busy.note(&since);
    }
    if !whole && busy.says_nothing_of("what an outage costs") {
        return;
    }
    panic!("an outage costs too much: {costs:?}");
}

/// The cost of an outage, if it exceeds the limit.
fn cost(whole: bool, attempt: u64) -> Option<String> {
    let trial = if whole { WHOLE } else { SHORT };
    let seconds = |[from, until]: [u64; 2]| [from, until].map(Duration::from_secs);
    let ([gone, back], [cut, mended]) = (seconds(trial.gateway), seconds(trial.links));
    let who = Who::Gateway(0);
    let links = [Link::Direct, Link::Air];
    let cuts = links.map(|link| (cut, Event::Cut(link, End::Near)));
    let mends = links.map(|link| (mended, Event::Mend(link)));
    let events =
        [Vec::new(), vec![(gone, Event::Kill(who)), (back, Event::Start(who))], [cuts, mends].concat()];
    let one = |(run, events): (u64, Vec<(Duration, Event)>)| {
        let outcome = carry_out(Schedule {
            run: (1 << 31) + 3 * attempt + run,
            kind: if events.contains(&cuts[0]) { Kind::Absent } else { Kind::Return },
            secure: true,
            family: Family::V4,
            octets: trial.octets,
            other: None,
            rates: trial.rates.to_vec(),
            disk: None,
            events,
            flips: Vec::new(),
        });
        print!("{outcome}");
        assert_eq!(outcome.findings, Vec::<String>::new());
        outcome.pushes[0].took
    };
    let runs = (0..).zip(events);
    let took: Vec<Duration> = match whole {
        true => runs.map(one).collect(),
        // Their rates are low enough that they do not disturb each other.
        false => thread::scope(|scope| {
            let all: Vec<_> = runs.map(|run| scope.spawn(|| one(run))).collect();
            all.into_iter().map(|run| run.join().expect("nobody panics")).collect()
        }),
    };
    let [undisturbed, gateway, links] = took[..] else { unreachable!("three runs") };
    println!("undisturbed {undisturbed:.1?}, a gateway gone {gateway:.1?}, no links {links:.1?}");
    let good = gateway <= undisturbed.mul_f64(MOST) && links <= undisturbed + (mended - cut) + BESIDE_OUTAGE;
    (!good).then(|| format!("a gateway {gateway:?}, links {links:?} of {undisturbed:?}"))
}
