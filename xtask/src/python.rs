//! Tests of the Python package: a virtual environment in the target folder, requirements in exact
//! versions, the package, and pytest.
//!
//! The package uses the library that cargo built with the other tests. `--wheel` builds a wheel
//! with maturin instead, as `pip install` does; its different features and profile require a
//! complete build.

use crate::cargo;
use crate::failure::Failure;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The package's own page, whose example is run with a wheel.
const README: &str = include_str!("../../crates/python/README.md");

/// What is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Package {
    /// The sources, with the library from the build of the tests.
    Built,
    /// A wheel.
    Wheel,
}

/// Runs `python [--wheel | --built] [ARGS...]`: installs and tests. `--built` skips the build;
/// other arguments are passed to pytest.
pub(crate) fn main(args: &[String]) -> Result<(), Failure> {
    let (package, args) = match args {
        [flag, args @ ..] if flag == "--wheel" => (Package::Wheel, args),
        [flag, args @ ..] if flag == "--built" => (Package::Built, args),
        args => {
            cargo::build_tests()?;
            (Package::Built, args)
        }
    };
    let places = Places::new();
    println!("python: an environment in {}", places.home.display());
    if let Err(why) = environment(&places)? {
        println!("SKIPPED: {why}");
        return Ok(());
    }
    match package {
        Package::Built => built(&places)?,
        Package::Wheel => wheel(&places)?,
    }
    println!("python: pytest");
    pytest(&places, args)
}

/// Paths.
struct Places {
    /// The package.
    package: PathBuf,
    /// Cargo's target folder.
    target: PathBuf,
    /// Folder for the Python tests.
    home: PathBuf,
    /// The virtual environment.
    venv: PathBuf,
}

impl Places {
    fn new() -> Self {
        let root = cargo::root();
        let target = cargo::target();
        let home = target.join("python");
        Self { package: root.join("crates/python"), venv: home.join("venv"), home, target }
    }

    fn program(&self, name: &str) -> PathBuf {
        self.venv.join("bin").join(name)
    }

    fn wheels(&self) -> PathBuf {
        self.home.join("wheels")
    }
}

/// Prepares the environment with all requirements. The inner error says why that is not possible
/// without a program or the network.
fn environment(places: &Places) -> Result<Result<(), String>, Failure> {
    let requirements = places.package.join("requirements.txt");
    let wanted = std::fs::read_to_string(&requirements)
        .map_err(|error| Failure::Job(format!("cannot read {}: {error}", requirements.display())))?;
    let Some(version) = printed(Command::new("python3").arg("--version")) else {
        return Ok(Err("the Python package's tests need python3".into()));
    };
    // Records what was installed and for which Python; any change starts again.
    let mark = places.home.join("installed");
    let wanted = format!("{}\n{wanted}", version.trim());
    if places.program("python").exists() && std::fs::read_to_string(&mark).is_ok_and(|is| is == wanted) {
        return Ok(Ok(()));
    }
    let make = || succeeds(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&places.venv));
    let made = make() || (debian_venv() && make());
    if !made {
        let hint = "as root, `apt-get install python3-venv`";
        return Ok(Err(format!("the Python package's tests need python3's venv: {hint}")));
    }
    let mut install = Command::new(places.program("python"));
    // The tests import a small part of the packages; Python compiles that part on import.
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]);
    install.arg("--requirement");
    let done = install.arg(&requirements).output().map_err(|error| cannot_start("pip", &error))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        if is_network(&said) {
            return Ok(Err("what the Python package's tests need cannot be fetched: no network".into()));
        }
        return Err(Failure::Job(format!("pip cannot install {}:\n{said}", requirements.display())));
    }
    std::fs::write(&mark, wanted)
        .map_err(|error| Failure::Job(format!("cannot write {}: {error}", mark.display())))?;
    Ok(Ok(()))
}

/// Installs the package with `venv`, which Debian and Ubuntu ship separately.
fn debian_venv() -> bool {
    eprintln!("installing python3-venv with apt-get");
    let apt = |args: &[&str]| succeeds(Command::new("apt-get").args(args));
    apt(&["update"]) && apt(&["install", "--yes", "--no-install-recommends", "python3-venv"])
}

/// Whether pip failed because the network is unreachable.
fn is_network(said: &str) -> bool {
    let signs = [
        "Temporary failure in name resolution",
        "Failed to establish a new connection",
        "NewConnectionError",
    ];
    let signs =
        signs.iter().chain(&["Network is unreachable", "timed out", "ProxyError", "NameResolutionError"]);
    signs.into_iter().any(|sign| said.contains(sign))
}

/// Copies the package's sources and library into a folder from which the environment imports.
fn built(places: &Places) -> Result<(), Failure> {
    let site = places.home.join("site");
    let package = site.join("anabranch");
    let _ = std::fs::remove_dir_all(&site);
    let failed = |error: std::io::Error| Failure::Job(format!("cannot fill {}: {error}", package.display()));
    std::fs::create_dir_all(&package).map_err(failed)?;
    for entry in std::fs::read_dir(places.package.join("python/anabranch")).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.path().is_file() {
            std::fs::copy(entry.path(), package.join(entry.file_name())).map_err(failed)?;
        }
    }
    let library = places.target.join("debug/deps/lib_anabranch.so");
    std::fs::copy(&library, package.join("_anabranch.abi3.so")).map_err(|error| {
        Failure::Job(format!("cannot copy {}: {error}; build it with the tests", library.display()))
    })?;
    let purelib = printed(
        Command::new(places.program("python"))
            .args(["-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"]),
    )
    .ok_or_else(|| Failure::Job("the environment's Python does not start".into()))?;
    let purelib = PathBuf::from(purelib.trim());
    if purelib.join("anabranch").exists() {
        // A previously installed wheel would take precedence over the folder.
        let mut remove = Command::new(places.program("python"));
        remove.args([
            "-m",
            "pip",
            "uninstall",
            "--quiet",
            "--yes",
            "--disable-pip-version-check",
            "anabranch",
        ]);
        must(&mut remove, "pip")?;
    }
    std::fs::write(purelib.join("anabranch.pth"), format!("{}\n", site.display())).map_err(failed)
}

/// Builds the wheel as `pip install` does, and installs it.
fn wheel(places: &Places) -> Result<(), Failure> {
    println!("python: the wheel");
    // Remove wheels of other versions, which pip could choose.
    let _ = std::fs::remove_dir_all(places.wheels());
    maturin(places, &["build", "--release", "--locked"], &places.wheels())?;
    let mut install = Command::new(places.program("python"));
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--force-reinstall"]);
    install.args(["--no-deps", "--no-index", "--find-links"]).arg(places.wheels()).arg("anabranch");
    must(&mut install, "pip")
}

/// A program of the environment, or why there is none.
pub(crate) fn program(name: &str) -> Result<Result<PathBuf, String>, Failure> {
    let places = Places::new();
    Ok(environment(&places)?.map(|()| places.program(name)))
}

/// Writes the wheel and the source distribution into a folder.
pub(crate) fn packages(out: &Path) -> Result<(), Failure> {
    let places = Places::new();
    if let Err(why) = environment(&places)? {
        eprintln!("SKIPPED: the wheel: {why}");
        return Ok(());
    }
    maturin(&places, &["build", "--profile", "slim", "--locked"], out)?;
    tried(&places, out)?;
    maturin(&places, &["sdist"], out)
}

/// Installs the wheel of a folder in an environment of its own and runs the package's example
/// there, on a scenario of the repository. Neither step finds cargo, other programs or packages of
/// Python.
fn tried(places: &Places, wheels: &Path) -> Result<(), Failure> {
    let fresh = places.home.join("fresh");
    must(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&fresh), "python3 -m venv")?;
    let python = || {
        let mut python = Command::new(fresh.join("bin/python"));
        python.env_clear().env("PATH", fresh.join("bin")).current_dir(cargo::root());
        python
    };
    let mut install = python();
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]);
    // A source distribution would need cargo.
    install.args(["--only-binary", ":all:"]);
    must(install.arg("--find-links").arg(wheels).arg("anabranch"), "pip")?;
    let example = README.split_once("```python\n").and_then(|(_, rest)| rest.split_once("```"));
    let (example, _) = example.ok_or_else(|| Failure::Job("the package's README has no example".into()))?;
    println!("python: the wheel in a new environment without cargo");
    // Isolated: modules of the folder, of the user or of the environment are not found.
    must(python().args(["-I", "-c", example]), "the example of the wheel")
}

fn maturin(places: &Places, args: &[&str], out: &Path) -> Result<(), Failure> {
    let mut command = Command::new(places.program("maturin"));
    command.args(args).arg("--out").arg(out);
    if args[0] == "build" {
        command.args(["--quiet", "--compatibility", "linux", "--interpreter"]).arg(places.program("python"));
    }
    command.current_dir(&places.package).env("CARGO_TARGET_DIR", &places.target);
    // xtask is started by cargo, whose variables are about xtask.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    must(&mut command, "maturin")
}

fn pytest(places: &Places, args: &[String]) -> Result<(), Failure> {
    let mut command = Command::new(places.program("python"));
    command.args(["-m", "pytest", "-p", "no:cacheprovider", "--durations=5"]).args(args);
    command.current_dir(&places.package);
    // The tests start the program that cargo built for its own tests.
    command.env("ANABRANCH_PROGRAM", places.target.join("debug/anabranch"));
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    must(&mut command, "pytest")
}

fn must(command: &mut Command, name: &str) -> Result<(), Failure> {
    let status = command.status().map_err(|error| cannot_start(name, &error))?;
    if status.success() { Ok(()) } else { Err(Failure::Job(format!("{name} ended with {status}"))) }
}

fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn printed(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn cannot_start(name: &str, error: &std::io::Error) -> Failure {
    Failure::Job(format!("cannot start {name}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_missing_network_is_a_reason_to_skip() {
        assert!(is_network("WARNING: Retrying ... Failed to establish a new connection: [Errno -3]"));
        assert!(!is_network("ERROR: No matching distribution found for polars==99.0"));
    }
}
