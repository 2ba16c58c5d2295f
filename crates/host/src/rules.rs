//! Rules of the packet filter that bring forwarded TCP into a queue, by the programs `iptables` and
//! `ip6tables`.
//!
//! All rules are in a chain of the queue's own in the table `security`, to which one rule in
//! FORWARD leads. There the host has decided on the route and has decremented the hop limit, and
//! the table `filter` has let the packet pass: a segment that a firewall drops must not be cached,
//! since the cache sends its copies from OUTPUT. A verdict of the queue skips only later rules of
//! the same table.

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
    /// The host translates addresses or ports.
    Translates {
        /// The program that lists the rule.
        program: &'static str,
        /// The rule.
        rule: String,
    },
    /// Rules of another queue lead there.
    Other {
        /// The other queue's chain.
        chain: String,
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
const TABLE: &str = "security";
/// What the name of each queue's chain begins with.
const CHAIN: &str = "anabranch-cache-";
/// Targets of the table `nat` that change packets.
const TRANSLATIONS: [&str; 5] = ["SNAT", "MASQUERADE", "DNAT", "REDIRECT", "NETMAP"];
/// What the programs print if the kernel lacks a table.
pub(crate) const NO_TABLE: &str = "Table does not exist";

impl Rules {
    /// Adds the rules, or replaces those of an earlier process for the same queue.
    ///
    /// # Errors
    /// The host translates addresses, or another queue has rules; then no rule is changed. A
    /// program is missing or fails; then no rule of this queue remains.
    pub fn set_up(&self) -> Result<(), RulesError> {
        PROGRAMS.iter().try_for_each(|program| self.check(program))?;
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
        format!("{CHAIN}{}", self.queue)
    }

    /// Looks for rules with which the cache would do harm.
    fn check(&self, program: &'static str) -> Result<(), RulesError> {
        // Packets of the cache belong to no connection that conntrack knows, so those of a
        // translated connection would leave with new ports.
        let translates = |rule: &&str| {
            let target = rule.split(" -j ").nth(1).and_then(|rest| rest.split(' ').next());
            target.is_some_and(|target| TRANSLATIONS.contains(&target))
        };
        let listed = match list(program, "nat") {
            Err(RulesError::Failed { reason, .. }) if reason.contains(NO_TABLE) => String::new(),
            listed => listed?,
        };
        if let Some(rule) = listed.lines().find(translates) {
            return Err(RulesError::Translates { program, rule: rule.to_owned() });
        }
        // A packet enters one queue only: the verdict of the first skips the rule of the second.
        let own = self.chain();
        let listed = list(program, TABLE)?;
        let mut chains = listed.lines().filter_map(|rule| rule.strip_prefix("-A FORWARD -j "));
        match chains.find(|chain| chain.starts_with(CHAIN) && *chain != own) {
            Some(chain) => Err(RulesError::Other { chain: chain.to_owned() }),
            None => Ok(()),
        }
    }

    fn add(&self, program: &'static str) -> Result<(), RulesError> {
        let (chain, Self { queue, mark }) = (self.chain(), self);
        // In one step: a declared chain is emptied if it exists.
        let restore = match program {
            "iptables" => "iptables-restore",
            _ => "ip6tables-restore",
        };
        let text = format!(
            "*{TABLE}\n:{chain} - [0:0]\n\
             -A {chain} -p tcp -m mark ! --mark {mark:#x} -j NFQUEUE --queue-num {queue} --queue-bypass\n\
             COMMIT\n"
        );
        run(restore, &["-w", "--noflush"], &text)?;
        let jump = ["FORWARD", "-j", &chain];
        if run(program, &[&["-w", "-t", TABLE, "-C"], &jump[..]].concat(), "").is_err() {
            run(program, &[&["-w", "-t", TABLE, "-A"], &jump[..]].concat(), "")?;
        }
        Ok(())
    }

    fn remove(&self, program: &'static str) -> Result<(), RulesError> {
        let chain = self.chain();
        let listed = list(program, TABLE)?;
        let jump = format!("-A FORWARD -j {chain}");
        for _ in listed.lines().filter(|line| *line == jump) {
            run(program, &["-w", "-t", TABLE, "-D", "FORWARD", "-j", &chain], "")?;
        }
        if listed.lines().any(|line| line == format!("-N {chain}")) {
            run(program, &["-w", "-t", TABLE, "-F", &chain], "")?;
            run(program, &["-w", "-t", TABLE, "-X", &chain], "")?;
        }
        Ok(())
    }
}

/// The rules of a table as commands.
fn list(program: &'static str, table: &str) -> Result<String, RulesError> {
    let listed = run(program, &["-w", "-t", table, "-S"], "")?;
    Ok(String::from_utf8_lossy(&listed.stdout).into_owned())
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
