//! Transfers without faults.

use anabranch_core::set::*;
use anabranch_core::time::{Duration, Instant};

use super::world::*;

fn deliver(paths: &[Path], length: usize, config: SenderConfig, node: ReceiverConfig) -> (World, f64) {
    let file = file(length);
    let mut world = World::new(paths, file.clone(), config, node);
    world.run(Duration::from_secs(600));
    assert_eq!(world.sender.outcome(), Some(Outcome::Delivered));
    assert!(world.delivered == file, "{} of {length} octets", world.delivered.len());
    let seconds = world.completed.expect("complete").as_secs_f64();
    (world, seconds)
}

fn modern(paths: &[Path], length: usize) -> f64 {
    deliver(paths, length, SenderConfig::default(), ReceiverConfig::default()).1
}

fn turns() -> SenderConfig {
    SenderConfig { striping: StripingPolicy::Turns, ..SenderConfig::default() }
}

fn predictive() -> SenderConfig {
    SenderConfig { striping: StripingPolicy::Predictive, ..SenderConfig::default() }
}

/// Choices and reasons of adaptive striping, first to last.
fn decisions(world: &World) -> Vec<(StripingChoice, StripingReason)> {
    world.sender.decisions().iter().map(|d| (d.choice, d.reason)).collect()
}

const TURNS: (StripingChoice, StripingReason) = (StripingChoice::Turns, StripingReason::Sessions);

/// Everything that a transfer shows: when it ended, and what each session carried.
fn figures(paths: &[Path], length: usize, config: SenderConfig) -> String {
    let (world, seconds) = deliver(paths, length, config, ReceiverConfig::default());
    let sessions: Vec<SessionReport> = world.sender.sessions().collect();
    format!("{seconds} {sessions:?} {:?}", world.sender.moments())
}

/// The default, unless the node says that all gateways share a channel.
#[test]
fn adaptive_striping_is_predictive_unless_all_gateways_share_a_channel() {
    assert_eq!(SenderConfig::default().striping, StripingPolicy::Adaptive);
    for (paths, length) in [
        (vec![path(2_000, 25); 3], 400_000),
        (vec![path(4_000, 25), path(2_000, 100)], 400_000),
        (vec![path(1_000, 400), path(1_500, 300)], 200_000),
        (vec![path(90_000, 25); 3], 400_000),
        (vec![path(4_000, 25), path(900, 25)], 400_000),
        (vec![path(2_000, 25)], 20_000),
        (vec![shared(path(2_000, 25)), path(2_000, 25), shared(path(2_000, 25))], 100_000),
    ] {
        let adaptive = figures(&paths, length, SenderConfig::default());
        assert_eq!(adaptive, figures(&paths, length, predictive()), "{paths:?}");
        let turns = figures(&paths, length, turns());
        assert!(adaptive != turns, "{paths:?}");
    }
}

#[test]
fn over_a_shared_channel_the_sessions_take_turns_from_the_first_chunk_on() {
    for n in 1..=5 {
        for length in [5_000, 100_000] {
            let paths = vec![shared(path(1_500, 25)); n];
            let (world, _) = deliver(&paths, length, SenderConfig::default(), ReceiverConfig::default());
            assert_eq!(decisions(&world), [TURNS], "{:?}", world.sender.decisions());
            let adaptive = figures(&paths, length, SenderConfig::default());
            assert_eq!(adaptive, figures(&paths, length, turns()), "{n} gateways, {length} octets");
        }
    }
}

/// The rate that refutes the node is in the decision, and no turns follow.
#[test]
fn a_rate_that_the_channel_cannot_have_ends_turns_for_the_rest_of_the_transfer() {
    let at = |s| Instant::ZERO + Duration::from_secs(s);
    // One chunk alone is too fast, or many of slow and long paths are.
    for (paths, earliest, latest, length) in [
        (vec![shared(path(20_000, 10)); 3], 0, 5, 600_000),
        (vec![shared(path(6_000, 400)); 4], 2, 60, 3_000_000),
    ] {
        let mut world = World::new(&paths, file(length), SenderConfig::default(), ReceiverConfig::default());
        // A session is lost and opens again.
        world.kill(1, at(latest), Death::Reset);
        world.revive(1, at(latest + 1));
        world.run(Duration::from_secs(1_000));
        assert_eq!(world.sender.outcome(), Some(Outcome::Delivered), "{}", world.describe());
        let refuted = (StripingChoice::Predictive, StripingReason::TurnsRate);
        assert_eq!(decisions(&world), [TURNS, refuted], "{:?}", world.sender.decisions());
        let last = world.sender.decisions()[1];
        assert!(last.measured > last.limit && last.limit == 80_000.0, "{last}");
        assert!(last.at >= at(earliest) && last.at < at(latest), "{last:?}");
    }
}

/// The only gateway outside the channel is lost, and returns.
#[test]
fn the_rule_follows_the_sessions_that_are_open() {
    let at = |s| Instant::ZERO + Duration::from_secs(s);
    let outside = (StripingChoice::Predictive, StripingReason::Outside);
    for death in [Death::Silent, Death::Reset] {
        let paths = [shared(path(1_500, 25)), path(1_500, 25)];
        let mut world =
            World::new(&paths, file(1_000_000), SenderConfig::default(), ReceiverConfig::default());
        world.kill(1, at(20), death);
        world.run(Duration::from_secs(19));
        assert_eq!(decisions(&world), []);
        world.run(Duration::from_secs(300));
        assert_eq!(decisions(&world), [TURNS], "{death:?}");
        world.revive(1, at(300));
        world.run(Duration::from_secs(500));
        assert_eq!(decisions(&world), [TURNS, outside], "{death:?}");
        world.run(Duration::from_secs(4_000));
        assert_eq!(world.sender.outcome(), Some(Outcome::Delivered), "{death:?} {}", world.describe());
        assert_eq!(decisions(&world), [TURNS, outside], "{death:?}");
    }
}

/// Lost sessions that return do not change what the node says.
#[test]
fn turns_go_on_when_all_sessions_have_returned() {
    let at = |s| Instant::ZERO + Duration::from_secs(s);
    let paths = [shared(path(1_500, 25)), shared(path(1_500, 25))];
    let mut world = World::new(&paths, file(200_000), SenderConfig::default(), ReceiverConfig::default());
    for gateway in 0..2 {
        world.kill(gateway, at(20), Death::Reset);
        world.revive(gateway, at(21));
    }
    world.run(Duration::from_secs(1_000));
    assert_eq!(world.sender.outcome(), Some(Outcome::Delivered), "{}", world.describe());
    assert_eq!(decisions(&world), [TURNS]);
}

/// What bridges the delays of a busy machine makes no queue of seconds on a slow path.
#[test]
fn spare_chunks_take_little_time() {
    for (rate, is_slow) in [(1_250, true), (5_000, true), (60_000, false)] {
        let latency = |spare_chunks| {
            let config = SenderConfig { spare_chunks, ..SenderConfig::default() };
            let mut world = World::new(
                &[path(rate, 25); 3],
                file(100 * rate as usize),
                config,
                ReceiverConfig::default(),
            );
            world.run(Duration::from_secs(20));
            assert_eq!(world.sender.outcome(), None);
            world.sender.sessions().filter_map(|s| s.latency).max().expect("measured")
        };
        assert_eq!(latency(12) == latency(2), is_slow, "{rate} B/s: {} and {}", latency(12), latency(2));
    }
}

#[test]
fn any_size_arrives_through_any_number_of_gateways() {
    for length in [0, 1, 80, 1439, 1440, 5000, 129_000] {
        for n in 1..=4 {
            for config in [predictive(), turns(), SenderConfig::default(), SenderConfig::paper()] {
                for path in [path(18_000, 25), shared(path(18_000, 25)), shared(path(1_800, 25))] {
                    deliver(&vec![path; n], length, config, ReceiverConfig::default());
                }
            }
        }
    }
}

#[test]
fn equal_gateways_add_up() {
    let one = modern(&[path(18_000, 25)], 1_000_000);
    for n in 2..=4usize {
        let speedup = one / modern(&vec![path(18_000, 25); n], 1_000_000);
        assert!(speedup > 0.95 * n as f64, "{n} gateways: {speedup}");
    }
}

#[test]
fn unequal_gateways_add_up() {
    let rates = [18_000, 9_000, 4_000];
    let alone: f64 = rates.iter().map(|r| 1e6 / modern(&[path(*r, 25)], 1_000_000)).sum();
    let paths: Vec<Path> = rates.iter().map(|r| path(*r, 25)).collect();
    let together = 1e6 / modern(&paths, 1_000_000);
    assert!(together > 0.95 * alone, "{together} of {alone}");
}

#[test]
fn a_hopeless_gateway_does_no_harm() {
    for slow in [path(2_000, 500), path(500, 200), path(2_500, 5)] {
        for length in [5_000, 100_000] {
            let alone = modern(&[path(100_000, 5)], length);
            for paths in [[path(100_000, 5), slow], [slow, path(100_000, 5)]] {
                let both = modern(&paths, length);
                // If the slow gateway is default and primary, its set-up time is added.
                let setup =
                    if paths[0].rate < 100_000 { 6.0 * slow.wireless_delay.as_secs_f64() + 1.2 } else { 0.0 };
                assert!(both < 1.02 * alone + setup, "{length} through {slow:?}: {both} instead of {alone}");
            }
        }
    }
}

#[test]
fn a_node_without_set_gets_the_file_as_plain_tcp() {
    let node = ReceiverConfig { striping: NodeStriping::Refused, ..ReceiverConfig::default() };
    let (world, _) = deliver(&[path(18_000, 25)], 50_000, SenderConfig::default(), node);
    assert_eq!(world.sender.sessions().count(), 0);
}

#[test]
fn the_baselines_deliver_too() {
    for plan in [Plan::EndToEnd, Plan::Split] {
        for length in [0, 1, 50_000] {
            let config = SenderConfig { plan, ..SenderConfig::default() };
            deliver(&[path(18_000, 25); 2], length, config, ReceiverConfig::default());
        }
    }
}

#[test]
fn the_paper_s_sessions_open_one_after_another_after_the_setack() {
    let (world, _) = deliver(&[path(18_000, 25); 3], 129_000, SenderConfig::paper(), ReceiverConfig::paper());
    let sessions: Vec<_> = world.sender.sessions().collect();
    assert_eq!(sessions.len(), 3);
    // 2 RTT1 + 2.5 RTT2 of equation 5, without the open-wait, which these relays omit.
    for session in &sessions {
        let establishment = session.establishment.expect("open").as_millis();
        assert!((90..=140).contains(&establishment), "{establishment} ms");
    }
    // Window striping gives the most data to the first session, which motivates the predictive
    // striping.
    assert!(sessions.windows(2).all(|pair| pair[0].written >= pair[1].written), "{sessions:#?}");
}

#[test]
fn a_small_node_buffer_is_never_overrun() {
    for (buffer, holding) in
        [500, 1_500, 4_000].into_iter().flat_map(|b| [(b, Holding::Pieces), (b, Holding::Ring)])
    {
        let node = ReceiverConfig { buffer, holding, pieces: 32, ..ReceiverConfig::default() };
        for config in [predictive(), turns(), SenderConfig::default()] {
            let paths = [shared(path(18_000, 25)), shared(path(4_000, 100))];
            let (world, _) = deliver(&paths, 50_000, config, node.clone());
            assert!(world.node.counters().held_peak <= u64::from(buffer));
            assert_eq!(world.node.counters().rejected, 0);
        }
    }
}
