//! Packets with times and sizes from a file: [`Schedule`].

use std::str::FromStr;

use anabranch_core::time::Duration;
use anabranch_units::Size;

use crate::csv::{self, FileError, Row, wrong};

/// Times of a source's packets, relative to its start, and their sizes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Schedule {
    /// In nanoseconds, in order.
    times: Vec<u64>,
    /// In bytes.
    sizes: Vec<u32>,
}

impl Schedule {
    /// Reads rows `time,bytes`: seconds or a time with a unit, and bytes or a size with a unit.
    ///
    /// # Errors
    ///
    /// If a row is invalid or earlier than the one before, if a size is 0 or more than 4 GB, or if
    /// the file has no rows.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        let hint = "a row is as `0.5,1200` or `500 ms,1.2 kB`";
        let rows = csv::timed_rows(text, "bytes", hint, |text| {
            let with_unit = if csv::is_number(text) { format!("{text} B") } else { text.to_owned() };
            let size = Size::from_str(&with_unit).map_err(|error| error.to_string())?;
            let octets = u32::try_from(size.0).ok().filter(|octets| *octets > 0);
            octets.ok_or_else(|| format!("a packet has 1 B to 4 GB, and this one {size}"))
        })?;
        let mut schedule =
            Self { times: Vec::with_capacity(rows.len()), sizes: Vec::with_capacity(rows.len()) };
        for Row { line, time, value } in rows {
            if schedule.times.last().is_some_and(|last| *last > time.1) {
                let message = format!("{} is before the time of the row before", time.0);
                return wrong(Some(line), message, "sort the file by time");
            }
            schedule.times.push(time.1);
            schedule.sizes.push(value);
        }
        match schedule.times.len() {
            0 => wrong(None, "the file has no row with a time and bytes", hint),
            rows if u32::try_from(rows).is_err() => wrong(None, "the file has more than 2^32 - 1 rows", hint),
            _ => Ok(schedule),
        }
    }

    /// Index of the first row at or after a time.
    pub(super) fn row_from(&self, time: Duration) -> usize {
        self.times.partition_point(|at| *at < time.as_nanos())
    }

    /// Time of a row; `None` after the last.
    pub(super) fn time(&self, row: usize) -> Option<Duration> {
        self.times.get(row).copied().map(Duration::from_nanos)
    }

    /// Size of a row's packet in bytes; after the end, the size of the last row.
    pub(super) fn octets(&self, row: usize) -> u32 {
        self.sizes[row.min(self.sizes.len() - 1)]
    }

    /// Number of rows up to a time, inclusive.
    pub(super) fn until(&self, time: Duration) -> usize {
        self.times.partition_point(|at| *at <= time.as_nanos())
    }

    /// All sizes, in bytes.
    pub(super) fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// Mean time between two packets, at least a nanosecond.
    pub fn mean_interval(&self) -> Duration {
        let [first, last] = [self.times[0], self.times[self.times.len() - 1]];
        Duration::from_nanos(((last - first) / (self.times.len() as u64 - 1).max(1)).max(1))
    }
}
