//! Progress of simulations: a bar on standard error if that is a terminal and the work takes longer
//! than a second, and a summary if the work is interrupted.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anabranch_core::time::{Duration as SimDuration, Instant};
use anabranch_deploy::output::figure;
use anabranch_deploy::say;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work that takes less shows no bar, which would only flicker.
const PATIENCE: Duration = Duration::from_secs(1);

/// Resolution of the bar, per run.
const STEPS: u64 = 1000;

/// Limit on the runs that are named individually when the work is interrupted.
const NAMED: usize = 4;

/// Progress of a number of runs. Any thread may report it.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Where to draw the bar once the work has taken a second.
    target: Mutex<Option<ProgressDrawTarget>>,
    /// The bar is drawn, or will be.
    is_wanted: AtomicBool,
    patience: Duration,
    /// Number of runs.
    runs: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    done: u64,
    /// Runs in progress by name, each with its simulated time in nanoseconds and its end.
    under_way: BTreeMap<String, (Arc<AtomicU64>, Instant)>,
}

/// A run in progress.
pub(crate) struct Run<'p> {
    progress: &'p Progress,
    name: String,
    /// Simulated time in nanoseconds, shared with [`State`].
    now: Arc<AtomicU64>,
    stop: Instant,
    steps: u64,
}

impl Progress {
    /// Progress of `runs` runs. Nothing is drawn if `quiet` is set or standard error is no
    /// terminal.
    pub(crate) fn new(runs: u64, quiet: bool) -> Self {
        let target =
            (!quiet && std::io::stderr().is_terminal()).then(|| ProgressDrawTarget::stderr_with_hz(10));
        Self::to(target, runs, PATIENCE)
    }

    fn to(target: Option<ProgressDrawTarget>, runs: u64, patience: Duration) -> Self {
        let style = ProgressStyle::with_template("{bar:24} {percent:>3} %  {msg}  {eta} left")
            .expect("the template is a constant")
            .progress_chars("━╸ ");
        let bar = ProgressBar::with_draw_target(Some(runs * STEPS), ProgressDrawTarget::hidden());
        Self {
            bar: bar.with_style(style),
            is_wanted: AtomicBool::new(target.is_some()),
            target: Mutex::new(target),
            patience,
            runs,
            state: Mutex::default(),
        }
    }

    /// Registers a run that starts now and ends at simulated time `stop`.
    pub(crate) fn begin(&self, name: String, stop: Instant) -> Run<'_> {
        let now = Arc::<AtomicU64>::default();
        self.state().under_way.insert(name.clone(), (now.clone(), stop));
        Run { progress: self, name, now, stop, steps: 0 }
    }

    /// Runs `print` while the bar is hidden, so that both outputs stay readable.
    pub(crate) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Removes the bar when the work has ended.
    pub(crate) fn finish(&self) {
        self.is_wanted.store(false, Ordering::Relaxed);
        self.bar.finish_and_clear();
    }

    /// Prints to standard error how far the work was when it was interrupted.
    pub(crate) fn say_interrupted(&self) {
        self.finish();
        say!("{}", self.reached());
    }

    /// Number of finished runs, and the simulated time of the runs in progress.
    fn reached(&self) -> String {
        let State { done, under_way } = &*self.state();
        let mut text = format!("interrupted: {done} of {} runs were done", self.runs);
        for (name, (now, stop)) in under_way.iter().take(NAMED) {
            let now = Instant::ZERO + SimDuration::from_nanos(now.load(Ordering::Relaxed));
            let _ = write!(text, "; {name} was at {} of {} s", seconds(now), seconds(*stop));
        }
        if under_way.len() > NAMED {
            let _ = write!(text, "; {} more were under way", under_way.len() - NAMED);
        }
        text
    }

    /// Draws the bar if it is time to.
    fn show(&self, message: impl FnOnce() -> String) {
        if !self.is_wanted.load(Ordering::Relaxed) || self.bar.elapsed() < self.patience {
            return;
        }
        if let Some(target) = lock(&self.target).take() {
            self.bar.set_draw_target(target);
        }
        self.bar.set_message(message());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// Locks a mutex even if it is poisoned: each update is complete, so a panicked thread leaves valid
/// data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn seconds(at: Instant) -> String {
    figure(at.as_secs_f64())
}

impl Run<'_> {
    /// Reports that the run has reached `now`.
    pub(crate) fn at(&mut self, now: Instant) {
        self.now.store(now.saturating_since(Instant::ZERO).as_nanos(), Ordering::Relaxed);
        let share = now.as_secs_f64() / self.stop.as_secs_f64().max(f64::MIN_POSITIVE);
        let steps = ((share * STEPS as f64) as u64).min(STEPS);
        if steps <= self.steps {
            return;
        }
        let Progress { bar, runs, .. } = self.progress;
        bar.inc(steps - self.steps);
        self.steps = steps;
        self.progress.show(|| match runs {
            1 => format!("{} of {} s simulated", seconds(now), seconds(self.stop)),
            runs => format!("{} of {runs} runs", self.progress.state().done),
        });
    }

    /// Reports that the run has ended.
    pub(crate) fn finish(mut self) {
        {
            let mut state = self.progress.state();
            state.done += 1;
            state.under_way.remove(&self.name);
        }
        // A run without pending events ends before `stop`; count it as complete.
        self.at(self.stop);
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use indicatif::TermLike;

    use super::*;

    /// A terminal of 100 columns that records what is written to it.
    #[derive(Clone, Debug, Default)]
    struct Terminal(Arc<Mutex<String>>);

    impl Terminal {
        fn text(&self) -> String {
            lock(&self.0).clone()
        }
    }

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
            self.write_str(&format!("{text}\n"))
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            lock(&self.0).push_str(text);
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + SimDuration::from_secs(seconds)
    }

    fn progress(runs: u64, patience: Duration) -> (Progress, Terminal) {
        let terminal = Terminal::default();
        let target = ProgressDrawTarget::term_like(Box::new(terminal.clone()));
        (Progress::to(Some(target), runs, patience), terminal)
    }

    #[test]
    fn one_run_shows_simulated_time_and_many_show_runs() {
        let (one, terminal) = progress(1, Duration::ZERO);
        let mut run = one.begin("run 0".to_owned(), at(60));
        run.at(at(15));
        assert!(terminal.text().contains("25 %  15 of 60 s simulated"), "{:?}", terminal.text());
        run.finish();
        one.finish();
        let (many, terminal) = progress(4, Duration::ZERO);
        let mut runs = [0, 1].map(|run| many.begin(format!("run {run}"), at(60)));
        runs[1].at(at(30));
        let [first, _] = runs;
        first.finish();
        let text = terminal.text();
        assert!(text.contains("12 %  0 of 4 runs") && text.contains("38 %  1 of 4 runs"), "{text:?}");
    }

    #[test]
    fn short_work_shows_nothing() {
        let (progress, terminal) = progress(1, Duration::from_secs(3600));
        let mut run = progress.begin("run 0".to_owned(), at(60));
        run.at(at(30));
        run.finish();
        progress.finish();
        assert_eq!(terminal.text(), "");
    }

    #[test]
    fn an_interruption_says_what_was_done() {
        let (progress, _) = progress(9, Duration::ZERO);
        progress.begin("run 0".to_owned(), at(60)).finish();
        let mut runs: Vec<Run<'_>> = (1..7).map(|run| progress.begin(format!("run {run}"), at(60))).collect();
        runs[1].at(at(15));
        assert_eq!(
            progress.reached(),
            "interrupted: 1 of 9 runs were done; run 1 was at 0 of 60 s; run 2 was at 15 of 60 s; \
             run 3 was at 0 of 60 s; run 4 was at 0 of 60 s; 2 more were under way"
        );
    }
}
