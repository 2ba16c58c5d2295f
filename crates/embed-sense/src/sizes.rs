//! Memory of a sender: its state, and a heap that cannot run out.
//!
//! The queue and all buffers are allocated at the start. A record takes one block of the longest
//! record's size and one block for its reference count; the record that is being written has one
//! pair more than the queue. One block is for the copy of an answer of the sink. The blocks of a
//! kind are equal, so they cannot fragment.

use anabranch_core::rdca::{Sender, SenderConfig, SenderEvent, Seq};
use anabranch_embed_heap::{Blocks, lasting};
use anabranch_secure::datagram::{Initiator, OVERHEAD};

use crate::guard::Guard;
use crate::record::RECORD_HEADER;
use crate::sense::{EVENTS, MAX_ANSWER, SenseEvent};

/// Length of the longest header of a data packet in bytes.
const HEADER: usize = anabranch_wire::rdca::MAX_DATA_HEADER;

/// Length of a pre-shared key in bytes.
const KEY: usize = 32;

/// The memory bounds of one sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Limit of the payload of a record in bytes.
    pub payload: u16,
    /// Capacity of the queue in records.
    pub packets: u8,
}

impl Default for Sizes {
    /// 16 records of 100 bytes.
    fn default() -> Self {
        Self { payload: 100, packets: 16 }
    }
}

impl Sizes {
    /// True if a sender with these bounds is possible.
    pub fn are_possible(&self) -> bool {
        (1..=1024).contains(&self.payload) && (4..=64).contains(&self.packets)
    }

    /// Length of the longest record in bytes.
    fn record(&self) -> usize {
        RECORD_HEADER + usize::from(self.payload)
    }

    /// Length limit of a UDP datagram with one record, in bytes.
    pub fn datagram(&self) -> usize {
        self.record() + HEADER + OVERHEAD
    }

    /// Length of the longest UDP datagram that the sender sends, in bytes.
    pub fn longest(&self) -> usize {
        self.datagram().max(Initiator::<Guard>::LONGEST_HELLO)
    }

    /// Options of RDCA's sender.
    pub fn config(&self) -> SenderConfig {
        crate::sender_config(self.datagram() as u16, self.packets.into())
    }

    /// The blocks for records, answers and their reference counts.
    pub fn blocks(&self) -> [Blocks; 3] {
        let count = usize::from(self.packets) + 1;
        let (records, answer) = (Blocks::octets(self.record(), count), Blocks::octets(MAX_ANSWER, 1));
        let [first, second] =
            if records.octets <= answer.octets { [records, answer] } else { [answer, records] };
        [Blocks::references(count), first, second]
    }

    /// Heap bytes by purpose, in the order of docs/reference/embedded-sense.md.
    pub fn parts(&self) -> [(&'static str, usize); 5] {
        let packets = usize::from(self.packets);
        let events =
            lasting(EVENTS * size_of::<SenseEvent>()) + lasting(Sender::EVENTS * size_of::<SenderEvent>());
        let [message, plain] = [self.record() + HEADER, MAX_ANSWER].map(lasting);
        let [datagram, hello] = [self.longest(), Initiator::<Guard>::LONGEST_HELLO].map(lasting);
        [
            ("queue", lasting(packets * Sender::PER_PACKET) + lasting(packets * size_of::<Seq>())),
            ("records, and one more", self.blocks().into_iter().map(Blocks::heap).sum()),
            ("events", events),
            ("datagrams and messages", message + plain + datagram + hello),
            ("key", lasting(KEY)),
        ]
    }

    /// Heap bytes with which no call runs out of memory.
    pub fn heap(&self) -> usize {
        self.parts().iter().map(|(_, octets)| octets).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use anabranch_core::rdca::{Message, Range, StreamId};
    use anabranch_wire::rdca::{Ranges, Report, Snack, TimeStamp, encode};

    use super::*;
    use crate::sense::LONGEST_ANSWER;

    #[test]
    fn no_answer_of_a_sink_is_longer_than_its_limit() {
        let mut missing = Ranges::EMPTY;
        let apart = |n: u32| Seq(n * 1000);
        for n in 0..16 {
            missing.push(Range { start: apart(2 * n), end: apart(2 * n + 1) });
        }
        let report = Report {
            stream: StreamId(1),
            next: Seq(0),
            echo: TimeStamp(0),
            interval: 0,
            rtt: 0,
            share: 0,
            delayed: false,
            complete: false,
        };
        let mut octets = Vec::new();
        encode(&Message::Snack(Snack { report, missing }), &mut octets);
        assert_eq!((missing.as_slice().len(), octets.len()), (16, LONGEST_ANSWER));
    }
}
