//! The TCP segment that every machine of this crate uses. The types come from `anabranch_wire`, so
//! a segment can hold exactly what a header can encode.

pub use anabranch_wire::ecn::Ecn;
pub use anabranch_wire::mptcp::{
    AddAddr, AddressId, CapableForm, DataSeqNumber, Dss, DssChecksum, Key, Mapping, MpCapable, MpJoin,
    MpTcpRst, Mptcp, MptcpOption, ResetReason, Token, WireDsn,
};
pub use anabranch_wire::tcp::{
    Flags, MAX_OPTIONS_LEN, Options, SackBlock, SackBlocks, Segment, SeqNumber, Timestamps,
};
