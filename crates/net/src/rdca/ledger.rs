//! What a sink has taken of each sender: the state that makes delivery exact across restarts.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use anabranch_secure::datagram::Name;

/// Number of runs of a sender that are remembered. Two processes with one name alternate, and so
/// do a run that has ended and its last datagrams.
const RUNS: usize = 4;

/// A sender as its owner sees it: its name, and the fingerprint of its credential (16 hexadecimal
/// digits; empty without keys).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Source {
    /// The name.
    pub name: Name,
    /// The fingerprint.
    pub key: Arc<str>,
}

/// One run of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Run {
    run: u64,
    next: u64,
    is_complete: bool,
}

/// The last runs of a sender, the newest last.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Runs(VecDeque<Run>);

impl Runs {
    /// The newest run, the number of its next record, and whether it is complete.
    pub fn newest(&self) -> Option<(u64, u64, bool)> {
        self.0.back().map(|run| (run.run, run.next, run.is_complete))
    }

    /// All runs as [`Runs::newest`], the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64, bool)> + '_ {
        self.0.iter().map(|run| (run.run, run.next, run.is_complete))
    }
}

/// The runs of all senders, at most a given number of senders.
#[derive(Clone, Debug)]
pub struct Ledger {
    most: usize,
    senders: BTreeMap<Source, (Runs, u64)>,
    /// Number of names of each credential.
    names: BTreeMap<Arc<str>, usize>,
    /// Counts the changes, to find the sender that changed last long ago.
    changes: u64,
}

impl Ledger {
    /// An empty ledger for at most `most` senders. Beyond, a sender of the credential with most
    /// names is forgotten: the one that has been silent for longest.
    pub fn new(most: usize) -> Self {
        Self { most: most.max(1), senders: BTreeMap::new(), names: BTreeMap::new(), changes: 0 }
    }

    /// The number of the next record of a run; 0 if the run is unknown.
    pub fn next(&self, source: &Source, run: u64) -> u64 {
        self.runs(source)
            .and_then(|runs| runs.0.iter().find(|known| known.run == run))
            .map_or(0, |known| known.next)
    }

    /// The runs of a sender.
    pub fn runs(&self, source: &Source) -> Option<&Runs> {
        self.senders.get(source).map(|(runs, _)| runs)
    }

    /// The credential under which this name is used, if it is known. Senders without a credential
    /// bind no name.
    pub fn key_of(&self, name: &Name) -> Option<&str> {
        let from = Source { name: *name, key: "".into() };
        self.senders
            .range(from..)
            .take_while(|(source, _)| source.name == *name)
            .find(|(source, _)| !source.key.is_empty())
            .map(|(source, _)| &*source.key)
    }

    /// Notes that all records of `run` before `next` are delivered or reported. The run becomes the
    /// newest.
    pub fn advance(&mut self, source: &Source, run: u64, next: u64, is_complete: bool) {
        if !self.senders.contains_key(source) {
            if self.senders.len() >= self.most {
                self.forget_one();
            }
            *self.names.entry(Arc::clone(&source.key)).or_default() += 1;
        }
        self.changes += 1;
        let (Runs(runs), changed) = self.senders.entry(source.clone()).or_default();
        *changed = self.changes;
        let known = runs.iter().position(|known| known.run == run).and_then(|at| runs.remove(at));
        let next = known.map_or(next, |known| known.next.max(next));
        let is_complete = is_complete || known.is_some_and(|known| known.is_complete);
        runs.push_back(Run { run, next, is_complete });
        if runs.len() > RUNS {
            runs.pop_front();
        }
    }

    fn forget_one(&mut self) {
        let names = |source: &Source| self.names.get(&source.key).copied();
        let first = |(source, (_, changed)): &(&Source, &(Runs, u64))| (Reverse(names(source)), *changed);
        let Some(source) = self.senders.iter().min_by_key(first).map(|(source, _)| source.clone()) else {
            return;
        };
        self.senders.remove(&source);
        if let Entry::Occupied(mut names) = self.names.entry(source.key) {
            *names.get_mut() -= 1;
            if *names.get() == 0 {
                names.remove();
            }
        }
    }

    /// All senders and their runs.
    pub fn iter(&self) -> impl Iterator<Item = (&Source, &Runs)> {
        self.senders.iter().map(|(source, (runs, _))| (source, runs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_without_a_credential_binds_no_name() {
        let mut ledger = Ledger::new(10);
        let source = |key: &str| Source { name: "a".parse().unwrap(), key: key.into() };
        ledger.advance(&source(""), 1, 5, false);
        assert_eq!(ledger.key_of(&source("").name), None);
        ledger.advance(&source("01"), 2, 6, false);
        assert_eq!(ledger.key_of(&source("").name), Some("01"));
        let next = ["", "01"].map(|key| ledger.runs(&source(key)).unwrap().newest().unwrap().1);
        assert_eq!(next, [5, 6]);
    }

    #[test]
    fn a_full_ledger_forgets_a_name_of_the_credential_with_most_names() {
        let mut ledger = Ledger::new(4);
        let source = |name: &str, key: &str| Source { name: name.parse().unwrap(), key: key.into() };
        ledger.advance(&source("oldest", "01"), 1, 1, false);
        for number in 0..10 {
            ledger.advance(&source(&format!("n{number}"), "02"), 1, 1, false);
        }
        let left: Vec<_> = ledger.iter().map(|(source, _)| source.name.to_string()).collect();
        assert_eq!(left, ["n7", "n8", "n9", "oldest"]);
    }
}
