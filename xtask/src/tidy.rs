//! `cargo xtask tidy`: rules of the repository that the compiler does not check.
//!
//! Code map: [`tree`] holds the files and the findings, [`lexer`] splits Rust into tokens,
//! [`floors`] checks the layers of crates, [`modules`] finds import cycles inside a crate, [`text`]
//! checks for forbidden and missing text.

mod floors;
mod lexer;
mod modules;
mod text;
mod tree;

use crate::cargo;
use crate::failure::Failure;
use tree::{Finding, Tree};

/// Applies all rules to a tree; findings are ordered by file and line.
fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = floors::check(tree);
    findings.extend(modules::check(tree));
    findings.extend(text::check(tree));
    findings.sort();
    findings.dedup();
    findings
}

/// Checks the work tree.
pub(crate) fn run() -> Result<(), Failure> {
    let tree = Tree::of(&cargo::root());
    let findings = check(&tree);
    for finding in &findings {
        eprintln!("{finding}");
    }
    match findings.len() {
        0 => {
            println!("tidy: {} files, nothing found", tree.len());
            Ok(())
        }
        n => Err(Failure::Job(format!("tidy: {n} findings"))),
    }
}

#[cfg(test)]
mod tests;
