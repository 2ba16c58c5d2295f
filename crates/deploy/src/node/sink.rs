//! Output of a node: a file, standard output, or a command.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anabranch_core::set::{RefuseReason, TransferId};
use anabranch_net::set::{Offer, Refusal, Sink, Verdict};
use anabranch_secure::VerifyingKey;
use bytes::Bytes;
use rustix::process::{Pid, Signal, kill_process_group};
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::time::{Duration, Instant};

use super::device::{Admission, OwnDevice, Signers};
use super::disk::Beside;
use super::journal::{Found, Journal, Subject};
use crate::error::Error;
use crate::files::{Temporary, check_writable, folder, is_in_place, open_in_place};
use crate::mcuboot::{self, BadImage};
use crate::output::hex;

/// Output of a node.
#[derive(Debug)]
pub(super) struct Output {
    to: To,
    admission: Admission,
    /// Check of complete files before they are handed on.
    images: Images,
    limits: Limits,
    /// Why the last file was refused, as text for the operator.
    refusal: Option<String>,
    /// SHA-256 that the sender announced for the current file.
    expected: Option<[u8; 32]>,
    /// The current file.
    coming: Option<Coming>,
    sha256: Sha256,
}

/// Which files are handed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Images {
    Any,
    /// Only complete images for the boot loader MCUboot, of the same or a later version than the
    /// image in place.
    Mcuboot,
}

impl Images {
    /// Checks a complete file before it is handed on.
    ///
    /// # Errors
    /// A [`Refusal`], after which the file is discarded, or the disk failed.
    fn look_at(self, partial: &mut Partial, place: Option<&Path>) -> io::Result<()> {
        if self == Self::Any {
            return Ok(());
        }
        let mut part = File::open(partial.journal.disk().part())?;
        let refusal = match mcuboot::check(&mut part, partial.subject.length) {
            Err(BadImage::Read(error)) => return Err(error),
            Err(error) => Refusal { reason: RefuseReason::Image, message: error.to_string() },
            Ok(image) => {
                let there = place.map_or(Ok(None), image_in)?;
                match there {
                    Some(there) if there.version > image.version => Refusal {
                        reason: RefuseReason::Rollback,
                        message: format!(
                            "version {} is lower than the installed {}",
                            image.version, there.version
                        ),
                    },
                    _ => return Ok(()),
                }
            }
        };
        partial.journal.throw_away()?;
        Err(refusal.into())
    }
}

/// The image in `place`; `None` if there is no file, or a file that is no image, which any image
/// may replace.
///
/// # Errors
/// The file cannot be read, so it is unknown whether the new image is older.
fn image_in(place: &Path) -> io::Result<Option<mcuboot::Image>> {
    let unread = |error: io::Error| {
        let message = format!(
            "cannot read the version of the image in {}: {error}; let the node's user read the file, or remove it to accept any version",
            place.display()
        );
        io::Error::new(error.kind(), message)
    };
    let mut file = match File::open(place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(unread)?,
    };
    match mcuboot::header(&mut file) {
        Ok(image) => Ok(Some(image)),
        Err(BadImage::Read(error)) => Err(unread(error)),
        Err(BadImage::Not(_)) => Ok(None),
    }
}

const WHOLE: &str = "use --out FILE, or --pipe with --spool";

/// Limits on files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Maximum length of a file, in bytes.
    pub(super) size: u64,
    /// Disk space to leave free, in bytes.
    pub(super) reserve: u64,
}

/// Space for a journal and for its replacement, in bytes.
const JOURNALS: u64 = 128 << 10;

impl Limits {
    /// Whether `folder` has space for a file of `length` bytes, counting the blocks that `part`
    /// already occupies.
    ///
    /// # Errors
    /// The outer error: the disk cannot be examined. The inner error: the figures of a disk without
    /// enough space.
    fn leave_room(&self, length: u64, folder: &Path, part: &Path) -> io::Result<Result<(), String>> {
        let occupied = part.metadata().map_or(0, |part| part.blocks() * 512);
        let there = free(folder)?.saturating_add(occupied);
        let needed = length.saturating_add(JOURNALS).saturating_add(self.reserve);
        Ok(if needed <= there { Ok(()) } else { Err(self.shortage(length, folder, there)) })
    }

    fn shortage(&self, length: u64, folder: &Path, there: u64) -> String {
        let (folder, reserve) = (folder.display(), self.reserve);
        format!(
            "{folder} has room for {there} bytes, less than the file needs: {length} bytes, {JOURNALS} for journals and --reserve {reserve}"
        )
    }
}

/// Disk space in `folder` that this user may fill, in bytes.
pub(super) fn free(folder: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(folder)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Destination of files.
#[derive(Debug)]
enum To {
    /// A regular file, replaced only when the new one is complete.
    File(PathBuf),
    /// A device, a pipe or an open descriptor, written in place.
    Special(PathBuf),
    Stdout,
    Command {
        text: String,
        /// Path at which a file with a known digest is collected before the command starts.
        spool: Option<PathBuf>,
    },
}

/// Where the bytes of the current file go until it is complete.
#[derive(Debug)]
enum Coming {
    /// A temporary file, which is lost if the transfer is interrupted.
    Temporary(Temporary),
    /// A part with a journal, which survives an interruption.
    Kept(Partial),
    /// The file was handed on earlier; only its sender does not know.
    Done,
    Special(File),
    Stdout,
    Command(Running),
}

/// The received part of a resumable file. Dropping it makes a last checkpoint.
#[derive(Debug)]
struct Partial {
    journal: Journal<Beside>,
    subject: Subject,
    /// When the last checkpoint ended, and how long it took.
    checkpoint: Instant,
    took: Duration,
}

/// Bytes, or time, between checkpoints: at most this much must be sent again after a power cut.
const CHECKPOINT_EVERY: u64 = 1 << 20;
const CHECKPOINT_AFTER: Duration = Duration::from_secs(1);
/// Between two checkpoints a slow disk gets at least this multiple of the time that a checkpoint
/// takes. Otherwise it would spend most of its time on checkpoints.
const CHECKPOINT_PART: u32 = 8;

impl Partial {
    fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        self.journal.write(octets)?;
        let since = self.checkpoint.elapsed();
        let much = self.journal.uncertain() >= CHECKPOINT_EVERY && since >= self.took * CHECKPOINT_PART;
        if much || since >= CHECKPOINT_AFTER {
            let began = Instant::now();
            self.journal.checkpoint()?;
            self.checkpoint = Instant::now();
            self.took = self.checkpoint.saturating_duration_since(began);
        }
        Ok(())
    }

    /// Checks a complete file against its announced digest.
    ///
    /// # Errors
    /// The digest differs and the file is discarded, or the disk failed.
    fn verify(&mut self, digest: [u8; 32]) -> io::Result<()> {
        self.journal.checkpoint()?;
        if digest == self.subject.digest {
            return Ok(());
        }
        self.journal.throw_away()?;
        let (said, found) = (hex(&self.subject.digest), hex(&digest));
        let message = format!("SHA-256 mismatch: received {found}, announced {said}");
        Err(io::Error::new(io::ErrorKind::InvalidData, message))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // If the checkpoint fails, the last one counts and more is sent again.
        let _ = self.journal.checkpoint();
        let _ = self.journal.release();
    }
}

/// A running command with its process group. Dropping it kills the group: closing the input instead
/// would look like the end of the file.
#[derive(Debug)]
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // `None` after the process has ended: its number may then belong to another process.
        let id = self.0.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(group) = id {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Output {
    /// Creates an output to a command, or without one to a file.
    pub(super) fn new(out: Option<&Path>, pipe: Option<&str>, spool: Option<&Path>) -> Result<Self, Error> {
        let to = match (out, pipe) {
            (_, Some(text)) => {
                let spool = spool.map(|folder| folder.join("spool"));
                spool.as_deref().map_or(Ok(()), check_writable)?;
                To::Command { text: text.to_owned(), spool }
            }
            (Some(path), None) if path == Path::new("-") => To::Stdout,
            (Some(path), None) => {
                check_writable(path)?;
                match is_in_place(path) {
                    true => To::Special(path.to_owned()),
                    false => To::File(path.to_owned()),
                }
            }
            (None, None) => {
                return Err(Error::input("neither --out nor --pipe given: no place for the file"));
            }
        };
        let limits = Limits { size: u64::MAX, reserve: 0 };
        Ok(Self {
            to,
            admission: Admission::default(),
            images: Images::Any,
            limits,
            refusal: None,
            expected: None,
            coming: None,
            sha256: Sha256::new(),
        })
    }

    /// Releases the disk space that a killed node had reserved for an unfinished file.
    ///
    /// # Errors
    /// The disk failed.
    pub(super) fn release(&self) -> io::Result<()> {
        match &self.to {
            To::File(path) => Beside::new(path).release(),
            To::Command { spool: Some(spool), .. } => Beside::new(spool).release(),
            To::Special(_) | To::Stdout | To::Command { spool: None, .. } => Ok(()),
        }
    }

    /// Accepts only files within `limits`.
    pub(super) fn within(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Accepts only files that one of `signers` has signed, unless there are none.
    pub(super) fn signed_by(mut self, signers: Vec<VerifyingKey>) -> Result<Self, Error> {
        if !signers.is_empty() && !self.is_whole() {
            return Err(Error::input(
                "--signers needs an output that can check a file before it is passed on",
            )
            .with_hint(WHOLE));
        }
        self.admission.signers = Signers::new(signers);
        Ok(self)
    }

    /// Accepts only files with a manifest for this device. The highest sequence number is stored in
    /// `state`.
    pub(super) fn for_device(mut self, device: OwnDevice, state: Option<&Path>) -> Result<Self, Error> {
        self.admission.for_device(device, state)?;
        Ok(self)
    }

    /// Accepts only the kind of files that `images` names.
    pub(super) fn only(self, images: Images) -> Result<Self, Error> {
        if images == Images::Mcuboot && !self.is_whole() {
            return Err(Error::input(
                "--mcuboot needs an output that can check a file before it is passed on",
            )
            .with_hint(WHOLE));
        }
        Ok(Self { images, ..self })
    }

    /// The signers that the output requires. The returned handle can replace them.
    pub(super) fn signers(&self) -> Signers {
        self.admission.signers.clone()
    }

    /// Whether files are checked before they are handed on. A command without a spool would receive
    /// bytes before their digest is known.
    fn is_whole(&self) -> bool {
        matches!(self.to, To::File(_) | To::Command { spool: Some(_), .. })
    }

    /// Why the output refused the last file; `None` if it did not.
    pub(super) fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// SHA-256 of the bytes received so far, in hexadecimal.
    pub(super) fn sha256(&self) -> String {
        hex(&self.sha256.clone().finalize())
    }

    /// Resumes a file from what the disk holds of it, or starts it.
    async fn resume(
        &mut self,
        beside: Beside,
        place: Option<PathBuf>,
        offer: Subject,
        discard: bool,
    ) -> io::Result<Verdict> {
        let part = beside.part().to_owned();
        let mut journal = Journal::open(beside)?;
        let mut found = journal.find(offer, discard)?;
        if matches!(found, Found::Done | Found::Placed) {
            let there = match &place {
                // The file may have been replaced since, so compare its digest.
                Some(place) => {
                    let as_long = place.metadata().is_ok_and(|file| file.len() == offer.length);
                    self.sha256 = if as_long { hash(place, offer.length).await? } else { Sha256::new() };
                    as_long && self.sha256.clone().finalize()[..] == offer.digest
                }
                // A command has either confirmed the file, or must get it again.
                None => found == Found::Done,
            };
            if there {
                self.coming = Some(Coming::Done);
                return Ok(Verdict::From(offer.length));
            }
            found = Found::From(0);
        }
        let from = match found {
            Found::From(from) => from,
            Found::Unfinished(delivered) => {
                return Ok(Verdict::Refuse(RefuseReason::Unfinished, delivered));
            }
            Found::Done | Found::Placed => 0,
        };
        // Check the space before the old part is truncated: if the file does not fit, the part
        // stays.
        if let Err(figures) = self.limits.leave_room(offer.length, folder(&part), &part)? {
            self.refusal = Some(figures);
            return Err(io::ErrorKind::StorageFull.into());
        }
        journal.restart(offer, from)?;
        // Reserve the space now, so that a full disk is reported before the sender sends the file.
        journal.disk().reserve(offer.length)?;
        self.sha256 = if from > 0 { hash(&part, from).await? } else { Sha256::new() };
        self.coming = Some(Coming::Kept(Partial {
            journal,
            subject: offer,
            checkpoint: Instant::now(),
            took: Duration::ZERO,
        }));
        Ok(Verdict::From(from))
    }
}

/// Hashes the first `octets` bytes of a file in pieces, and yields between pieces so that other
/// transfers proceed.
async fn hash(path: &Path, octets: u64) -> io::Result<Sha256> {
    let mut file = File::open(path)?;
    let mut piece = vec![0; 256 << 10];
    let (mut sha256, mut left) = (Sha256::new(), octets);
    while left > 0 {
        let most = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let n = file.read(&mut piece[..most])?;
        if n == 0 {
            break;
        }
        sha256.update(&piece[..n]);
        left -= n as u64;
        tokio::task::yield_now().await;
    }
    Ok(sha256)
}

/// Starts a shell command in its own process group, with `input` as its standard input.
fn start(text: &str, transfer: TransferId, input: Stdio) -> io::Result<Running> {
    let mut command = Command::new("sh");
    // `sh` gets a process group of its own, so that dropping `Running` kills everything that it
    // started.
    command.args(["-c", text]).env("ANABRANCH_TRANSFER", format!("{:016x}", transfer.0));
    Ok(Running(command.stdin(input).process_group(0).spawn()?))
}

/// Closes the command's input and waits until it succeeds.
///
/// # Errors
/// It failed or was killed.
async fn end(mut running: Running) -> io::Result<()> {
    drop(running.0.stdin.take());
    let status = running.0.wait().await?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("the command ended with {status}"))) }
}

/// Time limit for a command that stopped reading to exit, so that its exit status can be reported.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The exit status of a command that did not read the whole file; `None` if it still runs.
async fn ended_early(running: &mut Running) -> Option<io::Error> {
    let status = tokio::time::timeout(LAST_WORDS, running.0.wait()).await.ok()?.ok()?;
    Some(io::Error::other(format!("the command ended with {status} before it had read the whole file")))
}

impl Sink for Output {
    async fn begin(&mut self, offer: &Offer) -> io::Result<Verdict> {
        self.coming = None;
        self.refusal = None;
        self.sha256 = Sha256::new();
        if let Err(reason) = self.admission.of(offer)? {
            self.refusal = Some(self.admission.why_not(reason));
            return Ok(Verdict::Refuse(reason, 0));
        }
        // A file without a digest is not collected in a part file, so it could not be checked as an
        // image.
        if self.images == Images::Mcuboot && offer.file.is_none() {
            self.refusal = Some("the sender gave no SHA-256, which --mcuboot needs".to_owned());
            return Ok(Verdict::Refuse(RefuseReason::Image, 0));
        }
        if offer.length > self.limits.size {
            let (length, size) = (offer.length, self.limits.size);
            self.refusal = Some(format!("{length} bytes, more than --max-size {size}"));
            return Ok(Verdict::Refuse(RefuseReason::TooLarge, 0));
        }
        self.expected = offer.file.map(|file| file.digest);
        let subject = offer.file.map(|file| {
            let subject = Subject { digest: file.digest, length: offer.length, transfer: offer.transfer.0 };
            (subject, file.discard)
        });
        let coming = match (&self.to, subject) {
            (To::File(path), Some((subject, discard))) => {
                let (beside, place) = (Beside::new(path), Some(path.clone()));
                return self.resume(beside, place, subject, discard).await.or_else(no_room);
            }
            (To::Command { spool: Some(spool), .. }, Some((subject, discard))) => {
                let beside = Beside::new(spool);
                return self.resume(beside, None, subject, discard).await.or_else(no_room);
            }
            (To::File(path), None) => {
                if let Err(figures) = self.limits.leave_room(offer.length, folder(path), Path::new(""))? {
                    self.refusal = Some(figures);
                    return no_room(io::ErrorKind::StorageFull.into());
                }
                Coming::Temporary(Temporary::beside(path)?)
            }
            (To::Special(path), _) => Coming::Special(open_in_place(path)?),
            (To::Stdout, _) => Coming::Stdout,
            (To::Command { text, .. }, _) => Coming::Command(start(text, offer.transfer, Stdio::piped())?),
        };
        self.coming = Some(coming);
        Ok(Verdict::From(0))
    }

    async fn write(&mut self, octets: Bytes) -> io::Result<()> {
        self.sha256.update(&octets);
        match self.coming.as_mut() {
            Some(Coming::Temporary(file)) => file.write_all(&octets),
            Some(Coming::Kept(partial)) => partial.write(&octets),
            Some(Coming::Special(file)) => file.write_all(&octets),
            Some(Coming::Stdout) => io::stdout().lock().write_all(&octets),
            Some(Coming::Command(running)) => match &mut running.0.stdin {
                Some(stdin) => match stdin.write_all(&octets).await {
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                        Err(ended_early(running).await.unwrap_or(error))
                    }
                    written => written,
                },
                None => Err(io::ErrorKind::NotFound.into()),
            },
            // No byte can follow a complete file.
            Some(Coming::Done) | None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    async fn finish(&mut self) -> io::Result<()> {
        let digest: [u8; 32] = self.sha256.clone().finalize().into();
        // A kept part is verified and discarded below. A file that was handed on earlier was
        // verified then.
        let wrong = self.expected.is_some_and(|expected| expected != digest);
        if wrong && !matches!(self.coming, Some(Coming::Kept(_) | Coming::Done)) {
            self.coming = None;
            let (said, found) = (self.expected.map_or_else(String::new, |said| hex(&said)), hex(&digest));
            let message = format!("SHA-256 mismatch: received {found}, announced {said}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        match (&self.to, self.coming.take()) {
            (To::File(path), Some(Coming::Temporary(file))) => {
                file.place()?;
                // The new name survives a power cut only after its folder is synced.
                File::open(folder(path))?.sync_all()
            }
            (To::File(path), Some(Coming::Kept(mut partial))) => {
                // In this order: a file with the wrong digest or an unsuitable image must neither
                // store its number nor get its place.
                partial.verify(digest)?;
                self.images.look_at(&mut partial, Some(path))?;
                let settle = |_: &mut Beside| self.admission.settle();
                let placed =
                    partial.journal.hand_on(settle, async |disk: &mut Beside| disk.place(path)).await;
                placed.inspect_err(|error| throw_away(&mut partial, error))
            }
            (To::Command { text, .. }, Some(Coming::Kept(mut partial))) => {
                partial.verify(digest)?;
                self.images.look_at(&mut partial, None)?;
                let settle = |_: &mut Beside| self.admission.settle();
                let transfer = TransferId(partial.subject.transfer);
                let run = async |disk: &mut Beside| {
                    let input = File::open(disk.part())?;
                    end(start(text, transfer, input.into())?).await
                };
                let handed = partial.journal.hand_on(settle, run).await;
                handed.inspect_err(|error| throw_away(&mut partial, error))?;
                partial.journal.disk().remove_part()
            }
            (_, Some(Coming::Command(running))) => end(running).await,
            (_, Some(Coming::Stdout)) => io::stdout().lock().flush(),
            // The file may have been received before the node required manifests.
            (_, Some(Coming::Done)) => self.admission.settle(),
            (_, Some(Coming::Special(_))) => Ok(()),
            (_, Some(Coming::Temporary(_) | Coming::Kept(_)) | None) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn abandon(&mut self) {
        self.coming = None;
    }
}

/// Discards a file that was refused: it would be refused again, and would block other files. After
/// any other error the part stays, so that the same push can resume.
fn throw_away(partial: &mut Partial, error: &io::Error) {
    if error.get_ref().is_some_and(|within| within.is::<Refusal>()) {
        // If discarding fails, `--restart` can still discard the part.
        let _ = partial.journal.throw_away();
    }
}

/// Converts a full disk to a refusal: the sender is told, and can try again when there is space.
fn no_room(error: io::Error) -> io::Result<Verdict> {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Ok(Verdict::Refuse(RefuseReason::NoRoom, 0))
        }
        _ => Err(error),
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.to {
            To::File(path) | To::Special(path) => write!(f, "{}", path.display()),
            To::Stdout => write!(f, "standard output"),
            To::Command { text, .. } => write!(f, "`{text}`"),
        }
    }
}

#[cfg(test)]
mod tests;
