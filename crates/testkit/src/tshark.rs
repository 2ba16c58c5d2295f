//! A capture on disk and Wireshark's own reading of it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::debian::find_or_install;

/// A capture that tshark reads; the file goes with it.
#[derive(Debug)]
pub struct Tshark {
    program: PathBuf,
    file: PathBuf,
}

/// Checksums are verified only if that is asked for; 6LoWPAN's contexts are nowhere in a capture.
const PREFERENCES: [&str; 3] =
    ["tcp.check_checksum:TRUE", "ip.check_checksum:TRUE", "6lowpan.context0:fd00::/112"];

impl Tshark {
    /// Writes the octets of a capture to a file; `name` tells those of one process apart. `None`,
    /// and said, without tshark.
    ///
    /// # Panics
    ///
    /// If the file cannot be written.
    pub fn open(name: &str, octets: &[u8]) -> Option<Self> {
        let program = find_or_install("tshark", "tshark")?;
        let file = std::env::temp_dir().join(format!("anabranch-{name}-{}.pcapng", std::process::id()));
        fs::write(&file, octets).expect("a file for the capture");
        Some(Self { program, file })
    }

    /// What tshark prints with these arguments.
    ///
    /// # Panics
    ///
    /// If it fails.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(&self.program);
        command.arg("-n").args(PREFERENCES.iter().flat_map(|p| ["-o", p])).arg("-r");
        let output = command.arg(&self.file).args(arguments).output().expect("tshark starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// These fields, joined by spaces here and by tabs in what is printed, of the frames that pass
    /// a filter.
    #[track_caller]
    pub fn fields(&self, filter: &str, fields: &str) -> String {
        let fields = fields.split(' ').flat_map(|field| ["-e", field]);
        self.run(&["-Y", filter, "-T", "fields"].into_iter().chain(fields).collect::<Vec<_>>())
    }

    /// Frames that pass a filter.
    #[track_caller]
    pub fn count(&self, filter: &str) -> u64 {
        self.fields(filter, "frame.number").lines().count() as u64
    }

    /// Number of frames that pass each of the filters, all counted in one reading of the capture.
    /// The filters contain no comma, which separates them on tshark's command line.
    ///
    /// # Panics
    ///
    /// If tshark fails, or prints another table than expected.
    #[track_caller]
    pub fn counts<const N: usize>(&self, filters: [&str; N]) -> [u64; N] {
        assert!(filters.iter().all(|filter| !filter.contains(',')), "{filters:?}");
        let table = self.run(&["-q", "-z", &format!("io,stat,0,{}", filters.join(","))]);
        // `| 0.0 <> 12.3 | frames | bytes | frames | bytes |`
        let row = table.lines().find(|line| line.contains("<>")).expect("one interval");
        let cells = row.split('|').skip(2).step_by(2).take(N);
        let counts: Vec<u64> = cells.filter_map(|cell| cell.trim().parse().ok()).collect();
        counts.try_into().unwrap_or_else(|counts| panic!("{counts:?} of {N} in {table}"))
    }

    /// The frames that pass a filter, as a capture of their own.
    ///
    /// # Panics
    ///
    /// If tshark fails.
    #[track_caller]
    pub fn only(&self, name: &str, filter: &str) -> Self {
        let file = self.file.with_extension(name);
        self.run(&["-Y", filter, "-w", file.to_str().expect("a path of text")]);
        Self { program: self.program.clone(), file }
    }
}

impl Drop for Tshark {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.file);
    }
}
