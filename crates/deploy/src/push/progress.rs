//! Progress of a push on standard error: a bar per gateway on a terminal, otherwise sparse lines.

use std::cell::Cell;
#[cfg(feature = "bars")]
use std::io::IsTerminal;

use anabranch_core::set::SessionReport;

use crate::say;

/// The progress display of a push.
pub struct Bars(Look);

enum Look {
    None,
    Lines {
        total: u64,
        tenth: Cell<u64>,
    },
    #[cfg(feature = "bars")]
    Terminal(terminal::Bars),
}

impl Bars {
    /// Shows nothing.
    pub fn none() -> Self {
        Self(Look::None)
    }

    /// Creates the display. `names` are the gateways' names by identifier; `total` is the file's
    /// length in bytes.
    pub fn new(quiet: bool, names: Vec<String>, total: u64) -> Self {
        if quiet {
            return Self::none();
        }
        #[cfg(feature = "bars")]
        if std::io::stderr().is_terminal() {
            return Self(Look::Terminal(terminal::Bars::new(names, total)));
        }
        drop(names);
        Self(Look::Lines { total, tenth: Cell::new(0) })
    }

    /// Shows a line above the bars.
    pub fn say(&self, line: &str) {
        match &self.0 {
            Look::None => {}
            Look::Lines { .. } => say!("{line}"),
            #[cfg(feature = "bars")]
            Look::Terminal(bars) => bars.aside(|| say!("{line}")),
        }
    }

    /// Updates the display with the sessions and the number of delivered bytes.
    pub fn update(&self, sessions: impl Iterator<Item = SessionReport>, delivered: u64) {
        match &self.0 {
            Look::None => {}
            Look::Lines { total, tenth } => {
                let now = (delivered * 10).checked_div(*total).unwrap_or(0);
                if now > tenth.get() {
                    tenth.set(now);
                    say!("{delivered} of {total} bytes delivered ({} %)", now * 10);
                }
            }
            #[cfg(feature = "bars")]
            Look::Terminal(bars) => bars.update(sessions),
        }
        // Lines show only the file, not the sessions.
        #[cfg(not(feature = "bars"))]
        drop(sessions);
    }

    /// Ends the display; bars stay as they are.
    pub fn finish(&self) {
        #[cfg(feature = "bars")]
        if let Look::Terminal(bars) = &self.0 {
            bars.finish();
        }
    }
}

/// Bars on a terminal.
#[cfg(feature = "bars")]
mod terminal {
    use std::cell::RefCell;

    use anabranch_core::set::SessionReport;
    use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

    pub(super) struct Bars {
        total: u64,
        names: Vec<String>,
        all: MultiProgress,
        /// Bars by gateway identifier, in order of appearance.
        bars: RefCell<Vec<(u16, ProgressBar)>>,
    }

    impl Bars {
        pub(super) fn new(names: Vec<String>, total: u64) -> Self {
            Self { total, names, all: MultiProgress::new(), bars: RefCell::default() }
        }

        pub(super) fn update(&self, sessions: impl Iterator<Item = SessionReport>) {
            let mut bars = self.bars.borrow_mut();
            for session in sessions {
                let known = bars.iter().position(|(id, _)| *id == session.gateway);
                let index = known.unwrap_or_else(|| {
                    bars.push((session.gateway, self.bar(session.gateway)));
                    bars.len() - 1
                });
                bars[index].1.set_position(session.delivered);
            }
        }

        /// Writes to standard error while no bar is shown.
        pub(super) fn aside(&self, write: impl FnOnce()) {
            self.all.suspend(write);
        }

        pub(super) fn finish(&self) {
            self.bars.borrow().iter().for_each(|(_, bar)| bar.abandon());
        }

        fn bar(&self, gateway: u16) -> ProgressBar {
            let style = ProgressStyle::with_template("{prefix:>8} {bar:40} {bytes} of {total_bytes}")
                .expect("the template is a constant")
                .progress_chars("━╸ ");
            let name = self.names.get(usize::from(gateway)).cloned().unwrap_or_else(|| format!("#{gateway}"));
            self.all.add(ProgressBar::new(self.total).with_style(style).with_prefix(name))
        }
    }
}
