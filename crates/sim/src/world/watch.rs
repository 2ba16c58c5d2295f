//! Connections as observers see them.

use anabranch_core::mptcp::SubflowId;

use super::World;
use crate::host::Entry;
use crate::packet::NodeId;
use crate::stream::ConnId;
use crate::trace::ConnectionView;
use crate::transport::Transport;

impl World {
    /// Shows a connection, or all its subflows, to observers.
    #[cold]
    pub(super) fn watch(&mut self, node: NodeId, id: ConnId) {
        let Some(entry) = self.hosts[node.index()].peek(id) else { return };
        show((node, id), entry, |seen| self.network.watch_connection(self.now, seen));
    }

    /// Shows the state of a connection, or of all its subflows. Returns false if it no longer
    /// exists.
    pub fn show_connection(&self, node: NodeId, id: ConnId, of: impl FnMut(&ConnectionView<'_>)) -> bool {
        let entry = self.hosts[node.index()].peek(id);
        entry.map(|entry| show((node, id), entry, of)).is_some()
    }

    /// Connections that were used since the last call, each once. Recording begins with the first
    /// call.
    pub(crate) fn take_touched(&mut self) -> Vec<(NodeId, ConnId)> {
        let touched = self.touched.replace(Vec::new()).unwrap_or_default();
        for (node, id) in &touched {
            if let Some(entry) = self.hosts[node.index()].get(*id) {
                entry.noted = false;
            }
        }
        touched
    }

    #[cold]
    pub(super) fn note_touched(&mut self, node: NodeId, id: ConnId) {
        if let (Some(touched), Some(entry)) = (&mut self.touched, self.hosts[node.index()].get(id))
            && !std::mem::replace(&mut entry.noted, true)
        {
            touched.push((node, id));
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
            // The number of a subflow is the index of its ports.
            let all = std::iter::once(&ports).chain(&entry.joined);
            for (number, &ports) in (0..).zip(all) {
                let Some(subflow) = connection.subflow_info(SubflowId(number)) else { return };
                let (subflow, info) = (Some(number), &subflow.tcp);
                of(&ConnectionView { node, id, subflow, peer, ports, info });
            }
        }
    }
}
