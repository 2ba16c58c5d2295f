//! The options of Multipath TCP, version 1 (RFC 8684): kind 30 with a subtype.
//!
//! A segment may carry several options; [`Mptcp`] holds all of them. The data sequence signal
//! ([`Dss`]), which almost every segment has, is stored inline; other options cost an allocation.

mod checksum;
mod dss;
#[cfg(feature = "ip")]
mod octets;

pub use checksum::DssChecksum;
pub use dss::{DataSeqNumber, Dss, Mapping, WireDsn};

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::IpAddr;

/// The TCP option kind (RFC 8684 section 8.1).
#[cfg(feature = "ip")]
pub(crate) const KIND: u8 = 30;

/// A host's key (RFC 8684 section 3.1): sent in clear text during the handshake, and the secret
/// that authenticates all later subflows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Key(pub u64);

/// The 32 most significant bits of the hash of a key. They identify a connection (RFC 8684 section
/// 3.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Token(pub u32);

/// MP_CAPABLE (RFC 8684 section 3.1, figure 4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MpCapable {
    /// Protocol version; this project speaks version 1.
    pub version: u8,
    /// Flag A: checksums are required.
    pub checksum_required: bool,
    /// Flag B: an extension of a later version; its receiver ignores the option.
    pub extended: bool,
    /// Flag C: no further subflows to this address and port.
    pub no_joins_here: bool,
    /// Flag H: HMAC-SHA256.
    pub hmac_sha256: bool,
    /// Content after the flags, which depends on the segment's place in the handshake.
    pub form: CapableForm,
}

/// Content of an MP_CAPABLE after its flags.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CapableForm {
    /// In a SYN; 4 bytes.
    Syn,
    /// In a SYN/ACK; 12 bytes.
    SynAck {
        /// Key of the option's sender.
        sender: Key,
    },
    /// In the third segment of the handshake; 20 bytes.
    Ack {
        /// Key of the option's sender.
        sender: Key,
        /// Key of the option's receiver.
        receiver: Key,
    },
    /// With the first data, instead of a DSS; 22 bytes, or 24 with a checksum.
    Data {
        /// Key of the option's sender.
        sender: Key,
        /// Key of the option's receiver.
        receiver: Key,
        /// Data-level length in bytes, counted from the first byte.
        len: u16,
        /// Checksum over data and mapping, if negotiated.
        checksum: Option<u16>,
    },
}

/// Identifies an address of a host (RFC 8684 section 3.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct AddressId(pub u8);

/// MP_JOIN (RFC 8684 section 3.2, figures 5 to 7).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MpJoin {
    /// In a SYN; 12 bytes.
    Syn {
        /// Flag B: use this subflow only if no other subflow works.
        backup: bool,
        /// Identifier of the sender's address.
        address: AddressId,
        /// Token of the receiver's connection.
        token: Token,
        /// The sender's nonce.
        nonce: u32,
    },
    /// In a SYN/ACK; 16 bytes.
    SynAck {
        /// Flag B: use this subflow only if no other subflow works.
        backup: bool,
        /// Identifier of the sender's address.
        address: AddressId,
        /// The leftmost 64 bits of the sender's HMAC.
        hmac: u64,
        /// The sender's nonce.
        nonce: u32,
    },
    /// In the third segment of the handshake; 24 bytes.
    Ack {
        /// The leftmost 160 bits of the sender's HMAC.
        hmac: [u8; 20],
    },
}

/// ADD_ADDR (RFC 8684 section 3.4.1, figure 12).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AddAddr {
    /// Identifier of the address.
    pub id: AddressId,
    /// The address.
    pub address: IpAddr,
    /// The port, if it differs from that of the first subflow.
    pub port: Option<u16>,
    /// The rightmost 64 bits of the HMAC; `None` is an echo (flag E).
    pub hmac: Option<u64>,
}

/// MP_TCPRST (RFC 8684 section 3.6, figure 16).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MpTcpRst {
    /// Flag T: the condition is transient.
    pub transient: bool,
    /// The cause.
    pub reason: ResetReason,
}

/// Why a subflow was reset (RFC 8684 section 3.6).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ResetReason(pub u8);

impl ResetReason {
    /// No reason given.
    pub const UNSPECIFIED: Self = Self(0);
    /// The MPTCP state or an option is invalid.
    pub const MPTCP_SPECIFIC: Self = Self(1);
    /// Not enough resources for the subflow.
    pub const LACK_OF_RESOURCES: Self = Self(2);
    /// A policy forbids the subflow.
    pub const PROHIBITED: Self = Self(3);
    /// Too much data was sent without being acknowledged.
    pub const TOO_MUCH_OUTSTANDING: Self = Self(4);
    /// The performance of the path is too poor.
    pub const UNACCEPTABLE_PERFORMANCE: Self = Self(5);
    /// A middlebox on the path changed the options.
    pub const MIDDLEBOX: Self = Self(6);
}

/// Largest number of addresses that fit into one REMOVE_ADDR without other options.
pub const MAX_REMOVED: usize = 37;

/// One option that is not a [`Dss`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum MptcpOption {
    /// Offers Multipath TCP, or agrees to it.
    MpCapable(MpCapable),
    /// Adds a subflow to a connection.
    MpJoin(MpJoin),
    /// Announces a further address of the sender.
    AddAddr(AddAddr),
    /// Withdraws addresses of the sender: 1 to [`MAX_REMOVED`].
    RemoveAddr(Vec<AddressId>),
    /// Changes the priority of this subflow (RFC 8684 section 3.3.8).
    MpPrio {
        /// Flag B: use this subflow only if no other subflow works.
        backup: bool,
    },
    /// Reports a wrong checksum (RFC 8684 section 3.7).
    MpFail {
        /// Position of the wrong data.
        dsn: DataSeqNumber,
    },
    /// Aborts the whole connection (RFC 8684 section 3.5).
    MpFastclose {
        /// Key of the option's receiver.
        receiver: Key,
    },
    /// Gives the reason for the reset of this subflow.
    MpTcpRst(MpTcpRst),
}

impl MptcpOption {
    /// Length of the option in bytes.
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

/// The MPTCP options of one segment: at most one [`Dss`], and other options in order.
///
/// Without the feature `mptcp` there are none: they are neither read nor written, as unknown
/// options are. Small machines save the code.
#[derive(Eq, Default, Debug)]
pub struct Mptcp(Carried);

impl Clone for Mptcp {
    #[inline]
    fn clone(&self) -> Self {
        if self.is_empty() { Self::NONE } else { Self(self.0.clone()) }
    }
}

impl PartialEq for Mptcp {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.is_empty() && other.is_empty() || self.0 == other.0
    }
}

#[derive(Clone, PartialEq, Eq, Default, Debug)]
enum Carried {
    #[default]
    Nothing,
    Dss(Dss),
    /// Options other than a DSS, with or without a DSS.
    Others(Box<Others>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Others {
    dss: Option<Dss>,
    options: Vec<MptcpOption>,
}

impl Mptcp {
    /// No options.
    pub const NONE: Self = Self(Carried::Nothing);

    /// Only a data sequence signal.
    #[inline]
    pub const fn dss_only(dss: Dss) -> Self {
        Self(Carried::Dss(dss))
    }

    /// Only one option, which is not a DSS.
    pub fn only(option: MptcpOption) -> Self {
        let mut this = Self::NONE;
        this.push(option);
        this
    }

    /// True without options.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        !cfg!(feature = "mptcp") || matches!(self.0, Carried::Nothing)
    }

    /// The data sequence signal, if there is one.
    #[inline]
    pub fn dss(&self) -> Option<&Dss> {
        match &self.0 {
            Carried::Nothing => None,
            Carried::Dss(dss) => Some(dss),
            Carried::Others(others) => others.dss.as_ref(),
        }
    }

    /// The options other than the DSS, in order.
    #[inline]
    pub fn options(&self) -> &[MptcpOption] {
        match &self.0 {
            Carried::Nothing | Carried::Dss(_) => &[],
            Carried::Others(others) => &others.options,
        }
    }

    /// Sets or replaces the DSS.
    pub fn set_dss(&mut self, dss: Dss) {
        match &mut self.0 {
            Carried::Others(others) => others.dss = Some(dss),
            Carried::Nothing | Carried::Dss(_) => self.0 = Carried::Dss(dss),
        }
    }

    /// Adds an option other than a DSS.
    pub fn push(&mut self, option: MptcpOption) {
        let dss = match &mut self.0 {
            Carried::Others(others) => return others.options.push(option),
            Carried::Dss(dss) => Some(*dss),
            Carried::Nothing => None,
        };
        self.0 = Carried::Others(Box::new(Others { dss, options: alloc::vec![option] }));
    }

    /// Length of all options in bytes, without padding.
    #[inline]
    pub fn bare_len(&self) -> usize {
        if self.is_empty() {
            return 0;
        }
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
