//! Compares statements of the pages about the papers with the rows of the report.
//!
//! `docs/evidence/reproduced.jsonl` has the rows, as `anabranch lab reproduce --json` printed them.
//! A comment, which is invisible to readers, names the rows of a statement:
//!
//! ```text
//! <!-- rows mptcp.*.C: 29 rows, 10 reproduced; mptcp.*.P: off -20 to 86 -->
//! <!-- cells ours = mptcp.*.transmissions.P ours; `proposed` = mptcp.*.transmissions.P -->
//! ```
//!
//! CONTRIBUTING.md defines the words. Numbers that a comment counts or measures must also be in its
//! paragraph.

use std::fs;

use anabranch_lab::PAPERS;
use anabranch_lab::reproduction::{Extent, Options};
use anabranch_lab::targets::Kind;
use anabranch_lab::verdict::Holds;
use serde_json::{Value, json};

use super::page::Page;
use super::{none, pages, root};

/// Pages that define the comments, and pages that a program writes.
const NO_STATEMENTS: [&str; 7] = [
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/explanation/errata.md",
    "docs/reference/report.md",
    "docs/explanation/robustness.md",
    "docs/reference/scenario.md",
    "docs/evidence/validation.md",
];
/// Words in a paragraph about printed results and their reproduction.
const SPEAKS: [&str; 2] = ["reproduced", "than printed"];
/// Words in the header of a table of printed results.
const HEADS: [&str; 2] = ["published", "paper: "];

/// The recorded rows.
struct Rows(Vec<Value>);

impl Rows {
    fn read() -> Self {
        let text =
            fs::read_to_string(root().join("docs/evidence/reproduced.jsonl")).expect("the rows are here");
        Self(text.lines().map(|line| serde_json::from_str(line).expect("a row is an object")).collect())
    }

    /// Rows whose name matches one of the patterns between bars; each pattern must match.
    fn matching(&self, patterns: &str) -> Result<Vec<&Value>, String> {
        let named = |pattern: &str| self.0.iter().any(|row| matches(pattern, text(row, "id")));
        if let Some(pattern) = patterns.split('|').find(|pattern| !named(pattern)) {
            return Err(format!("no row is named {pattern}"));
        }
        let is_one = |row: &&Value| patterns.split('|').any(|pattern| matches(pattern, text(row, "id")));
        Ok(self.0.iter().filter(is_one).collect())
    }
}

fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or_default()
}

/// `*` matches anything.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    name.strip_prefix(start).is_some_and(|name| (0..=name.len()).any(|at| matches(rest, &name[at..])))
}

/// Whether `number` rounds to the written digits.
fn rounds_to(number: f64, written: &str) -> bool {
    let decimals = written.split_once('.').map_or(0, |(_, decimals)| decimals.len() as i32);
    written.parse::<f64>().is_ok_and(|w| (number - w).abs() <= 0.5 * 10f64.powi(-decimals) + 1e-9)
}

/// A number of a row; `off` is the deviation of `found` from `printed` in per cent.
fn number(row: &Value, field: &str) -> Option<f64> {
    match field {
        "off" => row["ratio"].as_f64().map(|ratio| 100.0 * (ratio - 1.0)),
        field => row[field].as_f64(),
    }
}

fn is_verdict(word: &str) -> bool {
    Holds::ALL.iter().any(|holds| holds.word() == word)
}

/// Checks a claim about these rows. Returns the numbers that the paragraph must contain.
///
/// # Errors
/// Why the claim is false.
fn check<'a>(rows: &[&Value], claim: &'a str) -> Result<Vec<&'a str>, String> {
    let with = |verdict: &str| rows.iter().filter(|row| text(row, "verdict") == verdict).count();
    let (first, rest) = claim.split_once(' ').unwrap_or((claim, ""));
    if is_verdict(claim) {
        let so = with(claim);
        return if so == rows.len() { Ok(vec![]) } else { Err(format!("{so} of {} are", rows.len())) };
    }
    if let Ok(wanted) = first.parse::<usize>() {
        let found = match rest {
            "rows" => rows.len(),
            "exceeded" => rows.iter().filter(|row| row["exceeded"] == true).count(),
            verdict if is_verdict(verdict) => with(verdict),
            other => return Err(format!("`{other}` is no verdict")),
        };
        return if found == wanted { Ok(vec![first]) } else { Err(format!("it is {found}")) };
    }
    let numbers: Option<Vec<f64>> = rows.iter().map(|row| number(row, first)).collect();
    let numbers = numbers.ok_or_else(|| format!("not all of the rows have `{first}`"))?;
    let (least, most) = rest.split_once(" to ").unwrap_or((rest, rest));
    let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let high = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if rounds_to(low, least) && rounds_to(high, most) {
        Ok(vec![least.trim_start_matches('-'), most.trim_start_matches('-')])
    } else {
        Err(format!("{first} is {low} to {high}"))
    }
}

/// Whether a cell is `found ± half` of the row or of its `field`, `printed / found ± half`, or the
/// printed number alone.
fn cell_is(row: &Value, field: &str, cell: &str) -> bool {
    let is = |written: &str, field: &str| number(row, field).is_some_and(|number| rounds_to(number, written));
    let measured = |words: &str, field: &str, interval: &str| match words.split_once(" ± ") {
        Some((mean, half)) => is(mean, field) && is(half, interval),
        None => is(words, field) && number(row, interval).is_none_or(|half| half == 0.0),
    };
    match (field, cell.split_once(" / ")) {
        ("", Some((printed, found))) => is(printed, "printed") && measured(found, "found", "ci95"),
        ("", None) => measured(cell, "found", "ci95"),
        ("ours", None) => measured(cell, "ours", "ours_ci95"),
        ("printed", None) => is(cell, "printed"),
        _ => false,
    }
}

fn cells(line: &str) -> Vec<&str> {
    let line = line.strip_prefix('|').unwrap_or(line);
    line.strip_suffix('|').unwrap_or(line).split('|').map(str::trim).collect()
}

/// Lines of a table as cells, without the delimiter row.
fn table(block: &str) -> Vec<Vec<&str>> {
    let lines = block.lines().map(str::trim).filter(|line| line.starts_with('|'));
    let mut lines: Vec<Vec<&str>> = lines.map(cells).collect();
    if lines.len() > 1 {
        lines.remove(1);
    }
    lines
}

/// Checks a column of a table: its lines must be the rows of the pattern, in the order of the list
/// of targets.
fn column_faults(rows: &Rows, lines: &[Vec<&str>], column: &str) -> Vec<String> {
    let Some((title, rest)) = column.split_once(" = ") else {
        return vec![format!("`{column}`: a column is `TITLE = ROWS` or `TITLE = ROWS FIELD`")];
    };
    let (patterns, field) = rest.split_once(' ').unwrap_or((rest, ""));
    let place = lines.first().and_then(|head| head.iter().position(|cell| *cell == title));
    let (place, rows) = match (place, rows.matching(patterns)) {
        (_, Err(why)) => return vec![why],
        (None, _) => return vec![format!("the next table has no column `{title}`")],
        (Some(place), Ok(rows)) => (place, rows),
    };
    if rows.len() != lines.len() - 1 {
        return vec![format!("`{title}` has {} lines, and there are {} rows", lines.len() - 1, rows.len())];
    }
    let cells = lines[1..].iter().map(|line| line.get(place).copied().unwrap_or_default());
    let wrong = cells.zip(&rows).filter(|(cell, row)| !cell_is(row, field, cell));
    wrong.map(|(cell, row)| format!("`{cell}` under `{title}` is not what {row} has")).collect()
}

/// A paragraph, list item or table, with its comments.
#[derive(Debug)]
struct Block {
    prose: String,
    comments: Vec<String>,
}

impl Block {
    fn of(text: &str) -> Self {
        let (mut prose, mut comments, mut rest) = (String::new(), Vec::new(), text);
        while let Some((before, behind)) =
            rest.split_once("<!--").filter(|(before, _)| !before.ends_with('`'))
        {
            let (comment, after) = behind.split_once("-->").unwrap_or((behind, ""));
            prose += before;
            comments.push(comment.split_whitespace().collect::<Vec<_>>().join(" "));
            rest = after;
        }
        Self { prose: prose + rest, comments }
    }

    fn names_rows(&self) -> bool {
        self.comments.iter().any(|comment| comment.starts_with("rows ") || comment.starts_with("cells "))
    }

    fn speaks(&self) -> bool {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        match self.prose.trim().starts_with('|') {
            true => {
                let head = words(self.prose.trim().lines().next().unwrap_or_default());
                HEADS.iter().any(|word| head.contains(word))
            }
            false => SPEAKS.iter().any(|word| words(&self.prose).contains(word)),
        }
    }

    fn has_number(&self, wanted: &str) -> bool {
        let is_part = |c: char| c.is_ascii_digit() || c == '.';
        self.prose.split(|c| !is_part(c)).any(|word| word.trim_matches('.') == wanted)
    }
}

fn blocks(page: &Page) -> Vec<Block> {
    let mut texts = vec![String::new()];
    for line in page.prose.lines() {
        if line.is_empty() || line.starts_with("* ") || line.starts_with("- ") {
            texts.push(String::new());
        }
        let last = texts.last_mut().expect("there is one");
        *last += line;
        last.push('\n');
    }
    texts.iter().filter(|text| !text.trim().is_empty()).map(|text| Block::of(text)).collect()
}

/// Checks `PATTERNS: CLAIM, CLAIM` about this block.
fn claim_faults(rows: &Rows, claim: &str, spoken: Option<&Block>) -> Vec<String> {
    let (patterns, said) = claim.split_once(": ").unwrap_or((claim, ""));
    let found = match rows.matching(patterns) {
        Ok(found) => found,
        Err(why) => return vec![why],
    };
    let fault = |said| match check(&found, said) {
        Err(why) => Some(format!("{patterns}: {said}: {why}")),
        Ok(numbers) => {
            let is_said =
                |number: &&str| *number == "0" || spoken.is_some_and(|block| block.has_number(number));
            let unsaid = numbers.into_iter().find(|number| !is_said(number));
            unsaid.map(|number| format!("the paragraph has no {number}"))
        }
    };
    said.split(", ").filter_map(fault).collect()
}

/// Checks the comments of a page.
fn faults_of(page: &Page, rows: &Rows) -> Vec<String> {
    let blocks = blocks(page);
    let mut faults = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        // A comment by itself belongs to the block before it, or to the table after it.
        let spoken = blocks[..=at].iter().rev().find(|block| !block.prose.trim().is_empty());
        let behind = blocks.get(at + 1).map(|block| table(&block.prose)).unwrap_or_default();
        for comment in &block.comments {
            let found: Vec<String> = match comment.split_once(' ') {
                Some(("cells", columns)) => {
                    columns.split("; ").flat_map(|column| column_faults(rows, &behind, column)).collect()
                }
                Some(("rows", claims)) => {
                    claims.split("; ").flat_map(|claim| claim_faults(rows, claim, spoken)).collect()
                }
                _ if comment.starts_with("row") || comment.starts_with("cell") => {
                    vec!["a comment begins with `rows ` or `cells `".to_owned()]
                }
                _ => Vec::new(),
            };
            faults.extend(found.into_iter().map(|why| format!("{}: `{comment}`: {why}", page.name)));
        }
    }
    faults
}

/// Paragraphs and tables about printed results that name no row, in themselves or directly before
/// or after.
fn without_rows(page: &Page) -> Vec<String> {
    let blocks = blocks(page);
    let alone = blocks.iter().enumerate().filter(|(at, block)| {
        let near = &blocks[at.saturating_sub(1)..(at + 2).min(blocks.len())];
        block.speaks() && !near.iter().any(Block::names_rows)
    });
    alone.map(|(_, block)| format!("{}: no row is named for: {}", page.name, block.prose.trim())).collect()
}

#[test]
fn what_is_said_of_the_papers_follows_from_rows() {
    let rows = Rows::read();
    let faults = pages().into_iter().flat_map(|page| {
        let silent =
            NO_STATEMENTS.contains(&page.name.as_str()) || page.name.starts_with("docs/evidence/papers/");
        let alone = if silent { Vec::new() } else { without_rows(&page) };
        alone.into_iter().chain(faults_of(&page, &rows)).collect::<Vec<_>>()
    });
    none(&faults.collect::<Vec<_>>());
}

/// The record matches the present list of targets and our own goals.
#[test]
fn every_recorded_row_is_of_a_target() {
    let targets = PAPERS.iter().flat_map(|paper| paper.targets());
    let claims = targets.filter(|target| target.kind != Kind::Param);
    let mut wanted: Vec<_> = claims.map(|target| (target.id.clone(), json!(target.number()))).collect();
    let rows = Rows::read().0;
    let recorded = rows.iter().filter(|row| text(row, "section") != "own goal");
    let mut recorded: Vec<_> =
        recorded.map(|row| (text(row, "id").to_owned(), row["printed"].clone())).collect();
    wanted.sort_by(|a, b| a.0.cmp(&b.0));
    recorded.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(recorded, wanted);
}

/// The record matches this code, with the runs and the seed of `lab reproduce`. Two fast papers
/// stand for all.
#[test]
fn recorded_rows_are_what_this_code_finds() {
    let rows = Rows::read().0;
    for name in ["set", "dtc"] {
        let paper = anabranch_lab::paper(name).expect("a paper");
        let options = Options { extent: Extent::Full, runs: None, seed: 1 };
        let made = paper.reproduce(options, &|| ()).expect("it runs");
        for verdict in &made.verdicts {
            let mut found = serde_json::to_value(verdict.record()).expect("a record");
            found["paper"] = json!(name);
            // Parsed like the recorded row, which rounds the last digit.
            let found: Value = serde_json::from_str(&found.to_string()).expect("its own text");
            let recorded = rows.iter().find(|row| row["id"] == found["id"]);
            assert_eq!(recorded, Some(&found), "docs/evidence/reproduced.jsonl is older");
        }
    }
}

#[test]
fn what_does_not_follow_is_found() {
    let row = |id: &str, verdict: &str, printed: f64, found: f64| {
        json!({ "id": id, "verdict": verdict, "printed": printed, "found": found, "ci95": 2.04, "ours": 90.0,
                "ours_ci95": 1.0, "ratio": found / printed, "exceeded": false })
    };
    let rows =
        Rows(vec![row("a.x.C", "reproduced", 100.0, 103.2), row("a.y.C", "not reproduced", 200.0, 320.0)]);
    let page = |prose: &str| Page {
        name: "p".to_owned(),
        prose: prose.to_owned(),
        blocks: Vec::new(),
        faults: Vec::new(),
    };
    let said = |comment: &str| {
        faults_of(&page(&format!("1 of 2 rows, by 3.2 to 60 %.\n<!-- {comment} -->\n")), &rows)
    };
    for good in [
        "rows a.*: 1 reproduced, 2 rows, off 3.2 to 60; a.x.*: reproduced",
        "rows a.x.C|a.y.C: 1\nnot reproduced, 0 exceeded",
        "rows a.y.*: off 60",
        "another",
    ] {
        assert_eq!(said(good), [""; 0], "{good}");
    }
    for bad in [
        "rows a.*: reproduced",
        "rows a.*: 2 reproduced",
        "rows a.*: 3 rows",
        "rows b.*: reproduced",
        "rows a.x.C|b: 1 reproduced",
        "rows a.*: off 3.3 to 60",
        "rows a.*: unit 3.2 to 60",
        "rows a.*: 1 proved",
        "rows a.*: fine",
        // These claims are true, but the paragraph does not contain their numbers.
        "rows a.x.*: off 3",
        "row a.x.*: reproduced",
        "cells C = a.*",
    ] {
        assert!(!said(bad).is_empty(), "{bad}");
    }
    let shown = |cells: &str, first: &str, second: &str| {
        let prose =
            format!("<!-- cells {cells} -->\n\n| | `C` |\n|---|---|\n| x | {first} |\n| y | {second} |\n");
        faults_of(&page(&prose), &rows).len()
    };
    assert_eq!(shown("`C` = a.*", "100 / 103 ± 2", "320.0 ± 2.0"), 0);
    assert_eq!(shown("`C` = a.* ours", "90 ± 1", "90.0 ± 1.0"), 0);
    assert_eq!(shown("`C` = a.* printed", "100", "200"), 0);
    for (first, second) in
        [("320 ± 2", "103 ± 2"), ("103", "320 ± 2"), ("101 / 103 ± 2", "320 ± 2"), ("–", "320 ± 2")]
    {
        assert!(shown("`C` = a.*", first, second) > 0, "{first}, {second}");
    }
    assert_eq!([shown("D = a.*", "1", "2"), shown("`C` = a.x.*", "1", "2"), shown("`C`", "1", "2")], [1; 3]);
    let alone = |prose: &str| without_rows(&page(prose)).len();
    assert_eq!(alone("All are\nReproduced.\n\nb\n\n<!-- rows a.*: reproduced -->\n"), 1);
    assert_eq!(alone("* All are reproduced.\n* b\n* c <!-- rows a.*: reproduced -->\n"), 1);
    assert_eq!(alone("All are reproduced.\n\n<!-- rows a.*: reproduced -->\n"), 0);
    assert_eq!(alone("| what | published |\n|---|---|\n| a | 1 |\n"), 1);
    assert_eq!(alone("| what | ours |\n|---|---|\n| published | 1 |\n"), 0);
}
