//! The interface of applications on a node.

use std::any::Any;
use std::fmt;

use anabranch_core::mptcp::{self, PathFacts, SubflowId};
use anabranch_core::paths::OwnPath;
use anabranch_core::segment::Segment;
use anabranch_core::set::Moments;
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

/// A program on a node. It is called for events and acts through its [`Ctx`]; it never blocks.
///
/// Its results are read after the run, or between two steps of it, with
/// [`crate::sim::Simulation::app`].
pub trait App: Any + Send {
    /// Called when the node is up at the start time, and again whenever the node recovers.
    fn start(&mut self, ctx: &mut Ctx<'_>);

    /// Called for an event of one of its connections.
    fn on_stream(&mut self, ctx: &mut Ctx<'_>, connection: ConnId, event: StreamEvent);

    /// Called when the node's paths to the root have changed: see [`Ctx::paths`].
    fn on_paths(&mut self, ctx: &mut Ctx<'_>) {
        let _ = ctx;
    }

    /// Called for a datagram from another node to a port of [`Ctx::bind`].
    fn on_datagram(&mut self, ctx: &mut Ctx<'_>, from: NodeId, from_port: u16, to_port: u16, payload: Bytes) {
        let _ = (ctx, from, from_port, to_port, payload);
    }

    /// Called for a TCP segment to a node of [`Ctx::take_segments`], with its source and that node.
    fn on_segment(&mut self, ctx: &mut Ctx<'_>, ends: (NodeId, NodeId), segment: Segment) {
        let _ = (ctx, ends, segment);
    }

    /// Called when the node's AODV router has news of its route to a node. TCP connections to that
    /// node have already been told that a route has broken or was not found.
    fn on_route(&mut self, ctx: &mut Ctx<'_>, to: NodeId, change: RouteChange) {
        let _ = (ctx, to, change);
    }

    /// Called when the timer of [`Ctx::set_timer`] expires.
    fn on_timer(&mut self, ctx: &mut Ctx<'_>) {
        let _ = ctx;
    }
}

/// Access of an application to its node.
///
/// Writes, reads and closes take effect on the wire when the application returns, all at the same
/// time. A command on a connection that is over does nothing, or returns an error.
#[derive(Debug)]
pub struct Ctx<'a> {
    world: &'a mut World,
    app: AppId,
    node: NodeId,
}

impl<'a> Ctx<'a> {
    /// The context of `app`.
    pub(crate) fn new(world: &'a mut World, app: AppId) -> Self {
        let node = world.apps[app.0 as usize].node;
        Self { world, app, node }
    }

    /// The simulated time.
    #[inline]
    pub fn now(&self) -> Instant {
        self.world.now()
    }

    /// The node on which the application runs.
    #[inline]
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// The node with this name.
    pub fn find_node(&self, name: &str) -> Option<NodeId> {
        self.world.network.find_node(name)
    }

    /// Opens a connection to a port of a node. [`StreamEvent::Opened`] or [`StreamEvent::Closed`]
    /// follows.
    pub fn connect(
        &mut self,
        node: NodeId,
        port: u16,
        config: impl Into<TransportConfig>,
    ) -> Result<ConnId, ConnectError> {
        self.connect_on(0, node, port, config)
    }

    /// As [`Ctx::connect`], over the path with this number. It is one of [`Ctx::paths`], to which
    /// only a multipath connection keeps, or a path that begins at an interface of the node
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

    /// Opens another subflow of a multipath connection over the path with this number. `tcp` is its
    /// configuration, if it differs from that of the connection.
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

    /// Gives a multipath connection the facts about the path of a subflow.
    pub fn set_path(&mut self, id: ConnId, subflow: SubflowId, facts: PathFacts) {
        if let Some(connection) = self.multipath_mut(id) {
            connection.set_path(subflow, facts);
        }
    }

    /// The multipath connection behind an id, for its statistics; `None` if it is not one.
    pub fn multipath(&self, id: ConnId) -> Option<&mptcp::Connection> {
        self.world.hosts[self.node.index()].peek(id)?.connection.multipath()
    }

    fn multipath_mut(&mut self, id: ConnId) -> Option<&mut mptcp::Connection> {
        self.world.hosts[self.node.index()].get(id)?.connection.multipath_mut()
    }

    /// Accepts connections on a port; each is announced by [`StreamEvent::Accepted`].
    pub fn listen(&mut self, port: u16, config: impl Into<TransportConfig>) -> Result<(), ListenError> {
        self.listen_with_backlog(port, config, BACKLOG)
    }

    /// As [`Ctx::listen`], with at most `backlog` half-open connections; further SYNs are ignored.
    pub fn listen_with_backlog(
        &mut self,
        port: u16,
        config: impl Into<TransportConfig>,
        backlog: u32,
    ) -> Result<(), ListenError> {
        self.world.hosts[self.node.index()].listen(self.app, port, config.into(), backlog)
    }

    /// Stops accepting connections on a port; open connections remain.
    pub fn unlisten(&mut self, port: u16) {
        self.world.hosts[self.node.index()].unlisten(port);
    }

    /// Receives the datagrams to a port; each is passed to [`App::on_datagram`].
    pub fn bind(&mut self, port: u16) -> Result<(), BindError> {
        self.world.hosts[self.node.index()].bind(self.app, port)
    }

    /// Stops receiving the datagrams to a port, if this application did.
    pub fn unbind(&mut self, port: u16) {
        self.world.hosts[self.node.index()].unbind(self.app, port);
    }

    /// Sends a datagram to a port of a node. It is sent immediately and without feedback. The
    /// source port need not be bound.
    ///
    /// # Errors
    ///
    /// If the datagram is too long, or there is no such node.
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

    /// Passes the TCP segments to a node to [`App::on_segment`] instead of the node's TCP, for an
    /// application with connections of its own. An application that is a host with several
    /// addresses takes the segments of several nodes. Connections that the node already has keep
    /// their segments.
    pub fn take_segments(&mut self, node: NodeId) {
        self.world.hosts[node.index()].taker = Some(self.app);
    }

    /// Sends a TCP segment from a node of [`Ctx::take_segments`] to another node.
    pub fn send_segment(&mut self, from: NodeId, to: NodeId, segment: Segment) {
        let now = self.world.now();
        self.world.network.send(now, Ends::new(from, to), segment);
    }

    /// Moves data from the front of `data` to the send buffer, as much as there is room for.
    /// Returns the number of bytes.
    pub fn write(&mut self, id: ConnId, data: &mut Bytes) -> Result<usize, WriteError> {
        let entry = self.world.hosts[self.node.index()].get(id).ok_or(WriteError::Closed)?;
        let written = entry.connection.write(data)?;
        self.world.touch(self.node, id);
        Ok(written)
    }

    /// Takes up to `max` bytes that have arrived in order; `None` when there are none.
    pub fn read(&mut self, id: ConnId, max: usize) -> Option<Bytes> {
        let read = self.world.hosts[self.node.index()].get(id)?.connection.read(max)?;
        self.world.touch(self.node, id);
        Some(read)
    }

    /// Closes the sending direction; the peer may continue to send.
    pub fn close(&mut self, id: ConnId) {
        let now = self.world.now();
        if let Some(entry) = self.world.hosts[self.node.index()].get(id) {
            entry.connection.close(now);
            self.world.touch(self.node, id);
        }
    }

    /// Drops all data and resets the connection.
    pub fn abort(&mut self, id: ConnId) {
        let now = self.world.now();
        if let Some(entry) = self.world.hosts[self.node.index()].get(id) {
            entry.connection.abort(now);
            self.world.touch(self.node, id);
        }
    }

    /// Changes the size of the receive buffer, in bytes.
    pub fn set_receive_buffer(&mut self, id: ConnId, octets: u32) {
        if let Some(entry) = self.world.hosts[self.node.index()].get(id) {
            entry.connection.set_receive_buffer(octets);
            self.world.touch(self.node, id);
        }
    }

    /// Changes the size of the send buffer, in bytes. If the node has a pool of send buffers, the
    /// size applies until its next decision.
    pub fn set_send_buffer(&mut self, id: ConnId, octets: u32) {
        if let Some(entry) = self.world.hosts[self.node.index()].get(id) {
            entry.connection.set_send_buffer(octets);
            self.world.touch(self.node, id);
        }
    }

    /// The node's own paths to the root that are ready for packets, best first; empty if the node
    /// does not build paths.
    pub fn paths(&self) -> impl Iterator<Item = &OwnPath> {
        self.world.network.own_paths(self.node).iter().filter(|path| path.confirmed)
    }

    /// Whether the node has paths of its own, or will have: it builds paths and is not their root.
    pub fn has_paths(&self) -> bool {
        let network = &self.world.network;
        network.has_router(self.node) && network.root() != Some(self.node)
    }

    /// The current facts about one of these paths, for segments with `payload` bytes: its length
    /// and, as far as every node on it knows its link, round-trip time and service time by sections
    /// V to VII of the paper.
    pub fn path_facts(&mut self, path: u8, payload: u16) -> PathFacts {
        let now = self.world.now();
        self.world.network.path_facts(now, self.node, path, payload.into())
    }

    /// Statistics of a connection; `None` when it is over.
    pub fn info(&self, id: ConnId) -> Option<Info> {
        self.world.info(self.node, id)
    }

    /// Peer of a connection, and the peer's port.
    pub fn peer(&self, id: ConnId) -> Option<(NodeId, u16)> {
        let entry = self.world.hosts[self.node.index()].peek(id)?;
        Some((entry.remote, entry.remote_port))
    }

    /// Sets the timer: [`App::on_timer`] is called at `deadline`, or immediately if that has
    /// passed. Each call replaces the previous deadline, and `None` cancels it.
    pub fn set_timer(&mut self, deadline: Option<Instant>) {
        self.world.set_app_timer(self.app, deadline);
    }

    /// The time at which the application was to start for the first time; it started later if its
    /// node was down.
    pub fn planned_start(&self) -> Instant {
        self.world.planned_start(self.app)
    }

    /// The random stream of `purpose` on this node. The same purpose gives the same numbers again,
    /// so call this once and keep the stream.
    pub fn stream(&self, purpose: &str) -> Stream {
        self.world.stream(&format!("app {}", self.world.network.node_name(self.node)), purpose)
    }

    /// Whether an observer wants to see the data written to connections.
    pub(crate) fn is_watched(&self) -> bool {
        self.world.network.watches_connections()
    }

    /// Shows a chunk to observers: `len` bytes from `offset` of a file, written to a connection
    /// after `written_at` bytes.
    pub(crate) fn show_chunk(&mut self, id: ConnId, written_at: u64, offset: u64, len: u32) {
        let (now, node) = (self.world.now(), self.node);
        if let Some(entry) = self.world.hosts[node.index()].peek(id) {
            let (peer, ports) = (entry.remote, (entry.local_port, entry.remote_port));
            let chunk = ChunkView { node, peer, ports, written_at, offset, len };
            self.world.network.watch_chunk(now, &chunk);
        }
    }

    /// Shows the phases of a finished SET transfer to `peer` to observers.
    pub(crate) fn show_phases(&mut self, peer: NodeId, moments: &Moments) {
        let (now, node) = (self.world.now(), self.node);
        self.world.network.watch_phases(now, node, peer, moments);
    }

    /// Writes a line to the trace, if there is one.
    pub fn trace(&mut self, text: fmt::Arguments<'_>) {
        let now = self.world.now();
        self.world.network.note(now, Some(self.node), text);
    }

    /// Declares that the application has finished, which ends probes that wait for it.
    pub fn finished(&mut self) {
        self.world.finished.push(self.app);
    }

    /// Ends the run after all work at this time.
    pub fn stop(&mut self) {
        self.world.stop = true;
    }
}
