//! Command line of the fuzzer.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anabranch_fuzz::probe::Probe;
use anabranch_fuzz::runner::{self, Budget};
use anabranch_fuzz::targets::{TARGETS, Target};
use anabranch_fuzz::{crash, targets};
use clap::Parser;

/// Run a fuzz target for a while, or replay one input
#[derive(Parser, Debug)]
#[command(name = "anabranch-fuzz")]
struct Arguments {
    /// Name of the target, or `list` to print the names of all targets
    target: String,
    /// Duration of the run, in seconds
    #[arg(long, value_name = "N", default_value_t = 10)]
    seconds: u64,
    /// Seed of the inputs: with the same seed and corpus, the same inputs run in the same order
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print the number of executions that reach each landmark of the target; slower
    #[arg(long)]
    landmarks: bool,
    /// Run only this input, print each step, and do not catch its panic
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seconds", "seed"])]
    replay: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.target == "list" {
        TARGETS.iter().for_each(|target| println!("{}", target.name));
        return ExitCode::SUCCESS;
    }
    let Some(target) = targets::find(&arguments.target) else {
        let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
        return usage(&format!("no target is called {}; there are {}", arguments.target, names.join(", ")));
    };
    match &arguments.replay {
        Some(file) => replay(target, file),
        None => run(target, &arguments),
    }
}

fn replay(target: &Target, file: &Path) -> ExitCode {
    match fs::read(file) {
        Ok(input) => {
            (target.run)(&input, &mut Probe::narrating());
            println!("{}: no panic", target.name);
            ExitCode::SUCCESS
        }
        Err(error) => usage(&format!("cannot read {}: {error}", file.display())),
    }
}

fn run(target: &Target, arguments: &Arguments) -> ExitCode {
    let corpus = match runner::corpus(target) {
        Ok(corpus) => corpus,
        Err(error) => return usage(&format!("cannot read the corpus of {}: {error}", target.name)),
    };
    let budget = Budget::Time(Duration::from_secs(arguments.seconds));
    let probe = if arguments.landmarks { Probe::looking_inside() } else { Probe::quiet() };
    let report = runner::run_with(target, &corpus, arguments.seed, budget, probe);
    println!(
        "{}: {} executions, {} features, {} inputs kept, seed {}",
        target.name, report.executions, report.features, report.kept, arguments.seed
    );
    if arguments.landmarks {
        report.landmarks.iter().for_each(|(landmark, executions)| println!("{executions:>9} {landmark}"));
    }
    let Some(crash) = report.crash else { return ExitCode::SUCCESS };
    println!("panic at {}: {}", crash.failure.place, crash.failure.message);
    match crash::store(&crash::directory(), target.name, &crash.input) {
        Ok(file) => {
            let replay = format!("-- {} --replay {}", target.name, file.display());
            println!("replay: cargo run --profile fuzz -p anabranch-fuzz {replay}");
        }
        Err(error) => println!("its input cannot be stored ({error}): {:02x?}", crash.input),
    }
    ExitCode::FAILURE
}

fn usage(message: &str) -> ExitCode {
    eprintln!("anabranch-fuzz: {message}");
    ExitCode::from(2)
}
