//! Channel access, round-trip times and packets per path: sections V to VII of the multipath TCP
//! paper.

use anabranch_lab::plan::hops::{self, Hint, Phy};
use anabranch_lab::plan::{csma, rtt, schedule};
use anabranch_model::mptcp::csma::{Busy, Csma};
use anabranch_model::mptcp::{AccessTime, ModelError};
use pyo3::prelude::*;

use crate::fault::Fault;

/// Channel access of IEEE 802.15.4.
#[derive(Clone, Copy, FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct Backoff {
    min_be: u32,
    max_be: u32,
    backoffs: u32,
}

impl From<Backoff> for Csma {
    fn from(Backoff { min_be, max_be, backoffs }: Backoff) -> Self {
        Self { min_be, max_be, max_backoffs: backoffs }
    }
}

/// Packets, queues and the cellular network, and whether to use the equations as printed.
#[derive(Clone, Copy, FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct Packets {
    /// Bytes.
    payload: u32,
    /// Bytes.
    header: u32,
    /// Packets.
    queue: Option<u32>,
    /// bit/s.
    cellular_rate: f64,
    /// Seconds.
    cellular_delay: f64,
    backoff: Backoff,
    printed: bool,
}

impl From<Packets> for hops::Packets {
    fn from(packets: Packets) -> Self {
        let Packets { payload, header, queue, cellular_rate, cellular_delay, backoff, .. } = packets;
        Self { payload, header, queue, cellular_rate, cellular_delay, csma: backoff.into() }
    }
}

/// The hops of a path: one value per hop.
#[derive(Clone, FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct Hops {
    phy: Vec<String>,
    busy: Vec<f64>,
    rate: Vec<f64>,
}

impl TryFrom<Hops> for hops::Hops {
    type Error = Fault;

    fn try_from(Hops { phy, busy, rate }: Hops) -> Result<Self, Fault> {
        let phys = phy.iter().map(|name| named(name)).collect::<Result<_, _>>()?;
        Ok(Self { phys, busy, rates: rate })
    }
}

fn named(phy: &str) -> Result<Phy, Fault> {
    Phy::named(phy).ok_or_else(|| {
        Fault::new(format!("phy: unknown PHY `{phy}`")).with_hint("oqpsk250, fsk100 or cellular")
    })
}

/// Converts an error of the model, with a hint.
fn refused(error: &ModelError) -> Fault {
    let fault = Fault::new(error.to_string());
    match hops::hint(error) {
        Some(Hint { text, parameter: None }) => fault.with_hint(text),
        Some(Hint { text, parameter: Some(name) }) => fault.with_hint(format!("{text}: `{name}`")),
        None => fault,
    }
}

/// Back-off periods until a node gains the channel, and the probability that it does.
#[pyfunction]
pub(super) fn plan_csma(
    backoff: Backoff,
    busy: f64,
    by_period: Option<Vec<f64>>,
    phy: &str,
    printed: bool,
) -> PyResult<String> {
    let busy = by_period.map_or(Busy::Constant(busy), Busy::ByPeriod);
    let question = csma::Question { csma: backoff.into(), busy, phy: named(phy)?, printed };
    let answer = csma::answer(question).map_err(|refusal| match refusal {
        csma::Refusal::Model(error) => refused(&error),
        other => Fault::new(format!("phy: {other}")).with_hint("oqpsk250 or fsk100"),
    })?;
    Ok(answer.object().to_string())
}

/// Round-trip time over a path of IEEE 802.15.4 and cellular hops, and its parts.
#[pyfunction]
pub(super) fn plan_rtt(there: Hops, back: Option<Hops>, won: bool, packets: Packets) -> PyResult<String> {
    let question = rtt::Question {
        there: there.try_into()?,
        back: back.map(hops::Hops::try_from).transpose()?,
        access: if won { AccessTime::Won } else { AccessTime::Any },
        packets: packets.into(),
        printed: packets.printed,
    };
    let answer = rtt::answer(question).map_err(|error| refused(&error))?;
    Ok(answer.object().to_string())
}

/// A path, given by its hops or its times, with its window.
#[derive(Clone, FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct Said {
    hops: Option<Hops>,
    /// Number of links, from which the limits of the window follow.
    count: u32,
    /// Round-trip time, time of the first packet, and time of each further packet, in seconds.
    times: Option<(f64, f64, f64)>,
    loss: f64,
    cwnd: Option<u32>,
    ssthresh: Option<u32>,
    /// Seconds.
    rto: Option<f64>,
    w_min: Option<u32>,
    w_max: Option<u32>,
}

impl TryFrom<Said> for schedule::Said {
    type Error = Fault;

    fn try_from(said: Said) -> Result<Self, Fault> {
        let way = match (said.times, said.hops) {
            (Some((rtt, first, next)), _) => schedule::Way::Times { rtt, first, next },
            (None, Some(hops)) => schedule::Way::Hops(hops.try_into()?),
            (None, None) => return Err(Fault::new("a path has neither hops nor times")),
        };
        let Said { count, loss, cwnd, ssthresh, rto, w_min, w_max, .. } = said;
        let ssthresh = ssthresh.unwrap_or(schedule::SSTHRESH);
        Ok(Self { hops: count, way, loss, cwnd, ssthresh, rto, w_min, w_max })
    }
}

/// Packets for each path before the next slower one delivers its first.
#[pyfunction]
pub(super) fn plan_schedule(paths: Vec<Said>, packets: Packets) -> PyResult<String> {
    let place = |number: usize| format!("path {number}");
    let said = (1..)
        .zip(paths)
        .map(|(number, said)| said.try_into().map_err(|fault: Fault| fault.at(place(number))));
    let paths = said.collect::<Result<Vec<schedule::Said>, Fault>>()?;
    let question = schedule::Question { paths, packets: packets.into(), printed: packets.printed };
    let answer = schedule::answer(question).map_err(|schedule::Refusal { path, error }| {
        let refused = refused(&error);
        match path {
            Some(number) => refused.at(place(number)),
            None => refused,
        }
    })?;
    Ok(answer.object().to_string())
}
