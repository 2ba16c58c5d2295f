//! Writes messages.

use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use super::message::{
    Ack, DATA_AT_ONCE, DATA_HAS_OFFSET, Energy, FILE_DISCARD, FILE_HAS_SIGNATURE, FileIdentity, Gateway,
    Join, Layout, MAX_GATEWAYS, MAX_MANIFEST, MAX_NEIGHBOURS, MAX_RANGES, Message, PaperAddresses, Plan,
    REQUEST_COPY, REQUEST_HAS_FILE, REQUEST_HAS_MANIFEST, ROW_SHARED_CHANNEL, kind,
};
use super::varint;

/// Appends `message` to `out`. Rows, neighbours and ranges past their limits are omitted, and so is
/// a manifest that is too long.
pub fn encode(message: &Message, out: &mut Vec<u8>) {
    match message {
        Message::Request(m) => {
            let file = if m.file.is_some() { REQUEST_HAS_FILE } else { 0 };
            let manifest = m.manifest.as_ref().filter(|octets| (1..=MAX_MANIFEST).contains(&octets.len()));
            let has_manifest = if manifest.is_some() { REQUEST_HAS_MANIFEST } else { 0 };
            let plan = if m.copy && m.plan == Plan::Stripe { REQUEST_COPY } else { m.plan.code() };
            out.push(kind::REQUEST << 4 | has_manifest | file | plan);
            out.push(m.version);
            out.extend_from_slice(&m.transfer.0.to_be_bytes());
            varint::put(out, m.length);
            if let Some(file) = &m.file {
                put_file(out, file);
            }
            if let Some(manifest) = manifest {
                varint::put(out, manifest.len() as u64);
                out.extend_from_slice(manifest);
            }
        }
        Message::Accept(m) => {
            let rows = m.gateways.len().min(MAX_GATEWAYS);
            out.push(kind::ACCEPT << 4 | rows as u8);
            varint::put(out, m.buffer);
            m.gateways.iter().take(rows).for_each(|row| put_gateway(out, row));
        }
        Message::Refuse(m) => {
            let (code, number) = m.reason.codes(m.delivered);
            out.push(kind::REFUSE << 4 | code);
            varint::put(out, number);
        }
        Message::SetSyn(m) => {
            out.push(kind::SETSYN << 4 | family_flag(&m.destination) | m.join.plan.code() << 1);
            put_join(out, &m.join);
            put_address(out, &m.destination);
        }
        Message::Join(m) => {
            out.push(kind::JOIN << 4 | m.plan.code() << 1);
            put_join(out, m);
        }
        Message::SetAck(m) => {
            out.push(kind::SETACK << 4 | m.status.code());
            out.push(m.session);
        }
        Message::Ack(m) => put_ack(out, m),
        Message::Cancel => out.push(kind::CANCEL << 4),
    }
}

/// Appends the header of a data chunk of `length` bytes at `offset`; the caller appends the bytes.
/// `expected` is the end of the session's previous chunk. In the paper's layout a chunk has at most
/// 65535 bytes, and the sequence number is the low 32 bits of the offset.
pub fn data_header(
    layout: Layout,
    addresses: &PaperAddresses,
    offset: u64,
    expected: u64,
    length: u64,
    out: &mut Vec<u8>,
) {
    match layout {
        Layout::Compact => {
            let explicit = offset != expected;
            out.push(kind::DATA << 4 | if explicit { DATA_HAS_OFFSET } else { 0 });
            if explicit {
                varint::put(out, offset);
            }
            varint::put(out, length);
        }
        Layout::Paper => {
            out.push(kind::PAPER_DATA << 4);
            out.extend_from_slice(&(length.min(u64::from(u16::MAX)) as u16).to_be_bytes());
            out.extend_from_slice(&(offset as u32).to_be_bytes());
            out.extend_from_slice(&0u32.to_be_bytes());
            out.extend_from_slice(&last_four(&addresses.intermediate));
            out.extend_from_slice(&last_four(&addresses.last));
            out.extend_from_slice(&addresses.intermediate.port().to_be_bytes());
            out.extend_from_slice(&addresses.last.port().to_be_bytes());
        }
    }
}

/// Asks the node to acknowledge a chunk at once: sets the flag in its header. The paper's layout
/// has no such flag and stays as it is.
pub fn ask_at_once(header: &mut [u8]) {
    if let Some(first) = header.first_mut().filter(|first| **first >> 4 == kind::DATA) {
        *first |= DATA_AT_ONCE;
    }
}

fn put_file(out: &mut Vec<u8>, file: &FileIdentity) {
    let signature = if file.signature.is_some() { FILE_HAS_SIGNATURE } else { 0 };
    out.push(signature | if file.discard { FILE_DISCARD } else { 0 });
    out.extend_from_slice(&file.digest);
    out.extend(file.signature.iter().flatten());
}

fn put_ack(out: &mut Vec<u8>, ack: &Ack) {
    let ranges = ack.held.len().min(MAX_RANGES);
    out.push(kind::ACK << 4 | ranges as u8);
    varint::put(out, ack.delivered);
    varint::put(out, ack.received);
    let mut at = ack.delivered;
    for range in ack.held.iter().take(ranges) {
        // Relative to the end of the previous range, which keeps the numbers short.
        varint::put(out, range.start - at);
        varint::put(out, range.end - range.start);
        at = range.end;
    }
}

fn put_join(out: &mut Vec<u8>, join: &Join) {
    out.extend_from_slice(&join.transfer.0.to_be_bytes());
    out.push(join.session);
    out.push(join.sessions);
}

fn put_gateway(out: &mut Vec<u8>, row: &Gateway) {
    let neighbours = &row.neighbours[..row.neighbours.len().min(MAX_NEIGHBOURS)];
    let key = u8::from(row.key.is_some()) << 2;
    let shared = if row.shared_channel { ROW_SHARED_CHANNEL } else { 0 };
    let flags = family_flag(&row.address) | energy_flag(row.energy) << 1 | key | shared;
    out.push(flags | (neighbours.len() as u8) << 4);
    out.extend_from_slice(&row.id.to_be_bytes());
    out.push(row.hops);
    put_address(out, &row.address);
    out.extend_from_slice(row.key.as_ref().map_or(&[], |key| &key[..]));
    for neighbour in neighbours {
        out.extend_from_slice(&neighbour.id.to_be_bytes());
    }
    // One bit for each neighbour; 1 is a low energy level.
    let energies =
        neighbours.iter().enumerate().fold(0u16, |bits, (i, n)| bits | u16::from(energy_flag(n.energy)) << i);
    out.extend_from_slice(&energies.to_be_bytes());
}

const fn energy_flag(energy: Energy) -> u8 {
    match energy {
        Energy::High => 0,
        Energy::Low => 1,
    }
}

fn family_flag(address: &SocketAddr) -> u8 {
    u8::from(address.is_ipv6())
}

fn put_address(out: &mut Vec<u8>, address: &SocketAddr) {
    match address.ip() {
        IpAddr::V4(ip) => out.extend_from_slice(&ip.octets()),
        IpAddr::V6(ip) => out.extend_from_slice(&ip.octets()),
    }
    out.extend_from_slice(&address.port().to_be_bytes());
}

fn last_four(address: &SocketAddr) -> [u8; 4] {
    match address.ip() {
        IpAddr::V4(ip) => ip.octets(),
        IpAddr::V6(ip) => {
            let o = ip.octets();
            [o[12], o[13], o[14], o[15]]
        }
    }
}
