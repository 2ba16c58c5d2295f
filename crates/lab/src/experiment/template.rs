//! An experiment as a scenario and a table of parameters that change it.

use anabranch_sim::scenario::units::hint_from;
use anabranch_sim::scenario::{Place, Plan, Scenario, ScenarioError, Source};

use super::values::Understood;
use super::{Parameter, ParameterError, RunError, Sets, Settings};

/// The scenario of an experiment.
#[derive(Clone, Copy, Debug)]
pub struct Template {
    /// Name of its file, for messages.
    pub file: &'static str,
    /// Its text.
    pub text: &'static str,
    /// The experiment's parameters.
    pub parameters: &'static [Parameter],
    /// The assignments of the parameters that are [`Sets::Derived`], each with a parameter that it
    /// depends on. A parameter that is an alias is none where it has assignments here.
    pub derived: fn(&Settings) -> Understood<Vec<Assignment>>,
}

/// A parameter, and a change of the scenario that follows from it: `path=value`.
pub type Assignment = (&'static str, String);

/// A point of an experiment: a text for each parameter, and the scenario that they make.
#[derive(Clone, Debug)]
pub struct Templated {
    /// The parameters.
    pub settings: Settings,
    /// What they make of the template.
    pub scenario: Scenario,
    pub(crate) template: Template,
}

impl Template {
    /// The scenario file with the changes that the parameters make, before it is read.
    ///
    /// # Errors
    ///
    /// The first value that no parameter takes.
    pub fn source(&self, settings: &Settings) -> Understood<Source> {
        let source = Source::new(self.file, self.text);
        Ok(self.assignments(settings)?.into_iter().fold(source, |source, (_, set)| source.set(set)))
    }

    /// Makes the scenario of these parameters.
    ///
    /// # Errors
    ///
    /// The first value that cannot be, under the name of its parameter.
    pub fn point(&self, settings: &Settings) -> Understood<Templated> {
        let scenario = self.source(settings)?.scenario();
        let scenario = match scenario {
            Ok(scenario) => scenario,
            Err(error) => return Err(self.refused(settings, error)),
        };
        Ok(Templated { settings: settings.clone(), scenario, template: *self })
    }

    /// Every parameter as it can be given again.
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
        // What follows from several parameters is laid over what one of them says.
        Ok(aliases.map(of).chain(derived.clone()).collect())
    }

    /// What the scenario has against a value, as the parameter's.
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
    /// Every parameter as it can be given again.
    pub fn texts(&self) -> Vec<(&'static str, String)> {
        self.template.texts(&self.settings)
    }

    /// A simulation about to begin.
    ///
    /// # Errors
    ///
    /// If nodes cannot be placed as the scenario wants them.
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
