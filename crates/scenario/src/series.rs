//! Time series of a run: the state of connections, queues, radios and RDCA senders, and the
//! positions of moving nodes. A [`Sampler`] samples them at an interval, which costs little;
//! [`Changes`] records every change of connections and queues, which is expensive.
//!
//! Both produce rows of [`TABLES`]. A row is the state from its time until the next row of the same
//! object. The rows of one object are in order of time; those of different objects need not be. The
//! rows of [`flows`] cover the whole window of a probe.

mod changes;
mod flows;
mod sampler;

use std::io::{self, Write};

use anabranch_core::tcp::Info;
use anabranch_core::time::{Duration, Instant};

pub use changes::Changes;
pub use flows::flows;
pub use sampler::Sampler;

use anabranch_sim::csv::field;
use anabranch_sim::packet::{LinkId, NodeId};

/// A table of time series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Its columns; the first is the time.
    pub columns: &'static [Column],
}

/// A column of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Unit of its values, "1" for numbers without one; `None` for text.
    pub unit: Option<&'static str>,
}

const fn text(name: &'static str) -> Column {
    Column { name, unit: None }
}

const fn figure(name: &'static str, unit: &'static str) -> Column {
    Column { name, unit: Some(unit) }
}

/// Index of the table of connections.
pub const CONNECTIONS: usize = 0;
/// Index of the table of cable queues.
pub const QUEUES: usize = 1;
/// Index of the table of radios.
pub const RADIOS: usize = 2;
/// Index of the table of RDCA senders.
pub const RDCA: usize = 3;
/// Index of the table of flows, with a row for each flow of a probe, from [`flows`].
pub const FLOWS: usize = 4;
/// Index of the table of positions of moving nodes.
pub const POSITIONS: usize = 5;

/// All tables, by index.
pub const TABLES: [Table; 6] = [
    Table {
        name: "connections",
        columns: &[
            figure("time_s", "s"),
            text("node"),
            figure("port", "1"),
            text("peer"),
            figure("peer_port", "1"),
            figure("subflow", "1"),
            figure("cwnd_bytes", "B"),
            figure("ssthresh_bytes", "B"),
            figure("in_flight_bytes", "B"),
            figure("srtt_s", "s"),
            figure("rto_s", "s"),
            figure("send_buffer_bytes", "B"),
            figure("sent_bytes", "B"),
            figure("acked_bytes", "B"),
            figure("received_bytes", "B"),
            figure("retransmissions", "1"),
        ],
    },
    Table {
        name: "queues",
        columns: &[
            figure("time_s", "s"),
            text("link"),
            figure("packets", "1"),
            figure("bytes", "B"),
            figure("dropped", "1"),
            figure("marked", "1"),
        ],
    },
    Table {
        name: "radios",
        columns: &[
            figure("time_s", "s"),
            text("node"),
            figure("transmit_j", "J"),
            figure("receive_j", "J"),
            figure("listen_j", "J"),
            figure("off_j", "J"),
        ],
    },
    Table {
        name: "rdca",
        columns: &[
            figure("time_s", "s"),
            text("traffic"),
            text("node"),
            figure("rate_bytes_per_s", "B/s"),
            figure("window_packets", "1"),
            figure("rtt_s", "s"),
            figure("queued_packets", "1"),
            figure("unsent_packets", "1"),
            figure("made_packets", "1"),
            figure("gone_packets", "1"),
        ],
    },
    Table {
        name: "flows",
        columns: &[
            figure("time_s", "s"),
            text("probe"),
            text("protocol"),
            text("node"),
            figure("port", "1"),
            text("peer"),
            figure("peer_port", "1"),
            figure("last_received_s", "s"),
            figure("sent_packets", "1"),
            figure("sent_bytes", "B"),
            figure("received_packets", "1"),
            figure("received_bytes", "B"),
            figure("payload_bytes", "B"),
            figure("lost_packets", "1"),
            figure("loss_ratio", "1"),
            figure("delay_mean_s", "s"),
            figure("delay_p50_s", "s"),
            figure("delay_p95_s", "s"),
            figure("delay_p99_s", "s"),
            figure("delay_max_s", "s"),
            figure("jitter_mean_s", "s"),
            figure("reordered_ratio", "1"),
            figure("throughput_bit_per_s", "bit/s"),
            figure("goodput_bit_per_s", "bit/s"),
        ],
    },
    Table {
        name: "positions",
        columns: &[figure("time_s", "s"), text("node"), figure("x_m", "m"), figure("y_m", "m")],
    },
];

/// Value in a column of a row.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Cell<'a> {
    /// A name.
    Text(&'a str),
    /// A number, or none while it is undefined.
    Figure(Option<f64>),
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl From<Duration> for Cell<'_> {
    fn from(span: Duration) -> Self {
        Self::Figure(Some(span.as_secs_f64()))
    }
}

impl From<Instant> for Cell<'_> {
    fn from(time: Instant) -> Self {
        Self::Figure(Some(time.as_secs_f64()))
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell<'_> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Figure(None), T::into)
    }
}

macro_rules! cells {
    ($($number:ty),*) => { $(
        impl From<$number> for Cell<'_> {
            fn from(number: $number) -> Self {
                Self::Figure(Some(number as f64))
            }
        }
    )* };
}

cells!(u16, u32, u64, usize, f64);

/// Destination of rows.
pub trait Rows {
    /// Adds a row to one of [`TABLES`], with a cell for each of its columns.
    fn row(&mut self, table: usize, cells: &[Cell<'_>]);
}

/// Writes tables as CSV, each to its own writer. A table without a writer is omitted.
#[derive(Debug)]
pub struct Csv<W> {
    outs: [Option<W>; TABLES.len()],
    /// The first error of each writer, after which nothing is written to it.
    errors: [Option<io::Error>; TABLES.len()],
}

impl<W: Write> Csv<W> {
    /// Writes to `outs`, which should be buffered.
    pub fn new(outs: [Option<W>; TABLES.len()]) -> Self {
        let mut csv = Self { outs, errors: [const { None }; TABLES.len()] };
        for (index, table) in TABLES.iter().enumerate() {
            let names: Vec<Cell<'_>> = table.columns.iter().map(|column| column.name.into()).collect();
            csv.row(index, &names);
        }
        csv
    }

    /// Returns the writers at the end of a run.
    ///
    /// # Errors
    ///
    /// The first error of any writer.
    pub fn finish(self) -> io::Result<[Option<W>; TABLES.len()]> {
        let Self { mut outs, errors } = self;
        for (out, error) in outs.iter_mut().zip(errors) {
            match error {
                Some(error) => return Err(error),
                None => out.as_mut().map_or(Ok(()), Write::flush)?,
            }
        }
        Ok(outs)
    }
}

impl<W: Write> Rows for Csv<W> {
    fn row(&mut self, table: usize, cells: &[Cell<'_>]) {
        if let (Some(out), error @ None) = (&mut self.outs[table], &mut self.errors[table]) {
            *error = write_row(out, cells).err();
        }
    }
}

fn write_row(out: &mut impl Write, cells: &[Cell<'_>]) -> io::Result<()> {
    for (i, cell) in cells.iter().enumerate() {
        if i > 0 {
            out.write_all(b",")?;
        }
        match cell {
            Cell::Text(text) => out.write_all(field(text).as_bytes())?,
            Cell::Figure(Some(figure)) => write_figure(out, *figure)?,
            Cell::Figure(None) => {}
        }
    }
    out.write_all(b"\n")
}

/// Writes a figure as [`std::fmt::Display`] does, except that the last digit may differ where two
/// texts of this length read as the same number. Formatting was half the cost of series, and that
/// of JSON takes a fraction of the time, but writes `1.0` and `1e-7`.
fn write_figure(out: &mut impl Write, figure: f64) -> io::Result<()> {
    if figure.fract() == 0.0 && figure.abs() < 1e15 {
        Ok(serde_json::to_writer(out, &(figure as i64))?)
    } else if (1e-3..1e15).contains(&figure.abs()) {
        Ok(serde_json::to_writer(out, &figure)?)
    } else {
        write!(out, "{figure}")
    }
}

/// Names of the nodes and links of a network in tables.
#[derive(Debug, Default)]
struct Names {
    nodes: Vec<String>,
    /// "A>B", by link.
    links: Vec<String>,
}

impl Names {
    fn new<'n>(nodes: impl Iterator<Item = &'n str>, links: impl Iterator<Item = (NodeId, NodeId)>) -> Self {
        let nodes: Vec<String> = nodes.map(str::to_owned).collect();
        let links = links.map(|(from, to)| format!("{}>{}", nodes[from.index()], nodes[to.index()]));
        Self { links: links.collect(), nodes }
    }

    fn node(&self, node: NodeId) -> &str {
        self.nodes.get(node.index()).map_or("", String::as_str)
    }

    fn link(&self, link: LinkId) -> &str {
        self.links.get(link.index()).map_or("", String::as_str)
    }
}

/// The peer of a connection.
#[derive(Clone, Copy, Debug)]
struct Ends {
    peer: NodeId,
    ports: (u16, u16),
}

/// State of a connection.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Connection {
    cwnd: u32,
    ssthresh: u32,
    in_flight: u32,
    srtt: Option<Duration>,
    rto: Duration,
    send_buffer: u32,
    sent: u64,
    acked: u64,
    received: u64,
    retransmissions: u64,
}

impl Connection {
    fn of(info: &Info) -> Self {
        Self {
            cwnd: info.cwnd,
            ssthresh: info.ssthresh,
            in_flight: info.in_flight,
            srtt: info.srtt,
            rto: info.rto,
            send_buffer: info.send_buffer,
            sent: info.bytes_sent,
            acked: info.bytes_acked,
            received: info.bytes_received,
            retransmissions: info.retransmissions,
        }
    }

    fn write(
        self,
        at: Instant,
        (node, subflow, ends): (NodeId, Option<u16>, Ends),
        names: &Names,
        rows: &mut impl Rows,
    ) {
        let Self { cwnd, in_flight, srtt, rto, send_buffer, sent, acked, received, retransmissions, .. } =
            self;
        let ssthresh = (self.ssthresh < u32::MAX).then_some(self.ssthresh);
        let (port, peer_port) = ends.ports;
        let cells = [
            at.into(),
            names.node(node).into(),
            port.into(),
            names.node(ends.peer).into(),
            peer_port.into(),
            subflow.into(),
            cwnd.into(),
            ssthresh.into(),
            in_flight.into(),
            srtt.into(),
            rto.into(),
            send_buffer.into(),
            sent.into(),
            acked.into(),
            received.into(),
            retransmissions.into(),
        ];
        rows.row(CONNECTIONS, &cells);
    }
}

/// State of a queue.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Queue {
    packets: u64,
    bytes: u64,
    /// Packets dropped so far by a full queue or its discipline.
    dropped: u64,
    /// Packets marked so far, if known.
    marked: Option<u64>,
}

impl Queue {
    fn write(self, at: Instant, link: LinkId, names: &Names, rows: &mut impl Rows) {
        let Self { packets, bytes, dropped, marked } = self;
        let cells =
            [at.into(), names.link(link).into(), packets.into(), bytes.into(), dropped.into(), marked.into()];
        rows.row(QUEUES, &cells);
    }
}

#[cfg(test)]
mod tests;
