//! Time series of a run as CSV: [`Series`] writes how connections and the queues of cables stand, as things change or at an interval.
//!
//! A row says how things stand from its time on until the next row of the same connection or link. Rows of one are in order of time;
//! those of different ones are not.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use anabranch_core::time::{Duration, Instant};

use crate::csv::field;
use crate::link::LinkDrop;
use crate::packet::{LinkId, NodeId, Packet};
use crate::stream::ConnId;
use crate::trace::line::{Line, Waiting};
use crate::trace::{ConnectionView, Observer, Point};
use crate::wifi::PhyConfig;

/// The head of the file of connections.
const CONNECTIONS: &str = "time_s,node,port,peer,peer_port,subflow,cwnd_bytes,ssthresh_bytes,in_flight_bytes,srtt_s,rto_s,sent_bytes,\
                           acked_bytes,received_bytes,retransmissions";
/// The head of the file of queues.
const QUEUES: &str = "time_s,link,packets,bytes,dropped";

/// Writes two tables: connections, and queues.
#[derive(Debug)]
pub struct Series<W> {
    connections: Table<W>,
    queues: Table<W>,
    /// From one row to the next of the same, at least.
    every: Duration,
    names: Vec<String>,
    links: Vec<(NodeId, NodeId)>,
    seen: BTreeMap<Which, (Ends, Held<Connection>)>,
    /// By link.
    cables: Vec<Cable>,
    /// Links over the air, which have the queue of their radio.
    on_air: BTreeSet<LinkId>,
}

/// A file, and the first error that it gave: nothing is written after that.
#[derive(Debug)]
struct Table<W> {
    out: W,
    error: Option<io::Error>,
}

/// A connection, or a subflow of one, at its node.
type Which = (NodeId, ConnId, Option<u16>);

/// Where a connection ends.
#[derive(Clone, Copy, Debug)]
struct Ends {
    peer: NodeId,
    ports: (u16, u16),
}

/// How a connection stands.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Connection {
    cwnd: u32,
    ssthresh: u32,
    in_flight: u32,
    srtt: Option<Duration>,
    rto: Duration,
    sent: u64,
    acked: u64,
    received: u64,
    retransmissions: u64,
}

/// How a queue stands.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Queue {
    packets: u64,
    bytes: u64,
    /// Packets dropped so far, by a full queue or its discipline.
    dropped: u64,
}

#[derive(Debug, Default)]
struct Cable {
    line: Line,
    /// Those that wait: when the transmitter begins with them as things stand, their octets, and how many are alike in both.
    starts: BTreeMap<(Instant, u32), u64>,
    now: Queue,
    held: Held<Queue>,
}

/// A state that is written once it is known to last until the next row is due.
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
    /// The state at `now`, which counts at the next multiple of `every`: the row that is to be written before, if any.
    fn set(&mut self, now: Instant, every: Duration, state: T) -> Option<(Instant, T)> {
        let due = match every.as_nanos() {
            0 => now,
            every => Instant::from_nanos(now.as_nanos().div_ceil(every).saturating_mul(every)),
        };
        let last = self.pending.replace((due, state))?;
        if last.0 < due { self.row(last) } else { None }
    }

    /// What is left at the end, if it is due by then.
    fn take(&mut self, end: Instant) -> Option<(Instant, T)> {
        let last = self.pending.take().filter(|(due, _)| *due <= end)?;
        self.row(last)
    }

    fn row(&mut self, row: (Instant, T)) -> Option<(Instant, T)> {
        let differs = self.written != Some(row.1);
        self.written = Some(row.1);
        differs.then_some(row)
    }
}

impl<W: Write> Table<W> {
    fn new(out: W, head: &str) -> Self {
        let mut table = Self { out, error: None };
        table.line(format_args!("{head}"));
        table
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        if self.error.is_none() {
            self.error = writeln!(self.out, "{line}").err();
        }
    }

    fn finish(mut self) -> io::Result<W> {
        match self.error.take() {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.out),
        }
    }
}

fn name(names: &[String], node: NodeId) -> &str {
    names.get(node.index()).map_or("", String::as_str)
}

impl<W: Write + Send + 'static> Series<W> {
    /// Tables to these, which should be buffered. `every` is the time between two rows of a connection or a link; none for a row at
    /// each change.
    pub fn new(connections: W, queues: W, every: Duration) -> Self {
        Self {
            connections: Table::new(connections, CONNECTIONS),
            queues: Table::new(queues, QUEUES),
            every,
            names: Vec::new(),
            links: Vec::new(),
            seen: BTreeMap::new(),
            cables: Vec::new(),
            on_air: BTreeSet::new(),
        }
    }

    /// The tables of connections and queues, of a run that has lasted until `end`; or what writing them failed with.
    ///
    /// # Errors
    ///
    /// The first error of either.
    pub fn finish(mut self, end: Instant) -> io::Result<(W, W)> {
        for link in 0..self.cables.len() {
            self.catch_up(end, link);
            if let Some(row) = self.cables[link].held.take(end) {
                self.write_queue(link, row);
            }
        }
        for ((node, _, subflow), (ends, mut held)) in std::mem::take(&mut self.seen) {
            if let Some(row) = held.take(end) {
                self.write_connection(node, subflow, ends, row);
            }
        }
        Ok((self.connections.finish()?, self.queues.finish()?))
    }

    fn write_connection(
        &mut self,
        node: NodeId,
        subflow: Option<u16>,
        ends: Ends,
        row: (Instant, Connection),
    ) {
        let (at, Connection { cwnd, in_flight, sent, acked, received, retransmissions, .. }) = row;
        let ssthresh = if row.1.ssthresh < u32::MAX { row.1.ssthresh.to_string() } else { String::new() };
        let srtt = row.1.srtt.map(|srtt| srtt.as_secs_f64().to_string()).unwrap_or_default();
        let (at, rto) = (at.as_secs_f64(), row.1.rto.as_secs_f64());
        let (node, peer) = (field(name(&self.names, node)), field(name(&self.names, ends.peer)));
        let (port, peer_port) = ends.ports;
        let subflow = subflow.map(|subflow| subflow.to_string()).unwrap_or_default();
        self.connections.line(format_args!(
            "{at},{node},{port},{peer},{peer_port},{subflow},{cwnd},{ssthresh},{in_flight},{srtt},{rto},{sent},{acked},{received},\
             {retransmissions}"
        ));
    }

    fn write_queue(&mut self, link: usize, (at, Queue { packets, bytes, dropped }): (Instant, Queue)) {
        let (from, to) = self.links[link];
        let link = format!("{}>{}", name(&self.names, from), name(&self.names, to));
        let link = field(&link);
        self.queues.line(format_args!("{},{link},{packets},{bytes},{dropped}", at.as_secs_f64()));
    }

    /// A queue stands otherwise from `at` on.
    fn note(&mut self, at: Instant, link: usize) {
        let cable = &mut self.cables[link];
        if let Some(row) = cable.held.set(at, self.every, cable.now) {
            self.write_queue(link, row);
        }
    }

    /// The transmitter has begun with packets since something was last heard of the link.
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

    /// A packet waits no longer, if it did.
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

impl<W: Write + Send + 'static> Observer for Series<W> {
    fn on_attach(&mut self, nodes: &[&str], links: &[(NodeId, NodeId)]) {
        self.names = nodes.iter().map(|&name| name.to_owned()).collect();
        self.links = links.to_vec();
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
        let info = seen.info;
        let state = Connection {
            cwnd: info.cwnd,
            ssthresh: info.ssthresh,
            in_flight: info.in_flight,
            srtt: info.srtt,
            rto: info.rto,
            sent: info.bytes_sent,
            acked: info.bytes_acked,
            received: info.bytes_received,
            retransmissions: info.retransmissions,
        };
        let ends = Ends { peer: seen.peer, ports: seen.ports };
        let (_, held) =
            self.seen.entry((seen.node, seen.id, seen.subflow)).or_insert((ends, Held::default()));
        if let Some(row) = held.set(now, self.every, state) {
            self.write_connection(seen.node, seen.subflow, ends, row);
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

#[cfg(test)]
mod tests;
