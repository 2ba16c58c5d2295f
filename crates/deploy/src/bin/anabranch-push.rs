//! The program `anabranch-push`: only the command `anabranch push --to`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use anabranch_deploy::{alone, definition, push};

const NAME: &str = "anabranch-push";

fn main() -> ExitCode {
    let program = definition::<push::Arguments>(NAME, "Deliver a file to a node through several gateways");
    // Without a simulator, a deployed node is the only possible destination.
    let program = program.mut_subcommand(NAME, |command| command.mut_arg("to", |to| to.required(true)));
    alone::<push::Arguments>(program, |arguments| push::main(&arguments))
}
