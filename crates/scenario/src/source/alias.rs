//! Aliases: names that a scenario file gives to settings, for `--set` and axes of sweeps.

use std::collections::BTreeMap;

use anabranch_units::{did_you_mean, quoted};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::de::{DeTable, DeValue};

use super::{Node, PathFault, ScenarioError, Tree, moved};

/// The settings that a name stands for.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(
    untagged,
    expecting = "expected a path, a list of paths, or a table of words, each with its settings"
)]
pub enum Alias {
    /// A path: the value of the alias is set there.
    Path(String),
    /// Several paths: the value of the alias is set at each.
    Paths(Vec<String>),
    /// Words, each of which stands for settings: values by path.
    Words(BTreeMap<String, BTreeMap<String, serde_json::Value>>),
}

fn aliases<'t, 's>(tree: &'t Tree<'s>) -> Option<&'t DeTable<'s>> {
    tree.get_ref().get("alias")?.get_ref().as_table()
}

/// The paths of all settings that aliases stand for.
pub(super) fn paths(tree: &Tree<'_>) -> Vec<String> {
    let of = |alias: &Node<'_>| -> Vec<String> {
        match alias.get_ref() {
            DeValue::String(path) => vec![path.to_string()],
            DeValue::Array(paths) => {
                paths.iter().filter_map(|path| Some(path.get_ref().as_str()?.to_owned())).collect()
            }
            DeValue::Table(words) => {
                let settings = words.values().filter_map(|settings| settings.get_ref().as_table());
                settings.flat_map(|settings| settings.keys().map(|path| path.get_ref().to_string())).collect()
            }
            _ => Vec::new(),
        }
    };
    aliases(tree).into_iter().flat_map(|aliases| aliases.values()).flat_map(of).collect()
}

/// Precedence of a path among several parameters: 0 for a word of an alias, 1 for an alias of
/// paths, 2 for a pattern, 3 for a single value. Paths with a lower rank are applied first.
pub(super) fn rank(tree: &Tree<'_>, path: &str) -> u8 {
    match aliases(tree).and_then(|aliases| aliases.get(path)).map(|alias| alias.get_ref()) {
        Some(DeValue::Table(_)) => 0,
        Some(_) => 1,
        None if path.contains('*') => 2,
        None => 3,
    }
}

/// Adds the alias that was probably meant to an error about an unknown key.
pub(crate) fn hinted(mut error: ScenarioError, tree: &Tree<'_>) -> ScenarioError {
    let key = error.message.strip_prefix("unknown key `").and_then(|rest| rest.split('`').next());
    // Aliases are used at the top level, where sections are, and not inside a section.
    let key = key.filter(|key| tree.get_ref().contains_key(*key));
    let names = aliases(tree).into_iter().flat_map(|aliases| aliases.keys()).map(|name| &**name.get_ref());
    error.hint = key.and_then(|key| did_you_mean(key, names)).or(error.hint);
    error
}

/// The settings that `name = value` stands for, by path; `None` if the file has no such alias. A
/// path after the name of an alias, behind a dot, is appended to the paths of the alias.
pub(super) fn expand<'s>(
    tree: &Tree<'s>,
    name: &str,
    value: &Node<'s>,
) -> Result<Option<Vec<(String, Node<'s>)>>, PathFault> {
    let find = |name| aliases(tree).and_then(|aliases| aliases.get(name));
    let (alias, inside) = match (find(name), name.split_once('.')) {
        (Some(alias), _) => (alias, None),
        (None, Some((name, inside))) => match find(name) {
            Some(alias) => (alias, Some(inside)),
            None => return Ok(None),
        },
        (None, None) => return Ok(None),
    };
    let at = |path: &str| {
        (inside.map_or_else(|| path.to_owned(), |inside| format!("{path}.{inside}")), value.clone())
    };
    let words = match alias.get_ref() {
        DeValue::String(path) => return Ok(Some(vec![at(path)])),
        DeValue::Array(paths) => {
            let paths = paths.iter().filter_map(|path| path.get_ref().as_str());
            return Ok(Some(paths.map(at).collect()));
        }
        DeValue::Table(words) if inside.is_none() => words,
        DeValue::Table(words) => {
            let known = quoted(words.keys().map(|word| &**word.get_ref()));
            return Err((format!("an alias of words has nothing inside, and is one of {known}"), None));
        }
        // Reading the file refuses any other value.
        _ => return Ok(Some(Vec::new())),
    };
    let word = match value.get_ref() {
        DeValue::String(word) => word.to_string(),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Boolean(truth) => truth.to_string(),
        DeValue::Array(_) => return Err(("expected a word, found an array".to_owned(), None)),
        other => return Err((format!("expected a word, found a {}", other.type_str()), None)),
    };
    let Some(settings) = words.get(word.as_str()).and_then(|settings| settings.get_ref().as_table()) else {
        let known = || words.keys().map(|word| &**word.get_ref());
        let hint = did_you_mean(&word, known());
        return Err((format!("`{name}` has no value `{word}`, expected one of {}", quoted(known())), hint));
    };
    let setting = |(path, setting): (&toml::Spanned<_>, &Node<'s>)| {
        let path: &toml::de::DeString<'_> = path.get_ref();
        (path.to_string(), moved(setting.clone(), value.span()))
    };
    Ok(Some(settings.iter().map(setting).collect()))
}
