//! Equation (12): latency of the whole transfer, and the best number of gateways.

use super::error::ModelError;
use super::establishment::Establishment;
use super::parameters::{Path, Probing, Striping, Transfer};
use super::path::{Lane, Parts, receive_window};
use super::reading::{OtherPaths, SessionStarts};
use super::striping::{Stripe, dynamic, equal};

/// Relative tolerance within which two latencies are equal; then the smaller number of gateways
/// wins.
const TIE: f64 = 1e-9;

/// Result for one path of a transfer. Times are in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathLatency {
    /// L_CE of this session with its parts.
    pub establishment: Establishment,
    /// When the session is open, counted from the request.
    pub start: f64,
    /// m_1: number of wired segments carried.
    pub wired_segments: u64,
    /// m_2: number of wireless segments carried; 0 if the path was not used.
    pub wireless_segments: u64,
    /// K_1, equation (6).
    pub wired_windows: u64,
    /// K_2, equation (7).
    pub wireless_windows: u64,
    /// W_receive in wireless segments; infinite if the node's buffer is not a limit.
    pub receive_window: f64,
    /// The terms of equation (10).
    pub parts: Parts,
    /// When its last segment is delivered, counted from the request; `start` if it carried none.
    pub finish: f64,
}

/// The latency through a number of gateways, with its parts. The sum of `request`, `establishment`
/// and the sum of `parts` is `total`.
#[derive(Debug, Clone, PartialEq)]
pub struct Latency {
    /// Number of gateways in use.
    pub gateways: usize,
    /// Time in seconds from the request until the last byte is delivered.
    pub total: f64,
    /// Time in seconds until the node has answered the request.
    pub request: f64,
    /// Time in seconds from that answer until the session of the slowest path was open.
    pub establishment: f64,
    /// The terms of equation (10) for the slowest path.
    pub parts: Parts,
    /// Every path, in the order of set-up.
    pub paths: Vec<PathLatency>,
}

/// Latencies for every number of gateways, and the best number.
#[derive(Debug, Clone, PartialEq)]
pub struct Best {
    /// The number of gateways with the smallest latency; the smallest such number if several are
    /// equal.
    pub gateways: usize,
    /// The latency for 1, 2, ... gateways, in the transfer's order.
    pub options: Vec<Latency>,
}

impl Best {
    /// The latency with the best number of gateways.
    pub fn latency(&self) -> &Latency {
        &self.options[self.gateways - 1]
    }
}

/// Equation (12) for the first `gateways` of the transfer's paths.
///
/// # Errors
/// The errors of [`Transfer::check`], [`ModelError::TooManyGateways`] if the transfer has fewer
/// gateways, [`ModelError::ZeroWindow`] and [`ModelError::Endless`].
pub fn latency(transfer: &Transfer, gateways: usize) -> Result<Latency, ModelError> {
    transfer.check()?;
    if gateways == 0 {
        return Err(ModelError::NoGateways);
    }
    let present = transfer.gateways.len();
    let paths =
        transfer.gateways.get(..gateways).ok_or(ModelError::TooManyGateways { asked: gateways, present })?;
    let opened = sessions(transfer, paths)?;
    let stripes = stripes(transfer, paths, &opened)?;
    let shares = match transfer.striping {
        Striping::Dynamic => dynamic(transfer.octets, &stripes),
        Striping::Equal => equal(transfer.octets, &stripes),
    };
    let results: Vec<PathLatency> =
        (0..gateways).map(|i| path_latency(transfer, paths, &opened, &stripes, &shares, i)).collect();
    Ok(summed(transfer, results))
}

/// [`latency`] for every number of gateways, and the best number.
///
/// # Errors
/// As [`latency`].
pub fn best_gateways(transfer: &Transfer) -> Result<Best, ModelError> {
    transfer.check()?;
    let options =
        (1..=transfer.gateways.len()).map(|n| latency(transfer, n)).collect::<Result<Vec<_>, _>>()?;
    let mut best = 0;
    for (i, option) in options.iter().enumerate() {
        if option.total < options[best].total * (1.0 - TIE) {
            best = i;
        }
    }
    Ok(Best { gateways: best + 1, options })
}

/// The establishment of each path and the time at which its session is open (S12).
fn sessions(transfer: &Transfer, paths: &[Path]) -> Result<Vec<(Establishment, f64)>, ModelError> {
    let (mut open, mut called) = (transfer.request, transfer.request);
    let mut opened: Vec<(Establishment, f64)> = Vec::with_capacity(paths.len());
    for (i, path) in paths.iter().enumerate() {
        let establishment = Establishment::of(path, transfer.reading.open_wait, transfer.reading.handshake);
        open += establishment.total();
        if !open.is_finite() {
            return Err(ModelError::Endless { gateway: i + 1 });
        }
        let start = match (transfer.reading.starts, opened.first()) {
            (SessionStarts::Together, Some(&(_, first))) => first,
            (SessionStarts::Together | SessionStarts::OneAfterAnother, _) => open,
            (SessionStarts::Staggered, _) => called + establishment.total(),
            (SessionStarts::AtOnce, _) => transfer.request + establishment.total(),
        };
        called += path.wired_rtt;
        opened.push((establishment, start));
    }
    Ok(opened)
}

/// The paths in the form that striping needs.
fn stripes<'a>(
    transfer: &'a Transfer,
    paths: &'a [Path],
    opened: &[(Establishment, f64)],
) -> Result<Vec<Stripe<'a>>, ModelError> {
    let lane = |i: usize| {
        Lane::new(transfer, &paths[i], paths.len()).ok_or(ModelError::ZeroWindow { gateway: i + 1 })
    };
    opened
        .iter()
        .enumerate()
        .map(|(i, &(_, start))| {
            let (least, lane) = match transfer.probing {
                Some(probing) if i == 0 => (taken_first(transfer, paths, probing), lane(i)?),
                Some(probing) => (0, lane(i)?.probed(probing.others)),
                None => (0, lane(i)?),
            };
            Ok(Stripe { start, mss: paths[i].wireless_mss, least, lane })
        })
        .collect()
}

/// Number of segments that the first session takes before another session is known: everything that
/// the other probes leave, up to its own limit.
fn taken_first(transfer: &Transfer, paths: &[Path], probing: Probing) -> u64 {
    let others = probing.others.saturating_mul(paths.len() as u64 - 1);
    let octets = transfer.octets.saturating_sub(others).min(probing.first);
    octets / u64::from(paths[0].wireless_mss)
}

/// The result of path `i` (from 0) once the shares are known.
fn path_latency(
    transfer: &Transfer,
    paths: &[Path],
    opened: &[(Establishment, f64)],
    stripes: &[Stripe],
    shares: &[u64],
    i: usize,
) -> PathLatency {
    let (stripe, share) = (&stripes[i], shares[i]);
    let mut parts = stripe.lane.parts(share);
    if i > 0 && share > 0 && transfer.reading.other_paths == OtherPaths::FirstPathsCount {
        // Equation (11) as printed uses the first path's m_2a for every other gateway (S6).
        parts.transmission = shares[0] as f64 * paths[i].wireless_segment_time();
    }
    PathLatency {
        establishment: opened[i].0,
        start: stripe.start,
        wired_segments: stripe.lane.wired_segments(share),
        wireless_segments: share,
        wired_windows: stripe.lane.wired_flight(share).windows,
        wireless_windows: stripe.lane.wireless_flight(share).windows,
        receive_window: receive_window(transfer, &paths[i], paths.len()),
        parts,
        finish: stripe.start + parts.total(),
    }
}

/// The result of the transfer, which the slowest path determines. An empty file needs only the
/// first session.
fn summed(transfer: &Transfer, paths: Vec<PathLatency>) -> Latency {
    let carrying = paths.iter().filter(|path| path.wireless_segments > 0);
    let last = carrying.max_by(|a, b| a.finish.total_cmp(&b.finish)).unwrap_or(&paths[0]);
    Latency {
        gateways: paths.len(),
        total: last.finish,
        request: transfer.request,
        establishment: last.start - transfer.request,
        parts: last.parts,
        paths,
    }
}
