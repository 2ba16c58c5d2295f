//! A run: built, then stepped through time on one thread.
//!
//! ```
//! use anabranch_core::tcp;
//! use anabranch_core::time::{Duration, Instant};
//! use anabranch_sim::apps::{BulkSender, BulkSenderConfig, Content, Sink};
//! use anabranch_sim::link::LinkConfig;
//! use anabranch_sim::network::{Forwarding, NetworkConfig};
//! use anabranch_sim::sim::Builder;
//!
//! let mut builder = Builder::new(NetworkConfig::default(), 1, 0);
//! let a = builder.node("a", Forwarding::Off);
//! let b = builder.node("b", Forwarding::Off);
//! builder.cable(a, b, LinkConfig::new(1_000_000, Duration::from_millis(10)));
//! let tcp = tcp::Config::default();
//! let sink = builder.app(b, Instant::ZERO, Sink::new(80, tcp));
//! let config = BulkSenderConfig::new(b, 80, Content::Pattern(10_000), tcp);
//! builder.app(a, Instant::ZERO, BulkSender::new(config));
//! let mut sim = builder.build();
//! sim.run_until_idle();
//! assert_eq!(sim.app::<Sink>(sink).bytes(), 10_000);
//! ```

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use anabranch_core::dtc;
use anabranch_core::paths::{self, NodeType};
use anabranch_core::sockbuf;
use anabranch_core::time::{Duration, Instant};
use anabranch_wire::ieee80211;
use anabranch_wire::ip::UdpDatagram;

use crate::app::{App, Ctx};
use crate::buffers::{Buffers, BuffersConfig};
use crate::event::{AppId, Event};
use crate::frames;
use crate::link::LinkConfig;
use crate::link::course::Course;
use crate::loss::LossModel;
use crate::network::{
    AdhocConfig, AodvConfig, AodvError, Datagram, Delivery, Forwarding, Network, NetworkConfig, RouteNews,
    WirelessConfig,
};
use crate::packet::{Injected, LinkId, NodeId, Packet};
use crate::probe::{Probe, Series};
use crate::radio::{ConfigError, Mover, Position, Radio, RadioConfig, Station};
use crate::random::Stream;
use crate::stream::ConnId;
use crate::trace::Observer;
use crate::wifi::{Wifi, WifiConfig};
use crate::world::{Failure, Notice, World};

/// A change of the network at a given time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Fault {
    /// A node fails.
    NodeFails(NodeId, Failure),
    /// A node starts again.
    NodeRecovers(NodeId),
    /// One direction of a link goes down.
    LinkDown(LinkId),
    /// One direction of a link comes up.
    LinkUp(LinkId),
    /// One direction of a link gets another rate, in bit/s.
    Rate(LinkId, u64),
    /// One direction of a cable gets another delay, for packets that have not left its transmitter.
    Delay(LinkId, Duration),
    /// One direction of a cable gets another loss model, for packets whose transmission has not
    /// begun.
    Loss(LinkId, LossModel),
    /// A jammer begins (true) or ends at a node. Until the last one ends, the node finds its
    /// channel busy, and receives no frame.
    Jam(NodeId, bool),
}

/// Reason why a run has paused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pause {
    /// The stop time is reached.
    Reached,
    /// Nothing is pending.
    Idle,
    /// An application has called [`Ctx::stop`].
    Stopped,
}

/// Builds a run.
pub struct Builder {
    world: World,
    apps: Vec<Option<Box<dyn App>>>,
    faults: Vec<Fault>,
    probes: Vec<Probe>,
    /// For nodes whose radio has not been added yet.
    movers: Vec<(NodeId, Mover)>,
    csl_periods: Vec<(NodeId, Duration)>,
    seed: u64,
    run: u64,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("world", &self.world).finish_non_exhaustive()
    }
}

impl Builder {
    /// An empty network, for one run of one seed.
    pub fn new(config: NetworkConfig, seed: u64, run: u64) -> Self {
        let world = World::new(Network::new(config), seed, run);
        let (apps, faults, probes, movers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { world, apps, faults, probes, movers, csl_periods: Vec::new(), seed, run }
    }

    /// Adds a node. Names should be unique: random streams are named after them.
    pub fn node(&mut self, name: &str, forwarding: Forwarding) -> NodeId {
        let node = self.world.network.add_node(name, forwarding);
        self.world.add_host(node);
        node
    }

    /// Adds one direction of a link.
    pub fn link(&mut self, from: NodeId, to: NodeId, config: LinkConfig) -> LinkId {
        let network = &self.world.network;
        let twins = network.links_between(from, to).count();
        let name = format!("link {}>{} {twins}", network.node_name(from), network.node_name(to));
        let stream = |purpose: &str| Stream::new(self.seed, self.run, &name, purpose);
        self.world.network.add_link(from, to, config, stream)
    }

    /// Makes one direction of a cable follow a course.
    pub fn follow(&mut self, link: LinkId, course: &Course) {
        self.world.network.link_mut(link).follow(course);
    }

    /// Adds both directions of a link with the same configuration: from `a` to `b`, then back.
    pub fn cable(&mut self, a: NodeId, b: NodeId, config: LinkConfig) -> (LinkId, LinkId) {
        (self.link(a, b, config), self.link(b, a, config))
    }

    /// Makes a node of the next radio move: its position there is that of the mover. Such a node
    /// has links to all others, over which packets arrive while both are in range. Static routes do
    /// not follow it, so it needs a router.
    pub fn mobile(&mut self, node: NodeId, mover: Mover) {
        self.movers.push((node, mover));
    }

    /// Sets the macCslPeriod of a node on the channel, zero if it never sleeps. Call it before
    /// [`Builder::radio`], whose configuration must have [`RadioConfig::csl`].
    pub fn csl_period(&mut self, node: NodeId, period: Duration) {
        self.csl_periods.push((node, period));
    }

    /// The moving stations of a radio with these nodes.
    fn take_movers(&mut self, nodes: &[NodeId]) -> Vec<(Station, Mover)> {
        let station = |node: NodeId| nodes.iter().position(|on_air| *on_air == node);
        let movers = std::mem::take(&mut self.movers).into_iter();
        movers.filter_map(|(node, mover)| Some((Station(station(node)? as u32), mover))).collect()
    }

    /// Puts nodes on an IEEE 802.15.4 channel at these positions, and adds a link for every
    /// direction in which one receives from another. The network must use IPv6 and have at most one
    /// radio, of either kind.
    ///
    /// # Errors
    ///
    /// If the configuration of the radio is invalid.
    pub fn radio(
        &mut self,
        config: RadioConfig,
        wireless: WirelessConfig,
        places: &[(NodeId, Position)],
    ) -> Result<(), ConfigError> {
        let positions: Vec<Position> = places.iter().map(|p| p.1).collect();
        let nodes: Vec<NodeId> = places.iter().map(|p| p.0).collect();
        let movers = self.take_movers(&nodes);
        let mut radio = {
            let network = &self.world.network;
            let stream = |station: Station, purpose: &str| {
                let name = format!("radio {}", network.node_name(nodes[station.0 as usize]));
                Stream::new(self.seed, self.run, &name, purpose)
            };
            Radio::with_movers(config, &positions, movers, stream)?
        };
        for (node, period) in std::mem::take(&mut self.csl_periods) {
            if let Some(station) = nodes.iter().position(|on_air| *on_air == node) {
                radio.set_csl_period(Station(station as u32), period)?;
            }
        }
        let hearers: Vec<Vec<Station>> =
            (0..nodes.len()).map(|i| radio.reachable(Station(i as u32)).collect()).collect();
        self.world.network.set_wireless(wireless, radio, nodes.clone());
        let link =
            LinkConfig { mtu: frames::MTU, ..LinkConfig::new(config.phy.bit_rate, config.phy.turnaround) };
        let link = Arc::new(link);
        for (from, hearers) in nodes.iter().zip(&hearers) {
            for hearer in hearers {
                self.world.network.add_wireless_link(*from, nodes[hearer.0 as usize], &link);
            }
        }
        Ok(())
    }

    /// Puts nodes on an IEEE 802.11 channel at these positions, and adds a link for every direction
    /// in which one receives from another. A network has at most one radio, of either kind.
    ///
    /// # Errors
    ///
    /// If the configuration of the channel is invalid.
    pub fn wifi(
        &mut self,
        config: WifiConfig,
        adhoc: AdhocConfig,
        places: &[(NodeId, Position)],
    ) -> Result<(), ConfigError> {
        let positions: Vec<Position> = places.iter().map(|p| p.1).collect();
        let nodes: Vec<NodeId> = places.iter().map(|p| p.0).collect();
        let movers = self.take_movers(&nodes);
        let wifi = {
            let network = &self.world.network;
            let stream = |station: Station, purpose: &str| {
                let name = format!("wifi {}", network.node_name(nodes[station.0 as usize]));
                Stream::new(self.seed, self.run, &name, purpose)
            };
            Wifi::with_movers(config, &positions, movers, stream)?
        };
        let hearers: Vec<Vec<Station>> =
            (0..nodes.len()).map(|i| wifi.reachable(Station(i as u32)).collect()).collect();
        self.world.network.set_adhoc(adhoc, wifi, config.propagation.loss, nodes.clone());
        let room = u32::from(config.phy.max_mpdu).saturating_sub(ieee80211::data_len(0) as u32);
        let link = LinkConfig {
            mtu: adhoc.mtu.min(room),
            ..LinkConfig::new(config.phy.data_rate.bit_per_s(), config.phy.slot)
        };
        let link = Arc::new(link);
        for (from, hearers) in nodes.iter().zip(&hearers) {
            for hearer in hearers {
                self.world.network.add_adhoc_link(*from, nodes[hearer.0 as usize], &link);
            }
        }
        Ok(())
    }

    /// Makes a node on an IEEE 802.11 channel use AODV.
    ///
    /// # Errors
    ///
    /// If the network does not use IPv4, or the node is not on the channel.
    pub fn aodv(&mut self, node: NodeId, config: impl Into<AodvConfig>) -> Result<(), AodvError> {
        let name = format!("node {}", self.world.network.node_name(node));
        let random = Stream::new(self.seed, self.run, &name, "aodv");
        self.world.network.set_aodv(node, config.into(), random)
    }

    /// The link over the air from one node to another, if the latter receives from the former.
    pub fn wireless_link(&self, from: NodeId, to: NodeId) -> Option<LinkId> {
        let network = &self.world.network;
        network.links_between(from, to).find(|link| network.link(*link).is_wireless())
    }

    /// Gives a node a router that builds paths ([`anabranch_core::paths`]). `None` makes it the
    /// root of the paths.
    pub fn router(&mut self, node: NodeId, config: paths::Config, kind: Option<NodeType>) {
        let name = format!("node {}", self.world.network.node_name(node));
        let random = Stream::new(self.seed, self.run, &name, "paths");
        self.world.network.set_router(node, config, kind, random);
    }

    /// Makes a node cache TCP segments of other nodes.
    pub fn caching(&mut self, node: NodeId, config: dtc::Config) {
        let name = format!("node {}", self.world.network.node_name(node));
        let random = Stream::new(self.seed, self.run, &name, "caching");
        self.world.network.set_caching(node, config, random);
    }

    /// Makes a node the edge to the outside: see [`Network::set_outside`].
    pub fn outside(&mut self, node: NodeId) {
        self.world.network.set_outside(node);
    }

    /// Adds an application to a node, to be started at `start`.
    pub fn app(&mut self, node: NodeId, start: Instant, app: impl App) -> AppId {
        let id = self.world.add_app(node, start);
        self.apps.push(Some(Box::new(app)));
        self.world.network.events.push(start, Event::Start(id));
        id
    }

    /// Plans a fault.
    pub fn fault(&mut self, at: Instant, fault: Fault) {
        let index = self.faults.len() as u32;
        self.faults.push(fault);
        self.world.network.events.push(at, Event::Fault(index));
    }

    /// Adds a probe.
    pub fn probe(&mut self, probe: Probe) {
        self.probes.push(probe);
    }

    /// Makes `at` send packets for `to` over `link`, whatever path is shortest.
    pub fn pin_route(&mut self, at: NodeId, to: NodeId, link: LinkId) {
        self.world.network.pin_route(at, to, link);
    }

    /// Makes `at` send packets for `to` with this path number over `link`, so that each path has
    /// its own interface. Set both directions where the paths diverge.
    pub fn pin_path(&mut self, at: NodeId, to: NodeId, path: u8, link: LinkId) {
        self.world.network.pin_path(at, to, path, link);
    }

    /// Limits the send buffers of a node's connections to a pool.
    ///
    /// # Errors
    ///
    /// If a value of the configuration is out of its range.
    pub fn buffers(&mut self, node: NodeId, config: BuffersConfig) -> Result<(), sockbuf::ConfigError> {
        let random = self.world.stream(&format!("buffers {}", self.world.network.node_name(node)), "reports");
        self.world.set_buffers(node, Buffers::new(config, random)?);
        Ok(())
    }

    /// Computes the routes and returns the simulation, ready to run.
    pub fn build(mut self) -> Simulation {
        self.world.network.start();
        let Self { mut world, apps, faults, mut probes, .. } = self;
        probes.iter_mut().for_each(|probe| probe.prepare(&mut world));
        let next_look = next_look(&probes);
        Simulation { world, apps, faults, probes, next_look }
    }
}

/// One run.
pub struct Simulation {
    world: World,
    /// `None` only while that application is being called.
    apps: Vec<Option<Box<dyn App>>>,
    faults: Vec<Fault>,
    probes: Vec<Probe>,
    /// Next time at which the window of a probe begins or ends.
    next_look: Instant,
}

/// Next time at which the window of one of the probes begins or ends.
fn next_look(probes: &[Probe]) -> Instant {
    probes.iter().filter_map(Probe::due).min().unwrap_or(Instant::FAR_FUTURE)
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation").field("world", &self.world).finish_non_exhaustive()
    }
}

impl Simulation {
    /// The simulated time: that of the last event, or where [`Simulation::run_until`] stopped.
    pub fn now(&self) -> Instant {
        self.world.now()
    }

    /// Network, hosts and their statistics.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Connections that were used since the last call, each once. Recording begins with the first
    /// call.
    pub fn take_touched(&mut self) -> Vec<(NodeId, crate::stream::ConnId)> {
        self.world.take_touched()
    }

    /// Number of events scheduled so far.
    pub fn events(&self) -> u64 {
        self.world.network.events.scheduled()
    }

    /// An application, for reading its results.
    ///
    /// # Panics
    ///
    /// If it is not a `T`.
    pub fn app<T: App>(&self, id: AppId) -> &T {
        let app: &dyn Any = self.apps[id.0 as usize].as_deref().expect("no application is being called");
        app.downcast_ref().expect("the application has the type that it was added with")
    }

    /// An application, for taking results out of it.
    ///
    /// # Panics
    ///
    /// If it is not a `T`.
    pub fn app_mut<T: App>(&mut self, id: AppId) -> &mut T {
        let app: &mut dyn Any =
            self.apps[id.0 as usize].as_deref_mut().expect("no application is being called");
        app.downcast_mut().expect("the application has the type that it was added with")
    }

    /// Adds an observer, which observes from now on.
    pub fn observe(&mut self, observer: impl Observer) {
        self.world.network.observe(Box::new(observer));
    }

    /// Takes out the first observer of type `T`. The others remain.
    pub fn take_observer<T: Observer>(&mut self) -> Option<T> {
        let observer: Box<dyn Any> = self.world.network.take_observer(|o| (o as &dyn Any).is::<T>())?;
        observer.downcast().ok().map(|o| *o)
    }

    /// Applies a fault now.
    pub fn inject(&mut self, fault: Fault) {
        self.apply(fault);
        self.settle();
    }

    /// Runs all events up to and including `stop`, unless an application stops the run earlier.
    pub fn run_until(&mut self, stop: Instant) -> Pause {
        while self.step_until(stop) {
            if std::mem::take(&mut self.world.stop) {
                return Pause::Stopped;
            }
        }
        self.look(stop);
        // The time then stays at the last event: see `now`.
        if self.world.network.events.is_empty() {
            return Pause::Idle;
        }
        self.world.advance(stop);
        Pause::Reached
    }

    /// Runs all events up to and including `stop` in parts, by calling `run`, which behaves like
    /// [`Simulation::run_until`]. A part is a ten-thousandth of the time, or a millisecond. The run
    /// ends early if an application stops it or nothing is pending. After each part `look` may end
    /// it with an error.
    ///
    /// # Errors
    ///
    /// That of `look`.
    pub fn run_in_parts<E>(
        &mut self,
        stop: Instant,
        mut run: impl FnMut(&mut Self, Instant) -> Pause,
        mut look: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let part = (stop.saturating_since(self.now()) / 10_000).max(Duration::from_millis(1));
        while self.now() < stop {
            let until = (self.now() + part).min(stop);
            let pause = run(self, until);
            look()?;
            if pause != Pause::Reached {
                break;
            }
        }
        Ok(())
    }

    /// The probes, in the order in which they were added.
    pub fn probes(&self) -> &[Probe] {
        &self.probes
    }

    /// A result of a probe; up to now, if its window has not ended.
    pub fn probed(&self, probe: &str, figure: &str) -> Option<f64> {
        let probe = self.probes.iter().find(|of| of.name == probe)?;
        let figures = probe.figures(self.now(), &self.world);
        figures.into_iter().find(|of| of.name == figure)?.value
    }

    /// A time series that a probe has recorded: see [`Simulation::keep_series`].
    pub fn probed_series(&self, probe: &str, series: &str) -> Option<Series> {
        let probe = self.probes.iter().find(|of| of.name == probe)?;
        probe.series(&self.world).into_iter().find(|of| of.name == series)
    }

    /// Makes a probe record time series, if its window has not begun. Every point takes memory.
    pub fn keep_series(&mut self, probe: &str) {
        self.probes.iter_mut().filter(|of| of.name == probe).for_each(Probe::keep_series);
    }

    /// Informs probes of the current time, before any event at this time.
    #[cold]
    fn look(&mut self, now: Instant) {
        while self.next_look <= now && self.next_look < Instant::FAR_FUTURE {
            let at = self.next_look;
            self.probes.iter_mut().for_each(|probe| probe.look(at, &mut self.world));
            self.next_look = next_look(&self.probes);
        }
    }

    #[cold]
    fn tell_probes(&mut self) {
        for app in std::mem::take(&mut self.world.finished) {
            self.probes.iter_mut().for_each(|probe| probe.finished(app, &mut self.world));
        }
        self.next_look = next_look(&self.probes);
    }

    /// Runs all events up to and including `now`, and sets the time to `now`, even if nothing is
    /// pending or an application stops the run. For a run that keeps pace with another clock.
    pub fn catch_up(&mut self, now: Instant) {
        while self.run_until(now) == Pause::Stopped {}
        self.world.advance(now);
    }

    /// Whether nothing is pending. Only a call from outside can then cause further events.
    pub fn is_idle(&self) -> bool {
        self.world.network.events.is_empty()
    }

    /// Time of the next event, which may turn out to be void; `None` if nothing is pending.
    pub fn next_event(&mut self) -> Option<Instant> {
        self.world.network.events.peek_time()
    }

    /// Sends a packet that was made outside: see [`Network::inject`].
    pub fn send_from_outside(&mut self, src: NodeId, packet: Injected) {
        let now = self.now();
        self.world.network.inject(now, src, packet);
    }

    /// Takes the first packet that has left the simulation: see [`Network::take_departed`].
    pub fn take_departed(&mut self) -> Option<Packet> {
        self.world.network.take_departed()
    }

    /// Runs until nothing is pending, unless an application stops the run earlier.
    pub fn run_until_idle(&mut self) -> Pause {
        self.run_until(Instant::FAR_FUTURE)
    }

    /// Runs one event. Returns false if none is pending.
    pub fn step(&mut self) -> bool {
        self.step_until(Instant::FAR_FUTURE)
    }

    #[inline]
    fn step_until(&mut self, stop: Instant) -> bool {
        let Some((now, event)) = self.world.network.events.pop_until(stop) else { return false };
        if now >= self.next_look {
            self.look(now);
        }
        self.world.advance(now);
        match event {
            Event::Arrival { link, generation } => self.world.handle_arrival(link, generation),
            Event::Connection { node, slot, generation } => {
                self.world.handle_connection_timer(node, ConnId { slot, generation });
            }
            Event::Start(app) => {
                self.world.apps[app.0 as usize].started = true;
                self.call(app, |app, ctx| app.start(ctx));
            }
            Event::Timer(app) => {
                if self.world.app_timer_is_due(app) {
                    self.call(app, |app, ctx| app.on_timer(ctx));
                }
            }
            Event::Fault(index) => self.apply(self.faults[index as usize]),
            Event::Converged => self.world.network.handle_converged(now),
            Event::Late(slot) => self.world.handle_late(slot),
            Event::Medium { medium, station, what, generation } => {
                self.world.network.handle_medium(now, medium, (station, what, generation));
            }
            Event::Hook { hook, at, what } => self.world.network.handle_hook(now, hook, at, what),
            Event::Buffers(node) => self.world.handle_buffers_timer(node),
            Event::Reports(node) => self.world.sample_links(node),
            Event::Departure(link) => self.world.network.handle_departure(now, link),
        }
        self.settle();
        true
    }

    /// Delivers notices and looks after connections until there is nothing left to do at this time.
    #[inline]
    fn settle(&mut self) {
        // Most events are packets in flight, after which there is nothing to do.
        if self.world.notices.is_empty()
            && self.world.taken.is_empty()
            && !self.world.has_dirty()
            && self.world.network.is_quiet()
        {
            return;
        }
        self.settle_all();
    }

    fn settle_all(&mut self) {
        loop {
            while let Some(Notice { app, id, event }) = self.world.notices.pop_front() {
                let (now, node) = (self.world.now(), self.world.apps[app.0 as usize].node);
                self.world.network.watch_stream(now, node, id, event);
                self.call(app, |app, ctx| app.on_stream(ctx, id, event));
            }
            while let Some((app, Delivery { node, src, path: _, segment })) = self.world.taken.pop_front() {
                self.call(app, |app, ctx| app.on_segment(ctx, (src, node), segment));
            }
            self.tell_of_paths();
            self.tell_of_routes();
            self.hand_out_datagrams();
            self.world.take_in();
            if self.world.has_dirty() {
                self.world.look_after();
            } else if self.world.notices.is_empty()
                && self.world.taken.is_empty()
                && !self.world.network.has_news_for_applications()
            {
                return;
            }
        }
    }

    /// Informs applications on nodes whose paths have changed.
    fn tell_of_paths(&mut self) {
        while let Some(node) = self.world.network.take_path_news() {
            for i in 0..self.apps.len() {
                if self.world.apps[i].node == node && self.world.apps[i].started {
                    self.call(AppId(i as u32), |app, ctx| app.on_paths(ctx));
                }
            }
        }
    }

    /// Informs connections and applications of route changes of their nodes.
    #[inline]
    fn tell_of_routes(&mut self) {
        while let Some(RouteNews { node, to, change }) = self.world.network.take_route_news() {
            self.world.handle_route_change(node, to, change);
            for i in 0..self.apps.len() {
                if self.world.apps[i].node == node && self.world.apps[i].started {
                    self.call(AppId(i as u32), |app, ctx| app.on_route(ctx, to, change));
                }
            }
        }
    }

    #[inline]
    fn hand_out_datagrams(&mut self) {
        while let Some(Datagram { node, src, datagram }) = self.world.network.take_datagram() {
            match self.world.listener_of(node, datagram.dst_port) {
                Some(app) => {
                    self.world.network.count_datagram(node);
                    let UdpDatagram { src_port, dst_port, payload } = datagram;
                    self.call(app, |app, ctx| app.on_datagram(ctx, src, src_port, dst_port, payload));
                }
                None => self.world.network.refuse_datagram(self.world.now(), node, src, datagram),
            }
        }
    }

    #[inline]
    fn call(&mut self, id: AppId, f: impl FnOnce(&mut dyn App, &mut Ctx<'_>)) {
        if !self.world.network.is_up(self.world.apps[id.0 as usize].node) {
            return;
        }
        let mut app = self.apps[id.0 as usize].take().expect("an application is not called from itself");
        f(&mut *app, &mut Ctx::new(&mut self.world, id));
        self.apps[id.0 as usize] = Some(app);
        if !self.world.finished.is_empty() {
            self.tell_probes();
        }
    }

    fn apply(&mut self, fault: Fault) {
        let now = self.world.now();
        match fault {
            Fault::NodeFails(node, failure) => self.world.fail_node(node, failure),
            Fault::NodeRecovers(node) => self.world.recover_node(node),
            Fault::LinkDown(link) => self.world.network.link_down(now, link),
            Fault::LinkUp(link) => self.world.network.link_up(now, link),
            Fault::Rate(link, rate) => self.world.network.set_rate(now, link, rate),
            Fault::Delay(link, delay) => self.world.network.set_delay(now, link, delay),
            Fault::Loss(link, loss) => self.world.set_loss(link, loss),
            Fault::Jam(node, begins) => self.world.network.jam(now, node, begins),
        }
    }
}
