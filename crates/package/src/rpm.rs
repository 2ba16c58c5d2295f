//! RPM packages, format 4.

use rpm::{BuildConfig, CompressionWithLevel, Dependency, FileMode, FileOptions, PackageBuilder};

use crate::manifest::{Entry, Package};
use crate::scripts::Scripts;
use crate::{Error, Release, elf};

/// The bytes of an `.rpm`, without a signature.
pub(crate) fn write(package: &Package, entries: &[Entry], release: &Release) -> Result<Vec<u8>, Error> {
    let failed = |error: rpm::Error| format!("cannot write the RPM of {}: {error}", package.name);
    let version = release.package_version();
    let mut builder = PackageBuilder::new(
        &package.name,
        &version,
        env!("CARGO_PKG_LICENSE"),
        release.arch,
        &package.summary,
    );
    builder
        .using_config(
            BuildConfig::v4()
                .compression(CompressionWithLevel::Gzip(release.level))
                .source_date(release.date),
        )
        .url(env!("CARGO_PKG_REPOSITORY"))
        .build_host("localhost")
        .description(package.description.trim());
    for entry in entries {
        let mut options = FileOptions::new(&entry.path).mode(FileMode::regular(entry.mode as u16));
        if entry.config {
            options = options.config().noreplace();
        }
        builder.with_file_contents(entry.bytes.clone(), options).map_err(failed)?;
    }
    if let Some((major, minor)) = elf::newest(entries) {
        let bits = if cfg!(target_pointer_width = "64") { "(64bit)" } else { "" };
        builder.requires(Dependency::any(format!("libc.so.6(GLIBC_{major}.{minor}){bits}")));
        // Unwinding: every program of Rust links it dynamically.
        builder.requires(Dependency::any(format!("libgcc_s.so.1(){bits}")));
    }
    for name in &package.requires {
        builder.requires(Dependency::eq(name, format!("{version}-1")));
    }
    // The argument of a scriptlet is the number of versions that are installed when it has ended.
    let Scripts { installed, upgraded, stopping, disabling, removed, .. } = Scripts::of(package);
    if !package.units.is_empty() {
        builder
            .post_install_script(format!("if [ $1 -gt 1 ]; then\n{upgraded}else\n{installed}fi\n"))
            .pre_uninstall_script(format!("if [ $1 -eq 0 ]; then\n{stopping}{disabling}fi\n"))
            .post_uninstall_script(removed);
    }
    let mut bytes = Vec::new();
    builder.build().and_then(|package| package.write(&mut bytes)).map_err(failed)?;
    Ok(bytes)
}
