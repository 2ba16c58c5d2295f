//! Comparison with the deserialiser of the `toml` crate.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::super::Text;
use super::*;

#[derive(Deserialize, Serialize, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
struct Everything<'a> {
    #[serde(default)]
    truth: bool,
    #[serde(default)]
    small: u8,
    #[serde(default)]
    signed: i64,
    #[serde(default)]
    large: u64,
    #[serde(default)]
    number: f64,
    #[serde(default)]
    text: String,
    #[serde(borrow, default)]
    borrowed: &'a str,
    option: Option<u32>,
    #[serde(default)]
    list: Vec<Option<f64>>,
    pair: Option<(u8, String)>,
    #[serde(default)]
    map: BTreeMap<String, Choice>,
    inner: Option<Box<Inner>>,
    any: Option<serde_json::Value>,
    wrapped: Option<Wrapped>,
    either: Option<Either>,
}

#[derive(Deserialize, Serialize, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
struct Inner {
    must: u16,
    #[serde(default)]
    deeper: Vec<Inner>,
}

#[derive(Deserialize, Serialize, PartialEq, Debug)]
struct Wrapped(u8);

#[derive(Deserialize, Serialize, PartialEq, Debug)]
#[serde(rename_all = "kebab-case")]
enum Choice {
    Nothing,
    OneThing(f64),
    TwoThings(u8, u8),
    Named {
        a: u8,
        #[serde(default)]
        b: Vec<u8>,
    },
}

#[derive(Deserialize, Serialize, PartialEq, Debug)]
#[serde(untagged)]
enum Either {
    Number(f64),
    Words(Vec<String>),
}

fn both(text: &str) -> (Result<String>, Result<String>) {
    let said = Text::new("text", text);
    let tree = said.tree().expect("TOML");
    // Values borrow from the text, so they are compared as JSON.
    let shown = |value: Everything<'_>| serde_json::to_string(&value).expect("JSON");
    let theirs = Everything::deserialize(toml::Deserializer::from(tree.clone())).map(shown);
    (read_tree(&tree).map(shown), theirs.map_err(ReadError::from))
}

#[test]
fn values_are_read_as_by_toml() {
    for text in [
        "",
        "truth = true\nsmall = 255\nsigned = -9223372036854775808\nlarge = 9223372036854775807",
        "large = 0xdead_beef\nsigned = 0o17\nsmall = 0b1010_1010\nnumber = 1_000",
        "number = -1.5e300\ntext = \"a\\tb\"\nborrowed = 'a\\tb'\noption = 7",
        "large = 9223372036854775808",
        "large = 0xffff_ffff_ffff_ffff",
        "number = inf",
        "number = nan",
        "list = [1, 2.5, -3]\npair = [3, 'c']",
        "map = { a = 'nothing', b = { one-thing = 2 }, c = { two-things = [1, 2] }, d = { named = { a = 1 } } }",
        "[map.e]\nnamed = { a = 1, b = [2, 3] }\n[map.f]\nnothing = {}",
        "inner = { must = 1, deeper = [{ must = 2 }, { must = 3, deeper = [{ must = 4 }] }] }",
        "[inner]\nmust = 1\n[[inner.deeper]]\nmust = 2\n[[inner.deeper]]\nmust = 3",
        "any = { a = [1, 'two', 3.5, { b = false }], c.d.e = 'f' }\nwrapped = 9",
        "either = 2",
        "either = ['a', \"b\"]",
    ] {
        let (ours, theirs) = both(text);
        assert!(theirs.is_ok(), "{text}: {theirs:?}");
        assert_eq!(ours, theirs, "{text}");
    }
}

#[test]
fn errors_stand_where_those_of_toml_do() {
    for text in [
        "truth = 1",
        "small = 256",
        "small = -1",
        "signed = 1.5",
        "large = 'x'",
        "number = true",
        "text = 5",
        "unknown = 5",
        "option = 'five'",
        "list = [1, 'two']",
        "list = 5",
        "pair = [1]",
        "pair = { a = 1 }",
        "map = { a = 'noting' }",
        "map = { a = { one-thing = 'x' } }",
        "map = { a = 'one-thing' }",
        "map = { a = { nothing = 5 } }",
        "map = { a = { named = { b = [1] } } }",
        "map = { a = { named = { a = 1, b = [256] } } }",
        "map = 3",
        "inner = 5",
        "inner = {}",
        "inner = { must = 1, deeper = [{ must = 2, deeper = [{ must = -4 }] }] }",
        "inner = { must = 1, more = 2 }",
        "[inner]\nmust = 1\n[[inner.deeper]]\n[[inner.deeper]]\nmust = 3",
        "wrapped = 300",
        "either = { a = 1 }",
    ] {
        let (ours, theirs) = both(text);
        let (ours, theirs) = (ours.expect_err(text), theirs.expect_err(text));
        assert_eq!((ours.message, ours.span), (theirs.message, theirs.span), "{text}");
    }
}

/// Inputs that only this deserialiser refuses, or refuses with another message: the `toml` crate
/// reads a list as a struct, for example.
#[test]
fn what_is_refused_here_alone_or_in_other_words() {
    for (text, message, span) in [
        ("inner = [1, []]", "invalid type: sequence, expected struct Inner", 8..15),
        ("any = 2020-01-01", "invalid type: date or time, expected any valid JSON value", 6..16),
        ("large = 99999999999999999999", "99999999999999999999 does not fit into 64 bits", 8..28),
        ("number = 1e999", "1e999 is larger than any number", 9..14),
        ("map = { a = {} }", "expected a table with exactly one key", 12..14),
        ("map = { a = 5 }", "expected a string or a table", 12..13),
    ] {
        let (ours, theirs) = both(text);
        let error = ours.expect_err(text);
        // The `toml` crate accepts the text, or has another message.
        assert_ne!(theirs.err().map(|theirs| theirs.message), Some(error.message.clone()), "{text}");
        assert_eq!((error.message.as_str(), error.span), (message, Some(span)), "{text}");
    }
}
