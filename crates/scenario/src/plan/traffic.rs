//! Plans traffic: sources and sinks of packets.

use anabranch_core::time::{Duration, Instant};

use super::super::deployment::Drawn;
use super::super::traffic::{Carrier, Connection, Phase, Senders, TrafficSpec};
use super::{Plan, Scenario};
use anabranch_sim::apps::cbr::{CbrConfig, CbrSink, CbrSource};
use anabranch_sim::apps::messages::{MessageConfig, MessageSink, MessageSource, Via};
use anabranch_sim::apps::packets::{PacketSink, PacketSource, PacketSourceConfig};
use anabranch_sim::apps::rdca::{RdcaConfig, RdcaSink, RdcaSource};
use anabranch_sim::event::AppId;
use anabranch_sim::packet::NodeId;
use anabranch_sim::random::Stream;
use anabranch_sim::sim::Builder;

/// A planned traffic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedTraffic {
    /// Its index in [`Scenario::traffic`].
    pub index: usize,
    /// The receiver: a [`CbrSink`], [`PacketSink`], [`MessageSink`] or [`RdcaSink`].
    pub sink: AppId,
    /// The senders, each a [`CbrSource`], [`PacketSource`], [`MessageSource`] or [`RdcaSource`].
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
            // The receiver may be in a drawn group; it sends nothing to itself.
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

/// Default time after which an unanswered request is given up, over UDP.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);

/// The purpose of a source's random stream. The first traffic of a file has the default purpose of
/// sources.
fn stream(index: usize, name: &str) -> String {
    if index == 0 { "packets".to_owned() } else { format!("packets of {name}") }
}

impl TrafficSpec {
    fn add_sink(&self, builder: &mut Builder) -> AppId {
        let (at, begin) = (self.to, Instant::ZERO);
        if self.is_messages() {
            return builder.app(at, begin, MessageSink::new(self.port, self.carrier.transport()));
        }
        match (&self.carrier, self.carrier.transport()) {
            (Carrier::Rdca(options), _) => {
                let pieces = options.config.sender.pieces(self.sizes.most() as usize) as u32;
                builder.app(at, begin, RdcaSink::new(self.port, options.config.sink).cut_into(pieces))
            }
            (_, Some(transport)) => {
                builder.app(at, begin, PacketSink::new(self.port, self.most_payload(), transport))
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
        let Self { to, port, interval, stop: until, .. } = *self;
        let (packets, from_port, payload) = (self.most_packets(begin), port + 1, self.most_payload());
        let spacing = self.spacing.clone();
        if self.is_messages() {
            let source = self.message_source((packets, from_port), (until < end).then_some(until));
            return builder.app(node, begin, source);
        }
        let drawn = Some(&self.sizes).filter(|sizes| sizes.constant().is_none());
        match (&self.carrier, self.carrier.transport()) {
            (Carrier::Rdca(options), _) => {
                let (sender, notices) = (options.config.sender, options.notices);
                let config = RdcaConfig { to, port, from_port, packets, payload, interval, sender, notices };
                let source = RdcaSource::new(config).paced(spacing, until).drawing_from(stream);
                let source = drawn.cloned().into_iter().fold(source, RdcaSource::sized);
                builder.app(node, begin, source)
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
                // A source that the end of the simulation interrupts has more to send, so it leaves
                // its connection open.
                builder.app(node, begin, if until < end { source.until(until) } else { source })
            }
            (_, None) => {
                let config = CbrConfig { to, port, from_port, packets, payload, interval };
                let source = CbrSource::new(config).paced(spacing, until).drawing_from(stream);
                let source = drawn.cloned().into_iter().fold(source, CbrSource::sized);
                builder.app(node, begin, source)
            }
        }
    }

    /// Length in bytes of the longest packet that is not a message.
    fn most_payload(&self) -> u16 {
        u16::try_from(self.sizes.most()).unwrap_or(u16::MAX)
    }

    /// A source of messages: at most `packets` of them, from port `from_port`, none after `until`.
    fn message_source(&self, (packets, from_port): (u32, u16), until: Option<Instant>) -> MessageSource {
        let Self { to, port, interval, .. } = *self;
        let via = match (self.carrier.transport(), self.connection) {
            (Some(transport), Connection::One) => Via::Connection(transport),
            (Some(transport), Connection::Each) => Via::Connections(transport),
            (None, _) => {
                let timeout = self.replies.as_ref().map_or(TIMEOUT, |replies| replies.timeout);
                Via::Datagrams { from_port, timeout }
            }
        };
        MessageSource::new(MessageConfig {
            to,
            port,
            packets,
            sizes: self.sizes.clone(),
            replies: self.replies.as_ref().map(|replies| replies.sizes.clone()),
            spacing: self.spacing.clone(),
            interval,
            until,
            via,
            name: self.name.clone(),
        })
    }

    /// Largest number of packets of a source that begins at `begin`.
    fn most_packets(&self, begin: Instant) -> u32 {
        let most = self.packets.unwrap_or(u32::MAX);
        let made = self.spacing.most_packets(self.stop.saturating_since(begin), self.interval);
        made.map_or(most, |made| made.min(most))
    }
}
