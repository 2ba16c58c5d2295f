//! What is wrong or open in the papers, and how we read it: copied entry by entry from the
//! project's list.

use serde::Deserialize;

/// An entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Erratum {
    /// Its name: `S12`, `D8`.
    pub id: String,
    /// What sort of fault it is.
    pub kind: Fault,
    /// Where.
    pub place: String,
    /// What is wrong or open, and the reading that we take. Between backticks as printed.
    pub text: String,
}

/// The sort of a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fault {
    /// It can be shown to be wrong.
    Error,
    /// It contradicts another place of the paper.
    Inconsistency,
    /// It can be read in several ways.
    Ambiguity,
    /// It is not said.
    Unstated,
}

impl Fault {
    /// In a word.
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

/// The entries of a paper's list.
///
/// # Panics
///
/// If it is none: the lists are part of the program, and a test reads them.
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
