//! What an application on a node is and may do.

use std::any::Any;
use std::fmt;

use anabranch_core::mptcp::{self, PathFacts, SubflowId};
use anabranch_core::paths::OwnPath;
use anabranch_core::tcp::{self, Info, WriteError};
use anabranch_core::time::Instant;
use anabranch_wire::ip::UdpDatagram;
use bytes::Bytes;

use crate::event::AppId;
use crate::host::{BACKLOG, BindError, ConnectError, DatagramError, ListenError, MAX_DATAGRAM};
use crate::network::RouteChange;
use crate::packet::{Ends, NodeId};
use crate::random::Stream;
use crate::stream::{ConnId, StreamEvent};
use crate::trace::ChunkView;
use crate::transport::TransportConfig;
use crate::world::World;

/// A program on a node. It is called when something happens and acts through its [`Ctx`]; it never
/// waits.
///
/// What it has found out is read after the run, or between two steps of it, with
/// [`crate::sim::Simulation::app`].
pub trait App: Any + Send {
    /// The node is up: once at its start time, and again whenever the node recovers.
    fn start(&mut self, ctx: &mut Ctx<'_>);

    /// Something has happened to one of its connections.
    fn on_stream(&mut self, ctx: &mut Ctx<'_>, connection: ConnId, event: StreamEvent);

    /// The node's paths to the root are others than before: see [`Ctx::paths`].
    fn on_paths(&mut self, ctx: &mut Ctx<'_>) {
        let _ = ctx;
    }

    /// A datagram has come to a port of [`Ctx::bind`], from a port of another node.
    fn on_datagram(&mut self, ctx: &mut Ctx<'_>, from: NodeId, from_port: u16, to_port: u16, payload: Bytes) {
        let _ = (ctx, from, from_port, to_port, payload);
    }

    /// The node's AODV router has learned something of its way to a node. TCP connections there
    /// have been told that a route has broken or was not found.
    fn on_route(&mut self, ctx: &mut Ctx<'_>, to: NodeId, change: RouteChange) {
        let _ = (ctx, to, change);
    }

    /// The timer that [`Ctx::set_timer`] set has run out.
    fn on_timer(&mut self, ctx: &mut Ctx<'_>) {
        let _ = ctx;
    }
}

/// An application's hands: its node, as it may touch it.
///
/// Writes, reads and closes take effect on the wire when the application returns, all at once. A
/// command on a connection that is over does nothing, or says so.
#[derive(Debug)]
pub struct Ctx<'a> {
    world: &'a mut World,
    app: AppId,
    node: NodeId,
}

impl<'a> Ctx<'a> {
    /// The hands of `app`.
    pub(crate) fn new(world: &'a mut World, app: AppId) -> Self {
        let node = world.apps[app.0 as usize].node;
        Self { world, app, node }
    }

    /// The time.
    #[inline]
    pub fn now(&self) -> Instant {
        self.world.now()
    }

    /// The node on which the application runs.
    #[inline]
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// The node of that name.
    pub fn find_node(&self, name: &str) -> Option<NodeId> {
        self.world.network.find_node(name)
    }

    /// Opens a connection to a port of a node; [`StreamEvent::Opened`] or [`StreamEvent::Closed`]
    /// follows.
    pub fn connect(
        &mut self,
        node: NodeId,
        port: u16,
        config: impl Into<TransportConfig>,
    ) -> Result<ConnId, ConnectError> {
        self.connect_on(0, node, port, config)
    }

    /// As [`Ctx::connect`], over the path of that number: one of [`Ctx::paths`], which only a
    /// multipath connection keeps to, or one that begins at an interface of the node
    /// ([`crate::sim::Builder::pin_path`]).
    pub fn connect_on(
        &mut self,
        path: u8,
        node: NodeId,
        port: u16,
        config: impl Into<TransportConfig>,
    ) -> Result<ConnId, ConnectError> {
        let now = self.world.now();
        let to = (node, port);
        let id = self.world.hosts[self.node.index()].connect(now, self.app, to, config.into(), path)?;
        if let Err(error) = self.world.open_buffer(self.node, id) {
            self.world.hosts[self.node.index()].remove(id.slot);
            return Err(error.into());
        }
        self.world.touch(self.node, id);
        Ok(id)
    }

    /// Opens a further subflow of a multipath connection, over the path of that number; `tcp` is
    /// how it behaves, if not as the connection.
    pub fn join(
        &mut self,
        id: ConnId,
        path: u8,
        tcp: Option<tcp::Config>,
    ) -> Result<SubflowId, ConnectError> {
        let now = self.world.now();
        let subflow = self.world.hosts[self.node.index()].join(now, id, path, tcp)?;
        self.world.touch(self.node, id);
        Ok(subflow)
    }

    /// Closes a subflow of a multipath connection, as long as there is another.
    pub fn close_subflow(&mut self, id: ConnId, subflow: SubflowId) {
        let now = self.world.now();
        if let Some(connection) = self.multipath_mut(id) {
            connection.close_subflow(now, subflow);
            self.world.touch(self.node, id);
        }
    }

    /// Tells a multipath connection what is known of the path of a subflow.
    pub fn set_path(&mut self, id: ConnId, subflow: SubflowId, facts: PathFacts) {
        if let Some(connection) = self.multipath_mut(id) {
            connection.set_path(subflow, facts);
        }
    }

    /// A connection as a multipath connection, if it is one, for its figures.
    pub fn multipath(&self, id: ConnId) -> Option<&mptcp::Connection> {
        self.world.hosts[self.node.index()].peek(id)?.connection.multipath()
    }

    fn multipath_mut(&mut self, id: ConnId) -> Option<&mut mptcp::Connection> {
        self.world.hosts[self.node.index()].get(id)?.connection.multipath_mut()
    }

    /// Accepts connections to a port; each is announced by [`StreamEvent::Accepted`].
    pub fn listen(&mut self, port: u16, config: impl Into<TransportConfig>) -> Result<(), ListenError> {
        self.listen_with_backlog(port, config, BACKLOG)
    }

    /// As [`Ctx::listen`], with at most `backlog` connections half open; further SYNs are ignored.
    pub fn listen_with_backlog(
        &mut self,
        port: u16,
        config: impl Into<TransportConfig>,
        backlog: u32,
    ) -> Result<(), ListenError> {
        self.world.hosts[self.node.index()].listen(self.app, port, config.into(), backlog)
    }

    /// Accepts no more connections to a port; those that are open stay.
    pub fn unlisten(&mut self, port: u16) {
        self.world.hosts[self.node.index()].unlisten(port);
    }

    /// Takes the datagrams to a port; each comes as [`App::on_datagram`].
    pub fn bind(&mut self, port: u16) -> Result<(), BindError> {
        self.world.hosts[self.node.index()].bind(self.app, port)
    }

    /// Takes the datagrams to a port no longer, if it was this application that did.
    pub fn unbind(&mut self, port: u16) {
        self.world.hosts[self.node.index()].unbind(self.app, port);
    }

    /// Sends a datagram to a port of a node. It leaves at once, and nobody says what becomes of it.
    /// The port that it is from need not be bound.
    ///
    /// # Errors
    ///
    /// It is too long, or there is no such node.
    pub fn send_datagram(
        &mut self,
        to: NodeId,
        from_port: u16,
        to_port: u16,
        payload: Bytes,
    ) -> Result<(), DatagramError> {
        let octets = payload.len();
        if octets > MAX_DATAGRAM {
            return Err(DatagramError::TooLong { octets, most: MAX_DATAGRAM });
        }
        if to.index() >= self.world.network.node_count() {
            return Err(DatagramError::NoSuchNode(to));
        }
        let now = self.world.now();
        let datagram = UdpDatagram { src_port: from_port, dst_port: to_port, payload };
        self.world.network.send_datagram(now, Ends::new(self.node, to), datagram);
        Ok(())
    }

    /// Takes from the front of `data` what the send buffer has room for; returns how many octets.
    pub fn write(&mut self, id: ConnId, data: &mut Bytes) -> Result<usize, WriteError> {
        let entry = self.world.hosts[self.node.index()].get(id).ok_or(WriteError::Closed)?;
        let written = entry.connection.write(data)?;
        self.world.touch(self.node, id);
        Ok(written)
    }

    /// Takes up to `max` octets that have arrived in order; `None` when there are none.
    pub fn read(&mut self, id: ConnId, max: usize) -> Option<Bytes> {
        let read = self.world.hosts[self.node.index()].get(id)?.connection.read(max)?;
        self.world.touch(self.node, id);
        Some(read)
    }

    /// Nothing more will be written; the peer may go on.
    pub fn close(&mut self, id: ConnId) {
        let now = self.world.now();
        if let Some(entry) = self.world.hosts[self.node.index()].get(id) {
            entry.connection.close(now);
            self.world.touch(self.node, id);
        }
    }

    /// Drops everything and resets the peer.
    pub fn abort(&mut self, id: ConnId) {
        let now = self.world.now();
        if let Some(entry) = self.world.hosts[self.node.index()].get(id) {
            entry.connection.abort(now);
            self.world.touch(self.node, id);
        }
    }

    /// Changes how many octets the receiver holds for us.
    pub fn set_receive_buffer(&mut self, id: ConnId, octets: u32) {
        if let Some(entry) = self.world.hosts[self.node.index()].get(id) {
            entry.connection.set_receive_buffer(octets);
            self.world.touch(self.node, id);
        }
    }

    /// Changes how many octets are kept until they are acknowledged. Of a node whose send buffers
    /// are kept within a pool this lasts until the next decision.
    pub fn set_send_buffer(&mut self, id: ConnId, octets: u32) {
        if let Some(entry) = self.world.hosts[self.node.index()].get(id) {
            entry.connection.set_send_buffer(octets);
            self.world.touch(self.node, id);
        }
    }

    /// The node's own paths to the root that are ready for packets, best first; none where nobody
    /// builds paths.
    pub fn paths(&self) -> impl Iterator<Item = &OwnPath> {
        self.world.network.own_paths(self.node).iter().filter(|path| path.confirmed)
    }

    /// The node has paths of its own, or will have: it builds them, and is not the root, to which
    /// they lead.
    pub fn has_paths(&self) -> bool {
        let network = &self.world.network;
        network.has_router(self.node) && network.root() != Some(self.node)
    }

    /// What is known now of one of these paths, for segments with so many octets of payload: its
    /// length; and, as far as every node on it knows its link, round-trip time and service time by
    /// sections V to VII of the paper.
    pub fn path_facts(&mut self, path: u8, payload: u16) -> PathFacts {
        let now = self.world.now();
        self.world.network.path_facts(now, self.node, path, payload.into())
    }

    /// A connection's figures; `None` when it is gone.
    pub fn info(&self, id: ConnId) -> Option<Info> {
        self.world.info(self.node, id)
    }

    /// A connection's peer and the peer's port.
    pub fn peer(&self, id: ConnId) -> Option<(NodeId, u16)> {
        let entry = self.world.hosts[self.node.index()].peek(id)?;
        Some((entry.remote, entry.remote_port))
    }

    /// Has [`App::on_timer`] called at `deadline`, or at once if that is past; each call replaces
    /// the deadline before, and `None` takes it back.
    pub fn set_timer(&mut self, deadline: Option<Instant>) {
        self.world.set_app_timer(self.app, deadline);
    }

    /// When the application was to start for the first time, which it did later if its node was
    /// down.
    pub fn planned_start(&self) -> Instant {
        self.world.planned_start(self.app)
    }

    /// The random stream of `purpose` on this node. The same purpose gives the same numbers again,
    /// so ask once and keep it.
    pub fn stream(&self, purpose: &str) -> Stream {
        self.world.stream(&format!("app {}", self.world.network.node_name(self.node)), purpose)
    }

    /// Somebody wants to see what is written to connections.
    pub(crate) fn is_watched(&self) -> bool {
        self.world.network.watches_connections()
    }

    /// Shows `len` octets from `offset` of a file, written to a connection behind `written_at`
    /// octets.
    pub(crate) fn show_chunk(&mut self, id: ConnId, written_at: u64, offset: u64, len: u32) {
        let (now, node) = (self.world.now(), self.node);
        if let Some(entry) = self.world.hosts[node.index()].peek(id) {
            let (peer, ports) = (entry.remote, (entry.local_port, entry.remote_port));
            let chunk = ChunkView { node, peer, ports, written_at, offset, len };
            self.world.network.watch_chunk(now, &chunk);
        }
    }

    /// Writes a line to the trace, if there is one.
    pub fn trace(&mut self, text: fmt::Arguments<'_>) {
        let now = self.world.now();
        self.world.network.note(now, Some(self.node), text);
    }

    /// What the application is for is done: probes that measure until then end.
    pub fn finished(&mut self) {
        self.world.finished.push(self.app);
    }

    /// Ends the run after this instant's work: what it was for is done.
    pub fn stop(&mut self) {
        self.world.stop = true;
    }
}
