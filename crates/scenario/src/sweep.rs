//! Sweeps: every combination of the values on a scenario's axes.

use std::collections::BTreeMap;

use anabranch_units::text;
use toml::de::DeValue;

use super::Scenario;
use super::source::{Source, Step, apply};
use super::{Node, ScenarioError, Tree};

/// Largest number of points in a sweep, since all of them are in memory at the same time.
const MAX_POINTS: u128 = 20_000;

/// One combination of values.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// The value on each axis, by its path.
    pub axes: BTreeMap<String, serde_json::Value>,
    /// The scenario with these values.
    pub scenario: Scenario,
}

impl Source {
    /// All points of the sweep, the last axis (by name) fastest; one point without axes if there is
    /// no sweep. An override replaces an axis with the same path.
    ///
    /// # Errors
    ///
    /// If the scenario or an axis is invalid, or the sweep has more than 20,000 points.
    pub fn points(&self) -> Result<Vec<Point>, ScenarioError> {
        let mut tree = self.tree()?;
        let axes = self.axes(&tree)?;
        tree.get_mut().remove("sweep");
        let order = self.in_order(axes.iter().map(|(path, _)| path.as_str()).collect())?;
        let mut points: Vec<BTreeMap<&str, usize>> = vec![BTreeMap::new()];
        for (path, values) in &axes {
            let with = |point: BTreeMap<_, _>| {
                (0..values.len()).map(move |value| {
                    let mut point = point.clone();
                    point.insert(path.as_str(), value);
                    point
                })
            };
            points = points.into_iter().flat_map(with).collect();
        }
        let values: BTreeMap<&str, &Vec<Node<'_>>> =
            axes.iter().map(|(path, values)| (path.as_str(), values)).collect();
        let scenario = |point: BTreeMap<&str, usize>| {
            let value_of = |path: &str| &values[path][point[path]];
            let changed = || {
                let mut tree: Tree<'_> = tree.clone();
                for path in &order {
                    apply(&mut tree, path, value_of(path)).map_err(|(message, hint)| {
                        let at = [Step::from("sweep"), Step::from(*path), Step::from(point[path])];
                        self.tree().map_or_else(|e| e, |whole| self.error_at(&whole, &at, message, hint))
                    })?;
                }
                Ok(tree)
            };
            let scenario = self.scenario_of(&changed)?;
            let said = |path: &&str| Ok(((*path).to_owned(), self.plain(value_of(path))?));
            Ok(Point { axes: order.iter().map(said).collect::<Result<_, ScenarioError>>()?, scenario })
        };
        points.into_iter().map(scenario).collect()
    }

    /// The values on the axes of the file's own sweep, by path; empty without a sweep.
    ///
    /// # Errors
    ///
    /// If an axis is invalid, or the sweep has more than 20,000 points.
    pub fn own_axes(&self) -> Result<BTreeMap<String, Vec<serde_json::Value>>, ScenarioError> {
        let axes = self.axes(&self.tree()?)?;
        let plain = axes.into_iter().map(|(path, values)| {
            let values = values.iter().map(|value| self.plain(value)).collect::<Result<_, _>>()?;
            Ok((path, values))
        });
        plain.collect()
    }

    fn axes<'s>(&'s self, tree: &Tree<'s>) -> Result<Vec<(String, Vec<Node<'s>>)>, ScenarioError> {
        let Some(sweep) = tree.get_ref().get("sweep") else { return Ok(Vec::new()) };
        let fault = |at: &[Step], message: &str| {
            let hint = Some("an axis is `\"path\" = [value, value]`".to_owned());
            Err(self.error_at(tree, at, message.to_owned(), hint))
        };
        let Some(table) = sweep.get_ref().as_table() else {
            return fault(&["sweep".into()], "expected a table of axes");
        };
        let mut axes = Vec::new();
        for (path, values) in table {
            let path = path.get_ref().to_string();
            let at = [Step::from("sweep"), Step::from(path.as_str())];
            match values.get_ref() {
                DeValue::Array(values) if !values.is_empty() => axes.push((path, values.to_vec())),
                DeValue::Array(_) => return fault(&at, "an axis needs at least one value"),
                _ => return fault(&at, "expected a list of values"),
            }
        }
        // An override replaces the axis.
        axes.retain(|(path, _)| !self.is_set(path));
        let count = axes.iter().map(|(_, values)| values.len() as u128).fold(1, u128::saturating_mul);
        if count > MAX_POINTS {
            let message =
                format!("the axes make {} points, more than {}", grouped(count), grouped(MAX_POINTS));
            let hint = "remove values, or sweep some axes in runs of their own with --set";
            return Err(self.error_at(tree, &["sweep".into()], message, Some(hint.to_owned())));
        }
        Ok(axes)
    }

    fn plain(&self, value: &Node<'_>) -> Result<serde_json::Value, ScenarioError> {
        text::read(value).map_err(|error| self.error_at_span(error))
    }
}

/// A number with separated thousands.
fn grouped(number: u128) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
