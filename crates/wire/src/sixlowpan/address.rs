//! Addresses in LOWPAN_IPHC (RFC 6282 sections 3.1.1 and 3.2).

use core::net::Ipv6Addr;

use super::context::{Context, Contexts};
use super::input::{DecompressError, Field, Input};
use crate::ieee802154::Address;

/// An encoded address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said {
    /// SAM or DAM, two bits.
    pub(super) mode: u8,
    /// SAC or DAC: a context is used, or the source is unspecified.
    pub(super) stateful: bool,
    /// Number of the context; 0 if none is used.
    pub(super) context: u8,
    octets: [u8; 16],
    len: usize,
}

impl Said {
    const fn new(mode: u8, stateful: bool, context: u8) -> Self {
        Self { mode, stateful, context, octets: [0; 16], len: 0 }
    }

    fn carrying(mut self, octets: &[u8]) -> Self {
        self.octets[..octets.len()].copy_from_slice(octets);
        self.len = octets.len();
        self
    }

    /// The bytes carried in-line, at most 16.
    pub(super) fn inline(&self) -> &[u8] {
        &self.octets[..self.len]
    }
}

/// The shortest encodings of an address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shortest {
    /// Shortest without a context other than 0. Other contexts cost a byte for their number.
    pub(super) unnamed: Said,
    /// Shortest with any context.
    pub(super) any: Said,
}

impl Shortest {
    /// Offers an encoding. Of equally short ones the first is kept: stateless, then contexts by
    /// number.
    fn offer(&mut self, said: Said) {
        if said.len < self.any.len {
            self.any = said;
        }
        if said.context == 0 && said.len < self.unnamed.len {
            self.unnamed = said;
        }
    }
}

/// Encodes a source address, or a destination that is not multicast.
fn unicast(address: Ipv6Addr, mac: Address, contexts: &Contexts) -> Shortest {
    let full = Said::new(FULL, false, 0).carrying(&address.octets());
    let mut shortest = Shortest { unnamed: full, any: full };
    if let Some((mode, len)) = derived(address, mac, &Context::LINK_LOCAL) {
        shortest.offer(Said::new(mode, false, 0).carrying(&address.octets()[16 - len..]));
    }
    for (number, context) in contexts.iter() {
        if let Some((mode, len)) = derived(address, mac, context) {
            shortest.offer(Said::new(mode, true, number).carrying(&address.octets()[16 - len..]));
        }
    }
    shortest
}

/// The shortest mode that derives `address` from `prefix`, and the number of its last bytes carried
/// in-line.
fn derived(address: Ipv6Addr, mac: Address, prefix: &Context) -> Option<(u8, usize)> {
    let low = address.to_bits() as u64;
    [(ELIDED, 0, iid(mac)), (SHORT, 2, iid_of_short(low as u16)), (IID, 8, low)]
        .into_iter()
        .find_map(|(mode, len, iid)| (prefix.address(iid) == address).then_some((mode, len)))
}

pub(super) fn source(address: Ipv6Addr, mac: Address, contexts: &Contexts) -> Shortest {
    if address.is_unspecified() {
        // SAC with SAM 00 means the unspecified address (RFC 6282 section 3.1.1).
        let unspecified = Said::new(FULL, true, 0);
        return Shortest { unnamed: unspecified, any: unspecified };
    }
    unicast(address, mac, contexts)
}

pub(super) fn destination(address: Ipv6Addr, mac: Address, contexts: &Contexts) -> Shortest {
    if address.is_multicast() { multicast(address, contexts) } else { unicast(address, mac, contexts) }
}

fn multicast(address: Ipv6Addr, contexts: &Contexts) -> Shortest {
    let a = address.octets();
    let full = Said::new(FULL, false, 0).carrying(&a);
    let mut shortest = Shortest { unnamed: full, any: full };
    let said = |mode| Said::new(mode, false, 0);
    // ffXX::00XX:XXXX:XXXX
    if a[2..11] == [0; 9] {
        shortest.offer(said(MULTICAST_48).carrying(&[a[1], a[11], a[12], a[13], a[14], a[15]]));
    }
    // ffXX::00XX:XXXX
    if a[2..13] == [0; 11] {
        shortest.offer(said(MULTICAST_32).carrying(&[a[1], a[13], a[14], a[15]]));
    }
    // ff02::00XX
    if a[1] == 2 && a[2..15] == [0; 13] {
        shortest.offer(said(MULTICAST_8).carrying(&[a[15]]));
    }
    // ffXX:XXLL:PPPP:PPPP:PPPP:PPPP:XXXX:XXXX, where LL and P are the length and the prefix of a
    // context (RFC 3306).
    for (number, context) in contexts.iter().filter(|(_, context)| context.len() <= 64) {
        if a[3] == context.len() && a[4..12] == context.prefix().octets()[..8] {
            let said = Said::new(MULTICAST_PREFIX, true, number);
            shortest.offer(said.carrying(&[a[1], a[2], a[12], a[13], a[14], a[15]]));
        }
    }
    shortest
}

/// Reads a source address; `context` is the one that SCI selects.
pub(super) fn read_source(
    input: &mut Input<'_>,
    [stateful, mode]: [u8; 2],
    context: Option<&Context>,
    mac: Address,
) -> Result<Ipv6Addr, DecompressError> {
    if stateful != 0 && mode == FULL {
        return Ok(Ipv6Addr::UNSPECIFIED);
    }
    read_unicast(input, [stateful, mode], context, mac)
}

/// Reads a destination that is not multicast; `context` is the one that DCI selects.
pub(super) fn read_unicast(
    input: &mut Input<'_>,
    [stateful, mode]: [u8; 2],
    context: Option<&Context>,
    mac: Address,
) -> Result<Ipv6Addr, DecompressError> {
    let prefix = match (stateful != 0, mode) {
        (false, FULL) => return input.take(Field::Address).map(Ipv6Addr::from_octets),
        // Reserved for destinations. For sources, `read_source` has handled it.
        (true, FULL) => return Err(input.error(Field::AddressMode)),
        (false, _) => &Context::LINK_LOCAL,
        (true, _) => context.ok_or(input.error(Field::Context))?,
    };
    let iid = match mode {
        IID => u64::from_be_bytes(input.take(Field::Address)?),
        SHORT => iid_of_short(u16::from_be_bytes(input.take(Field::Address)?)),
        _ => iid(mac),
    };
    Ok(prefix.address(iid))
}

/// Reads a multicast destination; `context` is the one that DCI selects.
pub(super) fn read_multicast(
    input: &mut Input<'_>,
    [stateful, mode]: [u8; 2],
    context: Option<&Context>,
) -> Result<Ipv6Addr, DecompressError> {
    let mut a = [0; 16];
    a[0] = 0xff;
    match (stateful != 0, mode) {
        (false, FULL) => a = input.take(Field::Address)?,
        (false, MULTICAST_48) => [a[1], a[11], a[12], a[13], a[14], a[15]] = input.take(Field::Address)?,
        (false, MULTICAST_32) => [a[1], a[13], a[14], a[15]] = input.take(Field::Address)?,
        (false, _) => {
            a[1] = 2;
            [a[15]] = input.take(Field::Address)?;
        }
        (true, MULTICAST_PREFIX) => {
            // The prefix of a unicast-prefix-based multicast address has at most 64 bits (RFC 3306
            // section 4).
            let context = context.filter(|context| context.len() <= 64).ok_or(input.error(Field::Context))?;
            [a[1], a[2], a[12], a[13], a[14], a[15]] = input.take(Field::Address)?;
            a[3] = context.len();
            a[4..12].copy_from_slice(&context.prefix().octets()[..8]);
        }
        (true, _) => return Err(input.error(Field::AddressMode)),
    }
    Ok(Ipv6Addr::from_octets(a))
}

/// The interface identifier of a MAC address (RFC 6282 section 3.2.2): the EUI-64 with its
/// universal/local bit inverted (RFC 4291 appendix A).
const fn iid(mac: Address) -> u64 {
    match mac {
        Address::Short(short) => iid_of_short(short),
        Address::Extended(eui64) => u64::from_be_bytes(eui64) ^ 0x0200_0000_0000_0000,
    }
}

/// The interface identifier 0000:00ff:fe00:XXXX of a short address (RFC 6282 section 3.2.2).
const fn iid_of_short(short: u16) -> u64 {
    0x0000_00ff_fe00_0000 | short as u64
}

// SAM and DAM (RFC 6282 section 3.1.1).
const FULL: u8 = 0;
const IID: u8 = 1;
const SHORT: u8 = 2;
const ELIDED: u8 = 3;
// DAM of a multicast destination: the bits carried in-line; with DAC a context supplies the prefix.
const MULTICAST_48: u8 = 1;
const MULTICAST_32: u8 = 2;
const MULTICAST_8: u8 = 3;
const MULTICAST_PREFIX: u8 = 0;
