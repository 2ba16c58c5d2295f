//! TUN devices and network namespaces. Devices are created through `/dev/net/tun`. The program `ip`
//! (iproute2) does the remaining set-up, before the first packet and after the last.

use std::fmt;
use std::fmt::Write;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use anabranch_scenario::emulation::{Carries, DeviceSpec};
use anabranch_scenario::{NodeSpec, Outlet, Scenario};
use anabranch_sim::address::address_of;
use anabranch_sim::network::Fragmentation;
use anabranch_sim::packet::{IpVersion, LinkId, NodeId};
use tun_rs::{DeviceBuilder, SyncDevice};

use crate::error::Error;
use crate::ingress::Hosts;
use crate::namespace::{Namespace, ip, ip_batch};

/// Smallest MTU with which Linux speaks IPv6 (RFC 8200 section 5).
const SMALLEST_V6_MTU: u32 = 1280;
/// Largest MTU of a TUN device.
const LARGEST_MTU: u32 = 65_535;

/// The TUN devices of a scenario. Dropping this removes the devices, and the namespaces created for
/// them.
#[derive(Debug)]
pub struct Ends {
    // Field order matters: a namespace must be dropped after the devices in it.
    pub(crate) ends: Vec<End>,
    _namespaces: Vec<Namespace>,
    pub(crate) ip: IpVersion,
    pub(crate) hosts: Hosts,
}

/// A TUN device, and the node that the kernel represents through it. A node may have several: one
/// for each interface, or two between links and a radio.
pub struct End {
    /// The node.
    pub node: NodeId,
    /// Name of the node.
    pub name: String,
    /// Address of the device: that of the node, or of its interface.
    pub address: IpAddr,
    /// Name of the device.
    pub device: String,
    /// Network namespace of the device; `None` is that of the program.
    pub netns: Option<String>,
    side: Side,
    tun: SyncDevice,
    /// The rule for packets from the device's address; removed on drop.
    _rule: Option<Rule>,
}

/// The packets that a device carries.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Side {
    All,
    /// Those of the nodes of which this is true, by index.
    Some(Vec<bool>),
    /// Those with the device's address, which is that of an interface.
    Interface(Interface),
}

/// An interface, and its index at the node.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Interface {
    index: usize,
    outlet: Outlet,
}

impl Side {
    /// Whether the device is the one for this node; of several interfaces, the first.
    fn has(&self, node: NodeId) -> bool {
        match self {
            Self::All => true,
            Self::Some(has) => has.get(node.index()).copied().unwrap_or_default(),
            Self::Interface(interface) => interface.index == 0,
        }
    }
}

/// Priority of the rules for the addresses of interfaces: after the kernel's own table of local
/// addresses, before those of `anabranch multipath`.
const RULE_PRIORITY: usize = 4600;
/// Routing table of a node's first interface; the others have the following ones.
const FIRST_TABLE: usize = 43_700;
/// Metric of the routes of a node's first interface in the main table.
const FIRST_METRIC: usize = 100;

/// A rule (`ip rule`) that makes packets with the address of an interface leave by its device.
#[derive(Debug)]
struct Rule {
    netns: Option<String>,
    address: IpAddr,
    table: usize,
}

impl Rule {
    fn set(netns: Option<String>, address: IpAddr, table: usize) -> Result<Self, Error> {
        let rule = Self { netns, address, table };
        // A killed emulation may have left it in a namespace that existed before.
        let _ = rule.change("del");
        rule.change("add")?;
        Ok(rule)
    }

    fn change(&self, action: &str) -> Result<(), Error> {
        let family = if self.address.is_ipv6() { "-6" } else { "-4" };
        let netns = self.netns.iter().flat_map(|name| ["-n", name.as_str()]);
        let Self { address, table, .. } = self;
        let rule = format!("{family} rule {action} from {address} lookup {table} priority {RULE_PRIORITY}");
        ip(netns.chain(rule.split(' ')))
    }
}

impl Drop for Rule {
    fn drop(&mut self) {
        // There is no caller who could handle a failure.
        let _ = self.change("del");
    }
}

impl Ends {
    /// Creates the devices and namespaces of a scenario. On error, everything created is removed.
    pub fn open(scenario: &Scenario) -> Result<Self, Error> {
        let hosts = Hosts::new(scenario);
        let mut namespaces = Vec::new();
        let mut ends: Vec<End> = Vec::new();
        for (i, spec) in scenario.nodes.iter().enumerate() {
            let Some(tun) = &spec.tun else { continue };
            let node = NodeId(i as u32);
            if let Some(name) = &tun.netns {
                namespaces.extend(Namespace::ensure(name)?);
            }
            for device in &tun.devices {
                let side = side(scenario, spec, device);
                let index = device.carries.interface().unwrap_or_default();
                let mut end = End {
                    node,
                    name: spec.name.clone(),
                    address: scenario.address(node, index),
                    netns: tun.netns.clone(),
                    tun: create(ends.len(), &device.name, tun.netns.as_deref())?,
                    device: device.name.clone(),
                    side,
                    _rule: None,
                };
                end.set_up(scenario, &hosts)?;
                if matches!(end.side, Side::Interface(_)) {
                    end._rule = Some(Rule::set(end.netns.clone(), end.address, FIRST_TABLE + index)?);
                }
                ends.push(end);
            }
        }
        if ends.is_empty() {
            return Err(Error::NoEnds);
        }
        Ok(Self { ends, _namespaces: namespaces, ip: scenario.network.ip, hosts })
    }

    /// The devices, in the order of their nodes.
    pub fn iter(&self) -> impl Iterator<Item = &End> {
        self.ends.iter()
    }
}

/// The packets that a device of a node carries.
fn side(scenario: &Scenario, node: &NodeSpec, device: &DeviceSpec) -> Side {
    let nodes = || (0..scenario.nodes.len() as u32).map(NodeId);
    match device.carries {
        Carries::All => Side::All,
        Carries::OfLinked => Side::Some(nodes().map(|node| scenario.has_link(node)).collect()),
        Carries::OfUnlinked => Side::Some(nodes().map(|node| !scenario.has_link(node)).collect()),
        Carries::OfInterface(index) => {
            Side::Interface(Interface { index, outlet: node.interfaces[index].outlet })
        }
    }
}

impl End {
    /// The next packet of the kernel; `None` if there is none now.
    pub(crate) fn receive<'b>(&self, buffer: &'b mut [u8]) -> Result<Option<&'b [u8]>, Error> {
        match self.tun.recv(buffer) {
            Ok(len) => Ok(buffer.get(..len)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(_) => Err(Error::Gone(self.device.clone())),
        }
    }

    /// Passes a packet to the kernel. Returns false if the kernel does not accept it, for example
    /// while the device is down.
    pub(crate) fn send(&self, packet: &[u8]) -> bool {
        self.tun.send(packet).is_ok()
    }

    /// Whether the device carries the packets of `from` to the address `to` of `self.node`.
    pub(crate) fn takes(&self, from: NodeId, to: IpAddr) -> bool {
        match self.side {
            Side::All | Side::Some(_) => self.side.has(from),
            Side::Interface(_) => self.address == to,
        }
    }

    fn set_up(&self, scenario: &Scenario, hosts: &Hosts) -> Result<(), Error> {
        let device = self.device.as_str();
        let netns = self.netns.as_deref();
        let of_netns = || netns.iter().flat_map(|name| ["-n", name]);
        // No link-local address: with one, the kernel would talk to neighbours and routers that do
        // not exist. A kernel without IPv6 has none anyway.
        let quiet = ip(of_netns().chain(["link", "set", "dev", device, "addrgenmode", "none"]));
        if self.address.is_ipv6() {
            quiet?;
        }
        let mtu = mtu(scenario, self.node, &self.side);
        let nodes = scenario.address_count() as u32;
        let address = self.address;
        // The device of links has the prefix of all nodes, a second one the routes to its nodes.
        // Those of interfaces have routes to all nodes.
        let second = matches!(self.side, Side::Some(_)) && !self.side.has(self.node);
        let whole = if address.is_ipv6() { 128 } else { 32 };
        let prefix = prefix_len(scenario.network.ip, nodes);
        let interface = match &self.side {
            Side::All | Side::Some(_) => None,
            Side::Interface(interface) => Some(interface.index),
        };
        let length = if second || interface.is_some() { whole } else { prefix };
        // Without duplicate address detection, the address is usable at once.
        let nodad = if address.is_ipv6() { " nodad" } else { "" };
        let mut commands = format!(
            "link set dev {device} mtu {mtu}\naddress add {address}/{length} dev {device}{nodad}\nlink set dev {device} up\n"
        );
        // In a namespace, only routes may choose a congestion control that the host does not
        // allow to all users.
        let congestion = scenario.emulation.congestion.as_ref();
        let congctl = congestion.map_or_else(String::new, |name| format!(" congctl {name}"));
        if interface.is_none() && !second && !congctl.is_empty() {
            let to = network(self.address, length);
            let kernels = match address {
                IpAddr::V4(_) => format!("scope link src {address}"),
                IpAddr::V6(_) => "metric 256".to_owned(),
            };
            let _ = writeln!(
                commands,
                "route replace {to}/{length} dev {device} proto kernel {kernels}{congctl}"
            );
        }
        if second {
            for node in (0..nodes).map(NodeId).filter(|node| self.side.has(*node)) {
                let to = address_of(scenario.network.ip, node);
                let _ = writeln!(commands, "route add {to}/{whole} dev {device}{congctl}");
            }
        }
        let others = hosts.iter().filter(|(_, node)| *node != self.node);
        if let Some(index) = interface {
            // The table for packets from this address, and the main table, where programs find all
            // devices and the kernel takes the first.
            let tables =
                [("table", FIRST_TABLE), ("metric", FIRST_METRIC)].map(|(key, first)| (key, first + index));
            let nodes = format!("{}/{prefix}", network(self.address, prefix));
            for to in std::iter::once(nodes).chain(others.map(|(prefix, _)| prefix.to_string())) {
                for (key, number) in tables {
                    let _ = writeln!(
                        commands,
                        "route add {to} dev {device} src {address} {key} {number}{congctl}"
                    );
                }
            }
        } else {
            for (prefix, _) in others.filter(|(_, node)| self.side.has(*node)) {
                let _ = writeln!(commands, "route add {prefix} dev {device}{congctl}");
            }
        }
        ip_batch(netns, &commands).map_err(|error| match (error, congestion) {
            (Error::Setup { reason, .. }, Some(name)) if reason.contains("congestion algorithm") => {
                Error::Congestion(name.clone())
            }
            (other, _) => other,
        })
    }
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, name, address, device, netns, side, tun: _, _rule: _ } = self;
        f.debug_tuple("End")
            .field(node)
            .field(name)
            .field(address)
            .field(device)
            .field(netns)
            .field(side)
            .finish()
    }
}

impl AsFd for End {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}

/// Creates device number `i`, in its namespace.
fn create(i: usize, device: &str, netns: Option<&str>) -> Result<SyncDevice, Error> {
    // A device that will move to another namespace has a first name that is unique among the
    // devices of this program in the current one.
    let name = netns.map_or_else(|| device.to_owned(), |_| format!("ab{:x}n{i:x}", std::process::id()));
    // The kernel would attach to an existing persistent device with all of its settings.
    if Path::new("/sys/class/net").join(&name).exists() {
        return Err(Error::DeviceExists(name));
    }
    let made = DeviceBuilder::new().name(&name).enable(false).build_sync();
    let tun = made.map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            let doing = "make a TUN device".to_owned();
            Error::Privilege { doing, reason: error.to_string() }
        }
        _ if !Path::new("/dev/net/tun").exists() => Error::NoTun(error),
        // ENODEV, ENXIO: the file exists but the driver does not.
        _ if matches!(error.raw_os_error(), Some(6 | 19)) => Error::NoTun(error),
        _ => Error::Setup { doing: format!("make the TUN device `{name}`"), reason: error.to_string() },
    })?;
    tun.set_nonblocking(true).map_err(Error::Wait)?;
    if let Some(netns) = netns {
        ip(["link", "set", "dev", &name, "netns", netns])?;
        let renamed = ip(["-n", netns, "link", "set", "dev", &name, "name", device]);
        renamed.map_err(|error| match error {
            Error::Setup { reason, .. } if reason.contains("File exists") => {
                Error::DeviceExists(device.to_owned())
            }
            other => other,
        })?;
    }
    Ok(tun)
}

/// The prefix that covers all nodes: a /64 in IPv6. In IPv4 the smallest possible one, since
/// 10.0.0.0/8 may be in use elsewhere; its first and last address do not belong to nodes.
fn prefix_len(ip: IpVersion, nodes: u32) -> u8 {
    match ip {
        IpVersion::V6 => 64,
        IpVersion::V4 => 32 - (nodes + 2).next_power_of_two().ilog2() as u8,
    }
}

/// The first address of the prefix of this length that covers the address.
fn network(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let places = 32 - u32::from(length);
            IpAddr::V4((v4.to_bits() >> places << places).into())
        }
        IpAddr::V6(v6) => {
            let places = 128 - u32::from(length);
            IpAddr::V6((v6.to_bits() >> places << places).into())
        }
    }
}

/// The largest packet that the first hop accepts, over links or over the radio. If routers must not
/// fragment IPv4, the largest packet that all links accept, because the network sends no ICMP then.
fn mtu(scenario: &Scenario, node: NodeId, side: &Side) -> u32 {
    let ip = scenario.network.ip;
    let all = ip == IpVersion::V4 && scenario.network.fragmentation == Fragmentation::Forbidden;
    let (over_links, over_radio) = match side {
        Side::All => (true, scenario.is_on_air(node)),
        Side::Some(has) => (has[node.index()], !has[node.index()]),
        Side::Interface(interface) => (interface.outlet != Outlet::Radio, interface.outlet == Outlet::Radio),
    };
    let own = match side {
        Side::Interface(interface) => interface.outlet.link(),
        Side::All | Side::Some(_) => None,
    };
    let links = (0..)
        .map(LinkId)
        .zip(&scenario.links)
        .filter(|(id, link)| over_links && (all || link.from == node && own.is_none_or(|own| own == *id)));
    let links = links.map(|(_, link)| link);
    let least = links.map(|link| link.config.mtu).min().unwrap_or(LARGEST_MTU).min(LARGEST_MTU);
    // Routers do not fragment packets that go over the air.
    let radio = scenario.radio.iter().filter(|_| over_radio);
    let least = radio.fold(least, |least, radio| least.min(radio.channel.mtu()));
    match ip {
        IpVersion::V4 => least,
        IpVersion::V6 => least.max(SMALLEST_V6_MTU),
    }
}

#[cfg(test)]
mod tests {
    use anabranch_scenario::Source;

    use super::*;

    #[test]
    fn the_prefix_has_room_for_all_nodes_and_its_own_addresses() {
        assert_eq!(
            [1, 2, 3, 6, 7, 254, 255].map(|n| prefix_len(IpVersion::V4, n)),
            [30, 30, 29, 29, 28, 24, 23]
        );
        assert_eq!(prefix_len(IpVersion::V6, 7), 64);
    }

    #[test]
    fn the_mtu_is_what_the_network_carries() {
        let link = |from: &str, to: &str, mtu: u32| {
            format!(
                "[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\nmtu = {mtu}\n"
            )
        };
        let text = |network: &str, far: u32| {
            let nodes: String =
                ["a", "b", "c"].map(|n| format!("[[node]]\nname = \"{n}\"\nkind = \"node\"\n")).concat();
            format!("[network]\n{network}\n{nodes}{}{}", link("a", "b", 1400), link("b", "c", far))
        };
        let mtu_of = |network: &str, far: u32| {
            let scenario = Source::new("file", text(network, far)).scenario().expect("a legal scenario");
            mtu(&scenario, NodeId(0), &Side::All)
        };
        assert_eq!(mtu_of("ip = 4", 576), 1400);
        assert_eq!(mtu_of("ip = 4\nfragmentation = \"forbidden\"", 576), 576);
        assert_eq!(mtu_of("ip = 6", 576), 1400);
        // There, the network says that a packet is too big.
        assert_eq!(mtu_of("ip = 6\nfragmentation = \"forbidden\"", 576), 1400);
    }
}
