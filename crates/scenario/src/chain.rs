//! Expands tables `[[link]]` that describe several links: a chain of nodes, a chain for each of
//! several nodes, or a link for each of them.
//!
//! The expansion works on the tree of the file before its values are read. Each link is a copy of
//! its table with its own name and ends. Every value keeps the position at which it was written, so
//! errors point into the file.

use std::collections::BTreeSet;
use std::ops::Range;

use anabranch_units::{did_you_mean, quoted, text};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::deployment::{Count, MAX_NODES, NodesSection};
use super::source::{Source, matches};
use super::{Node, Place, ScenarioError, Tree};

/// Nodes between the ends of a chain, in order.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(untagged, expecting = "expected the name of a node or of `[[nodes]]`, or a list of these")]
pub enum Via {
    /// One node, or all nodes of a `[[nodes]]` table.
    One(String),
    /// Several names, in order.
    Several(Vec<String>),
}

type Spread<T> = Result<T, ScenarioError>;

/// A name, and its position in the file.
type Said<'t> = (&'t str, Range<usize>);

/// Replaces each table `[[link]]` by one table for each of its links.
pub(super) fn spread<'s>(source: &Source, mut tree: Tree<'s>) -> Spread<Tree<'s>> {
    let Some(nodes) = nodes(&tree) else { return Ok(tree) };
    let mut spreader = Spreader { source, nodes, made: 0, strangers: Vec::new() };
    if let Some(links) = tree.get_mut().get_mut("link")
        && let DeValue::Array(tables) = links.get_mut()
    {
        if !tables.iter().all(is_one_link) {
            let all = tables.iter().map(|table| spreader.links(table)).collect::<Spread<Vec<_>>>()?;
            *tables = all.into_iter().flatten().collect();
        }
        for Stranger { pattern, error } in spreader.strangers {
            let is_of = |table: &Node<'_>| {
                let name = table.get_ref().as_table().and_then(|table| said(table, "name"));
                name.is_some_and(|name| matches(&pattern, name.0))
            };
            if !tables.iter().any(is_of) {
                return Err(error);
            }
        }
    }
    Ok(tree)
}

/// Whether the table describes a single link and needs no expansion.
fn is_one_link(node: &Node<'_>) -> bool {
    let Some(table) = node.get_ref().as_table() else { return false };
    let is_said = |key| table.contains_key(key);
    let is_numbered = |key| said(table, key).as_ref().is_some_and(is_numbered);
    let is_several = is_numbered("name") || is_numbered("from") && is_numbered("to");
    !is_several && !["via", "only", "enabled"].into_iter().any(is_said)
}

/// The tables `[[nodes]]`; `None` if one is invalid, which is reported when the file is read.
fn nodes(tree: &Tree<'_>) -> Option<Vec<NodesSection>> {
    let Some(tables) = tree.get_ref().get("nodes") else { return Some(Vec::new()) };
    let read = |table: &Node<'_>| {
        let nodes: NodesSection = text::read(table).ok()?;
        (nodes.count.total() as usize <= MAX_NODES).then_some(nodes)
    };
    tables.get_ref().as_array()?.iter().map(read).collect()
}

/// Expands the tables of a file.
struct Spreader<'a> {
    source: &'a Source,
    nodes: Vec<NodesSection>,
    /// Number of links made so far.
    made: usize,
    /// Overrides of single links that match no link of their table. Another table may have the
    /// link.
    strangers: Vec<Stranger>,
}

/// An entry of `only` that matches no link, and the error to report for it.
struct Stranger {
    pattern: String,
    error: ScenarioError,
}

/// Largest number of links that the tables with `{i}` or `via` of one file make.
const MAX_LINKS: usize = 65_535;

/// One link: the number of its chain, its place in the chain from 1, and its ends.
struct Link {
    chain: Option<u64>,
    place: usize,
    ends: [(String, Range<usize>); 2],
}

impl Spreader<'_> {
    fn links<'s>(&mut self, node: &Node<'s>) -> Spread<Vec<Node<'s>>> {
        let as_it_is = || Ok(vec![node.clone()]);
        let Some(table) = node.get_ref().as_table() else { return as_it_is() };
        let is_wrong = |key: &str, right: fn(&DeValue<'_>) -> bool| {
            table.get(key).is_some_and(|value| !right(value.get_ref()))
        };
        // Invalid values are left as they are: reading the file reports them.
        if is_wrong("enabled", |value| value.as_bool().is_some())
            || is_wrong("only", |value| value.is_table())
        {
            return as_it_is();
        }
        let (Some(from), Some(to), Some(via)) = (said(table, "from"), said(table, "to"), via(table)) else {
            return as_it_is();
        };
        if table.get("enabled").is_some_and(|enabled| enabled.get_ref().as_bool() == Some(false)) {
            return Ok(Vec::new());
        }
        let name = said(table, "name");
        if let Some(name) = name.as_ref().filter(|name| is_numbered(name))
            && via.is_none()
            && !is_numbered(&from)
            && !is_numbered(&to)
            && let Some(pattern) = [&from, &to].into_iter().find(|end| end.0.contains('*'))
        {
            let message = format!("the links to all of `{}` have one name, without a number", pattern.0);
            let hint = "remove `{i}`, or name `[[nodes]]` with `{i}` at that end";
            return self.fault(name, message, Some(hint.to_owned()));
        }
        let links = match via {
            Some(via) => self.chains(&from, &via, &to)?,
            None if name.as_ref().is_some_and(is_numbered) || is_numbered(&from) && is_numbered(&to) => {
                self.chains(&from, &[], &to)?
            }
            // One link, or one for each node of a pattern or group; all have the same name.
            None => vec![Link { chain: None, place: 1, ends: [owned(&from), owned(&to)] }],
        };
        let names = match &name {
            Some(name) => self.names(name, &links)?.into_iter().map(Some).collect(),
            None => vec![None; links.len()],
        };
        self.only(table, &names)?;
        let own = |(link, name): (Link, &Option<String>)| {
            let mut own = table.clone();
            ["via", "only", "enabled"].into_iter().for_each(|key| drop(own.remove(key)));
            let [from, to] = link.ends;
            set(&mut own, "from", from);
            set(&mut own, "to", to);
            if let (Some(name), Some((_, span))) = (name, said(table, "name")) {
                set(&mut own, "name", (name.clone(), span));
                self.settle(&mut own, singles(table).filter(|(pattern, _)| matches(pattern, name)));
            }
            Spanned::new(node.span(), DeValue::Table(own))
        };
        Ok(links.into_iter().zip(&names).map(own).collect())
    }

    /// Applies the settings of single links to a link. In the file, an exact name takes precedence
    /// over a pattern. Overrides take precedence over the file, and later overrides over earlier
    /// ones.
    fn settle<'t, 's: 't>(
        &self,
        own: &mut DeTable<'s>,
        settings: impl Iterator<Item = (&'t str, &'t DeTable<'s>)>,
    ) {
        let outside = self.source.text().len();
        let mut values = Vec::new();
        for (pattern, settings) in settings {
            leaves(settings, &mut Vec::new(), &mut |path, value| {
                let start = value.span().start;
                let rank =
                    if start > outside { (2, start) } else { (u8::from(!pattern.contains('*')), start) };
                values.push((rank, path.to_vec(), value));
            });
        }
        values.sort_by_key(|(rank, ..)| *rank);
        values.into_iter().for_each(|(_, path, value)| put(own, &path, value));
    }

    /// One chain from `from` to `to`, or one for each number that `{i}` stands for.
    fn chains(&mut self, from: &Said<'_>, via: &[Said<'_>], to: &Said<'_>) -> Spread<Vec<Link>> {
        let numbered = [from, to].into_iter().find(|end| is_numbered(end));
        let chains: Vec<Option<u64>> = match numbered {
            Some(end) => self.nodes_of(end)?.numbers().into_iter().map(Some).collect(),
            None => vec![None],
        };
        let mut links = Vec::new();
        for chain in chains {
            let mut way = vec![self.end(from, chain)?];
            for name in via {
                // Checked within the loop, so that a huge count is refused before its links are
                // made.
                self.has_room(from, links.len() + way.len())?;
                way.extend(self.between(name, chain)?.into_iter().map(|node| (node, name.1.clone())));
            }
            let end = self.end(to, chain)?;
            // The end may be the last node of a row in `via`.
            if !is_last(to) || way.last().is_none_or(|(node, _)| *node != end.0) {
                way.push(end);
            }
            let ends = way.windows(2).map(|ends| [ends[0].clone(), ends[1].clone()]);
            links.extend((1..).zip(ends).map(|(place, ends)| Link { chain, place, ends }));
            self.has_room(from, links.len())?;
        }
        self.made += links.len();
        Ok(links)
    }

    /// Checks that `more` further links do not exceed the limit.
    fn has_room(&self, at: &Said<'_>, more: usize) -> Spread<()> {
        if self.made + more <= MAX_LINKS {
            return Ok(());
        }
        let hint = "remove nodes, or name fewer in `via`".to_owned();
        self.fault(at, format!("the file makes more than {MAX_LINKS} links"), Some(hint))
    }

    /// The node at an end of a chain.
    fn end(&self, end: &Said<'_>, chain: Option<u64>) -> Spread<(String, Range<usize>)> {
        let Some(chain) = chain.filter(|_| is_numbered(end)) else { return Ok(owned(end)) };
        let nodes = self.nodes_of(end)?;
        let Some(names) = nodes.names_in(chain) else { return self.no_number(end, chain) };
        if is_last(end) != matches!(nodes.count, Count::Rows(_)) {
            let message = format!("`{}` means rows of nodes, and a chain has one node at each end", end.0);
            let hint = "name the rows in `via`; `{n}` in place of `{j}` is the last node of a row";
            return self.fault(end, message, Some(hint.to_owned()));
        }
        match names.into_iter().next_back() {
            Some(name) => Ok((name, end.1.clone())),
            None => self.fault(end, format!("row {chain} of `{}` has no node", nodes.name), None),
        }
    }

    /// The nodes that a name in `via` stands for.
    fn between(&self, name: &Said<'_>, chain: Option<u64>) -> Spread<Vec<String>> {
        if name.0.contains('*') {
            let message = format!("`{}` is a pattern, and a chain has its nodes in order", name.0);
            return self.fault(name, message, Some("name `[[nodes]]`, such as \"r{i}\"".to_owned()));
        }
        if !name.0.contains('{') {
            return Ok(vec![name.0.to_owned()]);
        }
        if is_last(name) {
            let message = format!("`{}` is the last node of a row, and `via` has all of them", name.0);
            return self.fault(name, message, Some(format!("set \"{}\"", name.0.replace("{n}", "{j}"))));
        }
        let nodes = self.nodes_of(name)?;
        match (chain, &nodes.count) {
            (Some(chain), _) => nodes.names_in(chain).map_or_else(|| self.no_number(name, chain), Ok),
            (None, Count::Nodes(_)) => Ok(nodes.names()),
            (None, Count::Rows(_)) => {
                let message = format!("`{}` means several rows, and there is one chain", name.0);
                let hint = "let `from` or `to` have an `{i}` too, for one chain through each row";
                self.fault(name, message, Some(hint.to_owned()))
            }
        }
    }

    fn no_number<T>(&self, name: &Said<'_>, number: u64) -> Spread<T> {
        let message = format!("`{}` has no number {number}, which another node of the chain has", name.0);
        self.fault(name, message, Some("give both `[[nodes]]` the same number of nodes or rows".to_owned()))
    }

    /// The table `[[nodes]]` with this name, which contains `{i}`.
    fn nodes_of(&self, (name, span): &Said<'_>) -> Spread<&NodesSection> {
        if let Some(nodes) = self.nodes.iter().find(|nodes| nodes.name == name.replace("{n}", "{j}")) {
            return Ok(nodes);
        }
        let known = || self.nodes.iter().map(|nodes| nodes.name.as_str());
        let hint = did_you_mean(name, known())
            .unwrap_or_else(|| format!("add `[[nodes]]` with `name = \"{name}\"` and a `count`"));
        self.fault(
            &(*name, span.clone()),
            format!("there are no `[[nodes]]` of the name `{name}`"),
            Some(hint),
        )
    }

    /// The names of the links, which must all differ.
    fn names(&self, name: &Said<'_>, links: &[Link]) -> Spread<Vec<String>> {
        let named = |link: &Link| {
            let place = link.place.to_string();
            match link.chain {
                Some(chain) => name.0.replace("{i}", &chain.to_string()).replace("{j}", &place),
                None => name.0.replace("{i}", &place),
            }
        };
        let names: Vec<String> = links.iter().map(named).collect();
        let mut known = BTreeSet::new();
        let Some(twice) = names.iter().find(|name| !known.insert(name.as_str())) else { return Ok(names) };
        let message = format!("there are several links of the name `{twice}`");
        let (of_chains, base) =
            (links.iter().any(|link| link.chain.is_some()), name.0.replace("{i}", "").replace("{j}", ""));
        let hint = match of_chains {
            true => format!(
                "set `name = \"{base}{{i}}-{{j}}\"`: `{{i}}` is the number of the chain, `{{j}}` counts along it"
            ),
            false => format!("set `name = \"{base}{{i}}\"`: `{{i}}` counts along the chain"),
        };
        self.fault(name, message, Some(hint))
    }

    /// Checks that each entry of `only` matches a link of the table, and changes only keys that
    /// describe a link.
    fn only(&mut self, table: &DeTable<'_>, names: &[Option<String>]) -> Spread<()> {
        let Some(only) = table.get("only").and_then(|only| only.get_ref().as_table()) else { return Ok(()) };
        for (pattern, settings) in only {
            let said = (&**pattern.get_ref(), pattern.span());
            if !names.iter().flatten().any(|name| matches(said.0, name)) {
                let known: Vec<&String> = names.iter().flatten().collect();
                let hint = match did_you_mean(said.0, &known) {
                    Some(hint) => hint,
                    None if known.is_empty() => "give the table a `name`, such as \"hop{i}\"".to_owned(),
                    None if known.len() > SHOWN => {
                        format!("its links are {} and {} more", quoted(&known[..SHOWN]), known.len() - SHOWN)
                    }
                    None => format!("its links are {}", quoted(known)),
                };
                let error =
                    self.fault(&said, format!("no link of this table has the name `{}`", said.0), Some(hint));
                let Err(error) = error else { return error };
                // An override applies to all tables of links: it is an error only if no table has
                // such a link.
                if matches!(error.place, Place::Override(_)) {
                    self.strangers.push(Stranger { pattern: said.0.to_owned(), error });
                    continue;
                }
                return Err(error);
            }
            let Some(keys) = settings.get_ref().as_table().map(|settings| settings.keys()) else {
                let hint = Some("such as `{ loss = 0.1 }`".to_owned());
                let message = "expected a table of keys".to_owned();
                return self.fault(&(said.0, settings.span()), message, hint);
            };
            let of_table = |key: &&Spanned<DeString<'_>>| OF_TABLE.contains(&&**key.get_ref());
            if let Some(key) = keys.into_iter().find(of_table) {
                let message = format!("`{}` is a key of the whole table", key.get_ref());
                return self.fault(&(key.get_ref(), key.span()), message, None);
            }
        }
        Ok(())
    }

    fn fault<T>(&self, at: &Said<'_>, message: String, hint: Option<String>) -> Spread<T> {
        Err(ScenarioError { place: self.source.place(at.1.clone()), message, hint })
    }
}

/// Largest number of link names in a hint.
const SHOWN: usize = 10;

/// Keys that determine which links there are; `only` cannot change them for a single link.
const OF_TABLE: [&str; 6] = ["name", "from", "to", "via", "only", "enabled"];

/// The settings of single links, by name or pattern.
fn singles<'t, 's>(table: &'t DeTable<'s>) -> impl Iterator<Item = (&'t str, &'t DeTable<'s>)> {
    let only = table.get("only").and_then(|only| only.get_ref().as_table());
    let settings = only.into_iter().flatten();
    settings.filter_map(|(name, settings)| Some((&**name.get_ref(), settings.get_ref().as_table()?)))
}

/// Whether the name stands for the last node of a row.
fn is_last(said: &Said<'_>) -> bool {
    said.0.contains("{n}")
}

fn is_numbered(said: &Said<'_>) -> bool {
    said.0.contains("{i}")
}

fn owned(said: &Said<'_>) -> (String, Range<usize>) {
    (said.0.to_owned(), said.1.clone())
}

fn said<'t>(table: &'t DeTable<'_>, key: &str) -> Option<Said<'t>> {
    text(table.get(key)?)
}

fn text<'t>(node: &'t Node<'_>) -> Option<Said<'t>> {
    Some((node.get_ref().as_str()?, node.span()))
}

/// The names in `via`, if the table has it; `None` if the value is neither a name nor a list of
/// names.
fn via<'t>(table: &'t DeTable<'_>) -> Option<Option<Vec<Said<'t>>>> {
    match table.get("via") {
        None => Some(None),
        Some(names) => match names.get_ref() {
            DeValue::Array(names) => names.iter().map(text).collect::<Option<_>>().map(Some),
            _ => Some(Some(vec![text(names)?])),
        },
    }
}

fn set(table: &mut DeTable<'_>, key: &'static str, (value, span): (String, Range<usize>)) {
    table.insert(Spanned::new(span.clone(), key.into()), Spanned::new(span, DeValue::String(value.into())));
}

/// Calls `each` with the path and the value of every leaf of a table.
fn leaves<'t, 's>(
    table: &'t DeTable<'s>,
    path: &mut Vec<&'t Spanned<DeString<'s>>>,
    each: &mut impl FnMut(&[&'t Spanned<DeString<'s>>], &'t Node<'s>),
) {
    for (key, value) in table {
        path.push(key);
        match value.get_ref() {
            DeValue::Table(inner) if !inner.is_empty() => leaves(inner, path, each),
            _ => each(path, value),
        }
        path.pop();
    }
}

/// Sets the value at a path of keys, and creates the tables on the way.
fn put<'s>(table: &mut DeTable<'s>, path: &[&Spanned<DeString<'s>>], value: &Node<'s>) {
    let [key, rest @ ..] = path else { return };
    if rest.is_empty() {
        table.insert((*key).clone(), value.clone());
        return;
    }
    let is_table = table.get(&**key.get_ref()).is_some_and(|inner| inner.get_ref().is_table());
    if !is_table {
        table.insert((*key).clone(), Spanned::new(key.span(), DeValue::Table(DeTable::new())));
    }
    if let Some(DeValue::Table(inner)) = table.get_mut(&**key.get_ref()).map(Spanned::get_mut) {
        put(inner, rest, value);
    }
}
