//! Checks links without a network, and files that pages name.

use std::collections::BTreeMap;
use std::path::Path;

use crate::docs::page::Page;

/// Links whose file or heading does not exist.
pub(crate) fn faults(root: &Path, pages: &[Page]) -> Vec<String> {
    let anchors: BTreeMap<&str, Vec<String>> =
        pages.iter().map(|page| (page.name.as_str(), anchors(&page.prose))).collect();
    let mut faults = Vec::new();
    for page in pages {
        // The architecture may name files that do not exist yet.
        let is_plan = page.name == "ARCHITECTURE.md";
        for path in code_paths(&page.prose).filter(|path| !is_plan && !exists(root, path)) {
            faults.push(format!("{}: there is no `{path}`", page.name));
        }
        for target in targets(&page.prose) {
            if target.contains(':') {
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let named = if path.is_empty() { page.name.clone() } else { resolved(&page.name, path) };
            // The table of contents may name later pages; `cargo xtask book` reports them.
            if !root.join(&named).exists() && page.name != "docs/SUMMARY.md" {
                faults.push(format!("{}: `{target}` leads nowhere", page.name));
            }
            let known = anchors.get(named.as_str()).is_none_or(|known| known.iter().any(|one| one == anchor));
            if !anchor.is_empty() && !known {
                faults.push(format!("{}: {named} has no heading `#{anchor}`", page.name));
            }
        }
    }
    faults
}

/// Paths in the repository that a text names as code.
fn code_paths(prose: &str) -> impl Iterator<Item = &str> {
    let words = prose.split('`').skip(1).step_by(2);
    words.filter(|word| {
        FOLDERS.iter().any(|folder| word.starts_with(folder)) && !word.contains([' ', '{', '*', '<'])
    })
}

/// A module may be named without `.rs`.
fn exists(root: &Path, path: &str) -> bool {
    root.join(path).exists() || root.join(format!("{path}.rs")).exists()
}

/// Folders whose files pages may name.
const FOLDERS: [&str; 6] = ["crates/", "docs/", "examples/", "packaging/", "scenarios/", "xtask/"];

/// Targets of a text's links; code between backticks is ignored.
fn targets(prose: &str) -> Vec<&str> {
    let ends = prose.split("](").skip(1);
    ends.filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target)
        .filter(|t| !t.contains('`'))
        .collect()
}

fn resolved(page: &str, path: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// Anchors of headings, as forges and mdBook generate them.
fn anchors(prose: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    let named = headings.map(|line| {
        let name: String = line
            .trim_start_matches('#')
            .trim()
            .chars()
            .filter_map(|c| match c {
                ' ' => Some('-'),
                c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c.to_ascii_lowercase()),
                _ => None,
            })
            .collect();
        let times = seen.entry(name.clone()).and_modify(|times| *times += 1).or_insert(0);
        if *times == 0 { name } else { format!("{name}-{times}") }
    });
    named.collect()
}

#[test]
fn headings_have_the_names_that_forges_give_them() {
    let names = anchors("# The queue: equations (5) to (7)\n## `[[node]]`\n## Limits\ntext\n## Limits\n");
    assert_eq!(names, ["the-queue-equations-5-to-7", "node", "limits", "limits-1"]);
}

#[test]
fn links_to_nothing_are_found() {
    let page = |name: &str, prose: &str| Page {
        name: name.to_owned(),
        prose: prose.to_owned(),
        blocks: Vec::new(),
        faults: Vec::new(),
    };
    let pages = [
        page(
            "docs/reference/radio.md",
            "`crates/nothing` `crates/cli` [x](nothing.md) [y](../../README.md#no) [z](#a) [w](https://x.y/)\n# A\n",
        ),
        page("README.md", "# B\n"),
    ];
    assert_eq!(faults(&crate::docs::root(), &pages).len(), 3);
}
