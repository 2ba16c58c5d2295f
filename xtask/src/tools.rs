//! Programs of others that cargo builds: they go into the target folder and nowhere else.

use crate::cargo;
use std::path::PathBuf;

/// A program on the package registry.
pub(crate) struct Tool {
    /// Name of the package and of its program.
    pub(crate) name: &'static str,
    /// The one version that is used.
    pub(crate) version: &'static str,
    /// More arguments for `cargo install`.
    pub(crate) arguments: &'static [&'static str],
    /// What cannot be done without it, for the message.
    pub(crate) purpose: &'static str,
}

/// The program of `tool`, installed if need be; `None` after a message on stderr where it cannot
/// be. It is built in a folder of its own, so that nothing else is built again.
pub(crate) fn installed(tool: &Tool) -> Option<PathBuf> {
    let Tool { name, version, arguments, purpose } = tool;
    let tools = cargo::target().join("tools");
    let program = tools.join("bin").join(name);
    let mark = tools.join(format!("{name}-{version}"));
    if program.exists() && mark.exists() {
        return Some(program);
    }
    let exact = format!("={version}");
    // Unoptimised a tool takes half as long to build.
    let mut install = cargo::command(&["install", name, "--locked", "--debug", "--version", &exact]);
    let build = tools.join(format!("build-{name}"));
    install.args(*arguments).arg("--root").arg(&tools).env("CARGO_TARGET_DIR", &build);
    if cargo::run(install).is_ok() && std::fs::write(&mark, "").is_ok() {
        // What it was built from is of no more use, and large.
        let _ = std::fs::remove_dir_all(build);
        return Some(program);
    }
    eprintln!("SKIPPED: {purpose} needs {name} {version}, which could not be installed");
    None
}
