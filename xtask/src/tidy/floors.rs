//! Layers of crates ("floors"): which crate may depend on which.

use super::tree::{Finding, Tree};

/// A crate and the workspace crates that it may depend on.
struct Floor {
    name: &'static str,
    may_know: &'static [&'static str],
}

/// From the lowest layer up. A crate may only list crates above it in this table, which rules out
/// cycles.
const FLOORS: &[Floor] = &[
    Floor { name: "wire", may_know: &[] },
    Floor { name: "stats", may_know: &[] },
    Floor { name: "core", may_know: &["wire"] },
    Floor { name: "units", may_know: &["core"] },
    Floor { name: "secure", may_know: &["wire"] },
    Floor { name: "model", may_know: &["core"] },
    Floor { name: "view", may_know: &["wire"] },
    Floor { name: TESTKIT, may_know: &["wire", "core"] },
    Floor { name: "packetdrill", may_know: &["core"] },
    Floor { name: "embed", may_know: &["wire", "core", "secure"] },
    Floor { name: "embed-heap", may_know: &[] },
    Floor { name: "embed-cache", may_know: &["wire", "core", "embed-heap"] },
    Floor { name: "embed-sense", may_know: &["wire", "core", "secure", "embed-heap"] },
    Floor { name: "sim", may_know: &["wire", "core", "units", "model"] },
    Floor { name: "scenario", may_know: &["wire", "core", "units", "model", "sim"] },
    Floor { name: "net", may_know: &["wire", "core", "secure", "embed-sense"] },
    Floor { name: "emu", may_know: &["wire", "core", "sim", "scenario"] },
    Floor { name: "sweep", may_know: &["core", "stats", "sim", "scenario"] },
    Floor { name: "lab", may_know: &["wire", "core", "model", "stats", "sim", "scenario", "sweep"] },
    Floor { name: "deploy", may_know: &["wire", "core", "units", "secure", "net"] },
    Floor { name: "host", may_know: &["wire", "core", "units", "net", "deploy"] },
    Floor {
        name: "cli",
        may_know: &[
            "wire", "core", "units", "secure", "model", "stats", "sim", "scenario", "net", "emu", "view",
            "deploy",
        ],
    },
    Floor { name: "campaign", may_know: &["core", "stats", "sim", "scenario", "lab"] },
    Floor {
        name: "lab-cli",
        may_know: &[
            "wire", "core", "units", "model", "stats", "sim", "scenario", "lab", "campaign", "sweep",
            "deploy", "host", "cli",
        ],
    },
    Floor { name: "manual", may_know: &["scenario", "deploy", "host", "lab-cli"] },
    Floor { name: "package", may_know: &[] },
    Floor {
        name: "python",
        may_know: &["wire", "core", "units", "model", "stats", "sim", "scenario", "lab", "sweep", "view"],
    },
    Floor {
        name: "fuzz",
        may_know: &[
            "wire",
            "core",
            "units",
            "secure",
            "model",
            "embed-cache",
            "embed-sense",
            "sim",
            "scenario",
            "net",
            "view",
            "host",
            "packetdrill",
        ],
    },
];

/// The crate that only tests may depend on; tests of any crate may.
const TESTKIT: &str = "testkit";

/// Checks every package's dependencies against the layers.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in tree.packages() {
        let path = format!("{package}/Cargo.toml");
        let name = package.strip_prefix("crates/").unwrap_or(package);
        let floor = FLOORS.iter().find(|floor| floor.name == name);
        if floor.is_none() && name != "xtask" {
            findings.push(Finding::new(
                &path,
                0,
                format!("`{name}` stands on no floor: see xtask's floors.rs"),
            ));
            continue;
        }
        let may_know = floor.map_or(&[][..], |floor| floor.may_know);
        for dependency in dependencies(tree.text(&path).unwrap_or_default()) {
            if let Some(message) = objection(name, may_know, &dependency) {
                findings.push(Finding::new(&path, dependency.line, message));
            }
        }
    }
    findings
}

/// Why the crate `name` may not have `dependency`; `None` if it may.
fn objection(name: &str, may_know: &[&str], dependency: &Dependency) -> Option<String> {
    let known = dependency.name.as_str();
    if known == TESTKIT {
        let fine = dependency.kind == Kind::Dev;
        return (!fine).then(|| format!("`{TESTKIT}` may only be a dev-dependency"));
    }
    // A crate's tests enable one of its optional features this way.
    if known == name && dependency.kind == Kind::Dev {
        return None;
    }
    (!may_know.contains(&known)).then(|| format!("`{name}` may not know `{known}`: it stands no lower"))
}

/// Purpose of a dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The crate or its build script.
    Normal,
    /// Tests of the crate.
    Dev,
}

/// A dependency on another crate of this workspace.
#[derive(Debug, PartialEq, Eq)]
struct Dependency {
    /// Directory of the crate: `core` for `anabranch-core`.
    name: String,
    kind: Kind,
    line: usize,
}

/// Dependencies on workspace crates in a manifest, including target-specific and renamed ones.
fn dependencies(manifest: &str) -> Vec<Dependency> {
    let mut found = Vec::new();
    let mut section = None;
    for (i, raw) in manifest.lines().enumerate() {
        let line = raw.trim();
        if let Some(header) = line.strip_prefix('[') {
            section = section_kind(header);
        }
        let Some(kind) = section else { continue };
        // In a dependency section, only package names have this prefix: as the key, as the key
        // after the section's last dot, or as the value of `package`.
        for (at, prefix) in line.split('#').next().unwrap_or_default().match_indices("anabranch-") {
            let rest = &line[at + prefix.len()..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_');
            let name = rest[..end.unwrap_or(rest.len())].to_owned();
            found.push(Dependency { name, kind, line: i + 1 });
        }
    }
    found
}

/// Kind of the dependencies in a section, from its header without the first bracket; `None` for
/// other sections.
fn section_kind(header: &str) -> Option<Kind> {
    if header.contains("dev-dependencies") {
        Some(Kind::Dev)
    } else if header.contains("dependencies") && !header.starts_with("workspace.") {
        Some(Kind::Normal)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::fake(files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_floor_knows_only_lower_ones() {
        for (i, floor) in FLOORS.iter().enumerate() {
            for known in floor.may_know {
                let at = FLOORS.iter().position(|other| other.name == *known);
                assert!(at.is_some_and(|at| at < i), "{} above {}", known, floor.name);
            }
        }
    }

    #[test]
    fn downward_is_fine() {
        let sim = "[dependencies]\nanabranch-core = { workspace = true }\nbytes.workspace = true\n\
                   [dev-dependencies]\nanabranch-testkit.workspace = true\n";
        assert_eq!(messages(&[("crates/sim/Cargo.toml", sim)]), [""; 0]);
    }

    #[test]
    fn upward_is_refused_in_every_spelling() {
        let message = "`core` may not know `sim`: it stands no lower";
        for (line, manifest) in [
            (2, "[dependencies]\nanabranch-sim.workspace = true\n"),
            (2, "[dev-dependencies]\nanabranch-sim = { path = \"../sim\" }\n"),
            (2, "[build-dependencies]\nother = { package = \"anabranch-sim\" }\n"),
            (2, "[target.'cfg(unix)'.dependencies]\nanabranch-sim = \"1\"\n"),
            (1, "[dependencies.anabranch-sim]\nworkspace = true\n"),
        ] {
            let expected = format!("crates/core/Cargo.toml:{line}: {message}");
            assert_eq!(messages(&[("crates/core/Cargo.toml", manifest)]), [expected], "{manifest}");
        }
    }

    #[test]
    fn features_and_comments_are_no_dependencies() {
        let wire = "[features]\nstd = [\"anabranch-core/std\"]\n[dependencies]\n# anabranch-core would be a circle\n";
        assert_eq!(messages(&[("crates/wire/Cargo.toml", wire)]), [""; 0]);
    }

    #[test]
    fn testkit_is_for_tests() {
        let lab = "[dependencies]\nanabranch-testkit.workspace = true\n";
        let expected = "crates/lab/Cargo.toml:2: `testkit` may only be a dev-dependency";
        assert_eq!(messages(&[("crates/lab/Cargo.toml", lab)]), [expected]);
    }

    #[test]
    fn xtask_knows_nobody_and_strangers_have_no_floor() {
        let xtask = "[dependencies]\nanabranch-core.workspace = true\n";
        assert_eq!(messages(&[("xtask/Cargo.toml", xtask)]).len(), 1);
        assert_eq!(
            messages(&[("crates/web/Cargo.toml", "")]),
            ["crates/web/Cargo.toml: `web` stands on no floor: see xtask's floors.rs"]
        );
    }
}
