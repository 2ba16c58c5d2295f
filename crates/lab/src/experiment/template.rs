//! Experiments that consist of a scenario and a table of parameters that change it.

use anabranch_scenario::units::hint_from;
use anabranch_scenario::{Place, Plan, Scenario, ScenarioError, Source};

use super::values::Understood;
use super::{Parameter, ParameterError, RunError, Sets, Settings};

/// Scenario of an experiment.
#[derive(Clone, Copy, Debug)]
pub struct Template {
    /// File name for messages.
    pub file: &'static str,
    /// Text of the scenario file.
    pub text: &'static str,
    /// Parameters of the experiment.
    pub parameters: &'static [Parameter],
    /// Assignments for the parameters that are [`Sets::Derived`], each with a parameter on which it
    /// depends. An assignment here replaces that of an alias.
    pub derived: fn(&Settings) -> Understood<Vec<Assignment>>,
}

/// A parameter, and the change of the scenario that follows from it: `path=value`.
pub type Assignment = (&'static str, String);

/// A point of an experiment: a text for each parameter, and the resulting scenario.
#[derive(Clone, Debug)]
pub struct Templated {
    /// The parameters.
    pub settings: Settings,
    /// The resulting scenario.
    pub scenario: Scenario,
    pub(crate) template: Template,
}

impl Template {
    /// The scenario file with the changes of the parameters, before it is parsed.
    ///
    /// # Errors
    ///
    /// The first value that a parameter does not take.
    pub fn source(&self, settings: &Settings) -> Understood<Source> {
        let source = Source::new(self.file, self.text);
        Ok(self.assignments(settings)?.into_iter().fold(source, |source, (_, set)| source.set(set)))
    }

    /// Makes the scenario for these parameters.
    ///
    /// # Errors
    ///
    /// The first invalid value, with the name of its parameter.
    pub fn point(&self, settings: &Settings) -> Understood<Templated> {
        let scenario = self.source(settings)?.scenario();
        let scenario = match scenario {
            Ok(scenario) => scenario,
            Err(error) => return Err(self.refused(settings, error)),
        };
        Ok(Templated { settings: settings.clone(), scenario, template: *self })
    }

    /// All parameters, in a form that can be passed again.
    pub fn texts(&self, settings: &Settings) -> Vec<(&'static str, String)> {
        self.parameters.iter().map(|p| (p.name, settings.text(p.name).to_owned())).collect()
    }

    fn assignments(&self, settings: &Settings) -> Understood<Vec<Assignment>> {
        let derived = (self.derived)(settings)?;
        let is_derived = |name| derived.iter().any(|(key, _)| *key == name);
        let aliases = self.parameters.iter().filter(|parameter| parameter.sets == Sets::Alias);
        let aliases = aliases.filter(|parameter| !is_derived(parameter.name));
        let of = |parameter: &Parameter| {
            let name = parameter.name;
            (name, format!("{name}={}", settings.text(name)))
        };
        // Assignments that follow from several parameters come last and override those of a single
        // one.
        Ok(aliases.map(of).chain(derived.clone()).collect())
    }

    /// Converts an error of the scenario into an error of the parameter.
    fn refused(&self, settings: &Settings, error: ScenarioError) -> ParameterError {
        let ScenarioError { place, message, hint } = error;
        let hint = hint.or_else(|| hint_from(&message));
        let assignments = self.assignments(settings).unwrap_or_default();
        let of =
            |text: &str| assignments.iter().find(|(_, set)| set == text).map(|(parameter, _)| *parameter);
        match place {
            Place::Override(text) => match of(&text) {
                Some(key) => ParameterError::bad(key, settings.text(key), message, hint),
                None => ParameterError::Scenario { message, hint },
            },
            Place::File { .. } | Place::Whole { .. } => ParameterError::Scenario { message, hint },
        }
    }
}

impl Templated {
    /// All parameters, in a form that can be passed again.
    pub fn texts(&self) -> Vec<(&'static str, String)> {
        self.template.texts(&self.settings)
    }

    /// Prepares a simulation.
    ///
    /// # Errors
    ///
    /// Nodes cannot be placed as the scenario requires.
    pub fn plan(&self, seed: u64, run: u64) -> Result<Plan, RunError> {
        Ok(self.scenario.plan(seed, run, &Default::default())?)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn an_experiments_aliases_are_those_of_its_scenario_file() {
        use crate::{dtc, mptcp, rdca, set, sockbuf};
        for template in [dtc::TEMPLATE, mptcp::TEMPLATE, rdca::TEMPLATE, set::TEMPLATE, sockbuf::TEMPLATE] {
            let source = Source::new(template.file, template.text);
            let tree = source.tree().expect("TOML");
            let aliases = tree.get_ref().get("alias").and_then(|aliases| aliases.get_ref().as_table());
            let said: BTreeSet<&str> =
                aliases.expect("a table").keys().map(|name| &**name.get_ref()).collect();
            let known = template.parameters.iter().filter(|parameter| parameter.sets == Sets::Alias);
            let known: BTreeSet<&str> = known.map(|parameter| parameter.name).collect();
            assert_eq!(said, known, "{}", template.file);
        }
    }
}
