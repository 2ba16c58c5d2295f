//! Checks nodes whose transports run in the kernel.

use super::{Checked, Checker, at};
use anabranch_wire::prefix::Prefix;

use crate::emulation::{Carries, CommandSpec, DeviceSpec, EmulationSection, HostKind, TunSpec};
use crate::file::{FileConfig, NodeSection};
use crate::{NodeSpec, Scenario};
use anabranch_sim::packet::{IpVersion, NodeId};

/// Largest length of a network device's name in bytes (IFNAMSIZ without the terminating zero).
const LONGEST_DEVICE: usize = 15;
/// Largest length of a namespace's name in bytes: it is the name of a file.
const LONGEST_NETNS: usize = 255;

/// Addresses that are not those of hosts, or stay on a link (RFC 4291, RFC 6890).
const RESERVED: [&str; 7] =
    ["::/127", "fe80::/10", "ff00::/8", "0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4"];

impl Checker<'_> {
    /// The TUN device of node `i`, if it has one.
    pub(super) fn tun(&self, i: usize, file: &FileConfig, ip: IpVersion) -> Checked<Option<TunSpec>> {
        let section = &file.node[i];
        if section.host == HostKind::Simulated && !is_played(file) && file.emulation.is_some() {
            return Ok(None);
        }
        if section.host == HostKind::Simulated {
            let stray = [
                ("netns", section.netns.is_some()),
                ("device", section.device.is_some()),
                ("radio_device", section.radio_device.is_some()),
                ("prefixes", !section.prefixes.is_empty()),
            ];
            let Some((key, _)) = stray.into_iter().find(|(_, said)| *said) else { return Ok(None) };
            let message = format!("`{key}` has no meaning for a simulated node");
            return self.fault(at!["node", i, key], message, Some("add `host = \"tun\"`"));
        }
        let legal = |name: &str, longest: usize| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            let bounded = !name.is_empty() && name.len() <= longest && name.chars().all(plain);
            bounded && !name.starts_with('-') && !matches!(name, "." | "..")
        };
        let devices = self.devices(i, section)?;
        for (key, DeviceSpec { name, .. }) in &devices {
            if !legal(name, LONGEST_DEVICE) {
                let message = format!(
                    "`{name}` is no name of a network device: 1 to {LONGEST_DEVICE} letters, digits, `-` (not \
                     first), `_` or `.`"
                );
                let hint = (*key == "interfaces").then_some("the device of an interface has its name");
                return self.fault(at!["node", i, *key], message, hint);
            }
        }
        let devices: Vec<_> = devices.into_iter().map(|(_, device)| device).collect();
        if let Some(name) = section.netns.as_deref().filter(|name| !legal(name, LONGEST_NETNS)) {
            let message = format!(
                "`{name}` is no name of a network namespace: letters, digits, `-` (not first), \
                 `_` or `.`"
            );
            return self.fault(at!["node", i, "netns"], message, None);
        }
        // Both addresses would be local in one namespace, and the kernel would never send the
        // packets through the devices.
        let twin = file.node[..i].iter().find(|n| n.host == HostKind::Tun && n.netns == section.netns);
        if let Some(twin) = twin {
            let message = format!(
                "the kernel would hand packets to `{}` over within the namespace, past the network",
                twin.name
            );
            let at =
                if section.netns.is_some() { at!["node", i, "netns"] } else { &at!["node", i, "host"][..] };
            return self.fault(at, message, Some("give every TUN end a `netns` of its own"));
        }
        let prefixes = self.prefixes(i, file, ip)?;
        Ok(Some(TunSpec { devices, netns: section.netns.clone(), prefixes }))
    }

    /// The devices of node `i`, each with the key that names it.
    fn devices(&self, i: usize, section: &NodeSection) -> Checked<Vec<(&'static str, DeviceSpec)>> {
        let spec = |name: &str, carries| DeviceSpec { name: name.to_owned(), carries };
        let (device, radio_device) = (section.device.as_deref(), section.radio_device.as_deref());
        if !section.interfaces.is_empty() {
            let stray = [("device", device), ("radio_device", radio_device)];
            if let Some((key, _)) = stray.into_iter().find(|(_, said)| said.is_some()) {
                let message = format!("`{key}` has no meaning for a node with `interfaces`");
                return self.fault(
                    at!["node", i, key],
                    message,
                    Some("remove it: the device of an interface has its name"),
                );
            }
            let numbered = section.interfaces.iter().enumerate();
            return Ok(numbered
                .map(|(j, name)| ("interfaces", spec(name, Carries::OfInterface(j))))
                .collect());
        }
        let device = device.map_or_else(|| format!("anabranch{i}"), str::to_owned);
        Ok(match radio_device {
            None => vec![("device", spec(&device, Carries::All))],
            Some(radio) if radio == device => {
                let message = "both devices have one name";
                return self.fault(at!["node", i, "radio_device"], message, Some("name them differently"));
            }
            Some(radio) => vec![
                ("device", spec(&device, Carries::OfLinked)),
                ("radio_device", spec(radio, Carries::OfUnlinked)),
            ],
        })
    }

    fn prefixes(&self, i: usize, file: &FileConfig, ip: IpVersion) -> Checked<Vec<Prefix>> {
        let section = &file.node[i];
        let mut prefixes: Vec<Prefix> = Vec::new();
        for (j, text) in section.prefixes.iter().enumerate() {
            let at = at!["node", i, "prefixes", j];
            let prefix: Prefix = match text.parse() {
                Ok(prefix) => prefix,
                Err(error) => {
                    let message = format!("`{text}` is not a prefix: {error}");
                    return self.fault(at, message, Some("write it as in \"2001:db8::/64\""));
                }
            };
            let network: Prefix = match ip {
                IpVersion::V4 => "10.0.0.0/8",
                IpVersion::V6 => "fd00::/64",
            }
            .parse()
            .expect("a prefix");
            let others = file.node[..i].iter().flat_map(|node| &node.prefixes);
            let mut others = others.filter_map(|text| text.parse().ok()).chain(prefixes.iter().copied());
            if prefix.is_ipv4() != network.is_ipv4() {
                let message = format!("`{prefix}` is of another version of IP than the network");
                return self.fault(at, message, Some("set `ip` of `[network]` to its version"));
            }
            if let Some(other) = others.find(|other| other.overlaps(&prefix)) {
                let message = format!("`{prefix}` and `{other}` have addresses in common");
                return self.fault(at, message, Some("an address is behind one node"));
            }
            let mut reserved = RESERVED.iter().filter_map(|text| text.parse::<Prefix>().ok());
            let least = if prefix.is_ipv4() { 8 } else { 16 };
            if prefix.length() < least || reserved.any(|reserved| reserved.overlaps(&prefix)) {
                let message = format!("`{prefix}` is no prefix of hosts behind a node");
                let hint = format!(
                    "give a length of at least {least}, and no multicast, loopback or link-local addresses"
                );
                return self.fault(at, message, Some(&hint));
            }
            if network.overlaps(&prefix) {
                let message = format!("`{prefix}` has addresses of the network's own, `{network}`");
                return self.fault(at, message, None);
            }
            prefixes.push(prefix);
        }
        Ok(prefixes)
    }

    /// Refuses a second TUN device that no packet would use.
    pub(super) fn radio_devices(&self, scenario: &Scenario) -> Checked<()> {
        for (i, node) in scenario.nodes.iter().enumerate() {
            let second =
                |tun: &TunSpec| tun.devices.iter().any(|device| device.carries == Carries::OfUnlinked);
            if node.tun.as_ref().is_some_and(second)
                && (scenario.radio.is_none() || !scenario.has_link(NodeId(i as u32)))
            {
                let message = "the node is not between links and a radio";
                return self.fault(at!["node", i, "radio_device"], message, Some("remove it"));
            }
        }
        Ok(())
    }

    /// The commands of an emulation.
    pub(super) fn commands(&self, file: &FileConfig, nodes: &[NodeSpec]) -> Checked<Vec<CommandSpec>> {
        let lines = file.emulation.iter().filter(|_| is_played(file)).flat_map(|section| &section.run);
        let command = |(i, line): (usize, &String)| {
            let at = at!["emulation", "run", i];
            let Some((name, command)) = line.split_once(':') else {
                let message = format!("`{line}` names no node");
                return self.fault(
                    at,
                    message,
                    Some("write \"NODE: COMMAND\", as in \"server: ping -c 3 {sensor}\""),
                );
            };
            let node = self.node(at, name.trim())?;
            if nodes[node.index()].tun.is_none() {
                let message = format!("the simulator plays `{}`, which runs no commands", name.trim());
                return self.fault(at, message, Some("add `host = \"tun\"` to the node"));
            }
            let command = command.trim();
            let (command, background) = match command.strip_suffix('&') {
                // `a &&` is an incomplete command, which the shell refuses.
                Some(before) if !before.ends_with('&') => (before.trim_end(), true),
                _ => (command, false),
            };
            if command.is_empty() {
                return self.fault(at, "there is no command after the node", None);
            }
            Ok(CommandSpec { node, command: command.to_owned(), background })
        };
        let commands: Vec<_> = lines.enumerate().map(command).collect::<Checked<_>>()?;
        if !commands.is_empty() && commands.iter().all(|command| command.background) {
            let message = "all commands are in the background, so the emulation would end at once";
            return self.fault(at!["emulation", "run"], message, Some("add a command without `&`"));
        }
        Ok(commands)
    }

    pub(super) fn emulation(&self, file: &mut FileConfig, nodes: &[NodeSpec]) -> Checked<EmulationSection> {
        if !is_played(file) && file.emulation.is_none() {
            return Ok(EmulationSection::default());
        }
        let section = file.emulation.get_or_insert_default().clone();
        if section.lag_limit.0.is_zero() {
            return self.fault(at!["emulation", "lag_limit"], "events always come a little late", None);
        }
        if let Some(name) = &section.congestion
            && (name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)))
        {
            let message = format!("`{name}` is no name of a congestion control");
            let hint = Some("`sysctl net.ipv4.tcp_available_congestion_control` lists the kernel's");
            return self.fault(at!["emulation", "congestion"], message, hint);
        }
        for (said, node) in file.node.iter_mut().zip(nodes) {
            // The devices of interfaces have their names.
            let tun = node.tun.as_ref().filter(|_| said.interfaces.is_empty());
            said.device = tun.map(|tun| tun.devices[0].name.clone());
        }
        Ok(section)
    }
}

/// Whether the kernel plays a node. If it plays none, the keys of emulation wait unused, so that
/// `--set node.*.host=simulated` simulates the network of an emulation.
fn is_played(file: &FileConfig) -> bool {
    file.node.iter().any(|node| node.host == HostKind::Tun)
}
