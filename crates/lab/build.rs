//! The fingerprint of what decides the rows of experiments beside the simulator: this crate, with
//! its meters, and the statistics.

#[path = "../sim/build/fingerprint.rs"]
mod fingerprint;

fn main() {
    fingerprint::set("ANABRANCH_LAB_BUILD", &["stats", "lab"]);
}
