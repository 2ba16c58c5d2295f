//! Copies the pages for mdBook; links to files outside of `docs` lead to copies of those files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Folder of the pages, relative to the root.
const PAGES: &str = "docs";
/// Folder of the copied files in the book.
const COPIES: &str = "source";

/// Makes `to` the source of the book, from the repository in `root`.
///
/// A page that `SUMMARY.md` names but that is missing becomes a title without a link, with a
/// message on stderr.
///
/// # Errors
/// A link leads to a missing file.
pub(super) fn copy(root: &Path, to: &Path) -> Result<(), String> {
    if to.exists() {
        fs::remove_dir_all(to).map_err(|error| format!("cannot empty {}: {error}", to.display()))?;
    }
    files(&root.join(PAGES), &mut |file| {
        let within = file.strip_prefix(root.join(PAGES)).map_err(|error| error.to_string())?;
        if within.extension().is_some_and(|extension| extension == "md") {
            return Ok(());
        }
        write(&to.join(within), &read(file)?)
    })?;
    let summary = text(&root.join(PAGES).join("SUMMARY.md"))?;
    let pages = Pages::of(&summary, root);
    let mut copies = BTreeSet::new();
    for (page, name) in &pages.staged {
        let staged = pages.turned(&text(&root.join(page))?, page, root, &mut copies)?;
        write(&to.join(name), staged.as_bytes())?;
    }
    write(&to.join("SUMMARY.md"), pages.summary(&summary, root).as_bytes())?;
    for copied in copies {
        write(&to.join(copy_of(&copied)), &read(&root.join(&copied))?)?;
    }
    Ok(())
}

/// Pages of the book: path in the repository, and name in the book.
struct Pages {
    staged: BTreeMap<PathBuf, String>,
}

impl Pages {
    /// Pages that the table of contents names and that exist.
    fn of(summary: &str, root: &Path) -> Self {
        let mut staged = BTreeMap::new();
        for target in links(summary) {
            let page = resolved(&Path::new(PAGES).join("SUMMARY.md"), target);
            if root.join(&page).is_file() {
                // The book is flat, so a page's name includes its folders.
                let within = page.strip_prefix(PAGES).unwrap_or(&page);
                let parts: Vec<_> = within.iter().map(|part| part.to_string_lossy()).collect();
                let name = parts.join("-");
                let taken = staged.iter().find(|(other, taken)| **taken == name && **other != page);
                assert!(taken.is_none(), "{} and {} are one page of the book", page.display(), name);
                staged.insert(page.clone(), name);
            }
        }
        Self { staged }
    }

    /// Table of contents of the book.
    fn summary(&self, summary: &str, root: &Path) -> String {
        let replaced = |target: &str| {
            // A part title, which is not a page.
            if target.is_empty() {
                return Ok::<_, String>(String::new());
            }
            let page = resolved(&Path::new(PAGES).join("SUMMARY.md"), target);
            let name = self.staged.get(&page).cloned();
            if name.is_none() {
                eprintln!("{} is in the table of contents and not there yet", root.join(page).display());
            }
            Ok(name.unwrap_or_default())
        };
        with_links(summary, replaced).unwrap_or_default()
    }

    /// Rewrites the links of a page and adds the linked files that are not pages to `copies`.
    fn turned(
        &self,
        text: &str,
        page: &Path,
        root: &Path,
        copies: &mut BTreeSet<PathBuf>,
    ) -> Result<String, String> {
        let mut turned = |target: &str| {
            let (path, anchor) = target.split_at(target.find('#').unwrap_or(target.len()));
            if path.is_empty() || path.contains(':') {
                return Ok(target.to_owned());
            }
            let named = resolved(page, path);
            if let Some(name) = self.staged.get(&named) {
                return Ok(format!("{name}{anchor}"));
            }
            if let Ok(beside) = named.strip_prefix(PAGES)
                && named.extension().is_none_or(|extension| extension != "md")
                && root.join(&named).is_file()
            {
                return Ok(format!("{}{anchor}", beside.display()));
            }
            if !root.join(&named).is_file() {
                return Err(format!("{}: `{target}` is no file", page.display()));
            }
            let copy = copy_of(&named);
            copies.insert(named);
            Ok(copy)
        };
        let mut in_block = false;
        let mut whole = String::new();
        for line in text.lines() {
            in_block ^= line.trim_start().starts_with("```");
            match line.trim().strip_prefix("{{#include ").and_then(|rest| rest.strip_suffix("}}")) {
                Some(included) => whole += &format!("{{{{#include {}}}}}", turned(included)?),
                None if in_block => whole += line,
                None => whole += &with_links(line, &mut turned)?,
            }
            whole.push('\n');
        }
        Ok(whole)
    }
}

/// Name of a copy. It always ends like a text file, so that a browser shows it.
fn copy_of(path: &Path) -> String {
    format!("{COPIES}/{}.txt", path.display())
}

/// Resolves `target`, a link on `page`, to a path relative to the root.
fn resolved(page: &Path, target: &str) -> PathBuf {
    let mut resolved = page.parent().unwrap_or(Path::new("")).to_path_buf();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => drop(resolved.pop()),
            Component::Normal(name) => resolved.push(name),
            _ => {}
        }
    }
    resolved
}

/// Targets of all links in a text.
fn links(text: &str) -> Vec<&str> {
    let ends = text.split("](").skip(1);
    ends.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target).collect()
}

/// Replaces the target of every link in a text.
fn with_links<E>(text: &str, mut replaced: impl FnMut(&str) -> Result<String, E>) -> Result<String, E> {
    let mut parts = text.split("](");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        whole += "](";
        match part.split_once(')') {
            Some((target, rest)) => whole += &format!("{}){rest}", replaced(target)?),
            None => whole += part,
        }
    }
    Ok(whole)
}

/// Calls `deed` for every file under `folder`, in order.
fn files(folder: &Path, deed: &mut impl FnMut(&Path) -> Result<(), String>) -> Result<(), String> {
    let listing =
        fs::read_dir(folder).map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    let mut entries: Vec<PathBuf> = listing.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            files(&entry, deed)?;
        } else {
            deed(&entry)?;
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn write(path: &Path, content: &[u8]) -> Result<(), String> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, content));
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_pages_files_and_copies() {
        let root = crate::cargo::root();
        let contents = "- [A](reference/radio.md)\n- [B](../ARCHITECTURE.md)\n- [C](nowhere.md)\n";
        let pages = Pages::of(contents, &root);
        let mut copies = BTreeSet::new();
        let page = "[a](radio.md#delay) [b](../../ARCHITECTURE.md) [c](scenario.schema.json) [d](../../fuzz/README.md) [e](https://x.y)\n";
        let turned =
            pages.turned(page, Path::new("docs/reference/x.md"), &root, &mut copies).expect("all is there");
        let wanted = "[a](reference-radio.md#delay) [b](ARCHITECTURE.md) [c](reference/scenario.schema.json) [d](source/fuzz/README.md.txt) [e](https://x.y)\n";
        assert_eq!(turned, wanted);
        assert_eq!(copies.into_iter().collect::<Vec<_>>(), [Path::new("fuzz/README.md")]);
        assert_eq!(
            pages.summary(contents, &root),
            "- [A](reference-radio.md)\n- [B](ARCHITECTURE.md)\n- [C]()\n"
        );
    }

    #[test]
    fn pages_of_one_name_in_two_folders_are_two_pages() {
        let contents = "- [A](explanation/set.md)\n- [B](evidence/papers/set.md)\n";
        let pages = Pages::of(contents, &crate::cargo::root());
        assert_eq!(
            pages.summary(contents, &crate::cargo::root()),
            "- [A](explanation-set.md)\n- [B](evidence-papers-set.md)\n"
        );
        let mut copies = BTreeSet::new();
        let turned = pages.turned(
            "[a](../../explanation/set.md) [b](set.md)\n",
            Path::new("docs/evidence/papers/sockbuf.md"),
            &crate::cargo::root(),
            &mut copies,
        );
        assert_eq!(turned.as_deref(), Ok("[a](explanation-set.md) [b](evidence-papers-set.md)\n"));
    }

    #[test]
    fn a_link_to_nothing_is_an_error_and_code_is_left_alone() {
        let root = crate::cargo::root();
        let pages = Pages::of("", &root);
        let turned = |text| pages.turned(text, Path::new("docs/x.md"), &root, &mut BTreeSet::new());
        assert!(turned("[a](nothing.md)").expect_err("it is not there").contains("docs/x.md"));
        assert_eq!(
            turned("```text\n[a](nothing.md)\n```\n").as_deref(),
            Ok("```text\n[a](nothing.md)\n```\n")
        );
    }
}
