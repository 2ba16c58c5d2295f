//! Reader for the nodes and edges of GraphML: <http://graphml.graphdrawing.org/specification.html>.

use std::collections::BTreeMap;

use roxmltree::{Document, Node};

use super::place::Coordinates;

/// An undirected graph.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Vertex>,
    edges: Vec<Edge>,
}

#[derive(Debug)]
pub(super) struct Vertex {
    pub(super) id: String,
    pub(super) label: Option<String>,
    pub(super) place: Option<Coordinates>,
}

/// An edge; its ends are indices of nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Edge {
    pub(super) ends: [usize; 2],
    /// In bit/s.
    pub(super) rate: Option<u64>,
}

/// An error in a file, with its position.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) message: String,
    pub(super) hint: Option<&'static str>,
}

type Read<T> = Result<T, Fault>;

impl Graph {
    /// The edges in the order of the file. Parallel edges are joined, with the sum of their rates;
    /// loops are left out.
    pub(super) fn joined(&self) -> Vec<Edge> {
        let mut joined: Vec<Edge> = Vec::new();
        let mut at: BTreeMap<[usize; 2], usize> = BTreeMap::new();
        for &Edge { ends: [a, b], rate } in self.edges.iter().filter(|edge| edge.ends[0] != edge.ends[1]) {
            let first = *at.entry([a.min(b), a.max(b)]).or_insert(joined.len());
            match joined.get_mut(first) {
                Some(edge) => edge.rate = edge.rate.zip(rate).map(|(one, other)| one.saturating_add(other)),
                None => joined.push(Edge { ends: [a, b], rate }),
            }
        }
        joined
    }
}

/// Reads a file.
pub(super) fn read(text: &str) -> Read<Graph> {
    let document = Document::parse(text).map_err(|error| {
        let position = error.pos();
        let (line, column) = (position.row as usize, position.col as usize);
        let said = error.to_string();
        // The position is reported separately.
        let message = said.rsplit_once(" at ").map_or(&*said, |(what, _)| what);
        Fault { line, column, message: format!("this is not XML: {message}"), hint: None }
    })?;
    let root = document.root_element();
    if root.tag_name().name() != "graphml" {
        let message = format!("expected `<graphml>`, found `<{}>`", root.tag_name().name());
        return fault(
            root,
            message,
            Some("the Internet Topology Zoo has its networks as GraphML and as GML"),
        );
    }
    let Some(graph) = children(root, "graph").next() else {
        return fault(root, "it has no `<graph>`".to_owned(), None);
    };
    if graph.attribute("edgedefault") == Some("directed") {
        let hint = "say edgedefault=\"undirected\": a link has both directions";
        return fault(graph, "the graph is directed".to_owned(), Some(hint));
    }
    let keys = Keys::of(root);
    let (mut nodes, mut ids) = (Vec::new(), BTreeMap::new());
    for node in children(graph, "node") {
        let id = attribute(node, "id")?;
        if ids.insert(id, nodes.len()).is_some() {
            return fault(node, format!("there are two nodes with the id `{id}`"), None);
        }
        nodes.push(keys.vertex(node, id)?);
    }
    if nodes.is_empty() {
        return fault(graph, "the graph has no node".to_owned(), None);
    }
    let end = |edge: Node<'_, '_>, name: &str| {
        let id = attribute(edge, name)?;
        match ids.get(id) {
            Some(node) => Ok(*node),
            None => fault(edge, format!("there is no node with the id `{id}`"), None),
        }
    };
    let edges = children(graph, "edge").map(|edge| {
        let ends = [end(edge, "source")?, end(edge, "target")?];
        Ok(Edge { ends, rate: keys.rate(edge)? })
    });
    let edges = edges.collect::<Read<Vec<_>>>()?;
    Ok(Graph { nodes, edges })
}

/// Ids of the data keys that are used here, by their names.
struct Keys<'t> {
    label: Option<&'t str>,
    longitude: Option<&'t str>,
    latitude: Option<&'t str>,
    speed: Option<&'t str>,
}

impl<'t> Keys<'t> {
    fn of(root: Node<'t, '_>) -> Self {
        let key = |of: &str, name: &str| {
            let is_meant = |key: &Node<'t, '_>| {
                let domain = key.attribute("for").unwrap_or("all");
                (domain == of || domain == "all") && key.attribute("attr.name") == Some(name)
            };
            children(root, "key").find(is_meant).and_then(|key| key.attribute("id"))
        };
        Self {
            label: key("node", "label"),
            longitude: key("node", "Longitude"),
            latitude: key("node", "Latitude"),
            speed: key("edge", "LinkSpeedRaw"),
        }
    }

    fn vertex(&self, node: Node<'_, '_>, id: &str) -> Read<Vertex> {
        let label = data(node, self.label).map(|(label, _)| label.to_owned());
        let longitude = degrees(node, self.longitude, 180.0)?;
        let latitude = degrees(node, self.latitude, 90.0)?;
        Ok(Vertex { id: id.to_owned(), label, place: longitude.zip(latitude) })
    }

    fn rate(&self, edge: Node<'_, '_>) -> Read<Option<u64>> {
        let Some((value, at)) = number(edge, self.speed)? else { return Ok(None) };
        if !(1.0..=1e18).contains(&value) {
            return fault(at, format!("a `LinkSpeedRaw` of {value}: expected 1 bit/s and more"), None);
        }
        Ok(Some(value.round() as u64))
    }
}

fn degrees(node: Node<'_, '_>, key: Option<&str>, most: f64) -> Read<Option<f64>> {
    match number(node, key)? {
        Some((value, at)) if value.abs() > most => {
            fault(at, format!("{value} degrees: expected -{most} to {most}"), None)
        }
        found => Ok(found.map(|(value, _)| value)),
    }
}

fn number<'a, 'i>(of: Node<'a, 'i>, key: Option<&str>) -> Read<Option<(f64, Node<'a, 'i>)>> {
    let Some((text, at)) = data(of, key) else { return Ok(None) };
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Some((value, at))),
        _ => fault(at, format!("`{text}` is not a number"), None),
    }
}

/// Text of a `<data>` element that is not empty, with the element.
fn data<'a, 'i>(of: Node<'a, 'i>, key: Option<&str>) -> Option<(&'a str, Node<'a, 'i>)> {
    let key = key?;
    let found = children(of, "data").find(|data| data.attribute("key") == Some(key))?;
    let text = found.text()?.trim();
    (!text.is_empty()).then_some((text, found))
}

fn children<'a, 'i>(of: Node<'a, 'i>, name: &'static str) -> impl Iterator<Item = Node<'a, 'i>> {
    of.children().filter(move |child| child.is_element() && child.tag_name().name() == name)
}

fn attribute<'a>(of: Node<'a, '_>, name: &str) -> Read<&'a str> {
    match of.attribute(name) {
        Some(value) => Ok(value),
        None => fault(of, format!("`<{}>` has no `{name}`", of.tag_name().name()), None),
    }
}

fn fault<T>(at: Node<'_, '_>, message: String, hint: Option<&'static str>) -> Read<T> {
    let position = at.document().text_pos_at(at.range().start);
    Err(Fault { line: position.row as usize, column: position.col as usize, message, hint })
}
