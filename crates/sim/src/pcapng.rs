//! A capture of simulated links as pcapng (draft-ietf-opsawg-pcapng), which Wireshark and tcpdump
//! read.
//!
//! The bytes depend on what is written and on nothing else: little-endian on every machine, and no
//! word of the host, the program or the day. Simulated time zero is the epoch of 1970.

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

/// What the octets of an interface's packets begin with (the registry of tcpdump.org).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LinkType(pub u16);

impl LinkType {
    /// An IPv4 or IPv6 packet; its version says which.
    pub const RAW_IP: Self = Self(101);
    /// An 802.11 frame behind a radiotap header.
    pub const IEEE802_11_RADIOTAP: Self = Self(127);
    /// An 802.15.4 frame behind a TAP header.
    pub const IEEE802_15_4_TAP: Self = Self(283);
}

/// One interface of a capture: a link of the network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InterfaceInfo {
    /// Name, as a list of links shows it.
    pub name: String,
    /// What it is, in words; empty for none.
    pub description: String,
    /// What its packets are.
    pub link_type: LinkType,
}

/// Which way a packet went, seen from the interface's owner.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Direction {
    /// The link has no sides.
    #[default]
    Unknown,
    /// It arrived.
    Inbound,
    /// It was sent.
    Outbound,
}

/// Why a capture could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The file, pipe or buffer below refused the octets; a block of the capture may be cut off.
    #[error("cannot write the capture: {0}")]
    Io(#[from] io::Error),
    /// A packet cannot be said in bytes: it is larger than an IP header can tell, for one.
    #[error("a packet cannot be captured: {0}")]
    Packet(#[from] EmitError),
    /// The packet's interface was not among those that the capture began with.
    #[error("the capture has {interfaces} interfaces, and none has number {interface}")]
    Interface {
        /// The number given.
        interface: usize,
        /// How many there are.
        interfaces: usize,
    },
    /// A name, description or comment is longer than the 65535 octets that an option can have.
    #[error("{octets} bytes of {what} do not fit into an option of the capture")]
    Text {
        /// Which text.
        what: &'static str,
        /// Its length.
        octets: usize,
    },
}

/// Writes a capture, each packet as it comes: one write to `out` for each block, so no buffer is
/// needed above a file, but one is welcome.
pub struct CaptureWriter<W: Write> {
    out: W,
    /// pcap-file makes its blocks here, a few octets at a time.
    blocks: PcapNgWriter<Vec<u8>>,
}

impl<W: Write> CaptureWriter<W> {
    /// Begins a capture of these interfaces, which packets name by their place in the list.
    pub fn new(out: W, interfaces: &[InterfaceInfo]) -> Result<Self, CaptureError> {
        let blocks = PcapNgWriter::with_endianness(Vec::new(), Endianness::Little).map_err(io_error)?;
        let mut writer = Self { out, blocks };
        for interface in interfaces {
            writer.write(describe(interface)?)?;
        }
        // Without an interface the section header still waits.
        writer.hand_on()?;
        Ok(writer)
    }

    /// Writes down that `octets` passed `interface` at `time`, with a comment such as
    /// `dropped: loss`.
    ///
    /// Times may go backwards between interfaces; readers cope, though they sort by file order.
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

    /// Ends the capture and gives back what it was written to, flushed.
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

/// pcap-file casts lengths to 16 bits, so a longer text would break the file.
fn text<'a>(what: &'static str, text: &'a str) -> Result<Cow<'a, str>, CaptureError> {
    match u16::try_from(text.len()) {
        Ok(_) => Ok(Cow::Borrowed(text)),
        Err(_) => Err(CaptureError::Text { what, octets: text.len() }),
    }
}

/// Writing to memory fails for nothing that was not checked before; should it, it is the output
/// that failed.
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
