//! Tests: the errata's numbers, independent oracles, and invalid input.

mod errata;
mod oracle;
mod refusals;

use super::{Path, Transfer};

/// A path of section 6.1: one-way delays of 10 and 25 ms, 100 Mbit/s and 256 kbit/s, 1296 and 81
/// bytes.
fn paper_path() -> Path {
    Path::new(0.010, 0.025, 256e3)
}

/// `octets` bytes through `gateways` equal paths of section 6.1.
fn paper(octets: u64, gateways: usize) -> Transfer {
    Transfer::new(octets, vec![paper_path(); gateways])
}

/// Passes if `value` rounds to `printed` at that number of decimals.
#[track_caller]
fn rounds_to(value: f64, printed: &str) {
    let decimals = printed.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    assert_eq!(format!("{value:.decimals$}"), printed, "the value is {value}");
}
