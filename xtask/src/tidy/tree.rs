//! Files that the rules apply to, held in memory so that tests can invent them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::Command;

/// Folders without source files.
const UNTRACKED: [&str; 3] = [".git", "target", "out"];

/// Text files by path relative to the root, with `/` as the separator.
#[derive(Debug, Default)]
pub(super) struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// Reads the files under `root` that git tracks or would add; without git, all files that are
    /// not build results. Files that are not UTF-8 are left out.
    pub(super) fn of(root: &Path) -> Self {
        let names = listed_by_git(root).unwrap_or_else(|| {
            let mut names = Vec::new();
            walk(root, "", &mut names);
            names
        });
        // A tracked file may be deleted in the work tree; skip it.
        let text = |name: String| Some((String::from_utf8(std::fs::read(root.join(&name)).ok()?).ok(), name));
        let files = names.into_iter().filter_map(text);
        Self { files: files.filter_map(|(text, name)| Some((name, text?))).collect() }
    }

    /// Creates a tree for a test, from paths and texts.
    #[cfg(test)]
    pub(super) fn fake(files: &[(&str, &str)]) -> Self {
        let own = |&(path, text): &(&str, &str)| (path.to_owned(), text.to_owned());
        Self { files: files.iter().map(own).collect() }
    }

    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    /// Text of one file.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// All files in order of their paths.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Directories with a manifest (`xtask`, `crates/core`, ...), without the root and packages
    /// outside the workspace.
    pub(super) fn packages(&self) -> impl Iterator<Item = &str> {
        let ours = |path: &&String| !path.starts_with("examples/");
        self.files.keys().filter(ours).filter_map(|path| path.strip_suffix("/Cargo.toml"))
    }
}

/// Files that git would commit under `root`; `None` without git or outside a work tree.
fn listed_by_git(root: &Path) -> Option<Vec<String>> {
    let args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let list = Command::new("git").args(args).current_dir(root).output().ok()?;
    let names = String::from_utf8_lossy(&list.stdout);
    let names = names.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    list.status.success().then_some(names)
}

/// Collects the files under `root/inner`, without build results and git's own files.
fn walk(root: &Path, inner: &str, names: &mut Vec<String>) {
    for entry in std::fs::read_dir(root.join(inner)).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        if UNTRACKED.contains(&name.as_str()) {
            continue;
        }
        let path = if inner.is_empty() { name } else { format!("{inner}/{name}") };
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(root, &path, names),
            Ok(kind) if kind.is_file() => names.push(path),
            _ => {}
        }
    }
}

/// A violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    /// Path relative to the root.
    pub(super) path: String,
    /// Line, counted from 1; 0 for the whole file.
    pub(super) line: usize,
    /// What is wrong and how to correct it.
    pub(super) message: String,
}

impl Finding {
    pub(super) fn new(path: impl Into<String>, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.into(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}
