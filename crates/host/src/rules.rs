//! Rules of the packet filter that bring forwarded TCP into a queue, by the programs `iptables` and
//! `ip6tables`.
//!
//! All rules are in a chain of the queue's own in the table `security`, to which one rule in
//! FORWARD leads. There the host has decided on the route and has decremented the hop limit, and
//! the table `filter` has let the packet pass: a segment that a firewall drops must not be cached,
//! since the cache sends its copies from OUTPUT. A verdict of the queue skips only later rules of
//! the same table.

use crate::chains::{Chain, Place, list};
use crate::commands::{CommandError, Family};

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
    /// A program is missing or fails.
    Command(CommandError),
}

impl From<CommandError> for RulesError {
    fn from(error: CommandError) -> Self {
        Self::Command(error)
    }
}

const TABLE: &str = "security";
/// What the name of each queue's chain begins with.
const CHAIN: &str = "anabranch-cache-";
/// Targets of the table `nat` that change packets.
const TRANSLATIONS: [&str; 5] = ["SNAT", "MASQUERADE", "DNAT", "REDIRECT", "NETMAP"];
impl Rules {
    /// Adds the rules, or replaces those of an earlier process for the same queue.
    ///
    /// # Errors
    /// The host translates addresses, or another queue has rules; then no rule is changed. A
    /// program is missing or fails; then no rule of this queue remains.
    pub fn set_up(&self) -> Result<(), RulesError> {
        Family::BOTH.iter().try_for_each(|family| self.check(*family))?;
        let Self { queue, mark } = self;
        let rule = format!("-p tcp -m mark ! --mark {mark:#x} -j NFQUEUE --queue-num {queue} --queue-bypass");
        let rules = [rule];
        let done = Family::BOTH.iter().try_for_each(|family| chain(&self.name()).set(*family, &rules));
        if done.is_err() {
            // The first error counts.
            let _ = self.tear_down();
        }
        Ok(done?)
    }

    /// Removes the rules. Without any it does nothing.
    ///
    /// # Errors
    /// A program is missing or fails. The rules of the other family are removed nevertheless.
    pub fn tear_down(&self) -> Result<(), RulesError> {
        let [v4, v6] = Family::BOTH.map(|family| chain(&self.name()).remove(family));
        Ok(v4.and(v6)?)
    }

    fn name(&self) -> String {
        format!("{CHAIN}{}", self.queue)
    }

    /// Looks for rules with which the cache would do harm.
    fn check(&self, family: Family) -> Result<(), RulesError> {
        // Packets of the cache belong to no connection that conntrack knows, so those of a
        // translated connection would leave with new ports.
        let translates = |rule: &&str| {
            let target = rule.split(" -j ").nth(1).and_then(|rest| rest.split(' ').next());
            target.is_some_and(|target| TRANSLATIONS.contains(&target))
        };
        let listed = list(family, "nat")?;
        if let Some(rule) = listed.lines().find(translates) {
            return Err(RulesError::Translates { program: family.tables(), rule: rule.to_owned() });
        }
        // A packet enters one queue only: the verdict of the first skips the rule of the second.
        let own = self.name();
        let listed = list(family, TABLE)?;
        let mut chains = listed.lines().filter_map(|rule| rule.strip_prefix("-A FORWARD -j "));
        match chains.find(|chain| chain.starts_with(CHAIN) && *chain != own) {
            Some(chain) => Err(RulesError::Other { chain: chain.to_owned() }),
            None => Ok(()),
        }
    }
}

fn chain(name: &str) -> Chain<'_> {
    Chain { table: TABLE, name, from: "FORWARD", place: Place::Last }
}
