//! Handles inputs on which a target runs forever.

use std::process;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::crash;

/// Time limit of an execution; executions usually take microseconds.
const LIMIT: Duration = Duration::from_secs(20);

/// Ends the process when an execution takes longer than 20 s, and stores its input: safe code
/// offers no other way out of a loop. Stops when dropped.
#[derive(Debug)]
pub struct Watchdog {
    present: Arc<Mutex<Present>>,
    _alive: Sender<()>,
}

/// The current execution.
#[derive(Debug, Default)]
struct Present {
    serial: u64,
    input: Vec<u8>,
}

impl Watchdog {
    /// Watches the executions of one target.
    pub fn new(target: &'static str) -> Self {
        let present = Arc::new(Mutex::new(Present::default()));
        let (alive, gone) = mpsc::channel();
        let watched = Arc::clone(&present);
        thread::spawn(move || watch(target, &watched, &gone));
        Self { present, _alive: alive }
    }

    /// Starts an execution, which also ends the previous one.
    pub fn begin(&self, input: &[u8]) {
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        present.serial += 1;
        present.input.clear();
        present.input.extend_from_slice(input);
    }
}

fn watch(target: &str, present: &Mutex<Present>, gone: &Receiver<()>) {
    let mut last = 0;
    while gone.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
        let present = present.lock().unwrap_or_else(PoisonError::into_inner);
        if present.serial == last && last > 0 {
            eprintln!("{target}: an execution does not end");
            match crash::store(&crash::directory(), target, &present.input) {
                Ok(file) => eprintln!("input: {}", file.display()),
                Err(error) => eprintln!("its input cannot be stored: {error}"),
            }
            process::exit(1);
        }
        last = present.serial;
    }
}
