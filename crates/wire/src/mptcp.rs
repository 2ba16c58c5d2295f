//! The option of Multipath TCP, version 1 (RFC 8684): kind 30 with a subtype.
//!
//! A segment may carry several: [`Mptcp`] is all of them. The one of almost every segment, the data
//! sequence signal ([`Dss`]), lies inline; whoever carries others pays for a box.

mod dss;
#[cfg(feature = "ip")]
mod octets;

pub use dss::{DataSeqNumber, Dss, Mapping, WireDsn};

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::IpAddr;

/// The option's kind (RFC 8684 section 8.1).
#[cfg(feature = "ip")]
pub(crate) const KIND: u8 = 30;

/// A host's key (RFC 8684 section 3.1): said in the clear once, and the secret of all later
/// subflows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Key(pub u64);

/// The 32 most significant bits of the hash of a key, which name a connection (RFC 8684 section
/// 3.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Token(pub u32);

/// MP_CAPABLE (RFC 8684 section 3.1, figure 4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MpCapable {
    /// Version; we speak 1.
    pub version: u8,
    /// Flag A: checksums are required.
    pub checksum_required: bool,
    /// Flag C: no further subflows to this address and port.
    pub no_joins_here: bool,
    /// Flag H: HMAC-SHA256.
    pub hmac_sha256: bool,
    /// What follows, by the segment's place in the handshake.
    pub form: CapableForm,
}

/// What an MP_CAPABLE says beyond its flags.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CapableForm {
    /// On SYN, 4 bytes.
    Syn,
    /// On SYN/ACK, 12 bytes.
    SynAck {
        /// Of the option's sender.
        sender: Key,
    },
    /// On the third segment, 20 bytes.
    Ack {
        /// Of the option's sender.
        sender: Key,
        /// Of its receiver.
        receiver: Key,
    },
    /// With the first data, instead of a DSS; 22 bytes, 24 with a checksum.
    Data {
        /// Of the option's sender.
        sender: Key,
        /// Of its receiver.
        receiver: Key,
        /// Data-level length in bytes, from the first byte on.
        len: u16,
        /// Checksum over data and mapping, if agreed on.
        checksum: Option<u16>,
    },
}

/// Which address of a host is meant (RFC 8684 section 3.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct AddressId(pub u8);

/// MP_JOIN (RFC 8684 section 3.2, figures 5 to 7).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MpJoin {
    /// On SYN, 12 bytes.
    Syn {
        /// Flag B: use it only when no other subflow works.
        backup: bool,
        /// The sender's address.
        address: AddressId,
        /// The receiver's connection.
        token: Token,
        /// The sender's nonce.
        nonce: u32,
    },
    /// On SYN/ACK, 16 bytes.
    SynAck {
        /// Flag B.
        backup: bool,
        /// The sender's address.
        address: AddressId,
        /// The leftmost 64 bits of the sender's HMAC.
        hmac: u64,
        /// The sender's nonce.
        nonce: u32,
    },
    /// On the third segment, 24 bytes.
    Ack {
        /// The leftmost 160 bits of the sender's HMAC.
        hmac: [u8; 20],
    },
}

/// ADD_ADDR (RFC 8684 section 3.4.1, figure 12).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AddAddr {
    /// Its number.
    pub id: AddressId,
    /// The address.
    pub address: IpAddr,
    /// Its port, if it is not that of the first subflow.
    pub port: Option<u16>,
    /// The rightmost 64 bits of the HMAC; `None` is an echo (flag E).
    pub hmac: Option<u64>,
}

/// MP_TCPRST (RFC 8684 section 3.6, figure 16).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MpTcpRst {
    /// Flag T: the cause may pass.
    pub transient: bool,
    /// The cause.
    pub reason: ResetReason,
}

/// Why a subflow was reset (RFC 8684 section 3.6).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ResetReason(pub u8);

impl ResetReason {
    /// Nothing is said.
    pub const UNSPECIFIED: Self = Self(0);
    /// Something is wrong with our MPTCP state or its option.
    pub const MPTCP_SPECIFIC: Self = Self(1);
    /// We cannot afford it.
    pub const LACK_OF_RESOURCES: Self = Self(2);
    /// Not allowed here.
    pub const PROHIBITED: Self = Self(3);
    /// Much was sent and nothing acknowledged.
    pub const TOO_MUCH_OUTSTANDING: Self = Self(4);
    /// The path is too bad.
    pub const UNACCEPTABLE_PERFORMANCE: Self = Self(5);
    /// Something between has changed what was said.
    pub const MIDDLEBOX: Self = Self(6);
}

/// At most that many address numbers fit into one REMOVE_ADDR beside nothing else.
pub const MAX_REMOVED: usize = 37;

/// One option that is not a [`Dss`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum MptcpOption {
    /// Multipath is offered, or agreed to.
    MpCapable(MpCapable),
    /// A subflow joins.
    MpJoin(MpJoin),
    /// A further address of the sender.
    AddAddr(AddAddr),
    /// Addresses of the sender that are gone: 1 to [`MAX_REMOVED`].
    RemoveAddr(Vec<AddressId>),
    /// This subflow's priority changes (RFC 8684 section 3.3.8).
    MpPrio {
        /// Flag B.
        backup: bool,
    },
    /// A checksum was wrong (RFC 8684 section 3.7).
    MpFail {
        /// Where in the data.
        dsn: DataSeqNumber,
    },
    /// The whole connection is aborted (RFC 8684 section 3.5).
    MpFastclose {
        /// Key of the option's receiver.
        receiver: Key,
    },
    /// Why this subflow is reset.
    MpTcpRst(MpTcpRst),
}

impl MptcpOption {
    /// Bytes of the option.
    pub fn wire_len(&self) -> usize {
        match self {
            Self::MpCapable(capable) => match capable.form {
                CapableForm::Syn => 4,
                CapableForm::SynAck { .. } => 12,
                CapableForm::Ack { .. } => 20,
                CapableForm::Data { checksum, .. } => 22 + if checksum.is_some() { 2 } else { 0 },
            },
            Self::MpJoin(MpJoin::Syn { .. }) => 12,
            Self::MpJoin(MpJoin::SynAck { .. }) => 16,
            Self::MpJoin(MpJoin::Ack { .. }) => 24,
            Self::AddAddr(add) => {
                let address = if add.address.is_ipv4() { 4 } else { 16 };
                let port = if add.port.is_some() { 2 } else { 0 };
                let hmac = if add.hmac.is_some() { 8 } else { 0 };
                4 + address + port + hmac
            }
            Self::RemoveAddr(ids) => 3 + ids.len(),
            Self::MpPrio { .. } => 3,
            Self::MpFail { .. } | Self::MpFastclose { .. } => 12,
            Self::MpTcpRst(_) => 4,
        }
    }
}

/// The MPTCP options of one segment: at most one [`Dss`], and any others in order.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Mptcp(Carried);

#[derive(Clone, PartialEq, Eq, Default, Debug)]
enum Carried {
    #[default]
    Nothing,
    Dss(Dss),
    /// Something beside or instead of a DSS.
    Others(Box<Others>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Others {
    dss: Option<Dss>,
    options: Vec<MptcpOption>,
}

impl Mptcp {
    /// No option.
    pub const NONE: Self = Self(Carried::Nothing);

    /// Only a DSS.
    #[inline]
    pub const fn dss_only(dss: Dss) -> Self {
        Self(Carried::Dss(dss))
    }

    /// Only one option that is not a DSS.
    pub fn only(option: MptcpOption) -> Self {
        let mut this = Self::NONE;
        this.push(option);
        this
    }

    /// Without any.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        matches!(self.0, Carried::Nothing)
    }

    /// The data sequence signal.
    #[inline]
    pub fn dss(&self) -> Option<&Dss> {
        match &self.0 {
            Carried::Nothing => None,
            Carried::Dss(dss) => Some(dss),
            Carried::Others(others) => others.dss.as_ref(),
        }
    }

    /// The others, in order.
    #[inline]
    pub fn options(&self) -> &[MptcpOption] {
        match &self.0 {
            Carried::Nothing | Carried::Dss(_) => &[],
            Carried::Others(others) => &others.options,
        }
    }

    /// The DSS from now on.
    pub fn set_dss(&mut self, dss: Dss) {
        match &mut self.0 {
            Carried::Others(others) => others.dss = Some(dss),
            Carried::Nothing | Carried::Dss(_) => self.0 = Carried::Dss(dss),
        }
    }

    /// One more that is not a DSS.
    pub fn push(&mut self, option: MptcpOption) {
        let dss = match &mut self.0 {
            Carried::Others(others) => return others.options.push(option),
            Carried::Dss(dss) => Some(*dss),
            Carried::Nothing => None,
        };
        self.0 = Carried::Others(Box::new(Others { dss, options: alloc::vec![option] }));
    }

    /// Bytes of all options, without padding.
    #[inline]
    pub fn bare_len(&self) -> usize {
        match &self.0 {
            Carried::Nothing => 0,
            Carried::Dss(dss) => dss.wire_len(),
            Carried::Others(others) => {
                let dss = others.dss.as_ref().map_or(0, Dss::wire_len);
                dss + others.options.iter().map(MptcpOption::wire_len).sum::<usize>()
            }
        }
    }
}

#[cfg(test)]
mod tests;
