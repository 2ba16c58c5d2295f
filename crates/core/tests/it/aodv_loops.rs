//! No routing loop ever exists (RFC 3561 section 1), for any sequence of link changes, message
//! losses and reboots: checked after each step.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use crate::aodv_world::{Fate, World, node};
use anabranch_core::aodv::{Config, Hello, IntermediateReplies, LocalRepair, ReplyAcks};
use anabranch_core::time::Duration;
use anabranch_testkit::prng::Prng;

fn any_config(prng: &mut Prng) -> Config {
    let base = if prng.chance(30) { Config::ns2() } else { Config::default() };
    Config {
        intermediate_replies: prng.pick(&[
            IntermediateReplies::Refused,
            IntermediateReplies::Accepted,
            IntermediateReplies::Accepted,
            IntermediateReplies::Gratuitous,
        ]),
        local_repair: prng.pick(&[LocalRepair::Off, LocalRepair::On]),
        hello: prng.pick(&[Hello::Off, Hello::Off, Hello::On]),
        reply_acks: prng.pick(&[ReplyAcks::Off, ReplyAcks::On]),
        ..base
    }
}

/// Returns a description of a failure, or the number of delivered packets.
fn run(seed: u64) -> Result<usize, String> {
    let mut prng = Prng::new(seed);
    let nodes = 3 + prng.below(6) as u8;
    let mut world = World::new(any_config(&mut prng), nodes, prng.bits());
    world.loss = prng.pick(&[0, 5, 30]);
    world.late = prng.pick(&[0, 20, 400]);
    let pair = |prng: &mut Prng| {
        let a = 1 + prng.below(nodes.into()) as u8;
        (a, 1 + (a + prng.below(u64::from(nodes) - 1) as u8) % nodes)
    };
    for _ in 0..nodes {
        let (a, b) = pair(&mut prng);
        world.up(a, b);
    }
    let (sink, reboots) = (1 + prng.below(nodes.into()) as u8, prng.chance(30));
    let mut delivered = 0;
    let check = |world: &World, what: &str| match world.find_loop() {
        Some((to, way)) => Err(format!("seed {seed}, {what} at {}: to {to} by {way:?}", world.now)),
        None => Ok(()),
    };
    for _ in 0..250 {
        match prng.below(100) {
            0..25 => {
                let (a, b) = pair(&mut prng);
                if world.is_up(a, b) { world.down(a, b) } else { world.up(a, b) }
            }
            25..60 => {
                let (source, other) = pair(&mut prng);
                let destination = if prng.chance(50) && source != sink { sink } else { other };
                delivered += usize::from(matches!(world.send(source, destination), Fate::Delivered(_)));
            }
            60 if reboots => {
                let (n, _) = pair(&mut prng);
                let now = world.now;
                world.router(n).reset(now);
            }
            _ => {
                let wait = prng.pick(&[1, 5, 50, 300, 1_000, 4_000, 9_000]);
                let until = world.now + Duration::from_millis(prng.below(wait));
                while world.step(until) {
                    check(&world, "after a step")?;
                }
            }
        }
        check(&world, "after an action")?;
    }
    Ok(delivered)
}

/// The long form is `cargo xtask campaign aodv-loops`. All runs pass. By the rule of three, 500 of
/// them show with 95 % confidence that fewer than 0.6 % of such networks can loop.
#[test]
fn no_loop_ever_exists() {
    let asked = std::env::var("ANABRANCH_AODV_RUNS").ok();
    let runs = asked.map_or(500, |runs| runs.parse().expect("a number of runs"));
    let results: Vec<_> = (0..runs).map(run).collect();
    let failures: Vec<_> = results.iter().filter_map(|r| r.as_ref().err()).collect();
    assert!(failures.is_empty(), "{} of {runs}; first: {}", failures.len(), failures[0]);
    let delivered: usize = results.iter().flatten().sum();
    println!("{runs} networks without a loop, {delivered} packets delivered");
    assert!(delivered as u64 > runs * 5, "only {delivered} packets arrived: nothing was tested");
}

/// When the network no longer changes, all connected nodes reach each other.
#[test]
fn what_is_connected_in_the_end_is_found() {
    for seed in 0..200 {
        let mut prng = Prng::new(seed);
        let config = any_config(&mut prng);
        let mut world = World::new(config, 8, seed);
        for _ in 0..60 {
            let (a, b) = (1 + prng.below(8) as u8, 1 + prng.below(8) as u8);
            match prng.below(3) {
                0 if a != b => world.up(a, b),
                1 => world.down(a, b),
                _ if a != b => {
                    world.send(a, b);
                }
                _ => {}
            }
            world.run(Duration::from_millis(prng.below(3_000)));
        }
        (1..8).for_each(|n| world.up(n, n + 1));
        let mut fate = world.send(1, 8);
        for _ in 0..40 {
            world.run(Duration::from_millis(700));
            fate = world.send(1, 8);
            if matches!(fate, Fate::Delivered(_)) {
                break;
            }
        }
        assert!(
            matches!(fate, Fate::Delivered(_)),
            "seed {seed}: {fate:?}, {:?}",
            world.router(1).entry(node(8))
        );
    }
}
