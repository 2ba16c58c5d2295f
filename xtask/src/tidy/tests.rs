//! Tests of all rules on one tree.

use super::*;

#[test]
fn findings_come_in_order_and_say_where() {
    let tree = Tree::fake(&[
        ("LICENSE-APACHE", "text"),
        (
            "crates/core/Cargo.toml",
            "license.workspace = true\n[dependencies]\nanabranch-lab.workspace = true\n",
        ),
        ("crates/core/src/lib.rs", "mod a;\nmod b;\nuse smoltcp::wire;"),
        ("crates/core/src/a.rs", "use crate::b;"),
        ("crates/core/src/b.rs", "use crate::a;"),
    ]);
    let said: Vec<String> = check(&tree).iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "LICENSE-MIT: the licence is missing",
            "crates/core/Cargo.toml:3: `core` may not know `lab`: it stands no lower",
            "crates/core/src/a.rs:1: a circle of imports: crate::a -> crate::b (crates/core/src/a.rs:1) \
         -> crate::a (crates/core/src/b.rs:1)",
            "crates/core/src/lib.rs:3: smoltcp stands behind crates/wire/ and nowhere else: it must stay replaceable",
        ]
    );
}

#[test]
fn this_repository_obeys() {
    let tree = Tree::of(&cargo::root());
    assert!(tree.text("Cargo.toml").is_some(), "the tree is empty");
    let findings: Vec<String> = check(&tree).iter().map(ToString::to_string).collect();
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}
