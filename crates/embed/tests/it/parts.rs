//! Memory of a node by part: the tables in docs/reference/embedded.md, which
//! `cargo test -p anabranch-embed --test it parts:: -- --nocapture` prints.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anabranch_node::sizes::Sizes;
use anabranch_testkit::debian::find_or_install;
use anabranch_testkit::embedded::{Kind, file, program, sections};

/// The sizes of the examples, without and with keys.
fn examples() -> [(&'static str, Sizes); 3] {
    let plain = Sizes { read: 224, ..Sizes::default() };
    let keys = Sizes { buffer: 2048, read: 128, senders: Some(1), ..Sizes::default() };
    [("plain", plain), ("keys", keys), ("a device", Sizes { manifest: Some(384), ..keys })]
}

#[test]
fn the_heap_by_part() {
    for (name, sizes) in examples() {
        println!("heap, {name}:");
        sizes.parts().iter().for_each(|(part, octets)| println!("  {octets:>6}  {part}"));
        println!("  {:>6}  together", sizes.heap());
        assert!(sizes.lasting() < sizes.heap() && sizes.are_possible());
        let one_more = |sizes: Sizes| sizes.heap();
        let connection = Sizes { connections: 5, ..sizes };
        println!("  {:>6}  for one more connection", one_more(connection) - one_more(sizes));
        if let Some(senders) = sizes.senders {
            let sender = Sizes { senders: Some(senders + 1), ..sizes };
            println!("  {:>6}  for one more sender", one_more(sender) - one_more(sizes));
        }
    }
}

/// Parts of the code, and substrings of their symbols. The first match counts.
const PARTS: [(&str, &[&str]); 9] = [
    ("manifests", &["secure::manifest", "node::device"]),
    ("SHA-256 and SHA-512", &["sha2::"]),
    ("Curve25519: Ed25519, X25519", &["curve25519", "ed25519", "signature"]),
    ("Noise: handshakes, records", &["anabranch_secure", "blake2", "chacha", "poly1305", "cipher"]),
    ("messages", &["anabranch_wire"]),
    ("receiver", &["anabranch_core", "btree", "vec_deque"]),
    ("library for C, its allocator", &["anabranch_node", "linked_list"]),
    ("other code in Rust", &["::"]),
    ("the example", &[""]),
];

/// Code size of each part in bytes, from the symbols of a program.
fn text(nm: &Path, program: &Path) -> BTreeMap<usize, u64> {
    let output =
        Command::new(nm).args(["-C", "-S", "--defined-only"]).arg(program).output().expect("it starts");
    let mut parts = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        let [_, octets, kind, name] = words[..] else { continue };
        if !"tTrR".contains(kind) {
            continue;
        }
        let part = PARTS.iter().position(|(_, words)| words.iter().any(|word| name.contains(word)));
        *parts.entry(part.expect("the last fits")).or_default() +=
            u64::from_str_radix(octets, 16).unwrap_or(0);
    }
    parts
}

#[test]
fn the_text_by_part() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(nm) = find_or_install("nm", "binutils") else { return };
    for kind in [Kind::Plain, Kind::Noise] {
        let receive = folder.path().join("receive");
        let Some(()) = program(kind, &[&file("examples/receive.c")], &receive) else { return };
        let Some(sizes) = sections(&receive) else { return };
        let parts = text(&nm, &receive);
        println!("text, {kind:?}:");
        for (part, octets) in &parts {
            println!("  {octets:>6}  {}", PARTS[*part].0);
        }
        let (all, named) = (sizes.text - sizes.unwinding, parts.values().sum::<u64>());
        println!(
            "  {:>6}  constants and tables of the linker\n  {all:>6}  together",
            all.saturating_sub(named)
        );
        // Constants and additions of the C compiler have no symbol.
        assert!(named <= all && named > all * 3 / 4, "{named} octets of {all} have a name");
        let is_there = |part| parts.keys().any(|found| PARTS[*found].0 == part);
        assert_eq!(is_there("manifests"), kind == Kind::Noise);
    }
}
