//! What a run is called: by what it depends on, and nothing else.

use std::collections::BTreeMap;
use std::fmt;

use anabranch_sim::scenario::Scenario;
use bytes::Bytes;
use sha2::{Digest, Sha256};

/// The version of the program, which is part of every address: another version may make other results.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The files that a scenario carries, by the names that it gives them.
pub type Files = BTreeMap<String, Bytes>;

/// At most so many gateways for the transfer of an index: see [`anabranch_sim::scenario::Gateways::Best`].
pub type Limits = BTreeMap<usize, u32>;

/// Address of one run: SHA-256 over the resolved scenario, the contents of its files, the limits of gateways, seed, run and
/// version.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub [u8; 32]);

/// A run of a point.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RunKey {
    /// Root of its random streams.
    pub seed: u64,
    /// Its number, from 0.
    pub run: u64,
}

/// What the addresses of a scenario's runs have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Root([u8; 32]);

impl Root {
    /// Of a scenario whose canonical JSON is given.
    pub(crate) fn of(canonical_json: &str, files: &Files, limits: &Limits) -> Self {
        let mut hash = Sha256::new_with_prefix(b"anabranch run 1\0");
        // A length before each part, so that no two lists of parts make one text.
        let mut part = |octets: &[u8]| {
            hash.update((octets.len() as u64).to_le_bytes());
            hash.update(octets);
        };
        part(VERSION.as_bytes());
        part(canonical_json.as_bytes());
        for (name, content) in files {
            part(name.as_bytes());
            part(&Sha256::digest(content));
        }
        for (transfer, at_most) in limits {
            part(format!("{transfer}: {at_most}").as_bytes());
        }
        Self(hash.finalize().into())
    }

    /// The address of one run.
    pub fn run(&self, seed: u64, run: u64) -> Address {
        let mut hash = Sha256::new_with_prefix(self.0);
        hash.update(seed.to_le_bytes());
        hash.update(run.to_le_bytes());
        Address(hash.finalize().into())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Puts the limits into force.
pub(crate) fn limit(scenario: &mut Scenario, limits: &Limits) {
    for (transfer, at_most) in limits {
        scenario.limit_gateways(*transfer, *at_most);
    }
}
