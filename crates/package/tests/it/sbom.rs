//! The bill of materials, against what cargo says.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::{Release, root, said};

#[test]
fn the_bill_of_materials_has_every_crate_that_is_linked() {
    let release = Release::new("1.2.3", "sbom");
    let text = fs::read(release.file("anabranch-1.2.3", ".cdx.json")).expect("it is there");
    let bill: Value = serde_json::from_slice(&text).expect("JSON");
    assert_eq!((&bill["bomFormat"], &bill["specVersion"]), (&"CycloneDX".into(), &"1.6".into()));
    let components = bill["components"].as_array().expect("a list");
    let named = |component: &Value| {
        format!(
            "{} v{}",
            component["name"].as_str().expect("text"),
            component["version"].as_str().expect("text")
        )
    };
    let found: BTreeSet<String> = components.iter().map(named).collect();
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}"]);
    for package in ["anabranch-deploy", "anabranch-cli", "anabranch-lab-cli"] {
        tree.args(["--package", package]);
    }
    let listed = said(tree.current_dir(root()));
    let name = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    let wanted: BTreeSet<String> = listed.lines().map(name).filter(|name| !name.is_empty()).collect();
    // Features of the whole workspace may link more than those of these three.
    let missing: Vec<&String> = wanted.difference(&found).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(wanted.contains("snow v0.10.0") && !found.iter().any(|name| name.starts_with("proptest ")));
    for component in components {
        let is_ours = component["name"].as_str().is_some_and(|name| name.starts_with("anabranch"));
        assert!(
            !component["licenses"][0]["expression"].as_str().unwrap_or_default().is_empty(),
            "{component}"
        );
        assert_ne!(is_ours, component["hashes"].is_array(), "{component}");
    }
}
