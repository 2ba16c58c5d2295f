//! A file system of limited size in memory, for tests with a full disk.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use std::os::unix::process::CommandExt;

use crate::netns::{run, text};

/// A mounted file system, which is unmounted when this is dropped or the process ends.
#[derive(Debug)]
pub struct Tmpfs {
    place: String,
    broom: Child,
}

impl Tmpfs {
    /// Mounts a file system of `octets` bytes on an existing folder. Needs root.
    ///
    /// # Panics
    /// The kernel refuses.
    pub fn mount(place: &Path, octets: u64) -> Self {
        let place = place.to_str().expect("a path that is text").to_owned();
        // The shell has its own process group, so that a signal of the terminal to ours does not
        // end it.
        let mut shell = Command::new("sh");
        shell.args(["-c", "cat; umount --lazy \"$1\"", "sh", &place]).process_group(0);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let broom = shell.spawn().expect("a shell is here");
        done(&["-t", "tmpfs", "-o", &size(octets), "anabranch-test", &place]);
        Self { place, broom }
    }

    /// Changes the size.
    ///
    /// # Panics
    /// The kernel refuses.
    pub fn resize(&self, octets: u64) {
        done(&["-o", &format!("remount,{}", size(octets)), &self.place]);
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // `wait` closes the pipe, then waits until the shell has unmounted the file system.
        let _ = self.broom.wait();
    }
}

fn size(octets: u64) -> String {
    format!("size={octets}")
}

#[track_caller]
fn done(arguments: &[&str]) {
    let output = run("mount", arguments);
    assert!(output.status.success(), "mount {arguments:?}: {}", text(&output.stderr));
}
