//! Networks from GraphML files, such as those of the Internet Topology Zoo (Knight et al., "The
//! Internet Topology Zoo", 2011).
//!
//! The file becomes tables `[[node]]` and `[[link]]` of the tree before its values are read, as if
//! they were in the scenario. The resolved scenario has these tables and no `[topology]`.

mod graphml;
mod place;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use anabranch_core::time::Duration;
use anabranch_units::text;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue};

use super::node::NodeKind;
use super::source::Source;
use super::units::{Rate, Span};
use super::{Node, Place, ScenarioError, Tree};
use graphml::Graph;

/// Nodes and links from a GraphML file. They follow those of `[[node]]` and `[[link]]`, which may
/// refer to them: a `[[link]]` connects a host to a node of the file. The name of a node is its
/// `label`; if it is missing or not unique, the file's `id` is added. Parallel edges become one
/// link with the sum of their rates.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TopologySection {
    /// Name of the GraphML file, relative to the scenario.
    pub graphml: String,
    /// Role of the nodes.
    #[serde(default = "router")]
    pub kind: NodeKind,
    /// Source of the link rates.
    #[serde(default)]
    pub rates: RatesFrom,
    /// Source of the link delays.
    #[serde(default)]
    pub delays: DelaysFrom,
    /// Keys of `[[link]]` for all links of the file. `rate` and `delay` apply to links without a
    /// value in the file.
    #[serde(default)]
    pub link: BTreeMap<String, serde_json::Value>,
}

fn router() -> NodeKind {
    NodeKind::Router
}

/// Source of the rates in a topology.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RatesFrom {
    /// `LinkSpeedRaw` of the edge in bit/s; `rate` in `link` for edges without it.
    #[default]
    File,
    /// `rate` in `link`, for all links.
    Link,
}

/// Source of the delays in a topology.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DelaysFrom {
    /// Length of the great circle between both ends (`Longitude` and `Latitude`) at two thirds of
    /// the speed of light; `delay` in `link` for edges to a node without coordinates.
    #[default]
    Distance,
    /// `delay` in `link`, for all links.
    Link,
}

/// Least delay of a link, for two nodes in the same town.
const SHORTEST: Duration = Duration::from_micros(1);

type Grown<T> = Result<T, ScenarioError>;

/// Replaces `[topology]` by its nodes and links.
pub(super) fn grow<'s>(source: &'s Source, mut tree: Tree<'s>) -> Grown<Tree<'s>> {
    let Some(said) = tree.get_mut().remove("topology") else { return Ok(tree) };
    let section: TopologySection = text::read(&said).map_err(|error| source.error_at_span(error))?;
    let span = said.get_ref().get("graphml").map_or(said.span(), Spanned::span);
    let fault = |message: String, hint: &str| ScenarioError {
        place: source.place(span.clone()),
        message,
        hint: Some(hint.to_owned()),
    };
    let file = &section.graphml;
    let text = source.text_of(file).map_err(|why| {
        fault(format!("cannot read `{file}`: {why}"), "a file's name is relative to the scenario")
    })?;
    let graph = graphml::read(&text).map_err(|error| ScenarioError {
        place: Place::File { name: file.clone(), line: error.line, column: error.column, span: 0..0 },
        message: error.message,
        hint: error.hint.map(str::to_owned),
    })?;
    let names = names(&graph);
    let kinds = said.get_ref().get("kind").cloned();
    let nodes = names.iter().map(|name| {
        let mut table = DeTable::new();
        put(&mut table, &span, "name", name);
        let kind = kinds.clone().unwrap_or_else(|| Spanned::new(span.clone(), text_value("router")));
        table.insert(key(&span, "kind"), kind);
        Spanned::new(span.clone(), DeValue::Table(table))
    });
    append(&mut tree, "node", &span, nodes.collect());
    let keys = said.get_ref().get("link").and_then(|link| link.get_ref().as_table()).cloned();
    let mut links = Vec::new();
    for edge in graph.joined() {
        let mut table = keys.clone().unwrap_or_default();
        let [from, to] = edge.ends.map(|end| &names[end]);
        let lacks = |what: &str, data: &str, key: &str| {
            let message = format!("`{file}` has no {what} of the link between `{from}` and `{to}`");
            fault(message, &format!("add {data} to the file, or set `{key}` in `[topology.link]`"))
        };
        let rate = edge.rate.filter(|_| section.rates == RatesFrom::File);
        match rate {
            Some(rate) => put(&mut table, &span, "rate", &Rate(rate).to_string()),
            None if table.contains_key("rate") => {}
            None => return Err(lacks("rate", "`LinkSpeedRaw`", "rate = \"1 Gbit/s\"")),
        }
        let [a, b] = edge.ends.map(|end| graph.nodes[end].place);
        let delay =
            a.zip(b).filter(|_| section.delays == DelaysFrom::Distance).map(|(a, b)| place::delay(a, b));
        match delay {
            Some(delay) => put(&mut table, &span, "delay", &Span(delay.max(SHORTEST)).to_string()),
            None if table.contains_key("delay") => {}
            None => return Err(lacks("places", "`Longitude` and `Latitude`", "delay = \"1 ms\"")),
        }
        put(&mut table, &span, "from", from);
        put(&mut table, &span, "to", to);
        links.push(Spanned::new(span.clone(), DeValue::Table(table)));
    }
    append(&mut tree, "link", &span, links);
    Ok(tree)
}

/// Unique name of each node.
fn names(graph: &Graph) -> Vec<String> {
    // These characters would make the name a pattern or a template.
    let clean = |text: &str| text.replace(['*', '{', '}'], "_");
    let plain = |node: &graphml::Vertex| clean(node.label.as_deref().unwrap_or(&node.id));
    let mut seen = BTreeMap::<String, u32>::new();
    graph.nodes.iter().for_each(|node| *seen.entry(plain(node)).or_default() += 1);
    let mut taken: BTreeSet<String> =
        seen.iter().filter(|(_, n)| **n == 1).map(|(name, _)| name.clone()).collect();
    let mut name = |node: &graphml::Vertex| {
        let name = plain(node);
        if seen[&name] == 1 {
            return name;
        }
        let mut longer = format!("{name} {}", clean(&node.id));
        // The longer name may be the label of another node.
        while !taken.insert(longer.clone()) {
            longer.push('_');
        }
        longer
    };
    graph.nodes.iter().map(&mut name).collect()
}

fn key<'s>(span: &Range<usize>, key: &str) -> Spanned<DeString<'s>> {
    Spanned::new(span.clone(), key.to_owned().into())
}

fn text_value<'s>(text: &str) -> DeValue<'s> {
    DeValue::String(text.to_owned().into())
}

fn put(table: &mut DeTable<'_>, span: &Range<usize>, name: &str, text: &str) {
    table.insert(key(span, name), Spanned::new(span.clone(), text_value(text)));
}

/// Adds tables to a list of the file. A value that is not a list is left for the reader to refuse.
fn append<'s>(tree: &mut Tree<'s>, name: &str, span: &Range<usize>, tables: Vec<Node<'s>>) {
    let file = tree.get_mut();
    if file.get(name).is_none() {
        file.insert(key(span, name), Spanned::new(span.clone(), DeValue::Array(DeArray::new())));
    }
    if let Some(list) = file.get_mut(name)
        && let DeValue::Array(list) = list.get_mut()
    {
        tables.into_iter().for_each(|table| list.push(table));
    }
}
