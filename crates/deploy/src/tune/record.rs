//! `--record`: an event log of the sockets, for `anabranch view`.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use anabranch_core::time::Instant;
use anabranch_net::sockbuf::SocketState;
use anabranch_wire::eventlog::{Record, VERSION_4, tag};

use crate::error::Error;
use crate::files::Whole;

/// A log in progress. The file gets its name at the end.
pub(super) struct Log {
    file: BufWriter<Whole>,
    record: Record,
    now: Instant,
    events: u64,
    nodes: BTreeMap<IpAddr, u64>,
    flows: BTreeMap<(SocketAddr, SocketAddr), Flow>,
}

/// The values that the next record of a flow is relative to.
struct Flow {
    number: u64,
    striped: bool,
    state: [i64; 8],
    send_buffer: i64,
}

impl Log {
    pub(super) fn create(path: &Path) -> Result<Self, Error> {
        let (file, record) = (BufWriter::new(Whole::create(path)?), Record::default());
        let (nodes, flows) = (BTreeMap::new(), BTreeMap::new());
        let mut log = Self { file, record, now: Instant::ZERO, events: 0, nodes, flows };
        log.record.preamble(VERSION_4);
        log.write().map_err(|error| Error::unwritable(path, &error))?;
        let record = log.record.begin(tag::RUN).text("anabranch tune").text("").number(0).number(0);
        record.text(env!("CARGO_PKG_VERSION"));
        log.write().map_err(|error| Error::unwritable(path, &error))?;
        Ok(log)
    }

    /// Adds the present state of a socket.
    pub(super) fn add(&mut self, now: Instant, socket: &SocketState) -> io::Result<()> {
        let key = (socket.local, socket.peer);
        if !self.flows.contains_key(&key) {
            let (from, to) = (self.node(socket.local.ip())?, self.node(socket.peer.ip())?);
            let number = self.flows.len() as u64;
            let record = self.record.begin(tag::FLOW).number(from).number(to + 1).octet(TCP);
            record.number(socket.local.port().into()).number(socket.peer.port().into());
            self.write()?;
            self.flows.insert(key, Flow { number, striped: false, state: [0; 8], send_buffer: 0 });
        }
        let Some(mut flow) = self.flows.remove(&key) else { return Ok(()) };
        if socket.striped && !flow.striped {
            flow.striped = true;
            let (connection, number) = (socket.flow.connection.0, socket.flow.number);
            let record = self.record.begin(tag::SUBFLOW).number(flow.number);
            record.number(connection.into()).number(number.into());
            self.write()?;
        }
        let limit = socket.flow.limit as i64;
        if limit != flow.send_buffer {
            let before = std::mem::replace(&mut flow.send_buffer, limit);
            self.event(now, tag::BUFFER).number(flow.number).difference(limit, before);
            self.write()?;
        }
        let state = figures(socket);
        let changed = (0..state.len()).filter(|i| state[*i] != flow.state[*i]);
        let mask = changed.clone().map(|i| 1 << i).sum::<u8>();
        if mask != 0 {
            let number = flow.number;
            let record = self.event(now, tag::STATE).number(number).octet(mask);
            for i in changed {
                record.difference(state[i], flow.state[i]);
            }
            flow.state = state;
            self.write()?;
        }
        self.flows.insert(key, flow);
        Ok(())
    }

    /// Ends the log and gives the file its name.
    pub(super) fn finish(mut self, now: Instant) -> Result<(), Error> {
        let events = self.events;
        self.event(now, tag::END).number(events);
        let written = self.write().and_then(|()| self.file.into_inner().map_err(|error| error.into_error()));
        written.map_err(|error| Error::job(format!("cannot write the event log: {error}")))?.keep()
    }

    fn node(&mut self, ip: IpAddr) -> io::Result<u64> {
        let next = self.nodes.len() as u64;
        let number = *self.nodes.entry(ip).or_insert(next);
        if number == next {
            self.record.begin(tag::NODE).text(&ip.to_string()).text("").octet(0);
            self.write()?;
        }
        Ok(number)
    }

    fn event(&mut self, now: Instant, tag: u8) -> &mut Record {
        let passed = now.saturating_since(self.now).as_nanos();
        self.now = self.now.max(now);
        self.events += 1;
        self.record.begin(tag).number(passed)
    }

    fn write(&mut self) -> io::Result<()> {
        self.file.write_all(self.record.octets())
    }
}

/// The figures of a state, in the order of their flags (`anabranch_wire::eventlog::state`).
fn figures(socket: &SocketState) -> [i64; 8] {
    let info = &socket.flow.info;
    let octets = |segments: u32| i64::from(segments) * i64::from(info.snd_mss);
    [
        info.window() as i64,
        info.snd_ssthresh.map_or(0, octets),
        info.rtt.map_or(0, |rtt| (rtt.as_nanos() / 1000) as i64),
        info.snd_wnd.unwrap_or(0).into(),
        octets(info.unacked),
        info.notsent_bytes.unwrap_or(0).into(),
        info.total_retrans.into(),
        // TCP_INFO does not count time-outs.
        0,
    ]
}

/// The protocol number of TCP.
const TCP: u8 = 6;
