//! Input that can be read only once: standard input, a pipe, a device.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use anabranch_net::set::PushFile;
use anabranch_secure::FileDigest;
use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::files::nameless;

/// Limit on the bytes kept in memory. A longer input goes to a nameless file in the folder for
/// temporary files.
const IN_MEMORY: usize = 16 << 20;

/// Reads an input to its end, with bounded memory.
///
/// # Errors
/// The input cannot be read, or does not fit in the folder for temporary files.
pub(super) fn read(path: &Path) -> Result<(PushFile, FileDigest), Error> {
    let folder = std::env::temp_dir();
    let input: io::Result<Box<dyn Read>> = match path == Path::new("-") {
        true => Ok(Box::new(io::stdin().lock())),
        false => File::open(path).map(|file| Box::new(file) as _),
    };
    let unreadable = |e: io::Error| Error::unreadable(path, &e).with_hint("give a file that you can read");
    let unkept = |e: io::Error| {
        let (name, folder) = (path.display(), folder.display());
        let message = format!("cannot buffer more than {} MiB of {name} in {folder}: {e}", IN_MEMORY >> 20);
        Error::job(message).with_hint("set TMPDIR to a folder with free space, or push a regular file")
    };
    let mut input = input.map_err(unreadable)?;
    let (mut memory, mut disk) = (Vec::new(), None);
    let (mut sha256, mut length, mut piece) = (Sha256::new(), 0, vec![0; 64 << 10]);
    loop {
        let n = match input.read(&mut piece) {
            Ok(0) => break,
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(unreadable(error)),
        };
        sha256.update(&piece[..n]);
        length += n as u64;
        if disk.is_none() && memory.len() + n > IN_MEMORY {
            let mut file = nameless(&folder).map_err(unkept)?;
            file.write_all(&std::mem::take(&mut memory)).map_err(unkept)?;
            disk = Some(file);
        }
        match &mut disk {
            Some(file) => file.write_all(&piece[..n]).map_err(unkept)?,
            None => memory.extend_from_slice(&piece[..n]),
        }
    }
    let file = disk.map_or_else(|| PushFile::Octets(memory.into()), |file| PushFile::OnDisk(file, length));
    Ok((file, FileDigest { length, sha256: sha256.finalize().into() }))
}
