//! Tests of interrupted transfers that resume, and of busy nodes.

use std::time::Duration;

use anabranch_core::set::{Failure, FileIdentity, Outcome, RefuseReason};
use anabranch_core::time;
use anabranch_net::set::{Push, PushConfig};

use super::world::*;

/// A push that announces the identity of its file.
fn named(node: std::net::SocketAddr, digest: u8) -> PushConfig {
    let mut config = config(node);
    config.set.file = Some(FileIdentity { digest: [digest; 32], signature: None, discard: false });
    config
}

#[test]
fn a_push_that_was_cancelled_goes_on_where_it_was() {
    on_one_thread(async {
        let gateways = [gateway(V4), gateway(V4)];
        let node = node(V4, &gateways.each_ref());
        let file = contents(20_000_000);
        let config = named(node.address, 1);
        let mut push = Push::new(config.clone(), file.clone());
        while push.delivered() < 2_000_000 {
            assert_eq!(push.step().await, None);
        }
        push.cancel();
        push.close().await;
        let (outcome, push) = run(Push::new(config, file.clone()), |_| {}).await;
        assert_eq!(outcome, Outcome::Delivered);
        assert!(push.resumed_from() >= 2_000_000, "{}", push.resumed_from());
        let kept = node.sink.look();
        assert!(kept.octets == file);
        assert_eq!((kept.begun, kept.abandoned, kept.finished), (2, 1, 1));
    });
}

/// The connections are reset without a message, as when the process is killed.
#[test]
fn a_push_that_was_killed_joins_what_is_under_way() {
    on_one_thread(async {
        let gateways = [gateway(V4), gateway(V4)];
        let node = node(V4, &gateways.each_ref());
        let file = contents(20_000_000);
        let config = named(node.address, 1);
        let mut push = Push::new(config.clone(), file.clone());
        while push.delivered() < 2_000_000 {
            assert_eq!(push.step().await, None);
        }
        drop(push);
        let (outcome, push) = run(Push::new(config, file.clone()), |_| {}).await;
        assert_eq!(outcome, Outcome::Delivered);
        assert!(push.resumed_from() >= 2_000_000, "{}", push.resumed_from());
        let kept = node.sink.look();
        assert!(kept.octets == file);
        assert_eq!((kept.begun, kept.abandoned, kept.finished), (1, 0, 1));
    });
}

#[test]
fn a_sink_may_refuse() {
    on_one_thread(async {
        let gateway = gateway(V4);
        let node = node(V4, &[&gateway]);
        for (reason, failure) in [
            (RefuseReason::Unfinished, Failure::Unfinished(0)),
            (RefuseReason::Unwanted, Failure::Refused(RefuseReason::Unwanted)),
            (RefuseReason::TooLarge, Failure::Refused(RefuseReason::TooLarge)),
        ] {
            node.sink.look().refuses = Some(reason);
            let (outcome, _) = run(Push::new(named(node.address, 1), contents(10)), |_| {}).await;
            assert_eq!(outcome, Outcome::Failed(failure));
        }
        node.sink.look().refuses = None;
        let (outcome, _) = run(Push::new(named(node.address, 1), contents(10)), |_| {}).await;
        assert_eq!(outcome, Outcome::Delivered);
        assert!(node.told()[0].starts_with("Declined"), "{:?}", node.told());
    });
}

#[test]
fn a_push_to_a_busy_node_waits_for_its_turn() {
    on_one_thread(async {
        let gateway = gateway(V4);
        let node = node(V4, &[&gateway]);
        node.sink.look().pause = Duration::from_millis(500);
        let file = contents(5_000_000);
        let first = run(Push::new(named(node.address, 1), file.clone()), |_| {});
        let second = async {
            until(|| node.sink.look().begun == 1).await;
            let mut config = named(node.address, 2);
            let (outcome, _) = run(Push::new(config.clone(), contents(10)), |_| {}).await;
            assert_eq!(outcome, Outcome::Failed(Failure::Refused(RefuseReason::Busy)));
            config.set.busy_patience = time::Duration::from_secs(30);
            run(Push::new(config, contents(10)), |_| {}).await
        };
        let ((first, _), (second, _)) = tokio::join!(first, second);
        assert_eq!((first, second), (Outcome::Delivered, Outcome::Delivered));
        assert_eq!(node.sink.look().finished, 2);
        assert!(node.sink.look().octets == contents(10));
    });
}
