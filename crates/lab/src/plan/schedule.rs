//! Packets for each path before the next slower one delivers its first: section VII.

use anabranch_model::mptcp::ModelError;
use anabranch_model::mptcp::schedule::{self, Adaptation, Limits, Path, Reading};
use serde_json::{Value, json};

use super::equations;
use super::hops::{Hops, Packets, reading};

/// sst_start of section VIII, in packets.
pub const SSTHRESH: u32 = 16;

/// Input of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The paths, numbered from 1 in this order.
    pub paths: Vec<Said>,
    /// Packets on the paths.
    pub packets: Packets,
    /// Whether to use the paper's equations as printed, with their errata, except for the corrected
    /// binomial coefficients.
    pub printed: bool,
}

/// Description of a path.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// Number of links, including the last one to the data centre; the limits of the window follow
    /// from it.
    pub hops: u32,
    /// Times of the path, or its hops.
    pub way: Way,
    /// Probability that a packet is lost.
    pub loss: f64,
    /// Current window in packets; `None` means the minimum.
    pub cwnd: Option<u32>,
    /// Slow-start threshold in packets.
    pub ssthresh: u32,
    /// Retransmission time-out in seconds; `None` means that it follows from the hops, as the
    /// windows do.
    pub rto: Option<f64>,
    /// Window after a time-out, in packets.
    pub w_min: Option<u32>,
    /// Largest window, in packets.
    pub w_max: Option<u32>,
}

/// Times of a path, or the hops from which they are computed.
#[derive(Debug, Clone, PartialEq)]
pub enum Way {
    /// The model computes the times from these hops.
    Hops(Hops),
    /// Known times, in seconds.
    Times {
        /// Round-trip time.
        rtt: f64,
        /// Time until the first packet is delivered.
        first: f64,
        /// Time for each further packet.
        next: f64,
    },
}

/// Result for a path.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// Number of the path.
    pub number: usize,
    /// Number of links.
    pub hops: u32,
    /// Times and window of the path.
    pub path: Path,
    /// T_i(1), the available time in seconds; none for the last path.
    pub time: Option<f64>,
    /// Packets for the path.
    pub packets: schedule::Packets,
}

/// Result of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The question.
    pub question: Question,
    /// The paths, fastest first.
    pub paths: Vec<Planned>,
}

/// Why the model cannot answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{error}")]
pub struct Refusal {
    /// Number of the refused path, if one path is the cause.
    pub path: Option<usize>,
    /// The error.
    pub error: ModelError,
}

/// Evaluates the model.
///
/// # Errors
///
/// See [`Refusal`].
pub fn answer(question: Question) -> Result<Answer, Refusal> {
    let understood = (1..).zip(&question.paths).map(|(number, said)| {
        let path = understand(said, &question).map_err(|error| Refusal { path: Some(number), error })?;
        Ok((number, said.hops, path))
    });
    let mut paths = understood.collect::<Result<Vec<(usize, u32, Path)>, Refusal>>()?;
    paths.sort_by(|(.., a), (.., b)| a.rtt.total_cmp(&b.rtt));
    let only: Vec<Path> = paths.iter().map(|(.., path)| *path).collect();
    let reading = if question.printed { Reading::computed() } else { Reading::default() };
    let planned = schedule::schedule(&only, reading)
        .map_err(|error| Refusal { path: None, error: ModelError::Schedule(error) })?;
    let each = paths.into_iter().zip(planned).enumerate().map(|(i, ((number, hops, path), packets))| {
        let time = only.get(i + 1).map(|next| next.rtt / 2.0);
        Planned { number, hops, path, time, packets }
    });
    Ok(Answer { paths: each.collect(), question })
}

fn understand(said: &Said, question: &Question) -> Result<Path, ModelError> {
    let limits = Adaptation::default().limits(said.hops);
    let limits = Limits {
        w_min: said.w_min.unwrap_or(limits.w_min),
        w_max: said.w_max.unwrap_or(limits.w_max),
        ..limits
    };
    let (rtt, t_first, t_next) = match &said.way {
        Way::Times { rtt, first, next } => (*rtt, *first, *next),
        Way::Hops(hops) => {
            let travelled = question.packets.travel(hops, None, reading(question.printed, None))?;
            (travelled.rtt(), travelled.t_first, travelled.t_next)
        }
    };
    let path = Path {
        rtt,
        t_first,
        t_next,
        rto: said.rto.unwrap_or(limits.rto.as_secs_f64()),
        loss: said.loss,
        cwnd: said.cwnd.unwrap_or(limits.w_min),
        ssthresh: said.ssthresh,
        w_min: limits.w_min,
        w_max: limits.w_max,
    };
    // Evaluated here, so that an error can name the path.
    schedule::packets(&path, 0.0, Reading::default()).map_err(ModelError::Schedule)?;
    Ok(path)
}

impl Answer {
    /// The answer as a JSON object.
    pub fn object(&self) -> Value {
        let Self { question: Question { packets, printed, .. }, paths } = self;
        let each = paths.iter().map(|Planned { number, hops, path, time, packets }| {
            json!({
                "path": number,
                "hops": hops,
                "rtt_s": path.rtt,
                "first_packet_s": path.t_first,
                "next_packet_s": path.t_next,
                "rto_s": path.rto,
                "loss": path.loss,
                "cwnd": path.cwnd,
                "ssthresh": path.ssthresh,
                "w_min": path.w_min,
                "w_max": path.w_max,
                "time_s": time,
                "expected": packets.expected,
                "packets": packets.count,
            })
        });
        json!({
            "model": "schedule",
            "equations": equations(*printed),
            "params": { "payload": packets.payload, "header": packets.header },
            "packets": paths.iter().map(|path| u64::from(path.packets.count)).sum::<u64>(),
            "paths": each.collect::<Vec<_>>(),
        })
    }
}
