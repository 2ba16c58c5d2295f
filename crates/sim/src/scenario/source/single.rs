//! Paths of `--set` to single links of a table `[[link]]` that makes several: `link.hop3.loss` of the table "hop{i}".

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Node, PathFault, Tree, apply_to, apply_to_table, matches};

/// Sets the value where the path is one to links that a table makes. The table keeps it under `only`.
///
/// A pattern that means the whole table means all of its links, also those of which `only` says something else.
pub(super) fn apply<'s>(tree: &mut Tree<'s>, steps: &[&str], value: &Node<'s>) -> Result<bool, PathFault> {
    let ["link", step, rest @ ..] = steps else { return Ok(false) };
    let Some(DeValue::Array(tables)) = tree.get_mut().get_mut("link").map(|links| links.get_mut()) else {
        return Ok(false);
    };
    let name_of = |table: &Node<'_>| Some(table.get_ref().get("name")?.get_ref().as_str()?.to_owned());
    if tables.iter().any(|table| name_of(table).as_deref() == Some(*step)) {
        return Ok(false);
    }
    let mut is_single = false;
    for table in tables.iter_mut() {
        let (Some(name), DeValue::Table(table)) =
            (name_of(table).filter(|_| !rest.is_empty()), table.get_mut())
        else {
            continue;
        };
        if matches(step, &name) {
            for settings in singles(table).filter(|_| step.contains('*')) {
                if is_there(settings, rest) {
                    apply_to(settings, rest, value)?;
                }
            }
        } else if name.contains("{i}") && meet(step.as_bytes(), pattern_of(&name).as_bytes()) {
            let settings = entry(entry(table, "only", value)?, step, value)?;
            apply_to_table(settings, rest, value)?;
            is_single = true;
        }
    }
    Ok(is_single)
}

/// The table of that name in another, which gets it if there is none.
fn entry<'t, 's>(
    table: &'t mut DeTable<'s>,
    key: &str,
    value: &Node<'s>,
) -> Result<&'t mut DeTable<'s>, PathFault> {
    if !table.contains_key(key) {
        let new = Spanned::new(value.span(), DeValue::Table(DeTable::new()));
        table.insert(Spanned::new(value.span(), key.to_owned().into()), new);
    }
    match table.get_mut(key).map(Spanned::get_mut) {
        Some(DeValue::Table(table)) => Ok(table),
        _ => Err((format!("`{key}` is no table"), None)),
    }
}

fn singles<'t, 's>(table: &'t mut DeTable<'s>) -> impl Iterator<Item = &'t mut Node<'s>> + use<'t, 's> {
    let only = table.get_mut("only").map(|only| only.get_mut());
    let only = only.and_then(|only| if let DeValue::Table(only) = only { Some(only) } else { None });
    only.into_iter().flat_map(|only| only.iter_mut().map(|(_, settings)| settings))
}

fn is_there(node: &Node<'_>, steps: &[&str]) -> bool {
    let mut steps = steps.iter();
    steps.try_fold(node, |node, step| node.get_ref().as_table()?.get(*step)).is_some()
}

/// The names that a template stands for, as a pattern.
fn pattern_of(template: &str) -> String {
    template.replace("{i}", "*").replace("{j}", "*")
}

/// Some name matches both patterns.
fn meet(a: &[u8], b: &[u8]) -> bool {
    match (a, b) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => meet(rest, b) || (!b.is_empty() && meet(a, &b[1..])),
        (_, [b'*', ..]) => meet(b, a),
        ([x, a @ ..], [y, b @ ..]) => x == y && meet(a, b),
        _ => false,
    }
}
