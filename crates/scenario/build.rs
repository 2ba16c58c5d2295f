//! Computes the fingerprint of the sources that determine results: this crate and the crates below
//! it. `identity` makes it part of the identity of each run.

#[path = "build/fingerprint.rs"]
mod fingerprint;

fn main() {
    fingerprint::set("ANABRANCH_BUILD", &["wire", "core", "units", "model", "sim", "scenario"]);
}
