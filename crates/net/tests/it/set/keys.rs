//! The keys used in these tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_net::set::{GatewayConfig, NodeConfig, PushConfig};
use anabranch_secure::{Acquaintance, Doorkeeper, NodeKeys, SecretKey, SenderKeys, WhoMay};

pub(crate) fn sender() -> SecretKey {
    SecretKey::from_octets([1; 32])
}

pub(crate) fn gateway() -> SecretKey {
    SecretKey::from_octets([2; 32])
}

pub(crate) fn node() -> SecretKey {
    SecretKey::from_octets([3; 32])
}

/// A key that no peer knows.
pub(crate) fn stranger() -> SecretKey {
    SecretKey::from_octets([4; 32])
}

/// The sender keys of `own` for the node whose key is `node`.
pub(crate) fn shown(own: SecretKey, node: &SecretKey) -> Arc<SenderKeys> {
    SenderKeys::new(own, Acquaintance::Known(node.public()), number)
}

/// Greeting numbers that rise across transfers.
pub(crate) fn number() -> u64 {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

pub(crate) fn of_push(config: &mut PushConfig) {
    config.keys = Some(shown(sender(), &node()));
}

pub(crate) fn of_gateway(config: &mut GatewayConfig) {
    config.door = Some(Doorkeeper::new(gateway(), [sender().public()]));
}

pub(crate) fn of_node(config: &mut NodeConfig) {
    config.who = Some(NodeKeys::new(who()));
}

/// The senders that the node of these tests accepts.
pub(crate) fn who() -> WhoMay {
    WhoMay { own: Some(node()), senders: vec![sender().public()], shared: Vec::new() }
}
