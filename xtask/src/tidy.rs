//! `cargo xtask tidy`: the rules of the repository that a compiler does not know.
//!
//! Code map: [`tree`] is the files and what is said about them, [`lexer`] reads Rust as tokens,
//! [`floors`] holds the crates against the floors of the design, [`modules`] finds circles of
//! imports inside a crate, [`text`] is what may not stand in a file.

mod floors;
mod lexer;
mod modules;
mod text;
mod tree;

use crate::cargo;
use crate::failure::Failure;
use tree::{Finding, Tree};

/// All rules over one tree, findings in the order of files and lines.
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
