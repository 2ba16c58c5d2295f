//! `cargo xtask book`: the documentation as a book.
//!
//! mdBook is installed in the target folder only. It reads a copy of `docs` in which links to the
//! rest of the repository lead to copies of their targets ([`stage`]). So the pages keep their
//! links on a forge, and the book is complete by itself.

mod stage;

use crate::cargo;
use crate::failure::Failure;
use crate::tools::{self, Tool};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// mdBook without its default features: no web server, file watcher or search. It is not optimised,
/// since it makes the book in a quarter of a second anyway.
const MDBOOK: Tool =
    Tool { name: "mdbook", version: "0.5.4", arguments: &["--no-default-features"], purpose: "the book" };

/// Runs `book [--open]`.
pub(crate) fn command(args: &[String]) -> Result<(), Failure> {
    let open = match args {
        [] => false,
        [flag] if flag == "--open" => true,
        _ => return Err(Failure::Usage("book takes `--open` or nothing".into())),
    };
    if let Made::Book(index) = make()? {
        println!("{}", index.display());
        if open {
            return show(&index);
        }
    }
    Ok(())
}

/// Result of making the book.
pub(crate) enum Made {
    /// First page of the book.
    Book(PathBuf),
    /// The book was skipped; the reason was printed on stderr.
    Skipped,
}

/// Makes the book anew.
pub(crate) fn make() -> Result<Made, Failure> {
    let Some(program) = tools::installed(&MDBOOK) else { return Ok(Made::Skipped) };
    let target = cargo::target();
    // Two test suites may make the book at the same time, so take turns.
    let turn = File::create(target.join("book.lock")).and_then(|file| file.lock().map(|()| file));
    let _turn = turn.map_err(|error| Failure::Job(format!("cannot lock the book: {error}")))?;
    let staged = target.join("book-source");
    stage::copy(&cargo::root(), &staged).map_err(Failure::Job)?;
    let book = target.join("book");
    let mut command = Command::new(program);
    command.arg("build").arg(&staged).arg("--dest-dir").arg(&book);
    cargo::run(command)?;
    Ok(Made::Book(book.join("index.html")))
}

fn show(index: &Path) -> Result<(), Failure> {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    command.arg(index);
    cargo::run(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn book_knows_one_flag() {
        for bad in [&["--opne"][..], &["--open", "x"]] {
            let args: Vec<String> = bad.iter().map(|word| (*word).to_owned()).collect();
            assert!(matches!(command(&args), Err(Failure::Usage(_))), "{bad:?}");
        }
    }
}
