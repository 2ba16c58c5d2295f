//! Datagrams at a constant rate or as a Poisson process, over UDP as it is: [`CbrSource`] and
//! [`CbrSink`]. At the best rate they measure what a network carries.
//!
//! A datagram says which it is and when it was made, as in [`super::packets`].

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

/// What a source sends, and to whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CbrConfig {
    /// The receiver.
    pub to: NodeId,
    /// Its port.
    pub port: u16,
    /// The port that the datagrams are from.
    pub from_port: u16,
    /// How many datagrams.
    pub packets: u32,
    /// Octets of each, at least [`super::packets::LEAST_PACKET`].
    pub payload: u16,
    /// Time from one to the next, more than zero.
    pub interval: Duration,
}

/// Sends datagrams as time goes on, whatever becomes of them.
#[derive(Clone, Debug)]
pub struct CbrSource {
    config: CbrConfig,
    pace: Pace,
    /// How long datagrams are, and what draws it, if they differ.
    sizes: Option<(Law, Option<Stream>)>,
    next: Option<Instant>,
    /// Datagrams sent. A node that starts again goes on with their numbers.
    pub sent: u32,
}

impl CbrSource {
    /// A source that begins when it is started.
    pub fn new(config: CbrConfig) -> Self {
        let CbrConfig { interval, packets, .. } = config;
        let pace = Pace::new(interval, Spacing::Constant, packets);
        Self { config, pace, sizes: None, next: None, sent: 0 }
    }

    /// The same, with random numbers from a stream of that purpose: two sources of a node must not
    /// share one.
    #[must_use]
    pub fn drawing_from(mut self, purpose: String) -> Self {
        self.pace.purpose = purpose.into();
        self
    }

    /// The same, with datagrams that follow upon each other in this way, and none later than that.
    #[must_use]
    pub fn paced(mut self, spacing: Spacing, until: Instant) -> Self {
        (self.pace.spacing, self.pace.until) = (spacing, Some(until));
        self
    }

    /// The same, with datagrams of these lengths, at most 65,535 octets; they are drawn from a
    /// stream of the source's purpose.
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
    /// What came, in order of arrival, each datagram once.
    pub arrived: Vec<Arrived>,
    /// Datagrams that came again.
    pub again: u64,
    /// Datagrams that came after one that is newer; they are among those that arrived.
    pub late: u64,
    /// Datagrams whose octets are wrong: a fault.
    pub wrong: u64,
    seen: BTreeMap<NodeId, Seen>,
}

/// What has come of a source.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// One past the newest.
    next: u32,
    /// By number, up to there.
    here: Vec<bool>,
}

impl CbrSink {
    /// A sink that listens to `port`.
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
        // A number that no source reaches would take memory for all before it.
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

/// Datagrams of a source that a sink can tell apart.
const MOST: u32 = 1 << 28;
