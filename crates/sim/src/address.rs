//! Addresses of simulated nodes. Inside a run a node is its index. Outside (SET messages, captures,
//! TUN devices) it has an address of a private range: `fd00::/64` (RFC 4193) or `10.0.0.0/8` (RFC
//! 1918), whose host part is the index plus one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::packet::{IpVersion, NodeId};

const V6_PREFIX: u128 = 0xfd00 << 112;
const V4_PREFIX: u32 = 10 << 24;

/// ff02::1a (RFC 6550 section 6).
const ALL_RPL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x1a);
/// ff02::1 (RFC 4291 section 2.7.1).
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// The address of `node`.
pub fn address_of(ip: IpVersion, node: NodeId) -> IpAddr {
    match ip {
        IpVersion::V6 if node == NodeId::ALL_RPL_NODES => ALL_RPL_NODES.into(),
        IpVersion::V6 if node == NodeId::BROADCAST => ALL_NODES.into(),
        IpVersion::V4 if node == NodeId::BROADCAST => Ipv4Addr::BROADCAST.into(),
        IpVersion::V4 => Ipv4Addr::from(V4_PREFIX + node.0 + 1).into(),
        IpVersion::V6 => Ipv6Addr::from(V6_PREFIX + u128::from(node.0) + 1).into(),
    }
}

/// The node with this address; `None` if it is not an address of a simulated node.
pub fn node_at(address: IpAddr) -> Option<NodeId> {
    let host = match address {
        IpAddr::V4(a) => u128::from(u32::from(a).checked_sub(V4_PREFIX)?),
        IpAddr::V6(a) => u128::from(a).checked_sub(V6_PREFIX)?,
    };
    let node = NodeId(u32::try_from(host).ok()?.checked_sub(1)?);
    (node < NodeId::BROADCAST).then_some(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_back_to_its_node() {
        for ip in [IpVersion::V4, IpVersion::V6] {
            for node in [NodeId(0), NodeId(254), NodeId(70_000)] {
                assert_eq!(node_at(address_of(ip, node)), Some(node));
            }
        }
        assert_eq!(address_of(IpVersion::V6, NodeId(0)).to_string(), "fd00::1");
        assert_eq!(address_of(IpVersion::V4, NodeId(0)).to_string(), "10.0.0.1");
        for other in ["fe80::1", "fd00::", "fd00::ffff:ffff", "fd00::1:0:0"] {
            assert_eq!(node_at(other.parse().expect("an address")), None, "{other}");
        }
    }
}
