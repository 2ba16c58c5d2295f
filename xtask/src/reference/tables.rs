//! Lays out the page: a table of keys for each table of a scenario file.

use super::fragments;
use super::words::{self, Choice, Taken};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Resolved scenarios that set few keys, from which the defaults are read.
pub(super) struct Silent {
    /// A radio with the unit disk, with paths and profiles.
    pub(super) disk: Value,
    /// The same with `forwarding = "fragments"`.
    pub(super) fragments: Value,
    /// A radio with path loss, with each PHY.
    pub(super) oqpsk: Value,
    pub(super) fsk: Value,
    /// IEEE 802.11 and AODV with the defaults of the standards, and with those of ns-2.
    pub(super) wifi: Value,
    pub(super) ns2: Value,
    /// Pools of send buffers.
    pub(super) hosts: Value,
}

/// Defaults that records leave out, or that select other defaults: an assignment and its key. The
/// generator checks that the assignment does not change the record, so that a wrong default is
/// found.
pub(super) const IMPLIED: [(&str, (&str, &str)); 7] = [
    ("node.root.host=simulated", ("node", "host")),
    ("tcp.default.base=modern", ("tcp", "base")),
    ("radio.forwarding=reassembly", ("radio", "forwarding")),
    ("radio.access_retries=0", ("radio", "access_retries")),
    ("tcp.default.ack_on_push=false", ("tcp", "ack_on_push")),
    ("tcp.default.push=buffer", ("tcp", "push")),
    ("tcp.default.rfc_limits=true", ("tcp", "rfc_limits")),
];

/// Order of the tables on the page. Other tables of the schema follow.
const ORDER: [&str; 22] = [
    "network",
    "node",
    "nodes",
    "deployment",
    "group",
    "link",
    "topology",
    "radio",
    "paths",
    "wifi",
    "aodv",
    "tcp",
    "dtc",
    "rdca",
    "coap",
    "buffers",
    "transfer",
    "traffic",
    "probe",
    "event",
    "random-event",
    "route",
];

const HEAD: &str = "\
# Scenario reference

<!-- Written by `cargo xtask gen` from the code's own schema and defaults. Change it there. -->

A scenario is one TOML file. It describes a network, and the transfers, traffic and events in it.
`anabranch run FILE` simulates it; `anabranch emulate FILE` runs it in real time. An unknown key is
refused with its line and a suggestion. `anabranch run --schema` prints the same keys as a
[JSON Schema](scenario.schema.json) for editors. [Concepts](../explanation/concepts.md) explains the
terms; [Radio in a scenario](scenario-radio.md) describes radio networks.

## Values

| value | units | examples |
| --- | --- | --- |
| time | `ns`, `us`, `ms`, `s`, `min`, `h` | `\"25 ms\"`, `\"1.5 s\"` |
| rate | `bit/s`, `kbit/s`, `Mbit/s`, `Gbit/s`, by factors of 1000 | `\"250 kbit/s\"` |
| size | `B`, `kB`, `MB`, `GB`, by factors of 1000; `KiB`, `MiB`, `GiB`, by factors of 1024 | `\"129 kB\"`, `\"64 KiB\"` |
| queue size | a size, a number of packets, or `unlimited` | `\"100 packets\"` |
| length | `mm`, `cm`, `m`, `km`; a bare number is metres | `\"50 m\"`, `50` |
| speed | `m/s`, `cm/s`, `mm/s`, `mm/h`, `km/h` | `\"5 m/s\"`, `\"30 km/h\"` |
| probability | 0 to 1, or `%` | `0.02`, `\"2 %\"` |

## Overriding values

`--set PATH=VALUE` overrides a value of the file:

| example of `--set` | meaning |
| --- | --- |
| `link.radio1.rate=\"56 kbit/s\"` | a member of a list is identified by its `name` or its index |
| `\"link.*.loss=2 %\"`, `link.radio*.loss=0.1`, `tcp.*.congestion=cubic` | `*` stands for any text in the names of members, and in the names of profiles of `tcp`, `dtc`, `rdca`, `coap` and `buffers`. A pattern that matches nothing is refused |
| `link.hop3.loss=0.1`, `\"link.radio2-*.rate=56 kbit/s\"` | links that one table makes are also identified by their own names |
| `radio=off` | removes one of the sections `radio`, `paths`, `wifi` and `aodv` |
| `loss=0.1` | a name in the table `[alias]` stands for paths: [Aliases](scenario-mesh.md#aliases) |
";

/// The page.
pub(super) fn page(schema: &Value, silent: &Silent) -> Result<String, String> {
    let properties = schema["properties"].as_object().ok_or("the schema has no properties")?;
    let mut page = Page { schema, silent, text: HEAD.to_owned(), told: BTreeSet::new() };
    page.section("## Top-level keys", "", schema, "file")?;
    let rest = properties.keys().map(String::as_str).filter(|name| !ORDER.contains(name));
    for name in ORDER.into_iter().chain(rest) {
        let property = properties.get(name).ok_or(format!("there is no table `{name}` any more"))?;
        page.table(name, property)?;
    }
    page.closed()
}

struct Page<'a> {
    schema: &'a Value,
    silent: &'a Silent,
    text: String,
    /// Fragments that were written; see [`Page::closed`].
    told: BTreeSet<&'static str>,
}

impl Page<'_> {
    /// Writes the section of a top-level property: `[name]`, `[[name]]` or `[name.NAME]`.
    fn table(&mut self, name: &str, property: &Value) -> Result<(), String> {
        let (heading, inner) = if let Some(items) = property.get("items") {
            (format!("[[{name}]]"), items)
        } else if let Some(values) = property.get("additionalProperties") {
            (format!("[{name}.NAME]"), values)
        } else {
            (format!("[{name}]"), property)
        };
        if name == "sweep" {
            return self.section("## `[sweep]`", &words::about(property), &Value::Null, name);
        }
        let taken = words::taken(self.schema, inner);
        if taken.tables.is_empty() && !taken.choices.is_empty() {
            // The value is one of several inline tables.
            let definition = words::reference(inner).map_or(inner, |name| &self.schema["$defs"][name]);
            let about = words::wrapped(&words::about(definition), "");
            self.text += &format!("\n## `{heading}`\n\n{about}\n\nOne of:\n\n");
            taken.choices.iter().for_each(|choice| self.text += &item(choice));
            self.fragment(name);
        }
        for definition in taken.tables {
            let about = self.schema["$defs"][&definition].clone();
            self.section(&format!("## `{heading}`"), &words::about(&about), &about, name)?;
        }
        Ok(())
    }

    /// Writes a table with its keys and those of its inner tables. `path` is dotted, without the
    /// names of entries.
    fn section(&mut self, heading: &str, about: &str, definition: &Value, path: &str) -> Result<(), String> {
        write!(self.text, "\n{heading}\n").map_err(|error| error.to_string())?;
        if !about.is_empty() {
            self.text += &format!("\n{}\n", words::wrapped(about, ""));
        }
        let mut choices = Vec::new();
        let mut inner = Vec::new();
        if let Some(properties) = definition["properties"].as_object() {
            self.text += "\n| key | type | default | meaning |\n| --- | --- | --- | --- |\n";
            let required = required(definition);
            for (key, property) in required_first(properties, &required) {
                let taken = words::taken(self.schema, property);
                if path == "file" && is_of_the_file(property, &taken) {
                    continue;
                }
                let default = self.default(path, key, property, required.contains(key.as_str()));
                let row = [format!("`{key}`"), kinds(&taken), default, words::about(property)]
                    .map(|cell| cell.replace('|', "\\|"));
                self.text += &format!("| {} |\n", row.join(" | "));
                inner.extend(taken.tables.iter().map(|name| (key.clone(), name.clone())));
                if !taken.choices.is_empty() {
                    choices.push((key.clone(), taken.choices));
                }
            }
        }
        for (key, choices) in choices {
            self.text += &explained(&key, &choices);
        }
        self.fragment(path);
        for (key, name) in inner {
            let definition = self.schema["$defs"][&name].clone();
            let heading = format!("### `{path}.{key}`");
            self.section(&heading, &words::about(&definition), &definition, &format!("{path}.{key}"))?;
        }
        Ok(())
    }

    /// Writes the example of a table, if there is one.
    fn fragment(&mut self, path: &str) {
        if let Some((name, text)) = fragments::ALL.iter().find(|(name, _)| *name == path) {
            self.told.insert(name);
            self.text += &format!("\n```toml,fragment\n{}\n```\n", text.trim());
        }
    }

    /// Returns the cell with the default of a key.
    fn default(&self, path: &str, key: &str, property: &Value, required: bool) -> String {
        if required {
            return "required".to_owned();
        }
        match property.get("default") {
            Some(Value::Array(none)) if none.is_empty() => "none".to_owned(),
            Some(Value::String(text)) if text.is_empty() => "none".to_owned(),
            Some(Value::Object(_)) => "see its keys".to_owned(),
            Some(value) => format!("`{value}`"),
            None => self.found(path, key),
        }
    }

    /// Returns the cell of a default that the schema does not have, from the resolved scenarios.
    fn found(&self, path: &str, key: &str) -> String {
        if let Some((set, _)) = IMPLIED.iter().find(|(_, implied)| *implied == (path, key)) {
            return match set.split_once('=').map_or("", |(_, value)| value) {
                plain @ ("true" | "false" | "0") => format!("`{plain}`"),
                word => format!("`\"{word}\"`"),
            };
        }
        let of = |scenario: &Value, place: &str| scenario.pointer(&format!("{place}/{key}")).cloned();
        let (disk, oqpsk, fsk) = (&self.silent.disk, &self.silent.oqpsk, &self.silent.fsk);
        let values = match path {
            "tcp" => vec![
                ("modern", of(disk, "/tcp/default")),
                ("standard", of(disk, "/tcp/standard")),
                ("paper", of(disk, "/tcp/paper")),
            ],
            "dtc" => vec![("improved", of(disk, "/dtc/improved")), ("paper", of(disk, "/dtc/paper"))],
            "radio" if key.ends_with("range") || key == "log_distance" => Vec::new(),
            "radio" => vec![
                ("oqpsk-250k", of(disk, "/radio").or_else(|| of(&self.silent.fragments, "/radio"))),
                ("fsk-100k", of(fsk, "/radio")),
            ],
            "radio.log_distance" => vec![
                ("oqpsk-250k", of(oqpsk, "/radio/log_distance")),
                ("fsk-100k", of(fsk, "/radio/log_distance")),
            ],
            "paths" => vec![("", of(disk, "/paths"))],
            "wifi" if key.ends_with("range") => Vec::new(),
            "wifi" | "aodv" => vec![
                (if path == "wifi" { "standard" } else { "rfc" }, of(&self.silent.wifi, &format!("/{path}"))),
                ("ns2", of(&self.silent.ns2, &format!("/{path}"))),
            ],
            "buffers" if matches!(key, "pid" | "sampling") => return "see its keys".to_owned(),
            "buffers" | "buffers.sampling" | "buffers.pid" => {
                let place =
                    |pool| format!("/buffers/{pool}{}", path.trim_start_matches("buffers").replace('.', "/"));
                let of = |pool| of(&self.silent.hosts, &place(pool));
                match path {
                    "buffers.pid" => vec![("ours", of("ours")), ("paper", of("paper"))],
                    _ => vec![("", of("ours"))],
                }
            }
            "coap" => vec![("", of(&self.silent.hosts, "/coap/rfc"))],
            "rdca" => vec![
                ("ours", of(&self.silent.wifi, "/rdca/ours")),
                ("paper", of(&self.silent.wifi, "/rdca/paper")),
            ],
            _ => Vec::new(),
        };
        let mut found: Vec<(String, String)> = Vec::new();
        for (of, value) in values {
            let Some(value) = value.map(|value| value.to_string()) else { continue };
            match found.iter_mut().find(|(_, other)| *other == value) {
                Some((all, _)) => *all += &format!(", {of}"),
                None => found.push((of.to_owned(), value)),
            }
        }
        match &found[..] {
            [] if path == "dtc" => "set by `algorithm`".to_owned(),
            [] => "none".to_owned(),
            [(_, value)] => format!("`{value}`"),
            several => {
                let each = several.iter().map(|(of, value)| format!("`{value}` ({of})"));
                each.collect::<Vec<_>>().join(", ")
            }
        }
    }

    /// Returns the page.
    ///
    /// # Errors
    /// A fragment was not written, because its table does not exist.
    fn closed(self) -> Result<String, String> {
        match fragments::ALL.iter().find(|(name, _)| !self.told.contains(name)) {
            Some((name, _)) => Err(format!("there is an example for `{name}`, and no such table")),
            None => Ok(self.text),
        }
    }
}

/// Whether a property has its own section, and therefore no row among the top-level keys.
fn is_of_the_file(property: &Value, taken: &Taken) -> bool {
    let is_list = property["items"].get("$ref").is_some();
    let is_map = property.get("additionalProperties").is_some();
    is_list || is_map || !taken.tables.is_empty()
}

fn kinds(taken: &Taken) -> String {
    let mut kinds = taken.kinds.clone();
    kinds.extend(taken.choices.iter().filter(|c| c.value.starts_with('{')).map(|c| format!("`{}`", c.value)));
    match kinds.split_last() {
        None => "a table".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

fn explained(key: &str, choices: &[Choice]) -> String {
    // The description of a word that stands for a table of defaults says nothing to a reader.
    let choices: Vec<&Choice> = choices.iter().filter(|choice| choice.about != "The word for it.").collect();
    if choices.is_empty() {
        return String::new();
    }
    let mut text = format!("\nValues of `{key}`:\n\n");
    for choice in choices {
        text += &item(choice);
    }
    text
}

/// A value and its meaning as an item of a list.
fn item(choice: &Choice) -> String {
    words::wrapped(&format!("* `{}`: {}", choice.value, choice.about), "  ") + "\n"
}

fn required(definition: &Value) -> BTreeSet<&str> {
    definition["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn required_first<'a>(
    properties: &'a Map<String, Value>,
    required: &BTreeSet<&str>,
) -> Vec<(&'a String, &'a Value)> {
    let mut keys: Vec<_> = properties.iter().collect();
    keys.sort_by_key(|(key, _)| (!required.contains(key.as_str()), key.as_str() != "name"));
    keys
}
