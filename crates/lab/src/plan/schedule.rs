//! Packets for each path before the next slower one delivers its first: section VII.

use anabranch_model::mptcp::ModelError;
use anabranch_model::mptcp::schedule::{self, Adaptation, Limits, Path, Reading};
use serde_json::{Value, json};

use super::equations;
use super::hops::{Hops, Packets, reading};

/// sst_start of section VIII, packets.
pub const SSTHRESH: u32 = 16;

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The paths, which are numbered from 1 in this order.
    pub paths: Vec<Said>,
    /// What travels.
    pub packets: Packets,
    /// The paper's equations to the letter (with its binomial coefficients as they are meant),
    /// errata kept.
    pub printed: bool,
}

/// What is said of a path.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// Links on the way, the last one to the data centre included, of which the limits of its
    /// window follow.
    pub hops: u32,
    /// Its times, or what they follow from.
    pub way: Way,
    /// The chance that a packet is lost.
    pub loss: f64,
    /// The window that it has now, packets; `None` is its least.
    pub cwnd: Option<u32>,
    /// Packets.
    pub ssthresh: u32,
    /// Seconds; `None` follows from the hops, as the windows do.
    pub rto: Option<f64>,
    /// The window after a time-out, packets.
    pub w_min: Option<u32>,
    /// The largest window, packets.
    pub w_max: Option<u32>,
}

/// A path's times, or what they follow from.
#[derive(Debug, Clone, PartialEq)]
pub enum Way {
    /// The model has them of hops.
    Hops(Hops),
    /// They are known, in seconds.
    Times {
        /// Round trip.
        rtt: f64,
        /// Until the first packet is delivered.
        first: f64,
        /// For each further one.
        next: f64,
    },
}

/// What the model says of a path.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// Its number.
    pub number: usize,
    /// Its links.
    pub hops: u32,
    /// Its times and its window.
    pub path: Path,
    /// T_i(1), the time that it has, seconds; none for the last.
    pub time: Option<f64>,
    /// Its packets.
    pub packets: schedule::Packets,
}

/// What the model says.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What was asked.
    pub question: Question,
    /// Each path, the fastest first.
    pub paths: Vec<Planned>,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{error}")]
pub struct Refusal {
    /// The path that is refused, if it is one.
    pub path: Option<usize>,
    /// Why.
    pub error: ModelError,
}

/// Answers.
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
    // Asked here, a refusal can name the path.
    schedule::packets(&path, 0.0, Reading::default()).map_err(ModelError::Schedule)?;
    Ok(path)
}

impl Answer {
    /// As one JSON object.
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
