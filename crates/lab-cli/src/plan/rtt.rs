//! `anabranch plan rtt`: the round-trip time model of section VI of the multipath TCP paper.

use anabranch_deploy::error::Error;
use anabranch_deploy::output;
use anabranch_lab::plan::hops::Hops;
use anabranch_lab::plan::rtt::{self, Answer, Question};
use anabranch_model::mptcp::AccessTime;
use clap::ValueEnum;

use super::radio::{Packets, counted, per_hop, phys, refused};

/// Options of `plan rtt`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Number of hops between the node and the data centre
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    hops: u32,
    /// Radio of the hops: oqpsk250, fsk100 or cellular; one value for all hops, or one per hop,
    /// starting at the node
    #[arg(long, value_name = "PHY,...", default_value = "fsk100")]
    phy: String,
    /// Probability that a transmitter finds the channel busy; one value for all hops, or one per
    /// hop
    #[arg(long, value_name = "P,...", default_value = "0", allow_hyphen_values = true)]
    busy: String,
    /// Packets per second that each transmitter sends, including those that it forwards; one value
    /// for all hops, or one per hop
    #[arg(long, value_name = "RATE,...", default_value = "1", allow_hyphen_values = true)]
    rate: String,
    /// `--busy` for the way back, starting at the data centre [default: the way back takes as long
    /// as the way there]
    #[arg(long, value_name = "P,...", allow_hyphen_values = true)]
    back_busy: Option<String>,
    /// `--rate` for the way back, starting at the data centre [default: the way back takes as long
    /// as the way there]
    #[arg(long, value_name = "RATE,...", allow_hyphen_values = true)]
    back_rate: Option<String>,
    /// Attempts over which the channel access time is averaged
    #[arg(long, value_enum, default_value_t = Attempts::Any)]
    access: Attempts,
    #[command(flatten)]
    packets: Packets,
    /// Use the paper's equations as printed, with their errata
    #[arg(long)]
    printed: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Attempts over which the channel access time is averaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Attempts {
    /// All attempts, as in equation (4)
    Any,
    /// Only attempts that gain the channel
    Won,
}

pub(crate) fn main(arguments: &Arguments) -> Result<(), Error> {
    let access = match arguments.access {
        Attempts::Any => AccessTime::Any,
        Attempts::Won => AccessTime::Won,
    };
    let hops = arguments.hops as usize;
    let there = Hops {
        phys: phys("--phy", &arguments.phy, ',', hops)?,
        busy: per_hop("--busy", &arguments.busy, ',', hops)?,
        rates: per_hop("--rate", &arguments.rate, ',', hops)?,
    };
    let mut back = None;
    if arguments.back_busy.is_some() || arguments.back_rate.is_some() {
        // The hops of the way back are counted from the data centre, so the order is reversed.
        let values = |option, given: &Option<String>, there: &[f64]| match given {
            Some(text) => per_hop(option, text, ',', hops),
            None => Ok(there.iter().rev().copied().collect()),
        };
        back = Some(Hops {
            phys: there.phys.iter().rev().copied().collect(),
            busy: values("--back-busy", &arguments.back_busy, &there.busy)?,
            rates: values("--back-rate", &arguments.back_rate, &there.rates)?,
        });
    }
    let packets = arguments.packets.into();
    let answer = rtt::answer(Question { there, back, access, packets, printed: arguments.printed })
        .map_err(|error| refused(&error))?;
    if arguments.json { output::json(&answer.object()) } else { output::text(&table(&answer)) }
}

fn table(Answer { question, travel: travelled }: &Answer) -> String {
    let phys = &question.there.phys;
    let mut text = format!("{:>8}{:>10}", "hop", "over");
    for head in ["queue", "back-off", "turnaround", "on air", "MAC ACK", "delay", "total", "used"] {
        text += &format!("{head:>11}");
    }
    text.push('\n');
    for (name, hops, phys) in [
        ("", &travelled.forward, phys.clone()),
        ("back ", &travelled.reverse, phys.iter().rev().copied().collect()),
    ] {
        for (i, (hop, phy)) in hops.iter().zip(phys).enumerate() {
            text += &format!("{:>8}{:>10}", format!("{name}{}", i + 1), phy.name());
            let parts = [hop.wait, hop.back_off, hop.turnaround, hop.transmission, hop.mac_ack, hop.delay];
            for part in parts.iter().chain([&hop.total()]) {
                text += &format!("{:11.3}", part * 1e3);
            }
            text += &format!("{:9.1} %\n", hop.queue.utilisation * 100.0);
        }
    }
    text += "\ntimes in ms, of a packet without payload\n\n";
    for (what, seconds) in [
        ("round trip".to_owned(), travelled.rtt()),
        ("forward".to_owned(), travelled.syn),
        ("back".to_owned(), travelled.ack),
        (
            format!("first packet, {}, forward", counted(question.packets.payload as usize, "byte")),
            travelled.t_first,
        ),
        ("each further packet".to_owned(), travelled.t_next),
    ] {
        text += &format!("{what:34}{:10.3} ms\n", seconds * 1e3);
    }
    text + &format!("{:34}{:10.5}\n", "channel gained at every hop", travelled.gained())
}
