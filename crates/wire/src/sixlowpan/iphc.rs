//! The IPv6 header as LOWPAN_IPHC (RFC 6282 section 3.1).

use alloc::vec::Vec;

use super::address::{self, Said};
use super::context::Contexts;
use super::input::{DecompressError, Field, Input};
use super::{Ipv6Header, Link};
use crate::ip::Protocol;

/// The three high bits of the first byte of LOWPAN_IPHC.
pub(super) const DISPATCH: u8 = 0b011;
/// The first byte before an uncompressed IPv6 packet (RFC 4944 figure 2).
pub(super) const UNCOMPRESSED: u8 = 0x41;

/// A compressed IPv6 header: the two bytes of LOWPAN_IPHC and the in-line fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Iphc {
    base: [u8; 2],
    /// SCI and DCI, if a context other than 0 is used.
    context: Option<u8>,
    /// Traffic class and flow label, next header, hop limit.
    fields: [u8; 6],
    fields_len: usize,
    src: Said,
    dst: Said,
}

/// Whether the next header is compressed by LOWPAN_NHC; otherwise its number is carried in-line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    Inline,
    Compressed,
}

impl Iphc {
    pub(super) fn new(header: &Ipv6Header, next: Next, link: &Link, contexts: &Contexts) -> Self {
        let src = address::source(header.src, link.src, contexts);
        let dst = address::destination(header.dst, link.dst, contexts);
        let len = |src: &Said, dst: &Said| src.inline().len() + dst.inline().len();
        // Selecting contexts other than 0 costs one byte for both addresses.
        let named = len(&src.any, &dst.any) + 1 < len(&src.unnamed, &dst.unnamed);
        let (src, dst) = if named { (src.any, dst.any) } else { (src.unnamed, dst.unnamed) };
        let mut iphc = Self {
            base: [DISPATCH << 5, 0],
            context: named.then_some(src.context << 4 | dst.context),
            fields: [0; 6],
            fields_len: 0,
            src,
            dst,
        };
        iphc.traffic(header.traffic_class, header.flow_label & FLOW_LABEL);
        match next {
            Next::Inline => iphc.carry(&[header.next_header.0]),
            Next::Compressed => iphc.base[0] |= NH,
        }
        match HOP_LIMITS.iter().position(|limit| *limit == header.hop_limit) {
            Some(at) => iphc.base[0] |= at as u8 + 1,
            None => iphc.carry(&[header.hop_limit]),
        }
        let multicast = if header.dst.is_multicast() { M } else { 0 };
        iphc.base[1] = u8::from(named) << 7
            | u8::from(src.stateful) << 6
            | src.mode << 4
            | multicast
            | u8::from(dst.stateful) << 2
            | dst.mode;
        iphc
    }

    /// Encodes traffic class and flow label. The ECN bits come first, so that they can be sent
    /// without the differentiated services bits.
    fn traffic(&mut self, class: u8, flow: u32) {
        let [_, high, middle, low] = flow.to_be_bytes();
        let class = class.rotate_right(2);
        let services = class & 0x3f;
        match (flow, class) {
            // Both are elided.
            (0, 0) => self.base[0] |= 3 << TF_SHIFT,
            // The flow label is elided.
            (0, _) => {
                self.base[0] |= 2 << TF_SHIFT;
                self.carry(&[class]);
            }
            // The differentiated services bits are elided.
            (_, _) if services == 0 => {
                self.base[0] |= 1 << TF_SHIFT;
                self.carry(&[class | high, middle, low]);
            }
            (_, _) => self.carry(&[class, high, middle, low]),
        }
    }

    fn carry(&mut self, octets: &[u8]) {
        let end = self.fields_len + octets.len();
        self.fields[self.fields_len..end].copy_from_slice(octets);
        self.fields_len = end;
    }

    /// Length in bytes, 2 to 41.
    pub(super) fn len(&self) -> usize {
        let addresses = self.src.inline().len() + self.dst.inline().len();
        self.base.len() + usize::from(self.context.is_some()) + self.fields_len + addresses
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.base);
        out.extend(self.context);
        out.extend_from_slice(&self.fields[..self.fields_len]);
        out.extend_from_slice(self.src.inline());
        out.extend_from_slice(self.dst.inline());
    }
}

/// Reads the header. If LOWPAN_NHC follows, the next header is not yet known and is set to
/// Hop-by-Hop.
pub(super) fn read(
    input: &mut Input<'_>,
    link: &Link,
    contexts: &Contexts,
) -> Result<(Ipv6Header, Next), DecompressError> {
    let [first, second] = input.take(Field::Iphc)?;
    let named = if second & CID != 0 { input.u8(Field::Iphc)? } else { 0 };
    let (traffic_class, flow_label) = read_traffic(input, first >> TF_SHIFT & 3)?;
    let (next_header, next) = if first & NH != 0 {
        (Protocol::HOP_BY_HOP, Next::Compressed)
    } else {
        (Protocol(input.u8(Field::Iphc)?), Next::Inline)
    };
    let hop_limit = match first & 3 {
        0 => input.u8(Field::Iphc)?,
        compressed => HOP_LIMITS[usize::from(compressed) - 1],
    };
    let source = [second >> 6 & 1, second >> 4 & 3];
    let src = address::read_source(input, source, contexts.context(named >> 4), link.src)?;
    let destination = [second >> 2 & 1, second & 3];
    let context = contexts.context(named & 15);
    let dst = if second & M != 0 {
        address::read_multicast(input, destination, context)?
    } else {
        address::read_unicast(input, destination, context, link.dst)?
    };
    Ok((Ipv6Header { src, dst, traffic_class, flow_label, next_header, hop_limit }, next))
}

/// Reads traffic class and flow label in the form that `tf` selects.
fn read_traffic(input: &mut Input<'_>, tf: u8) -> Result<(u8, u32), DecompressError> {
    let (class, flow) = match tf {
        0 => {
            let [class, high, middle, low] = input.take(Field::Iphc)?;
            (class, [0, high, middle, low])
        }
        1 => {
            let [high, middle, low] = input.take(Field::Iphc)?;
            (high & 0xc0, [0, high, middle, low])
        }
        2 => (input.u8(Field::Iphc)?, [0; 4]),
        _ => (0, [0; 4]),
    };
    Ok((class.rotate_left(2), u32::from_be_bytes(flow) & FLOW_LABEL))
}

/// Hop limits that HLIM values 1, 2 and 3 stand for.
const HOP_LIMITS: [u8; 3] = [1, 64, 255];
const FLOW_LABEL: u32 = 0xf_ffff;

// First byte: position of TF, and NH.
const TF_SHIFT: u8 = 3;
const NH: u8 = 1 << 2;
// Second byte: CID and M.
const CID: u8 = 1 << 7;
const M: u8 = 1 << 3;
