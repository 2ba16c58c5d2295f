//! Where the time series of a sweep go.

use std::path::PathBuf;

use anabranch_core::time::Duration;

use crate::address::Address;

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
    pub(crate) fn file(&self, table: &str, run: &Address) -> PathBuf {
        self.folder.join(table).join(format!("{run}.{}", self.format.extension()))
    }

    /// Whether all files of a run are there.
    pub(crate) fn has(&self, run: &Address) -> bool {
        self.file(RUNS, run).exists()
    }
}
