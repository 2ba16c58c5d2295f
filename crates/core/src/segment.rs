//! The TCP segment as every machine here sees it. The type itself is the wire's: what can be said
//! in a header can be said here, and nothing else.

pub use anabranch_wire::ecn::Ecn;
pub use anabranch_wire::mptcp::{
    AddAddr, AddressId, CapableForm, DataSeqNumber, Dss, Key, Mapping, MpCapable, MpJoin, MpTcpRst, Mptcp,
    MptcpOption, ResetReason, Token, WireDsn,
};
pub use anabranch_wire::tcp::{
    Flags, MAX_OPTIONS_LEN, Options, SackBlock, SackBlocks, Segment, SeqNumber, Timestamps,
};
