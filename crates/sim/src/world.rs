//! The state of a run besides its applications: the network, the TCP hosts on its nodes, and the
//! time.
//!
//! An event leads to segments and time-outs of connections; a connection that was touched is
//! *dirty*. Events for applications become notices. The run loop delivers all notices, then looks
//! after all dirty connections (sends segments, sets time-outs, removes closed connections), and
//! repeats until neither is left. The reaction of an application to a notice is therefore part of
//! the acknowledgement that follows.

mod buffers;
mod watch;

use std::collections::VecDeque;
use std::fmt;

use anabranch_core::mptcp::{self, SubflowId};
use anabranch_core::segment::{Flags, Segment, SeqNumber};
use anabranch_core::tcp::{self, reset_for};
use anabranch_core::time::Instant;

use crate::buffers::Buffers;
use crate::event::{AppId, Event};
use crate::host::{Host, Origin, Stranger};
use crate::loss::LossModel;
use crate::network::{Delivery, LastWords, Network, RouteChange};
use crate::packet::{Ends, LinkId, NodeId};
use crate::random::Stream;
use crate::stream::{ConnId, StreamEvent};
use crate::transport::TransportEvent;

/// How a node fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Failure {
    /// The node loses everything that it has queued, and does not inform its peers.
    Silent,
    /// The node resets its connections, sends what it has queued, and then goes down.
    Reset,
}

/// An event for an application.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notice {
    pub(crate) app: AppId,
    pub(crate) id: ConnId,
    pub(crate) event: StreamEvent,
}

/// The world's state for an application.
#[derive(Debug)]
pub(crate) struct AppRecord {
    pub(crate) node: NodeId,
    start: Instant,
    /// Whether it was started; before that it receives no events.
    pub(crate) started: bool,
    deadline: Option<Instant>,
    armed: Option<Instant>,
}

/// Network, hosts and time of a run.
pub struct World {
    /// The network.
    pub network: Network,
    pub(crate) hosts: Vec<Host>,
    /// The pools of send buffers, by node.
    pub(crate) buffers: Vec<Option<Box<Buffers>>>,
    pub(crate) apps: Vec<AppRecord>,
    pub(crate) notices: VecDeque<Notice>,
    /// Segments for applications with a transport of their own.
    pub(crate) taken: VecDeque<(AppId, Delivery)>,
    dirty: Vec<(NodeId, ConnId)>,
    /// Connections that were looked after since [`World::take_touched`], if that is recorded.
    touched: Option<Vec<(NodeId, ConnId)>>,
    /// The list on which [`World::look_after`] works, kept for its memory.
    working: Vec<(NodeId, ConnId)>,
    now: Instant,
    pub(crate) stop: bool,
    /// Applications that have finished, until probes are informed.
    pub(crate) finished: Vec<AppId>,
    seed: u64,
    run: u64,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("now", &self.now)
            .field("network", &self.network)
            .finish_non_exhaustive()
    }
}

impl World {
    /// A world at time zero.
    pub(crate) fn new(network: Network, seed: u64, run: u64) -> Self {
        Self {
            network,
            hosts: Vec::new(),
            buffers: Vec::new(),
            apps: Vec::new(),
            notices: VecDeque::new(),
            taken: VecDeque::new(),
            dirty: Vec::new(),
            touched: None,
            working: Vec::new(),
            now: Instant::ZERO,
            stop: false,
            finished: Vec::new(),
            seed,
            run,
        }
    }

    /// The simulated time.
    #[inline]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The random stream with this name in this run.
    pub fn stream(&self, component: &str, purpose: &str) -> Stream {
        Stream::new(self.seed, self.run, component, purpose)
    }

    /// Changes the loss model of a cable: see [`Network::set_loss`].
    pub(crate) fn set_loss(&mut self, link: LinkId, loss: LossModel) {
        let (seed, run) = (self.seed, self.run);
        let stream = |component: &str, purpose: &str| Stream::new(seed, run, component, purpose);
        self.network.set_loss(self.now, link, loss, stream);
    }

    /// Statistics of a node's connection; `None` when it is over.
    pub fn info(&self, node: NodeId, id: ConnId) -> Option<tcp::Info> {
        Some(self.hosts[node.index()].peek(id)?.connection.info())
    }

    /// A node's connection as a multipath connection; `None` if it is not one, or is over.
    pub fn multipath(&self, node: NodeId, id: ConnId) -> Option<&mptcp::Connection> {
        self.hosts[node.index()].peek(id)?.connection.multipath()
    }

    /// All connections of a node.
    pub fn connections(&self, node: NodeId) -> impl Iterator<Item = ConnId> {
        self.hosts[node.index()].ids()
    }

    /// Number of a node's connections, including those that are closing.
    pub fn connection_count(&self, node: NodeId) -> usize {
        self.hosts[node.index()].len()
    }

    /// A late packet arrives.
    pub(crate) fn handle_late(&mut self, slot: u32) {
        if let Some(delivery) = self.network.handle_late(self.now, slot) {
            self.deliver(delivery);
        }
    }

    pub(crate) fn add_host(&mut self, node: NodeId) {
        let iss = self.stream(&format!("node {}", self.network.node_name(node)), "initial sequence numbers");
        self.hosts.push(Host::new(iss, self.network.config().ip));
        self.buffers.push(None);
    }

    pub(crate) fn add_app(&mut self, node: NodeId, start: Instant) -> AppId {
        self.apps.push(AppRecord { node, start, started: false, deadline: None, armed: None });
        AppId(self.apps.len() as u32 - 1)
    }

    #[inline]
    pub(crate) fn advance(&mut self, now: Instant) {
        self.now = now;
    }

    /// The first packet in a link's list arrives.
    #[inline]
    pub(crate) fn handle_arrival(&mut self, link: crate::packet::LinkId, generation: u32) {
        if let Some(delivery) = self.network.handle_arrival(self.now, link, generation) {
            self.deliver(delivery);
        }
    }

    /// Passes segments that have arrived over the air to the hosts.
    #[inline]
    pub(crate) fn take_in(&mut self) {
        while let Some(delivery) = self.network.take_delivered() {
            self.deliver(delivery);
        }
        while let Some(node) = self.network.take_exhausted() {
            self.network.note(self.now, Some(node), format_args!("has no energy left"));
            self.fail_node(node, Failure::Silent);
        }
    }

    /// Informs the connections of a node of a route change. A failed discovery has the same effect
    /// as a broken route.
    pub(crate) fn handle_route_change(&mut self, node: NodeId, to: NodeId, change: RouteChange) {
        if change == RouteChange::Found {
            return;
        }
        let ids: Vec<ConnId> = self.hosts[node.index()].towards(to).collect();
        for id in ids {
            if let Some(entry) = self.hosts[node.index()].get(id) {
                entry.connection.handle_route_failure(self.now);
                self.touch(node, id);
            }
        }
    }

    /// The application that receives the datagrams to a port of a node.
    pub(crate) fn listener_of(&self, node: NodeId, port: u16) -> Option<AppId> {
        self.hosts[node.index()].bound(port)
    }

    fn deliver(&mut self, delivery: Delivery) {
        let Delivery { node, src, path, segment } = delivery;
        let host = &mut self.hosts[node.index()];
        let Some((slot, subflow)) = host.find(src, &segment) else {
            return self.deliver_to_listener(node, (src, path), None, segment);
        };
        let id = host.id(slot);
        if segment.flags.contains(Flags::SYN)
            && let Some(least) = host.give_way(self.now, slot, &segment)
        {
            self.touch(node, id);
            return self.deliver_to_listener(node, (src, path), Some(least), segment);
        }
        let entry = host.get(id).expect("the table names connections that exist");
        entry.connection.handle_segment(self.now, SubflowId(subflow), segment);
        if !entry.dirty {
            entry.dirty = true;
            self.dirty.push((node, id));
        }
        self.collect(node, id);
    }

    #[cold]
    fn deliver_to_listener(
        &mut self,
        node: NodeId,
        (src, path): (NodeId, u8),
        least: Option<SeqNumber>,
        segment: Segment,
    ) {
        let host = &mut self.hosts[node.index()];
        if let Some(app) = host.taker {
            return self.taken.push_back((app, Delivery { node, src, path, segment }));
        }
        match host.handle_stranger(self.now, (src, path), least, segment) {
            Stranger::Accepted(slot) => {
                let id = host.id(slot);
                if self.open_buffer(node, id).is_err()
                    && let Some(entry) = self.hosts[node.index()].get(id)
                {
                    // Without memory for its buffer, the connection is reset.
                    entry.connection.abort(self.now);
                }
                self.touch(node, id);
            }
            Stranger::Unwanted(segment) => self.refuse(Ends { src: node, dst: src, path }, &segment),
            Stranger::Overloaded => {}
        }
    }

    fn refuse(&mut self, ends: Ends, segment: &Segment) {
        if let Some(reset) = reset_for(segment) {
            self.network.send(self.now, ends, reset);
        }
    }

    /// Handles a time-out event of a connection. It may be void, or early because the deadline has
    /// moved.
    pub(crate) fn handle_connection_timer(&mut self, node: NodeId, id: ConnId) {
        let now = self.now;
        let Some(entry) = self.hosts[node.index()].get(id) else { return };
        if entry.armed != Some(now) {
            return;
        }
        entry.armed = None;
        if entry.connection.next_timeout().is_some_and(|due| due <= now) {
            entry.connection.handle_timeout(now);
            self.collect(node, id);
        }
        self.touch(node, id);
    }

    /// Handles a timer event of an application; true if the timer is due.
    pub(crate) fn app_timer_is_due(&mut self, app: AppId) -> bool {
        let now = self.now;
        let record = &mut self.apps[app.0 as usize];
        if record.armed != Some(now) {
            return false;
        }
        record.armed = None;
        match record.deadline {
            Some(due) if due <= now => {
                record.deadline = None;
                true
            }
            later => {
                self.set_app_timer(app, later);
                false
            }
        }
    }

    /// Planned first start of an application.
    pub(crate) fn planned_start(&self, app: AppId) -> Instant {
        self.apps[app.0 as usize].start
    }

    pub(crate) fn set_app_timer(&mut self, app: AppId, deadline: Option<Instant>) {
        let record = &mut self.apps[app.0 as usize];
        record.deadline = deadline;
        let Some(due) = deadline.map(|d| d.max(self.now)) else { return };
        if due != Instant::FAR_FUTURE && record.armed.is_none_or(|armed| due < armed) {
            record.armed = Some(due);
            self.network.events.push(due, Event::Timer(app));
        }
    }

    /// Marks a connection as dirty.
    #[inline]
    pub(crate) fn touch(&mut self, node: NodeId, id: ConnId) {
        if let Some(entry) = self.hosts[node.index()].get(id)
            && !entry.dirty
        {
            entry.dirty = true;
            self.dirty.push((node, id));
        }
    }

    /// Whether there are dirty connections.
    #[inline]
    pub(crate) fn has_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Looks after all dirty connections, in the order in which they became dirty.
    pub(crate) fn look_after(&mut self) {
        // Swaps two vectors, so that connections can become dirty meanwhile and no memory is
        // allocated.
        let mut working = std::mem::replace(&mut self.dirty, std::mem::take(&mut self.working));
        for (node, id) in working.drain(..) {
            self.transmit(node, id);
            if self.network.watches_connections() {
                self.watch(node, id);
            }
            if self.touched.is_some() {
                self.note_touched(node, id);
            }
            let news = self.collect(node, id);
            self.look_at_buffer(node, id);
            self.rearm(node, id, news);
        }
        self.working = working;
    }

    /// Sends all segments of a connection.
    fn transmit(&mut self, node: NodeId, id: ConnId) {
        let Some(entry) = self.hosts[node.index()].get(id) else { return };
        entry.dirty = false;
        let remote = entry.remote;
        // Without interfaces, routers select paths, and TCP follows their choice.
        let own = if self.network.has_interfaces() { entry.path } else { 0 };
        while let Some((path, segment)) = entry.connection.poll_transmit(self.now) {
            let path = path.unwrap_or(own);
            self.network.send(self.now, Ends { src: node, dst: remote, path }, segment);
        }
    }

    /// Turns a connection's events into notices; returns true if there were any.
    fn collect(&mut self, node: NodeId, id: ConnId) -> bool {
        let host = &mut self.hosts[node.index()];
        let Some(entry) = host.get(id) else { return false };
        let (mut news, mut accepted) = (false, false);
        while let Some(event) = entry.connection.poll_event() {
            let app = entry.app;
            let event = match event {
                TransportEvent::Established if entry.origin == Origin::Ours => StreamEvent::Opened,
                TransportEvent::Established => {
                    accepted = true;
                    StreamEvent::Accepted { port: entry.local_port, peer: entry.remote }
                }
                TransportEvent::Readable => StreamEvent::Readable,
                TransportEvent::Writable => StreamEvent::Writable,
                TransportEvent::PeerClosed => StreamEvent::PeerClosed,
                TransportEvent::Closed(reason) => StreamEvent::Closed(reason),
                TransportEvent::Aside => continue,
            };
            news = true;
            self.notices.push_back(Notice { app, id, event });
        }
        if accepted {
            host.opened(id.slot);
        }
        news
    }

    /// Sets a connection's next time-out, or removes a connection that is over once all its events
    /// are delivered.
    fn rearm(&mut self, node: NodeId, id: ConnId, news: bool) {
        let now = self.now;
        let Some(entry) = self.hosts[node.index()].get(id) else { return };
        if entry.connection.is_over() {
            if news {
                self.touch(node, id);
            } else {
                self.close_buffer(node, id);
                self.hosts[node.index()].remove(id.slot);
            }
            return;
        }
        // An event is only added if it is earlier than the pending one: a deadline that moves
        // later, as after each ACK, costs no event.
        let Some(due) = entry.connection.next_timeout().map(|due| due.max(now)) else { return };
        if due != Instant::FAR_FUTURE && entry.armed.is_none_or(|armed| due < armed) {
            entry.armed = Some(due);
            let ConnId { slot, generation } = id;
            self.network.events.push(due, Event::Connection { node, slot, generation });
        }
    }

    /// Takes a node down. Its connections and listeners are lost; its applications are not
    /// informed.
    pub fn fail_node(&mut self, node: NodeId, failure: Failure) {
        if !self.network.is_up(node) {
            return;
        }
        self.network.note(self.now, Some(node), format_args!("fails: {failure:?}"));
        let last_words = match failure {
            Failure::Silent => LastWords::Lost,
            Failure::Reset => {
                let ids: Vec<_> = self.hosts[node.index()].ids().collect();
                for id in ids {
                    if let Some(entry) = self.hosts[node.index()].get(id) {
                        entry.connection.abort(self.now);
                    }
                    self.transmit(node, id);
                }
                LastWords::Sent
            }
        };
        // After the resets have been sent, since these need the connections.
        self.hosts[node.index()].clear();
        self.close_all_buffers(node);
        self.network.node_down(self.now, node, last_words);
        for i in 0..self.apps.len() {
            if self.apps[i].node == node {
                self.set_app_timer(AppId(i as u32), None);
            }
        }
        let apps = &self.apps;
        // Notices for applications of the node are of connections that no longer exist.
        self.notices.retain(|n| apps[n.app.0 as usize].node != node);
        self.taken.retain(|(app, _)| apps[app.0 as usize].node != node);
    }

    /// Starts a failed node again, without connections and listeners; its applications begin anew.
    pub fn recover_node(&mut self, node: NodeId) {
        if self.network.is_up(node) {
            return;
        }
        if self.network.is_exhausted(node) {
            self.network.note(self.now, Some(node), format_args!("has no energy to recover"));
            return;
        }
        self.network.note(self.now, Some(node), format_args!("recovers"));
        self.network.node_up(self.now, node);
        for i in 0..self.apps.len() {
            // An application whose start time has not come still has its start event pending.
            if self.apps[i].node == node && self.apps[i].start <= self.now {
                self.network.events.push(self.now, Event::Start(AppId(i as u32)));
            }
        }
    }
}
