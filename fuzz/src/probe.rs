//! What a target tells of itself while it runs.

use std::fmt::Display;
use std::hash::{DefaultHasher, Hash, Hasher};

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
        // Which features share a number may differ between compilers: it steers the search, no result.
        let mut hasher = DefaultHasher::new();
        feature.hash(&mut hasher);
        self.features.push(hasher.finish() as u16);
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
