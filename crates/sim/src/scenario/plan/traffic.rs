//! Sources and sinks of packets.

use anabranch_core::time::Instant;

use super::super::deployment::Drawn;
use super::super::traffic::{Carrier, Phase, Senders, TrafficSpec};
use super::{Plan, Scenario};
use crate::apps::cbr::{CbrConfig, CbrSink, CbrSource};
use crate::apps::packets::{PacketSink, PacketSource, PacketSourceConfig};
use crate::apps::rdca::{RdcaConfig, RdcaSink, RdcaSource};
use crate::event::AppId;
use crate::packet::NodeId;
use crate::random::Stream;
use crate::sim::Builder;

/// Packets that sources will make.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedTraffic {
    /// Its index in [`Scenario::traffic`].
    pub index: usize,
    /// The receiver: a [`CbrSink`], [`PacketSink`] or [`RdcaSink`].
    pub sink: AppId,
    /// The senders, each a [`CbrSource`], [`PacketSource`] or [`RdcaSource`].
    pub sources: Vec<(NodeId, AppId)>,
}

impl Scenario {
    pub(super) fn plan_traffic(&self, plan: &mut Plan, drawn: &Drawn, (seed, run): (u64, u64)) {
        for (index, spec) in self.traffic.iter().enumerate() {
            let builder = &mut plan.builder;
            let sink = spec.add_sink(builder);
            let senders = match &spec.from {
                Senders::Nodes(nodes) => nodes,
                Senders::Group(group) => &drawn.groups[*group],
            };
            let mut random = Stream::new(seed, run, &spec.name, "beginnings");
            // The receiver may be in a group that is drawn.
            let sources = senders.iter().filter(|node| **node != spec.to).map(|&node| {
                let begin = match spec.phase {
                    Phase::Same => spec.start,
                    Phase::Random => spec.start + spec.interval.mul_ratio(random.range(0..=999), 1000),
                };
                (node, spec.add_source(builder, node, (begin, self.stop), stream(index, &spec.name)))
            });
            let sources = sources.collect();
            plan.planned.traffic.push(PlannedTraffic { index, sink, sources });
        }
    }
}

/// The purpose of a source's random stream: the first traffic of a file has the one that sources have by themselves.
fn stream(index: usize, name: &str) -> String {
    if index == 0 { "packets".to_owned() } else { format!("packets of {name}") }
}

impl TrafficSpec {
    fn add_sink(&self, builder: &mut Builder) -> AppId {
        let (at, begin) = (self.to, Instant::ZERO);
        match (&self.carrier, self.carrier.transport()) {
            (Carrier::Rdca(options), _) => {
                let pieces = options.config.sender.pieces(self.payload.into()) as u32;
                builder.app(at, begin, RdcaSink::new(self.port, options.config.sink).cut_into(pieces))
            }
            (_, Some(transport)) => {
                builder.app(at, begin, PacketSink::new(self.port, self.payload, transport))
            }
            (_, None) => builder.app(at, begin, CbrSink::new(self.port)),
        }
    }

    fn add_source(
        &self,
        builder: &mut Builder,
        node: NodeId,
        (begin, end): (Instant, Instant),
        stream: String,
    ) -> AppId {
        let Self { to, port, payload, interval, spacing, stop: until, .. } = *self;
        let (packets, from_port) = (self.most_packets(begin), port + 1);
        match (&self.carrier, self.carrier.transport()) {
            (Carrier::Rdca(options), _) => {
                let (sender, notices) = (options.config.sender, options.notices);
                let config = RdcaConfig { to, port, from_port, packets, payload, interval, sender, notices };
                builder.app(node, begin, RdcaSource::new(config).paced(spacing, until).drawing_from(stream))
            }
            (carrier, Some(transport)) => {
                let (subflows, adaptation) = match carrier {
                    Carrier::Mptcp(spec) => (spec.subflows, spec.adaptation),
                    _ => (1, None),
                };
                let config = PacketSourceConfig {
                    to,
                    port,
                    packets,
                    payload,
                    interval,
                    transport,
                    adaptation,
                    subflows,
                };
                let source = PacketSource::new(config).spaced(spacing).drawing_from(stream);
                // A source that the end of the simulation interrupts has more to send, and leaves its connection open.
                builder.app(node, begin, if until < end { source.until(until) } else { source })
            }
            (_, None) => {
                let config = CbrConfig { to, port, from_port, packets, payload, interval };
                builder.app(node, begin, CbrSource::new(config).paced(spacing, until).drawing_from(stream))
            }
        }
    }

    /// Packets that a source makes at most, which begins then.
    fn most_packets(&self, begin: Instant) -> u32 {
        let most = self.packets.unwrap_or(u32::MAX);
        let made = self.spacing.most_packets(self.stop.saturating_since(begin), self.interval);
        made.map_or(most, |made| made.min(most))
    }
}
