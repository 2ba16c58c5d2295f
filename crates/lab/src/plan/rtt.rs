//! Round-trip time over a path of IEEE 802.15.4 and cellular hops, and its parts: section VI.

use anabranch_model::mptcp::rtt::{HopTime, Travel};
use anabranch_model::mptcp::{AccessTime, ModelError};
use serde_json::{Value, json};

use super::equations;
use super::hops::{Hops, Packets, Phy, reading};

/// Input of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Hops from the node to the data centre.
    pub there: Hops,
    /// Hops from the data centre to the node. Without them, the way back takes as long as the way
    /// there.
    pub back: Option<Hops>,
    /// Attempts over which the channel access time is averaged.
    pub access: AccessTime,
    /// Packets on the path.
    pub packets: Packets,
    /// Whether to use the paper's equations as printed, with their errata.
    pub printed: bool,
}

/// Result of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The question.
    pub question: Question,
    /// Times, hop by hop.
    pub travel: Travel,
}

/// Evaluates the model.
///
/// # Errors
///
/// The model refuses the input.
pub fn answer(question: Question) -> Result<Answer, ModelError> {
    let reading = reading(question.printed, Some(question.access));
    let travel = question.packets.travel(&question.there, question.back.as_ref(), reading)?;
    Ok(Answer { question, travel })
}

impl Answer {
    /// The answer as a JSON object.
    pub fn object(&self) -> Value {
        let Self { question: Question { there, back, packets, printed, .. }, travel } = self;
        json!({
            "model": "rtt",
            "equations": equations(*printed),
            "params": {
                "hops": there.phys.len(),
                "phy": there.phys.iter().copied().map(Phy::name).collect::<Vec<_>>(),
                "busy": there.busy,
                "rate": there.rates,
                "back_busy": back.as_ref().map(|back| &back.busy),
                "back_rate": back.as_ref().map(|back| &back.rates),
                "payload": packets.payload,
                "header": packets.header,
                "queue": packets.queue,
            },
            "rtt_s": travel.rtt(),
            "syn_s": travel.syn,
            "ack_s": travel.ack,
            "first_packet_s": travel.t_first,
            "next_packet_s": travel.t_next,
            "p_gained": travel.gained(),
            "forward": travel.forward.iter().map(hop).collect::<Vec<_>>(),
            "reverse": travel.reverse.iter().map(hop).collect::<Vec<_>>(),
        })
    }
}

fn hop(hop: &HopTime) -> Value {
    json!({
        "total_s": hop.total(),
        "queue_s": hop.wait,
        "backoff_s": hop.back_off,
        "turnaround_s": hop.turnaround,
        "transmission_s": hop.transmission,
        "mac_ack_s": hop.mac_ack,
        "delay_s": hop.delay,
        "n_bp": hop.access.as_ref().map(|access| access.periods),
        "p_won": hop.access.as_ref().map(|access| access.won),
        "service_per_s": hop.service,
        "utilisation": hop.queue.utilisation,
        "p_refused": hop.queue.refused,
    })
}
