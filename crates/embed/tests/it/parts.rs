//! Memory of a node by part: the tables in docs/reference/embedded.md, which
//! `cargo test -p anabranch-embed --test it parts:: -- --nocapture` prints.

use anabranch_node::sizes::Sizes;
use anabranch_testkit::embedded::{Kind, Part, file, program, text_by_part};

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
const PARTS: [Part; 9] = [
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

#[test]
fn the_text_by_part() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for kind in [Kind::Plain, Kind::Noise] {
        let receive = folder.path().join("receive");
        let Some(()) = program(kind, &[&file("examples/receive.c")], &receive) else { return };
        println!("text, {kind:?}:");
        let Some(parts) = text_by_part(&receive, &PARTS) else { return };
        let is_there = |part| parts.iter().any(|(found, _)| *found == part);
        assert_eq!(is_there("manifests"), kind == Kind::Noise);
    }
}
