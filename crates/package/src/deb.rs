//! Debian packages: deb(5).

use ar::{Builder, Header};

use crate::manifest::{Entry, Package};
use crate::scripts::Scripts;
use crate::{Error, Release, archive, elf};

/// The bytes of a `.deb`.
pub(crate) fn write(package: &Package, entries: &[Entry], release: &Release) -> Result<Vec<u8>, Error> {
    let control = control(package, entries, release);
    let parts = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", archive::write("", &control, release)?),
        ("data.tar.gz", archive::write("", entries, release)?),
    ];
    let mut builder = Builder::new(Vec::new());
    for (name, bytes) in parts {
        let mut header = Header::new(name.as_bytes().to_vec(), bytes.len() as u64);
        header.set_mtime(release.date.into());
        header.set_mode(0o100_644);
        builder.append(&header, &*bytes).map_err(|error| format!("cannot write {name}: {error}"))?;
    }
    builder.into_inner().map_err(|error| format!("cannot write a package: {error}"))
}

/// The files that dpkg reads: control, conffiles and the scripts.
fn control(package: &Package, entries: &[Entry], release: &Release) -> Vec<Entry> {
    let file = |name: &str, mode, text: String| Entry::new(format!("/{name}"), mode, text);
    let configured = entries.iter().filter(|entry| entry.config).map(|entry| format!("{}\n", entry.path));
    let mut files = vec![
        file("control", 0o644, fields(package, entries, release)),
        file("conffiles", 0o644, configured.collect()),
    ];
    let Scripts { installed, upgraded, stopping, restarting, removed, purged, .. } = Scripts::of(package);
    // Debian policy 6.5: the second argument of `configure` is the version that was there before. A
    // removed package keeps its links in /etc, as its configuration, until it is purged.
    let scripts = [
        (
            "postinst",
            format!(
                "if [ \"$1\" = configure ] && [ -z \"$2\" ]; then\n:\n{installed}fi\n\
                 if [ \"$1\" = configure ] && [ -n \"$2\" ]; then\n:\n{upgraded}fi\n\
                 if [ \"$1\" = abort-remove ]; then\n:\n{restarting}fi\n"
            ),
        ),
        ("prerm", format!("if [ \"$1\" = remove ]; then\n:\n{stopping}fi\n")),
        ("postrm", format!("if [ \"$1\" = purge ]; then\n:\n{purged}fi\n{removed}")),
    ];
    let scripts = scripts.map(|(name, text)| file(name, 0o755, format!("#!/bin/sh\nset -e\n{text}")));
    if !package.units.is_empty() || !package.purge.is_empty() {
        files.extend(scripts);
    }
    files
}

/// The control file.
fn fields(package: &Package, entries: &[Entry], release: &Release) -> String {
    let libraries =
        elf::newest(entries).map(|(major, minor)| format!("libc6 (>= {major}.{minor}), libgcc-s1"));
    let same = package.requires.iter().map(|name| format!("{name} (= {})", release.package_version()));
    let depends: Vec<String> = libraries.into_iter().chain(same).collect();
    let depends =
        if depends.is_empty() { String::new() } else { format!("Depends: {}\n", depends.join(", ")) };
    let kilobytes: usize = entries.iter().map(|entry| entry.bytes.len().div_ceil(1024)).sum();
    // Policy 5.6.13: lines of a description begin with a blank, an empty line is a dot.
    let lines = package.description.trim().lines();
    let description: String =
        lines.map(|line| format!(" {}\n", if line.is_empty() { "." } else { line })).collect();
    format!(
        "Package: {}\nVersion: {}\nArchitecture: {}\nMaintainer: {MAINTAINER}\nInstalled-Size: {kilobytes}\n\
         {depends}Section: {}\nPriority: optional\nHomepage: {}\nDescription: {}\n{description}",
        package.name,
        release.package_version(),
        release.debian_arch(),
        package.section,
        env!("CARGO_PKG_REPOSITORY"),
        package.summary,
    )
}

const MAINTAINER: &str = "The Anabranch developers <anabranch@example.org>";
