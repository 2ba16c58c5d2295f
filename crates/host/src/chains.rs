//! Chains of our own in the packet filter, which leave the rules of others as they are.

use std::collections::BTreeMap;

use crate::commands::{CommandError, Family, NO_TABLE, run};

/// A chain to which one rule of a built-in chain leads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Chain<'a> {
    pub(crate) table: &'static str,
    pub(crate) name: &'a str,
    /// The built-in chain.
    pub(crate) from: &'static str,
    /// Whether the rule is before or after those that are there.
    pub(crate) place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Place {
    First,
    Last,
}

impl Chain<'_> {
    /// Makes the chain, or replaces its rules, in one step.
    pub(crate) fn set(&self, family: Family, rules: &[String]) -> Result<(), CommandError> {
        let Self { table, name, from, place } = self;
        // A declared chain is emptied if it exists.
        let mut text = format!("*{table}\n:{name} - [0:0]\n");
        let jump = self.jump();
        if !list(family, table)?.lines().any(|line| line == jump) {
            text += match place {
                Place::First => "-I",
                Place::Last => "-A",
            };
            text += &format!(" {from} -j {name}\n");
        }
        rules.iter().for_each(|rule| text += &format!("-A {name} {rule}\n"));
        restore(family, &(text + "COMMIT\n"))
    }

    /// Whether the chain has this number of rules, and one leads to it.
    pub(crate) fn is_intact(&self, family: Family, rules: usize) -> Result<bool, CommandError> {
        let (listed, jump) = (list(family, self.table)?, self.jump());
        let own = format!("-A {} ", self.name);
        let count = listed.lines().filter(|line| line.starts_with(&own)).count();
        Ok(count == rules && listed.lines().any(|line| line == jump))
    }

    /// Removes the chain and what leads to it. Without any it does nothing.
    pub(crate) fn remove(&self, family: Family) -> Result<(), CommandError> {
        restore(family, &self.removal(&list(family, self.table)?))
    }

    /// What [`restore`] must have to remove the chain from these rules of its table; empty if it is
    /// not there.
    fn removal(&self, listed: &str) -> String {
        let Self { table, name, from, .. } = self;
        let jump = self.jump();
        let mut text = String::new();
        for _ in listed.lines().filter(|line| *line == jump) {
            text += &format!("-D {from} -j {name}\n");
        }
        if listed.lines().any(|line| line == format!("-N {name}")) {
            text += &format!("-F {name}\n-X {name}\n");
        }
        if text.is_empty() { text } else { format!("*{table}\n{text}COMMIT\n") }
    }

    /// The rule that leads to the chain, as it is listed.
    fn jump(&self) -> String {
        format!("-A {} -j {}", self.from, self.name)
    }
}

/// The rules of a table as commands. A table that the kernel lacks has none.
pub(crate) fn list(family: Family, table: &str) -> Result<String, CommandError> {
    // The programs wait for other processes that change rules (`-w`).
    match run(family.tables(), &["-w", "-t", table, "-S"], "") {
        Err(CommandError::Failed { reason, .. }) if reason.contains(NO_TABLE) => Ok(String::new()),
        listed => listed,
    }
}

/// What [`restore`] must have to remove these chains. Each table is listed once.
pub(crate) fn removal(family: Family, chains: &[Chain<'_>]) -> Result<String, CommandError> {
    let mut listed = BTreeMap::new();
    for table in chains.iter().map(|chain| chain.table) {
        if !listed.contains_key(table) {
            listed.insert(table, list(family, table)?);
        }
    }
    Ok(chains.iter().map(|chain| chain.removal(&listed[chain.table])).collect())
}

/// Changes rules. Without any it does nothing.
pub(crate) fn restore(family: Family, text: &str) -> Result<(), CommandError> {
    if text.is_empty() {
        return Ok(());
    }
    run(family.restore(), &["-w", "--noflush"], text).map(drop)
}
