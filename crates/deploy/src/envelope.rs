//! Manifests in files, and whether one is about a given file.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anabranch_secure::FileDigest;
use anabranch_secure::manifest::{Envelope, MAX_ENVELOPE};

use crate::error::Error;
use crate::output::hex;

/// The octets of a manifest for `file`.
///
/// # Errors
/// It cannot be read, is none, or is about another file.
pub(crate) fn for_file(path: &Path, file: &FileDigest) -> Result<Vec<u8>, Error> {
    let octets = octets(path)?;
    about(path, &read(path, &octets)?, file)?;
    Ok(octets)
}

/// Checks that a manifest is about a file.
///
/// # Errors
/// It is about another file.
pub(crate) fn about(path: &Path, envelope: &Envelope<'_>, file: &FileDigest) -> Result<(), Error> {
    let FileDigest { length, sha256 } = envelope.manifest().file;
    if (length, sha256) == (file.length, file.sha256) {
        return Ok(());
    }
    let message = format!(
        "{}: it is about a file of {length} bytes with SHA-256 {}, and this one has {} bytes and {}",
        path.display(),
        hex(&sha256),
        file.length,
        hex(&file.sha256)
    );
    Err(Error::job(message).with_hint("the file has changed since, or this is the manifest of another"))
}

/// The bytes of a manifest, at most one more than a manifest may have.
///
/// # Errors
/// It cannot be read.
pub(crate) fn octets(path: &Path) -> Result<Vec<u8>, Error> {
    let mut octets = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_ENVELOPE as u64 + 1).read_to_end(&mut octets));
    read.map_err(|e| Error::unreadable(path, &e).with_hint("`anabranch manifest create` makes manifests"))?;
    Ok(octets)
}

/// Parses a manifest; its signature is not checked.
///
/// # Errors
/// It is not a manifest of the profile.
pub(crate) fn read<'a>(path: &Path, octets: &'a [u8]) -> Result<Envelope<'a>, Error> {
    Envelope::read(octets).map_err(|error| {
        Error::input(format!("{}: not a manifest that nodes take: {error}", path.display()))
            .with_hint("`anabranch manifest create` makes manifests")
    })
}
