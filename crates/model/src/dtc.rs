//! Number of transmissions in a chain of nodes that cache TCP segments: the bounds of section V-B
//! of "Distributed TCP Caching for Wireless Sensor Networks" (Dunkels, Alonso, Voigt, Ritter), and
//! the cost of a chain without caches.
//!
//! A [`Chain`] has a length, a number of segments, and a loss rate per hop. The functions are:
//!
//! * [`omniscient`]: one additional transmission per loss and no other overhead. No scheme that
//!   sends each segment over each hop needs fewer.
//! * [`hop_by_hop`]: each hop repeats until it is acknowledged; data and acknowledgements.
//! * [`end_to_end`]: only the sender repeats, and it knows immediately what was lost. Also the cost
//!   of the first copy of each segment, the only number of plain TCP that can be compared per hop.
//!
//! Where the paper contradicts itself, [`Reading`] selects the form; the errata numbers (D1, D2,
//! D3) are those of the project's errata page. Not modelled: timeouts, windows, and end-to-end
//! acknowledgements.

mod error;
mod reading;

pub use error::ModelError;
pub use reading::{AckTerm, LinkAckLoss, Reading};

#[cfg(test)]
mod tests;

/// A chain and its traffic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chain {
    /// n: number of hops; at least 1.
    pub hops: u32,
    /// Number of segments; 500 in the paper.
    pub segments: u32,
    /// p: probability that a data segment is lost on one hop; from 0 up to, not including, 1.
    pub loss: f64,
}

/// Expected number of transmissions, summed over all hops.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transmissions {
    /// Data segments.
    pub data: f64,
    /// Acknowledgements between neighbours.
    pub acks: f64,
}

impl Chain {
    /// A chain with the paper's 500 segments.
    pub const fn new(hops: u32, loss: f64) -> Self {
        Self { hops, segments: 500, loss }
    }

    /// p/2: loss of TCP acknowledgements, which are shorter than data (section V).
    pub fn ack_loss(&self) -> f64 {
        self.loss / 2.0
    }

    /// p/4: loss of link-layer acknowledgements, which are shorter still (section V).
    pub fn link_ack_loss(&self) -> f64 {
        self.loss / 4.0
    }

    fn check(&self) -> Result<(), ModelError> {
        if self.hops == 0 {
            return Err(ModelError::NoHops);
        }
        // At 1 nothing ever arrives, and the sums below diverge.
        if self.loss.is_nan() || !(0.0..1.0).contains(&self.loss) {
            return Err(ModelError::Loss { value: self.loss });
        }
        Ok(())
    }

    /// One transmission of each segment on each hop.
    fn crossings(&self) -> f64 {
        f64::from(self.segments) * f64::from(self.hops)
    }
}

/// `500 n / (1 - p)`, section V-B a): data transmissions with perfect knowledge of the losses.
///
/// # Errors
/// The chain has no hops, or the loss is outside 0 to 1.
pub fn omniscient(chain: &Chain) -> Result<f64, ModelError> {
    chain.check()?;
    Ok(chain.crossings() / (1.0 - chain.loss))
}

/// Section V-B b): each hop repeats a segment until the next node's acknowledgement arrives. With
/// `x = p + (1 - p) q`, a segment takes `1 / (1 - x)` transmissions of data and `(1 - p) / (1 - x)`
/// of acknowledgements on each hop. The paper prints `p` as the numerator for acknowledgements
/// (D1), and takes q from TCP's acknowledgements although it means the link's (D2).
///
/// # Errors
/// The chain has no hops, or the loss is outside 0 to 1.
pub fn hop_by_hop(chain: &Chain, reading: Reading) -> Result<Transmissions, ModelError> {
    chain.check()?;
    let q = match reading.ack_loss {
        LinkAckLoss::Link => chain.link_ack_loss(),
        LinkAckLoss::Tcp => chain.ack_loss(),
    };
    let repeat = chain.loss + (1.0 - chain.loss) * q;
    let data = chain.crossings() / (1.0 - repeat);
    let per_data = match reading.ack_term {
        AckTerm::Received => 1.0 - chain.loss,
        AckTerm::Printed => chain.loss,
    };
    Ok(Transmissions { data, acks: data * per_data })
}

/// Lower bounds of the cost of end-to-end repetition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EndToEnd {
    /// Expected data transmissions until every segment has arrived.
    pub data: f64,
    /// Expected number of retransmissions by the sender: `500 (1 / (1 - p)^n - 1)`. Plain TCP needs
    /// at least as many, so the "end-to-end retransmissions" of the tables can only count timeouts
    /// (D6).
    pub resends: f64,
    /// Expected data transmissions of one copy of each segment, including copies lost on the way:
    /// `500 sum (1 - p)^k` for k below n.
    pub first_copies: f64,
}

/// Forwarding without caches, where the sender repeats exactly what was lost: a lower bound for
/// plain TCP, which also repeats segments that have arrived.
///
/// # Errors
/// The chain has no hops, or the loss is outside 0 to 1.
pub fn end_to_end(chain: &Chain) -> Result<EndToEnd, ModelError> {
    chain.check()?;
    let segments = f64::from(chain.segments);
    let arrives = 1.0 - chain.loss;
    let through = arrives.powf(f64::from(chain.hops));
    let hops = if chain.loss == 0.0 { f64::from(chain.hops) } else { (1.0 - through) / chain.loss };
    let copies = segments / through;
    let first_copies = segments * hops;
    Ok(EndToEnd { data: copies * hops, resends: copies - segments, first_copies })
}
