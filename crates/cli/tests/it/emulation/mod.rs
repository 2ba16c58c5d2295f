//! Runs `anabranch emulate` for a test. Everything is removed even if the test fails.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, ExitStatus, Stdio};

use anabranch_testkit::netns::{self, Broom, Farewell, exists, run};
use serde_json::Value;

/// A running `anabranch emulate`.
pub(crate) struct Emulation {
    pub(crate) child: Child,
    /// Namespaces that the emulation uses.
    pub(crate) namespaces: Vec<String>,
    stderr: BufReader<ChildStderr>,
    _broom: Broom,
}

impl Emulation {
    /// Starts an emulation and returns when packets can flow. The emulation is interrupted when
    /// this process ends.
    pub(crate) fn start(scenario: &Path, namespaces: Vec<String>, set: &[String]) -> Self {
        let broom = Broom::new(&namespaces);
        let mut command = netns::mortal(program(), Farewell::Interrupt);
        command.arg("emulate").arg(scenario).arg("--json");
        command.args(set.iter().flat_map(|assignment| ["--set", assignment]));
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let stderr = BufReader::new(child.stderr.take().expect("it is a pipe"));
        let mut this = Self { child, namespaces, stderr, _broom: broom };
        this.hear("running");
        this
    }

    /// Reads standard error up to a line that contains `what`, and returns everything read.
    pub(crate) fn hear(&mut self, what: &str) -> String {
        let mut said = String::new();
        while !said.contains(what) {
            let octets = self.stderr.read_line(&mut said).expect("text");
            assert!(octets > 0, "it ended without `{what}`: {said}");
        }
        said
    }

    pub(crate) fn signal(&self, signal: &str) {
        assert!(run("kill", &[signal, &self.child.id().to_string()]).status.success());
    }

    /// Interrupts the emulation; returns its exit status, its report, and its standard error.
    pub(crate) fn finish(mut self) -> (ExitStatus, Value, String) {
        let mut report = String::new();
        let mut stdout = self.child.stdout.take().expect("it is a pipe");
        stdout.read_to_string(&mut report).expect("text");
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).expect("text");
        let status = self.child.wait().expect("it is a child of ours");
        let report = serde_json::from_str(&report).unwrap_or_else(|_| panic!("no report: {report} {said}"));
        for netns in &self.namespaces {
            assert!(!exists(netns), "the namespace {netns} is left");
        }
        (status, report, said)
    }

    pub(crate) fn interrupt(self) -> Value {
        self.signal("-INT");
        let (status, report, said) = self.finish();
        assert_eq!(status.code(), Some(130), "{said}");
        assert_eq!(report["ended"], "interrupted");
        report
    }
}

impl Drop for Emulation {
    fn drop(&mut self) {
        // After a failed test everything ends with the process, except the names of namespaces,
        // which are removed next.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn program() -> &'static str {
    assert_cmd::cargo::cargo_bin!("anabranch").to_str().expect("a path of text")
}
