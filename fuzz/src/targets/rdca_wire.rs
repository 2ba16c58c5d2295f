//! RDCA datagrams: a parsed datagram encodes to the same bytes.

use std::mem;

use anabranch_wire::rdca::{Message, decode, encode};
use bytes::Bytes;

use crate::probe::Probe;

pub(super) fn run(input: &[u8], probe: &mut Probe) {
    let datagram = Bytes::copy_from_slice(input);
    match decode(&datagram) {
        Ok(message) => {
            probe.say(|| format!("{message:?}"));
            let ranges = match &message {
                Message::Snack(snack) => snack.missing.as_slice().len(),
                Message::Gone(gone) => gone.ranges.as_slice().len(),
                _ => 0,
            };
            probe.feature((mem::discriminant(&message), ranges));
            let mut octets = Vec::new();
            encode(&message, &mut octets);
            assert_eq!(octets, input, "written otherwise than read");
        }
        Err(error) => {
            probe.say(|| error);
            assert!(error.offset <= input.len());
            probe.feature((error.field, error.offset));
        }
    }
}
