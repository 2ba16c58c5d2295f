//! What a target tells of itself while it runs.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::hash::{Hash, Hasher};

/// Collects the features of one execution: the stand-in for code coverage.
///
/// A feature is anything that a target finds worth reaching, such as an error at a field or a state
/// entered from another. An input that shows a feature for the first time is kept and mutated
/// further.
#[derive(Debug)]
pub struct Probe {
    features: Vec<u16>,
    landmarks: BTreeSet<&'static str>,
    /// The landmarks that any execution has reached.
    known: BTreeSet<&'static str>,
    narrates: bool,
    looks_inside: bool,
}

impl Probe {
    /// Says nothing, only collects.
    pub fn quiet() -> Self {
        Self {
            features: Vec::new(),
            landmarks: BTreeSet::new(),
            known: BTreeSet::new(),
            narrates: false,
            looks_inside: false,
        }
    }

    /// As [`Probe::quiet`], and also looks for landmarks that are costly to see.
    pub fn looking_inside() -> Self {
        Self { looks_inside: true, ..Self::quiet() }
    }

    /// Prints what the target does, step by step: for a replay.
    pub fn narrating() -> Self {
        Self { narrates: true, ..Self::looking_inside() }
    }

    /// This was reached.
    pub fn feature(&mut self, feature: impl Hash) {
        let mut hasher = Fnv::default();
        feature.hash(&mut hasher);
        let hash = hasher.finish();
        self.features.push((hash ^ hash >> 16 ^ hash >> 32 ^ hash >> 48) as u16);
    }

    /// The execution has reached a landmark: something that inputs must be able to cause, such as
    /// the effect of an option. A landmark is a feature too, and the report counts the executions
    /// that reach it.
    pub fn reach(&mut self, landmark: &'static str) {
        if self.landmarks.insert(landmark) {
            self.known.insert(landmark);
            self.feature(landmark);
            self.say(|| format!("reached: {landmark}"));
        }
    }

    /// Whether to look for a landmark that is costly to see: until an execution has reached it. The
    /// report counts it once.
    pub fn looks_for(&self, landmark: &'static str) -> bool {
        self.looks_inside && !self.known.contains(landmark)
    }

    /// The landmarks that this execution has reached.
    pub fn landmarks(&self) -> impl Iterator<Item = &'static str> {
        self.landmarks.iter().copied()
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
        self.landmarks.clear();
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
