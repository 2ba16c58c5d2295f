//! Parses the messages of a stream.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::Bytes;

use super::message::{
    Accept, Ack, DATA_AT_ONCE, DATA_HAS_OFFSET, Energy, FILE_DISCARD, FILE_HAS_SIGNATURE, FileIdentity,
    Gateway, Join, MAX_COPY, MAX_MANIFEST, Message, Neighbour, PAPER_HEADER, Plan, REQUEST_COPY,
    REQUEST_HAS_FILE, REQUEST_HAS_MANIFEST, ROW_SHARED_CHANNEL, Range, Refuse, RefuseReason, Request, SetAck,
    SetAckStatus, SetSyn, TransferId, kind,
};
use super::varint;

/// Length of the longest header: an acceptance with 15 rows of 15 neighbours at IPv6 addresses,
/// with keys. A longer header is malformed, so this bounds the memory that a peer can make a
/// decoder use.
const MAX_HEADER: usize = 9 + 15 * (4 + 18 + 32 + 30 + 2);

/// Length limit of headers without a manifest from a peer to a node. Requests, joins and chunks fit
/// with room to spare.
pub const MAX_NODE_HEADER: usize = 120;

/// A malformed stream. Decoding cannot continue after this error.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("octet {offset} of the stream: {field} is not valid")]
pub struct DecodeError {
    /// The invalid field.
    pub field: &'static str,
    /// Offset in the stream of the message that contains the field.
    pub offset: u64,
}

/// An item decoded from a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Item {
    /// A whole message.
    Message(Message),
    /// Bytes of the file. A chunk may be split into several items.
    Data {
        /// Position in the file.
        offset: u64,
        /// The bytes, at least one.
        octets: Bytes,
    },
    /// A request whose manifest is longer than [`Decoder::of_node_with`] allows. The decoder
    /// returns it once it knows the length of the manifest, without the manifest. Decoding cannot
    /// continue after this item.
    LongManifest(Request),
}

/// Splits a stream into [`Item`]s. It buffers at most one header; payload is passed on without a
/// copy.
#[derive(Debug)]
pub struct Decoder {
    header: Vec<u8>,
    /// Length limit of a header in bytes.
    longest: u16,
    of_node: bool,
    /// Length limit of a manifest in bytes.
    manifest: u16,
    input: Bytes,
    /// Bytes of the current chunk that have not arrived, and the position of the next one in the
    /// file.
    chunk_left: u64,
    /// Whether the header of the chunk asks for an acknowledgement at once.
    at_once: bool,
    next_offset: u64,
    consumed: u64,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

/// A header that is incomplete or invalid.
enum Stop {
    NeedMore,
    Bad(&'static str),
}

impl Decoder {
    /// Creates a decoder at the start of a stream.
    pub const fn new() -> Self {
        Self::holding(MAX_HEADER as u16, false, MAX_MANIFEST as u16)
    }

    /// Creates a decoder for streams from peers to a node. It rejects headers longer than
    /// [`MAX_NODE_HEADER`] and messages that only nodes send. No item that it returns allocates
    /// memory.
    pub const fn of_node() -> Self {
        Self::of_node_with(0)
    }

    /// As [`Decoder::of_node`], but a request may have a manifest of at most `manifest` bytes,
    /// which is copied. A longer manifest yields [`Item::LongManifest`].
    pub const fn of_node_with(manifest: usize) -> Self {
        // No valid request has a longer manifest.
        let manifest = if manifest < MAX_MANIFEST { manifest } else { MAX_MANIFEST };
        Self::holding((MAX_NODE_HEADER + manifest) as u16, true, manifest as u16)
    }

    /// Makes every later request with a manifest an [`Item::LongManifest`].
    pub fn take_no_manifest(&mut self) {
        self.longest = self.longest.min(MAX_NODE_HEADER as u16);
        self.manifest = 0;
    }

    const fn holding(longest: u16, of_node: bool, manifest: u16) -> Self {
        Self {
            header: Vec::new(),
            longest,
            of_node,
            manifest,
            input: Bytes::new(),
            chunk_left: 0,
            at_once: false,
            next_offset: 0,
            consumed: 0,
        }
    }

    /// Adds the next bytes of the stream. Call [`Decoder::next_item`] until it returns `None`
    /// before the next `push`.
    pub fn push(&mut self, octets: Bytes) {
        if self.input.is_empty() {
            self.input = octets;
        } else {
            // Reached only if the caller did not drain the items before this `push`.
            let mut joined = Vec::with_capacity(self.input.len() + octets.len());
            joined.extend_from_slice(&self.input);
            joined.extend_from_slice(&octets);
            self.input = joined.into();
        }
    }

    /// Returns the bytes that were pushed and not decoded. A relay passes on what follows its own
    /// message with this.
    pub fn into_rest(mut self) -> Bytes {
        if self.header.is_empty() {
            return self.input;
        }
        self.header.extend_from_slice(&self.input);
        self.header.into()
    }

    /// Number of bytes of the stream that the returned items and the headers read so far occupy.
    pub const fn consumed(&self) -> u64 {
        self.consumed
    }

    /// True if no message and no chunk is partially read.
    pub fn is_between_messages(&self) -> bool {
        self.chunk_left == 0 && self.header.is_empty() && self.input.is_empty()
    }

    /// Whether the latest chunk is to be acknowledged at once.
    pub const fn is_asked_at_once(&self) -> bool {
        self.at_once
    }

    /// Whether the next message is a SETSYN; `None` until its first byte has arrived.
    pub fn next_is_setsyn(&self) -> Option<bool> {
        let first = self.header.first().or(self.input.first())?;
        Some(self.chunk_left == 0 && first >> 4 == kind::SETSYN)
    }

    /// Returns the next item, or `None` if it needs more bytes.
    pub fn next_item(&mut self) -> Result<Option<Item>, DecodeError> {
        loop {
            if self.chunk_left > 0 {
                return Ok(self.take_chunk());
            }
            if self.input.is_empty() && self.header.is_empty() {
                return Ok(None);
            }
            match self.take_header() {
                Ok(Some(item)) => return Ok(Some(item)),
                Ok(None) => {}
                Err(Stop::NeedMore) => return Ok(None),
                Err(Stop::Bad(field)) => return Err(DecodeError { field, offset: self.consumed }),
            }
        }
    }

    /// Reserves `more` bytes for a header. A node reserves up to the limit in one step, because
    /// growing in small steps would use as much memory again.
    fn make_room(&mut self, more: usize) {
        let bound =
            if self.header.len() + more <= MAX_NODE_HEADER { MAX_NODE_HEADER } else { self.longest.into() };
        if self.of_node && self.header.len() + more > self.header.capacity() {
            self.header.reserve_exact(bound - self.header.len());
        }
    }

    fn take_chunk(&mut self) -> Option<Item> {
        let n = self.chunk_left.min(self.input.len() as u64);
        if n == 0 {
            return None;
        }
        let octets = self.input.split_to(n as usize);
        let offset = self.next_offset;
        self.chunk_left -= n;
        self.next_offset += n;
        self.consumed += n;
        Some(Item::Data { offset, octets })
    }

    /// True if the partially read header is a request longer than [`MAX_NODE_HEADER`], which must
    /// contain a manifest.
    pub fn holds_manifest(&self) -> bool {
        self.header.len() > MAX_NODE_HEADER
    }

    /// Reads one header. Returns a message, or `None` for a data chunk, whose bytes follow.
    fn take_header(&mut self) -> Result<Option<Item>, Stop> {
        let held = self.header.len();
        let first = self.header.first().or(self.input.first());
        if self.of_node
            && first.is_some_and(|octet| matches!(octet >> 4, kind::ACCEPT | kind::REFUSE | kind::ACK))
        {
            return Err(Stop::Bad("type of the message"));
        }
        // Never look past the length limit, so that `header` stays within it.
        let look = usize::from(self.longest).saturating_sub(held).min(self.input.len());
        // The common case needs no copy: the whole header is in one buffer.
        let parsed = if held == 0 {
            parse(&self.input[..look], self.next_offset, self.manifest.into())
        } else {
            self.make_room(look);
            self.header.extend_from_slice(&self.input[..look]);
            parse(&self.header, self.next_offset, self.manifest.into())
        };
        match parsed {
            Ok((header, used)) => {
                let _ = self.input.split_to(used - held);
                self.header.clear();
                self.consumed += used as u64;
                Ok(match header {
                    Header::Message(message) => Some(Item::Message(message)),
                    Header::LongManifest(request) => Some(Item::LongManifest(request)),
                    Header::Data { offset, length, at_once } => {
                        self.next_offset = offset;
                        self.at_once = at_once;
                        self.chunk_left = length;
                        None
                    }
                })
            }
            // All bytes up to the limit are present, and the header is still incomplete.
            Err(Stop::NeedMore) if held + look >= self.longest.into() => {
                Err(Stop::Bad("length of the message"))
            }
            Err(Stop::NeedMore) => {
                if held == 0 {
                    self.make_room(look);
                    self.header.extend_from_slice(&self.input);
                }
                self.input = Bytes::new();
                Err(Stop::NeedMore)
            }
            Err(bad) => Err(bad),
        }
    }
}

enum Header {
    Message(Message),
    LongManifest(Request),
    Data { offset: u64, length: u64, at_once: bool },
}

/// Parses one header at the front of `octets`, with a manifest of at most `longest` bytes. Returns
/// the header and its length.
fn parse(octets: &[u8], expected: u64, longest: usize) -> Result<(Header, usize), Stop> {
    let mut cursor = Cursor { octets, at: 0 };
    let first = cursor.u8()?;
    let flags = first & 0xf;
    let message = match first >> 4 {
        kind::REQUEST => {
            let header = request(&mut cursor, flags, longest)?;
            return Ok((header, cursor.at));
        }
        kind::ACCEPT => Message::Accept(accept(&mut cursor, flags)?),
        kind::REFUSE => {
            let number = cursor.varint()?;
            let reason = RefuseReason::from_codes(flags, number).ok_or(Stop::Bad("reason of a refusal"))?;
            Message::Refuse(Refuse { reason, delivered: if reason.is_final() { 0 } else { number } })
        }
        kind::SETSYN => {
            let join = join(&mut cursor, flags)?;
            Message::SetSyn(SetSyn { join, destination: cursor.address(flags & 1 != 0)? })
        }
        // Bit 0 of a SETSYN tells the address family. A JOIN has no address.
        kind::JOIN if flags & 1 == 0 => Message::Join(join(&mut cursor, flags)?),
        kind::SETACK => Message::SetAck(SetAck {
            status: SetAckStatus::from_code(flags).ok_or(Stop::Bad("status of a SETACK"))?,
            session: cursor.u8()?,
        }),
        kind::ACK => Message::Ack(ack(&mut cursor, flags)?),
        kind::CANCEL => Message::Cancel,
        kind::DATA => {
            let offset = if flags & DATA_HAS_OFFSET != 0 { cursor.varint()? } else { expected };
            let length = cursor.varint()?;
            return data(offset, length, flags & DATA_AT_ONCE != 0, cursor.at);
        }
        kind::PAPER_DATA => {
            let length = u64::from(cursor.u16()?);
            let header: [u8; PAPER_HEADER] = cursor.take()?;
            let sequence = u32::from_be_bytes([header[0], header[1], header[2], header[3]]);
            return data(unwrap_sequence(sequence, expected), length, false, cursor.at);
        }
        _ => return Err(Stop::Bad("type of the message")),
    };
    Ok((Header::Message(message), cursor.at))
}

fn data(offset: u64, length: u64, at_once: bool, used: usize) -> Result<(Header, usize), Stop> {
    match offset.checked_add(length) {
        Some(end) if end <= varint::MAX => Ok((Header::Data { offset, length, at_once }, used)),
        _ => Err(Stop::Bad("end of a data chunk")),
    }
}

/// The offset nearest to `expected` whose low 32 bits are `sequence`.
fn unwrap_sequence(sequence: u32, expected: u64) -> u64 {
    let distance = i64::from(sequence.wrapping_sub(expected as u32) as i32);
    expected.checked_add_signed(distance).unwrap_or(u64::from(sequence))
}

fn request(cursor: &mut Cursor<'_>, flags: u8, longest: usize) -> Result<Header, Stop> {
    let plan = flags & !(REQUEST_HAS_FILE | REQUEST_HAS_MANIFEST);
    let copy = plan == REQUEST_COPY;
    let plan =
        if copy { Plan::Stripe } else { Plan::from_code(plan).ok_or(Stop::Bad("plan of a request"))? };
    let mut request = Request {
        plan,
        copy,
        version: cursor.u8()?,
        transfer: TransferId(u64::from_be_bytes(cursor.take()?)),
        length: cursor.varint()?,
        file: if flags & REQUEST_HAS_FILE != 0 { Some(file(cursor)?) } else { None },
        manifest: None,
    };
    if copy && request.length > MAX_COPY {
        return Err(Stop::Bad("length of a copy"));
    }
    if flags & REQUEST_HAS_MANIFEST != 0 {
        match usize::try_from(cursor.varint()?) {
            Ok(length) if (1..=longest).contains(&length) => {
                request.manifest = Some(Bytes::copy_from_slice(cursor.slice(length)?));
            }
            // Valid, but longer than this decoder may buffer: its owner can still refuse the
            // transfer by name.
            Ok(length) if (1..=MAX_MANIFEST).contains(&length) => return Ok(Header::LongManifest(request)),
            _ => return Err(Stop::Bad("length of a manifest")),
        }
    }
    Ok(Header::Message(Message::Request(request)))
}

/// Reads the transfer from the first bytes of a request. Returns `None` if there are fewer than ten
/// bytes, or the message is not a request.
pub fn transfer_of_request(octets: &[u8]) -> Option<TransferId> {
    let (first, id) = (octets.first()?, octets.get(2..)?.first_chunk()?);
    (first >> 4 == kind::REQUEST).then(|| TransferId(u64::from_be_bytes(*id)))
}

fn file(cursor: &mut Cursor<'_>) -> Result<FileIdentity, Stop> {
    let options = cursor.u8()?;
    if options & !(FILE_HAS_SIGNATURE | FILE_DISCARD) != 0 {
        return Err(Stop::Bad("options of a file"));
    }
    Ok(FileIdentity {
        digest: cursor.take()?,
        signature: if options & FILE_HAS_SIGNATURE != 0 { Some(cursor.take()?) } else { None },
        discard: options & FILE_DISCARD != 0,
    })
}

fn accept(cursor: &mut Cursor<'_>, rows: u8) -> Result<Accept, Stop> {
    let buffer = cursor.varint()?;
    let gateways = (0..rows).map(|_| gateway(cursor)).collect::<Result<_, _>>()?;
    Ok(Accept { buffer, gateways })
}

fn gateway(cursor: &mut Cursor<'_>) -> Result<Gateway, Stop> {
    let flags = cursor.u8()?;
    let id = cursor.u16()?;
    let hops = cursor.u8()?;
    if hops == 0 {
        return Err(Stop::Bad("hop count of a gateway"));
    }
    let address = cursor.address(flags & 1 != 0)?;
    let key = if flags & 4 == 0 { None } else { Some(cursor.take()?) };
    let ids = (0..flags >> 4).map(|_| cursor.u16()).collect::<Result<Vec<_>, _>>()?;
    let energies = cursor.u16()?;
    let neighbours = ids
        .iter()
        .enumerate()
        .map(|(i, &id)| Neighbour { id, energy: energy(energies >> i & 1 != 0) })
        .collect();
    let shared_channel = flags & ROW_SHARED_CHANNEL != 0;
    Ok(Gateway { id, address, key, energy: energy(flags & 2 != 0), hops, shared_channel, neighbours })
}

const fn energy(low: bool) -> Energy {
    if low { Energy::Low } else { Energy::High }
}

fn join(cursor: &mut Cursor<'_>, flags: u8) -> Result<Join, Stop> {
    let plan = Plan::from_code(flags >> 1).ok_or(Stop::Bad("plan of a session"))?;
    let join = Join {
        transfer: TransferId(u64::from_be_bytes(cursor.take()?)),
        session: cursor.u8()?,
        sessions: cursor.u8()?,
        plan,
    };
    if join.session >= join.sessions { Err(Stop::Bad("number of the session")) } else { Ok(join) }
}

fn ack(cursor: &mut Cursor<'_>, ranges: u8) -> Result<Ack, Stop> {
    let delivered = cursor.varint()?;
    let received = cursor.varint()?;
    let mut at = delivered;
    let mut held = Vec::with_capacity(usize::from(ranges));
    for _ in 0..ranges {
        let start = at + cursor.varint()?;
        let end = start + cursor.varint()?;
        // Ranges are not empty, and touch neither each other nor the delivered bytes.
        if start == at || end == start || end > varint::MAX {
            return Err(Stop::Bad("range of an acknowledgement"));
        }
        held.push(Range { start, end });
        at = end;
    }
    Ok(Ack { delivered, received, held })
}

struct Cursor<'a> {
    octets: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn slice(&mut self, length: usize) -> Result<&'a [u8], Stop> {
        let (head, _) = self.octets[self.at..].split_at_checked(length).ok_or(Stop::NeedMore)?;
        self.at += length;
        Ok(head)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let (head, _) = self.octets[self.at..].split_first_chunk::<N>().ok_or(Stop::NeedMore)?;
        self.at += N;
        Ok(*head)
    }

    fn u8(&mut self) -> Result<u8, Stop> {
        self.take::<1>().map(|o| o[0])
    }

    fn u16(&mut self) -> Result<u16, Stop> {
        self.take().map(u16::from_be_bytes)
    }

    fn varint(&mut self) -> Result<u64, Stop> {
        let rest = &self.octets[self.at..];
        let first = rest.first().ok_or(Stop::NeedMore)?;
        let n = varint::len_from_first(*first);
        if rest.len() < n {
            return Err(Stop::NeedMore);
        }
        self.at += n;
        Ok(varint::read(rest))
    }

    fn address(&mut self, v6: bool) -> Result<SocketAddr, Stop> {
        let ip = if v6 {
            IpAddr::V6(Ipv6Addr::from(self.take::<16>()?))
        } else {
            IpAddr::V4(Ipv4Addr::from(self.take::<4>()?))
        };
        Ok(SocketAddr::new(ip, self.u16()?))
    }
}
