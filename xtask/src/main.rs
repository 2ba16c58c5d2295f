//! The repository's rules and chores: `cargo xtask <command>`.
//!
//! Code map: [`tidy`] is the rules (floors, circles, what may not stand in a file), [`prose`] the
//! language; [`suite`] runs everything that tests and counts, [`python`] the Python package's part
//! of it; [`chores`] starts the longer jobs and regenerates what is generated, and the benchmarks
//! by a module of their own; [`dist`] builds the packages of a release; [`slim`] measures the small
//! programs, [`first_contact`] what a newcomer waits for, [`load`] repeats the suite on a busy
//! machine, [`mutants`] tests the tests; [`compare`] holds our TCP against the kernel's and ns-3's,
//! and our radios against ns-3's; [`book`] makes the book of `docs`, [`mod@reference`] its page
//! about scenarios; [`cargo`] starts cargo, [`tools`] installs programs of others, [`failure`] is
//! how a command fails. One dependency, a JSON reader, so that the first build of a fresh clone is
//! short.

mod bench;
mod book;
mod campaigns;
mod cargo;
mod chores;
mod compare;
mod dist;
mod failure;
mod first_contact;
mod load;
mod mutants;
mod parallel;
mod prose;
mod python;
mod reference;
mod slim;
mod suite;
mod tidy;
mod tools;

use failure::{Failure, expect_none};
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <command>

  test [OPTIONS]            everything that tests: unit, integration and documentation tests, the examples, the Python package;
                            --slowest [N] lists the N slowest tests (default 20), --only PACKAGE tests one package
  python [--wheel | --built] [ARGS]
                            the Python package's tests alone: of a wheel, or without building; ARGS go to pytest
  tidy                      the rules: floors, circles of imports, licences, what may not stand in a file
  prose                     spelling by typos, words and readability by Vale
  fuzz [--seconds N] [--seed S]
                            every fuzz target for N seconds (default 60), with inputs of seed S (default 1)
  campaign NAME [ARGS...]   a long campaign: docs/evidence/campaigns.md
  compare linux|ns3|ns3 radio|worlds|sensors|rivals [--only NAME] [--quick] [--runs N] [--seconds N] [--at-once N] [--out FILE]
                            our TCP and the kernel's, or that of ns-3, over the same bottleneck; with `radio`, our radios
                            and ns-3's; `worlds` and `sensors` compare simulated pushes and sensors with deployed ones: docs/evidence/validation.md;
                            linux, worlds, sensors and rivals need root, ns3 needs libns3-dev and g++
  mutants [--sample N] [--seed S] [PLACE...]
                            which faults no test finds: N mutants per place (default 40), of tcp, set, wire-set, secure
  packetdrill PATH...       packetdrill scripts, files or folders of them, against the TCP of `core`: docs/reference/packetdrill.md
  bench [ARGS...]           the benchmarks, with what they need; ARGS go to cargo bench
  book [--open]             the documentation as a book: target/book
  man DIR                   the manual pages, into a folder that is there
  slim [--test]             the small programs: size and crates; --test runs the deployment tests with them
  dist [--out DIR]          the packages of a release, in target/dist-packages: deb, rpm, OCI image, archives, wheel, C library
  first-contact [STEP...]   what a newcomer waits for, on a new clone: push, test, change, ci
  gen [--check]             regenerate the generated files, or check that none is stale
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match args.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", &[][..]),
    };
    let outcome = match command {
        "test" => suite::command(rest),
        "python" => python::main(rest),
        "tidy" => expect_none(rest).and_then(|()| tidy::run()),
        "prose" => expect_none(rest).and_then(|()| prose::run()),
        "fuzz" => chores::fuzz(rest),
        "campaign" => campaigns::command(rest),
        "compare" => compare::command(rest),
        "mutants" => mutants::command(rest),
        "packetdrill" => chores::packetdrill(rest),
        "bench" => bench::run(rest),
        "book" => book::command(rest),
        "man" => chores::man(rest),
        "slim" => slim::command(rest),
        "dist" => dist::command(rest),
        "first-contact" => first_contact::command(rest),
        "gen" => chores::generate(rest),
        "help" | "--help" | "-h" => {
            print!("{USAGE}");
            Ok(())
        }
        other => Err(Failure::Usage(format!("there is no command `{other}`"))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Job(message)) => {
            eprintln!("error: {message}");
            ExitCode::from(1)
        }
        Err(Failure::Usage(message)) => {
            eprint!("error: {message}\n\n{USAGE}");
            ExitCode::from(2)
        }
        Err(Failure::Missing(message)) => {
            eprintln!("SKIPPED: {message}");
            ExitCode::from(3)
        }
    }
}
