//! Errors and gaps in the papers, and how we read them; copied entry by entry from the project's
//! list.

use serde::Deserialize;

/// An entry of the list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Erratum {
    /// Name, as in `S12` or `D8`.
    pub id: String,
    /// Kind of the fault.
    pub kind: Fault,
    /// Place in the paper.
    pub place: String,
    /// What is wrong or missing, and our reading. Text between backticks is as printed.
    pub text: String,
}

/// Kind of a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fault {
    /// Demonstrably wrong.
    Error,
    /// Contradicts another place of the paper.
    Inconsistency,
    /// Can be read in several ways.
    Ambiguity,
    /// Not stated.
    Unstated,
}

impl Fault {
    /// The kind as one word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Inconsistency => "inconsistency",
            Self::Ambiguity => "ambiguity",
            Self::Unstated => "unstated",
        }
    }
}

#[derive(Deserialize)]
struct File {
    erratum: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: String,
    kind: Fault,
    place: String,
    text: String,
}

/// Parses a paper's list.
///
/// # Panics
///
/// The list is invalid. The lists are part of the program, and a test parses them.
pub(crate) fn read(list: &str) -> Vec<Erratum> {
    let file: File = toml::from_str(list).expect("the list is well formed");
    let entries = file.erratum.into_iter();
    entries.map(|Entry { id, kind, place, text }| Erratum { id, kind, place, text }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PAPERS;

    #[test]
    fn the_lists_are_read_and_no_name_comes_twice() {
        assert_eq!(PAPERS.map(|paper| paper.errata().len()), [22, 26, 29, 24, 18]);
        let all: Vec<Erratum> = PAPERS.iter().flat_map(|paper| paper.errata()).collect();
        let mut names: Vec<&str> = all.iter().map(|e| e.id.as_str()).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(all.iter().all(|e| !e.place.is_empty() && !e.text.is_empty()));
    }
}
