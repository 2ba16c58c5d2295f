//! Channel access, round trips and packets for each path: sections V to VII of the paper on multipath TCP.

use anabranch_model::mptcp::csma::{Busy, Csma, access};
use anabranch_model::mptcp::rtt::{
    CellularLink, CsmaLink, HopTime, Link, Route, Sizes, Transmitter, Travel, travel,
};
use anabranch_model::mptcp::schedule::{self, Adaptation, Limits, Path};
use anabranch_model::mptcp::{AccessTime, ModelError, Reading};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::fault::Fault;

/// Channel access of IEEE 802.15.4.
#[derive(Clone, Copy, FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct Backoff {
    min_be: u32,
    max_be: u32,
    backoffs: u32,
}

impl Backoff {
    fn csma(self) -> Csma {
        Csma { min_be: self.min_be, max_be: self.max_be, max_backoffs: self.backoffs }
    }
}

/// Packets, queues, and the cellular network.
#[derive(Clone, FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct Packets {
    /// Octets.
    payload: u32,
    /// Octets.
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

/// The hops of a way: one value for each.
#[derive(Clone, FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct Hops {
    phy: Vec<String>,
    busy: Vec<f64>,
    rate: Vec<f64>,
}

fn radio(phy: &str, busy: Busy) -> Result<Option<CsmaLink>, Fault> {
    match phy {
        "oqpsk250" => Ok(Some(CsmaLink::oqpsk250(busy))),
        "fsk100" => Ok(Some(CsmaLink::fsk100(busy))),
        "cellular" => Ok(None),
        other => {
            Err(Fault::new(format!("phy: there is no PHY `{other}`"))
                .with_hint("oqpsk250, fsk100 or cellular"))
        }
    }
}

impl Packets {
    fn transmitters(&self, hops: &Hops) -> Result<Vec<Transmitter>, Fault> {
        let each = hops.phy.iter().zip(&hops.busy).zip(&hops.rate);
        let transmitters = each.map(|((phy, &busy), &arrivals)| {
            let link = match radio(phy, Busy::Constant(busy))? {
                Some(radio) => Link::Csma(CsmaLink { csma: self.backoff.csma(), ..radio }),
                None => {
                    Link::Cellular(CellularLink { bandwidth: self.cellular_rate, delay: self.cellular_delay })
                }
            };
            Ok(Transmitter { link, arrivals, capacity: self.queue })
        });
        transmitters.collect()
    }

    fn travel(&self, there: &Hops, back: Option<&Hops>, access: AccessTime) -> Result<Travel, Fault> {
        let queued = self.payload.saturating_add(self.header);
        let route = Route {
            forward: self.transmitters(there)?,
            reverse: back.map_or(Ok(Vec::new()), |hops| self.transmitters(hops))?,
            sizes: Sizes { header: self.header, payload: self.payload, queued },
        };
        let reading = Reading { access, ..reading(self.printed) };
        travel(&route, reading).map_err(|error| refused(&error))
    }
}

fn reading(printed: bool) -> Reading {
    if printed { Reading::printed() } else { Reading::default() }
}

fn equations(printed: bool) -> &'static str {
    if printed { "printed" } else { "corrected" }
}

/// A model's refusal, with what to do about it.
fn refused(error: &ModelError) -> Fault {
    let text = error.to_string();
    let hints = [
        ("utilisation", "fewer packets a second (`rate`), a channel that is less `busy`, or a `queue` limit"),
        ("max_be", "macMaxBE of the standard is 3 to 8"),
        ("min_be", "macMinBE is 0 to macMaxBE"),
        ("max_backoffs", "macMaxCSMABackoffs of the standard is 0 to 5: `backoffs`"),
        ("busy", "a probability, as in 0.3"),
        ("arrivals", "packets a second, as in 10: `rate`"),
        ("capacity", "packets, as in 20: `queue`"),
        ("rtt must", "a time above 0; equation (6) as printed is negative with a `queue` limit (M1)"),
        ("t_first", "`first` is a time above 0"),
        ("payload", "octets, at most 65535"),
        ("loss", "a probability, as in 0.02"),
    ];
    let fault = Fault::new(text.clone());
    match hints.iter().find(|(field, _)| text.contains(field)) {
        Some((_, hint)) => fault.with_hint(*hint),
        None => fault,
    }
}

/// Back-off periods until a node gains the channel, and how likely it does.
#[pyfunction]
pub(super) fn plan_csma(
    backoff: Backoff,
    busy: f64,
    by_period: Option<Vec<f64>>,
    phy: &str,
    printed: bool,
) -> PyResult<String> {
    let said = by_period.as_ref().map_or(json!(busy), |each| json!(each));
    let busy = by_period.map_or(Busy::Constant(busy), Busy::ByPeriod);
    let radio = radio(phy, busy.clone())?.ok_or_else(|| {
        Fault::new("phy: a cellular network has no channel access of this kind")
            .with_hint("oqpsk250 or fsk100")
    })?;
    let access = access(&backoff.csma(), &busy, reading(printed)).map_err(|error| refused(&error))?;
    let period = radio.backoff_period;
    let stages = access
        .stages
        .iter()
        .map(|stage| json!({ "window": stage.window, "p_reached": stage.reached, "p_busy": stage.busy }));
    let object = json!({
        "model": "csma",
        "equations": equations(printed),
        "params": {
            "min_be": backoff.min_be,
            "max_be": backoff.max_be,
            "backoffs": backoff.backoffs,
            "busy": said,
            "phy": phy,
            "backoff_period_s": period,
        },
        "n_bp": access.periods,
        "n_bp_if_won": access.periods_if_won,
        "n_bp_if_lost": access.periods_if_lost,
        "p_won": access.won,
        "p_lost": access.lost,
        "delay_s": access.periods * period,
        "delay_if_won_s": access.periods_if_won.map(|n| n * period),
        "stages": stages.collect::<Vec<_>>(),
        "p_won_at": access.won_at,
    });
    Ok(object.to_string())
}

/// Round-trip time over a way of 802.15.4 and cellular hops, and its parts.
#[pyfunction]
pub(super) fn plan_rtt(there: Hops, back: Option<Hops>, won: bool, packets: Packets) -> PyResult<String> {
    let access = if won { AccessTime::Won } else { AccessTime::Any };
    let travelled = packets.travel(&there, back.as_ref(), access)?;
    let object = json!({
        "model": "rtt",
        "equations": equations(packets.printed),
        "params": {
            "hops": there.phy.len(),
            "phy": there.phy,
            "busy": there.busy,
            "rate": there.rate,
            "payload": packets.payload,
            "header": packets.header,
            "queue": packets.queue,
        },
        "rtt_s": travelled.rtt(),
        "syn_s": travelled.syn,
        "ack_s": travelled.ack,
        "first_packet_s": travelled.t_first,
        "next_packet_s": travelled.t_next,
        "p_gained": travelled.gained(),
        "forward": travelled.forward.iter().map(hop).collect::<Vec<_>>(),
        "reverse": travelled.reverse.iter().map(hop).collect::<Vec<_>>(),
    });
    Ok(object.to_string())
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

/// A path: its hops or its times, and its window.
#[derive(Clone, FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct Said {
    hops: Option<Hops>,
    /// Links on the way, of which the limits of the window follow.
    count: u32,
    /// Round trip, first packet, each further one: seconds.
    times: Option<(f64, f64, f64)>,
    loss: f64,
    cwnd: Option<u32>,
    ssthresh: u32,
    /// Seconds.
    rto: Option<f64>,
    w_min: Option<u32>,
    w_max: Option<u32>,
}

impl Said {
    fn path(&self, packets: &Packets) -> Result<Path, Fault> {
        let limits = Adaptation::default().limits(self.count);
        let limits = Limits {
            w_min: self.w_min.unwrap_or(limits.w_min),
            w_max: self.w_max.unwrap_or(limits.w_max),
            ..limits
        };
        let (rtt, t_first, t_next) = match (self.times, &self.hops) {
            (Some(times), _) => times,
            (None, Some(hops)) => {
                let travelled = packets.travel(hops, None, reading(packets.printed).access)?;
                (travelled.rtt(), travelled.t_first, travelled.t_next)
            }
            (None, None) => return Err(Fault::new("a path has neither hops nor times")),
        };
        let path = Path {
            rtt,
            t_first,
            t_next,
            rto: self.rto.unwrap_or(limits.rto.as_secs_f64()),
            loss: self.loss,
            cwnd: self.cwnd.unwrap_or(limits.w_min),
            ssthresh: self.ssthresh,
            w_min: limits.w_min,
            w_max: limits.w_max,
        };
        schedule::packets(&path, 0.0, schedule::Reading::default())
            .map_err(|error| refused(&ModelError::Schedule(error)))?;
        Ok(path)
    }
}

/// Packets for each path before the next slower one delivers its first.
#[pyfunction]
pub(super) fn plan_schedule(paths: Vec<Said>, packets: Packets) -> PyResult<String> {
    let understood = (1..).zip(&paths).map(|(number, said)| {
        let path = said.path(&packets).map_err(|fault| fault.at(format!("path {number}")))?;
        Ok((number, said.count, path))
    });
    let mut ways = understood.collect::<Result<Vec<(u32, u32, Path)>, Fault>>()?;
    ways.sort_by(|a, b| a.2.rtt.total_cmp(&b.2.rtt));
    let only: Vec<Path> = ways.iter().map(|(_, _, path)| *path).collect();
    let reading = if packets.printed { schedule::Reading::computed() } else { schedule::Reading::default() };
    let planned =
        schedule::schedule(&only, reading).map_err(|error| refused(&ModelError::Schedule(error)))?;
    let each = ways.iter().zip(&planned).enumerate().map(|(i, ((number, hops, path), packets))| {
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
            "time_s": only.get(i + 1).map(|next| next.rtt / 2.0),
            "expected": packets.expected,
            "packets": packets.count,
        })
    });
    let object = json!({
        "model": "schedule",
        "equations": equations(packets.printed),
        "params": { "payload": packets.payload, "header": packets.header },
        "packets": planned.iter().map(|packets| u64::from(packets.count)).sum::<u64>(),
        "paths": each.collect::<Vec<_>>(),
    });
    Ok(object.to_string())
}
