//! Circles of imports between the modules of a crate.
//!
//! A module here is a file. What code names by path (in `use`, or written out) makes an arrow to
//! the file that holds it; a name that another module only passes on (`pub use`) counts as the file
//! it comes from. Siblings may not form a circle, each taken with everything below it. A file and
//! the modules inside it are one thing in this: a parent may use and pass on what its children
//! have, and they extend it. Code under `#[cfg(test)]` is free.

mod circle;
mod resolve;
mod source;

use super::tree::{Finding, Tree};
use circle::Arrow;
use resolve::Crate;
use source::{ModulePath, Source};

/// The circles in every package's `src`.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let packages: Vec<&str> = tree.packages().collect();
    packages.into_iter().flat_map(|package| circle::find(&arrows(tree, package))).collect()
}

/// Who names whom in one package.
fn arrows(tree: &Tree, package: &str) -> Vec<Arrow> {
    let folder = format!("{package}/src/");
    let library = tree.text(&format!("{folder}lib.rs")).is_some();
    let files = tree.files().filter_map(|(path, text)| {
        let module = module_path(path.strip_prefix(&folder)?, library)?;
        Some(Source::read(path, module, text))
    });
    Crate::new(files.collect()).arrows()
}

/// The module that a file under `src` is; `None` if it belongs to another target.
fn module_path(file: &str, library: bool) -> Option<ModulePath> {
    let file = file.strip_suffix(".rs")?;
    let root = if library { "lib" } else { "main" };
    if file == root {
        return Some(ModulePath::new());
    }
    if file == "main" || file.starts_with("bin/") {
        return None;
    }
    let file = file.strip_suffix("/mod").unwrap_or(file);
    Some(file.split('/').map(str::to_owned).collect())
}

#[cfg(test)]
mod tests;
