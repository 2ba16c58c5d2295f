//! `cargo xtask book`: the documentation as a book.
//!
//! mdBook goes into the target folder and nowhere else. It sees a copy of `docs`, in which links to
//! the rest of the repository have been turned to copies of what they name ([`stage`]): so the
//! pages keep their places and links on a forge, and the book needs nothing beside itself.

mod stage;

use crate::cargo;
use crate::failure::Failure;
use crate::tools::{self, Tool};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What makes the book: without its defaults there is no web server, no file watcher and no search.
/// Unoptimised it takes a quarter of a second for the book.
const MDBOOK: Tool =
    Tool { name: "mdbook", version: "0.5.4", arguments: &["--no-default-features"], purpose: "the book" };

/// `book [--open]`.
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

/// Whether there is a book.
pub(crate) enum Made {
    /// Its first page.
    Book(PathBuf),
    /// Why is on stderr.
    Skipped,
}

/// Makes it anew.
pub(crate) fn make() -> Result<Made, Failure> {
    let Some(program) = tools::installed(&MDBOOK) else { return Ok(Made::Skipped) };
    let target = cargo::target();
    // Two suites may make the book at once.
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
