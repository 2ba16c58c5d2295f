//! An event log as a table with one row per event.

use std::collections::BTreeMap;

use anabranch_sweep::table::{self, Column, Values};
use anabranch_view::log::{Event, Flow, Frame as AirFrame, Link, LogError, Packet, Reader, Record};
use anabranch_wire::eventlog::{LONGEST, frame, incident, packet, stream};
use pyo3::prelude::*;

use crate::fault::Fault;
use crate::frame::Frame;

/// Reasons of losses, by their number in `anabranch_wire::eventlog::reason`.
const REASONS: [&str; 10] = [
    "queue full",
    "channel",
    "link down",
    "no route",
    "hop limit",
    "too big",
    "node down",
    "held by a cache",
    "waited in vain",
    "dropped early",
];
/// Kinds of frames, by their number in `anabranch_wire::eventlog::frame`.
const FRAMES: [&str; 5] = ["data", "ack", "rts", "cts", "wake-up"];
/// Notifications of applications, by their number in `anabranch_wire::eventlog::stream`.
const STREAMS: [(u8, &str); 8] = [
    (stream::ACCEPTED, "accepted"),
    (stream::OPENED, "opened"),
    (stream::PEER_CLOSED, "peer closed"),
    (stream::CLOSED, "closed"),
    (stream::CLOSED + 1, "reset by the peer"),
    (stream::CLOSED + 2, "given up"),
    (stream::CLOSED + 3, "refused"),
    (stream::CLOSED + 4, "timed out"),
];
/// Faults and changes, by their number in `anabranch_wire::eventlog::incident`.
const INCIDENTS: [&str; 5] = ["node down", "node up", "link down", "link up", "rate"];

/// The events of a log as a table, without the states of connections, which time series contain.
#[pyfunction]
pub(crate) fn event_table(py: Python<'_>, log: Vec<u8>) -> PyResult<Frame> {
    let made = move || {
        let mut table = Events::default();
        let damaged = |error: LogError| Fault::new(error.to_string());
        let mut reader = Reader::new(log.as_slice()).map_err(damaged)?;
        while let Some(record) = reader.next_record().map_err(damaged)? {
            table.take(record);
        }
        table.frame()
    };
    Ok(py.detach(made)?)
}

/// Columns under construction, and the descriptions of the log.
#[derive(Default)]
struct Events {
    nodes: Vec<String>,
    links: Vec<Link>,
    flows: Vec<Flow>,
    packets: BTreeMap<i64, Packet>,
    rows: Vec<Row>,
}

/// One event; fields that do not apply are `None`.
#[derive(Default)]
struct Row {
    time: f64,
    event: &'static str,
    node: Option<String>,
    link: Option<String>,
    packet: Option<i64>,
    flow: Option<String>,
    bytes: Option<i64>,
    seq: Option<i64>,
    len: Option<i64>,
    value: Option<f64>,
    detail: Option<String>,
}

impl Events {
    fn take(&mut self, record: Record) {
        match record {
            Record::Node(node) => self.nodes.push(node.name),
            Record::Link(link) => self.links.push(link),
            Record::Flow(flow) => self.flows.push(flow),
            // The first description of a packet holds.
            Record::Packet(packet) => drop(self.packets.entry(packet.id).or_insert(packet)),
            Record::Event(nanos, event) => {
                if let Some(row) = self.row(event) {
                    self.rows.push(Row { time: nanos as f64 / 1e9, ..row });
                }
            }
            Record::Run(_) | Record::Subflow { .. } => {}
        }
    }

    fn row(&self, event: Event) -> Option<Row> {
        let reason = |reason: u8| REASONS.get(usize::from(reason)).map(|text| (*text).to_owned());
        Some(match event {
            Event::Sent { link, packet } => Row { event: "sent", ..self.on_link(link, packet, false) },
            Event::Received { link, packet } => Row { event: "received", ..self.on_link(link, packet, true) },
            Event::Lost { link, packet, reason: why } => {
                Row { event: "lost", detail: reason(why), ..self.on_link(link, packet, false) }
            }
            Event::Waits { link, packet, nanos } => {
                let known = nanos < LONGEST;
                let value = known.then_some(nanos as f64 / 1e9);
                Row { event: "waits", value, ..self.on_link(link, packet, false) }
            }
            Event::Discarded { node, packet, reason: why } => {
                let of = Row { node: self.node(node), detail: reason(why), ..self.packet(packet) };
                Row { event: "discarded", ..of }
            }
            Event::Frame(frame) => self.frame_row(frame),
            Event::Stream { flow, what } => {
                let detail =
                    STREAMS.iter().find(|(number, _)| *number == what).map(|(_, text)| (*text).to_owned());
                Row {
                    event: "stream",
                    node: self.source(flow),
                    flow: self.flow(flow),
                    detail,
                    ..Row::default()
                }
            }
            Event::Chunk { flow, offset, len, .. } => Row {
                event: "chunk",
                node: self.source(flow),
                flow: self.flow(flow),
                seq: i64::try_from(offset).ok(),
                len: i64::try_from(len).ok(),
                ..Row::default()
            },
            Event::Incident { what, index, value } => {
                let detail = INCIDENTS.get(usize::from(what)).map(|text| (*text).to_owned());
                let (node, link) = if [incident::NODE_DOWN, incident::NODE_UP].contains(&what) {
                    (self.node(index), None)
                } else {
                    (None, Some(self.link(index)))
                };
                let value = (what == incident::RATE).then_some(value as f64);
                Row { event: "incident", node, link, value, detail, ..Row::default() }
            }
            Event::Leg { node, nanos, to: (x, y) } => Row {
                event: "leg",
                node: self.node(node),
                value: Some(nanos as f64 / 1e9),
                detail: Some(format!("to {x} {y}")),
                ..Row::default()
            },
            Event::Note { node, text } => {
                let node = node.and_then(|node| self.node(node));
                Row { event: "note", node, detail: Some(text), ..Row::default() }
            }
            // Of phases there are metrics.
            Event::State { .. } | Event::Phases { .. } | Event::End { .. } => return None,
        })
    }

    fn frame_row(&self, frame: AirFrame) -> Row {
        let kind = FRAMES.get(usize::from(frame.kind)).copied().unwrap_or("frame");
        let fate = if frame.flags & frame::RECEIVED != 0 { "received" } else { "not received" };
        let node = self.node(frame.from);
        let to = frame.to.and_then(|to| self.node(to)).unwrap_or_else(|| "*".to_owned());
        let link = node.as_ref().map(|from| format!("{from}>{to}"));
        let of = frame.packet.map(|(packet, _)| self.packet(packet)).unwrap_or_default();
        Row {
            event: "frame",
            node,
            link,
            bytes: i64::try_from(frame.octets).ok(),
            value: Some(frame.nanos as f64 / 1e9),
            detail: Some(format!("{kind}, {fate}")),
            ..of
        }
    }

    fn on_link(&self, link: u32, packet: i64, at_end: bool) -> Row {
        let ends = self.links.get(link as usize);
        let node = ends.and_then(|ends| self.node(if at_end { ends.to } else { ends.from }));
        Row { node, link: Some(self.link(link)), ..self.packet(packet) }
    }

    fn packet(&self, id: i64) -> Row {
        let Some(packet) = self.packets.get(&id) else { return Row { packet: Some(id), ..Row::default() } };
        let tcp = packet.flags & packet::TCP != 0;
        Row {
            packet: Some(id),
            flow: self.flow(packet.flow),
            bytes: i64::try_from(packet.wire_len).ok(),
            seq: tcp.then_some(packet.seq),
            len: tcp.then(|| i64::try_from(packet.len).unwrap_or(i64::MAX)),
            ..Row::default()
        }
    }

    fn node(&self, node: u32) -> Option<String> {
        self.nodes.get(node as usize).cloned()
    }

    fn link(&self, link: u32) -> String {
        let ends = self.links.get(link as usize).map(|link| [link.from, link.to]);
        ends.map(|ends| ends.map(|node| self.node(node).unwrap_or_default()).join(">")).unwrap_or_default()
    }

    fn source(&self, flow: u32) -> Option<String> {
        self.node(self.flows.get(flow as usize)?.source)
    }

    fn flow(&self, flow: u32) -> Option<String> {
        let flow = self.flows.get(flow as usize)?;
        let (from, to) = (self.node(flow.source)?, flow.destination.and_then(|to| self.node(to)));
        let to = to.unwrap_or_else(|| "*".to_owned());
        Some(format!("{from}:{}>{to}:{}", flow.ports.0, flow.ports.1))
    }

    fn frame(self) -> Result<Frame, Fault> {
        let rows = &self.rows;
        let texts = |of: fn(&Row) -> Option<String>| Values::Texts(rows.iter().map(of).collect());
        let integers = |of: fn(&Row) -> Option<i64>| Values::Integers(rows.iter().map(of).collect());
        let numbers = |of: fn(&Row) -> Option<f64>| Values::Numbers(rows.iter().map(of).collect());
        let columns = [
            ("time", "s", numbers(|row| Some(row.time))),
            ("event", "1", texts(|row| Some(row.event.to_owned()))),
            ("node", "1", texts(|row| row.node.clone())),
            ("link", "1", texts(|row| row.link.clone())),
            ("packet", "1", integers(|row| row.packet)),
            ("flow", "1", texts(|row| row.flow.clone())),
            ("bytes", "B", integers(|row| row.bytes)),
            ("seq", "1", integers(|row| row.seq)),
            ("len", "B", integers(|row| row.len)),
            ("value", "1", numbers(|row| row.value)),
            ("detail", "1", texts(|row| row.detail.clone())),
        ];
        let columns = columns.map(|(name, unit, values)| Column {
            name: name.to_owned(),
            unit: unit.to_owned(),
            values,
        });
        Ok(Frame(table::Frame::new(columns.into()).map_err(Fault::from)?))
    }
}
