//! Plans transfers that begin with a request: SET and its baselines.

use std::collections::BTreeMap;

use anabranch_core::set::{Energy, Gateway, Neighbour, Plan as SetPlan, SenderConfig};
use anabranch_core::tcp;
use anabranch_core::time::Instant;
use bytes::Bytes;

use super::super::{ContentSpec, Gateways, NodeKind, Scenario, Scheme, SetSpec, TransferSpec};
use super::Plan;
use anabranch_sim::address::address_of;
use anabranch_sim::apps::pattern;
use anabranch_sim::apps::set::{GATEWAY_PORT, SetNode, SetRelay, SetSender, SetSenderConfig};
use anabranch_sim::event::AppId;
use anabranch_sim::packet::NodeId;

/// A planned transfer with a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlannedSet {
    /// Its index in [`Scenario::transfers`].
    pub index: usize,
    /// Its [`SetSender`].
    pub sender: AppId,
    /// Its [`SetNode`].
    pub node: AppId,
}

impl Scenario {
    pub(super) fn plan_sets(&self, plan: &mut Plan, files: &BTreeMap<String, Bytes>) {
        let sets = self.transfers.iter().enumerate().filter_map(|(i, t)| match &t.scheme {
            Scheme::Set(spec) => Some((i, t, spec)),
            Scheme::Tcp | Scheme::Mptcp(_) | Scheme::Coap(_) => None,
        });
        for (index, transfer, spec) in sets {
            if plan.planned.relays.is_empty() {
                // The gateways serve all transfers with the options of the first.
                let relay = spec.set.relay(transfer.tcp.mss);
                for gateway in self.nodes_of(NodeKind::Gateway) {
                    let app = SetRelay::new(relay, transfer.tcp, spec.wireless);
                    plan.planned.relays.push((gateway, plan.builder.app(gateway, Instant::ZERO, app)));
                }
            }
            self.plan_set(plan, index, transfer, spec, files);
        }
    }

    fn plan_set(
        &self,
        plan: &mut Plan,
        index: usize,
        transfer: &TransferSpec,
        spec: &SetSpec,
        files: &BTreeMap<String, Bytes>,
    ) {
        if let Some(gateway) = spec.default_gateway {
            self.pin(plan, transfer, gateway);
        }
        let mut receiver = spec.set.receiver(spec.wireless.mss);
        receiver.gateways = self.gateway_table(transfer.to, &spec.gateways);
        receiver.gateways.iter_mut().for_each(|row| row.shared_channel = spec.set.shared_channel);
        // A stream gets a small window until it has said what it is for: see `Receiver`.
        let first_window = receiver.first_window.max(u32::from(spec.wireless.mss)).min(receiver.buffer);
        let listen = tcp::Config { receive_buffer: first_window, ..transfer.tcp };
        let node = plan.builder.app(transfer.to, Instant::ZERO, SetNode::new(receiver, listen));
        let gateways = match spec.gateways {
            Gateways::AtMost(n) => n as usize,
            Gateways::All | Gateways::These(_) => usize::MAX,
        };
        let sender = SetSender::new(SetSenderConfig {
            node: transfer.to,
            file: content(&transfer.content, files),
            set: SenderConfig { plan: spec.plan, gateways, ..spec.set.sender(spec.striping) },
            wired: transfer.tcp,
            control: transfer.tcp,
            ip: self.network.ip,
            stop_when_over: false,
        });
        let sender = plan.builder.app(transfer.from, Instant::ZERO + transfer.start, sender);
        plan.planned.sets.push(PlannedSet { index, sender, node });
    }

    /// The gateway table that `node` would have from neighbour discovery (Table 1 of the paper).
    /// Hops are counted over links, all of equal length.
    pub fn gateway_table(&self, node: NodeId, which: &Gateways) -> Vec<Gateway> {
        let allowed = |id: &NodeId| match which {
            Gateways::All | Gateways::AtMost(_) => true,
            Gateways::These(names) => names.contains(id),
        };
        let hops = self.hops_from(node);
        let mut table: Vec<Gateway> = self
            .nodes_of(NodeKind::Gateway)
            .filter(allowed)
            .filter_map(|id| hops[id.index()].map(|hops| self.gateway_row(id, hops)))
            .collect();
        if let Gateways::These(names) = which {
            // Gateways given by name are used in the order of their names in the list.
            let order = |g: &Gateway| names.iter().position(|n| n.0 as u16 == g.id);
            table.sort_by_key(order);
            let nearest = table.iter().map(|g| g.hops).min().unwrap_or(1);
            for row in &mut table {
                (row.hops, row.energy) = (nearest, Energy::High);
            }
        }
        table
    }

    fn gateway_row(&self, id: NodeId, hops: u8) -> Gateway {
        let spec = &self.nodes[id.index()];
        let neighbour = |n: &NodeId| Neighbour { id: n.0 as u16, energy: self.nodes[n.index()].energy };
        Gateway {
            id: id.0 as u16,
            address: (address_of(self.network.ip, id), GATEWAY_PORT).into(),
            key: None,
            energy: spec.energy,
            hops,
            shared_channel: false,
            neighbours: spec.neighbours.iter().map(neighbour).collect(),
        }
    }

    /// Number of links from each node to `node`, through nodes of the low-power network only.
    fn hops_from(&self, node: NodeId) -> Vec<Option<u8>> {
        let mut hops = vec![None; self.nodes.len()];
        hops[node.index()] = Some(0u8);
        let mut edge = vec![node];
        while let Some(at) = edge.pop() {
            let next = hops[at.index()].map_or(u8::MAX, |h| h.saturating_add(1));
            for (_, neighbour, _) in self.edges().filter(|(_, _, to)| *to == at) {
                let from = &mut hops[neighbour.index()];
                if from.is_none_or(|h| h > next) {
                    *from = Some(next);
                    if self.nodes[neighbour.index()].kind == NodeKind::Node {
                        edge.push(neighbour);
                    }
                }
            }
        }
        hops
    }

    /// Routes the packets between sender and receiver through `gateway` in both directions, while
    /// the gateway is up.
    fn pin(&self, plan: &mut Plan, transfer: &TransferSpec, gateway: NodeId) {
        for (end, other) in [(transfer.from, transfer.to), (transfer.to, transfer.from)] {
            let link = self.edges().find(|(_, from, to)| *from == end && *to == gateway);
            if let Some(link) = link.and_then(|(link, ..)| self.link_in(&plan.builder, link)) {
                plan.builder.pin_route(end, other, link);
            }
        }
    }

    /// The transfers that use SET sessions.
    pub fn striped(&self) -> impl Iterator<Item = &TransferSpec> {
        self.transfers.iter().filter(|t| matches!(&t.scheme, Scheme::Set(s) if s.plan == SetPlan::Stripe))
    }
}

pub(super) fn content(spec: &ContentSpec, files: &BTreeMap<String, Bytes>) -> Bytes {
    match spec {
        ContentSpec::Bytes(n) => {
            let pattern = pattern();
            let n = *n as usize;
            if n <= pattern.len() {
                pattern.slice(..n)
            } else {
                pattern.iter().copied().cycle().take(n).collect()
            }
        }
        ContentSpec::File(name) => files.get(name).cloned().expect("every file is given"),
        ContentSpec::Endless => unreachable!("only TCP goes on for ever"),
    }
}
