//! A path that loses everything from some moment on: the others carry its data, and the end of the
//! stream.

use crate::mptcp_world::{Path, World};
use anabranch_core::mptcp::{Config, SchedulerKind, SubflowId};
use anabranch_core::tcp::{self, CongestionAlgorithm, RecoveryStage};
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::prng::Prng;
use bytes::Bytes;

const SCHEDULERS: [SchedulerKind; 7] = [
    SchedulerKind::FastestRtt,
    SchedulerKind::RoundRobin,
    SchedulerKind::Redundant,
    SchedulerKind::Blest,
    SchedulerKind::Daps,
    SchedulerKind::Predictive,
    SchedulerKind::SectionVii,
];

/// The options of `anabranch multipath`.
fn config(scheduler: SchedulerKind, congestion: CongestionAlgorithm) -> Config {
    let modern = tcp::Config::modern();
    let least = Duration::from_millis(100);
    let rto = tcp::RtoConfig { min: least, granularity: least, max: Duration::from_millis(1500), ..modern.rto };
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
fn upload(seed: u64, scheduler: SchedulerKind, congestion: CongestionAlgorithm) -> Option<(Duration, String)> {
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
    let seeds = std::env::var("ANABRANCH_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(3);
    let mut late = Vec::new();
    let mut number = 0;
    for congestion in [CongestionAlgorithm::Cubic, CongestionAlgorithm::Bbr] {
        for (i, scheduler) in SCHEDULERS.into_iter().enumerate() {
            for seed in 0..seeds {
                let Some((gap, what)) = upload(seed * 100 + i as u64, scheduler, congestion) else { continue };
                number += 1;
                if gap > Duration::from_millis(300) {
                    late.push(what);
                }
            }
        }
    }
    assert!(number > 0 && late.is_empty(), "{} of {number} late\n{}", late.len(), late.join("\n"));
}
