//! `anabranch plan`: the closed-form models.

mod csma;
mod radio;
mod rtt;
mod schedule;
mod set;
mod sockbuf;

use anabranch_deploy::error::Error;
use clap::Subcommand;

/// What `plan` does.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// SET: latency by number of gateways, its parts, and the best number
    Set(set::Arguments),
    /// IEEE 802.15.4: back-off periods until a node gains the channel, and how likely it does
    Csma(csma::Arguments),
    /// Round-trip time over a path of 802.15.4 and cellular hops, and its parts
    Rtt(rtt::Arguments),
    /// Multipath TCP: packets for each path before the next slower one delivers its first
    Schedule(schedule::Arguments),
    /// Send buffers under control: gains, roots, overshoot and settling after a step of the demand
    Sockbuf(sockbuf::Arguments),
}

pub(crate) fn main(command: &Command) -> Result<(), Error> {
    match command {
        Command::Set(arguments) => set::main(arguments),
        Command::Csma(arguments) => csma::main(arguments),
        Command::Rtt(arguments) => rtt::main(arguments),
        Command::Schedule(arguments) => schedule::main(arguments),
        Command::Sockbuf(arguments) => sockbuf::main(arguments),
    }
}
