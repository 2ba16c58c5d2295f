//! Log lines that a thread of their own writes. A pipe that is not read, or a terminal that is
//! stopped, then stops only this thread.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

enum Item {
    Line(String),
    /// Answered when everything before it is written.
    Mark(SyncSender<()>),
}

/// Lines that wait for the thread.
pub(super) struct Queue {
    lines: SyncSender<Item>,
    /// Number of lines dropped since the last report of that number.
    dropped: AtomicU64,
}

static QUEUE: OnceLock<Queue> = OnceLock::new();

/// Starts the thread. `report` makes the line that says how many lines were dropped. Without a
/// thread the lines are written at once.
pub(super) fn start(report: fn(u64) -> Option<String>) {
    let (queue, lines) = Queue::new(WAITING);
    let dropped = || QUEUE.get().map_or(0, |queue| queue.dropped.swap(0, Ordering::Relaxed));
    let write = move || forward(&lines, |line| crate::say!("{line}"), || report(dropped()));
    if thread::Builder::new().name("log".to_owned()).spawn(write).is_ok() {
        let _ = QUEUE.set(queue);
    }
}

/// Hands a line to the thread if there is one, and returns it otherwise.
pub(super) fn put(line: String) -> Option<String> {
    match QUEUE.get() {
        Some(queue) => {
            queue.put(line);
            None
        }
        None => Some(line),
    }
}

/// Waits until the lines so far are written, but not for a reader that does not read.
pub(crate) fn finish() {
    if let Some(queue) = QUEUE.get() {
        queue.finish(PATIENCE);
    }
}

impl Queue {
    fn new(most: usize) -> (Self, Receiver<Item>) {
        let (lines, receiver) = sync_channel(most);
        (Self { lines, dropped: AtomicU64::new(0) }, receiver)
    }

    fn put(&self, line: String) {
        if self.lines.try_send(Item::Line(line)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn finish(&self, patience: Duration) {
        let (mark, written) = sync_channel(1);
        let mut item = Item::Mark(mark);
        let mut waited = Duration::ZERO;
        loop {
            item = match self.lines.try_send(item) {
                Ok(()) => break,
                Err(TrySendError::Full(item)) if waited < patience => item,
                Err(_) => return,
            };
            thread::park_timeout(RETRY);
            waited += RETRY;
        }
        let _ = written.recv_timeout(patience.saturating_sub(waited));
    }
}

/// Writes the lines of a queue until it is gone. After a line, `report` may add another.
fn forward(lines: &Receiver<Item>, mut write: impl FnMut(&str), report: impl Fn() -> Option<String>) {
    for item in lines {
        match item {
            Item::Line(line) => write(&line),
            Item::Mark(written) => {
                // The one that asks may have gone.
                let _ = written.try_send(());
            }
        }
        report().iter().for_each(|line| write(line));
    }
}

/// Number of lines that wait for a slow reader.
const WAITING: usize = 1024;
/// Time for a reader to take the last lines.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time between two looks for room at the end.
const RETRY: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn a_full_queue_drops_lines_and_counts_them() {
        let (queue, lines) = Queue::new(2);
        ["a", "b", "c", "d"].iter().for_each(|line| queue.put((*line).to_owned()));
        // It returns without a reader.
        queue.finish(Duration::ZERO);
        let dropped = RefCell::new(Some(queue.dropped.swap(0, Ordering::Relaxed)));
        drop(queue);
        let written = RefCell::new(Vec::new());
        let report = || dropped.take().map(|number| format!("{number} dropped"));
        forward(&lines, |line| written.borrow_mut().push(line.to_owned()), report);
        assert_eq!(written.into_inner(), ["a", "2 dropped", "b"]);
    }

    /// Also if there is no room for the mark yet, because the reader is slow.
    #[test]
    fn the_end_waits_for_the_lines() {
        let (queue, lines) = Queue::new(1);
        let (written, seen) = std::sync::mpsc::channel();
        queue.put("a".to_owned());
        let writer = thread::spawn(move || {
            thread::park_timeout(Duration::from_millis(20));
            forward(&lines, |line| written.send(line.to_owned()).expect("it is read"), || None);
        });
        queue.finish(Duration::from_secs(60));
        assert_eq!(seen.try_recv().as_deref(), Ok("a"));
        drop(queue);
        writer.join().expect("it ends");
    }
}
