//! Finds import cycles between the modules of a crate.
//!
//! A module here is a file. A path in code (in `use`, or written out) makes an arrow to the file
//! that defines the item; a name that another module re-exports (`pub use`) counts for the file
//! that defines it. Siblings, each with everything below it, must not form a cycle. A file and the
//! modules inside it count as one: a parent may use and re-export items of its children, and they
//! extend it. Code under `#[cfg(test)]` is exempt.

mod circle;
mod resolve;
mod source;

use super::tree::{Finding, Tree};
use circle::Arrow;
use resolve::Crate;
use source::{ModulePath, Source};

/// Finds the cycles in every package's `src`.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let packages: Vec<&str> = tree.packages().collect();
    packages.into_iter().flat_map(|package| circle::find(&arrows(tree, package))).collect()
}

/// Arrows between the modules of one package.
fn arrows(tree: &Tree, package: &str) -> Vec<Arrow> {
    let folder = format!("{package}/src/");
    let library = tree.text(&format!("{folder}lib.rs")).is_some();
    let files = tree.files().filter_map(|(path, text)| {
        let module = module_path(path.strip_prefix(&folder)?, library)?;
        Some(Source::read(path, module, text))
    });
    Crate::new(files.collect()).arrows()
}

/// Module path of a file under `src`; `None` if it belongs to another target.
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
