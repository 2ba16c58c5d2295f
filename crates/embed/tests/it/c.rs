//! Tests of the C interface: header, hostile input, and size without an operating system.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use anabranch_node::api::{self, abort, kind, refuse};
use anabranch_testkit::debian::find_or_install;
use anabranch_testkit::embedded::{
    Kind, bare_metal, check_header, declared, defined, file, library, program,
};
use anabranch_testkit::layout_checks;

use crate::noise;

#[test]
fn the_header_names_what_the_library_has() {
    assert_eq!(declared(Kind::Noise), defined(Kind::Noise));
}

#[test]
fn the_header_lays_out_what_the_library_reads() {
    let mut checks = Vec::new();
    macro_rules! layout {
        ($name:literal, $type:ty, $($field:ident),+) => {
            checks.extend(layout_checks!($name, $type, $($field),+))
        };
    }
    layout!("anabranch_node_gateway", api::Gateway, address, port, id, hops, ipv6, shared_channel);
    layout!("anabranch_node_keys", api::Keys, secret, shared, senders, sender_count, gateways);
    layout!(
        "anabranch_node_config",
        api::Config,
        buffer,
        idle_ms,
        pieces,
        read,
        connections,
        gateway_count,
        gateways,
        keys,
        device,
        highest
    );
    layout!(
        "anabranch_node_device",
        api::Device,
        vendor,
        class_id,
        component,
        signers,
        unix_time,
        envelope,
        component_length,
        signer_count
    );
    layout!("anabranch_node_highest", api::Highest, sequence, digest, known);
    layout!("anabranch_node_effect", api::Effect, kind, stream, octets, n, offset, reason);
    layout!(
        "anabranch_node_offer",
        api::Offer,
        transfer,
        length,
        digest,
        signature,
        has_signature,
        discard,
        has_sender,
        sender,
        manifest,
        manifest_length,
        sequence
    );
    layout!(
        "anabranch_node_counters",
        api::Counters,
        duplicate_octets,
        held_peak,
        rejected,
        refused,
        restarts
    );
    for (name, is) in [
        ("VERSION", api::VERSION),
        ("WRITE", kind::WRITE),
        ("LIMIT", kind::LIMIT),
        ("SHUTDOWN", kind::SHUTDOWN),
        ("RESET", kind::RESET),
        ("DELIVER", kind::DELIVER),
        ("BEGIN", kind::BEGIN),
        ("END", kind::END),
        ("ABORT", kind::ABORT),
        ("ABORT_CANCELLED", abort::CANCELLED.into()),
        ("ABORT_LOST", abort::LOST.into()),
        ("ABORT_MADE_WAY", abort::MADE_WAY.into()),
        ("ABORT_DIGEST", abort::DIGEST.into()),
        ("ABORT_PROGRAM", abort::PROGRAM.into()),
        ("ABORT_MEMORY", abort::MEMORY.into()),
        ("REFUSE_BUSY", refuse::BUSY),
        ("REFUSE_UNFINISHED", refuse::UNFINISHED),
        ("REFUSE_UNWANTED", refuse::UNWANTED),
        ("REFUSE_TOO_LARGE", refuse::TOO_LARGE),
        ("REFUSE_NO_ROOM", refuse::NO_ROOM),
        ("REFUSE_SIGNATURE", refuse::SIGNATURE),
        ("REFUSE_FAILED", refuse::FAILED),
        ("REFUSE_ROLLBACK", refuse::ROLLBACK),
        ("REFUSE_WRONG_DEVICE", refuse::WRONG_DEVICE),
        ("REFUSE_EXPIRED", refuse::EXPIRED),
        ("REFUSE_IMAGE", refuse::IMAGE),
    ] {
        checks.push((format!("ANABRANCH_NODE_{name}"), is as usize));
    }
    let errors = [("ARGUMENT", api::ARGUMENT), ("MEMORY", api::MEMORY), ("POLL", api::POLL)];
    let more = [("STREAM", api::STREAM), ("FULL", api::FULL), ("OFFER", api::OFFER)];
    for (name, is) in errors.into_iter().chain(more) {
        checks.push((format!("-ANABRANCH_NODE_{name}"), -is as usize));
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    check_header(Kind::Plain, &checks, folder.path());
}

/// Functions that are missing in a library without encryption and manifests.
const WITH_SIGNATURES: [&str; 2] = ["anabranch_node_signed_by", "anabranch_node_highest_of"];

/// `hostile.c`, ready to run with these rounds and this seed, under the program in `with` if it is
/// not empty.
fn hostile(kind: Kind, folder: &Path, with: &[&str], rounds: &str, seed: &str) -> Option<Command> {
    let (linked, recording) = (folder.join("hostile"), folder.join("recording"));
    program(kind, &[&file("tests/hostile.c")], &linked)?;
    fs::write(&recording, noise::recording()).expect("it can be written");
    let mut words = with.iter().map(OsStr::new).chain([linked.as_os_str()]);
    let mut run = Command::new(words.next().expect("it has a name"));
    run.args(words).args([rounds, seed]).arg(recording);
    Some(run)
}

#[test]
fn enemies_find_no_way_out_of_the_memory() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (kind, rounds) in [(Kind::Plain, "60"), (Kind::Noise, "5")] {
        for seed in ["1", "2", "3"] {
            let Some(mut run) = hostile(kind, folder.path(), &[], rounds, seed) else { return };
            let run = run.output().expect("it starts");
            let said = String::from_utf8_lossy(&run.stdout);
            assert_eq!(run.status.code(), Some(0), "{kind:?}, seed {seed}: {said}");
            println!("{kind:?}, seed {seed}: {}", said.lines().last().unwrap_or_default());
        }
    }
}

#[test]
fn valgrind_finds_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(valgrind) = find_or_install("valgrind", "valgrind") else { return };
    let valgrind = [valgrind.to_str().expect("text"), "--quiet", "--error-exitcode=99"];
    for kind in [Kind::Plain, Kind::Noise] {
        let Some(mut run) = hostile(kind, folder.path(), &valgrind, "2", "4") else { return };
        let run = run.output().expect("it starts");
        let said = [run.stdout, run.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
        assert_eq!(run.status.code(), Some(0), "{kind:?}: {said:?}");
    }
}

/// Another Rust library, with std, for the same C program.
const OTHER: &str = r#"
#[unsafe(no_mangle)]
pub extern "C" fn other_sum(n: u32) -> u32 {
    std::panic::set_hook(Box::new(|_| {}));
    let numbers: std::collections::BTreeMap<String, u32> = (0..n).map(|i| (i.to_string(), i)).collect();
    let outside = std::panic::catch_unwind(|| Vec::from_iter(0..n)[n as usize]);
    if outside.is_err() { numbers.values().sum() } else { 0 }
}
"#;

#[test]
fn two_nodes_and_another_rust_library_share_a_program() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (source, other) = (folder.path().join("other.rs"), folder.path().join("libother.a"));
    fs::write(&source, OTHER).expect("it can be written");
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "--crate-type", "staticlib", "-o"]).arg(&other).arg(&source);
    assert!(rustc.status().expect("rustc starts").success());
    let (two, ours) = (file("tests/two.c"), library(Kind::Plain, None));
    // The linker takes a symbol from the first archive that defines it.
    for (name, sources) in [("other-first", &[&*two, &*other][..]), ("ours-first", &[&two, &ours, &other])] {
        let linked = folder.path().join(name);
        let Some(()) = program(Kind::Plain, sources, &linked) else { return };
        let run = Command::new(&linked).output().expect("it starts");
        assert!(run.status.success(), "{name}: {}", String::from_utf8_lossy(&run.stdout));
    }
}

#[test]
fn the_library_stands_without_an_operating_system() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // Upper limit of code size in kB: for a node in 16 kB of RAM, and for one with encryption in 24
    // kB.
    for (kind, most) in [(Kind::Plain, 64), (Kind::Noise, 128)] {
        let functions: Vec<String> = defined(kind)
            .into_iter()
            .filter(|name| kind == Kind::Noise || !WITH_SIGNATURES.contains(&&**name))
            .collect();
        let Some(sizes) = bare_metal(kind, &functions, &folder.path().join("node")) else { return };
        println!("for bare metal, {kind:?}: text {} data {} bss {}", sizes.text, sizes.data, sizes.bss);
        assert!(sizes.text < most << 10 && sizes.data + sizes.bss < 64, "{sizes:?}");
    }
}
