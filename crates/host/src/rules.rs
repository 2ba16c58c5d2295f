//! Rules of the packet filter that bring forwarded TCP into a queue, by the programs `iptables` and
//! `ip6tables`.
//!
//! All rules are in a chain of the queue's own in the table `mangle`, to which one rule in FORWARD
//! leads. At that hook the host has decided on the route and has decremented the hop limit, and
//! addresses that this host translates are those of the inner network in both directions.

use std::io::{self, Write};
use std::process::{Command, Output, Stdio};

/// The rules of one queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Number of the queue.
    pub queue: u16,
    /// Mark of packets that must not enter the queue.
    pub mark: u32,
}

/// Why the rules could not be changed.
#[derive(Debug)]
pub enum RulesError {
    /// The program cannot be started.
    Program {
        /// Its name.
        program: &'static str,
        /// The reason.
        error: io::Error,
    },
    /// The program failed.
    Failed {
        /// Its name and arguments.
        command: String,
        /// What it printed.
        reason: String,
    },
}

/// The programs of both families. Both wait for other processes that change rules (`-w`).
const PROGRAMS: [&str; 2] = ["iptables", "ip6tables"];

impl Rules {
    /// Adds the rules, or replaces those of an earlier process for the same queue.
    ///
    /// # Errors
    /// A program is missing or fails. Then no rule of this queue remains.
    pub fn set_up(&self) -> Result<(), RulesError> {
        let done = PROGRAMS.iter().try_for_each(|program| self.add(program));
        if done.is_err() {
            // The first error counts.
            let _ = self.tear_down();
        }
        done
    }

    /// Removes the rules. Without any it does nothing.
    ///
    /// # Errors
    /// A program is missing or fails. The rules of the other family are removed nevertheless.
    pub fn tear_down(&self) -> Result<(), RulesError> {
        let [v4, v6] = PROGRAMS.map(|program| self.remove(program));
        v4.and(v6)
    }

    fn chain(&self) -> String {
        format!("anabranch-cache-{}", self.queue)
    }

    fn add(&self, program: &'static str) -> Result<(), RulesError> {
        let (chain, Self { queue, mark }) = (self.chain(), self);
        // In one step: a declared chain is emptied if it exists.
        let restore = match program {
            "iptables" => "iptables-restore",
            _ => "ip6tables-restore",
        };
        let text = format!(
            "*mangle\n:{chain} - [0:0]\n\
             -A {chain} -p tcp -m mark ! --mark {mark:#x} -j NFQUEUE --queue-num {queue} --queue-bypass\n\
             COMMIT\n"
        );
        run(restore, &["-w", "--noflush"], &text)?;
        let jump = ["FORWARD", "-j", &chain];
        if run(program, &[&["-w", "-t", "mangle", "-C"], &jump[..]].concat(), "").is_err() {
            run(program, &[&["-w", "-t", "mangle", "-A"], &jump[..]].concat(), "")?;
        }
        Ok(())
    }

    fn remove(&self, program: &'static str) -> Result<(), RulesError> {
        let chain = self.chain();
        let listed = run(program, &["-w", "-t", "mangle", "-S"], "")?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let jump = format!("-A FORWARD -j {chain}");
        for _ in listed.lines().filter(|line| *line == jump) {
            run(program, &["-w", "-t", "mangle", "-D", "FORWARD", "-j", &chain], "")?;
        }
        if listed.lines().any(|line| line == format!("-N {chain}")) {
            run(program, &["-w", "-t", "mangle", "-F", &chain], "")?;
            run(program, &["-w", "-t", "mangle", "-X", &chain], "")?;
        }
        Ok(())
    }
}

fn run(program: &'static str, arguments: &[&str], input: &str) -> Result<Output, RulesError> {
    let failed = |error| RulesError::Program { program, error };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    // A program that ends without reading says why.
    let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return Ok(output);
    }
    let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let command = format!("{program} {}", arguments.join(" "));
    Err(RulesError::Failed { command, reason })
}
