//! Runs scripts of packetdrill against [`anabranch_core::tcp::Connection`] (Google's
//! `gtests/net/tcp`) and [`anabranch_core::mptcp::Connection`] (`gtests/net/mptcp` of
//! multipath-tcp/packetdrill).
//!
//! A script lists the system calls of a program, the segments that arrive, and the segments that
//! the host must send, with their times. The runner drives the connection in simulated time behind
//! emulated socket calls and compares the sent segments with the script.
//! `docs/reference/packetdrill.md` lists what the runner supports and where it differs from
//! packetdrill.
//! * `lexer`, `parser`: the text of a script as a [`script::Script`].
//! * [`settings`]: options and shell commands of a script as a configuration of the host.
//! * `host`: descriptors, sockets and system calls over connections.
//! * `runner`: the events of a script in order; `segments` compares segments.
//! * `code`: the Python snippets.
//! * [`secrets`]: tokens and HMACs of Multipath TCP.
//! * [`outcome`]: how a script ended.

mod code;
mod host;
mod lexer;
pub mod outcome;
mod parser;
mod runner;
pub mod script;
pub mod secrets;
pub mod settings;

pub use outcome::Outcome;

/// Runs the script `text`; never panics, whatever the text.
pub fn run(text: &str) -> Outcome {
    match parser::parse(text).and_then(|script| runner::run(&script)) {
        Ok(()) => Outcome::Passed,
        Err(stop) => stop.into(),
    }
}
