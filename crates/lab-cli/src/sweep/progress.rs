//! How far a sweep is: a bar on standard error, sparse lines where that is no terminal.

use std::cell::Cell;
use std::fmt;
use std::io::IsTerminal;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anabranch_deploy::say;
use anabranch_sweep::Watch;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};

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

/// What follows a colon in a template is a width and a style, of which `.0` would be the colour black: the rate has a key of its own.
fn style() -> ProgressStyle {
    ProgressStyle::with_template("{bar:40} {human_pos} of {human_len} runs  {rate}  {eta} left")
        .expect("the template is a constant")
        .with_key("rate", |state: &ProgressState, out: &mut dyn fmt::Write| {
            // A bar that cannot be drawn is no error.
            let _ = write!(out, "{:.0}/s", state.per_sec());
        })
        .progress_chars("━╸ ")
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use indicatif::{ProgressDrawTarget, TermLike};

    use super::*;

    /// All that was written to a terminal.
    #[derive(Clone, Debug, Default)]
    struct Terminal(Arc<Mutex<String>>);

    impl TermLike for Terminal {
        fn width(&self) -> u16 {
            100
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().expect("one thread").push_str(text);
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The template's parser takes all that follows a colon for a width and a style: a precision is dropped there, and its digits are colours.
    #[test]
    fn the_rate_is_a_whole_number() {
        let terminal = Terminal::default();
        let target = ProgressDrawTarget::term_like(Box::new(terminal.clone()));
        let bar = ProgressBar::with_draw_target(Some(1000), target).with_style(style());
        bar.set_position(7);
        bar.tick();
        let shown = terminal.0.lock().expect("one thread").clone();
        let rate = shown.split("  ").find(|part| part.ends_with("/s")).unwrap_or_else(|| panic!("{shown:?}"));
        assert!(rate.trim_end_matches("/s").chars().all(|c| c.is_ascii_digit()), "{shown:?}");
        assert!(shown.contains("7 of 1,000 runs"), "{shown:?}");
    }
}
