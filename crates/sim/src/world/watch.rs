//! Connections as observers see them.

use anabranch_core::mptcp::SubflowId;

use super::World;
use crate::host::Entry;
use crate::packet::NodeId;
use crate::stream::ConnId;
use crate::trace::ConnectionView;
use crate::transport::Transport;

impl World {
    /// Shows a connection to observers, or all subflows of one.
    #[cold]
    pub(super) fn watch(&mut self, node: NodeId, id: ConnId) {
        let Some(entry) = self.hosts[node.index()].peek(id) else { return };
        show((node, id), entry, |seen| self.network.watch_connection(self.now, seen));
    }

    /// Shows each connection of a node as it stands, or all subflows of one.
    pub fn show_connections(&self, node: NodeId, mut of: impl FnMut(&ConnectionView<'_>)) {
        let host = &self.hosts[node.index()];
        for id in host.ids() {
            if let Some(entry) = host.peek(id) {
                show((node, id), entry, &mut of);
            }
        }
    }
}

fn show((node, id): (NodeId, ConnId), entry: &Entry, mut of: impl FnMut(&ConnectionView<'_>)) {
    let (peer, ports) = (entry.remote, (entry.local_port, entry.remote_port));
    match &entry.connection {
        Transport::Tcp(connection) => {
            let info = &connection.info();
            of(&ConnectionView { node, id, subflow: None, peer, ports, info });
        }
        Transport::Multipath(connection) => {
            // A subflow's number is its place among the ports.
            let all = std::iter::once(&ports).chain(&entry.joined);
            for (number, &ports) in (0..).zip(all) {
                let Some(subflow) = connection.subflow_info(SubflowId(number)) else { return };
                let (subflow, info) = (Some(number), &subflow.tcp);
                of(&ConnectionView { node, id, subflow, peer, ports, info });
            }
        }
    }
}
