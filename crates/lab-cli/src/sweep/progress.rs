//! How far a sweep is: a bar on standard error, sparse lines where that is no terminal.

use std::cell::Cell;
use std::io::IsTerminal;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anabranch_deploy::say;
use anabranch_sweep::Watch;
use indicatif::{ProgressBar, ProgressStyle};

/// How often one looks.
pub(super) const PERIOD: Duration = Duration::from_millis(100);

/// How the progress is shown.
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
        let style = "{bar:40} {human_pos} of {human_len} runs  {per_sec:.0}  {eta} left";
        let style =
            ProgressStyle::with_template(style).expect("the template is a constant").progress_chars("━╸ ");
        Self::Terminal(ProgressBar::no_length().with_style(style))
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
