//! Checks the channel, the nodes on it, and paths over it.

use anabranch_core::time::Duration;
use anabranch_wire::ip::UDP_HEADER_LEN;

use super::super::coap::OVERHEAD;
use super::super::file::{FileConfig, TransferSection};
use super::super::paths::PathsSpec;
use super::super::radio::{Channel, RadioSpec};
use super::super::source::Step;
use super::super::units::Span;
use super::super::{NodeKind, Scenario, Scheme, TransferSpec};
use super::{Checked, Checker, NodeSection, at};
use anabranch_sim::network::AodvConfig;
use anabranch_sim::packet::NodeId;
use anabranch_sim::radio::{
    ConfigError, CslConfig, LogDistance, Position, Propagation, Radio, RadioConfig, Station,
};
use anabranch_sim::random::Stream;
use anabranch_sim::routing::{HOP, Routes, hop_over_air};
use anabranch_sim::wifi::Wifi;

/// Length of the IPv6 and TCP headers without options, in bytes. Options count as payload here.
const HEADERS: u32 = 60;
/// Number of short addresses from 1 on that are neither broadcast nor unassigned.
const MAX_NODES: usize = 0xfffd;

impl Checker<'_> {
    /// The radio channel, if the file has one.
    pub(super) fn channel(&self, file: &mut FileConfig) -> Checked<Option<Channel>> {
        if file.radio.is_some() && file.wifi.is_some() {
            let hint = Some("remove `[radio]` or `[wifi]`");
            return self.fault(at!["wifi"], "a network has one radio channel, and this file two", hint);
        }
        if let Some(section) = &mut file.radio {
            let (config, wireless) = match section.config() {
                Ok(both) => both,
                Err((keys, message)) => {
                    let path: Vec<Step> = ["radio"].into_iter().chain(keys).map(Step::from).collect();
                    return self.fault(&path, message, None);
                }
            };
            section.complete(&config, &wireless);
            if file.network.ip == 4 {
                let hint = Some("remove `ip`, or set 6");
                return self.fault(at!["network", "ip"], "the radio carries IPv6 only", hint);
            }
            return Ok(Some(Channel::Ieee802154(config, wireless)));
        }
        let Some(section) = &mut file.wifi else { return Ok(None) };
        match section.resolve() {
            Ok(options) => Ok(Some(Channel::Ieee80211(options))),
            Err((key, message)) => {
                let path: Vec<Step> = ["wifi"].into_iter().chain(key).map(Step::from).collect();
                self.fault(&path, message, None)
            }
        }
    }

    /// The nodes with their own macCslPeriod, in whole units.
    fn csl_periods(&self, channel: &Channel, file: &mut FileConfig) -> Checked<Vec<(NodeId, Duration)>> {
        let mut periods = Vec::new();
        for (i, node) in file.node.iter_mut().enumerate() {
            let Some(Span(period)) = node.csl_period else { continue };
            let path = at!["node", i, "csl_period"];
            let Channel::Ieee802154(config, _) = channel else {
                let message = "sampled listening exists for IEEE 802.15.4 only; the power saving of IEEE 802.11 is not simulated";
                return self.fault(
                    path,
                    message,
                    Some("remove `csl_period`, or use `[radio]` in place of `[wifi]`"),
                );
            };
            let Some(csl) = config.csl else {
                let hint = Some("add `csl = { period = \"0 s\", max_period = \"1 s\" }` to `[radio]`");
                return self.fault(path, "no node of this channel sleeps: `[radio]` has no `csl`", hint);
            };
            if node.position.is_none() {
                let hint = Some("give it a `position = [x, y]` in metres");
                return self.fault(path, "a node that is not on the air has no radio that could sleep", hint);
            }
            let period = CslConfig::in_units(period, &config.phy);
            if let Err(error) = csl.check_period(period) {
                let hint = format!(
                    "`csl` of `[radio]` has `max_period = \"{}\"` and `sample = \"{}\"`",
                    Span(csl.max_period),
                    Span(csl.sample)
                );
                return self.fault(path, error.to_string(), Some(&hint));
            }
            node.csl_period = Some(Span(period));
            periods.push((NodeId(i as u32), period));
        }
        Ok(periods)
    }

    /// The channel with its nodes.
    pub(super) fn radio(
        &self,
        channel: Option<Channel>,
        file: &mut FileConfig,
    ) -> Checked<Option<RadioSpec>> {
        let places: Vec<(NodeId, Position)> =
            places(&file.node).map(|(i, place)| (NodeId(i as u32), place)).collect();
        let Some(channel) = channel else {
            let asleep = file.node.iter().position(|node| node.csl_period.is_some());
            return match places.first() {
                None => match asleep {
                    None => Ok(None),
                    Some(i) => self.fault(
                        at!["node", i, "csl_period"],
                        "a node that sleeps is on the air, and there is no radio",
                        Some("add `[radio]` with a `range` and `csl`, or remove `csl_period`"),
                    ),
                },
                Some((node, _)) => {
                    let message = "a node with a position is on the air, and there is no radio";
                    let hint = "add `[radio]` or `[wifi]` with a `range`";
                    self.fault(at!["node", node.index(), "position"], message, Some(hint))
                }
            };
        };
        let section = match channel {
            Channel::Ieee802154(..) => "radio",
            Channel::Ieee80211(_) => "wifi",
        };
        if places.is_empty() {
            let hint = Some("give nodes a `position = [x, y]` in metres");
            return self.fault(at![section], "no node is on the air", hint);
        }
        if file.node.len() > MAX_NODES {
            let message =
                format!("a network with a radio has at most {MAX_NODES} nodes, by their short addresses");
            return self.fault(at![section], message, None);
        }
        let moves: Vec<bool> =
            places.iter().map(|(node, _)| file.node[node.index()].mobility.is_some()).collect();
        let (links, lengths) = match links(channel, &places, &moves) {
            Ok(links) => links,
            Err(ConfigError::Position(station)) => {
                let node = places[station as usize].0.index();
                let message = "a position is within 10,000 km of the origin";
                return self.fault(at!["node", node, "position"], message, None);
            }
            Err(error) => return self.fault(at![section], error.to_string(), None),
        };
        let csl_periods = self.csl_periods(&channel, file)?;
        Ok(Some(RadioSpec { channel, places, links, lengths, csl_periods }))
    }

    /// Checks on-demand routing.
    pub(super) fn aodv(&self, file: &mut FileConfig) -> Checked<Option<AodvConfig>> {
        let Some(section) = &mut file.aodv else { return Ok(None) };
        if file.wifi.is_none() {
            let hint = Some("add `[wifi]`, or remove `[aodv]` for static routes");
            return self.fault(at!["aodv"], "AODV needs an IEEE 802.11 channel", hint);
        }
        if file.network.ip != 4 {
            let hint = Some("set `ip = 4` in `[network]`");
            return self.fault(at!["aodv"], "AODV is for IPv4 (RFC 3561)", hint);
        }
        match section.resolve() {
            Ok(config) => Ok(Some(config)),
            Err((key, message)) => self.fault(at!["aodv", key], message, None),
        }
    }

    /// Checks how nodes build paths; every node on a path must be able to forward.
    pub(super) fn paths(&self, scenario: &mut Scenario) -> Checked<Option<PathsSpec>> {
        let Some(mut section) = scenario.resolved.paths.take() else { return Ok(None) };
        let config = match section.config() {
            Ok(config) => config,
            Err((key, message)) => return self.fault(at!["paths", key], message, None),
        };
        if !scenario.radio.as_ref().is_some_and(|radio| matches!(radio.channel, Channel::Ieee802154(..))) {
            let hint = Some("add `[radio]`, or remove `[paths]` for static routes");
            return self.fault(
                at!["paths"],
                "paths are built over IEEE 802.15.4, and there is no `[radio]`",
                hint,
            );
        }
        let root = self.node(at!["paths", "root"], &section.root)?;
        if !scenario.is_on_air(root) {
            let message = format!("`{}` is not on the air, and so no root of paths", section.root);
            return self.fault(
                at!["paths", "root"],
                message,
                Some("give it a `position = [x, y]` in metres"),
            );
        }
        let mut cables = vec![0; scenario.nodes.len()];
        scenario.links.iter().for_each(|link| cables[link.from.index()] += 1);
        let members =
            |group: usize| scenario.deployment.iter().map(|all| all.groups[group].1.count()).sum::<usize>();
        for link in &scenario.group_links {
            link.from.iter().chain(&link.to).for_each(|node| cables[node.index()] += members(link.group));
        }
        for (i, node) in scenario.nodes.iter().enumerate() {
            let passes_on = scenario.is_on_air(NodeId(i as u32)) || cables[i] > 1;
            if node.kind == NodeKind::Host && passes_on {
                let message =
                    format!("`{}` passes nothing on, and others would build paths over it", node.name);
                let hint = Some("set kind = \"node\" or \"router\"");
                return self.fault(at!["node", i, "name"], message, hint);
            }
        }
        section.complete(&config);
        scenario.resolved.paths = Some(section);
        Ok(Some(PathsSpec { config, root }))
    }

    /// Checks that packets over the air fit into those of the radio: above 6LoWPAN nothing is
    /// fragmented.
    pub(super) fn over_the_air(
        &self,
        i: usize,
        spec: &TransferSpec,
        section: &TransferSection,
        scenario: &Scenario,
        routes: &Routes,
    ) -> Checked<()> {
        if scenario.paths.is_some() && section.default_gateway.is_some() {
            let message = "`default_gateway` has no meaning where packets follow the nodes' own paths";
            return self.fault(at!["transfer", i, "default_gateway"], message, None);
        }
        let Some(radio) = scenario.radio.as_ref().filter(|_| crosses_radio(scenario, routes, spec)) else {
            return Ok(());
        };
        let wireless = match &spec.scheme {
            Scheme::Tcp | Scheme::Mptcp(_) => spec.tcp.mss,
            Scheme::Coap(config) => {
                let headers = scenario.network.ip.header_len() + UDP_HEADER_LEN as u32 + OVERHEAD;
                let most = radio.channel.mtu().saturating_sub(headers);
                if u32::from(config.block_size) <= most {
                    return Ok(());
                }
                let message = format!("a packet of the radio has room for {most} bytes of a block");
                let name = section.coap.as_deref().unwrap_or("default");
                let hint =
                    format!("set `block_size = {}` or less in `[coap.{name}]`", 1 << most.max(1).ilog2());
                return self.fault(at!["transfer", i, "coap"], message, Some(&hint));
            }
            Scheme::Set(set) => set.wireless.mss,
        };
        let most = radio.channel.mtu();
        let largest = most.saturating_sub(HEADERS);
        let both = [
            ("tcp", Some(&section.tcp), spec.tcp.mss),
            ("tcp_wireless", section.tcp_wireless.as_ref(), wireless),
        ];
        for (key, name, mss) in both {
            let (Some(name), true) = (name, u32::from(mss) > largest) else { continue };
            let message = format!(
                "segments of {mss} bytes do not fit into a packet of the radio, which has {most} bytes with its headers"
            );
            let hint = format!("set `mss = {largest}` or less in `[tcp.{name}]`");
            return self.fault(at!["transfer", i, key], message, Some(&hint));
        }
        Ok(())
    }
}

/// The nodes on the channel and their positions.
pub(super) fn places(nodes: &[NodeSection]) -> impl Iterator<Item = (usize, Position)> {
    let places = nodes.iter().enumerate().filter_map(|(i, node)| Some((i, node.position?)));
    places.map(|(i, [x, y])| (i, Position::new(x, y)))
}

/// Ends and length of each link.
type Links = (Vec<(NodeId, NodeId)>, Vec<u64>);

/// Which nodes receive each other, by distance alone. Where one of the two moves, all pairs are
/// included.
fn links(channel: Channel, places: &[(NodeId, Position)], moves: &[bool]) -> Result<Links, ConfigError> {
    let positions: Vec<Position> = places.iter().map(|p| p.1).collect();
    let none = |_, _: &str| Stream::new(0, 0, "scenario", "links");
    let place = |station: Station| places[station.0 as usize].0;
    let stations = (0..places.len() as u32).map(Station);
    match channel {
        Channel::Ieee802154(config, _) => {
            let propagation = match config.propagation {
                Propagation::LogDistance(model) => {
                    Propagation::LogDistance(LogDistance { shadowing_db: 0.0, ..model })
                }
                disk @ Propagation::UnitDisk(_) => disk,
            };
            let radio = Radio::new(RadioConfig { propagation, ..config }, &positions, none)?;
            let pairs = stations.flat_map(|from| {
                reachable(from, moves, radio.neighbours(from).collect()).map(move |to| (from, to))
            });
            Ok(pairs.map(|(from, to)| ((place(from), place(to)), hop_over_air(&radio, from, to))).unzip())
        }
        Channel::Ieee80211(options) => {
            let wifi = Wifi::new(options.channel, &positions, none)?;
            let pairs = stations.flat_map(|from| {
                reachable(from, moves, wifi.neighbours(from).collect()).map(move |to| (from, to))
            });
            Ok(pairs.map(|(from, to)| ((place(from), place(to)), HOP)).unzip())
        }
    }
}

/// The neighbours of a station, and the stations that may come into range.
fn reachable(from: Station, moves: &[bool], neighbours: Vec<Station>) -> impl Iterator<Item = Station> {
    let may = |to: &Station| *to != from && (moves[from.0 as usize] || moves[to.0 as usize]);
    let mut all = neighbours;
    if moves.contains(&true) {
        all.extend((0..moves.len() as u32).map(Station).filter(may));
        all.sort_unstable();
        all.dedup();
    }
    all.into_iter()
}

/// Whether the shortest route of a transfer has a hop over the air.
fn crosses_radio(scenario: &Scenario, routes: &Routes, spec: &TransferSpec) -> bool {
    if scenario.radio.is_none() {
        return false;
    }
    let ends: Vec<NodeId> = scenario.edges().map(|(_, _, to)| to).collect();
    let mut at = spec.from;
    for _ in 0..scenario.nodes.len() {
        let Some(link) = routes.next(at, spec.to).filter(|_| at != spec.to) else { return false };
        if scenario.is_wireless(link) {
            return true;
        }
        at = ends[link.index()];
    }
    false
}
