//! Three places and the links between them: the sender, the gateways, the node.
//!
//! ```text
//!           wire 0, 1, ... (with a rate)
//!  sender ================================ gateways
//!     \ direct                              / air
//!      `--------------- node --------------'
//! ```

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anabranch_testkit::netns::{Broom, done, ip, name, run, within};

use crate::faults::schedule::{End, Family, Link};

const NODE_PORT: u16 = 47_200;
const GATEWAY_PORT: u16 = 47_201;

/// Namespaces with links between them. They are removed when this is dropped or the process ends.
pub(crate) struct Network {
    family: Family,
    pub(crate) sender: String,
    pub(crate) gateways: String,
    pub(crate) node: String,
    /// Number of address changes of each gateway.
    moved: Vec<u16>,
    node_moved: u16,
    _broom: Broom,
}

impl Network {
    /// Creates a network with one wire for each of `rates` (kbit/s).
    pub(crate) fn open(run: u64, family: Family, rates: &[u64]) -> Self {
        let [sender, gateways, node] = ["s", "g", "n"].map(|who| name(&format!("f{run}{who}")));
        let broom = Broom::new([&sender, &gateways, &node]);
        for netns in [&sender, &gateways, &node] {
            ip(&["netns", "add", netns]);
            ip(&["-n", netns, "link", "set", "dev", "lo", "up"]);
            within(netns, || {
                for ends in ["all", "default"] {
                    // A link that comes up again keeps its addresses.
                    sysctl(&format!("ipv6/conf/{ends}/keep_addr_on_down"), "1");
                    sysctl(&format!("ipv6/conf/{ends}/accept_dad"), "0");
                    sysctl(&format!("ipv4/conf/{ends}/rp_filter"), "0");
                }
            });
        }
        let moved = vec![0; rates.len()];
        let network = Self { family, sender, gateways, node, moved, node_moved: 0, _broom: broom };
        for (i, rate) in rates.iter().enumerate() {
            network.connect(Link::Wire(i));
            let rate = format!("{rate}kbit");
            let shape = ["-n", &network.sender, "qdisc", "add", "dev", &device(Link::Wire(i)), "root", "tbf"];
            done("tc", &[&shape[..], &["rate", &rate, "burst", "16kb", "limit", "65536"]].concat());
        }
        network.connect(Link::Direct);
        network.connect(Link::Air);
        // Two addresses for a node that moves, both reachable from everywhere.
        for i in 0..2 {
            let address = format!("{}/{}", network.node_ip(i), network.family.bits());
            ip(&["-n", &network.node, "address", "add", &address, "dev", "lo"]);
        }
        network.route();
        network
    }

    fn connect(&self, link: Link) {
        let (near, far) = self.ends(link);
        let device = device(link);
        ip(&["-n", near, "link", "add", &device, "type", "veth", "peer", "name", &device, "netns", far]);
        for (netns, host) in [(near, 1), (far, 2)] {
            let address = self.in_subnet(link, host);
            self.add(netns, &device, address);
            ip(&["-n", netns, "link", "set", "dev", &device, "up"]);
        }
    }

    fn add(&self, netns: &str, device: &str, address: IpAddr) {
        let (address, nodad) = match self.family {
            Family::V4 => (format!("{address}/24"), &[][..]),
            Family::V6 => (format!("{address}/64"), &["nodad"][..]),
        };
        ip(&[&["-n", netns, "address", "add", &address, "dev", device][..], nodad].concat());
    }

    /// Restores the routes that a link has lost while it was down.
    fn route(&self) {
        for link in [Link::Direct, Link::Air] {
            let (netns, _) = self.ends(link);
            let via = self.in_subnet(link, 2).to_string();
            for i in 0..2 {
                let to = format!("{}/{}", self.node_ip(i), self.family.bits());
                // Fails while the link is down.
                run("ip", &["-n", netns, "route", "replace", &to, "via", &via, "dev", &device(link)]);
            }
        }
    }

    fn ends(&self, link: Link) -> (&str, &str) {
        match link {
            Link::Wire(_) => (&self.sender, &self.gateways),
            Link::Direct => (&self.sender, &self.node),
            Link::Air => (&self.gateways, &self.node),
        }
    }

    fn in_subnet(&self, link: Link, host: u16) -> IpAddr {
        let subnet = match link {
            Link::Wire(i) => u8::try_from(i).expect("few gateways"),
            Link::Direct => 100,
            Link::Air => 101,
        };
        self.family.address(subnet, host)
    }

    fn node_ip(&self, moved: u16) -> IpAddr {
        self.family.address(200, 9 + moved % 2)
    }

    /// Current address of the node.
    pub(crate) fn node_address(&self) -> SocketAddr {
        SocketAddr::new(self.node_ip(self.node_moved), NODE_PORT + self.node_moved)
    }

    /// Current address of a gateway.
    pub(crate) fn gateway_address(&self, i: usize) -> SocketAddr {
        SocketAddr::new(self.in_subnet(Link::Wire(i), 2 + self.moved[i]), GATEWAY_PORT)
    }

    /// Moves the node to another address and port.
    pub(crate) fn move_node(&mut self) {
        self.node_moved += 1;
    }

    /// Gives a gateway's host another address instead of the first.
    pub(crate) fn move_gateway(&mut self, i: usize) {
        let (link, prefix) = (Link::Wire(i), if self.family == Family::V4 { 24 } else { 64 });
        let old = format!("{}/{prefix}", self.in_subnet(link, 2 + self.moved[i]));
        self.moved[i] += 1;
        // Remove the old address first: all later IPv4 addresses of its subnet are removed with it.
        ip(&["-n", &self.gateways, "address", "del", &old, "dev", &device(link)]);
        self.add(&self.gateways, &device(link), self.in_subnet(link, 2 + self.moved[i]));
    }

    /// Cuts a link. Senders at the near end are notified, those at the far end are not.
    pub(crate) fn cut(&self, link: Link, end: End) {
        self.set(link, end, "down");
    }

    /// Restores a link.
    pub(crate) fn mend(&self, link: Link) {
        for end in [End::Near, End::Far] {
            self.set(link, end, "up");
        }
        self.route();
    }

    fn set(&self, link: Link, end: End, state: &str) {
        let (near, far) = self.ends(link);
        let netns = if end == End::Near { near } else { far };
        ip(&["-n", netns, "link", "set", "dev", &device(link), state]);
    }
}

impl Family {
    fn bits(self) -> u8 {
        match self {
            Self::V4 => 32,
            Self::V6 => 128,
        }
    }

    fn address(self, subnet: u8, host: u16) -> IpAddr {
        match self {
            Self::V4 => Ipv4Addr::new(10, 79, subnet, u8::try_from(host).expect("few hosts")).into(),
            Self::V6 => Ipv6Addr::new(0xfd79, subnet.into(), 0, 0, 0, 0, 0, host).into(),
        }
    }
}

/// Address at which a program with a relay in front listens.
pub(crate) fn behind(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip(), address.port() + 1_000)
}

fn device(link: Link) -> String {
    match link {
        Link::Wire(i) => format!("wire{i}"),
        Link::Direct => "direct".to_owned(),
        Link::Air => "air".to_owned(),
    }
}

fn sysctl(file: &str, value: &str) {
    fs::write(format!("/proc/sys/net/{file}"), value).expect("root may set this");
}
