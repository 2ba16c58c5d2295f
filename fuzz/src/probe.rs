//! What a target tells of itself while it runs.

use std::fmt::Display;
use std::hash::{Hash, Hasher};

/// Collects the features of one execution: the stand-in for code coverage.
///
/// A feature is anything that a target finds worth reaching, such as an error at a field or a state entered
/// from another. An input that shows a feature for the first time is kept and mutated further.
#[derive(Debug)]
pub struct Probe {
    features: Vec<u16>,
    narrates: bool,
}

impl Probe {
    /// Says nothing, only collects.
    pub fn quiet() -> Self {
        Self { features: Vec::new(), narrates: false }
    }

    /// Prints what the target does, step by step: for a replay.
    pub fn narrating() -> Self {
        Self { features: Vec::new(), narrates: true }
    }

    /// This was reached.
    pub fn feature(&mut self, feature: impl Hash) {
        let mut hasher = Fnv::default();
        feature.hash(&mut hasher);
        let hash = hasher.finish();
        self.features.push((hash ^ hash >> 16 ^ hash >> 32 ^ hash >> 48) as u16);
    }

    /// One step, for a reader of a replay.
    pub fn say<D: Display>(&mut self, step: impl FnOnce() -> D) {
        if self.narrates {
            println!("{}", step());
        }
    }

    /// What was reached, as numbers.
    pub fn features(&self) -> &[u16] {
        &self.features
    }

    /// Ready for the next execution.
    pub fn clear(&mut self) {
        self.features.clear();
    }
}

/// FNV-1a, which will be the same tomorrow: the standard library promises that of none of its own.
#[derive(Clone, Debug)]
pub struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, octets: &[u8]) {
        for octet in octets {
            self.0 = (self.0 ^ u64::from(*octet)).wrapping_mul(0x100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
