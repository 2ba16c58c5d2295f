//! TUN devices and network namespaces. Devices are created through `/dev/net/tun`. The program `ip`
//! (iproute2) does the remaining set-up, before the first packet and after the last.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anabranch_sim::address::address_of;
use anabranch_sim::network::Fragmentation;
use anabranch_sim::packet::{IpVersion, NodeId};
use anabranch_sim::scenario::Scenario;
use anabranch_sim::scenario::emulation::TunSpec;
use tun_rs::{DeviceBuilder, SyncDevice};

use crate::error::Error;

/// Where `ip netns` stores the names of namespaces.
const NAMESPACES: &str = "/run/netns";
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
    pub(crate) nodes: u32,
}

/// A TUN device, and the node that the kernel represents through it.
pub struct End {
    /// The node.
    pub node: NodeId,
    /// Name of the node.
    pub name: String,
    /// Address of the node, which the device has.
    pub address: IpAddr,
    /// Description of the device.
    pub tun: TunSpec,
    device: SyncDevice,
}

impl Ends {
    /// Creates the devices and namespaces of a scenario. On error, everything created is removed.
    pub fn open(scenario: &Scenario) -> Result<Self, Error> {
        let nodes = u32::try_from(scenario.nodes.len()).expect("a node is known by 32 bits");
        let mut namespaces = Vec::new();
        let mut ends = Vec::new();
        for (i, spec) in scenario.nodes.iter().enumerate() {
            let Some(tun) = &spec.tun else { continue };
            let node = NodeId(i as u32);
            let device = create(i, tun)?;
            if let Some(name) = &tun.netns {
                namespaces.extend(Namespace::ensure(name)?);
                move_to(i, tun, name)?;
            }
            let address = address_of(scenario.network.ip, node);
            set_up(tun, address, prefix_len(scenario.network.ip, nodes), mtu(scenario, node))?;
            ends.push(End { node, name: spec.name.clone(), address, tun: tun.clone(), device });
        }
        if ends.is_empty() {
            return Err(Error::NoEnds);
        }
        Ok(Self { ends, _namespaces: namespaces, ip: scenario.network.ip, nodes })
    }

    /// The devices, in the order of their nodes.
    pub fn iter(&self) -> impl Iterator<Item = &End> {
        self.ends.iter()
    }
}

impl End {
    /// The next packet of the kernel; `None` if there is none now.
    pub(crate) fn receive<'b>(&self, buffer: &'b mut [u8]) -> Result<Option<&'b [u8]>, Error> {
        match self.device.recv(buffer) {
            Ok(len) => Ok(buffer.get(..len)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(_) => Err(Error::Gone(self.tun.device.clone())),
        }
    }

    /// Passes a packet to the kernel. Returns false if the kernel does not accept it, for example
    /// while the device is down.
    pub(crate) fn send(&self, packet: &[u8]) -> bool {
        self.device.send(packet).is_ok()
    }
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, name, address, tun, device: _ } = self;
        f.debug_tuple("End").field(node).field(name).field(address).field(tun).finish()
    }
}

impl AsFd for End {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// Initial name of a device that will move to another namespace: unique among the devices of this
/// program in the current namespace.
fn first_name(i: usize, tun: &TunSpec) -> String {
    match tun.netns {
        None => tun.device.clone(),
        Some(_) => format!("ab{:x}n{i:x}", std::process::id()),
    }
}

fn create(i: usize, tun: &TunSpec) -> Result<SyncDevice, Error> {
    let name = first_name(i, tun);
    // The kernel would attach to an existing persistent device with all of its settings.
    if Path::new("/sys/class/net").join(&name).exists() {
        return Err(Error::DeviceExists(name));
    }
    let made = DeviceBuilder::new().name(&name).enable(false).build_sync();
    let device = made.map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            let doing = "make a TUN device".to_owned();
            Error::Privilege { doing, reason: error.to_string() }
        }
        _ if !Path::new("/dev/net/tun").exists() => Error::NoTun(error),
        // ENODEV, ENXIO: the file exists but the driver does not.
        _ if matches!(error.raw_os_error(), Some(6 | 19)) => Error::NoTun(error),
        _ => Error::Setup { doing: format!("make the TUN device `{name}`"), reason: error.to_string() },
    })?;
    device.set_nonblocking(true).map_err(Error::Wait)?;
    Ok(device)
}

fn move_to(i: usize, tun: &TunSpec, netns: &str) -> Result<(), Error> {
    let name = first_name(i, tun);
    ip(["link", "set", "dev", &name, "netns", netns])?;
    let renamed = ip(["-n", netns, "link", "set", "dev", &name, "name", &tun.device]);
    renamed.map_err(|error| match error {
        Error::Setup { reason, .. } if reason.contains("File exists") => {
            Error::DeviceExists(tun.device.clone())
        }
        other => other,
    })
}

fn set_up(tun: &TunSpec, address: IpAddr, prefix_len: u8, mtu: u32) -> Result<(), Error> {
    let inside = |arguments: &[&str]| {
        let netns = tun.netns.iter().flat_map(|name| ["-n", name.as_str()]);
        ip(netns.chain(arguments.iter().copied()))
    };
    let device = tun.device.as_str();
    // No link-local address: with one, the kernel would talk to neighbours and routers that do not
    // exist. A kernel without IPv6 has none anyway.
    let quiet = inside(&["link", "set", "dev", device, "addrgenmode", "none"]);
    if address.is_ipv6() {
        quiet?;
    }
    inside(&["link", "set", "dev", device, "mtu", &mtu.to_string()])?;
    let address = format!("{address}/{prefix_len}");
    let mut add = vec!["address", "add", &address, "dev", device];
    if address.contains(':') {
        // Without duplicate address detection, the address is usable at once.
        add.push("nodad");
    }
    inside(&add)?;
    inside(&["link", "set", "dev", device, "up"])
}

/// The prefix that covers all nodes: a /64 in IPv6. In IPv4 the smallest possible one, since
/// 10.0.0.0/8 may be in use elsewhere; its first and last address do not belong to nodes.
fn prefix_len(ip: IpVersion, nodes: u32) -> u8 {
    match ip {
        IpVersion::V6 => 64,
        IpVersion::V4 => 32 - (nodes + 2).next_power_of_two().ilog2() as u8,
    }
}

/// The largest packet that the first link accepts. If routers must not fragment, the largest packet
/// that all links accept, because nothing tells the kernel that a packet is too big.
fn mtu(scenario: &Scenario, node: NodeId) -> u32 {
    let all = scenario.network.fragmentation == Fragmentation::Forbidden;
    let links = scenario.links.iter().filter(|link| all || link.from == node);
    let least = links.map(|link| link.config.mtu).min().unwrap_or(LARGEST_MTU).min(LARGEST_MTU);
    // Routers do not fragment packets that go over the air.
    let least = scenario.radio.iter().fold(least, |least, radio| least.min(radio.channel.mtu()));
    match scenario.network.ip {
        IpVersion::V4 => least,
        IpVersion::V6 => least.max(SMALLEST_V6_MTU),
    }
}

/// A network namespace created by this program; removed on drop.
#[derive(Debug)]
struct Namespace {
    name: String,
}

impl Namespace {
    /// Creates the namespace; `None` if it exists.
    fn ensure(name: &str) -> Result<Option<Self>, Error> {
        if Path::new(NAMESPACES).join(name).exists() {
            return Ok(None);
        }
        ip(["netns", "add", name])?;
        // From here on, an error removes the namespace.
        let made = Self { name: name.to_owned() };
        ip(["-n", name, "link", "set", "dev", "lo", "up"])?;
        Ok(Some(made))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // There is no caller who could handle a failure.
        let _ = ip(["netns", "delete", &self.name]);
    }
}

/// Runs `ip` with these arguments.
fn ip<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Result<(), Error> {
    let arguments: Vec<_> = arguments.into_iter().map(|a| a.as_ref().to_owned()).collect();
    let output = Command::new("ip")
        .args(&arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        // Ctrl-C signals a whole process group. In its own group, `ip` is not interrupted while it
        // cleans up.
        .process_group(0)
        .output()
        .map_err(Error::NoIp)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let reason = said.trim().replace('\n', "; ");
    let words: Vec<_> = arguments.iter().map(|a| a.to_string_lossy()).collect();
    let doing = format!("`ip {}`", words.join(" "));
    if reason.contains("not permitted") || reason.contains("Permission denied") {
        return Err(Error::Privilege { doing: format!("run {doing}"), reason });
    }
    Err(Error::Setup { doing: format!("run {doing}"), reason })
}

#[cfg(test)]
mod tests {
    use anabranch_sim::scenario::Source;

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
            mtu(&scenario, NodeId(0))
        };
        assert_eq!(mtu_of("ip = 4", 576), 1400);
        assert_eq!(mtu_of("ip = 4\nfragmentation = \"forbidden\"", 576), 576);
        assert_eq!(mtu_of("ip = 6", 576), 1400);
        assert_eq!(mtu_of("ip = 6\nfragmentation = \"forbidden\"", 576), 1280);
    }
}
