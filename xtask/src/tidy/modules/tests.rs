//! Tests with small invented crates, with and without cycles.

use super::*;

/// Findings for a crate `x` with these files under `src`.
fn findings(files: &[(&str, &str)]) -> Vec<String> {
    let named: Vec<(String, &str)> =
        files.iter().map(|(path, text)| (format!("crates/x/src/{path}"), *text)).collect();
    let mut all: Vec<(&str, &str)> = named.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    all.push(("crates/x/Cargo.toml", ""));
    check(&Tree::fake(&all)).iter().map(ToString::to_string).collect()
}

const NONE: [&str; 0] = [];

#[test]
fn one_direction_is_fine() {
    let files = [
        ("lib.rs", "pub mod a; pub mod b;"),
        ("a.rs", "pub struct A;"),
        ("b.rs", "use crate::a::A; fn f(_: super::a::A) -> A { crate::a::A }"),
    ];
    assert_eq!(findings(&files), NONE);
}

#[test]
fn two_siblings_that_import_each_other() {
    let files = [
        ("lib.rs", "pub mod a; pub mod b;"),
        ("a.rs", "// crate::nothing\nuse crate::b::B;\npub struct A;"),
        ("b.rs", "use super::a::{self, A};\npub struct B;"),
    ];
    assert_eq!(
        findings(&files),
        ["crates/x/src/a.rs:2: a circle of imports: crate::a -> crate::b (crates/x/src/a.rs:2) \
         -> crate::a (crates/x/src/b.rs:1)"]
    );
}

#[test]
fn a_circle_of_three_by_written_out_paths() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "fn f() { crate::b::f() }"),
        ("b.rs", "fn f() { let _: Vec<super::c::C> = Vec::new(); }"),
        ("c.rs", "fn f() { $crate::a::f::<u8>() }"),
    ];
    let found = findings(&files);
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("crate::a -> crate::b (crates/x/src/a.rs:1) -> crate::c"), "{found:?}");
}

#[test]
fn folders_form_circles_even_if_their_files_do_not() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "mod one; mod two;"),
        ("a/one.rs", "use crate::b::three::X;"),
        ("a/two.rs", "pub struct Y;"),
        ("b.rs", "pub mod three; mod four;"),
        ("b/three.rs", "pub struct X;"),
        ("b/four.rs", "use crate::a::two::Y;"),
    ];
    assert_eq!(findings(&files).len(), 1);
}

#[test]
fn a_name_that_the_parent_passes_on_is_the_sibling_s() {
    let files = [
        ("lib.rs", "mod a; mod b; pub use a::A; pub use b::*;"),
        ("a.rs", "use crate::B; pub struct A;"),
        ("b.rs", "use crate::A; pub struct B;"),
    ];
    assert_eq!(findings(&files).len(), 1);
    let one_way = [files[0], files[1], ("b.rs", "pub struct B;")];
    assert_eq!(findings(&one_way), NONE);
}

#[test]
fn a_parent_and_its_children_are_one_thing() {
    let files = [
        ("lib.rs", "pub mod p; pub trait T {}"),
        ("p.rs", "mod input; mod rules; pub use rules::Rule; pub struct P(Rule); fn f() { input::g() }"),
        (
            "p/input.rs",
            "use super::{P, Rule}; impl P { pub(super) fn f(&self) -> Rule { Rule } } pub fn g() {}",
        ),
        ("p/rules.rs", "pub(in crate::p) struct Rule; impl crate::T for super::P {}"),
    ];
    assert_eq!(findings(&files), NONE);
}

#[test]
fn a_parent_passes_on_a_circle_of_its_children() {
    let files = [
        ("lib.rs", "mod p;"),
        ("p.rs", "mod a; mod b; use a::A; pub use b::*;"),
        ("p/a.rs", "use super::B; pub struct A;"),
        ("p/b.rs", "use super::*; pub struct B(A);"),
    ];
    assert_eq!(findings(&files).len(), 1);
}

#[test]
fn tests_are_free() {
    let files = [
        ("lib.rs", "pub mod a; pub mod b; #[cfg(test)] mod tests;"),
        (
            "a.rs",
            "pub struct A; #[cfg(test)] use crate::b::B; #[cfg(test)] mod t { use crate::b::B; fn f() {} }",
        ),
        ("b.rs", "use crate::a::A; pub struct B; #[cfg(all(test, unix))] mod t { use crate::c::C; }"),
        ("tests.rs", "use crate::a::A; use crate::tests::inner::X;"),
        ("tests/inner.rs", "use crate::tests::Y;"),
    ];
    assert_eq!(findings(&files), NONE);
}

#[test]
fn a_glob_counts_for_the_names_that_are_used() {
    let files = |b: &'static str| {
        [("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b::B; pub struct A; pub struct Z;"), ("b.rs", b)]
    };
    assert_eq!(findings(&files("use super::a::*; pub struct B; fn f(_: A) {}")).len(), 1);
    assert_eq!(findings(&files("use super::a::*; pub struct B; fn f(_: Q) {}")), NONE);
}

#[test]
fn inline_modules_belong_to_their_file() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub mod inner { use super::A; pub struct I; } pub struct A; fn f() { inner::g() }"),
        ("b.rs", "use crate::a::inner::I; mod deep { use super::super::a::A; use super::B; } struct B;"),
    ];
    assert_eq!(findings(&files), NONE);
    let back = [files[0], ("a.rs", "mod inner { use crate::b::B; } pub struct A;"), files[2]];
    assert_eq!(findings(&back).len(), 1);
}

#[test]
fn other_crates_and_local_names_are_no_modules() {
    let files = [
        ("lib.rs", "mod bytes_like; mod b;"),
        (
            "bytes_like.rs",
            "use bytes::Bytes; use ::b::X; use std::fmt; enum K { V } use K::*; fn f() { fmt::x() }",
        ),
        ("b.rs", "use crate::bytes_like::K;"),
    ];
    assert_eq!(findings(&files), NONE);
}

#[test]
fn a_program_s_root_is_main_and_other_targets_are_left_alone() {
    let circle = [("main.rs", "mod a; mod b;"), ("a.rs", "use crate::b::B;"), ("b.rs", "use crate::a::A;")];
    assert_eq!(findings(&circle).len(), 1);
    let beside =
        [("lib.rs", "pub mod a;"), ("a.rs", ""), ("main.rs", "mod a;"), ("bin/b.rs", "use crate::a;")];
    assert_eq!(findings(&beside), NONE);
}

#[test]
fn names_that_are_passed_round_in_a_circle_end() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub use crate::b::X; pub use crate::b::*;"),
        ("b.rs", "pub use crate::a::X; pub use crate::a::*; fn f() { super::a::Y }"),
    ];
    let _ = findings(&files);
}
