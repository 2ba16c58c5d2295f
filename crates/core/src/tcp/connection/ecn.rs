//! Explicit congestion notification (RFC 3168 section 6.1): the negotiation, and the marks echoed
//! to the peer.

use crate::segment::{Ecn, Flags, Segment};
use crate::tcp::config::EcnMode;

/// State of ECN.
#[derive(Clone, Copy, Debug)]
pub(super) struct Notification {
    mode: EcnMode,
    asked: Asked,
    /// Whether our data may be ECT.
    agreed: bool,
    /// Whether the peer's data may be ECT, so that its marks are echoed.
    echoes: bool,
    /// Whether a mark has arrived and the peer has not yet confirmed it with CWR.
    echo: bool,
    marks: u64,
}

/// What our SYNs have requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asked {
    /// No SYN was sent.
    Nothing,
    /// The first SYN was sent and requested ECN.
    Ecn,
    /// A SYN without ECN was sent: no later segment of ours may be ECT (section 6.1.1).
    Plain,
}

impl Notification {
    pub(super) fn new(mode: EcnMode) -> Self {
        Self { mode, asked: Asked::Nothing, agreed: false, echoes: false, echo: false, marks: 0 }
    }

    /// Whether both ends have agreed on ECN.
    pub(super) fn is_agreed(&self) -> bool {
        self.agreed
    }

    /// Number of data segments received with a mark.
    pub(super) fn marks(&self) -> u64 {
        self.marks
    }

    /// The flags of a SYN. Only the first SYN requests ECN, because a middlebox may drop such SYNs
    /// (section 6.1.1.1).
    pub(super) fn ask(&mut self) -> Flags {
        match (self.mode, self.asked) {
            (EcnMode::Request, Asked::Nothing) => {
                self.asked = Asked::Ecn;
                SETUP
            }
            (EcnMode::Off | EcnMode::Accept, _) | (_, Asked::Ecn | Asked::Plain) => {
                self.asked = Asked::Plain;
                Flags::default()
            }
        }
    }

    /// The flags of a SYN-ACK.
    pub(super) fn answer(&self) -> Flags {
        if self.agreed { Flags::ECE } else { Flags::default() }
    }

    /// Processes the peer's SYN or SYN-ACK.
    pub(super) fn take_syn(&mut self, flags: Flags) {
        let answers = flags.contains(Flags::ACK);
        let offered = if answers {
            self.mode == EcnMode::Request && flags.contains(Flags::ECE) && !flags.contains(Flags::CWR)
        } else {
            self.mode != EcnMode::Off && flags.contains(SETUP)
        };
        self.agreed = offered && self.asked != Asked::Plain;
        // The peer may have received only the first SYN, and may send ECT (section 6.1.1).
        self.echoes = offered;
    }

    /// Processes a repeated SYN of the peer: if it no longer requests ECN, the peer will not use
    /// it.
    pub(super) fn take_syn_again(&mut self, flags: Flags) {
        self.agreed &= flags.contains(SETUP);
    }

    /// Processes an accepted segment (section 6.1.3). A segment without data is never marked.
    #[inline]
    pub(super) fn receive(&mut self, segment: &Segment) {
        if !self.echoes || segment.payload.is_empty() {
            return;
        }
        if segment.flags.contains(Flags::CWR) {
            self.echo = false;
        }
        if segment.ecn == Ecn::Ce {
            self.echo = true;
            self.marks += 1;
        }
    }

    /// ECE, while it is to be sent.
    #[inline]
    pub(super) fn echo(&self) -> Flags {
        if self.echo { Flags::ECE } else { Flags::default() }
    }
}

/// The flags of a SYN that requests ECN (section 6.1.1).
const SETUP: Flags = Flags::ECE.with(Flags::CWR);
