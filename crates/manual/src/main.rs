//! What is generated from the code for those who install or write files: manual pages and the JSON
//! Schema of scenarios.
//!
//! `cargo xtask gen` and `cargo xtask man` run it. It is a program of its own so that no program of
//! users has to be built with what it needs.

#![forbid(unsafe_code)]

mod packages;
mod pages;

use std::path::PathBuf;
use std::process::ExitCode;

use anabranch_deploy::error::Error;
use anabranch_deploy::{exit, output};
use anabranch_sim::scenario::record::json_schema;
use clap::{Parser, Subcommand};

/// Generates what is made from the code of anabranch
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print the JSON Schema of scenario files
    Schema,
    /// Write a manual page for each command into a folder, which must be there; pages of these
    /// names are replaced
    Man {
        /// The folder
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
