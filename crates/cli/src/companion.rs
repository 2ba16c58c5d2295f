//! Starts the companion programs: `anabranch-lab`, and the small programs of the commands that are
//! not in this one.
//!
//! A companion is found beside `anabranch` or on the PATH, as cargo finds `cargo-NAME`. It replaces
//! this process, so that it handles signals, terminal and exit code itself.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process;

use anabranch_deploy::error::Error;
use anabranch_deploy::{programs, say};

/// Help of `sweep`.
pub const SWEEP: &str =
    "Run a scenario for a grid or sample of its parameters, on all cores; finished runs are skipped";
/// Help of `lab`.
pub const LAB: &str =
    "Run the papers' experiments: one point, a grid, or all published figures for comparison";
/// Help of `plan`.
pub const PLAN: &str = "Evaluate the closed-form models";
/// Help of `completions`.
pub const COMPLETIONS: &str = "Print the completion script of a shell";

/// A command that another program carries out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Companion {
    command: &'static str,
    about: &'static str,
    /// File name of the program.
    program: &'static str,
    /// Cargo's name of the package that has it.
    package: &'static str,
}

/// The small programs, then the commands of the laboratory's program.
const COMPANIONS: [Companion; 9] = {
    const fn of(
        (command, about): (&'static str, &'static str),
        program: &'static str,
        package: &'static str,
    ) -> Companion {
        Companion { command, about, program, package }
    }
    [
        of(("sense", programs::SENSE), "anabranch-sense", "anabranch-deploy"),
        of(("sink", programs::SINK), "anabranch-sink", "anabranch-deploy"),
        of(("cache", programs::CACHE), "anabranch-cache", "anabranch-host"),
        of(("multipath", programs::MULTIPATH), "anabranch-multipath", "anabranch-host"),
        of(("tune", programs::TUNE), "anabranch-tune", "anabranch-deploy"),
        of(("sweep", SWEEP), LABORATORY, "anabranch-lab-cli"),
        of(("lab", LAB), LABORATORY, "anabranch-lab-cli"),
        of(("plan", PLAN), LABORATORY, "anabranch-lab-cli"),
        of(("completions", COMPLETIONS), LABORATORY, "anabranch-lab-cli"),
    ]
};

/// The laboratory's program, which also has the commands of `anabranch`.
const LABORATORY: &str = "anabranch-lab";

/// Lists the commands of all companions in this program's help. The companions parse their
/// arguments and print their own help.
pub(crate) fn listed(program: clap::Command) -> clap::Command {
    let command = |companion: &Companion| clap::Command::new(companion.command).about(companion.about);
    program.subcommands(COMPANIONS.iter().map(command))
}

/// The companion that `arguments` (the program's name first) call, or request help for.
pub(crate) fn wanted(arguments: &[OsString]) -> Option<Companion> {
    let word = |at: usize| arguments.get(at).and_then(|word| word.to_str());
    let command = if word(1) == Some("help") { word(2) } else { word(1) };
    COMPANIONS.into_iter().find(|companion| Some(companion.command) == command)
}

/// The small program that `arguments` (the program's name first) call, or request help for.
#[must_use]
pub fn small(arguments: &[OsString]) -> Option<Companion> {
    wanted(arguments).filter(|companion| companion.is_small())
}

impl Companion {
    /// Whether the program has this command only. Its command line has no word for it then.
    fn is_small(self) -> bool {
        self.program != LABORATORY
    }

    /// Replaces this process by the companion. The first of `arguments` is the program's name.
    ///
    /// # Errors
    /// The companion is missing or cannot be started: exit code 3.
    pub fn run(self, arguments: &[OsString]) -> Result<(), Error> {
        let Self { command, program: name, .. } = self;
        let own = env::current_exe().ok();
        let Some(program) = self.found(own.as_deref(), env::var_os("PATH").as_deref()) else {
            let message = format!(
                "`anabranch {command}` needs the companion program {name}, which is neither in the folder of this program nor on the PATH"
            );
            return Err(Error::missing(message).with_hint(self.hint(own.as_deref())));
        };
        // A small program does not change with each change of this one.
        if let Some(own) = own.as_deref().filter(|own| !self.is_small() && is_stale(own, &program)) {
            say!("warning: {} is older than this program; {}", program.display(), self.hint(Some(own)));
        }
        // `exec` returns only if it fails.
        let error = process::Command::new(&program).args(self.passed(arguments)).exec();
        Err(Error::missing(format!("cannot start {}: {error}", program.display()))
            .with_hint(self.hint(own.as_deref())))
    }

    /// The arguments that the companion gets.
    fn passed(self, arguments: &[OsString]) -> Vec<OsString> {
        let is_help = arguments.get(1).is_some_and(|word| word == "help");
        match (self.is_small(), is_help) {
            (false, _) => arguments.get(1..).unwrap_or_default().to_vec(),
            (true, false) => arguments.get(2..).unwrap_or_default().to_vec(),
            (true, true) => vec!["--help".into()],
        }
    }

    /// Finds the companion: beside this program first, then in the absolute folders of the PATH.
    ///
    /// Files without execute permission are skipped. So is this program under the companion's name:
    /// it would start itself forever.
    fn found(self, own: Option<&Path>, path: Option<&OsStr>) -> Option<PathBuf> {
        let real = own.and_then(|own| fs::canonicalize(own).ok());
        let beside = own.and_then(Path::parent).map(Path::to_path_buf);
        let folders = path.map(|path| env::split_paths(path).collect::<Vec<_>>()).unwrap_or_default();
        let candidates = beside.into_iter().chain(folders.into_iter().filter(|folder| folder.is_absolute()));
        candidates.map(|folder| folder.join(self.program)).find(|candidate| {
            let executable = |file: fs::Metadata| file.is_file() && file.permissions().mode() & 0o111 != 0;
            fs::metadata(candidate).is_ok_and(executable)
                && fs::canonicalize(candidate).is_ok_and(|file| Some(&file) != real.as_ref())
        })
    }

    /// How to get the companion. In a checkout, where this program is below `target`, cargo builds
    /// it.
    fn hint(self, own: Option<&Path>) -> String {
        let folder = own.and_then(|path| path.parent()?.file_name()?.to_str());
        let profile = match folder {
            Some("debug") => "",
            Some("dist") => " --profile dist",
            _ => " --release",
        };
        format!(
            "in a checkout, build it with `cargo build{profile} -p {}`; packages contain it as {}",
            self.package, self.program
        )
    }
}

/// Whether cargo has rebuilt this program since it built the companion beside it, as `cargo run`
/// does. Outside of cargo's folders the times of files are no evidence.
fn is_stale(own: &Path, companion: &Path) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    let folder = own.parent();
    let by_cargo = folder.is_some_and(|folder| folder.join(".cargo-lock").exists());
    by_cargo && companion.parent() == folder && changed(companion) < changed(own)
}
