//! Tables as columns of numbers. A number has a variable length: seven bits per byte, lowest first.
//! A column of differences stores each number minus its predecessor, with the sign folded into the
//! lowest bit, so that small differences are short.

use serde::Serialize;

use crate::replay::{Fate, Loss, OnAir, Place, Repair, Replay};

/// Description of a column for the scripts.
#[derive(Debug, Serialize)]
pub(super) struct Column {
    /// Table and name.
    name: &'static str,
    /// Width of its numbers in memory.
    kind: Kind,
    /// Number of rows.
    rows: usize,
    /// Length of the packed column in bytes.
    octets: usize,
    /// The column stores differences.
    differences: bool,
}

/// Type of a column's numbers in memory.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    U8,
    U32,
    F64,
}

/// Packs columns one after another.
#[derive(Default)]
struct Packer {
    columns: Vec<Column>,
    octets: Vec<u8>,
}

impl Packer {
    fn plain<T>(&mut self, name: &'static str, kind: Kind, rows: &[T], number: impl Fn(&T) -> u64) {
        self.column(name, kind, false, rows.iter().map(number));
    }

    fn differences<T>(&mut self, name: &'static str, kind: Kind, rows: &[T], number: impl Fn(&T) -> i64) {
        let mut before = 0;
        let folded = rows.iter().map(|row| {
            let number = number(row);
            let difference = number - std::mem::replace(&mut before, number);
            // Zigzag: the sign moves to the lowest bit, so that a small negative number is short as
            // well.
            (difference << 1 ^ difference >> 63) as u64
        });
        self.column(name, kind, true, folded);
    }

    fn column(
        &mut self,
        name: &'static str,
        kind: Kind,
        differences: bool,
        numbers: impl ExactSizeIterator<Item = u64>,
    ) {
        let (rows, start) = (numbers.len(), self.octets.len());
        for mut number in numbers {
            while number > 0x7f {
                self.octets.push(number as u8 | 0x80);
                number >>= 7;
            }
            self.octets.push(number as u8);
        }
        let octets = self.octets.len() - start;
        self.columns.push(Column { name, kind, rows, octets, differences });
    }
}

/// Packs all tables of a replay.
pub(super) fn pack(replay: &Replay) -> (Vec<Column>, Vec<u8>) {
    use Kind::{F64, U8, U32};
    let mut p = Packer::default();

    let packets = &replay.packets;
    p.differences("packet.made", F64, packets, |s| s.made as i64);
    // 0 means that the packet did not arrive, so durations are stored plus 1.
    p.plain("packet.took", F64, packets, |s| s.done.map_or(0, |done| done - s.made + 1));
    p.differences("packet.flow", U32, packets, |s| s.packet.flow.into());
    p.plain("packet.flags", U8, packets, |s| s.packet.flags.into());
    p.plain("packet.octets", U32, packets, |s| s.packet.wire_len);
    let firsts = first_numbers(replay);
    let first = |s: &crate::replay::Seen| firsts[s.packet.flow as usize];
    p.differences("packet.seq", F64, packets, |s| s.packet.seq - first(s).0);
    p.plain("packet.len", U32, packets, |s| s.packet.len);
    p.differences("packet.ack", F64, packets, |s| s.packet.ack - first(s).1);
    p.plain("packet.fresh", U32, packets, |s| s.fresh);
    p.plain("packet.again", U8, packets, |s| s.again.into());
    p.plain("packet.maker", U32, packets, |s| s.packet.maker.map_or(0, |maker| u64::from(maker) + 1));

    let flights = &replay.flights;
    p.differences("flight.sent", F64, flights, |f| f.sent as i64);
    p.plain("flight.waited", F64, flights, |f| f.leaves - f.sent);
    p.plain("flight.took", F64, flights, |f| f.end - f.sent);
    p.plain("flight.link", U32, flights, |f| f.link.into());
    p.differences("flight.packet", U32, flights, |f| f.packet.into());
    p.plain("flight.fate", U8, flights, |f| match f.fate {
        Fate::Arrived => 0,
        Fate::UnderWay => 1,
        Fate::Lost(reason) => 2 + u64::from(reason),
    });

    let frames = &replay.frames;
    p.differences("frame.start", F64, frames, |f| f.start as i64);
    p.plain("frame.took", F64, frames, |f| f.end - f.start);
    p.plain("frame.from", U32, frames, |f| f.frame.from.into());
    p.plain("frame.to", U32, frames, |f| f.frame.to.map_or(0, |to| u64::from(to) + 1));
    p.plain("frame.kind", U8, frames, |f: &OnAir| f.frame.kind.into());
    p.plain("frame.flags", U8, frames, |f| f.frame.flags.into());
    p.differences("frame.packet", U32, frames, |f| f.packet.map_or(0, |packet| i64::from(packet) + 1));

    let states = &replay.states;
    p.differences("state.flow", U32, states, |s| s.0.into());
    p.differences("state.at", F64, states, |s| s.1 as i64);
    p.differences("state.cwnd", F64, states, |s| s.2.cwnd as i64);
    p.differences("state.ssthresh", F64, states, |s| s.2.ssthresh as i64);
    p.differences("state.srtt", F64, states, |s| s.2.srtt as i64);
    p.differences("state.peer", F64, states, |s| s.2.peer_window as i64);
    p.differences("state.flying", F64, states, |s| s.2.in_flight as i64);
    p.differences("state.unsent", F64, states, |s| s.2.unsent as i64);
    p.differences("state.buffer", F64, states, |s| s.2.send_buffer as i64);
    p.differences("state.again", F64, states, |s| s.2.retransmissions as i64);

    let chunks = &replay.chunks;
    p.differences("chunk.at", F64, chunks, |c| c.at as i64);
    p.plain("chunk.flow", U32, chunks, |c| c.flow.into());
    p.differences("chunk.offset", F64, chunks, |c| c.offset as i64);
    p.plain("chunk.len", U32, chunks, |c| c.len);

    let changes = &replay.changes;
    p.differences("change.at", F64, changes, |c| c.at as i64);
    p.plain("change.what", U8, changes, |c| c.what.into());
    p.plain("change.index", U32, changes, |c| c.index.into());
    p.plain("change.value", F64, changes, |c| c.value);

    // The map shows no more than millimetres.
    let legs = &replay.legs;
    let millimetres = |metres: f64| (metres * 1000.0).round() as i64;
    p.differences("leg.start", F64, legs, |l| l.start as i64);
    p.plain("leg.took", F64, legs, |l| l.end - l.start);
    p.plain("leg.node", U32, legs, |l| l.node.into());
    p.differences("leg.x0", F64, legs, |l| millimetres(l.from.0));
    p.differences("leg.y0", F64, legs, |l| millimetres(l.from.1));
    p.differences("leg.x1", F64, legs, |l| millimetres(l.to.0));
    p.differences("leg.y1", F64, legs, |l| millimetres(l.to.1));

    let losses = &replay.losses;
    p.differences("loss.at", F64, losses, |l| l.at as i64);
    p.plain("loss.packet", U32, losses, |l| l.packet.into());
    p.plain("loss.reason", U8, losses, |l| l.reason.map_or(0, |reason| u64::from(reason) + 1));
    p.plain("loss.place", U8, losses, |l| place(l).0);
    p.plain("loss.where", U32, losses, |l| place(l).1);
    p.plain("loss.repair", U8, losses, |l| repair(l).0);
    p.plain("loss.by", U32, losses, |l| repair(l).1);
    p.plain("loss.after", F64, losses, |l| repair(l).2);
    (p.columns, p.octets)
}

/// Sequence number of the first segment of each flow and of its reverse flow, relative to which the
/// page shows numbers.
fn first_numbers(replay: &Replay) -> Vec<(i64, i64)> {
    let mut firsts: Vec<Option<i64>> = vec![None; replay.flows.len()];
    let mut acks: Vec<Option<i64>> = vec![None; replay.flows.len()];
    for seen in &replay.packets {
        let flow = seen.packet.flow as usize;
        firsts[flow].get_or_insert(seen.packet.seq);
        if seen.packet.flags & anabranch_wire::eventlog::packet::ACK != 0 {
            // The first acknowledgement is of a SYN or, in a part of a log, of a segment before
            // that part.
            acks[flow].get_or_insert(seen.packet.ack - 1);
        }
    }
    firsts.into_iter().zip(acks).map(|(seq, ack)| (seq.unwrap_or(0), ack.unwrap_or(0))).collect()
}

fn place(loss: &Loss) -> (u64, u64) {
    match loss.place {
        Place::Link(link) => (0, link.into()),
        Place::Node(node) => (1, node.into()),
        Place::Air { from, .. } => (2, from.into()),
    }
}

/// Kind of repair, by which flow or node, and how long after the loss.
fn repair(loss: &Loss) -> (u64, u64, u64) {
    let after = |at: u64| at - loss.at;
    match loss.repair {
        Repair::None => (0, 0, 0),
        Repair::EndToEnd { at } => (1, 0, after(at)),
        Repair::LocalCache { node, at } => (2, node.into(), after(at)),
        Repair::OtherSubflow { flow, at } => (3, flow.into(), after(at)),
        Repair::Session { flow, at } => (4, flow.into(), after(at)),
        Repair::LinkLayer { at } => (5, 0, after(at)),
        Repair::NotMissing => (6, 0, 0),
        Repair::NotNeeded => (7, 0, 0),
        Repair::GivenUp => (8, 0, 0),
    }
}
