//! The identity of a run: a digest of all that its results depend on, and of nothing else.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::Scenario;

/// The version of the program, which is part of every identity.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Fingerprint of the build: SHA-256, in hexadecimal, over the sources of the crates that decide results and over the entries of
/// the lock file for their dependencies.
pub const BUILD: &str = env!("ANABRANCH_BUILD");

/// The files that a scenario carries, by the names that it gives them.
pub type Files = BTreeMap<String, Bytes>;

/// Identity of one run: SHA-256 over the resolved scenario, the digests of its files, version, build, seed and run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub [u8; 32]);

/// What the identities of all runs of a scenario have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Root([u8; 32]);

impl Root {
    /// Of a scenario, by its [`Scenario::canonical_json`], with the contents of its files.
    pub fn of(canonical_json: &str, files: &Files) -> Self {
        let mut hash = Sha256::new_with_prefix(b"anabranch run 2\0");
        // A length before each part, so that no two lists of parts make one text.
        let mut part = |octets: &[u8]| {
            hash.update((octets.len() as u64).to_le_bytes());
            hash.update(octets);
        };
        part(VERSION.as_bytes());
        part(BUILD.as_bytes());
        part(canonical_json.as_bytes());
        for (name, content) in files {
            part(name.as_bytes());
            part(&Sha256::digest(content));
        }
        Self(hash.finalize().into())
    }

    /// The identity of one run.
    pub fn run(&self, seed: u64, run: u64) -> RunId {
        let mut hash = Sha256::new_with_prefix(self.0);
        hash.update(seed.to_le_bytes());
        hash.update(run.to_le_bytes());
        RunId(hash.finalize().into())
    }
}

impl Scenario {
    /// What the identities of its runs have in common. `files` are the contents that it carries.
    pub fn root(&self, files: &Files) -> Root {
        Root::of(&self.canonical_json(), files)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
