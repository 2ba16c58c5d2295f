//! What of a file that has not come to its end is on the disk for certain.
//!
//! Two files: the *part*, which has the octets, and the *journal*, records of one size that say how
//! many of them count. A record is written only once the octets that it speaks of are forced to the
//! disk, and the last one that can be read counts. So whatever the journal says after a power cut
//! is true; what it does not say is fetched again.

use std::io;

use sha2::{Digest, Sha256};

/// What holds a part and its journal. What is written may be lost, in part or in whole, until it is
/// synced.
pub(super) trait Disk {
    /// All of the journal; nothing if there is none.
    fn read_journal(&mut self) -> io::Result<Vec<u8>>;
    /// Adds to the journal.
    fn append_journal(&mut self, octets: &[u8]) -> io::Result<()>;
    /// Forces the journal to the disk.
    fn sync_journal(&mut self) -> io::Result<()>;
    /// Puts another journal in the place of this one, whole or not at all, and forces it and the
    /// names to the disk.
    fn replace_journal(&mut self, octets: &[u8]) -> io::Result<()>;
    /// Octets of the part; 0 if there is none.
    fn part_length(&mut self) -> io::Result<u64>;
    /// Makes a part if there is none.
    fn make_part(&mut self) -> io::Result<()>;
    /// Writes into the part.
    fn write_part(&mut self, at: u64, octets: &[u8]) -> io::Result<()>;
    /// Forces the part to the disk.
    fn sync_part(&mut self) -> io::Result<()>;
    /// Cuts the part.
    fn truncate_part(&mut self, to: u64) -> io::Result<()>;
}

/// Which file, and which transfer of it.
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

/// How far a file is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Unfinished,
    /// It has gone where it shall go.
    Done,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Record {
    sequence: u64,
    subject: Subject,
    /// Octets of the part that count.
    delivered: u64,
    state: State,
}

/// What there is of a file that somebody would send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// The first octets, or none. The journal is about this file now.
    From(u64),
    /// All, and this very transfer has brought it where it shall be.
    Done,
    /// All was there, and the part is gone: it has its place, unless somebody has removed it.
    Placed,
    /// So many octets of another file, of which nobody has said that they may go.
    Unfinished(u64),
}

/// The journal of one place.
#[derive(Debug)]
pub(super) struct Journal<D: Disk> {
    disk: D,
    last: Option<Record>,
    /// Octets that are in the part, synced or not.
    written: u64,
    /// Octets of the journal.
    size: usize,
    /// A record was torn: the next cannot stand behind it.
    torn: bool,
    /// The disk could not keep what it had taken. What it says later is no proof.
    lost: bool,
}

impl<D: Disk> Journal<D> {
    pub(super) fn open(mut disk: D) -> io::Result<Self> {
        let octets = disk.read_journal()?;
        let last = octets.chunks_exact(RECORD).filter_map(Record::read).max_by_key(|record| record.sequence);
        Ok(Self { disk, last, written: 0, size: octets.len(), torn: false, lost: false })
    }

    /// What there is of `subject`. If that is [`Found::From`], [`Journal::restart`] comes next.
    /// Nothing changes.
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
            // It was put into its place, and the power went before that could be written down.
            Some(Record { state: State::Unfinished, subject: whole, delivered, .. })
                if length < delivered && delivered == whole.length && whole.transfer == subject.transfer =>
            {
                return Ok(Found::Placed);
            }
            Some(Record { state: State::Unfinished, delivered, .. }) if length >= delivered => delivered,
            // Somebody else has been at the part.
            Some(_) | None => 0,
        }))
    }

    /// From here on the journal is about `subject`, of which the part has `from` octets. Octets may
    /// follow.
    pub(super) fn restart(&mut self, subject: Subject, from: u64) -> io::Result<()> {
        self.disk.make_part()?;
        // First, so that a full disk has space for the record. A part that is shorter than its
        // record says counts for nothing.
        self.disk.truncate_part(from)?;
        let sequence = self.sequence();
        self.replace(Record { sequence, subject, delivered: from, state: State::Unfinished })?;
        self.written = from;
        Ok(())
    }

    /// The next octets. They count from the next [`Journal::checkpoint`] on.
    pub(super) fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        self.disk.write_part(self.written, octets)?;
        self.written += octets.len() as u64;
        Ok(())
    }

    /// Octets that do not count yet.
    pub(super) fn uncertain(&self) -> u64 {
        self.written - self.last.map_or(0, |last| last.delivered)
    }

    /// Forces what was written to the disk, and then says so.
    pub(super) fn checkpoint(&mut self) -> io::Result<()> {
        let Some(last) = self.last.filter(|last| last.state == State::Unfinished) else { return Ok(()) };
        if last.delivered == self.written {
            return Ok(());
        }
        if self.lost {
            return Err(io::Error::other("the disk has lost what it had taken"));
        }
        self.disk.sync_part().inspect_err(|_| self.lost = true)?;
        self.record(Record { sequence: self.sequence(), delivered: self.written, ..last })
    }

    /// Gives back the space that was allocated for octets that have not come.
    pub(super) fn release(&mut self) -> io::Result<()> {
        match self.last {
            Some(Record { state: State::Unfinished, .. }) => self.disk.truncate_part(self.written),
            _ => Ok(()),
        }
    }

    /// Hands on a file that is whole. `settle` stores its sequence number first: a power cut after
    /// `hand_on` and before the number would leave a file that an older one could follow.
    ///
    /// # Errors
    /// A step failed; the steps behind it were not tried.
    pub(super) async fn hand_on(
        &mut self,
        settle: impl FnOnce(&mut D) -> io::Result<()>,
        hand_on: impl AsyncFnOnce(&mut D) -> io::Result<()>,
    ) -> io::Result<()> {
        settle(&mut self.disk)?;
        hand_on(&mut self.disk).await?;
        self.done()
    }

    /// The file has gone where it shall go.
    fn done(&mut self) -> io::Result<()> {
        let Some(last) = self.last else { return Ok(()) };
        self.record(Record { sequence: self.sequence(), state: State::Done, ..last })
    }

    /// What has come is of no use.
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
        // Until the end of this nobody knows which part of the record is there.
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

    /// `None` if it is torn, or none of ours.
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

const MAGIC: &[u8; 8] = b"ANABRJ01";
/// Octets of a record, and those of them that its checksum covers.
const RECORD: usize = 96;
const CHECKED: usize = 80;
/// A journal that is longer is begun anew.
const LONGEST: usize = 64 << 10;

#[cfg(test)]
mod tests;
