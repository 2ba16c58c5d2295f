//! The text of a scenario with its overrides, as a tree in which every value has its position.

pub mod alias;
mod single;
pub(super) mod traces;

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use anabranch_units::text::{ReadError, Text};
use anabranch_units::{HINT_MARK, did_you_mean, hint_from, quoted};
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::policies::Policies;
use super::{Node, Place, ScenarioError, Tree};
use traces::Traces;

/// The text of a scenario, and the overrides on top of it.
#[derive(Clone, Debug)]
pub struct Source {
    text: Text,
    removed: Vec<String>,
    overrides: Vec<String>,
    policies: Arc<Policies>,
    traces: Traces,
    files: Files,
    selects: bool,
}

type Length = dyn Fn(&str) -> Option<u64> + Send + Sync;
type Read = dyn Fn(&str) -> Result<String, String> + Send + Sync;

/// Access to the files of a scenario, by their names.
#[derive(Clone)]
struct Files(Arc<Known>);

struct Known {
    /// Gives the lengths of transferred files.
    length: Box<Length>,
    /// Gives the texts of files that are needed to read the scenario.
    text: Box<Read>,
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Files")
    }
}

/// A step of a path to a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Step {
    Key(String),
    Index(usize),
}

impl From<&str> for Step {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

impl Source {
    /// A scenario from its text; errors refer to it as `name`.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            text: Text::new(name, text),
            removed: Vec::new(),
            overrides: Vec::new(),
            policies: Arc::default(),
            traces: Traces::default(),
            files: Files(Arc::new(Known {
                length: Box::new(|_| None),
                text: Box::new(|_| Err("no files can be read here".to_owned())),
            })),
            selects: false,
        }
    }

    /// Adds an override `path=value`, such as `link.0.rate=56 kbit/s`.
    ///
    /// The steps of the path are keys. In a list of tables a step is an index, the `name` of an
    /// entry, or a pattern of names in which `*` stands for any text; patterns also select profiles
    /// of `tcp`, `dtc`, `rdca`, `coap` and `buffers`. The name or pattern of single links of a
    /// table `[[link]]` is a step, too. The value is TOML; a value that is not valid TOML is a
    /// string. `off` removes a section `radio`, `paths`, `wifi` or `aodv`.
    pub fn set(mut self, assignment: impl Into<String>) -> Self {
        self.overrides.push(assignment.into());
        self
    }

    /// Removes the value at a path, if there is one, before the overrides are applied.
    pub fn without(mut self, path: impl Into<String>) -> Self {
        self.removed.push(path.into());
        self
    }

    /// Sets the source of file lengths: `length` gives the bytes of a transferred file by its name
    /// in the scenario, or `None` if there is no such file. Only a transfer with
    /// `gateways = "best"` needs it.
    pub fn with_lengths(self, length: impl Fn(&str) -> Option<u64> + Send + Sync + 'static) -> Self {
        let Files(known) = self.files;
        let text = Box::new(move |name: &str| (known.text)(name));
        Self { files: Files(Arc::new(Known { length: Box::new(length), text })), ..self }
    }

    /// Sets the source of file contents: `read` gives the text of a trace, topology or movement
    /// file by its name in the scenario, or the reason why it cannot.
    pub fn with_texts(self, read: impl Fn(&str) -> Result<String, String> + Send + Sync + 'static) -> Self {
        let Files(known) = self.files;
        let length = Box::new(move |name: &str| (known.length)(name));
        let files = Files(Arc::new(Known { length, text: Box::new(read) }));
        Self { files, traces: Traces::default(), ..self }
    }

    /// Reads files ([`Source::with_texts`]) and their lengths ([`Source::with_lengths`]) from a
    /// folder: that of the scenario.
    pub fn with_folder(self, folder: impl Into<PathBuf>) -> Self {
        let folder = Arc::new(folder.into());
        let same = folder.clone();
        self.with_lengths(move |name| Some(std::fs::metadata(folder.join(name)).ok()?.len())).with_texts(
            move |name| std::fs::read_to_string(same.join(name)).map_err(|error| error.to_string()),
        )
    }

    /// Allows unused profiles, for a caller that may select them later.
    pub fn selecting(self) -> Self {
        Self { selects: true, ..self }
    }

    /// The length of a file in bytes, from [`Source::with_lengths`].
    pub(super) fn length_of(&self, file: &str) -> Option<u64> {
        (self.files.0.length)(file)
    }

    /// The text of a file, from [`Source::with_texts`].
    pub(super) fn text_of(&self, file: &str) -> Result<String, String> {
        (self.files.0.text)(file)
    }

    /// Whether an override, an axis of the file's own sweep or an alias selects profiles, so that
    /// unused profiles are allowed.
    pub(super) fn selects_profiles(&self) -> bool {
        let overrides = self.overrides.iter().filter_map(|set| Some(set.split_once('=')?.0.trim()));
        if self.selects || overrides.into_iter().any(selects_profile) {
            return true;
        }
        let tree = self.text.tree();
        let axes = tree.as_ref().ok().and_then(own_axes);
        let of_sweep = axes.is_some_and(|axes| axes.keys().any(|path| selects_profile(path.get_ref())));
        of_sweep || tree.is_ok_and(|tree| alias::paths(&tree).iter().any(|path| selects_profile(path)))
    }

    /// Whether an override has exactly this path.
    pub(super) fn is_set(&self, path: &str) -> bool {
        self.overrides.iter().filter_map(|set| set.split_once('=')).any(|(set, _)| set.trim() == path)
    }

    /// Allows the scenario to name these custom policies.
    pub fn with_policies(self, policies: Policies) -> Self {
        Self { policies: Arc::new(policies), ..self }
    }

    /// The custom policies.
    pub(super) fn policies(&self) -> &Policies {
        &self.policies
    }

    /// The text, without overrides.
    pub fn text(&self) -> &str {
        self.text.as_str()
    }

    /// Parses the text and applies the overrides, without checking keys and values.
    ///
    /// # Errors
    /// If the text is not TOML, or an override does not fit.
    pub fn tree(&self) -> Result<Tree<'_>, ScenarioError> {
        self.changed(self.parsed()?)
    }

    /// Parses the text, for [`Source::scenario_from`].
    ///
    /// # Errors
    /// If the text is not TOML.
    pub fn parsed(&self) -> Result<Tree<'_>, ScenarioError> {
        self.text.tree()
    }

    /// Orders several parameters such that none overwrites another: words first, then aliases of
    /// paths, then patterns, then single values; within each kind by name.
    ///
    /// # Errors
    /// If the text is not TOML.
    pub fn in_order<'p>(&self, mut paths: Vec<&'p str>) -> Result<Vec<&'p str>, ScenarioError> {
        if paths.len() < 2 {
            return Ok(paths);
        }
        let tree = self.parsed()?;
        paths.sort_by_key(|path| (alias::rank(&tree, path), *path));
        Ok(paths)
    }

    /// Applies the removals and overrides to the tree of the text.
    pub(super) fn changed<'s>(&'s self, mut tree: Tree<'s>) -> Result<Tree<'s>, ScenarioError> {
        self.removed.iter().for_each(|path| remove(&mut tree, path));
        // Values of overrides get spans behind the text, so that `place` can attribute errors to
        // them.
        let mut offset = self.text().len() + 1;
        for assignment in &self.overrides {
            let fault = |message: String, hint: Option<String>| ScenarioError {
                place: Place::Override(assignment.clone()),
                message,
                hint,
            };
            let Some((path, value)) = assignment.split_once('=') else {
                return Err(fault("expected `path=value`".to_owned(), None));
            };
            let text = || Spanned::new(0..value.len(), DeValue::String(value.trim().into()));
            // A value that is not TOML is a string, so words need no quotes.
            let value = DeValue::parse(value.trim()).unwrap_or_else(|_| text());
            let value = moved(value, offset..offset + assignment.len());
            apply(&mut tree, path.trim(), &value).map_err(|(message, hint)| fault(message, hint))?;
            offset += assignment.len() + 1;
        }
        Ok(tree)
    }

    /// Reads a tree as a `T`, whose types may include [`Spanned`].
    ///
    /// # Errors
    /// If a value does not fit. The error has its position and, for an unknown key or word, the one
    /// that was probably meant.
    pub fn read<'s, T: Deserialize<'s>>(&'s self, tree: Tree<'s>) -> Result<T, ScenarioError> {
        T::deserialize(toml::Deserializer::from(tree)).map_err(|error| self.error_at_span(error.into()))
    }

    /// An error at the deepest value on `path` that exists in the text.
    pub(super) fn error_at(
        &self,
        tree: &Tree<'_>,
        path: &[Step],
        message: String,
        hint: Option<String>,
    ) -> ScenarioError {
        let place = self.span_of(tree, path).map_or_else(|| self.text.whole(), |span| self.place(span));
        ScenarioError { place, message, hint }
    }

    /// Whether there is a value at `path`.
    pub(super) fn has(&self, tree: &Tree<'_>, path: &[Step]) -> bool {
        Self::deepest(tree, path).is_some_and(|(_, found)| found == path.len())
    }

    /// Position of the values of an axis of the file's own sweep.
    pub fn axis_place(&self, path: &str) -> Option<Place> {
        let tree = self.parsed().ok()?;
        Some(self.place(own_axes(&tree)?.get(path)?.span()))
    }

    /// Positions of the values of the file's own sweep, one for each axis.
    pub(super) fn axis_spans(&self) -> Vec<Range<usize>> {
        let spans = |tree: Tree<'_>| Some(own_axes(&tree)?.values().map(Spanned::span).collect());
        self.parsed().ok().and_then(spans).unwrap_or_default()
    }

    /// Whether an override or an axis has set the value at `path`, rather than its own place in the
    /// file. `axes` are [`Source::axis_spans`].
    pub(super) fn is_chosen(&self, tree: &Tree<'_>, path: &[Step], axes: &[Range<usize>]) -> bool {
        let Some((chosen, _)) = Self::deepest(tree, path).filter(|(_, found)| *found == path.len()) else {
            return false;
        };
        let span = chosen.span();
        let holds = |axis: &Range<usize>| axis.start <= span.start && span.end <= axis.end;
        span.start > self.text().len() || axes.iter().any(holds)
    }

    /// Whether the whole value at `path` comes from the file, without overrides.
    pub(super) fn is_of_file(&self, tree: &Tree<'_>, path: &[Step]) -> bool {
        fn begins_by(node: &Node<'_>, end: usize) -> bool {
            node.span().start <= end
                && match node.get_ref() {
                    DeValue::Table(table) => table.values().all(|value| begins_by(value, end)),
                    DeValue::Array(array) => array.iter().all(|value| begins_by(value, end)),
                    _ => true,
                }
        }
        let found = Self::deepest(tree, path).filter(|(_, found)| *found == path.len());
        found.is_some_and(|(node, _)| begins_by(node, self.text().len()))
    }

    fn span_of(&self, tree: &Tree<'_>, path: &[Step]) -> Option<Range<usize>> {
        Some(Self::deepest(tree, path)?.0.span())
    }

    /// The deepest value on `path`, and the number of steps that lead to it.
    fn deepest<'t, 's>(tree: &'t Tree<'s>, path: &[Step]) -> Option<(&'t Node<'s>, usize)> {
        let (Step::Key(first), rest) = path.split_first()? else { return None };
        let mut node = tree.get_ref().get(first.as_str())?;
        let mut found = 1;
        for step in rest {
            let next = match (node.get_ref(), step) {
                (DeValue::Table(table), Step::Key(key)) => table.get(key.as_str()),
                (DeValue::Array(array), Step::Index(index)) => array.get(*index),
                _ => None,
            };
            let Some(next) = next else { break };
            node = next;
            found += 1;
        }
        Some((node, found))
    }

    pub(super) fn error_at_span(&self, error: ReadError) -> ScenarioError {
        let place = error.span.map_or_else(|| self.text.whole(), |span| self.place(span));
        let message = error.message.trim_end();
        // The hint about a unit is part of the message.
        let (message, hint) = match message.split_once(HINT_MARK) {
            Some((message, hint)) => (message.to_owned(), Some(hint.to_owned())),
            None => (plain_words(message), hint_from(message)),
        };
        ScenarioError { place, message, hint }
    }

    /// Position of a span of the tree: in the text or in an override.
    pub fn place(&self, span: Range<usize>) -> Place {
        let mut offset = self.text().len() + 1;
        if span.start < offset {
            return self.text.place(span);
        }
        for assignment in &self.overrides {
            if span.start < offset + assignment.len() + 1 {
                return Place::Override(assignment.clone());
            }
            offset += assignment.len() + 1;
        }
        self.text.whole()
    }
}

/// The axes of the file's own sweep, if it has one.
fn own_axes<'t, 's>(tree: &'t Tree<'s>) -> Option<&'t DeTable<'s>> {
    tree.get_ref().get("sweep")?.get_ref().as_table()
}

/// Replaces the Rust terms in a deserialiser's message.
fn plain_words(message: &str) -> String {
    let message = message.replace("unknown field", "unknown key").replace("missing field", "missing key");
    let message = message.replace("unknown variant", "unknown word");
    let message = message.replace(
        "invalid type: unit variant, expected newtype variant",
        "this word needs a number, as in `{ first = 2.0 }`",
    );
    // Users see tables, whatever the name of the Rust struct.
    let message = match message.split_once("expected struct ") {
        Some((found, _)) if found.starts_with("invalid type: ") => format!("{found}expected a table"),
        _ => message,
    };
    let types = [("u8", u64::from(u8::MAX)), ("u16", u64::from(u16::MAX)), ("u32", u64::from(u32::MAX))];
    let named =
        types.iter().find_map(|(name, max)| Some((message.strip_suffix(&format!("expected {name}"))?, max)));
    match (named, message.strip_suffix("expected u64")) {
        (Some((start, max)), _) => format!("{start}expected a whole number in 0..={max}"),
        (None, Some(start)) => format!("{start}expected a whole number from 0 on"),
        (None, None) => message,
    }
}

/// Gives a value and all values in it the same span.
fn moved(value: Node<'_>, span: Range<usize>) -> Node<'_> {
    let inner = match value.into_inner() {
        DeValue::Array(mut array) => {
            for item in array.iter_mut() {
                let taken = std::mem::replace(item, Spanned::new(0..0, DeValue::Boolean(false)));
                *item = moved(taken, span.clone());
            }
            DeValue::Array(array)
        }
        DeValue::Table(table) => {
            let entries = table.into_iter();
            let entries = entries.map(|(key, value)| {
                (Spanned::new(span.clone(), key.into_inner()), moved(value, span.clone()))
            });
            DeValue::Table(entries.collect())
        }
        plain => plain,
    };
    Spanned::new(span, inner)
}

/// Whether the value at a path names profiles: the path ends in such a key, or in a table or list
/// with such keys.
fn selects_profile(path: &str) -> bool {
    let steps: Vec<&str> = path.split('.').collect();
    matches!(
        steps[..],
        ["transfer" | "node" | "nodes" | "traffic"]
            | ["transfer" | "node" | "nodes" | "traffic", _]
            | ["transfer", _, "kind" | "tcp" | "tcp_wireless" | "tcp_receiver" | "coap"]
            | ["node" | "nodes", _, "dtc" | "buffers"]
            | ["traffic", _, "tcp" | "rdca" | "over"]
    )
}

/// Removes the value at a dotted path of keys and indices.
fn remove(tree: &mut Tree<'_>, path: &str) {
    let Some((place, key)) = path.rsplit_once('.') else {
        tree.get_mut().remove(path);
        return;
    };
    let mut steps = place.split('.');
    let first = steps.next().and_then(|step| tree.get_mut().get_mut(step));
    let node = steps.try_fold(first, |node, step| match node?.get_mut() {
        DeValue::Table(table) => Some(table.get_mut(step)),
        DeValue::Array(items) => Some(items.get_mut(step.parse::<usize>().ok()?)),
        _ => None,
    });
    if let Some(Some(node)) = node
        && let DeValue::Table(table) = node.get_mut()
    {
        table.remove(key);
    }
}

/// A problem with a path, and a hint.
type PathFault = (String, Option<String>);

/// Sets the value at a dotted path, or at the paths of an alias. The value need not exist yet.
pub(super) fn apply<'s>(tree: &mut Tree<'s>, path: &str, value: &Node<'s>) -> Result<(), PathFault> {
    match alias::expand(tree, path, value)? {
        None => apply_at(tree, path, value),
        Some(settings) => settings.iter().try_for_each(|(path, value)| apply_at(tree, path, value)),
    }
}

fn apply_at<'s>(tree: &mut Tree<'s>, path: &str, value: &Node<'s>) -> Result<(), PathFault> {
    let steps: Vec<&str> = path.split('.').collect();
    if steps.iter().any(|step| step.is_empty()) {
        return Err((format!("`{path}` is not a path of keys joined by dots"), None));
    }
    // `off` removes the section, so that another channel and its routing can take its place.
    if let ["radio" | "paths" | "wifi" | "aodv"] = steps[..]
        && value.get_ref().as_str() == Some("off")
    {
        tree.get_mut().remove(path);
        return Ok(());
    }
    let [kind @ ("tcp" | "dtc" | "rdca" | "coap" | "buffers"), name, rest @ ..] = &steps[..] else {
        let is_single = single::apply(tree, &steps, value)?;
        if is_single && !path.contains('*') {
            return Ok(());
        }
        return match apply_to_table(tree.get_mut(), &steps, value) {
            // All links that the pattern matches are single links of a table.
            Err(_) if is_single => Ok(()),
            applied => applied,
        };
    };
    for profile in profiles(tree, kind, name)? {
        let steps: Vec<&str> = [&[*kind, &profile], rest].concat();
        apply_to_table(tree.get_mut(), &steps, value)?;
    }
    Ok(())
}

/// The profiles that a step of a path selects: a profile of the file, the TCP profile "default", or
/// all that match a pattern. Any other name is an error: it would make a profile that nothing uses.
fn profiles(tree: &Tree<'_>, kind: &str, step: &str) -> Result<Vec<String>, PathFault> {
    let table = tree.get_ref().get(kind).and_then(|profiles| profiles.get_ref().as_table());
    let mut names: Vec<&str> =
        table.iter().flat_map(|table| table.keys()).map(|key| &**key.get_ref()).collect();
    // These profiles exist without an entry in the file.
    if matches!(kind, "tcp" | "rdca" | "coap") && !names.contains(&"default") {
        names.push("default");
    }
    let meant: Vec<String> =
        names.iter().filter(|name| matches(step, name)).map(|name| (*name).to_owned()).collect();
    if !meant.is_empty() {
        return Ok(meant);
    }
    let new = if step.contains('*') { "NAME" } else { step };
    let hint = match did_you_mean(step, &names) {
        Some(hint) => hint,
        None if names.is_empty() => format!("add `[{kind}.{new}]` to the file"),
        None => format!("the profiles are {}; add `[{kind}.{new}]` to the file", quoted(names)),
    };
    Err((format!("there is no profile `{kind}.{step}`"), Some(hint)))
}

/// Whether a step of a path selects an entry with this name: it is the name, or a pattern in which
/// each `*` stands for any text.
pub(super) fn matches(step: &str, name: &str) -> bool {
    let Some((first, rest)) = step.split_once('*') else { return step == name };
    let Some(name) = name.strip_prefix(first) else { return false };
    let Some((middle, last)) = rest.rsplit_once('*') else { return name.ends_with(rest) };
    let Some(mut name) = name.strip_suffix(last) else { return false };
    for part in middle.split('*') {
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
    }
    true
}

fn apply_to_table<'s>(table: &mut DeTable<'s>, steps: &[&str], value: &Node<'s>) -> Result<(), PathFault> {
    let [key, rest @ ..] = steps else { return Ok(()) };
    if let Some(slot) = table.get_mut(*key) {
        return apply_to(slot, rest, value);
    }
    if let Some(pattern) = [Some(key), rest.first()].into_iter().flatten().find(|step| step.contains('*')) {
        let hint = "`*` matches entries of a list, or profiles of `tcp`, `dtc`, `rdca`, `coap` or `buffers`";
        return Err((format!("`{pattern}` means nothing here"), Some(hint.to_owned())));
    }
    let mut new = match rest {
        [] => value.clone(),
        _ => Spanned::new(value.span(), DeValue::Table(DeTable::new())),
    };
    apply_to(&mut new, rest, value)?;
    table.insert(Spanned::new(value.span(), (*key).to_owned().into()), new);
    Ok(())
}

fn apply_to<'s>(slot: &mut Node<'s>, steps: &[&str], value: &Node<'s>) -> Result<(), PathFault> {
    let [step, rest @ ..] = steps else {
        *slot = value.clone();
        return Ok(());
    };
    match slot.get_mut() {
        DeValue::Table(table) => apply_to_table(table, steps, value),
        DeValue::Array(items) => {
            for at in entries(items, step)? {
                items.get_mut(at).map_or(Ok(()), |item| apply_to(item, rest, value))?;
            }
            Ok(())
        }
        // A word that may have a table stands for an empty table.
        DeValue::String(word) if word == step && !rest.is_empty() => {
            *slot.get_mut() = DeValue::Table(DeTable::new());
            apply_to(slot, steps, value)
        }
        DeValue::String(word) => {
            let hint = format!("it is `{word}` now: set it before, or with what is inside");
            Err((format!("`{step}` cannot be set inside of a string"), Some(hint)))
        }
        other => Err((format!("`{step}` cannot be set inside of a {}", other.type_str()), None)),
    }
}

/// The entries of a list that a step of a path selects: the one with this name or index, or all
/// with a matching name. `*` also selects entries without a name.
fn entries(items: &DeArray<'_>, step: &str) -> Result<Vec<usize>, PathFault> {
    let name = |item: &Node<'_>| item.get_ref().get("name").and_then(text_of);
    let named = |item: &Node<'_>| name(item).is_some_and(|name| matches(step, &name));
    let meant: Vec<usize> = if step.contains('*') {
        (0..items.len()).filter(|&i| step == "*" || named(&items[i])).collect()
    } else {
        let index = || step.parse().ok().filter(|i| *i < items.len());
        items.iter().position(named).or_else(index).into_iter().collect()
    };
    if !meant.is_empty() {
        return Ok(meant);
    }
    let names: Vec<String> = items.iter().filter_map(name).collect();
    let hint = match did_you_mean(step, &names) {
        Some(hint) => hint,
        None if items.is_empty() => "the list is empty".to_owned(),
        None if step.contains('*') && !names.is_empty() => format!("the names are {}", quoted(names)),
        None => format!("there are {} entries, counted from 0; `*` means all", items.len()),
    };
    Err((format!("there is no entry `{step}` in that list"), Some(hint)))
}

fn text_of(node: &Node<'_>) -> Option<String> {
    node.get_ref().as_str().map(str::to_owned)
}
