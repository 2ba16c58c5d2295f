//! Inputs at which a target panics: caught, made small, stored, replayed.

use std::any::Any;
use std::cell::RefCell;
use std::fs;
use std::hash::Hasher;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Once;

use crate::probe::{Fnv, Probe};
use crate::targets::Target;

/// A panic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Where: file and line. Two inputs with one place are taken for one fault.
    pub place: String,
    /// What it said.
    pub message: String,
}

/// An input at which a target panics.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Crash {
    /// The input, as small as it could be made.
    pub input: Vec<u8>,
    /// The panic.
    pub failure: Failure,
}

thread_local! {
    /// The place of the present panic, while a target runs on this thread.
    static CAUGHT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `target` once; a panic is a failure and prints nothing.
pub fn execute(target: &Target, input: &[u8], probe: &mut Probe) -> Result<(), Failure> {
    install_hook();
    CAUGHT.set(Some(String::new()));
    let result = panic::catch_unwind(AssertUnwindSafe(|| (target.run)(input, probe)));
    let place = CAUGHT.take().unwrap_or_default();
    result.map_err(|payload| Failure { place, message: message(&*payload) })
}

/// A hook that keeps quiet while a target runs on the panicking thread and is the previous one
/// elsewhere.
fn install_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let caught = CAUGHT.with_borrow_mut(|place| match place {
                Some(place) => {
                    *place = info.location().map(ToString::to_string).unwrap_or_default();
                    true
                }
                None => false,
            });
            if !caught {
                previous(info);
            }
        }));
    });
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// Makes the input of a failure smaller while it fails at the same place, in at most `tries`
/// executions.
pub fn minimise(target: &Target, input: Vec<u8>, failure: Failure, tries: usize) -> Crash {
    let mut best = Crash { input, failure };
    let mut tries_left = tries;
    let mut attempt = |best: &mut Crash, candidate: Vec<u8>| {
        tries_left = tries_left.saturating_sub(1);
        match execute(target, &candidate, &mut Probe::quiet()) {
            Err(failure) if failure.place == best.failure.place => {
                *best = Crash { input: candidate, failure };
                (true, tries_left > 0)
            }
            _ => (false, tries_left > 0),
        }
    };
    let mut piece = best.input.len().max(1);
    loop {
        let mut at = 0;
        let mut shrank = false;
        while at < best.input.len() {
            let mut candidate = best.input.clone();
            candidate.drain(at..candidate.len().min(at + piece));
            let (smaller, go_on) = attempt(&mut best, candidate);
            if !go_on {
                return best;
            }
            shrank |= smaller;
            at += if smaller { 0 } else { piece };
        }
        if piece == 1 && !shrank {
            break;
        }
        piece = (piece / 2).max(1);
    }
    for at in 0..best.input.len() {
        let mut candidate = best.input.clone();
        candidate[at] = 0;
        if candidate != best.input && !attempt(&mut best, candidate).1 {
            break;
        }
    }
    best
}

/// Where panics' inputs are put.
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("crashes")
}

/// Writes the input under `directory`; the name says the target and is the same for the same
/// octets.
pub fn store(directory: &Path, target: &str, input: &[u8]) -> io::Result<PathBuf> {
    fs::create_dir_all(directory)?;
    let mut hash = Fnv::default();
    hash.write(input);
    let hash = hash.finish();
    let file = directory.join(format!("{target}-{hash:016x}"));
    fs::write(&file, input)?;
    Ok(file)
}
