//! Generates files for packagers and authors of scenarios: manual pages and the JSON Schema of
//! scenario files.
//!
//! `cargo xtask gen` and `cargo xtask man` run this program. It is separate from the users'
//! programs so that they do not have to be built with its dependencies.

#![forbid(unsafe_code)]

mod packages;
mod pages;

use std::path::PathBuf;
use std::process::ExitCode;

use anabranch_deploy::error::Error;
use anabranch_deploy::{exit, output};
use anabranch_scenario::record::json_schema;
use clap::{Parser, Subcommand};

/// Generate the manual pages and the JSON Schema of anabranch
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print the JSON Schema of scenario files
    Schema,
    /// Write a manual page for each command into an existing folder; files of the same names are
    /// replaced
    Man {
        /// Folder for the pages
        folder: PathBuf,
    },
    /// Write the manual pages and completions of the packages: `small` and `lab`, each with folders
    /// `man` and `completions/SHELL`
    Packages {
        /// The folder; what it has is replaced
        folder: PathBuf,
    },
}

fn main() -> ExitCode {
    exit(run(&Arguments::parse().command))
}

fn run(command: &Command) -> Result<(), Error> {
    match command {
        Command::Schema => output::text(&schema()),
        Command::Man { folder } => pages::write(folder, anabranch_lab_cli::program()),
        Command::Packages { folder } => packages::write(folder),
    }
}

fn schema() -> String {
    serde_json::to_string_pretty(&json_schema()).expect("a schema is plain data") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_in_the_repository_is_the_one_of_the_code() {
        let kept = include_str!("../../../docs/reference/scenario.schema.json");
        assert!(schema() == kept, "stale: docs/reference/scenario.schema.json; run `cargo xtask gen`");
    }

    #[test]
    fn the_schema_knows_every_key() {
        let schema = schema();
        for key in ["gateways", "loss_factors", "rto_initial", "convergence", "good_to_bad", "sweep"] {
            assert!(schema.contains(&format!("\"{key}\"")), "{key}");
        }
    }
}
