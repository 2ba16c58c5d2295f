//! The highest sequence number that a component has been given, across restarts and power cuts.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use anabranch_secure::manifest::Highest;

use super::disk::replace;
use crate::error::Error;
use crate::manifest::identifier::Component;
use crate::output::hex;

/// What holds the number.
pub(super) trait Store {
    /// All of it; nothing if nothing was stored.
    fn read(&mut self) -> io::Result<Vec<u8>>;
    /// Puts this in its place, whole or not at all, and forces it and the names to the disk.
    fn replace(&mut self, octets: &[u8]) -> io::Result<()>;
}

/// The number that was stored; `None` if there was none.
///
/// # Errors
/// It cannot be read, or is not what was written: then nobody knows what is old.
pub(super) fn highest(store: &mut impl Store) -> io::Result<Option<Highest>> {
    let octets = store.read()?;
    if octets.is_empty() {
        return Ok(None);
    }
    let read = || {
        let line = std::str::from_utf8(&octets).ok()?.strip_suffix('\n')?;
        let (sequence, sha256) = line.split_once(' ')?;
        let sha256: Vec<u8> = (0..sha256.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(sha256.get(at..at + 2)?, 16).ok())
            .collect::<Option<_>>()?;
        Some(Highest { sequence: sequence.parse().ok()?, sha256: sha256.try_into().ok()? })
    };
    let damaged = || io::Error::other("the stored sequence number is not what was written");
    read().map(Some).ok_or_else(damaged)
}

/// Stores a number before the file that has it goes where it shall go: whenever the power fails, no lower one is taken after the
/// file is there. If the file does not get there, it may be sent again.
pub(super) fn raise(store: &mut impl Store, to: &Highest) -> io::Result<()> {
    if highest(store)?.is_some_and(|highest| highest.sequence >= to.sequence) {
        return Ok(());
    }
    store.replace(format!("{} {}\n", to.sequence, hex(&to.sha256)).as_bytes())
}

/// A file in the folder of `--state`.
#[derive(Debug)]
pub(super) struct Stored(PathBuf);

impl Stored {
    /// Of this component, in a folder that is made if it is not there.
    ///
    /// # Errors
    /// No folder is known, or nothing can be stored in it, or what was stored there is damaged.
    pub(super) fn open(folder: Option<&Path>, component: &Component) -> Result<Self, Error> {
        let hint =
            "name a folder with --state: without the number, old files would be taken again after a restart";
        let folder =
            folder.ok_or_else(|| Error::input("no folder is known for sequence numbers").with_hint(hint))?;
        let mut stored = Self(folder.join(format!("sequence-{}", component.name())));
        let opened = fs::create_dir_all(folder).and_then(|()| {
            highest(&mut stored)?;
            // Whether there is room for the next is found out before it is needed.
            let octets = stored.read()?;
            stored.replace(&octets)
        });
        match opened {
            Ok(()) => Ok(stored),
            Err(error) => Err(Error::input(format!("{}: {error}", stored.0.display())).with_hint(hint)),
        }
    }
}

impl Store for Stored {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        match fs::read(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            read => read,
        }
    }

    fn replace(&mut self, octets: &[u8]) -> io::Result<()> {
        replace(&self.0, octets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_there_after_a_restart_never_falls_and_a_damaged_one_is_not_taken_for_none() {
        let folder = tempfile::TempDir::new().unwrap();
        let component = "firmware".parse().unwrap();
        let open = || Stored::open(Some(&folder.path().join("state")), &component);
        let at = |sequence, octet| Highest { sequence, sha256: [octet; 32] };
        assert_eq!(highest(&mut open().unwrap()).unwrap(), None);
        for (to, expected) in [(at(5, 1), at(5, 1)), (at(4, 2), at(5, 1)), (at(u64::MAX, 3), at(u64::MAX, 3))]
        {
            raise(&mut open().unwrap(), &to).unwrap();
            assert_eq!(highest(&mut open().unwrap()).unwrap(), Some(expected));
        }
        let other = Stored::open(Some(&folder.path().join("state")), &"radio".parse().unwrap());
        assert_eq!(highest(&mut other.unwrap()).unwrap(), None);
        let file = folder.path().join("state/sequence-firmware");
        for damaged in
            ["5", "5 00\n", "x 00\n", &format!("5 {}", "00".repeat(32)), &format!("5 {}\n", "é".repeat(32))]
        {
            fs::write(&file, damaged).unwrap();
            assert!(open().is_err(), "{damaged}");
        }
        assert!(Stored::open(None, &component).is_err());
        assert!(Stored::open(Some(&file), &component).is_err(), "not a folder");
    }
}
