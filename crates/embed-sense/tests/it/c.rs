//! Tests of the C interface: header, hostile input, and size without an operating system.

use anabranch_sense::api::{self, Config, Counters, Event, kind};
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
    assert_eq!(declared(Kind::Sense), defined(Kind::Sense));
}

#[test]
fn the_header_lays_out_what_the_library_reads() {
    let mut checks = Vec::new();
    checks.extend(layout_checks!("anabranch_sense_config", Config, name, shared, payload, packets, insecure));
    checks.extend(layout_checks!("anabranch_sense_event", Event, kind, complete, confirmed, written));
    checks.extend(layout_checks!(
        "anabranch_sense_counters",
        Counters,
        records,
        repeated,
        control,
        strange,
        rejected,
        handshakes,
        queued,
        rate,
        rtt_us
    ));
    for (name, is) in [
        ("VERSION", api::VERSION),
        ("CONNECTED", kind::CONNECTED),
        ("CONFIRMED", kind::CONFIRMED),
        ("WRITABLE", kind::WRITABLE),
        ("ENDED", kind::ENDED),
    ] {
        checks.push((format!("ANABRANCH_SENSE_{name}"), is as usize));
    }
    let errors = [("OK", api::OK), ("ARGUMENT", api::ARGUMENT), ("MEMORY", api::MEMORY)];
    let more = [("ENTROPY", api::ENTROPY), ("FULL", api::FULL), ("CLOSED", api::CLOSED)];
    for (name, is) in errors.into_iter().chain(more) {
        checks.push((format!("-ANABRANCH_SENSE_{name}"), -is as usize));
    }
    check_header(Kind::Sense, &checks, folder().path());
}

#[test]
fn enemies_find_no_way_out_of_the_memory() {
    enemies(Kind::Sense, "60", folder().path());
}

#[test]
fn valgrind_finds_nothing() {
    enemies_under_valgrind(Kind::Sense, folder().path());
}

#[test]
fn the_address_sanitizer_finds_nothing() {
    enemies_of_the_sanitized(Kind::Sense, "50", folder().path());
}

#[test]
fn the_library_has_at_most_48_kb_of_text() {
    check_text(Kind::Sense, 48_000, "send.c", &PARTS, folder().path());
}

/// Parts of the code, and substrings of their symbols. The first match counts.
const PARTS: [Part; 6] = [
    (
        "encryption and handshake",
        &["anabranch_secure", "blake2", "chacha", "poly1305", "cipher", "crypto_common"],
    ),
    ("messages", &["anabranch_wire"]),
    ("sender", &["anabranch_core", "vec_deque"]),
    ("library for C, with inlined parts of the others", &["anabranch_sense", "embed_heap"]),
    ("other code in Rust", &["::"]),
    ("the example", &[""]),
];
