//! No silent loss: every accepted packet is delivered once and in order, or reported to the
//! application. The long form is `cargo xtask campaign rdca-faults`.

use anabranch_testkit::rdca::{Faults, fault_run};

#[test]
fn random_faults_lose_nothing_in_silence() {
    let mut sum = Faults::default();
    let (mut complete, mut told) = (0, 0);
    for seed in 0..200 {
        let run = fault_run(seed).unwrap_or_else(|what| panic!("{what}"));
        sum.accepted += run.accepted;
        sum.delivered += run.delivered;
        complete += u32::from(run.complete);
        told += u32::from(run.told > 0);
    }
    // The faults are as hard as intended, and most accepted packets still arrive.
    assert!(complete >= 150 && told >= 40, "{complete} complete, {told} told");
    assert!(sum.delivered * 10 >= sum.accepted * 8, "{sum:?}");
}
