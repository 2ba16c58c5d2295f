//! Text that the repository must contain, and text that files must not contain.

use super::lexer::{Kind, Token, tokens};
use super::tree::{Finding, Tree};

/// The two licence files.
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// Home directories of one machine. They are split, so that this file does not break its own rule.
const MACHINE_PATHS: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

/// Words that promise later work. Each needs an issue number, as in `(#12)`.
const PROMISES: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];

/// Endings of files in which promises are checked: code, not prose.
const CODE: [&str; 5] = [".rs", ".toml", ".sh", ".py", ".ci/run"];

/// The only crate that may use smoltcp.
const DOOR: &str = "crates/wire/";

/// Code that runs in real time and may sleep: these crates outside their tests, and tests that kill
/// processes.
const REAL_TIME: [&str; 4] = [
    "crates/emu/src/",
    "crates/net/src/",
    "crates/deploy/tests/it/faults/",
    "crates/cli/tests/it/emulate_faults/",
];

/// Applies all rules about text.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = licences(tree);
    for (path, text) in tree.files() {
        findings.extend(machine_paths(path, text));
        findings.extend(wide_lines(path, text));
        if CODE.iter().any(|end| path.ends_with(end)) {
            findings.extend(promises(path, text));
        }
        if path.ends_with(".rs") {
            let tokens = tokens(text);
            findings.extend(test_habits(path, &tokens));
            findings.extend(smoltcp_in_code(path, &tokens));
        }
        if path.ends_with("/Cargo.toml") {
            findings.extend(smoltcp_in_manifest(path, text));
        }
    }
    findings
}

fn licences(tree: &Tree) -> Vec<Finding> {
    let missing = |path: &&str| tree.text(path).is_none_or(|text| text.trim().is_empty());
    let texts =
        LICENCES.into_iter().filter(missing).map(|path| Finding::new(path, 0, "the licence is missing"));
    let unlicensed = tree.packages().filter_map(|package| {
        let path = format!("{package}/Cargo.toml");
        let named = tree.text(&path)?.lines().any(|line| line.starts_with("license"));
        (!named).then(|| Finding::new(path, 0, "the package names no licence: `license.workspace = true`"))
    });
    texts.chain(unlicensed).collect()
}

fn machine_paths(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (i, line) in text.lines().enumerate() {
        for machine in MACHINE_PATHS {
            // Inside a longer path or an address, the directory name belongs to something else.
            let inside = |c: char| c.is_alphanumeric() || "._-~*".contains(c);
            let starts = |at: usize| !line[..at].ends_with(inside);
            if line.match_indices(machine).any(|(at, _)| starts(at)) {
                findings.push(Finding::new(path, i + 1, format!("a path of one machine: `{machine}...`")));
            }
        }
    }
    findings
}

/// Columns of a line of Markdown or of a comment.
const COLUMNS: usize = 100;

/// Lines of pages and comments that are wider, and could be broken. Tables, code and headings
/// cannot. Pages that the laboratory writes are as it writes them.
fn wide_lines(path: &str, text: &str) -> Vec<Finding> {
    let is_page = path.ends_with(".md");
    if (!is_page && !path.ends_with(".rs")) || path.starts_with("docs/evidence/robustness/") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut in_code = false;
    for (i, line) in text.lines().enumerate() {
        let prose = if is_page {
            line.trim_start()
        } else {
            let Some(comment) = line.trim_start().strip_prefix("//") else {
                in_code = false;
                continue;
            };
            comment.trim_start_matches(['/', '!']).trim_start()
        };
        in_code ^= prose.starts_with("```");
        let is_fixed = in_code || prose.starts_with(['|', '#', '<', '[', '{', '`']) || prose.contains("  ");
        if line.chars().count() > COLUMNS && !is_fixed && is_breakable(line) {
            findings.push(Finding::new(path, i + 1, format!("more than {COLUMNS} columns")));
        }
    }
    findings
}

/// Whether there is a blank to break at: not in code, and not in the target of a link.
fn is_breakable(line: &str) -> bool {
    let text = line.trim_start().trim_start_matches(['/', '!', '*', '-', ' ']);
    let indent = line.chars().count() - text.chars().count();
    let mut in_span = false;
    text.chars().take(COLUMNS.saturating_sub(indent)).any(|c| {
        in_span ^= c == '`';
        c == ' ' && !in_span
    })
}

fn promises(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (i, line) in text.lines().enumerate() {
        for promise in PROMISES {
            let word = |at: usize, end: usize| {
                let part = |c: char| c.is_alphanumeric() || c == '_';
                !line[..at].ends_with(part) && !line[end..].starts_with(part)
            };
            let numbered = |end: usize| {
                let rest = line[end..].trim_start_matches([' ', '(']);
                rest.strip_prefix('#').is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()))
            };
            let mut hits = line.match_indices(promise).map(|(at, _)| (at, at + promise.len()));
            if hits.any(|(at, end)| word(at, end) && !numbered(end)) {
                findings.push(Finding::new(
                    path,
                    i + 1,
                    format!("a {promise} needs its issue: `{promise}(#12)`"),
                ));
            }
        }
    }
    findings
}

/// Finds tests that are ignored, pass for any panic, or wait for the wall clock.
fn test_habits(path: &str, tokens: &[Token]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        let after = |offset: usize| tokens.get(i + offset).map(|token| token.kind);
        let attribute = token.kind == Kind::Punct('[') && i > 0 && tokens[i - 1].kind == Kind::Punct('#');
        let message = match (after(1), token.kind) {
            (Some(Kind::Ident("ignore")), _) if attribute => {
                "a test that does not run: say `SKIPPED: <why>` at run time instead"
            }
            (Some(Kind::Ident("should_panic")), _) if attribute => {
                "should_panic passes for any panic: check the error instead"
            }
            (Some(Kind::PathSep), Kind::Ident("thread"))
                if after(2) == Some(Kind::Ident("sleep"))
                    && !REAL_TIME.iter().any(|p| path.starts_with(p)) =>
            {
                "nothing here waits for the wall clock: move the time instead"
            }
            _ => continue,
        };
        findings.push(Finding::new(path, token.line, message));
    }
    findings
}

fn smoltcp_in_code(path: &str, tokens: &[Token]) -> Vec<Finding> {
    if path.starts_with(DOOR) {
        return Vec::new();
    }
    let named = tokens.iter().filter(|token| token.kind == Kind::Ident("smoltcp"));
    named.map(|token| Finding::new(path, token.line, behind_the_door())).collect()
}

fn smoltcp_in_manifest(path: &str, text: &str) -> Vec<Finding> {
    if path.starts_with(DOOR) {
        return Vec::new();
    }
    let named = text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with("smoltcp"));
    named.map(|(i, _)| Finding::new(path, i + 1, behind_the_door())).collect()
}

fn behind_the_door() -> String {
    format!("smoltcp stands behind {DOOR} and nowhere else: it must stay replaceable")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let licensed = [("LICENSE-MIT", "a"), ("LICENSE-APACHE", "b"), (path, text)];
        check(&Tree::fake(&licensed)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn both_licences_and_every_package_s() {
        let tree =
            Tree::fake(&[("LICENSE-MIT", "x"), ("LICENSE-APACHE", " \n"), ("crates/a/Cargo.toml", "")]);
        let found: Vec<String> = check(&tree).iter().map(|finding| finding.path.clone()).collect();
        assert_eq!(found, ["LICENSE-APACHE", "crates/a/Cargo.toml"]);
        assert_eq!(lines("crates/a/Cargo.toml", "license.workspace = true"), [0; 0]);
    }

    #[test]
    fn prose_and_comments_have_a_hundred_columns() {
        let words = "word ".repeat(21);
        let (wide, code) = (words.trim_end(), format!("`{}`", words.trim_end()));
        let page =
            format!("{wide}\n| {wide} |\n# {wide}\n```text\n{wide}\n```\n{code}\n{}\n", "x".repeat(120));
        assert_eq!(lines("docs/page.md", &page), [1]);
        let source = format!("//! {wide}\nfn f() {{}} // {wide}\n/// | {wide} |\n    // {wide}\n");
        assert_eq!(lines("crates/a/src/lib.rs", &source), [1, 4]);
        assert_eq!(lines("docs/page.md", &wide[..100].replace(' ', "_")), [0; 0]);
    }

    #[test]
    fn machine_paths_are_refused_everywhere() {
        let text = format!(
            "see {0}x\nsee `{1}.cargo`\nhttps://a.example{0}x\nhere",
            MACHINE_PATHS[0], MACHINE_PATHS[1]
        );
        assert_eq!(lines("README.md", &text), [1, 2]);
    }

    #[test]
    fn a_promise_needs_its_issue() {
        let text = format!(
            "// {0}: later\n// {0}(#12): later\n// {0} #3\nlet {0}_X = 1;\n// {1}\n",
            PROMISES[0], PROMISES[1]
        );
        assert_eq!(lines("crates/a/src/lib.rs", &text), [1, 5]);
        assert_eq!(lines("README.md", &text), [0; 0]);
    }

    #[test]
    fn tests_run_say_what_they_expect_and_do_not_wait() {
        let text = "#[test]\n#[ignore]\nfn a() {}\n#[should_panic(expected = \"x\")]\nfn b() {}\n\
                    fn c() { std::thread::sleep(d); }\n// thread::sleep, #[ignore]\nlet ignore = 1;\n";
        assert_eq!(lines("crates/a/tests/a.rs", text), [2, 4, 6]);
        assert_eq!(lines("crates/net/src/a.rs", "fn c() { thread::sleep(d); }"), [0; 0]);
        assert_eq!(lines("crates/net/tests/a.rs", "fn c() { thread::sleep(d); }"), [1]);
    }

    #[test]
    fn smoltcp_stands_behind_its_door() {
        let code = "// smoltcp in prose is fine\nuse smoltcp::wire;\n";
        assert_eq!(lines("crates/core/src/lib.rs", code), [2]);
        assert_eq!(lines("crates/wire/src/lib.rs", code), [0; 0]);
        assert_eq!(lines("crates/sim/Cargo.toml", "license = \"x\"\nsmoltcp.workspace = true\n"), [2]);
        assert_eq!(lines("Cargo.toml", "[workspace.dependencies]\nsmoltcp = \"0.14\"\n"), [0; 0]);
    }
}
