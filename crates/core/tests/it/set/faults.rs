//! Failing gateways.

use anabranch_core::set::tcp_manager::{Ending, State};
use anabranch_core::set::*;
use anabranch_core::time::{Duration, Instant};
use anabranch_wire::set::{self as wire, Join, Message, SetSyn};

use super::world::*;

/// SplitMix64: the schedules are random but reproducible.
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

/// Length of a file. Adaptive striping takes turns on slow paths, where transfers see more faults.
fn length(striping: StripingPolicy) -> usize {
    if striping == StripingPolicy::Adaptive { 400_000 } else { 100_000 }
}

fn run_with_deaths(seed: u64, survivors: usize, within_ms: u64, striping: StripingPolicy) -> World {
    let mut random = Random(seed);
    let n = 2 + random.next(3) as usize;
    let (slowest, spread) =
        if striping == StripingPolicy::Adaptive { (1_000, 9_000) } else { (2_500, 120_000) };
    let paths: Vec<Path> =
        (0..n).map(|_| shared(path(slowest + random.next(spread), 5 + random.next(495)))).collect();
    let config = SenderConfig { striping, ..SenderConfig::default() };
    let mut world = World::new(&paths, file(length(striping)), config, ReceiverConfig::default());
    let mut victims: Vec<usize> = (0..n).collect();
    for _ in 0..survivors {
        // The default gateway of this network is the first one, and it does not learn new routes.
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
        let policies = [StripingPolicy::Predictive, StripingPolicy::Turns, StripingPolicy::Adaptive];
        let striping = policies[seed as usize % 3];
        let world = run_with_deaths(seed, 1, 20_000, striping);
        assert_eq!(world.sender.outcome(), Some(Outcome::Delivered), "seed {seed} {}", world.describe());
        assert!(world.delivered == file(length(striping)), "seed {seed}");
    }
}

/// A gateway fails at 3 s, either of two unequal ones and in both ways, and returns.
#[test]
fn a_gateway_that_returns_is_used_again() {
    let seconds = Duration::from_secs;
    let at = |s| Instant::ZERO + seconds(s);
    for (victim, other) in [(40_000, 8_000), (8_000, 40_000)] {
        for death in [Death::Silent, Death::Reset] {
            for outage in [1, 3, 10, 30, 60] {
                // Enough data for a minute after the return.
                let octets = file(50_000 * (3 + outage as usize + 25));
                let paths = [path(other, 30), path(victim, 10)];
                let node = ReceiverConfig { buffer: 500_000, ..ReceiverConfig::default() };
                let mut world = World::new(&paths, octets, SenderConfig::default(), node);
                world.kill(1, at(3), death);
                world.revive(1, at(3 + outage));
                let carried = |world: &World| -> u64 {
                    world.sender.sessions().filter(|s| s.gateway == 2).map(|s| s.delivered).sum()
                };
                world.run(seconds(3 + outage));
                let before = carried(&world);
                world.run(seconds(3 + outage + 10));
                let what = format!("{victim} octets a second, {death:?}, {outage} s: {}", world.describe());
                let open = world.sender.sessions().any(|s| s.gateway == 2 && s.state == State::Opened);
                assert!(open && carried(&world) > before, "{what}");
                let then = carried(&world);
                world.run(seconds(3 + outage + 20));
                assert!(carried(&world) - then > victim * 10 * 8 / 10, "its share: {what}");
            }
        }
    }
}

/// As in the paper, the other sessions take over the data.
#[test]
fn without_recovery_nobody_is_called_while_others_carry() {
    let at = |s| Instant::ZERO + Duration::from_secs(s);
    for (recovery, called) in [(Recovery::NoneLeft, 2..=2), (Recovery::Always, 3..=60)] {
        let config = SenderConfig { recovery, ..SenderConfig::default() };
        let paths = [path(8_000, 30), path(40_000, 10)];
        let mut world = World::new(&paths, file(1_000_000), config, ReceiverConfig::default());
        world.kill(1, at(3), Death::Reset);
        world.run(Duration::from_secs(1000));
        assert_eq!(world.sender.outcome(), Some(Outcome::Delivered));
        assert!(called.contains(&world.dials), "{recovery:?}: {} calls", world.dials);
    }
}

/// There are 255 session numbers, and a report for each session: twenty minutes without a gateway
/// must use few of either.
#[test]
fn a_gateway_that_never_returns_costs_few_calls() {
    let at = |s| Instant::ZERO + Duration::from_secs(s);
    for death in [Death::Reset, Death::Silent] {
        let paths = [path(1_000, 30), path(1_000, 10)];
        let mut world =
            World::new(&paths, file(1_500_000), SenderConfig::default(), ReceiverConfig::default());
        world.kill(1, at(3), death);
        world.run(Duration::from_secs(1200));
        assert_eq!(world.sender.outcome(), None);
        assert!((15..=120).contains(&world.dials), "{death:?}: {} calls", world.dials);
        assert!(world.sender.sessions().count() <= 4, "{death:?}");
    }
}

#[test]
fn without_any_gateway_the_sender_says_how_far_it_got() {
    let mut failed = 0;
    for seed in 0..200 {
        let world = run_with_deaths(seed, 0, 3_000, StripingPolicy::Predictive);
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

#[test]
fn a_control_stream_that_the_node_ends_without_an_answer_is_reset_and_dialled_anew() {
    let node = "[fd00::100]:5683".parse().expect("an address");
    let config = SenderConfig::default();
    let mut sender = Sender::new(Instant::ZERO, config, node, TransferId(7), file(1000));
    let effects =
        |sender: &mut Sender, now| std::iter::from_fn(|| sender.poll_effect(now)).collect::<Vec<_>>();
    let stream = StreamId(0);
    assert_eq!(effects(&mut sender, Instant::ZERO), [Effect::Dial { stream, to: node, leg: Leg::Control }]);
    sender.handle_stream(Instant::ZERO, stream, StreamEvent::Ended);
    assert_eq!(effects(&mut sender, Instant::ZERO), [Effect::Abort { stream }]);
    let later = sender.next_timeout().expect("it tries again");
    sender.handle_timeout(later);
    assert!(matches!(effects(&mut sender, later)[..], [Effect::Dial { leg: Leg::Control, .. }]));
}

#[test]
fn a_gateway_whose_node_has_closed_does_not_answer_the_sender() {
    let mut relay = Relay::new(RelayConfig::paper());
    let wired = relay.handle_accepted(Instant::ZERO);
    let mut setsyn = Vec::new();
    let join = Join { transfer: TransferId(7), session: 0, sessions: 1, plan: Plan::Stripe };
    let destination = "[fd00::100]:5683".parse().expect("an address");
    wire::encode(&Message::SetSyn(SetSyn { join, destination }), &mut setsyn);
    relay.handle_stream(Instant::ZERO, wired, StreamEvent::Data(setsyn.into()));
    let wireless = StreamId(1);
    relay.handle_stream(Instant::ZERO, wireless, StreamEvent::Opened);
    relay.handle_stream(Instant::ZERO, wireless, StreamEvent::Ended);
    relay.handle_timeout(Instant::ZERO + Duration::from_secs(1));
    let to_sender = std::iter::from_fn(|| relay.poll_effect())
        .filter(|effect| matches!(effect, Effect::Write { stream, .. } | Effect::Shutdown { stream } if *stream == wired));
    assert_eq!(to_sender.collect::<Vec<_>>(), [Effect::Shutdown { stream: wired }]);
}

/// A transfer through three gateways that its owner stops after half a second.
fn cancelled(config: SenderConfig) -> World {
    let mut world = World::new(&[path(18_000, 25); 3], file(1_000_000), config, ReceiverConfig::default());
    world.run(Duration::from_millis(500));
    let (_, delivered) = world.node.delivered().expect("a transfer is under way");
    assert!(delivered > 0 && delivered < 1_000_000, "{delivered}");
    world.sender.cancel(world.now);
    assert_eq!(world.sender.outcome(), Some(Outcome::Failed(Failure::Cancelled)));
    assert_eq!(world.sender.next_timeout(), None);
    world.run(Duration::from_secs(2));
    world
}

#[test]
fn a_cancelled_transfer_is_forgotten_by_the_node_at_once() {
    for config in [SenderConfig::default(), SenderConfig::paper()] {
        let world = cancelled(config);
        assert_eq!(world.node.delivered(), None, "the node waits for what will never come");
        assert_eq!(world.node.counters().rejected, 0);
        let far = world.sender.sessions().find(|s| s.state != State::Closed(Ending::Cancelled));
        assert!(far.is_none(), "{}", world.describe());
    }
}

#[test]
fn octets_of_a_plain_split_connection_are_followed_by_no_cancel() {
    let world = cancelled(SenderConfig { plan: Plan::Split, ..SenderConfig::default() });
    let n = world.delivered.len();
    assert!(world.delivered[..] == file(1_000_000)[..n], "the node took a message for a part of the file");
}

#[test]
fn what_is_over_is_not_cancelled() {
    let mut world =
        World::new(&[path(18_000, 25)], file(1_000), SenderConfig::default(), ReceiverConfig::default());
    world.run(Duration::from_secs(10));
    world.sender.cancel(world.now);
    assert_eq!(world.sender.outcome(), Some(Outcome::Delivered));
    assert!(world.sender.poll_effect(world.now).is_none());
}

#[test]
fn a_transfer_that_is_cancelled_before_its_sessions_resets_what_it_opened() {
    let node = "[fd00::100]:5683".parse().expect("an address");
    let mut sender = Sender::new(Instant::ZERO, SenderConfig::default(), node, TransferId(7), file(1000));
    let stream = StreamId(0);
    assert!(matches!(sender.poll_effect(Instant::ZERO), Some(Effect::Dial { .. })));
    sender.cancel(Instant::ZERO);
    assert_eq!(sender.poll_effect(Instant::ZERO), Some(Effect::Abort { stream }));
    assert_eq!(sender.poll_effect(Instant::ZERO), None);
    assert_eq!(sender.outcome(), Some(Outcome::Failed(Failure::Cancelled)));
}

/// Slow paths of their own of which all but one fail at random moments, and of which the node says
/// wrongly that they share a channel.
#[test]
fn what_a_wrong_statement_costs_at_most_where_gateways_fail() {
    let mut ratios = Vec::new();
    let mut turns = 0;
    for seed in 0..30 {
        let mut took = |says: fn(Path) -> Path| {
            let mut random = Random(seed);
            let n = 2 + random.next(3) as usize;
            let base = 1_000 + random.next(2_000);
            let paths: Vec<Path> =
                (0..n).map(|_| says(path(base + random.next(base), 5 + random.next(100)))).collect();
            let mut world =
                World::new(&paths, file(400_000), SenderConfig::default(), ReceiverConfig::default());
            let survivor = random.next(n as u64) as usize;
            for victim in (0..n).filter(|victim| *victim != survivor) {
                let death = if random.next(2) == 0 { Death::Silent } else { Death::Reset };
                world.kill(victim, Instant::ZERO + Duration::from_millis(random.next(60_000)), death);
            }
            world.run(Duration::from_secs(20_000));
            assert_eq!(world.sender.outcome(), Some(Outcome::Delivered), "seed {seed}");
            turns += world.sender.decisions().iter().filter(|d| d.choice == StripingChoice::Turns).count();
            world.completed.expect("complete").as_secs_f64()
        };
        let right = took(|path| path);
        ratios.push((took(shared) / right, seed));
    }
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!(ratios[15].0 < 1.4, "{ratios:?}");
    assert!(ratios[29].0 < 2.5, "{ratios:?}");
    // Without turns nothing was tested.
    assert!(turns >= 30, "{turns}");
}
