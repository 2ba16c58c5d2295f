//! Paths of `--set` to single links of a table `[[link]]` that makes several: `link.hop3.loss` for
//! the table "hop{i}".

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Node, PathFault, Tree, apply_to, apply_to_table, matches};

/// Sets the value if the path selects links that a table makes. The table keeps the value in
/// `only`.
///
/// A pattern that matches the whole table selects all of its links, also those with another value
/// in `only`.
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

/// The table with this name inside another, created if it does not exist.
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
        _ => Err((format!("`{key}` is not a table"), None)),
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

/// A pattern that matches the names of a template.
fn pattern_of(template: &str) -> String {
    template.replace("{i}", "*").replace("{j}", "*")
}

/// Whether some name matches both patterns.
fn meet(a: &[u8], b: &[u8]) -> bool {
    // `row[j]`: whether the rest of `a` and `b[j..]` have a common match.
    let mut row: Vec<bool> = (0..=b.len()).map(|j| b[j..].iter().all(|octet| *octet == b'*')).collect();
    for i in (0..a.len()).rev() {
        let below = row.clone();
        for j in (0..=b.len()).rev() {
            row[j] = match (a[i], b.get(j)) {
                (b'*', octet) => below[j] || (octet.is_some() && row[j + 1]),
                (_, Some(b'*')) => row[j + 1] || below[j],
                (octet, Some(other)) => octet == *other && below[j + 1],
                (_, None) => false,
            };
        }
    }
    row[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_meet_if_some_name_matches_both() {
        for (a, b, does) in [
            ("hop*", "hop1", true),
            ("hop*", "hop*", true),
            ("*-1", "radio*-*", true),
            ("*-1", "wired*", true),
            ("*x", "*y", false),
            ("a*b", "ab", true),
            ("a*b", "a", false),
            ("", "", true),
            ("", "*", true),
            ("**", "", true),
            ("ab", "a", false),
            ("*a*", "b*", true),
        ] {
            assert_eq!(meet(a.as_bytes(), b.as_bytes()), does, "{a} {b}");
            assert_eq!(meet(b.as_bytes(), a.as_bytes()), does, "{b} {a}");
        }
        // Backtracking would take exponential time here: each star of one pattern may match any
        // part of the other.
        let (many, others) = ("*a".repeat(2000), "a*".repeat(2000) + "b");
        assert!(!meet(many.as_bytes(), others.as_bytes()));
    }
}
