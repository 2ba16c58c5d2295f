//! Transmissions of a chain that caches TCP segments: the bounds of section V-B of "Distributed TCP
//! Caching for Wireless Sensor Networks" (Dunkels, Alonso, Voigt, Ritter), and what a chain without
//! caches costs.
//!
//! A [`Chain`] says how long it is, what it has to carry and how much of it is lost on each hop.
//! Then:
//!
//! * [`omniscient`]: one further transmission for each loss and none for anything else. No scheme
//!   that sends each segment over each hop does with less.
//! * [`hop_by_hop`]: each hop repeats until it is acknowledged; data and acknowledgements.
//! * [`end_to_end`]: nothing is repeated but by the sender, which knows at once what was lost; also
//!   what the first copy of each segment costs, which is all that plain TCP can be compared with
//!   hop by hop.
//!
//! Where the paper contradicts itself [`Reading`] chooses; the errata numbers (D1, D2, D3) are
//! those of the project's errata page. Not modelled: time-outs, windows, and acknowledgements that
//! go end to end.

mod error;
mod reading;

pub use error::ModelError;
pub use reading::{AckTerm, LinkAckLoss, Reading};

#[cfg(test)]
mod tests;

/// What is carried, and over what.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chain {
    /// n, hops; at least 1.
    pub hops: u32,
    /// Segments to carry; 500 in the paper.
    pub segments: u32,
    /// p, the chance that a data segment is lost on one hop; 0 up to, not including, 1.
    pub loss: f64,
}

/// Expected transmissions in all hops together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transmissions {
    /// Of data segments.
    pub data: f64,
    /// Of acknowledgements between neighbours.
    pub acks: f64,
}

impl Chain {
    /// The paper's: 500 segments.
    pub const fn new(hops: u32, loss: f64) -> Self {
        Self { hops, segments: 500, loss }
    }

    /// p/2: TCP acknowledgements are shorter than data (section V).
    pub fn ack_loss(&self) -> f64 {
        self.loss / 2.0
    }

    /// p/4: acknowledgements of the link are shorter still (section V).
    pub fn link_ack_loss(&self) -> f64 {
        self.loss / 4.0
    }

    fn check(&self) -> Result<(), ModelError> {
        if self.hops == 0 {
            return Err(ModelError::NoHops);
        }
        // At 1 nothing ever arrives, and the sums below have no end.
        if self.loss.is_nan() || !(0.0..1.0).contains(&self.loss) {
            return Err(ModelError::Loss { value: self.loss });
        }
        Ok(())
    }

    /// One transmission of each segment over each hop.
    fn crossings(&self) -> f64 {
        f64::from(self.segments) * f64::from(self.hops)
    }
}

/// `500 n / (1 - p)`, section V-B a): data transmissions with perfect knowledge of the losses.
///
/// # Errors
/// A chain without hops, a loss outside 0 to 1.
pub fn omniscient(chain: &Chain) -> Result<f64, ModelError> {
    chain.check()?;
    Ok(chain.crossings() / (1.0 - chain.loss))
}

/// Section V-B b): each hop repeats a segment until the next node's acknowledgement arrives. With
/// `x = p + (1 - p) q` a segment takes `1 / (1 - x)` transmissions of data and `(1 - p) / (1 - x)`
/// of acknowledgements on each hop. The acknowledgements' numerator is printed as `p` (D1), and q
/// as that of TCP's acknowledgements although the link's are meant (D2).
///
/// # Errors
/// A chain without hops, a loss outside 0 to 1.
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

/// What end-to-end repetition costs at least.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EndToEnd {
    /// Expected data transmissions until every segment has arrived.
    pub data: f64,
    /// Expected times that the sender sends a segment again: `500 (1 / (1 - p)^n - 1)`. Plain TCP
    /// needs at least as many, which is why the tables' "end-to-end retransmissions" can only count
    /// time-outs (D6).
    pub resends: f64,
    /// Expected data transmissions of one copy of each segment, those that are lost on the way
    /// included: `500 sum (1 - p)^k` for k below n.
    pub first_copies: f64,
}

/// Forwarding without caches, with a sender that sends again exactly what was lost: a lower bound
/// for plain TCP, which also repeats what has arrived.
///
/// # Errors
/// A chain without hops, a loss outside 0 to 1.
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
