//! Operation of a node's pool of send buffers when connections begin, change and end.

use anabranch_core::mptcp;
use anabranch_core::sockbuf::{ConnectionId, FlowView, Kind, OpenError, View};
use anabranch_core::tcp;
use anabranch_core::time::Instant;

use super::World;
use crate::buffers::{Buffer, Buffers, Reports};
use crate::event::Event;
use crate::network::Network;
use crate::packet::{LinkId, NodeId};
use crate::stream::ConnId;
use crate::transport::Transport;

/// The tuner's view of a connection.
struct Seen {
    id: ConnectionId,
    occupied: u64,
    acknowledged: u64,
    flows: Vec<FlowView>,
}

impl Seen {
    fn view(&self) -> View<'_> {
        let Self { id, occupied, acknowledged, ref flows } = *self;
        View { id, occupied, acknowledged, flows }
    }
}

impl World {
    /// The pool of a node's send buffers, if it has one.
    pub fn buffers(&self, node: NodeId) -> Option<&Buffers> {
        self.buffers.get(node.index())?.as_deref()
    }

    pub(crate) fn set_buffers(&mut self, node: NodeId, buffers: Buffers) {
        self.buffers[node.index()] = Some(Box::new(buffers));
    }

    /// Gives a new connection its share of the pool, before it can hold data.
    ///
    /// # Errors
    ///
    /// If there is no room for one segment.
    pub(crate) fn open_buffer(&mut self, node: NodeId, connection: ConnId) -> Result<(), OpenError> {
        self.with_buffers(node, |world, buffers| {
            if buffers.find(connection).is_some() {
                return Ok(());
            }
            world.tell_all(node, buffers);
            let Some(entry) = world.hosts[node.index()].peek(connection) else { return Ok(()) };
            let (kind, mss) = match &entry.connection {
                Transport::Tcp(tcp) => (Kind::Single, tcp.info().mss),
                Transport::Multipath(_) => (Kind::Striped, entry.connection.info().mss),
            };
            let id = ConnectionId(buffers.opened);
            buffers.opened += 1;
            buffers.known.insert(id, Buffer { connection, limit: 0, held: 0, seen: 0 });
            if let Err(error) = buffers.tuner.open(id, kind, mss.into()) {
                buffers.known.remove(&id);
                buffers.metrics.refused += 1;
                return Err(error);
            }
            if let Some(entry) = world.hosts[node.index()].get(connection) {
                entry.connection.set_send_buffer(0);
            }
            world.carry_out(node, buffers);
            if matches!(buffers.config.reports, Reports::Sampled(_)) && !buffers.samples_due {
                buffers.samples_due = true;
                world.network.events.push(world.now(), Event::Reports(node));
            }
            Ok(())
        })
        .unwrap_or(Ok(()))
    }

    /// Releases the buffer of a connection that is over.
    pub(crate) fn close_buffer(&mut self, node: NodeId, connection: ConnId) {
        self.with_buffers(node, |world, buffers| {
            if let Some(id) = buffers.find(connection) {
                world.release_buffer(node, buffers, id);
            }
        });
    }

    fn release_buffer(&mut self, node: NodeId, buffers: &mut Buffers, id: ConnectionId) {
        if let Some(buffer) = buffers.known.remove(&id) {
            buffers.held -= buffer.held;
            buffers.limits -= buffer.limit;
        }
        buffers.tuner.close(id);
        self.carry_out(node, buffers);
    }

    /// Releases the buffers of all connections of a node.
    pub(crate) fn close_all_buffers(&mut self, node: NodeId) {
        let known = |b: &Buffers| b.known.values().map(|b| b.connection).collect::<Vec<_>>();
        for connection in self.buffers(node).map(known).unwrap_or_default() {
            self.close_buffer(node, connection);
        }
    }

    /// Counts the buffer contents of a connection after an event, and redistributes memory that has
    /// drained.
    #[inline]
    pub(crate) fn look_at_buffer(&mut self, node: NodeId, connection: ConnId) {
        if self.buffers[node.index()].is_some() {
            self.count_buffer(node, connection);
        }
    }

    fn count_buffer(&mut self, node: NodeId, connection: ConnId) {
        let now = self.now();
        self.with_buffers(node, |world, buffers| {
            let Some(id) = buffers.find(connection) else { return };
            let Some(entry) = world.hosts[node.index()].peek(connection) else { return };
            if entry.connection.has_sent_all() {
                // In TIME-WAIT the connection would keep its share of the pool from others for
                // minutes.
                world.release_buffer(node, buffers, id);
                return;
            }
            let held = entry.connection.buffered();
            buffers.note(id, held);
            // A decision that is due at this time considers all connections anyway.
            let due = buffers.tuner.next_timeout().is_some_and(|due| due <= now);
            let passes_on = buffers.drains && !due && buffers.known.get(&id).is_some_and(|b| held < b.seen);
            if passes_on {
                let seen = see(id, &entry.connection, entry.path, |path| {
                    report(&world.network, world.now, buffers, path)
                });
                buffers.tuner.handle_views(now, &[seen.view()]);
                if let Some(buffer) = buffers.known.get_mut(&id) {
                    buffer.seen = held;
                }
                world.carry_out(node, buffers);
            }
        });
    }

    /// Link layers sample their rates, as long as there are connections.
    pub(crate) fn sample_links(&mut self, node: NodeId) {
        let now = self.now();
        self.with_buffers(node, |world, buffers| {
            buffers.samples_due = false;
            let Reports::Sampled(sampling) = buffers.config.reports else { return };
            if buffers.known.is_empty() {
                return;
            }
            for at in 0..buffers.config.interfaces.len() {
                let rate = rate(&world.network, world.now, buffers.config.interfaces[at].1);
                buffers.sample(now, at, rate, &sampling);
            }
            buffers.samples_due = true;
            world.network.events.push(now + sampling.period, Event::Reports(node));
        });
    }

    /// Handles a decision that may be due.
    pub(crate) fn handle_buffers_timer(&mut self, node: NodeId) {
        let now = self.now();
        self.with_buffers(node, |world, buffers| {
            if buffers.armed != Some(now) {
                return;
            }
            buffers.armed = None;
            if buffers.tuner.next_timeout().is_some_and(|due| due <= now) {
                world.tell_all(node, buffers);
            }
            world.carry_out(node, buffers);
        });
    }

    /// Tells the tuner the state of all connections; the tuner decides if it is time.
    fn tell_all(&mut self, node: NodeId, buffers: &mut Buffers) {
        let now = self.now();
        buffers.receive_samples(now);
        let host = &self.hosts[node.index()];
        let seen: Vec<Seen> = buffers
            .known
            .iter()
            .filter_map(|(id, buffer)| {
                let entry = host.peek(buffer.connection)?;
                let report = |path| report(&self.network, self.now, buffers, path);
                Some(see(*id, &entry.connection, entry.path, report))
            })
            .collect();
        for seen in &seen {
            buffers.note(seen.id, seen.occupied);
            if let Some(buffer) = buffers.known.get_mut(&seen.id) {
                buffer.seen = seen.occupied;
            }
        }
        let decisions = buffers.tuner.counters().decisions;
        let views: Vec<View<'_>> = seen.iter().map(Seen::view).collect();
        buffers.tuner.handle_views(now, &views);
        self.carry_out(node, buffers);
        if buffers.tuner.counters().decisions > decisions {
            buffers.remember(now);
        }
    }

    /// Carries out the tuner's assignments, and schedules its next call.
    fn carry_out(&mut self, node: NodeId, buffers: &mut Buffers) {
        while let Some(assignment) = buffers.tuner.poll_assignment() {
            let Some(buffer) = buffers.known.get_mut(&assignment.id) else { continue };
            buffers.limits = buffers.limits - buffer.limit + assignment.limit;
            buffer.limit = assignment.limit;
            buffers.metrics.peak_limits = buffers.metrics.peak_limits.max(buffers.limits);
            let connection = buffer.connection;
            if let Some(entry) = self.hosts[node.index()].get(connection) {
                entry.connection.set_send_buffer(u32::try_from(assignment.size()).unwrap_or(u32::MAX));
                self.touch(node, connection);
            }
        }
        buffers.drains = buffers.tuner.connections().iter().any(|c| c.limit != c.target);
        let Some(due) = buffers.tuner.next_timeout().map(|due| due.max(self.now())) else { return };
        if buffers.armed.is_none_or(|armed| due < armed) {
            buffers.armed = Some(due);
            self.network.events.push(due, Event::Buffers(node));
        }
    }

    /// Takes the pool out of the world while both are in use.
    fn with_buffers<R>(&mut self, node: NodeId, act: impl FnOnce(&mut Self, &mut Buffers) -> R) -> Option<R> {
        let mut buffers = self.buffers[node.index()].take()?;
        let result = act(self, &mut buffers);
        self.buffers[node.index()] = Some(buffers);
        Some(result)
    }
}

/// Report of the link layer at the interface where a path begins, in bit/s.
fn report(network: &Network, now: Instant, buffers: &Buffers, path: u8) -> Option<f64> {
    let at = buffers.config.interfaces.iter().position(|(number, _)| *number == path)?;
    match buffers.config.reports {
        Reports::Rate => Some(rate(network, now, buffers.config.interfaces[at].1)),
        Reports::Sampled(_) => buffers.known_rate(at),
        Reports::Nothing => None,
    }
}

/// Rate of a link in bit/s; 0 while it is down.
fn rate(network: &Network, now: Instant, link: LinkId) -> f64 {
    let link = network.link(link);
    if link.is_up() { link.rate(now) as f64 } else { 0.0 }
}

fn see(id: ConnectionId, connection: &Transport, path: u8, report: impl Fn(u8) -> Option<f64>) -> Seen {
    let flow = |path: u8, info: &tcp::Info| FlowView {
        interface: path.into(),
        bandwidth: report(path),
        rtt: info.recent_rtt,
        window: info.cwnd.into(),
        mss: info.mss.into(),
    };
    let (acknowledged, flows) = match connection {
        Transport::Tcp(tcp) => {
            let info = tcp.info();
            (info.bytes_acked, vec![flow(path, &info)])
        }
        Transport::Multipath(connection) => {
            let ready = |connection: &mptcp::Connection, id| {
                let info = connection.subflow_info(id).filter(|info| info.ready)?;
                Some(flow(info.path.0 as u8, &info.tcp))
            };
            let flows = connection.subflows().filter_map(|(id, _)| ready(connection, id)).collect();
            (connection.info().bytes_acked, flows)
        }
    };
    Seen { id, occupied: connection.buffered(), acknowledged, flows }
}
