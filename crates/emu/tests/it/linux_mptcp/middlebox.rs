//! A middlebox in the path: it removes options, or changes payload.

use anabranch_core::segment::{Flags, Mptcp, MptcpOption, Segment};
use bytes::Bytes;

/// What the middlebox does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meddling {
    Nothing,
    /// Removes the options of SYNs.
    StripSyn,
    /// Removes the options of SYN-ACKs.
    StripSynAck,
    /// Removes the options of the first two segments with MP_CAPABLE and without SYN.
    StripThird,
    /// Removes the options of segments with data, so that only the handshake and acknowledgements
    /// have them.
    StripData,
    /// Removes the options of everything but SYNs and SYN-ACKs.
    StripAll,
    /// Removes the options of SYNs on all but the first path.
    StripJoin,
    /// Drops SYNs with MP_CAPABLE.
    DropCapable,
    /// Changes a byte from the kernel, or from us, once.
    Corrupt(Way),
}

/// Direction of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    ToUs,
    FromUs,
}

/// The middlebox of all paths.
#[derive(Debug)]
pub(crate) struct Middlebox {
    meddling: Meddling,
    /// Number of payload bytes to let pass before one is changed.
    spared: usize,
    pub(crate) changed: u64,
}

impl Middlebox {
    pub(crate) fn new(meddling: Meddling, spared: usize) -> Self {
        Self { meddling, spared, changed: 0 }
    }

    /// Passes a segment on, perhaps changed; false drops it. `first` is true on the first path.
    pub(crate) fn handle(&mut self, way: Way, first: bool, segment: &mut Segment) -> bool {
        let [syn, ack] = [Flags::SYN, Flags::ACK].map(|flag| segment.flags.contains(flag));
        let capable = segment.mptcp.options().iter().any(|o| matches!(o, MptcpOption::MpCapable(_)));
        let strip = match self.meddling {
            Meddling::Nothing => false,
            Meddling::StripSyn => syn && !ack,
            Meddling::StripSynAck => syn && ack,
            Meddling::StripThird => !syn && capable && self.changed < 2,
            Meddling::StripData => !segment.payload.is_empty(),
            Meddling::StripAll => !syn,
            Meddling::StripJoin => syn && !first,
            Meddling::DropCapable => {
                let drop = syn && !ack && capable;
                self.changed += u64::from(drop);
                return !drop;
            }
            Meddling::Corrupt(of) => {
                if of == way && self.changed == 0 && first && !segment.payload.is_empty() {
                    self.corrupt(segment);
                }
                false
            }
        };
        if strip && !segment.mptcp.is_empty() {
            segment.mptcp = Mptcp::NONE;
            self.changed += 1;
        }
        true
    }

    fn corrupt(&mut self, segment: &mut Segment) {
        if self.spared > segment.payload.len() {
            self.spared -= segment.payload.len();
            return;
        }
        let mut octets = segment.payload.to_vec();
        *octets.last_mut().expect("it is not empty") ^= 0x55;
        segment.payload = Bytes::from(octets);
        self.changed = 1;
    }
}
