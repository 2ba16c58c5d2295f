//! Two stacks in memory, with paths that delay, lose, reorder and fail.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::Ipv4Addr;

use anabranch_core::mptcp::scheduler::{Demand, PathView, Pick, Scheduler};
use anabranch_core::mptcp::{CustomScheduler, SchedulerKind};
use anabranch_core::segment::{AddressId, Dss, Flags, MpJoin, Mptcp, MptcpOption, SeqNumber};
use anabranch_testkit::prng::Prng;

use super::*;

const PORT: u16 = 443;
/// Longest time in the queue of a path with a rate.
const QUEUE: Duration = Duration::from_millis(100);
const SCHEDULERS: [SchedulerKind; 6] = [
    SchedulerKind::FastestRtt,
    SchedulerKind::Predictive,
    SchedulerKind::RoundRobin,
    SchedulerKind::Redundant,
    SchedulerKind::Blest,
    SchedulerKind::Daps,
];

/// A packet under way: when it arrives, a number that keeps the order, host, path, packet.
type Flying = (Instant, u64, usize, u16, Vec<u8>);

/// Two hosts, a client and a server, and paths between them.
struct World {
    hosts: [Stack; 2],
    now: Instant,
    air: BinaryHeap<Reverse<Flying>>,
    number: u64,
    random: Prng,
    /// Delay of each path in milliseconds.
    delays: Vec<u64>,
    /// Percentage of packets that each path loses.
    losses: Vec<u64>,
    /// Percentage of packets that are late.
    late: u64,
    /// Bytes per millisecond that each path carries in each direction; 0 is no limit.
    rates: Vec<u64>,
    /// Longest packet of each path, beside that of the interfaces.
    mtus: Vec<usize>,
    /// Until when each path holds its packets back.
    held: Vec<Instant>,
    /// When the queue of each path is empty, from each host.
    busy: [Vec<Instant>; 2],
    accepted: Vec<ConnId>,
    /// Bytes of packets that arrived on each path.
    carried: Vec<usize>,
    /// Packets that each path has lost.
    lost: Vec<usize>,
    /// Whether a middlebox removes the options of Multipath TCP.
    plain: bool,
}

fn address(host: usize, path: usize, v6: bool) -> IpAddr {
    let (path, host) = (path as u8, host as u8 + 1);
    match v6 {
        false => IpAddr::from([10, 0, path, host]),
        true => IpAddr::from([0xfd00, 0, 0, path.into(), 0, 0, 0, host.into()]),
    }
}

fn path_config(host: usize, path: usize) -> PathConfig {
    let (IpAddr::V4(v4), IpAddr::V6(v6)) = (address(host, path, false), address(host, path, true)) else {
        unreachable!("as asked for")
    };
    let announced = vec![address(host, path, false), address(host, path, true)];
    let destinations = ["0.0.0.0/0", "::/0"].map(|prefix| (prefix.parse().unwrap(), 0)).to_vec();
    PathConfig { v4: Some(v4), v6: Some(v6), mtu: 1500, backup: false, announced, destinations }
}

impl World {
    fn new(seed: u64, delays: &[u64], scheduler: SchedulerKind) -> Self {
        let host = |host: usize| {
            let mut options = Options::new([host as u8 + 1; 32]);
            options.config.scheduler = scheduler;
            let mut stack = Stack::new(options);
            (0..delays.len()).for_each(|path| stack.add_path(PathId(path as u16), path_config(host, path)));
            stack
        };
        let mut hosts = [host(0), host(1)];
        hosts[1].listen(PORT);
        let paths = delays.len();
        Self {
            hosts,
            now: Instant::ZERO,
            air: BinaryHeap::new(),
            number: 0,
            random: Prng::new(seed),
            delays: delays.to_vec(),
            losses: vec![0; paths],
            late: 0,
            rates: vec![0; paths],
            mtus: vec![1500; paths],
            held: vec![Instant::ZERO; paths],
            busy: [vec![Instant::ZERO; paths], vec![Instant::ZERO; paths]],
            accepted: Vec::new(),
            carried: vec![0; paths],
            lost: vec![0; paths],
            plain: false,
        }
    }

    fn connect(&mut self, v6: bool) -> ConnId {
        self.hosts[0].connect(self.now, SocketAddr::new(address(1, 0, v6), PORT)).unwrap()
    }

    /// Puts what both hosts send into the air.
    fn flush(&mut self) {
        let mut packet = Vec::new();
        for host in 0..2 {
            while let Some(PathId(path)) = self.hosts[host].poll_transmit(self.now, &mut packet) {
                let at = usize::from(path);
                if self.random.chance(self.losses[at]) {
                    self.lost[at] += 1;
                    continue;
                }
                if self.plain {
                    packet = without_options(&packet);
                }
                if packet.len() > self.mtus[at] {
                    let notice = too_big(&packet, self.mtus[at], 0);
                    self.hosts[host].handle_packet(self.now, PathId(path), &notice);
                    continue;
                }
                let late = if self.random.chance(self.late) { 5 } else { 0 };
                self.number += 1;
                let mut leaves = self.now.max(self.held[at]);
                if let Some(micros) = (1000 * packet.len() as u64).checked_div(self.rates[at]) {
                    let busy = &mut self.busy[host][at];
                    leaves = leaves.max(*busy);
                    if leaves > self.now + QUEUE {
                        continue;
                    }
                    leaves += Duration::from_micros(micros);
                    *busy = leaves;
                }
                let arrival = leaves + Duration::from_millis(self.delays[at] + late);
                self.air.push(Reverse((arrival, self.number, 1 - host, path, packet.clone())));
            }
            while let Some(event) = self.hosts[host].poll_event() {
                if let StackEvent::Accepted { id, port, .. } = event {
                    assert_eq!((host, port), (1, PORT));
                    self.accepted.push(id);
                }
            }
        }
    }

    /// Goes on to the next event; returns false if there is none before `until`.
    fn step(&mut self, until: Instant) -> bool {
        self.flush();
        let timers = self.hosts.iter().filter_map(Stack::next_timeout).min();
        let arrival = self.air.peek().map(|Reverse((at, ..))| *at);
        let Some(next) = [timers, arrival].into_iter().flatten().min() else { return false };
        if next > until {
            self.now = until;
            return false;
        }
        self.now = self.now.max(next);
        for host in &mut self.hosts {
            host.handle_timeout(self.now);
        }
        while let Some(Reverse((at, ..))) = self.air.peek()
            && *at <= self.now
        {
            let Some(Reverse((_, _, host, path, packet))) = self.air.pop() else { break };
            self.carried[usize::from(path)] += packet.len();
            // The server has the addresses of its paths, so each path leads to all of them.
            self.hosts[host].handle_packet(self.now, PathId(path), &packet);
        }
        self.flush();
        true
    }

    fn run(&mut self, time: Duration) {
        let until = self.now + time;
        while self.step(until) {}
    }

    /// Sends `data` from one host to the other until all has arrived, and calls `deed` before each
    /// step with the bytes that have arrived. Returns the time it took.
    fn transfer(
        &mut self,
        (from, sender): (usize, ConnId),
        receiver: ConnId,
        data: &[u8],
        mut deed: impl FnMut(&mut Self, usize),
    ) -> Duration {
        let begin = self.now;
        let mut rest = Bytes::copy_from_slice(data);
        let mut got = Vec::new();
        while got.len() < data.len() {
            deed(self, got.len());
            let now = self.now;
            while !rest.is_empty() && self.hosts[from].write(now, sender, &mut rest).unwrap() > 0 {}
            while let Read::Data(piece) = self.hosts[1 - from].read(now, receiver, usize::MAX) {
                got.extend_from_slice(&piece);
            }
            assert!(self.step(begin + Duration::from_secs(100)), "{} of {}", got.len(), data.len());
        }
        assert!(got == data, "other bytes");
        self.now.saturating_since(begin)
    }

    /// Opens a connection and waits until all paths have a subflow.
    fn open(&mut self, v6: bool) -> (ConnId, ConnId) {
        let client = self.connect(v6);
        let until = self.now + Duration::from_secs(5);
        while self.accepted.is_empty() || self.subflows() < self.delays.len() {
            assert!(self.step(until), "{} subflows", self.subflows());
        }
        (client, self.accepted.pop().unwrap())
    }

    /// Working subflows of the client.
    fn subflows(&self) -> usize {
        self.hosts[0].paths().map(|(_, report)| report.subflows).sum()
    }
}

/// A packet as a middlebox passes it on that removes the options of Multipath TCP.
fn without_options(packet: &[u8]) -> Vec<u8> {
    let (header, range) = ip::parse(packet).unwrap();
    let segment = ip::parse_tcp(&header, Bytes::copy_from_slice(&packet[range])).unwrap();
    let mut plain = Vec::new();
    ip::emit_tcp(&header, &Segment { mptcp: Mptcp::default(), ..segment }, &mut plain).unwrap();
    plain
}

fn contents(len: usize) -> Vec<u8> {
    Prng::new(len as u64).octets(len)
}

#[test]
fn all_paths_carry_data_both_ways_under_loss_and_reordering() {
    for (seed, scheduler) in SCHEDULERS.into_iter().enumerate() {
        let mut world = World::new(seed as u64, &[5, 10, 20], scheduler);
        let (client, server) = world.open(seed % 2 == 1);
        (world.losses, world.late) = (vec![1; 3], 2);
        let data = contents(1_000_000);
        world.transfer((0, client), server, &data, |_, _| {});
        world.transfer((1, server), client, &data, |_, _| {});
        assert!(world.carried.iter().all(|octets| *octets > 50_000), "{scheduler:?} {:?}", world.carried);
    }
}

#[test]
fn a_lost_path_is_left_at_once_and_used_again_when_it_returns() {
    let mut world = World::new(1, &[5, 5], SchedulerKind::RoundRobin);
    let (client, server) = world.open(false);
    let data = contents(12_000_000);
    let (mut longest, mut last, mut at, mut before) = (Duration::ZERO, world.now, 0, 0);
    world.transfer((0, client), server, &data, |world, got| {
        if got > at {
            (longest, last, at) = (longest.max(world.now.saturating_since(last)), world.now, got);
        }
        if got > 1_000_000 && before == 0 {
            before = world.carried[0];
            world.losses[0] = 100;
            world.hosts[0].remove_path(PathId(0));
        }
        if got > 2_500_000 && world.losses[0] == 100 {
            assert!(world.carried[0] < before + 100_000);
            before = world.carried[0];
            world.losses[0] = 0;
            world.hosts[0].add_path(PathId(0), path_config(0, 0));
        }
    });
    assert!(longest <= Duration::from_millis(60), "{longest}");
    assert!(world.carried[0] > before + 300_000, "{:?}", world.carried);
}

/// An upload over two paths of 20 Mbit/s and 30 ms whose queues fill. `fault` disturbs the paths
/// from the second second on, which it counts. Returns the longest time without progress from then
/// on, and the copies of data in permille.
fn disturbed(scheduler: SchedulerKind, mut fault: impl FnMut(&mut World, Duration)) -> (Duration, u64) {
    let mut world = World::new(7, &[15, 15], scheduler);
    world.hosts[0].config.tcp.congestion = tcp::CongestionAlgorithm::Cubic;
    let (client, server) = world.open(false);
    world.rates = vec![2500; 2];
    let (begin, data) = (world.now + Duration::from_secs(2), contents(15_000_000));
    let (mut longest, mut last, mut before) = (Duration::ZERO, world.now, 0);
    world.transfer((0, client), server, &data, |world, got| {
        if world.now >= begin {
            fault(world, world.now.saturating_since(begin));
        }
        if got > before {
            if world.now >= begin {
                longest = longest.max(world.now.saturating_since(last));
            }
            (last, before) = (world.now, got);
        }
    });
    let info = world.hosts[0].info(client).unwrap();
    (longest, info.reinjections * 1448 * 1000 / data.len() as u64)
}

#[test]
fn a_path_that_is_silent_stops_no_connection_for_long() {
    for scheduler in SCHEDULERS {
        for at in [0, 1] {
            let (pause, copies) = disturbed(scheduler, |world, time| {
                world.losses[at] = if time < Duration::from_secs(2) { 100 } else { 0 };
            });
            assert!(pause < Duration::from_millis(200), "{scheduler:?}, path {at}: {pause}");
            assert!(copies < 20 || scheduler == SchedulerKind::Redundant, "{scheduler:?}: {copies}");
        }
    }
}

/// What waits is not lost, and the first pauses show it.
#[test]
fn a_path_that_pauses_fills_no_other_with_copies() {
    let (_, copies) = disturbed(SchedulerKind::FastestRtt, |world, time| {
        let pause = time.as_millis() % 500;
        if pause < 150 {
            world.held[0] = world.now + Duration::from_millis(150 - pause);
        }
    });
    assert!(copies < 10, "{copies}");
}

/// The SYN is lost, so the connection begins on the other path.
#[test]
fn a_connection_begins_on_the_path_that_answers() {
    let mut world = World::new(1, &[5, 5], SchedulerKind::FastestRtt);
    world.losses[0] = 100;
    let client = world.connect(false);
    world.run(Duration::from_millis(1100));
    assert_eq!(world.hosts[0].status(client), Status::Open);
    // The next connection begins there at once.
    let client = world.connect(false);
    world.run(Duration::from_millis(11));
    assert_eq!(world.hosts[0].status(client), Status::Open);
}

/// Before a measurement the route's metric decides, and then the time of a round trip and a first
/// window: the round-trip time of a small packet says little about a slow link.
#[test]
fn a_connection_begins_on_the_path_that_is_known_to_be_better() {
    let metric = |host: usize, path: usize, metric: u32| {
        let mut config = path_config(host, path);
        config.destinations.iter_mut().for_each(|(_, of)| *of = metric);
        config
    };
    for v6 in [false, true] {
        for congestion in [tcp::CongestionAlgorithm::Cubic, tcp::CongestionAlgorithm::Bbr] {
            let mut world = World::new(3, &[20, 21, 5], SchedulerKind::FastestRtt);
            world.hosts[0].config.tcp.congestion = congestion;
            (0..2)
                .for_each(|at| world.hosts[0].add_path(PathId(at), metric(0, at.into(), 10 + u32::from(at))));
            world.hosts[0].add_path(PathId(2), PathConfig { backup: true, ..metric(0, 2, 0) });
            // A slow radio, whose small packets are as fast as those of the other link.
            world.rates = vec![50, 500, 500];
            let (client, server) = world.open(v6);
            assert_eq!(begins(&world, client), 0, "{v6} {congestion:?}");
            world.transfer((0, client), server, &contents(150_000), |_, _| {});
            let second = world.connect(v6);
            assert_eq!(begins(&world, second), 1, "{v6} {congestion:?} {:?}", world.hosts[0].paths);
        }
    }
}

/// The path of the first subflow of a connection of the client.
fn begins(world: &World, id: ConnId) -> u16 {
    world.hosts[0].peek(id).unwrap().flows[0].path.0
}

/// Two regular paths and a backup of the client, whose names are 0, 1 and 2.
fn with_backup() -> World {
    let mut world = World::new(1, &[5, 10, 20], SchedulerKind::FastestRtt);
    world.hosts[0].add_path(PathId(2), PathConfig { backup: true, ..path_config(0, 2) });
    world
}

/// RFC 8684 section 3.3.8: a backup carries what no other path does.
#[test]
fn connections_begin_on_a_backup_as_long_as_all_others_are_mute() {
    for v6 in [false, true] {
        let mut world = with_backup();
        (world.losses[0], world.losses[1]) = (100, 100);
        let first = world.connect(v6);
        world.run(Duration::from_secs(3));
        assert_eq!((world.hosts[0].status(first), begins(&world, first)), (Status::Open, 2));
        // The SYN on the third path is not the third one on one path.
        assert_eq!(world.hosts.each_ref().map(|host| host.counters().fallbacks), [0, 0]);
        // The next ones wait for nothing.
        for wait in [0, 20_000] {
            world.run(Duration::from_millis(wait));
            let next = world.connect(v6);
            world.run(Duration::from_millis(41));
            assert_eq!((world.hosts[0].status(next), begins(&world, next)), (Status::Open, 2), "{wait}");
        }
        // A server hears that it is a backup, and the data leaves it as soon as others are back,
        // although their joins were refused before.
        world.losses = vec![0; 3];
        world.run(Duration::from_secs(2));
        let next = world.connect(v6);
        world.run(Duration::from_millis(41));
        assert_eq!((world.hosts[0].status(next), begins(&world, next)), (Status::Open, 0));
        world.run(Duration::from_millis(200));
        assert_eq!(world.subflows(), 4 * 3);
        let before = world.carried[2];
        let server = world.accepted[0];
        world.transfer((0, first), server, &contents(100_000), |_, _| {});
        world.transfer((1, server), first, &contents(100_000), |_, _| {});
        assert!(world.carried[2] < before + 2000, "{} bytes", world.carried[2] - before);
    }
}

/// Connections without Multipath TCP make no joins, which would find out that a path answers.
#[test]
fn a_mute_path_is_probed_for_connections_without_multipath() {
    for v6 in [false, true] {
        let mut world = with_backup();
        world.plain = true;
        (world.losses[0], world.losses[1]) = (100, 100);
        let place = |world: &mut World| {
            let id = world.connect(v6);
            world.run(Duration::from_millis(3000));
            assert_eq!(world.hosts[0].status(id), Status::Open);
            begins(world, id)
        };
        assert_eq!([place(&mut world), place(&mut world), place(&mut world)], [2; 3]);
        world.losses[1] = 0;
        // The first one still begins on the backup, and its probe has an answer.
        assert_eq!([place(&mut world), place(&mut world), place(&mut world)], [2, 1, 1]);
        world.losses[1] = 100;
        assert_eq!([place(&mut world), place(&mut world)], [2; 2]);
        world.losses = vec![0; 3];
        assert_eq!(place(&mut world), 2);
        assert_ne!(place(&mut world), 2);
        // The answers to probes were reset.
        assert_eq!(world.hosts[1].half_open, 0);
    }
}

#[test]
fn a_mute_path_is_probed_once_a_second() {
    let mut world = with_backup();
    world.plain = true;
    (world.losses[0], world.losses[1]) = (100, 100);
    world.connect(false);
    world.run(Duration::from_secs(3));
    // Each of ten connections in two seconds would probe both.
    let before = world.lost[..2].to_vec();
    for _ in 0..10 {
        world.connect(false);
        world.run(Duration::from_millis(200));
    }
    let probes = [0, 1].map(|path| world.lost[path] - before[path]);
    assert!(probes.iter().all(|probes| (1..=3).contains(probes)), "{probes:?}");
}

/// A backup may be expensive, and what was lost may have been a queue's overflow.
#[test]
fn a_time_out_of_data_puts_no_connection_on_a_backup() {
    let mut world = World::new(1, &[20, 10], SchedulerKind::FastestRtt);
    world.hosts[0].add_path(PathId(1), PathConfig { backup: true, ..path_config(0, 1) });
    let (client, _) = world.open(false);
    world.losses[0] = 100;
    world.hosts[0].write(world.now, client, &mut Bytes::from(contents(10_000))).unwrap();
    while world.hosts[0].peek(client).unwrap().flows[0].timeouts == 0 {
        assert!(world.step(Instant::FAR_FUTURE));
    }
    let early = world.connect(false);
    assert_eq!(begins(&world, early), 0);
    // If the retransmission has no answer either, the path does not work.
    world.run(Duration::from_millis(600));
    let late = world.connect(false);
    assert_eq!(begins(&world, late), 1);
}

/// A server that has data when a backup is joined does not begin to use it.
#[test]
fn a_download_leaves_a_backup_alone_from_the_beginning() {
    for v6 in [false, true] {
        let mut world = World::new(1, &[20, 10], SchedulerKind::FastestRtt);
        world.hosts[0].add_path(PathId(1), PathConfig { backup: true, ..path_config(0, 1) });
        let client = world.connect(v6);
        while world.accepted.is_empty() {
            assert!(world.step(Instant::FAR_FUTURE));
        }
        let server = world.accepted.pop().unwrap();
        world.transfer((1, server), client, &contents(1_000_000), |_, _| {});
        assert_eq!(world.hosts[0].peek(client).unwrap().connection.subflows().count(), 2);
        assert!(world.carried[1] < 1000, "{v6}: {} bytes on the backup", world.carried[1]);
    }
}

#[test]
fn thousands_of_connections_in_turn_leave_no_state() {
    let mut world = World::new(1, &[1, 2], SchedulerKind::FastestRtt);
    for i in 0..3000 {
        let client = world.connect(i % 2 == 1);
        while world.accepted.is_empty() {
            assert!(world.step(Instant::FAR_FUTURE));
        }
        let server = world.accepted.pop().unwrap();
        world.transfer((0, client), server, b"request", |_, _| {});
        world.transfer((1, server), client, b"answer", |_, _| {});
        let now = world.now;
        // Either end may be the first.
        let ends = if i % 3 == 0 { [(1, server), (0, client)] } else { [(0, client), (1, server)] };
        for (host, id) in ends {
            world.hosts[host].close(now, id);
            world.run(Duration::from_millis(5));
            assert_eq!(
                world.hosts[1 - host].read(world.now, ends[usize::from(ends[0].0 == host)].1, 1),
                Read::End
            );
        }
        for (host, id) in ends {
            world.hosts[host].release(world.now, id);
        }
        world.run(Duration::from_millis(10));
        assert!(world.hosts.iter().all(Stack::is_empty), "connection {i}");
    }
    assert!(world.hosts.iter().any(|host| host.waiting() > 0));
    world.run(Duration::from_secs(61));
    for host in &world.hosts {
        assert_eq!((host.waiting(), host.table.len(), host.tokens.len(), host.half_open), (0, 0, 0, 0));
        assert!(host.timers.len() < 3000 && host.memory == 64 << 20);
    }
}

#[test]
fn strangers_are_reset_and_aborts_reach_the_peer() {
    let mut world = World::new(1, &[5, 5], SchedulerKind::FastestRtt);
    let refused = world.hosts[0].connect(world.now, SocketAddr::new(address(1, 0, false), 80)).unwrap();
    world.run(Duration::from_millis(50));
    assert_eq!(world.hosts[0].status(refused), Status::Closed(CloseReason::Refused));
    assert_eq!(world.hosts[1].counters().refused, 1);
    let (client, server) = world.open(false);
    world.hosts[0].abort(world.now, client);
    world.run(Duration::from_millis(50));
    assert_eq!(world.hosts[1].status(server), Status::Closed(CloseReason::Reset));
    world.hosts[0].release(world.now, refused);
    world.hosts[1].release(world.now, server);
    world.run(Duration::from_millis(50));
    assert!(world.hosts.iter().all(Stack::is_empty));
}

/// A router's answer to a packet that is too long. `shift` falsifies the sequence number.
fn too_big(packet: &[u8], mtu: usize, shift: u32) -> Vec<u8> {
    let (header, range) = ip::parse(packet).unwrap();
    let mut quoted = packet[..range.start + 8].to_vec();
    let seq = quoted[range.start + 4..].first_chunk_mut().unwrap();
    *seq = u32::from_be_bytes(*seq).wrapping_add(shift).to_be_bytes();
    let (kind, code, mtu) = if header.src.is_ipv4() { (3, 4, mtu as u32) } else { (2, 0, mtu as u32) };
    let body = [&[kind, code, 0, 0][..], &mtu.to_be_bytes(), &quoted].concat();
    let protocol = if header.src.is_ipv4() { Protocol::ICMP } else { Protocol::ICMPV6 };
    let mut notice = Vec::new();
    ip::emit(&Header::new(header.dst, header.src, protocol), &body, &mut notice).unwrap();
    notice
}

#[test]
fn packets_that_are_too_long_for_a_path_are_sent_again_in_shorter_ones() {
    for (v6, paths, mtu) in [(true, 1, 1300), (false, 1, 700), (true, 2, 1400)] {
        let mut world = World::new(1, &[5, 5][..paths], SchedulerKind::FastestRtt);
        let (client, server) = world.open(v6);
        world.mtus[0] = mtu;
        let data = contents(300_000);
        let time = world.transfer((0, client), server, &data, |_, _| {});
        assert!(time < Duration::from_millis(300), "{v6} {paths}: {time}");
        assert!(world.carried[0] > 100_000, "{:?}", world.carried);
        // The next connection knows it; that to another destination does not.
        let mss = |world: &World, host: &str| {
            let config = world.hosts[0].config_on(world.now, PathId(0), host.parse().unwrap());
            usize::from(config.tcp.mss)
        };
        let headers = if v6 { 60 } else { 40 };
        let (there, elsewhere) = (address(1, 0, v6).to_string(), if v6 { "fd00::9" } else { "10.0.0.9" });
        assert_eq!((mss(&world, &there), mss(&world, elsewhere)), (mtu - headers, 1500 - headers));
        world.run(Duration::from_secs(601));
        assert_eq!(mss(&world, &there), 1500 - headers);
    }
}

/// RFC 5927 section 4.1.
#[test]
fn a_notice_of_a_small_mtu_is_about_data_in_flight() {
    let mut world = World::new(1, &[5], SchedulerKind::FastestRtt);
    let (client, _) = world.open(true);
    world.hosts[0].write(world.now, client, &mut Bytes::from(contents(20_000))).unwrap();
    let mut packet = Vec::new();
    while packet.len() < 1400 {
        world.hosts[0].poll_transmit(world.now, &mut packet).unwrap();
    }
    // RFC 8201 section 4: no notice of less than 1280 bytes is believed.
    for (mtu, shift, known) in [(1280, 1 << 20, 0), (1280, u32::MAX - 5000, 0), (1279, 0, 0), (1280, 0, 1)] {
        world.hosts[0].handle_packet(world.now, PathId(0), &too_big(&packet, mtu, shift));
        assert_eq!(world.hosts[0].mtus.len(), known, "{mtu} {shift}");
    }
}

/// The kernel says that nothing leads there.
#[test]
fn icmp_moves_an_attempt_to_the_next_path_and_ends_it_after_the_last() {
    let mut world = World::new(1, &[5, 5], SchedulerKind::FastestRtt);
    let client = world.connect(false);
    let mut packet = Vec::new();
    let mut sent = world.hosts[0].poll_transmit(world.now, &mut packet);
    for (path, status) in [(0, Status::Opening), (1, Status::Closed(CloseReason::Aborted))] {
        assert_eq!(sent, Some(PathId(path)));
        let (header, _) = ip::parse(&packet).unwrap();
        let body = [&[3, 1, 0, 0, 0, 0, 0, 0][..], &packet[..28]].concat();
        let mut answer = Vec::new();
        ip::emit(&Header::new(header.dst, header.src, Protocol::ICMP), &body, &mut answer).unwrap();
        world.hosts[0].handle_packet(world.now, PathId(path), &answer);
        sent = world.hosts[0].poll_transmit(world.now, &mut packet);
        assert_eq!(world.hosts[0].status(client), status, "after path {path}");
    }
}

/// Sends everything on the last subflow.
#[derive(Debug)]
struct Last;

impl Scheduler for Last {
    fn pick(&mut self, demand: &Demand, paths: &[PathView]) -> Pick {
        match paths.last() {
            Some(path) if demand.unsent > 0 && path.takes(demand.unsent) => {
                Pick::Send { index: path.index, skip: 0 }
            }
            _ => Pick::Wait,
        }
    }
}

#[test]
fn a_user_s_own_scheduler_decides() {
    let scheduler = SchedulerKind::Custom(CustomScheduler::new("last", |()| Box::new(Last)));
    let mut world = World::new(1, &[5, 5], scheduler);
    let (client, server) = world.open(false);
    let data = contents(500_000);
    world.transfer((0, client), server, &data, |_, _| {});
    assert!(world.carried[1] > 500_000 && world.carried[0] < 50_000, "{:?}", world.carried);
}

#[test]
fn only_addresses_of_other_hosts_are_destinations() {
    let mut world = World::new(1, &[5], SchedulerKind::FastestRtt);
    for text in
        ["127.0.0.1:80", "[::1]:80", "0.0.0.0:80", "224.0.0.1:80", "10.0.0.2:0", "[::ffff:10.0.0.2]:80"]
    {
        let refused = world.hosts[0].connect(Instant::ZERO, text.parse().unwrap());
        assert_eq!(refused, Err(ConnectError::Destination), "{text}");
    }
    world.hosts[0].remove_path(PathId(0));
    let remote = SocketAddr::from((Ipv4Addr::new(10, 0, 0, 2), 80));
    assert_eq!(world.hosts[0].connect(Instant::ZERO, remote), Err(ConnectError::NoPath));
}

/// A packet with a segment of a host that no stack runs.
fn forged(from: SocketAddr, to: SocketAddr, segment: &Segment) -> Vec<u8> {
    let mut packet = Vec::new();
    let segment = Segment { src_port: from.port(), dst_port: to.port(), ..segment.clone() };
    ip::emit_tcp(&Header::new(from.ip(), to.ip(), Protocol::TCP), &segment, &mut packet).unwrap();
    packet
}

/// A scan of ports: the SYN-ACK is answered with a reset.
#[test]
fn connections_that_close_before_they_are_open_leave_no_state() {
    let mut world = World::new(1, &[10], SchedulerKind::FastestRtt);
    let to = SocketAddr::new(address(1, 0, false), PORT);
    let syn = Segment { flags: Flags::SYN, window: 60_000, ..Segment::default() };
    for port in 1000..1600 {
        let from = SocketAddr::new(address(0, 0, false), port);
        world.hosts[1].handle_packet(world.now, PathId(0), &forged(from, to, &syn));
        world.run(Duration::from_millis(1));
    }
    world.run(Duration::from_secs(1));
    let host = &world.hosts[1];
    assert_eq!((host.half_open, host.len(), host.table.len(), host.tokens.len()), (0, 0, 0, 0));
    world.open(false);
}

#[test]
fn time_wait_answers_a_fin_and_nothing_else() {
    let mut world = World::new(1, &[10], SchedulerKind::FastestRtt);
    let (client, server) = world.open(false);
    world.hosts[0].close(world.now, client);
    world.run(Duration::from_millis(100));
    world.hosts[1].close(world.now, server);
    world.run(Duration::from_millis(100));
    for (host, id) in [(0, client), (1, server)] {
        world.hosts[host].release(world.now, id);
    }
    world.run(Duration::from_secs(1));
    let now = world.now;
    let host = world.hosts.iter_mut().find(|host| host.waiting() > 0).unwrap();
    let tuple = *host.waiting.keys().next().unwrap();
    let mut out = Vec::new();
    for (flags, answer) in [(Flags::ACK, None), (Flags::FIN.with(Flags::ACK), Some(PathId(0)))] {
        let stray = Segment { flags, ..Segment::default() };
        host.handle_packet(now, PathId(0), &forged(tuple.remote, tuple.local, &stray));
        assert_eq!(host.poll_transmit(now, &mut out), answer, "{flags:?}");
    }
}

#[test]
fn a_released_connection_lives_while_the_peer_takes_its_data() {
    let mut world = World::new(1, &[10], SchedulerKind::FastestRtt);
    let (client, server) = world.open(false);
    let mut rest = Bytes::from(contents(200_000));
    let mut written = 0;
    for _ in 0..20 {
        written += world.hosts[0].write(world.now, client, &mut rest).unwrap();
        world.run(Duration::from_millis(100));
    }
    world.hosts[0].release(world.now, client);
    let mut got = 0;
    // The peer reads for longer than the connection lives without progress.
    for _ in 0..200 {
        if let Read::Data(data) = world.hosts[1].read(world.now, server, 1024) {
            got += data.len();
        }
        world.run(Duration::from_secs(1));
    }
    assert_eq!((got, world.hosts[1].read(world.now, server, 1)), (written, Read::End));
}

#[test]
fn peers_leave_room_for_the_connections_of_this_host() {
    let mut world = World::new(1, &[10], SchedulerKind::FastestRtt);
    (world.hosts[1].limit, world.hosts[1].accepted.0) = (4, 2);
    let clients: Vec<_> = (0..3).map(|_| world.connect(false)).collect();
    world.run(Duration::from_millis(500));
    assert_eq!((world.accepted.len(), world.hosts[1].len()), (2, 2));
    let own = SocketAddr::new(address(0, 0, false), PORT);
    assert!((0..2).all(|_| world.hosts[1].connect(world.now, own).is_ok()));
    assert_eq!(world.hosts[1].connect(world.now, own), Err(ConnectError::TooMany));
    // The third is welcome when one of the others has ended.
    world.hosts[0].abort(world.now, clients[0]);
    let first = world.accepted.remove(0);
    world.run(Duration::from_millis(100));
    world.hosts[1].release(world.now, first);
    world.run(Duration::from_secs(3));
    assert_eq!((world.accepted.len(), world.hosts[1].accepted.1), (2, 2));
}

/// A host that has seen a token can make subflows and reset them, without a proof.
#[test]
fn joins_without_proof_use_up_no_places() {
    let mut world = World::new(1, &[10], SchedulerKind::FastestRtt);
    let (client, server) = world.open(false);
    world.transfer((0, client), server, &contents(1000), |_, _| {});
    let token = *world.hosts[1].tokens.keys().next().unwrap();
    let to = SocketAddr::new(address(1, 0, false), PORT);
    let syn = MpJoin::Syn { backup: false, address: AddressId(9), token, nonce: 1 };
    let syn =
        Segment { flags: Flags::SYN, mptcp: Mptcp::only(MptcpOption::MpJoin(syn)), ..Segment::default() };
    let (now, mut out) = (world.now, Vec::new());
    let host = &mut world.hosts[1];
    for port in 1000..4000 {
        let from = SocketAddr::new(address(0, 0, false), port);
        host.handle_packet(now, PathId(0), &forged(from, to, &syn));
        assert_eq!(host.poll_transmit(now, &mut out), Some(PathId(0)), "{port}");
        let reset = Segment { seq: SeqNumber(1), flags: Flags::RST, ..Segment::default() };
        host.handle_packet(now, PathId(0), &forged(from, to, &reset));
        while host.poll_transmit(now, &mut out).is_some() {}
    }
    assert_eq!((host.table.len(), host.len()), (1, 1));
    // The peer's own subflow is still welcome.
    world.hosts[0].add_path(PathId(1), PathConfig { v4: Some([10, 0, 0, 99].into()), ..path_config(0, 0) });
    world.hosts[1].add_path(PathId(1), path_config(1, 1));
    for list in [&mut world.delays, &mut world.losses, &mut world.rates] {
        list.push(0);
    }
    (world.mtus, world.held) = (vec![1500; 2], vec![Instant::ZERO; 2]);
    world.carried.push(0);
    world.run(Duration::from_millis(200));
    assert_eq!(world.subflows(), 2);
}

/// A network that has no router is no way to the Internet, however fast it may be.
#[test]
fn connections_use_the_paths_that_lead_to_their_destination() {
    let mut world = World::new(1, &[5, 5], SchedulerKind::FastestRtt);
    let link =
        |prefix: &str| PathConfig { destinations: vec![(prefix.parse().unwrap(), 0)], ..path_config(0, 0) };
    world.hosts[0].add_path(PathId(0), link("10.99.0.0/24"));
    let client = world.connect(false);
    world.run(Duration::from_millis(100));
    let server = world.accepted.pop().expect("it is accepted");
    world.transfer((0, client), server, &contents(100_000), |_, _| {});
    assert_eq!(world.carried[0], 0);
    let to = |world: &World, text: &str| world.hosts[0].best_path(world.now, text.parse().unwrap(), &[]);
    assert_eq!(to(&world, "10.99.0.7"), Some(PathId(0)));
    assert_eq!(to(&world, "10.98.0.7"), Some(PathId(1)));
    assert_eq!(to(&world, "fd00::7"), Some(PathId(1)));
    world.hosts[0].remove_path(PathId(1));
    let remote = SocketAddr::from(([10, 98, 0, 7], 80));
    assert_eq!(world.hosts[0].connect(world.now, remote), Err(ConnectError::NoPath));
    // A route appears.
    world.hosts[0].add_path(PathId(0), link("0.0.0.0/0"));
    assert!(world.hosts[0].connect(world.now, remote).is_ok());
}

/// The end of the subflow is not the end of the data (RFC 8684 section 3.3.3).
#[test]
fn a_fin_without_a_data_fin_is_no_end() {
    let mut world = World::new(1, &[10], SchedulerKind::FastestRtt);
    let (client, server) = world.open(false);
    world.transfer((1, server), client, &contents(10_000), |_, _| {});
    world.transfer((0, client), server, &contents(10_000), |_, _| {});
    world.run(Duration::from_secs(1));
    let (now, mut out) = (world.now, Vec::new());
    let mut next = |host: &mut Stack| {
        host.poll_transmit(now, &mut out)?;
        let (header, range) = ip::parse(&out).unwrap();
        let segment = ip::parse_tcp(&header, Bytes::copy_from_slice(&out[range])).unwrap();
        Some((SocketAddr::new(header.src, segment.src_port), segment))
    };
    world.hosts[1].write(now, server, &mut Bytes::from_static(b"x")).unwrap();
    let (from, last) = next(&mut world.hosts[1]).unwrap();
    // In its place, the end of the subflow, then acknowledgements of what the client sends.
    let ack = last.mptcp.dss().and_then(Dss::data_ack).unwrap();
    let mptcp = Mptcp::dss_only(Dss::default().with_data_ack(ack));
    let (mut flags, mut segment) =
        (Flags::FIN.with(Flags::ACK), Segment { mptcp, payload: Bytes::new(), ..last });
    for _ in 0..4 {
        let to = SocketAddr::new(address(0, 0, false), segment.dst_port);
        segment.flags = flags;
        world.hosts[0].handle_packet(now, PathId(0), &forged(from, to, &segment));
        while let Some((_, answer)) = next(&mut world.hosts[0]) {
            segment.ack = answer.seq_end();
        }
        segment.seq += u32::from(flags.contains(Flags::FIN));
        flags = Flags::ACK;
    }
    assert_eq!(world.hosts[0].read(now, client, 1), Read::Failed(CloseReason::Reset));
}

/// It says nothing about the path: other hosts answer there.
#[test]
fn a_host_that_is_down_moves_no_other_connection_to_a_backup() {
    let mut world = World::new(1, &[10, 20], SchedulerKind::FastestRtt);
    world.hosts[0].add_path(PathId(1), PathConfig { backup: true, ..path_config(0, 1) });
    world.connect(false);
    world.run(Duration::from_secs(5));
    // Without a listener at this port the peer would answer with a reset.
    let down = SocketAddr::from(([10, 9, 9, 9], PORT));
    world.hosts[0].connect(world.now, down).unwrap();
    for _ in 0..14 {
        world.run(Duration::from_millis(500));
        let client = world.connect(false);
        assert_eq!(begins(&world, client), 0, "{}", world.now);
        let now = world.now;
        world.hosts[0].abort(now, client);
    }
}

/// A peer that paces its data by acknowledgements, as BBR does, needs them at the end of a message.
#[test]
fn the_end_of_a_message_is_acknowledged_at_once() {
    let mut world = World::new(1, &[5, 50], SchedulerKind::FastestRtt);
    let (_, server) = world.open(false);
    world.run(Duration::from_secs(1));
    let now = world.now;
    world.hosts[1].write(now, server, &mut Bytes::from(vec![1; 2048])).unwrap();
    world.run(Duration::from_millis(11));
    assert_eq!(world.hosts[1].info(server).unwrap().in_flight, 0);
}

/// A second connection does not begin on a long path because nothing is known about it yet.
#[test]
fn a_connection_begins_on_a_short_path_rather_than_on_an_unknown_one() {
    let mut world = World::new(1, &[5, 50], SchedulerKind::FastestRtt);
    world.connect(false);
    world.run(Duration::from_millis(20));
    let client = world.connect(false);
    world.run(Duration::from_millis(11));
    assert_eq!(world.hosts[0].status(client), Status::Open);
}

/// Data that waits for a second is that of a transfer, until none waits for as long.
#[test]
fn a_transfer_is_told_from_messages() {
    let mut world = World::new(1, &[5], SchedulerKind::FastestRtt);
    world.rates = vec![1000];
    let (client, server) = world.open(false);
    let is_transfer = |world: &World| world.hosts[0].peek(client).unwrap().is_transfer();
    let piece = Bytes::from(vec![7; 1 << 16]);
    let begin = world.now;
    let mut told = None;
    while world.now < begin + Duration::from_secs(4) {
        while world.hosts[0].write(world.now, client, &mut piece.clone()).unwrap() > 0 {}
        world.step(begin + Duration::from_secs(4));
        while let Read::Data(_) = world.hosts[1].read(world.now, server, usize::MAX) {}
        if told.is_none() && is_transfer(&world) {
            told = Some(world.now.saturating_since(begin));
        }
    }
    let told = told.expect("it is one");
    assert!((Duration::from_millis(900)..Duration::from_millis(1500)).contains(&told), "{told}");
    // What is left in the buffers leaves, and then nothing happens.
    while world.hosts[0].peek(client).unwrap().connection.unsent() > 0 {
        assert!(world.step(Instant::FAR_FUTURE));
        while let Read::Data(_) = world.hosts[1].read(world.now, server, usize::MAX) {}
    }
    assert!(is_transfer(&world));
    // Its first data was a message, which counts no more by then.
    world.run(Duration::from_secs(11));
    let other = client.slot + 1;
    let counts = |world: &World| world.hosts[0].paths[&PathId(0)].messages.are_exchanged(world.now, other);
    assert!(!counts(&world));
    world.hosts[0].write(world.now, client, &mut Bytes::from_static(b"request")).unwrap();
    assert!(counts(&world) && !is_transfer(&world));
}

/// Requests and responses of 2 kB, one after the other with a pause of 20 ms, beside a transfer.
#[derive(PartialEq, Debug)]
struct Exchange {
    /// Times of the requests in ascending order.
    times: Vec<Duration>,
    /// Bytes of the transfer that arrived.
    carried: usize,
}

impl Exchange {
    fn percentile(&self, percent: usize) -> Duration {
        self.times[(self.times.len() * percent).div_ceil(100) - 1]
    }
}

/// Plays an exchange over paths of 20 Mbit/s with round trips of 10 and 100 ms, whose queues the
/// transfer fills. The first four seconds do not count.
fn beside_a_transfer(
    (scheduler, congestion): (SchedulerKind, tcp::CongestionAlgorithm),
    queue_delay: Option<Duration>,
    asks: bool,
) -> Exchange {
    let mut world = World::new(3, &[5, 50], scheduler);
    for host in &mut world.hosts {
        host.config.tcp.congestion = congestion;
        host.queue_delay = queue_delay;
    }
    world.rates = vec![2500; 2];
    let [(transfer, sink), (client, server)] = [world.open(false), world.open(false)];
    let (piece, request) = (Bytes::from(vec![7; 1 << 16]), Bytes::from(vec![1; 2048]));
    let (warm, end) = (world.now + Duration::from_secs(4), world.now + Duration::from_secs(7));
    let (mut due, mut asked, mut answered) = (if asks { world.now } else { end }, 0, 0);
    let mut exchange = Exchange { times: Vec::new(), carried: 0 };
    let read = |world: &mut World, host: usize, id: ConnId| {
        let mut octets = 0;
        while let Read::Data(data) = world.hosts[host].read(world.now, id, usize::MAX) {
            octets += data.len();
        }
        octets
    };
    while world.now < end {
        let now = world.now;
        while world.hosts[0].write(now, transfer, &mut piece.clone()).unwrap() > 0 {}
        let octets = read(&mut world, 1, sink);
        exchange.carried += if now >= warm { octets } else { 0 };
        asked += read(&mut world, 1, server);
        if asked == request.len() {
            asked = 0;
            world.hosts[1].write(now, server, &mut request.clone()).unwrap();
        }
        answered += read(&mut world, 0, client);
        if answered == request.len() {
            answered = 0;
            exchange.times.extend((due >= warm).then(|| now.saturating_since(due)));
            due = now + Duration::from_millis(20);
        }
        if now == due {
            world.hosts[0].write(now, client, &mut request.clone()).unwrap();
        }
        world.step(if due > now { due } else { end });
    }
    exchange.times.sort_unstable();
    exchange
}

/// Half of the requests of `round-robin` take the long path.
#[test]
fn requests_do_not_wait_behind_a_transfer() {
    use tcp::CongestionAlgorithm::{Bbr, Coupled, Cubic, NewReno, Westwood};
    let others = [NewReno, Coupled, Westwood, Bbr].map(|control| (SchedulerKind::FastestRtt, control));
    for of in SCHEDULERS.map(|scheduler| (scheduler, Cubic)).into_iter().chain(others) {
        let long = beside_a_transfer(of, None, true);
        let short = beside_a_transfer(of, Some(QUEUE_DELAY), true);
        let most = if of.0 == SchedulerKind::RoundRobin { 120 } else { 30 };
        let (before, after) = (long.percentile(99), short.percentile(99));
        assert!(after <= Duration::from_millis(most), "{of:?}: {before}, then {after}");
        // BBR keeps its queues short by itself.
        assert!(of.1 == Bbr || after * 5 < before * 4, "{of:?}: {before}, then {after}");
        // The queues hold data of the first seconds.
        assert!(short.carried * 100 > long.carried * 92, "{of:?}: {} of {}", short.carried, long.carried);
    }
}

#[test]
fn a_transfer_alone_is_not_limited() {
    for scheduler in SCHEDULERS {
        let of = (scheduler, tcp::CongestionAlgorithm::Cubic);
        let [without, with] = [None, Some(QUEUE_DELAY)].map(|delay| beside_a_transfer(of, delay, false));
        assert_eq!(without, with, "{scheduler:?}");
    }
}
