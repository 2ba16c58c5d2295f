//! Parses messages.

use alloc::vec::Vec;
use core::fmt;
use core::net::Ipv6Addr;

use super::option::{
    ControlOption, DodagConfiguration, NodeType, PathBuilt, PathTraversed, PrefixInformation,
    SolicitedInformation, Target, TransitInformation, flag, kind,
};
use super::{Dao, DaoAck, Dio, Dis, Message, ModeOfOperation, code};
use crate::icmpv6::{self, Kind};
use crate::reader::Reader;

/// The result of [`parse`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Parsed {
    /// The message.
    pub message: Message,
    /// Number of options skipped because their type is unknown; padding is not counted.
    pub unknown_options: usize,
}

/// The field that made [`parse`] refuse a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Field {
    /// A field of the ICMPv6 header.
    Icmpv6(icmpv6::Field),
    /// The ICMPv6 message does not have type 155.
    Kind,
    /// The code is unknown or that of a secured message.
    Code,
    /// The base object is truncated.
    Base,
    /// An option runs past the end of the message.
    Option,
    /// An option has a length that its type does not allow, or an invalid value.
    OptionContent {
        /// Type of the option.
        kind: u8,
    },
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Icmpv6(field) => field.fmt(f),
            Self::Kind => f.write_str("ICMPv6 type"),
            Self::Code => f.write_str("ICMPv6 code"),
            Self::Base => f.write_str("RPL base object"),
            Self::Option => f.write_str("RPL option"),
            Self::OptionContent { kind } => write!(f, "content of RPL option {kind}"),
        }
    }
}

/// The bytes are not a valid RPL message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("bad {field} at octet {offset} of an RPL message")]
pub struct ParseError {
    /// The invalid or truncated field.
    pub field: Field,
    /// Offset of that field in the ICMPv6 message.
    pub offset: usize,
}

/// Parses an ICMPv6 message, the whole payload of a packet from `src` to `dst`.
///
/// Reserved bits are ignored. An option is kept whether or not its message may contain it.
pub fn parse(octets: &[u8], [src, dst]: [Ipv6Addr; 2]) -> Result<Parsed, ParseError> {
    let (header, _) = icmpv6::parse(octets, [src, dst])
        .map_err(|error| ParseError { field: Field::Icmpv6(error.field), offset: error.offset })?;
    if header.kind != Kind::RPL {
        return Err(ParseError { field: Field::Kind, offset: 0 });
    }
    let mut reader = Reader::new(octets);
    reader.slice(icmpv6::HEADER_LEN);
    let cut_off = ParseError { field: Field::Base, offset: icmpv6::HEADER_LEN };
    let mut message = match header.code {
        code::DIS => read_dis(&mut reader),
        code::DIO => read_dio(&mut reader),
        code::DAO => read_dao(&mut reader),
        code::DAO_ACK => read_dao_ack(&mut reader),
        _ => return Err(ParseError { field: Field::Code, offset: 1 }),
    }
    .ok_or(cut_off)?;
    let (options, unknown_options) = read_options(&mut reader)?;
    *match &mut message {
        Message::Dis(message) => &mut message.options,
        Message::Dio(message) => &mut message.options,
        Message::Dao(message) => &mut message.options,
        Message::DaoAck(message) => &mut message.options,
    } = options;
    Ok(Parsed { message, unknown_options })
}

fn read_dis(reader: &mut Reader<'_>) -> Option<Message> {
    let [_flags, _reserved] = reader.take()?;
    Some(Message::Dis(Dis::default()))
}

fn read_dio(reader: &mut Reader<'_>) -> Option<Message> {
    let [instance, version, high, low, flags, dtsn, _flags, _reserved] = reader.take()?;
    Some(Message::Dio(Dio {
        instance,
        version,
        rank: u16::from_be_bytes([high, low]),
        grounded: flags & 0x80 != 0,
        mode: ModeOfOperation(flags >> 3 & 7),
        preference: flags & 7,
        dtsn,
        dodag: read_address(reader)?,
        options: Vec::new(),
    }))
}

fn read_dao(reader: &mut Reader<'_>) -> Option<Message> {
    let [instance, flags, _reserved, sequence] = reader.take()?;
    let dodag = if flags & 0x40 != 0 { Some(read_address(reader)?) } else { None };
    let options = Vec::new();
    Some(Message::Dao(Dao { instance, ack_request: flags & 0x80 != 0, sequence, dodag, options }))
}

fn read_dao_ack(reader: &mut Reader<'_>) -> Option<Message> {
    let [instance, flags, sequence, status] = reader.take()?;
    let dodag = if flags & 0x80 != 0 { Some(read_address(reader)?) } else { None };
    Some(Message::DaoAck(DaoAck { instance, sequence, status, dodag, options: Vec::new() }))
}

/// Reads all options and counts the unknown ones.
fn read_options(reader: &mut Reader<'_>) -> Result<(Vec<ControlOption>, usize), ParseError> {
    let mut options = Vec::new();
    let mut unknown = 0;
    while !reader.rest().is_empty() {
        let offset = reader.at();
        let cut_off = ParseError { field: Field::Option, offset };
        let kind = reader.u8().ok_or(cut_off)?;
        // Pad1 is a single byte without a length (RFC 6550 section 6.7.2).
        if kind == kind::PAD1 {
            continue;
        }
        let len = reader.u8().ok_or(cut_off)?;
        let content = reader.slice(len.into()).ok_or(cut_off)?;
        let read = match kind {
            kind::PAD_N => continue,
            kind::DAG_METRIC_CONTAINER => Some(ControlOption::DagMetricContainer(content.to_vec())),
            kind::DODAG_CONFIGURATION => read_configuration(content),
            kind::TARGET => read_target(content),
            kind::TRANSIT_INFORMATION => read_transit(content),
            kind::SOLICITED_INFORMATION => read_solicited(content),
            kind::PREFIX_INFORMATION => read_prefix(content),
            kind::PATH_TRAVERSED => read_path_traversed(content),
            kind::PATH_BUILT => read_path_built(content),
            _ => {
                unknown += 1;
                continue;
            }
        };
        options.push(read.ok_or(ParseError { field: Field::OptionContent { kind }, offset })?);
    }
    Ok((options, unknown))
}

fn read_configuration(content: &[u8]) -> Option<ControlOption> {
    let [flags, interval_doublings, interval_min, redundancy, m1, m2, h1, h2, o1, o2, _, lifetime, u1, u2] =
        *content.as_array::<14>()?;
    Some(ControlOption::DodagConfiguration(DodagConfiguration {
        authenticated: flags & flag::AUTHENTICATED != 0,
        path_control_size: flags & flag::PATH_CONTROL_SIZE,
        interval_doublings,
        interval_min,
        redundancy,
        max_rank_increase: u16::from_be_bytes([m1, m2]),
        min_hop_rank_increase: u16::from_be_bytes([h1, h2]),
        objective_code_point: u16::from_be_bytes([o1, o2]),
        default_lifetime: lifetime,
        lifetime_unit: u16::from_be_bytes([u1, u2]),
    }))
}

/// The prefix field may be longer than the prefix length requires, up to 16 bytes.
fn read_target(content: &[u8]) -> Option<ControlOption> {
    let [_flags, prefix_len, octets @ ..] = content else { return None };
    let mut prefix = [0; 16];
    prefix.get_mut(..octets.len())?.copy_from_slice(octets);
    if *prefix_len > 128 || octets.len() < usize::from(*prefix_len).div_ceil(8) {
        return None;
    }
    let target = Target { prefix_len: *prefix_len, prefix: prefix.into() };
    Some(ControlOption::Target(Target { prefix: target.masked(), ..target }))
}

fn read_transit(content: &[u8]) -> Option<ControlOption> {
    let (&[flags, path_control, path_sequence, path_lifetime], parent) = content.split_first_chunk()?;
    let parent = match parent {
        [] => None,
        octets => Some(Ipv6Addr::from(*octets.as_array::<16>()?)),
    };
    let external = flags & flag::EXTERNAL != 0;
    Some(ControlOption::TransitInformation(TransitInformation {
        external,
        path_control,
        path_sequence,
        path_lifetime,
        parent,
    }))
}

fn read_solicited(content: &[u8]) -> Option<ControlOption> {
    let [instance, flags, dodag @ .., version] = *content.as_array::<19>()?;
    Some(ControlOption::SolicitedInformation(SolicitedInformation {
        instance: (flags & flag::INSTANCE != 0).then_some(instance),
        dodag: (flags & flag::DODAG != 0).then_some(dodag.into()),
        version: (flags & flag::VERSION != 0).then_some(version),
    }))
}

fn read_prefix(content: &[u8]) -> Option<ControlOption> {
    let mut reader = Reader::new(content.as_array::<30>()?);
    let [prefix_len, flags] = reader.take()?;
    let [valid_lifetime, preferred_lifetime, _reserved] =
        [reader.take()?, reader.take()?, reader.take()?].map(u32::from_be_bytes);
    (prefix_len <= 128).then_some(())?;
    Some(ControlOption::PrefixInformation(PrefixInformation {
        prefix_len,
        on_link: flags & flag::ON_LINK != 0,
        autonomous: flags & flag::AUTONOMOUS != 0,
        router_address: flags & flag::ROUTER_ADDRESS != 0,
        valid_lifetime,
        preferred_lifetime,
        prefix: read_address(&mut reader)?,
    }))
}

fn read_path_traversed(content: &[u8]) -> Option<ControlOption> {
    let (code, path) = content.split_first()?;
    let (node_type, multi_link) = (NodeType::from_code(code & 15)?, code >> 4);
    Some(ControlOption::PathTraversed(PathTraversed { node_type, multi_link, path: read_path(path)? }))
}

fn read_path_built(content: &[u8]) -> Option<ControlOption> {
    let (id, path) = content.split_first()?;
    Some(ControlOption::PathBuilt(PathBuilt { id: *id, path: read_path(path)? }))
}

fn read_path(octets: &[u8]) -> Option<Vec<u16>> {
    let (nodes, []) = octets.as_chunks() else { return None };
    Some(nodes.iter().copied().map(u16::from_be_bytes).collect())
}

fn read_address(reader: &mut Reader<'_>) -> Option<Ipv6Addr> {
    reader.take::<16>().map(Ipv6Addr::from)
}
