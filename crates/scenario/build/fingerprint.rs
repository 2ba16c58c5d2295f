//! SHA-256 over the sources of crates and over the lock file entries of their dependencies.
//! Included by the build scripts of crates whose code determines results.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Sets the environment variable `name` for the crate being built to the fingerprint of the crates
/// `names` (names of their folders). The crate being built is the last of them.
pub(crate) fn set(name: &str, names: &[&str]) {
    let own = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let mut hash = Sha256::new_with_prefix(b"anabranch build 1\0");
    let crates = own.parent().map(Path::to_owned).unwrap_or_default();
    if names.iter().all(|name| is_ours(&crates, name)) {
        for name in names {
            sources(&crates.join(name), name, &mut hash);
        }
        lock_entries(&crates, names, &mut hash);
    } else {
        // A published package has no sibling crates: its manifest determines the versions of its
        // dependencies.
        hash.update(std::env::var("CARGO_PKG_VERSION").expect("cargo sets it"));
        sources(&own, names.last().expect("the crate itself"), &mut hash);
    }
    let hex: String = hash.finalize().iter().map(|octet| format!("{octet:02x}")).collect();
    println!("cargo::rustc-env={name}={hex}");
}

/// Whether the folder is the crate with this name, and not another folder of the same name.
fn is_ours(crates: &Path, name: &str) -> bool {
    let manifest = fs::read_to_string(crates.join(name).join("Cargo.toml")).unwrap_or_default();
    manifest.contains(&format!("name = \"anabranch-{name}\""))
}

/// Adds the manifest of a crate and its sources, in the order of their paths.
fn sources(folder: &Path, name: &str, hash: &mut Sha256) {
    let mut files = vec![folder.join("Cargo.toml")];
    collect(&folder.join("src"), &mut files);
    files.sort();
    for file in files {
        // Watches single files: watching a folder would run the script again for changed tests,
        // which do not affect results. A new file is announced by a `mod` in a watched file.
        println!("cargo::rerun-if-changed={}", file.display());
        let content = fs::read(&file).unwrap_or_default();
        let place = file.strip_prefix(folder).unwrap_or(&file);
        let steps: Vec<_> = place.iter().map(|step| step.to_string_lossy()).collect();
        part(hash, format!("{name}/{}", steps.join("/")).as_bytes());
        part(hash, &content);
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let stem = path.file_stem().unwrap_or_default();
        if stem == "tests" {
            continue;
        }
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The length precedes each part, so that different lists of parts never give the same input.
fn part(hash: &mut Sha256, octets: &[u8]) {
    hash.update((octets.len() as u64).to_le_bytes());
    hash.update(octets);
}

/// Adds the lock file entries of the crates' dependencies, direct and indirect.
fn lock_entries(crates: &Path, names: &[&str], hash: &mut Sha256) {
    let Some(root) = crates.parent() else { return };
    let path = root.join("Cargo.lock");
    println!("cargo::rerun-if-changed={}", path.display());
    let lock = fs::read_to_string(&path).unwrap_or_default();
    let mut entries: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for entry in lock.split("[[package]]").skip(1) {
        if let Some(name) = value(entry, "name") {
            entries.entry(name).or_default().push(entry.trim());
        }
    }
    let manifests = names.iter().map(|name| fs::read_to_string(crates.join(name).join("Cargo.toml")));
    let mut open: Vec<String> = manifests.flatten().flat_map(|manifest| dependencies(&manifest)).collect();
    let mut added = BTreeSet::new();
    while let Some(wanted) = open.pop() {
        // "name", or "name version" if there are several versions.
        let (name, version) = wanted.split_once(' ').map_or((&*wanted, None), |(name, v)| (name, Some(v)));
        // The crates of this workspace are included with their sources.
        if name.starts_with("anabranch-") {
            continue;
        }
        for entry in entries.get(name).into_iter().flatten() {
            let meant = version.is_none_or(|version| value(entry, "version") == Some(version));
            if meant && added.insert(*entry) {
                open.extend(named_dependencies(entry));
            }
        }
    }
    added.iter().for_each(|entry| part(hash, entry.as_bytes()));
}

/// The text of `key = "text"` in an entry.
fn value<'a>(entry: &'a str, key: &str) -> Option<&'a str> {
    let line = entry.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix('='))?;
    line.trim().strip_prefix('"')?.strip_suffix('"')
}

/// The names under `[dependencies]` of a manifest.
fn dependencies(manifest: &str) -> Vec<String> {
    let lines = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    lines
        .filter_map(|line| Some(line.split(['.', ' ', '=']).next()?.to_owned()))
        .filter(|name| !name.is_empty() && !name.starts_with('#'))
        .collect()
}

/// The dependencies of an entry of the lock file: lines such as `"name",` or `"name version",`.
fn named_dependencies(entry: &str) -> impl Iterator<Item = String> {
    let lines = entry.lines().skip_while(|line| !line.starts_with("dependencies")).skip(1);
    lines.filter_map(|line| Some(line.trim().strip_prefix('"')?.split('"').next()?.to_owned()))
}
