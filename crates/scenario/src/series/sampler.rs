//! Rows at an interval.

use std::collections::BTreeMap;

use anabranch_core::rdca::SenderInfo;
use anabranch_core::time::{Duration, Instant};

use super::{Connection, Ends, Names, POSITIONS, Queue, RADIOS, RDCA, Rows};
use crate::traffic::Carrier;
use crate::{Planned, Scenario};
use anabranch_sim::air::meter::{RadioState, STATES};
use anabranch_sim::apps::rdca::RdcaSource;
use anabranch_sim::event::AppId;
use anabranch_sim::network::Network;
use anabranch_sim::packet::{LinkId, NodeId};
use anabranch_sim::radio::{Mover, Position};
use anabranch_sim::sim::{Pause, Simulation};
use anabranch_sim::stream::ConnId;

/// Produces a row at each multiple of an interval at which the state differs from the row before,
/// and at the end of a run.
#[derive(Debug)]
pub struct Sampler<R> {
    rows: R,
    every: Duration,
    /// Latest end of the run.
    stop: Instant,
    /// Time of the next sample.
    next: Instant,
    names: Names,
    connections: BTreeMap<(NodeId, ConnId, Option<u16>), Connection>,
    /// By link, for cables; links over the air use the queue of their radio.
    queues: Vec<(LinkId, Option<Queue>)>,
    /// Joules in the order of [`RadioState::ALL`], of the nodes with radios.
    radios: Vec<(NodeId, Option<[f64; STATES]>)>,
    /// Time of the next sample of radios, and their interval.
    next_radios: Instant,
    radios_every: Duration,
    senders: Vec<(Sender, Option<SenderState>)>,
    movers: Vec<(NodeId, Mover, Option<Position>)>,
}

/// Radios are sampled no more often than this, and a few thousand times in a run: rows of hundreds
/// of radios would cost more than the run, and their energy changes slowly.
const RADIOS_EVERY: Duration = Duration::from_secs(1);

/// An RDCA sender.
#[derive(Clone, Debug)]
struct Sender {
    traffic: String,
    node: NodeId,
    app: AppId,
}

/// State of a sender: its own report, and the numbers of packets generated and given up.
type SenderState = (SenderInfo, u64, u64);

impl<R: Rows> Sampler<R> {
    /// Rows of a run of a scenario, with at least `every` between two samples, which is more than
    /// zero.
    pub fn new(
        rows: R,
        every: Duration,
        scenario: &Scenario,
        planned: &Planned,
        sim: &mut Simulation,
    ) -> Self {
        sim.take_touched();
        let network = &sim.world().network;
        let nodes = (0..network.node_count() as u32).map(NodeId);
        let links = network.links().iter().map(|link| (link.from(), link.to()));
        let cables = (0..).map(LinkId).zip(network.links()).filter(|(_, link)| link.cable().is_some());
        let rdca = planned.traffic.iter().map(|traffic| (&scenario.traffic[traffic.index], traffic));
        let rdca = rdca.filter(|(spec, _)| matches!(spec.carrier, Carrier::Rdca(_)));
        let senders = rdca.flat_map(|(spec, traffic)| {
            let sender = |&(node, app)| (Sender { traffic: spec.name.clone(), node, app }, None);
            traffic.sources.iter().map(sender)
        });
        Self {
            rows,
            stop: scenario.stop,
            every: every.max(Duration::from_nanos(1)),
            next: sim.now(),
            names: Names::new(nodes.clone().map(|node| network.node_name(node)), links),
            connections: BTreeMap::new(),
            queues: cables.map(|(id, _)| (id, None)).collect(),
            radios: nodes
                .filter(|node| network.energy_use(sim.now(), *node).is_some())
                .map(|node| (node, None))
                .collect(),
            next_radios: sim.now(),
            radios_every: every.max(RADIOS_EVERY).max(scenario.stop.saturating_since(Instant::ZERO) / 1000),
            senders: senders.collect(),
            movers: planned.movers.iter().map(|(node, mover)| (*node, mover.clone(), None)).collect(),
        }
    }

    /// As [`Simulation::run_until`], with rows.
    pub fn run_until(&mut self, sim: &mut Simulation, stop: Instant) -> Pause {
        loop {
            let pause = sim.run_until(self.next.min(stop));
            if pause != Pause::Reached || self.next > stop {
                return pause;
            }
            self.look(sim);
            self.next += self.every;
            // Before the next event only positions of nodes change.
            if !self.movers.is_empty() {
                continue;
            }
            let idle = sim.next_event().unwrap_or(stop).saturating_since(self.next);
            self.next += self.every * (idle.as_nanos() / self.every.as_nanos());
        }
    }

    /// Writes the last rows and returns the destination.
    pub fn finish(mut self, sim: &mut Simulation) -> R {
        // Rows of all radios, whether they have changed or not.
        self.next_radios = sim.now();
        self.radios.iter_mut().for_each(|(_, last)| *last = None);
        self.look(sim);
        super::flows(sim, self.stop, &mut self.rows);
        self.rows
    }

    fn look(&mut self, sim: &mut Simulation) {
        let touched = sim.take_touched();
        let (now, world) = (sim.now(), sim.world());
        let Self { rows, names, connections, .. } = self;
        for (node, id) in touched {
            let is_there = world.show_connection(node, id, |seen| {
                let connection = Connection::of(seen.info);
                let last = connections.insert((node, id, seen.subflow), connection);
                if last != Some(connection) {
                    let ends = Ends { peer: seen.peer, ports: seen.ports };
                    connection.write(now, (node, seen.subflow, ends), names, rows);
                }
            });
            if !is_there {
                let all = (node, id, None)..=(node, id, Some(u16::MAX));
                connections.extract_if(all, |_, _| true).for_each(drop);
            }
        }
        self.look_at_queues(now, &world.network);
        if self.next_radios <= now {
            self.look_at_radios(now, &world.network);
            self.next_radios = now + self.radios_every;
        }
        self.look_at_senders(sim);
        self.look_at_movers(now);
    }

    fn look_at_queues(&mut self, now: Instant, network: &Network) {
        let Self { rows, names, queues, .. } = self;
        for (link, last) in queues {
            let Some(cable) = network.link(*link).cable() else { continue };
            let (packets, bytes) = cable.queued(now);
            let metrics = cable.metrics();
            let queue = Queue {
                packets: packets as u64,
                bytes,
                dropped: metrics.dropped_full + metrics.dropped_early,
                marked: Some(metrics.marked),
            };
            if last.replace(queue) != Some(queue) {
                queue.write(now, *link, names, rows);
            }
        }
    }

    fn look_at_radios(&mut self, now: Instant, network: &Network) {
        let Self { rows, names, radios, .. } = self;
        for (node, last) in radios {
            let Some(used) = network.energy_use(now, *node) else { continue };
            // An idle radio consumes power as before, which needs no row.
            if last.is_none_or(|last| last[..2] != used.joules[..2]) {
                *last = Some(used.joules);
                let joules = |state: RadioState| used.joules[state as usize];
                let [transmit, receive, listen, off, sleep] = RadioState::ALL.map(joules);
                let [transmit, receive, listen, off] =
                    [transmit, receive, listen, off + sleep].map(Into::into);
                rows.row(RADIOS, &[now.into(), names.node(*node).into(), transmit, receive, listen, off]);
            }
        }
    }

    fn look_at_movers(&mut self, now: Instant) {
        let Self { rows, names, movers, .. } = self;
        for (node, mover, last) in movers {
            let place = mover.place(now);
            if last.replace(place) != Some(place) {
                rows.row(POSITIONS, &[now.into(), names.node(*node).into(), place.x.into(), place.y.into()]);
            }
        }
    }

    fn look_at_senders(&mut self, sim: &Simulation) {
        let Self { rows, names, senders, .. } = self;
        for (Sender { traffic, node, app }, last) in senders {
            let source = sim.app::<RdcaSource>(*app);
            let state = source.info().map(|info| (info, source.made_in_all(), source.gone));
            let Some((info, made, gone)) = state.filter(|state| *last != Some(*state)) else { continue };
            *last = state;
            let cells = [
                sim.now().into(),
                traffic.as_str().into(),
                names.node(*node).into(),
                info.rate.into(),
                info.window.into(),
                info.rtt.into(),
                info.queued.into(),
                info.unsent.into(),
                made.into(),
                gone.into(),
            ];
            rows.row(RDCA, &cells);
        }
    }
}
