//! Deserialises a [`Node`] with serde.
//!
//! The deserialiser of the `toml` crate also supports types that want their position, and dates. It
//! therefore compiles each struct three times and each enum twice. A scenario has hundreds of
//! types, and their code generation would dominate build time.

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

/// A deserialisation error with its position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadError {
    /// Serde's message.
    pub message: String,
    /// Byte range of the wrong text; `None` for the text as a whole.
    pub span: Option<Range<usize>>,
}

impl ReadError {
    /// Sets the position unless an inner value has set it.
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

/// Deserialises a value.
///
/// # Errors
/// The first mismatch, at the innermost wrong value.
pub fn read<'s, T: Deserialize<'s>>(node: &Node<'s>) -> Result<T> {
    NodeReader(node).read(PhantomData)
}

/// Deserialises a whole text.
///
/// # Errors
/// The first mismatch, at the innermost wrong value; a missing key has no position.
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

/// Deserialises one value.
#[derive(Clone, Copy)]
struct NodeReader<'t, 's>(&'t Node<'s>);

impl<'de> NodeReader<'_, 'de> {
    /// Reads the value and sets its position on errors that have none yet.
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

    // A missing value is `None`; a present one is `Some`.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    // A struct must be a table: a list would be read as its fields in order.
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

/// The entries of a table. For an enum, the table has one entry, the variant.
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
