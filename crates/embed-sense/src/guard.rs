//! The handshakes of small nodes.

use alloc::vec::Vec;

use anabranch_secure::NoEntropy;
use anabranch_secure::datagram::{Clear, Keys, Proof, Shared};
use anabranch_secure::small::Entropy;

/// How a small node proves who it is.
#[derive(Clone, Debug)]
pub enum Guard {
    /// Not at all, for trusted networks.
    Clear,
    /// With a pre-shared key.
    Shared(Shared),
}

impl Proof for Guard {
    /// The digest of HELLO.
    type Begun = [u8; 32];

    const BODY: usize = Shared::BODY;

    fn pattern(&self) -> u8 {
        match self {
            Self::Clear => Clear.pattern(),
            Self::Shared(shared) => shared.pattern(),
        }
    }

    fn begin(
        &self,
        greeting: &[u8],
        entropy: Entropy,
        hello: &mut Vec<u8>,
    ) -> Result<Self::Begun, NoEntropy> {
        match self {
            Self::Clear => Clear.begin(greeting, entropy, hello).map(|()| [0; 32]),
            Self::Shared(shared) => shared.begin(greeting, entropy, hello),
        }
    }

    fn finish(&self, digest: &Self::Begun, welcome: &[u8]) -> Option<(u32, Option<Keys>)> {
        match self {
            Self::Clear => Clear.finish(&(), welcome),
            Self::Shared(shared) => shared.finish(digest, welcome),
        }
    }
}
