//! `packaging/packages.toml`: which files a package contains, and where they are installed.

use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Deserialize;

use crate::{Error, read};

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    pub(crate) package: Vec<Package>,
    #[serde(default)]
    pub(crate) archive: Vec<Archive>,
    #[serde(default)]
    pub(crate) image: Vec<Image>,
    pub(crate) sbom: Sbom,
    /// Installed by every package below `/usr/share/doc/NAME`.
    documents: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// One line, at most 60 characters: what the package is for.
    pub(crate) summary: String,
    pub(crate) description: String,
    /// Debian's archive section.
    pub(crate) section: String,
    /// Packages of the same release that must be installed too, in the same version.
    #[serde(default)]
    pub(crate) requires: Vec<String>,
    /// systemd units: stopped before removal, restarted by an upgrade if they run.
    #[serde(default)]
    pub(crate) units: Vec<String>,
    /// Folders that `dpkg --purge` removes with everything in them.
    #[serde(default)]
    pub(crate) purge: Vec<String>,
    pub(crate) files: Vec<Source>,
}

/// A file, or a folder with all files in it.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Source {
    from: String,
    /// Absolute path; a folder if it ends in `/`.
    to: String,
    /// A configuration file: the user's changes are kept on upgrade.
    #[serde(default)]
    config: bool,
    /// Owner and group; root if absent.
    #[serde(default)]
    owner: u32,
}

/// A folder that is a `.tar.gz`, if it is there.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Archive {
    pub(crate) name: String,
    from: String,
}

/// A container image of one program.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Image {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) program: String,
    /// Numeric user and group that the program runs as.
    pub(crate) user: u32,
    /// Ports that the program listens on, such as `47201/tcp`.
    pub(crate) ports: Vec<String>,
    /// Folders that the program writes to.
    pub(crate) volumes: Vec<String>,
    pub(crate) environment: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sbom {
    /// Packages of the workspace whose dependencies are listed.
    pub(crate) crates: Vec<String>,
}

/// A file as it is installed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    /// Absolute path.
    pub(crate) path: String,
    /// Permission bits.
    pub(crate) mode: u32,
    /// Owner and group.
    pub(crate) owner: u32,
    pub(crate) config: bool,
    pub(crate) bytes: Vec<u8>,
}

impl Entry {
    /// A file of root's that is not configuration.
    pub(crate) fn new(path: impl Into<String>, mode: u32, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), mode, owner: 0, config: false, bytes: bytes.into() }
    }
}

/// What the first part of `from` stands for, and the folder. The last one has an empty name.
pub(crate) type Places<'a> = [(&'a str, &'a Path)];

impl Manifest {
    /// # Errors
    /// The file cannot be read, or is not a manifest.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let text = String::from_utf8(read(path)?).map_err(|_| format!("{}: not UTF-8", path.display()))?;
        let mut manifest: Self =
            toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        for package in &mut manifest.package {
            let documents = manifest.documents.iter().map(|from| Source {
                from: from.clone(),
                to: format!("/usr/share/doc/{}/", package.name),
                config: false,
                owner: 0,
            });
            package.files.extend(documents);
        }
        Ok(manifest)
    }
}

impl Package {
    /// All files, by path.
    ///
    /// # Errors
    /// A file cannot be read, or two files have the same path.
    pub(crate) fn entries(&self, places: &Places) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        for source in &self.files {
            collect(source, &located(&source.from, places), &source.to, &mut entries)?;
        }
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        match entries.windows(2).find(|pair| pair[0].path == pair[1].path) {
            Some(pair) => Err(format!("packages.toml: {} has {} twice", self.name, pair[0].path)),
            None => Ok(entries),
        }
    }
}

impl Archive {
    /// All files, or nothing if the folder is not there.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(crate) fn entries(&self, places: &Places) -> Result<Vec<Entry>, Error> {
        let folder = located(&self.from, places);
        let source = Source { from: self.from.clone(), to: "/".to_owned(), config: false, owner: 0 };
        let mut entries = Vec::new();
        if folder.is_dir() {
            collect(&source, &folder, "/", &mut entries)?;
        }
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }
}

/// The path that `from` names.
pub(crate) fn located(from: &str, places: &Places) -> PathBuf {
    let found = places
        .iter()
        .find_map(|(name, folder)| Some(folder.join(from.strip_prefix(name)?.trim_start_matches('/'))));
    found.unwrap_or_else(|| from.into())
}

fn collect(source: &Source, path: &Path, to: &str, entries: &mut Vec<Entry>) -> Result<(), Error> {
    // A link may lead to any file of the machine.
    if path.is_symlink() {
        return Err(format!("{}: a symbolic link, which no package has", path.display()));
    }
    if path.is_dir() {
        let listing = path.read_dir().map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        for entry in listing.flatten() {
            let to = format!("{}/", to.trim_end_matches('/'));
            let to = if entry.path().is_dir() {
                format!("{to}{}/", entry.file_name().to_string_lossy())
            } else {
                to
            };
            collect(source, &entry.path(), &to, entries)?;
        }
        return Ok(());
    }
    let mut bytes = read(path)?;
    let mut to = to.to_owned();
    if to.ends_with('/') {
        to += &path.file_name().unwrap_or_default().to_string_lossy();
    }
    // Debian's policy 12.1 and 12.3: manual pages and change logs are compressed.
    if to.starts_with("/usr/share/man/") || to.ends_with("/CHANGELOG.md") {
        bytes = gzip(&bytes, 9)?;
        to += ".gz";
    }
    let mode = if to.starts_with("/usr/bin/") { 0o755 } else { 0o644 };
    entries.push(Entry { path: to, mode, owner: source.owner, config: source.config, bytes });
    Ok(())
}

/// Compresses without a name and a time in the header, so that equal bytes stay equal.
pub(crate) fn gzip(bytes: &[u8], level: u32) -> Result<Vec<u8>, Error> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
    encoder
        .write_all(bytes)
        .and_then(|()| encoder.finish())
        .map_err(|error| format!("cannot compress: {error}"))
}
