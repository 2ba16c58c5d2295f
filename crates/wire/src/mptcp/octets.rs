//! Writes and parses the options (RFC 8684 section 3). Parsing begins after kind and length.
//! Reserved bits are written as zero and ignored when read.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{
    AddAddr, AddressId, CapableForm, Carried, DataSeqNumber, Dss, KIND, Key, MAX_REMOVED, Mapping, MpCapable,
    MpJoin, MpTcpRst, Mptcp, MptcpOption, ResetReason, Token, WireDsn,
};

/// The subtypes (RFC 8684 section 8.2), in the upper four bits of the third byte.
mod subtype {
    pub(super) const MP_CAPABLE: u8 = 0x0;
    pub(super) const MP_JOIN: u8 = 0x1;
    pub(super) const DSS: u8 = 0x2;
    pub(super) const ADD_ADDR: u8 = 0x3;
    pub(super) const REMOVE_ADDR: u8 = 0x4;
    pub(super) const MP_PRIO: u8 = 0x5;
    pub(super) const MP_FAIL: u8 = 0x6;
    pub(super) const MP_FASTCLOSE: u8 = 0x7;
    pub(super) const MP_TCPRST: u8 = 0x8;
}

/// Flag F of a DSS.
const DATA_FIN: u8 = 0x10;
/// Flags A, B, C and H of MP_CAPABLE.
const CHECKSUM_REQUIRED: u8 = 0x80;
const EXTENDED: u8 = 0x40;
const NO_JOINS_HERE: u8 = 0x20;
const HMAC_SHA256: u8 = 0x01;

impl Mptcp {
    /// Appends all options, without padding: [`Mptcp::bare_len`] bytes.
    pub(crate) fn emit(&self, out: &mut [u8]) {
        let mut writer = Writer { out, at: 0 };
        match &self.0 {
            Carried::Nothing => {}
            Carried::Dss(dss) => emit_dss(dss, &mut writer),
            Carried::Others(others) => {
                if let Some(dss) = &others.dss {
                    emit_dss(dss, &mut writer);
                }
                others.options.iter().for_each(|option| emit(option, &mut writer));
            }
        }
    }

    /// Reads one option, without its kind and length; of two DSS the last wins. Returns false and
    /// changes nothing if the option is malformed: unknown subtypes and lengths are ignored.
    pub(crate) fn read(&mut self, octets: &[u8]) -> bool {
        if !cfg!(feature = "mptcp") {
            return false;
        }
        let mut reader = Reader(octets);
        let Some(first) = reader.u8() else { return false };
        if first >> 4 == subtype::DSS {
            let Some(dss) = read_dss(&mut reader, octets.len() + 2) else { return false };
            self.set_dss(dss);
            return true;
        }
        let Some(option) = read(first, &mut reader, octets.len() + 2) else { return false };
        // The length selects the form of an option, so extra bytes make it malformed.
        if !reader.0.is_empty() {
            return false;
        }
        self.push(option);
        true
    }
}

/// Fills a buffer from the front. The caller has sized the buffer by [`Mptcp::bare_len`].
struct Writer<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl Writer<'_> {
    fn put(&mut self, octets: &[u8]) {
        if let Some(space) = self.out.get_mut(self.at..self.at + octets.len()) {
            space.copy_from_slice(octets);
        }
        self.at += octets.len();
    }

    fn head(&mut self, len: usize, subtype: u8, low: u8) {
        self.put(&[KIND, len as u8, subtype << 4 | low]);
    }

    fn dsn(&mut self, number: WireDsn) {
        match number {
            WireDsn::Short(low) => self.put(&low.to_be_bytes()),
            WireDsn::Long(whole) => self.put(&whole.0.to_be_bytes()),
        }
    }
}

fn emit_dss(dss: &Dss, out: &mut Writer<'_>) {
    out.head(dss.wire_len(), subtype::DSS, 0);
    out.put(&[dss.form & !Dss::CHECKSUM | if dss.data_fin { DATA_FIN } else { 0 }]);
    if let Some(ack) = dss.data_ack() {
        out.dsn(ack);
    }
    if let Some(mapping) = dss.mapping() {
        out.dsn(mapping.dsn);
        out.put(&mapping.subflow_seq.to_be_bytes());
        out.put(&mapping.len.to_be_bytes());
        if let Some(checksum) = mapping.checksum {
            out.put(&checksum.to_be_bytes());
        }
    }
}

fn emit(option: &MptcpOption, out: &mut Writer<'_>) {
    let len = option.wire_len();
    match option {
        MptcpOption::MpCapable(capable) => emit_capable(capable, len, out),
        MptcpOption::MpJoin(join) => emit_join(join, len, out),
        MptcpOption::AddAddr(add) => {
            out.head(len, subtype::ADD_ADDR, u8::from(add.hmac.is_none()));
            out.put(&[add.id.0]);
            match add.address {
                IpAddr::V4(address) => out.put(&address.octets()),
                IpAddr::V6(address) => out.put(&address.octets()),
            }
            if let Some(port) = add.port {
                out.put(&port.to_be_bytes());
            }
            if let Some(hmac) = add.hmac {
                out.put(&hmac.to_be_bytes());
            }
        }
        MptcpOption::RemoveAddr(ids) => {
            out.head(len, subtype::REMOVE_ADDR, 0);
            ids.iter().for_each(|id| out.put(&[id.0]));
        }
        MptcpOption::MpPrio { backup } => out.head(len, subtype::MP_PRIO, u8::from(*backup)),
        MptcpOption::MpFail { dsn } => {
            out.head(len, subtype::MP_FAIL, 0);
            out.put(&[0]);
            out.put(&dsn.0.to_be_bytes());
        }
        MptcpOption::MpFastclose { receiver } => {
            out.head(len, subtype::MP_FASTCLOSE, 0);
            out.put(&[0]);
            out.put(&receiver.0.to_be_bytes());
        }
        MptcpOption::MpTcpRst(reset) => {
            out.head(len, subtype::MP_TCPRST, u8::from(reset.transient));
            out.put(&[reset.reason.0]);
        }
    }
}

fn emit_capable(capable: &MpCapable, len: usize, out: &mut Writer<'_>) {
    out.head(len, subtype::MP_CAPABLE, capable.version & 0xf);
    let flag = |on, bit| if on { bit } else { 0 };
    out.put(&[flag(capable.checksum_required, CHECKSUM_REQUIRED)
        | flag(capable.extended, EXTENDED)
        | flag(capable.no_joins_here, NO_JOINS_HERE)
        | flag(capable.hmac_sha256, HMAC_SHA256)]);
    match capable.form {
        CapableForm::Syn => {}
        CapableForm::SynAck { sender } => out.put(&sender.0.to_be_bytes()),
        CapableForm::Ack { sender, receiver } => {
            out.put(&sender.0.to_be_bytes());
            out.put(&receiver.0.to_be_bytes());
        }
        CapableForm::Data { sender, receiver, len, checksum } => {
            out.put(&sender.0.to_be_bytes());
            out.put(&receiver.0.to_be_bytes());
            out.put(&len.to_be_bytes());
            if let Some(checksum) = checksum {
                out.put(&checksum.to_be_bytes());
            }
        }
    }
}

fn emit_join(join: &MpJoin, len: usize, out: &mut Writer<'_>) {
    match join {
        MpJoin::Syn { backup, address, token, nonce } => {
            out.head(len, subtype::MP_JOIN, u8::from(*backup));
            out.put(&[address.0]);
            out.put(&token.0.to_be_bytes());
            out.put(&nonce.to_be_bytes());
        }
        MpJoin::SynAck { backup, address, hmac, nonce } => {
            out.head(len, subtype::MP_JOIN, u8::from(*backup));
            out.put(&[address.0]);
            out.put(&hmac.to_be_bytes());
            out.put(&nonce.to_be_bytes());
        }
        MpJoin::Ack { hmac } => {
            out.head(len, subtype::MP_JOIN, 0);
            out.put(&[0]);
            out.put(hmac);
        }
    }
}

/// Bytes not yet read.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take().map(|[octet]| octet)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    fn key(&mut self) -> Option<Key> {
        self.u64().map(Key)
    }

    fn dsn(&mut self, long: bool) -> Option<WireDsn> {
        if long {
            self.u64().map(|n| WireDsn::Long(DataSeqNumber(n)))
        } else {
            self.u32().map(WireDsn::Short)
        }
    }
}

/// `len` includes kind and length. Only the length tells whether a checksum is present.
fn read_dss(reader: &mut Reader<'_>, len: usize) -> Option<Dss> {
    let flags = reader.u8()?;
    let has = |bit| flags & bit != 0;
    let mut dss = Dss::default();
    if has(Dss::ACK) {
        dss = dss.with_data_ack(reader.dsn(has(Dss::ACK_LONG))?);
    }
    if has(Dss::MAPPING) {
        let dsn = reader.dsn(has(Dss::DSN_LONG))?;
        let mapping = Mapping { dsn, subflow_seq: reader.u32()?, len: reader.u16()?, checksum: None };
        let checksum = if reader.0.is_empty() { None } else { Some(reader.u16()?) };
        dss = dss.with_mapping(Mapping { checksum, ..mapping });
    }
    if has(DATA_FIN) {
        // RFC 8684 section 3.3.3: a DATA_FIN requires a mapping.
        dss.mapping()?;
        dss = dss.with_data_fin();
    }
    (reader.0.is_empty() && dss.wire_len() == len).then_some(dss)
}

fn read(first: u8, reader: &mut Reader<'_>, len: usize) -> Option<MptcpOption> {
    let low = first & 0xf;
    Some(match first >> 4 {
        subtype::MP_CAPABLE => MptcpOption::MpCapable(read_capable(low, reader, len)?),
        subtype::MP_JOIN => MptcpOption::MpJoin(read_join(low, reader, len)?),
        subtype::ADD_ADDR => MptcpOption::AddAddr(read_add(low, reader, len)?),
        subtype::REMOVE_ADDR => {
            let ids: Vec<AddressId> = reader.0.iter().copied().map(AddressId).collect();
            reader.0 = &[];
            if ids.is_empty() || ids.len() > MAX_REMOVED {
                return None;
            }
            MptcpOption::RemoveAddr(ids)
        }
        subtype::MP_PRIO => MptcpOption::MpPrio { backup: low & 1 != 0 },
        subtype::MP_FAIL => {
            reader.u8()?;
            MptcpOption::MpFail { dsn: DataSeqNumber(reader.u64()?) }
        }
        subtype::MP_FASTCLOSE => {
            reader.u8()?;
            MptcpOption::MpFastclose { receiver: reader.key()? }
        }
        subtype::MP_TCPRST => {
            MptcpOption::MpTcpRst(MpTcpRst { transient: low & 1 != 0, reason: ResetReason(reader.u8()?) })
        }
        _ => return None,
    })
}

fn read_capable(version: u8, reader: &mut Reader<'_>, len: usize) -> Option<MpCapable> {
    let flags = reader.u8()?;
    // The length tells the place in the handshake (RFC 8684 section 3.1, figure 4).
    let form = match len {
        4 => CapableForm::Syn,
        12 => CapableForm::SynAck { sender: reader.key()? },
        20 => CapableForm::Ack { sender: reader.key()?, receiver: reader.key()? },
        22 | 24 => CapableForm::Data {
            sender: reader.key()?,
            receiver: reader.key()?,
            len: reader.u16()?,
            checksum: if len == 24 { Some(reader.u16()?) } else { None },
        },
        _ => return None,
    };
    Some(MpCapable {
        version,
        checksum_required: flags & CHECKSUM_REQUIRED != 0,
        extended: flags & EXTENDED != 0,
        no_joins_here: flags & NO_JOINS_HERE != 0,
        hmac_sha256: flags & HMAC_SHA256 != 0,
        form,
    })
}

fn read_join(low: u8, reader: &mut Reader<'_>, len: usize) -> Option<MpJoin> {
    let address = AddressId(reader.u8()?);
    let backup = low & 1 != 0;
    Some(match len {
        // The length tells the place in the handshake (RFC 8684 section 3.2, figures 5 to 7).
        12 => MpJoin::Syn { backup, address, token: Token(reader.u32()?), nonce: reader.u32()? },
        16 => MpJoin::SynAck { backup, address, hmac: reader.u64()?, nonce: reader.u32()? },
        24 => MpJoin::Ack { hmac: reader.take()? },
        _ => return None,
    })
}

/// Only the length tells the address family and whether a port is present (RFC 8684 section 3.4.1).
fn read_add(low: u8, reader: &mut Reader<'_>, len: usize) -> Option<AddAddr> {
    let id = AddressId(reader.u8()?);
    let echo = low & 1 != 0;
    let (v4, port) = match len.checked_sub(if echo { 0 } else { 8 })? {
        8 => (true, false),
        10 => (true, true),
        20 => (false, false),
        22 => (false, true),
        _ => return None,
    };
    let address = if v4 {
        IpAddr::V4(Ipv4Addr::from(reader.take::<4>()?))
    } else {
        IpAddr::V6(Ipv6Addr::from(reader.take::<16>()?))
    };
    Some(AddAddr {
        id,
        address,
        port: if port { Some(reader.u16()?) } else { None },
        hmac: if echo { None } else { Some(reader.u64()?) },
    })
}
