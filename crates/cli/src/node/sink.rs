//! Where a node's octets go: a file, standard output, or a command.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anabranch_net::set::{Offer, Sink, Verdict};
use bytes::Bytes;
use rustix::process::{Pid, Signal, kill_process_group};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

use crate::error::Error;
use crate::files::{check_writable, folder, is_special};

/// A node's output.
#[derive(Debug)]
pub(crate) struct Output {
    to: To,
    sha256: Sha256,
}

#[derive(Debug)]
enum To {
    /// A file that is there whole or not at all.
    File {
        path: PathBuf,
        unfinished: Option<NamedTempFile>,
    },
    /// A device or a pipe: it is written to where it stands.
    Special {
        path: PathBuf,
        file: Option<File>,
    },
    Stdout,
    Command {
        text: String,
        running: Option<Running>,
    },
}

/// A command, with all that it has started. It is killed when this is dropped: the end of its input would look like the end
/// of the file.
#[derive(Debug)]
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // `None` once it has ended: then the number may be somebody else's.
        let id = self.0.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(group) = id {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Output {
    /// A command if there is one, a file otherwise.
    pub(crate) fn new(out: Option<&Path>, pipe: Option<&str>) -> Result<Self, Error> {
        let to = match (out, pipe) {
            (_, Some(text)) => To::Command { text: text.to_owned(), running: None },
            (Some(path), None) if path == Path::new("-") => To::Stdout,
            (Some(path), None) => {
                check_writable(path)?;
                let path = path.to_owned();
                match is_special(&path) {
                    true => To::Special { path, file: None },
                    false => To::File { path, unfinished: None },
                }
            }
            (None, None) => return Err(Error::input("neither --out nor --pipe says where the octets go")),
        };
        Ok(Self { to, sha256: Sha256::new() })
    }

    /// Of what has come of the present file.
    pub(crate) fn sha256(&self) -> String {
        self.sha256.clone().finalize().iter().map(|o| format!("{o:02x}")).collect()
    }
}

impl Sink for Output {
    async fn begin(&mut self, offer: &Offer) -> io::Result<Verdict> {
        self.sha256 = Sha256::new();
        match &mut self.to {
            To::File { path, unfinished } => *unfinished = Some(NamedTempFile::new_in(folder(path))?),
            To::Special { path, file } => *file = Some(File::options().write(true).open(path)?),
            To::Stdout => {}
            To::Command { text, running } => {
                let mut command = Command::new("sh");
                command.args(["-c", text]).env("ANABRANCH_TRANSFER", format!("{:016x}", offer.transfer.0));
                *running = Some(Running(command.stdin(Stdio::piped()).process_group(0).spawn()?));
            }
        }
        Ok(Verdict::From(0))
    }

    async fn write(&mut self, octets: Bytes) -> io::Result<()> {
        self.sha256.update(&octets);
        match &mut self.to {
            To::File { unfinished, .. } => begun(unfinished)?.write_all(&octets),
            To::Special { file, .. } => begun(file)?.write_all(&octets),
            To::Stdout => io::stdout().lock().write_all(&octets),
            To::Command { running, .. } => begun(&mut begun(running)?.0.stdin)?.write_all(&octets).await,
        }
    }

    async fn finish(&mut self) -> io::Result<()> {
        match &mut self.to {
            To::File { path, unfinished } => {
                let file = unfinished.take().ok_or(io::ErrorKind::NotFound)?;
                file.as_file().sync_all()?;
                file.persist(&*path)?;
                // The name is there after a power cut once the folder is written.
                File::open(folder(path))?.sync_all()
            }
            To::Special { file, .. } => {
                *file = None;
                Ok(())
            }
            To::Stdout => io::stdout().lock().flush(),
            To::Command { running, .. } => {
                let mut running = running.take().ok_or(io::ErrorKind::NotFound)?;
                drop(running.0.stdin.take());
                let status = running.0.wait().await?;
                if status.success() {
                    Ok(())
                } else {
                    Err(io::Error::other(format!("it ended with {status}")))
                }
            }
        }
    }

    fn abandon(&mut self) {
        match &mut self.to {
            To::File { unfinished, .. } => *unfinished = None,
            To::Special { file, .. } => *file = None,
            To::Stdout => {}
            To::Command { running, .. } => *running = None,
        }
    }
}

/// What `begin` has made.
fn begun<T>(made: &mut Option<T>) -> io::Result<&mut T> {
    made.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.to {
            To::File { path, .. } | To::Special { path, .. } => write!(f, "{}", path.display()),
            To::Stdout => write!(f, "standard output"),
            To::Command { text, .. } => write!(f, "`{text}`"),
        }
    }
}
