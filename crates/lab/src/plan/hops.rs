//! Hops of a path: their radio, load and packets.

use anabranch_model::mptcp::csma::{Busy, Csma};
use anabranch_model::mptcp::rtt::{CellularLink, CsmaLink, Link, Route, Sizes, Transmitter, Travel, travel};
use anabranch_model::mptcp::{AccessTime, ModelError, Reading};

/// Medium of a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phy {
    /// IEEE 802.15.4 O-QPSK, 250 kbit/s at 2.4 GHz.
    Oqpsk250,
    /// IEEE 802.15.4 SUN-FSK, 100 kbit/s.
    Fsk100,
    /// A cellular network, without channel access.
    Cellular,
}

impl Phy {
    /// All media.
    pub const ALL: [Self; 3] = [Self::Oqpsk250, Self::Fsk100, Self::Cellular];

    /// The medium of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phy| phy.name() == name)
    }

    /// Name of the medium.
    pub fn name(self) -> &'static str {
        match self {
            Self::Oqpsk250 => "oqpsk250",
            Self::Fsk100 => "fsk100",
            Self::Cellular => "cellular",
        }
    }

    /// One-line description.
    pub fn about(self) -> &'static str {
        match self {
            Self::Oqpsk250 => "IEEE 802.15.4 O-QPSK, 250 kbit/s at 2.4 GHz",
            Self::Fsk100 => "IEEE 802.15.4 SUN-FSK, 100 kbit/s",
            Self::Cellular => "A cellular network, without channel access",
        }
    }

    /// Times of the radio; none for a cellular network.
    pub(super) fn radio(self, busy: Busy) -> Option<CsmaLink> {
        match self {
            Self::Oqpsk250 => Some(CsmaLink::oqpsk250(busy)),
            Self::Fsk100 => Some(CsmaLink::fsk100(busy)),
            Self::Cellular => None,
        }
    }
}

/// The hops of a path in order; all lists have the same length.
#[derive(Debug, Clone, PartialEq)]
pub struct Hops {
    /// Medium of each hop.
    pub phys: Vec<Phy>,
    /// Probability that the hop's transmitter finds the channel busy, 0 to 1.
    pub busy: Vec<f64>,
    /// Packets per second that the hop's transmitter sends.
    pub rates: Vec<f64>,
}

/// Packets, queues, channel access, and the cellular network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Packets {
    /// Payload of a data packet in bytes.
    pub payload: u32,
    /// Headers on the air in bytes; also the size of a SYN and of an ACK.
    pub header: u32,
    /// Limit on the packets in a node, including the one in transmission; `None` means no limit.
    pub queue: Option<u32>,
    /// Bit rate of cellular hops in bit/s.
    pub cellular_rate: f64,
    /// Delay that the cellular network adds to each of its hops, in seconds.
    pub cellular_delay: f64,
    /// Channel access of the other hops.
    pub csma: Csma,
}

impl Packets {
    fn transmitters(&self, hops: &Hops) -> Vec<Transmitter> {
        let each = hops.phys.iter().zip(&hops.busy).zip(&hops.rates);
        each.map(|((phy, &busy), &arrivals)| {
            let link = match phy.radio(Busy::Constant(busy)) {
                Some(radio) => Link::Csma(CsmaLink { csma: self.csma, ..radio }),
                None => {
                    Link::Cellular(CellularLink { bandwidth: self.cellular_rate, delay: self.cellular_delay })
                }
            };
            Transmitter { link, arrivals, capacity: self.queue }
        })
        .collect()
    }

    /// Times of the way there and `back`. Without `back`, the way back takes as long as the way
    /// there.
    pub(super) fn travel(
        &self,
        there: &Hops,
        back: Option<&Hops>,
        reading: Reading,
    ) -> Result<Travel, ModelError> {
        let queued = self.payload.saturating_add(self.header);
        let route = Route {
            forward: self.transmitters(there),
            reverse: back.map_or_else(Vec::new, |hops| self.transmitters(hops)),
            sizes: Sizes { header: self.header, payload: self.payload, queued },
        };
        travel(&route, reading)
    }
}

/// How to read the paper, with the channel access time averaged over these attempts.
pub(super) fn reading(printed: bool, access: Option<AccessTime>) -> Reading {
    let reading = if printed { Reading::printed() } else { Reading::default() };
    Reading { access: access.unwrap_or(reading.access), ..reading }
}

/// Advice on a refusal, with the parameter to change, if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hint {
    /// The advice.
    pub text: &'static str,
    /// Name of the parameter, as in [`Packets`] and in Python: `max_be`.
    pub parameter: Option<&'static str>,
}

/// Advice on an error of the model.
pub fn hint(error: &ModelError) -> Option<Hint> {
    // Fields of the model. A name that contains another one comes before it, since the first match
    // counts.
    const HINTS: [(&str, &str, Option<&str>); 19] = [
        (
            "utilisation",
            "fewer packets a second (`rate`), a channel that is less busy, or a limit of the queue",
            Some("queue"),
        ),
        ("max_be", "macMaxBE of the standard is 3 to 8", Some("max_be")),
        ("min_be", "macMinBE is 0 to macMaxBE", Some("min_be")),
        ("max_backoffs", "macMaxCSMABackoffs of the standard is 0 to 5", Some("backoffs")),
        ("busy", "a probability, as in 0.3", None),
        ("arrivals", "packets a second, as in 10 (`rate`)", None),
        ("capacity", "packets, as in 20", Some("queue")),
        (
            "rtt must",
            "a time above 0; equation (6) as printed is negative with a limit of the queue (M1)",
            Some("queue"),
        ),
        ("t_first", "`first` is a time above 0", None),
        ("rto must", "a time above 0", None),
        ("header", "bytes on the air, at least 1", Some("header")),
        ("payload", "bytes, at most 65535", Some("payload")),
        ("queued", "header and payload are too long for one packet", None),
        ("bandwidth", "at most 1000 Gbit/s", Some("cellular_rate")),
        ("delay", "at most 1000 s", Some("cellular_delay")),
        ("cwnd", "the window that the path has now, in packets", None),
        ("w_max", "the largest window, in packets", None),
        ("w_min", "the window after a time-out is at least 1 and at most w_max", None),
        ("loss", "a probability, as in 0.02", None),
    ];
    let text = error.to_string();
    let found = HINTS.iter().find(|(field, ..)| text.contains(field));
    found.map(|(_, text, parameter)| Hint { text, parameter: *parameter })
}
