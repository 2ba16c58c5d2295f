//! `cargo xtask dist`: the packages of a release, in `target/dist-packages` unless `--out` names
//! another folder.
//!
//! The programs are built with the profile `slim` (`dist`, stripped). The crate `package` writes
//! the files; `packaging/packages.toml` says what they contain. The C library needs cmake and the
//! wheel python3: without them their packages are left out with a line that says so.

use crate::failure::Failure;
use crate::{cargo, python};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Packages of the workspace whose programs are installed.
const PROGRAMS: [&str; 6] =
    ["--package", "anabranch-deploy", "--package", "anabranch-cli", "--package", "anabranch-lab-cli"];

/// `dist [--out DIR]`.
pub(crate) fn command(args: &[String]) -> Result<(), Failure> {
    let out = match args {
        [] => cargo::target().join("dist-packages"),
        [flag, folder] if flag == "--out" => {
            std::path::absolute(folder).map_err(|error| Failure::Usage(format!("--out {folder}: {error}")))?
        }
        _ => return Err(Failure::Usage("dist takes `--out DIR` or nothing".into())),
    };
    let (made, bin) = (cargo::target().join("dist-made"), cargo::target().join("slim"));
    for folder in [&out, &made] {
        emptied(folder)?;
    }
    cargo::run(cargo::command(
        &[&["build", "--locked", "--profile", "slim", "--bins"], &PROGRAMS[..]].concat(),
    ))?;
    cargo::run(cargo::manual(&["packages", &made.to_string_lossy()]))?;
    library(&made)?;
    python::packages(&out)?;
    let mut write = cargo::program("anabranch-package", "anabranch-package", &["--root"]);
    write.arg(cargo::root()).arg("--bin").arg(bin).arg("--made").arg(made).arg("--out").arg(&out);
    // The same commit gives the same bytes.
    write.args(["--date", date()?.trim()]);
    cargo::run(write)
}

/// The C library with its header, CMake and pkg-config files, as CMake installs them.
fn library(made: &Path) -> Result<(), Failure> {
    let build = made.join("cmake");
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(cargo::root().join("packaging/embedded")).arg("-B").arg(&build);
    configure.args(["-DCMAKE_INSTALL_PREFIX=/usr", "-DCMAKE_INSTALL_LIBDIR=lib"]);
    match configure.status() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("SKIPPED: the package of the C library needs cmake");
            return Ok(());
        }
        Err(error) => return Err(cargo::cannot_start(&configure, &error)),
        Ok(status) if !status.success() => {
            return Err(Failure::Job(format!("cmake ended with {status}")));
        }
        Ok(_) => {}
    }
    let mut compile = Command::new("cmake");
    compile.arg("--build").arg(&build);
    cargo::run(compile)?;
    let mut install = Command::new("cmake");
    install.arg("--install").arg(&build).env("DESTDIR", made.join("library"));
    cargo::run(install)
}

/// When the commit was made, in seconds since 1970.
fn date() -> Result<String, Failure> {
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%ct"]).current_dir(cargo::root());
    Ok(String::from_utf8_lossy(&cargo::output(git)?).into_owned())
}

/// Removes what an earlier release has left in the folder, which must be ours or empty.
fn emptied(folder: &PathBuf) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Job(format!("cannot empty {}: {error}", folder.display()));
    let is_ours = folder.starts_with(cargo::target()) || folder.join("SHA256SUMS").exists();
    let is_empty = fs::read_dir(folder).map_or(true, |mut listing| listing.next().is_none());
    if !is_ours && !is_empty {
        return Err(Failure::Usage(format!(
            "--out {}: the folder has files that are not of a release; choose an empty one",
            folder.display()
        )));
    }
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(failed)?;
    }
    fs::create_dir_all(folder).map_err(failed)
}
