//! Where the time series of a sweep go.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anabranch_core::time::Duration;

use crate::address::{Address, RunKey};
use crate::error::Error;

/// How files are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// Apache Parquet, with units as metadata of columns.
    #[default]
    Parquet,
    /// CSV (RFC 4180), with units in the header.
    Csv,
}

impl Format {
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Csv => "csv",
        }
    }
}

/// Where time series go, and how often there is a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Series {
    /// The folder.
    pub folder: PathBuf,
    /// A row of each thing at most once in that time, more than zero.
    pub every: Duration,
    /// The format.
    pub format: Format,
}

/// The table of the runs themselves, which is written last.
pub(crate) const RUNS: &str = "runs";

impl Series {
    pub(crate) fn file(&self, table: &str, point: usize, RunKey { seed, run }: RunKey) -> PathBuf {
        self.folder.join(table).join(format!("{point:05}-{seed}-{run:04}.{}", self.format.extension()))
    }

    /// Whether all files of a run are there.
    pub(crate) fn has(&self, point: usize, key: RunKey) -> bool {
        self.file(RUNS, point, key).exists()
    }

    /// Makes the folder, for points of that digest, or finds that it is theirs: rows of other points, of another interval or in other
    /// columns are no part of the same table. More seeds and runs are.
    pub(crate) fn claim(&self, digest: [u8; 32]) -> Result<(), Error> {
        let text = format!("{{\"points\":\"{}\",\"every_ns\":{}}}\n", Address(digest), self.every.as_nanos());
        let path = self.folder.join(format!("sweep-{}.json", self.format.extension()));
        let failed = |error: io::Error| Error::Store { doing: "write", path: path.clone(), error };
        fs::create_dir_all(&self.folder).map_err(failed)?;
        match fs::read_to_string(&path) {
            Ok(there) if there == text => Ok(()),
            Ok(_) => Err(Error::Impossible {
                message: format!(
                    "{} has time series of other points, of another build, or at another interval",
                    self.folder.display()
                ),
                hint: "choose another folder, or remove this one".to_owned(),
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                whole(&path, |file| file.write_all(text.as_bytes()).map_err(failed))
            }
            Err(error) => Err(Error::Store { doing: "read", path, error }),
        }
    }
}

/// Writes a file whole or not at all. What is left of it by a kill has a name that readers of folders skip.
pub(crate) fn whole(path: &Path, fill: impl FnOnce(&mut File) -> Result<(), Error>) -> Result<(), Error> {
    let failed = |error: io::Error| Error::Store { doing: "write", path: path.to_owned(), error };
    let folder = path.parent().unwrap_or(Path::new(""));
    fs::create_dir_all(folder).map_err(failed)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let part = folder.join(format!(".{name}.{}.part", std::process::id()));
    let written = File::create(&part).map_err(failed).and_then(|mut file| {
        fill(&mut file)?;
        file.flush().and_then(|()| fs::rename(&part, path)).map_err(failed)
    });
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}
