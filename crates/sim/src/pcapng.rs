//! Captures of simulated links in pcapng format (draft-ietf-opsawg-pcapng), which Wireshark and
//! tcpdump read.
//!
//! The bytes depend only on the packets: they are little-endian on every machine and contain
//! nothing about the host, the program or the date. Simulated time zero is the epoch of 1970.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

use anabranch_core::time::Instant;
use anabranch_wire::ip::EmitError;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, Endianness, PcapError};

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
    /// Buffer for a block: pcap-file writes only a few bytes at a time.
    blocks: PcapNgWriter<Vec<u8>>,
}

impl<W: Write> CaptureWriter<W> {
    /// Begins a capture of these interfaces; packets refer to them by index.
    pub fn new(out: W, interfaces: &[InterfaceInfo]) -> Result<Self, CaptureError> {
        let blocks = PcapNgWriter::with_endianness(Vec::new(), Endianness::Little).map_err(io_error)?;
        let mut writer = Self { out, blocks };
        for interface in interfaces {
            writer.write(describe(interface)?)?;
        }
        // Without an interface the section header has not been written yet.
        writer.hand_on()?;
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
        let interfaces = self.blocks.interfaces().len();
        if interface >= interfaces {
            return Err(CaptureError::Interface { interface, interfaces });
        }
        let flags = match direction {
            Direction::Unknown => None,
            Direction::Inbound => Some(EnhancedPacketOption::Flags(FLAGS_INBOUND)),
            Direction::Outbound => Some(EnhancedPacketOption::Flags(FLAGS_OUTBOUND)),
        };
        let comment = comment.map(|comment| text("comment", comment)).transpose()?;
        self.write(EnhancedPacketBlock {
            interface_id: interface as u32,
            timestamp: Duration::from_nanos(time.as_nanos()),
            original_len: octets.len() as u32,
            data: Cow::Borrowed(octets),
            options: comment.map(EnhancedPacketOption::Comment).into_iter().chain(flags).collect(),
        })
    }

    /// Ends the capture and returns the flushed writer.
    pub fn finish(mut self) -> Result<W, CaptureError> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn write<'a>(&mut self, block: impl PcapNgBlock<'a>) -> Result<(), CaptureError> {
        self.blocks.write_pcapng_block(block).map_err(io_error)?;
        self.hand_on()
    }

    fn hand_on(&mut self) -> Result<(), CaptureError> {
        self.out.write_all(self.blocks.get_ref())?;
        self.blocks.get_mut().clear();
        Ok(())
    }
}

fn describe(interface: &InterfaceInfo) -> Result<InterfaceDescriptionBlock<'_>, CaptureError> {
    let mut options = vec![InterfaceDescriptionOption::IfName(text("an interface name", &interface.name)?)];
    if !interface.description.is_empty() {
        let description = text("an interface description", &interface.description)?;
        options.push(InterfaceDescriptionOption::IfDescription(description));
    }
    options.push(InterfaceDescriptionOption::IfTsResol(NANOSECONDS));
    Ok(InterfaceDescriptionBlock {
        linktype: DataLink::from(u32::from(interface.link_type.0)),
        snaplen: NO_LIMIT,
        options,
    })
}

/// Checks the length: pcap-file casts lengths to 16 bits, so a longer text would corrupt the file.
fn text<'a>(what: &'static str, text: &'a str) -> Result<Cow<'a, str>, CaptureError> {
    match u16::try_from(text.len()) {
        Ok(_) => Ok(Cow::Borrowed(text)),
        Err(_) => Err(CaptureError::Text { what, octets: text.len() }),
    }
}

/// Writing to memory cannot fail after the previous checks; any failure is reported as one of the
/// output.
fn io_error(error: PcapError) -> CaptureError {
    match error {
        PcapError::IoError(error) => CaptureError::Io(error),
        error => CaptureError::Io(io::Error::other(error)),
    }
}

/// epb_flags, bits 0 and 1.
const FLAGS_INBOUND: u32 = 1;
/// See [`FLAGS_INBOUND`].
const FLAGS_OUTBOUND: u32 = 2;
/// if_tsresol: a negative power of ten.
const NANOSECONDS: u8 = 9;
/// SnapLen: packets are whole.
const NO_LIMIT: u32 = 0;
