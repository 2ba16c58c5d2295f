//! Explicit congestion notification (RFC 3168 section 6.1): the agreement, and the marks that are
//! echoed to the peer.

use crate::segment::{Ecn, Flags, Segment};
use crate::tcp::config::EcnMode;

/// What the handshake has said, and what the peer is to hear.
#[derive(Clone, Copy, Debug)]
pub(super) struct Notification {
    mode: EcnMode,
    asked: Asked,
    /// Our data may be ECT.
    agreed: bool,
    /// The peer's data may be ECT, and its marks are echoed.
    echoes: bool,
    /// A mark has come and the peer has not said that it has slowed down.
    echo: bool,
    marks: u64,
}

/// What our SYNs have asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asked {
    /// No SYN has left.
    Nothing,
    /// The first one has, and asked for ECN.
    Ecn,
    /// One without ECN: no segment of ours may be ECT from then on (section 6.1.1).
    Plain,
}

impl Notification {
    pub(super) fn new(mode: EcnMode) -> Self {
        Self { mode, asked: Asked::Nothing, agreed: false, echoes: false, echo: false, marks: 0 }
    }

    /// Both ends speak it.
    pub(super) fn is_agreed(&self) -> bool {
        self.agreed
    }

    /// Data segments that came with a mark.
    pub(super) fn marks(&self) -> u64 {
        self.marks
    }

    /// The flags of a SYN. Something on the way may drop those that ask for ECN, so that only the
    /// first one does (section 6.1.1.1).
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

    /// The peer's SYN or SYN-ACK.
    pub(super) fn take_syn(&mut self, flags: Flags) {
        let answers = flags.contains(Flags::ACK);
        let offered = if answers {
            self.mode == EcnMode::Request && flags.contains(Flags::ECE) && !flags.contains(Flags::CWR)
        } else {
            self.mode != EcnMode::Off && flags.contains(SETUP)
        };
        self.agreed = offered && self.asked != Asked::Plain;
        // The peer may have heard the first SYN alone, and send ECT (section 6.1.1).
        self.echoes = offered;
    }

    /// The peer's SYN again: if it no longer asks, it will not use it.
    pub(super) fn take_syn_again(&mut self, flags: Flags) {
        self.agreed &= flags.contains(SETUP);
    }

    /// A segment has been accepted (section 6.1.3). One without data is never marked.
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

    /// ECE, as long as it is to be said.
    #[inline]
    pub(super) fn echo(&self) -> Flags {
        if self.echo { Flags::ECE } else { Flags::default() }
    }
}

/// The flags of a SYN that asks for ECN (section 6.1.1).
const SETUP: Flags = Flags::ECE.with(Flags::CWR);
