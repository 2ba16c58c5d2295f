//! Reads a [`Node`] as a type of serde's.
//!
//! TOML's own deserialiser does so too, but serves types that want to know their place or are
//! dates: it compiles each struct three times and each enum twice. A scenario has hundreds of
//! types, and code generation is most of a build.

#[cfg(test)]
mod tests;

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{
    DeserializeSeed, EnumAccess, Error as _, MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};
use toml::Spanned;
use toml::de::{DeFloat, DeInteger, DeString, DeTable, DeValue};

use super::{Node, Tree};

type Result<T, E = ReadError> = std::result::Result<T, E>;

/// What does not fit, and where it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadError {
    /// What is wrong, in serde's words.
    pub message: String,
    /// The bytes of the text that are wrong; `None` for the text as a whole.
    pub span: Option<Range<usize>>,
}

impl ReadError {
    /// The error at the innermost value that has a place.
    fn within(self, span: Range<usize>) -> Self {
        Self { span: self.span.or(Some(span)), ..self }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ReadError {}

impl From<toml::de::Error> for ReadError {
    fn from(error: toml::de::Error) -> Self {
        Self { message: error.message().to_owned(), span: error.span() }
    }
}

impl serde::de::Error for ReadError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { message: message.to_string(), span: None }
    }
}

/// Reads a value.
///
/// # Errors
/// What does not fit, at the innermost value that is wrong.
pub fn read<'s, T: Deserialize<'s>>(node: &Node<'s>) -> Result<T> {
    NodeReader(node).read(PhantomData)
}

/// Reads a whole text.
///
/// # Errors
/// What does not fit, at the innermost value that is wrong; a key that is missing has no place.
pub fn read_tree<'s, T: Deserialize<'s>>(tree: &Tree<'s>) -> Result<T> {
    T::deserialize(MapAccessDeserializer::new(Entries::of(tree.get_ref())))
}

fn signed(number: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

fn unsigned(number: &DeInteger<'_>) -> Option<u64> {
    u64::from_str_radix(number.as_str(), number.radix()).ok()
}

fn float(number: &DeFloat<'_>) -> Result<f64> {
    let text = number.as_str();
    let parsed = text.parse::<f64>().ok().filter(|parsed| parsed.is_finite() || text.contains(['f', 'a']));
    parsed.ok_or_else(|| ReadError::custom(format_args!("{text} is larger than any number")))
}

fn unexpected<'a>(value: &'a DeValue<'_>) -> Unexpected<'a> {
    match value {
        DeValue::String(text) => Unexpected::Str(text),
        DeValue::Integer(number) => signed(number).map_or(Unexpected::Other("integer"), Unexpected::Signed),
        DeValue::Float(number) => float(number).map_or(Unexpected::Other("number"), Unexpected::Float),
        DeValue::Boolean(truth) => Unexpected::Bool(*truth),
        DeValue::Datetime(_) => Unexpected::Other("date or time"),
        DeValue::Array(_) => Unexpected::Seq,
        DeValue::Table(_) => Unexpected::Map,
    }
}

/// Deserialises a value.
#[derive(Clone, Copy)]
struct NodeReader<'t, 's>(&'t Node<'s>);

impl<'de> NodeReader<'_, 'de> {
    /// Reads the value; an error that has no place yet is the value's.
    fn read<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value> {
        seed.deserialize(self).map_err(|error| error.within(self.0.span()))
    }
}

impl<'de> Deserializer<'de> for NodeReader<'_, 'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.0.get_ref() {
            DeValue::String(DeString::Borrowed(text)) => visitor.visit_borrowed_str(text),
            DeValue::String(DeString::Owned(text)) => visitor.visit_str(text),
            DeValue::Integer(number) => match (signed(number), unsigned(number)) {
                (Some(number), _) => visitor.visit_i64(number),
                (None, Some(number)) => visitor.visit_u64(number),
                (None, None) => Err(ReadError::custom(format_args!("{number} does not fit into 64 bits"))),
            },
            DeValue::Float(number) => visitor.visit_f64(float(number)?),
            DeValue::Boolean(truth) => visitor.visit_bool(*truth),
            DeValue::Array(array) => visitor.visit_seq(Items(array.iter())),
            DeValue::Table(table) => visitor.visit_map(Entries::of(table)),
            date @ DeValue::Datetime(_) => Err(ReadError::invalid_type(unexpected(date), &visitor)),
        }
    }

    // What is absent is no value; what is there is some.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    // A struct is a table alone: a list would be read as its fields in their order.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        match self.0.get_ref() {
            DeValue::Table(table) => visitor.visit_map(Entries::of(table)),
            other => Err(ReadError::invalid_type(unexpected(other), &visitor)),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        match self.0.get_ref() {
            DeValue::String(word) => visitor.visit_enum(StrDeserializer::new(word)),
            DeValue::Table(table) if table.len() == 1 => visitor.visit_enum(Entries::of(table)),
            DeValue::Table(_) => Err(ReadError::custom("expected a table with exactly one key")),
            _ => Err(ReadError::custom("expected a string or a table")),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

/// The items of a list.
struct Items<'t, 's>(std::slice::Iter<'t, Node<'s>>);

impl<'de> SeqAccess<'de> for Items<'_, 'de> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        let Some(node) = self.0.next() else { return Ok(None) };
        NodeReader(node).read(seed).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

type Key<'s> = Spanned<DeString<'s>>;

/// The entries of a table; of one with a single entry, the variant of an enum.
struct Entries<'t, 's> {
    rest: toml::map::Iter<'t, Key<'s>, Node<'s>>,
    value: Option<&'t Node<'s>>,
}

impl<'t, 's> Entries<'t, 's> {
    fn of(table: &'t DeTable<'s>) -> Self {
        Self { rest: table.iter(), value: None }
    }

    fn next_key(&mut self) -> Option<&'t Key<'s>> {
        let (key, value) = self.rest.next()?;
        self.value = Some(value);
        Some(key)
    }

    fn next_value(&mut self) -> NodeReader<'t, 's> {
        NodeReader(self.value.take().expect("a value follows its key"))
    }
}

fn read_key<'de, K: DeserializeSeed<'de>>(key: &Key<'_>, seed: K) -> Result<K::Value> {
    let read: Result<K::Value> = seed.deserialize(StrDeserializer::new(key.get_ref()));
    read.map_err(|error| error.within(key.span()))
}

impl<'de> MapAccess<'de> for Entries<'_, 'de> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        let Some(key) = self.next_key() else { return Ok(None) };
        read_key(key, seed).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        self.next_value().read(seed)
    }
}

impl<'t, 'de> EnumAccess<'de> for Entries<'t, 'de> {
    type Error = ReadError;
    type Variant = NodeReader<'t, 'de>;

    fn variant_seed<V: DeserializeSeed<'de>>(mut self, seed: V) -> Result<(V::Value, Self::Variant)> {
        let key = self.next_key().expect("a table with one key");
        Ok((read_key(key, seed)?, self.next_value()))
    }
}

impl<'de> VariantAccess<'de> for NodeReader<'_, 'de> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<()> {
        let error = match self.0.get_ref() {
            DeValue::Table(table) if table.is_empty() => return Ok(()),
            DeValue::Table(_) => "expected empty table".to_owned(),
            other => format!("expected table, found {}", other.type_str()),
        };
        Err(ReadError::custom(error).within(self.0.span()))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value> {
        self.read(seed)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        self.deserialize_seq(visitor).map_err(|error| error.within(self.0.span()))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_struct("", fields, visitor).map_err(|error| error.within(self.0.span()))
    }
}
