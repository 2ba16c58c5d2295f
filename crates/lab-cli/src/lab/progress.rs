//! Progress of the runs on standard error: a bar with the remaining time on a terminal, otherwise a
//! line for every tenth.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_deploy::say;
use indicatif::{ProgressBar, ProgressStyle};

/// Progress in units that the caller chooses; any thread may report it.
#[derive(Debug)]
pub(super) struct Progress {
    look: Look,
    done: AtomicU64,
    total: u64,
}

#[derive(Debug)]
enum Look {
    None,
    Lines,
    Bar(ProgressBar),
}

impl Progress {
    /// Shows nothing.
    pub(super) fn none() -> Self {
        Self::with(Look::None, 0)
    }

    /// Shows a bar on a terminal, otherwise a line for every tenth.
    pub(super) fn new(total: u64) -> Self {
        Self::with(bar(total).map_or(Look::Lines, Look::Bar), total)
    }

    /// Shows a bar on a terminal, otherwise nothing.
    pub(super) fn on_a_terminal(total: u64) -> Self {
        Self::with(bar(total).map_or(Look::None, Look::Bar), total)
    }

    const fn with(look: Look, total: u64) -> Self {
        Self { look, done: AtomicU64::new(0), total }
    }

    /// Shows what is being done.
    pub(super) fn say(&self, what: &str) {
        if let Look::Bar(bar) = &self.look {
            bar.set_message(what.to_owned());
        }
    }

    /// Adds `units` to the work done.
    pub(super) fn advance(&self, units: u64) {
        match &self.look {
            Look::None => {}
            Look::Bar(bar) => bar.inc(units),
            Look::Lines => {
                let before = self.done.fetch_add(units, Ordering::Relaxed);
                let tenth = |done: u64| (10 * done).checked_div(self.total).unwrap_or(0);
                if tenth(before + units) > tenth(before) {
                    say!("{} %", 10 * tenth(before + units));
                }
            }
        }
    }

    /// Runs `print` while the bar is hidden, so that both outputs stay readable.
    pub(super) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.look {
            Look::Bar(bar) => bar.suspend(print),
            Look::None | Look::Lines => print(),
        }
    }

    /// Removes the bar when all work is done.
    pub(super) fn finish(&self) {
        if let Look::Bar(bar) = &self.look {
            bar.finish_and_clear();
        }
    }
}

fn bar(total: u64) -> Option<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        return None;
    }
    let style =
        ProgressStyle::with_template("{bar:40} {percent:>3} %  {msg}  {elapsed} elapsed, about {eta} left")
            .expect("the template is a constant")
            .progress_chars("━╸ ");
    Some(ProgressBar::new(total).with_style(style))
}
