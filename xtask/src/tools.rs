//! Installs third-party programs with cargo, into the target folder only.

use crate::cargo;
use std::path::PathBuf;

/// A program on the package registry.
pub(crate) struct Tool {
    /// Name of the package and of its program.
    pub(crate) name: &'static str,
    /// The exact version.
    pub(crate) version: &'static str,
    /// Additional arguments for `cargo install`.
    pub(crate) arguments: &'static [&'static str],
    /// What needs the program, for the message.
    pub(crate) purpose: &'static str,
}

/// Installs `tool` if needed and returns its path; prints why and returns `None` if that fails. It
/// is built in a separate folder, so that no other crate is rebuilt.
pub(crate) fn installed(tool: &Tool) -> Option<PathBuf> {
    let Tool { name, version, arguments, purpose } = tool;
    let tools = cargo::target().join("tools");
    let program = tools.join("bin").join(name);
    let mark = tools.join(format!("{name}-{version}"));
    if program.exists() && mark.exists() {
        return Some(program);
    }
    let exact = format!("={version}");
    // Without optimisation a tool builds in half the time.
    let mut install = cargo::command(&["install", name, "--locked", "--debug", "--version", &exact]);
    let build = tools.join(format!("build-{name}"));
    install.args(*arguments).arg("--root").arg(&tools).env("CARGO_TARGET_DIR", &build);
    if cargo::run(install).is_ok() && std::fs::write(&mark, "").is_ok() {
        // Remove the build folder, which is large and no longer needed.
        let _ = std::fs::remove_dir_all(build);
        return Some(program);
    }
    eprintln!("SKIPPED: {purpose} needs {name} {version}, which could not be installed");
    None
}
