//! Names of senders, and the greeting that carries them.

use core::fmt;
use core::str::FromStr;

/// Length limit of a name in bytes.
const MOST: usize = 32;
/// Length of a greeting without the name: run and length.
const RUN: usize = 8;

/// Name of a sender: 1 to 32 letters, digits, `.`, `_` and `-` of ASCII.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    octets: [u8; MOST],
    len: u8,
}

/// A text that is not a [`Name`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a name has 1 to 32 letters, digits, `.`, `_` or `-`")]
pub struct BadName;

impl Name {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.octets[..usize::from(self.len)]).unwrap_or_default()
    }

    fn new(octets: &[u8]) -> Result<Self, BadName> {
        let fits = |octet: &u8| octet.is_ascii_alphanumeric() || b"._-".contains(octet);
        if !(1..=MOST).contains(&octets.len()) || !octets.iter().all(fits) {
            return Err(BadName);
        }
        let mut name = Self { octets: [0; MOST], len: octets.len() as u8 };
        name.octets[..octets.len()].copy_from_slice(octets);
        Ok(name)
    }
}

impl FromStr for Name {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        Self::new(text.as_bytes())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The encoded claims of a HELLO: who sends, and in which run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Greeting {
    octets: [u8; Self::MOST],
    len: u8,
}

impl Greeting {
    /// Length of the longest greeting in bytes.
    pub(super) const MOST: usize = RUN + 1 + MOST;

    pub(super) fn new(run: u64, name: &Name) -> Self {
        let name = name.as_str().as_bytes();
        let mut octets = [0; Self::MOST];
        octets[..RUN].copy_from_slice(&run.to_be_bytes());
        octets[RUN] = name.len() as u8;
        octets[RUN + 1..][..name.len()].copy_from_slice(name);
        Self { octets, len: (RUN + 1 + name.len()) as u8 }
    }

    pub(super) fn octets(&self) -> &[u8] {
        &self.octets[..usize::from(self.len)]
    }

    /// Parses a greeting that ends with `octets`.
    #[cfg(feature = "std")]
    pub(super) fn parse(octets: &[u8]) -> Option<(u64, Name)> {
        let (run, rest) = octets.split_first_chunk()?;
        let (len, name) = rest.split_first()?;
        let name = Name::new(name).ok().filter(|_| usize::from(*len) == name.len())?;
        Some((u64::from_be_bytes(*run), name))
    }
}
