//! ns-3: compiles programs, and runs ns-3's TCP over its simulated bottleneck.

use std::fmt::Display;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anabranch_campaign::bottleneck::Cell;
use anabranch_testkit::debian::skipped;
use serde_json::Value;
use tempfile::TempDir;

use super::table::first_line;
use super::{Measured, Reference, of_flows, start};

/// A header of Debian's libns3-dev.
const HEADER: &str = "/usr/include/ns3/internet-module.h";

/// A C++ program of this folder that uses ns-3. Each start is one run.
pub(super) struct Program {
    path: PathBuf,
}

impl Program {
    /// Compiles a source of this folder with these modules of ns-3. Without ns-3 or a compiler it
    /// prints that and returns `None`. The package is not installed automatically, since it is
    /// large.
    ///
    /// A compilation takes longer than most comparisons, so the program is kept in cargo's folder
    /// for tests. Its name has a hash of its source and of the versions of g++ and ns-3; a source
    /// has no header of its own here.
    pub(super) fn compile(source: &str, modules: &[&str]) -> Option<Self> {
        // Several tests use the same program.
        static COMPILER: Mutex<()> = Mutex::new(());
        let compiler = Command::new("g++").arg("--version").output();
        let (true, Ok(compiler)) = (Path::new(HEADER).exists(), compiler) else {
            skipped(
                "a check against ns-3, which is not here: apt-get install libns3-dev g++, then run this test again",
            );
            return None;
        };
        let file = format!("{}/tests/it/compare/{source}", env!("CARGO_MANIFEST_DIR"));
        let mut arguments = vec!["-std=c++17".to_owned(), "-O1".to_owned(), file.clone()];
        arguments.extend(modules.iter().map(|name| format!("-lns3-{name}")));
        let mut hasher = DefaultHasher::new();
        let text = fs::read(&file).expect("it is here");
        (text, &arguments, compiler.stdout, version()).hash(&mut hasher);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let path = folder.join(format!("{source}-{:016x}", hasher.finish()));
        let _one = COMPILER.lock().unwrap_or_else(PoisonError::into_inner);
        if !path.exists() {
            // Another process sees a whole program or none.
            let new = TempDir::new_in(folder).expect("a folder");
            let program = new.path().join("program");
            let output = Command::new("g++").args(arguments).arg("-o").arg(&program).output();
            let output = output.expect("it has just answered");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            fs::rename(program, &path).expect("the same file system");
        }
        Some(Self { path })
    }

    /// Runs the program with these options, and returns its line of JSON.
    pub(super) fn run<T: Display>(&self, options: &[(&str, T)]) -> Result<Value, String> {
        let mut command = Command::new(&self.path);
        command.args(options.iter().map(|(name, value)| format!("--{name}={value}")));
        let output = command.output().map_err(|error| format!("cannot start {command:?}: {error}"))?;
        serde_json::from_slice(&output.stdout)
            .map_err(|_| format!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr)))
    }
}

/// Version of Debian's package.
pub(super) fn version() -> String {
    first_line("dpkg-query", &["--show", "--showformat=${Version}", "libns3-dev"])
}

/// The TCP of ns-3.
pub(super) struct Ns3(Program);

impl Ns3 {
    /// Compiles the program; `None` without ns-3 or a compiler.
    pub(super) fn compile() -> Option<Self> {
        bottleneck().map(Self)
    }
}

/// The program with flows over a bottleneck; `None` without ns-3 or a compiler.
pub(super) fn bottleneck() -> Option<Program> {
    Program::compile("ns3.cc", &["point-to-point", "traffic-control", "internet", "network", "core"])
}

impl Reference for Ns3 {
    const NAME: &'static str = "ns-3";
    // A run uses a core, and so does ours.
    const AT_ONCE: usize = 1;

    fn version(&self) -> String {
        version()
    }

    fn is_deterministic(&self, cell: &Cell) -> bool {
        cell.loss == 0.0
    }

    fn run(&self, cell: &Cell, _: usize, run: u64, seconds: u64) -> Result<Measured, String> {
        let report = self.0.run(&[
            ("controller", super::controller(cell).to_owned()),
            ("rate", cell.rate.to_string()),
            ("delay", cell.delay.as_millis().to_string()),
            ("queue", cell.packets().to_string()),
            ("flows", cell.flows.to_string()),
            ("loss", cell.loss.to_string()),
            ("seconds", seconds.to_string()),
            ("run", run.to_string()),
        ])?;
        measured(&report, seconds as f64).ok_or_else(|| format!("cannot read {report}"))
    }
}

fn measured(report: &Value, seconds: f64) -> Option<Measured> {
    Some(Measured {
        start: start(report, seconds, of_flows(report, "timeouts")?.iter().sum())?,
        lag: None,
        limited: report["limited"].as_f64()?,
        mss: report["flows"][0]["mss"].as_u64()?,
        packet: report["packet"].as_f64()?,
    })
}
