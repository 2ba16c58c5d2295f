//! Reading and writing of the files that the command line names.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, Metadata, Permissions};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anabranch_secure::FileDigest;
use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::error::Error;

/// Reads a whole file; `-` is standard input.
pub fn read(path: &Path) -> Result<Bytes, Error> {
    let octets = if path == Path::new("-") {
        let mut octets = Vec::new();
        io::stdin().lock().read_to_end(&mut octets).map(|_| octets)
    } else {
        fs::read(path)
    };
    octets
        .map(Bytes::from)
        .map_err(|e| Error::unreadable(path, &e).with_hint("give a file that you can read"))
}

/// Checks that a file can be created at `path`, without leaving one behind.
pub fn check_writable(path: &Path) -> Result<(), Error> {
    if path.is_dir() {
        return Err(Error::input(format!("cannot write {}: it is a directory", path.display()))
            .with_hint("name a file in this directory"));
    }
    let tried =
        if is_in_place(path) { open_in_place(path).map(drop) } else { Temporary::beside(path).map(drop) };
    tried.map_err(|e| Error::unwritable(path, &e))
}

/// Refuses outputs that would replace an input or each other, before any of them is opened.
///
/// An input comes with its description, an output with its option. Devices and pipes are written in
/// place, so several outputs may share one.
///
/// # Errors
/// The first output that is an input, or the first two outputs that are the same file.
pub fn check_apart<'a>(
    inputs: impl IntoIterator<Item = (&'a str, &'a Path)>,
    outputs: impl IntoIterator<Item = (&'a str, &'a Path)>,
) -> Result<(), Error> {
    let inputs: Vec<_> = inputs.into_iter().map(|(what, path)| (what, path, Identity::of(path))).collect();
    let mut others: Vec<(&str, Identity)> = Vec::new();
    for (option, path) in outputs.into_iter().filter(|(_, path)| !is_special(path)) {
        let identity = Identity::of(path);
        if let Some((what, input, _)) = inputs.iter().find(|(.., input)| *input == identity) {
            let message = format!("{option} {} would overwrite {what} {}", path.display(), input.display());
            return Err(Error::input(message).with_hint(format!("name another file with {option}")));
        }
        if let Some((other, _)) = others.iter().find(|(_, other)| *other == identity) {
            let message = format!("{other} and {option} name the same file, {}", path.display());
            return Err(Error::input(message).with_hint("give a separate file for each output"));
        }
        others.push((option, identity));
    }
    Ok(())
}

/// Limit on symbolic links followed to a file that does not exist yet, as in Linux
/// (path_resolution(7)).
const MAX_LINKS: usize = 40;

/// Identity of a file: equal for two paths that name the same file.
#[derive(PartialEq, Eq, Debug)]
enum Identity {
    /// Device and inode of an existing file; hard links share them.
    There(u64, u64),
    /// Path of a file that does not exist yet, in the canonical path of its folder.
    New(PathBuf),
}

impl Identity {
    fn of(path: &Path) -> Self {
        if let Ok(there) = path.metadata() {
            return Self::There(there.dev(), there.ino());
        }
        // Writing through a dangling link creates the file that the link names.
        let mut path = path.to_owned();
        for _ in 0..MAX_LINKS {
            let Ok(target) = path.read_link() else { break };
            path = folder(&path).join(target);
        }
        let place = folder(&path).canonicalize().ok();
        Self::New(match (place, path.file_name()) {
            (Some(place), Some(name)) => place.join(name),
            _ => path,
        })
    }
}

/// Whether the path is a device, a pipe or a socket. Such a file is written in place, and never
/// replaced or removed.
pub fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| !m.is_file())
}

/// Whether the input can be read only once: `-` (standard input), or a file for which
/// [`is_special`] is true.
pub fn is_read_once(path: &Path) -> bool {
    path == Path::new("-") || is_special(path)
}

/// Whether the output is written in place: a special file ([`is_special`]), or an open descriptor
/// by its name, such as `/dev/stdout`. A descriptor may lead to a regular file that the shell has
/// opened; replacing that file would disconnect it from the shell.
pub fn is_in_place(path: &Path) -> bool {
    is_special(path) || is_descriptor(path)
}

/// Whether the path is in `/proc`, or is a link to such a path.
fn is_descriptor(path: &Path) -> bool {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        if folder(&path).canonicalize().is_ok_and(|folder| folder.starts_with("/proc")) {
            return true;
        }
        let Ok(target) = path.read_link() else { break };
        path = folder(&path).join(target);
    }
    false
}

/// Opens an output for which [`is_in_place`] is true.
///
/// # Errors
/// The file cannot be opened for writing.
pub fn open_in_place(path: &Path) -> io::Result<File> {
    // Use the descriptor that the shell opened: it keeps its offset. A new descriptor would start
    // at offset 0 and overwrite earlier output.
    let own = [io::stdout().as_fd().try_clone_to_owned(), io::stderr().as_fd().try_clone_to_owned()];
    let own = own.into_iter().filter_map(Result::ok).map(File::from).filter(|_| is_descriptor(path));
    let there = path.metadata()?;
    for file in own {
        if file.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (there.dev(), there.ino())) {
            return Ok(file);
        }
    }
    File::options().write(true).open(path)
}

/// Writes a file that appears under its name only when it is complete.
pub fn write_whole(path: &Path, octets: &[u8]) -> Result<(), Error> {
    let mut file = Whole::open(path).map_err(|e| unwritten(path, &e))?;
    file.write_all(octets).map_err(|e| unwritten(path, &e))?;
    file.keep()
}

/// Like [`write_whole`], for a file that only its owner may open.
pub(crate) fn write_private(path: &Path, octets: &[u8]) -> Result<(), Error> {
    let written = Temporary::beside(path).and_then(|mut file| {
        file.write_all(octets)?;
        file.place_private()
    });
    written.map_err(|e| unwritten(path, &e))
}

fn unwritten(path: &Path, error: &io::Error) -> Error {
    Error::job(format!("cannot write {}: {error}", path.display()))
}

/// The default folder for state: `$XDG_STATE_HOME/anabranch`, or `~/.local/state/anabranch`. `None`
/// without a home folder.
pub(crate) fn usual_folder() -> Option<PathBuf> {
    let said = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = said("XDG_STATE_HOME").or_else(|| said("HOME").map(|home| home.join(".local/state")))?;
    Some(base.join("anabranch"))
}

/// Gives a private file the permissions of the file that it replaces, or those of the umask if
/// there is none.
pub fn hand_over(file: &File, place: &Path) -> io::Result<()> {
    let there = place.metadata().ok().filter(Metadata::is_file);
    let mode = there.map_or_else(|| 0o666 & !umask(), |file| file.permissions().mode() & 0o777);
    file.set_permissions(Permissions::from_mode(mode))
}

/// The process's umask. `umask(2)` can only read it by changing it, so it is read from `/proc`
/// (proc_pid_status(5)).
fn umask() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let said = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    said.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o077)
}

/// A temporary file beside its final place, readable only by its owner. It is removed on drop
/// unless it was moved to that place.
///
/// The crate `tempfile` would do as well, but adds three crates to the small programs.
#[derive(Debug)]
pub struct Temporary {
    file: File,
    /// Path of the temporary file; `None` once it has been moved.
    path: Option<PathBuf>,
    place: PathBuf,
}

/// Opens a file without a name, which disappears with the process.
///
/// # Errors
/// The folder is missing or not writable.
pub(crate) fn nameless(folder: &Path) -> io::Result<File> {
    // Dropping the temporary file removes its name. The clone keeps the open file; opening it by
    // name could reach another file.
    Temporary::beside(&folder.join("input"))?.file.try_clone()
}

/// Limit on the random names that are tried; each has 64 random bits.
const NAMES: usize = 100;

impl Temporary {
    /// Creates a file beside `place`, under a new random name.
    ///
    /// # Errors
    /// The folder is missing or not writable.
    pub fn beside(place: &Path) -> io::Result<Self> {
        for _ in 0..NAMES {
            // The standard library seeds each `RandomState` differently, which is random enough for
            // a name.
            let number = RandomState::new().build_hasher().finish();
            let path = folder(place).join(format!(".anabranch-{number:016x}.tmp"));
            // `create_new` never writes to an existing file or through a link.
            match File::options().read(true).write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => return Ok(Self { file, path: Some(path), place: place.to_owned() }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Syncs the file and moves it to its place, with the permissions of the file that it replaces.
    ///
    /// # Errors
    /// The disk failed; the temporary file is removed.
    pub fn place(self) -> io::Result<()> {
        hand_over(&self.file, &self.place)?;
        self.place_private()
    }

    /// Like [`Temporary::place`], but only the file's owner may open the file.
    fn place_private(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        if let Some(path) = &self.path {
            fs::rename(path, &self.place)?;
        }
        // Another process may use the temporary name from now on, so drop must not remove it.
        self.path = None;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

impl Write for Temporary {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.file.write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// An output file that appears under its name only when it is complete.
#[derive(Debug)]
pub struct Whole {
    path: PathBuf,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Beside(Temporary),
    /// An output that is written in place: see [`is_in_place`].
    There(File),
}

impl Whole {
    /// Creates the file, before the work that fills it.
    pub fn create(path: &Path) -> Result<Self, Error> {
        Self::open(path).map_err(|e| Error::unwritable(path, &e))
    }

    fn open(path: &Path) -> io::Result<Self> {
        let place = if is_in_place(path) {
            Place::There(open_in_place(path)?)
        } else {
            Place::Beside(Temporary::beside(path)?)
        };
        Ok(Self { path: path.to_owned(), place })
    }

    /// Completes the file: gives it its name.
    pub fn keep(self) -> Result<(), Error> {
        let failed = |e: io::Error| unwritten(&self.path, &e);
        match self.place {
            Place::Beside(file) => file.place().map_err(failed),
            Place::There(_) => Ok(()),
        }
    }
}

impl Write for Whole {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        match &mut self.place {
            Place::Beside(file) => file.write(octets),
            Place::There(file) => file.write(octets),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.place {
            Place::Beside(file) => file.flush(),
            Place::There(file) => file.flush(),
        }
    }
}

/// The folder that contains `path`.
pub fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Reads a file once to compute its digest, and returns the open file with it.
pub fn digest(path: &Path) -> Result<(File, FileDigest), Error> {
    let unreadable = |e: io::Error| Error::unreadable(path, &e).with_hint("give a file that you can read");
    let mut file = File::open(path).map_err(unreadable)?;
    let (mut sha256, mut length, mut octets) = (Sha256::new(), 0, vec![0; 64 << 10]);
    loop {
        match file.read(&mut octets).map_err(unreadable)? {
            0 => return Ok((file, FileDigest { length, sha256: sha256.finalize().into() })),
            n => {
                sha256.update(&octets[..n]);
                length += n as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let all = fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").file_name());
        let mut names: Vec<String> = all.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn outputs_are_apart_from_inputs_and_from_each_other_under_every_name() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("in"), "in").expect("room");
        fs::write(at("old"), "old").expect("room");
        fs::create_dir(at("sub")).expect("room");
        fs::hard_link(at("in"), at("hard")).expect("a file system with hard links");
        for (target, link) in [("in", "soft"), ("soft", "softer"), ("new", "hanging"), (".", "same")] {
            std::os::unix::fs::symlink(target, at(link)).expect("a file system with links");
        }
        let check = |outputs: [&str; 2]| {
            let outputs = outputs.map(at);
            let said = check_apart(
                [("the input", at("in").as_path())],
                ["-a", "-b"].into_iter().zip(outputs.iter().map(PathBuf::as_path)),
            );
            said.map_err(|error| error.to_string())
        };
        for name in ["in", "hard", "soft", "softer", "./in", "sub/../in", "same/hard"] {
            let error = check(["new", name]).expect_err(name);
            assert!(error.contains("-b ") && error.contains("would overwrite the input"), "{name}: {error}");
        }
        for names in
            [["new", "new"], ["new", "./new"], ["new", "same/new"], ["hanging", "new"], ["old", "sub/../old"]]
        {
            let error = check(names).expect_err("one file");
            assert!(error.contains("-a and -b name the same file"), "{names:?}: {error}");
        }
        for names in [["new", "old"], ["sub/in", "in2"], ["none/a", "none/b"]] {
            assert_eq!(check(names), Ok(()), "{names:?}");
        }
        let null = Path::new("/dev/null");
        assert!(check_apart([("the input", null)], [("-a", null), ("-b", null)]).is_ok());
    }

    #[test]
    fn a_descriptor_by_its_name_is_written_to_where_it_stands() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        let open = File::create(&file).expect("room");
        let name = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&open));
        std::os::unix::fs::symlink(&name, &link).expect("a file system with links");
        for name in [Path::new(&name), &link, Path::new("/dev/stdout"), Path::new("/dev/fd/2")] {
            assert!(is_in_place(name), "{name:?}");
        }
        assert!(!is_in_place(&file) && !is_in_place(&folder.path().join("new")));
        write_whole(&link, b"octets").expect("room");
        assert_eq!(fs::read(&file).expect("it is there"), b"octets");
        assert_eq!(names(folder.path()), ["file", "link"]);
        assert!(link.is_symlink());
    }

    #[test]
    fn a_nameless_file_leaves_no_name_and_can_be_read_back() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let mut file = nameless(folder.path()).expect("room");
        assert!(names(folder.path()).is_empty());
        file.write_all(b"octets").expect("room");
        io::Seek::rewind(&mut file).expect("a file");
        assert_eq!(io::read_to_string(file).expect("text"), "octets");
    }

    #[test]
    fn a_private_file_is_its_owners_alone_also_in_the_place_of_another() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let place = folder.path().join("file");
        fs::write(&place, "old").expect("room");
        fs::set_permissions(&place, Permissions::from_mode(0o666)).expect("it is ours");
        write_private(&place, b"new").expect("room");
        assert_eq!(fs::read(&place).expect("it is there"), b"new");
        assert_eq!(place.metadata().expect("it is there").mode() & 0o777, 0o600);
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[test]
    fn a_temporary_file_takes_its_place_whole_or_goes_away() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let place = folder.path().join("file");
        let mut first = Temporary::beside(&place).expect("room");
        let second = Temporary::beside(&place).expect("two at once have names of their own");
        assert_eq!(names(folder.path()).len(), 2);
        first.write_all(b"octets").expect("room");
        let mode = first.file.metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "an incomplete file is readable by its owner only");
        drop(second);
        first.place().expect("room");
        assert_eq!(names(folder.path()), ["file"]);
        assert_eq!(fs::read(&place).expect("it is there"), b"octets");
        assert!(Temporary::beside(&folder.path().join("none/file")).is_err());
    }
}
