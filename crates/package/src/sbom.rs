//! The software bill of materials: CycloneDX 1.6, from what cargo has resolved.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::{Error, Release};

/// Every crate that the named crates link, with version, licence, and the registry's checksum.
///
/// # Errors
/// cargo cannot be run, or one of the crates is not in the workspace.
pub(crate) fn write(root: &Path, crates: &[String], release: &Release) -> Result<String, Error> {
    let metadata = metadata(root)?;
    let packages: BTreeMap<&str, &Value> =
        list(&metadata["packages"]).iter().map(|package| (text(package, "id"), package)).collect();
    let nodes: BTreeMap<&str, Vec<&str>> =
        list(&metadata["resolve"]["nodes"]).iter().map(|node| (text(node, "id"), linked(node))).collect();
    let mut reached = BTreeSet::new();
    let mut next = Vec::new();
    for name in crates {
        let found =
            packages.iter().find(|(_, package)| text(package, "name") == name && package["source"].is_null());
        next.push(*found.ok_or_else(|| format!("packages.toml: the workspace has no crate {name}"))?.0);
    }
    while let Some(id) = next.pop() {
        if reached.insert(id) {
            next.extend(nodes.get(id).into_iter().flatten());
        }
    }
    let checksums = checksums(root)?;
    let components: Vec<Value> = reached.iter().map(|id| component(packages[id], &checksums)).collect();
    let reference = |id: &&str| purl(packages[*id]);
    let dependencies: Vec<Value> = reached
        .iter()
        .map(|id| json!({ "ref": reference(id), "dependsOn": nodes[*id].iter().map(reference).collect::<Vec<_>>() }))
        .collect();
    let ours = packages.values().filter(|package| crates.iter().any(|name| text(package, "name") == name));
    let root =
        json!({ "ref": "anabranch", "dependsOn": ours.map(|package| purl(package)).collect::<Vec<_>>() });
    let dependencies: Vec<Value> = std::iter::once(root).chain(dependencies).collect();
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application", "bom-ref": "anabranch", "name": "anabranch", "version": release.version,
            },
        },
        "components": components,
        "dependencies": dependencies,
    });
    Ok(serde_json::to_string_pretty(&document).expect("plain data") + "\n")
}

fn metadata(root: &Path) -> Result<Value, Error> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["metadata", "--format-version", "1", "--locked", "--filter-platform", TARGET];
    let output = Command::new(cargo).args(arguments).current_dir(root).output();
    let output = output.map_err(|error| format!("cannot start cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

const TARGET: &str =
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-gnu" } else { "x86_64-unknown-linux-gnu" };

/// Dependencies that end up in the program: not those of tests and of build scripts.
fn linked(node: &Value) -> Vec<&str> {
    let is_normal =
        |dependency: &&Value| list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
    list(&node["deps"]).iter().filter(is_normal).map(|dependency| text(dependency, "pkg")).collect()
}

fn component(package: &Value, checksums: &BTreeMap<(String, String), String>) -> Value {
    let (name, version) = (text(package, "name"), text(package, "version"));
    let mut component = json!({
        "type": "library",
        "bom-ref": purl(package),
        "name": name,
        "version": version,
        "purl": purl(package),
        // The slash of older manifests means a choice, which SPDX has as OR.
        "licenses": [{ "expression": text(package, "license").replace('/', " OR ") }],
    });
    if let Some(checksum) = checksums.get(&(name.to_owned(), version.to_owned())) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    component
}

fn purl(package: &Value) -> String {
    // Build metadata begins with a plus, which a package URL escapes.
    format!("pkg:cargo/{}@{}", text(package, "name"), text(package, "version").replace('+', "%2B"))
}

/// SHA-256 of each crate of the registry, from Cargo.lock.
fn checksums(root: &Path) -> Result<BTreeMap<(String, String), String>, Error> {
    let path = root.join("Cargo.lock");
    let text =
        std::fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let lock: toml::Table = text.parse().map_err(|error| format!("{}: {error}", path.display()))?;
    let packages = lock.get("package").and_then(toml::Value::as_array).into_iter().flatten();
    let word = |package: &toml::Value, key: &str| package.get(key)?.as_str().map(str::to_owned);
    let row =
        |package| Some(((word(package, "name")?, word(package, "version")?), word(package, "checksum")?));
    Ok(packages.filter_map(row).collect())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}
