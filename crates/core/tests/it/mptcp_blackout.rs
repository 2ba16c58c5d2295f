//! A path that loses everything from some moment on: the others carry its data, and the end of the
//! stream.

use std::cell::Cell;
use std::rc::Rc;

use crate::mptcp_world::{End, Path, Verdict, World};
use anabranch_core::mptcp::{Config, Event, PathId, SchedulerKind, SubflowId};
use anabranch_core::segment::Flags;
use anabranch_core::tcp::{self, CongestionAlgorithm, RecoveryStage};
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::prng::Prng;
use bytes::Bytes;

/// The options of `anabranch multipath`.
fn config(scheduler: SchedulerKind, congestion: CongestionAlgorithm) -> Config {
    let modern = tcp::Config::modern();
    let least = Duration::from_millis(100);
    let rto =
        tcp::RtoConfig { min: least, granularity: least, max: Duration::from_millis(1500), ..modern.rto };
    let (send_buffer, receive_buffer) = (1 << 20, 1 << 20);
    let tcp = tcp::Config { congestion, rto, send_buffer, receive_buffer, mss: 1400, ..modern };
    Config { scheduler, tcp, silence: Some(Duration::from_millis(50)), ..Config::default() }
}

fn octets(n: usize) -> Bytes {
    Bytes::from(Prng::new(5).octets(n))
}

/// Two or three paths, some of them with losses or a short queue.
fn paths(prng: &mut Prng) -> Vec<Path> {
    (0..2 + prng.below(2))
        .map(|_| Path {
            loss: prng.pick(&[0, 0, 2, 10]),
            queue: Duration::from_millis(20 + prng.below(100)),
            dice: prng.bits(),
            ..Path::new(1_000_000 * (2 + prng.below(20)), 2 + prng.below(40))
        })
        .collect()
}

/// One upload of which a path turns black, at a random time after its first selective
/// acknowledgement. Returns the longest time without progress of the DATA_ACK, beyond two round
/// trips.
fn upload(
    seed: u64,
    scheduler: SchedulerKind,
    congestion: CongestionAlgorithm,
) -> Option<(Duration, String)> {
    let mut prng = Prng::new(seed);
    let config = config(scheduler, congestion);
    let paths = paths(&mut prng);
    let mut world = World::new(config, config, paths, prng.bits());
    world.in_order = Some(Default::default());
    let data = octets(6_000_000);
    world.client.outbox = data.clone();
    let dark = prng.below(world.paths.len() as u64) as usize;
    let repairs = |world: &mut World| {
        let info = world.client.mptcp().subflow_info(SubflowId(dark as u16));
        info.is_some_and(|info| info.tcp.recovery != RecoveryStage::Open && info.tcp.sacked > 0)
    };
    let limit = Instant::ZERO + Duration::from_secs(5);
    if !world.run_until(limit, repairs) {
        return None;
    }
    let moment = world.now + Duration::from_micros(prng.below(200_000));
    world.run_until(moment, |_| false);
    let moment = world.now;
    world.paths[dark].down = Some((moment, moment + Duration::from_secs(10_000)));
    let rtt = (0..world.paths.len() as u16)
        .filter_map(|id| world.client.mptcp().subflow_info(SubflowId(id))?.tcp.srtt)
        .max()
        .unwrap_or_default();
    let (mut acked, mut since, mut worst) = (0, moment, (Duration::ZERO, moment));
    let end = moment + Duration::from_secs(100);
    let done = world.run_until(end, |world| {
        let now = world.now;
        let info = world.client.mptcp().info();
        if info.bytes_acked != acked {
            worst = worst.max((now.saturating_since(since), since));
            (acked, since) = (info.bytes_acked, now);
        }
        info.bytes_acked == data.len() as u64
    });
    let what = format!(
        "seed {seed} {scheduler:?} {congestion:?} dark {dark} at {moment}, rtt {rtt}, longest gap {} from {} \
         of {:?} {:?}",
        worst.0,
        worst.1,
        world.paths.iter().map(|p| (p.bit_per_s / 1_000_000, p.delay, p.loss, p.queue)).collect::<Vec<_>>(),
        world.client.mptcp().info(),
    );
    assert!(done && world.server.inbox == data, "{what}");
    Some((worst.0.saturating_sub(rtt * 2), what))
}

/// RFC 8684 section 3.3.6: what a peer reports by SACK on a subflow need not have arrived on the
/// connection level, since data before it may be missing on that subflow.
#[test]
fn a_path_that_turns_black_while_it_repairs_losses_stops_no_upload() {
    let seeds = seeds(3);
    let mut late = Vec::new();
    let mut number = 0;
    for congestion in [CongestionAlgorithm::Cubic, CongestionAlgorithm::Bbr] {
        for (i, scheduler) in SchedulerKind::ALL.into_iter().enumerate() {
            for seed in 0..seeds {
                let Some((gap, what)) = upload(seed * 100 + i as u64, scheduler, congestion) else {
                    continue;
                };
                number += 1;
                if gap > Duration::from_millis(300) {
                    late.push(what);
                }
            }
        }
    }
    assert!(number > 0 && late.is_empty(), "{} of {number} late\n{}", late.len(), late.join("\n"));
}

/// Number of seeds of each family.
fn seeds(few: u64) -> u64 {
    std::env::var("ANABRANCH_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(few)
}

/// A short exchange. Both ends close at random times, and a path turns black around them. Returns
/// the time from the last of these moments to both ends having the end of the other, without two
/// round trips for each direction.
fn close(seed: u64, scheduler: SchedulerKind) -> (Duration, String) {
    let mut prng = Prng::new(seed);
    let config = config(scheduler, CongestionAlgorithm::Cubic);
    let paths: Vec<Path> = (0..2 + prng.below(2))
        .map(|_| Path { dice: prng.bits(), ..Path::new(20_000_000, 2 + prng.below(40)) })
        .collect();
    let mut world = World::new(config, config, paths, prng.bits());
    world.in_order = Some(Default::default());
    let (there, back) = (octets(prng.pick(&[0, 1, 1000, 30_000])), octets(prng.pick(&[0, 1, 1000, 30_000])));
    let at = |prng: &mut Prng| Instant::ZERO + Duration::from_micros(1_000_000 + prng.below(200_000));
    // What the client and the server send, the ends of both, and the failure, in the order of time.
    let mut deeds: Vec<(Instant, u8)> = (0..5).map(|deed| (at(&mut prng), deed)).collect();
    deeds.sort_unstable();
    let dark = prng.below(world.paths.len() as u64) as usize;
    // A path must have been heard before it can be known to be silent.
    world.client.outbox = octets(100);
    let (mut sent, mut closed) = ([100, 0], [false, false]);
    for (time, deed) in &deeds {
        world.run_until(*time, |_| false);
        world.now = world.now.max(*time);
        let end = usize::from(*deed % 2);
        let (data, forever) = ([&there, &back][end].clone(), Duration::from_secs(10_000));
        let now = world.now;
        let side = if end == 0 { &mut world.client } else { &mut world.server };
        match deed {
            0 | 1 if !closed[end] => {
                sent[end] += data.len();
                side.outbox = data;
            }
            0 | 1 => {}
            2 | 3 => (side.closes, closed[end]) = (true, true),
            _ => world.paths[dark].down = Some((now, now + forever)),
        }
        world.settle();
    }
    let moment = world.now;
    let rtt = (0..world.paths.len()).map(|path| world.paths[path].delay * 2).max().unwrap_or_default();
    let done = world.run_until(moment + Duration::from_secs(100), |world| {
        [&world.client, &world.server].iter().all(|side| side.events.contains(&Event::PeerClosed))
    });
    let took = world.now.saturating_since(moment);
    assert_eq!([world.server.inbox.len(), world.client.inbox.len()], sent, "seed {seed} {scheduler:?}");
    let what = format!(
        "seed {seed} {scheduler:?} dark {dark} at {moment} {deeds:?} took {took} {}",
        if done { "" } else { "and was not done" }
    );
    (took.saturating_sub(rtt * 4), what)
}

/// The DATA_FIN reaches the peer on another path if its own is black.
#[test]
fn a_path_that_turns_black_does_not_hide_the_end() {
    let mut late = Vec::new();
    let mut number = 0;
    for (i, scheduler) in SchedulerKind::ALL.into_iter().enumerate() {
        for seed in 0..seeds(30) {
            let (took, what) = close(seed * 100 + i as u64, scheduler);
            number += 1;
            if took > Duration::from_millis(600) {
                late.push(what);
            }
        }
    }
    assert!(late.is_empty(), "{} of {number} late\n{}", late.len(), late.join("\n"));
}

/// An upload over a path that fails, or whose acknowledgements pause for longer than the limit of
/// silence and less than the time-out, beside another path. Returns the bytes on the other path
/// from then on, the copies, and the state for a failure of the test.
fn alarm(seed: u64, scheduler: SchedulerKind, backup: bool, fails: bool) -> (u64, u64, String) {
    let mut prng = Prng::new(seed);
    let config = config(scheduler, CongestionAlgorithm::Cubic);
    let path = |delay| Path { queue: Duration::from_millis(30), ..Path::new(10_000_000, delay) };
    let mut world = World::new(config, config, vec![path(10), path(15)], seed);
    world.in_order = Some(Default::default());
    world.run_until(Instant::ZERO + Duration::from_millis(200), |_| false);
    if backup {
        world.client.mptcp().set_backup(SubflowId(1), true);
    }
    world.client.outbox = octets(4_000_000);
    let moment = world.now + Duration::from_micros(1_000_000 + prng.below(500_000));
    world.run_until(moment, |_| false);
    let assigned = |world: &mut World| {
        world.client.mptcp().subflow_info(SubflowId(1)).expect("it is open").bytes_assigned
    };
    let tcp = world.client.mptcp().subflow_info(SubflowId(0)).expect("it is open").tcp;
    let srtt = tcp.srtt.unwrap_or_default();
    let limit = srtt + (tcp.rttvar * 4).max(srtt / 4).max(Duration::from_millis(50));
    if fails {
        world.paths[0].down = Some((moment, moment + Duration::from_secs(10_000)));
    } else {
        world.paths[0].delay += limit + Duration::from_millis(10);
    }
    let (acked, before) = (world.client.mptcp().info().bytes_acked, assigned(&mut world));
    world.run_until(moment + srtt * 2 + Duration::from_millis(400), |_| false);
    let (info, carried) = (world.client.mptcp().info(), assigned(&mut world) - before);
    let what = format!("{scheduler:?} {seed} {limit} {} carried {carried} {info:?}", tcp.rto);
    assert!(info.bytes_acked > acked, "{what}");
    (carried, info.reinjections, what)
}

/// RFC 8684 section 3.3.8: a backup carries data if no other path works. A pause that is longer
/// than a round trip is no failure; a time-out without an answer is one.
#[test]
fn a_backup_carries_nothing_at_a_false_alarm_and_all_after_a_failure() {
    for scheduler in SchedulerKind::ALL {
        let mut alarms = 0;
        for seed in 0..seeds(4) {
            for fails in [false, true] {
                let (carried, _, what) = alarm(seed, scheduler, true, fails);
                assert_eq!(carried > 0, fails, "{what}");
            }
            // A path that is no backup repeats what is on the silent one.
            alarms += alarm(seed, scheduler, false, false).1;
        }
        assert!(alarms > 0, "{scheduler:?}");
    }
}

/// Time-outs of a subflow's handshake are no failure of the open subflow.
#[test]
fn a_lost_syn_does_not_send_data_on_the_backup() {
    for scheduler in SchedulerKind::ALL {
        let config = config(scheduler, CongestionAlgorithm::Cubic);
        let path = |delay| Path { queue: Duration::from_millis(100), ..Path::new(10_000_000, delay) };
        let mut world = World::new(config, config, vec![path(20), path(10)], 5);
        let mut is_first = true;
        world.rule = Some(Box::new(move |_, _, path, segment| {
            let lost =
                path == PathId(0) && segment.flags.contains(Flags::SYN) && std::mem::take(&mut is_first);
            if lost { Verdict::Drop } else { Verdict::Pass }
        }));
        world.run_until(Instant::ZERO + Duration::from_secs(3), |_| false);
        world.client.mptcp().set_backup(SubflowId(1), true);
        world.run_until(Instant::ZERO + Duration::from_secs(4), |_| false);
        world.client.outbox = octets(200_000);
        world.run_until(Instant::ZERO + Duration::from_secs(14), |_| false);
        let mut info = |id| world.client.mptcp().subflow_info(SubflowId(id)).expect("it is open");
        let (regular, backup) = (info(0), info(1));
        assert!(regular.tcp.timeouts > 0, "{scheduler:?}: no SYN was lost");
        assert_eq!((regular.bytes_assigned, backup.bytes_assigned), (200_000, 0), "{scheduler:?}");
    }
}

/// A DATA_FIN without data is repeated on a backup only if a second limit passes without an answer.
#[test]
fn a_data_fin_that_is_late_leaves_the_backup_alone() {
    for fails in [false, true] {
        let config = config(SchedulerKind::FastestRtt, CongestionAlgorithm::Cubic);
        let path = |delay| Path { queue: Duration::from_millis(100), ..Path::new(10_000_000, delay) };
        let mut world = World::new(config, config, vec![path(20), path(25)], 7);
        world.run_until(Instant::ZERO + Duration::from_millis(900), |_| false);
        world.client.mptcp().set_backup(SubflowId(1), true);
        world.client.outbox = octets(30_000);
        let moment = Instant::ZERO + Duration::from_secs(2);
        world.run_until(moment, |_| false);
        world.now = moment;
        // Longer than the limit of silence by less than another one.
        world.paths[0].delay += Duration::from_millis(100);
        if fails {
            world.paths[0].down = Some((moment, moment + Duration::from_secs(10_000)));
        }
        let ends = Rc::new(Cell::new([0, 0]));
        let seen = Rc::clone(&ends);
        world.rule = Some(Box::new(move |_, end, path, segment| {
            if end == End::Client && segment.mptcp.dss().is_some_and(|dss| dss.data_fin()) {
                let mut counts = seen.get();
                counts[usize::from(path.0)] += 1;
                seen.set(counts);
            }
            Verdict::Pass
        }));
        world.client.closes = true;
        world.run_until(moment + Duration::from_secs(1), |_| false);
        let [regular, backup] = ends.get();
        assert!(regular > 0 && (backup > 0) == fails, "{fails}: {:?}", ends.get());
    }
}
