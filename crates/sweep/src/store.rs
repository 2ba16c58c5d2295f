//! The store of finished runs: a folder of append-only logs.
//!
//! Every writing process has its own log. It holds a lock that the kernel releases when the process
//! dies. Any number of processes may write, on one machine or on several that share the folder. A
//! log consists of a line that identifies the format, and of records with checksums.
//!
//! Rows are appended with a single `write`, so a killed process leaves a log that is valid except
//! perhaps at its end. Readers stop there, and the next process that takes over the log truncates
//! it. If two processes execute the same run, both rows are equal, so a duplicate is harmless.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::address::{Address, BUILD};
use crate::error::Error;
use crate::row::{Reader, Row, Schema, Writer};

/// The first line of a log.
const MAGIC: &[u8] = b"anabranch sweep log 1\n";
/// Suffix of the name of a log.
const SUFFIX: &str = ".log";

/// The rows of a folder.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    /// Whether rows are written to the folder.
    keeping: Keeping,
    rows: BTreeMap<Address, Kept>,
    schemas: Vec<Arc<Schema>>,
    /// Rows of other builds; they stay in the folder.
    foreign: BTreeSet<Address>,
    /// How far each log has been read.
    read: BTreeMap<PathBuf, Position>,
    log: Option<Log>,
}

/// Whether rows outlive the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Keeping {
    /// Rows are written to the folder.
    Folder,
    /// Rows are only kept in memory.
    Memory,
}

/// A row without the parts that many rows share.
#[derive(Debug)]
struct Kept {
    schema: Arc<Schema>,
    values: Box<[Option<f64>]>,
}

/// Read position in a log.
#[derive(Debug, Default)]
struct Position {
    /// Bytes of complete records.
    good: u64,
    /// Incomplete bytes after them: a record that is being written, or was interrupted.
    torn: u64,
    reader: Reader,
}

/// The log of this process.
#[derive(Debug)]
struct Log {
    path: PathBuf,
    file: File,
    /// Bytes of complete records.
    good: u64,
    writer: Writer,
}

impl Store {
    /// Opens a folder, which need not exist yet. Nothing is written before the first row is added.
    ///
    /// # Errors
    /// [`Error::Store`] if the folder or a log cannot be read.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, Error> {
        let mut store = Self::new(folder.into(), Keeping::Folder);
        store.refresh()?;
        Ok(store)
    }

    /// Creates a store in memory; its rows are lost when it is dropped.
    pub fn in_memory() -> Self {
        Self::new(PathBuf::new(), Keeping::Memory)
    }

    fn new(folder: PathBuf, keeping: Keeping) -> Self {
        let (rows, read) = (BTreeMap::new(), BTreeMap::new());
        let foreign = BTreeSet::new();
        Self { folder, keeping, rows, schemas: Vec::new(), foreign, read, log: None }
    }

    /// The folder; an empty path for a store in memory.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Number of rows of other builds. They stay in the folder but are not used, since their
    /// results may differ.
    pub fn foreign(&self) -> usize {
        self.foreign.len()
    }

    /// True if the run is done.
    pub fn contains(&self, address: &Address) -> bool {
        self.rows.contains_key(address)
    }

    /// The result of a run.
    pub fn get(&self, address: &Address) -> Option<Row> {
        let kept = self.rows.get(address)?;
        Some(Row { address: *address, schema: kept.schema.clone(), values: kept.values.clone() })
    }

    /// The value of one metric of a run.
    pub fn figure(&self, address: &Address, metric: &str) -> Option<f64> {
        let kept = self.rows.get(address)?;
        let place = kept.schema.0.binary_search_by(|(name, _)| name.as_str().cmp(metric)).ok()?;
        kept.values.get(place).copied().flatten()
    }

    /// The result of a run, without a copy.
    pub fn values(&self, address: &Address) -> Option<(&Arc<Schema>, &[Option<f64>])> {
        self.rows.get(address).map(|kept| (&kept.schema, &*kept.values))
    }

    /// Names and units of the metrics of a run.
    pub fn schema(&self, address: &Address) -> Option<&Arc<Schema>> {
        self.rows.get(address).map(|kept| &kept.schema)
    }

    /// Reads rows that other processes have added.
    ///
    /// # Errors
    /// [`Error::Store`] if the folder or a log cannot be read.
    pub fn refresh(&mut self) -> Result<(), Error> {
        if self.keeping == Keeping::Memory {
            return Ok(());
        }
        let own = self.log.as_ref().map(|log| log.path.clone());
        for path in logs(&self.folder)? {
            if own.as_ref() == Some(&path) {
                continue;
            }
            let failed = |error| Error::Store { doing: "read", path: path.clone(), error };
            let mut file = match File::open(&path) {
                Ok(file) => file,
                Err(error) => return Err(failed(error)),
            };
            self.catch_up(&path, &mut file).map_err(failed)?;
        }
        Ok(())
    }

    /// Number of incomplete bytes at the ends of logs: interrupted writes, or writes in progress.
    pub fn torn(&self) -> u64 {
        self.read.values().map(|position| position.torn).sum()
    }

    /// Appends rows with a single write. Existing rows are skipped.
    ///
    /// # Errors
    /// [`Error::Store`]; then none of the rows counts as added.
    pub fn append(&mut self, rows: &[Row]) -> Result<(), Error> {
        let new: Vec<&Row> = rows.iter().filter(|row| !self.contains(&row.address)).collect();
        if new.is_empty() {
            return Ok(());
        }
        if self.keeping == Keeping::Memory {
            new.into_iter().for_each(|row| self.keep(row.clone()));
            return Ok(());
        }
        if self.log.is_none() {
            self.log = Some(self.claim()?);
        }
        let log = self.log.as_mut().expect("it was claimed above");
        let mut octets = Vec::new();
        // Readers use only rows of their own build.
        log.writer.build(BUILD, &mut octets);
        new.iter().for_each(|row| log.writer.put(row, &mut octets));
        if let Err(error) = log.file.write_all(&octets) {
            // A part of the rows may have been written. It is truncated; if that fails too, readers
            // skip it like any incomplete end.
            let _ = log.file.set_len(log.good);
            let error = Error::unwritten(&log.path, error);
            // The writer assumes that its schemas are written, so the next append takes a log again
            // from the start.
            self.log = None;
            return Err(error);
        }
        log.good += octets.len() as u64;
        for row in new {
            self.keep(row.clone());
        }
        Ok(())
    }

    /// Waits until added rows are on the disk. Without it, rows survive the death of the process,
    /// but perhaps not a failure of the machine.
    ///
    /// # Errors
    /// [`Error::Store`] if the disk fails.
    pub fn sync(&self) -> Result<(), Error> {
        let Some(log) = &self.log else { return Ok(()) };
        log.file.sync_data().map_err(|error| Error::unwritten(&log.path, error))
    }

    fn keep(&mut self, row: Row) {
        // Rows of a sweep share few schemas, and usually the latest one.
        let known = self.schemas.iter().rposition(|s| Arc::ptr_eq(s, &row.schema) || **s == *row.schema);
        let place = known.unwrap_or_else(|| {
            self.schemas.push(row.schema.clone());
            self.schemas.len() - 1
        });
        let schema = self.schemas[place].clone();
        self.rows.insert(row.address, Kept { schema, values: row.values });
    }

    /// Continues reading a log.
    fn catch_up(&mut self, path: &Path, file: &mut File) -> io::Result<()> {
        let mut position = self.read.remove(path).unwrap_or_default();
        file.seek(SeekFrom::Start(position.good))?;
        let mut octets = Vec::new();
        file.read_to_end(&mut octets)?;
        let mut rest = octets.as_slice();
        if position.good == 0 {
            match rest.strip_prefix(MAGIC) {
                Some(records) => {
                    position.good = MAGIC.len() as u64;
                    rest = records;
                }
                // A process died while it created the log, or is about to write.
                None if MAGIC.starts_with(rest) => rest = &[],
                None => {
                    return Err(io::Error::new(
                        ErrorKind::InvalidData,
                        "not a log of a sweep, or written by another version",
                    ));
                }
            }
        }
        while let Some((row, used)) = position.reader.take(rest) {
            if let Some(row) = row {
                if position.reader.build() == Some(BUILD) {
                    self.keep(row);
                } else {
                    self.foreign.insert(row.address);
                }
            }
            position.good += used as u64;
            rest = &rest[used..];
        }
        position.torn = rest.len() as u64;
        self.read.insert(path.to_owned(), position);
        Ok(())
    }

    /// Takes over a log without a writer, or creates one.
    fn claim(&mut self) -> Result<Log, Error> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| Error::Store { doing: "write", path, error }
        };
        fs::create_dir_all(&self.folder).map_err(failed(&self.folder))?;
        let present = logs(&self.folder)?;
        for path in &present {
            let opened = OpenOptions::new().read(true).write(true).open(path).map_err(failed(path))?;
            if let Some(log) = self.take(path, opened)? {
                return Ok(log);
            }
        }
        let last = present.iter().filter_map(|path| path.file_stem()?.to_str()?.parse::<u64>().ok()).max();
        for number in last.map_or(0, |last| last + 1).. {
            let path = self.folder.join(format!("{number:04}{SUFFIX}"));
            match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
                Ok(file) => {
                    if let Some(log) = self.take(&path, file)? {
                        return Ok(log);
                    }
                }
                // Another process was faster.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(&path)(error)),
            }
        }
        unreachable!("there are more numbers than files")
    }

    /// Takes over a log if no process holds its lock.
    fn take(&mut self, path: &Path, mut file: File) -> Result<Option<Log>, Error> {
        let failed = |error| Error::unwritten(path, error);
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        // Under the lock, read the rest of the log: the previous owner may have appended rows
        // since.
        self.catch_up(path, &mut file).map_err(failed)?;
        let position = self.read.remove(path).unwrap_or_default();
        let mut good = position.good;
        // The owner of the lock is the only writer, so an incomplete end is left over from a killed
        // process.
        file.set_len(good).map_err(failed)?;
        file.seek(SeekFrom::Start(good)).map_err(failed)?;
        if good == 0 {
            file.write_all(MAGIC).map_err(failed)?;
            good = MAGIC.len() as u64;
        }
        Ok(Some(Log { path: path.to_owned(), file, good, writer: position.reader.into_writer() }))
    }
}

/// The logs of a folder, sorted by name; none if there is no folder.
fn logs(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |error| Error::Store { doing: "read", path: folder.to_owned(), error };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == &SUFFIX[1..]) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}
