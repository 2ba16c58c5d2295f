//! The input of `sense`: records out of a stream.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anabranch_net::rdca::{Created, unix_millis};
use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use tokio::sync::Notify;
use tokio::sync::mpsc::{Receiver, channel};

use crate::error::Error;
use crate::log::Entry;

/// Records read ahead; one reading may add more.
const AHEAD: usize = 8;
/// How long the end of the input waits for a reading that is under way.
const READ: Duration = Duration::from_millis(100);
/// Bytes of one reading.
const READING: usize = 4096;

/// Where a record ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(super) enum Framing {
    /// At a line feed, which is not part of it.
    Lines,
    /// After as many bytes as 4 bytes before it say.
    Length,
}

/// Checks that the input exists and can be opened.
pub(super) fn check(path: &Path) -> Result<(), Error> {
    open(path).map(drop)
}

/// Opens a file or a FIFO. A FIFO is opened for writing, too, so that it has no end: a writer that
/// came between an end and the next opening would be lost.
fn open(path: &Path) -> Result<File, Error> {
    let is_fifo = path.metadata().map(|meta| meta.file_type().is_fifo());
    let opened = is_fifo.and_then(|is_fifo| {
        // Another reader of the FIFO may take what this one has waited for.
        let flags = if is_fifo { OFlags::NONBLOCK.bits() } else { 0 };
        File::options().read(true).write(is_fifo).custom_flags(flags.cast_signed()).open(path)
    });
    opened.map_err(|e| {
        Error::unreadable(path, &e)
            .with_hint("--from takes a file, or a FIFO that this user can read and write")
    })
}

/// What the thread that reads and the task that sends share.
#[derive(Debug)]
struct Shared {
    ahead: Mutex<Ahead>,
    /// The task has taken records, or the input is closed.
    taken: Condvar,
    /// A reading is over.
    passed: Condvar,
    /// There are records, or there is an end.
    added: Notify,
    /// Records read, without those that are too long.
    read: AtomicU64,
    too_long: AtomicU64,
    unfinished: AtomicU64,
    failure: Mutex<Option<Error>>,
}

#[derive(Debug)]
struct Ahead {
    cutter: Cutter,
    records: VecDeque<Created>,
    has_ended: bool,
    /// Whether a reading is under way, which another reader of the same pipe may hold up.
    is_reading: bool,
}

/// The input, read by a thread, because reading standard input cannot be interrupted.
#[derive(Debug)]
pub(super) struct Source {
    shared: Arc<Shared>,
}

impl Source {
    /// Starts to read. Also returns the records. Must be called on a runtime.
    pub(super) fn start(
        from: Option<&Path>,
        framing: Framing,
        longest: usize,
    ) -> Result<(Self, Receiver<Created>), Error> {
        let shared = Arc::new(Shared::new(framing, longest));
        let input = match from {
            Some(path) => open(path)?,
            None => {
                let input = io::stdin().as_fd().try_clone_to_owned();
                input.map_err(|e| Error::job(format!("cannot read standard input: {e}")))?.into()
            }
        };
        let (told, from) = (Arc::clone(&shared), from.map(Path::to_owned));
        let work = move || {
            if let Err(error) = told.read(input) {
                let error = match from {
                    Some(path) => Error::unreadable(&path, &error),
                    None => Error::job(format!("cannot read standard input: {error}")),
                };
                *told.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
            told.end();
        };
        let thread = thread::Builder::new().name("input".to_owned()).spawn(work);
        thread.map_err(|e| Error::missing(format!("cannot start a thread: {e}")))?;
        let (give, records) = channel(1);
        let ahead = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Some(record) = ahead.next().await {
                if give.send(record).await.is_err() {
                    return;
                }
            }
        });
        Ok((Self { shared }, records))
    }

    /// Reads no more. What was read is still sent.
    pub(super) fn close(&self) {
        self.shared.unfinished.store(self.shared.end(), Ordering::Relaxed);
    }

    /// Number of bytes after the last record, if the input was closed before its end.
    pub(super) fn unfinished(&self) -> u64 {
        self.shared.unfinished.load(Ordering::Relaxed)
    }

    /// Number of records read, without those that are too long.
    pub(super) fn read(&self) -> u64 {
        self.shared.read.load(Ordering::Relaxed)
    }

    /// Number of records that were too long.
    pub(super) fn too_long(&self) -> u64 {
        self.shared.too_long.load(Ordering::Relaxed)
    }

    /// Why the input could not be read to its end.
    pub(super) fn failure(&self) -> Option<Error> {
        self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Shared {
    fn new(framing: Framing, longest: usize) -> Self {
        let cutter = Cutter {
            framing,
            longest,
            head: Vec::new(),
            left: None,
            is_skipped: false,
            length: 0,
            record: Vec::new(),
        };
        Self {
            ahead: Mutex::new(Ahead {
                cutter,
                records: VecDeque::new(),
                has_ended: false,
                is_reading: false,
            }),
            taken: Condvar::new(),
            passed: Condvar::new(),
            added: Notify::new(),
            read: AtomicU64::new(0),
            too_long: AtomicU64::new(0),
            unfinished: AtomicU64::new(0),
            failure: Mutex::new(None),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Ahead> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads until the input ends or is closed.
    fn read(&self, mut input: File) -> io::Result<()> {
        let mut buffer = [0; READING];
        loop {
            let is_behind = |ahead: &mut Ahead| ahead.records.len() >= AHEAD && !ahead.has_ended;
            drop(self.taken.wait_while(self.lock(), is_behind));
            // Waiting takes nothing from the input, so that nothing is read and lost when the input
            // is closed.
            match poll(&mut [PollFd::new(&input, PollFlags::IN)], None) {
                Err(Errno::INTR) => continue,
                waited => waited?,
            };
            {
                let mut ahead = self.lock();
                if ahead.has_ended {
                    return Ok(());
                }
                ahead.is_reading = true;
            }
            let count = input.read(&mut buffer);
            let mut ahead = self.lock();
            ahead.is_reading = false;
            self.passed.notify_one();
            let count = match count {
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {
                    continue;
                }
                count => count?,
            };
            let Ahead { cutter, records, .. } = &mut *ahead;
            let (now, longest) = (unix_millis(), cutter.longest);
            let mut give = |cut: Cut| match cut {
                Ok(record) => {
                    self.read.fetch_add(1, Ordering::Relaxed);
                    records.push_back((now, Bytes::from(record)));
                }
                Err(length) => {
                    self.too_long.fetch_add(1, Ordering::Relaxed);
                    let message = format!("a record of {length} bytes is given up: at most {longest} fit");
                    Entry::warning("too long", message).write();
                }
            };
            let ended = match &buffer[..count] {
                [] => Some(cutter.finish(&mut give)),
                octets => {
                    cutter.push(octets, &mut give);
                    None
                }
            };
            drop(ahead);
            self.added.notify_one();
            if let Some(ended) = ended {
                return ended;
            }
        }
    }

    /// The next record; `None` at the end.
    async fn next(&self) -> Option<Created> {
        loop {
            {
                let mut ahead = self.lock();
                if let Some(record) = ahead.records.pop_front() {
                    self.taken.notify_one();
                    return Some(record);
                }
                if ahead.has_ended {
                    return None;
                }
            }
            self.added.notified().await;
        }
    }

    /// Ends the input. Returns the number of bytes after the last record.
    fn end(&self) -> u64 {
        let mut ahead = self.lock();
        let is_first = !std::mem::replace(&mut ahead.has_ended, true);
        let passed = self.passed.wait_timeout_while(ahead, READ, |ahead| ahead.is_reading);
        ahead = passed.unwrap_or_else(PoisonError::into_inner).0;
        self.taken.notify_one();
        self.added.notify_one();
        if is_first { ahead.cutter.begun() } else { 0 }
    }
}

/// A record, or the length of one that is too long.
type Cut = Result<Vec<u8>, u64>;

/// Cuts a stream into records.
#[derive(Debug)]
struct Cutter {
    framing: Framing,
    longest: usize,
    /// The bytes of an incomplete length.
    head: Vec<u8>,
    /// Bytes of the record that follow, with [`Framing::Length`] and after the length.
    left: Option<u64>,
    /// Whether the record is too long, and this is said already.
    is_skipped: bool,
    /// Length of the incomplete record, and at most the `longest` first bytes of it.
    length: u64,
    record: Vec<u8>,
}

impl Cutter {
    fn push(&mut self, mut octets: &[u8], give: &mut impl FnMut(Cut)) {
        match self.framing {
            Framing::Lines => {
                let mut lines = octets.split(|octet| *octet == b'\n').peekable();
                while let Some(line) = lines.next() {
                    self.add(line);
                    if lines.peek().is_some() {
                        self.complete(give);
                    }
                }
            }
            Framing::Length => loop {
                if let Some(left) = self.left {
                    let (part, rest) =
                        octets.split_at(octets.len().min(usize::try_from(left).unwrap_or(usize::MAX)));
                    self.add(part);
                    octets = rest;
                    self.left = Some(left - part.len() as u64);
                    if self.left != Some(0) {
                        return;
                    }
                    self.left = None;
                    self.complete(give);
                } else {
                    let (part, rest) = octets.split_at(octets.len().min(4 - self.head.len()));
                    self.head.extend_from_slice(part);
                    octets = rest;
                    let Ok(length) = <[u8; 4]>::try_from(self.head.as_slice()) else { return };
                    self.head.clear();
                    let length = u32::from_be_bytes(length).into();
                    self.left = Some(length);
                    self.is_skipped = length > self.longest as u64;
                    if self.is_skipped {
                        give(Err(length));
                    }
                }
            },
        }
    }

    /// Handles the end of the stream. A last line without a line feed is a record.
    fn finish(&mut self, give: &mut impl FnMut(Cut)) -> io::Result<()> {
        match self.framing {
            Framing::Lines if self.length > 0 => self.complete(give),
            Framing::Length if self.begun() > 0 => {
                return Err(io::Error::new(ErrorKind::UnexpectedEof, "it ends within a record"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Number of bytes since the last record.
    fn begun(&self) -> u64 {
        let head = if self.left.is_some() { 4 } else { self.head.len() as u64 };
        head + self.length
    }

    fn add(&mut self, part: &[u8]) {
        self.length += part.len() as u64;
        let room = self.longest.saturating_sub(self.record.len());
        self.record.extend_from_slice(&part[..part.len().min(room)]);
    }

    fn complete(&mut self, give: &mut impl FnMut(Cut)) {
        let is_skipped = std::mem::take(&mut self.is_skipped);
        let (length, record) = (std::mem::take(&mut self.length), std::mem::take(&mut self.record));
        if is_skipped {
            return;
        }
        give(if length > self.longest as u64 { Err(length) } else { Ok(record) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service;

    fn records(input: &[u8], framing: Framing) -> (Vec<Vec<u8>>, u64, Option<String>) {
        let mut cutter = Shared::new(framing, 5).ahead.into_inner().unwrap().cutter;
        let (mut all, mut too_long) = (Vec::new(), 0);
        let mut give = |cut: Cut| match cut {
            Ok(record) => all.push(record),
            Err(_) => too_long += 1,
        };
        // Readings of 3 bytes cut records anywhere.
        input.chunks(3).for_each(|octets| cutter.push(octets, &mut give));
        let error = cutter.finish(&mut give).err().map(|e| e.to_string());
        (all, too_long, error)
    }

    #[test]
    fn records_are_lines_or_have_their_length_before_them() {
        let (all, too_long, error) = records(b"one\n\ntwelve\n\xfffive\nlast", Framing::Lines);
        assert_eq!(all, [&b"one"[..], b"", b"\xfffive", b"last"]);
        assert_eq!((too_long, error), (1, None));
        let framed = b"\0\0\0\x03a\nb\0\0\0\x06twelve\0\0\0\0\0\0\0\x01x";
        assert_eq!(records(framed, Framing::Length), (vec![b"a\nb".to_vec(), vec![], vec![b'x']], 1, None));
        for cut in [b"\0\0".as_slice(), b"\0\0\0\x03ab"] {
            assert_eq!(records(cut, Framing::Length).2.as_deref(), Some("it ends within a record"));
        }
    }

    #[test]
    fn no_writer_of_a_fifo_is_lost() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let runtime = service::runtime().unwrap();
        let _entered = runtime.enter();
        let (_source, mut records) = Source::start(Some(&path), Framing::Lines, 100).unwrap();
        let numbers: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
        let written = numbers.clone();
        // Many ends: if they could be lost, this would fail instead of waiting forever.
        thread::spawn(move || {
            for text in written.into_iter().chain(vec!["end".to_owned(); 100]) {
                std::fs::write(&path, text + "\n").unwrap();
            }
        });
        let next =
            || runtime.block_on(records.recv()).map(|(_, record)| String::from_utf8(record.into()).unwrap());
        let arrived: Vec<String> = std::iter::from_fn(next).take_while(|record| record != "end").collect();
        assert_eq!(arrived, numbers);
    }

    /// The writer of a pipe takes what was read for delivered.
    #[test]
    fn what_was_read_before_the_end_is_sent() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("records");
        let lines: String = (0..1000).map(|number| format!("{number}\n")).collect();
        std::fs::write(&path, lines + "unfinished").unwrap();
        let runtime = service::runtime().unwrap();
        let _entered = runtime.enter();
        for taken in [0, 1, 5, 100, 1000] {
            let (source, mut records) = Source::start(Some(&path), Framing::Lines, 100).unwrap();
            let mut next = || runtime.block_on(records.recv());
            let before = (0..taken).filter_map(|_| next()).count() as u64;
            source.close();
            let read = source.read();
            let after = std::iter::from_fn(next).count() as u64;
            assert_eq!((before + after, source.read()), (read, read));
        }
    }

    #[test]
    fn readers_of_one_fifo_do_not_hold_each_other_up() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let runtime = service::runtime().unwrap();
        let _entered = runtime.enter();
        let mut all: Vec<_> =
            (0..4).map(|_| Source::start(Some(&path), Framing::Lines, 100).unwrap()).collect();
        // Each line wakes all four, and one of them reads it.
        let mut fifo = File::options().write(true).open(&path).unwrap();
        for _ in 0..50 {
            std::io::Write::write_all(&mut fifo, b"x\n").unwrap();
            thread::yield_now();
        }
        let mut count = 0;
        while count < 50 {
            for (_, records) in &mut all {
                runtime.block_on(async { tokio::task::yield_now().await });
                count += u32::from(records.try_recv().is_ok());
            }
        }
        all.iter().for_each(|(source, _)| source.close());
    }
}
