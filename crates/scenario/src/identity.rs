//! Identity of a run: a digest of everything that its results depend on, and of nothing else.

use std::collections::BTreeMap;
use std::{fmt, mem};

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::{FileConfig, Policies, Scenario};

/// Version of the program, which is part of every identity.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Fingerprint of the build: SHA-256 in hexadecimal over the sources of the crates that determine
/// results, and over the lock file entries of their dependencies.
pub const BUILD: &str = env!("ANABRANCH_BUILD");

/// Contents of the files that a scenario transfers, by their names in the scenario.
pub type Files = BTreeMap<String, Bytes>;

/// Identity of one run: SHA-256 over the resolved scenario, the digests of its files, version,
/// build, seed and run number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub [u8; 32]);

/// The part of the identity that all runs of a scenario share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Root([u8; 32]);

impl Root {
    fn of(digest: &ScenarioDigest, files: &Files) -> Self {
        let mut hash = Sha256::new_with_prefix(b"anabranch run 3\0");
        // The length precedes each part, so that different lists of parts never give the same
        // input.
        let mut part = |octets: &[u8]| {
            hash.update((octets.len() as u64).to_le_bytes());
            hash.update(octets);
        };
        part(VERSION.as_bytes());
        part(BUILD.as_bytes());
        part(&digest.0);
        for (name, content) in files {
            part(name.as_bytes());
            part(&Sha256::digest(content));
        }
        Self(hash.finalize().into())
    }

    /// Adds `parts` to the identity, for runs whose results depend on more than the scenario: an
    /// experiment adds what it measures.
    #[must_use]
    pub fn with<'p>(self, parts: impl IntoIterator<Item = &'p str>) -> Self {
        let mut hash = Sha256::new_with_prefix(b"anabranch run of\0");
        hash.update(self.0);
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
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

/// Bytes reserved for a resolved scenario as JSON, so that short ones are not copied as they grow.
const USUAL_LENGTH: usize = 16 << 10;

/// SHA-256 over a resolved scenario without its seed, name and description.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct ScenarioDigest([u8; 32]);

impl ScenarioDigest {
    /// Digest of a resolved file. Keys are hashed in the order of their declaration, which is the
    /// same for all scenarios. Sorting them as JSON objects would take longer than all other work
    /// to identify a point of a sweep.
    pub(super) fn of(resolved: &mut FileConfig, policies: &Policies) -> Self {
        let aside = (
            mem::take(&mut resolved.seed),
            mem::take(&mut resolved.name),
            mem::take(&mut resolved.description),
        );
        let mut text = Vec::with_capacity(USUAL_LENGTH);
        serde_json::to_writer(&mut text, resolved).expect("a scenario has only string keys");
        (resolved.seed, resolved.name, resolved.description) = aside;
        let mut hash = Sha256::new_with_prefix(&text);
        for (name, digest) in policies.identities_in(&text) {
            for part in [name, digest] {
                hash.update((part.len() as u64).to_le_bytes());
                hash.update(part);
            }
        }
        Self(hash.finalize().into())
    }
}

impl Scenario {
    /// SHA-256 of the resolved scenario without seed, name and description, in hexadecimal.
    /// Scenarios with the same meaning have the same hash.
    pub fn hash(&self) -> String {
        hexadecimal(&self.digest.0)
    }

    /// The identity that all runs of the scenario share. `files` are the contents of the files that
    /// it transfers.
    pub fn root(&self, files: &Files) -> Root {
        Root::of(&self.digest, files)
    }
}

fn hexadecimal(octets: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).expect("four bits");
    octets.iter().flat_map(|octet| [digit(octet >> 4), digit(octet & 15)]).collect()
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hexadecimal(&self.0))
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
