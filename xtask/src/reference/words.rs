//! Describes the type of a key, from its schema.

use serde_json::Value;

/// One of the values that a key may have, and what it means.
pub(super) struct Choice {
    /// In the syntax of a file.
    pub(super) value: String,
    pub(super) about: String,
}

/// The type of a key.
#[derive(Default)]
pub(super) struct Taken {
    /// The kinds of value, to be joined by "or".
    pub(super) kinds: Vec<String>,
    /// Values with their own description.
    pub(super) choices: Vec<Choice>,
    /// Definitions of the tables among the kinds.
    pub(super) tables: Vec<String>,
}

/// Definitions that are quantities, with a link to the section of the page that explains their
/// units.
const UNITS: [(&str, &str); 9] = [
    ("Span", "a [time](#values)"),
    ("Rate", "a [rate](#values)"),
    ("Size", "a [size](#values)"),
    ("QueueSize", "a [queue size](#values)"),
    ("Length", "a [length](#values)"),
    ("Speed", "a [speed](#values)"),
    ("Probability", "a [probability](#values)"),
    ("Limit", "an integer, `\"none\"` or `\"off\"`"),
    ("SizeLimit", "a [size](#values), or `\"none\"`"),
];

/// Returns the type of a key with this schema. `root` has the definitions.
pub(super) fn taken(root: &Value, schema: &Value) -> Taken {
    let mut taken = Taken::default();
    collect(root, schema, &mut taken);
    taken.kinds.dedup();
    taken
}

fn collect(root: &Value, schema: &Value, taken: &mut Taken) {
    if let Some(name) = reference(schema) {
        let definition = &root["$defs"][name];
        if let Some((_, words)) = UNITS.iter().find(|(unit, _)| *unit == name) {
            taken.kinds.push((*words).to_owned());
        } else if definition.get("properties").is_some() {
            taken.kinds.push("a table".to_owned());
            taken.tables.push(name.to_owned());
        } else {
            collect(root, definition, taken);
        }
        return;
    }
    for several in ["anyOf", "oneOf"] {
        for one in schema[several].as_array().into_iter().flatten() {
            collect(root, one, taken);
        }
    }
    if let Some(value) = schema.get("const") {
        let value = value.to_string();
        taken.kinds.push(format!("`{value}`"));
        taken.choices.push(Choice { value, about: about(schema) });
        return;
    }
    for name in names(&schema["type"]) {
        match name {
            "null" => {}
            "object" => taken.choices.extend(inline(schema)),
            "array" => taken.kinds.push(array(schema)),
            "integer" => taken.kinds.push("an integer".to_owned()),
            "number" => taken.kinds.push("a number".to_owned()),
            "boolean" => taken.kinds.push("`true` or `false`".to_owned()),
            "string" if schema.get("maxLength").is_some() => {
                taken.kinds.push("the name of a custom policy".to_owned())
            }
            "string" => taken.kinds.push("a string".to_owned()),
            other => taken.kinds.push(other.to_owned()),
        }
    }
}

/// Returns a choice that is an inline table: `{ first = ... }`, or one within another.
fn inline(schema: &Value) -> Option<Choice> {
    let value = braces(schema)?;
    let parts = schema["properties"].as_object()?.values().flat_map(|inner| inner["properties"].as_object());
    let parts: Vec<String> =
        parts.flatten().map(|(name, inner)| format!("`{name}`: {}", about(inner))).collect();
    let about = [vec![about(schema)], parts].concat().join(" ");
    Some(Choice { value, about })
}

fn braces(schema: &Value) -> Option<String> {
    let parts: Vec<String> = schema["properties"]
        .as_object()?
        .iter()
        .map(|(name, inner)| format!("{name} = {}", braces(inner).unwrap_or_else(|| "...".to_owned())))
        .collect();
    Some(format!("{{ {} }}", parts.join(", ")))
}

fn array(schema: &Value) -> String {
    let of = match schema["items"]["type"].as_str() {
        Some("string") => "strings",
        Some("number" | "integer") => "numbers",
        _ => "values",
    };
    match (schema["minItems"].as_u64(), schema["maxItems"].as_u64()) {
        (Some(least), Some(most)) if least == most => format!("an array of {least} {of}"),
        _ => format!("an array of {of}"),
    }
}

/// Returns the name of the definition to which a schema refers.
pub(super) fn reference(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/$defs/")
}

fn names(kind: &Value) -> Vec<&str> {
    match kind {
        Value::String(name) => vec![name],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Returns the doc comment in one line.
pub(super) fn about(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A paragraph in lines of at most 100 columns, like the pages that are written by hand. Lines
/// after the first begin with `indent`. A line is longer if a code span is, or if the next word
/// would begin a block.
pub(super) fn wrapped(text: &str, indent: &str) -> String {
    let mut lines = String::new();
    let mut column = 0;
    for word in unbroken(text) {
        let width = word.chars().count();
        // No break within the indent: the marker of an item keeps its first word.
        if column > indent.len() && column + 1 + width > COLUMNS && !begins_block(&word) {
            lines.push('\n');
            lines.push_str(indent);
            column = indent.len();
        } else if column > 0 {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(&word);
        column += width;
    }
    lines
}

/// Columns of a line of a page.
const COLUMNS: usize = 100;

/// The words of a text, with a code span as one word.
fn unbroken(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match words.last_mut() {
            Some(last) if last.matches('`').count() % 2 == 1 => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// At the beginning of a line, such a word would begin a list, a heading, a quotation or a table.
fn begins_block(word: &str) -> bool {
    // `1.` and `1)`, but not the `6551).` that ends a sentence.
    let number = word.strip_suffix(['.', ')']);
    matches!(word, "-" | "+" | "*")
        || word.starts_with(['#', '>', '|'])
        || number.is_some_and(|number| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn units_choices_and_tables_have_words() {
        let root = json!({ "$defs": {
            "Span": { "type": "string", "pattern": "x" },
            "Name": { "oneOf": [{ "const": "on", "description": "It\ndoes." }, { "const": "off" }] },
            "Part": { "type": "object", "properties": {} },
        }});
        let span = taken(&root, &json!({ "anyOf": [{ "$ref": "#/$defs/Span" }, { "type": "null" }] }));
        assert_eq!(span.kinds, ["a [time](#values)"]);
        let name = taken(&root, &json!({ "$ref": "#/$defs/Name" }));
        assert_eq!(name.kinds, ["`\"on\"`", "`\"off\"`"]);
        assert_eq!(name.choices[0].about, "It does.");
        assert_eq!(taken(&root, &json!({ "$ref": "#/$defs/Part" })).tables, ["Part"]);
        let pair =
            json!({ "type": ["array", "null"], "items": { "type": "number" }, "minItems": 2, "maxItems": 2 });
        assert_eq!(taken(&root, &pair).kinds, ["an array of 2 numbers"]);
    }

    #[test]
    fn a_table_in_a_line_is_a_choice() {
        let schema = json!({ "type": "object", "description": "Most.", "properties": { "any": { "type": "number" } } });
        let taken = taken(&json!({}), &schema);
        assert_eq!(
            (taken.choices[0].value.as_str(), taken.choices[0].about.as_str()),
            ("{ any = ... }", "Most.")
        );
    }

    #[test]
    fn paragraphs_are_wrapped_between_words_and_not_in_code() {
        let (word, other) = ("x".repeat(60), "y".repeat(39));
        assert_eq!(wrapped(&format!("* {word} `a b c` {word}"), "  "), format!("* {word} `a b c`\n  {word}"));
        assert_eq!(wrapped(&format!("{word} `a {word}`"), ""), format!("{word}\n`a {word}`"));
        let code = format!("`{word} {word}`");
        assert_eq!(wrapped(&format!("* {code} b"), "  "), format!("* {code}\n  b"));
        // A line does not begin with what would make it an item.
        assert_eq!(wrapped(&format!("{word} {other} - b"), ""), format!("{word} {other} -\nb"));
    }
}
