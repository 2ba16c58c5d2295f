//! Network interfaces of this host, as the program `ip` lists them, and the kernel's reports of
//! changes over netlink (rtnetlink(7)).

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use anabranch_wire::prefix::Prefix;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, netlink, recv, socket_with};
use serde_json::Value;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::commands::{CommandError, Family, run};

/// An interface with what a path needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Name.
    pub name: String,
    /// Index. An interface that returns has a new one.
    pub index: u32,
    /// Whether it is up and has a carrier.
    pub up: bool,
    /// Largest IP packet in bytes.
    pub mtu: u32,
    /// Addresses of global scope that are in use.
    pub addresses: Vec<IpAddr>,
    /// Next hops of its default routes, the preferred one first. Without one, only hosts of its
    /// links are known to be reachable.
    pub gateways: Vec<IpAddr>,
    /// Its routes in the table `main`.
    pub routes: Vec<Route>,
}

impl Interface {
    /// The destinations that it has routes to, with their metrics.
    pub fn destinations(&self) -> impl Iterator<Item = (Prefix, u32)> {
        self.routes.iter().filter_map(|Route { family, destination, metric, .. }| {
            let destination = if destination == DEFAULT { family.any() } else { destination };
            Some((destination.parse().ok()?, *metric))
        })
    }

    /// Whether it is up and has an address.
    pub fn is_open(&self) -> bool {
        self.up && !self.addresses.is_empty()
    }

    /// Whether its routes lead to all destinations of a family: a default route, or two for a half
    /// of the addresses each, as VPNs set them beside the default route of another interface.
    pub fn is_default(&self) -> bool {
        let has = |family: Family, destination: &str| {
            self.routes.iter().any(|route| route.family == family && route.destination == destination)
        };
        Family::BOTH
            .into_iter()
            .any(|family| has(family, DEFAULT) || family.halves().into_iter().all(|half| has(family, half)))
    }
}

/// A route through an interface.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Route {
    /// Family of the destination.
    pub family: Family,
    /// Destination: a prefix, an address, or `default`.
    pub destination: String,
    /// Next hop; `None` for hosts on the link.
    pub gateway: Option<IpAddr>,
    /// Whether the next hop is on the link although no address of the interface says so.
    pub on_link: bool,
    /// Metric: the smallest one is preferred.
    pub metric: u32,
}

/// All interfaces except loopback and the devices that [`crate::routes`] has made.
///
/// # Errors
/// The program `ip` is missing or fails.
pub fn list() -> Result<Vec<Interface>, CommandError> {
    let mut routes = BTreeMap::<String, Vec<Route>>::new();
    for family in Family::BOTH {
        for (device, route) in routes_of(family, "main")? {
            routes.entry(device).or_default().push(route);
        }
    }
    // Without details no alias is listed.
    let links = json(&["-details", "address", "show"])?;
    Ok(links.iter().filter_map(|link| interface(link, &mut routes)).collect())
}

/// Alias of the devices that are ours, by which they are recognised.
pub(crate) const ALIAS: &str = "anabranch-multipath";

fn interface(link: &Value, routes: &mut BTreeMap<String, Vec<Route>>) -> Option<Interface> {
    let flag = |name: &str| link["flags"].as_array().is_some_and(|flags| flags.iter().any(|f| f == name));
    if flag("LOOPBACK") || link["ifalias"] == ALIAS {
        return None;
    }
    let name = link["ifname"].as_str()?.to_owned();
    // An address that is being checked for duplicates is not in use yet.
    let in_use = |address: &&Value| {
        address["scope"] == "global" && address["tentative"] != true && address["dadfailed"] != true
    };
    let addresses = link["addr_info"].as_array().into_iter().flatten().filter(in_use);
    let addresses = addresses.filter_map(|address| address["local"].as_str()?.parse().ok()).collect();
    let mut routes = routes.remove(&name).unwrap_or_default();
    routes.sort_by_key(|route| (route.family, route.metric));
    let default = routes.iter().filter(|route| route.destination == DEFAULT);
    Some(Interface {
        index: u32::try_from(link["ifindex"].as_u64()?).ok()?,
        up: flag("UP") && flag("LOWER_UP"),
        mtu: u32::try_from(link["mtu"].as_u64()?).ok()?,
        gateways: default.filter_map(|route| route.gateway).collect(),
        name,
        addresses,
        routes,
    })
}

/// Destination of default routes, as `ip` writes it.
pub(crate) const DEFAULT: &str = "default";

/// The unicast routes of a table, each with its device.
pub(crate) fn routes_of(family: Family, table: &str) -> Result<Vec<(String, Route)>, CommandError> {
    let listed = match json(&[family.option(), "route", "show", "table", table]) {
        // A table is there as long as it has routes.
        Err(CommandError::Failed { reason, .. }) if reason.contains("table does not exist") => Vec::new(),
        listed => listed?,
    };
    // Other types lead to no device, or are for the host itself.
    let unicast = listed.iter().filter(|route| route.get("type").is_none_or(|kind| kind == "unicast"));
    Ok(unicast.flat_map(|route| hops(family, route)).collect())
}

/// A route has one next hop, or several in a list.
fn hops(family: Family, route: &Value) -> Vec<(String, Route)> {
    let hops = route["nexthops"].as_array().map_or(std::slice::from_ref(route), Vec::as_slice);
    let hop = |hop: &Value| {
        let gateway = hop["gateway"].as_str().or_else(|| hop["via"]["host"].as_str());
        let flags = hop["flags"].as_array();
        let route = Route {
            family,
            destination: route["dst"].as_str()?.to_owned(),
            gateway: gateway.and_then(|gateway| gateway.parse().ok()),
            on_link: flags.is_some_and(|flags| flags.iter().any(|flag| flag == "onlink")),
            metric: route["metric"].as_u64().and_then(|metric| u32::try_from(metric).ok()).unwrap_or(0),
        };
        Some((hop["dev"].as_str()?.to_owned(), route))
    };
    hops.iter().filter_map(hop).collect()
}

/// What `ip` lists as JSON: an array.
pub(crate) fn json(arguments: &[&str]) -> Result<Vec<Value>, CommandError> {
    let listed = run("ip", &[&["-json"], arguments].concat(), "")?;
    if listed.trim().is_empty() {
        return Ok(Vec::new());
    }
    serde_json::from_str(&listed).map_err(|error| CommandError::Failed {
        command: format!("ip -json {}", arguments.join(" ")),
        reason: format!("it printed no JSON: {error}"),
    })
}

/// Reports that links, addresses, routes or forwarding have changed, in the network namespace in
/// which it was opened.
#[derive(Debug)]
pub struct Watch(AsyncFd<OwnedFd>);

impl Watch {
    /// Begins to watch. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// The kernel refuses the socket.
    pub fn open() -> io::Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        bind(&socket, &netlink::SocketAddrNetlink::new(0, GROUPS))?;
        #[expect(deprecated, reason = "its replacement is `unsafe`; an `OwnedFd` keeps its descriptor")]
        let socket = AsyncFd::with_interest(socket, Interest::READABLE)?;
        Ok(Self(socket))
    }

    /// Waits for the next change. Changes since the last call count as one. Dropping the future
    /// loses no change.
    ///
    /// # Errors
    /// The socket fails.
    pub async fn changed(&mut self) -> io::Result<()> {
        let mut buffer = [0; 64];
        let mut is_changed = false;
        loop {
            let mut ready = self.0.readable().await?;
            loop {
                match recv(self.0.get_ref(), &mut buffer[..], RecvFlags::empty()) {
                    // The messages themselves are not read: what is there now is listed instead.
                    // ENOBUFS says that messages were lost, so that something has changed.
                    Ok(_) | Err(Errno::NOBUFS) => is_changed = true,
                    Err(Errno::AGAIN) if is_changed => return Ok(()),
                    Err(Errno::AGAIN) => break,
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            ready.clear_ready();
        }
    }
}

/// linux/rtnetlink.h: RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV4_ROUTE, RTMGRP_IPV6_IFADDR,
/// RTMGRP_IPV6_ROUTE, and the bits of RTNLGRP_IPV4_NETCONF (24) and RTNLGRP_IPV6_NETCONF (25).
const GROUPS: u32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400 | 1 << 23 | 1 << 24;
