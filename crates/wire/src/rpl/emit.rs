//! Writes messages.

use alloc::vec::Vec;
use core::net::Ipv6Addr;

use super::option::{ControlOption, MAX_PATH, flag, kind};
use super::{Dao, DaoAck, Dio, Message, code};
use crate::icmpv6::{self, Header, Kind};

/// Why a message cannot be encoded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// A number exceeds the range of its field.
    #[error("{field} {value} is more than {max}")]
    Range {
        /// Name of the field.
        field: &'static str,
        /// The number.
        value: usize,
        /// Largest value of the field.
        max: usize,
    },
}

/// Appends `message`, sent from `src` to `dst`, to `out` as an ICMPv6 message. On error, `out` is
/// unchanged.
pub fn emit(message: &Message, [src, dst]: [Ipv6Addr; 2], out: &mut Vec<u8>) -> Result<(), EmitError> {
    let mut body = Vec::new();
    let code = match message {
        Message::Dis(_) => {
            body.extend_from_slice(&[0, 0]);
            code::DIS
        }
        Message::Dio(dio) => {
            emit_dio(dio, &mut body)?;
            code::DIO
        }
        Message::Dao(dao) => {
            emit_dao(dao, &mut body);
            code::DAO
        }
        Message::DaoAck(ack) => {
            emit_dao_ack(ack, &mut body);
            code::DAO_ACK
        }
    };
    message.options().iter().try_for_each(|option| emit_option(option, &mut body))?;
    at_most("length of a message", body.len(), usize::from(u16::MAX) - icmpv6::HEADER_LEN)?;
    icmpv6::emit(&Header { kind: Kind::RPL, code }, &body, [src, dst], out);
    Ok(())
}

fn emit_dio(dio: &Dio, body: &mut Vec<u8>) -> Result<(), EmitError> {
    at_most("mode of operation", dio.mode.0.into(), 7)?;
    at_most("preference of a DODAG", dio.preference.into(), 7)?;
    body.extend_from_slice(&[dio.instance, dio.version]);
    body.extend_from_slice(&dio.rank.to_be_bytes());
    body.push(u8::from(dio.grounded) << 7 | dio.mode.0 << 3 | dio.preference);
    body.extend_from_slice(&[dio.dtsn, 0, 0]);
    body.extend_from_slice(&dio.dodag.octets());
    Ok(())
}

fn emit_dao(dao: &Dao, body: &mut Vec<u8>) {
    let flags = u8::from(dao.ack_request) << 7 | u8::from(dao.dodag.is_some()) << 6;
    body.extend_from_slice(&[dao.instance, flags, 0, dao.sequence]);
    emit_address(dao.dodag, body);
}

fn emit_dao_ack(ack: &DaoAck, body: &mut Vec<u8>) {
    let flags = u8::from(ack.dodag.is_some()) << 7;
    body.extend_from_slice(&[ack.instance, flags, ack.sequence, ack.status]);
    emit_address(ack.dodag, body);
}

fn emit_option(option: &ControlOption, body: &mut Vec<u8>) -> Result<(), EmitError> {
    let start = body.len();
    // Type, and a placeholder for the length, which is known only at the end.
    body.extend_from_slice(&[0, 0]);
    let kind = match option {
        ControlOption::DagMetricContainer(objects) => {
            at_most("length of a DAG metric container", objects.len(), u8::MAX.into())?;
            body.extend_from_slice(objects);
            kind::DAG_METRIC_CONTAINER
        }
        ControlOption::DodagConfiguration(said) => {
            at_most("path control size", said.path_control_size.into(), flag::PATH_CONTROL_SIZE.into())?;
            let authenticated = if said.authenticated { flag::AUTHENTICATED } else { 0 };
            body.push(authenticated | said.path_control_size);
            body.extend_from_slice(&[said.interval_doublings, said.interval_min, said.redundancy]);
            let words = [said.max_rank_increase, said.min_hop_rank_increase, said.objective_code_point];
            body.extend_from_slice(words.map(u16::to_be_bytes).as_flattened());
            body.extend_from_slice(&[0, said.default_lifetime]);
            body.extend_from_slice(&said.lifetime_unit.to_be_bytes());
            kind::DODAG_CONFIGURATION
        }
        ControlOption::Target(target) => {
            at_most("length of a target's prefix", target.prefix_len.into(), 128)?;
            body.extend_from_slice(&[0, target.prefix_len]);
            body.extend_from_slice(&target.masked().octets()[..usize::from(target.prefix_len).div_ceil(8)]);
            kind::TARGET
        }
        ControlOption::TransitInformation(said) => {
            let external = if said.external { flag::EXTERNAL } else { 0 };
            body.extend_from_slice(&[external, said.path_control, said.path_sequence, said.path_lifetime]);
            emit_address(said.parent, body);
            kind::TRANSIT_INFORMATION
        }
        ControlOption::SolicitedInformation(said) => {
            let mut flags = 0;
            for (is_said, bit) in [
                (said.version.is_some(), flag::VERSION),
                (said.instance.is_some(), flag::INSTANCE),
                (said.dodag.is_some(), flag::DODAG),
            ] {
                flags |= if is_said { bit } else { 0 };
            }
            body.extend_from_slice(&[said.instance.unwrap_or_default(), flags]);
            body.extend_from_slice(&said.dodag.unwrap_or(Ipv6Addr::UNSPECIFIED).octets());
            body.push(said.version.unwrap_or_default());
            kind::SOLICITED_INFORMATION
        }
        ControlOption::PrefixInformation(said) => {
            at_most("length of a prefix", said.prefix_len.into(), 128)?;
            let mut flags = 0;
            for (is_said, bit) in [
                (said.on_link, flag::ON_LINK),
                (said.autonomous, flag::AUTONOMOUS),
                (said.router_address, flag::ROUTER_ADDRESS),
            ] {
                flags |= if is_said { bit } else { 0 };
            }
            body.extend_from_slice(&[said.prefix_len, flags]);
            let words = [said.valid_lifetime, said.preferred_lifetime, 0];
            body.extend_from_slice(words.map(u32::to_be_bytes).as_flattened());
            body.extend_from_slice(&said.prefix.octets());
            kind::PREFIX_INFORMATION
        }
        ControlOption::PathTraversed(said) => {
            body.push(said.multi_link.min(15) << 4 | said.node_type.code());
            emit_path(&said.path, body)?;
            kind::PATH_TRAVERSED
        }
        ControlOption::PathBuilt(said) => {
            body.push(said.id);
            emit_path(&said.path, body)?;
            kind::PATH_BUILT
        }
    };
    body[start] = kind;
    // Every arm limits its content to 255 bytes.
    body[start + 1] = (body.len() - start - 2) as u8;
    Ok(())
}

fn emit_path(path: &[u16], body: &mut Vec<u8>) -> Result<(), EmitError> {
    at_most("number of nodes on a path", path.len(), MAX_PATH)?;
    body.extend(path.iter().flat_map(|node| node.to_be_bytes()));
    Ok(())
}

fn emit_address(address: Option<Ipv6Addr>, body: &mut Vec<u8>) {
    body.extend(address.iter().flat_map(Ipv6Addr::octets));
}

const fn at_most(field: &'static str, value: usize, max: usize) -> Result<(), EmitError> {
    if value > max { Err(EmitError::Range { field, value, max }) } else { Ok(()) }
}
