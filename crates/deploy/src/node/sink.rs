//! Where a node's octets go: a file, standard output, or a command.

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

/// A node's output.
#[derive(Debug)]
pub(super) struct Output {
    to: To,
    admission: Admission,
    /// Whether files are checked before they are handed on.
    images: Images,
    limits: Limits,
    /// Why the last file was refused, for the node's operator.
    refusal: Option<String>,
    /// The SHA-256 that the present file is said to have.
    expected: Option<[u8; 32]>,
    /// What comes at present.
    coming: Option<Coming>,
    sha256: Sha256,
}

/// Which files are handed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Images {
    Any,
    /// Whole images for the boot loader MCUboot, of no lower version than the one that is there.
    Mcuboot,
}

impl Images {
    /// Everything is here: may it go to its place? Otherwise it is thrown away.
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
                        message: format!("version {}: {} is there already", image.version, there.version),
                    },
                    _ => return Ok(()),
                }
            }
        };
        partial.journal.throw_away()?;
        Err(refusal.into())
    }
}

/// The image in `place`; `None` if there is no file or the file is no image, which every image may
/// replace.
///
/// # Errors
/// The file cannot be read, so nothing says whether the new image is older.
fn image_in(place: &Path) -> io::Result<Option<mcuboot::Image>> {
    let unread = |error: io::Error| {
        let message = format!(
            "cannot read the version of the image in {}: {error}; let the node's user read the file, or remove it to take any version",
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

const WHOLE: &str = "with --pipe, give a --spool; otherwise an --out that is a file";

/// What may come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Octets of a file.
    pub(super) size: u64,
    /// Octets that stay free on the disk.
    pub(super) reserve: u64,
}

/// Octets of a journal, with the one that takes its place.
const JOURNALS: u64 = 128 << 10;

impl Limits {
    /// Whether a file of `length` octets finds room in `folder`, where it shall take the place of
    /// what `part` occupies; if not, the figures.
    fn leave_room(&self, length: u64, folder: &Path, part: &Path) -> io::Result<Result<(), String>> {
        let occupied = part.metadata().map_or(0, |part| part.blocks() * 512);
        let there = free(folder)?.saturating_add(occupied);
        let needed = length.saturating_add(JOURNALS).saturating_add(self.reserve);
        Ok(if needed <= there { Ok(()) } else { Err(self.shortage(length, folder, there)) })
    }

    fn shortage(&self, length: u64, folder: &Path, there: u64) -> String {
        let (folder, reserve) = (folder.display(), self.reserve);
        format!(
            "{folder} has room for {there} bytes, and the file needs {length}, a journal {JOURNALS} and --reserve {reserve}"
        )
    }
}

/// Bytes of the disk of `folder` that are free for this user.
pub(super) fn free(folder: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(folder)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Where files go.
#[derive(Debug)]
enum To {
    /// A file that is there whole or not at all.
    File(PathBuf),
    /// A device, a pipe or an open descriptor: it is written to where it stands.
    Special(PathBuf),
    Stdout,
    Command {
        text: String,
        /// A file that says which it is is put together there first.
        spool: Option<PathBuf>,
    },
}

/// Where the present file goes meanwhile.
#[derive(Debug)]
enum Coming {
    /// Beside its place, to be lost with everything else.
    Temporary(Temporary),
    /// Beside its place, and what is there stays there.
    Kept(Partial),
    /// It came before; its sender has not heard.
    Done,
    Special(File),
    Stdout,
    Command(Running),
}

/// What has come of a file that can be gone on with. What is there is made certain when this is
/// dropped.
#[derive(Debug)]
struct Partial {
    journal: Journal<Beside>,
    subject: Subject,
    /// When the last checkpoint was over, and how long it took.
    checkpoint: Instant,
    took: Duration,
}

/// So many octets, or what came in so long, may have to be sent again after a power cut.
const CHECKPOINT_EVERY: u64 = 1 << 20;
const CHECKPOINT_AFTER: Duration = Duration::from_secs(1);
/// A slow disk has so many times as long for what comes as for making it certain.
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

    /// Everything is here: is it what was said? Otherwise it is thrown away.
    fn verify(&mut self, digest: [u8; 32]) -> io::Result<()> {
        self.journal.checkpoint()?;
        if digest == self.subject.digest {
            return Ok(());
        }
        self.journal.throw_away()?;
        let (said, found) = (hex(&self.subject.digest), hex(&digest));
        let message = format!("what has come has SHA-256 {found}, and {said} was announced");
        Err(io::Error::new(io::ErrorKind::InvalidData, message))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // If it cannot be, less counts.
        let _ = self.journal.checkpoint();
        let _ = self.journal.release();
    }
}

/// A command, with all that it has started. It is killed when this is dropped: the end of its input
/// would look like the end of the file.
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
            (None, None) => return Err(Error::input("neither --out nor --pipe says where the octets go")),
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

    /// Gives back the disk space that a node that was killed had reserved for the rest of an
    /// unfinished file.
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

    /// Takes only files within `limits`.
    pub(super) fn within(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Takes only files that one of `signers` has signed, if there are any.
    pub(super) fn signed_by(mut self, signers: Vec<VerifyingKey>) -> Result<Self, Error> {
        if !signers.is_empty() && !self.is_whole() {
            return Err(Error::input(
                "--signers: here octets would be handed on before they are known to be signed",
            )
            .with_hint(WHOLE));
        }
        self.admission.signers = Signers::new(signers);
        Ok(self)
    }

    /// Takes only files with a manifest for this device; the numbers of those that were taken are
    /// in `state`.
    pub(super) fn for_device(mut self, device: OwnDevice, state: Option<&Path>) -> Result<Self, Error> {
        self.admission.for_device(device, state)?;
        Ok(self)
    }

    /// Takes only what `images` says.
    pub(super) fn only(self, images: Images) -> Result<Self, Error> {
        if images == Images::Mcuboot && !self.is_whole() {
            return Err(Error::input(
                "--mcuboot: here octets would be handed on before they are known to be an image",
            )
            .with_hint(WHOLE));
        }
        Ok(Self { images, ..self })
    }

    /// Changes whose signatures it wants.
    pub(super) fn signers(&self) -> Signers {
        self.admission.signers.clone()
    }

    /// A command that gets octets as they come would have them before it is known that they are
    /// those that were announced.
    fn is_whole(&self) -> bool {
        matches!(self.to, To::File(_) | To::Command { spool: Some(_), .. })
    }

    /// Why the last file was refused, if the output has refused it.
    pub(super) fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Of what has come of the present file.
    pub(super) fn sha256(&self) -> String {
        hex(&self.sha256.clone().finalize())
    }

    /// Goes on with what there is of a file, or begins with it.
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
                // It may have been replaced since.
                Some(place) => {
                    let as_long = place.metadata().is_ok_and(|file| file.len() == offer.length);
                    self.sha256 = if as_long { hash(place, offer.length).await? } else { Sha256::new() };
                    as_long && self.sha256.clone().finalize()[..] == offer.digest
                }
                // A command has ended well, or it has not been told.
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
        // What is there stays if the file would not fit in its place.
        if let Err(figures) = self.limits.leave_room(offer.length, folder(&part), &part)? {
            self.refusal = Some(figures);
            return Err(io::ErrorKind::StorageFull.into());
        }
        journal.restart(offer, from)?;
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

/// What a file's first octets are, a piece at a time: others have their turn between two.
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

/// Starts a command with that on its standard input.
fn start(text: &str, transfer: TransferId, input: Stdio) -> io::Result<Running> {
    let mut command = Command::new("sh");
    command.args(["-c", text]).env("ANABRANCH_TRANSFER", format!("{:016x}", transfer.0));
    Ok(Running(command.stdin(input).process_group(0).spawn()?))
}

/// Waits for a command's good end.
async fn end(mut running: Running) -> io::Result<()> {
    drop(running.0.stdin.take());
    let status = running.0.wait().await?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("it ended with {status}"))) }
}

/// How long a command that reads no more may take to end, so that its exit status is known.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How a command ended that did not read all of the file; `None` if it still runs.
async fn ended_early(running: &mut Running) -> Option<io::Error> {
    let status = tokio::time::timeout(LAST_WORDS, running.0.wait()).await.ok()?.ok()?;
    Some(io::Error::other(format!("it ended with {status} before it had read the whole file")))
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
        // Only what says which file it is is kept beside its place, where it can be looked at.
        if self.images == Images::Mcuboot && offer.file.is_none() {
            self.refusal = Some("the sender gave no SHA-256, which --mcuboot needs".to_owned());
            return Ok(Verdict::Refuse(RefuseReason::Image, 0));
        }
        if offer.length > self.limits.size {
            let (length, size) = (offer.length, self.limits.size);
            self.refusal = Some(format!("it has {length} bytes, and --max-size allows {size}"));
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
            // Nothing follows what is whole.
            Some(Coming::Done) | None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    async fn finish(&mut self) -> io::Result<()> {
        let digest: [u8; 32] = self.sha256.clone().finalize().into();
        // What has been kept is checked, and thrown away, by itself; what was done before was
        // checked then.
        let wrong = self.expected.is_some_and(|expected| expected != digest);
        if wrong && !matches!(self.coming, Some(Coming::Kept(_) | Coming::Done)) {
            self.coming = None;
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "these are not the octets that were announced",
            ));
        }
        match (&self.to, self.coming.take()) {
            (To::File(path), Some(Coming::Temporary(file))) => {
                file.place()?;
                // The name is there after a power cut once the folder is written.
                File::open(folder(path))?.sync_all()
            }
            (To::File(path), Some(Coming::Kept(mut partial))) => {
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
            // It may have come before anyone asked for manifests.
            (_, Some(Coming::Done)) => self.admission.settle(),
            (_, Some(Coming::Special(_))) => Ok(()),
            (_, Some(Coming::Temporary(_) | Coming::Kept(_)) | None) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn abandon(&mut self) {
        self.coming = None;
    }
}

/// What is refused now would be refused again, and must not keep other files out. After another
/// error the same push goes on.
fn throw_away(partial: &mut Partial, error: &io::Error) {
    if error.get_ref().is_some_and(|within| within.is::<Refusal>()) {
        // If it cannot be, `--restart` throws it away.
        let _ = partial.journal.throw_away();
    }
}

/// A sender can be told that there is no room, and come again when there is.
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
