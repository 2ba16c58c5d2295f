//! The emulator with the kernel's network stack at the other end.
//!
//! One binary for all files: linking one per file would take longer than compiling them.

mod linux_mptcp;
mod linux_tcp;

use std::io::{BufRead, BufReader};
use std::process::{self, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use anabranch_testkit::netns::{Kept, inside};
use serde_json::Value;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Held while devices are made: they have the same names until they are in their namespaces.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the kernel's end of a connection, a script that gets `cell`, and waits until it is ready.
fn kernel_end(netns: &str, script: &str, cell: &Value) -> (Kept, BufReader<ChildStdout>) {
    let mut peer = inside(netns, &["python3", "-c", script, &cell.to_string()]);
    let mut peer = Kept(peer.stdout(Stdio::piped()).spawn().expect("python3 runs"));
    let mut stdout = BufReader::new(peer.0.stdout.take().expect("it is a pipe"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("text");
    assert_eq!(line, "ready\n");
    (peer, stdout)
}

/// Ends this process if a signal has asked for it. The first call must precede the first emulation,
/// since each emulation takes signals for its own end.
fn end_if_asked() {
    if ended_from_outside().load(Ordering::SeqCst) {
        process::exit(130);
    }
}

/// Set when a signal asks this process to end. An emulation takes the signal for its own end, so
/// that it can clean up.
fn ended_from_outside() -> &'static AtomicBool {
    static ENDED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    ENDED.get_or_init(|| {
        let ended = Arc::default();
        for signal in [SIGINT, SIGTERM] {
            flag::register(signal, Arc::clone(&ended)).expect("signals can be caught");
        }
        ended
    })
}
