//! Tests of failures and their reports.

use std::io::{self, Write};
use std::time::Duration;

use anabranch_core::set::tcp_manager::{Ending, State};
use anabranch_core::set::{Failure, FileIdentity, Outcome, Plan, RefuseReason, SetAckStatus, TransferId};
use anabranch_core::time;
use anabranch_net::set::{GatewayEvent, Push, PushConfig, PushFile};
use anabranch_wire::set::{Join, Message, SetSyn, encode};

use super::world::*;

#[test]
fn a_gateway_that_dies_costs_nothing_but_its_share() {
    on_one_thread(async {
        let gateways = [gateway(V4), gateway(V4), gateway(V4)];
        let node = node(V4, &gateways.each_ref());
        let file = contents(6_000_000);
        // The kernel would hold 60 MB: on a busy machine everything may be in flight before
        // anything is reported.
        let mut config = config(node.address);
        config.rate = Some(24_000_000);
        let mut killed_at = None;
        let (outcome, push) = run(Push::new(config, file.clone()), |push| {
            let carries = push.sessions().nth(1).is_some_and(|it| it.delivered > 0 && it.outstanding > 0);
            if killed_at.is_none() && carries {
                gateways[1].task.abort();
                killed_at = Some(push.delivered());
            }
        })
        .await;
        assert!(killed_at.is_some_and(|octets| octets < 3_000_000), "it was too quick: {killed_at:?}");
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

/// A gateway refuses destinations that no rule permits, and tells its sender.
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
            let events = gateway.events.lock().expect("no panic");
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

/// Bytes that the disk has not accepted do not count as delivered, even if they arrived.
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

/// All bytes arrive, and finishing fails; the next sender in the queue is served after that.
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

/// A push that ends with `failure` and is not retried, followed by another one of `octets` bytes to
/// the same node.
async fn failed_and_next(
    config: PushConfig,
    file: impl Into<PushFile>,
    failure: Failure,
    look: impl FnMut(&Push),
    next: PushConfig,
) -> Outcome {
    let mut push = Push::new(config, file);
    let mut look = look;
    let outcome = loop {
        if let Some(outcome) = push.step().await {
            break outcome;
        }
        look(&push);
    };
    assert_eq!(outcome, Outcome::Failed(failure));
    push.cancel();
    let began = tokio::time::Instant::now();
    push.close().await;
    assert!(began.elapsed() < Duration::from_millis(1_500), "it waited for nothing");
    assert_eq!(push.outcome(), Some(Outcome::Failed(failure)));
    let next = run(Push::new(next, contents(1_000)), |_| {});
    tokio::time::timeout(Duration::from_secs(5), next).await.expect("at once").0
}

/// With keys, as in all tests here: closing needs a handshake of its own.
#[test]
fn a_push_that_fails_by_itself_frees_the_node_at_once() {
    on_one_thread(async {
        // The node announces no gateway.
        let gateway = gateway(V4);
        let bare = node(V4, &[]);
        let mut via = config(bare.address);
        via.via = vec![gateway.known()];
        let first = config(bare.address);
        let outcome = failed_and_next(first, contents(10_000), Failure::NoGateway, |_| {}, via).await;
        assert_eq!(outcome, Outcome::Delivered, "{:?}", bare.told());
        {
            let kept = bare.sink.look();
            assert_eq!((kept.begun, kept.finished, kept.abandoned), (2, 1, 1));
        }
        // All of its gateways are lost.
        let [lost, left] = [super::world::gateway(V4), gateway];
        let node = node(V4, &[&lost]);
        let mut first = config(node.address);
        first.set.patience = time::Duration::from_millis(100);
        let mut via = config(node.address);
        via.via = vec![left.known()];
        let look = |push: &Push| {
            if push.delivered() > 1_000_000 {
                lost.task.abort();
            }
        };
        let file = contents(50_000_000);
        let outcome = failed_and_next(first, file, Failure::GatewaysLost, look, via).await;
        assert_eq!(outcome, Outcome::Delivered, "{:?}", node.told());
        let kept = node.sink.look();
        assert_eq!((kept.begun, kept.finished, kept.abandoned), (2, 1, 1));
    });
}

/// The unreadable chunk has begun on its session, so any further bytes would be taken for the file.
#[test]
fn a_file_that_cannot_be_read_to_its_end_frees_the_node_and_changes_nothing_there() {
    for gateways in [1, 3] {
        on_one_thread(async {
            let gateways: Vec<_> = (0..gateways).map(|_| gateway(V4)).collect();
            let node = node(V4, &gateways.iter().collect::<Vec<_>>());
            let file = contents(3_000_000);
            let mut on_disk = tempfile::tempfile().expect("a temporary folder");
            on_disk.write_all(&file[..2_000_000]).expect("there is room");
            let config = |digest| {
                let mut config = config(node.address);
                config.set.file =
                    Some(FileIdentity { digest: [digest; 32], signature: None, discard: false });
                config
            };
            let same = config(1);
            let on_disk = PushFile::OnDisk(on_disk, 3_000_000);
            let failure = Failure::Cancelled;
            let outcome = failed_and_next(same.clone(), on_disk, failure, |_| {}, config(2)).await;
            assert_eq!(outcome, Outcome::Delivered, "{:?}", node.told());
            {
                let kept = node.sink.look();
                assert!(kept.octets == contents(1_000));
                assert_eq!((kept.begun, kept.finished, kept.abandoned), (2, 1, 1));
            }
            // The bytes received so far belong to the file.
            let on_disk = tempfile::tempfile().expect("a temporary folder");
            (&on_disk).write_all(&file[..2_000_000]).expect("there is room");
            let mut push = Push::new(same.clone(), PushFile::OnDisk(on_disk, 3_000_000));
            while push.step().await.is_none() {}
            push.close().await;
            assert!(push.unread().is_some());
            until(|| node.sink.look().abandoned == 2).await;
            let kept = node.sink.look();
            assert!(kept.octets[..] == file[..kept.octets.len()], "{} bytes", kept.octets.len());
        });
    }
}

/// A session whose node is unreachable ends when its sender disconnects.
#[test]
fn a_session_whose_node_is_gone_ends_as_unreachable_and_with_its_sender() {
    on_one_thread(async {
        let gateway = gateway(V4);
        let node = node(V4, &[&gateway]);
        let mut config = config(node.address);
        config.set.patience = time::Duration::from_millis(100);
        let (outcome, _) = run(Push::new(config, contents(50_000_000)), |push| {
            if push.delivered() > 1_000_000 {
                node.task.abort();
            }
        })
        .await;
        assert_eq!(outcome, Outcome::Failed(Failure::GatewaysLost));
        let all_over = || gateway.events.lock().expect("no panic").len() >= 3;
        tokio::time::timeout(Duration::from_secs(5), until(all_over)).await.expect("it lingers");
        let events = gateway.events.lock().expect("no panic");
        let unreachable = events.iter().filter(|event| match event {
            GatewayEvent::Ended { counters, .. } => counters.unreachable == 1 && counters.rejected == 0,
            _ => false,
        });
        assert_eq!(unreachable.count(), events.len() - 1, "{events:?}");
    });
}

/// A sender that fills its window while its gateway still dials the node, and disconnects.
#[test]
fn a_sender_that_hangs_up_while_the_node_is_called_keeps_no_session() {
    use tokio::io::AsyncWriteExt;
    on_one_thread(async {
        // A listener with a full queue: further connections get no answer.
        let deaf = tokio::net::TcpSocket::new_v4().expect("a socket");
        deaf.bind((V4, 0).into()).expect("a port");
        let deaf = deaf.listen(0).expect("it is bound");
        let destination = deaf.local_addr().expect("it is bound");
        let _full: Vec<_> = (0..4)
            .map(|_| tokio::spawn(async move { tokio::net::TcpStream::connect(destination).await }))
            .collect();
        tokio::time::sleep(Duration::from_millis(100)).await;
        let gateway = gateway_with(V4, |config| {
            config.door = None;
            config.allow = vec!["127.0.0.0/8:1-65535".parse().expect("a rule")];
        });
        let join = Join { transfer: TransferId(1), session: 0, sessions: 1, plan: Plan::Stripe };
        let mut octets = Vec::new();
        encode(&Message::SetSyn(SetSyn { join, destination }), &mut octets);
        octets.resize(octets.len() + 100_000, 0x70);
        let mut sender = tokio::net::TcpStream::connect(gateway.address).await.expect("it listens");
        let _ = tokio::time::timeout(Duration::from_millis(300), sender.write_all(&octets)).await;
        assert!(gateway.events.lock().expect("no panic").is_empty());
        sender.set_zero_linger().expect("a socket");
        drop(sender);
        let is_over = || !gateway.events.lock().expect("no panic").is_empty();
        tokio::time::timeout(Duration::from_secs(4), until(is_over)).await.expect("it lingers");
    });
}

/// Silent senders are reset, and so are senders above the limit.
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
        let events = gateway.events.lock().expect("no panic");
        let full = events.iter().filter(|event| matches!(event, GatewayEvent::Full { .. })).count();
        assert_eq!((full, events.len()), (1, 3), "{events:?}");
    });
}

/// A sink may take longer than the idle timeout of a connection.
#[test]
fn a_slow_sink_makes_the_sender_wait_and_no_more() {
    on_one_thread(async {
        let gateways = [gateway(V4), gateway(V4)];
        let node = node_with(V4, &gateways.each_ref(), |config| config.idle = time::Duration::from_secs(2));
        // Longer than a node waits for a silent sender; on a busy machine any sender may be that
        // slow.
        node.sink.look().pause = Duration::from_secs(5);
        let file = contents(20_000_000);
        let (outcome, push) = run(Push::new(config(node.address), file.clone()), |_| {}).await;
        assert_eq!(outcome, Outcome::Delivered, "{:?}", node.told());
        assert!(node.sink.look().octets == file);
        assert!(push.latency() > Some(time::Duration::from_secs(5)));
        let states: Vec<_> = push.sessions().map(|session| session.state).collect();
        let lost = |state: &State| matches!(state, State::Closed(Ending::Stream(_) | Ending::Silent));
        assert!(states.len() == 2 && !states.iter().any(lost), "{states:?}");
    });
}
