//! Checks traffic sources.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anabranch_core::time::{Duration, Instant};
use anabranch_wire::ip::UDP_HEADER_LEN;

use super::super::deployment::Choice;
use super::super::file::FileConfig;
use super::super::plan::TIMEOUT;
use super::super::radio::RadioSpec;
use super::super::rdca::RdcaOptions;
use super::super::traffic::{
    Carrier, Connection, Over, Replies, Senders, TrafficSection, TrafficSpec, are_messages,
};
use super::super::{Scenario, Scheme, TransferSpec, units};
use super::deployment::Named;
use super::{Checked, Checker, at};
use anabranch_sim::apps::messages::LEAST_MESSAGE;
use anabranch_sim::apps::packets::{LEAST_PACKET, Spacing};
use anabranch_sim::apps::schedule::Schedule;
use anabranch_sim::apps::set::{GATEWAY_PORT, NODE_PORT};
use anabranch_sim::apps::sizes::{Bounds, Law, Sizes};
use anabranch_sim::packet::NodeId;

/// The first port of receivers. A traffic uses two ports.
const FIRST_PORT: u16 = 9_100;
/// Largest payload of a packet in bytes.
const LARGEST: u32 = 65_000;
/// Largest message over a connection in bytes.
const LONGEST_MESSAGE: u32 = 1_000_000_000;

/// Bounds on the size of messages, each of which is a datagram or has a connection.
fn messages(over: Over) -> Bounds {
    let most = if over == Over::Tcp { LONGEST_MESSAGE } else { LARGEST };
    Bounds { least: LEAST_MESSAGE, most }
}
/// Length of a TCP header without options, in bytes. Options count as payload here.
const TCP_HEADER: u32 = 20;

/// Source of the packet sizes.
#[derive(Clone, Copy)]
enum Lengths<'a> {
    Payload(&'a Sizes),
    Trace(&'a Arc<Schedule>),
}

impl Checker<'_> {
    pub(super) fn traffic(&self, scenario: &mut Scenario) -> Checked<Vec<TrafficSpec>> {
        let mut all: Vec<TrafficSpec> = Vec::new();
        for i in 0..scenario.resolved.traffic.len() {
            let mut section = scenario.resolved.traffic[i].clone();
            let name = section.name.get_or_insert_with(|| format!("traffic {}", i + 1)).clone();
            if all.iter().any(|traffic| traffic.name == name) {
                let message = format!("two `[[traffic]]` have the name `{name}`");
                return self.fault(at!["traffic", i, "name"], message, None);
            }
            let spec = self.one(i, name, &mut section, scenario)?;
            self.ports_differ(i, &spec, &all, scenario)?;
            scenario.resolved.traffic[i] = section;
            all.push(spec);
        }
        Ok(all)
    }

    /// Checks that no port of a node is used twice. Receivers use one port; senders that receive
    /// datagrams use the next.
    fn ports_differ(
        &self,
        i: usize,
        spec: &TrafficSpec,
        all: &[TrafficSpec],
        scenario: &Scenario,
    ) -> Checked<()> {
        let same = |other: &&TrafficSpec| other.to == spec.to && other.port.abs_diff(spec.port) < 2;
        if let Some(other) = all.iter().find(same) {
            let message = format!("`{}` receives on this port or the next one already", other.name);
            return self.fault(at!["traffic", i, "port"], message, Some("ports lie two or more apart"));
        }
        let senders = |spec: &TrafficSpec| match (&spec.from, spec.sources_hear()) {
            (_, false) => Vec::new(),
            (Senders::Nodes(nodes), true) => nodes.clone(),
            // The nodes of a group are not known yet: any node may be in it.
            (Senders::Group(_), true) => (0..scenario.nodes.len() as u32).map(NodeId).collect(),
        };
        let used = |spec: &TrafficSpec| {
            let sends = senders(spec).into_iter().map(|node| (node, spec.port + 1));
            sends.chain([(spec.to, spec.port)]).collect::<BTreeSet<_>>()
        };
        let own = used(spec);
        if let Some(other) = all.iter().find(|other| !used(other).is_disjoint(&own)) {
            let message = format!("`{}` uses the port at one of the nodes already", other.name);
            let hint = "senders that are answered use the port behind the receiver's: let ports lie two or more apart";
            return self.fault(at!["traffic", i, "port"], message, Some(hint));
        }
        let requests = scenario.transfers.iter().any(|transfer| !transfer.scheme.is_bulk());
        if requests && [NODE_PORT, GATEWAY_PORT].contains(&spec.port) {
            let message = format!("port {} is that of SET, which a transfer uses", spec.port);
            return self.fault(at!["traffic", i, "port"], message, None);
        }
        let over_udp = matches!(spec.carrier, Carrier::Udp | Carrier::Rdca(_));
        let same = |t: &&TransferSpec| match t.scheme {
            Scheme::Coap(_) => over_udp && own.contains(&(t.listener(), t.port)),
            _ => t.scheme.is_bulk() && !over_udp && (t.to, t.port) == (spec.to, spec.port),
        };
        if let Some(other) = scenario.transfers.iter().find(same) {
            let message = format!("the transfer `{}` is received on port {} already", other.name, other.port);
            return self.fault(at!["traffic", i, "port"], message, None);
        }
        Ok(())
    }

    fn one(
        &self,
        i: usize,
        name: String,
        section: &mut TrafficSection,
        scenario: &Scenario,
    ) -> Checked<TrafficSpec> {
        let to = self.node(at!["traffic", i, "to"], &section.to)?;
        let root = scenario.resolved.paths.as_ref().map(|paths| &paths.root);
        if let Some(root) = root.filter(|root| section.over == Over::Mptcp && **root != section.to) {
            let message = format!("paths lead to `{root}`, and subflows on them");
            let hint = format!("send to `{root}`, or over \"tcp\"");
            return self.fault(at!["traffic", i, "to"], message, Some(&hint));
        }
        let names = section.from.names();
        let groups: &[(String, Choice)] = scenario.deployment.as_ref().map_or(&[], |d| &d.groups);
        let from = match self.nodes_named(at!["traffic", i, "from"], names, &scenario.resolved)? {
            Named::Group(group) if groups[group].1.count() == 0 => {
                let message =
                    format!("the group `{}` has no node, and the traffic no sender", groups[group].0);
                return self.fault(
                    at!["traffic", i, "from"],
                    message,
                    Some("raise the `count` of the group"),
                );
            }
            Named::Group(group) => Senders::Group(group),
            Named::Nodes(mut nodes) => {
                if !names.contains(&section.to) {
                    nodes.retain(|node| *node != to);
                }
                if nodes.is_empty() || nodes.contains(&to) {
                    let message = "a sender is another node than the receiver, and there is at least one";
                    return self.fault(at!["traffic", i, "from"], message, None);
                }
                Senders::Nodes(nodes)
            }
        };
        let ends: Vec<_> = match &from {
            Senders::Nodes(nodes) => nodes.iter().copied().chain([to]).collect(),
            Senders::Group(_) => vec![to],
        };
        if let Some(outside) = ends.iter().find(|node| scenario.nodes[node.index()].tun.is_some()) {
            let message = format!("the kernel plays `{}`", scenario.nodes[outside.index()].name);
            let hint = "begin and end traffic at simulated nodes, and use real programs there";
            return self.fault(at!["traffic", i], message, Some(hint));
        }
        let stop = section.stop.map_or(scenario.stop, |stop| Instant::ZERO + stop.0);
        let start = Instant::ZERO + section.start.0;
        if stop > scenario.stop {
            let message = format!(
                "it ends at {}, and the simulation at {}",
                units::Span(stop.saturating_since(Instant::ZERO)),
                scenario.resolved.stop
            );
            let hint = Some("raise the scenario's `stop`, or let it end earlier");
            return self.fault(at!["traffic", i, "stop"], message, hint);
        }
        if start >= stop {
            let end = units::Span(stop.saturating_since(Instant::ZERO));
            let message = format!("it begins at {}, and ends at {end}", section.start);
            let hint = Some("raise `stop`, or let it start earlier");
            return self.fault(at!["traffic", i, "start"], message, hint);
        }
        if section.packets == Some(0) {
            return self.fault(at!["traffic", i, "packets"], "a source makes at least one packet", None);
        }
        if let Spacing::Trace(trace) = &mut section.kind.0 {
            let read = self.source.schedule(&trace.name);
            trace.schedule = self.of_file(at!["traffic", i, "kind"], &format!("`{}`", trace.name), read)?;
        }
        let carrier = self.carrier(i, section)?;
        let sizes = self.payload(i, section, &carrier)?;
        let replies = self.replies(i, section)?;
        let interval = self.interval(i, section, &sizes)?;
        if let Err([key, message, hint]) = section.kind.0.check(interval) {
            return self.fault(at!["traffic", i, "kind"], format!("`{key}`: {message}"), Some(hint));
        }
        self.fits(i, section, sizes.most(), &carrier, scenario)?;
        let port = section
            .port
            .unwrap_or(u16::try_from(2 * i).map_or(u16::MAX, |offset| FIRST_PORT.saturating_add(offset)));
        if port == 0 || port == u16::MAX {
            return self.fault(at!["traffic", i, "port"], "a port is in 1..=65534", None);
        }
        Ok(TrafficSpec {
            name,
            from,
            to,
            carrier,
            sizes,
            replies,
            connection: section.connection,
            interval,
            spacing: section.kind.0.clone(),
            start,
            phase: section.phase,
            stop,
            packets: section.packets,
            port,
        })
    }

    fn payload(&self, i: usize, section: &TrafficSection, carrier: &Carrier) -> Checked<Law> {
        let lengths = match (&section.kind.0, &section.payload) {
            (Spacing::Trace(trace), None) => Lengths::Trace(&trace.schedule),
            (Spacing::Trace(_), Some(_)) => {
                let message = "the trace says how long packets are, and so does `payload`";
                return self.fault(at!["traffic", i, "payload"], message, Some("remove `payload`"));
            }
            (_, Some(payload)) => Lengths::Payload(payload),
            (_, None) => return self.fault(at!["traffic", i], "missing key `payload`", None),
        };
        let is_drawn = match lengths {
            Lengths::Payload(payload) => payload.constant().is_none(),
            Lengths::Trace(_) => true,
        };
        if section.connection == Connection::Each && section.over != Over::Tcp {
            let message = "each packet has a connection of its own with `over = \"tcp\"` only";
            return self.fault(at!["traffic", i, "connection"], message, None);
        }
        if is_drawn && section.over == Over::Mptcp {
            let message = "packets over \"mptcp\" are all alike";
            return self.fault(
                at!["traffic", i, "payload"],
                message,
                Some("send over \"tcp\", or give one size"),
            );
        }
        let is_answered = matches!(section.kind.0, Spacing::RequestResponse(_));
        let over_tcp = section.over == Over::Tcp;
        let bounds = match carrier {
            _ if are_messages(over_tcp, is_answered, section.connection, is_drawn) => messages(section.over),
            // A longer packet would be split, and the pieces would be numbered like packets.
            Carrier::Rdca(options) if is_drawn => {
                let most = options.config.sender.max_payload().min(LARGEST as usize) as u32;
                Bounds { least: LEAST_PACKET.into(), most }
            }
            _ => Bounds { least: LEAST_PACKET.into(), most: LARGEST },
        };
        let (key, law) = match lengths {
            Lengths::Payload(payload) => ("payload", payload.check(bounds)),
            Lengths::Trace(schedule) => ("kind", Law::listed(schedule, bounds)),
        };
        law.or_else(|(message, hint)| self.fault(at!["traffic", i, key], message, hint))
    }

    /// The replies to requests.
    fn replies(&self, i: usize, section: &mut TrafficSection) -> Checked<Option<Replies>> {
        let Spacing::RequestResponse(exchange) = &mut section.kind.0 else { return Ok(None) };
        if section.over != Over::Udp && section.over != Over::Tcp {
            let message = "requests and replies go over \"udp\" and \"tcp\"";
            return self.fault(at!["traffic", i, "over"], message, None);
        }
        if section.over != Over::Udp && exchange.timeout.is_some() {
            let message = "`timeout` has no meaning over \"tcp\", which repeats what is lost";
            return self.fault(at!["traffic", i, "kind"], message, None);
        }
        if section.over == Over::Udp {
            exchange.timeout.get_or_insert(units::Span(TIMEOUT));
        }
        let timeout = exchange.timeout.map_or(TIMEOUT, |timeout| timeout.0);
        if timeout.is_zero() {
            return self.fault(at!["traffic", i, "kind"], "`timeout`: a reply takes some time", None);
        }
        match exchange.reply.check(messages(section.over)) {
            Ok(sizes) => Ok(Some(Replies { sizes, timeout })),
            Err((message, hint)) => {
                self.fault(at!["traffic", i, "kind"], format!("`reply`: {message}"), hint)
            }
        }
    }

    fn interval(&self, i: usize, section: &TrafficSection, sizes: &Law) -> Checked<Duration> {
        let given = [("interval", section.interval.is_some()), ("rate", section.rate.is_some())];
        let given = given.iter().find(|(_, given)| *given).map(|(key, _)| *key);
        if let Spacing::Trace(trace) = &section.kind.0 {
            return match given {
                Some(key) => {
                    let message = format!("the trace says when packets are made, and so does `{key}`");
                    self.fault(at!["traffic", i, key], message, Some("remove it"))
                }
                None => Ok(trace.schedule.mean_interval()),
            };
        }
        if let Spacing::RequestResponse(exchange) = &section.kind.0 {
            if let Some(key) = given {
                let message = "a request follows the reply to the last: there is no interval between packets";
                return self.fault(at!["traffic", i, key], message, Some("`think` is the time between them"));
            }
            if exchange.think.0.is_zero() {
                let message = "`think`: some time passes between a reply and the next request";
                return self.fault(at!["traffic", i, "kind"], message, None);
            }
            return Ok(exchange.think.0);
        }
        let interval = match (section.interval, section.rate) {
            (Some(interval), None) => interval.0,
            (None, Some(rate)) => Duration::from_secs_f64(sizes.mean() * 8.0 / rate.0 as f64),
            (Some(_), Some(_)) => {
                return self.fault(at!["traffic", i, "rate"], "both `interval` and `rate` are given", None);
            }
            (None, None) => {
                let hint = Some("such as `interval = \"100 ms\"`, or `rate = \"8 kbit/s\"`");
                return self.fault(at!["traffic", i], "`interval` or `rate` is missing", hint);
            }
        };
        match interval.is_zero() {
            false => Ok(interval),
            true => self.fault(at!["traffic", i, "interval"], "some time passes between two packets", None),
        }
    }

    fn carrier(&self, i: usize, section: &mut TrafficSection) -> Checked<Carrier> {
        let read = |key: &str| match section.over {
            Over::Udp => false,
            Over::Tcp => key == "tcp",
            Over::Mptcp => key == "tcp" || key == "mptcp",
            Over::Rdca => key == "rdca",
        };
        let given = [
            ("tcp", section.tcp.is_some()),
            ("rdca", section.rdca.is_some()),
            ("mptcp", section.mptcp.is_some()),
        ];
        for (key, _) in given.iter().filter(|(key, given)| *given && !read(key)) {
            let chosen = self.is_chosen(at!["traffic", i, "over"]);
            if chosen && self.source.is_of_file(self.tree(), at!["traffic", i, *key]) {
                // Keys of another transport in the file are ignored.
                match *key {
                    "tcp" => section.tcp = None,
                    "rdca" => section.rdca = None,
                    _ => section.mptcp = None,
                }
                continue;
            }
            let over = match section.over {
                Over::Udp => "udp",
                Over::Tcp => "tcp",
                Over::Mptcp => "mptcp",
                Over::Rdca => "rdca",
            };
            let message = format!("`{key}` has no meaning with `over = \"{over}\"`");
            return self.fault(at!["traffic", i, *key], message, None);
        }
        let tcp = || self.profile(at!["traffic", i, "tcp"], section.tcp.as_deref().unwrap_or("default"));
        match section.over {
            Over::Udp => Ok(Carrier::Udp),
            Over::Tcp => Ok(Carrier::Tcp(Box::new(tcp()?))),
            Over::Mptcp => match section.mptcp.get_or_insert_default().spec(tcp()?, self.source.policies()) {
                Ok(spec) => Ok(Carrier::Mptcp(Box::new(spec))),
                Err((key, message)) => self.fault(at!["traffic", i, "mptcp", key], message, None),
            },
            Over::Rdca => {
                let name = section.rdca.get_or_insert_with(|| "default".to_owned()).clone();
                let options =
                    self.named(at!["traffic", i, "rdca"], ("profile", "rdca"), &name, &self.rdca)?;
                Ok(Carrier::Rdca(Box::new(*options)))
            }
        }
    }

    /// Resolves the RDCA profiles. "default" exists even if the file does not define it.
    pub(super) fn rdca_profiles(&self, file: &mut FileConfig) -> Checked<BTreeMap<String, RdcaOptions>> {
        if file.traffic.iter().any(|traffic| traffic.over == Over::Rdca) {
            file.rdca.entry("default".to_owned()).or_default();
        }
        let mut profiles = BTreeMap::new();
        for (name, profile) in &mut file.rdca {
            match profile.resolve() {
                Ok(options) => profiles.insert(name.clone(), options),
                Err((key, message)) => return self.fault(at!["rdca", name.as_str(), key], message, None),
            };
        }
        Ok(profiles)
    }

    /// The channel that packets cross, if one of the ends is on it, as far as this is known before
    /// a group is drawn.
    fn radio_of<'r>(&self, section: &TrafficSection, scenario: &'r Scenario) -> Option<&'r RadioSpec> {
        let is_on_air = |name: &String| match self.nodes.get(name) {
            Some(node) => scenario.is_on_air(*node),
            // All nodes of a group are on the channel; those of a pattern may be.
            None => true,
        };
        let mut ends = section.from.names().iter().chain([&section.to]);
        scenario.radio.as_ref().filter(|_| ends.any(is_on_air))
    }

    /// Checks that segments fit into the packets of the radio.
    fn segments_fit(&self, i: usize, section: &TrafficSection, mss: u16, scenario: &Scenario) -> Checked<()> {
        let Some(radio) = self.radio_of(section, scenario) else { return Ok(()) };
        let headers = scenario.network.ip.header_len() + TCP_HEADER;
        let most = radio.channel.mtu();
        if u32::from(mss) + headers <= most {
            return Ok(());
        }
        let name = section.tcp.as_deref().unwrap_or("default");
        let message = format!(
            "segments of {mss} bytes do not fit into a packet of the radio, which has {most} bytes with its headers"
        );
        let hint = format!("set `mss = {}` or less in `[tcp.{name}]`", most.saturating_sub(headers));
        self.fault(at!["traffic", i, "over"], message, Some(&hint))
    }

    /// Checks that datagrams fit into the packets of the radio, where they are not fragmented.
    fn fits(
        &self,
        i: usize,
        section: &TrafficSection,
        payload: u32,
        carrier: &Carrier,
        scenario: &Scenario,
    ) -> Checked<()> {
        let (headers, payload) = match carrier {
            Carrier::Udp => (0, payload),
            Carrier::Tcp(config) => return self.segments_fit(i, section, config.mss, scenario),
            Carrier::Mptcp(spec) => return self.segments_fit(i, section, spec.config.tcp.mss, scenario),
            Carrier::Rdca(options) => {
                let sender = &options.config.sender;
                if payload as usize > sender.longest() {
                    let message = format!(
                        "it is cut into {} datagrams, and half of a queue of {} has room for {} bytes",
                        sender.pieces(payload as usize),
                        sender.queue_packets,
                        sender.longest()
                    );
                    let hint = format!(
                        "raise `datagram`, or `queue_packets` and `reorder_packets` alike, of `rdca.{}`",
                        section.rdca.as_deref().unwrap_or("default")
                    );
                    return self.fault(at!["traffic", i, "payload"], message, Some(&hint));
                }
                // A longer packet is split into datagrams.
                let most = sender.max_payload();
                ((usize::from(sender.datagram) - most) as u32, (payload as usize).min(most) as u32)
            }
        };
        let Some(radio) = self.radio_of(section, scenario) else { return Ok(()) };
        let headers = scenario.network.ip.header_len() + UDP_HEADER_LEN as u32 + headers;
        let room = radio.channel.mtu().saturating_sub(headers);
        match payload <= room {
            true => Ok(()),
            false => {
                let message = format!("a packet of the radio has room for {room} bytes of payload");
                self.fault(at!["traffic", i, "payload"], message, None)
            }
        }
    }
}
