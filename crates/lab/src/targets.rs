//! What the papers print: figures and claims, copied entry by entry from the project's list of
//! targets.

use serde::Deserialize;

/// An entry.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Its name, by which reports call it.
    pub id: String,
    /// The paper.
    pub source: String,
    /// Where in the paper.
    pub section: String,
    /// What sort of entry it is.
    pub kind: Kind,
    /// The printed value of a [`Kind::Value`] or [`Kind::Param`].
    #[serde(default)]
    pub value: Option<toml::Value>,
    /// Its unit.
    #[serde(default)]
    pub unit: Option<String>,
    /// The claim of a [`Kind::Trend`], in words.
    #[serde(default)]
    pub text: Option<String>,
    /// Under which circumstances.
    #[serde(default)]
    pub scenario: Option<toml::Table>,
    /// What is odd about it.
    #[serde(default)]
    pub note: Option<String>,
    /// It contradicts other printed figures.
    #[serde(default)]
    pub suspect: bool,
}

/// The sort of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A number that came out.
    Value,
    /// A number that went in.
    Param,
    /// Something that grows, falls or lies below something else.
    Trend,
}

impl Target {
    /// A claim that is in no list: a goal of our own.
    pub fn own(id: String, section: &str, claim: &str) -> Self {
        let (section, text) = (section.to_owned(), Some(claim.to_owned()));
        Self {
            id,
            section,
            text,
            source: String::new(),
            kind: Kind::Trend,
            value: None,
            unit: None,
            scenario: None,
            note: None,
            suspect: false,
        }
    }

    /// The printed value, if it is one number.
    pub fn number(&self) -> Option<f64> {
        let value = self.value.as_ref()?;
        value.as_float().or(value.as_integer().map(|n| n as f64))
    }

    /// Under which circumstances, in a line: `hops 6, loss 0.1`.
    pub fn circumstances(&self) -> String {
        let all = self.scenario.iter().flatten().map(|(key, value)| match value {
            toml::Value::String(text) => format!("{} {text}", key.replace('_', " ")),
            other => format!("{} {other}", key.replace('_', " ")),
        });
        all.collect::<Vec<_>>().join(", ")
    }
}

/// Whether numbers of that unit are per cent, so that their differences are points.
pub(crate) fn is_percent(unit: &str) -> bool {
    ["%", "percentage points"].contains(&unit)
}

#[derive(Deserialize)]
struct File {
    target: Vec<Target>,
}

/// The values and trends of a paper's list.
pub(crate) fn claims(list: &str) -> impl Iterator<Item = Target> {
    read(list).into_iter().filter(|target| target.kind != Kind::Param)
}

/// The entries of a paper's list.
///
/// # Panics
///
/// If it is none: the lists are part of the program, and a test reads them.
pub(crate) fn read(list: &str) -> Vec<Target> {
    toml::from_str::<File>(list).expect("the list is well formed").target
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PAPERS;

    #[test]
    fn the_list_is_read_and_holds_what_its_kind_asks_for() {
        for (source, all, values, trends) in
            [("set", 4, 14), ("dtc", 63, 9), ("mptcp-iot", 86, 8), ("rdca", 143, 11), ("sockbuf", 0, 8)]
                .into_iter()
                .zip(PAPERS)
                .map(|((source, values, trends), paper)| (source, paper.targets(), values, trends))
        {
            assert!(all.iter().all(|t| t.source == source));
            let of = |kind| all.iter().filter(move |t| t.kind == kind);
            assert_eq!((of(Kind::Value).count(), of(Kind::Trend).count()), (values, trends));
            assert!(of(Kind::Trend).all(|t| t.text.is_some()));
            assert!(of(Kind::Value).all(|t| t.value.is_some()));
        }
    }
}
