//! Columns of parameters: each has the simplest type that fits all its values.

use anabranch_scenario::units::Quantity;
use arrow_array::ArrayRef;
use arrow_schema::{DataType, Field};
use serde_json::Value;

use super::{Values, unit_of};
use crate::points::Sweep;

/// A parameter and the type of its column.
#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) name: String,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Integer,
    /// Numbers in a unit, with the number of scenario base units in one unit of the column.
    Number(&'static str, f64),
    Boolean,
    Text,
}

impl Parameter {
    pub(super) fn new(sweep: &Sweep, name: &str) -> Self {
        let mut kinds = sweep.values(name).map(|value| kind(&sweep.shown(value)));
        let first = kinds.next().unwrap_or(Kind::Text);
        let kind = kinds.fold(first, |all, one| match (all, one) {
            (all, one) if all == one => all,
            (Kind::Integer, Kind::Number("1", _)) | (Kind::Number("1", _), Kind::Integer) => NUMBER,
            _ => Kind::Text,
        });
        Self { name: name.to_owned(), kind }
    }

    pub(super) fn unit(&self) -> &'static str {
        match self.kind {
            Kind::Number(unit, _) => unit,
            Kind::Integer | Kind::Boolean | Kind::Text => "1",
        }
    }

    pub(super) fn field(&self) -> Field {
        let kind = match self.kind {
            Kind::Integer => DataType::Int64,
            Kind::Number(..) => DataType::Float64,
            Kind::Boolean => DataType::Boolean,
            Kind::Text => DataType::Utf8,
        };
        Field::new(&self.name, kind, true).with_metadata(unit_of(self.unit()))
    }

    pub(super) fn builder(&self) -> Builder {
        let (values, base) = match self.kind {
            Kind::Integer => (Values::Integers(Vec::new()), 1.0),
            Kind::Number(_, base) => (Values::Numbers(Vec::new()), base),
            Kind::Boolean => (Values::Booleans(Vec::new()), 1.0),
            Kind::Text => (Values::Texts(Vec::new()), 1.0),
        };
        Builder { values, base }
    }
}

const NUMBER: Kind = Kind::Number("1", 1.0);

fn kind(value: &Value) -> Kind {
    match value {
        Value::Bool(_) => Kind::Boolean,
        Value::Number(number) if number.is_i64() => Kind::Integer,
        Value::Number(_) => NUMBER,
        Value::String(text) if percent(text).is_some() => NUMBER,
        Value::String(text) => match text.parse::<Quantity>() {
            Ok(Quantity { unit: "ns", .. }) => Kind::Number("s", 1e9),
            Ok(Quantity { unit: "mm", .. }) => Kind::Number("m", 1e3),
            Ok(Quantity { unit, .. }) => Kind::Number(unit, 1.0),
            Err(_) => Kind::Text,
        },
        Value::Null | Value::Array(_) | Value::Object(_) => Kind::Text,
    }
}

fn percent(text: &str) -> Option<f64> {
    text.strip_suffix('%')?.trim().parse().ok().map(|number: f64| number / 100.0)
}

/// The values of a column.
pub(super) struct Builder {
    values: Values,
    /// Number of scenario base units in one unit of the column.
    base: f64,
}

impl Builder {
    pub(super) fn push(&mut self, value: Option<&Value>) {
        match &mut self.values {
            Values::Integers(values) => values.push(value.and_then(Value::as_i64)),
            Values::Numbers(values) => values.push(value.and_then(|value| number(value, self.base))),
            Values::Booleans(values) => values.push(value.and_then(Value::as_bool)),
            Values::Texts(values) => values.push(value.map(|value| match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            })),
        }
    }

    pub(super) fn values(self) -> Values {
        self.values
    }

    pub(super) fn finish(self) -> ArrayRef {
        self.values.array()
    }
}

fn number(value: &Value, base: f64) -> Option<f64> {
    let Value::String(text) = value else { return value.as_f64() };
    percent(text).or_else(|| text.parse::<Quantity>().ok().map(|quantity| quantity.value as f64 / base))
}
