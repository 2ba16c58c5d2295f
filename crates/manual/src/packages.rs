//! What packages contain beside programs and configuration: manual pages and completions.

use std::fs;
use std::path::Path;

use anabranch_deploy::error::Error;
use anabranch_deploy::programs;
use anabranch_host::{cache, multipath};
use clap::Command;
use clap_complete::Shell;

use crate::pages;

/// Writes the folders `small` and `lab`. A page that the small programs have is not written again
/// for the laboratory, whose package is installed beside theirs.
///
/// # Errors
/// A file cannot be written.
pub(crate) fn write(folder: &Path) -> Result<(), Error> {
    let (small, lab) = (folder.join("small"), folder.join("lab"));
    for folder in [&small, &lab] {
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(|error| failed(folder, &error))?;
        }
        make(&folder.join("man"))?;
    }
    for program in programs::all()
        .into_iter()
        .chain([cache::program(), multipath::program()].iter().map(programs::alone))
    {
        pages::write(&small.join("man"), program.clone())?;
        completions(&small, program)?;
    }
    pages::write(&lab.join("man"), anabranch_lab_cli::program())?;
    completions(&lab, anabranch_lab_cli::program())?;
    let listing = fs::read_dir(small.join("man")).map_err(|error| failed(&small, &error))?;
    for page in listing.flatten() {
        let twin = lab.join("man").join(page.file_name());
        if twin.exists() {
            fs::remove_file(&twin).map_err(|error| failed(&twin, &error))?;
        }
    }
    Ok(())
}

/// Files under the names that each shell looks for.
fn completions(folder: &Path, mut program: Command) -> Result<(), Error> {
    let name = program.get_name().to_owned();
    let shells = [
        (Shell::Bash, "bash", name.clone()),
        (Shell::Zsh, "zsh", format!("_{name}")),
        (Shell::Fish, "fish", format!("{name}.fish")),
    ];
    for (shell, place, file) in shells {
        let place = folder.join("completions").join(place);
        make(&place)?;
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut program, &name, &mut script);
        let path = place.join(file);
        fs::write(&path, script).map_err(|error| failed(&path, &error))?;
    }
    Ok(())
}

fn make(folder: &Path) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(|error| failed(folder, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> Error {
    Error::job(format!("cannot write {}: {error}", path.display()))
}
