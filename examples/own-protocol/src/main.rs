//! The program `anabranch` with three custom policies beside the built-in ones.

mod congestion;
mod scheduler;
mod striping;

use std::process::ExitCode;

use anabranch_scenario::Policies;

fn main() -> ExitCode {
    let ours = Policies::default()
        .congestion(congestion::VEGAS)
        .scheduler(scheduler::SOONEST)
        .striping(striping::LEAST);
    anabranch_cli::main(&ours)
}
