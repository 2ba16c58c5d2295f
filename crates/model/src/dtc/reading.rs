//! Selects the form of an equation where the paper contradicts itself: one choice per erratum.

/// The readings of section V-B b). [`Reading::default`] corrects both errata, [`Reading::computed`]
/// yields the numbers that the paper states, and [`Reading::printed`] is the equation as printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// Erratum D1.
    pub ack_term: AckTerm,
    /// Erratum D2.
    pub ack_loss: LinkAckLoss,
}

impl Reading {
    /// The form that the authors evaluated: the right sum with the loss of TCP acknowledgements.
    pub const fn computed() -> Self {
        Self { ack_term: AckTerm::Received, ack_loss: LinkAckLoss::Tcp }
    }

    /// The equation as printed.
    pub const fn printed() -> Self {
        Self { ack_term: AckTerm::Printed, ack_loss: LinkAckLoss::Tcp }
    }
}

/// D1: number of acknowledgements per segment and hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AckTerm {
    /// `(1 - p) / (1 - x)`: one for each segment that arrives.
    #[default]
    Received,
    /// `p / (1 - x)`: yields 643 where the paper itself states 5789.
    Printed,
}

/// D2: loss of acknowledgements between neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LinkAckLoss {
    /// p/4, as section V states for the link layer.
    #[default]
    Link,
    /// p/2, as section V states for TCP.
    Tcp,
}
