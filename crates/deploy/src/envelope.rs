//! Reads manifests from files and checks that they describe a given file.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anabranch_secure::FileDigest;
use anabranch_secure::manifest::{Envelope, MAX_ENVELOPE};

use crate::error::Error;
use crate::output::hex;

/// Reads a manifest and checks that it describes `file`.
///
/// # Errors
/// The manifest cannot be read, is invalid, or describes another file.
pub(crate) fn for_file(path: &Path, file: &FileDigest) -> Result<Vec<u8>, Error> {
    let octets = octets(path)?;
    about(path, &read(path, &octets)?, file)?;
    Ok(octets)
}

/// Checks that a manifest describes a file.
///
/// # Errors
/// It describes another file.
pub(crate) fn about(path: &Path, envelope: &Envelope<'_>, file: &FileDigest) -> Result<(), Error> {
    let FileDigest { length, sha256 } = envelope.manifest().file;
    if (length, sha256) == (file.length, file.sha256) {
        return Ok(());
    }
    let message = format!(
        "{}: describes another file: {length} bytes, SHA-256 {}; this file has {} bytes, SHA-256 {}",
        path.display(),
        hex(&sha256),
        file.length,
        hex(&file.sha256)
    );
    Err(Error::job(message).with_hint("the file has changed since, or this is the manifest of another file"))
}

/// Reads the bytes of a manifest. At most one byte more than the limit is read, so that a longer
/// file is detected and never held in memory.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn octets(path: &Path) -> Result<Vec<u8>, Error> {
    let mut octets = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_ENVELOPE as u64 + 1).read_to_end(&mut octets));
    read.map_err(|e| Error::unreadable(path, &e).with_hint("`anabranch manifest create` makes manifests"))?;
    Ok(octets)
}

/// Parses a manifest without checking its signature.
///
/// # Errors
/// It is not a manifest of the supported profile.
pub(crate) fn read<'a>(path: &Path, octets: &'a [u8]) -> Result<Envelope<'a>, Error> {
    Envelope::read(octets).map_err(|error| {
        Error::input(format!("{}: not a valid manifest: {error}", path.display()))
            .with_hint("`anabranch manifest create` makes manifests")
    })
}
