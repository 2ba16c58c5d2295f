//! Stores the highest sequence number of a component across restarts and power cuts.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anabranch_secure::manifest::Highest;

use super::disk::{MODE, companion, replace};
use crate::error::Error;
use crate::log::Entry;
use crate::output::hex;

/// Storage of the number.
pub(super) trait Store {
    /// Reads the stored text; `None` if nothing was ever stored.
    fn read(&mut self) -> io::Result<Option<Vec<u8>>>;
    /// Replaces the stored text atomically, and syncs it and its folder.
    fn replace(&mut self, octets: &[u8]) -> io::Result<()>;
}

/// Content before the first number. It is not empty, so that a damaged, empty file is never taken
/// for a new device.
const NONE: &[u8] = b"none\n";

/// Reads the stored number; `None` before the first.
///
/// # Errors
/// The number cannot be read or is damaged. It is then unknown which numbers are too low, so no
/// file may be accepted.
pub(super) fn highest(store: &mut impl Store) -> io::Result<Option<Highest>> {
    let octets = match store.read()? {
        None => return Ok(None),
        Some(octets) if octets == NONE => return Ok(None),
        Some(octets) => octets,
    };
    let read = || {
        let line = std::str::from_utf8(&octets).ok()?.strip_suffix('\n')?;
        let (sequence, sha256) = line.split_once(' ')?;
        let sha256: Vec<u8> = (0..sha256.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(sha256.get(at..at + 2)?, 16).ok())
            .collect::<Option<_>>()?;
        Some(Highest { sequence: sequence.parse().ok()?, sha256: sha256.try_into().ok()? })
    };
    read().map(Some).ok_or_else(|| io::Error::other("it is damaged"))
}

/// Stores a number before its file is handed on. Then no lower number is accepted once the file is
/// in place, whenever the power fails. If the file is not handed on after all, the same file may be
/// sent again.
///
/// # Errors
/// The number cannot be stored.
pub(super) fn raise(store: &mut impl Store, to: &Highest) -> io::Result<()> {
    if highest(store)?.is_some_and(|highest| highest.sequence >= to.sequence) {
        return Ok(());
    }
    store.replace(format!("{} {}\n", to.sequence, hex(&to.sha256)).as_bytes())
}

/// Storage in a file in the folder of `--state`.
#[derive(Debug)]
pub(super) struct Stored {
    path: PathBuf,
    /// Held as long as this exists: two nodes with one number would each miss what the other
    /// stores.
    _lock: File,
}

impl Stored {
    /// Opens the number of the device with this name, in a folder that is created if missing.
    ///
    /// # Errors
    /// No folder is known, the first number cannot be stored, another node uses the number, or the
    /// stored number is damaged or unreadable. A full disk is no error if a number is stored: the
    /// node starts, and accepts no higher number until there is space.
    pub(super) fn open(folder: Option<&Path>, device: &str) -> Result<Self, Error> {
        let folder =
            folder.ok_or_else(|| Error::input("no state folder for sequence numbers").with_hint(NOWHERE))?;
        // The name contains the device, so devices that share the folder have separate numbers.
        let path = folder.join(format!("sequence-{device}"));
        let failed = |error: &io::Error, hint: &str| Error::input(at(&path, error)).with_hint(hint);
        let lock = fs::create_dir_all(folder).and_then(|()| {
            File::options().create(true).append(true).mode(MODE).open(companion(&path, "lock"))
        });
        let lock = lock.map_err(|error| failed(&error, UNWRITABLE))?;
        // Only a held lock is an error: some file systems do not support locks.
        if let Err(TryLockError::WouldBlock) = lock.try_lock() {
            let message = format!("{}: another node uses this file", path.display());
            return Err(Error::input(message).with_hint("give each node its own --state"));
        }
        let mut stored = Self { path: path.clone(), _lock: lock };
        let there = stored.read().map_err(|error| failed(&error, UNREADABLE))?;
        highest(&mut stored).map_err(|error| failed(&error, DAMAGED))?;
        // Write at the start, so that a disk that cannot store numbers is found before it is
        // needed.
        match stored.replace(there.as_deref().unwrap_or(NONE)) {
            Err(error) if there.is_none() => Err(failed(&error, UNWRITABLE)),
            Err(error) => {
                let message = format!("cannot store a higher number: {}; {UNWRITABLE}", at(&path, &error));
                Entry::warning("sequence number", message).write();
                Ok(stored)
            }
            Ok(()) => Ok(stored),
        }
    }

    /// See [`highest`].
    pub(super) fn highest(&mut self) -> io::Result<Option<Highest>> {
        highest(self).map_err(|error| self.named(&error))
    }

    /// See [`raise`].
    pub(super) fn raise(&mut self, to: &Highest) -> io::Result<()> {
        raise(self, to).map_err(|error| self.named(&error))
    }

    fn named(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), at(&self.path, error))
    }
}

// Hints for errors about the stored number. Each says when following it would let old files in.
const NOWHERE: &str =
    "set --state or HOME: without the stored number, the node would accept old files again after a restart";

const UNWRITABLE: &str = "free space in that folder and let the node's user write there; do not choose an empty folder: \
    the node would accept old files again";

const UNREADABLE: &str =
    "let the node's user read the file; do not remove it: without it the node accepts old files again";

const DAMAGED: &str =
    "restore it from a backup; if you remove it, the node accepts any number again, and so old files";

/// An error text that names the file.
fn at(path: &Path, error: &io::Error) -> String {
    format!("the sequence number in {}: {error}", path.display())
}

impl Store for Stored {
    fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        match fs::read(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    fn replace(&mut self, octets: &[u8]) -> io::Result<()> {
        replace(&self.path, octets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(folder: &Path, device: &str) -> Result<Stored, Error> {
        Stored::open(Some(&folder.join("state")), device)
    }

    #[test]
    fn a_number_is_there_after_a_restart_never_falls_and_a_damaged_one_is_not_taken_for_none() {
        let folder = tempfile::TempDir::new().unwrap();
        let open = |device| open(folder.path(), device);
        let at = |sequence, octet| Highest { sequence, sha256: [octet; 32] };
        assert_eq!(highest(&mut open("sensor").unwrap()).unwrap(), None);
        for (to, expected) in [(at(5, 1), at(5, 1)), (at(4, 2), at(5, 1)), (at(u64::MAX, 3), at(u64::MAX, 3))]
        {
            raise(&mut open("sensor").unwrap(), &to).unwrap();
            assert_eq!(highest(&mut open("sensor").unwrap()).unwrap(), Some(expected));
        }
        assert_eq!(highest(&mut open("pump").unwrap()).unwrap(), None);
        let file = folder.path().join("state/sequence-sensor");
        for damaged in [
            "",
            "none",
            "5",
            "5 00\n",
            "x 00\n",
            &format!("5 {}", "00".repeat(32)),
            &format!("5 {}\n", "é".repeat(32)),
        ] {
            fs::write(&file, damaged).unwrap();
            let error = open("sensor").unwrap_err().to_string();
            assert!(error.contains("sequence-sensor: it is damaged"), "{damaged}: {error}");
        }
        // The operator removes the damaged file.
        fs::remove_file(&file).unwrap();
        assert_eq!(highest(&mut open("sensor").unwrap()).unwrap(), None);
        assert!(Stored::open(None, "sensor").is_err());
        assert!(Stored::open(Some(&file), "sensor").is_err(), "not a folder");
    }

    #[test]
    fn one_number_belongs_to_one_node_at_a_time() {
        let folder = tempfile::TempDir::new().unwrap();
        let first = open(folder.path(), "sensor").unwrap();
        let error = open(folder.path(), "sensor").unwrap_err().to_string();
        assert!(error.contains("another node"), "{error}");
        open(folder.path(), "pump").unwrap();
        drop(first);
        open(folder.path(), "sensor").unwrap();
    }

    /// A component may have the name that another component's temporary file or lock would have if
    /// the separator were a dot.
    #[test]
    fn components_named_like_temporary_files_and_locks_keep_numbers_of_their_own() {
        let folder = tempfile::TempDir::new().unwrap();
        let names = ["firmware", "firmware.new", "firmware.lock", "firmware.new.new", "firmware-new", "."];
        let numbers = || (1..).zip(names);
        for _ in 0..2 {
            let mut all: Vec<_> = names.iter().map(|name| open(folder.path(), name).unwrap()).collect();
            for ((sequence, _), stored) in numbers().zip(&mut all) {
                stored.raise(&Highest { sequence, sha256: [1; 32] }).unwrap();
            }
            for ((sequence, name), stored) in numbers().zip(&mut all) {
                assert_eq!(stored.highest().unwrap().map(|it| it.sequence), Some(sequence), "{name}");
            }
        }
        // Component names cannot contain the plus sign of those files.
        let files = fs::read_dir(folder.path().join("state")).unwrap();
        let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let others = files.filter(|file| !names.iter().any(|name| *file == format!("sequence-{name}")));
        for other in others {
            let name = other.strip_prefix("sequence-").unwrap();
            assert!(name.parse::<crate::manifest::identifier::Component>().is_err(), "{other}");
        }
    }

    /// A full disk (here a path that cannot be written) does not prevent a node with a stored
    /// number from starting. The first number must be stored.
    #[test]
    fn a_number_that_is_whole_is_read_although_nothing_can_be_written() {
        let folder = tempfile::TempDir::new().unwrap();
        let number = |sequence| Highest { sequence, sha256: [1; 32] };
        open(folder.path(), "sensor").unwrap().raise(&number(9)).unwrap();
        for name in ["sensor", "pump"] {
            fs::create_dir(folder.path().join(format!("state/sequence-{name}+new"))).unwrap();
        }
        let mut stored = open(folder.path(), "sensor").unwrap();
        assert_eq!(stored.highest().unwrap(), Some(number(9)));
        stored.raise(&number(10)).unwrap_err();
        assert_eq!(stored.highest().unwrap(), Some(number(9)));
        let error = open(folder.path(), "pump").unwrap_err();
        assert!(error.to_string().contains("sequence-pump"), "{error}");
    }
}
