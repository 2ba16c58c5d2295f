//! The old settings of sockets, on disk, for restoring them when this process is killed.
//!
//! A file holds the sockets of one process of this command, whose number is its name. A second
//! process, the guard, waits for the end of the first and restores what is in its file. If both are
//! killed, the next start or `--restore` does.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use anabranch_net::sockbuf::{Restored, Saved, Settings, restore, started};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::log::Entry;

/// Content of a file.
#[derive(Debug, Serialize, Deserialize)]
struct Content {
    /// When the process that wrote it was started.
    owner_started: u64,
    /// The processes that it tunes.
    pids: Vec<u32>,
    sockets: Vec<Socket>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Socket {
    pid: u32,
    started: u64,
    cookie: u64,
    send_buffer: u64,
    locked: bool,
    unsent_mark: u64,
}

impl From<&Saved> for Socket {
    fn from(saved: &Saved) -> Self {
        let Saved { pid, started, cookie, settings } = *saved;
        let Settings { send_buffer, locked, unsent_mark } = settings;
        Self { pid, started, cookie, send_buffer, locked, unsent_mark }
    }
}

impl From<&Socket> for Saved {
    fn from(socket: &Socket) -> Self {
        let Socket { pid, started, cookie, send_buffer, locked, unsent_mark } = *socket;
        Self { pid, started, cookie, settings: Settings { send_buffer, locked, unsent_mark } }
    }
}

/// The folder of the files.
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Opens the folder, or makes it for this user only.
    pub(super) fn open(given: Option<&Path>) -> Result<Self, Error> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let usual = || {
            let of_root =
                || rustix::process::geteuid().is_root().then(|| PathBuf::from("/run/anabranch-tune"));
            let of_user = || variable("XDG_RUNTIME_DIR").map(|folder| folder.join("anabranch-tune"));
            variable("RUNTIME_DIRECTORY").or_else(of_root).or_else(of_user)
        };
        let path = given.map(Path::to_owned).or_else(usual).ok_or_else(|| {
            Error::input("there is no folder for the old settings of the sockets")
                .with_hint("give --state DIR")
        })?;
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|error| {
            Error::input(format!("cannot make {}: {error}", path.display()))
                .with_hint("set --state to a folder that this user can write")
        })?;
        // The owner of the folder decides what is restored.
        let owner = fs::metadata(&path).map_err(|error| Error::unreadable(&path, &error))?.uid();
        if owner != rustix::process::geteuid().as_raw() {
            return Err(Error::input(format!("{} belongs to another user", path.display()))
                .with_hint("set --state to a folder of this user"));
        }
        Ok(Self(path))
    }

    /// Restores the sockets of processes of this command that have ended.
    pub(super) fn restore_abandoned(&self) -> Result<Restored, Error> {
        let mut total = Restored::default();
        for (path, content) in self.files()?.into_iter().filter(|(path, content)| !is_owned(path, content)) {
            let restored = restore_file(&path, &content);
            log(restored);
            total.sockets += restored.sockets;
            total.closed += restored.closed;
            total.locked += restored.locked;
        }
        Ok(total)
    }

    /// Refuses processes whose sockets another process of this command manages.
    pub(super) fn refuse_tuned(&self, pids: &[u32]) -> Result<(), Error> {
        for (path, content) in self.files()? {
            if let Some(pid) = content.pids.iter().find(|pid| pids.contains(pid)) {
                let owner = owner(&path).unwrap_or_default();
                return Err(Error::input(format!("process {owner} already tunes process {pid}"))
                    .with_hint("stop it first, or give it both --pid options"));
            }
        }
        Ok(())
    }

    fn files(&self) -> Result<Vec<(PathBuf, Content)>, Error> {
        let entries = fs::read_dir(&self.0).map_err(|error| Error::unreadable(&self.0, &error))?;
        let mut files = Vec::new();
        for path in entries.flatten().map(|entry| entry.path()).filter(|path| owner(path).is_some()) {
            match read(&path) {
                Ok(Some(content)) => files.push((path, content)),
                // Its owner has removed it meanwhile.
                Ok(None) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(files)
    }
}

/// The process that wrote a file.
fn owner(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.strip_suffix(SUFFIX)?.parse().ok()
}

fn is_owned(path: &Path, content: &Content) -> bool {
    owner(path).is_some_and(|pid| started(pid).is_ok_and(|started| started == content.owner_started))
}

fn read(path: &Path) -> Result<Option<Content>, Error> {
    match fs::read(path) {
        Ok(octets) => serde_json::from_slice(&octets).map(Some).map_err(|error| {
            Error::input(format!("{} is damaged: {error}", path.display()))
                .with_hint("remove it; the sockets in it keep their buffers")
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::unreadable(path, &error)),
    }
}

fn restore_file(path: &Path, content: &Content) -> Restored {
    let saved: Vec<Saved> = content.sockets.iter().map(Saved::from).collect();
    let restored = restore(&saved);
    remove(path);
    restored
}

/// Logs what was restored.
pub(super) fn log(restored: Restored) {
    let Restored { sockets, closed, locked } = restored;
    let entry = Entry::info("restored", format!("restored {sockets} sockets; {closed} are closed"));
    entry.with("sockets", sockets).with("closed", closed).write();
    if locked > 0 {
        let text = format!("{locked} sockets keep a fixed size, which the kernel no longer tunes");
        Entry::warning("locked", text).hinted("Linux 5.18 and newer can undo this").write();
    }
}

/// The file of this process, and the process that restores it if this one is killed.
pub(super) struct Guard {
    path: PathBuf,
    owner_started: u64,
    pids: Vec<u32>,
    child: Child,
    stdin: Option<ChildStdin>,
}

impl Guard {
    pub(super) fn start(folder: &Folder, pids: &[u32]) -> Result<Self, Error> {
        let own = std::process::id();
        let path = folder.0.join(format!("{own}{SUFFIX}"));
        let path = std::path::absolute(&path).map_err(|error| Error::unwritable(&path, &error))?;
        let missing = |error: io::Error| Error::missing(format!("cannot start the guard: {error}"));
        let owner_started = started(own).map_err(missing)?;
        let mut command = Command::new("/proc/self/exe");
        command.arg0(std::env::args_os().next().unwrap_or_default());
        command.arg("--guard").arg(&path).stdin(Stdio::piped()).stdout(Stdio::null());
        // A signal of the terminal to our process group does not end it.
        let mut child = command.current_dir("/").process_group(0).spawn().map_err(missing)?;
        let stdin = child.stdin.take();
        let guard = Self { path, owner_started, pids: pids.to_vec(), child, stdin };
        guard.save(&[]).map_err(|error| Error::unwritable(&guard.path, &error))?;
        Ok(guard)
    }

    /// Writes the old settings of all sockets.
    pub(super) fn save(&self, saved: &[Saved]) -> io::Result<()> {
        let sockets = saved.iter().map(Socket::from).collect();
        let (owner_started, pids) = (self.owner_started, self.pids.clone());
        let content = Content { owner_started, pids, sockets };
        let octets = serde_json::to_vec(&content).expect("numbers");
        // It is not synced: it survives the end of this process, and no socket survives that of the
        // kernel. Its unfinished name is known, so that the guard can remove it.
        let new = unfinished(&self.path);
        File::options().write(true).create(true).truncate(true).mode(0o600).open(&new)?.write_all(&octets)?;
        fs::rename(new, &self.path)
    }

    /// The sockets are restored: removes the file, and waits for the end of the guard.
    pub(super) fn dismiss(&mut self) {
        remove(&self.path);
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}

/// Waits until the owner of a file has ended, then restores the sockets of the file, if it is still
/// there.
pub(super) fn guard(path: &Path) -> Result<(), Error> {
    let mut octets = Vec::new();
    // Nothing is written to the pipe. It ends with the process that holds its other end.
    let _ = io::stdin().lock().read_to_end(&mut octets);
    match read(path)? {
        Some(content) => log(restore_file(path, &content)),
        None => remove(path),
    }
    Ok(())
}

/// The name of a file while it is written.
fn unfinished(path: &Path) -> PathBuf {
    path.with_extension("new")
}

fn remove(path: &Path) {
    let _ = fs::remove_file(unfinished(path));
    let _ = fs::remove_file(path);
}

/// Ending of the names of the files.
const SUFFIX: &str = ".sockets";
