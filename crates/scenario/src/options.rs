//! Tables of optional keys. Each key stands for a field of a configuration; a base or the program's
//! default fills in the rest. [`options!`] declares key, type and field once. It generates the
//! table for files, its meaning, and the table with every value filled in.

use std::collections::BTreeMap;
use std::fmt;

use anabranch_core::time::Duration;
use serde::de::value::{MapAccessDeserializer, MapDeserializer, StrDeserializer};
use serde::de::{Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::units::{Length, Probability, Size, Span};

/// A value in a file that stands for a `T` of a configuration.
pub(super) trait Means<T> {
    /// The `T` that the value stands for.
    fn meant(&self) -> T;
    /// The value that stands for a `T`.
    fn of(meant: &T) -> Self;
}

impl<T: Clone> Means<T> for T {
    fn meant(&self) -> T {
        self.clone()
    }

    fn of(meant: &T) -> Self {
        meant.clone()
    }
}

macro_rules! means {
    ($($file:ident($core:ty)),*) => { $(
        impl Means<$core> for $file {
            fn meant(&self) -> $core {
                self.0
            }

            fn of(meant: &$core) -> Self {
                Self(*meant)
            }
        }
    )* };
}

means!(Span(Duration), Size(u64), Length(f64), Probability(f64));

impl Means<usize> for u32 {
    fn meant(&self) -> usize {
        *self as usize
    }

    fn of(meant: &usize) -> Self {
        u32::try_from(*meant).unwrap_or(u32::MAX)
    }
}

/// A value, or "off".
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OrOff<T>(
    /// `None` is "off".
    pub Option<T>,
);

impl<T, A: Means<T>> Means<Option<T>> for OrOff<A> {
    fn meant(&self) -> Option<T> {
        self.0.as_ref().map(A::meant)
    }

    fn of(meant: &Option<T>) -> Self {
        Self(meant.as_ref().map(A::of))
    }
}

impl<T: Serialize> Serialize for OrOff<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(value) => value.serialize(serializer),
            None => serializer.serialize_str("off"),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OrOff<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueOrOff<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ValueOrOff<T> {
            type Value = OrOff<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value, or \"off\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<OrOff<T>, E> {
                if text == "off" {
                    return Ok(OrOff(None));
                }
                T::deserialize(StrDeserializer::new(text)).map(|value| OrOff(Some(value)))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<OrOff<T>, E> {
                T::deserialize(number.into_deserializer()).map(|value| OrOff(Some(value)))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<OrOff<T>, E> {
                T::deserialize(number.into_deserializer()).map(|value| OrOff(Some(value)))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<OrOff<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|value| OrOff(Some(value)))
            }
        }
        deserializer.deserialize_any(ValueOrOff(std::marker::PhantomData))
    }
}

/// A word of an enum, or a table of the enum. A word alone stands for a table without keys.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct WordOrTable<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for WordOrTable<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a word, or a table such as `{ word = { key = ... } }`")
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<T, E> {
                let alone: Result<T, E> = T::deserialize(StrDeserializer::new(word));
                alone.or_else(|_| {
                    let nothing = BTreeMap::<String, String>::new();
                    let table = MapDeserializer::new(std::iter::once((word, nothing)));
                    T::deserialize(MapAccessDeserializer::new(table))
                })
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
                let value = T::deserialize(MapAccessDeserializer::new(&mut map))?;
                match map.next_key::<String>()? {
                    None => Ok(value),
                    Some(key) => Err(A::Error::custom(format!(
                        "expected a table with one word, found also `{key}`: options belong into the table of the word"
                    ))),
                }
            }
        }
        deserializer.deserialize_any(Either(std::marker::PhantomData)).map(Self)
    }
}

#[cfg(feature = "schema")]
impl<T: schemars::JsonSchema + serde::de::DeserializeOwned> schemars::JsonSchema for WordOrTable<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("{}WordOrTable", T::schema_name()).into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut value = T::json_schema(generator).to_value();
        let tables = value["oneOf"].as_array().cloned().unwrap_or_default();
        // An enum variant whose table has a mandatory key cannot be written as a word.
        let is_word =
            |word: &&str| Self::deserialize(StrDeserializer::<serde::de::value::Error>::new(word)).is_ok();
        let words = tables.iter().filter_map(|table| table["required"][0].as_str()).filter(is_word);
        let words: Vec<_> = words
            .map(|word| serde_json::json!({ "const": word, "description": "The same with its defaults." }))
            .collect();
        let all = value["oneOf"].as_array_mut().expect("an enum of several variants");
        all.extend(words);
        value.try_into().expect("a schema is an object")
    }
}

/// Reads a value, or "off" for `None`.
pub(super) fn or_off<'de, D: Deserializer<'de>, T: Deserialize<'de>>(d: D) -> Result<Option<T>, D::Error> {
    OrOff::deserialize(d).map(|value| value.0)
}

#[cfg(feature = "schema")]
impl<T: schemars::JsonSchema> schemars::JsonSchema for OrOff<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("{}OrOff", T::schema_name()).into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let value = generator.subschema_for::<T>();
        schemars::json_schema!({ "anyOf": [value, { "const": "off" }] })
    }
}

/// Declares a table of options: `key: Type = field.of.the.configuration`. An optional key ahead of
/// the table selects the base.
macro_rules! options {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident of $config:ty $(, $(#[$base_attribute:meta])* $base:ident: $base_type:ty)?;
        $($(#[$key_attribute:meta])* $key:ident: $type:ty = $($field:ident).+;)*
    ) => {
        $(#[$attribute])*
        #[derive(Clone, PartialEq, Debug, Default, serde::Deserialize, serde::Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $($(#[$base_attribute])* pub $base: $base_type,)?
            $($(#[$key_attribute])* #[serde(skip_serializing_if = "Option::is_none")] pub $key: Option<$type>,)*
        }

        impl $name {
            /// Overwrites the fields of a configuration with the keys that are given.
            pub(super) fn lay_over(&self, config: &mut $config) {
                $(if let Some(value) = &self.$key {
                    config.$($field).+ = $crate::options::Means::meant(value);
                })*
            }

            /// Fills in every key from a configuration.
            pub(super) fn complete(&mut self, config: &$config) {
                $(self.$key = Some($crate::options::Means::of(&config.$($field).+));)*
            }
        }
    };
}
pub(super) use options;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize, Serialize, PartialEq, Debug)]
    struct Table {
        wait: OrOff<Span>,
    }

    #[test]
    fn off_is_a_value_of_its_own() {
        let read = |text: &str| toml::from_str::<Table>(text).map(|table| table.wait.meant());
        assert_eq!(read("wait = \"off\""), Ok(None));
        assert_eq!(read("wait = \"20 ms\""), Ok(Some(Duration::from_millis(20))));
        let error = read("wait = 20").expect_err("a span has a unit").to_string();
        assert!(error.contains("expected a span of time"), "{error}");
        for wait in [None, Some(Span(Duration::from_millis(5)))] {
            let table = Table { wait: OrOff(wait) };
            let text = toml::to_string(&table).expect("it is TOML");
            assert_eq!(toml::from_str(&text), Ok(table), "{text}");
        }
    }
}
