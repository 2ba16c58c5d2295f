//! Which form of an equation holds where the paper contradicts itself: one choice per erratum.

/// The readings of section V-B b). [`Reading::default`] corrects both; [`Reading::computed`] gives
/// the numbers that the paper states, [`Reading::printed`] what its page says to the letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// D1.
    pub ack_term: AckTerm,
    /// D2.
    pub ack_loss: LinkAckLoss,
}

impl Reading {
    /// What the authors have evaluated: the right sum, with the loss of TCP's acknowledgements.
    pub const fn computed() -> Self {
        Self { ack_term: AckTerm::Received, ack_loss: LinkAckLoss::Tcp }
    }

    /// The equation as it stands.
    pub const fn printed() -> Self {
        Self { ack_term: AckTerm::Printed, ack_loss: LinkAckLoss::Tcp }
    }
}

/// D1: the acknowledgements for one segment on one hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AckTerm {
    /// `(1 - p) / (1 - x)`: one for each segment that arrives.
    #[default]
    Received,
    /// `p / (1 - x)`: 643 where the paper itself states 5789.
    Printed,
}

/// D2: what is lost of the acknowledgements between neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LinkAckLoss {
    /// p/4, as section V says for the link layer's.
    #[default]
    Link,
    /// p/2, as section V says for TCP's.
    Tcp,
}
