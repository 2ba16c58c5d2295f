//! A paper's claim beside what we measured.

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
    /// The verdict in a word.
    pub fn word(&self) -> &'static str {
        match self.holds {
            Holds::Yes => "holds",
            Holds::Partly => "in part",
            Holds::No => "does not",
        }
    }
}
