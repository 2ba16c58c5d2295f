//! Address contexts, shared by both ends of a link.

use core::net::Ipv6Addr;

/// An address prefix that frames do not carry (RFC 6282 section 3.1.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Context {
    /// The prefix; bits past its length are zero.
    bits: u128,
    len: u8,
}

/// A prefix longer than 128 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("a prefix of {bits} bits is longer than an address")]
pub struct PrefixTooLong {
    /// The requested length.
    pub bits: u8,
}

impl Context {
    /// fe80::/64, from which stateless compression derives unicast addresses.
    pub(super) const LINK_LOCAL: Self = Self { bits: 0xfe80 << 112, len: 64 };

    /// The context of the first `len` bits of `prefix`; further bits are ignored.
    pub const fn new(prefix: Ipv6Addr, len: u8) -> Result<Self, PrefixTooLong> {
        if len > 128 {
            return Err(PrefixTooLong { bits: len });
        }
        let mut context = Self { bits: prefix.to_bits(), len };
        context.bits &= context.mask();
        Ok(context)
    }

    /// The prefix; bits past its length are zero.
    pub const fn prefix(&self) -> Ipv6Addr {
        Ipv6Addr::from_bits(self.bits)
    }

    /// Prefix length in bits, at most 128.
    #[allow(clippy::len_without_is_empty, reason = "a length of bits; one of 0 is a context all the same")]
    pub const fn len(&self) -> u8 {
        self.len
    }

    /// The address with this interface identifier. Bits covered by the prefix are taken from the
    /// prefix, even those of the identifier; bits between the two are zero (RFC 6282 section
    /// 3.1.1).
    pub(super) const fn address(&self, iid: u64) -> Ipv6Addr {
        Ipv6Addr::from_bits(self.bits | iid as u128 & !self.mask())
    }

    /// A mask of the prefix bits.
    const fn mask(&self) -> u128 {
        match u128::MAX.checked_shr(self.len as u32) {
            Some(rest) => !rest,
            None => u128::MAX,
        }
    }
}

/// The contexts that both ends of a link share, numbered 0 to 15. Using context 0 costs no extra
/// byte.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Contexts([Option<Context>; Contexts::MAX]);

impl Contexts {
    /// Number of contexts: their number has four bits.
    pub const MAX: usize = 16;

    /// No contexts: only link-local addresses are compressed.
    pub const fn new() -> Self {
        Self([None; Self::MAX])
    }

    /// Adds `context` with this `number`, of which only the low four bits count.
    pub const fn with(mut self, number: u8, context: Context) -> Self {
        self.0[number as usize % Self::MAX] = Some(context);
        self
    }

    /// The context with this number.
    pub fn context(&self, number: u8) -> Option<&Context> {
        self.0.get(usize::from(number))?.as_ref()
    }

    /// All contexts in order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u8, &Context)> {
        (0..).zip(&self.0).filter_map(|(number, context)| Some((number, context.as_ref()?)))
    }
}
