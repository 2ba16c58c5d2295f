//! Rows for every change of connections and cable queues.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_core::time::Instant;

use super::{Connection, Ends, Names, Queue, Rows};
use anabranch_sim::link::LinkDrop;
use anabranch_sim::packet::{LinkId, NodeId, Packet};
use anabranch_sim::stream::ConnId;
use anabranch_sim::trace::line::{Line, Waiting};
use anabranch_sim::trace::{ConnectionView, Observer, Point};
use anabranch_sim::wifi::PhyConfig;

/// An observer that produces a row at each change of a connection or queue.
#[derive(Debug)]
pub struct Changes<R> {
    rows: R,
    names: Names,
    seen: BTreeMap<Which, (Ends, Held<Connection>)>,
    /// By link.
    cables: Vec<Cable>,
    /// Links over the air, whose packets are in the queue of their radio.
    on_air: BTreeSet<LinkId>,
}

/// A connection, or a subflow of one, at its node.
type Which = (NodeId, ConnId, Option<u16>);

#[derive(Debug, Default)]
struct Cable {
    line: Line,
    /// Waiting packets: planned start of transmission, length in bytes, and the number of packets
    /// with equal values.
    starts: BTreeMap<(Instant, u32), u64>,
    now: Queue,
    held: Held<Queue>,
}

/// A state that is written when the next one at a later time is known: of several states at the
/// same time only the last counts.
#[derive(Debug)]
struct Held<T> {
    pending: Option<(Instant, T)>,
    written: Option<T>,
}

impl<T> Default for Held<T> {
    fn default() -> Self {
        Self { pending: None, written: None }
    }
}

impl<T: Copy + PartialEq> Held<T> {
    /// Sets the state from `now` on. Returns the earlier state, if its row is now complete.
    fn set(&mut self, now: Instant, state: T) -> Option<(Instant, T)> {
        let last = self.pending.replace((now, state))?;
        if last.0 < now { self.row(last) } else { None }
    }

    /// Takes the last state at the end.
    fn take(&mut self) -> Option<(Instant, T)> {
        let last = self.pending.take()?;
        self.row(last)
    }

    fn row(&mut self, row: (Instant, T)) -> Option<(Instant, T)> {
        let differs = self.written != Some(row.1);
        self.written = Some(row.1);
        differs.then_some(row)
    }
}

impl<R: Rows + Send + 'static> Changes<R> {
    /// An observer that writes its rows to `rows`.
    pub fn new(rows: R) -> Self {
        Self {
            rows,
            names: Names::default(),
            seen: BTreeMap::new(),
            cables: Vec::new(),
            on_air: BTreeSet::new(),
        }
    }

    /// Writes the last rows of a run that has lasted until `end`, and returns the destination.
    pub fn finish(mut self, end: Instant) -> R {
        for link in 0..self.cables.len() {
            self.catch_up(end, link);
            if let Some((at, queue)) = self.cables[link].held.take() {
                queue.write(at, LinkId(link as u32), &self.names, &mut self.rows);
            }
        }
        for ((node, _, subflow), (ends, mut held)) in std::mem::take(&mut self.seen) {
            if let Some((at, connection)) = held.take() {
                connection.write(at, (node, subflow, ends), &self.names, &mut self.rows);
            }
        }
        self.rows
    }

    /// Records the state of a queue from `at` on.
    fn note(&mut self, at: Instant, link: usize) {
        let cable = &mut self.cables[link];
        if let Some((at, queue)) = cable.held.set(at, cable.now) {
            queue.write(at, LinkId(link as u32), &self.names, &mut self.rows);
        }
    }

    /// Handles the transmissions that have begun since the last event of the link.
    fn catch_up(&mut self, now: Instant, link: usize) {
        while let Some((&(start, len), _)) = self.cables[link].starts.first_key_value() {
            if start > now {
                return;
            }
            self.cables[link].leave(start, len);
            self.note(start, link);
        }
    }
}

impl Cable {
    fn join(&mut self, start: Instant, len: u32) {
        *self.starts.entry((start, len)).or_default() += 1;
        self.now.packets += 1;
        self.now.bytes += u64::from(len);
    }

    /// Removes a packet that waited.
    fn leave(&mut self, start: Instant, len: u32) {
        let Some(alike) = self.starts.get_mut(&(start, len)) else { return };
        *alike -= 1;
        if *alike == 0 {
            self.starts.remove(&(start, len));
        }
        self.now.packets -= 1;
        self.now.bytes -= u64::from(len);
    }
}

impl<R: Rows + Send + 'static> Observer for Changes<R> {
    fn on_attach(&mut self, nodes: &[&str], links: &[(NodeId, NodeId)]) {
        self.names = Names::new(nodes.iter().copied(), links.iter().copied());
        self.cables.resize_with(links.len(), Cable::default);
    }

    fn on_attach_radio(&mut self, links: &[LinkId]) -> bool {
        self.on_air.extend(links);
        false
    }

    fn on_attach_wifi(&mut self, links: &[LinkId], _: &PhyConfig) -> bool {
        self.on_air.extend(links);
        false
    }

    fn wants_connections(&self) -> bool {
        true
    }

    fn on_connection(&mut self, now: Instant, seen: &ConnectionView<'_>) {
        let ends = Ends { peer: seen.peer, ports: seen.ports };
        let (_, held) =
            self.seen.entry((seen.node, seen.id, seen.subflow)).or_insert((ends, Held::default()));
        if let Some((at, connection)) = held.set(now, Connection::of(seen.info)) {
            connection.write(at, (seen.node, seen.subflow, ends), &self.names, &mut self.rows);
        }
    }

    fn on_packet(&mut self, now: Instant, link: LinkId, point: Point, packet: &Packet) {
        if self.on_air.contains(&link) {
            return;
        }
        let at = link.index();
        self.catch_up(now, at);
        let cable = &mut self.cables[at];
        let gone = cable.line.watch(now, point, packet).filter(|gone| gone.start > now);
        if let Some(Waiting { start, len, .. }) = gone {
            cable.leave(start, len);
        }
        let is_dropped = matches!(point, Point::Dropped(LinkDrop::QueueFull | LinkDrop::Early));
        cable.now.dropped += u64::from(is_dropped);
        if is_dropped || gone.is_some() {
            self.note(now, at);
        }
    }

    fn on_departure(&mut self, now: Instant, link: LinkId, packet: u64, start: Instant) {
        let at = link.index();
        self.catch_up(now, at);
        let cable = &mut self.cables[at];
        let Some((before, after)) = cable.line.expect(now, packet, start) else { return };
        cable.leave(before.start, before.len);
        if after.start > now {
            cable.join(after.start, after.len);
        }
        self.note(now, at);
    }
}
