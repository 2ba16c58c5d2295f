//! A capture on disk, as Wireshark reads it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::debian::find_or_install;

/// A capture for tshark; the file is removed on drop.
#[derive(Debug)]
pub struct Tshark {
    program: PathBuf,
    file: PathBuf,
}

/// tshark verifies checksums only on request, and a capture does not contain the contexts of
/// 6LoWPAN.
const PREFERENCES: [&str; 3] =
    ["tcp.check_checksum:TRUE", "ip.check_checksum:TRUE", "6lowpan.context0:fd00::/112"];

impl Tshark {
    /// Writes a capture to a file; `name` distinguishes the captures of one process. Without tshark
    /// it prints that and returns `None`.
    ///
    /// # Panics
    ///
    /// The file cannot be written.
    pub fn open(name: &str, octets: &[u8]) -> Option<Self> {
        let program = find_or_install("tshark", "tshark")?;
        let file = std::env::temp_dir().join(format!("anabranch-{name}-{}.pcapng", std::process::id()));
        fs::write(&file, octets).expect("a file for the capture");
        Some(Self { program, file })
    }

    /// Runs tshark with these arguments and returns its output.
    ///
    /// # Panics
    ///
    /// tshark fails.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(&self.program);
        command.arg("-n").args(PREFERENCES.iter().flat_map(|p| ["-o", p])).arg("-r");
        let output = command.arg(&self.file).args(arguments).output().expect("tshark starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// Values of `fields` (separated by spaces) in the frames that pass `filter`; one line per
    /// frame, values separated by tabs.
    #[track_caller]
    pub fn fields(&self, filter: &str, fields: &str) -> String {
        let fields = fields.split(' ').flat_map(|field| ["-e", field]);
        self.run(&["-Y", filter, "-T", "fields"].into_iter().chain(fields).collect::<Vec<_>>())
    }

    /// Number of frames that pass a filter.
    #[track_caller]
    pub fn count(&self, filter: &str) -> u64 {
        self.fields(filter, "frame.number").lines().count() as u64
    }

    /// Number of frames that pass each filter, counted in one pass over the capture. A filter must
    /// not contain a comma, which separates filters on tshark's command line.
    ///
    /// # Panics
    ///
    /// tshark fails, or prints an unexpected table.
    #[track_caller]
    pub fn counts<const N: usize>(&self, filters: [&str; N]) -> [u64; N] {
        assert!(filters.iter().all(|filter| !filter.contains(',')), "{filters:?}");
        let table = self.run(&["-q", "-z", &format!("io,stat,0,{}", filters.join(","))]);
        // Form of the row: `| 0.0 <> 12.3 | frames | bytes | frames | bytes |`
        let row = table.lines().find(|line| line.contains("<>")).expect("one interval");
        let cells = row.split('|').skip(2).step_by(2).take(N);
        let counts: Vec<u64> = cells.filter_map(|cell| cell.trim().parse().ok()).collect();
        counts.try_into().unwrap_or_else(|counts| panic!("{counts:?} of {N} in {table}"))
    }

    /// The frames that pass a filter, as a new capture.
    ///
    /// # Panics
    ///
    /// tshark fails.
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
