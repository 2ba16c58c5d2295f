//! Stores the numbers of greetings across restarts, so that a recorded greeting from before a
//! restart is refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use anabranch_secure::{Ledger, PublicKey};

use crate::files::{usual_folder, write_whole};
use crate::log::Entry;

/// Highest greeting number of each sender. One number suffices, since numbers only grow.
type Floors = BTreeMap<PublicKey, u64>;

/// The folder for state: `--state`, systemd's `$STATE_DIRECTORY`, or the default folder.
pub(crate) fn state_folder(said: Option<&Path>) -> Option<PathBuf> {
    let given = std::env::var_os("STATE_DIRECTORY").map(PathBuf::from).filter(|path| path.is_absolute());
    said.map(Path::to_owned).or(given).or_else(usual_folder)
}

/// Reads the stored numbers of the `role` that listens on `port`, and returns them with the ledger
/// that stores later ones.
///
/// Returns `None` if stored numbers exist but cannot be read; a warning is logged. Another warning
/// is logged if no further numbers can be stored.
pub(crate) fn stored(said: Option<&Path>, role: &str, own: PublicKey, port: u16) -> Option<(Floors, Ledger)> {
    let folder = state_folder(said);
    let own = own.to_string();
    let name = own.trim_start_matches("x25519:").get(..16).unwrap_or_default();
    let found = folder.ok_or_else(|| "no state folder".to_owned()).and_then(|folder| {
        let place = folder.join(format!("greetings-{role}-{name}-{port}"));
        let floors = read(&place)?;
        Ok((folder, place, floors))
    });
    let warn = |why: &str| {
        let hint = "after a restart, the node or gateway accepts recorded greetings once";
        let hint =
            format!("{hint}; set --state to a folder that this user can write, on a disk with free space");
        Entry::warning("no state", format!("{why}; {hint}")).write();
    };
    let (folder, place, floors) = found.inspect_err(|why| warn(why)).ok()?;
    let made = fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()));
    // The numbers that were read still apply if the disk accepts no further ones.
    let written = made.and_then(|()| write(&place, &floors)).inspect_err(|why| warn(why));
    Some((floors.clone(), ledger(place, floors, written.is_err())))
}

/// Returns the ledger that writes numbers to `place`. `warned` means that a warning about a failed
/// write was already logged.
fn ledger(place: PathBuf, floors: Floors, warned: bool) -> Ledger {
    let (stored, warned) = (Mutex::new(floors), AtomicBool::new(warned));
    Box::new(move |sender, number| {
        let mut floors = stored.lock().unwrap_or_else(PoisonError::into_inner);
        floors.insert(sender, number);
        // A full disk must not end the service: it only weakens the protection after the next
        // restart.
        match write(&place, &floors) {
            Ok(()) => warned.store(false, Ordering::Relaxed),
            Err(why) if !warned.swap(true, Ordering::Relaxed) => {
                let message =
                    format!("{why}; until it can be written, a restart accepts recorded greetings once");
                Entry::warning("no state", message).write();
            }
            Err(_) => {}
        }
    })
}

/// Reads the numbers: one line per sender.
fn read(place: &Path) -> Result<Floors, String> {
    let text = match fs::read_to_string(place) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Floors::new()),
        Err(error) => return Err(format!("cannot read {}: {error}", place.display())),
    };
    let line = |line: &str| {
        let (sender, number) = line.split_once(' ')?;
        Some((sender.parse().ok()?, number.parse().ok()?))
    };
    let lines: Option<Floors> = text.lines().map(line).collect();
    lines.ok_or_else(|| format!("{} is damaged: expected lines `KEY NUMBER`", place.display()))
}

fn write(place: &Path, floors: &Floors) -> Result<(), String> {
    let text: String = floors.iter().map(|(sender, number)| format!("{sender} {number}\n")).collect();
    write_whole(place, text.as_bytes()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_there_after_a_restart_and_a_damaged_file_is_not_taken_for_an_empty_one() {
        let folder = tempfile::TempDir::new().unwrap();
        let open = || stored(Some(folder.path()), "gateway", PublicKey([7; 32]), 47_201);
        let (floors, ledger) = open().unwrap();
        assert!(floors.is_empty());
        ledger(PublicKey([1; 32]), 5);
        ledger(PublicKey([2; 32]), u64::MAX);
        ledger(PublicKey([1; 32]), 9);
        let expected = BTreeMap::from([(PublicKey([1; 32]), 9), (PublicKey([2; 32]), u64::MAX)]);
        assert_eq!(open().unwrap().0, expected);
        let other = stored(Some(folder.path()), "node", PublicKey([7; 32]), 47_201);
        assert!(other.unwrap().0.is_empty());
        let file = folder.path().join("greetings-gateway-0707070707070707-47201");
        fs::write(&file, "x25519:00 5\n").unwrap();
        assert!(open().is_none());
        assert!(stored(Some(&file), "gateway", PublicKey([7; 32]), 1).is_none(), "not a folder");
    }
}
