//! A disk of a size, in memory, for tests of what happens when it is full.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use std::os::unix::process::CommandExt;

use crate::netns::{run, text};

/// A file system that is gone when this is dropped, or this process is.
#[derive(Debug)]
pub struct Tmpfs {
    place: String,
    broom: Child,
}

impl Tmpfs {
    /// Mounts one of so many octets at a folder that is there. Needs root.
    ///
    /// # Panics
    /// If the kernel refuses.
    pub fn mount(place: &Path, octets: u64) -> Self {
        let place = place.to_str().expect("a path that is text").to_owned();
        // In a process group of its own: what ends ours from the terminal shall not end it.
        let mut shell = Command::new("sh");
        shell.args(["-c", "cat; umount --lazy \"$1\"", "sh", &place]).process_group(0);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let broom = shell.spawn().expect("a shell is here");
        done(&["-t", "tmpfs", "-o", &size(octets), "anabranch-test", &place]);
        Self { place, broom }
    }

    /// Gives it another size.
    ///
    /// # Panics
    /// If the kernel refuses.
    pub fn resize(&self, octets: u64) {
        done(&["-o", &format!("remount,{}", size(octets)), &self.place]);
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // This closes the pipe, and waits until it has swept.
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
