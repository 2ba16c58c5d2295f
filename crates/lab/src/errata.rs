//! What is wrong or open in the papers, and how we read it: copied entry by entry from the project's list.

use serde::Deserialize;

/// An entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Erratum {
    /// Its name: `S12`, `D8`.
    pub id: String,
    /// The paper, by its experiment's name.
    pub paper: &'static str,
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

const LISTS: [(&str, &str); 5] = [
    ("set", include_str!("errata/set.toml")),
    ("dtc", include_str!("errata/dtc.toml")),
    ("mptcp", include_str!("errata/mptcp.toml")),
    ("rdca", include_str!("errata/rdca.toml")),
    ("sockbuf", include_str!("errata/sockbuf.toml")),
];

/// All, paper by paper.
///
/// # Panics
///
/// Never: the lists are part of the program, and a test reads them.
pub fn all() -> Vec<Erratum> {
    let entries = LISTS.iter().flat_map(|(paper, text)| {
        let file: File = toml::from_str(text).expect("the list is well formed");
        file.erratum.into_iter().map(|Entry { id, kind, place, text }| Erratum {
            id,
            paper,
            kind,
            place,
            text,
        })
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_read_and_no_name_comes_twice() {
        let all = all();
        let of = |paper| all.iter().filter(|e| e.paper == paper).count();
        assert_eq!(LISTS.map(|(paper, _)| of(paper)), [22, 26, 29, 24, 18]);
        let mut names: Vec<&str> = all.iter().map(|e| e.id.as_str()).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(all.iter().all(|e| !e.place.is_empty() && !e.text.is_empty()));
    }
}
