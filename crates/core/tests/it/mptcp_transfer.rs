//! Two endpoints and several paths: data arrives intact in both directions, and the connection
//! closes, for any behaviour of the paths.

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::mptcp_world::{Path, Verdict, World};
use anabranch_core::mptcp::scheduler::{Demand, PathView, Pick, Scheduler};
use anabranch_core::mptcp::{Config, CustomScheduler, Event, SchedulerKind, SubflowId};
use anabranch_core::tcp::{self, AdaptiveNewReno, AdaptivePhases, CloseReason, CongestionAlgorithm};
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::prng::Prng;
use bytes::Bytes;

fn octets(seed: u64, n: usize) -> Bytes {
    Bytes::from(Prng::new(seed).octets(n))
}

fn config(scheduler: SchedulerKind) -> Config {
    Config { scheduler, tcp: tcp::Config { mss: 1000, ..tcp::Config::modern() }, ..Config::default() }
}

/// Sends `up` and `down` bytes and closes; both must arrive.
fn exchange(world: &mut World, up: usize, down: usize, seconds: u64) {
    let (there, back) = (octets(1, up), octets(2, down));
    world.client.outbox = there.clone();
    world.server.outbox = back.clone();
    world.client.closes = true;
    world.server.closes = true;
    let over = world.run_to_end(seconds);
    let summary = format!(
        "at {}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
        world.now,
        (0..4).map(|i| world.client.mptcp().subflow_info(SubflowId(i)).map(|s| s.tcp)).collect::<Vec<_>>(),
        world.client.mptcp().info(),
        world.server.connection.as_ref().map(|c| c.info()),
        world.client.events,
        world.server.events
    );
    assert!(over, "not torn down {summary}");
    assert_eq!(world.server.inbox.len(), up, "{summary}");
    assert_eq!(world.client.inbox.len(), down, "{summary}");
    assert!(world.server.inbox == there && world.client.inbox == back, "octets differ {summary}");
}

#[test]
fn two_paths_carry_one_stream_both_ways() {
    for scheduler in SchedulerKind::ALL {
        let paths = vec![Path::new(2_000_000, 10), Path::new(1_000_000, 40)];
        let mut world = World::new(config(scheduler), config(scheduler), paths, 7);
        exchange(&mut world, 500_000, 100_000, 600);
        let graceful = Some(&Event::Closed(CloseReason::Graceful));
        assert_eq!((world.client.events.last(), world.server.events.last()), (graceful, graceful));
        let info = world.client.mptcp().info();
        assert!(info.multipath && info.bytes_acked == 500_000 && info.dropped == 0, "{info:?}");
        for side in [&world.client, &world.server] {
            assert!(side.events.contains(&Event::SubflowEstablished(SubflowId(1))), "{:?}", side.events);
            assert!(side.events.contains(&Event::PeerClosed));
        }
        let second = world.client.mptcp().subflow_info(SubflowId(1)).unwrap();
        if scheduler != SchedulerKind::Predictive {
            assert!(second.bytes_assigned > 50_000, "{scheduler:?} {second:?}");
        }
    }
}

#[test]
fn losses_and_reordering_do_not_show() {
    for (i, scheduler) in SchedulerKind::ALL.into_iter().enumerate() {
        for silence in [None, Some(Duration::from_millis(50))] {
            let lossy = |rate, delay| Path { loss: 30, reorder: 5, ..Path::new(rate, delay) };
            let paths = vec![lossy(2_000_000, 10), lossy(500_000, 60), lossy(1_000_000, 5)];
            let config = Config { silence, ..config(scheduler) };
            let mut world = World::new(config, config, paths, 70 + i as u64);
            exchange(&mut world, 300_000, 60_000, 6_000);
        }
    }
}

/// After the loss of any handshake segment, the server can still send.
#[test]
fn a_lost_part_of_the_handshake_stops_nothing() {
    for scheduler in SchedulerKind::ALL {
        // The SYN, the SYN-ACK, the acknowledgement, and the server's answer to it, with and
        // without data.
        for (lost, down) in (0..4).flat_map(|lost| [(lost, 50_000), (lost, 0)]) {
            let mut world =
                World::new(config(scheduler), config(scheduler), vec![Path::new(2_000_000, 10)], 5);
            let mut seen = 0;
            world.rule = Some(Box::new(move |_, _, _, _| {
                seen += 1;
                if seen == lost + 1 { Verdict::Drop } else { Verdict::Pass }
            }));
            exchange(&mut world, 0, down, 120);
        }
    }
}

/// Uses the fastest path first and records the bounds of the windows.
#[derive(Debug)]
struct Watching;

thread_local! {
    static BOUNDS: RefCell<BTreeSet<(usize, u32, u32)>> = const { RefCell::new(BTreeSet::new()) };
}

impl Scheduler for Watching {
    fn pick(&mut self, demand: &Demand, paths: &[PathView]) -> Pick {
        BOUNDS
            .with_borrow_mut(|all| all.extend(paths.iter().map(|path| (path.index, path.w_min, path.w_max))));
        let open = paths.iter().filter(|path| demand.unsent > 0 && path.takes(demand.unsent));
        let fastest = open.min_by_key(|path| path.rtt);
        fastest.map_or(Pick::Wait, |path| Pick::Send { index: path.index, skip: 0 })
    }
}

#[test]
fn a_further_subflow_may_have_a_tcp_of_its_own() {
    let scheduler = SchedulerKind::Custom(CustomScheduler::new("watching", |()| Box::new(Watching)));
    let first = config(scheduler);
    let adaptive = |w_min, w_max| {
        let bounds = AdaptiveNewReno { w_min, w_max, update_every: 1, phases: AdaptivePhases::Grow };
        CongestionAlgorithm::AdaptiveNewReno(bounds)
    };
    let first = Config { tcp: tcp::Config { congestion: adaptive(2, 12), ..first.tcp }, ..first };
    let rto = tcp::RtoConfig { min: Duration::from_secs(7), max: Duration::from_secs(7), ..first.tcp.rto };
    let second = tcp::Config { congestion: adaptive(3, 5), rto, ..first.tcp };
    let paths = vec![Path::new(2_000_000, 10), Path { tcp: Some(second), ..Path::new(2_000_000, 10) }];
    let mut world = World::new(first, first, paths, 7);
    exchange(&mut world, 300_000, 0, 600);
    let [one, other] =
        [0, 1].map(|i| world.client.mptcp().subflow_info(SubflowId(i)).expect("it was open").tcp);
    assert_eq!((one.cwnd, other.cwnd, other.rto), (12 * 968, 5 * 968, Duration::from_secs(7)));
    assert!(one.rto < Duration::from_secs(7));
    let bounds = BOUNDS.with_borrow(|all| all.iter().copied().collect::<Vec<_>>());
    assert_eq!(bounds, [(0, 2, 12), (1, 3, 5)]);
}

/// With one acknowledgement per window, requested by PSH, a scheduler that holds a path back before
/// its window is full must set PSH on the last segment. Otherwise the acknowledgement would wait
/// for more data, and the path for the acknowledgement.
#[test]
fn a_path_that_is_held_back_does_not_wait_for_its_acknowledgement() {
    let mut config = config(SchedulerKind::Predictive);
    config.tcp.push = tcp::Push::Window;
    config.tcp.ack_on_push = true;
    config.tcp.delayed_ack = tcp::DelayedAck::Every { segments: 100, timeout: Duration::from_secs(5) };
    let mut world = World::new(config, config, vec![Path::new(2_000_000, 10), Path::new(100_000, 20)], 7);
    let data = octets(1, 2_000_000);
    world.client.outbox = data.clone();
    assert!(world.run_until(Instant::ZERO + Duration::from_secs(60), |w| w.server.inbox.len() == data.len()));
    assert!(world.server.inbox == data);
    // In 8 s the slow path can carry 100,000 bytes.
    let slow = world.client.mptcp().subflow_info(SubflowId(1)).expect("it was opened");
    assert!(slow.bytes_assigned > 50_000, "{} octets in {}", slow.bytes_assigned, world.now);
}

/// Subflows with pacing offer no more space than may be sent now, and wake up when more may be
/// sent.
#[test]
fn paced_subflows_carry_everything() {
    for scheduler in SchedulerKind::ALL {
        for congestion in [CongestionAlgorithm::Cubic, CongestionAlgorithm::Bbr] {
            let config = paced(config(scheduler), congestion);
            let lossy = |rate, delay| Path { loss: 10, ..Path::new(rate, delay) };
            let paths = vec![lossy(2_000_000, 10), lossy(1_000_000, 40)];
            let mut world = World::new(config, config, paths, 9);
            exchange(&mut world, 400_000, 50_000, 600);
        }
    }
}

fn paced(config: Config, congestion: CongestionAlgorithm) -> Config {
    Config { tcp: tcp::Config { congestion, pacing: true, ..config.tcp }, ..config }
}

#[test]
fn equal_paths_add_up() {
    let plain = config(SchedulerKind::FastestRtt);
    let took = |config: Config, paths: usize| {
        let paths = vec![Path { queue: Duration::from_millis(100), ..Path::new(2_000_000, 20) }; paths];
        let mut world = World::new(config, config, paths, 3);
        world.client.outbox = octets(3, 2_000_000);
        assert!(
            world.run_until(Instant::ZERO + Duration::from_secs(100), |w| w.server.inbox.len() == 2_000_000)
        );
        world.now.as_secs_f64()
    };
    for config in [plain, paced(plain, CongestionAlgorithm::Cubic), paced(plain, CongestionAlgorithm::Bbr)] {
        let (one, two) = (took(config, 1), took(config, 2));
        assert!(one / two > 1.85, "one path {one} s, two {two} s");
    }
}
