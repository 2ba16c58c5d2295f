//! Inputs at which a target panics: catches, minimises, stores and replays them.

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
    /// File and line of the panic. Two inputs with the same place count as one fault.
    pub place: String,
    /// Panic message.
    pub message: String,
}

/// An input at which a target panics.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Crash {
    /// The minimised input.
    pub input: Vec<u8>,
    /// The panic.
    pub failure: Failure,
}

thread_local! {
    /// Place of the current panic, while a target runs on this thread.
    static CAUGHT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `target` once. A panic is returned as a failure and prints nothing.
pub fn execute(target: &Target, input: &[u8], probe: &mut Probe) -> Result<(), Failure> {
    install_hook();
    CAUGHT.set(Some(String::new()));
    let result = panic::catch_unwind(AssertUnwindSafe(|| (target.run)(input, probe)));
    let place = CAUGHT.take().unwrap_or_default();
    result.map_err(|payload| Failure { place, message: message(&*payload) })
}

/// Installs a panic hook that is silent while a target runs on the panicking thread, and calls the
/// previous hook otherwise.
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

/// Shortens a failing input as long as it fails at the same place, with at most `tries` executions.
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

/// Folder for inputs that panic.
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("crashes")
}

/// Writes the input to `directory`. The file name contains the target and is the same for equal
/// inputs.
pub fn store(directory: &Path, target: &str, input: &[u8]) -> io::Result<PathBuf> {
    fs::create_dir_all(directory)?;
    let mut hash = Fnv::default();
    hash.write(input);
    let hash = hash.finish();
    let file = directory.join(format!("{target}-{hash:016x}"));
    fs::write(&file, input)?;
    Ok(file)
}
