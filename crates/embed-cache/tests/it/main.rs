//! sizes
use anabranch_core::dtc::Node;
#[test]
fn s(){ println!("{:?} node {} conn {} slot {} seg {}", anabranch_cache::sizes::Sizes::default().parts(), size_of::<Node>(), Node::CONNECTION_MEMORY, Node::SEGMENT_MEMORY, size_of::<anabranch_core::segment::Segment>());
println!("cfg {} counters {} opts {} mptcp {} bytes {} cache {}", size_of::<anabranch_core::dtc::Config>(), size_of::<anabranch_core::dtc::Counters>(), size_of::<anabranch_core::segment::Options>(), size_of::<anabranch_core::segment::Mptcp>(), size_of::<bytes::Bytes>(), size_of::<anabranch_cache::cache::Cache>());
}
