//! SET messages: a stream cut anywhere parses to the same messages, and parsed messages can be
//! encoded and parsed again.

use std::mem::{self, Discriminant};

use anabranch_wire::set::{self, DecodeError, Decoder, Item, Message};
use bytes::Bytes;

use crate::probe::Probe;

/// The first byte is the size of the pieces in which the rest arrives.
pub(super) fn run(input: &[u8], probe: &mut Probe) {
    let Some((piece, stream)) = input.split_first() else { return };
    let at_once = read(stream, stream.len().max(1));
    let in_pieces = read(stream, 1 + usize::from(*piece % 32));
    assert_eq!(joined(&at_once.0), joined(&in_pieces.0), "the pieces make a difference");
    assert_eq!(at_once.1, in_pieces.1, "the pieces make a difference to the error");
    for item in &at_once.0 {
        probe.say(|| format!("{item:?}"));
        probe.feature(kind(item));
        if let Item::Message(message) = item {
            let mut octets = Vec::new();
            set::encode(message, &mut octets);
            assert_eq!(read(&octets, octets.len()), (vec![item.clone()], None), "written as {octets:02x?}");
        }
    }
    if let Some(error) = at_once.1 {
        probe.say(|| error);
        assert!(error.offset <= stream.len() as u64);
        probe.feature(error.field);
    }
}

fn read(stream: &[u8], piece: usize) -> (Vec<Item>, Option<DecodeError>) {
    let mut decoder = Decoder::new();
    let mut items = Vec::new();
    for octets in stream.chunks(piece) {
        decoder.push(Bytes::copy_from_slice(octets));
        loop {
            match decoder.next_item() {
                Ok(Some(item)) => items.push(item),
                Ok(None) => break,
                Err(error) => return (items, Some(error)),
            }
        }
    }
    (items, None)
}

/// Joins consecutive pieces of data.
fn joined(items: &[Item]) -> Vec<Item> {
    let mut joined: Vec<Item> = Vec::new();
    for item in items {
        match (joined.last_mut(), item) {
            (Some(Item::Data { offset, octets }), Item::Data { offset: next, octets: more })
                if *offset + octets.len() as u64 == *next =>
            {
                *octets = [&octets[..], more].concat().into();
            }
            _ => joined.push(item.clone()),
        }
    }
    joined
}

/// Kind of message, and its number of rows or ranges.
fn kind(item: &Item) -> (Option<Discriminant<Message>>, usize) {
    match item {
        Item::Data { octets, .. } => (None, octets.len().min(20)),
        Item::LongManifest(_) => unreachable!("this decoder has room for every manifest"),
        Item::Message(message) => {
            let rows = match message {
                Message::Accept(accept) => accept.gateways.len(),
                Message::Ack(ack) => ack.held.len(),
                _ => 0,
            };
            (Some(mem::discriminant(message)), rows)
        }
    }
}
