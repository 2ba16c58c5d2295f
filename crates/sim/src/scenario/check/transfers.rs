//! Checks of what is carried.

use anabranch_core::set::{MAX_GATEWAYS, Plan};
use anabranch_core::tcp;
use anabranch_core::time::Instant;

use super::super::file::{GatewayChoice, TransferKind, TransferSection};
use super::super::mptcp::MptcpSpec;
use super::super::nearest;
use super::super::plan::MAX_TCP_TRANSFERS;
use super::super::source::Step;
use super::super::units::quoted;
use super::super::{ContentSpec, Gateways, NodeKind, Scenario, Scheme, SetSpec, TransferSpec};
use super::{Checked, Checker, at};
use crate::packet::NodeId;
use crate::routing::{Edge, HOP, Routes};

/// What to do about no gateway.
const AT_LEAST_ONE: Option<&str> = Some("say 1 or more, name them, or leave `gateways` out to use all");

impl Checker<'_> {
    pub(super) fn transfers(&self, scenario: &mut Scenario) -> Checked<()> {
        self.ports(scenario)?;
        let routes = routes(scenario);
        for i in 0..scenario.resolved.transfer.len() {
            let mut section = scenario.resolved.transfer[i].clone();
            let name = section.name.get_or_insert_with(|| format!("transfer {}", i + 1)).clone();
            if let Some(other) = self.shares_receiver(&section, scenario)? {
                let message = format!("`{}` takes one transfer with a request at a time", section.to);
                let hint = format!("`{other}` goes there too: send to another node, or with kind = \"tcp\"");
                return self.fault(at!["transfer", i, "to"], message, Some(&hint));
            }
            if scenario.transfers.iter().any(|t| t.name == name) {
                let message = format!("there are two transfers of the name `{name}`");
                return self.fault(at!["transfer", i, "name"], message, None);
            }
            let spec = self.transfer(i, name, &section, scenario)?;
            if routes.next(spec.from, spec.to).is_none() {
                let message = format!("no packet gets from `{}` to `{}`", section.from, section.to);
                let hint = "hosts pass nothing on: make the nodes between routers";
                return self.fault(at!["transfer", i, "to"], message, Some(hint));
            }
            if section.kind == TransferKind::Mptcp {
                section.mptcp.get_or_insert_default();
            }
            self.over_the_air(i, &spec, &section, scenario, &routes)?;
            scenario.transfers.push(spec);
            scenario.resolved.transfer[i] = section;
        }
        Ok(())
    }

    /// Every transfer without a request has a port of its own.
    fn ports(&self, scenario: &Scenario) -> Checked<()> {
        let sections = scenario.resolved.transfer.iter().enumerate().skip(MAX_TCP_TRANSFERS);
        match sections.map(|(i, section)| (i, section.kind)).find(|(_, kind)| !kind.has_request()) {
            None => Ok(()),
            Some((i, _)) => {
                let message = format!(
                    "a transfer without a request is one of the first {MAX_TCP_TRANSFERS} of a scenario: each has its port"
                );
                let hint = "carry more octets in fewer transfers, or split the scenario";
                self.fault(at!["transfer", i], message, Some(hint))
            }
        }
    }

    /// The name of a transfer with a request to the same node.
    fn shares_receiver(&self, section: &TransferSection, scenario: &Scenario) -> Checked<Option<String>> {
        let with_request = |t: &&TransferSpec| matches!(t.scheme, Scheme::Set(_));
        let mut others = scenario.transfers.iter().filter(with_request);
        let name = |t: &TransferSpec| scenario.nodes[t.to.index()].name == section.to;
        let wanted = section.kind.has_request();
        Ok(others.find(|t| wanted && name(t)).map(|t| t.name.clone()))
    }

    fn transfer(
        &self,
        i: usize,
        name: String,
        section: &TransferSection,
        scenario: &Scenario,
    ) -> Checked<TransferSpec> {
        let from = self.node(at!["transfer", i, "from"], &section.from)?;
        let to = self.node(at!["transfer", i, "to"], &section.to)?;
        for (key, end) in [("from", from), ("to", to)] {
            if scenario.nodes[end.index()].tun.is_some() {
                let message = "the kernel stands for this node, and the simulator carries nothing for it";
                let hint = "begin and end transfers at simulated nodes, and use real programs here";
                return self.fault(at!["transfer", i, key], message, Some(hint));
            }
        }
        if from == to {
            return self.fault(at!["transfer", i, "to"], "sender and receiver are one node", None);
        }
        if section.start.0 >= scenario.stop.saturating_since(Instant::ZERO) {
            let message = format!(
                "it begins at {}, and the simulation ends at {}",
                section.start, scenario.resolved.stop
            );
            return self.fault(
                at!["transfer", i, "start"],
                message,
                Some("raise `stop`, or let it start before"),
            );
        }
        let content = match (&section.bytes, &section.file) {
            (Some(_), Some(_)) => {
                return self.fault(at!["transfer", i, "file"], "both `bytes` and `file` are given", None);
            }
            (Some(size), None) => ContentSpec::Bytes(size.0),
            (None, Some(file)) => ContentSpec::File(file.clone()),
            (None, None) if !section.kind.has_request() => ContentSpec::Endless,
            (None, None) => {
                let hint = Some("only kinds \"tcp\" and \"mptcp\" may go on for ever");
                return self.fault(at!["transfer", i, "kind"], "`bytes` or `file` is missing", hint);
            }
        };
        let tcp = self.profile(at!["transfer", i, "tcp"], &section.tcp)?;
        let scheme = self.scheme(i, section, tcp, scenario)?;
        Ok(TransferSpec { name, from, to, content, start: section.start.0, tcp, scheme })
    }

    fn scheme(
        &self,
        i: usize,
        section: &TransferSection,
        tcp: tcp::Config,
        scenario: &Scenario,
    ) -> Checked<Scheme> {
        let kind = section.kind;
        let plain = !kind.has_request() || kind == TransferKind::EndToEnd;
        let refused = [
            ("tcp_wireless", section.tcp_wireless.is_some(), plain),
            ("gateways", section.gateways.is_some(), plain),
            ("default_gateway", section.default_gateway.is_some(), !kind.has_request()),
            ("set", section.set.is_some(), !kind.has_request()),
            ("mptcp", section.mptcp.is_some(), kind != TransferKind::Mptcp),
        ];
        if let Some((key, ..)) = refused.iter().find(|(_, given, refused)| *given && *refused) {
            let message = format!("`{key}` has no meaning for this kind of transfer");
            return self.fault(at!["transfer", i, *key], message, None);
        }
        let wireless = match &section.tcp_wireless {
            Some(name) => self.profile(at!["transfer", i, "tcp_wireless"], name)?,
            None => tcp,
        };
        let default_gateway = match &section.default_gateway {
            Some(name) => Some(self.gateway(at!["transfer", i, "default_gateway"], name, scenario)?),
            None => None,
        };
        let plan = match kind {
            TransferKind::Tcp => return Ok(Scheme::Tcp),
            TransferKind::Mptcp => return self.multipath(i, section, tcp, scenario).map(Scheme::Mptcp),
            TransferKind::EndToEnd => Plan::EndToEnd,
            TransferKind::Split => Plan::Split,
            TransferKind::Set => Plan::Stripe,
        };
        let set = section.set.unwrap_or_default();
        for (key, size) in [("node_buffer", set.node_buffer), ("gateway_buffer", set.gateway_buffer)] {
            if size.0 == 0 || size.0 > u64::from(u32::MAX) {
                let message = format!("`{key}` is not between 1 octet and 4 GiB");
                return self.fault(at!["transfer", i, "set", key], message, None);
            }
        }
        if plan != Plan::EndToEnd && !scenario.nodes.iter().any(|n| n.kind == NodeKind::Gateway) {
            let hint = Some("give a node between sender and receiver `kind = \"gateway\"`");
            return self.fault(at!["transfer", i, "kind"], "the network has no gateway", hint);
        }
        let gateways = self.gateways(i, section, scenario)?;
        let rows = match &gateways {
            Gateways::These(names) => names.len(),
            Gateways::All | Gateways::AtMost(_) => scenario.nodes_of(NodeKind::Gateway).count(),
        };
        if plan != Plan::EndToEnd && rows > MAX_GATEWAYS {
            let message =
                format!("{rows} gateways: the table that the node sends has room for {MAX_GATEWAYS}");
            let hint = format!("name at most {MAX_GATEWAYS} of them: gateways = [\"...\", ...]");
            return self.fault(at!["transfer", i, "gateways"], message, Some(&hint));
        }
        let striping = match set.striping.find(self.source.policies()) {
            Ok(striping) => striping,
            Err(message) => return self.fault(at!["transfer", i, "set", "striping"], message, None),
        };
        Ok(Scheme::Set(SetSpec { plan, gateways, default_gateway, wireless, striping, set }))
    }

    fn multipath(
        &self,
        i: usize,
        section: &TransferSection,
        tcp: tcp::Config,
        scenario: &Scenario,
    ) -> Checked<MptcpSpec> {
        let root = scenario.resolved.paths.as_ref().map(|paths| &paths.root);
        if let Some(root) = root.filter(|root| **root != section.to) {
            let message = format!("paths lead to `{root}`, and subflows on them");
            let hint = format!("send to `{root}`, or with kind = \"tcp\"");
            return self.fault(at!["transfer", i, "to"], message, Some(&hint));
        }
        match section.mptcp.unwrap_or_default().spec(tcp, self.source.policies()) {
            Ok(spec) => Ok(spec),
            Err((key, message)) => self.fault(at!["transfer", i, "mptcp", key], message, None),
        }
    }

    fn gateways(&self, i: usize, section: &TransferSection, scenario: &Scenario) -> Checked<Gateways> {
        let at = at!["transfer", i, "gateways"];
        match &section.gateways {
            None => Ok(Gateways::All),
            Some(GatewayChoice::Best(_)) if scenario.radio.is_some() => {
                let hint = Some("say how many, or leave `gateways` out to use all");
                self.fault(at, "the latency model knows no radio channel that gateways share", hint)
            }
            // The number follows when the whole network is known.
            Some(GatewayChoice::Best(_)) if section.kind == TransferKind::Set => Ok(Gateways::All),
            Some(GatewayChoice::Best(_)) => {
                let hint = Some("the best number is that of SET sessions: say kind = \"set\", or how many");
                self.fault(at, "\"best\" has no meaning for this kind of transfer", hint)
            }
            Some(GatewayChoice::Count(0)) => self.fault(at, "SET needs at least one gateway", AT_LEAST_ONE),
            Some(GatewayChoice::Count(n)) => {
                let there = scenario.nodes.iter().filter(|n| n.kind == NodeKind::Gateway).count();
                if *n as usize > there {
                    let hint = Some("nodes of kind \"gateway\" count");
                    return self.fault(at, format!("the network has {there} gateways, not {n}"), hint);
                }
                Ok(Gateways::AtMost(*n))
            }
            Some(GatewayChoice::Names(names)) if names.is_empty() => {
                self.fault(at, "SET needs at least one gateway", AT_LEAST_ONE)
            }
            Some(GatewayChoice::Names(names)) => {
                let bind = |(j, name): (usize, &String)| {
                    let at = at!["transfer", i, "gateways", j];
                    if names[..j].contains(name) {
                        return self.fault(at, format!("`{name}` is named twice"), None);
                    }
                    self.gateway(at, name, scenario)
                };
                names.iter().enumerate().map(bind).collect::<Checked<_>>().map(Gateways::These)
            }
        }
    }

    fn gateway(&self, path: &[Step], name: &str, scenario: &Scenario) -> Checked<NodeId> {
        let node = self.node(path, name)?;
        if scenario.nodes[node.index()].kind == NodeKind::Gateway {
            return Ok(node);
        }
        self.fault(path, format!("`{name}` is no gateway"), Some("give that node `kind = \"gateway\"`"))
    }

    pub(super) fn profile(&self, path: &[Step], name: &str) -> Checked<tcp::Config> {
        if let Some(config) = self.profiles.get(name) {
            return Ok(*config);
        }
        let hint = match nearest(name, self.profiles.keys().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the profiles are {}; add `[tcp.{name}]`", quoted(self.profiles.keys())),
        };
        self.fault(path, format!("there is no TCP profile `{name}`"), Some(&hint))
    }
}

fn routes(scenario: &Scenario) -> Routes {
    let over_air = scenario.radio.iter().flat_map(|radio| radio.lengths.iter().copied());
    let lengths = scenario.links.iter().map(|_| HOP).chain(over_air);
    let edges = scenario.edges().zip(lengths);
    let edges: Vec<_> = edges.map(|((link, from, to), weight)| Edge { link, from, to, weight }).collect();
    let forwards = |n: NodeId| scenario.nodes[n.index()].kind != NodeKind::Host;
    Routes::compute(scenario.nodes.len(), &edges, forwards)
}
