//! `anabranch completions`: shell completions, generated from the definition of the command line.

use anabranch_deploy::error::Error;
use anabranch_deploy::output;
use clap::ValueEnum;
use clap_complete::Shell;

/// Options of `completions`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Shell to print completions for
    #[arg(value_enum)]
    shell: KnownShell,
}

/// Shells whose completions are tested.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum KnownShell {
    Bash,
    Zsh,
    Fish,
}

/// Prints the completions of the whole program.
pub(crate) fn main(arguments: &Arguments) -> Result<(), Error> {
    let shell = match arguments.shell {
        KnownShell::Bash => Shell::Bash,
        KnownShell::Zsh => Shell::Zsh,
        KnownShell::Fish => Shell::Fish,
    };
    let mut program = crate::program();
    let name = program.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, name, &mut script);
    output::text(&String::from_utf8_lossy(&script))
}
