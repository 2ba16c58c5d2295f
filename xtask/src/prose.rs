//! `cargo xtask prose`: spelling by typos, words and readability by Vale.
//!
//! typos is a package of the Python environment of the tests; Vale is a Go program, which Go
//! installs into the target folder. Without Go that part is skipped with a line that says so.

use crate::failure::Failure;
use crate::{cargo, python};
use std::path::PathBuf;
use std::process::Command;

/// Vale's module in the exact version.
const VALE: &str = "github.com/vale-cli/vale/v3/cmd/vale@v3.21.0";

/// `prose`.
pub(crate) fn run() -> Result<(), Failure> {
    match python::program("typos")? {
        Ok(typos) => cargo::run(here(Command::new(typos)))?,
        Err(why) => eprintln!("SKIPPED: spelling: {why}"),
    }
    match vale() {
        Some(vale) => {
            let mut command = here(Command::new(vale));
            command.args(["--no-global", "--output=line", "--glob=!{target/**,crates/python/.venv/**}", "."]);
            cargo::run(command)?;
        }
        None => eprintln!("SKIPPED: words and readability: Vale needs go, which is not here"),
    }
    println!("prose: spelling, words and readability are as they should be");
    Ok(())
}

fn here(mut command: Command) -> Command {
    command.current_dir(cargo::root());
    command
}

/// Vale, installed if need be.
fn vale() -> Option<PathBuf> {
    let tools = cargo::target().join("tools/bin");
    let program = tools.join("vale");
    let mark = tools.join(VALE.replace('/', "-"));
    if program.exists() && mark.exists() {
        return Some(program);
    }
    let mut install = Command::new("go");
    install.args(["install", VALE]).env("GOBIN", &tools).env("GOFLAGS", "-mod=mod");
    let done = install.status().is_ok_and(|status| status.success()) && std::fs::write(mark, "").is_ok();
    done.then_some(program)
}
