//! The names of enum variants and struct fields as serde uses them.

use std::fmt;

use serde::de::value::{self, StrDeserializer};
use serde::de::{DeserializeOwned, Error, IntoDeserializer, Visitor};
use serde::{Deserializer, Serialize, forward_to_deserialize_any};

/// Why a word is not a value of an enum.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WordError {
    /// The enum has no such word; these are its words.
    Unknown(&'static [&'static str]),
    /// The word needs a value.
    Other(String),
}

impl fmt::Display for WordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(words) => write!(f, "expected one of {}", words.join(", ")),
            Self::Other(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for WordError {}

impl Error for WordError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Other(message.to_string())
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self::Unknown(expected)
    }
}

/// Parses a word as an enum value.
///
/// # Errors
/// `T` does not have the word, or the word needs a value.
pub fn word<T: DeserializeOwned>(text: &str) -> Result<T, WordError> {
    let deserializer: StrDeserializer<'_, WordError> = text.into_deserializer();
    T::deserialize(deserializer)
}

/// All words of an enum, in the order of its variants.
pub fn words_of<T: DeserializeOwned>() -> &'static [&'static str] {
    match word::<T>("") {
        Err(WordError::Unknown(words)) => words,
        Ok(_) | Err(WordError::Other(_)) => &[],
    }
}

/// All keys of a struct, in the order of its fields.
pub fn keys_of<T: DeserializeOwned>() -> &'static [&'static str] {
    struct Keys<'k>(&'k mut &'static [&'static str]);
    impl<'de> Deserializer<'de> for Keys<'_> {
        type Error = value::Error;

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
            Err(value::Error::custom("no struct"))
        }

        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            visitor: V,
        ) -> Result<V::Value, Self::Error> {
            *self.0 = fields;
            self.deserialize_any(visitor)
        }

        forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
            unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }
    let mut keys: &[&str] = &[];
    // Deserialising reports the names of the fields, and then fails without a value.
    let _ = T::deserialize(Keys(&mut keys));
    keys
}

/// The word for a value.
///
/// # Panics
/// If the value is not serialised as a single word.
pub fn word_of<T: Serialize>(value: &T) -> String {
    struct Word<'a, T>(&'a T);
    impl<T: Serialize> fmt::Display for Word<'_, T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.serialize(f)
        }
    }
    Word(value).to_string()
}

#[cfg(test)]
mod tests {
    use anabranch_core::tcp::{CongestionAlgorithm, SackRole};

    use super::*;

    #[test]
    fn words_are_those_of_the_core_both_ways() {
        for name in ["off", "receiver", "sender", "both"] {
            let role: SackRole = word(name).expect("a word of the core");
            assert_eq!(word_of(&role), name);
        }
        assert_eq!(words_of::<SackRole>(), ["off", "receiver", "sender", "both"]);
        let error = word::<SackRole>("of").expect_err("no word");
        assert_eq!(error.to_string(), "expected one of off, receiver, sender, both");
    }

    #[test]
    fn keys_are_those_that_a_file_has() {
        #[derive(serde::Deserialize)]
        #[expect(dead_code, reason = "only its keys are asked for")]
        struct Table {
            first: u8,
            #[serde(rename = "second-one", default)]
            second: u8,
        }
        assert_eq!(keys_of::<Table>(), ["first", "second-one"]);
        assert!(keys_of::<SackRole>().is_empty(), "no struct");
    }

    #[test]
    fn a_word_that_needs_a_value_is_known() {
        assert!(words_of::<CongestionAlgorithm>().contains(&"adaptive-newreno"));
        assert!(!words_of::<CongestionAlgorithm>().contains(&"custom"));
        assert!(matches!(word::<CongestionAlgorithm>("adaptive-newreno"), Err(WordError::Other(_))));
    }
}
