//! AODV messages: octets to meaning, and what was understood written and read again.

use std::mem;

use anabranch_wire::aodv::{self, Message, Parsed};

use crate::probe::Probe;

/// The first octet chooses a type, mostly a known one; the rest follows it.
pub(super) fn run(input: &[u8], probe: &mut Probe) {
    let Some((choice, rest)) = input.split_first() else { return };
    let mut octets = vec![choice % 6];
    octets.extend_from_slice(rest);
    let parsed = match aodv::parse(&octets) {
        Ok(parsed) => parsed,
        Err(error) => {
            probe.say(|| error);
            assert!(error.offset <= octets.len(), "{error} in {} octets", octets.len());
            return probe.feature((error.field, error.offset.min(64)));
        }
    };
    probe.say(|| format!("{parsed:?}"));
    probe.feature((mem::discriminant(&parsed.message), parsed.unknown_extensions.min(4)));
    match &parsed.message {
        Message::Request(request) => probe.feature(("sequence", request.destination_sequence.is_some())),
        Message::Reply(reply) => probe.feature(("hello", reply.hello_interval.is_some())),
        Message::Error(error) => probe.feature(("destinations", error.unreachable.len().min(16))),
        Message::ReplyAck => {}
    }
    let mut written = Vec::new();
    aodv::emit(&parsed.message, &mut written).unwrap_or_else(|error| panic!("{parsed:?}: {error}"));
    assert!(written.len() <= octets.len(), "{written:02x?}");
    assert_eq!(aodv::parse(&written), Ok(Parsed { unknown_extensions: 0, ..parsed }), "{written:02x?}");
}
