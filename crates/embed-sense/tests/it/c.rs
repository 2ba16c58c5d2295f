//! Tests of the C interface: header, hostile input, and size without an operating system.

use anabranch_sense::api::{self, Config, Counters, Event, kind};
use anabranch_testkit::debian::find_or_install;
use anabranch_testkit::embedded::{
    Build, Kind, Part, bare_metal, check_header, declared, defined, hostile, program, text_by_part, whole,
};
use anabranch_testkit::layout_checks;

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
    let folder = tempfile::tempdir().expect("a temporary folder");
    check_header(Kind::Sense, &checks, folder.path());
}

#[test]
fn enemies_find_no_way_out_of_the_memory() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for seed in ["1", "2", "3"] {
        let run = hostile(Kind::Sense, Build::Shipped, &[], ["60", seed], folder.path());
        let Some(said) = run else { return };
        println!("seed {seed}: {said}");
    }
}

#[test]
fn valgrind_finds_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(valgrind) = find_or_install("valgrind", "valgrind") else { return };
    let valgrind = [valgrind.to_str().expect("text"), "--quiet", "--error-exitcode=99"];
    hostile(Kind::Sense, Build::Shipped, &valgrind, ["2", "4"], folder.path());
}

#[test]
fn the_address_sanitizer_finds_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    if !Build::Sanitized.is_wanted() {
        return;
    }
    for seed in ["5", "6"] {
        hostile(Kind::Sense, Build::Sanitized, &[], ["50", seed], folder.path());
    }
}

/// Limit of the library's text in bytes.
const TEXT: u64 = 48_000;

#[test]
fn the_library_has_at_most_48_kb_of_text() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let functions = defined(Kind::Sense);
    if let Some(sizes) = bare_metal(Kind::Sense, &functions, &folder.path().join("bare")) {
        println!("for bare metal: text {} data {} bss {}", sizes.text, sizes.data, sizes.bss);
        assert!(sizes.text < TEXT && sizes.data + sizes.bss < 64, "{sizes:?}");
    }
    let Some(sizes) = whole(Kind::Sense, &functions, folder.path()) else { return };
    println!("for this machine: text {} data {} bss {}", sizes.text - sizes.unwinding, sizes.data, sizes.bss);
    assert!(sizes.text - sizes.unwinding < TEXT, "{sizes:?}");
    let send = folder.path().join("send");
    let Some(()) = program(Kind::Sense, &[&Kind::Sense.file("examples/send.c")], &send) else { return };
    println!("the example:");
    text_by_part(&send, &PARTS);
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
