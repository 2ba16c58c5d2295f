//! Private names of network namespaces, since the pages use plain names such as `left`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anabranch_testkit::netns::{Farewell, mortal};

/// A mount namespace with its own `/run/netns`. Its contents disappear with its last process.
pub(crate) struct Namespaces(Child);

impl Namespaces {
    /// Creates the mount namespace.
    ///
    /// # Panics
    /// It cannot be created, although the test runs as root.
    pub(crate) fn new() -> Self {
        let mut holder = mortal("unshare", Farewell::Kill);
        let script = "mkdir -p /run/netns && mount -t tmpfs none /run/netns && echo ready && exec cat";
        holder.args(["--mount", "--propagation", "private", "sh", "-c", script]);
        let mut child = holder.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("unshare is here");
        let mut said = String::new();
        let out = child.stdout.as_mut().expect("it is a pipe");
        BufReader::new(out).read_line(&mut said).expect("text");
        assert_eq!(said, "ready\n");
        Self(child)
    }

    /// A command in `folder` inside the mount namespace, interrupted when the test process ends.
    pub(crate) fn inside(&self, program: &str, folder: &Path) -> Command {
        let mut command = mortal("nsenter", Farewell::Interrupt);
        let wdns = format!("--wdns={}", folder.display());
        command.arg(format!("--mount=/proc/{}/ns/mnt", self.0.id())).arg(wdns).args(["--", program]);
        command
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
