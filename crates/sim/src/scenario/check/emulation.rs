//! Checks nodes whose transports run in the kernel.

use super::{Checked, Checker, at};
use crate::scenario::emulation::{EmulationSection, HostKind, TunSpec};
use crate::scenario::file::FileConfig;
use crate::scenario::{NodeKind, NodeSpec};

/// Largest length of a network device's name in bytes (IFNAMSIZ without the terminating zero).
const LONGEST_DEVICE: usize = 15;
/// Largest length of a namespace's name in bytes: it is the name of a file.
const LONGEST_NETNS: usize = 255;

impl Checker<'_> {
    /// The TUN device of node `i`, if it has one.
    pub(super) fn tun(&self, i: usize, file: &FileConfig) -> Checked<Option<TunSpec>> {
        let section = &file.node[i];
        if section.host == HostKind::Simulated {
            let stray = section.netns.as_ref().map(|_| "netns").or(section.device.as_ref().map(|_| "device"));
            let Some(key) = stray else { return Ok(None) };
            let message = format!("`{key}` has no meaning for a simulated node");
            return self.fault(at!["node", i, key], message, Some("add `host = \"tun\"`"));
        }
        if file.aodv.is_some() {
            let message = "AODV's messages would go to the kernel, which does not know them";
            let hint = Some("remove `[aodv]` for static routes");
            return self.fault(at!["node", i, "host"], message, hint);
        }
        if section.kind == NodeKind::Gateway {
            let message = "a gateway relays SET sessions, which the kernel does not";
            return self.fault(
                at!["node", i, "host"],
                message,
                Some("let a node of another kind be the end"),
            );
        }
        let device = section.device.clone().unwrap_or_else(|| format!("anabranch{i}"));
        let legal = |name: &str, longest: usize| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            let bounded = !name.is_empty() && name.len() <= longest && name.chars().all(plain);
            bounded && !name.starts_with('-') && !matches!(name, "." | "..")
        };
        if !legal(&device, LONGEST_DEVICE) {
            let message = format!(
                "`{device}` is no name of a network device: 1 to {LONGEST_DEVICE} letters, digits, `-` (not first), \
                 `_` or `.`"
            );
            return self.fault(at!["node", i, "device"], message, None);
        }
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
        Ok(Some(TunSpec { device, netns: section.netns.clone() }))
    }

    pub(super) fn emulation(&self, file: &mut FileConfig, nodes: &[NodeSpec]) -> Checked<EmulationSection> {
        if nodes.iter().all(|node| node.tun.is_none()) {
            let hint = "set `host = \"tun\"` on the nodes that the kernel plays";
            return match file.emulation {
                None => Ok(EmulationSection::default()),
                Some(_) => self.fault(at!["emulation"], "no node is a TUN end", Some(hint)),
            };
        }
        let section = *file.emulation.get_or_insert_default();
        if section.lag_limit.0.is_zero() {
            return self.fault(at!["emulation", "lag_limit"], "events always come a little late", None);
        }
        for (said, node) in file.node.iter_mut().zip(nodes) {
            said.device = node.tun.as_ref().map(|tun| tun.device.clone());
        }
        Ok(section)
    }
}
