//! Options that `plan csma`, `rtt` and `schedule` share: radio, packets, and values per hop.

use std::str::FromStr;

use anabranch_deploy::error::Error;
use anabranch_lab::plan::hops::{self, Hint, Phy};
use anabranch_model::mptcp::ModelError;
use anabranch_model::mptcp::csma::Csma;
use anabranch_scenario::units::{Rate, Span};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Parses a radio: `oqpsk250`, `fsk100` or `cellular`.
pub(super) fn phy() -> impl TypedValueParser<Value = Phy> {
    let names = Phy::ALL.map(|phy| PossibleValue::new(phy.name()).help(phy.about()));
    PossibleValuesParser::new(names).map(|name| Phy::named(&name).expect("one of the names"))
}

/// Options of channel access.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct Backoff {
    /// macMinBE: the first back-off is drawn from 2^N periods
    #[arg(long, value_name = "N", default_value_t = 3)]
    min_be: u32,
    /// macMaxBE: no back-off is drawn from more than 2^N periods
    #[arg(long, value_name = "N", default_value_t = 5)]
    max_be: u32,
    /// macMaxCSMABackoffs: number of back-offs after the first
    #[arg(long, value_name = "N", default_value_t = 4)]
    backoffs: u32,
}

impl Backoff {
    pub(super) fn csma(self) -> Csma {
        Csma { min_be: self.min_be, max_be: self.max_be, max_backoffs: self.backoffs }
    }
}

/// Options of packets, queues and the cellular network.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct Packets {
    /// Payload of a data packet, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    payload: u32,
    /// Headers of a packet on the air, in bytes; also the size of a SYN and of an ACK
    #[arg(long, value_name = "BYTES", default_value_t = 40)]
    header: u32,
    /// Limit on the packets in a node, including the one in transmission [default: no limit]
    #[arg(long, value_name = "PACKETS")]
    queue: Option<u32>,
    /// Bit rate of cellular hops
    #[arg(long, value_name = "RATE", default_value = "10Mbit/s")]
    cellular_rate: Rate,
    /// Delay that the cellular network adds to each of its hops
    #[arg(long, value_name = "TIME", default_value = "0s")]
    cellular_delay: Span,
    #[command(flatten)]
    backoff: Backoff,
}

impl From<Packets> for hops::Packets {
    fn from(packets: Packets) -> Self {
        let Packets { payload, header, queue, cellular_rate, cellular_delay, backoff } = packets;
        Self {
            payload,
            header,
            queue,
            cellular_rate: cellular_rate.0 as f64,
            cellular_delay: cellular_delay.0.as_secs_f64(),
            csma: backoff.csma(),
        }
    }
}

/// Parses one value for each of `hops` hops: either one value for all hops, or one per hop, with
/// `separator` between them.
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
                .with_hint("give one number for all hops, or one for each")
        })
    });
    let values: Vec<T> = values.collect::<Result<_, _>>()?;
    match values[..] {
        [all] => Ok(vec![all; hops]),
        _ if values.len() == hops => Ok(values),
        _ => Err(Error::input(format!("{option}: {} values for {}", values.len(), counted(hops, "hop")))
            .with_hint("give one value for all hops, or one for each")),
    }
}

/// Parses one PHY for each of `hops` hops, as [`per_hop`] does.
pub(super) fn phys(option: &str, text: &str, separator: char, hops: usize) -> Result<Vec<Phy>, Error> {
    let names = text.split(separator).map(|name| {
        Phy::named(name.trim()).ok_or_else(|| {
            Error::input(format!("{option}: unknown PHY `{}`", name.trim()))
                .with_hint("oqpsk250, fsk100 or cellular")
        })
    });
    let names: Vec<Phy> = names.collect::<Result<_, _>>()?;
    match names[..] {
        [all] => Ok(vec![all; hops]),
        _ if names.len() == hops => Ok(names),
        _ => Err(Error::input(format!("{option}: {} PHYs for {}", names.len(), counted(hops, "hop")))
            .with_hint("give one PHY for all hops, or one for each")),
    }
}

/// Converts an error of the model into an error of the program, with a hint that names the option.
pub(super) fn refused(error: &ModelError) -> Error {
    let refused = Error::input(error.to_string());
    match hops::hint(error) {
        Some(Hint { text, parameter: None }) => refused.with_hint(text),
        Some(Hint { text, parameter: Some(name) }) => {
            refused.with_hint(format!("{text}: --{}", name.replace('_', "-")))
        }
        None => refused,
    }
}

/// A number with its noun: `1 hop`, `2 hops`.
pub(super) fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
