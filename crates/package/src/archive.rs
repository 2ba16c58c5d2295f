//! Archives in the format of tar(5), compressed with gzip: also the parts of a `.deb` and the layer
//! of an image.

use std::collections::BTreeSet;

use tar::{Builder, EntryType, Header};

use crate::manifest::{Entry, gzip};
use crate::{Error, Release};

/// A `.tar.gz` in which every path begins with `prefix`.
pub(crate) fn write(prefix: &str, entries: &[Entry], release: &Release) -> Result<Vec<u8>, Error> {
    gzip(&tar(prefix, entries, release.date)?, release.level)
}

/// An archive with every parent folder before its files, as dpkg and container runtimes expect.
pub(crate) fn tar(prefix: &str, entries: &[Entry], date: u32) -> Result<Vec<u8>, Error> {
    let failed = |error| format!("cannot write an archive: {error}");
    let mut builder = Builder::new(Vec::new());
    let mut folders = BTreeSet::new();
    for entry in entries {
        let path = format!("{prefix}{}", entry.path);
        let path = path.trim_start_matches('/');
        for (at, _) in path.match_indices('/') {
            let folder = &path[..=at];
            if folders.insert(folder.to_owned()) {
                // An entry whose path ends in `/` is a folder, which may have an owner of its own.
                let owner = if folder == path { entry.owner } else { 0 };
                let mode = if folder == path { entry.mode } else { 0o755 };
                let mut header = header(EntryType::Directory, mode, owner, date);
                builder.append_data(&mut header, folder, std::io::empty()).map_err(failed)?;
            }
        }
        if !path.ends_with('/') {
            let mut header = header(EntryType::Regular, entry.mode, entry.owner, date);
            header.set_size(entry.bytes.len() as u64);
            builder.append_data(&mut header, path, &*entry.bytes).map_err(failed)?;
        }
    }
    builder.into_inner().map_err(failed)
}

fn header(kind: EntryType, mode: u32, owner: u32, date: u32) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(owner.into());
    header.set_gid(owner.into());
    header.set_mtime(date.into());
    header.set_size(0);
    header
}
