//! Encoding of the path builder's messages: RPL (RFC 6550) over ICMPv6, with the paper's two
//! options.

use std::net::{IpAddr, Ipv6Addr};

use anabranch_core::paths::{Dao, DaoAck, Dio, Metrics, NodeType, Output};
use anabranch_core::time::Duration;
use anabranch_wire::rpl::{
    self, ControlOption, Metric, ModeOfOperation, PathBuilt, PathTraversed, Target, TransitInformation,
};
use bytes::Bytes;

use crate::address::address_of;
use crate::packet::{IpVersion, NodeId};

/// RPLInstanceID of the only instance.
const INSTANCE: u8 = 0;
/// Infinite in any unit (RFC 6550 section 6.7.8).
const INFINITE_LIFETIME: u8 = u8::MAX;

/// A message as a router receives it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Message {
    Dis,
    Dio(Dio),
    Dao(Dao),
    DaoAck(DaoAck),
}

fn v6(node: NodeId) -> Ipv6Addr {
    match address_of(IpVersion::V6, node) {
        IpAddr::V6(address) => address,
        IpAddr::V4(_) => unreachable!("it was asked for the other"),
    }
}

/// Writes an ICMPv6 message. The sender has fewer nodes on a path than an option has room for.
pub(crate) fn write(from: NodeId, to: NodeId, root: NodeId, output: &Output) -> Bytes {
    let message = match output {
        Output::Dis { .. } => rpl::Message::Dis(rpl::Dis::default()),
        Output::Dio(dio) | Output::DioTo { dio, .. } => rpl::Message::Dio(rpl::Dio {
            instance: INSTANCE,
            version: 0,
            rank: dio.rank,
            grounded: true,
            mode: ModeOfOperation::STORING,
            preference: 0,
            dtsn: 0,
            dodag: v6(root),
            options: dio_options(dio),
        }),
        Output::Dao { dao, .. } => rpl::Message::Dao(dao_message(dao)),
        Output::DaoAck { ack, .. } => rpl::Message::DaoAck(rpl::DaoAck {
            instance: INSTANCE,
            sequence: ack.sequence,
            status: 0,
            dodag: None,
            options: vec![ControlOption::PathBuilt(PathBuilt { id: ack.path_id, path: vec![ack.source] })],
        }),
    };
    let mut octets = Vec::new();
    let emitted = rpl::emit(&message, [v6(from), v6(to)], &mut octets);
    debug_assert_eq!(emitted, Ok(()));
    octets.into()
}

fn dio_options(dio: &Dio) -> Vec<ControlOption> {
    let mut options = vec![ControlOption::PathTraversed(PathTraversed {
        node_type: node_type(dio.node_type),
        multi_link: dio.multi_link,
        path: dio.path.iter().rev().copied().collect(),
    })];
    let mut metrics = Vec::new();
    if let Some(Metrics { latency, throughput }) = dio.metrics {
        let micros = u32::try_from(latency.as_nanos() / 1000).unwrap_or(u32::MAX);
        metrics.extend([Metric::Throughput(throughput), Metric::Latency(micros)]);
    }
    metrics.extend(dio.etx.map(Metric::Etx));
    if !metrics.is_empty() {
        let mut objects = Vec::new();
        rpl::emit_metrics(&metrics, &mut objects);
        options.push(ControlOption::DagMetricContainer(objects));
    }
    options
}

/// Latency and throughput, which are only useful together, and the ETX.
fn read_metrics(options: &[ControlOption]) -> (Option<Metrics>, Option<u16>) {
    let container = options.iter().find_map(|option| match option {
        ControlOption::DagMetricContainer(objects) => Some(objects),
        _ => None,
    });
    let Some(metrics) = container.and_then(|objects| rpl::parse_metrics(objects)) else {
        return (None, None);
    };
    let (mut throughput, mut latency, mut etx) = (None, None, None);
    for metric in metrics {
        match metric {
            Metric::Throughput(octets) => throughput = throughput.or(Some(octets)),
            Metric::Latency(micros) => latency = latency.or(Some(Duration::from_micros(u64::from(micros)))),
            Metric::Etx(value) => etx = etx.or(Some(value)),
        }
    }
    let both = latency.zip(throughput).map(|(latency, throughput)| Metrics { latency, throughput });
    (both, etx)
}

fn dao_message(dao: &Dao) -> rpl::Dao {
    let source = NodeId(u32::from(dao.path.first().copied().unwrap_or(1)) - 1);
    rpl::Dao {
        instance: INSTANCE,
        ack_request: !dao.withdrawn,
        sequence: dao.sequence,
        dodag: None,
        options: vec![
            ControlOption::Target(Target { prefix_len: 128, prefix: v6(source) }),
            ControlOption::TransitInformation(TransitInformation {
                external: false,
                path_control: 0,
                path_sequence: dao.sequence,
                path_lifetime: if dao.withdrawn { 0 } else { INFINITE_LIFETIME },
                parent: None,
            }),
            ControlOption::PathBuilt(PathBuilt { id: dao.path_id, path: dao.path.clone() }),
        ],
    }
}

fn node_type(kind: NodeType) -> rpl::NodeType {
    match kind {
        NodeType::Ieee802154 => rpl::NodeType::Ieee802154,
        NodeType::MultiLink => rpl::NodeType::MultiLink,
        NodeType::BaseStation => rpl::NodeType::BaseStation,
    }
}

/// Reads a message; `None` if it lacks what a router needs.
pub(crate) fn read(from: NodeId, to: NodeId, octets: &[u8]) -> Option<Message> {
    let message = rpl::parse(octets, [v6(from), v6(to)]).ok()?.message;
    let traversed = message.options().iter().find_map(|option| match option {
        ControlOption::PathTraversed(path) => Some(path),
        _ => None,
    });
    let built = message.options().iter().find_map(|option| match option {
        ControlOption::PathBuilt(path) => Some(path),
        _ => None,
    });
    match &message {
        rpl::Message::Dio(dio) => {
            let said = traversed?;
            let node_type = match said.node_type {
                rpl::NodeType::Ieee802154 => NodeType::Ieee802154,
                rpl::NodeType::MultiLink => NodeType::MultiLink,
                rpl::NodeType::BaseStation => NodeType::BaseStation,
            };
            let path = said.path.iter().rev().copied().collect();
            let (metrics, etx) = read_metrics(&dio.options);
            let multi_link = said.multi_link;
            Some(Message::Dio(Dio { rank: dio.rank, node_type, multi_link, path, metrics, etx }))
        }
        rpl::Message::Dao(dao) => {
            let PathBuilt { id: path_id, path } = built?.clone();
            let lifetime = dao.options.iter().find_map(|option| match option {
                ControlOption::TransitInformation(transit) => Some(transit.path_lifetime),
                _ => None,
            })?;
            Some(Message::Dao(Dao { path_id, sequence: dao.sequence, withdrawn: lifetime == 0, path }))
        }
        rpl::Message::DaoAck(ack) => {
            let PathBuilt { id: path_id, path } = built?;
            let source = *path.first()?;
            Some(Message::DaoAck(DaoAck { source, path_id: *path_id, sequence: ack.sequence }))
        }
        rpl::Message::Dis(_) => Some(Message::Dis),
    }
}

#[cfg(test)]
mod tests {
    use anabranch_core::paths::INFINITE_RANK;

    use super::*;
    use crate::frames::short_address;

    #[test]
    fn what_is_said_is_heard() {
        let [from, to, root] = [4, 2, 0].map(NodeId);
        let path = vec![short_address(from), short_address(to), short_address(root)];
        let dio = |rank, path: &[u16]| Dio {
            rank,
            node_type: NodeType::MultiLink,
            multi_link: 1,
            path: path.into(),
            metrics: (rank != INFINITE_RANK)
                .then_some(Metrics { latency: Duration::from_micros(12_345), throughput: 12_500 }),
            etx: (rank != INFINITE_RANK).then_some(300),
        };
        for dio in [dio(768, &path), dio(INFINITE_RANK, &path[..2]), dio(INFINITE_RANK, &path[..1])] {
            let to = NodeId::ALL_RPL_NODES;
            let octets = write(from, to, root, &Output::Dio(dio.clone()));
            assert_eq!(read(from, to, &octets), Some(Message::Dio(dio)));
        }
        for (to, asked) in [(NodeId::ALL_RPL_NODES, None), (to, Some(path[1]))] {
            let octets = write(from, to, root, &Output::Dis { to: asked });
            assert_eq!(read(from, to, &octets), Some(Message::Dis));
        }
        for withdrawn in [false, true] {
            let dao = Dao { path_id: 3, sequence: 200, withdrawn, path: path.clone() };
            let octets = write(from, to, root, &Output::Dao { to: path[1], dao: dao.clone() });
            assert_eq!(read(from, to, &octets), Some(Message::Dao(dao)));
            // The checksum includes the addresses, so the message is invalid between other nodes.
            assert_eq!(read(from, root, &octets), None);
        }
        let ack = DaoAck { source: path[0], path_id: 3, sequence: 200 };
        let octets = write(to, from, root, &Output::DaoAck { to: path[0], ack });
        assert_eq!(read(to, from, &octets), Some(Message::DaoAck(ack)));
        assert_eq!(read(to, from, &octets[..5]), None);
    }
}
