//! The subflows of all connections, and the host's path manager.

use std::net::IpAddr;

use anabranch_core::mptcp::{self, JoinError, PathId, Secrets, SubflowId, join_token};
use anabranch_core::segment::{AddressId, CapableForm, Key, MptcpOption, Segment, SeqNumber};
use anabranch_core::tcp::{self, Connection};

use super::transport::{Multi, Transport};
use super::{Host, Sent};

/// A subflow; a TCP connection is one too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    /// Index of its connection; `None` if the host has refused its SYN.
    pub(crate) link: Option<usize>,
    pub(crate) subflow: SubflowId,
    pub(crate) iss: SeqNumber,
    /// Local and remote port, and address.
    pub(crate) ports: (u16, u16),
    pub(crate) addresses: (IpAddr, IpAddr),
    /// The host's nonce.
    pub(crate) nonce: u32,
}

impl Host {
    pub(crate) fn flow(&self, index: usize) -> Option<&Flow> {
        self.flows.get(index)
    }

    /// The latest flow for which `wanted` holds.
    pub(crate) fn find_flow(&self, wanted: impl Fn(&Flow) -> bool) -> Option<usize> {
        self.flows.iter().rposition(wanted)
    }

    /// The flow with these ports in the script: local, remote.
    pub(crate) fn find(&self, ports: (u16, u16)) -> Option<usize> {
        // The latest one, since an earlier connection with these ports may be closed.
        self.find_flow(|flow| flow.ports == ports)
    }

    /// The flow of a subflow.
    pub(super) fn flow_of(&self, link: usize, subflow: SubflowId) -> usize {
        let found = self.find_flow(|flow| flow.link == Some(link) && flow.subflow == subflow);
        found.expect("each subflow has a flow")
    }

    /// The secrets of the next flow, which begins at `iss`.
    pub(super) fn secrets(&self, iss: SeqNumber) -> Secrets {
        let n = self.flows.len() as u64 + 1;
        Secrets { key: Key(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)), nonce: 0x1000_0000 + n as u32, iss }
    }

    /// A connection that answers `syn`.
    pub(super) fn passive(
        &self,
        config: tcp::Config,
        multipath: bool,
        syn: &Segment,
        secrets: Secrets,
    ) -> Option<Transport> {
        if !multipath {
            let connection = Connection::accept(self.now, config, syn, secrets.iss)?;
            return Some(Transport::Single(Box::new(connection)));
        }
        let config = mptcp::Config { tcp: config, ..mptcp::Config::default() };
        let connection = mptcp::Connection::accept(self.now, config, PathId(0), syn, secrets)?;
        Some(multi(connection, secrets.key))
    }

    /// A connection that sends a SYN.
    pub(super) fn active(
        &self,
        config: tcp::Config,
        multipath: bool,
        ports: (u16, u16),
        secrets: Secrets,
    ) -> Transport {
        if !multipath {
            let connection = Connection::connect(self.now, config, ports.0, ports.1, secrets.iss);
            return Transport::Single(Box::new(connection));
        }
        let config = mptcp::Config { tcp: config, ..mptcp::Config::default() };
        multi(mptcp::Connection::connect(self.now, config, PathId(0), ports, secrets), secrets.key)
    }

    /// The key of the latest Multipath TCP connection.
    pub(crate) fn key(&self) -> Option<Key> {
        self.links.iter().rev().find_map(|link| link.connection.multi()).map(|multi| multi.key)
    }

    /// Notes the key that the script gives to the peer of a flow.
    pub(crate) fn set_peer_key(&mut self, flow: usize, key: Key) {
        if let Some(link) = self.flows.get(flow).and_then(|flow| flow.link)
            && let Some(multi) = self.links[link].connection.multi_mut()
        {
            multi.peer_key.get_or_insert(key);
        }
    }

    /// Handles a SYN with MP_JOIN: a new flow, or a reset on one without a connection.
    pub(crate) fn accept_join(
        &mut self,
        mut syn: Segment,
        addresses: (IpAddr, IpAddr),
        iss: SeqNumber,
    ) -> usize {
        let token = join_token(&syn);
        let named = |link: &super::Link| link.connection.multi().map(|multi| multi.connection.token());
        let link = self.links.iter().rposition(|link| token.is_some() && named(link) == token);
        let ports = link.map_or((LISTENING_PORT, 0), |link| self.links[link].ports);
        if syn.dst_port == 0 {
            (syn.dst_port, syn.src_port) = (ports.0, JOINING_PORT.wrapping_add(self.flows.len() as u16));
        }
        let secrets = self.secrets(iss);
        let address = self.address_id(addresses.0);
        let (now, path) = (self.now, PathId(self.flows.len() as u16));
        let multi = link.and_then(|link| self.links[link].connection.multi_mut());
        let joined = multi
            .ok_or(JoinError::Token)
            .and_then(|multi| multi.connection.accept_join(now, path, &syn, address, secrets));
        let flow = self.flows.len();
        let base = Flow {
            link,
            subflow: SubflowId(0),
            iss,
            ports: (syn.dst_port, syn.src_port),
            addresses,
            nonce: secrets.nonce,
        };
        match joined {
            Ok(subflow) => self.flows.push(Flow { subflow, ..base }),
            Err(error) => {
                self.flows.push(Flow { link: None, iss: SeqNumber(0), ..base });
                let at = self.now;
                let reset = error.reset_for(&syn);
                self.sent.extend(reset.map(|segment| Sent { at, flow, segment, ends_queue: false }));
            }
        }
        self.current = Some(flow);
        self.drain();
        flow
    }

    /// The id of a local address: that of its endpoint, or 0.
    fn address_id(&self, local: IpAddr) -> AddressId {
        let endpoint = self.settings.endpoints.iter().position(|endpoint| *endpoint == local);
        AddressId(endpoint.map_or(0, |i| (i + 1) as u8))
    }

    /// Announces the host's endpoints on a connection that a program accepts.
    pub(super) fn announce(&mut self, link: usize) {
        let (now, endpoints) = (self.now, self.settings.endpoints.clone());
        if let Some(multi) = self.links[link].connection.multi_mut() {
            for (i, endpoint) in endpoints.into_iter().enumerate() {
                multi.connection.add_address(now, AddressId((i + 1) as u8), endpoint, None);
            }
        }
    }

    /// Opens a subflow to an address that the peer has announced. Packets without addresses belong
    /// to it once the script has named it.
    pub(super) fn join_address(&mut self, link: usize, address: IpAddr, port: Option<u16>) {
        if !self.settings.accepts_addresses {
            return;
        }
        let secrets = self.secrets(self.next_iss(None));
        let first = self.flows[self.flow_of(link, SubflowId(0))];
        let ports = (JOINING_PORT.wrapping_add(self.flows.len() as u16), port.unwrap_or(first.ports.1));
        let (now, path) = (self.now, (PathId(self.flows.len() as u16), AddressId(0)));
        let Some(multi) = self.links[link].connection.multi_mut() else { return };
        if let Ok(subflow) = multi.connection.join(now, path, ports, None, secrets) {
            let (iss, nonce) = (secrets.iss, secrets.nonce);
            let addresses = (first.addresses.0, address);
            self.flows.push(Flow { link: Some(link), subflow, iss, ports, addresses, nonce });
        }
    }
}

/// Whether the segment is the third of the handshake, without data.
pub(super) fn is_third(segment: &Segment) -> bool {
    let keys = |option: &MptcpOption| matches!(option, MptcpOption::MpCapable(capable) if matches!(capable.form, CapableForm::Ack { .. }));
    segment.payload.is_empty() && segment.mptcp.options().iter().any(keys)
}

fn multi(connection: mptcp::Connection, key: Key) -> Transport {
    Transport::Multi(Box::new(Multi { connection, key, peer_key: None, confirms: false }))
}

/// The port of refused subflows.
const LISTENING_PORT: u16 = 8080;
/// First port of the ends that open subflows.
const JOINING_PORT: u16 = 50_000;
