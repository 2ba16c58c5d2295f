//! Stores unfinished pushes: which file goes to which node, and under which transfer identifier.

use std::fs::{self, File, TryLockError};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anabranch_core::set::TransferId;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Arguments;
use crate::error::Error;
use crate::files::{is_read_once, usual_folder, write_private};
use crate::say;

/// An unfinished push.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Pending {
    node: String,
    path: PathBuf,
    sha256: String,
    bytes: u64,
    /// Transfer identifier in hexadecimal.
    transfer: String,
}

/// The file that stores one push. Without a place nothing is stored.
#[derive(Debug)]
pub(super) struct Memory {
    place: Option<PathBuf>,
    /// No earlier push was stored.
    fresh: bool,
    /// Locked while this push runs. A second push with the same identifier would end the sessions
    /// of the first, whose keys the node forgets at a new greeting.
    _lock: Option<File>,
}

impl Memory {
    /// Stores the push of `arguments.file` to `node`. Returns the transfer identifier to use: that
    /// of an interrupted push of the same file, or `new`.
    ///
    /// # Errors
    /// The file of `--state` cannot be written, or another push of the same transfer is in
    /// progress.
    pub(super) fn open(
        arguments: &Arguments,
        node: SocketAddr,
        (sha256, bytes): (&str, u64),
        new: TransferId,
    ) -> Result<(Self, TransferId), Error> {
        let nowhere = Self { place: None, fresh: true, _lock: None };
        // An input that can be read only once cannot be pushed again, and a pipe has no path of its
        // own.
        if is_read_once(&arguments.file) {
            return Ok((nowhere, new));
        }
        let Some(folder) = folder(arguments) else { return Ok((nowhere, new)) };
        let file = &arguments.file;
        let path = fs::canonicalize(file).map_err(|e| Error::unreadable(file, &e))?;
        if path.to_str().is_none() {
            // A path that is not UTF-8 has no JSON form.
            if !arguments.quiet {
                say!("an interrupted push cannot resume: the file's path is not UTF-8");
            }
            return Ok((nowhere, new));
        }
        let node = node.to_string();
        // One file per node and path. Its name is a hash, since paths contain slashes.
        let name = Sha256::digest([node.as_bytes(), b"\0", path.as_os_str().as_encoded_bytes()].concat());
        let name: String = name.iter().take(12).map(|o| format!("{o:02x}")).collect();
        let place = folder.join(format!("push-{name}.json"));
        // Take turns: of two pushes that start at once, the second must see what the first has
        // written.
        let _turn = fs::create_dir_all(&folder).and_then(|()| turn(&folder));
        let earlier = lock(&place)?;
        let pending = read(&place).map_err(|e| Error::unreadable(&place, &e))?;
        // The hash in the name is truncated, so compare node and path as well.
        let pending = pending.filter(|pending| pending.node == node && pending.path == path);
        if let (Some(pending), false) = (pending, arguments.restart) {
            if (pending.sha256.as_str(), pending.bytes) != (sha256, bytes) {
                let message = format!("{} has changed since a push of it was interrupted", path.display());
                let hint = "use `--restart` to push the new content, or restore the old file";
                return Err(Error::input(message).with_hint(hint));
            }
            if let Ok(id) = u64::from_str_radix(&pending.transfer, 16) {
                return Ok((Self { place: Some(place), fresh: false, _lock: earlier }, TransferId(id)));
            }
        }
        let transfer = format!("{:016x}", new.0);
        let pending = Pending { node, path, sha256: sha256.to_owned(), bytes, transfer };
        match write(&place, &pending) {
            Ok(()) => {
                let _lock = lock(&place)?;
                Ok((Self { place: Some(place), fresh: true, _lock }, new))
            }
            Err(error) if arguments.state.is_some() => Err(error),
            // The user did not ask for a state folder, so a failure is only a warning.
            Err(error) => {
                if !arguments.quiet {
                    say!("an interrupted push cannot resume: {error}");
                }
                Ok((nowhere, new))
            }
        }
    }

    /// Removes the stored push: it is delivered or cannot resume.
    pub(super) fn forget(&self) {
        if let Some(place) = &self.place {
            let _ = fs::remove_file(place);
        }
    }

    /// Removes the stored push if the node cannot hold any of its bytes, which is so unless an
    /// earlier push was stored.
    pub(super) fn forget_if_fresh(&self) {
        if self.fresh {
            self.forget();
        }
    }

    /// Whether an interrupted push could resume.
    pub(super) fn remembers(&self) -> bool {
        self.place.is_some()
    }
}

/// Waits for the lock of a folder. The lock is a private file, as those of pushes are: another user
/// who could open it could also lock it and block pushes.
fn turn(folder: &Path) -> io::Result<File> {
    let lock = File::options().create(true).append(true).mode(0o600).open(folder.join("push.lock"))?;
    lock.lock().map(|()| lock)
}

/// Locks a file, where the file system supports it.
///
/// # Errors
/// Another push holds the lock.
fn lock(place: &Path) -> Result<Option<File>, Error> {
    let Ok(file) = File::open(place) else { return Ok(None) };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            let message = "not delivered: another push of this file to this node is running";
            Err(Error::job(message)
                .with_hint("wait until it ends, or stop it, then repeat the command to resume"))
        }
        Ok(()) | Err(TryLockError::Error(_)) => Ok(Some(file)),
    }
}

fn read(place: &Path) -> io::Result<Option<Pending>> {
    match fs::read(place) {
        // Content that this program did not write is ignored.
        Ok(octets) => Ok(serde_json::from_slice(&octets).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn write(place: &Path, pending: &Pending) -> Result<(), Error> {
    let folder = place.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|e| Error::unwritable(folder, &e))?;
    write_private(place, &serde_json::to_vec(pending).expect("plain data"))
}

/// The folder for stored pushes; `None` with `--no-resume` or without a home folder.
pub(super) fn folder(arguments: &Arguments) -> Option<PathBuf> {
    if arguments.no_resume { None } else { arguments.state.clone().or_else(usual_folder) }
}
