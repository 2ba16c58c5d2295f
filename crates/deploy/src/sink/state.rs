//! The sink's state on disk: the number of the next record of each sender.
//!
//! The state is a snapshot and the lines after it. The lines are those of the output, if it is a
//! file: record and number are then written by the same write, so that a kill cannot separate them.
//! For other outputs they are in a journal beside the snapshot, written after the output has the
//! record: a kill in between repeats records, and loses none.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anabranch_net::rdca::{Item, Ledger, What, Why};

use super::line;
use super::target::Target;
use crate::error::Error;
use crate::files::{is_in_place, write_whole};

/// Bytes of lines after which a new snapshot is written.
const SNAPSHOT_EVERY: u64 = 16 << 20;

/// The state.
#[derive(Debug)]
pub(super) struct State {
    ledger: Ledger,
    snapshot: PathBuf,
    /// File with the lines after the snapshot.
    lines: PathBuf,
    file: File,
    /// Length of `file`, and its length at the snapshot.
    length: u64,
    noted: u64,
    /// Whether the lines are those of the output.
    is_output: bool,
    /// The lock of the snapshot, which is replaced as a whole and so cannot be locked itself.
    _lock: File,
}

impl State {
    /// Reads the state of the sink on `port`, for at most `senders` senders, and opens the output
    /// if it is a file. Both are locked before they are read: another sink would cut or repeat what
    /// this one writes.
    pub(super) fn open(folder: &Path, port: u16, target: &Target, senders: usize) -> Result<Self, Error> {
        std::fs::create_dir_all(folder).map_err(|e| {
            Error::input(format!("cannot make {}: {e}", folder.display()))
                .with_hint("set --state to a folder that this user can write")
        })?;
        let snapshot = folder.join(format!("sink-{port}.state"));
        let (lines, is_output) = match target {
            Target::File(path) if !is_in_place(path) => (path.clone(), true),
            _ => (folder.join(format!("sink-{port}.journal")), false),
        };
        let guard = open(&snapshot.with_extension("lock"))?;
        lock(&guard, &snapshot)?;
        let mut file = open(&lines)?;
        lock(&file, &lines)?;
        let mut ledger = Ledger::new(senders);
        let noted = read_snapshot(&snapshot, &mut ledger)?;
        // A file that was rotated is another one, of which nothing is in the snapshot.
        let inode = file.metadata().map_err(|e| Error::unreadable(&lines, &e))?.ino();
        let from = noted.filter(|noted| noted.inode == inode).map_or(0, |noted| noted.length);
        let length = replay(&mut file, from, &mut ledger).map_err(|e| Error::unreadable(&lines, &e))?;
        let mut state = Self { ledger, snapshot, lines, file, length, noted: 0, is_output, _lock: guard };
        state.write_snapshot()?;
        Ok(state)
    }

    /// The numbers of all senders.
    pub(super) const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Notes that the output has these items, whose lines are `text`, or writes them to the output.
    /// They are on the disk when it returns.
    pub(super) fn note(&mut self, items: &[Item], text: &[u8]) -> Result<(), Error> {
        let short;
        let text = if self.is_output {
            text
        } else {
            short = numbers(items);
            &short
        };
        let written = self.file.write_all(text).and_then(|()| self.file.sync_data());
        written.map_err(|e| {
            // The next start cuts a line that is not whole.
            Error::job(format!("cannot write {}: {e}", self.lines.display()))
                .with_hint("senders keep what is not written; free space and start the sink again")
        })?;
        self.length += text.len() as u64;
        for item in items {
            let is_over = matches!(item.what, What::Ended(why) if why != Why::Silent);
            self.ledger.advance(&item.source, item.run, item.next, is_over);
        }
        if self.length - self.noted > SNAPSHOT_EVERY {
            self.write_snapshot()?;
        }
        Ok(())
    }

    /// Writes a snapshot, so that no lines before it are needed.
    pub(super) fn write_snapshot(&mut self) -> Result<(), Error> {
        let failed = |e| Error::unwritable(&self.lines, &e);
        let inode = self.file.metadata().map_err(failed)?.ino();
        // The journal begins anew after the snapshot. If it is not cut, for a kill, its lines only
        // repeat what the snapshot has.
        let length = if self.is_output { self.length } else { 0 };
        let mut text = format!("{SNAPSHOT} {length} {inode}\n");
        for (source, runs) in self.ledger.iter() {
            for (run, next, is_over) in runs.iter() {
                let key = if source.key.is_empty() { "-" } else { &source.key };
                let state = if is_over { "over" } else { "open" };
                text += &format!("{} {key} {run:016x} {next} {state}\n", source.name);
            }
        }
        write_whole(&self.snapshot, text.as_bytes())?;
        if !self.is_output {
            self.file.set_len(0).and_then(|()| self.file.rewind()).map_err(failed)?;
        }
        (self.length, self.noted) = (length, length);
        Ok(())
    }

    /// Opens the output again, which may have been moved.
    pub(super) fn reopen(&mut self) -> Result<(), Error> {
        if !self.is_output {
            return Ok(());
        }
        self.write_snapshot()?;
        let failed = |e| Error::unreadable(&self.lines, &e);
        let file = open(&self.lines)?;
        let (there, own) = (file.metadata().map_err(failed)?, self.file.metadata().map_err(failed)?);
        if (there.dev(), there.ino()) == (own.dev(), own.ino()) {
            return Ok(());
        }
        lock(&file, &self.lines)?;
        (self.file, self.length) = (file, there.len());
        self.write_snapshot()
    }
}

/// First word of a snapshot.
const SNAPSHOT: &str = "anabranch-sink-1";

fn open(path: &Path) -> Result<File, Error> {
    let opened = OpenOptions::new().read(true).append(true).create(true).open(path);
    opened.map_err(|e| Error::unwritable(path, &e))
}

/// Locks a file that is, or that stands for, the file `path`.
fn lock(file: &File, path: &Path) -> Result<(), Error> {
    // Only a held lock is an error: some file systems do not support locks.
    if let Err(TryLockError::WouldBlock) = file.try_lock() {
        return Err(Error::input(format!("{}: another sink uses this file", path.display()))
            .with_hint("stop it, or give each sink a port, an --out and a --state of its own"));
    }
    Ok(())
}

/// What a snapshot says about the lines.
struct Noted {
    length: u64,
    inode: u64,
}

/// Reads the snapshot, if there is one.
fn read_snapshot(path: &Path, ledger: &mut Ledger) -> Result<Option<Noted>, Error> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::unreadable(path, &error)),
    };
    let mut lines = (1..).zip(text.lines());
    let head = |line: &str| {
        let mut words = line.strip_prefix(SNAPSHOT)?.split_whitespace();
        Some(Noted { length: words.next()?.parse().ok()?, inode: words.next()?.parse().ok()? })
    };
    let entry = |line: &str, ledger: &mut Ledger| {
        let mut words = line.split_whitespace();
        let (name, key) = (words.next()?.parse().ok()?, words.next()?);
        let key = if key == "-" { "" } else { key };
        let run = u64::from_str_radix(words.next()?, 16).ok()?;
        let next = words.next()?.parse().ok()?;
        let is_over = words.next()? == "over";
        ledger.advance(&anabranch_net::rdca::Source { name, key: key.into() }, run, next, is_over);
        Some(())
    };
    let damaged = |line: usize| {
        // An empty state would deliver records twice, so a damaged one is not taken for empty.
        Error::input(format!("{}:{line}: damaged state", path.display()))
            .with_hint("remove the file to begin anew; senders may then repeat their last records")
    };
    let noted = lines.next().and_then(|(_, line)| head(line)).ok_or_else(|| damaged(1))?;
    for (number, line) in lines {
        entry(line, ledger).ok_or_else(|| damaged(number))?;
    }
    Ok(Some(noted))
}

/// Reads the lines from the byte `from` on, and cuts an incomplete last line. One of another
/// program gets a line feed instead. Returns the length.
fn replay(file: &mut File, from: u64, ledger: &mut Ledger) -> io::Result<u64> {
    let from = if from > file.metadata()?.len() { 0 } else { from };
    let mut end = file.seek(SeekFrom::Start(from))?;
    let mut reader = BufReader::new(&mut *file);
    let mut text = Vec::new();
    while reader.read_until(b'\n', &mut text)? > 0 {
        if text.last() != Some(&b'\n') {
            break;
        }
        // A line that is not ours, perhaps of another program, says nothing about our senders.
        let known = std::str::from_utf8(&text).ok().and_then(line::read);
        if let Some((source, run, next, is_over)) = known {
            ledger.advance(&source, run, next, is_over);
        }
        end += text.len() as u64;
        text.clear();
    }
    if !text.is_empty() && !line::is_begun(&text) {
        file.write_all(b"\n")?;
        end += text.len() as u64 + 1;
    }
    file.set_len(end)?;
    file.seek(SeekFrom::Start(end))
}

/// The lines of a journal: those of the output without times and payload.
fn numbers(items: &[Item]) -> Vec<u8> {
    let mut out = Vec::new();
    for (at, item) in items.iter().enumerate() {
        // The last item of a run says all.
        let is_same = |later: &Item| later.source == item.source && later.run == item.run;
        let is_record = matches!(item.what, What::Record { .. } | What::Lost { .. });
        if is_record && items.get(at + 1).is_some_and(is_same) {
            continue;
        }
        let what = match item.what {
            What::Ended(why) => What::Ended(why),
            What::Record { .. } | What::Lost { .. } => What::Ended(Why::Silent),
        };
        line::write(&Item { what, ..item.clone() }, &mut out);
    }
    out
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tempfile::TempDir;

    use super::*;

    fn item(number: u64) -> Item {
        let source = anabranch_net::rdca::Source { name: "a".parse().unwrap(), key: "".into() };
        let what = What::Record { created: 1, payload: Bytes::from(format!("record {number}")) };
        Item { source, run: 7, next: number + 1, received: 2, what }
    }

    fn text(items: &[Item]) -> Vec<u8> {
        let mut text = Vec::new();
        items.iter().for_each(|item| line::write(item, &mut text));
        text
    }

    /// A kill at any byte of a write, with a snapshot anywhere before it.
    #[test]
    fn a_file_that_is_cut_anywhere_has_its_whole_lines_and_their_numbers() {
        let all: Vec<Item> = (0..6).map(item).collect();
        let bytes = text(&all);
        for cut in 0..=bytes.len() {
            for snapshot in [0, 2, 4] {
                let folder = TempDir::new().unwrap();
                let out = folder.path().join("out.jsonl");
                let target = Target::File(out.clone());
                let mut state = State::open(folder.path(), 1, &target, 10).unwrap();
                let before = text(&all[..snapshot]);
                if cut < before.len() {
                    continue;
                }
                state.note(&all[..snapshot], &before).unwrap();
                state.write_snapshot().unwrap();
                drop(state);
                OpenOptions::new()
                    .append(true)
                    .open(&out)
                    .unwrap()
                    .write_all(&bytes[before.len()..cut])
                    .unwrap();
                let state = State::open(folder.path(), 1, &target, 10).unwrap();
                let whole = bytes[..cut].iter().filter(|octet| **octet == b'\n').count() as u64;
                assert_eq!(state.ledger().next(&item(0).source, 7), whole);
                assert_eq!(std::fs::read(&out).unwrap(), text(&all[..whole as usize]));
            }
        }
    }

    #[test]
    fn a_rotated_file_and_a_journal_keep_their_numbers_and_damage_is_no_empty_state() {
        let folder = TempDir::new().unwrap();
        let out = folder.path().join("out.jsonl");
        for target in [Target::File(out.clone()), Target::Standard] {
            let open = || State::open(folder.path(), 2, &target, 10);
            let mut state = open().unwrap();
            state.note(&[item(0), item(1)], &text(&[item(0), item(1)])).unwrap();
            if state.is_output {
                std::fs::rename(&out, folder.path().join("old")).unwrap();
            }
            state.reopen().unwrap();
            state.note(&[item(2)], &text(&[item(2)])).unwrap();
            let refused = open().unwrap_err().to_string();
            assert!(refused.contains("another sink uses this file"), "{refused}");
            let is_output = state.is_output;
            drop(state);
            assert_eq!(open().unwrap().ledger().next(&item(0).source, 7), 3);
            if is_output {
                assert_eq!(std::fs::read(&out).unwrap(), text(&[item(2)]));
            }
            std::fs::write(folder.path().join("sink-2.state"), format!("{SNAPSHOT} 0 0\na - x 1 open\n"))
                .unwrap();
            assert!(open().unwrap_err().to_string().contains("sink-2.state:2: damaged"));
            std::fs::remove_file(folder.path().join("sink-2.state")).unwrap();
        }
    }

    #[test]
    fn the_last_line_of_another_program_is_kept() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("out");
        for (before, after) in [
            ("keep this", "keep this\n"),
            ("line\n{\"a\":1", "line\n{\"a\":1\n"),
            ("x\n{\"sender\":\"a", "x\n"),
        ] {
            std::fs::write(&path, before).unwrap();
            let mut file = open(&path).unwrap();
            let length = replay(&mut file, 0, &mut Ledger::new(10)).unwrap();
            assert_eq!(
                (std::fs::read_to_string(&path).unwrap().as_str(), length),
                (after, after.len() as u64)
            );
        }
    }
}
