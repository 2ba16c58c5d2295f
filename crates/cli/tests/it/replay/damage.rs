//! Tests of truncated, damaged, empty and foreign logs, and of the commands.

use std::path::Path;
use std::process::Command;

use anabranch_view::log::{Ending, LogError, Reader};
use anabranch_view::page;
use anabranch_view::replay::{Part, Replay};
use assert_cmd::cargo::CommandCargoExt;
use assert_cmd::prelude::*;
use tempfile::TempDir;

use crate::replay::world::*;

fn anabranch(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("anabranch").expect("the program is built");
    command.args(arguments);
    command
}

fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().expect("a path of text").to_owned()
}

#[track_caller]
fn refused(arguments: &[&str]) -> String {
    let assert = anabranch(arguments).assert().code(2).stdout("");
    String::from_utf8(assert.get_output().stderr.clone()).expect("text")
}

#[test]
fn a_log_that_is_cut_anywhere_says_so_and_shows_what_is_there() {
    let (_, log) = logged(&scenario(THREE_HOPS));
    let whole = replay(&log);
    let mut before = 0;
    for end in (6..log.len()).step_by(997).chain([log.len() - 1]) {
        let mut reader = Reader::new(&log[..end]).expect("its beginning is there");
        while reader.next_record().unwrap_or_else(|error| panic!("{end}: {error}")).is_some() {}
        assert!(matches!(reader.ending(), Some(Ending::Cut(at)) if at <= end as u64), "{end}");
        assert!(reader.events() >= before);
        before = reader.events();
    }
    let cut = replay(&log[..log.len() / 2]);
    assert!(cut.cut.is_some() && cut.end < whole.end && !cut.flights.is_empty());
    assert!(cut.flights.len() < whole.flights.len());
    let page = page::html(&cut);
    assert!(page.contains(&format!("\"cut\":{}", cut.cut.expect("it was cut"))));
}

#[test]
fn octets_that_are_not_what_they_were_are_an_error_or_another_run_and_never_a_panic() {
    let (_, log) = logged(&scenario(THREE_HOPS));
    let short = &log[..4000];
    let mut refused = 0;
    for at in 0..short.len() {
        let mut log = short.to_vec();
        log[at] ^= 0x80 >> (at % 8);
        match Replay::read(log.as_slice(), Part::default()) {
            Ok(replay) => drop(page::html(&replay)),
            Err(error) => {
                refused += 1;
                assert!(!error.to_string().is_empty());
            }
        }
    }
    assert!(refused > 200, "{refused}");
}

#[test]
fn what_follows_the_end_and_a_wrong_count_are_damage() {
    let (_, mut log) = logged(&scenario(THREE_HOPS));
    log.push(1);
    let error = Replay::read(log.as_slice(), Part::default()).expect_err("too long");
    assert!(matches!(error, LogError::Damaged { what: "something follows the end", .. }), "{error}");
}

#[test]
fn a_file_that_is_no_log_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = path(&folder, "page.html");
    for (name, octets, expected) in [
        ("empty.ablog", &b""[..], "the log is empty"),
        ("foreign.ablog", b"PNG, or something else", "not an event log"),
        ("short.ablog", b"ABL", "not an event log"),
        ("newer.ablog", b"ABLOG\x07", "the log is of version 7"),
        ("damaged.ablog", b"ABLOG\x01\xfe\x00", "damaged at byte 6"),
    ] {
        let log = path(&folder, name);
        std::fs::write(&log, octets).expect("a file");
        let said = refused(&["view", &log, "--out", &page]);
        assert!(said.contains(expected) && said.contains(name) && said.contains("hint:"), "{said}");
        assert!(!Path::new(&page).exists());
    }
    assert!(refused(&["view", &path(&folder, "absent.ablog")]).contains("cannot read"));
}

#[test]
fn a_run_leaves_a_log_and_view_a_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let (toml, log, page) = (path(&folder, "s.toml"), path(&folder, "s.ablog"), path(&folder, "s.html"));
    std::fs::write(&toml, THREE_HOPS).expect("a file");
    anabranch(&["run", &toml, "--events", &log]).assert().success();
    let (_, ours) = logged(&scenario(THREE_HOPS));
    let written = std::fs::read(&log).expect("a log");
    assert!(written == ours, "the program's log is another one");
    anabranch(&["view", &log]).assert().success();
    let first = std::fs::read(&page).expect("a page");
    anabranch(&["view", &toml, "--out", &page]).assert().success();
    assert!(std::fs::read(&page).expect("a page") == first, "a scenario's page is that of its log");
    // A truncated log is shown, with a warning.
    std::fs::write(&log, &written[..written.len() / 2]).expect("a file");
    let assert = anabranch(&["view", &log]).assert().success();
    assert!(String::from_utf8_lossy(&assert.get_output().stderr).contains("is truncated after"));
    // No incomplete file is left beside them.
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 3);

    assert!(refused(&["view", &page, "--out", &page]).contains("would overwrite the event log"));
    let said = refused(&["view", &toml, "--limit", "100"]);
    assert!(said.contains("more than 100 rows") && said.contains("--from"), "{said}");
    assert!(refused(&["view", &log, "--from", "2 s", "--until", "1 s"]).contains("later than"));
    for name in ["p.png", "p.PDF", "p.svgz"] {
        let said = refused(&["view", &log, "--out", &path(&folder, name)]);
        assert!(said.contains("cannot write .") && said.contains("hint: name a page .html"), "{said}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 3);
    anabranch(&["view", &log, "--out", &path(&folder, "replay-0.2.0")]).assert().success();
    assert!(refused(&["run", &toml, "--events", &log, "--runs", "2"]).contains("one run"));
    assert!(refused(&["run", &toml, "--events", "/nowhere/at/all"]).contains("cannot write"));
}

#[test]
fn a_push_leaves_a_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, log) = (path(&folder, "file"), path(&folder, "push.ablog"));
    std::fs::write(&file, [7; 20_000]).expect("a file");
    anabranch(&["push", &file, "--quiet", "--events", &log]).assert().success();
    let replay = replay(&std::fs::read(&log).expect("a log"));
    assert_eq!((replay.cut, replay.run.name.as_str()), (None, "three gateways"));
    assert!(!replay.chunks.is_empty());
}

#[test]
fn names_cannot_leave_their_place_in_the_page() {
    let bad = "</script><script>alert(1)</script><!--";
    let text = THREE_HOPS.replace("name = \"three hops of radio\"", &format!("name = \"{bad}\""));
    let page = page::html(&replay(&logged(&scenario(&text)).1));
    assert!(!page.contains(bad) && page.contains("&lt;/script&gt;"));
    assert_eq!(page.matches("</script>").count(), 3);
}
