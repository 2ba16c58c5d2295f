//! Standard output for results; standard error for progress, warnings and errors. The reader of
//! either may have gone.

use std::cell::Cell;
use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::error::Error;
use crate::log::Entry;

/// Prints text.
pub fn text(text: &str) -> Result<(), Error> {
    print(|out| out.write_all(text.as_bytes()))
}

/// Prints one JSON object on a line of its own.
pub fn json(value: &impl Serialize) -> Result<(), Error> {
    let line = serde_json::to_string(value).expect("our reports are plain data");
    print(|out| writeln!(out, "{line}"))
}

/// Repeated reports of a program whose work must not wait for their reader: a pager that is not
/// scrolled, or a terminal that is stopped. Another thread writes them, and a slow reader misses
/// some. End the runtime with `shutdown_background`, which does not wait for that thread.
#[derive(Debug, Default)]
pub struct Reports {
    /// Whether standard output takes no more.
    over: Cell<bool>,
}

impl Reports {
    /// Prints a JSON object each second, forever.
    pub async fn each_second<T: Serialize + Send + 'static>(&self, report: impl Fn() -> T) {
        let mut second = interval(Duration::from_secs(1));
        second.set_missed_tick_behavior(MissedTickBehavior::Skip);
        second.tick().await;
        loop {
            second.tick().await;
            self.print(report()).await;
        }
    }

    /// Prints one JSON object. The first error ends the reports with a warning, not the program.
    async fn print(&self, report: impl Serialize + Send + 'static) {
        if self.over.get() {
            return;
        }
        if let Ok(Err(error)) = spawn_blocking(move || json(&report)).await {
            self.over.set(true);
            let text = match error {
                Error::Pipe => "the reader of standard output has closed it".to_owned(),
                error => error.to_string(),
            };
            Entry::warning("report", format!("no more reports: {text}")).write();
        }
    }

    /// Prints the last JSON object, unless its reader has stopped to read.
    pub async fn finish(&self, report: impl Serialize + Send + 'static) {
        let _ = timeout(PATIENCE, self.print(report)).await;
    }
}

/// Time for a reader to take the last report.
const PATIENCE: Duration = Duration::from_secs(1);

/// Prints a line on standard error, as [`say!`](crate::say) does.
pub fn line(line: fmt::Arguments<'_>) {
    // Written with one call, so that lines of several processes do not mix. A failed write is
    // ignored: the exit code still tells how the program ended.
    let _ = io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}

/// Prints a formatted line on standard error.
///
/// `eprintln!` panics if the reader of standard error has gone or the disk is full, and the panic's
/// exit code would replace the program's.
#[macro_export]
macro_rules! say {
    ($($part:tt)*) => { $crate::output::line(format_args!($($part)*)) };
}

/// Formats a number with four decimals, or with three significant digits if it is less than 0.01,
/// without trailing zeros.
pub fn figure(value: f64) -> String {
    // Turns -0 into 0.
    let value = value + 0.0;
    let decimals = match value.abs() {
        size if size > 0.0 && size < 1e-9 => return format!("{value:.2e}"),
        size if size > 0.0 && size < 0.01 => (2.0 - size.log10().floor()) as usize,
        _ => 4,
    };
    let text = format!("{value:.decimals$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    match write(&mut out).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Error::Pipe),
        Err(error) => Err(Error::job(format!("cannot write to standard output: {error}"))),
    }
}

/// Formats bytes in hexadecimal.
pub fn hex(octets: &[u8]) -> String {
    octets.iter().map(|o| format!("{o:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_figures_keep_three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (12.0, "12"),
            (1.234_56, "1.2346"),
            (0.012_345_6, "0.0123"),
            (0.008_512_3, "0.00851"),
            (-0.000_002_5, "-0.0000025"),
            (9.996e-3, "0.01"),
            (1.234_5e-10, "1.23e-10"),
            (1e6, "1000000"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(figure(value), text, "{value:e}");
        }
    }
}
