//! Tests of the C interface: header, hostile input, and size without an operating system.

use anabranch_cache::api::{self, Config, Counters};
use anabranch_testkit::embedded::{
    Kind, Part, check_header, check_text, declared, defined, enemies, enemies_of_the_sanitized,
    enemies_under_valgrind,
};
use anabranch_testkit::layout_checks;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

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
    check_header(Kind::Cache, &checks, folder().path());
}

#[test]
fn enemies_find_no_way_out_of_the_memory() {
    enemies(Kind::Cache, "100", folder().path());
}

#[test]
fn valgrind_finds_nothing() {
    enemies_under_valgrind(Kind::Cache, folder().path());
}

#[test]
fn the_address_sanitizer_finds_nothing() {
    enemies_of_the_sanitized(Kind::Cache, "50", folder().path());
}

#[test]
fn the_library_has_at_most_40_kb_of_text() {
    check_text(Kind::Cache, 40_000, "forward.c", &PARTS, folder().path());
}

/// Parts of the code, and substrings of their symbols. The first match counts.
const PARTS: [Part; 5] = [
    ("packets", &["anabranch_wire", "smoltcp"]),
    ("caching node", &["anabranch_core"]),
    ("library for C", &["anabranch_cache"]),
    ("other code in Rust", &["::"]),
    ("the example", &[""]),
];
