//! Checks blocks that are not commands: scenarios, options, C, Rust.

use std::fs;
use std::path::Path;
use std::process::Command;

use anabranch_scenario::Source;
use anabranch_scenario::file::FileConfig;
use anabranch_testkit::debian::find_or_install;
use serde::Deserialize;

use crate::docs::page::{Block, Kind};
use crate::docs::root;

/// What is wrong with a block.
pub(crate) fn fault(block: &Block) -> Option<String> {
    let checked = match &block.kind {
        Kind::Scenario(_) => scenario(&block.text),
        Kind::Fragment => fragment(&block.text),
        Kind::Config(program) => config(program, &block.text),
        Kind::Sweep(_) => toml::de::DeTable::parse(&block.text).map(drop).map_err(|error| error.to_string()),
        Kind::Rust => rust(&block.place, &block.text),
        Kind::C => c(&block.text),
        Kind::Console { .. } | Kind::Elsewhere | Kind::Refused(_) | Kind::Python | Kind::Text => Ok(()),
    };
    checked.err().map(|fault| format!("{}: {fault}", block.place))
}

fn scenario(text: &str) -> Result<(), String> {
    Source::new("the block", text).points().map(drop).map_err(|error| error.to_string())
}

/// Checks that keys and values are valid; missing parts of the file are ignored.
fn fragment(text: &str) -> Result<(), String> {
    let read = toml::Deserializer::parse(text).and_then(FileConfig::deserialize);
    read.map(drop).map_err(|error| error.to_string())
}

/// Checks options with the program's `--check`. `push` has none, so it runs until it looks for the
/// file.
fn config(program: &str, text: &str) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("options.toml");
    fs::write(&path, text).map_err(|error| error.to_string())?;
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch-lab"));
    command.args([program, "--config"]).arg(&path).current_dir(root());
    match program {
        "push" => command.arg("--help"),
        _ => command.args(["--check", "--insecure"]),
    };
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// Checks that Rust is included from a file that cargo builds.
fn rust(place: &str, text: &str) -> Result<(), String> {
    let included = text.trim().strip_prefix("{{#include ").and_then(|rest| rest.strip_suffix("}}"));
    let included = included.ok_or("Rust stands in a file that is built, and the page includes it")?;
    let page = place.rsplit_once(':').map_or(place, |(page, _)| page);
    let file = root().join(page).parent().unwrap_or(Path::new("/")).join(included);
    let file = file.canonicalize().map_err(|error| format!("{included}: {error}"))?;
    let within = file.strip_prefix(root()).map_err(|_| format!("{included} is outside"))?;
    if within.starts_with("crates") || within.starts_with("examples") {
        return Ok(());
    }
    Err(format!("{included} is in no folder that is built"))
}

/// Compiles C code in a function that declares what the block uses.
fn c(text: &str) -> Result<(), String> {
    let Some(compiler) = find_or_install("cc", "gcc") else { return Ok(()) };
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("block.c");
    let libraries = [("cache", "embed-cache"), ("sense", "embed-sense"), ("node", "embed")];
    let used = libraries.iter().find(|(library, _)| text.contains(&format!("anabranch_{library}_")));
    let (library, package) = used.unwrap_or(&libraries[2]);
    let program = format!(
        "#include \"anabranch_{library}.h\"\n\
         int block(uint64_t now, uint32_t stream, const unsigned char *octets, size_t n);\n\
         int block(uint64_t now, uint32_t stream, const unsigned char *octets, size_t n)\n\
         {{\nint taken;\n{text}\nreturn taken;\n}}\n"
    );
    fs::write(&path, program).map_err(|error| error.to_string())?;
    let mut command = Command::new(compiler);
    command
        .args(["-std=c11", "-Wall", "-Werror", "-fsyntax-only", "-I"])
        .arg(root().join("crates").join(package).join("include"));
    let output = command.arg(&path).output().map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

#[test]
fn a_fault_is_found_in_each_kind() {
    let fault_of =
        |kind, text: &str| fault(&Block { place: "docs/x.md:1".to_owned(), kind, text: text.to_owned() });
    assert!(fault_of(Kind::Scenario(None), "[[link]]\nfrom = \"a\"\n").is_some());
    assert!(fault_of(Kind::Fragment, "[network]\niip = 4\n").is_some_and(|fault| fault.contains("iip")));
    assert_eq!(fault_of(Kind::Fragment, "[network]\nip = 4\n"), None);
    assert!(fault_of(Kind::Config("gateway".to_owned()), "memori = \"1 MiB\"\n").is_some());
    assert!(fault_of(Kind::Sweep("x".to_owned()), "a = \n").is_some());
    assert!(fault_of(Kind::Rust, "fn main() {}\n").is_some());
    assert!(fault_of(Kind::Rust, "{{#include ../crates/cli/src/nothing.rs}}\n").is_some());
    assert_eq!(fault_of(Kind::Rust, "{{#include ../crates/cli/src/main.rs}}\n"), None);
}
