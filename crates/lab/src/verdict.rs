//! A paper's claim beside what we measured.

use crate::targets::Target;

/// What became of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holds {
    /// It holds.
    Yes,
    /// It holds in part; what was measured says in which.
    Partly,
    /// It does not.
    No,
}

/// A claim beside what we measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Verdict {
    /// The claim's name in the list of targets.
    pub id: String,
    /// Where the paper makes it.
    pub section: String,
    /// The claim.
    pub claim: String,
    /// What we measured.
    pub measured: String,
    /// Whether it holds.
    pub holds: Holds,
}

impl Verdict {
    /// What became of an entry of the list of targets, and what we measured.
    pub fn of(target: Target, (holds, measured): (Holds, String)) -> Self {
        let claim = target.text.unwrap_or_else(|| {
            let value = target.value.as_ref().map(ToString::to_string).unwrap_or_default();
            let suspect = if target.suspect { " (suspect)" } else { "" };
            format!("{value} {}{suspect}", target.unit.as_deref().unwrap_or_default())
        });
        Self { id: target.id, section: target.section, claim, measured, holds }
    }

    /// The verdict in a word.
    pub fn word(&self) -> &'static str {
        match self.holds {
            Holds::Yes => "holds",
            Holds::Partly => "in part",
            Holds::No => "does not",
        }
    }
}

/// How many hold, in a sentence without its full stop.
pub(crate) fn tally(verdicts: &[Verdict]) -> String {
    let count = |holds| verdicts.iter().filter(|v| v.holds == holds).count();
    let (yes, partly, no) = (count(Holds::Yes), count(Holds::Partly), count(Holds::No));
    format!("{yes} hold, {partly} in part, {no} do not")
}

/// The verdicts as a table in Markdown, a row each.
pub(crate) fn table(verdicts: &[Verdict]) -> String {
    let head = "| claim | where | the paper | we measured | verdict |\n|---|---|---|---|---|\n".to_owned();
    verdicts.iter().fold(head, |text, v| {
        text + &format!("| `{}` | {} | {} | {} | {} |\n", v.id, v.section, v.claim, v.measured, v.word())
    })
}
