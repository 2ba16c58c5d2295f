//! Tests of the store, including writers that were killed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anabranch_scenario::record::Metric;
use anabranch_sweep::{Address, Error, Row, Store};
use anabranch_testkit::netns;
use anabranch_testkit::tmpfs::Tmpfs;

/// A row that differs from all others in address and values; every third row has another schema.
fn row(number: u8) -> Row {
    let value = |i: u8| Metric {
        value: (i != number % 5).then(|| f64::from(number) + f64::from(i) / 7.0),
        unit: "s",
    };
    let metrics: BTreeMap<String, Metric> =
        (0..4 + number % 3).map(|i| (format!("metric.{i}"), value(i))).collect();
    Row::new(Address([number; 32]), &metrics, None)
}

fn rows(numbers: impl IntoIterator<Item = u8>) -> Vec<Row> {
    numbers.into_iter().map(row).collect()
}

/// The numbers of the first hundred rows that are present.
fn numbers(store: &Store) -> Vec<u8> {
    let there = |number: &u8| {
        let found = store.get(&Address([*number; 32]));
        assert!(found.is_none() || found == Some(row(*number)), "row {number} is not what it was");
        found.is_some()
    };
    (0..100).filter(there).collect()
}

fn logs(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let name = |entry: std::io::Result<fs::DirEntry>| {
        entry.expect("an entry").file_name().to_string_lossy().into_owned()
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

#[test]
fn rows_are_there_when_it_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("new");
    let mut store = Store::open(&place).unwrap();
    assert!(store.is_empty() && !place.exists());
    store.append(&rows(0..10)).unwrap();
    store.append(&rows(5..12)).unwrap();
    assert_eq!((store.len(), numbers(&store)), (12, (0..12).collect()));
    drop(store);
    let mut store = Store::open(&place).unwrap();
    assert_eq!((store.torn(), numbers(&store)), (0, (0..12).collect()));
    store.append(&rows(12..20)).unwrap();
    drop(store);
    assert_eq!(numbers(&Store::open(&place).unwrap()), (0..20).collect::<Vec<_>>());
    assert_eq!(logs(&place), ["0000.log"], "whose owner is gone is taken over");
}

#[test]
fn a_log_that_ends_anywhere_loses_its_last_rows_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let whole = {
        let mut store = Store::open(folder.path()).unwrap();
        store.append(&rows(0..3)).unwrap();
        store.append(&rows(3..6)).unwrap();
        fs::read(folder.path().join("0000.log")).unwrap()
    };
    let mut before = 0;
    for end in 0..=whole.len() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("0000.log");
        fs::write(&log, &whole[..end]).unwrap();
        let store = Store::open(folder.path()).unwrap();
        let there = numbers(&store);
        assert_eq!(there, (0..there.len() as u8).collect::<Vec<_>>(), "{end}");
        assert!(there.len() >= before, "{end}");
        before = there.len();
        // The next writer truncates the incomplete end; nothing is lost or duplicated.
        let mut store = store;
        store.append(&rows(0..8)).unwrap();
        drop(store);
        let again = Store::open(folder.path()).unwrap();
        assert_eq!((again.torn(), again.len(), numbers(&again)), (0, 8, (0..8).collect()), "{end}");
    }
    assert_eq!(before, 6);
}

#[test]
fn octets_after_a_torn_end_are_never_taken_for_rows() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    store.append(&rows(0..4)).unwrap();
    drop(store);
    let log = folder.path().join("0000.log");
    let whole = fs::read(&log).unwrap();
    for place in 22..whole.len() {
        let mut damaged = whole.clone();
        damaged[place] ^= 1;
        fs::write(&log, &damaged).unwrap();
        let store = Store::open(folder.path()).unwrap();
        assert!(store.torn() > 0 && store.len() < 4, "{place}");
        numbers(&store);
    }
    fs::write(&log, "something else entirely").unwrap();
    let error = Store::open(folder.path()).unwrap_err();
    assert!(error.to_string().contains("0000.log") && !error.is_input(), "{error}");
}

#[test]
fn two_at_once_write_a_log_each_and_read_each_other_s() {
    let folder = tempfile::tempdir().unwrap();
    let [mut one, mut two] = [0, 1].map(|_| Store::open(folder.path()).unwrap());
    one.append(&rows(0..3)).unwrap();
    two.append(&rows(2..5)).unwrap();
    assert_eq!(logs(folder.path()), ["0000.log", "0001.log"]);
    assert_eq!((numbers(&one), numbers(&two)), ((0..3).collect(), (2..5).collect()));
    one.refresh().unwrap();
    one.append(&rows(4..7)).unwrap();
    two.refresh().unwrap();
    assert_eq!((numbers(&one), numbers(&two)), ((0..7).collect(), (0..7).collect()));
    drop(one);
    // A third store takes over the log that the first one has released.
    let mut three = Store::open(folder.path()).unwrap();
    three.append(&rows(7..9)).unwrap();
    two.refresh().unwrap();
    assert_eq!(numbers(&two), (0..9).collect::<Vec<_>>());
    assert_eq!(logs(folder.path()).len(), 2);
}

#[test]
fn a_full_disk_is_said_and_what_was_done_is_kept() {
    if !netns::is_root() {
        println!("SKIPPED: a full disk needs a file system of its own, which needs root");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let disk = Tmpfs::mount(folder.path(), 16 << 10);
    let mut store = Store::open(folder.path()).unwrap();
    let mut kept = 0;
    let error = loop {
        match store.append(&rows(kept..kept + 4)) {
            Ok(()) => kept += 4,
            Err(error) => break error,
        }
        assert!(kept < 200, "the disk is not full");
    };
    assert!(
        matches!(&error, Error::Store { .. }) && error.hint().is_some_and(|hint| hint.contains("free space")),
        "{error}"
    );
    assert_eq!(numbers(&store), (0..kept.min(100)).collect::<Vec<_>>());
    disk.resize(1 << 20);
    store.append(&rows(kept..kept + 8)).unwrap();
    drop(store);
    let again = Store::open(folder.path()).unwrap();
    assert_eq!((again.torn(), again.len()), (0, usize::from(kept) + 8));
}

/// A log without builds was written by a program that did not record them.
#[test]
fn rows_of_other_builds_are_kept_and_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    store.append(&rows(0..3)).unwrap();
    drop(store);
    let log = folder.path().join("0000.log");
    let octets = fs::read(&log).unwrap();
    let magic = octets.iter().position(|octet| *octet == b'\n').unwrap() + 1;
    let build = magic + 4 + 1 + anabranch_sweep::address::BUILD.len() + 8;
    fs::write(&log, [&octets[..magic], &octets[build..]].concat()).unwrap();

    let mut store = Store::open(folder.path()).unwrap();
    assert_eq!((store.len(), store.foreign()), (0, 3));
    store.append(&rows(1..2)).unwrap();
    drop(store);
    let store = Store::open(folder.path()).unwrap();
    assert_eq!((numbers(&store), store.foreign()), (vec![1], 3));
    assert_eq!(logs(folder.path()).len(), 1);
}
