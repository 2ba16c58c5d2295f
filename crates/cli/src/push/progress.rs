//! A bar for each gateway, on standard error; sparse lines where that is no terminal.

use std::cell::{Cell, RefCell};
use std::io::IsTerminal;

use anabranch_core::set::SessionReport;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// How the progress is shown.
pub(super) struct Bars {
    look: Look,
    total: u64,
    names: Vec<String>,
}

enum Look {
    None,
    Lines { tenth: Cell<u64> },
    Terminal { all: MultiProgress, bars: RefCell<Vec<(u16, ProgressBar)>> },
}

impl Bars {
    pub(super) fn none() -> Self {
        Self { look: Look::None, total: 0, names: Vec::new() }
    }

    /// `names` are those of gateways, by id.
    pub(super) fn new(quiet: bool, names: Vec<String>, total: u64) -> Self {
        let look = match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Look::None,
            (false, false) => Look::Lines { tenth: Cell::new(0) },
            (false, true) => Look::Terminal { all: MultiProgress::new(), bars: RefCell::new(Vec::new()) },
        };
        Self { look, total, names }
    }

    /// Says something before the transfer begins.
    pub(super) fn say(&self, line: &str) {
        match &self.look {
            Look::None => {}
            Look::Lines { .. } | Look::Terminal { .. } => eprintln!("{line}"),
        }
    }

    /// Shows how far the sessions and the file are.
    pub(super) fn update(&self, sessions: impl Iterator<Item = SessionReport>, delivered: u64) {
        match &self.look {
            Look::None => {}
            Look::Lines { tenth } => {
                let now = (delivered * 10).checked_div(self.total).unwrap_or(0);
                if now > tenth.get() {
                    tenth.set(now);
                    eprintln!("{} of {} octets delivered ({} %)", delivered, self.total, now * 10);
                }
            }
            Look::Terminal { all, bars } => {
                let mut bars = bars.borrow_mut();
                for session in sessions {
                    let known = bars.iter().position(|(id, _)| *id == session.gateway);
                    let index = known.unwrap_or_else(|| {
                        bars.push((session.gateway, self.bar(all, session.gateway)));
                        bars.len() - 1
                    });
                    bars[index].1.set_position(session.delivered);
                }
            }
        }
    }

    pub(super) fn finish(&self) {
        if let Look::Terminal { bars, .. } = &self.look {
            bars.borrow().iter().for_each(|(_, bar)| bar.abandon());
        }
    }

    fn bar(&self, all: &MultiProgress, gateway: u16) -> ProgressBar {
        let style = ProgressStyle::with_template("{prefix:>8} {bar:40} {bytes} of {total_bytes}")
            .expect("the template is a constant")
            .progress_chars("━╸ ");
        let name = self.names.get(usize::from(gateway)).cloned().unwrap_or_else(|| format!("#{gateway}"));
        all.add(ProgressBar::new(self.total).with_style(style).with_prefix(name))
    }
}
