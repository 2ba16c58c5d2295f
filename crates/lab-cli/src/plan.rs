//! `anabranch plan`: the closed-form models.

mod csma;
mod radio;
mod rtt;
mod schedule;
mod set;
mod sockbuf;

use anabranch_deploy::error::Error;
use clap::Subcommand;

/// Commands of `plan`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// SET: latency for each number of gateways, its parts, and the best number
    Set(set::Arguments),
    /// IEEE 802.15.4 channel access: back-off periods until a node gains the channel, and the
    /// probability that it does
    Csma(csma::Arguments),
    /// Round-trip time over a path of IEEE 802.15.4 and cellular hops, and its parts
    Rtt(rtt::Arguments),
    /// Multipath TCP scheduling: packets to send on each path before the next slower path delivers
    /// its first
    Schedule(schedule::Arguments),
    /// Controlled send buffers: gains, roots, overshoot and settling time after a step of the
    /// demand
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
