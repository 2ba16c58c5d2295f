//! Packets whose times and lengths a file says: [`Schedule`].

use std::str::FromStr;

use anabranch_core::time::Duration;
use anabranch_units::Size;

use crate::csv::{self, FileError, Row, wrong};

/// When a source makes its packets, from when it begins, and how long they are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Schedule {
    /// In nanoseconds, in order.
    times: Vec<u64>,
    /// Octets.
    sizes: Vec<u32>,
}

impl Schedule {
    /// Reads rows `time,bytes`: seconds or a span with its unit, and octets or a size with its
    /// unit.
    ///
    /// # Errors
    ///
    /// A row that is not so, or earlier than the one before it; a file without any; sizes above 4
    /// GB, and none.
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

    /// The row at or after a time.
    pub(super) fn row_from(&self, time: Duration) -> usize {
        self.times.partition_point(|at| *at < time.as_nanos())
    }

    /// The time of a row; `None` after the last.
    pub(super) fn time(&self, row: usize) -> Option<Duration> {
        self.times.get(row).copied().map(Duration::from_nanos)
    }

    /// Octets of the packet of a row; of the last one after it.
    pub(super) fn octets(&self, row: usize) -> u32 {
        self.sizes[row.min(self.sizes.len() - 1)]
    }

    /// Rows that are no later.
    pub(super) fn until(&self, time: Duration) -> usize {
        self.times.partition_point(|at| *at <= time.as_nanos())
    }

    /// All octets and their packets.
    pub(super) fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// Mean time from one packet to the next, at least a nanosecond.
    pub(crate) fn mean_interval(&self) -> Duration {
        let [first, last] = [self.times[0], self.times[self.times.len() - 1]];
        Duration::from_nanos(((last - first) / (self.times.len() as u64 - 1).max(1)).max(1))
    }
}
