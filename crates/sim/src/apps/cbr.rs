//! Datagrams at a constant rate or as a Poisson process over plain UDP: [`CbrSource`] and
//! [`CbrSink`]. At the highest rate without loss they measure the capacity of a network.
//!
//! A datagram contains its number and generation time, as in [`super::packets`].

use std::collections::BTreeMap;

use anabranch_core::time::{Duration, Instant};
use bytes::Bytes;

use super::pace::{Pace, Spacing};
use super::packets::{Arrived, packet, read_packet};
use super::sizes::Law;
use crate::app::{App, Ctx};
use crate::packet::NodeId;
use crate::random::Stream;
use crate::stream::{ConnId, StreamEvent};

/// Options of a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CbrConfig {
    /// Receiver.
    pub to: NodeId,
    /// Port of the receiver.
    pub port: u16,
    /// Port of the source.
    pub from_port: u16,
    /// Number of datagrams.
    pub packets: u32,
    /// Length of each datagram in bytes, at least [`super::packets::LEAST_PACKET`].
    pub payload: u16,
    /// Time between two datagrams, more than zero.
    pub interval: Duration,
}

/// Sends datagrams over time without feedback.
#[derive(Clone, Debug)]
pub struct CbrSource {
    config: CbrConfig,
    pace: Pace,
    /// Distribution of the length and its random stream, if lengths differ.
    sizes: Option<(Law, Option<Stream>)>,
    next: Option<Instant>,
    /// Number of datagrams sent. A node that starts again continues the numbering.
    pub sent: u32,
}

impl CbrSource {
    /// A source that begins when it is started.
    pub fn new(config: CbrConfig) -> Self {
        let CbrConfig { interval, packets, .. } = config;
        let pace = Pace::new(interval, Spacing::Constant, packets);
        Self { config, pace, sizes: None, next: None, sent: 0 }
    }

    /// Sets the purpose of the random stream: two sources of a node need different purposes.
    #[must_use]
    pub fn drawing_from(mut self, purpose: String) -> Self {
        self.pace.purpose = purpose.into();
        self
    }

    /// Sets the arrival process, and the time after which no datagram is sent.
    #[must_use]
    pub fn paced(mut self, spacing: Spacing, until: Instant) -> Self {
        (self.pace.spacing, self.pace.until) = (spacing, Some(until));
        self
    }

    /// Sets the distribution of the length, at most 65,535 bytes. Lengths are drawn from a stream
    /// of the source's purpose.
    #[must_use]
    pub fn sized(mut self, sizes: Law) -> Self {
        self.sizes = Some((sizes, None));
        self
    }
}

impl App for CbrSource {
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        if let Some((_, random)) = &mut self.sizes {
            random.get_or_insert_with(|| ctx.stream(&format!("sizes of {}", self.pace.purpose)));
        }
        self.next = self.pace.start(ctx);
        self.on_timer(ctx);
    }

    fn on_stream(&mut self, _: &mut Ctx<'_>, _: ConnId, _: StreamEvent) {}

    fn on_timer(&mut self, ctx: &mut Ctx<'_>) {
        let CbrConfig { to, port, from_port, packets, payload, .. } = self.config;
        let Some(at) = self.next.take_if(|at| *at <= ctx.now()) else { return ctx.set_timer(self.next) };
        if self.sent < packets {
            let row = self.pace.row();
            let drawn = self.sizes.as_mut().and_then(|(law, random)| Some(law.draw(random.as_mut()?, row)));
            let octets = packet(self.sent, at, drawn.map_or(payload, |octets| octets as u16));
            self.sent += 1;
            self.next = self.pace.next(at, self.sent as usize);
            if ctx.send_datagram(to, from_port, port, octets).is_err() {
                ctx.trace(format_args!("{to:?} does not exist: this source is silent"));
                self.next = None;
            }
        }
        if self.next.is_none() {
            ctx.finished();
        }
        ctx.set_timer(self.next);
    }
}

/// Counts the datagrams to a port.
#[derive(Clone, Debug)]
pub struct CbrSink {
    port: u16,
    /// Datagrams received, in order of arrival, without duplicates.
    pub arrived: Vec<Arrived>,
    /// Number of duplicates received.
    pub again: u64,
    /// Number of datagrams received after a newer one; these are also in `arrived`.
    pub late: u64,
    /// Number of datagrams with invalid content, which is an error of the simulator.
    pub wrong: u64,
    seen: BTreeMap<NodeId, Seen>,
}

/// Datagrams received from a source.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// One more than the highest number received.
    next: u32,
    /// Whether each number below `next` was received.
    here: Vec<bool>,
}

impl CbrSink {
    /// A sink that listens on `port`.
    pub fn new(port: u16) -> Self {
        Self { port, arrived: Vec::new(), again: 0, late: 0, wrong: 0, seen: BTreeMap::new() }
    }
}

impl App for CbrSink {
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        if ctx.bind(self.port).is_err() {
            ctx.trace(format_args!("port {} is taken: this sink hears nothing", self.port));
        }
    }

    fn on_stream(&mut self, _: &mut Ctx<'_>, _: ConnId, _: StreamEvent) {}

    fn on_datagram(&mut self, ctx: &mut Ctx<'_>, from: NodeId, _: u16, _: u16, payload: Bytes) {
        // A huge number, which no source reaches, would need memory for all numbers before it.
        let Some((number, made)) = read_packet(&payload).filter(|(number, _)| *number < MOST) else {
            self.wrong += 1;
            return;
        };
        let seen = self.seen.entry(from).or_default();
        self.late += u64::from(number < seen.next);
        seen.next = seen.next.max(number + 1);
        if seen.here.len() <= number as usize {
            seen.here.resize(number as usize + 1, false);
        }
        if std::mem::replace(&mut seen.here[number as usize], true) {
            self.again += 1;
            self.late -= 1;
            return;
        }
        self.arrived.push(Arrived { from, number, made, at: ctx.now(), len: payload.len() as u32 });
    }
}

/// Largest number of datagrams of a source that a sink can track.
const MOST: u32 = 1 << 28;
