//! Writes the packages of a release from what is built; `cargo xtask dist` runs it.
//!
//! `packaging/packages.toml` lists the files of each package ([`manifest`]). [`deb`], [`rpm`],
//! [`archive`] and [`oci`] each write one format from the same list of [`manifest::Entry`];
//! [`sbom`] writes the bill of materials. The output depends on the files, the version and the date
//! that are given, and on nothing else, so that a second build can be compared byte by byte.

#![forbid(unsafe_code)]

mod archive;
mod deb;
mod elf;
mod manifest;
mod oci;
mod rpm;
mod sbom;
mod scripts;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use sha2::{Digest, Sha256};

use crate::manifest::Manifest;

/// A message with the file that it is about.
type Error = String;

/// Writes the packages of a release
#[derive(Parser)]
struct Arguments {
    /// Repository: packages.toml and the paths in it are relative to its folder `packaging`
    #[arg(long)]
    root: PathBuf,
    /// Folder of the programs: `{bin}` in packages.toml
    #[arg(long)]
    bin: PathBuf,
    /// Folder of generated files, such as manual pages: `{made}` in packages.toml
    #[arg(long)]
    made: PathBuf,
    /// Folder that the packages are written to. SHA256SUMS covers every file in it
    #[arg(long)]
    out: PathBuf,
    /// Version of the packages
    #[arg(long, default_value = env!("CARGO_PKG_VERSION"))]
    version: String,
    /// Modification time of all files, in seconds since 1970
    #[arg(long, default_value_t = 0)]
    date: u32,
    /// Level of compression, 0 (none) to 9 (smallest)
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(..=9))]
    level: u32,
    /// Formats to write
    #[arg(long, value_delimiter = ',', default_value = "deb,rpm,archive,oci,sbom")]
    formats: Vec<Format>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Deb,
    Rpm,
    Archive,
    Oci,
    Sbom,
}

/// What the formats need to know of a release beside the files.
struct Release {
    version: String,
    date: u32,
    level: u32,
    /// Architecture as the Rust target names it, such as `x86_64`.
    arch: &'static str,
}

impl Release {
    /// Version as package managers sort it: they have no `-` in a version, and `~` sorts a
    /// pre-release before the release.
    fn package_version(&self) -> String {
        self.version.replace('-', "~")
    }

    /// Architecture as Debian and OCI name it.
    fn debian_arch(&self) -> &'static str {
        match self.arch {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            "arm" => "armhf",
            "x86" => "i386",
            other => other,
        }
    }
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Error> {
    let folder = arguments.root.join("packaging");
    let manifest = Manifest::read(&folder.join("packages.toml"))?;
    let places = [("{bin}", &*arguments.bin), ("{made}", &*arguments.made), ("", &*folder)];
    let release = Release {
        version: arguments.version.clone(),
        date: arguments.date,
        level: arguments.level,
        arch: std::env::consts::ARCH,
    };
    let wanted = |format| arguments.formats.contains(&format);
    let put = |name: String, bytes: &[u8]| write(&arguments.out, &name, bytes);
    let (version, arch) = (&release.version, release.arch);
    for package in &manifest.package {
        let name = &package.name;
        let entries = package.entries(&places)?;
        if wanted(Format::Deb) {
            let bytes = deb::write(package, &entries, &release)?;
            put(format!("{name}_{version}_{}.deb", release.debian_arch()), &bytes)?;
        }
        if wanted(Format::Rpm) {
            let bytes = rpm::write(package, &entries, &release)?;
            put(format!("{name}-{version}-1.{arch}.rpm"), &bytes)?;
        }
        if wanted(Format::Archive) {
            let bytes = archive::write(&format!("{name}-{version}"), &entries, &release)?;
            put(format!("{name}-{version}-{arch}-linux.tar.gz"), &bytes)?;
        }
    }
    for source in manifest.archive.iter().filter(|_| wanted(Format::Archive)) {
        let entries = source.entries(&places)?;
        if !entries.is_empty() {
            let bytes = archive::write(&format!("{}-{version}", source.name), &entries, &release)?;
            put(format!("{}-{version}-{arch}-linux.tar.gz", source.name), &bytes)?;
        }
    }
    if wanted(Format::Oci) {
        for image in &manifest.image {
            let bytes = oci::write(image, &places, &release)?;
            put(format!("{}-{version}-{arch}.oci.tar", image.name), &bytes)?;
        }
    }
    if wanted(Format::Sbom) {
        let text = sbom::write(&arguments.root, &manifest.sbom.crates, &release)?;
        put(format!("anabranch-{version}.cdx.json"), text.as_bytes())?;
    }
    sums(&arguments.out)
}

/// Writes one file of the release and prints its name.
fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), Error> {
    let path = folder.join(name);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(&path, bytes))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    println!("{:>10}  {}", bytes.len(), path.display());
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// SHA-256 in hexadecimal digits.
fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// SHA256SUMS over all files of the folder, in the form of sha256sum(1).
fn sums(folder: &Path) -> Result<(), Error> {
    let listing =
        fs::read_dir(folder).map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    let mut names: Vec<String> =
        listing.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| name != "SHA256SUMS" && folder.join(name).is_file());
    names.sort();
    let mut text = String::new();
    for name in names {
        text += &format!("{}  {name}\n", sha256(&read(&folder.join(&name))?));
    }
    write(folder, "SHA256SUMS", text.as_bytes())
}
