//! Tests of successful transfers.

use std::io::Write;
use std::net::IpAddr;

use anabranch_core::set::{Failure, Outcome};
use anabranch_net::set::{Push, PushFile};

use super::world::*;

/// Transfers a file through `gateways` gateways. Returns the bytes given to each session.
async fn deliver(ip: IpAddr, octets: usize, gateways: usize) -> Vec<u64> {
    let gateways: Vec<Running> = (0..gateways).map(|_| gateway(ip)).collect();
    let node = node(ip, &gateways.iter().collect::<Vec<_>>());
    let file = contents(octets);
    let (outcome, push) = run(Push::new(config(node.address), file.clone()), |_| {}).await;
    assert_eq!(outcome, Outcome::Delivered, "{octets} octets: {:?} {:?}", push.errors(), node.told());
    let kept = node.sink.look();
    assert!(kept.octets == file, "{octets} octets are not those");
    assert_eq!((kept.begun, kept.finished, kept.abandoned), (1, 1, 0));
    assert_eq!(push.delivered(), octets as u64);
    assert!(push.latency().is_some() && (octets == 0 || push.establishment() <= push.latency()));
    push.sessions().map(|session| session.written).collect()
}

#[test]
fn any_file_arrives_over_ipv4_and_ipv6() {
    on_one_thread(async {
        for ip in [V4, V6] {
            for octets in [0, 1, 1_000, 100_000] {
                deliver(ip, octets, 1).await;
            }
        }
    });
}

#[test]
fn a_small_file_opens_no_session() {
    on_one_thread(async {
        for ip in [V4, V6] {
            for octets in [1, 128, 129, 1_000, 1_200] {
                assert_eq!(deliver(ip, octets, 3).await, [0; 0], "{octets} octets");
            }
            assert!(!deliver(ip, 1_201, 3).await.is_empty());
        }
    });
}

/// A small file reaches its node without a gateway in the table, and with gateways that relay
/// nowhere.
#[test]
fn a_small_file_needs_no_gateway() {
    on_one_thread(async {
        let closed = gateway_with(V4, |_| {});
        for gateways in [&[][..], &[&closed]] {
            let node = node(V4, gateways);
            let (outcome, push) = run(Push::new(config(node.address), contents(1_000)), |_| {}).await;
            assert_eq!((outcome, push.sessions().count()), (Outcome::Delivered, 0));
            assert!(node.sink.look().octets == contents(1_000));
        }
        assert!(closed.events.lock().expect("no thread panics").is_empty());
    });
}

#[test]
fn three_gateways_carry_ten_megabytes() {
    on_one_thread(async {
        for ip in [V4, V6] {
            let shares = deliver(ip, 10_000_000, 3).await;
            assert!(shares.len() == 3 && shares.iter().all(|octets| *octets > 100_000), "{shares:?}");
        }
    });
}

#[test]
fn one_file_after_the_other() {
    on_one_thread(async {
        let gateway = gateway(V4);
        let node = node(V4, &[&gateway]);
        for octets in [70_000, 0, 30] {
            let file = contents(octets);
            let (outcome, _) = run(Push::new(config(node.address), file.clone()), |_| {}).await;
            assert_eq!(outcome, Outcome::Delivered);
            assert!(node.sink.look().octets == file);
        }
        assert_eq!(node.sink.look().finished, 3);
    });
}

/// A node with a buffer of 2 kB, whose window limits the rate.
#[test]
fn a_small_node_is_not_overrun() {
    on_one_thread(async {
        let gateways = [gateway(V4), gateway(V4)];
        let node = node_with(V4, &gateways.each_ref(), |config| config.buffer = 2_000);
        let file = contents(60_000);
        let (outcome, _) = run(Push::new(config(node.address), file.clone()), |_| {}).await;
        assert_eq!(outcome, Outcome::Delivered);
        assert!(node.sink.look().octets == file);
    });
}

#[test]
fn named_gateways_replace_the_table() {
    on_one_thread(async {
        let (named, announced) = (gateway(V4), gateway(V4));
        let node = node(V4, &[&announced]);
        let mut config = config(node.address);
        config.via = vec![named.known()];
        let (outcome, push) = run(Push::new(config, contents(5_000)), |_| {}).await;
        assert_eq!(outcome, Outcome::Delivered);
        let through: Vec<_> = push.sessions().map(|session| session.address).collect();
        assert_eq!(through, [named.address]);
    });
}

#[test]
fn a_file_on_the_disk_is_read_when_it_is_sent() {
    on_one_thread(async {
        let gateways = [gateway(V4), gateway(V4)];
        let node = node(V4, &gateways.each_ref());
        let octets = contents(3_000_000);
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(&octets).expect("room for it");
        let again = || PushFile::OnDisk(file.try_clone().expect("a descriptor"), octets.len() as u64);
        let (outcome, push) = run(Push::new(config(node.address), again()), |_| {}).await;
        assert_eq!((outcome, push.unread().is_none()), (Outcome::Delivered, true));
        assert!(node.sink.look().octets == octets);
        // The file is truncated while it is sent.
        file.set_len(1_000_000).expect("it is ours");
        let (outcome, push) = run(Push::new(config(node.address), again()), |_| {}).await;
        assert_eq!(outcome, Outcome::Failed(Failure::Cancelled));
        let error = push.unread().expect("it cannot be read to its end");
        assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
        assert_eq!(node.sink.look().finished, 1);
    });
}
