//! Command lines of the small programs, which are built for machines that have room for one
//! command.
//!
//! The programs parse them; manual pages and completions are generated from them.

use clap::{Args, Command, Parser, Subcommand};

use crate::error::Error;
use crate::{config, gateway, key, manifest, node, push};
#[cfg(feature = "rdca")]
use crate::{sense, sink};

/// Help of `sense`.
pub const SENSE: &str = "Send records to a sink, as one of many sensors";
/// Help of `sink`.
pub const SINK: &str = "Collect records from many sensors";
/// Help of `cache`.
pub const CACHE: &str = "Cache TCP segments that this host forwards, and repair losses";
/// Help of `multipath`.
pub const MULTIPATH: &str = "Speak Multipath TCP over all interfaces, for programs that do not";
/// Help of `tune`.
pub const TUNE: &str = "Manage the send buffers of running programs under a memory budget";

/// The program `anabranch-gateway`.
#[must_use]
pub fn gateway() -> Command {
    definition::<gateway::Arguments>(
        "anabranch-gateway",
        "Relay between senders and nodes, as one of the gateways of a network",
    )
}

/// The program `anabranch-node`.
#[must_use]
pub fn node() -> Command {
    definition::<node::Arguments>("anabranch-node", "Receive files from senders, through gateways")
}

/// The program `anabranch-push`.
#[must_use]
pub fn push() -> Command {
    const NAME: &str = "anabranch-push";
    let program = definition::<push::Arguments>(NAME, "Deliver a file to a node through several gateways");
    // Without a simulator there is no other destination.
    program.mut_subcommand(NAME, |command| command.mut_arg("to", |to| to.required(true)))
}

/// The program `anabranch-sense`.
#[cfg(feature = "rdca")]
#[must_use]
pub fn sense() -> Command {
    definition::<sense::Arguments>("anabranch-sense", SENSE)
}

/// The program `anabranch-sink`.
#[cfg(feature = "rdca")]
#[must_use]
pub fn sink() -> Command {
    definition::<sink::Arguments>("anabranch-sink", SINK)
}

/// The program `anabranch-tune`.
#[cfg(feature = "sockbuf")]
#[must_use]
pub fn tune() -> Command {
    definition::<crate::tune::Arguments>("anabranch-tune", TUNE)
}

/// The program `anabranch-key`: make keys of senders, gateways and nodes, and sign files and
/// manifests
#[derive(Debug, Parser)]
#[command(
    name = "anabranch-key",
    about = "Make keys of senders, gateways and nodes, and sign files and manifests",
    version,
    max_term_width = 100
)]
pub struct Key {
    #[command(subcommand)]
    command: KeyCommand,
}

#[derive(Debug, Subcommand)]
enum KeyCommand {
    #[command(flatten)]
    Key(key::Command),
    /// Sign manifests of firmware, and check them
    #[command(subcommand)]
    Manifest(manifest::Command),
}

impl Key {
    /// Runs the command that was parsed.
    ///
    /// # Errors
    /// As `anabranch key` and `anabranch manifest`.
    pub fn run(&self) -> Result<(), Error> {
        match &self.command {
            KeyCommand::Key(command) => key::main(command),
            KeyCommand::Manifest(command) => manifest::main(command),
        }
    }
}

/// The definition of each program under its own name, for manual pages and completions.
#[cfg(all(feature = "rdca", feature = "sockbuf"))]
#[must_use]
pub fn all() -> Vec<Command> {
    let programs = [gateway(), node(), push(), sense(), sink(), tune()];
    programs.iter().map(alone).chain([<Key as clap::CommandFactory>::command()]).collect()
}

/// The definition of a program of one command under its own name.
#[must_use]
pub fn alone(program: &Command) -> Command {
    program.get_subcommands().next().expect("it has one").clone()
}

/// The definition of a program `name` that is one command with the options of `A`.
#[must_use]
pub fn definition<A: Args>(name: &'static str, about: &'static str) -> Command {
    let command = A::augment_args(Command::new(name)).version(env!("CARGO_PKG_VERSION")).max_term_width(100);
    // The options' own description is about options, not about the program.
    let command = command.about(about).long_about(None::<&str>);
    // A program of one command is a multicall program: its own name is the command's, and
    // `--config` works as it does for a subcommand of `anabranch`.
    let program = Command::new("anabranch").multicall(true).subcommand(command);
    config::with_files(program)
}
