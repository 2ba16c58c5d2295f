//! Finds cycles among arrows between modules.

use super::source::ModulePath;
use crate::tidy::tree::Finding;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A module that uses an item of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Arrow {
    pub(super) from: ModulePath,
    pub(super) to: ModulePath,
    /// File of the use.
    pub(super) file: String,
    pub(super) line: usize,
}

/// For each group of modules, the groups that it uses, each with the first use.
type Graph<'a> = BTreeMap<&'a [String], BTreeMap<&'a [String], &'a Arrow>>;

/// Finds one cycle in each strongly connected set of modules.
pub(super) fn find(arrows: &[Arrow]) -> Vec<Finding> {
    let ends = arrows.iter().flat_map(|arrow| [&arrow.from, &arrow.to]);
    let parents: BTreeSet<&[String]> =
        ends.flat_map(|module| (0..=module.len()).map(|n| &module[..n])).collect();
    parents.into_iter().flat_map(|parent| knots(&family(parent, arrows))).collect()
}

/// Arrows between the children of `parent`, each with all modules below it.
fn family<'a>(parent: &[String], arrows: &'a [Arrow]) -> Graph<'a> {
    let group = |module: &'a [String]| {
        let below = module.len() > parent.len() && module.starts_with(parent);
        below.then(|| &module[..=parent.len()])
    };
    let mut graph = Graph::new();
    for arrow in arrows {
        if let (Some(from), Some(to)) = (group(&arrow.from), group(&arrow.to))
            && from != to
        {
            graph.entry(from).or_default().entry(to).or_insert(arrow);
        }
    }
    graph
}

/// The shortest cycle through the first node of each strongly connected set.
fn knots(graph: &Graph) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut told: BTreeSet<&[String]> = BTreeSet::new();
    for &start in graph.keys() {
        if told.contains(start) {
            continue;
        }
        if let Some(circle) = shortest(graph, start) {
            told.extend(
                graph.keys().filter(|&&node| reaches(graph, start, node) && reaches(graph, node, start)),
            );
            findings.push(finding(start, &circle));
        }
    }
    findings
}

/// The shortest cycle through `start`, as the arrows that it follows and the groups that it enters.
fn shortest<'a>(graph: &Graph<'a>, start: &'a [String]) -> Option<Vec<(&'a [String], &'a Arrow)>> {
    let mut came_by: BTreeMap<&[String], (&[String], &Arrow)> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        for (&next, &arrow) in graph.get(node).into_iter().flatten() {
            if came_by.contains_key(next) {
                continue;
            }
            came_by.insert(next, (node, arrow));
            if next == start {
                let mut way = Vec::new();
                let mut at = start;
                loop {
                    let (before, arrow) = came_by[at];
                    way.push((at, arrow));
                    at = before;
                    if at == start {
                        way.reverse();
                        return Some(way);
                    }
                }
            }
            queue.push_back(next);
        }
    }
    None
}

/// Whether arrows lead from one group to another.
fn reaches<'a>(graph: &Graph<'a>, from: &'a [String], to: &'a [String]) -> bool {
    let mut seen = BTreeSet::from([from]);
    let mut open = vec![from];
    while let Some(node) = open.pop() {
        if node == to {
            return true;
        }
        open.extend(graph.get(node).into_iter().flat_map(BTreeMap::keys).filter(|&&next| seen.insert(next)));
    }
    false
}

fn finding(start: &[String], circle: &[(&[String], &Arrow)]) -> Finding {
    let mut message = format!("a circle of imports: {}", said(start));
    for (entered, arrow) in circle {
        message += &format!(" -> {} ({}:{})", said(entered), arrow.file, arrow.line);
    }
    let (file, line) =
        circle.first().map_or((String::new(), 0), |(_, arrow)| (arrow.file.clone(), arrow.line));
    Finding::new(file, line, message)
}

/// A module path as code writes it.
fn said(module: &[String]) -> String {
    std::iter::once("crate").chain(module.iter().map(String::as_str)).collect::<Vec<_>>().join("::")
}
