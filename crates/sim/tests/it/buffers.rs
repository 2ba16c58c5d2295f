//! A host with two interfaces and a pool of send buffers: the pool is never exceeded and nothing is
//! lost, whatever its links do.

use anabranch_core::mptcp;
use anabranch_core::sockbuf::{self, Config, PidConfig, PolicyConfig};
use anabranch_core::tcp;
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::apps::{BulkSender, BulkSenderConfig, Content, Interfaces, Outcome, Sink, pattern};
use anabranch_sim::buffers::{BuffersConfig, Division, Reports, Sampling};
use anabranch_sim::event::AppId;
use anabranch_sim::link::LinkConfig;
use anabranch_sim::loss::LossModel;
use anabranch_sim::network::{Forwarding, NetworkConfig};
use anabranch_sim::packet::{LinkId, NodeId};
use anabranch_sim::sim::{Builder, Fault, Pause, Simulation};
use anabranch_sim::transport::TransportConfig;
use anabranch_sim::world::Failure;

struct Case {
    builder: Builder,
    host: NodeId,
    far: NodeId,
    /// Both directions, by interface.
    links: Vec<(LinkId, LinkId)>,
}

fn at(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

fn tcp() -> tcp::Config {
    tcp::Config { mss: 1400, receive_buffer: 8 << 20, ..tcp::Config::default() }
}

fn striped() -> mptcp::Config {
    mptcp::Config { tcp: tcp(), ..mptcp::Config::default() }
}

/// Links of 4 and 1 Mbit/s that lose one packet in a hundred; the other end is far behind them.
fn case(pool: Config, seed: u64) -> Case {
    reporting(pool, seed, Reports::Rate)
}

fn reporting(pool: Config, seed: u64, reports: Reports) -> Case {
    let mut builder = Builder::new(NetworkConfig::default(), seed, 0);
    let host = builder.node("host", Forwarding::Off);
    let far = builder.node("far", Forwarding::Off);
    let gateway = builder.node("gateway", Forwarding::On);
    let mut links = Vec::new();
    for (i, (rate, delay)) in [(4_000_000, 20), (1_000_000, 100)].into_iter().enumerate() {
        let access = builder.node(&format!("access {i}"), Forwarding::On);
        let wireless = LinkConfig {
            loss: LossModel::Bernoulli { p: 0.01 },
            ..LinkConfig::new(rate, Duration::from_millis(delay))
        };
        let (up, down) = builder.cable(host, access, wireless);
        let (_, back) =
            builder.cable(access, gateway, LinkConfig::new(100_000_000, Duration::from_millis(5)));
        let path = i as u8 + 1;
        for (at, to, link) in [(host, far, up), (gateway, host, back), (access, host, down)] {
            builder.pin_path(at, to, path, link);
        }
        links.push((up, down));
    }
    builder.cable(gateway, far, LinkConfig::new(100_000_000, Duration::from_millis(1)));
    let interfaces = links.iter().enumerate().map(|(i, (up, _))| (i as u8 + 1, *up)).collect();
    let config = BuffersConfig { tuner: pool, interfaces, reports };
    builder.buffers(host, config).expect("a pool that can be");
    Case { builder, host, far, links }
}

impl Case {
    fn flow(&mut self, port: u16, start: f64, paths: Interfaces, content: Content) -> (AppId, AppId) {
        let transport: TransportConfig =
            if paths.paths().len() > 1 { striped().into() } else { tcp().into() };
        let sink = self.builder.app(self.far, Instant::ZERO, Sink::new(port, transport));
        let mut config = BulkSenderConfig::new(self.far, port, content, transport);
        config.paths.interfaces = paths;
        (self.builder.app(self.host, at(start), BulkSender::new(config)), sink)
    }

    fn gone(&mut self, interface: usize, from: f64, to: f64) {
        let (up, down) = self.links[interface];
        for link in [up, down] {
            self.builder.fault(at(from), Fault::LinkDown(link));
            self.builder.fault(at(to), Fault::LinkUp(link));
        }
    }
}

const BOTH: [u8; 2] = [1, 2];

/// Runs event by event, and checks each time that limits and contents do not exceed the pool.
fn watched(sim: &mut Simulation, host: NodeId, until: f64) {
    while sim.now() < at(until) && sim.step() {
        let now = sim.now();
        let pool = sim.world().buffers(host).expect("it has a pool");
        let (limits, held) = pool.now();
        assert!(limits <= pool.threshold() && held <= limits, "at {now}: {held} held, {limits} allowed");
        assert_eq!(pool.metrics().overfull, 0, "at {now}");
    }
    let pool = sim.world().buffers(host).expect("it has a pool");
    let peaks = pool.metrics();
    assert!(peaks.peak_limits <= pool.threshold() && peaks.peak_held <= peaks.peak_limits, "{peaks:?}");
}

fn policies() -> [PolicyConfig; 7] {
    [
        PolicyConfig::Pid(PidConfig::paper()),
        Config::default().policy,
        PolicyConfig::Atbt,
        PolicyConfig::AtbtOriginal,
        PolicyConfig::RightSizing,
        PolicyConfig::Product,
        PolicyConfig::Fixed(50_000),
    ]
}

#[test]
fn the_pool_is_never_exceeded_at_any_event() {
    for (i, policy) in policies().into_iter().enumerate() {
        let threshold = 60_000 + 40_000 * i as u64;
        let pool = Config { threshold, policy, initial: 30_000, ..Config::default() };
        let mut case = case(pool, i as u64);
        case.flow(80, 0.0, Interfaces::new(&BOTH), Content::Endless);
        for single in 0..3_u8 {
            let paths = Interfaces::only(1 + single % 2);
            let content = Content::Pattern(100_000 * (1 + u64::from(single)));
            case.flow(81 + u16::from(single), 1.0 + f64::from(single), paths, content);
        }
        for (step, (up, _)) in [3.0, 6.0, 9.0].into_iter().zip([case.links[0], case.links[1], case.links[0]])
        {
            case.builder.fault(at(step), Fault::Rate(up, 500_000 * (1 + step as u64 % 4)));
        }
        case.gone(i % 2, 7.0, 10.0);
        let (host, mut sim) = (case.host, case.builder.build());
        watched(&mut sim, host, 20.0);
        let pool = sim.world().buffers(host).expect("it has a pool");
        assert!(pool.counters().decisions >= 38, "{:?}", pool.counters());
    }
}

/// Bytes of the striped connection and of three single ones that arrive in 40 s, after all have
/// been open for 10 s. Late single connections begin 10 s after the others, which have filled the
/// pool by then.
fn shares(policy: PolicyConfig, threshold: u64, singles_are_late: bool) -> [u64; 4] {
    let mut case = case(Config { threshold, policy, ..Config::default() }, 3);
    let begins = |single: bool| if single == singles_are_late { 10.0 } else { 0.0 };
    let mut sinks = vec![case.flow(80, begins(false), Interfaces::new(&BOTH), Content::Endless).1];
    for single in 0..3_u8 {
        let paths = Interfaces::only(1 + single % 2);
        sinks.push(case.flow(81 + u16::from(single), begins(true), paths, Content::Endless).1);
    }
    let host = case.host;
    let mut sim = case.builder.build();
    watched(&mut sim, host, 20.0);
    let arrived = |sim: &Simulation, i: usize| sim.app::<Sink>(sinks[i]).bytes();
    let before = [0, 1, 2, 3].map(|i| arrived(&sim, i));
    watched(&mut sim, host, 60.0);
    [0, 1, 2, 3].map(|i| arrived(&sim, i) - before[i])
}

/// A pool that others have filled is shared with later connections under every policy: each
/// connection gets at least half of what it gets as an early one. Except for the paper's
/// controller, which divides by bandwidth-delay products, this is also at least half of a fair
/// share of the memory.
#[test]
fn late_joiners_get_their_share() {
    for threshold in [4 * 1400, 20_000, 60_000, 500_000] {
        let fair = shares(PolicyConfig::AtbtOriginal, threshold, false);
        for policy in policies() {
            let (late, early) = (shares(policy, threshold, true), shares(policy, threshold, false));
            let is_paper = policy == PolicyConfig::Pid(PidConfig::paper());
            for i in 0..4 {
                let case = format!("{policy:?}, {threshold}: {late:?} late, {early:?} early, {fair:?} fair");
                assert!(2 * late[i] >= early[i] && 2 * early[i] >= late[i], "{case}");
                assert!(is_paper || 2 * late[i].min(early[i]) >= fair[i], "{case}");
            }
        }
    }
}

/// Connections that open one after another, each when the earlier ones have filled the pool, share
/// it.
#[test]
fn many_connections_share_a_pool() {
    for policy in policies() {
        for (count, segments) in [(2, 1), (2, 8), (16, 1), (16, 4), (64, 1), (64, 2)] {
            let threshold = count * segments * 1400;
            let mut case = case(Config { threshold, policy, ..Config::default() }, count);
            let sinks: Vec<AppId> = (0..count)
                .map(|i| case.flow(80 + i as u16, 0.3 * i as f64, Interfaces::only(1), Content::Endless).1)
                .collect();
            let host = case.host;
            let mut sim = case.builder.build();
            watched(&mut sim, host, 30.0);
            let before: Vec<u64> = sinks.iter().map(|&sink| sim.app::<Sink>(sink).bytes()).collect();
            watched(&mut sim, host, 90.0);
            let arrived =
                sinks.iter().zip(before).map(|(&sink, before)| sim.app::<Sink>(sink).bytes() - before);
            let arrived: Vec<u64> = arrived.collect();
            let mean = arrived.iter().sum::<u64>() / count;
            let least = arrived.iter().min().expect("there are some");
            println!("{policy:?} {count} {segments}: mean {mean} least {least}");
            assert!(2 * least >= mean, "{policy:?}, {count} of {segments} segments: {arrived:?}");
        }
    }
}

/// The decisions of 20 s, in which the rate of the first link falls from 4 to 0.5 Mbit/s at 10 s.
fn decisions(reports: Reports) -> Vec<Division> {
    let mut case = reporting(Config::default(), 1, reports);
    case.flow(80, 0.0, Interfaces::only(1), Content::Endless);
    case.builder.fault(at(10.0), Fault::Rate(case.links[0].0, 500_000));
    let (host, mut sim) = (case.host, case.builder.build());
    watched(&mut sim, host, 20.0);
    sim.world().buffers(host).expect("it has a pool").history().to_vec()
}

#[test]
fn samples_of_a_rate_are_late_and_may_be_lost() {
    let exact = Sampling { period: Duration::from_millis(10), delay: Duration::ZERO, noise: 0.0, loss: 0.0 };
    let sampled = |sampling| decisions(Reports::Sampled(sampling));
    // If all samples are lost, there are no reports.
    assert_eq!(sampled(Sampling { loss: 1.0, ..exact }), decisions(Reports::Nothing));
    // Samples without delay and noise equal the rate, except at the first decision, which precedes
    // any sample.
    let (samples, rate) = (sampled(exact), decisions(Reports::Rate));
    let product = |all: &[Division], time: f64| {
        let decision = all.iter().rev().find(|d| d.at <= at(time)).expect("two a second");
        decision.shares[0].product
    };
    for time in [5.0, 9.9, 10.6, 19.0] {
        let ratio = product(&samples, time) / product(&rate, time);
        assert!((0.8..1.25).contains(&ratio), "{time} s: {ratio}");
    }
    let late = sampled(Sampling { delay: Duration::from_millis(1700), ..exact });
    let before = product(&late, 9.9);
    assert!(product(&late, 11.6) > 0.5 * before && product(&late, 12.4) < 0.5 * before, "{before}");
    // If half of them are lost, one of the last few is known nevertheless.
    assert!(product(&sampled(Sampling { loss: 0.5, ..exact }), 10.6) < 0.5 * product(&samples, 9.9));
    let noisy = sampled(Sampling { noise: 0.5, ..exact });
    let steady = noisy.iter().filter(|d| (at(5.0)..at(9.9)).contains(&d.at));
    let products: Vec<f64> = steady.map(|d| d.shares[0].product).collect();
    let spread =
        products.iter().copied().fold(0.0, f64::max) / products.iter().copied().fold(f64::MAX, f64::min);
    assert!((1.5..4.0).contains(&spread), "{products:?}");
}

/// An interface is down for 10 s: every byte arrives, and at the end all memory is free again.
#[test]
fn a_handoff_loses_no_octet_and_no_memory() {
    for (interface, policy) in
        [(0, Config::default().policy), (1, Config::default().policy), (0, PolicyConfig::Atbt)]
    {
        let pool = Config { threshold: 300_000, policy, ..Config::default() };
        let mut case = case(pool, 9);
        let octets = 6_000_000;
        let (striped, striped_sink) = case.flow(80, 0.0, Interfaces::new(&BOTH), Content::Pattern(octets));
        let (single, single_sink) = case.flow(81, 2.0, Interfaces::only(1), Content::Pattern(500_000));
        case.gone(interface, 4.0, 14.0);
        let host = case.host;
        let mut sim = case.builder.build();
        watched(&mut sim, host, 13.9);
        let before = sim.app::<Sink>(striped_sink).bytes();
        assert!(before < octets, "all of it came before the interface was back");
        let reports = |sim: &Simulation| {
            let pool = sim.world().buffers(host).expect("it has a pool");
            pool.history().last().expect("decisions").shares[0].product
        };
        let gone = reports(&sim);
        watched(&mut sim, host, 40.0);
        assert_ne!(sim.run_until(at(400.0)), Pause::Stopped);
        for (app, sink, sent) in [(striped, striped_sink, octets), (single, single_sink, 500_000)] {
            assert_eq!(sim.app::<BulkSender>(app).outcome, Outcome::Done);
            assert_eq!(sim.app::<Sink>(sink).bytes(), sent);
        }
        let pool = sim.world().buffers(host).expect("it has a pool");
        assert_eq!(pool.now(), (0, 0), "connections are over, and nothing is kept for them");
        let most = pool.history().iter().map(|d| d.shares[0].product).fold(0.0, f64::max);
        assert!(gone < most, "a link that is down reports nothing: {gone} of {most}");
    }
}

/// The data arrives unchanged over interfaces that go down and come up.
#[test]
fn octets_are_the_same_after_a_handoff() {
    let mut case = case(Config { threshold: 200_000, ..Config::default() }, 4);
    let sink = case.builder.app(case.far, Instant::ZERO, Sink::keeping(80, striped()));
    let mut config = BulkSenderConfig::new(case.far, 80, Content::Pattern(3_000_000), striped());
    config.paths.interfaces = Interfaces::new(&BOTH);
    case.builder.app(case.host, Instant::ZERO, BulkSender::new(config));
    case.gone(0, 2.0, 12.0);
    case.gone(1, 13.0, 16.0);
    let mut sim = case.builder.build();
    sim.run_until(at(100.0));
    let kept = &sim.app::<Sink>(sink).transfers[0].kept;
    assert_eq!(kept.len(), 3_000_000);
    assert!(kept.chunks(1 << 16).all(|chunk| chunk == &pattern()[..chunk.len()]), "octets differ");
}

#[test]
fn a_host_that_fails_leaves_its_pool_empty() {
    let mut case = case(Config { threshold: 100_000, ..Config::default() }, 5);
    case.flow(80, 0.0, Interfaces::new(&BOTH), Content::Endless);
    case.flow(81, 0.0, Interfaces::only(2), Content::Endless);
    case.builder.fault(at(3.0), Fault::NodeFails(case.host, Failure::Silent));
    case.builder.fault(at(5.0), Fault::NodeRecovers(case.host));
    let (host, mut sim) = (case.host, case.builder.build());
    watched(&mut sim, host, 4.0);
    assert_eq!(sim.world().buffers(host).expect("it has a pool").now(), (0, 0));
    watched(&mut sim, host, 10.0);
    let (limits, held) = sim.world().buffers(host).expect("it has a pool").now();
    assert!(limits > 50_000 && held > 10_000, "{held} of {limits}");
}

#[test]
fn a_connection_without_room_for_a_segment_is_refused() {
    let mut case = case(Config { threshold: 3_000, ..Config::default() }, 6);
    let (first, sink) = case.flow(80, 0.0, Interfaces::only(1), Content::Pattern(10_000));
    let (second, _) = case.flow(81, 0.1, Interfaces::only(2), Content::Pattern(10_000));
    let (third, _) = case.flow(82, 0.2, Interfaces::only(2), Content::Pattern(10_000));
    let (host, mut sim) = (case.host, case.builder.build());
    watched(&mut sim, host, 20.0);
    assert_eq!(sim.app::<BulkSender>(first).outcome, Outcome::Done);
    assert_eq!(sim.app::<Sink>(sink).bytes(), 10_000);
    assert_eq!(sim.app::<BulkSender>(second).outcome, Outcome::Done);
    assert!(matches!(sim.app::<BulkSender>(third).outcome, Outcome::Failed(_)));
    assert_eq!(sim.world().buffers(host).expect("it has a pool").metrics().refused, 1);
}

/// A connection in TIME-WAIT, or one that waits for its peer to close, has sent everything and
/// keeps no memory from others.
#[test]
fn a_connection_that_has_sent_all_leaves_its_memory() {
    let mut case = case(Config { threshold: 3_000, ..Config::default() }, 6);
    let senders: Vec<AppId> = (0..6_u8)
        .map(|i| {
            case.flow(80 + u16::from(i), 3.0 * f64::from(i), Interfaces::only(1), Content::Pattern(10_000)).0
        })
        .collect();
    let (host, mut sim) = (case.host, case.builder.build());
    watched(&mut sim, host, 25.0);
    for sender in senders {
        assert_eq!(sim.app::<BulkSender>(sender).outcome, Outcome::Done);
    }
    let pool = sim.world().buffers(host).expect("it has a pool");
    assert_eq!((pool.now(), pool.metrics().refused), ((0, 0), 0));
}

#[test]
fn a_pool_of_nothing_is_refused() {
    let mut builder = Builder::new(NetworkConfig::default(), 1, 0);
    let host = builder.node("host", Forwarding::Off);
    let tuner = Config { threshold: 0, ..Config::default() };
    let config = BuffersConfig { tuner, interfaces: Vec::new(), reports: Reports::Nothing };
    assert_eq!(builder.buffers(host, config), Err(sockbuf::ConfigError::Threshold(0)));
}
