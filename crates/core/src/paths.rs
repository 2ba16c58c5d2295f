//! The path builder: RPL (RFC 6550) with several paths per node, section III of "Multipath TCP Over
//! Multi-Hop Heterogeneous Wireless IoT Networks" (Guo et al.).
//!
//! The root announces itself by a DIO. A node that receives the DIO of a path prepends itself to
//! that path and keeps the best few results. It announces each kept path in a DIO, and registers
//! the path by a DAO with the nodes on it. These nodes store the next hop up and down. Each packet
//! carries the number of its path; 0 stands for the best path.
//!
//! One [`Router`] is the instance of one node. It identifies nodes by their short addresses and
//! knows no interfaces: the owner sends a message to one neighbour or to all over any suitable
//! interface. Messages are values here; `anabranch_wire` encodes them.
//!
//! # Choices that the paper leaves open (erratum M27)
//!
//! * A neighbour is a parent only if its rank is below the node's own rank (RFC 6550 section
//!   8.2.1). Paths therefore minimise the number of hops; a hop over the base station counts as a
//!   quarter.
//! * Among these, the shorter path is better; each multi-link node on a path counts as two hops
//!   less. Ties go to a path whose first hop no other path of the node uses, then to the existing
//!   path.
//! * A DAO with zero lifetime withdraws a replaced path from the nodes on it. Downstream nodes may
//!   continue to use it, because their routes stay stored. A DIO with infinite rank withdraws a
//!   broken link. A node passes it on if its own paths, or paths of nodes behind it, may use the
//!   link.
//! * The root answers a DAO (DAO-ACK); an unanswered DAO is retransmitted.
//! * A DIO carries latency and throughput of its path (RFC 6551), so that a node knows the
//!   round-trip time of section VI before it has sent data. These metrics neither influence the
//!   choice of paths nor trigger a message.
//!
//! Code map: `message` defines the messages, `trickle` their timing (RFC 6206), `solicit` the
//! requests for DIOs. `candidates` holds the paths offered by neighbours, `objective` compares
//! them, `etx` measures links and `probe` probes them. `offers` holds the node's own paths, each an
//! `own_path`; `routes` stores routes for other nodes.

mod candidates;
mod etx;
mod message;
mod objective;
mod offers;
mod own_path;
mod probe;
mod routes;
mod solicit;
mod trickle;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

pub use message::{Dao, DaoAck, Dio, INFINITE_RANK, Metrics, NodeType, Output, Path, ShortAddress};
pub use objective::Objective;
pub use own_path::OwnPath;
pub use routes::Route;

use crate::time::{Duration, Instant};
use candidates::Candidates;
use etx::{Neighbours, ONE};
use offers::Offers;
use routes::Routes;
use solicit::Solicit;
use trickle::Trickle;

/// Options of the path builder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// NP_thr: number of paths that a node keeps, 1 to 15; 3 in section VIII.
    pub max_paths: u8,
    /// Imin of the trickle timer (RFC 6206 section 4.1). The default of RPL is 8 ms, for links that
    /// are not shared.
    pub interval_min: Duration,
    /// Number of doublings from Imin to Imax, at most 20; 8 (RFC 6550 section 17: 20).
    pub doublings: u8,
    /// k, the redundancy constant: after this number of consistent messages in an interval the node
    /// keeps silent; 10 (RFC 6550 section 17). 0 never suppresses a message.
    pub redundancy: u8,
    /// Upper bound of the random delay before the first DIS of a node without a path.
    pub dis_delay: Duration,
    /// Time from the first DIS to the second; doubled after each DIS, six times. Zero sends no DIS.
    pub dis_interval: Duration,
    /// DAGMaxRankIncrease: how far the rank may rise above the lowest that the node has announced
    /// since it last had no path (RFC 6550 section 8.2.2.4). 0 is no limit.
    pub max_rank_increase: u16,
    /// Objective function, which compares paths.
    pub objective: Objective,
    /// PARENT_SWITCH_THRESHOLD of [`Objective::Mrhof`] in 1/128 of a transmission: another path
    /// replaces the current one if its ETX is lower by more than this; 192 (RFC 6719 section 5).
    pub parent_switch_threshold: u16,
    /// Interval of unicast probes (DIOs) to neighbours that could become parents, and to parents
    /// without traffic. It is an eighth of this while such a link is unmeasured or failing. Zero
    /// sends no probes. Only with an objective function that uses the ETX.
    pub probe_interval: Duration,
    /// MinHopRankIncrease: the least increase of the rank per hop; 256 (RFC 6550 section 17). With
    /// [`Objective::Paper`] a cellular hop adds this, and a radio hop four times as much.
    pub min_hop_rank_increase: u16,
    /// Delay before a new path is registered upstream, uniform up to twice this; 1 s
    /// (DEFAULT_DAO_DELAY).
    pub dao_delay: Duration,
    /// Initial time to wait for a DAO-ACK; doubles with each try.
    pub dao_timeout: Duration,
    /// Number of DAOs for one path before it is abandoned.
    pub dao_tries: u8,
    /// Largest number of nodes on a path, both ends included.
    pub longest_path: u8,
    /// Largest number of routes that a node stores for others.
    pub max_routes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_paths: 3,
            interval_min: Duration::from_millis(1024),
            doublings: 8,
            redundancy: 10,
            dis_delay: Duration::from_secs(1),
            dis_interval: Duration::from_secs(4),
            max_rank_increase: 2048,
            objective: Objective::Mrhof,
            parent_switch_threshold: 192,
            probe_interval: Duration::from_secs(60),
            min_hop_rank_increase: 256,
            dao_delay: Duration::from_secs(1),
            dao_timeout: Duration::from_secs(4),
            dao_tries: 6,
            longest_path: 24,
            max_routes: 4096,
        }
    }
}

impl Config {
    /// The paper's rank: 64 for a cellular hop, so that a radio hop adds the 256 of RPL.
    pub fn paper() -> Self {
        Self { objective: Objective::Paper, min_hop_rank_increase: 64, ..Self::default() }
    }

    /// DAGRank (RFC 6550 section 3.5.1): the rank in whole steps, which distinguishes parents from
    /// children.
    fn dag_rank(&self, rank: u16) -> u16 {
        rank / self.min_hop_rank_increase.max(1)
    }
}

/// Next hop of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop {
    /// The neighbour to send the packet to.
    pub to: ShortAddress,
    /// The path that the packet follows.
    pub path_id: u8,
}

/// Counters of a router.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// DIOs sent, one per path and transmission.
    pub dios: u64,
    /// DISs sent.
    pub solicitations: u64,
    /// Links probed.
    pub probes: u64,
    /// DAOs sent or forwarded.
    pub daos: u64,
    /// Invalid messages: a path with a loop, from the wrong sender, or too long.
    pub refused: u64,
    /// Paths built.
    pub built: u64,
    /// Paths replaced by better ones.
    pub replaced: u64,
    /// Paths lost: withdrawn, or their first hop failed.
    pub lost: u64,
    /// Routes not stored because the table was full.
    pub table_full: u64,
}

/// The path builder of one node.
#[derive(Debug)]
pub struct Router {
    config: Config,
    address: ShortAddress,
    kind: NodeType,
    root: bool,
    offers: Offers,
    /// Paths offered by neighbours; only with an objective function that uses the ETX.
    candidates: Candidates,
    neighbours: Neighbours,
    /// When the next link is probed.
    probe: Option<Instant>,
    routes: Routes,
    trickle: Trickle,
    sequence: u8,
    output: VecDeque<Output>,
    solicit: Solicit,
    /// L of RFC 6550 section 8.2.2.4: the lowest rank announced since the node last had no path.
    lowest_rank: Option<u16>,
    /// Rank and ETX as last announced.
    announced: Option<(u16, u16)>,
    /// Recent withdrawals.
    heard: Vec<(Path, Instant)>,
    counters: Counters,
}

impl Router {
    /// Creates a node without paths.
    pub fn node(config: Config, address: ShortAddress, kind: NodeType) -> Self {
        Self::new(config, address, kind, false)
    }

    /// Creates the root: the data centre. [`Router::start`] starts its announcements.
    pub fn root(config: Config, address: ShortAddress) -> Self {
        Self::new(config, address, NodeType::MultiLink, true)
    }

    fn new(config: Config, address: ShortAddress, kind: NodeType, root: bool) -> Self {
        let max_paths = config.max_paths.clamp(1, 15);
        Self {
            config: Config { max_paths, doublings: config.doublings.min(20), ..config },
            address,
            kind,
            root,
            offers: Offers::default(),
            candidates: Candidates::default(),
            neighbours: Neighbours::default(),
            probe: None,
            routes: Routes::default(),
            trickle: Trickle::default(),
            sequence: 0,
            output: VecDeque::new(),
            solicit: Solicit::default(),
            lowest_rank: None,
            announced: None,
            heard: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// Starts the router: the root begins to send DIOs, any other node to request them.
    pub fn start(&mut self, now: Instant, random: u32) {
        if self.root {
            self.trickle.reset(now, &self.config, random);
        } else {
            self.solicit.begin(now, &self.config, random);
        }
    }

    /// Handles a request (DIS) for a DIO, sent to all neighbours or to this node only.
    ///
    /// RFC 6550 section 8.3: a multicast DIS resets the trickle timer. A unicast DIS is answered at
    /// once, and only to its sender.
    pub fn handle_dis(&mut self, now: Instant, from: ShortAddress, to_all: bool, random: u32) {
        if !self.root && self.offers.paths().is_empty() {
            return;
        }
        if to_all {
            return self.trickle.reset(now, &self.config, random);
        }
        for dio in self.dios() {
            self.output.push_back(Output::DioTo { to: from, dio });
            self.counters.dios += 1;
        }
    }

    /// Handles the announcement (DIO) of a path by a neighbour. `to_all`: sent to all neighbours,
    /// together with the neighbour's other paths; otherwise to this node only.
    pub fn handle_dio(&mut self, now: Instant, from: ShortAddress, dio: &Dio, to_all: bool, random: u32) {
        if self.root {
            return;
        }
        if dio.rank == INFINITE_RANK {
            return self.handle_withdrawal(now, from, &dio.path, random);
        }
        if dio.path.first() != Some(&from) {
            self.counters.refused += 1;
            return;
        }
        // A node that had withdrawn itself and offers paths again may withdraw itself again later.
        self.heard.retain(|(link, _)| link[..] != [from]);
        if self.config.objective.uses_etx() {
            return self.handle_offer(now, from, dio, to_all, random);
        }
        let step = objective::paper_step(&self.config, self.kind, dio.node_type);
        let changed = self.parent_rank(now, from, dio.rank, step, random);
        if changed && self.offers.paths().is_empty() {
            // Nodes below must receive the withdrawal before this node joins again.
            return;
        }
        if !self.sensible(&dio.path) {
            self.counters.refused += 1;
            return;
        }
        let limit = self.highest_rank();
        match self.offers.offer(&self.config, self.address, (step, limit), dio) {
            Some(replaced) => {
                self.built(now, 1, replaced, random);
                self.trickle.reset(now, &self.config, random);
            }
            None if !changed => self.count_consistent(now, from, dio.rank),
            None => {}
        }
    }

    /// Counts `count` new paths, and withdraws the replaced ones.
    fn built(&mut self, now: Instant, count: u64, replaced: Vec<OwnPath>, random: u32) {
        self.counters.built += count;
        self.counters.replaced += replaced.len() as u64;
        replaced.into_iter().for_each(|old| self.unstore(old));
        if count > 0 {
            self.solicit.stop();
            self.announce(now, random);
        }
    }

    /// Stores an offered path as a candidate, whether or not it is chosen.
    fn handle_offer(&mut self, now: Instant, from: ShortAddress, dio: &Dio, to_all: bool, random: u32) {
        self.candidates.set_rank(now, dio, to_all, self.offers.paths());
        let sensible = self.sensible(&dio.path);
        if sensible {
            self.candidates.hear(now, dio, self.offers.paths());
        } else {
            self.counters.refused += 1;
        }
        if !self.choose(now, random) && sensible {
            self.count_consistent(now, from, dio.rank);
        }
    }

    /// Compares all candidates. Returns whether the preferred parent, the paths or the node's
    /// DAGRank have changed.
    fn choose(&mut self, now: Instant, random: u32) -> bool {
        if self.root || !self.config.objective.uses_etx() {
            return false;
        }
        let config = self.config;
        let standing =
            |offers: &Offers| (offers.rank().map(|rank| config.dag_rank(rank)), offers.preferred());
        let before = standing(&self.offers);
        let joins = self.offers.paths().is_empty();
        let terms = (self.highest_rank(), self.announced.is_some());
        let chosen = self.candidates.choose(&self.config, &self.neighbours, self.offers.paths(), terms);
        let (built, gone) = self.offers.adopt(&self.config, self.address, &self.candidates, &chosen);
        let paths_changed = built > 0 || !gone.is_empty();
        if self.offers.paths().is_empty() {
            if paths_changed {
                // RFC 6550 section 8.2.2.5: the node poisons the routes that depend on it.
                self.candidates.clear();
                self.withdraw(now, &[self.address]);
                self.lost(now, gone, random);
            }
            return paths_changed;
        }
        self.built(now, built, gone, random);
        if built > 0 {
            self.begin_probes(now, random);
        }
        let after = standing(&self.offers);
        // RFC 6550 section 8.3. A change of a path beyond the parent is no inconsistency: in a
        // large network such changes occur all the time and would keep the trickle timer at its
        // minimum.
        if joins || before.1 != after.1 || self.has_moved() {
            self.trickle.reset(now, &self.config, random);
        }
        paths_changed || before != after
    }

    /// Whether rank or ETX differ significantly from the last announcement.
    fn has_moved(&self) -> bool {
        let (Some((rank, etx)), Some(own), Some(path)) =
            (self.announced, self.offers.rank(), self.offers.paths().first())
        else {
            return false;
        };
        let config = &self.config;
        let least = config.objective.hysteresis(config).max(config.min_hop_rank_increase.into());
        u32::from(own.abs_diff(rank)) >= least
            || config.objective == Objective::Mrhof
                && self.etx(path).abs_diff(etx) >= config.parent_switch_threshold.max(ONE)
    }

    /// Handles a report of the link layer: it has sent a frame to `neighbour` `attempts` times, and
    /// the neighbour has acknowledged it or not. Returns whether [`Router::handle_link_change`]
    /// should be called. Zero attempts (no free channel) carry no information about the link.
    pub fn note_transmissions(
        &mut self,
        now: Instant,
        neighbour: ShortAddress,
        attempts: u8,
        acknowledged: bool,
    ) -> bool {
        self.config.objective.uses_etx()
            && attempts > 0
            && self.neighbours.note(now, neighbour, attempts, acknowledged)
    }

    /// Handles a changed link quality: another parent may be better now.
    pub fn handle_link_change(&mut self, now: Instant, random: u32) {
        self.choose(now, random);
    }

    /// Marks the link to a neighbour as a cable, whose ETX is 1.
    pub fn set_reliable(&mut self, neighbour: ShortAddress) {
        self.neighbours.entry(neighbour).reliable = true;
    }

    /// ETX of one of the node's own paths in units of 1/128 (RFC 6551 section 4.3.2): the measured
    /// ETX of the first link plus the ETX announced by the parent.
    pub fn etx(&self, path: &OwnPath) -> u16 {
        path.first_hop().map_or(0, |first| path.beyond_etx.saturating_add(self.neighbours.etx(first)))
    }

    /// ETX of the link to a neighbour in units of 1/128; an assumed value before the first
    /// transmission.
    pub fn link_etx(&self, neighbour: ShortAddress) -> u16 {
        self.neighbours.etx(neighbour)
    }

    /// Handles the rank announced by a neighbour: updates the paths through it and drops paths that
    /// the node must not keep. Returns whether the parent set or the node's rank has changed.
    fn parent_rank(&mut self, now: Instant, from: ShortAddress, rank: u16, step: u16, random: u32) -> bool {
        let before = self.offers.rank();
        let mut gone = self.offers.set_parent_rank(from, rank, step);
        if self.offers.rank().is_some_and(|rank| rank > self.highest_rank()) {
            gone.append(&mut self.offers.clear());
        }
        let changed = !gone.is_empty() || self.offers.rank() != before;
        if changed {
            if self.offers.paths().is_empty() {
                // RFC 6550 section 8.2.2.5: the node poisons the routes that depend on it.
                self.withdraw(now, &[self.address]);
            }
            self.lost(now, gone, random);
            self.trickle.reset(now, &self.config, random);
        }
        changed
    }

    /// L + DAGMaxRankIncrease: the highest rank that the node may take.
    fn highest_rank(&self) -> u16 {
        match self.lowest_rank {
            Some(lowest) if self.config.max_rank_increase > 0 => {
                lowest.saturating_add(self.config.max_rank_increase).min(INFINITE_RANK - 1)
            }
            _ => INFINITE_RANK - 1,
        }
    }

    /// RFC 6550 section 8.3: a DIO of a lower DAGRank that causes no change is consistent. A node
    /// sends one DIO per path at a time; together they count as one transmission.
    fn count_consistent(&mut self, now: Instant, from: ShortAddress, rank: u16) {
        if self.offers.rank().is_none_or(|own| self.config.dag_rank(rank) >= self.config.dag_rank(own)) {
            return;
        }
        // No node sends twice within Imin / 2 (RFC 6206 section 4.2), so closer DIOs belong
        // together.
        let least = self.config.interval_min / 2;
        let counted = &mut self.neighbours.entry(from).counted;
        if counted.is_none_or(|at| now.saturating_since(at) >= least) {
            *counted = Some(now);
            self.trickle.heard_consistent();
        }
    }

    /// Handles the withdrawal of a broken link upstream, or of a node that has lost its stored
    /// routes.
    fn handle_withdrawal(&mut self, now: Instant, from: ShortAddress, link: &[ShortAddress], random: u32) {
        self.heard.retain(|(_, at)| now.saturating_since(*at) < REMEMBERED);
        if link.is_empty() || link.len() > 2 || self.heard.iter().any(|(l, _)| l == link) {
            return;
        }
        self.candidates.withdraw(link);
        let gone = self.offers.withdraw(link);
        if gone.is_empty() && !self.routes.lead_through(from) {
            return;
        }
        self.withdraw(now, link);
        self.lost(now, gone, random);
    }

    /// Sends a withdrawal to all neighbours, once.
    fn withdraw(&mut self, now: Instant, link: &[ShortAddress]) {
        self.heard.push((link.into(), now));
        let (node_type, path) = (self.kind, link.into());
        let dio = Dio { rank: INFINITE_RANK, node_type, multi_link: 0, path, metrics: None, etx: None };
        self.output.push_back(Output::Dio(dio));
    }

    /// Schedules the registration of new paths. The delay lets a better path replace them first.
    fn announce(&mut self, now: Instant, random: u32) {
        let delay = self.config.dao_delay;
        let wait = delay + delay.mul_ratio(u64::from(random >> 16), 1 << 16);
        for path in self.offers.paths_mut().iter_mut().filter(|p| p.is_new()) {
            path.tell_at(now + wait);
        }
    }

    /// Handles the registration of a path of a downstream node that leads through this node.
    pub fn handle_dao(&mut self, _now: Instant, from: ShortAddress, dao: &Dao) {
        if dao.withdrawn {
            return self.handle_no_path(from, dao);
        }
        let place = dao.path.iter().position(|&n| n == self.address);
        let (Some(source), Some(place)) = (dao.path.first().copied(), place) else {
            self.counters.refused += 1;
            return;
        };
        let up = dao.path.get(place + 1).copied();
        let down = place.checked_sub(1).and_then(|i| dao.path.get(i)).copied();
        let fits = down == Some(from) && up.is_none() == self.root && dao.path_id != 0;
        if !fits || !self.plausible(&dao.path) {
            self.counters.refused += 1;
            return;
        }
        let route = Route { source, path_id: dao.path_id, up, down: from, used: 0 };
        if !self.routes.store(route, self.config.max_routes) {
            self.counters.table_full += 1;
            return;
        }
        match up {
            Some(to) => {
                self.counters.daos += 1;
                self.output.push_back(Output::Dao { to, dao: dao.clone() });
            }
            None => {
                let ack = DaoAck { source, path_id: dao.path_id, sequence: dao.sequence };
                self.output.push_back(Output::DaoAck { to: from, ack });
            }
        }
    }

    /// Handles the withdrawal of a downstream node's path: every node up to the root removes its
    /// route.
    fn handle_no_path(&mut self, from: ShortAddress, dao: &Dao) {
        let source = dao.path.first().copied();
        let Some(route) = source.and_then(|source| self.routes.get(source, dao.path_id)).copied() else {
            return;
        };
        if dao.path_id == 0 || route.down != from {
            return;
        }
        self.routes.remove(route.source, route.path_id);
        if let Some(to) = route.up {
            self.counters.daos += 1;
            self.output.push_back(Output::Dao { to, dao: dao.clone() });
        }
    }

    /// Handles a packet that `from` has sent down for a path of `end` without a route stored here,
    /// because a No-Path DAO was lost or this node has lost its routes. The No-Path DAO sent here
    /// removes the route from `from` and the nodes above it (RFC 6550 section 11.2.2.3).
    pub fn handle_stale_route(&mut self, from: ShortAddress, end: ShortAddress, path_id: u8) {
        let path = [end, self.address, from].into();
        let sequence = self.next_sequence();
        self.output
            .push_back(Output::Dao { to: from, dao: Dao { path_id, sequence, withdrawn: true, path } });
    }

    /// Handles a packet that passes upward from the neighbour `down` to `up` (`None` at the root).
    /// The path now leads there, whatever was stored: a path that was lost at one node is repaired
    /// by the next packet.
    pub fn handle_passage(
        &mut self,
        end: ShortAddress,
        path_id: u8,
        down: ShortAddress,
        up: Option<ShortAddress>,
    ) {
        if path_id == 0 || end == self.address {
            return;
        }
        let route = Route { source: end, path_id, up, down, used: 0 };
        if !self.routes.store(route, self.config.max_routes) {
            self.counters.table_full += 1;
        }
    }

    /// Handles the root's answer to a DAO, on its way down the path.
    pub fn handle_dao_ack(&mut self, ack: &DaoAck) {
        if ack.source == self.address {
            self.offers.told(ack.path_id, ack.sequence);
        } else if let Some(route) = self.routes.get(ack.source, ack.path_id) {
            self.output.push_back(Output::DaoAck { to: route.down, ack: *ack });
        }
    }

    /// Handles a report of the link layer that a neighbour no longer answers: all paths through it
    /// are lost.
    pub fn handle_neighbour_lost(&mut self, now: Instant, neighbour: ShortAddress, random: u32) {
        self.candidates.lose(neighbour);
        let gone = self.offers.lose(neighbour);
        let others = self.routes.lose(neighbour);
        if gone.is_empty() && !others {
            return;
        }
        self.withdraw(now, &[self.address, neighbour]);
        self.lost(now, gone, random);
    }

    /// Handles a packet for a path without a stored route, for example after a reboot.
    pub fn handle_missing_route(&mut self, now: Instant) {
        self.heard.retain(|(_, at)| now.saturating_since(*at) < REMEMBERED);
        let own = [self.address];
        if !self.heard.iter().any(|(l, _)| l[..] == own) {
            self.withdraw(now, &own);
        }
    }

    /// Counts and withdraws lost paths. A node without any path requests others.
    fn lost(&mut self, now: Instant, gone: Vec<OwnPath>, random: u32) {
        if gone.is_empty() {
            return;
        }
        self.counters.lost += gone.len() as u64;
        gone.into_iter().for_each(|path| self.unstore(path));
        self.trickle.reset(now, &self.config, random);
        // Local repair: a known path through another neighbour replaces the lost one at once.
        self.choose(now, random);
        if self.offers.paths().is_empty() {
            (self.lowest_rank, self.announced) = (None, None);
            self.solicit.begin(now, &self.config, random);
        }
    }

    /// Withdraws a registered path from the nodes on it.
    fn unstore(&mut self, path: OwnPath) {
        if let (true, Some(&to)) = (path.was_told(), path.nodes.get(1)) {
            let sequence = self.next_sequence();
            let dao = Dao { path_id: path.id, sequence, withdrawn: true, path: path.nodes };
            self.output.push_back(Output::Dao { to, dao });
        }
    }

    /// Discards all state, as after a reboot.
    pub fn reset(&mut self, now: Instant, random: u32) {
        let mut neighbours = core::mem::take(&mut self.neighbours);
        neighbours.forget();
        *self = Self { neighbours, ..Self::new(self.config, self.address, self.kind, self.root) };
        self.start(now, random);
    }

    /// When to call [`Router::handle_timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        let dao = self.offers.paths().iter().filter_map(|p| p.due).min();
        [self.trickle.next_timeout(), self.solicit.due(), self.probe, dao].into_iter().flatten().min()
    }

    /// Handles expired timers. See [`Router::next_timeout`].
    pub fn handle_timeout(&mut self, now: Instant, random: u32) {
        if self.trickle.handle_timeout(now, &self.config, random) {
            self.say_paths();
        }
        if self.solicit.handle_timeout(now, &self.config, random) {
            self.output.push_back(Output::Dis { to: None });
            self.counters.solicitations += 1;
        }
        if self.probe.is_some_and(|due| due <= now) {
            self.send_probe(now, random);
        }
        let mut unanswered = Vec::new();
        for i in 0..self.offers.paths().len() {
            if self.offers.paths()[i].due.is_none_or(|due| due > now) {
                continue;
            }
            let sequence = self.next_sequence();
            let path = &mut self.offers.paths_mut()[i];
            if path.tries >= self.config.dao_tries {
                unanswered.push(path.id);
                continue;
            }
            path.tries += 1;
            path.sequence = sequence;
            // The wait doubles with each try. Its random part keeps neighbours from colliding
            // again.
            let wait = self.config.dao_timeout * (1 << u32::from(path.tries - 1).min(6));
            path.due = Some(now + wait + wait.mul_ratio(u64::from(random & 0xffff), 1 << 18));
            if let Some(&to) = path.nodes.get(1) {
                let dao = Dao { path_id: path.id, sequence, withdrawn: false, path: path.nodes.clone() };
                self.counters.daos += 1;
                self.output.push_back(Output::Dao { to, dao });
            }
        }
        for id in unanswered {
            // Without an answer to its DAOs the path does not work, so its offer must not be chosen
            // again.
            let gone = self.offers.drop_path(id);
            gone.iter().for_each(|path| self.candidates.forget(&path.nodes[1..]));
            self.lost(now, gone.into_iter().collect(), random);
        }
    }

    /// Announces each path to all neighbours.
    fn say_paths(&mut self) {
        if let (false, Some(rank)) = (self.root, self.offers.rank()) {
            // L of RFC 6550 section 8.2.2.4: the lowest rank that the node has announced.
            self.lowest_rank = Some(self.lowest_rank.map_or(rank, |lowest| lowest.min(rank)));
            self.announced = self.offers.paths().first().map(|path| (rank, self.etx(path)));
        }
        for dio in self.dios() {
            self.output.push_back(Output::Dio(dio));
            self.counters.dios += 1;
        }
    }

    /// Builds a DIO for each path; the path of the root is the root itself.
    fn dios(&self) -> Vec<Dio> {
        if self.root {
            let rank = self.config.min_hop_rank_increase.max(1);
            let (path, metrics) = ([self.address].into(), Some(Metrics::NOWHERE));
            let etx = self.said_etx(0);
            return [Dio { rank, node_type: self.kind, multi_link: 0, path, metrics, etx }].into();
        }
        let Some(rank) = self.offers.rank() else { return Vec::new() };
        let said = |path: &OwnPath| Dio {
            rank,
            node_type: self.kind,
            multi_link: path.multi_link + u8::from(self.kind == NodeType::MultiLink),
            path: path.nodes.clone(),
            metrics: self.metrics(path),
            etx: self.said_etx(self.etx(path)),
        };
        self.offers.paths().iter().map(said).collect()
    }

    /// The ETX to announce. Only MRHOF uses it: OF0 and the paper's rule need no metric.
    fn said_etx(&self, etx: u16) -> Option<u16> {
        (self.config.objective == Objective::Mrhof).then_some(etx)
    }

    /// Sets the metrics of the link to a neighbour. The owner may call this at any change; no
    /// message is sent for it.
    pub fn set_link(&mut self, neighbour: ShortAddress, metrics: Metrics) {
        self.neighbours.entry(neighbour).metrics = Some(metrics);
    }

    /// Metrics of one of the node's own paths, if known for every link: current for the first link,
    /// as of the parent's last DIO for the others.
    pub fn metrics(&self, path: &OwnPath) -> Option<Metrics> {
        let first = path.first_hop()?;
        Some(path.beyond?.and(self.neighbours.get(first)?.metrics?))
    }

    /// Returns the next message to send, until `None`.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.output.pop_front()
    }

    /// The node's own paths, best first. Packets may use the confirmed ones.
    pub fn paths(&self) -> &[OwnPath] {
        self.offers.paths()
    }

    /// Next hop of a packet between the root and `end` on the path `path_id` of `end`. 0 means the
    /// best path known here; the packet then carries the returned number from here on, if that path
    /// is stored.
    pub fn next_hop(&self, end: ShortAddress, path_id: u8, upward: bool) -> Option<Hop> {
        if upward && end == self.address {
            let path = self.own_path(path_id)?;
            return Some(Hop { to: *path.nodes.get(1)?, path_id: path.id });
        }
        if upward && path_id == 0 {
            // `end` has no such path here: the next node chooses again.
            return Some(Hop { to: *self.own_path(0)?.nodes.get(1)?, path_id: 0 });
        }
        let route = self.routes.get(end, path_id)?;
        if let (true, Some(up)) = (upward, route.up)
            && self.neighbours.is_failing(up)
            && let Some(path) = self.own_path(0)
            && path.first_hop() != Some(up)
            && !path.nodes.contains(&end)
            && !path.nodes.contains(&route.down)
        {
            // Local repair: the packet keeps its path number, and nodes further up learn the new
            // course of the path from it.
            return Some(Hop { to: path.first_hop()?, path_id: route.path_id });
        }
        Some(Hop { to: if upward { route.up? } else { route.down }, path_id: route.path_id })
    }

    /// The path with number `id`. For 0, the best path whose first link works; confirmed paths come
    /// first.
    fn own_path(&self, id: u8) -> Option<&OwnPath> {
        if id != 0 {
            return self.offers.paths().iter().find(|p| p.id == id);
        }
        let works = |p: &&OwnPath| p.first_hop().is_some_and(|n| !self.neighbours.is_failing(n));
        let working = || self.offers.paths().iter().filter(works);
        working().find(|p| p.confirmed).or_else(|| working().next()).or(self.offers.paths().first())
    }

    /// Routes stored for other nodes.
    pub fn routes(&self) -> &[Route] {
        self.routes.all()
    }

    /// Counters since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn next_sequence(&mut self) -> u8 {
        self.sequence = self.sequence.wrapping_add(1);
        self.sequence
    }

    /// Whether the node may use `path`: it does not contain this node, and is short enough with
    /// this node prepended.
    fn sensible(&self, path: &[ShortAddress]) -> bool {
        !path.contains(&self.address)
            && path.len() < usize::from(self.config.longest_path)
            && self.plausible(path)
    }

    /// Whether `path` is short enough and contains no node twice.
    fn plausible(&self, path: &[ShortAddress]) -> bool {
        path.len() <= usize::from(self.config.longest_path)
            && path.iter().enumerate().all(|(i, n)| !path[..i].contains(n))
    }
}

/// Time during which a repeated withdrawal counts as a copy of the first.
const REMEMBERED: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests;
