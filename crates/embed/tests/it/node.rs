//! A node's answers to what it does not want.

use anabranch_core::set::{Effect, StreamId};
use anabranch_core::time::{Duration, Instant};
use anabranch_node::node::{Config, Error, Node};
use anabranch_node::sizes::Sizes;

const NOW: Instant = Instant::ZERO;
/// A transfer of 64 octets, and two sessions of it.
const REQUEST: &[u8] = &[0x10, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0x40, 64];
const JOIN: &[u8] = &[0x50, 0, 0, 0, 0, 0, 0, 0, 7, 0, 2];

fn node(pieces: u16) -> Node {
    let sizes = Sizes { pieces, connections: 3, gateways: 0, ..Sizes::default() };
    Node::new(Config { sizes, idle: Duration::from_secs(60), gateways: &[] }).expect("these are possible")
}

/// What a node wants.
fn effects(node: &mut Node) -> Vec<Effect> {
    std::iter::from_fn(|| node.poll()).collect()
}

fn connect(node: &mut Node, says: &[u8]) -> StreamId {
    let stream = node.accepted(NOW).expect("there is a place");
    effects(node);
    assert_eq!(node.data(NOW, stream, says), Ok(says.len()));
    effects(node);
    stream
}

#[test]
fn a_piece_too_many_resets_its_session_and_no_other() {
    let mut node = node(4);
    connect(&mut node, REQUEST);
    let (poor, good) = (connect(&mut node, JOIN), connect(&mut node, JOIN));
    for at in [10, 20, 30, 40, 50] {
        assert_eq!(node.data(NOW, poor, &[0x71, at, 1, 0xee]), Ok(4));
        let reset = effects(&mut node).contains(&Effect::Abort { stream: poor });
        assert_eq!(reset, at == 50, "four may wait");
    }
    assert_eq!(node.counters().rejected, 1);
    assert_eq!(node.data(NOW, poor, &[0]), Err(Error::Stream));

    let chunk = [&[0x71, 0, 0x40, 64][..], &[0x55; 64]].concat();
    assert_eq!(node.data(NOW, good, &chunk), Ok(chunk.len()));
    assert!(!node.is_complete(), "its octets have not been polled");
    let octets = effects(&mut node).into_iter().filter_map(|effect| match effect {
        Effect::Deliver { octets } => Some(octets),
        _ => None,
    });
    let file: Vec<u8> = octets.flatten().collect();
    assert_eq!((file.len(), file[10], file[50]), (64, 0xee, 0x55), "what came first is kept");
    assert!(node.is_complete());
}

#[test]
fn connections_too_many_are_refused_and_counted() {
    let mut node = node(4);
    let first = connect(&mut node, REQUEST);
    connect(&mut node, JOIN);
    connect(&mut node, &[]);
    assert_eq!(node.accepted(NOW), Err(Error::Full));
    assert_eq!(node.counters().refused, 1);
    assert_eq!(node.closed(NOW, first), Ok(()));
    assert_eq!(node.accepted(NOW), Err(Error::Poll), "what closing meant has not been polled");
    effects(&mut node);
    assert!(node.accepted(NOW).is_ok());
}

#[test]
fn sizes_that_cannot_be_make_no_node() {
    let possible = Sizes::default();
    for sizes in [
        Sizes { buffer: 100, ..possible },
        Sizes { pieces: 0, ..possible },
        Sizes { read: 1, ..possible },
        Sizes { connections: 9, ..possible },
        Sizes { gateways: 1, ..possible },
    ] {
        assert!(Node::new(Config { sizes, idle: Duration::ZERO, gateways: &[] }).is_none(), "{sizes:?}");
    }
}
