//! Computes the fingerprint of the sources that determine the rows of experiments apart from the
//! simulator: this crate and the statistics.

#[path = "../scenario/build/fingerprint.rs"]
mod fingerprint;

fn main() {
    fingerprint::set("ANABRANCH_LAB_BUILD", &["stats", "lab"]);
}
