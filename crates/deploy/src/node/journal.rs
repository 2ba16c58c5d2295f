//! Records how much of an unfinished file is safely on the disk.
//!
//! Two files belong to a transfer. The *part* holds the bytes; the *journal* holds records of fixed
//! size that say how many of these bytes are valid. A record is written only after its bytes were
//! synced, and the last readable record counts. So the journal is correct after a power cut at any
//! moment; bytes beyond its last record are requested again.

use std::io;

use sha2::{Digest, Sha256};

/// Storage of a part and its journal. Written data may be lost, wholly or partly, until it is
/// synced.
pub(super) trait Disk {
    /// Reads the whole journal; empty if it does not exist.
    fn read_journal(&mut self) -> io::Result<Vec<u8>>;
    /// Appends to the journal.
    fn append_journal(&mut self, octets: &[u8]) -> io::Result<()>;
    /// Syncs the journal.
    fn sync_journal(&mut self) -> io::Result<()>;
    /// Replaces the journal atomically, and syncs it and its folder.
    fn replace_journal(&mut self, octets: &[u8]) -> io::Result<()>;
    /// Length of the part in bytes; 0 if it does not exist.
    fn part_length(&mut self) -> io::Result<u64>;
    /// Creates the part if it does not exist.
    fn make_part(&mut self) -> io::Result<()>;
    /// Writes to the part at offset `at`.
    fn write_part(&mut self, at: u64, octets: &[u8]) -> io::Result<()>;
    /// Syncs the part.
    fn sync_part(&mut self) -> io::Result<()>;
    /// Truncates the part.
    fn truncate_part(&mut self, to: u64) -> io::Result<()>;
}

/// Identity of a file and of its transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Subject {
    pub(super) digest: [u8; 32],
    pub(super) length: u64,
    pub(super) transfer: u64,
}

impl Subject {
    fn is_same_file(&self, other: &Self) -> bool {
        self.digest == other.digest && self.length == other.length
    }
}

/// State of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Unfinished,
    /// The file was handed on.
    Done,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Record {
    sequence: u64,
    subject: Subject,
    /// Number of valid bytes in the part.
    delivered: u64,
    state: State,
}

/// What the disk holds of a file that a sender offers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// This number of bytes, maybe 0; the transfer continues from there.
    From(u64),
    /// The whole file, handed on by this very transfer.
    Done,
    /// All bytes were received and the part is gone: the file was probably moved to its place
    /// before a power cut.
    Placed,
    /// This number of bytes of another file, which the sender did not ask to discard.
    Unfinished(u64),
}

/// Journal of one output.
#[derive(Debug)]
pub(super) struct Journal<D: Disk> {
    disk: D,
    last: Option<Record>,
    /// Number of bytes in the part, synced or not.
    written: u64,
    /// Length of the journal in bytes.
    size: usize,
    /// The last append may be incomplete, so the next record must replace the journal instead of
    /// following it.
    torn: bool,
    /// A sync of the part failed. On Linux a later sync may succeed although the data was lost, so
    /// no checkpoint is possible any more.
    lost: bool,
}

impl<D: Disk> Journal<D> {
    pub(super) fn open(mut disk: D) -> io::Result<Self> {
        let octets = disk.read_journal()?;
        // An incomplete record fails its checksum and is skipped; of the others the latest counts.
        let last = octets.chunks_exact(RECORD).filter_map(Record::read).max_by_key(|record| record.sequence);
        Ok(Self { disk, last, written: 0, size: octets.len(), torn: false, lost: false })
    }

    /// Looks up what the disk holds of `subject`; changes nothing. After [`Found::From`], the
    /// caller continues with [`Journal::restart`]. `discard` ignores what an earlier transfer left.
    pub(super) fn find(&mut self, subject: Subject, discard: bool) -> io::Result<Found> {
        let length = self.disk.part_length()?;
        Ok(Found::From(match self.last.filter(|_| !discard) {
            Some(last) if !last.subject.is_same_file(&subject) => {
                let unfinished = last.state == State::Unfinished && length >= last.delivered;
                if unfinished && last.delivered > 0 {
                    return Ok(Found::Unfinished(last.delivered));
                }
                0
            }
            Some(Record { state: State::Done, subject: done, .. }) if done.transfer == subject.transfer => {
                return Ok(Found::Done);
            }
            // The part was moved to its place, and a power cut came before the record of that.
            Some(Record { state: State::Unfinished, subject: whole, delivered, .. })
                if length < delivered && delivered == whole.length && whole.transfer == subject.transfer =>
            {
                return Ok(Found::Placed);
            }
            Some(Record { state: State::Unfinished, delivered, .. }) if length >= delivered => delivered,
            // The part is shorter than its record: another program changed it.
            Some(_) | None => 0,
        }))
    }

    /// Starts or resumes `subject`, of which the part holds `from` bytes.
    pub(super) fn restart(&mut self, subject: Subject, from: u64) -> io::Result<()> {
        self.disk.make_part()?;
        // Truncate before the record is written, so that a full disk has space for the record. If
        // the power fails between the two, the part is shorter than its record and counts for
        // nothing.
        self.disk.truncate_part(from)?;
        let sequence = self.sequence();
        self.replace(Record { sequence, subject, delivered: from, state: State::Unfinished })?;
        self.written = from;
        Ok(())
    }

    /// Appends bytes to the part. They become valid with the next [`Journal::checkpoint`].
    pub(super) fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        self.disk.write_part(self.written, octets)?;
        self.written += octets.len() as u64;
        Ok(())
    }

    /// Number of bytes that are not valid yet.
    pub(super) fn uncertain(&self) -> u64 {
        self.written - self.last.map_or(0, |last| last.delivered)
    }

    /// Syncs the part, then records its length.
    pub(super) fn checkpoint(&mut self) -> io::Result<()> {
        let Some(last) = self.last.filter(|last| last.state == State::Unfinished) else { return Ok(()) };
        if last.delivered == self.written {
            return Ok(());
        }
        if self.lost {
            return Err(io::Error::other("an earlier sync failed: written data may be lost"));
        }
        // The bytes must be on the disk before the record that counts them as valid.
        self.disk.sync_part().inspect_err(|_| self.lost = true)?;
        self.record(Record { sequence: self.sequence(), delivered: self.written, ..last })
    }

    /// Releases blocks allocated for bytes that were not received.
    pub(super) fn release(&mut self) -> io::Result<()> {
        match self.last {
            Some(Record { state: State::Unfinished, .. }) => self.disk.truncate_part(self.written),
            _ => Ok(()),
        }
    }

    /// Hands on a complete file.
    ///
    /// `settle` runs first and stores the sequence number. Otherwise a power cut between the two
    /// steps would leave a file in place after which an older one is still accepted.
    ///
    /// # Errors
    /// A step failed; later steps were not tried.
    pub(super) async fn hand_on(
        &mut self,
        settle: impl FnOnce(&mut D) -> io::Result<()>,
        hand_on: impl AsyncFnOnce(&mut D) -> io::Result<()>,
    ) -> io::Result<()> {
        settle(&mut self.disk)?;
        hand_on(&mut self.disk).await?;
        self.done()
    }

    /// Records that the file was handed on.
    fn done(&mut self) -> io::Result<()> {
        let Some(last) = self.last else { return Ok(()) };
        self.record(Record { sequence: self.sequence(), state: State::Done, ..last })
    }

    /// Discards the bytes received so far.
    pub(super) fn throw_away(&mut self) -> io::Result<()> {
        let Some(last) = self.last else { return Ok(()) };
        self.restart(last.subject, 0)
    }

    pub(super) fn disk(&mut self) -> &mut D {
        &mut self.disk
    }

    fn sequence(&self) -> u64 {
        self.last.map_or(0, |last| last.sequence + 1)
    }

    fn record(&mut self, record: Record) -> io::Result<()> {
        if self.torn || self.size + RECORD > LONGEST {
            return self.replace(record);
        }
        // If writing fails below, an unknown part of the record is in the journal.
        self.torn = true;
        self.disk.append_journal(&record.octets())?;
        self.disk.sync_journal()?;
        self.torn = false;
        self.size += RECORD;
        self.last = Some(record);
        Ok(())
    }

    fn replace(&mut self, record: Record) -> io::Result<()> {
        self.torn = true;
        self.disk.replace_journal(&record.octets())?;
        self.torn = false;
        self.size = RECORD;
        self.last = Some(record);
        Ok(())
    }
}

impl Record {
    fn octets(&self) -> [u8; RECORD] {
        let Subject { digest, length, transfer } = self.subject;
        // Layout, all numbers big-endian: magic 0..8, sequence 8..16, digest 16..48, length 48..56,
        // delivered 56..64, transfer 64..72, state 72, zeros to 80, first 16 bytes of SHA-256
        // 80..96.
        let mut octets = [0; RECORD];
        octets[..8].copy_from_slice(MAGIC);
        octets[8..16].copy_from_slice(&self.sequence.to_be_bytes());
        octets[16..48].copy_from_slice(&digest);
        octets[48..56].copy_from_slice(&length.to_be_bytes());
        octets[56..64].copy_from_slice(&self.delivered.to_be_bytes());
        octets[64..72].copy_from_slice(&transfer.to_be_bytes());
        octets[72] = u8::from(self.state == State::Done);
        let checksum = Sha256::digest(&octets[..CHECKED]);
        octets[CHECKED..].copy_from_slice(&checksum[..RECORD - CHECKED]);
        octets
    }

    /// Parses a record; `None` if it is incomplete or has another format.
    fn read(octets: &[u8]) -> Option<Self> {
        let (said, checksum) = octets.split_at_checked(CHECKED)?;
        let whole = Sha256::digest(said).starts_with(checksum) && said.starts_with(MAGIC);
        let number = |at: usize| said[at..].first_chunk().map(|octets| u64::from_be_bytes(*octets));
        let subject =
            Subject { digest: *said[16..].first_chunk()?, length: number(48)?, transfer: number(64)? };
        let state = match said[72] {
            0 => State::Unfinished,
            1 => State::Done,
            _ => return None,
        };
        whole.then_some(Self { sequence: number(8)?, subject, delivered: number(56)?, state })
    }
}

/// Identifies records of this format.
const MAGIC: &[u8; 8] = b"ANABRJ01";
/// Length of a record, and of the part that its checksum covers, in bytes.
const RECORD: usize = 96;
const CHECKED: usize = 80;
/// Length at which the journal is replaced by its last record, in bytes.
const LONGEST: usize = 64 << 10;

#[cfg(test)]
mod tests;
