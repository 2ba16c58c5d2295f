//! x
use anabranch_sense::node::Node;
use anabranch_sense::sizes::Sizes;
use anabranch_core::time::Instant;
use anabranch_testkit::counting::{allocations, in_use};
use anabranch_secure::{NoEntropy,SharedKey};
fn entropy(o: &mut [u8]) -> Result<(), NoEntropy> { o.fill(3); Ok(()) }
#[test]
fn x() {
    let sizes = Sizes::default();
    let before = in_use(); let a = allocations();
    let mut node = Node::new(&sizes, &"probe-1".parse().expect("n"), 5, Some(SharedKey::from_octets([1;32])), entropy);
    println!("new {} {} heap {} lasting {}", allocations()-a, in_use()-before, sizes.heap(), sizes.heap()-sizes.parts()[1].1);
    let a = allocations(); let b = in_use();
    node.open(Instant::ZERO);
    println!("open {} {}", allocations()-a, in_use()-b);
    let a = allocations(); let b = in_use();
    println!("{:?}", node.poll(Instant::ZERO).map(<[u8]>::len));
    println!("poll {} {}", allocations()-a, in_use()-b);
}
