//! Tests of the manual pages, as man(1) shows them.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use anabranch_testkit::debian;
use assert_cmd::prelude::*;

fn anabranch(arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch-manual"));
    command.args(arguments);
    command
}

#[track_caller]
fn printed(arguments: &[&str]) -> String {
    let assert = anabranch(arguments).assert().success().stderr("");
    String::from_utf8(assert.get_output().stdout.clone()).expect("text")
}

/// Every long option of each command, by the name of the command's page.
fn options() -> BTreeMap<String, Vec<String>> {
    let mut program = anabranch_lab_cli::program().disable_help_subcommand(true);
    program.build();
    let mut found = BTreeMap::new();
    gather(&program, "", &mut found);
    found
}

fn gather(command: &clap::Command, ancestors: &str, found: &mut BTreeMap<String, Vec<String>>) {
    let page = format!("{ancestors}{}", command.get_name());
    for inner in command.get_subcommands() {
        gather(inner, &format!("{page}-"), found);
    }
    // A hidden option is for the program itself.
    let shown = command.get_arguments().filter(|argument| !argument.is_hide_set());
    found.insert(page, shown.filter_map(|argument| argument.get_long().map(str::to_owned)).collect());
}

#[test]
fn there_is_a_page_for_each_command_with_all_of_its_options() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = folder.path().to_str().expect("a path of text");
    assert_eq!(printed(&["man", pages]), "");
    let options = options();
    assert!(options["anabranch-node"].contains(&"config".to_owned()), "{options:?}");
    assert!(options.contains_key("anabranch-lab-run"), "{options:?}");
    for (page, options) in &options {
        let text = fs::read_to_string(folder.path().join(format!("{page}.1"))).expect("the page is there");
        for option in options {
            let named = format!("\\-\\-{}", option.replace('-', "\\-"));
            assert!(text.contains(&named), "{page}: --{option}");
        }
        assert!(text.contains("EXIT STATUS"), "{page}");
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), options.len());
    let node = fs::read_to_string(folder.path().join("anabranch-node.1")).expect("a page");
    for section in [".SH FILES", ".SH EXAMPLES", ".SH \"SEE ALSO\""] {
        assert!(node.contains(section), "{section}: {node}");
    }
}

#[test]
fn groff_has_nothing_to_say_of_the_pages() {
    let folder = tempfile::tempdir().expect("a folder");
    printed(&["man", folder.path().to_str().expect("a path of text")]);
    let Some(groff) = debian::find_or_install("groff", "groff-base") else { return };
    let mut pages: Vec<_> =
        fs::read_dir(folder.path()).expect("a folder").map(|page| page.expect("a page").path()).collect();
    pages.sort();
    for page in pages {
        // The same check as `man --warnings`, which would need an installed man-db.
        let output = Command::new(&groff)
            .args(["-man", "-Tutf8", "-ww", "-z", "-rLL=80n"])
            .arg(&page)
            .output()
            .expect("groff starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{}: {said}", page.display());
    }
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let assert = anabranch(&["man", "no-such-folder"]).assert().code(2);
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert_eq!(said, "error: no-such-folder is no folder\n  hint: make it first\n");
}
