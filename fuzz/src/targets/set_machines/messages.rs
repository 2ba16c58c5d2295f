//! Valid and invalid messages of peers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anabranch_wire::set::{
    self as wire, Accept, Ack, Energy, FileIdentity, Gateway, Join, Layout, MAX_COPY, MAX_MANIFEST, Message,
    Neighbour, PaperAddresses, Plan, Range, Refuse, RefuseReason, Request, SetAck, SetAckStatus, SetSyn,
    TransferId, VERSION,
};
use arbitrary::{Result, Unstructured};
use bytes::Bytes;

/// Transfer that most messages belong to.
pub(super) const TRANSFER: TransferId = TransferId(7);

/// An encoded message, or arbitrary bytes.
pub(super) fn any(octets: &mut Unstructured<'_>, length: u64) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    if octets.ratio(1, 16)? {
        let n = octets.int_in_range(0..=40)?;
        out.extend_from_slice(octets.bytes(n)?);
    } else {
        wire::encode(&message(octets, length)?, &mut out);
    }
    Ok(out)
}

fn message(octets: &mut Unstructured<'_>, length: u64) -> Result<Message> {
    Ok(match octets.int_in_range(0..=11)? {
        0 | 1 => Message::Request(Request {
            version: if octets.ratio(1, 16)? { 2 } else { VERSION },
            transfer: transfer(octets)?,
            length: if octets.ratio(1, 16)? { near(octets, length)? } else { length },
            plan: plan(octets)?,
            file: identity(octets)?,
            copy: length <= MAX_COPY && octets.ratio(1, 4)?,
            manifest: manifest(octets)?,
        }),
        2 | 3 => Message::Accept(accept(octets)?),
        4 => Message::Refuse(Refuse {
            reason: *octets.choose(&[
                RefuseReason::NoStriping,
                RefuseReason::Busy,
                RefuseReason::Version,
                RefuseReason::Unfinished,
                RefuseReason::Unwanted,
            ])?,
            delivered: near(octets, length)?,
        }),
        5 => Message::SetSyn(SetSyn { join: join(octets)?, destination: address(octets)? }),
        6 => Message::Join(join(octets)?),
        7 => Message::SetAck(SetAck {
            session: octets.int_in_range(0..=3)?,
            status: *octets.choose(&[
                SetAckStatus::Open,
                SetAckStatus::Open,
                SetAckStatus::Unreachable,
                SetAckStatus::Forbidden,
                SetAckStatus::Congested,
            ])?,
        }),
        8..=10 => Message::Ack(ack(octets, length)?),
        _ => Message::Cancel,
    })
}

/// Mostly no manifest; sometimes one longer than any node accepts.
pub(super) fn manifest(octets: &mut Unstructured<'_>) -> Result<Option<Bytes>> {
    if octets.ratio(7, 8)? {
        return Ok(None);
    }
    Ok(Some(vec![7; octets.int_in_range(1..=MAX_MANIFEST)?].into()))
}

/// Mostly the identity of the one file, if any.
pub(super) fn identity(octets: &mut Unstructured<'_>) -> Result<Option<FileIdentity>> {
    if octets.arbitrary()? {
        return Ok(None);
    }
    let digest = [u8::from(octets.ratio(1, 8)?); 32];
    let signature = if octets.ratio(1, 8)? { Some([octets.arbitrary()?; 64]) } else { None };
    Ok(Some(FileIdentity { digest, signature, discard: octets.ratio(1, 8)? }))
}

/// The answer that begins a transfer.
pub(super) fn accept(octets: &mut Unstructured<'_>) -> Result<Accept> {
    let gateways = (0..octets.int_in_range(0..=5)?).map(|_| gateway(octets)).collect::<Result<_>>()?;
    Ok(Accept { buffer: *octets.choose(&[0, 1, 81, 1000, 64_000, 1 << 20, MAX_VARINT])?, gateways })
}

fn gateway(octets: &mut Unstructured<'_>) -> Result<Gateway> {
    let neighbours = (0..octets.int_in_range(0..=3)?)
        .map(|_| Ok(Neighbour { id: octets.int_in_range(0..=3)?, energy: energy(octets)? }))
        .collect::<Result<_>>()?;
    Ok(Gateway {
        id: octets.int_in_range(0..=5)?,
        address: address(octets)?,
        key: octets.arbitrary()?,
        energy: energy(octets)?,
        hops: octets.int_in_range(1..=4)?,
        shared_channel: octets.arbitrary()?,
        neighbours,
    })
}

/// An acknowledgement that is possible for a file of this length.
pub(super) fn ack(octets: &mut Unstructured<'_>, length: u64) -> Result<Ack> {
    let delivered =
        if octets.ratio(1, 8)? { near(octets, length)? } else { octets.int_in_range(0..=length)? };
    let mut held = Vec::new();
    let mut at = delivered;
    for _ in 0..octets.int_in_range(0..=3)? {
        let start = at + u64::from(octets.int_in_range(1..=2000u16)?);
        let end = start + u64::from(octets.int_in_range(1..=2000u16)?);
        held.push(Range { start, end });
        at = end;
    }
    let received = octets.int_in_range(0..=1 << 20)?;
    Ok(Ack { delivered, received, held })
}

/// A data chunk: its header and its bytes, which are those of [`octet_at`].
pub(super) fn chunk(octets: &mut Unstructured<'_>, offset: u64, expected: u64, n: u64) -> Result<Vec<u8>> {
    let layout = *octets.choose(&[Layout::Compact, Layout::Compact, Layout::Paper])?;
    let nowhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
    let addresses = PaperAddresses { intermediate: nowhere, last: nowhere };
    let mut out = Vec::new();
    wire::data_header(layout, &addresses, offset, expected, n, &mut out);
    out.extend((offset..offset + n).map(octet_at));
    Ok(out)
}

/// The byte of the file at `offset`.
pub(super) fn octet_at(offset: u64) -> u8 {
    (offset ^ offset >> 8) as u8
}

pub(super) fn join(octets: &mut Unstructured<'_>) -> Result<Join> {
    let session = octets.int_in_range(0..=3)?;
    Ok(Join {
        transfer: transfer(octets)?,
        session,
        sessions: octets.int_in_range(session + 1..=5)?,
        plan: plan(octets)?,
    })
}

pub(super) fn plan(octets: &mut Unstructured<'_>) -> Result<Plan> {
    Ok(*octets.choose(&[Plan::Stripe, Plan::Stripe, Plan::Stripe, Plan::EndToEnd, Plan::Split])?)
}

fn transfer(octets: &mut Unstructured<'_>) -> Result<TransferId> {
    Ok(if octets.ratio(1, 16)? { TransferId(octets.arbitrary()?) } else { TRANSFER })
}

fn energy(octets: &mut Unstructured<'_>) -> Result<Energy> {
    Ok(if octets.arbitrary()? { Energy::High } else { Energy::Low })
}

fn address(octets: &mut Unstructured<'_>) -> Result<SocketAddr> {
    let host: u8 = octets.arbitrary()?;
    let ip = if octets.arbitrary()? {
        IpAddr::V4(Ipv4Addr::new(10, 0, 0, host))
    } else {
        IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, host.into()))
    };
    Ok(SocketAddr::new(ip, 47_201))
}

/// `mark`, a number near it, or any number that a header can hold.
fn near(octets: &mut Unstructured<'_>, mark: u64) -> Result<u64> {
    Ok(match octets.int_in_range(0..=3)? {
        0 => mark,
        1 => mark.saturating_sub(octets.int_in_range(0..=255)?),
        2 => mark + octets.int_in_range(1..=255)?,
        _ => octets.int_in_range(0..=MAX_VARINT)?,
    })
}

/// Largest integer of RFC 9000, section 16.
const MAX_VARINT: u64 = (1 << 62) - 1;
