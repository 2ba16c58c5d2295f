//! Tools for protocol tests; a dev-dependency only.
//!
//! Nothing here reads a clock or draws entropy: a failing test prints its seed. The exceptions are
//! [`paths`], which delays real packets, and [`processors`], which judges whether measured times
//! are meaningful.
//!
//! * [`script`]: packet scripts in tcpdump's notation, against one connection.
//! * [`pair`]: two connections, the wire between them, and a clock that jumps.
//! * [`prng`]: a small seeded generator.
//! * [`rdca`]: senders, a sink, and a channel with faults.
//! * [`notation`]: formats and parses segments.
//! * [`counting`]: an allocator that counts per thread.
//! * [`daemon`]: a program that listens, and its output.
//! * [`executable`]: programs that a test creates and then starts.
//! * [`embedded`]: the static library for C, and C programs that use it.
//! * [`debian`]: third-party programs for comparison.
//! * [`browser`]: pages as Chromium shows them.
//! * [`tshark`]: captures as Wireshark reads them.
//! * [`instructions`]: what counting them needs.
//! * [`netns`]: network namespaces, and programs in them.
//! * [`paths`]: two namespaces connected by paths with a rate and a delay.
//! * [`priority`]: threads that the load of the machine does not delay.
//! * [`processors`]: processor time that other programs leave.
//! * [`python`]: a program with sockets.
//! * [`tmpfs`]: a file system of limited size.

pub mod browser;
pub mod counting;
pub mod daemon;
pub mod debian;
pub mod embedded;
pub mod executable;
pub mod instructions;
pub mod netns;
pub mod notation;
pub mod pair;
pub mod paths;
pub mod priority;
pub mod prng;
pub mod processors;
pub mod python;
pub mod rdca;
pub mod script;
pub mod tmpfs;
pub mod tshark;

/// The number in an environment variable, with which a campaign makes a test long.
///
/// # Panics
/// It is no number.
pub fn given(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is no whole number: {text}")))
}

/// A standard stream whose reader has gone: writing to it fails with EPIPE.
pub fn broken_pipe() -> std::process::Stdio {
    let (_, writer) = std::io::pipe().expect("a pipe");
    writer.into()
}

/// A standard stream that is full, and its reader, who does not read: writing to it waits.
pub fn full_pipe() -> (std::io::PipeReader, std::process::Stdio) {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    rustix::io::ioctl_fionbio(&writer, true).expect("a pipe may not wait");
    while std::io::Write::write(&mut writer, &[b' '; 4096]).is_ok() {}
    rustix::io::ioctl_fionbio(&writer, false).expect("a pipe may wait");
    (reader, writer.into())
}

/// Repeats a blocking call that a signal interrupts. On a socket with a time-out, any signal
/// interrupts the call, also the one that continues a stopped process.
pub fn uninterrupted<T>(mut call: impl FnMut() -> std::io::Result<T>) -> std::io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

/// Test data without a short period, so that a misplaced byte shows.
pub fn contents(octets: usize) -> Vec<u8> {
    (0..octets as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}
