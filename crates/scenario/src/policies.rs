//! Custom policies of the program, and the names by which scenario files refer to them.

use std::fmt;
use std::marker::PhantomData;

use anabranch_core::mptcp::{CustomScheduler, SchedulerKind};
use anabranch_core::set::{CustomStriping, StripingPolicy};
use anabranch_core::tcp::{CongestionAlgorithm, CustomCongestion};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::did_you_mean;
use super::units::{word, words_of};

/// Largest length of a name in bytes.
const LONGEST: usize = 32;

/// Custom policies that a program adds to the built-in ones. [`super::Source::with_policies`] lets
/// scenario files name them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Policies {
    congestion: Vec<CustomCongestion>,
    schedulers: Vec<CustomScheduler>,
    striping: Vec<CustomStriping>,
    identities: Vec<(&'static str, String)>,
}

impl Policies {
    /// Adds a congestion control, for `congestion = "NAME"` of a TCP profile.
    #[must_use]
    pub fn congestion(mut self, policy: CustomCongestion) -> Self {
        self.congestion.push(policy);
        self
    }

    /// Adds a scheduler of Multipath TCP, for `mptcp.scheduler = "NAME"` of a transfer.
    #[must_use]
    pub fn scheduler(mut self, policy: CustomScheduler) -> Self {
        self.schedulers.push(policy);
        self
    }

    /// Adds a striping policy of SET, for `set.striping = "NAME"` of a transfer.
    #[must_use]
    pub fn striping(mut self, policy: CustomStriping) -> Self {
        self.striping.push(policy);
        self
    }

    /// Adds a digest to the identity of each scenario that names this policy. A policy outside the
    /// build gives the digest of its source, since the fingerprint of the build does not cover it.
    #[must_use]
    pub fn identified(mut self, name: &'static str, digest: impl Into<String>) -> Self {
        self.identities.push((name, digest.into()));
        self
    }

    /// Digests of the policies that a resolved scenario, as JSON, may use, by name. The search is
    /// by text: a name in another place also counts, which at worst gives two equal scenarios
    /// different identities.
    pub(super) fn identities_in<'p>(
        &'p self,
        json: &'p [u8],
    ) -> impl Iterator<Item = (&'static str, &'p str)> {
        let is_used = move |name: &str| {
            let quoted = format!("\"{name}\"");
            json.windows(quoted.len()).any(|part| part == quoted.as_bytes())
        };
        let used = self.identities.iter().filter(move |(name, _)| is_used(name));
        used.map(|(name, digest)| (*name, digest.as_str()))
    }
}

/// A policy type of the core with a variant for registered policies.
pub trait Registered: DeserializeOwned + Serialize + Copy {
    /// Name of the policy type in errors.
    const WHAT: &'static str;
    /// The values that a file may use, for errors.
    const EXPECTED: &'static str;
    /// Notation of the values that have parameters; empty if there are none.
    const TABLE: &'static str = "";

    /// The registered policies of this type, with their names.
    fn registered(policies: &Policies) -> Vec<(&'static str, Self)>;

    /// The name of a registered policy; `None` for a policy of the core.
    fn registered_name(&self) -> Option<&'static str>;
}

impl Registered for CongestionAlgorithm {
    const WHAT: &'static str = "congestion control";
    const EXPECTED: &'static str = "the name of a congestion control, or a table such as \
        `{ adaptive-newreno = { w_min = 2, w_max = 8, update_every = 2 } }`";
    const TABLE: &'static str = "w_min = 2, w_max = 8, update_every = 2";

    fn registered(policies: &Policies) -> Vec<(&'static str, Self)> {
        policies.congestion.iter().map(|policy| (policy.name(), Self::Custom(*policy))).collect()
    }

    fn registered_name(&self) -> Option<&'static str> {
        if let Self::Custom(policy) = self { Some(policy.name()) } else { None }
    }
}

impl Registered for SchedulerKind {
    const WHAT: &'static str = "scheduler";
    const EXPECTED: &'static str = "the name of a scheduler";

    fn registered(policies: &Policies) -> Vec<(&'static str, Self)> {
        policies.schedulers.iter().map(|policy| (policy.name(), Self::Custom(*policy))).collect()
    }

    fn registered_name(&self) -> Option<&'static str> {
        if let Self::Custom(policy) = self { Some(policy.name()) } else { None }
    }
}

impl Registered for StripingPolicy {
    const WHAT: &'static str = "striping policy";
    const EXPECTED: &'static str = "the name of a striping policy";

    fn registered(policies: &Policies) -> Vec<(&'static str, Self)> {
        policies.striping.iter().map(|policy| (policy.name(), Self::Custom(*policy))).collect()
    }

    fn registered_name(&self) -> Option<&'static str> {
        if let Self::Custom(policy) = self { Some(policy.name()) } else { None }
    }
}

/// A policy as named in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Named<T> {
    /// A policy of the core.
    Ours(T),
    /// A registered policy, or an unknown name: `Named::find` decides.
    Custom(PolicyName),
}

impl<T: Registered> Named<T> {
    /// The name of a policy.
    pub fn of(policy: T) -> Self {
        match policy.registered_name() {
            Some(name) => Self::Custom(PolicyName::of(name)),
            None => Self::Ours(policy),
        }
    }

    /// The policy with this name.
    ///
    /// # Errors
    /// If neither the core nor the program has it; the message lists the available names.
    pub(super) fn find(self, policies: &Policies) -> Result<T, String> {
        let name = match self {
            Self::Ours(policy) => return Ok(policy),
            Self::Custom(name) => name,
        };
        let registered = T::registered(policies);
        if let Some((_, policy)) = registered.iter().find(|(known, _)| PolicyName::of(known) == name) {
            return Ok(*policy);
        }
        let ours = words_of::<T>();
        if ours.contains(&name.as_str()) {
            return Err(format!("`{name}` needs numbers: {{ {name} = {{ {} }} }}", T::TABLE));
        }
        let known = || registered.iter().map(|(name, _)| *name).chain(ours.iter().copied());
        let hint = did_you_mean(name.as_str(), known())
            .unwrap_or_else(|| format!("it knows {}", known().collect::<Vec<_>>().join(", ")));
        Err(format!("this program has no {} `{name}`: {hint}", T::WHAT))
    }
}

impl<T: Serialize> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Ours(policy) => policy.serialize(serializer),
            Self::Custom(name) => name.serialize(serializer),
        }
    }
}

impl<'de, T: Registered> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameOrTable<T>(PhantomData<T>);
        impl<'de, T: Registered> Visitor<'de> for NameOrTable<T> {
            type Value = Named<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(T::EXPECTED)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Named<T>, E> {
                match word(text) {
                    Ok(policy) => Ok(Named::Ours(policy)),
                    Err(_) => PolicyName::checked(text).map(Named::Custom),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Named<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Named::Ours)
            }
        }
        deserializer.deserialize_any(NameOrTable(PhantomData))
    }
}

#[cfg(feature = "schema")]
impl<T: JsonSchema> JsonSchema for Named<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("{}Name", T::schema_name()).into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let (ours, custom) = (generator.subschema_for::<T>(), generator.subschema_for::<PolicyName>());
        schemars::json_schema!({ "anyOf": [ours, custom] })
    }
}

/// Name of a registered policy: at most 32 bytes; longer names are cut.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PolicyName {
    octets: [u8; LONGEST],
    length: u8,
}

impl PolicyName {
    /// Makes a name, cut to the limit.
    pub fn of(name: &str) -> Self {
        let length = (0..=name.len().min(LONGEST)).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
        let mut octets = [0; LONGEST];
        octets[..length].copy_from_slice(&name.as_bytes()[..length]);
        Self { octets, length: length as u8 }
    }

    /// Makes a name, or fails if it is too long.
    fn checked<E: Error>(name: &str) -> Result<Self, E> {
        let this = Self::of(name);
        if this.as_str() == name {
            return Ok(this);
        }
        let expected = format!("the name of a policy, of at most {LONGEST} bytes");
        Err(E::invalid_length(name.len(), &expected.as_str()))
    }

    /// The name as text.
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
