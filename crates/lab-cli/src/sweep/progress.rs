//! Progress of a sweep: a bar on standard error, or sparse lines if that is no terminal.

use std::cell::Cell;
use std::fmt;
use std::io::IsTerminal;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anabranch_deploy::say;
use anabranch_sweep::Watch;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};

/// Time between two updates of the display.
pub(super) const PERIOD: Duration = Duration::from_millis(100);

/// Form of the progress display.
pub(super) enum Progress {
    None,
    Lines { tenth: Cell<u64> },
    Terminal(ProgressBar),
}

impl Progress {
    pub(super) fn new(quiet: bool) -> Self {
        if quiet {
            return Self::None;
        }
        if !std::io::stderr().is_terminal() {
            return Self::Lines { tenth: Cell::new(0) };
        }
        Self::Terminal(ProgressBar::no_length().with_style(style()))
    }

    pub(super) fn show(&self, watch: &Watch) {
        let (made, total) = (watch.made.load(Ordering::Relaxed), watch.total.load(Ordering::Relaxed));
        match self {
            Self::None => {}
            Self::Lines { tenth } => {
                let now = (made * 10).checked_div(total).unwrap_or(0);
                if now > tenth.get() {
                    tenth.set(now);
                    say!("{made} of {total} runs ({} %)", now * 10);
                }
            }
            Self::Terminal(bar) => {
                bar.set_length(total);
                bar.set_position(made);
            }
        }
    }

    pub(super) fn finish(&self, watch: &Watch) {
        self.show(watch);
        if let Self::Terminal(bar) = self {
            bar.abandon();
        }
    }
}

/// The style of the bar. The rate has a key of its own because, in a template, text after a colon
/// is parsed as width and style, and `.0` would mean the colour black.
fn style() -> ProgressStyle {
    ProgressStyle::with_template("{bar:40} {human_pos} of {human_len} runs  {rate}  {eta} left")
        .expect("the template is a constant")
        .with_key("rate", |state: &ProgressState, out: &mut dyn fmt::Write| {
            // An error while drawing is ignored: the display must not fail the sweep.
            let _ = write!(out, "{:.0}/s", state.per_sec());
        })
        .progress_chars("━╸ ")
}
