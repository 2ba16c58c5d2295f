//! `cargo xtask dist`: the packages of a release, in `target/dist-packages` unless `--out` names
//! an empty folder.
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
const PROGRAMS: [&str; 8] = [
    "--package",
    "anabranch-deploy",
    "--package",
    "anabranch-host",
    "--package",
    "anabranch-cli",
    "--package",
    "anabranch-lab-cli",
];

/// `dist [--out DIR]`.
pub(crate) fn command(args: &[String]) -> Result<(), Failure> {
    let given = match args {
        [] => None,
        [flag, folder] if flag == "--out" => Some(folder),
        _ => return Err(Failure::Usage("dist takes `--out DIR` or nothing".into())),
    };
    committed()?;
    let out = prepared(given)?;
    let (made, bin) = (cargo::target().join("dist-made"), cargo::target().join("slim"));
    emptied(&made)?;
    cargo::run(cargo::command(
        &[&["build", "--locked", "--profile", "slim", "--bins"], &PROGRAMS[..]].concat(),
    ))?;
    cargo::run(cargo::manual(&["packages", &made.to_string_lossy()]))?;
    library(&made)?;
    python::packages(&out)?;
    let mut write = cargo::program("anabranch-package", "anabranch-package", &["--root"]);
    write.arg(cargo::root()).arg("--bin").arg(bin).arg("--made").arg(made).arg("--out").arg(&out);
    // The same commit gives the same bytes on the same machine.
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

/// The folder of the packages: the default is emptied, another must be new or empty, since nothing
/// of a user's is ever deleted.
fn prepared(given: Option<&String>) -> Result<PathBuf, Failure> {
    let Some(given) = given else {
        let own = cargo::target().join("dist-packages");
        emptied(&own)?;
        return Ok(own);
    };
    let failed = |error: std::io::Error| Failure::Usage(format!("--out {given}: {error}"));
    fs::create_dir_all(given).map_err(failed)?;
    let folder = fs::canonicalize(given).map_err(failed)?;
    if fs::read_dir(&folder).map_err(failed)?.next().is_some() {
        return Err(Failure::Usage(format!("--out {given}: the folder has files; choose an empty one")));
    }
    Ok(folder)
}

/// Makes a folder below the target folder anew.
fn emptied(folder: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Job(format!("cannot empty {}: {error}", folder.display()));
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(failed)?;
    }
    fs::create_dir_all(folder).map_err(failed)
}

/// Packages are made of a commit, so that their version and date say what is in them.
fn committed() -> Result<(), Failure> {
    let mut git = Command::new("git");
    git.args(["status", "--porcelain"]).current_dir(cargo::root());
    let changed = cargo::output(git)?;
    let changed = String::from_utf8_lossy(&changed);
    match changed.lines().next() {
        None => Ok(()),
        Some(first) => Err(Failure::Usage(format!(
            "the work tree differs from its commit (`{}`): commit, or remove what is not to be packaged",
            first.trim()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of a test's own below the target folder.
    fn folder(name: &str) -> PathBuf {
        let folder = cargo::target().join(format!("dist-test-{name}-{}", std::process::id()));
        emptied(&folder).expect("it can be made");
        folder
    }

    #[test]
    fn nothing_of_a_user_s_is_deleted() {
        let here = folder("out");
        fs::write(here.join("SHA256SUMS"), "of something else").expect("a file");
        for way in [here.clone(), here.join("../").join(here.file_name().expect("a name"))] {
            let out = way.to_string_lossy().into_owned();
            assert!(matches!(prepared(Some(&out)), Err(Failure::Usage(_))), "{out}");
        }
        assert!(here.join("SHA256SUMS").exists());
        let new = here.join("new").to_string_lossy().into_owned();
        assert!(prepared(Some(&new)).is_ok_and(|folder| folder.is_dir()));
        fs::remove_dir_all(here).expect("it is ours");
    }

    #[test]
    fn dist_knows_one_option() {
        for bad in [&["--outt", "x"][..], &["--out"], &["x"]] {
            let args: Vec<String> = bad.iter().map(|word| (*word).to_owned()).collect();
            assert!(matches!(command(&args), Err(Failure::Usage(_))), "{bad:?}");
        }
    }
}
