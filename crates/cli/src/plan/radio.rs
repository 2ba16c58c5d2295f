//! What `plan csma`, `rtt` and `schedule` have in common: the radio, the packets, and values per hop.

use std::str::FromStr;

use anabranch_model::mptcp::ModelError;
use anabranch_model::mptcp::csma::{Busy, Csma};
use anabranch_model::mptcp::rtt::{CellularLink, CsmaLink, Link, Route, Sizes, Transmitter};
use anabranch_sim::scenario::units::{Rate, Span};
use clap::ValueEnum;

use crate::error::Error;

/// What a hop goes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Phy {
    /// IEEE 802.15.4 O-QPSK, 250 kbit/s at 2.4 GHz
    Oqpsk250,
    /// IEEE 802.15.4 SUN-FSK, 100 kbit/s
    Fsk100,
    /// A cellular network, without channel access
    Cellular,
}

impl Phy {
    /// As the program writes it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Oqpsk250 => "oqpsk250",
            Self::Fsk100 => "fsk100",
            Self::Cellular => "cellular",
        }
    }

    /// The radio's times; none for a cellular network.
    pub(super) fn radio(self, busy: Busy) -> Option<CsmaLink> {
        match self {
            Self::Oqpsk250 => Some(CsmaLink::oqpsk250(busy)),
            Self::Fsk100 => Some(CsmaLink::fsk100(busy)),
            Self::Cellular => None,
        }
    }
}

/// Channel access.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct Backoff {
    /// macMinBE: the first back-off draws from 2^N periods
    #[arg(long, value_name = "N", default_value_t = 3)]
    min_be: u32,
    /// macMaxBE: none draws from more than 2^N
    #[arg(long, value_name = "N", default_value_t = 5)]
    max_be: u32,
    /// macMaxCSMABackoffs: back-offs after the first
    #[arg(long, value_name = "N", default_value_t = 4)]
    backoffs: u32,
}

impl Backoff {
    pub(super) fn csma(self) -> Csma {
        Csma { min_be: self.min_be, max_be: self.max_be, max_backoffs: self.backoffs }
    }
}

/// Packets, queues, and the cellular network.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct Packets {
    /// Octets of a data packet's payload
    #[arg(long, value_name = "OCTETS", default_value_t = 100)]
    pub(super) payload: u32,
    /// Octets of headers on the air: a SYN's and an ACK's size
    #[arg(long, value_name = "OCTETS", default_value_t = 40)]
    pub(super) header: u32,
    /// Packets that a node holds at most, the one that it sends included [default: no limit]
    #[arg(long, value_name = "PACKETS")]
    pub(super) queue: Option<u32>,
    /// Rate of cellular hops
    #[arg(long, value_name = "RATE", default_value = "10Mbit/s")]
    cellular_rate: Rate,
    /// What a cellular network adds to each of its hops
    #[arg(long, value_name = "TIME", default_value = "0s")]
    cellular_delay: Span,
    #[command(flatten)]
    backoff: Backoff,
}

impl Packets {
    /// Hop after hop, as the three lists say.
    pub(super) fn transmitters(self, phys: &[Phy], busy: &[f64], rates: &[f64]) -> Vec<Transmitter> {
        let hops = phys.iter().zip(busy).zip(rates);
        hops.map(|((phy, &busy), &arrivals)| {
            let link = match phy.radio(Busy::Constant(busy)) {
                Some(radio) => Link::Csma(CsmaLink { csma: self.backoff.csma(), ..radio }),
                None => Link::Cellular(CellularLink {
                    bandwidth: self.cellular_rate.0 as f64,
                    delay: self.cellular_delay.0.as_secs_f64(),
                }),
            };
            Transmitter { link, arrivals, capacity: self.queue }
        })
        .collect()
    }

    pub(super) fn route(self, forward: Vec<Transmitter>, reverse: Vec<Transmitter>) -> Route {
        let queued = self.payload.saturating_add(self.header);
        Route { forward, reverse, sizes: Sizes { header: self.header, payload: self.payload, queued } }
    }
}

/// Which equations, in one word.
pub(super) fn equations(printed: bool) -> &'static str {
    if printed { "printed" } else { "corrected" }
}

/// Values for each of `hops` hops from a text: one value for all, or one for each, separated by `separator`.
pub(super) fn per_hop<T: FromStr + Copy>(
    option: &str,
    text: &str,
    separator: char,
    hops: usize,
) -> Result<Vec<T>, Error> {
    let values = text.split(separator).map(|one| {
        let one = one.trim();
        one.parse().map_err(|_| {
            Error::input(format!("{option}: `{one}` is not a number"))
                .with_hint("a number for all hops, or one for each")
        })
    });
    let values: Vec<T> = values.collect::<Result<_, _>>()?;
    match values[..] {
        [all] => Ok(vec![all; hops]),
        _ if values.len() == hops => Ok(values),
        _ => Err(Error::input(format!("{option}: {} values for {}", values.len(), counted(hops, "hop")))
            .with_hint("one value for all hops, or one for each")),
    }
}

/// PHYs for each of `hops` hops, as [`per_hop`].
pub(super) fn phys(option: &str, text: &str, separator: char, hops: usize) -> Result<Vec<Phy>, Error> {
    let names = text.split(separator).map(|name| {
        Phy::from_str(name.trim(), false).map_err(|_| {
            Error::input(format!("{option}: there is no PHY `{}`", name.trim()))
                .with_hint("oqpsk250, fsk100 or cellular")
        })
    });
    let names: Vec<Phy> = names.collect::<Result<_, _>>()?;
    match names[..] {
        [all] => Ok(vec![all; hops]),
        _ if names.len() == hops => Ok(names),
        _ => Err(Error::input(format!("{option}: {} PHYs for {}", names.len(), counted(hops, "hop")))
            .with_hint("one PHY for all hops, or one for each")),
    }
}

/// A model's refusal, with what the person at the keyboard can do about it.
pub(super) fn refused(error: &ModelError) -> Error {
    let text = error.to_string();
    // The model knows fields, the shell knows options.
    let hints = [
        ("utilisation", "fewer packets a second (`rate`), a channel that is less busy, or a `--queue` limit"),
        ("max_be", "macMaxBE of the standard is 3 to 8: --max-be"),
        ("min_be", "macMinBE is 0 to macMaxBE: --min-be"),
        ("max_backoffs", "macMaxCSMABackoffs of the standard is 0 to 5: --backoffs"),
        ("busy", "a probability, as in 0.3"),
        ("arrivals", "packets a second, as in 10: rate"),
        ("capacity", "packets, as in 20: --queue"),
        ("rtt must", "a time above 0; equation (6) as printed is negative with a --queue limit (M1)"),
        ("t_first", "`first` is a time above 0"),
        ("rto must", "a time above 0"),
        ("header", "octets on the air, at least 1: --header"),
        ("payload", "octets, at most 65535: --payload"),
        ("queued", "header and payload are too long for one packet"),
        ("bandwidth", "at most 1000 Gbit/s: --cellular-rate"),
        ("delay", "at most 1000s: --cellular-delay"),
        ("cwnd", "the window that the path has now, in packets"),
        ("w_max", "the largest window, in packets"),
        ("w_min", "the window after a time-out is at least 1 and at most w_max"),
        ("loss", "a probability, as in 0.02"),
    ];
    let hint = hints.iter().find(|(field, _)| text.contains(field));
    let error = Error::input(text.clone());
    match hint {
        Some((_, hint)) => error.with_hint(*hint),
        None => error,
    }
}

/// `1 hop`, `2 hops`.
pub(super) fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
