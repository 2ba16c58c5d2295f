//! Tests of the C interface: header, hostile input, and size without an operating system.

use anabranch_cache::api::{self, Config, Counters};
use anabranch_testkit::debian::find_or_install;
use anabranch_testkit::embedded::{
    Build, Kind, Part, bare_metal, check_header, declared, defined, hostile, program, text_by_part, whole,
};
use anabranch_testkit::layout_checks;

#[test]
fn the_header_names_what_the_library_has() {
    assert_eq!(declared(Kind::Cache), defined(Kind::Cache));
}

#[test]
fn the_header_lays_out_what_the_library_reads() {
    let mut checks = Vec::new();
    checks.extend(layout_checks!(
        "anabranch_cache_config",
        Config,
        idle_ms,
        least_wait_ms,
        segment,
        segments,
        connections,
        repeats
    ));
    checks.extend(layout_checks!(
        "anabranch_cache_counters",
        Counters,
        unread,
        segments,
        cached,
        not_cached,
        repeated,
        acks_repeated,
        held,
        given_up,
        connections
    ));
    for (name, is) in [("VERSION", api::VERSION as i32), ("OK", api::OK), ("FORWARD", api::FORWARD)] {
        checks.push((format!("ANABRANCH_CACHE_{name}"), is as usize));
    }
    checks.push(("ANABRANCH_CACHE_HOLD".to_owned(), api::HOLD as usize));
    for (name, is) in [("ARGUMENT", api::ARGUMENT), ("MEMORY", api::MEMORY)] {
        checks.push((format!("-ANABRANCH_CACHE_{name}"), -is as usize));
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    check_header(Kind::Cache, &checks, folder.path());
}

#[test]
fn enemies_find_no_way_out_of_the_memory() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for seed in ["1", "2", "3"] {
        let run = hostile(Kind::Cache, Build::Shipped, &[], ["100", seed], folder.path());
        let Some(said) = run else { return };
        println!("seed {seed}: {said}");
    }
}

#[test]
fn valgrind_finds_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(valgrind) = find_or_install("valgrind", "valgrind") else { return };
    let valgrind = [valgrind.to_str().expect("text"), "--quiet", "--error-exitcode=99"];
    hostile(Kind::Cache, Build::Shipped, &valgrind, ["2", "4"], folder.path());
}

#[test]
fn the_address_sanitizer_finds_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    if !Build::Sanitized.is_wanted() {
        return;
    }
    for seed in ["5", "6"] {
        hostile(Kind::Cache, Build::Sanitized, &[], ["50", seed], folder.path());
    }
}

/// Limit of the library's text in bytes.
const TEXT: u64 = 40_000;

#[test]
fn the_library_has_at_most_40_kb_of_text() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let functions = defined(Kind::Cache);
    if let Some(sizes) = bare_metal(Kind::Cache, &functions, &folder.path().join("bare")) {
        println!("for bare metal: text {} data {} bss {}", sizes.text, sizes.data, sizes.bss);
        assert!(sizes.text < TEXT && sizes.data + sizes.bss < 64, "{sizes:?}");
    }
    let Some(sizes) = whole(Kind::Cache, &functions, folder.path()) else { return };
    println!("for this machine: text {} data {} bss {}", sizes.text - sizes.unwinding, sizes.data, sizes.bss);
    assert!(sizes.text - sizes.unwinding < TEXT, "{sizes:?}");
    let forward = folder.path().join("forward");
    let Some(()) = program(Kind::Cache, &[&Kind::Cache.file("examples/forward.c")], &forward) else { return };
    println!("the example:");
    text_by_part(&forward, &PARTS);
}

/// Parts of the code, and substrings of their symbols. The first match counts.
const PARTS: [Part; 5] = [
    ("packets", &["anabranch_wire", "smoltcp"]),
    ("caching node", &["anabranch_core"]),
    ("library for C", &["anabranch_cache"]),
    ("other code in Rust", &["::"]),
    ("the example", &[""]),
];
