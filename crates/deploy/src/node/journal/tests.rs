//! Tests with a power cut after every write. The disk may keep, lose, or keep a part of data that
//! was not synced.

use anabranch_secure::manifest::Highest;

use super::super::sequence::{Store, highest, raise};
use super::*;

/// An operation on the disk.
#[derive(Clone, Debug)]
enum Op {
    AppendJournal(Vec<u8>),
    SyncJournal,
    ReplaceJournal(Vec<u8>),
    MakePart,
    WritePart(u64, Vec<u8>),
    SyncPart,
    TruncatePart(u64),
    Place,
    ReplaceSequence(Vec<u8>),
}

/// What a restarted node would find.
#[derive(Clone, Default, Debug)]
struct Contents {
    journal: Vec<u8>,
    part: Option<Vec<u8>>,
    place: Option<Vec<u8>>,
    sequence: Option<Vec<u8>>,
}

/// A simulated disk that records its operations.
#[derive(Clone, Default, Debug)]
struct Simulated {
    now: Contents,
    before: Contents,
    ops: Vec<Op>,
    /// Capacity for part and journal, in bytes. Records after the first need no space: they fit
    /// into a block that the journal already has.
    room: Option<u64>,
    /// The next sync of the part fails. Later ones succeed, as on Linux, which marks the lost data
    /// as written.
    is_failing: bool,
}

fn write(part: &mut Option<Vec<u8>>, at: u64, octets: &[u8]) {
    let part = part.get_or_insert_default();
    let end = at as usize + octets.len();
    if part.len() < end {
        part.resize(end, 0);
    }
    part[at as usize..end].copy_from_slice(octets);
}

impl Contents {
    fn act(&mut self, op: &Op) {
        match op {
            Op::AppendJournal(octets) => self.journal.extend_from_slice(octets),
            Op::ReplaceJournal(octets) => self.journal.clone_from(octets),
            Op::SyncJournal | Op::SyncPart => {}
            Op::MakePart => drop(self.part.get_or_insert_default()),
            Op::WritePart(at, octets) => write(&mut self.part, *at, octets),
            Op::TruncatePart(to) => self.part.get_or_insert_default().resize(*to as usize, 0),
            Op::Place => self.place = self.part.take(),
            Op::ReplaceSequence(octets) => self.sequence = Some(octets.clone()),
        }
    }
}

impl Simulated {
    fn with(contents: Contents) -> Self {
        Self { now: contents.clone(), before: contents, ops: Vec::new(), room: None, is_failing: false }
    }

    fn act(&mut self, op: Op) -> io::Result<()> {
        self.now.act(&op);
        self.ops.push(op);
        Ok(())
    }

    /// All possible contents after a power cut behind the first `n` operations.
    fn after(&self, n: usize) -> Vec<Contents> {
        let mut certain = self.before.clone();
        let mut journal: Vec<&Op> = Vec::new();
        let mut part: Vec<&Op> = Vec::new();
        for op in &self.ops[..n] {
            match op {
                Op::AppendJournal(_) => journal.push(op),
                Op::WritePart(..) | Op::TruncatePart(_) => part.push(op),
                Op::SyncJournal => journal.drain(..).for_each(|op| certain.act(op)),
                Op::SyncPart => part.drain(..).for_each(|op| certain.act(op)),
                // Replacing syncs that file and the folder, but not the part, which is another
                // file.
                Op::ReplaceSequence(_) => certain.act(op),
                Op::ReplaceJournal(_) | Op::MakePart => {
                    journal.clear();
                    certain.act(op);
                }
                Op::Place => {
                    part.drain(..).for_each(|op| certain.act(op));
                    certain.act(op);
                }
            }
        }
        let mut journals = vec![certain.journal.clone()];
        for op in journal {
            let Op::AppendJournal(octets) = op else { continue };
            // The append may be cut at any byte, or have its full length with zeros in its second
            // half.
            journals.extend((1..=octets.len()).map(|n| [&certain.journal[..], &octets[..n]].concat()));
            let half = [&octets[..octets.len() / 2], &vec![0; octets.len() / 2]].concat();
            journals.push([&certain.journal[..], &half].concat());
        }
        let mut parts = vec![certain.part.clone()];
        for skipped in 0..part.len() {
            // All writes but one in the middle survive, or all up to one, of which half survives.
            for torn in [false, true] {
                let mut contents = certain.clone();
                for (i, op) in part.iter().enumerate() {
                    match (i == skipped, torn, op) {
                        (false, true, _) if i > skipped => {}
                        (false, _, _) => contents.act(op),
                        (true, true, Op::WritePart(at, octets)) => {
                            write(&mut contents.part, *at, &octets[..octets.len() / 2])
                        }
                        (true, ..) => {}
                    }
                }
                parts.push(contents.part);
            }
        }
        let mut all = certain.clone();
        part.iter().for_each(|op| all.act(op));
        parts.push(all.part);
        let (place, sequence) = (certain.place, certain.sequence);
        journals
            .iter()
            .flat_map(|journal| parts.iter().map(move |part| (journal.clone(), part.clone())))
            .map(|(journal, part)| Contents {
                journal,
                part,
                place: place.clone(),
                sequence: sequence.clone(),
            })
            .collect()
    }
}

impl Disk for Simulated {
    fn read_journal(&mut self) -> io::Result<Vec<u8>> {
        Ok(self.now.journal.clone())
    }
    fn append_journal(&mut self, octets: &[u8]) -> io::Result<()> {
        self.act(Op::AppendJournal(octets.to_vec()))
    }
    fn sync_journal(&mut self) -> io::Result<()> {
        self.act(Op::SyncJournal)
    }
    fn replace_journal(&mut self, octets: &[u8]) -> io::Result<()> {
        // The old and the new journal exist at the same time.
        let used = self.now.journal.len() + self.now.part.as_ref().map_or(0, Vec::len) + octets.len();
        if self.room.is_some_and(|room| used as u64 > room) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.act(Op::ReplaceJournal(octets.to_vec()))
    }
    fn part_length(&mut self) -> io::Result<u64> {
        Ok(self.now.part.as_ref().map_or(0, |part| part.len() as u64))
    }
    fn make_part(&mut self) -> io::Result<()> {
        self.act(Op::MakePart)
    }
    fn write_part(&mut self, at: u64, octets: &[u8]) -> io::Result<()> {
        let journal = self.now.journal.len() as u64;
        let room =
            self.room.map_or(u64::MAX, |room| room.saturating_sub(journal + at)).min(octets.len() as u64);
        self.act(Op::WritePart(at, octets[..room as usize].to_vec()))?;
        if room < octets.len() as u64 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
    fn sync_part(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_failing) {
            return Err(io::Error::other("it could not be written"));
        }
        self.act(Op::SyncPart)
    }
    fn truncate_part(&mut self, to: u64) -> io::Result<()> {
        self.act(Op::TruncatePart(to))
    }
}

impl Store for Simulated {
    fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.now.sequence.clone())
    }
    fn replace(&mut self, octets: &[u8]) -> io::Result<()> {
        self.act(Op::ReplaceSequence(octets.to_vec()))
    }
}

/// A file whose bytes occur in no other test file.
fn file(seed: u8, length: usize) -> Vec<u8> {
    (0..length).map(|i| (i as u8).wrapping_mul(31) ^ seed | 1).collect()
}

fn subject(octets: &[u8], transfer: u64) -> Subject {
    Subject { digest: Sha256::digest(octets).into(), length: octets.len() as u64, transfer }
}

/// Writes the rest of `octets` in pieces, with a checkpoint after every third, and puts the file
/// into its place.
fn transfer(journal: &mut Journal<Simulated>, octets: &[u8], from: u64) {
    for (i, piece) in octets[from as usize..].chunks(40).enumerate() {
        journal.write(piece).expect("there is room");
        if i % 3 == 2 {
            journal.checkpoint().expect("a disk");
        }
    }
    journal.checkpoint().expect("a disk");
    hand_on(journal, |_| Ok(()));
}

/// Puts the file into its place with [`Journal::hand_on`], as the node does.
fn hand_on(journal: &mut Journal<Simulated>, settle: impl FnOnce(&mut Simulated) -> io::Result<()>) {
    let handed = journal.hand_on(settle, async |disk: &mut Simulated| disk.act(Op::Place));
    crate::service::runtime().expect("a runtime").block_on(handed).expect("a disk");
}

/// Bytes that are certainly valid after the first `n` operations: those of the last synced record.
fn certain(disk: &Simulated, n: usize) -> u64 {
    let mut journal = disk.before.journal.clone();
    let mut pending = Vec::new();
    for op in &disk.ops[..n] {
        match op {
            Op::AppendJournal(octets) => pending.extend_from_slice(octets),
            Op::SyncJournal => journal.append(&mut pending),
            Op::ReplaceJournal(octets) => journal.clone_from(octets),
            _ => {}
        }
    }
    let records = journal.chunks_exact(RECORD).filter_map(Record::read);
    records.max_by_key(|r| r.sequence).map_or(0, |r| r.delivered)
}

/// Resumes or starts `subject`.
fn begin(journal: &mut Journal<Simulated>, subject: Subject, discard: bool) -> Found {
    let found = journal.find(subject, discard).expect("a disk");
    if let Found::From(from) = found {
        journal.restart(subject, from).expect("there is room");
    }
    found
}

/// Cuts the power at each point of `disk`'s history. What the journal claims of `octets` must be
/// true, nothing certain may be lost, and the resumed transfer must complete the file. `again` also
/// cuts the resumed transfer.
fn cut_everywhere(disk: &Simulated, octets: &[u8], again: bool) -> u64 {
    let mut cuts = 0;
    for n in 0..=disk.ops.len() {
        let all = disk.after(n);
        let last = all.len() - 1;
        for (i, contents) in all.into_iter().enumerate() {
            cuts += 1;
            let mut journal = Journal::open(Simulated::with(contents.clone())).expect("a disk");
            match begin(&mut journal, subject(octets, 1), false) {
                Found::From(from) => {
                    let part = contents.part.as_deref().unwrap_or_default();
                    assert!(part[..from as usize] == octets[..from as usize], "after {n} operations");
                    assert!(from >= certain(disk, n), "after {n} operations {from} are left");
                    assert_eq!(journal.disk().now.part.as_ref().map(Vec::len), Some(from as usize));
                    transfer(&mut journal, octets, from);
                    if again && (i == 0 || i == last) {
                        cut_everywhere(journal.disk(), octets, false);
                    }
                }
                Found::Done | Found::Placed => {}
                Found::Unfinished(_) => panic!("it is the same file"),
            }
            assert!(journal.disk().now.place.as_deref() == Some(octets), "after {n} operations");
        }
    }
    cuts
}

#[test]
fn after_a_power_cut_at_any_write_what_the_journal_claims_is_true() {
    let octets = file(2, 300);
    let mut journal = Journal::open(Simulated::default()).expect("a disk");
    assert_eq!(begin(&mut journal, subject(&octets, 1), false), Found::From(0));
    transfer(&mut journal, &octets, 0);
    let cuts = cut_everywhere(journal.disk(), &octets, true);
    assert!(cuts > 500, "{cuts}");
}

/// The part of one file is never taken for that of another.
#[test]
fn a_power_cut_while_one_file_makes_way_for_another() {
    let (old, new) = (file(2, 300), file(4, 400));
    let mut journal = Journal::open(Simulated::default()).expect("a disk");
    begin(&mut journal, subject(&old, 9), false);
    journal.write(&old[..250]).expect("there is room");
    journal.checkpoint().expect("a disk");
    let found = begin(&mut journal, subject(&new, 1), false);
    assert_eq!(found, Found::Unfinished(250));
    let before = journal.disk().now.clone();
    let mut journal = Journal::open(Simulated::with(before)).expect("a disk");
    assert_eq!(begin(&mut journal, subject(&new, 1), true), Found::From(0));
    transfer(&mut journal, &new, 0);
    let disk = journal.disk();
    for n in 1..=disk.ops.len() {
        for contents in disk.after(n) {
            let mut journal = Journal::open(Simulated::with(contents.clone())).expect("a disk");
            let found = begin(&mut journal, subject(&new, 1), false);
            let part = contents.part.unwrap_or_default();
            match found {
                Found::From(from) => assert!(part[..from as usize] == new[..from as usize]),
                Found::Done | Found::Placed => assert!(contents.place.as_deref() == Some(&new[..])),
                Found::Unfinished(held) => assert!(held == 250 && part[..250] == old[..250]),
            }
        }
    }
}

#[test]
fn a_file_that_is_done_is_known_to_its_transfer_and_to_no_other() {
    let octets = file(2, 100);
    let mut journal = Journal::open(Simulated::default()).expect("a disk");
    begin(&mut journal, subject(&octets, 1), false);
    transfer(&mut journal, &octets, 0);
    let contents = journal.disk().now.clone();
    let found = |transfer, octets: &[u8]| {
        let mut journal = Journal::open(Simulated::with(contents.clone())).expect("a disk");
        begin(&mut journal, subject(octets, transfer), false)
    };
    assert_eq!(found(1, &octets), Found::Done);
    assert_eq!(found(2, &octets), Found::From(0), "its sender wants it sent again");
    assert_eq!(found(1, &file(4, 100)), Found::From(0));
}

#[test]
fn a_disk_that_is_full_keeps_what_was_synced() {
    let octets = file(2, 1000);
    let mut journal = Journal::open(Simulated { room: Some(700), ..Simulated::default() }).expect("a disk");
    begin(&mut journal, subject(&octets, 1), false);
    journal.write(&octets[..480]).expect("there is room");
    let error = journal.write(&octets[480..]).expect_err("there is no room");
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    journal.checkpoint().expect("a disk");
    let mut journal = Journal::open(Simulated::with(journal.disk().now.clone())).expect("a disk");
    assert_eq!(begin(&mut journal, subject(&octets, 1), false), Found::From(480));
}

/// The disk has no space even for a record.
#[test]
fn what_fills_a_disk_can_be_thrown_away() {
    let (old, new) = (file(2, 1000), file(4, 300));
    for again in [0, 100] {
        let mut journal =
            Journal::open(Simulated { room: Some(600), ..Simulated::default() }).expect("a disk");
        begin(&mut journal, subject(&old, 1), false);
        journal.write(&old[..again]).expect("there is room");
        journal.checkpoint().expect("there is room");
        journal.write(&old[again..]).expect_err("there is no room");
        let full = Simulated { room: Some(600), ..Simulated::with(journal.disk().now.clone()) };
        let mut journal = Journal::open(full).expect("a disk");
        assert_eq!(begin(&mut journal, subject(&new, 2), true), Found::From(0));
        transfer(&mut journal, &new, 0);
        assert!(journal.disk().now.place.as_deref() == Some(&new[..]));
    }
}

#[test]
fn a_part_that_somebody_has_cut_counts_for_nothing() {
    let octets = file(2, 1000);
    let mut journal = Journal::open(Simulated::default()).expect("a disk");
    begin(&mut journal, subject(&octets, 1), false);
    journal.write(&octets[..480]).expect("there is room");
    journal.checkpoint().expect("a disk");
    let mut contents = journal.disk().now.clone();
    contents.part.as_mut().expect("a part").truncate(400);
    let mut journal = Journal::open(Simulated::with(contents)).expect("a disk");
    assert_eq!(begin(&mut journal, subject(&octets, 1), false), Found::From(0));
}

#[test]
fn a_journal_does_not_grow_for_ever() {
    let octets = file(2, 100_000);
    let mut journal = Journal::open(Simulated::default()).expect("a disk");
    begin(&mut journal, subject(&octets, 1), false);
    for piece in octets.chunks(50) {
        journal.write(piece).expect("there is room");
        journal.checkpoint().expect("a disk");
        assert!(journal.disk().now.journal.len() <= LONGEST);
    }
    let mut journal = Journal::open(Simulated::with(journal.disk().now.clone())).expect("a disk");
    assert_eq!(begin(&mut journal, subject(&octets, 1), false), Found::From(100_000));
}

/// The sequence number is stored before the file gets its place. So after a power cut at any write,
/// no file is in place whose number could be followed by a lower one.
#[test]
fn after_a_power_cut_at_any_write_no_lower_number_follows_a_file_that_is_there() {
    let files = [file(2, 300), file(4, 200), file(6, 100)];
    let at = |n: usize| Highest { sequence: n as u64, sha256: subject(&files[n], 0).digest };
    let mut journal = Journal::open(Simulated::default()).expect("a disk");
    for (n, octets) in files.iter().enumerate() {
        assert_eq!(begin(&mut journal, subject(octets, n as u64), false), Found::From(0));
        journal.write(octets).expect("there is room");
        journal.checkpoint().expect("a disk");
        hand_on(&mut journal, |disk| raise(disk, &at(n)));
    }
    let mut seen = [false; 3];
    for n in 0..=journal.disk().ops.len() {
        for contents in journal.disk().after(n) {
            let Some(there) = &contents.place else { continue };
            let number = files.iter().position(|octets| octets == there).expect("one of them, and whole");
            let highest = highest(&mut Simulated::with(contents)).expect("it is whole").expect("it is there");
            assert!(highest.sequence >= number as u64, "after {n} operations");
            seen[number] = true;
        }
    }
    assert_eq!(seen, [true; 3]);
}

/// A sync that succeeds after a failed one proves nothing about the earlier data.
#[test]
fn a_disk_that_has_failed_to_sync_is_not_believed_until_its_octets_are_written_again() {
    let octets = file(2, 300);
    let mut journal = Journal::open(Simulated::default()).expect("a disk");
    begin(&mut journal, subject(&octets, 1), false);
    journal.write(&octets[..100]).expect("there is room");
    journal.checkpoint().expect("a disk");
    journal.write(&octets[100..200]).expect("there is room");
    journal.disk().is_failing = true;
    journal.checkpoint().expect_err("the disk says so");
    // All bytes were written, and the node asks for a checkpoint.
    journal.write(&octets[200..]).expect("there is room");
    for _ in 0..2 {
        journal.checkpoint().expect_err("100 octets may be lost");
    }
    let disk = journal.disk();
    assert_eq!(certain(disk, disk.ops.len()), 100);
    let mut journal = Journal::open(Simulated::with(journal.disk().now.clone())).expect("a disk");
    assert_eq!(begin(&mut journal, subject(&octets, 1), false), Found::From(100));
    transfer(&mut journal, &octets, 100);
    assert!(journal.disk().now.place.as_deref() == Some(&octets[..]));
}
