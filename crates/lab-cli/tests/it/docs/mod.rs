//! Runs every command and snippet in `docs` and the README, and checks their links.
//!
//! CONTRIBUTING.md says how blocks are marked. Code map: [`page`] parses pages, [`commands`] parses
//! command blocks, [`session`] runs commands in a folder for each page, [`snippets`] checks other
//! blocks, [`links`] checks links, [`statements`] compares statements about the papers with the
//! report's rows, [`namespaces`] isolates commands that need root from the machine.

mod commands;
mod links;
mod namespaces;
mod page;
mod session;
mod snippets;
mod statements;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anabranch_testkit::debian::find_or_install;
use anabranch_testkit::netns;

use crate::docs::page::{Kind, Page};

/// Root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace is here")
}

/// All pages for readers, by name.
fn pages() -> Vec<Page> {
    let mut names: Vec<String> =
        ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"].map(str::to_owned).to_vec();
    let kinds = ["", "/tutorials", "/guides", "/reference", "/explanation", "/evidence", "/evidence/papers"];
    for folder in kinds.map(|kind| format!("docs{kind}")) {
        let listing = fs::read_dir(root().join(&folder)).expect("the pages are here");
        let entries = listing
            .map(|entry| entry.expect("it can be read").file_name().into_string().expect("it is text"));
        names.extend(entries.filter(|name| name.ends_with(".md")).map(|name| format!("{folder}/{name}")));
    }
    names.sort();
    names.into_iter().map(|name| Page::read(&root(), name)).collect()
}

/// Fails with all faults, one per line.
#[track_caller]
fn none(faults: &[String]) {
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn every_block_says_what_it_is() {
    let faults: Vec<String> = pages().iter().flat_map(|page| page.faults.clone()).collect();
    none(&faults);
}

#[test]
fn commands_do_what_their_page_says() {
    let pages = pages();
    let (next, commands, faults) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(page) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
            let done = session::play(page, |block| block.kind != Kind::Console { root: true, long: false });
            commands.fetch_add(done.commands, Ordering::Relaxed);
            faults.lock().expect("no panic").extend(done.faults);
        }
    };
    thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    let commands = commands.into_inner();
    println!("{commands} commands");
    none(&faults.into_inner().expect("no panic"));
    assert!(commands > 50, "only {commands} commands were found");
}

#[test]
fn commands_that_need_root_do_what_their_page_says() {
    let pages = pages();
    let is_roots = |page: &&Page| {
        page.blocks.iter().any(|block| block.kind == Kind::Console { root: true, long: false })
    };
    for page in pages.iter().filter(is_roots) {
        let programs = [("curl", "curl"), ("ping", "iputils-ping"), ("python3", "python3")];
        if netns::skipped()
            || programs.iter().any(|(program, package)| find_or_install(program, package).is_none())
        {
            return;
        }
        // Earlier blocks of a page may create what these blocks need.
        none(&session::play(page, |_| true).faults);
    }
}

#[test]
fn snippets_are_what_they_are_said_to_be() {
    let faults: Vec<String> =
        pages().iter().flat_map(|page| page.blocks.iter().filter_map(snippets::fault)).collect();
    none(&faults);
}

#[test]
fn links_lead_somewhere() {
    none(&links::faults(&root(), &pages()));
}

#[test]
fn the_table_of_contents_has_every_page() {
    let contents = fs::read_to_string(root().join("docs/SUMMARY.md")).expect("it is here");
    let missing = pages().into_iter().filter_map(|page| {
        let name = page.name.strip_prefix("docs/").filter(|name| *name != "SUMMARY.md")?;
        (!contents.contains(&format!("]({name})"))).then(|| format!("{name} is not in docs/SUMMARY.md"))
    });
    none(&missing.collect::<Vec<_>>());
}
