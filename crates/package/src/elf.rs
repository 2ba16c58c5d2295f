//! What a program needs of the C library.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Error;
use crate::manifest::Entry;

/// The newest version of glibc that a program names, as (2, 34).
///
/// Names of symbol versions, such as `GLIBC_2.34`, stand as text in the section `.dynstr`. A
/// program runs with any glibc that has the newest of them.
fn glibc(program: &[u8]) -> Option<(u32, u32)> {
    const MARK: &[u8] = b"GLIBC_";
    let found = memchr::memmem::find_iter(program, MARK);
    found.filter_map(|at| version(&program[at + MARK.len()..])).max()
}

/// The newest version of glibc that any of the files names.
pub(crate) fn newest(entries: &[Entry]) -> Option<(u32, u32)> {
    entries.iter().filter_map(|entry| glibc(&entry.bytes)).max()
}

/// The number at the start, as in `2.34` or `2.2.5`; `GLIBC_PRIVATE` has none.
fn version(bytes: &[u8]) -> Option<(u32, u32)> {
    let end = bytes.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.')?;
    let mut numbers = std::str::from_utf8(&bytes[..end]).ok()?.split('.').map(|part| part.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// The shared libraries of a program and its loader, as ldd(1) finds them.
///
/// # Errors
/// ldd cannot be run or a library is missing.
pub(crate) fn libraries(program: &Path) -> Result<Vec<PathBuf>, Error> {
    let output = Command::new("ldd").arg(program).output();
    let output = output.map_err(|error| format!("cannot start ldd: {error}; install libc-bin"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = text.lines().filter(|line| !line.contains("linux-vdso")).collect();
    let path = |line: &&str| line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from);
    let found: Vec<PathBuf> = lines.iter().filter_map(path).collect();
    if !output.status.success() || found.len() != lines.len() {
        return Err(format!("ldd {}: {}", program.display(), text.trim()));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_counts_as_a_number() {
        assert_eq!(glibc(b"\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.4\0GLIBC_PRIVATE\0"), Some((2, 34)));
        assert_eq!(glibc(b"static"), None);
    }
}
