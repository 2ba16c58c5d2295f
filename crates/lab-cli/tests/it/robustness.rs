//! Tests of `anabranch lab robustness` on the command line.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use assert_cmd::cargo::CommandCargoExt;
use assert_cmd::prelude::*;
use serde_json::Value;

/// A small study in a folder.
fn study(folder: &Path, seed: &str) -> Command {
    study_of("4", folder, seed)
}

fn study_of(settings: &str, folder: &Path, seed: &str) -> Command {
    let mut command = Command::cargo_bin("anabranch-lab").expect("the program is built");
    command.args([
        "lab",
        "robustness",
        "dtc",
        "--quick",
        "--settings",
        settings,
        "--runs",
        "1",
        "--seed",
        seed,
    ]);
    command.arg("--out").arg(folder);
    command
}

fn read(folder: &Path, kind: &str) -> String {
    fs::read_to_string(folder.join(format!("dtc.{kind}"))).expect("a file")
}

/// A process is killed in the middle of a line; the next resumes with another number of threads,
/// and the files are equal.
#[test]
fn the_same_command_goes_on_where_it_was_ended() {
    let (whole, ended) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let (whole, ended) = (whole.path(), ended.path());
    let assert = study(whole, "3").env("RAYON_NUM_THREADS", "1").assert().success();
    let told = String::from_utf8(assert.get_output().stdout.clone()).expect("text");
    assert!(told.contains("rows of the baselines") && told.contains("dtc.md"), "{told}");
    let journal = read(whole, "jsonl");
    let lines: Vec<&str> = journal.lines().collect();
    assert_eq!(lines.len(), 1 + 5, "what it is, the defaults and four settings");
    let half = format!("{}\n{}\n{}\n{}", lines[0], lines[1], lines[2], &lines[3][..lines[3].len() / 2]);
    fs::write(ended.join("dtc.jsonl"), half).expect("a file");
    let assert = study(ended, "3").env("RAYON_NUM_THREADS", "2").assert().success();
    let said = String::from_utf8(assert.get_output().stderr.clone()).expect("text");
    assert!(said.contains("2 of 5 settings, with the reference, are already done"), "{said}");
    for kind in ["md", "svg", "csv"] {
        assert_eq!(read(whole, kind), read(ended, kind), "{kind}");
    }
    let sorted = |folder| {
        let text = read(folder, "jsonl");
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(sorted(whole), sorted(ended));
    // A row with other values than the drawn ones is ignored.
    let other = read(whole, "jsonl").replacen(
        "\"setting\":2,\"parameters\":{",
        "\"setting\":2,\"parameters\":{\"loss\":\"0\",",
        1,
    );
    fs::write(ended.join("dtc.jsonl"), other).expect("a file");
    study(ended, "3").arg("--quiet").assert().success();
    assert_eq!(read(whole, "csv"), read(ended, "csv"));
    let page = read(whole, "md");
    let claims = page.lines().filter(|line| line.starts_with("| dtc.")).count();
    assert_eq!(read(whole, "csv").lines().count(), 1 + claims);
    // Everything is done: nothing runs again, and the JSON output has the same claims.
    let json = study(whole, "3").args(["--json", "--quiet"]).assert().success();
    let json = String::from_utf8(json.get_output().stdout.clone()).expect("text");
    let all: Vec<Value> =
        json.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect();
    assert_eq!(all.len(), claims);
    let counts = |claim: &Value| -> u64 {
        claim["counts"].as_array().expect("four").iter().map(|n| n.as_u64().expect("a number")).sum()
    };
    let is_judged = |claim: &Value| claim["counts"][3] == 4 || claim["reproduced"]["high"].is_number();
    assert!(all.iter().all(|claim| counts(claim) == 4 && is_judged(claim)), "{json}");
}

#[test]
fn whoever_is_interrupted_is_told_what_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = study_of("5000", folder.path(), "3");
    let mut child = command.arg("--quiet").stderr(Stdio::piped()).spawn().expect("the program");
    let lines = || fs::read_to_string(folder.path().join("dtc.jsonl")).map_or(0, |text| text.lines().count());
    while lines() < 4 && child.try_wait().expect("a child").is_none() {
        std::thread::park_timeout(std::time::Duration::from_millis(1));
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill is here");
    assert!(killed.success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.starts_with("interrupted: ") && text.contains(" of 5001 settings, with the reference, are kept"),
        "{text}"
    );
}

const OTHER: &str = "{\"paper\":\"dtc\",\"settings\":9,\"quick\":false,\"runs\":2,\"seed\":7,\"version\":\"0.0.1\",\"build\":\"\"}\n";

/// The report contains the results of a folder; incomplete or missing results are refused before a
/// run.
#[test]
fn a_report_has_the_map_of_a_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let (maps, out) = (folder.path().join("maps"), folder.path().join("report"));
    let report = || {
        let mut command = Command::cargo_bin("anabranch-lab").expect("the program is built");
        command
            .args(["lab", "reproduce", "dtc", "--quick", "--runs", "1", "--quiet", "--robustness"])
            .arg(&maps);
        command.arg("--out").arg(&out);
        command
    };
    let refused = |says: &str| {
        let assert = report().assert().code(2).stdout("");
        let said = String::from_utf8(assert.get_output().stderr.clone()).expect("text");
        assert!(said.contains(says) && said.contains("hint: "), "{said}");
        assert!(!out.exists());
    };
    refused("has no results of these papers");
    study(&maps, "3").arg("--quiet").assert().success();
    report().assert().success();
    let page = fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(page.contains("<h2>In how many settings the claims hold</h2>"), "it has the map");
    assert_eq!(fs::read_to_string(out.join("dtc/robustness.svg")).expect("a file"), read(&maps, "svg"));
    assert_eq!(fs::read_to_string(out.join("dtc/robustness.csv")).expect("a file"), read(&maps, "csv"));
    fs::remove_dir_all(&out).expect("it is there");
    let journal = read(&maps, "jsonl");
    let less: Vec<&str> = journal.lines().take(4).collect();
    fs::write(maps.join("dtc.jsonl"), less.join("\n") + "\n").expect("a file");
    refused("is incomplete: 2 settings of its study are missing");
    fs::write(maps.join("dtc.jsonl"), "notes\n").expect("a file");
    refused("is not a file of `lab robustness`");
}

#[test]
fn what_is_of_another_study_or_being_written_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let path = folder.join("dtc.jsonl");
    for (text, says) in [
        ("my notes\n", "is not a file of `lab robustness`"),
        (
            OTHER,
            "was written by `anabranch lab robustness dtc --settings 9 --runs 2 --seed 7` of version 0.0.1",
        ),
    ] {
        fs::write(&path, text).expect("a file");
        let assert = study(folder, "1").assert().code(2).stdout("");
        let said = String::from_utf8(assert.get_output().stderr.clone()).expect("text");
        assert!(said.contains(says) && said.contains("--out") && said.lines().count() <= 2, "{said}");
        assert_eq!(fs::read_to_string(&path).expect("a file"), text);
    }
    fs::remove_file(&path).expect("it is there");
    let other = File::create(&path).expect("a file");
    other.lock().expect("nothing else has it");
    let assert = study(folder, "1").assert().code(1).stdout("");
    let said = String::from_utf8(assert.get_output().stderr.clone()).expect("text");
    assert!(said.contains("another process"), "{said}");
}

#[test]
fn a_paper_that_is_none_and_numbers_that_cannot_be_are_refused() {
    let refused = |args: &[&str]| {
        let mut command = Command::cargo_bin("anabranch-lab").expect("the program is built");
        command.args(["lab", "robustness"]).args(args).assert().code(2).stdout("");
    };
    refused(&["dtcp"]);
    refused(&["dtc", "--settings", "0"]);
    refused(&["dtc", "--runs", "0"]);
    // An error that no setting's values cause ends the study, and is in no row.
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::cargo_bin("anabranch-lab").expect("the program is built");
    command.args(["lab", "robustness", "dtc", "--quick", "--settings", "2", "--runs", "42000", "--out"]);
    let assert = command.arg(folder.path()).assert().failure().stdout("");
    let said = String::from_utf8(assert.get_output().stderr.clone()).expect("text");
    assert!(said.contains("1000000"), "{said}");
    assert_eq!(read(folder.path(), "jsonl").lines().count(), 1);
    refused(&[]);
}
