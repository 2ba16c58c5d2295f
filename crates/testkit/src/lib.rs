//! Dev-dependency only: what protocol tests are written in. It never runs outside of tests and
//! never reads a clock or draws entropy: a failing test names its seed. Only [`paths`] and
//! [`processors`] know real time: the one delays real packets, the other says what measured times
//! are worth.
//!
//! * [`script`]: packet scripts, in tcpdump's notation, against one connection.
//! * [`pair`]: two connections and the wire between them, with a clock that jumps.
//! * [`prng`]: a small seeded generator.
//! * [`rdca`]: senders, a sink, and a channel with faults.
//! * [`notation`]: segments as text, both ways.
//! * [`counting`]: an allocator that counts per thread.
//! * [`daemon`]: a program that listens, and what it says.
//! * [`executable`]: programs that a test makes and then starts.
//! * [`embedded`]: the static library for C, and C programs with it.
//! * [`debian`]: programs of others, to hold our bytes against.
//! * [`browser`]: pages as Chromium shows them.
//! * [`tshark`]: a capture as Wireshark reads it.
//! * [`netns`]: network namespaces, and programs in them.
//! * [`paths`]: two namespaces with paths of a rate and a delay between them.
//! * [`priority`]: threads that the load of the machine does not delay.
//! * [`processors`]: what other programs leave of the machine.
//! * [`tmpfs`]: a disk that can be full.

pub mod browser;
pub mod counting;
pub mod daemon;
pub mod debian;
pub mod embedded;
pub mod executable;
pub mod netns;
pub mod notation;
pub mod pair;
pub mod paths;
pub mod priority;
pub mod prng;
pub mod processors;
pub mod rdca;
pub mod script;
pub mod tmpfs;
pub mod tshark;

/// A standard stream of a program whose reader has gone away: writing to it fails with EPIPE.
pub fn broken_pipe() -> std::process::Stdio {
    let (_, writer) = std::io::pipe().expect("a pipe");
    writer.into()
}

/// The outcome of a call that waits. A socket with a time-out is told of every signal, also that
/// the process was stopped and goes on, and the call is made again then.
pub fn uninterrupted<T>(mut call: impl FnMut() -> std::io::Result<T>) -> std::io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

/// Octets without a short period, so that one in the wrong place shows.
pub fn contents(octets: usize) -> Vec<u8> {
    (0..octets as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}
