//! Runs of real programs over an emulated network.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

/// A run counts as late if more than 1 % of the emulator's batches are later than this, in seconds.
pub(super) const LATE: f64 = 0.005;
/// Attempts for a run that was late.
const ATTEMPTS: u32 = 3;

pub(super) fn program() -> &'static str {
    assert_cmd::cargo::cargo_bin!("anabranch-lab").to_str().expect("a path of text")
}

pub(super) fn with_set(settings: &[String]) -> impl Iterator<Item = &str> {
    settings.iter().flat_map(|setting| ["--set", setting])
}

/// Number of frames of all stations.
pub(super) fn frames(metrics: &Value) -> f64 {
    let of_station = |name: &str| name.starts_with("radio.") && name.ends_with(".frames");
    let all = metrics.as_object().expect("metrics by name").iter().filter(|(name, _)| of_station(name));
    all.filter_map(|(_, metric)| metric["mean"].as_f64()).sum()
}

/// Counts the runs that were repeated because they were late.
#[derive(Default)]
pub(super) struct Repeated(AtomicU32);

impl Repeated {
    /// The first run that is not late, or the last. `lag_s` is the lag of a run in seconds.
    pub(super) fn on_time<T>(&self, run: impl Fn() -> T, lag_s: impl Fn(&T) -> f64) -> T {
        let mut result = run();
        for _ in 1..ATTEMPTS {
            if lag_s(&result) <= LATE {
                break;
            }
            self.0.fetch_add(1, Ordering::Relaxed);
            result = run();
        }
        result
    }

    pub(super) fn count(self) -> u32 {
        self.0.into_inner()
    }
}
