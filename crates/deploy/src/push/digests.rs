//! Caches the digests of files, so that a file for many nodes is read only once.
//!
//! A file is recognised by its device, inode, length and modification times. That is no proof, and
//! none is needed: the node compares the received bytes with the announced digest and discards a
//! file that does not match.

#![expect(clippy::disallowed_types, reason = "times of files are of the day")]

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anabranch_secure::FileDigest;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::files::{digest, write_whole};

/// Limit on the stored digests; the files that were read last are kept.
const MOST: usize = 64;

/// A file changed within this time may change again without a new modification time: clocks of file
/// systems tick every few milliseconds, some only every other second.
const SETTLED: Duration = Duration::from_secs(3);

/// The attributes by which a file is recognised.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Look {
    device: u64,
    inode: u64,
    bytes: u64,
    /// Seconds and nanoseconds.
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Look {
    fn at(file: &Metadata) -> Self {
        Self {
            device: file.dev(),
            inode: file.ino(),
            bytes: file.len(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }

    /// Whether a further change would show in the modification times.
    fn is_settled(&self, now: SystemTime) -> bool {
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let seconds = self.changed.0.max(self.modified.0);
        u64::try_from(seconds).is_ok_and(|seconds| Duration::from_secs(seconds) + SETTLED < now)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Known {
    #[serde(flatten)]
    look: Look,
    sha256: [u8; 32],
}

/// The stored digests, latest last. Without a place nothing is stored.
#[derive(Debug)]
pub(super) struct Digests {
    place: Option<PathBuf>,
    known: Vec<Known>,
}

impl Digests {
    /// Opens the cache of a folder. An unreadable cache counts as empty.
    pub(super) fn open(folder: Option<&Path>) -> Self {
        let place = folder.map(|folder| folder.join("digests.json"));
        let read = place.as_ref().and_then(|place| std::fs::read(place).ok());
        let known = read.and_then(|octets| serde_json::from_slice(&octets).ok()).unwrap_or_default();
        Self { place, known }
    }

    /// Opens a file and returns its digest. The file is read if its digest is not stored, or if
    /// `anew` is set.
    pub(super) fn of(&mut self, path: &Path, anew: bool) -> Result<(File, FileDigest), Error> {
        let unreadable =
            |e: io::Error| Error::unreadable(path, &e).with_hint("give a file that you can read");
        if self.place.is_none() {
            return digest(path);
        }
        let file = File::open(path).map_err(unreadable)?;
        let before = Look::at(&file.metadata().map_err(unreadable)?);
        if let Some(known) = self.known.iter().find(|known| known.look == before && !anew) {
            return Ok((file, FileDigest { length: before.bytes, sha256: known.sha256 }));
        }
        let (file, digest) = digest(path)?;
        let after = Look::at(&file.metadata().map_err(unreadable)?);
        // Store the digest only if the file did not change while it was read, and if a later change
        // cannot go unnoticed.
        if before == after && digest.length == after.bytes && after.is_settled(SystemTime::now()) {
            self.remember(after, digest.sha256);
        }
        Ok((file, digest))
    }

    fn remember(&mut self, look: Look, sha256: [u8; 32]) {
        self.known.retain(|known| (known.look.device, known.look.inode) != (look.device, look.inode));
        self.known.push(Known { look, sha256 });
        self.known.drain(..self.known.len().saturating_sub(MOST));
        self.keep();
    }

    /// Removes a digest that turned out to be wrong.
    pub(super) fn forget(&mut self, file: &FileDigest) {
        let before = self.known.len();
        self.known.retain(|known| known.sha256 != file.sha256);
        if self.known.len() < before {
            self.keep();
        }
    }

    /// Stores the cache. If two pushes do so at once, one entry is lost and that file is read again
    /// later.
    fn keep(&self) {
        let Some(place) = &self.place else { return };
        let kept = place.parent().map_or(Ok(()), std::fs::create_dir_all);
        if kept.is_ok() {
            // A failed write is ignored: the cache only saves time.
            let _ = write_whole(place, &serde_json::to_vec(&self.known).expect("plain data"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A file, and a cache folder with a wrong digest for it. A push that announces that digest has
    /// not read the file.
    fn misremembered(folder: &Path) -> (PathBuf, FileDigest) {
        let path = folder.join("file");
        fs::write(&path, b"octets").expect("room");
        let look = Look::at(&path.metadata().expect("it is there"));
        let told = FileDigest { length: look.bytes, sha256: [7; 32] };
        Digests::open(Some(folder)).remember(look, told.sha256);
        (path, told)
    }

    #[test]
    fn a_file_is_known_again_until_it_changes() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let (path, told) = misremembered(folder.path());
        let read = |anew| Digests::open(Some(folder.path())).of(&path, anew).expect("it is there").1;
        assert_eq!(read(false), told);
        let right = read(true);
        assert_ne!(right, told);
        let long_ago = SystemTime::now() - Duration::from_secs(3600);
        let file = File::options().write(true).open(&path).expect("it is there");
        file.set_modified(long_ago).expect("it is ours");
        assert_eq!(read(false), right, "its time has changed");
    }

    #[test]
    fn what_has_only_just_changed_is_not_remembered() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("file");
        fs::write(&path, b"octets").expect("room");
        Digests::open(Some(folder.path())).of(&path, false).expect("it is there");
        assert!(Digests::open(Some(folder.path())).known.is_empty());
        let look = Look::at(&path.metadata().expect("it is there"));
        assert!(look.is_settled(SystemTime::now() + SETTLED * 2));
    }

    #[test]
    fn what_was_wrong_is_forgotten() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let (path, told) = misremembered(folder.path());
        Digests::open(Some(folder.path())).forget(&told);
        let (_, read) = Digests::open(Some(folder.path())).of(&path, false).expect("it is there");
        assert_ne!(read, told);
    }

    #[test]
    fn the_latest_are_kept_and_nonsense_is_nothing() {
        let folder = tempfile::TempDir::new().expect("a folder");
        fs::write(folder.path().join("digests.json"), b"{ nonsense").expect("room");
        let mut digests = Digests::open(Some(folder.path()));
        assert!(digests.known.is_empty());
        let look = Look::at(&folder.path().metadata().expect("it is there"));
        (0..100).for_each(|inode| digests.remember(Look { inode, ..look }, [0; 32]));
        let kept: Vec<u64> = Digests::open(Some(folder.path())).known.iter().map(|k| k.look.inode).collect();
        assert_eq!(kept, (36..100).collect::<Vec<_>>());
    }
}
