//! Builds everything that the suite runs with one call of cargo, and lists the executables.

use crate::cargo;
use crate::failure::Failure;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Purpose of an executable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Unit or integration tests with libtest's harness.
    Test,
    Example,
    /// A program that integration tests start.
    Program,
}

/// An executable that cargo has built.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Executable {
    pub(super) kind: Kind,
    /// Name of the target in its package.
    pub(super) name: String,
    /// Manifest of its package.
    pub(super) manifest: PathBuf,
    /// The target's root source file.
    pub(super) source: PathBuf,
    pub(super) file: PathBuf,
}

impl Executable {
    /// Parses a JSON message of cargo; `None` if it is not about an executable.
    fn of(message: &Value) -> Option<Self> {
        if message["reason"] != "compiler-artifact" {
            return None;
        }
        let path = |value: &Value| value.as_str().map(PathBuf::from);
        let target = &message["target"];
        let kind = if message["profile"]["test"] == true {
            Kind::Test
        } else if target["kind"][0] == "example" {
            Kind::Example
        } else {
            Kind::Program
        };
        Some(Self {
            kind,
            name: target["name"].as_str()?.to_owned(),
            manifest: path(&message["manifest_path"])?,
            source: path(&target["src_path"])?,
            file: path(&message["executable"])?,
        })
    }
}

/// Builds the test binaries and examples of `package`, or of the whole workspace. Cargo's messages
/// for users go to stderr.
pub(super) fn executables(package: Option<&str>) -> Result<Vec<Executable>, Failure> {
    let mut command = cargo::command(&["test", "--locked", "--no-run"]);
    command.args(selection(package)).arg("--message-format=json-render-diagnostics");
    let mut child =
        command.stdout(Stdio::piped()).spawn().map_err(|error| cargo::cannot_start(&command, &error))?;
    let mut found = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line =
                line.map_err(|error| Failure::Job(format!("cannot read cargo's messages: {error}")))?;
            found.extend(serde_json::from_str(&line).ok().as_ref().and_then(Executable::of));
        }
    }
    let status = child.wait().map_err(|error| cargo::cannot_start(&command, &error))?;
    if status.success() { Ok(found) } else { Err(Failure::Job("the tests do not build: see above".into())) }
}

/// Cargo's arguments that select one package or all.
pub(super) fn selection(package: Option<&str>) -> Vec<&str> {
    package.map_or_else(|| vec!["--workspace"], |package| vec!["--package", package])
}

/// A package of the workspace.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Package {
    pub(super) name: String,
    /// Variables that cargo sets for programs of this package.
    pub(super) environment: Vec<(String, String)>,
    /// Whether the package has documentation tests. Without a library that has them,
    /// `cargo test --doc` fails.
    pub(super) documentation_tests: bool,
}

impl Package {
    fn of(metadata: &Value) -> Option<Self> {
        let manifest = Path::new(metadata["manifest_path"].as_str()?);
        let name = metadata["name"].as_str()?.to_owned();
        let text = |key: &str| match &metadata[key] {
            Value::Array(all) => all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(":"),
            other => other.as_str().unwrap_or_default().to_owned(),
        };
        let folder = manifest.parent()?.display().to_string();
        let mut environment = vec![
            ("CARGO_MANIFEST_DIR".to_owned(), folder),
            ("CARGO_MANIFEST_PATH".to_owned(), manifest.display().to_string()),
        ];
        let keys = ["name", "version", "authors", "description", "homepage", "repository", "license"];
        for key in keys.into_iter().chain(["license_file", "rust_version", "readme"]) {
            environment.push((format!("CARGO_PKG_{}", key.to_uppercase()), text(key)));
        }
        let version = text("version");
        let (numbers, pre) = version.split_once('-').unwrap_or((&version, ""));
        let numbers = numbers.split('.').chain(std::iter::once(pre));
        for (part, value) in ["MAJOR", "MINOR", "PATCH", "PRE"].into_iter().zip(numbers) {
            environment.push((format!("CARGO_PKG_VERSION_{part}"), value.to_owned()));
        }
        let mut targets = metadata["targets"].as_array().into_iter().flatten();
        let documentation_tests = targets.any(|target| target["doctest"] == true);
        Some(Self { name, environment, documentation_tests })
    }
}

/// Packages of the workspace by manifest path.
pub(super) fn packages() -> Result<BTreeMap<PathBuf, Package>, Failure> {
    let metadata = metadata()?;
    let all = metadata["packages"].as_array().into_iter().flatten();
    let pair = |one: &Value| Some((PathBuf::from(one["manifest_path"].as_str()?), Package::of(one)?));
    Ok(all.filter_map(pair).collect())
}

/// Cargo's metadata of the workspace.
fn metadata() -> Result<Value, Failure> {
    let said = cargo::output(cargo::command(&["metadata", "--format-version=1", "--no-deps", "--locked"]))?;
    serde_json::from_slice(&said)
        .map_err(|error| Failure::Job(format!("cannot read `cargo metadata`: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn message(kind: &str, test: bool, executable: Value) -> Value {
        json!({
            "reason": "compiler-artifact",
            "manifest_path": "/w/crates/a/Cargo.toml",
            "target": { "kind": [kind], "name": "it", "src_path": "/w/crates/a/tests/it/main.rs" },
            "profile": { "test": test },
            "executable": executable,
        })
    }

    #[test]
    fn executables_are_told_apart_and_libraries_left_out() {
        let kind = |kind, test| Executable::of(&message(kind, test, json!("/t/it"))).map(|found| found.kind);
        assert_eq!(kind("test", true), Some(Kind::Test));
        assert_eq!(kind("lib", true), Some(Kind::Test));
        assert_eq!(kind("example", false), Some(Kind::Example));
        assert_eq!(kind("bin", false), Some(Kind::Program));
        assert_eq!(Executable::of(&message("lib", false, Value::Null)), None);
        assert_eq!(Executable::of(&json!({ "reason": "build-finished", "success": true })), None);
    }

    #[test]
    fn a_package_s_variables_are_those_of_cargo() {
        let package = Package::of(&json!({
            "name": "a", "version": "1.2.3-rc.1", "authors": ["x", "y"], "license": null,
            "manifest_path": "/w/crates/a/Cargo.toml",
            "targets": [{ "doctest": false }, { "doctest": true }],
        }));
        let package = package.expect("complete");
        assert!(package.documentation_tests);
        let value = |name: &str| {
            package.environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
        };
        assert_eq!(value("CARGO_MANIFEST_DIR"), Some("/w/crates/a"));
        assert_eq!(value("CARGO_PKG_AUTHORS"), Some("x:y"));
        assert_eq!(value("CARGO_PKG_LICENSE"), Some(""));
        let parts =
            ["MAJOR", "MINOR", "PATCH", "PRE"].map(|part| value(&format!("CARGO_PKG_VERSION_{part}")));
        assert_eq!(parts, [Some("1"), Some("2"), Some("3"), Some("rc.1")]);
    }

    /// `test = false` in a manifest avoids building a test binary without tests.
    #[test]
    fn what_is_not_built_for_tests_has_none() {
        let metadata = metadata().expect("cargo is here");
        let targets = metadata["packages"].as_array().expect("packages").iter();
        let targets = targets.flat_map(|package| package["targets"].as_array().expect("targets"));
        let mut untested = 0;
        for target in targets.filter(|target| target["test"] == false && target["kind"][0] != "bench") {
            let source = Path::new(target["src_path"].as_str().expect("a path"));
            // The other modules of a program also belong to its library.
            let sources = match target["kind"][0].as_str() {
                Some("lib" | "cdylib" | "staticlib") => cargo::sources(source.parent().expect("a folder")),
                _ => vec![source.to_owned()],
            };
            untested += usize::from(target["kind"][0] != "example" && target["kind"][0] != "custom-build");
            for source in sources {
                let text = std::fs::read_to_string(&source).expect("a source");
                let marks = text.lines().filter(|line| line.trim() == "#[test]");
                assert_eq!(marks.count(), 0, "{} has tests that nothing builds", source.display());
            }
        }
        assert!(untested >= 10, "{untested}");
    }
}
