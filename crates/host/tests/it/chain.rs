//! Losses on each hop of a chain. The long form is `cargo xtask campaign cache`.

#![expect(clippy::disallowed_types, reason = "what is compared is real time")]

use std::time::{Duration, Instant};

use anabranch_testkit::netns::Kept;
use anabranch_testkit::prng::Prng;
use anabranch_testkit::{contents, given};

use crate::world::{Chain, Family, ended, octets};

/// Hosts of the chain: two ends and four routers.
const HOSTS: usize = 6;

#[test]
fn caches_repair_losses_on_each_hop() {
    let Some(chain) = Chain::open(HOSTS) else { return };
    chain.lose(0.1);
    let caches: Vec<_> = chain.routers().map(|router| chain.cache(router, &[])).collect();
    let file = contents(50_000);
    assert_eq!(chain.fetched(&chain.serve(Family::V6, &file, "cubic")), file);
    let reports: Vec<_> = caches.into_iter().map(ended).collect();
    for report in &reports {
        assert!(report["local_repairs"].as_u64() > Some(0), "{report}");
        assert_eq!(report["malformed"], 0, "{report}");
    }
    // A cache before this one may also repeat a segment, which then counts as sent again.
    let avoided = reports.iter().filter_map(|report| report["retransmissions_avoided"].as_u64());
    assert!(avoided.sum::<u64>() > 0, "{reports:?}");
}

#[test]
fn a_cache_that_is_killed_and_started_again_changes_no_byte() {
    let transfers = given("ANABRANCH_CACHE_KILLS").unwrap_or(1);
    let Some(chain) = Chain::open(HOSTS) else { return };
    chain.lose(0.1);
    let mut caches: Vec<_> = chain.routers().map(|router| chain.cache(router, &[])).collect();
    let file = contents(if transfers > 1 { 200_000 } else { 50_000 });
    let url = chain.serve(Family::V4, &file, "cubic");
    let mut prng = Prng::new(1);
    for transfer in 0..transfers {
        let mut client = chain.fetch(&url, 300);
        std::thread::park_timeout(Duration::from_millis(prng.below(500)));
        let at = prng.below(caches.len() as u64) as usize;
        caches[at].child.kill().expect("it runs");
        caches[at].child.wait().expect("it is ours");
        std::thread::park_timeout(Duration::from_millis(prng.below(300)));
        caches[at] = chain.cache(at + 1, &[]);
        assert!(octets(&mut client) == file, "transfer {transfer}, cache {at}");
    }
}

/// The long form prints a table of times. The short form has no losses and compares no times.
#[test]
fn transfers_take_less_time_with_caches() {
    let transfers = given("ANABRANCH_CACHE_TRANSFERS").unwrap_or(0);
    if transfers == 0 {
        measured(&[1, 3], "bbr", 0.0, 1);
        return;
    }
    println!("{transfers} transfers of 200 kB, {HOSTS} hosts; mean and longest in seconds");
    for loss in [0.1, 0.0] {
        for congestion in ["reno", "cubic", "bbr"] {
            let none = measured(&[], congestion, loss, transfers);
            let middle = measured(&[HOSTS / 2], congestion, loss, transfers);
            let all = measured(&(1..HOSTS - 1).collect::<Vec<_>>(), congestion, loss, transfers);
            let [none, middle, all] = [none, middle, all].map(|(mean, longest)| {
                println!("loss {loss} {congestion}: {mean:.3} {longest:.3}");
                mean
            });
            println!(
                "loss {loss} {congestion}: none/middle {:.2}, none/all {:.2}",
                none / middle,
                none / all
            );
            if loss > 0.0 {
                assert!(none >= 3.0 * all && none >= 1.3 * middle, "{congestion}");
            }
        }
    }
}

/// Mean and longest time of transfers in seconds, with caches on these routers. With losses the
/// transfers of a chain with few caches mostly wait, so they run at once. One that an end has given
/// up counts with the time that it took so far if there are no caches, and otherwise as the
/// longest.
fn measured(routers: &[usize], congestion: &'static str, loss: f64, transfers: u64) -> (f64, f64) {
    let Some(chain) = Chain::open(HOSTS) else { return (0.0, 0.0) };
    if loss > 0.0 {
        chain.lose(loss);
    }
    let caches: Vec<_> = routers.iter().map(|router| chain.cache(*router, &[])).collect();
    let file = contents(200_000);
    let url = chain.serve(Family::V4, &file, congestion);
    let timed = |(begun, mut client): (Instant, Kept)| {
        let (got, took) = (octets(&mut client), begun.elapsed().as_secs_f64());
        assert!(file.starts_with(&got), "wrong bytes");
        if got.len() == file.len() {
            return took;
        }
        let end = client.0.wait().expect("it is ours");
        println!("{routers:?} {congestion}: given up after {took:.0} s and {} bytes: {end}", got.len());
        if routers.is_empty() { took } else { LONGEST.into() }
    };
    let start = |_| (Instant::now(), chain.fetch(&url, LONGEST));
    let times: Vec<f64> = match routers.len() < 2 && loss > 0.0 {
        false => (0..transfers).map(|i| timed(start(i))).collect(),
        true => {
            let started: Vec<_> = (0..transfers).map(start).collect();
            std::thread::scope(|scope| {
                let threads: Vec<_> = started.into_iter().map(|one| scope.spawn(|| timed(one))).collect();
                threads.into_iter().map(|thread| thread.join().expect("right bytes")).collect()
            })
        }
    };
    drop(caches);
    (times.iter().sum::<f64>() / transfers as f64, times.iter().copied().fold(0.0, f64::max))
}

/// Longest time of a transfer in seconds.
const LONGEST: u32 = 600;
