//! Tests of keys, strangers and attackers.

use anabranch_core::set::tcp_manager::{Ending, State};
use anabranch_core::set::{Failure, Outcome, RefuseReason, TransferId};
use anabranch_core::time;
use anabranch_net::set::{KnownGateway, Push, PushConfig};
use anabranch_secure::{Acquaintance, NodeKeys, SecretKey, SenderKeys, SharedKey, WhoMay};

use super::keys;
use super::world::*;

/// A push that gives up soon.
fn impatient(mut config: PushConfig) -> PushConfig {
    config.set.request_tries = 2;
    config.set.redials = 0;
    config.set.patience = time::Duration::from_millis(50);
    config
}

#[test]
fn without_keys_files_arrive_as_well() {
    on_one_thread(async {
        let gateway = gateway_with(V4, |config| {
            config.door = None;
            config.allow = vec!["127.0.0.1:1-65535".parse().expect("a rule")];
        });
        let node = node_with(V4, &[&gateway], |config| config.who = None);
        let file = contents(300_000);
        let config = PushConfig { keys: None, ..config(node.address) };
        let (outcome, _) = run(Push::new(config, file.clone()), |_| {}).await;
        assert_eq!(outcome, Outcome::Delivered);
        assert!(node.sink.look().octets == file);
    });
}

#[test]
fn a_key_that_both_have_serves_a_small_node() {
    on_one_thread(async {
        let gateway = gateway(V4);
        let shared = SharedKey::from_octets([7; 32]);
        let who = WhoMay { shared: vec![("small".into(), shared.clone())], ..WhoMay::default() };
        let node = node_with(V4, &[&gateway], |config| config.who = Some(NodeKeys::new(who)));
        let file = contents(300_000);
        let push = |shared: SharedKey| {
            let keys = SenderKeys::new(keys::sender(), Acquaintance::Shared(shared), keys::number);
            impatient(PushConfig { keys: Some(keys), ..config(node.address) })
        };
        let (outcome, _) = run(Push::new(push(shared), file.clone()), |_| {}).await;
        assert_eq!(outcome, Outcome::Delivered);
        assert!(node.sink.look().octets == file);
        let wrong = push(SharedKey::from_octets([8; 32]));
        let (outcome, _) = run(Push::new(wrong, file.clone()), |_| {}).await;
        assert_eq!(outcome, Outcome::Failed(Failure::NodeUnreachable));
    });
}

#[test]
fn strangers_reach_neither_node_nor_gateway() {
    on_one_thread(async {
        let gateway = gateway(V4);
        let node = node(V4, &[&gateway]);
        let as_who = |own: SecretKey, to: &SecretKey| {
            impatient(PushConfig { keys: Some(keys::shown(own, to)), ..config(node.address) })
        };
        let stranger = as_who(keys::stranger(), &keys::node());
        let misled = as_who(keys::sender(), &keys::stranger());
        for config in [stranger, misled, PushConfig { keys: None, ..as_who(keys::sender(), &keys::node()) }] {
            let (outcome, push) = run(Push::new(config, contents(2_000)), |_| {}).await;
            assert_eq!(outcome, Outcome::Failed(Failure::NodeUnreachable));
            let said = push.errors().last().map(|error| error.error.to_string()).unwrap_or_default();
            assert!(said.contains("our key") || said.contains("reset"), "{said}");
        }
        assert_eq!(node.sink.look().begun, 0);
        // Files too long to follow their request, which would need no gateway. First, a sender that
        // the node accepts and the gateway does not.
        let closed = gateway_with(V4, |config| {
            config.door =
                Some(anabranch_secure::Doorkeeper::new(keys::gateway(), [keys::stranger().public()]));
            config.allow = vec!["127.0.0.1:1-65535".parse().expect("a rule")];
        });
        // An attacker in place of a gateway.
        let impostor = KnownGateway { key: Some(keys::stranger().public()), ..gateway.known() };
        let nameless = KnownGateway { key: None, ..gateway.known() };
        for via in [closed.known(), impostor, nameless] {
            // The same transfer each time, since the node would be busy for another one.
            let config = as_who(keys::sender(), &keys::node());
            let config = PushConfig { via: vec![via], transfer: TransferId(u64::MAX), ..config };
            let (outcome, push) = run(Push::new(config, contents(2_000)), |_| {}).await;
            assert_eq!(outcome, Outcome::Failed(Failure::GatewaysLost));
            let said = push.errors().last().expect("a reason").error.to_string();
            assert!(said.contains("key"), "{said}");
            assert!(push.sessions().all(|session| matches!(session.state, State::Closed(Ending::Stream(_)))));
        }
        assert!(node.sink.look().octets.is_empty());
    });
}

/// More pushes than a node keeps keys for, all with the key of the running push.
#[test]
fn pushes_that_wait_do_not_evict_the_keys_of_the_one_that_runs() {
    on_one_thread(async {
        let gateways = [gateway(V4)];
        let known = NodeKeys::new(keys::who());
        let node = node_with(V4, &gateways.each_ref(), |config| config.who = Some(known.clone()));
        let file = contents(20_000_000);
        let config = config(node.address);
        let transfer = config.transfer;
        let mut push = Push::new(config, file.clone());
        while push.delivered() < 1_000_000 {
            assert_eq!(push.step().await, None);
        }
        for _ in 0..10 {
            let waiting = impatient(super::world::config(node.address));
            let (outcome, _) = run(Push::new(waiting, contents(10)), |_| {}).await;
            assert_eq!(outcome, Outcome::Failed(Failure::Refused(RefuseReason::Busy)));
        }
        assert!(known.of(transfer).is_some(), "a session that is dialled again needs them");
        let (outcome, _) = run(push, |_| {}).await;
        assert_eq!(outcome, Outcome::Delivered);
        assert!(node.sink.look().octets == file);
    });
}
