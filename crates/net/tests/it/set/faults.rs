//! What goes wrong, and what is said of it.

use std::io;
use std::time::Duration;

use anabranch_core::set::tcp_manager::{Ending, State};
use anabranch_core::set::{Failure, Outcome, RefuseReason, SetAckStatus};
use anabranch_core::time;
use anabranch_net::set::{GatewayEvent, Push};

use super::world::*;

#[test]
fn a_gateway_that_dies_costs_nothing_but_its_share() {
    on_one_thread(async {
        let gateways = [gateway(V4), gateway(V4), gateway(V4)];
        let node = node(V4, &gateways.each_ref());
        let file = contents(20_000_000);
        let mut killed = false;
        let (outcome, push) = run(Push::new(config(node.address), file.clone()), |push| {
            if !killed && push.delivered() > 2_000_000 {
                gateways[1].task.abort();
                killed = true;
            }
        })
        .await;
        assert!(killed, "it was too quick to be disturbed");
        assert_eq!(outcome, Outcome::Delivered);
        assert!(node.sink.look().octets == file);
        let states: Vec<_> = push.sessions().map(|session| session.state).collect();
        assert!(matches!(states[1], State::Closed(Ending::Stream(_))), "{states:?}");
    });
}

#[test]
fn a_node_that_dies_ends_the_transfer_with_an_error() {
    on_one_thread(async {
        let gateway = gateway(V4);
        let node = node(V4, &[&gateway]);
        let mut config = config(node.address);
        config.set.patience = time::Duration::from_millis(100);
        let (outcome, push) = run(Push::new(config, contents(50_000_000)), |push| {
            if push.delivered() > 1_000_000 {
                node.task.abort();
            }
        })
        .await;
        assert_eq!(outcome, Outcome::Failed(Failure::GatewaysLost));
        assert!(push.delivered() > 1_000_000 && push.delivered() < 50_000_000);
    });
}

#[test]
fn nobody_at_the_nodes_address() {
    on_one_thread(async {
        let mut config = config("127.0.0.1:1".parse().expect("an address"));
        config.set.request_tries = 2;
        config.set.patience = time::Duration::from_millis(50);
        let (outcome, push) = run(Push::new(config, contents(10)), |_| {}).await;
        assert_eq!(outcome, Outcome::Failed(Failure::NodeUnreachable));
        let error = push.errors().last().expect("the kernel has said why");
        assert_eq!(error.error.kind(), std::io::ErrorKind::ConnectionRefused);
        assert_eq!(error.peer.port(), 1);
    });
}

/// A gateway calls nobody whom no rule names, and its sender learns that.
#[test]
fn a_gateway_is_no_open_relay() {
    on_one_thread(async {
        let closed = gateway_with(V4, |_| {});
        let elsewhere =
            gateway_with(V4, |config| config.allow = vec!["127.0.0.1:1".parse().expect("a rule")]);
        for gateway in [&closed, &elsewhere] {
            let node = node(V4, &[gateway]);
            let (outcome, push) = run(Push::new(config(node.address), contents(2_000)), |_| {}).await;
            assert_eq!(outcome, Outcome::Failed(Failure::GatewaysLost));
            let states: Vec<_> = push.sessions().map(|session| session.state).collect();
            assert_eq!(states, [State::Closed(Ending::Refused(SetAckStatus::Forbidden))]);
            let kept = node.sink.look();
            assert!(kept.octets.is_empty() && kept.finished == 0);
        }
        for gateway in [closed, elsewhere] {
            until(|| !gateway.events.lock().expect("no thread panics").is_empty()).await;
            let events = gateway.events.lock().expect("nobody panics");
            let [GatewayEvent::Ended { counters, .. }] = &events[..] else { panic!("{events:?}") };
            assert_eq!((counters.forbidden, counters.opened), (1, 0));
        }
    });
}

#[test]
fn a_node_without_a_gateway_says_so() {
    on_one_thread(async {
        let node = node(V4, &[]);
        let (outcome, _) = run(Push::new(config(node.address), contents(2_000)), |_| {}).await;
        assert_eq!(outcome, Outcome::Failed(Failure::NoGateway));
        assert_eq!(node.sink.look().begun, 1, "it was let in");
    });
}

/// What the disk has not taken was not delivered, whatever had arrived.
#[test]
fn a_sink_that_fails_is_no_delivery() {
    on_one_thread(async {
        let gateway = gateway(V4);
        let node = node(V4, &[&gateway]);
        node.sink.look().fails_at = Some(99_999);
        let mut config = config(node.address);
        config.set.patience = time::Duration::from_millis(100);
        let (outcome, push) = run(Push::new(config, contents(100_000)), |_| {}).await;
        assert_eq!(
            outcome,
            Outcome::Failed(Failure::Refused(RefuseReason::NoRoom)),
            "the sender is told why"
        );
        assert!(push.delivered() < 100_000);
        let kept = node.sink.look();
        assert_eq!((kept.finished, kept.abandoned), (0, 1));
        assert!(node.told().iter().any(|event| event.starts_with("Failed")), "{:?}", node.told());
    });
}

/// All octets have arrived, and the end fails; the next sender in the queue is served after that.
#[test]
fn a_sink_that_fails_at_the_end_says_why_and_serves_the_next() {
    on_one_thread(async {
        let gateway = gateway(V4);
        let node = node(V4, &[&gateway]);
        for (end, reason) in [
            (io::ErrorKind::InvalidData, RefuseReason::Digest),
            (io::ErrorKind::QuotaExceeded, RefuseReason::NoRoom),
            (io::ErrorKind::Other, RefuseReason::Failed),
        ] {
            node.sink.look().end = Some(end);
            let (outcome, _) = run(Push::new(config(node.address), contents(100_000)), |_| {}).await;
            assert_eq!(outcome, Outcome::Failed(Failure::Refused(reason)));
            node.sink.look().end = None;
            let next = run(Push::new(config(node.address), contents(1_000)), |_| {});
            let (outcome, _) = tokio::time::timeout(Duration::from_secs(5), next).await.expect("at once");
            assert_eq!(outcome, Outcome::Delivered);
        }
    });
}

#[test]
fn a_push_that_is_given_up_frees_the_node_at_once() {
    on_one_thread(async {
        let gateway = gateway(V4);
        let node = node(V4, &[&gateway]);
        let mut push = Push::new(config(node.address), contents(100_000_000));
        while push.delivered() < 1_000_000 {
            assert_eq!(push.step().await, None);
        }
        push.cancel();
        push.close().await;
        assert_eq!(push.outcome(), Some(Outcome::Failed(Failure::Cancelled)));
        let next = run(Push::new(config(node.address), contents(1_000)), |_| {});
        let (outcome, _) = tokio::time::timeout(Duration::from_secs(5), next).await.expect("at once");
        assert_eq!(outcome, Outcome::Delivered, "the node is free");
        let kept = node.sink.look();
        assert_eq!((kept.begun, kept.finished, kept.abandoned), (2, 1, 1));
    });
}

/// Senders that connect and say nothing are reset, and those that are too many at once.
#[test]
fn silent_and_surplus_senders_are_reset() {
    use tokio::io::AsyncReadExt;
    on_one_thread(async {
        let gateway = gateway_with(V4, |config| {
            config.connections = 2;
            config.setsyn_timeout = time::Duration::from_millis(200);
        });
        let mut sockets = Vec::new();
        for _ in 0..3 {
            sockets.push(tokio::net::TcpStream::connect(gateway.address).await.expect("it listens"));
        }
        for socket in &mut sockets {
            let ended = tokio::time::timeout(Duration::from_secs(5), socket.read(&mut [0])).await;
            let error = ended.expect("within five seconds").expect_err("a reset");
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        }
        until(|| gateway.events.lock().expect("no thread panics").len() >= 3).await;
        let events = gateway.events.lock().expect("nobody panics");
        let full = events.iter().filter(|event| matches!(event, GatewayEvent::Full { .. })).count();
        assert_eq!((full, events.len()), (1, 3), "{events:?}");
    });
}

/// A sink may take longer than a connection may be idle.
#[test]
fn a_slow_sink_makes_the_sender_wait_and_no_more() {
    on_one_thread(async {
        let gateways = [gateway(V4), gateway(V4)];
        let node =
            node_with(V4, &gateways.each_ref(), |config| config.idle = time::Duration::from_millis(200));
        node.sink.look().pause = Duration::from_millis(700);
        let file = contents(20_000_000);
        let (outcome, push) = run(Push::new(config(node.address), file.clone()), |_| {}).await;
        assert_eq!(outcome, Outcome::Delivered, "{:?}", node.told());
        assert!(node.sink.look().octets == file);
        assert!(push.latency() > Some(time::Duration::from_millis(700)));
        let states: Vec<_> = push.sessions().map(|session| session.state).collect();
        let lost = |state: &State| matches!(state, State::Closed(Ending::Stream(_) | Ending::Silent));
        assert!(states.len() == 2 && !states.iter().any(lost), "{states:?}");
    });
}
