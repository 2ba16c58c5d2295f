//! Section VI-B, equations (8) to (11): the round-trip time of packets without payload over a path
//! of IEEE 802.15.4 and cellular hops, and the times of data packets that section VII starts from.
//!
//! A [`Route`] lists the transmitters: the node D and the relays R_1 to R_N on the way to the data
//! centre, and the data centre and the relays R_N to R_1 on the way back. Without reverse
//! transmitters, the way back takes as long as the way there (M15).

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::csma::{Access, Busy, Csma, access, mean_periods};
use super::error::{ModelError, within};
use super::queue::{Occupied, Queue, occupied};
use super::reading::{
    AccessTime, BurstWait, FirstPacket, FurtherPacket, OctetTime, Reading, ReturnPath, Service,
};
use crate::mptcp::prediction::{Limits, Path};

/// The transmitter of one IEEE 802.15.4 hop.
#[derive(Debug, Clone, PartialEq)]
pub struct CsmaLink {
    /// B_15 in bit/s; 1..=1e12.
    pub bandwidth: f64,
    /// |BP|: length of a back-off period in seconds; 0..=10.
    pub backoff_period: f64,
    /// T_turnaround: time from receiving to transmitting in seconds; 0..=10.
    pub turnaround: f64,
    /// T_MAC-ACK: time of the receiver's acknowledgement in seconds; 0..=10.
    pub mac_ack: f64,
    /// Channel access.
    pub csma: Csma,
    /// p_b at this transmitter.
    pub busy: Busy,
}

impl CsmaLink {
    /// SUN-FSK at 100 kbit/s, as in section VIII: back-off periods of 1.08 ms, a turnaround of 1
    /// ms, acknowledgements of 13 bytes.
    pub fn fsk100(busy: Busy) -> Self {
        Self {
            bandwidth: 100e3,
            backoff_period: 1.08e-3,
            turnaround: 1e-3,
            mac_ack: 13.0 * 8.0 / 100e3,
            csma: Csma::default(),
            busy,
        }
    }

    /// O-QPSK at 250 kbit/s in the 2.4 GHz band: back-off periods of 20 symbols and a turnaround of
    /// 12 symbols of 16 us each, acknowledgements of 11 bytes including the preamble.
    pub fn oqpsk250(busy: Busy) -> Self {
        Self {
            bandwidth: 250e3,
            backoff_period: 0.32e-3,
            turnaround: 0.192e-3,
            mac_ack: 11.0 * 8.0 / 250e3,
            csma: Csma::default(),
            busy,
        }
    }
}

/// The transmitter of one cellular hop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellularLink {
    /// B_5g in bit/s; 1..=1e12.
    pub bandwidth: f64,
    /// Delay added by the network in seconds, which the paper omits; 0..=1000.
    pub delay: f64,
}

impl CellularLink {
    /// 10 Mbit/s, as in section VIII, without delay.
    pub const fn lte() -> Self {
        Self { bandwidth: 10e6, delay: 0.0 }
    }
}

/// The link of a hop.
#[derive(Debug, Clone, PartialEq)]
pub enum Link {
    /// Equation (8).
    Csma(CsmaLink),
    /// Equation (9), for a multi-link node.
    Cellular(CellularLink),
}

/// A node that transmits the packets of the path, among others.
#[derive(Debug, Clone, PartialEq)]
pub struct Transmitter {
    /// The link.
    pub link: Link,
    /// lambda: packets per second to send, including those of others; 0..=1e9.
    pub arrivals: f64,
    /// K: capacity of the queue in packets; 1..=1,000,000, `None` for no limit.
    pub capacity: Option<u32>,
}

/// Sizes of packets in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// HS: headers of a packet, also the size of SYN and ACK; 1..=65535.
    pub header: u32,
    /// PS: payload of a data packet; 0..=65535.
    pub payload: u32,
    /// PacketSize of section VI-A: mean size of queued packets; 1..=131070.
    pub queued: u32,
}

impl Sizes {
    /// Headers of 40 bytes, and queues that hold data packets.
    pub const fn of_payload(payload: u32) -> Self {
        Self { header: 40, payload, queued: payload.saturating_add(40) }
    }

    fn check(&self) -> Result<(), ModelError> {
        within("header", f64::from(self.header), 1.0, 65535.0)?;
        within("payload", f64::from(self.payload), 0.0, 65535.0)?;
        within("queued", f64::from(self.queued), 1.0, 131_070.0)
    }
}

/// A path and the sizes of its packets.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// D, R_1, ..., R_N. Not empty.
    pub forward: Vec<Transmitter>,
    /// The data centre, R_N, ..., R_1. Empty if the way back is as long as the way there.
    pub reverse: Vec<Transmitter>,
    /// The sizes of the packets.
    pub sizes: Sizes,
}

/// T_e(n), the time of a packet without payload at one hop, and its parts, in seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct HopTime {
    /// The chain of the channel access; `None` for a cellular link, and from [`travel_times`].
    pub access: Option<Access>,
    /// State of the queue.
    pub queue: Occupied,
    /// mu, packets per second.
    pub service: f64,
    /// T_q.
    pub wait: f64,
    /// N_bp |BP|.
    pub back_off: f64,
    /// T_turnaround.
    pub turnaround: f64,
    /// Transmission of the headers.
    pub transmission: f64,
    /// T_MAC-ACK.
    pub mac_ack: f64,
    /// Delay of a cellular network.
    pub delay: f64,
    /// Transmission of a data packet's payload; not part of [`HopTime::total`].
    pub payload: f64,
}

impl HopTime {
    /// T_e(n), equations (8) and (9).
    pub fn total(&self) -> f64 {
        self.wait + self.back_off + self.turnaround + self.transmission + self.mac_ack + self.delay
    }
}

/// Times over a route in seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Travel {
    /// The hops on the way to the data centre.
    pub forward: Vec<HopTime>,
    /// The hops on the way back; empty if it is assumed to equal the way there.
    pub reverse: Vec<HopTime>,
    /// STT, equation (10).
    pub syn: f64,
    /// ATT.
    pub ack: f64,
    /// T_i^1: time until the first data packet has arrived.
    pub t_first: f64,
    /// Additional time per further packet of a round.
    pub t_next: f64,
}

impl Travel {
    /// RTT, equation (11).
    pub fn rtt(&self) -> f64 {
        self.syn + self.ack
    }

    /// Probability that the channel is gained at every forward hop, with one attempt each.
    pub fn gained(&self) -> f64 {
        self.forward.iter().filter_map(|hop| hop.access.as_ref()).map(|access| access.won).product()
    }

    /// The path in the form that section VII uses.
    pub fn path(&self, limits: &Limits, loss: f64, cwnd: u32, ssthresh: u32) -> Path {
        Path {
            rtt: self.rtt(),
            t_first: self.t_first,
            t_next: self.t_next,
            rto: limits.rto.as_secs_f64(),
            loss,
            cwnd,
            ssthresh,
            w_min: limits.w_min,
            w_max: limits.w_max,
        }
    }
}

/// Equations (8) to (11), and T_i^1 and the time per further packet of section VII.
///
/// # Errors
/// A quantity is outside the range of its field (reported with its hop), a queue is unstable, or
/// there is no hop.
pub fn travel(route: &Route, reading: Reading) -> Result<Travel, ModelError> {
    travel_by(route, (reading, Detail::Chains))
}

/// As [`travel`], without [`HopTime::access`], which takes most of the computing time.
///
/// # Errors
/// As for [`travel`].
pub fn travel_times(route: &Route, reading: Reading) -> Result<Travel, ModelError> {
    travel_by(route, (reading, Detail::Times))
}

/// Whether to compute the chains of channel access, or only their times.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    Chains,
    Times,
}

fn travel_by(route: &Route, (reading, detail): (Reading, Detail)) -> Result<Travel, ModelError> {
    route.sizes.check()?;
    let forward = hops("forward", &route.forward, route.sizes, (reading, detail))?;
    let reverse = hops("reverse", &route.reverse, route.sizes, (reading, detail))?;
    let Some((own, first)) = route.forward.first().zip(forward.first()) else {
        return Err(ModelError::Empty { what: "forward" });
    };
    let sum = |hops: &[HopTime]| -> f64 { hops.iter().map(HopTime::total).sum() };
    let syn = sum(&forward);
    let ack = match reading.return_path {
        ReturnPath::Own if !reverse.is_empty() => sum(&reverse),
        ReturnPath::Own | ReturnPath::AsForward => syn,
    };
    let payload: f64 = match reading.first {
        FirstPacket::EachBandwidth => forward.iter().map(|hop| hop.payload).sum(),
        FirstPacket::OwnBandwidth => first.payload * forward.len() as f64,
    };
    // Time on the air or in the queue. The delay of a network does not keep the sender from its
    // next packet.
    let waited = match reading.burst {
        BurstWait::Charged => 0.0,
        BurstWait::Once => first.wait,
    };
    let added = match reading.further {
        FurtherPacket::Payload => first.payload,
        FurtherPacket::Printed => own.link.octets(route.sizes.header + route.sizes.payload, reading.octets),
    };
    let t_next = first.total() - first.delay - waited + added;
    Ok(Travel { t_first: syn + payload, t_next, forward, reverse, syn, ack })
}

fn hops(
    direction: &'static str,
    transmitters: &[Transmitter],
    sizes: Sizes,
    how: (Reading, Detail),
) -> Result<Vec<HopTime>, ModelError> {
    let numbered = transmitters.iter().enumerate();
    numbered
        .map(|(i, transmitter)| {
            let at_hop = |error| ModelError::Hop { direction, hop: i + 1, error: Box::new(error) };
            transmitter.hop(sizes, how).map_err(at_hop)
        })
        .collect()
}

impl Link {
    fn check(&self) -> Result<(), ModelError> {
        match self {
            Self::Csma(link) => {
                within("bandwidth", link.bandwidth, 1.0, 1e12)?;
                within("backoff_period", link.backoff_period, 0.0, 10.0)?;
                within("turnaround", link.turnaround, 0.0, 10.0)?;
                within("mac_ack", link.mac_ack, 0.0, 10.0)
            }
            Self::Cellular(link) => {
                within("bandwidth", link.bandwidth, 1.0, 1e12)?;
                within("delay", link.delay, 0.0, 1000.0)
            }
        }
    }

    fn bandwidth(&self) -> f64 {
        match self {
            Self::Csma(link) => link.bandwidth,
            Self::Cellular(link) => link.bandwidth,
        }
    }

    /// Seconds to transmit `count` bytes.
    fn octets(&self, count: u32, reading: OctetTime) -> f64 {
        let units = match reading {
            OctetTime::Bits => 8.0,
            OctetTime::Printed => 1.0,
        };
        units * f64::from(count) / self.bandwidth()
    }
}

impl Transmitter {
    fn hop(&self, sizes: Sizes, (reading, detail): (Reading, Detail)) -> Result<HopTime, ModelError> {
        self.link.check()?;
        let (mut access_of, mut back_off, mut turnaround, mut mac_ack, mut delay) =
            (None, 0.0, 0.0, 0.0, 0.0);
        match &self.link {
            Link::Csma(link) => {
                let periods = if (reading.access, detail) == (AccessTime::Any, Detail::Times) {
                    mean_periods(&link.csma, &link.busy, reading)?
                } else {
                    let chain = access_of.insert(access(&link.csma, &link.busy, reading)?);
                    match reading.access {
                        AccessTime::Any => chain.periods,
                        AccessTime::Won => chain.periods_if_won.ok_or(ModelError::NeverGained)?,
                    }
                };
                back_off = periods * link.backoff_period;
                (turnaround, mac_ack) = (link.turnaround, link.mac_ack);
            }
            Link::Cellular(link) => delay = link.delay,
        }
        // The paper's mu contains the factor of 8, too.
        let queued = self.link.octets(sizes.queued, OctetTime::Bits);
        let service = match reading.service {
            Service::Whole => 1.0 / (back_off + turnaround + queued + mac_ack),
            Service::Transmission => 1.0 / queued,
        };
        let queue = occupied(&Queue { arrivals: self.arrivals, service, capacity: self.capacity }, reading)?;
        Ok(HopTime {
            access: access_of,
            wait: queue.time,
            queue,
            service,
            back_off,
            turnaround,
            transmission: self.link.octets(sizes.header, reading.octets),
            mac_ack,
            delay,
            payload: self.link.octets(sizes.payload, reading.octets),
        })
    }
}
