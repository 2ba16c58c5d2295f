//! Quantities in a JSON Schema.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::{Length, Limit, Probability, QueueSize, Rate, Size, Span, Speed};

/// Implements a schema for a quantity that is written as a string.
macro_rules! quantity {
    ($type:ident, $pattern:literal, $doc:literal) => {
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": $pattern, "description": $doc })
            }
        }
    };
}

quantity!(
    Rate,
    r"^[0-9]+(\.[0-9]+)? ?(bit|kbit|Mbit|Gbit)/s$",
    "A rate in bit/s, kbit/s, Mbit/s or Gbit/s (factors of 1000), such as \"250 kbit/s\"."
);
quantity!(
    Span,
    r"^[0-9]+(\.[0-9]+)? ?(ns|us|µs|ms|s|min|h)$",
    "A span of time in ns, us, ms, s, min or h, such as \"25 ms\"."
);
quantity!(
    Size,
    r"^[0-9]+(\.[0-9]+)? ?([kMG]?B|[KMG]iB)$",
    "A number of bytes in B, kB, MB, GB (factors of 1000) or KiB, MiB, GiB (of 1024), such as \"129 kB\"."
);
quantity!(
    QueueSize,
    r"^(unlimited|[0-9]+(\.0+)? ?packets?|[0-9]+(\.[0-9]+)? ?([kMG]?B|[KMG]iB))$",
    "Limit of a queue: packets, or bytes, such as \"100 packets\" or \"64 kB\", or \"unlimited\"."
);
quantity!(
    Speed,
    r"^[0-9]+(\.[0-9]+)? ?(mm/h|mm/s|cm/s|m/s|km/h)$",
    "A speed in m/s, cm/s, mm/s, km/h or mm/h, such as \"5 m/s\"."
);

impl JsonSchema for Limit {
    fn schema_name() -> Cow<'static, str> {
        "Limit".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "integer", "minimum": 0 }, { "enum": ["none", "off"] }] })
    }
}

impl JsonSchema for Probability {
    fn schema_name() -> Cow<'static, str> {
        "Probability".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "number", "minimum": 0, "maximum": 1 },
                { "type": "string", "pattern": r"^[0-9]+(\.[0-9]+)? ?%$" },
            ]
        })
    }
}

impl JsonSchema for Length {
    fn schema_name() -> Cow<'static, str> {
        "Length".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A length in mm, cm, m or km, such as \"50 m\", or a number of metres.",
            "anyOf": [
                { "type": "number" },
                { "type": "string", "pattern": r"^[0-9]+(\.[0-9]+)? ?(mm|cm|m|km)$" },
            ]
        })
    }
}
