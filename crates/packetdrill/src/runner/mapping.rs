//! Maps sequence numbers and timestamps between a script and a connection.

use std::collections::BTreeMap;

use anabranch_core::segment::{Flags, Options, SackBlock, SackBlocks, Segment, SeqNumber, Timestamps};
use bytes::Bytes;

use crate::script::{Ecn, Packet, TcpOption};

/// The mapping of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Mapping {
    /// Our initial sequence number.
    iss: u32,
    /// The script's initial sequence number, once its SYN or SYN-ACK was seen.
    script_iss: u32,
    /// The peer's initial sequence number, which the runner chooses.
    irs: u32,
    script_irs: u32,
    /// TSval that we have sent, by the script's value.
    values: BTreeMap<u32, u32>,
    /// Difference between the connection's TSval and the script's.
    offset: Option<u32>,
}

/// A segment of ours in the script's numbers.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) sack: Vec<SackBlock>,
}

impl Mapping {
    pub(super) fn new(iss: SeqNumber, index: usize) -> Self {
        Self { iss: iss.0, irs: IRS.wrapping_sub(index as u32 * 0x0200_0000), ..Self::default() }
    }

    /// The SYN was refused: the reset has no initial sequence number of ours.
    pub(super) fn refused(&mut self) {
        self.iss = 0;
    }

    /// A SYN of another connection with the same ports, in this connection's numbers.
    pub(super) fn later_syn(&self, packet: &Packet) -> Segment {
        let above = packet.seq.wrapping_sub(self.script_irs);
        let syn = self.clone().inbound(packet);
        Segment { seq: syn.seq + above, ..syn }
    }

    /// Converts a packet of the script to a segment.
    pub(super) fn inbound(&mut self, packet: &Packet) -> Segment {
        let syn = packet.flags.contains(Flags::SYN);
        if syn {
            self.script_irs = packet.seq;
        }
        let seq = if syn { self.irs } else { self.irs.wrapping_add(packet.seq) };
        let acks = packet.flags.contains(Flags::ACK);
        let base = if syn { self.script_iss } else { 0 };
        let ack = if acks { self.iss.wrapping_add(packet.ack).wrapping_sub(base) } else { 0 };
        let mut options = Options::default();
        for option in packet.options.iter().flatten() {
            match option {
                TcpOption::Padding | TcpOption::Multipath(_) => {}
                TcpOption::Mss(mss) => options.mss = Some(*mss),
                TcpOption::WindowScale(shift) => options.window_scale = Some(*shift),
                TcpOption::SackPermitted => options.sack_permitted = true,
                TcpOption::Sack(blocks) => {
                    let ours = |seq: SeqNumber| seq + self.iss;
                    options.sack = SackBlocks::from_iter(
                        blocks
                            .iter()
                            .map(|block| SackBlock { left: ours(block.left), right: ours(block.right) }),
                    );
                }
                TcpOption::Timestamps(value, echo) => {
                    let echo = self.values.get(echo).copied().unwrap_or_else(|| match self.offset {
                        Some(offset) if *echo != 0 => echo.wrapping_add(offset),
                        _ => *echo,
                    });
                    options.timestamps = Some(Timestamps { value: *value, echo });
                }
            }
        }
        let (src_port, dst_port) = packet.ports.unwrap_or_default();
        Segment {
            src_port,
            dst_port,
            seq: SeqNumber(seq),
            ack: SeqNumber(ack),
            flags: packet.flags,
            // packetdrill sends a window of 65535 if the script names none.
            window: packet.window.unwrap_or(u16::MAX),
            options,
            payload: Bytes::from(vec![0; packet.len as usize]),
            ecn: packet.ecn.map(Ecn::codepoint).unwrap_or_default(),
            ..Segment::default()
        }
    }

    /// Learns our initial sequence number from the script's SYN or SYN-ACK.
    pub(super) fn learn(&mut self, packet: &Packet, segment: &Segment) {
        if packet.flags.contains(Flags::SYN) && segment.flags.contains(Flags::SYN) {
            self.script_iss = packet.seq;
        }
        let expected = packet.options.iter().flatten().find_map(|option| match option {
            TcpOption::Timestamps(value, _) => Some(*value),
            _ => None,
        });
        if let (Some(value), Some(ours)) = (expected, segment.options.timestamps) {
            self.values.insert(value, ours.value);
            self.offset.get_or_insert(ours.value.wrapping_sub(value));
        }
    }

    /// Converts our TSval to the script's value.
    pub(super) fn timestamp(&self, value: u32) -> u32 {
        value.wrapping_sub(self.offset.unwrap_or(0))
    }

    /// Converts a segment of ours to the script's numbers.
    pub(super) fn outbound(&self, segment: &Segment) -> Seen {
        // The numbers of a SYN are absolute in the script; others are relative to the initial
        // numbers.
        let syn = segment.flags.contains(Flags::SYN);
        let (base, peer) = if syn { (self.script_iss, self.script_irs) } else { (0, 0) };
        let theirs = |seq: SeqNumber| SeqNumber(seq.0.wrapping_sub(self.irs));
        Seen {
            seq: segment.seq.0.wrapping_sub(self.iss).wrapping_add(base),
            ack: theirs(segment.ack).0.wrapping_add(peer),
            sack: segment
                .options
                .sack
                .as_slice()
                .iter()
                .map(|block| SackBlock { left: theirs(block.left), right: theirs(block.right) })
                .collect(),
        }
    }
}

/// The peer's initial sequence number, chosen so that the sequence numbers of most scripts wrap
/// around.
const IRS: u32 = u32::MAX - 7_000;
