//! Connections as observers see them.

use anabranch_core::mptcp::SubflowId;

use super::World;
use crate::packet::NodeId;
use crate::stream::ConnId;
use crate::trace::ConnectionView;
use crate::transport::Transport;

impl World {
    /// Shows a connection, or all subflows of one.
    #[cold]
    pub(super) fn watch(&mut self, node: NodeId, id: ConnId) {
        let Some(entry) = self.hosts[node.index()].peek(id) else { return };
        let (peer, ports) = (entry.remote, (entry.local_port, entry.remote_port));
        match &entry.connection {
            Transport::Tcp(connection) => {
                let info = &connection.info();
                let seen = ConnectionView { node, id, subflow: None, peer, ports, info };
                self.network.watch_connection(self.now, &seen);
            }
            Transport::Multipath(connection) => {
                // A subflow's number is its place among the ports.
                let all = std::iter::once(&ports).chain(&entry.joined);
                for (number, &ports) in (0..).zip(all) {
                    let Some(subflow) = connection.subflow_info(SubflowId(number)) else { return };
                    let (subflow, info) = (Some(number), &subflow.tcp);
                    let seen = ConnectionView { node, id, subflow, peer, ports, info };
                    self.network.watch_connection(self.now, &seen);
                }
            }
        }
    }
}
