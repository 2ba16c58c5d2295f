//! Captures of simulated links in pcapng format (draft-ietf-opsawg-pcapng), which Wireshark and
//! tcpdump read.
//!
//! The bytes depend only on the packets: they are little-endian on every machine and contain
//! nothing about the host, the program or the date. Simulated time zero is the epoch of 1970.

use std::io::{self, Write};

use anabranch_core::time::Instant;
use anabranch_wire::ip::EmitError;

/// Link-layer type of an interface, which determines the first bytes of its packets (registry of
/// tcpdump.org).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LinkType(pub u16);

impl LinkType {
    /// An IPv4 or IPv6 packet, distinguished by its version field.
    pub const RAW_IP: Self = Self(101);
    /// An IEEE 802.11 frame after a radiotap header.
    pub const IEEE802_11_RADIOTAP: Self = Self(127);
    /// An IEEE 802.15.4 frame after a TAP header.
    pub const IEEE802_15_4_TAP: Self = Self(283);
}

/// One interface of a capture: a link of the network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InterfaceInfo {
    /// Name, as shown in a list of interfaces.
    pub name: String,
    /// Description; may be empty.
    pub description: String,
    /// Link-layer type of its packets.
    pub link_type: LinkType,
}

/// Direction of a packet, seen from the interface's owner.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Direction {
    /// The link has no direction.
    #[default]
    Unknown,
    /// It arrived.
    Inbound,
    /// It was sent.
    Outbound,
}

/// Reason why a capture could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// Writing to the file, pipe or buffer failed; a block of the capture may be incomplete.
    #[error("cannot write the capture: {0}")]
    Io(#[from] io::Error),
    /// A packet cannot be encoded, for example because it is too large for the length field of an
    /// IP header.
    #[error("a packet cannot be captured: {0}")]
    Packet(#[from] EmitError),
    /// The packet's interface was not declared at the start of the capture.
    #[error("the capture has {interfaces} interfaces, and none has number {interface}")]
    Interface {
        /// Number of the interface.
        interface: usize,
        /// Number of declared interfaces.
        interfaces: usize,
    },
    /// A name, description or comment is longer than the 65535 bytes of an option.
    #[error("{octets} bytes of {what} do not fit into an option of the capture")]
    Text {
        /// Kind of text.
        what: &'static str,
        /// Its length in bytes.
        octets: usize,
    },
}

/// Writes a capture, packet by packet. Each block is one write to `out`, so a file needs no buffer,
/// although a buffer makes it faster.
pub struct CaptureWriter<W: Write> {
    out: W,
    interfaces: usize,
    block: Block,
}

impl<W: Write> CaptureWriter<W> {
    /// Begins a capture of these interfaces; packets refer to them by index.
    pub fn new(out: W, interfaces: &[InterfaceInfo]) -> Result<Self, CaptureError> {
        let mut writer = Self { out, interfaces: interfaces.len(), block: Block::default() };
        let section = writer.block.begin(SECTION_HEADER);
        [BYTE_ORDER, VERSION, u32::MAX, u32::MAX].into_iter().for_each(|word| section.word(word));
        writer.write()?;
        for interface in interfaces {
            let block = writer.block.begin(INTERFACE_DESCRIPTION);
            block.word(interface.link_type.0.into());
            block.word(NO_LIMIT);
            block.text(IF_NAME, "an interface name", &interface.name)?;
            if !interface.description.is_empty() {
                block.text(IF_DESCRIPTION, "an interface description", &interface.description)?;
            }
            block.option(IF_TSRESOL, &[NANOSECONDS]);
            block.option(END_OF_OPTIONS, &[]);
            writer.write()?;
        }
        Ok(writer)
    }

    /// Writes a packet that passed `interface` at `time`, with a comment such as `dropped: loss`.
    ///
    /// Times may decrease between interfaces; readers accept that, although they order packets by
    /// position in the file.
    pub fn packet(
        &mut self,
        interface: usize,
        time: Instant,
        direction: Direction,
        octets: &[u8],
        comment: Option<&str>,
    ) -> Result<(), CaptureError> {
        let interfaces = self.interfaces;
        if interface >= interfaces {
            return Err(CaptureError::Interface { interface, interfaces });
        }
        let (time, length) = (time.as_nanos(), octets.len() as u32);
        let block = self.block.begin(ENHANCED_PACKET);
        [interface as u32, (time >> 32) as u32, time as u32, length, length]
            .into_iter()
            .for_each(|word| block.word(word));
        block.padded(octets);
        if let Some(comment) = comment {
            block.text(COMMENT, "comment", comment)?;
        }
        let flags = match direction {
            Direction::Unknown => None,
            Direction::Inbound => Some(FLAGS_INBOUND),
            Direction::Outbound => Some(FLAGS_OUTBOUND),
        };
        if let Some(flags) = flags {
            block.option(EPB_FLAGS, &flags.to_le_bytes());
        }
        if comment.is_some() || flags.is_some() {
            block.option(END_OF_OPTIONS, &[]);
        }
        self.write()
    }

    /// Ends the capture and returns the flushed writer.
    pub fn finish(mut self) -> Result<W, CaptureError> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn write(&mut self) -> Result<(), CaptureError> {
        Ok(self.out.write_all(self.block.end())?)
    }
}

/// A block while it is made (section 3.1): type, length, content, length.
#[derive(Default)]
struct Block(Vec<u8>);

impl Block {
    fn begin(&mut self, kind: u32) -> &mut Self {
        self.0.clear();
        self.word(kind);
        // The length, known at the end.
        self.word(0);
        self
    }

    fn end(&mut self) -> &[u8] {
        let length = self.0.len() as u32 + 4;
        self.0[4..8].copy_from_slice(&length.to_le_bytes());
        self.word(length);
        &self.0
    }

    fn word(&mut self, word: u32) {
        self.0.extend(word.to_le_bytes());
    }

    /// Appends content, and zeros up to a multiple of four bytes.
    fn padded(&mut self, octets: &[u8]) {
        self.0.extend(octets);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    /// Appends an option of at most 65535 bytes (section 3.5).
    fn option(&mut self, code: u16, value: &[u8]) {
        self.word(u32::from(code) | (value.len() as u32) << 16);
        self.padded(value);
    }

    fn text(&mut self, code: u16, what: &'static str, text: &str) -> Result<(), CaptureError> {
        if u16::try_from(text.len()).is_err() {
            return Err(CaptureError::Text { what, octets: text.len() });
        }
        self.option(code, text.as_bytes());
        Ok(())
    }
}

// Types of blocks (sections 4.1 to 4.3).
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
/// Shows a reader the order of bytes.
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Version 1.0.
const VERSION: u32 = 1;
// Codes of options.
const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;
/// epb_flags, bits 0 and 1.
const FLAGS_INBOUND: u32 = 1;
/// See [`FLAGS_INBOUND`].
const FLAGS_OUTBOUND: u32 = 2;
/// if_tsresol: a negative power of ten.
const NANOSECONDS: u8 = 9;
/// SnapLen: packets are whole.
const NO_LIMIT: u32 = 0;
