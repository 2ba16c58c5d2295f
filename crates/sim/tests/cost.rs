//! What a run costs, in events and bytes of trace instead of seconds.

#[path = "../benches/support/mod.rs"]
mod support;

use anabranch_core::time::Duration;
use anabranch_sim::trace::TextTrace;
use expect_test::expect;
use sha2::{Digest, Sha256};

use support::{Star, after, delivered, dumbbell};

/// A change of speed alone leaves these as they are; a change of behaviour renews them, in a commit that says
/// why.
#[test]
fn a_traced_dumbbell_is_what_it_was() {
    let mut sim = dumbbell(10);
    sim.observe(TextTrace::new(Vec::new()));
    sim.run_until(after(Duration::from_secs(1)));
    let trace = sim.take_observer::<TextTrace<Vec<u8>>>().expect("it was added").finish().expect("memory");
    let digest: String = Sha256::digest(&trace)[..8].iter().map(|b| format!("{b:02x}")).collect();
    let lost: u64 = sim.world().network.links().iter().map(|l| l.metrics().dropped_full).sum();
    let said = format!(
        "{} packets, {lost} lost, {} events, {} octets of trace, SHA-256 {digest}...",
        delivered(&sim),
        sim.events(),
        trace.len(),
    );
    expect![
        "112761 packets, 2820 lost, 343779 events, 78751893 octets of trace, SHA-256 488ed9deff0f52b1..."
    ]
    .assert_eq(&said);
}

#[test]
fn tmp_set() {
    let mut star = Star::new(129_000);
    star.sim.observe(TextTrace::new(Vec::new()));
    star.run();
    let trace =
        star.sim.take_observer::<TextTrace<Vec<u8>>>().expect("it was added").finish().expect("memory");
    let digest: String = Sha256::digest(&trace)[..8].iter().map(|b| format!("{b:02x}")).collect();
    expect!["3692 714274 c4387ed7e4e9ba5c"].assert_eq(&format!(
        "{} {} {digest}",
        star.sim.events(),
        trace.len()
    ));
}
