//! MPTCP options between script and connection: names of keys and addresses, and comparison.

use std::collections::BTreeMap;
use std::net::IpAddr;

use anabranch_core::segment::{
    self, AddAddr, AddressId, CapableForm, DataSeqNumber, Dss, DssChecksum, Flags, Key, Mapping, MpCapable,
    MpJoin, MpTcpRst, Mptcp, MptcpOption, ResetReason, Segment, WireDsn,
};

use super::Runner;
use crate::host::{Flow, Sent};
use crate::outcome::{Step, Stop};
use crate::script::{Checksum, KeyName, Multipath, Named, Packet, TcpOption, Token};
use crate::secrets;

/// Values of the script's variables.
#[derive(Debug, Default)]
pub(super) struct Names {
    keys: BTreeMap<String, Key>,
    addresses: BTreeMap<String, IpAddr>,
    /// Number of peers' addresses so far.
    remotes: u8,
    /// Nonces of the peer, by flow.
    nonces: BTreeMap<usize, u32>,
}

/// Both ends of a flow.
#[derive(Clone, Copy)]
struct Ends {
    ours: (Key, u32),
    theirs: (Key, u32),
}

impl Names {
    /// The address with this name, which is `new` if the script has not used the name yet.
    fn address(&mut self, name: &str, new: IpAddr) -> IpAddr {
        *self.addresses.entry(name.to_owned()).or_insert(new)
    }

    fn key(&self, line: usize, key: &KeyName) -> Step<Key> {
        let known = key.value.map(Key).or_else(|| self.keys.get(&key.name).copied());
        known.ok_or_else(|| Stop::invalid(line, format_args!("the key `{}` has no value yet", key.name)))
    }
}

/// The MPTCP options of a packet.
fn options(packet: &Packet) -> impl Iterator<Item = &Multipath> {
    packet.options.iter().flatten().filter_map(|option| match option {
        TcpOption::Multipath(option) => Some(option),
        _ => None,
    })
}

/// Whether the packet is a SYN with MP_JOIN.
pub(super) fn joins(packet: &Packet) -> bool {
    packet.flags.contains(Flags::SYN)
        && !packet.flags.contains(Flags::ACK)
        && options(packet).any(|option| matches!(option, Multipath::JoinSyn { .. }))
}

impl Runner<'_> {
    /// The local and the remote address of an arriving packet, as far as the script names them.
    pub(super) fn ends_of(&mut self, packet: &Packet) -> (Option<IpAddr>, Option<IpAddr>) {
        let [source, destination] = &packet.addresses;
        let local = destination.as_ref().map(|name| self.names.address(name, self.host.settings.local()));
        let new = later(self.host.settings.remote(), self.names.remotes);
        let remote = source.as_ref().map(|name| self.names.address(name, new));
        self.names.remotes = self.names.remotes.saturating_add(u8::from(remote == Some(new)));
        (local, remote)
    }

    /// Whether a packet that leaves may belong to this flow; learns the names of its addresses.
    pub(super) fn may_be_on(&mut self, packet: &Packet, index: usize) -> bool {
        let Some(flow) = self.host.flow(index).copied() else { return false };
        let [source, destination] = &packet.addresses;
        if source.is_none() && destination.is_none() {
            return packet.ports.is_some() || joins(packet) || self.host.current == Some(index);
        }
        let is = |name: &Option<String>, address| {
            let known = name.as_ref().and_then(|name| self.names.addresses.get(name));
            known.is_none_or(|known| *known == address)
        };
        if !is(source, flow.addresses.0) || !is(destination, flow.addresses.1) {
            return false;
        }
        for (name, address) in [(source, flow.addresses.0), (destination, flow.addresses.1)] {
            if let Some(name) = name {
                self.names.address(name, address);
            }
        }
        true
    }

    fn ends(&self, index: usize) -> Option<Ends> {
        let multi = self.host.link(index)?.connection.multi()?;
        let Flow { nonce, .. } = self.host.flow(index)?;
        let theirs = self.names.nonces.get(&index).copied().unwrap_or(NONCE);
        Some(Ends { ours: (multi.key, *nonce), theirs: (multi.peer_key.unwrap_or_default(), theirs) })
    }

    /// The options of an arriving packet, on the flow `index` if there is one yet.
    pub(super) fn multipath_in(&mut self, line: usize, packet: &Packet, index: Option<usize>) -> Step<Mptcp> {
        let mut all = Mptcp::NONE;
        for option in options(packet) {
            let ends = index.and_then(|index| self.ends(index));
            let needs = || Stop::invalid(line, "this option needs a connection with keys of both ends");
            let option = match option {
                Multipath::Capable { version, flags, keys, len } => {
                    let form = self.form(line, keys, *len)?;
                    if let (Some(index), CapableForm::SynAck { sender } | CapableForm::Ack { sender, .. }) =
                        (index, form)
                    {
                        self.host.set_peer_key(index, sender);
                    }
                    MptcpOption::MpCapable(capable(*version, *flags, form))
                }
                Multipath::JoinSyn { backup, address, token, nonce } => {
                    let token = match token {
                        Token::Value(token) => segment::Token(*token),
                        Token::Of(name) => {
                            let name = Named { name: name.clone(), value: None };
                            secrets::token(self.names.key(line, &name)?)
                        }
                        Token::Right => secrets::token(self.host.key().ok_or_else(needs)?),
                    };
                    let (backup, address) = (*backup, AddressId(address.unwrap_or(0)));
                    MptcpOption::MpJoin(MpJoin::Syn { backup, address, token, nonce: nonce.unwrap_or(NONCE) })
                }
                Multipath::JoinSynAck { backup, address, nonce } => {
                    let (mut ends, index) = ends.zip(index).ok_or_else(needs)?;
                    ends.theirs.1 = nonce.unwrap_or(NONCE);
                    self.names.nonces.insert(index, ends.theirs.1);
                    let hmac = leftmost_64(&secrets::join(ends.theirs, ends.ours));
                    let (backup, address) = (*backup, AddressId(address.unwrap_or(0)));
                    MptcpOption::MpJoin(MpJoin::SynAck { backup, address, hmac, nonce: ends.theirs.1 })
                }
                Multipath::JoinAck => {
                    let ends = ends.ok_or_else(needs)?;
                    let hmac = leftmost_160(&secrets::join(ends.theirs, ends.ours));
                    MptcpOption::MpJoin(MpJoin::Ack { hmac })
                }
                Multipath::Dss { .. } => {
                    let ends = ends.ok_or_else(needs)?;
                    all.set_dss(dss(option, packet, ends));
                    continue;
                }
                Multipath::AddAddress { id, address, port, echo, hmac } => {
                    let ends = ends.ok_or_else(needs)?;
                    let new = address.value.unwrap_or_else(|| later(self.host.settings.remote(), 100));
                    let address = self.names.address(&address.name, new);
                    let id = AddressId(id.unwrap_or(1));
                    let mut add = AddAddr { id, address, port: *port, hmac: None };
                    if !echo {
                        let right = secrets::address(ends.theirs.0, ends.ours.0, &add);
                        add.hmac = Some(hmac.unwrap_or(right));
                    }
                    MptcpOption::AddAddr(add)
                }
                Multipath::RemoveAddress(ids) => {
                    MptcpOption::RemoveAddr(ids.iter().copied().map(AddressId).collect())
                }
                // The form of version 0 has another length, so it is malformed in version 1.
                Multipath::Prio { address: Some(_), .. } => continue,
                Multipath::Prio { backup, address: None } => MptcpOption::MpPrio { backup: *backup },
                Multipath::Fail { dsn } => {
                    let ends = ends.ok_or_else(needs)?;
                    MptcpOption::MpFail { dsn: secrets::initial(ends.ours.0) + u64::from(*dsn) }
                }
                Multipath::Fastclose { key } => {
                    let right = ends.map(|ends| ends.ours.0);
                    let key = key.as_ref().map(|key| self.names.key(line, key)).transpose()?;
                    MptcpOption::MpFastclose { receiver: key.or(right).ok_or_else(needs)? }
                }
                Multipath::Reset { reason, transient } => {
                    let (transient, reason) = (*transient, ResetReason(*reason));
                    MptcpOption::MpTcpRst(MpTcpRst { transient, reason })
                }
            };
            all.push(option);
        }
        Ok(all)
    }

    /// The form of an MP_CAPABLE; keys with a value get their names.
    fn form(&mut self, line: usize, keys: &[KeyName], len: Option<u16>) -> Step<CapableForm> {
        let mut values = Vec::new();
        for key in keys {
            let value = self.names.key(line, key)?;
            self.names.keys.insert(key.name.clone(), value);
            values.push(value);
        }
        Ok(match (&values[..], len) {
            ([], _) => CapableForm::Syn,
            ([sender], _) => CapableForm::SynAck { sender: *sender },
            ([sender, receiver, ..], None) => CapableForm::Ack { sender: *sender, receiver: *receiver },
            ([sender, receiver, ..], Some(len)) => {
                CapableForm::Data { sender: *sender, receiver: *receiver, len, checksum: None }
            }
        })
    }

    /// Learns the names of keys and addresses from a packet that leaves.
    pub(super) fn learn_names(&mut self, packet: &Packet, segment: &Segment) {
        for option in options(packet) {
            for ours in segment.mptcp.options() {
                match (option, ours) {
                    (Multipath::Capable { keys, .. }, MptcpOption::MpCapable(capable)) => {
                        let values = match capable.form {
                            CapableForm::Syn => vec![],
                            CapableForm::SynAck { sender } => vec![sender],
                            CapableForm::Ack { sender, receiver }
                            | CapableForm::Data { sender, receiver, .. } => vec![sender, receiver],
                        };
                        for (key, value) in keys.iter().zip(values) {
                            self.names.keys.entry(key.name.clone()).or_insert(value);
                        }
                    }
                    (Multipath::AddAddress { address, .. }, MptcpOption::AddAddr(add)) => {
                        self.names.address(&address.name, address.value.unwrap_or(add.address));
                    }
                    _ => {}
                }
            }
        }
    }

    /// Compares the MPTCP options of a segment that leaves. `before` bytes of the packet have left
    /// already; `whole` means that this segment ends the packet.
    pub(super) fn compare_multipath(
        &self,
        packet: &Packet,
        sent: &Sent,
        (before, whole): (u32, bool),
    ) -> Result<(), String> {
        let ours = &sent.segment.mptcp;
        let ends = self.ends(sent.flow);
        let mut left: Vec<&MptcpOption> = ours.options().iter().collect();
        let mut wants_dss = false;
        for option in options(packet) {
            if matches!(option, Multipath::Dss { .. }) {
                let (Some(dss), Some(ends)) = (ours.dss(), ends) else {
                    return Err("the option dss is missing".to_owned());
                };
                compare_dss(option, (packet.len, sent, dss), ends, (before, whole))?;
                wants_dss = true;
                continue;
            }
            let mut reason = "it is missing".to_owned();
            let found = left.iter().position(|ours| match self.same(option, ours, ends) {
                Ok(same) => same,
                Err(difference) => {
                    reason = difference;
                    false
                }
            });
            match found {
                Some(found) => drop(left.remove(found)),
                None => return Err(format!("the option {option:?} differs: {reason}")),
            }
        }
        if let Some(option) = left.first() {
            return Err(format!("it carries {option:?}"));
        }
        if let Some(dss) = ours.dss().filter(|_| !wants_dss) {
            return Err(format!("it carries {dss:?}"));
        }
        Ok(())
    }

    /// Whether our option is that of the script; false if it is another option.
    fn same(&self, wanted: &Multipath, ours: &MptcpOption, ends: Option<Ends>) -> Result<bool, String> {
        let check = |same: bool, what: &str| if same { Ok(()) } else { Err(format!("{what}: {ours:?}")) };
        match (wanted, ours) {
            (Multipath::Capable { version, flags, keys, len }, MptcpOption::MpCapable(ours)) => {
                let key = |key: &KeyName| {
                    key.value.map(Key).or_else(|| self.names.keys.get(&key.name).copied()).unwrap_or_default()
                };
                let keys: Vec<Key> = keys.iter().map(key).collect();
                let (found, length) = match ours.form {
                    CapableForm::Syn => (vec![], None),
                    CapableForm::SynAck { sender } => (vec![sender], None),
                    CapableForm::Ack { sender, receiver } => (vec![sender, receiver], None),
                    CapableForm::Data { sender, receiver, len, .. } => (vec![sender, receiver], Some(len)),
                };
                check(capable(*version, *flags, ours.form) == *ours, "version or flags")?;
                check(keys == found, "the keys")?;
                check(length == *len, "the length")?;
            }
            (Multipath::JoinSyn { backup, address, token, .. }, MptcpOption::MpJoin(join)) => {
                let MpJoin::Syn { backup: flag, address: id, token: found, .. } = join else {
                    return Ok(false);
                };
                let expected = match token {
                    Token::Value(token) => Some(segment::Token(*token)),
                    Token::Of(name) => self.names.keys.get(name).copied().map(secrets::token),
                    Token::Right => ends.map(|ends| secrets::token(ends.theirs.0)),
                };
                check(backup == flag, "the backup flag")?;
                check(address.is_none_or(|address| address == id.0), "the id of the address")?;
                check(expected == Some(*found), "the token")?;
            }
            (Multipath::JoinSynAck { backup, .. }, MptcpOption::MpJoin(join)) => {
                let MpJoin::SynAck { backup: flag, hmac, .. } = join else { return Ok(false) };
                let expected = ends.map(|ends| leftmost_64(&secrets::join(ends.ours, ends.theirs)));
                check(backup == flag, "the backup flag")?;
                check(expected == Some(*hmac), "the HMAC")?;
            }
            (Multipath::JoinAck, MptcpOption::MpJoin(MpJoin::Ack { hmac })) => {
                let expected = ends.map(|ends| leftmost_160(&secrets::join(ends.ours, ends.theirs)));
                check(expected == Some(*hmac), "the HMAC")?;
            }
            (Multipath::AddAddress { id, address, port, echo, hmac }, MptcpOption::AddAddr(add)) => {
                let right = ends.map(|ends| {
                    let (ours, theirs) = (ends.ours.0, ends.theirs.0);
                    secrets::address(ours, theirs, add)
                });
                let expected = if *echo { None } else { hmac.or(right) };
                check(id.is_none_or(|id| id == add.id.0), "the id")?;
                check(self.names.addresses.get(&address.name) == Some(&add.address), "the address")?;
                check(*port == add.port, "the port")?;
                check(expected == add.hmac, "the HMAC")?;
            }
            (Multipath::RemoveAddress(ids), MptcpOption::RemoveAddr(found)) => {
                check(found.iter().map(|id| &id.0).eq(ids), "the ids")?;
            }
            (Multipath::Prio { backup, address: None }, MptcpOption::MpPrio { backup: found }) => {
                check(backup == found, "the backup flag")?;
            }
            (Multipath::Fail { dsn }, MptcpOption::MpFail { dsn: found }) => {
                let expected = ends.map(|ends| secrets::initial(ends.theirs.0) + u64::from(*dsn));
                check(expected == Some(*found), "the number")?;
            }
            (Multipath::Fastclose { key }, MptcpOption::MpFastclose { receiver }) => {
                let named = key.as_ref().and_then(|key| self.names.keys.get(&key.name).copied());
                let expected = named.or(ends.map(|ends| ends.theirs.0));
                check(expected == Some(*receiver), "the key")?;
            }
            (Multipath::Reset { reason, transient }, MptcpOption::MpTcpRst(found)) => {
                check(*reason == found.reason.0 && *transient == found.transient, "the reason")?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn capable(version: u8, flags: u8, form: CapableForm) -> MpCapable {
    MpCapable {
        version,
        checksum_required: flags & 0x80 != 0,
        extended: flags & 0x40 != 0,
        no_joins_here: flags & 0x20 != 0,
        hmac_sha256: flags & 0x01 != 0,
        form,
    }
}

/// The data sequence signal of an arriving packet.
fn dss(option: &Multipath, packet: &Packet, ends: Ends) -> Dss {
    let Multipath::Dss { ack, dsn, ssn, len, checksum, fin } = option else { return Dss::default() };
    let wire = |(long, number): (bool, u64), key| {
        let number = secrets::initial(key) + number;
        if long { WireDsn::Long(number) } else { WireDsn::Short(number.0 as u32) }
    };
    let mut dss = Dss::default();
    if let Some(ack) = *ack {
        dss = dss.with_data_ack(wire(ack, ends.ours.0));
    }
    if let Some(dsn) = *dsn {
        let subflow_seq = ssn.unwrap_or(if packet.len > 0 { packet.seq } else { 0 });
        let len = len.unwrap_or((packet.len as u16).saturating_add(u16::from(*fin)));
        let checksum = match checksum {
            Checksum::None => None,
            Checksum::Value(checksum) => Some(*checksum),
            Checksum::Right => {
                // The payload of packets is zeros.
                Some(DssChecksum::new(secrets::initial(ends.theirs.0) + dsn.1, subflow_seq, len).value())
            }
        };
        let dsn = wire(dsn, ends.theirs.0);
        dss = dss.with_mapping(Mapping { dsn, subflow_seq, len, checksum });
    }
    if *fin { dss.with_data_fin() } else { dss }
}

fn compare_dss(
    wanted: &Multipath,
    (packet_len, sent, dss): (u32, &Sent, &Dss),
    ends: Ends,
    (before, whole): (u32, bool),
) -> Result<(), String> {
    let Multipath::Dss { ack, dsn, ssn, len, checksum, fin } = wanted else { return Ok(()) };
    let differs = |what: &str, expected: Option<u64>, found: Option<u64>| {
        let show = |number: Option<u64>| number.map_or("none".to_owned(), |number| number.to_string());
        Err(format!("the {what} differs: expected {}, got {}", show(expected), show(found)))
    };
    // The sender chooses the size of a number, so it is not compared.
    let relative = |found: WireDsn, key: Key| {
        let initial: DataSeqNumber = secrets::initial(key);
        found.expand(initial).distance(initial) as u64
    };
    let expected = ack.map(|(_, ack)| ack);
    let found = dss.data_ack().map(|ack| relative(ack, ends.theirs.0));
    if expected != found {
        return differs("DATA_ACK", expected, found);
    }
    if *fin && whole != dss.data_fin() {
        return Err("the DATA_FIN differs".to_owned());
    }
    let Some(mapping) = dss.mapping() else {
        return if dsn.is_none() { Ok(()) } else { Err("the mapping is missing".to_owned()) };
    };
    let expected = dsn.map(|(_, dsn)| dsn + u64::from(before));
    let found = Some(relative(mapping.dsn, ends.ours.0));
    if expected != found {
        return differs("data sequence number", expected, found);
    }
    let expected = ssn.map(|ssn| ssn.wrapping_add(before));
    if expected.is_some_and(|expected| expected != mapping.subflow_seq) {
        return differs("subflow sequence number", expected.map(u64::from), Some(mapping.subflow_seq.into()));
    }
    // A packet that leaves as several segments has a mapping in each.
    let single = before == 0 && sent.segment.payload.len() as u32 == packet_len;
    if single && len.is_some_and(|len| len != mapping.len) {
        return differs("data-level length", len.map(u64::from), Some(mapping.len.into()));
    }
    let mut sum = DssChecksum::new(
        secrets::initial(ends.ours.0) + relative(mapping.dsn, ends.ours.0),
        mapping.subflow_seq,
        mapping.len,
    );
    sum.add(&sent.segment.payload);
    let right = match (checksum, mapping.checksum) {
        (Checksum::None, None) => true,
        (Checksum::None, Some(_)) | (_, None) => false,
        (Checksum::Right, Some(found)) => sum.confirms(found),
        (Checksum::Value(expected), Some(found)) => *expected == found,
    };
    if right { Ok(()) } else { Err("the checksum differs".to_owned()) }
}

fn leftmost_64(hmac: &[u8; 32]) -> u64 {
    let mut head = [0; 8];
    head.copy_from_slice(&hmac[..8]);
    u64::from_be_bytes(head)
}

fn leftmost_160(hmac: &[u8; 32]) -> [u8; 20] {
    let mut head = [0; 20];
    head.copy_from_slice(&hmac[..20]);
    head
}

/// The address `n` after this one.
fn later(address: IpAddr, n: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => IpAddr::V4(address.to_bits().wrapping_add(n.into()).into()),
        IpAddr::V6(address) => IpAddr::V6(address.to_bits().wrapping_add(n.into()).into()),
    }
}

/// Nonce of the peer, if the script gives none.
const NONCE: u32 = 0x2000_0001;
