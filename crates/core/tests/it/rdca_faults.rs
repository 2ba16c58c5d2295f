//! No loss in silence: every packet that was taken arrives once and in order, or its application is
//! told. The long form is `cargo xtask campaign rdca-faults`.

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
    // The runs are as hard as they are meant to be, and most of what was taken arrives all the
    // same.
    assert!(complete >= 150 && told >= 40, "{complete} complete, {told} told");
    assert!(sum.delivered * 10 >= sum.accepted * 8, "{sum:?}");
}
