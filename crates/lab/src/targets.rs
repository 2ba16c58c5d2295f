//! Published figures and claims of the papers, copied entry by entry from the project's list of
//! targets.

use serde::Deserialize;

/// An entry of the list.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Name, by which reports refer to the entry.
    pub id: String,
    /// The paper.
    pub source: String,
    /// Place in the paper.
    pub section: String,
    /// Kind of the entry.
    pub kind: Kind,
    /// Printed value of a [`Kind::Value`] or [`Kind::Param`].
    #[serde(default)]
    pub value: Option<toml::Value>,
    /// Unit of the value.
    #[serde(default)]
    pub unit: Option<String>,
    /// Claim of a [`Kind::Trend`], in words.
    #[serde(default)]
    pub text: Option<String>,
    /// Conditions of the value or claim.
    #[serde(default)]
    pub scenario: Option<toml::Table>,
    /// Remark about the entry.
    #[serde(default)]
    pub note: Option<String>,
    /// Whether the entry contradicts other printed numbers.
    #[serde(default)]
    pub suspect: bool,
}

/// Kind of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A result.
    Value,
    /// An input.
    Param,
    /// A relation: a quantity grows, falls, or lies below another one.
    Trend,
}

impl Target {
    /// A goal of our own, which is not in a list.
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

    /// The printed value, if it is a single number.
    pub fn number(&self) -> Option<f64> {
        let value = self.value.as_ref()?;
        value.as_float().or(value.as_integer().map(|n| n as f64))
    }

    /// Conditions in one line: `hops 6, loss 0.1`.
    pub fn circumstances(&self) -> String {
        let all = self.scenario.iter().flatten().map(|(key, value)| match value {
            toml::Value::String(text) => format!("{} {text}", key.replace('_', " ")),
            other => format!("{} {other}", key.replace('_', " ")),
        });
        all.collect::<Vec<_>>().join(", ")
    }
}

/// Whether numbers of this unit are percentages, so that their differences are in points.
pub(crate) fn is_percent(unit: &str) -> bool {
    ["%", "percentage points"].contains(&unit)
}

#[derive(Deserialize)]
struct File {
    target: Vec<Target>,
}

/// Values and trends of a paper's list.
pub(crate) fn claims(list: &str) -> impl Iterator<Item = Target> {
    read(list).into_iter().filter(|target| target.kind != Kind::Param)
}

/// Parses a paper's list.
///
/// # Panics
///
/// The list is invalid. The lists are part of the program, and a test parses them.
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
