//! Paths: which one a connection begins on, and subflows on the others.
//!
//! A connection that this host opens has one subflow on each path. Further addresses of the peer
//! are used on paths that do not reach its first address. A connection that a peer opens gets the
//! subflows that the peer opens: it may be behind a translator of addresses.

use std::cmp::Reverse;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anabranch_core::mptcp::{Connection, PathId, SubflowId, SubflowInfo};
use anabranch_core::segment::{AddressId, Flags, Segment};
use anabranch_core::tcp::{self, State};
use anabranch_core::time::{Duration, Instant};
use anabranch_wire::prefix::Prefix;

use super::input::address_id;
use super::queues::{MEASURE, Messages};
use super::{Entry, Flow, Origin, Remote, Stack, Tuple, entry_of};

/// Addresses and properties of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathConfig {
    /// Source address of IPv4 packets.
    pub v4: Option<Ipv4Addr>,
    /// Source address of IPv6 packets.
    pub v6: Option<Ipv6Addr>,
    /// Longest packet in bytes.
    pub mtu: u32,
    /// Whether the path is used only while no other works (RFC 8684 section 3.3.8).
    pub backup: bool,
    /// Addresses that are announced to peers which have connected to a port of [`Stack::listen`].
    pub announced: Vec<IpAddr>,
    /// Destinations that the path leads to, each with the metric of its route: the smallest one is
    /// preferred.
    pub destinations: Vec<(Prefix, u32)>,
}

/// The state of a path for a report. Counters are those since the path was first added.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PathReport {
    /// Whether packets are sent on the path.
    pub up: bool,
    /// Whether the path is a backup.
    pub backup: bool,
    /// Number of working subflows.
    pub subflows: usize,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets received.
    pub packets_received: u64,
    /// TCP payload sent in bytes, with repetitions.
    pub bytes_sent: u64,
    /// TCP payload received in bytes, with repetitions.
    pub bytes_received: u64,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Segments with payload that were sent, with repetitions.
    pub segments_sent: u64,
    /// Smoothed round-trip time over all subflows; `None` before a measurement.
    pub rtt: Option<Duration>,
}

/// A path.
#[derive(Debug)]
pub(super) struct Path {
    config: PathConfig,
    pub(super) up: bool,
    rtt: Option<Duration>,
    /// From when on new connections leave the path to a backup, if it is still silent.
    mute_at: Instant,
    /// When the path is probed again at the earliest.
    probe_at: Instant,
    /// Highest rate of a subflow that has filled its window, in bytes per second. It wears off with
    /// each measurement.
    rate: Option<u64>,
    /// Whether a subflow has had a time-out since a packet last arrived.
    silent: bool,
    /// The only host about which that says something.
    silent_to: Option<IpAddr>,
    pub(super) messages: Messages,
    total: PathReport,
}

impl Path {
    pub(super) fn address(&self, v4: bool) -> Option<IpAddr> {
        if v4 { self.config.v4.map(IpAddr::V4) } else { self.config.v6.map(IpAddr::V6) }
    }

    pub(super) fn mtu(&self) -> u32 {
        self.config.mtu
    }

    pub(super) fn sent(&mut self, payload: usize) {
        self.total.packets_sent += 1;
        self.total.bytes_sent += payload as u64;
        self.total.segments_sent += u64::from(payload > 0);
    }

    /// Counts a packet. Returns whether the path was mute.
    pub(super) fn received(&mut self, now: Instant, remote: IpAddr, payload: usize) -> bool {
        let was_mute = self.is_mute(now, remote);
        self.silent = false;
        self.total.packets_received += 1;
        self.total.bytes_received += payload as u64;
        was_mute
    }

    /// Adds the counters of a subflow that is removed.
    pub(super) fn count(&mut self, info: &SubflowInfo) {
        self.total.retransmissions += info.tcp.retransmissions;
    }

    /// The length of the longest prefix that covers an address, and the metric of its route; `None`
    /// if the path does not lead there.
    fn covers(&self, remote: IpAddr) -> Option<(Reverse<u8>, u32)> {
        self.address(remote.is_ipv4())?;
        let destinations = self.config.destinations.iter().filter(|(prefix, _)| prefix.contains(remote));
        destinations.map(|(prefix, metric)| (Reverse(prefix.length()), *metric)).min()
    }

    /// The order in which paths to an address are tried: those that are not mute, regular before
    /// backup, working before silent, a longer prefix before a shorter one, the one that delivers a
    /// first flight earlier, and the route's metric. `None` if the path does not lead there.
    fn rank(&self, now: Instant, remote: IpAddr) -> Option<impl Ord + use<>> {
        let (length, metric) = self.covers(remote)?;
        let (mute, silent) = (self.is_mute(now, remote), self.is_silent(remote));
        Some((mute, self.config.backup, silent, length, self.first_flight(), metric))
    }

    /// Whether the path has been silent for so long that a connection may begin on a backup
    /// instead (RFC 8684 section 3.3.8: if no other path works). It may be expensive, and one
    /// time-out may be a false alarm.
    fn is_mute(&self, now: Instant, remote: IpAddr) -> bool {
        self.is_silent(remote) && self.mute_at <= now
    }

    /// Whether a subflow has had a time-out since a packet last arrived.
    fn is_silent(&self, remote: IpAddr) -> bool {
        self.silent && self.silent_to.is_none_or(|host| host == remote)
    }

    /// Notes a time-out, of a SYN that had a second for its answer, or of another segment. A SYN
    /// without an answer is also what a host that is down causes, whatever the path.
    fn fall_silent(&mut self, now: Instant, remote: IpAddr, syn: bool) {
        let mute_at = if syn { now } else { now + MUTE.max(self.rtt.unwrap_or_default() * 2) };
        self.mute_at = if self.silent { self.mute_at.min(mute_at) } else { mute_at };
        let same = !self.silent || self.silent_to == Some(remote);
        self.silent_to = (syn && same).then_some(remote);
        self.silent = true;
    }

    /// Time for a round trip and the first window (RFC 6928). The round-trip time of a small packet
    /// says little about a slow link. A path that is not measured is tried before a slow one.
    fn first_flight(&self) -> Duration {
        let sends = |rate: u64| Duration::from_secs(FIRST_FLIGHT).mul_ratio(1, rate.max(1));
        self.rtt.unwrap_or(UNKNOWN) + self.rate.map_or(Duration::ZERO, sends)
    }

    /// Learns from a subflow that has filled its congestion window: others say nothing about the
    /// rate of the path.
    fn learn_rate(&mut self, tcp: &tcp::Info) {
        let full = tcp.in_flight.saturating_add(tcp.mss.into()) > tcp.cwnd;
        if let Some(rate) = tcp.delivery_rate.filter(|rate| full && *rate > 0) {
            let worn = self.rate.map_or(0, |known| known - known / 64);
            self.rate = Some(rate.max(worn));
        }
    }
}

impl Stack {
    /// Adds a path, or changes it. Open connections get subflows on it.
    pub fn add_path(&mut self, id: PathId, config: PathConfig) {
        let path = self.paths.entry(id).or_insert_with(|| Path {
            config: config.clone(),
            up: false,
            rtt: None,
            mute_at: Instant::ZERO,
            probe_at: Instant::ZERO,
            rate: None,
            silent: false,
            silent_to: None,
            messages: Messages::default(),
            total: PathReport::default(),
        });
        // Its routers may be others.
        self.mtus.retain(|(path, _), _| *path != id);
        path.config = config;
        path.up = true;
        path.silent = false;
        self.join_again(id);
    }

    /// Lets open connections join on a path, also those that have tried.
    pub(super) fn join_again(&mut self, id: PathId) {
        for slot in 0..self.slots.len() as u32 {
            let Some(entry) = self.entry(slot) else { continue };
            entry.tried.retain(|(path, _)| *path != id);
            entry.uncovered = true;
            self.touch(slot);
        }
    }

    /// Notes that a path is lost. Its subflows are closed where others remain, and their data is
    /// sent on the others.
    pub fn remove_path(&mut self, id: PathId) {
        let Some(path) = self.paths.get_mut(&id) else { return };
        path.up = false;
        for slot in 0..self.slots.len() as u32 {
            let Some(entry) = self.entry(slot) else { continue };
            entry.uncovered = true;
            self.touch(slot);
        }
    }

    /// The state of all paths that were ever added.
    pub fn paths(&self) -> impl Iterator<Item = (PathId, PathReport)> {
        let mut live: std::collections::BTreeMap<PathId, PathReport> = Default::default();
        for entry in self.slots.iter().filter_map(|slot| slot.entry.as_ref()) {
            for (id, flow) in (0..).zip(&entry.flows).filter(|(_, flow)| flow.alive) {
                let Some(info) = entry.connection.subflow_info(SubflowId(id)) else { continue };
                let report = live.entry(flow.path).or_default();
                report.retransmissions += info.tcp.retransmissions;
                report.subflows += usize::from(info.ready);
                if info.ready && entry.open {
                    report.rtt = [report.rtt, info.tcp.srtt].into_iter().flatten().max();
                }
            }
        }
        self.paths.iter().map(move |(id, path)| {
            let live = live.get(id).copied().unwrap_or_default();
            let report = PathReport {
                up: path.up,
                backup: path.config.backup,
                subflows: live.subflows,
                retransmissions: path.total.retransmissions + live.retransmissions,
                rtt: live.rtt.or(path.rtt),
                ..path.total
            };
            (*id, report)
        })
    }

    /// The best path to an address, without those of `but`.
    pub(super) fn best_path(&self, now: Instant, remote: IpAddr, but: &[PathId]) -> Option<PathId> {
        let usable = self.paths.iter().filter(|(id, path)| path.up && !but.contains(id));
        let ranked = usable.filter_map(|(id, path)| Some((path.rank(now, remote)?, *id)));
        ranked.min().map(|(_, id)| id)
    }

    /// Updates the round-trip time of the path of a subflow whose handshake is complete. If the
    /// path is a backup, the peer is told: the first subflow has no other way to say so.
    pub(super) fn measure(&mut self, slot: u32, subflow: SubflowId) {
        let Some(entry) = entry_of(&mut self.slots, slot) else { return };
        entry.uncovered = true;
        let Some(flow) = entry.flows.get(usize::from(subflow.0)) else { return };
        let Some(info) = entry.connection.subflow_info(subflow) else { return };
        let Some(path) = self.paths.get_mut(&flow.path) else { return };
        if path.config.backup && !info.backup_here {
            entry.connection.set_backup(subflow, true);
        }
        if let Some(rtt) = info.tcp.min_rtt {
            path.rtt = Some(path.rtt.map_or(rtt, |known| (known * 3 + rtt) / 4));
        }
    }

    /// Looks whether mute paths answer again, for a connection that has begun on a backup and makes
    /// no subflows on them: a SYN of its own leaves on each. Any answer counts, and is reset as
    /// that of a stranger.
    pub(super) fn probe(&mut self, now: Instant, slot: u32) {
        let Some(Entry { origin: Origin::Ours, open: true, connection, flows, .. }) = self.entry(slot) else {
            return;
        };
        let (plain, on, remote) = (!connection.is_multipath(), flows[0].path, flows[0].tuple.remote);
        if !plain || self.paths.get(&on).is_none_or(|path| !path.config.backup) {
            return;
        }
        let due = |path: &Path| {
            path.up
                && !path.config.backup
                && path.is_mute(now, remote.ip())
                && path.probe_at <= now
                && path.covers(remote.ip()).is_some()
        };
        let mute: Vec<PathId> = self.paths.iter().filter(|(_, path)| due(path)).map(|(id, _)| *id).collect();
        for id in mute {
            let Some(tuple) = self.tuple(id, remote) else { continue };
            let (src_port, dst_port) = (tuple.local.port(), remote.port());
            let seq = self.secrets(now, tuple).iss;
            let window = u16::MAX;
            let syn = Segment { src_port, dst_port, seq, flags: Flags::SYN, window, ..Segment::default() };
            self.loose.push_back((id, tuple, syn));
            if let Some(path) = self.paths.get_mut(&id) {
                path.probe_at = now + PROBE;
            }
        }
    }

    /// Number of paths that lead to an address.
    pub(super) fn leading(&self, remote: IpAddr) -> usize {
        self.paths.values().filter(|path| path.up && path.covers(remote).is_some()).count()
    }

    /// Updates the rates of a sending connection's paths and the limits on its queues, but not with
    /// each acknowledgement.
    pub(super) fn measure_rates(&mut self, now: Instant, slot: u32) {
        let Some(entry) = entry_of(&mut self.slots, slot).filter(|entry| entry.measure_at <= now) else {
            return;
        };
        entry.measure_at = now + MEASURE;
        entry.note_waiting();
        // Those who have opened other connections may be elsewhere, behind other bottlenecks.
        let delay = self.queue_delay.filter(|_| entry.origin == Origin::Ours && entry.is_transfer());
        for (id, flow) in (0..).zip(&entry.flows).filter(|(_, flow)| flow.alive) {
            if let Some(info) = entry.connection.subflow_info(SubflowId(id))
                && let Some(path) = self.paths.get_mut(&flow.path)
            {
                path.learn_rate(&info.tcp);
                let delay = delay.filter(|_| path.messages.are_exchanged(now, slot));
                entry.connection.limit_queue(SubflowId(id), delay);
            }
        }
    }

    /// Notes which subflows have had a time-out. A connection whose first SYN stays without an
    /// answer tries another path.
    pub(super) fn notice_timeouts(&mut self, now: Instant, slot: u32) {
        let Some(entry) = entry_of(&mut self.slots, slot) else { return };
        let mut silent = false;
        for (id, flow) in (0..).zip(&mut entry.flows).filter(|(_, flow)| flow.alive) {
            let Some(info) = entry.connection.subflow_info(SubflowId(id)) else { continue };
            if info.tcp.timeouts == flow.timeouts {
                continue;
            }
            flow.timeouts = info.tcp.timeouts;
            let syn = info.tcp.state == State::SynSent;
            if let Some(path) = self.paths.get_mut(&flow.path) {
                path.fall_silent(now, flow.tuple.remote.ip(), syn);
            }
            silent |= id == 0 && syn;
        }
        if silent {
            self.migrate(now, slot);
        }
    }

    /// Moves the first subflow, whose SYN has no answer, to another path: the next SYN leaves
    /// there. Returns false if there is no other path that was not tried.
    pub(super) fn migrate(&mut self, now: Instant, slot: u32) -> bool {
        let Some(entry) = self.entry(slot) else { return false };
        if entry.origin != Origin::Ours || entry.flows.len() != 1 {
            return false;
        }
        let (path, old) = (entry.flows[0].path, entry.flows[0].tuple);
        entry.tried.push((path, old.remote));
        let tried: Vec<PathId> = entry.tried.iter().map(|(path, _)| *path).collect();
        let Some(next) = self.best_path(now, old.remote.ip(), &tried) else {
            // Every path was tried: the round begins again.
            if let Some(entry) = self.entry(slot) {
                entry.tried.clear();
            }
            return false;
        };
        let address = self.paths.get(&next).and_then(|path| path.address(old.remote.is_ipv4()));
        let Some(address) = address else { return false };
        let tuple = Tuple { local: SocketAddr::new(address, old.local.port()), ..old };
        if self.table.contains_key(&tuple) || self.waiting.contains_key(&tuple) {
            return false;
        }
        self.table.remove(&old);
        self.table.insert(tuple, (slot, SubflowId(0)));
        if let Some(flow) = self.entry(slot).and_then(|entry| entry.flows.first_mut()) {
            (flow.path, flow.tuple) = (next, tuple);
        }
        true
    }

    /// As [`Stack::migrate`], but the SYN leaves at once: the network has refused the last one.
    pub(super) fn reopen(&mut self, now: Instant, slot: u32) -> bool {
        if !self.migrate(now, slot) {
            return false;
        }
        let Some(Flow { path, tuple, .. }) = self.entry(slot).and_then(|entry| entry.flows.first()) else {
            return false;
        };
        let (path, tuple) = (*path, *tuple);
        let (config, secrets) = (self.first_config(now, path, tuple.remote.ip()), self.secrets(now, tuple));
        let ports = (tuple.local.port(), tuple.remote.port());
        let Some(entry) = self.entry(slot) else { return false };
        // Data that was written too early stays where it is, and waits for the timer.
        if entry.connection.info().buffered == 0 {
            let old = entry.connection.token();
            *entry.connection = Connection::connect(now, config, path, ports, secrets);
            entry.flows[0].timeouts = 0;
            let token = entry.connection.token();
            self.tokens.remove(&old);
            self.tokens.insert(token, slot);
        }
        true
    }

    /// Notes that a subflow is closed; its path needs another.
    pub(super) fn lose(&mut self, now: Instant, slot: u32, subflow: SubflowId) {
        let Some(entry) = self.entry(slot) else { return };
        let Some(flow) = entry.flows.get_mut(usize::from(subflow.0)) else { return };
        flow.alive = false;
        let (tuple, path) = (flow.tuple, flow.path);
        entry.uncovered = true;
        entry.recover_at.get_or_insert(now + RECOVERY);
        let info = entry.connection.subflow_info(subflow);
        if let (Some(info), Some(path)) = (&info, self.paths.get_mut(&path)) {
            path.count(info);
        }
        let waits = info.is_some_and(|info| info.tcp.state == State::TimeWait);
        if !waits && self.table.get(&tuple) == Some(&(slot, subflow)) {
            self.table.remove(&tuple);
        }
    }

    /// Learns another address of the peer.
    pub(super) fn learn(&mut self, slot: u32, id: u8, address: IpAddr, port: Option<u16>) {
        let Some(entry) = self.entry(slot) else { return };
        let first = entry.flows[0].tuple.remote;
        let address = SocketAddr::new(address, port.unwrap_or(first.port()));
        if entry.origin != Origin::Ours || !super::is_remote(address) {
            return;
        }
        entry.remotes.retain(|remote| remote.id != id);
        if entry.remotes.len() < MOST_REMOTES && address != first {
            entry.remotes.push(Remote { id, address });
            entry.uncovered = true;
        }
    }

    /// Gives each path that is up a subflow, and closes those on lost paths.
    pub(super) fn cover(&mut self, now: Instant, slot: u32) {
        let Some(entry) = self.entry(slot) else { return };
        if !entry.uncovered || entry.closed.is_some() {
            return;
        }
        let Some(entry) = self.drop_lost(now, slot) else { return };
        if !entry.open || !entry.connection.can_join() {
            return;
        }
        entry.uncovered = false;
        if entry.origin == Origin::Theirs {
            return self.announce(now, slot);
        }
        let mut remotes: Vec<SocketAddr> = entry.remotes.iter().map(|remote| remote.address).collect();
        if entry.connection.joins_here() {
            remotes.insert(0, entry.flows[0].tuple.remote);
        }
        let bare =
            |entry: &Entry, path: PathId| !entry.flows.iter().any(|flow| flow.alive && flow.path == path);
        let paths: Vec<PathId> = self.paths.iter().filter(|(_, path)| path.up).map(|(id, _)| *id).collect();
        for path in paths {
            let covered = |remote: &&SocketAddr| {
                self.paths.get(&path).is_some_and(|path| path.covers(remote.ip()).is_some())
            };
            let remotes: Vec<SocketAddr> = remotes.iter().filter(covered).copied().collect();
            let Some(entry) = self.entry(slot) else { return };
            if !bare(entry, path) {
                continue;
            }
            let fresh = |remote: &&SocketAddr| !entry.tried.contains(&(path, **remote));
            let Some(remote) = remotes.iter().find(fresh).copied() else { continue };
            entry.tried.push((path, remote));
            self.join(now, slot, path, remote);
        }
    }

    fn join(&mut self, now: Instant, slot: u32, path: PathId, remote: SocketAddr) {
        let Some(tuple) = self.tuple(path, remote) else { return };
        let (secrets, config) = (self.secrets(now, tuple), self.config_on(now, path, remote.ip()));
        let backup = self.paths.get(&path).is_some_and(|path| path.config.backup);
        let Some(entry) = self.entry(slot) else { return };
        let ports = (tuple.local.port(), remote.port());
        let from = (path, address_id(entry, path));
        let Ok(id) = entry.connection.join(now, from, ports, Some(config.tcp), secrets) else { return };
        if backup {
            entry.connection.set_backup(id, true);
        }
        self.add_flow(slot, id, Flow::new(path, tuple));
    }

    /// Notes a new subflow, which may have the place of a closed one.
    pub(super) fn add_flow(&mut self, slot: u32, id: SubflowId, flow: Flow) {
        let Some(entry) = entry_of(&mut self.slots, slot) else { return };
        let tuple = flow.tuple;
        match entry.flows.get_mut(usize::from(id.0)) {
            Some(place) => {
                let closed = std::mem::replace(place, flow);
                if self.table.get(&closed.tuple) == Some(&(slot, id)) {
                    self.table.remove(&closed.tuple);
                }
            }
            None => entry.flows.push(flow),
        }
        self.table.insert(tuple, (slot, id));
        self.touch(slot);
    }

    /// Announces the addresses of the other paths to a peer that has connected.
    fn announce(&mut self, now: Instant, slot: u32) {
        let Some(entry) = entry_of(&mut self.slots, slot) else { return };
        let v4 = entry.flows[0].tuple.remote.is_ipv4();
        for (id, path) in self.paths.iter().filter(|(_, path)| path.up) {
            let reached = entry.flows.iter().any(|flow| flow.alive && flow.path == *id);
            let address = path.config.announced.iter().find(|address| address.is_ipv4() == v4);
            let number = address_id(entry, *id);
            if let (false, Some(address)) =
                (reached || entry.tried.iter().any(|(path, _)| path == id), address)
            {
                entry.tried.push((*id, SocketAddr::new(*address, 0)));
                entry.connection.add_address(now, number, *address, None);
            }
        }
    }

    /// Closes the subflows of lost paths if a working path has another. Returns the connection.
    fn drop_lost(&mut self, now: Instant, slot: u32) -> Option<&mut Entry> {
        let entry = entry_of(&mut self.slots, slot)?;
        let up = |flow: &Flow| self.paths.get(&flow.path).is_some_and(|path| path.up);
        let ready = |id: usize| entry.connection.subflow_info(SubflowId(id as u16)).is_some_and(|i| i.ready);
        let works =
            (0..entry.flows.len()).any(|id| entry.flows[id].alive && up(&entry.flows[id]) && ready(id));
        if works {
            let gone: Vec<usize> = (0..entry.flows.len())
                .filter(|id| entry.flows[*id].alive && !up(&entry.flows[*id]))
                .collect();
            for id in gone {
                let AddressId(number) = address_id(entry, entry.flows[id].path);
                entry.connection.drop_subflow(now, SubflowId(id as u16));
                entry.connection.remove_address(AddressId(number));
            }
        }
        self.entry(slot)
    }
}

/// Round-trip time of a path that is not measured: that of a distant host.
const UNKNOWN: Duration = Duration::from_millis(50);
/// Bytes of a first window of ten segments.
const FIRST_FLIGHT: u64 = 14_600;
/// Time for which a path is silent before it counts as mute, at least: the retransmission after a
/// time-out has its answer by then, if the path works.
const MUTE: Duration = Duration::from_millis(500);
/// Time between two probes of a mute path, at least.
const PROBE: Duration = Duration::from_secs(1);
/// Time after which joins that were refused are tried again.
const RECOVERY: Duration = Duration::from_secs(30);
/// Addresses of a peer that are kept.
const MOST_REMOTES: usize = 8;
