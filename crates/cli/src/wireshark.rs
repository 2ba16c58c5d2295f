//! `anabranch wireshark`: a capture in Wireshark with the dissector of SET and the settings that
//! our captures need.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

use anabranch_deploy::error::Error;

/// The dissector, which packages install too.
const DISSECTOR: &str = include_str!("../../../packaging/wireshark/set.lua");

/// Preferences of `packaging/wireshark/profile`: one a line, `name: value`.
const PREFERENCES: &str = include_str!("../../../packaging/wireshark/profile/preferences");

/// Options of `wireshark`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A capture, as `--pcap` writes it
    capture: PathBuf,
    /// The program that opens it: `tshark` prints the packets in the terminal
    #[arg(long, value_name = "PROGRAM", default_value = "wireshark")]
    with: PathBuf,
    /// Further arguments of the program, after `--`
    #[arg(last = true)]
    more: Vec<OsString>,
}

pub(crate) fn main(arguments: &Arguments) -> Result<(), Error> {
    check(&arguments.capture)?;
    let folder = Folder::new()?;
    let script = folder.0.join("set.lua");
    fs::write(&script, DISSECTOR).map_err(|error| Error::unwritable(&script, &error))?;
    let mut command = Command::new(&arguments.with);
    command.arg("-X").arg(format!("lua_script:{}", script.display()));
    for preference in preferences() {
        command.arg("-o").arg(preference);
    }
    command.arg("-r").arg(&arguments.capture).args(&arguments.more);
    // The folder goes when the program has ended, so it is waited for.
    let status = command.status().map_err(|error| {
        let program = arguments.with.display();
        Error::missing(format!("cannot start {program}: {error}"))
            .with_hint("install Wireshark, or name the program with --with, as in `--with tshark`")
    })?;
    if status.success() {
        Ok(())
    } else {
        Err(Error::job(format!("{} ended with {status}", arguments.with.display())))
    }
}

/// Preferences as `-o` takes them.
fn preferences() -> impl Iterator<Item = String> {
    let lines = PREFERENCES.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines.map(|line| line.replacen(": ", ":", 1))
}

/// Refuses what is no capture, before a window opens.
fn check(path: &Path) -> Result<(), Error> {
    // The first block of pcapng, and the magic numbers of pcap in either order of bytes.
    const STARTS: [[u8; 4]; 5] = [
        [0x0a, 0x0d, 0x0d, 0x0a],
        [0xd4, 0xc3, 0xb2, 0xa1],
        [0xa1, 0xb2, 0xc3, 0xd4],
        [0x4d, 0x3c, 0xb2, 0xa1],
        [0xa1, 0xb2, 0x3c, 0x4d],
    ];
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(4).read_to_end(&mut start));
    read.map_err(|error| Error::unreadable(path, &error))?;
    if STARTS.iter().any(|known| *known == *start) {
        return Ok(());
    }
    Err(Error::input(format!("{} is not a capture", path.display()))
        .with_hint("give a file that `anabranch run SCENARIO --pcap FILE` has written"))
}

/// A new folder that only its owner may enter, so that no other user can change the script before
/// it is loaded.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, Error> {
        let mut number = 0_u32;
        loop {
            let path = std::env::temp_dir().join(format!("anabranch-wireshark-{}-{number}", process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && number < 100 => {
                    number += 1
                }
                Err(error) => return Err(Error::unwritable(&path, &error)),
            }
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
