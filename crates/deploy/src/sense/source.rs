//! The input of `sense`: records out of a stream.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anabranch_net::rdca::{Created, unix_millis};
use bytes::Bytes;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::watch;

use crate::error::Error;
use crate::log::Entry;

/// Records read ahead.
const AHEAD: usize = 8;

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
    let opened = is_fifo.and_then(|is_fifo| File::options().read(true).write(is_fifo).open(path));
    opened.map_err(|e| {
        Error::unreadable(path, &e)
            .with_hint("--from takes a file, or a FIFO that this user can read and write")
    })
}

#[derive(Debug, Default)]
struct Shared {
    /// Records read, without those that are too long.
    read: AtomicU64,
    too_long: AtomicU64,
    failure: Mutex<Option<Error>>,
}

/// The input, read by a thread, because reading standard input cannot be interrupted.
#[derive(Debug)]
pub(super) struct Source {
    shared: Arc<Shared>,
}

impl Source {
    /// Starts to read. Also returns the records, and what ends them before the input's end. Must be
    /// called on a runtime.
    pub(super) fn start(
        from: Option<&Path>,
        framing: Framing,
        longest: usize,
    ) -> Result<(Self, Receiver<Created>, Closer), Error> {
        let (give, mut read_ahead) = channel(AHEAD);
        let shared = Arc::new(Shared::default());
        let (told, from) = (Arc::clone(&shared), from.map(Path::to_owned));
        let work = move || {
            if let Err(error) = read(from.as_ref(), framing, longest, &give, &told) {
                *told.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        };
        let thread = thread::Builder::new().name("input".to_owned()).spawn(work);
        thread.map_err(|e| Error::missing(format!("cannot start a thread: {e}")))?;
        let (close, mut closed) = watch::channel(false);
        let (give, records) = channel(1);
        tokio::spawn(async move {
            loop {
                let record = tokio::select! {
                    biased;
                    _ = closed.wait_for(|closed| *closed), if !read_ahead.is_closed() => {
                        // What was read ahead is still sent.
                        read_ahead.close();
                        continue;
                    }
                    record = read_ahead.recv() => record,
                };
                let Some(record) = record else { return };
                if give.send(record).await.is_err() {
                    return;
                }
            }
        });
        Ok((Self { shared }, records, Closer(close)))
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

/// Ends the records.
#[derive(Debug)]
pub(super) struct Closer(watch::Sender<bool>);

impl Closer {
    pub(super) fn close(&self) {
        let _ = self.0.send(true);
    }
}

fn read(
    from: Option<&PathBuf>,
    framing: Framing,
    longest: usize,
    give: &Sender<Created>,
    shared: &Shared,
) -> Result<(), Error> {
    let Some(path) = from else {
        let failed = |e| Error::job(format!("cannot read standard input: {e}"));
        return each(&mut io::stdin().lock(), framing, longest, give, shared).map_err(failed);
    };
    let failed = |e: io::Error| Error::unreadable(path, &e);
    each(&mut BufReader::new(open(path)?), framing, longest, give, shared).map_err(failed)
}

/// Passes each record of one stream on.
fn each(
    input: &mut impl BufRead,
    framing: Framing,
    longest: usize,
    give: &Sender<Created>,
    shared: &Shared,
) -> io::Result<()> {
    loop {
        let mut record = Vec::new();
        let length = match framing {
            Framing::Lines => line(input, longest, &mut record)?,
            Framing::Length => framed(input, longest, &mut record)?,
        };
        let Some(length) = length else { return Ok(()) };
        if length > longest as u64 {
            shared.too_long.fetch_add(1, Ordering::Relaxed);
            let message = format!("a record of {length} bytes is given up: at most {longest} fit");
            Entry::warning("too long", message).write();
        } else {
            shared.read.fetch_add(1, Ordering::Relaxed);
            if give.blocking_send((unix_millis(), Bytes::from(record))).is_err() {
                return Ok(());
            }
        }
    }
}

/// Reads a line without its line feed, at most `longest` bytes of it. Returns its length; `None` at
/// the end.
fn line(input: &mut impl BufRead, longest: usize, record: &mut Vec<u8>) -> io::Result<Option<u64>> {
    let mut length = 0;
    loop {
        let buffer = match input.fill_buf() {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            buffer => buffer?,
        };
        if buffer.is_empty() {
            // A last line without a line feed is a record.
            return Ok((length > 0).then_some(length));
        }
        let end = buffer.iter().position(|octet| *octet == b'\n');
        let part = &buffer[..end.unwrap_or(buffer.len())];
        length += part.len() as u64;
        let room = longest.saturating_sub(record.len());
        record.extend_from_slice(&part[..part.len().min(room)]);
        let used = part.len() + usize::from(end.is_some());
        input.consume(used);
        if end.is_some() {
            return Ok(Some(length));
        }
    }
}

/// Reads a record with its length before it. Returns the length; `None` at the end.
fn framed(input: &mut impl BufRead, longest: usize, record: &mut Vec<u8>) -> io::Result<Option<u64>> {
    if input.fill_buf()?.is_empty() {
        return Ok(None);
    }
    let cut = |error: io::Error| match error.kind() {
        ErrorKind::UnexpectedEof => io::Error::new(error.kind(), "it ends within a record"),
        _ => error,
    };
    let mut length = [0; 4];
    input.read_exact(&mut length).map_err(cut)?;
    let length = u64::from(u32::from_be_bytes(length));
    let mut body = input.take(length);
    let read = if length > longest as u64 {
        io::copy(&mut body, &mut io::sink())?
    } else {
        body.read_to_end(record)? as u64
    };
    if read < length { Err(cut(ErrorKind::UnexpectedEof.into())) } else { Ok(Some(length)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(input: &[u8], framing: Framing) -> (Vec<Vec<u8>>, u64, Option<String>) {
        let (give, mut records) = channel(100);
        let shared = Shared::default();
        // A buffer of 3 bytes cuts records anywhere.
        let mut reader = BufReader::with_capacity(3, input);
        let error = each(&mut reader, framing, 5, &give, &shared).err().map(|e| e.to_string());
        drop(give);
        let all = std::iter::from_fn(|| records.blocking_recv()).map(|(_, record)| record.to_vec());
        (all.collect(), shared.too_long.into_inner(), error)
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
        let (give, mut records) = channel(AHEAD);
        let input = path.clone();
        thread::spawn(move || read(Some(&input), Framing::Lines, 100, &give, &Shared::default()));
        let numbers: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
        let written = numbers.clone();
        // Many ends: if they could be lost, this would fail instead of waiting forever.
        thread::spawn(move || {
            for text in written.into_iter().chain(vec!["end".to_owned(); 100]) {
                std::fs::write(&path, text + "\n").unwrap();
            }
        });
        let next = || records.blocking_recv().map(|(_, record)| String::from_utf8(record.into()).unwrap());
        let arrived: Vec<String> = std::iter::from_fn(next).take_while(|record| record != "end").collect();
        assert_eq!(arrived, numbers);
    }
}
