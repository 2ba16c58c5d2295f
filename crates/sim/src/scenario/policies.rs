//! Policies that are not ours, and the names by which scenario files call them.

use std::fmt;

use anabranch_core::mptcp::CustomScheduler;
use anabranch_core::set::CustomStriping;
use anabranch_core::tcp::CustomCongestion;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::nearest;

/// Octets of a name, at most.
const LONGEST: usize = 32;

/// What a program brings along beside what is ours: [`super::Source::with_policies`] lets scenario files name it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Policies {
    congestion: Vec<CustomCongestion>,
    schedulers: Vec<CustomScheduler>,
    striping: Vec<CustomStriping>,
}

impl Policies {
    /// A congestion control: `congestion = "NAME"` of a TCP profile.
    #[must_use]
    pub fn congestion(mut self, policy: CustomCongestion) -> Self {
        self.congestion.push(policy);
        self
    }

    /// A scheduler of Multipath TCP: `mptcp.scheduler = "NAME"` of a transfer.
    #[must_use]
    pub fn scheduler(mut self, policy: CustomScheduler) -> Self {
        self.schedulers.push(policy);
        self
    }

    /// A striping policy of SET: `set.striping = "NAME"` of a transfer.
    #[must_use]
    pub fn striping(mut self, policy: CustomStriping) -> Self {
        self.striping.push(policy);
        self
    }

    pub(super) fn find_congestion(&self, name: PolicyName) -> Result<CustomCongestion, String> {
        if name.as_str() == "adaptive-newreno" {
            return Err(format!(
                "`{name}` stands with numbers: {{ {name} = {{ w_min = 2, w_max = 8, update_every = 2 }} }}"
            ));
        }
        let ours = ["newreno", "cubic", "coupled", "westwood", "bbr"];
        find("congestion control", name, &self.congestion, CustomCongestion::name, &ours)
    }

    pub(super) fn find_scheduler(&self, name: PolicyName) -> Result<CustomScheduler, String> {
        let ours = ["fastest-rtt", "round-robin", "redundant", "blest", "daps", "predictive"];
        find("scheduler", name, &self.schedulers, CustomScheduler::name, &ours)
    }

    pub(super) fn find_striping(&self, name: PolicyName) -> Result<CustomStriping, String> {
        find("striping policy", name, &self.striping, CustomStriping::name, &["predictive", "window"])
    }
}

fn find<T: Copy>(
    what: &str,
    name: PolicyName,
    known: &[T],
    name_of: impl Fn(&T) -> &'static str,
    ours: &[&'static str],
) -> Result<T, String> {
    known.iter().find(|policy| PolicyName::of(name_of(policy)) == name).copied().ok_or_else(|| {
        let all = || known.iter().map(&name_of).chain(ours.iter().copied());
        let hint = match nearest(name.as_str(), all()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("it knows {}", all().collect::<Vec<_>>().join(", ")),
        };
        format!("this program has no {what} `{name}`: {hint}")
    })
}

/// The name of a policy that is not ours: at most 32 octets, what is longer is cut.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PolicyName {
    octets: [u8; LONGEST],
    length: u8,
}

impl PolicyName {
    /// That name.
    pub fn of(name: &str) -> Self {
        let length = (0..=name.len().min(LONGEST)).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
        let mut octets = [0; LONGEST];
        octets[..length].copy_from_slice(&name.as_bytes()[..length]);
        Self { octets, length: length as u8 }
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.octets[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl Serialize for PolicyName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for PolicyName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = PolicyName;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "the name of a policy, of at most {LONGEST} octets")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<PolicyName, E> {
                let name = PolicyName::of(text);
                if name.as_str() == text { Ok(name) } else { Err(E::invalid_length(text.len(), &self)) }
            }
        }
        deserializer.deserialize_str(Name)
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for PolicyName {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PolicyName".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "maxLength": LONGEST })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_between_characters() {
        assert_eq!(PolicyName::of("vegas").as_str(), "vegas");
        assert_eq!(PolicyName::of(&"ü".repeat(17)).as_str(), "ü".repeat(16));
        assert_eq!(PolicyName::of(&format!("x{}", "ü".repeat(17))).as_str(), format!("x{}", "ü".repeat(15)));
    }
}
