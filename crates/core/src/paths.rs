//! The path builder: RPL (RFC 6550) with several paths for each node, section III of "Multipath TCP
//! Over Multi-Hop Heterogeneous Wireless IoT Networks" (Guo et al.).
//!
//! The root says that it is there (DIO). A node that hears of a path makes one of its own out of
//! it, by putting itself in front, keeps the best few, passes each on, and tells the nodes on it
//! (DAO), which store where packets of that path go, up and down. A packet bears its path's number;
//! 0 stands for the best.
//!
//! One [`Router`] is one node's part. It names nodes by their short addresses and knows no
//! interface: what it wants sent goes to all neighbours or to one, over whatever leads there.
//! Messages are values here; their bytes are the wire's.
//!
//! # What the paper leaves open (erratum M27)
//!
//! * A neighbour is a parent only if its rank is below the node's own (RFC 6550 section 8.2.1), so
//!   that paths go by the least number of hops, those over the base station counting a quarter.
//! * Of these, a path is better than another if it is shorter, a multi-link node on it counting as
//!   two hops less; of equals the one whose first hop no other path of the node has; then the one
//!   that was there.
//! * A path that was replaced is withdrawn from the nodes on it by a DAO without lifetime; nodes
//!   downstream may go on using it, since what is stored for them stays. A link that is broken is
//!   withdrawn by a DIO with an infinite rank, which all pass on whose paths, or those of nodes
//!   behind them, may use it.
//! * The root answers a DAO (DAO-ACK); one that is not answered is sent again.
//! * A DIO carries latency and throughput of its path (RFC 6551), so that a node knows the
//!   round-trip time of section VI before it has sent anything. They are no reason for a choice of
//!   path, and none to speak.
//!
//! Code map: `message` is what is said, `trickle` when (RFC 6206), `solicit` when it is asked for;
//! `candidates` is what neighbours offer, `objective` how that is compared, `etx` what is known of
//! the links, `probe` how it is found out; `offers` the node's own paths, each an `own_path`;
//! `routes` what it stores for others.

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

/// How a node builds paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// NP_thr: paths that a node keeps, 1 to 15; 3 in section VIII.
    pub max_paths: u8,
    /// Imin of the trickle timer (RFC 6206 section 4.1). RPL's default is 8 ms, for links that are
    /// not shared.
    pub interval_min: Duration,
    /// Doublings of Imin up to Imax, at most 20; 8 (RFC 6550 section 17: 20).
    pub doublings: u8,
    /// k, the redundancy constant: after this number of consistent messages in an interval the node
    /// keeps silent; 10 (RFC 6550 section 17). 0 never suppresses a message.
    pub redundancy: u8,
    /// The first DIS of a node without a path goes out after a random time of at most this length.
    pub dis_delay: Duration,
    /// Time from the first DIS to the second; doubled after each DIS, six times. Zero sends no DIS.
    pub dis_interval: Duration,
    /// DAGMaxRankIncrease: how far the rank may rise above the lowest that the node has announced
    /// since it last had no path (RFC 6550 section 8.2.2.4). 0 is no limit.
    pub max_rank_increase: u16,
    /// How paths are compared.
    pub objective: Objective,
    /// PARENT_SWITCH_THRESHOLD of [`Objective::Mrhof`] in 1/128 of a transmission: by how much the
    /// ETX of another path must be lower; 192 (RFC 6719 section 5).
    pub parent_switch_threshold: u16,
    /// Time between two unicast probes (DIOs) of neighbours that could become parents and of
    /// parents that no packets go to; an eighth of it as long as such a link is not measured or
    /// fails. Zero sends none. Only with an objective function that uses the ETX.
    pub probe_interval: Duration,
    /// MinHopRankIncrease: the least that a hop adds to the rank; 256 (RFC 6550 section 17). With
    /// [`Objective::Paper`] a cellular hop adds this, and a hop over the radio four times as much.
    pub min_hop_rank_increase: u16,
    /// How long a new path waits before it is told upstream, up to twice that; 1 s
    /// (DEFAULT_DAO_DELAY).
    pub dao_delay: Duration,
    /// How long a DAO waits for its answer, doubling.
    pub dao_timeout: Duration,
    /// DAOs for one path before it is given up.
    pub dao_tries: u8,
    /// Nodes on a path, ends included.
    pub longest_path: u8,
    /// Paths of others that a node stores.
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
    /// With the paper's rank: 64 for a cellular hop, so that a hop over the radio adds RPL's 256.
    pub fn paper() -> Self {
        Self { objective: Objective::Paper, min_hop_rank_increase: 64, ..Self::default() }
    }

    /// DAGRank (RFC 6550 section 3.5.1): a rank in whole steps, by which parents and children are
    /// told apart.
    fn dag_rank(&self, rank: u16) -> u16 {
        rank / self.min_hop_rank_increase.max(1)
    }
}

/// Where a packet goes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop {
    /// The neighbour.
    pub to: ShortAddress,
    /// The path that it follows.
    pub path_id: u8,
}

/// What a router has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// DIOs sent, one for each path and time.
    pub dios: u64,
    /// DISs sent.
    pub solicitations: u64,
    /// Links probed.
    pub probes: u64,
    /// DAOs sent or passed on.
    pub daos: u64,
    /// Messages that made no sense: a path with a circle, of the wrong end, or too long.
    pub refused: u64,
    /// Paths built.
    pub built: u64,
    /// Paths that were replaced by better ones.
    pub replaced: u64,
    /// Paths that were lost: withdrawn, or their first hop gone.
    pub lost: u64,
    /// Routes not stored since the table is full.
    pub table_full: u64,
}

/// One node's part.
#[derive(Debug)]
pub struct Router {
    config: Config,
    address: ShortAddress,
    kind: NodeType,
    root: bool,
    offers: Offers,
    /// What neighbours offer; only with an objective function that uses the ETX.
    candidates: Candidates,
    neighbours: Neighbours,
    /// When a link is probed next.
    probe: Option<Instant>,
    routes: Routes,
    trickle: Trickle,
    sequence: u8,
    output: VecDeque<Output>,
    solicit: Solicit,
    /// L of RFC 6550 section 8.2.2.4.
    lowest_rank: Option<u16>,
    /// Rank and ETX as last announced.
    announced: Option<(u16, u16)>,
    /// What was withdrawn of late.
    heard: Vec<(Path, Instant)>,
    counters: Counters,
}

impl Router {
    /// A node that knows no path yet.
    pub fn node(config: Config, address: ShortAddress, kind: NodeType) -> Self {
        Self::new(config, address, kind, false)
    }

    /// The root: the data centre. It begins to speak with [`Router::start`].
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

    /// The root begins to send DIOs; any other node asks for them.
    pub fn start(&mut self, now: Instant, random: u32) {
        if self.root {
            self.trickle.reset(now, &self.config, random);
        } else {
            self.solicit.begin(now, &self.config, random);
        }
    }

    /// A neighbour asks for a DIO: of all neighbours, or of this node only.
    ///
    /// RFC 6550 section 8.3: a DIS to all resets the trickle timer; one to this node is answered at
    /// once, and only to the neighbour that has sent it.
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

    /// A neighbour tells of a path: all its neighbours, with its other paths, or this node only.
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
        // Who had withdrawn itself and offers paths again may do so once more.
        self.heard.retain(|(link, _)| link[..] != [from]);
        if self.config.objective.uses_etx() {
            return self.handle_offer(now, from, dio, to_all, random);
        }
        let step = objective::paper_step(&self.config, self.kind, dio.node_type);
        let changed = self.parent_rank(now, from, dio.rank, step, random);
        if changed && self.offers.paths().is_empty() {
            // Nodes below hear of it before the node joins again.
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

    /// Registers `count` new paths, and the paths that they replaced.
    fn built(&mut self, now: Instant, count: u64, replaced: Vec<OwnPath>, random: u32) {
        self.counters.built += count;
        self.counters.replaced += replaced.len() as u64;
        replaced.into_iter().for_each(|old| self.unstore(old));
        if count > 0 {
            self.solicit.stop();
            self.announce(now, random);
        }
    }

    /// A neighbour tells of a path, which is kept as a candidate whether or not it is chosen.
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

    /// Compares all candidates. True if the preferred parent, the paths or the node's DAGRank have
    /// changed.
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
                // RFC 6550 section 8.2.2.5: the node poisons what rests on it.
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
        // RFC 6550 section 8.3. Where a path leads beyond the parent is no reason: in a large
        // network that changes somewhere all the time.
        if joins || before.1 != after.1 || self.has_moved() {
            self.trickle.reset(now, &self.config, random);
        }
        paths_changed || before != after
    }

    /// The rank or the ETX is no longer what nodes below have heard.
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

    /// The link layer has sent a frame to a neighbour that many times, and the neighbour has
    /// acknowledged it or not. True if [`Router::handle_link_change`] is to be called. A frame that
    /// found no free channel says nothing of the link.
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

    /// The quality of a link has changed: another parent may be better.
    pub fn handle_link_change(&mut self, now: Instant, random: u32) {
        self.choose(now, random);
    }

    /// The link to that neighbour is a cable, whose ETX is 1.
    pub fn set_reliable(&mut self, neighbour: ShortAddress) {
        self.neighbours.entry(neighbour).reliable = true;
    }

    /// ETX of one of the node's own paths in units of 1/128 (RFC 6551 section 4.3.2): its first
    /// link's as measured, and the rest as the parent has said.
    pub fn etx(&self, path: &OwnPath) -> u16 {
        path.first_hop().map_or(0, |first| path.beyond_etx.saturating_add(self.neighbours.etx(first)))
    }

    /// ETX of the link to a neighbour, in units of 1/128; an assumption as long as nothing was sent
    /// over it.
    pub fn link_etx(&self, neighbour: ShortAddress) -> u16 {
        self.neighbours.etx(neighbour)
    }

    /// A neighbour announces a rank. Paths through it take it over; those that the node must not
    /// keep are dropped. True if the parent set or the node's rank has changed.
    fn parent_rank(&mut self, now: Instant, from: ShortAddress, rank: u16, step: u16, random: u32) -> bool {
        let before = self.offers.rank();
        let mut gone = self.offers.set_parent_rank(from, rank, step);
        if self.offers.rank().is_some_and(|rank| rank > self.highest_rank()) {
            gone.append(&mut self.offers.clear());
        }
        let changed = !gone.is_empty() || self.offers.rank() != before;
        if changed {
            if self.offers.paths().is_empty() {
                // RFC 6550 section 8.2.2.5: the node poisons what rests on it.
                self.withdraw(now, &[self.address]);
            }
            self.lost(now, gone, random);
            self.trickle.reset(now, &self.config, random);
        }
        changed
    }

    /// L + DAGMaxRankIncrease.
    fn highest_rank(&self) -> u16 {
        match self.lowest_rank {
            Some(lowest) if self.config.max_rank_increase > 0 => {
                lowest.saturating_add(self.config.max_rank_increase).min(INFINITE_RANK - 1)
            }
            _ => INFINITE_RANK - 1,
        }
    }

    /// RFC 6550 section 8.3: a DIO of a lesser DAGRank that changes nothing is consistent. A node
    /// sends one for each of its paths at a time; together they count as one transmission.
    fn count_consistent(&mut self, now: Instant, from: ShortAddress, rank: u16) {
        if self.offers.rank().is_none_or(|own| self.config.dag_rank(rank) >= self.config.dag_rank(own)) {
            return;
        }
        // No node sends twice within Imin / 2.
        let least = self.config.interval_min / 2;
        let counted = &mut self.neighbours.entry(from).counted;
        if counted.is_none_or(|at| now.saturating_since(at) >= least) {
            *counted = Some(now);
            self.trickle.heard_consistent();
        }
    }

    /// A link upstream is broken, or a node there has forgotten what it had stored.
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

    /// Tells all neighbours, once.
    fn withdraw(&mut self, now: Instant, link: &[ShortAddress]) {
        self.heard.push((link.into(), now));
        let (node_type, path) = (self.kind, link.into());
        let dio = Dio { rank: INFINITE_RANK, node_type, multi_link: 0, path, metrics: None, etx: None };
        self.output.push_back(Output::Dio(dio));
    }

    /// A new path is told upstream after a while, so that a better one can take its place first.
    fn announce(&mut self, now: Instant, random: u32) {
        let delay = self.config.dao_delay;
        let wait = delay + delay.mul_ratio(u64::from(random >> 16), 1 << 16);
        for path in self.offers.paths_mut().iter_mut().filter(|p| p.is_new()) {
            path.tell_at(now + wait);
        }
    }

    /// A node downstream tells of a path of its own, which leads through here.
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

    /// A path of a node downstream is no more: who stored it forgets it, up to the root.
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

    /// A packet has come down from `from` for a path of `end` of which nothing is stored here: a
    /// No-Path DAO was lost, or this node has forgotten. `from` and those above it shall forget it
    /// too (RFC 6550 section 11.2.2.3).
    pub fn handle_stale_route(&mut self, from: ShortAddress, end: ShortAddress, path_id: u8) {
        let path = [end, self.address, from].into();
        let sequence = self.next_sequence();
        self.output
            .push_back(Output::Dao { to: from, dao: Dao { path_id, sequence, withdrawn: true, path } });
    }

    /// A packet of a path has passed upward, from the neighbour `down` to `up` (`None` at the
    /// root): that is where the path leads now, whatever was stored. So a path that lost its way at
    /// one node is whole again with the next packet.
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

    /// The root's answer to a DAO comes down the path.
    pub fn handle_dao_ack(&mut self, ack: &DaoAck) {
        if ack.source == self.address {
            self.offers.told(ack.path_id, ack.sequence);
        } else if let Some(route) = self.routes.get(ack.source, ack.path_id) {
            self.output.push_back(Output::DaoAck { to: route.down, ack: *ack });
        }
    }

    /// The link layer has found that a neighbour does not answer any more: every path through it is
    /// lost.
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

    /// A packet has come for a path of which nothing is stored here, as after a reboot.
    pub fn handle_missing_route(&mut self, now: Instant) {
        self.heard.retain(|(_, at)| now.saturating_since(*at) < REMEMBERED);
        let own = [self.address];
        if !self.heard.iter().any(|(l, _)| l[..] == own) {
            self.withdraw(now, &own);
        }
    }

    /// Paths of the node's own are gone. A node without any asks for others.
    fn lost(&mut self, now: Instant, gone: Vec<OwnPath>, random: u32) {
        if gone.is_empty() {
            return;
        }
        self.counters.lost += gone.len() as u64;
        gone.into_iter().for_each(|path| self.unstore(path));
        self.trickle.reset(now, &self.config, random);
        // Local repair: another neighbour that was heard before takes the place of the parent.
        self.choose(now, random);
        if self.offers.paths().is_empty() {
            (self.lowest_rank, self.announced) = (None, None);
            self.solicit.begin(now, &self.config, random);
        }
    }

    /// The nodes on a path that is not used any more may forget it.
    fn unstore(&mut self, path: OwnPath) {
        if let (true, Some(&to)) = (path.was_told(), path.nodes.get(1)) {
            let sequence = self.next_sequence();
            let dao = Dao { path_id: path.id, sequence, withdrawn: true, path: path.nodes };
            self.output.push_back(Output::Dao { to, dao });
        }
    }

    /// Nothing is known any more, as after a reboot.
    pub fn reset(&mut self, now: Instant, random: u32) {
        let mut neighbours = core::mem::take(&mut self.neighbours);
        neighbours.forget();
        *self = Self { neighbours, ..Self::new(self.config, self.address, self.kind, self.root) };
        self.start(now, random);
    }

    /// When [`Router::handle_timeout`] wants to be called.
    pub fn next_timeout(&self) -> Option<Instant> {
        let dao = self.offers.paths().iter().filter_map(|p| p.due).min();
        [self.trickle.next_timeout(), self.solicit.due(), self.probe, dao].into_iter().flatten().min()
    }

    /// Answers [`Router::next_timeout`].
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
            // The wait doubles, and is scattered so that neighbours do not collide again.
            let wait = self.config.dao_timeout * (1 << u32::from(path.tries - 1).min(6));
            path.due = Some(now + wait + wait.mul_ratio(u64::from(random & 0xffff), 1 << 18));
            if let Some(&to) = path.nodes.get(1) {
                let dao = Dao { path_id: path.id, sequence, withdrawn: false, path: path.nodes.clone() };
                self.counters.daos += 1;
                self.output.push_back(Output::Dao { to, dao });
            }
        }
        for id in unanswered {
            let gone = self.offers.drop_path(id);
            gone.iter().for_each(|path| self.candidates.forget(&path.nodes[1..]));
            self.lost(now, gone.into_iter().collect(), random);
        }
    }

    /// Tells all neighbours of each path.
    fn say_paths(&mut self) {
        if let (false, Some(rank)) = (self.root, self.offers.rank()) {
            self.lowest_rank = Some(self.lowest_rank.map_or(rank, |lowest| lowest.min(rank)));
            self.announced = self.offers.paths().first().map(|path| (rank, self.etx(path)));
        }
        for dio in self.dios() {
            self.output.push_back(Output::Dio(dio));
            self.counters.dios += 1;
        }
    }

    /// A DIO for each path; the root's is itself.
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

    /// OF0 and the paper's rule need no metric.
    fn said_etx(&self, etx: u16) -> Option<u16> {
        (self.config.objective == Objective::Mrhof).then_some(etx)
    }

    /// What the owner knows of the link to a neighbour. It may say so as often as that changes;
    /// nothing is sent for it.
    pub fn set_link(&mut self, neighbour: ShortAddress, metrics: Metrics) {
        self.neighbours.entry(neighbour).metrics = Some(metrics);
    }

    /// How good one of the node's own paths is, if that is known of every link on it: of the first
    /// as it is now, of the others as of the parent's last DIO.
    pub fn metrics(&self, path: &OwnPath) -> Option<Metrics> {
        let first = path.first_hop()?;
        Some(path.beyond?.and(self.neighbours.get(first)?.metrics?))
    }

    /// What is to be sent, until `None`.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.output.pop_front()
    }

    /// The node's own paths, best first. Those that the root has confirmed are ready for packets.
    pub fn paths(&self) -> &[OwnPath] {
        self.offers.paths()
    }

    /// Where a packet goes that travels between the root and `end` on the path `path_id` of `end`.
    /// 0 is the best that is known here, and stands for the one that is returned from then on,
    /// wherever that path is stored.
    pub fn next_hop(&self, end: ShortAddress, path_id: u8, upward: bool) -> Option<Hop> {
        if upward && end == self.address {
            let path = self.own_path(path_id)?;
            return Some(Hop { to: *path.nodes.get(1)?, path_id: path.id });
        }
        if upward && path_id == 0 {
            // Not a path of `end`: the next node decides anew.
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
            // Local repair: the packet keeps its number, and nodes further on remember where the
            // path leads now.
            return Some(Hop { to: path.first_hop()?, path_id: route.path_id });
        }
        Some(Hop { to: if upward { route.up? } else { route.down }, path_id: route.path_id })
    }

    /// The path of that number; for 0 the best whose first link works, a confirmed one before
    /// others.
    fn own_path(&self, id: u8) -> Option<&OwnPath> {
        if id != 0 {
            return self.offers.paths().iter().find(|p| p.id == id);
        }
        let works = |p: &&OwnPath| p.first_hop().is_some_and(|n| !self.neighbours.is_failing(n));
        let working = || self.offers.paths().iter().filter(works);
        working().find(|p| p.confirmed).or_else(|| working().next()).or(self.offers.paths().first())
    }

    /// What is stored for others.
    pub fn routes(&self) -> &[Route] {
        self.routes.all()
    }

    /// What was done so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn next_sequence(&mut self) -> u8 {
        self.sequence = self.sequence.wrapping_add(1);
        self.sequence
    }

    /// Not through here already, and no longer than allowed with this node in front.
    fn sensible(&self, path: &[ShortAddress]) -> bool {
        !path.contains(&self.address)
            && path.len() < usize::from(self.config.longest_path)
            && self.plausible(path)
    }

    /// No node twice.
    fn plausible(&self, path: &[ShortAddress]) -> bool {
        path.len() <= usize::from(self.config.longest_path)
            && path.iter().enumerate().all(|(i, n)| !path[..i].contains(n))
    }
}

/// A withdrawal that comes again so soon is the same one.
const REMEMBERED: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests;
