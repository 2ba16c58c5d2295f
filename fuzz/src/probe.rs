//! What a target reports while it runs.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::hash::{Hash, Hasher};

/// Collects the features of one execution, instead of code coverage.
///
/// A feature is anything that a target considers worth reaching, such as an error at a field, or a
/// state entered from another one. An input that shows a feature for the first time is kept and
/// mutated further.
#[derive(Debug)]
pub struct Probe {
    features: Vec<u16>,
    landmarks: BTreeSet<&'static str>,
    /// Landmarks that any execution has reached.
    known: BTreeSet<&'static str>,
    narrates: bool,
    looks_inside: bool,
}

impl Probe {
    /// Creates a probe that only collects.
    pub fn quiet() -> Self {
        Self {
            features: Vec::new(),
            landmarks: BTreeSet::new(),
            known: BTreeSet::new(),
            narrates: false,
            looks_inside: false,
        }
    }

    /// Like [`Probe::quiet`], but also checks for landmarks that are expensive to detect.
    pub fn looking_inside() -> Self {
        Self { looks_inside: true, ..Self::quiet() }
    }

    /// Creates a probe that prints the target's actions step by step, for a replay.
    pub fn narrating() -> Self {
        Self { narrates: true, ..Self::looking_inside() }
    }

    /// Records a feature.
    pub fn feature(&mut self, feature: impl Hash) {
        let mut hasher = Fnv::default();
        feature.hash(&mut hasher);
        let hash = hasher.finish();
        self.features.push((hash ^ hash >> 16 ^ hash >> 32 ^ hash >> 48) as u16);
    }

    /// Records a landmark: a situation that inputs must be able to cause, such as the effect of an
    /// option. A landmark is also a feature, and the report counts the executions that reach it.
    pub fn reach(&mut self, landmark: &'static str) {
        if self.landmarks.insert(landmark) {
            self.known.insert(landmark);
            self.feature(landmark);
            self.say(|| format!("reached: {landmark}"));
        }
    }

    /// Whether to check for a landmark that is expensive to detect: true until an execution has
    /// reached it. The report counts such a landmark once.
    pub fn looks_for(&self, landmark: &'static str) -> bool {
        self.looks_inside && !self.known.contains(landmark)
    }

    /// Landmarks that this execution has reached.
    pub fn landmarks(&self) -> impl Iterator<Item = &'static str> {
        self.landmarks.iter().copied()
    }

    /// Reports a step to the reader of a replay.
    pub fn say<D: Display>(&mut self, step: impl FnOnce() -> D) {
        if self.narrates {
            println!("{}", step());
        }
    }

    /// Recorded features, as numbers.
    pub fn features(&self) -> &[u16] {
        &self.features
    }

    /// Clears the probe for the next execution.
    pub fn clear(&mut self) {
        self.features.clear();
        self.landmarks.clear();
    }
}

/// FNV-1a. Its results never change, unlike those of the standard library's hashers.
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
