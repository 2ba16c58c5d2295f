//! Checks transfers.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_core::set::{MAX_GATEWAYS, Plan};
use anabranch_core::time::{Duration, Instant};
use anabranch_core::{coap, tcp};
use anabranch_wire::coap::Block;

use super::super::deployment::{Count, NodesSection};
use super::super::did_you_mean;
use super::super::file::{FileConfig, GatewayChoice, RepeatSection, TransferKind, TransferSection};
use super::super::mptcp::MptcpSpec;
use super::super::plan::{FIRST_PORT, MAX_TCP_TRANSFERS};
use super::super::source::Step;
use super::super::units::{Span, quoted};
use super::super::{
    ContentSpec, Gateways, NodeKind, NodeSpec, Repeat, Scenario, Scheme, SetSpec, TransferSpec,
};
use super::deployment::Named;
use super::{Checked, Checker, at};
use anabranch_sim::apps::Interfaces;
use anabranch_sim::apps::set::{GATEWAY_PORT, NODE_PORT};
use anabranch_sim::packet::NodeId;
use anabranch_sim::routing::{Edge, HOP, Routes};

/// Values that must be unique among transfers.
#[derive(Default)]
struct Known {
    names: BTreeSet<String>,
    /// Ports of receivers without a request, with the index of their transfer.
    ports: BTreeMap<(NodeId, u16), usize>,
}

/// Largest number of connections of a repeated transfer: all of them are planned before the run.
const MOST_CONNECTIONS: u64 = 10_000;
/// Largest number of transfers in a scenario.
const MOST: usize = 65_535;
/// Hint if a transfer has no gateway.
const AT_LEAST_ONE: Option<&str> = Some("set 1 or more, name them, or remove `gateways` to use all");

impl Checker<'_> {
    pub(super) fn transfers(&self, scenario: &mut Scenario) -> Checked<()> {
        let routes = routes(scenario);
        let (mut ways, mut known) = (BTreeMap::new(), Known::default());
        for i in 0..scenario.resolved.transfer.len() {
            let mut section = scenario.resolved.transfer[i].clone();
            self.leave_aside(i, &mut section);
            let nodes = self.for_each(i, &section, scenario)?;
            let count = nodes.as_ref().map_or(section.count.unwrap_or(1), |nodes| nodes.len() as u32);
            if scenario.transfers.len() + count as usize > MOST {
                let message = format!("{count} transfers: a scenario has at most {MOST}");
                return self.fault(at!["transfer", i, "count"], message, None);
            }
            if section.name.is_none() && count != 1 && nodes.is_none() {
                let hint = Some("such as `name = \"flow {i}\"`");
                return self.fault(at!["transfer", i, "count"], "several transfers need a `name`", hint);
            }
            let name = section.name.get_or_insert_with(|| format!("transfer {}", i + 1)).clone();
            if count > 1 && !name.contains("{i}") {
                let message = format!("{count} transfers of one name: `{name}`");
                let hint = format!("set `name = \"{name} {{i}}\"`");
                return self.fault(at!["transfer", i, "name"], message, Some(&hint));
            }
            // A transfer with `count = 0` is checked as well, so that a larger count does not
            // reveal new errors.
            let least = if nodes.is_none() { 1 } else { 0 };
            for member in 0..count.max(least) {
                let number = match (&nodes, section.count) {
                    (Some(nodes), _) => Some(nodes[member as usize]),
                    (None, Some(_)) => Some(u64::from(member) + 1),
                    (None, None) => None,
                };
                let numbered = |text: &str| match number {
                    Some(number) => text.replace("{i}", &number.to_string()),
                    None => text.to_owned(),
                };
                let mut own = section.clone();
                if nodes.is_some() {
                    (own.from, own.to) = (numbered(&section.from), numbered(&section.to));
                }
                let section = &own;
                let spec = self.member(i, (numbered(&name), member), section, scenario, &known)?;
                if routes.next(spec.from, spec.to).is_none() {
                    let message = format!("no packet gets from `{}` to `{}`", section.from, section.to);
                    let hint = "hosts pass nothing on: make the nodes between routers";
                    return self.fault(at!["transfer", i, "to"], message, Some(hint));
                }
                self.ways(i, scenario, (spec.from, spec.to), &spec.interfaces, &mut ways)?;
                self.over_the_air(i, &spec, section, scenario, &routes)?;
                if count > 0 {
                    known.names.insert(spec.name.clone());
                    if spec.scheme.is_bulk() {
                        known.ports.insert((spec.listener(), spec.port), scenario.transfers.len());
                    }
                    scenario.transfers.push(spec);
                }
            }
            if section.kind == TransferKind::Mptcp {
                section.mptcp.get_or_insert_default();
            }
            if section.kind == TransferKind::Coap {
                section.coap.get_or_insert_with(|| "default".to_owned());
            }
            scenario.resolved.transfer[i] = section;
        }
        Ok(())
    }

    /// The numbers of the nodes for which there is a transfer each, if an end names `[[nodes]]`.
    fn for_each(
        &self,
        i: usize,
        section: &TransferSection,
        scenario: &Scenario,
    ) -> Checked<Option<Vec<u64>>> {
        let is_end = |name: &String| *name == section.from || *name == section.to;
        let several = |nodes: &&NodesSection| nodes.name.contains("{i}") && is_end(&nodes.name);
        let Some(nodes) = scenario.resolved.nodes.iter().find(several) else { return Ok(None) };
        match (&nodes.count, section.count) {
            (Count::Rows(_), _) => Ok(None),
            (Count::Nodes(_), None) => Ok(Some(nodes.numbers())),
            (Count::Nodes(_), Some(_)) => {
                let message = format!("there is a transfer for each of `{}`, and so no `count`", nodes.name);
                self.fault(at!["transfer", i, "count"], message, None)
            }
        }
    }

    /// Removes keys that the kind does not read, if the kind was chosen from outside.
    fn leave_aside(&self, i: usize, section: &mut TransferSection) {
        let unread: Vec<Unread> = unread(section).collect();
        if unread.is_empty() || !self.is_chosen(at!["transfer", i, "kind"]) {
            return;
        }
        for Unread { key, clear } in unread {
            if self.source.is_of_file(self.tree(), at!["transfer", i, key]) {
                clear(section);
            }
        }
    }

    /// Checks one of the transfers of a section.
    fn member(
        &self,
        i: usize,
        (name, member): (String, u32),
        section: &TransferSection,
        scenario: &Scenario,
        known: &Known,
    ) -> Checked<TransferSpec> {
        if let Some(other) = self.shares_receiver(section, scenario)? {
            let message = format!("`{}` takes one transfer with a request at a time", section.to);
            let hint = format!("`{other}` goes there too: send to another node, or with kind = \"tcp\"");
            return self.fault(at!["transfer", i, "to"], message, Some(&hint));
        }
        if known.names.contains(&name) {
            let message = format!("there are two transfers of the name `{name}`");
            return self.fault(at!["transfer", i, "name"], message, None);
        }
        let spec = self.transfer(i, (name, member), section, scenario)?;
        let other = known.ports.get(&(spec.listener(), spec.port)).filter(|_| spec.scheme.is_bulk());
        if let Some(other) = other.map(|index| &scenario.transfers[*index]) {
            let message = format!("`{}` receives on port {} already", other.name, spec.port);
            return self.fault(
                at!["transfer", i, "port"],
                message,
                Some("each transfer has a port of its own"),
            );
        }
        Ok(spec)
    }

    /// The port of a transfer without a request, which must be unique at its node.
    fn port(&self, i: usize, member: u32, section: &TransferSection, scenario: &Scenario) -> Checked<u16> {
        let index = scenario.transfers.len();
        let Some(first) = section.port else {
            if index < MAX_TCP_TRANSFERS || section.kind.has_request() {
                return Ok(FIRST_PORT.saturating_add(u16::try_from(index).unwrap_or(u16::MAX)));
            }
            let message = format!(
                "a transfer without a request is one of the first {MAX_TCP_TRANSFERS} of a scenario: each has its port"
            );
            let hint = "carry more bytes in fewer transfers, or split the scenario";
            return self.fault(at!["transfer", i], message, Some(hint));
        };
        let port = u32::from(first) + member;
        let is_free = |port: &u16| *port > 0 && ![NODE_PORT, GATEWAY_PORT].contains(port);
        match u16::try_from(port).ok().filter(is_free) {
            Some(port) => Ok(port),
            None => {
                let message = format!(
                    "expected a port in 1..=65535 that is none of SET's, {NODE_PORT} and {GATEWAY_PORT}, found {port}"
                );
                self.fault(at!["transfer", i, "port"], message, None)
            }
        }
    }

    /// The name of another transfer with a request to the same node.
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
        (name, member): (String, u32),
        section: &TransferSection,
        scenario: &Scenario,
    ) -> Checked<TransferSpec> {
        let from = self.node(at!["transfer", i, "from"], &section.from)?;
        let to = self.node(at!["transfer", i, "to"], &section.to)?;
        for (key, end) in [("from", from), ("to", to)] {
            // Without members, the transfer is one of the same network with simulated ends.
            if scenario.nodes[end.index()].tun.is_some() && section.count != Some(0) {
                let message = "the kernel plays this node, and the simulator cannot run its transfers";
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
                Some("raise `stop`, or let it start earlier"),
            );
        }
        let content = match (&section.bytes, &section.file) {
            (Some(_), Some(_)) => {
                return self.fault(at!["transfer", i, "file"], "both `bytes` and `file` are given", None);
            }
            (Some(size), None) => ContentSpec::Bytes(size.0),
            (None, Some(file)) => ContentSpec::File(file.clone()),
            (None, None) if matches!(section.kind, TransferKind::Tcp | TransferKind::Mptcp) => {
                ContentSpec::Endless
            }
            (None, None) => {
                let hint = Some("only kinds \"tcp\" and \"mptcp\" may go on for ever");
                return self.fault(at!["transfer", i, "kind"], "`bytes` or `file` is missing", hint);
            }
        };
        let tcp = self.profile(at!["transfer", i, "tcp"], &section.tcp)?;
        let scheme = self.scheme(i, section, tcp, scenario)?;
        let receiver = match &section.tcp_receiver {
            Some(name) => self.profile(at!["transfer", i, "tcp_receiver"], name)?,
            None => tcp,
        };
        let start = section.start.0;
        let reads_until =
            section.reads_for.map_or(Instant::FAR_FUTURE, |time| Instant::ZERO + start + time.0);
        let (stop, repeat) = self.presence(i, member, section, content == ContentSpec::Endless, scenario)?;
        let interfaces = self.uses(i, member, section, &scenario.nodes[from.index()], scenario)?;
        let port = self.port(i, member, section, scenario)?;
        Ok(TransferSpec {
            section: i,
            name,
            from,
            to,
            content,
            start,
            stop,
            repeat,
            interfaces,
            port,
            reads_until,
            tcp,
            receiver,
            scheme,
        })
    }

    /// The paths of the sender that a transfer uses.
    fn uses(
        &self,
        i: usize,
        member: u32,
        section: &TransferSection,
        node: &NodeSpec,
        scenario: &Scenario,
    ) -> Checked<Interfaces> {
        let named = section.interfaces.as_ref().map(|names| self.interfaces_of(i, names, node, scenario));
        let named = named.transpose()?;
        if named.as_ref().is_some_and(Vec::is_empty) {
            return self.fault(at!["transfer", i, "interfaces"], "at least one interface is needed", None);
        }
        Ok(match (section.kind, named) {
            (TransferKind::Mptcp, named) => {
                let paths = named.unwrap_or_else(|| node.interfaces.clone());
                Interfaces::new(&paths.iter().map(|interface| interface.path).collect::<Vec<_>>())
            }
            (_, Some(named)) => {
                if section.count.is_none() && named.len() > 1 {
                    let message = "a TCP connection keeps to one interface";
                    let hint = "name one, set `kind = \"mptcp\"`, or let several transfers take them in turn with `count`";
                    return self.fault(at!["transfer", i, "interfaces"], message, Some(hint));
                }
                Interfaces::only(named[member as usize % named.len()].path)
            }
            (_, None) => Interfaces::default(),
        })
    }

    /// Start, stop and repetition of an unlimited transfer.
    fn presence(
        &self,
        i: usize,
        member: u32,
        section: &TransferSection,
        is_endless: bool,
        scenario: &Scenario,
    ) -> Checked<(Option<Instant>, Option<Repeat>)> {
        for (key, given) in [("stop", section.stop.is_some()), ("repeat", section.repeat.is_some())] {
            if given && !is_endless {
                let message = format!("`{key}` has no meaning for a transfer with `bytes` or `file`");
                return self.fault(
                    at!["transfer", i, key],
                    message,
                    Some("it ends when everything has arrived"),
                );
            }
        }
        let stop = section.stop.map(|stop| Instant::ZERO + stop.0);
        if let Some(stop) =
            stop.filter(|stop| *stop <= Instant::ZERO + section.start.0 || *stop > scenario.stop)
        {
            let message = format!(
                "it begins at {} and ends at {}, and the simulation ends at {}",
                section.start,
                Span(stop.saturating_since(Instant::ZERO)),
                scenario.resolved.stop
            );
            return self.fault(
                at!["transfer", i, "stop"],
                message,
                Some("let it end later, or remove `stop`"),
            );
        }
        let Some(RepeatSection { on, off, offset, stagger }) = section.repeat else {
            return Ok((stop, None));
        };
        let cycle = on.0 + off.0;
        let time = stop.unwrap_or(scenario.stop).saturating_since(Instant::ZERO + section.start.0);
        if on.0.is_zero() || off.0.is_zero() || time.as_nanos() / cycle.as_nanos() > MOST_CONNECTIONS {
            let key = if off.0.is_zero() && !on.0.is_zero() { "off" } else { "on" };
            let message = format!("expected more than no time, and at most {MOST_CONNECTIONS} connections");
            return self.fault(at!["transfer", i, "repeat", key], message, None);
        }
        for (key, span) in [("offset", offset), ("stagger", stagger)] {
            if span.0 > cycle {
                let message = format!("expected at most `on` and `off` together, {}", Span(cycle));
                return self.fault(at!["transfer", i, "repeat", key], message, None);
            }
        }
        let nanos = u128::from(offset.0.as_nanos()) + u128::from(member) * u128::from(stagger.0.as_nanos());
        let offset = Duration::from_nanos((nanos % u128::from(cycle.as_nanos())) as u64);
        Ok((stop, Some(Repeat { on: on.0, off: off.0, offset })))
    }

    fn scheme(
        &self,
        i: usize,
        section: &TransferSection,
        tcp: tcp::Config,
        scenario: &Scenario,
    ) -> Checked<Scheme> {
        let kind = section.kind;
        if let Some(Unread { key, .. }) = unread(section).next() {
            if let (TransferKind::Split, "gateways", Some(GatewayChoice::Count(count))) =
                (kind, key, &section.gateways)
            {
                let message = format!("{count} gateways have no meaning for kind \"split\", which takes one");
                let hint =
                    "remove `gateways`, name gateways of which the nearest is taken, or set kind = \"set\"";
                return self.fault(at!["transfer", i, key], message, Some(hint));
            }
            let message = format!("`{key}` has no meaning for this kind of transfer");
            return self.fault(at!["transfer", i, key], message, None);
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
            TransferKind::Coap => return self.coap(i, section).map(Scheme::Coap),
            TransferKind::EndToEnd => Plan::EndToEnd,
            TransferKind::Split => Plan::Split,
            TransferKind::Set => Plan::Stripe,
        };
        let set = section.set.unwrap_or_default();
        for (key, size) in [("node_buffer", set.node_buffer), ("gateway_buffer", set.gateway_buffer)] {
            if size.0 == 0 || size.0 > u64::from(u32::MAX) {
                let message = format!("`{key}` is not between 1 byte and 4 GiB");
                return self.fault(at!["transfer", i, "set", key], message, None);
            }
        }
        if plan != Plan::EndToEnd && !scenario.nodes.iter().any(|n| n.kind == NodeKind::Gateway) {
            let hint = Some("give a node between sender and receiver `kind = \"gateway\"`");
            return self.fault(at!["transfer", i, "kind"], "the network has no gateway", hint);
        }
        let gateways = self.gateways(i, section, scenario)?;
        let of_kernel = |node: &NodeId| scenario.nodes[node.index()].tun.is_some();
        let outside = match &gateways {
            Gateways::These(named) => named.iter().copied().find(of_kernel),
            Gateways::All | Gateways::AtMost(_) => scenario.nodes_of(NodeKind::Gateway).find(of_kernel),
        };
        if let Some(outside) = outside.filter(|_| plan != Plan::EndToEnd) {
            let message = format!(
                "the kernel plays gateway `{}`, and the simulator cannot run its sessions",
                scenario.nodes[outside.index()].name
            );
            let hint = "name simulated gateways in `gateways`, or use real programs here";
            return self.fault(at!["transfer", i, "kind"], message, Some(hint));
        }
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

    /// The CoAP profile of a transfer.
    fn coap(&self, i: usize, section: &TransferSection) -> Checked<coap::Config> {
        let name = section.coap.as_deref().unwrap_or("default");
        let config = *self.named(at!["transfer", i, "coap"], ("profile", "coap"), name, &self.coap)?;
        let octets = match (section.bytes, &section.file) {
            (Some(size), _) => size.0,
            (None, Some(file)) => self.source.length_of(file).unwrap_or(0),
            (None, None) => 0,
        };
        let most = u64::from(Block::NUMBERS) * u64::from(config.block_size);
        if octets > most {
            let message = format!(
                "{octets} bytes: a body has at most {most} with blocks of {} bytes",
                config.block_size
            );
            let hint = format!("raise `block_size` in `[coap.{name}]`, or carry less");
            return self.fault(at!["transfer", i, "coap"], message, Some(&hint));
        }
        Ok(config)
    }

    /// Resolves the CoAP profiles. "default" exists even if the file does not define it.
    pub(super) fn coap_profiles(&self, file: &mut FileConfig) -> Checked<BTreeMap<String, coap::Config>> {
        let is_used = |t: &TransferSection| t.kind == TransferKind::Coap && t.coap.is_none();
        if file.transfer.iter().any(is_used) {
            file.coap.entry("default".to_owned()).or_default();
        }
        let mut profiles = BTreeMap::new();
        for (name, profile) in &mut file.coap {
            match profile.resolve() {
                Ok(config) => profiles.insert(name.clone(), config),
                Err((key, message)) => return self.fault(at!["coap", name.as_str(), key], message, None),
            };
        }
        Ok(profiles)
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
                let hint = Some("give their number, or remove `gateways` to use all");
                self.fault(at, "the latency model knows no radio channel that gateways share", hint)
            }
            // The number is computed once the whole network is known.
            Some(GatewayChoice::Best(_)) if section.kind == TransferKind::Set => Ok(Gateways::All),
            Some(GatewayChoice::Best(_)) => {
                let hint =
                    Some("the best number is that of SET sessions: set kind = \"set\", or give their number");
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
                let mut found = Vec::new();
                for (j, name) in names.iter().enumerate() {
                    let at = at!["transfer", i, "gateways", j];
                    for gateway in self.gateways_named(at, name, scenario)? {
                        if found.contains(&gateway) {
                            let name = &scenario.nodes[gateway.index()].name;
                            return self.fault(at, format!("`{name}` is named twice"), None);
                        }
                        found.push(gateway);
                    }
                }
                if found.is_empty() {
                    return self.fault(at, "SET needs at least one gateway", AT_LEAST_ONE);
                }
                Ok(Gateways::These(found))
            }
        }
    }

    /// The gateway with this name, or all gateways that a pattern or the name of `[[nodes]]` stands
    /// for.
    fn gateways_named(&self, at: &[Step], name: &String, scenario: &Scenario) -> Checked<Vec<NodeId>> {
        let file = &scenario.resolved;
        if !name.contains('*') && file.nodes.iter().all(|nodes| nodes.name != *name) {
            return Ok(vec![self.gateway(at, name, scenario)?]);
        }
        let Named::Nodes(nodes) = self.nodes_named(at, std::slice::from_ref(name), file)? else {
            return self.fault(at, format!("the group `{name}` has no gateway"), None);
        };
        let names = nodes.iter().map(|node| &scenario.nodes[node.index()].name);
        names.map(|name| self.gateway(at, name, scenario)).collect()
    }

    fn gateway(&self, path: &[Step], name: &str, scenario: &Scenario) -> Checked<NodeId> {
        let node = self.node(path, name)?;
        if scenario.nodes[node.index()].kind == NodeKind::Gateway {
            return Ok(node);
        }
        self.fault(path, format!("`{name}` is not a gateway"), Some("give that node `kind = \"gateway\"`"))
    }

    pub(super) fn profile(&self, path: &[Step], name: &str) -> Checked<tcp::Config> {
        if let Some(config) = self.profiles.get(name) {
            return Ok(*config);
        }
        let hint = did_you_mean(name, self.profiles.keys()).unwrap_or_else(|| {
            format!("the profiles are {}; add `[tcp.{name}]`", quoted(self.profiles.keys()))
        });
        self.fault(path, format!("there is no TCP profile `{name}`"), Some(&hint))
    }
}

/// A key of a transfer that its kind does not read.
struct Unread {
    key: &'static str,
    clear: fn(&mut TransferSection),
}

/// The keys of a section that its kind does not read.
fn unread(section: &TransferSection) -> impl Iterator<Item = Unread> + use<> {
    let kind = section.kind;
    let request = kind.has_request();
    let no_tcp = request || kind == TransferKind::Coap;
    let plain = !request || kind == TransferKind::EndToEnd;
    // A split connection goes through one gateway, so a limit above 1 has no effect.
    let several_for_split = kind == TransferKind::Split
        && matches!(section.gateways, Some(GatewayChoice::Count(count)) if count > 1);
    macro_rules! all {
        ($($key:ident: $refused:expr,)*) => {
            [$((
                $refused && section.$key.is_some(),
                Unread { key: stringify!($key), clear: |section| section.$key = None },
            )),*]
        };
    }
    let all = all! {
        tcp_wireless: plain,
        gateways: plain || several_for_split,
        default_gateway: !request,
        set: !request,
        mptcp: kind != TransferKind::Mptcp,
        coap: kind != TransferKind::Coap,
        interfaces: no_tcp,
        port: request,
        tcp_receiver: no_tcp,
        reads_for: no_tcp,
    };
    all.into_iter().filter(|(is_unread, _)| *is_unread).map(|(_, unread)| unread)
}

fn routes(scenario: &Scenario) -> Routes {
    let over_air = scenario.radio.iter().flat_map(|radio| radio.lengths.iter().copied());
    let lengths = scenario.links.iter().map(|_| HOP).chain(over_air);
    let edges = scenario.edges().zip(lengths);
    let edges: Vec<_> = edges.map(|((link, from, to), weight)| Edge { link, from, to, weight }).collect();
    let forwards = |n: NodeId| scenario.nodes[n.index()].kind != NodeKind::Host;
    Routes::compute(scenario.nodes.len(), &edges, forwards)
}
