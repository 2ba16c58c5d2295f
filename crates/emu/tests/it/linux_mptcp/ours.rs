//! Our end: a host with two addresses, each a simulated node, and one MPTCP connection. A middlebox
//! is in its path: it changes segments on their way in and out.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::mpsc::Sender;

use anabranch_core::mptcp::{Config, Connection, Event, Info, PathId, Secrets, SubflowId, join_token};
use anabranch_core::segment::{AddressId, Flags, Key, Segment, SeqNumber};
use anabranch_core::tcp::{self, CloseReason};
use anabranch_sim::address::{address_of, node_at};
use anabranch_sim::app::{App, Ctx};
use anabranch_sim::packet::{IpVersion, NodeId};
use anabranch_sim::stream::{ConnId, StreamEvent};
use anabranch_testkit::prng::Prng;
use bytes::Bytes;

use super::cell::{Deed, Opener};
use super::middlebox::{Middlebox, Way};
use super::{ANNOUNCED_PORT, KERNEL, OURS, PORT};

/// First local port of our subflows.
const FIRST_PORT: u16 = 50_000;

/// The result of our end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) received: Vec<u8>,
    pub(crate) closed: Option<CloseReason>,
    pub(crate) events: Vec<Event>,
    pub(crate) info: Info,
    /// Bytes that each subflow has received, beginning with the first.
    pub(crate) shares: Vec<u64>,
    /// Number of segments that the middlebox has changed.
    pub(crate) changed: u64,
    /// Number of resets that no connection sent.
    pub(crate) refused: u64,
}

/// A subflow's addresses: our node, the kernel's node, our port, the kernel's port.
type Tuple = (NodeId, NodeId, u16, u16);

/// Our end. It sends its result to `at_rest` when the connection is closed.
pub(crate) struct Ours {
    pub(crate) ip: IpVersion,
    pub(crate) config: Config,
    pub(crate) opener: Opener,
    /// It closes after the kernel has closed.
    pub(crate) closes_last: bool,
    /// Whether there is another subflow, or none is expected. The end of the first half of the data
    /// waits for it, and with that the second half of both ends.
    pub(crate) joined: bool,
    pub(crate) outgoing: Bytes,
    /// Number of bytes expected from the kernel.
    pub(crate) expected: usize,
    /// Deeds when the connection is open to joins, and when half of the bytes have arrived.
    pub(crate) deeds: [Vec<Deed>; 2],
    pub(crate) middlebox: Middlebox,
    pub(crate) secrets: Prng,
    pub(crate) at_rest: Sender<Outcome>,
    pub(crate) state: State,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    connection: Option<Connection>,
    tuples: Vec<Tuple>,
    table: BTreeMap<Tuple, SubflowId>,
    /// Second quarter of the data, and second half.
    quarter: Bytes,
    held: Bytes,
    done: [bool; 2],
    closing: bool,
    told: bool,
    outcome: Outcome,
}

impl Ours {
    fn secrets(&mut self) -> Secrets {
        let [a, b, c] = [0; 3].map(|_| self.secrets.bits());
        Secrets { key: Key(a), nonce: b as u32, iss: SeqNumber(c as u32) }
    }

    fn add(&mut self, tuple: Tuple, id: SubflowId) {
        assert_eq!(usize::from(id.0), self.state.tuples.len(), "subflows are numbered in order");
        self.state.tuples.push(tuple);
        self.state.table.insert(tuple, id);
    }

    /// Opens a subflow from one of our nodes to one of the kernel's.
    fn join(&mut self, ctx: &Ctx<'_>, ours: usize, to: NodeId, port: u16) {
        let secrets = self.secrets();
        let local = FIRST_PORT + self.state.tuples.len() as u16;
        let Some(connection) = &mut self.state.connection else { return };
        let path = (PathId(ours as u16), AddressId(ours as u8));
        if let Ok(id) = connection.join(ctx.now(), path, (local, port), None, secrets) {
            self.add((OURS[ours], to, local, port), id);
        }
    }

    fn stranger(&mut self, ctx: &mut Ctx<'_>, tuple: Tuple, segment: &Segment) {
        let (now, secrets) = (ctx.now(), self.secrets());
        let ours = OURS.iter().position(|node| *node == tuple.0).expect("one of ours");
        let path = PathId(ours as u16);
        let joins = join_token(segment).is_some();
        let id = match &mut self.state.connection {
            Some(connection) if joins => {
                let address = AddressId(ours as u8);
                connection.accept_join(now, path, segment, address, secrets).ok()
            }
            None if !joins && segment.dst_port == PORT => {
                self.state.connection = Connection::accept(now, self.config, path, segment, secrets);
                self.state.connection.is_some().then_some(SubflowId(0))
            }
            _ => None,
        };
        match id {
            Some(id) => self.add(tuple, id),
            None => {
                if let Some(reset) = tcp::reset_for(segment) {
                    self.state.outcome.refused += 1;
                    self.joined = true;
                    ctx.send_segment(tuple.0, tuple.1, reset);
                }
            }
        }
    }

    fn act(&mut self, ctx: &Ctx<'_>, moment: usize) {
        let now = ctx.now();
        self.state.done[moment] = true;
        for deed in self.deeds[moment].clone() {
            let (ip, first) = (self.ip, self.state.tuples[0]);
            let Some(connection) = &mut self.state.connection else { return };
            let second = SubflowId(1);
            match deed {
                Deed::Join if !connection.joins_here() => {}
                Deed::Join => self.join(ctx, 1, first.1, first.3),
                Deed::Announce => {
                    connection.add_address(now, AddressId(1), address_of(ip, OURS[1]), None);
                }
                Deed::AnnouncePort => {
                    let port = Some(ANNOUNCED_PORT);
                    connection.add_address(now, AddressId(1), address_of(ip, OURS[1]), port);
                }
                Deed::Remove => {
                    connection.remove_address(AddressId(1));
                }
                Deed::Backup => connection.set_backup(second, true),
                Deed::Close => connection.close_subflow(now, second),
                Deed::Abort => connection.abort(now),
            }
        }
    }

    fn on_event(&mut self, ctx: &Ctx<'_>, event: Event) {
        match event {
            Event::Readable | Event::Writable => return,
            _ => self.state.outcome.events.push(event),
        }
        match event {
            Event::AddressAdded { address, port, .. } => {
                let to = node_of(address);
                self.join(ctx, 1, to, port.unwrap_or(self.state.tuples[0].3));
            }
            Event::SubflowEstablished(_) => self.joined = true,
            Event::Closed(reason) => self.state.outcome.closed = Some(reason),
            _ => {}
        }
    }

    /// Lets the application and the connection act until neither has anything to do.
    fn settle(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        loop {
            let Some(connection) = &mut self.state.connection else { return };
            while let Some(octets) = connection.read(usize::MAX) {
                self.state.outcome.received.extend_from_slice(&octets);
            }
            if let Some(event) = connection.poll_event() {
                self.on_event(ctx, event);
                continue;
            }
            // Linux connects to an address only once its program has accepted the connection, and
            // then the program sends.
            let open = connection.can_join() && !self.state.outcome.received.is_empty();
            let half = self.state.outcome.received.len() >= self.expected / 2;
            if !self.state.done[0] && open {
                self.act(ctx, 0);
                continue;
            }
            if !self.state.done[1] && half && self.state.outcome.received.len() > 1 {
                self.act(ctx, 1);
                continue;
            }
            while let Ok(1..) = connection.write(&mut self.outgoing) {}
            if self.outgoing.is_empty() && self.joined && !self.state.quarter.is_empty() {
                self.outgoing = std::mem::take(&mut self.state.quarter);
                continue;
            }
            let first_half = self.state.quarter.is_empty() && self.outgoing.is_empty();
            if first_half && self.state.done[1] && !self.state.held.is_empty() {
                self.outgoing = std::mem::take(&mut self.state.held);
                continue;
            }
            let waits = self.closes_last && !self.state.outcome.events.contains(&Event::PeerClosed);
            if first_half && self.state.held.is_empty() && !self.state.closing && !waits {
                self.state.closing = true;
                connection.close(now);
            }
            let Some((id, segment)) = connection.poll_transmit(now) else { break };
            self.send(ctx, id, segment);
        }
        self.finish(ctx);
    }

    fn send(&mut self, ctx: &mut Ctx<'_>, id: SubflowId, mut segment: Segment) {
        let (ours, kernels, ..) = self.state.tuples[usize::from(id.0)];
        let first = (ours, kernels) == (OURS[0], KERNEL[0]);
        if self.middlebox.handle(Way::FromUs, first, &mut segment) {
            ctx.send_segment(ours, kernels, segment);
        }
    }

    fn finish(&mut self, ctx: &mut Ctx<'_>) {
        let Some(connection) = &self.state.connection else { return };
        ctx.set_timer(connection.next_timeout());
        let outcome = &mut self.state.outcome;
        outcome.info = connection.info();
        outcome.changed = self.middlebox.changed;
        let ids = (0..self.state.tuples.len() as u16).map(SubflowId);
        let subflows: Vec<_> = ids.filter_map(|id| Some(connection.subflow_info(id)?.tcp)).collect();
        if outcome.closed.is_none()
            && subflows.iter().all(|tcp| matches!(tcp.state, tcp::State::TimeWait | tcp::State::Closed))
        {
            // Only TIME-WAIT remains.
            outcome.closed = Some(CloseReason::Graceful);
        }
        if !self.state.told && outcome.closed.is_some() {
            self.state.told = true;
            outcome.shares = subflows.iter().map(|tcp| tcp.bytes_received).collect();
            let _ = self.at_rest.send(outcome.clone());
        }
    }
}

/// The simulated node of an address of the kernel.
fn node_of(address: IpAddr) -> NodeId {
    node_at(address).expect("an address of the network")
}

impl App for Ours {
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        OURS.into_iter().for_each(|node| ctx.take_segments(node));
        self.state.held = self.outgoing.split_off(self.outgoing.len() / 2);
        self.state.quarter = self.outgoing.split_off(self.outgoing.len() / 2);
        if self.opener == Opener::Ours {
            let (secrets, ports) = (self.secrets(), (FIRST_PORT, PORT));
            let connection = Connection::connect(ctx.now(), self.config, PathId(0), ports, secrets);
            self.state.connection = Some(connection);
            self.add((OURS[0], KERNEL[0], FIRST_PORT, PORT), SubflowId(0));
        }
        self.settle(ctx);
    }

    fn on_stream(&mut self, _: &mut Ctx<'_>, _: ConnId, _: StreamEvent) {}

    fn on_segment(&mut self, ctx: &mut Ctx<'_>, (from, to): (NodeId, NodeId), mut segment: Segment) {
        if !self.middlebox.handle(Way::ToUs, (to, from) == (OURS[0], KERNEL[0]), &mut segment) {
            return;
        }
        let tuple = (to, from, segment.dst_port, segment.src_port);
        match (self.state.table.get(&tuple), &mut self.state.connection) {
            (Some(id), Some(connection)) => connection.handle_segment(ctx.now(), *id, segment),
            _ if segment.flags.contains(Flags::RST) => {}
            _ => self.stranger(ctx, tuple, &segment),
        }
        self.settle(ctx);
    }

    fn on_timer(&mut self, ctx: &mut Ctx<'_>) {
        if let Some(connection) = &mut self.state.connection {
            connection.handle_timeout(ctx.now());
        }
        self.settle(ctx);
    }
}
