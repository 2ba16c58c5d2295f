//! Resolves paths in code to the files that define the items.

use super::circle::Arrow;
use super::source::{ModulePath, Reference, Role, Source, Visibility};
use std::collections::{BTreeMap, BTreeSet};

/// Limit on re-exports of a name. More than this means that the re-exports form a cycle.
const PATIENCE: usize = 32;

/// Modules of one crate, without tests.
pub(super) struct Crate {
    modules: BTreeMap<ModulePath, Source>,
}

impl Crate {
    /// Creates a crate from these files.
    pub(super) fn new(files: Vec<Source>) -> Self {
        let child =
            |file: &Source, name: &String| [file.module.as_slice(), std::slice::from_ref(name)].concat();
        let tests: BTreeSet<ModulePath> =
            files.iter().flat_map(|file| file.test_children.iter().map(|name| child(file, name))).collect();
        let in_tests = |module: &[String]| (1..=module.len()).any(|n| tests.contains(&module[..n]));
        let kept = files.into_iter().filter(|file| !in_tests(&file.module));
        Self { modules: kept.map(|file| (file.module.clone(), file)).collect() }
    }

    /// All arrows between modules.
    pub(super) fn arrows(&self) -> Vec<Arrow> {
        let mut arrows = Vec::new();
        for source in self.modules.values() {
            for reference in &source.references {
                for to in self.targets(source, reference) {
                    if to != source.module {
                        let (from, file) = (source.module.clone(), source.file.clone());
                        arrows.push(Arrow { from, to, file, line: reference.line });
                    }
                }
            }
        }
        arrows
    }

    /// Modules that a path in `source` depends on.
    fn targets(&self, source: &Source, reference: &Reference) -> Vec<ModulePath> {
        let Some(path) = self.absolute(source, reference) else { return Vec::new() };
        match &reference.role {
            Role::Glob(Visibility::Private) => self.glob_targets(source, &path),
            Role::Glob(Visibility::Public) => Vec::new(),
            Role::Import(_) | Role::Reexport(_) | Role::Path => {
                self.resolve(&path, PATIENCE).into_iter().collect()
            }
        }
    }

    /// Modules that `use path::*` makes `source` depend on: those of all names that the code uses.
    fn glob_targets(&self, source: &Source, path: &[String]) -> Vec<ModulePath> {
        let Some(module) = self.resolve(path, PATIENCE) else { return Vec::new() };
        let foreign = |name: &&String| !source.defined.contains(*name);
        let named = source.used.iter().filter(foreign);
        let found = named.filter_map(|name| self.member(&module, name, PATIENCE));
        found.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The path from the crate's root; `None` if it leaves the crate.
    fn absolute(&self, source: &Source, reference: &Reference) -> Option<Vec<String>> {
        if reference.anchored {
            return Some(reference.segments.clone());
        }
        let first = reference.segments.first()?;
        let path = [source.module.as_slice(), &reference.segments].concat();
        let child = self.modules.contains_key(&path[..=source.module.len()]);
        // `use Kind::*` after `enum Kind` stays in this file. Any other path without an anchor
        // names another crate, or a name whose import has its own arrow.
        let own = source.defined.contains(first) && reference.role != Role::Path;
        (child || own).then_some(path)
    }

    /// The module that defines the item of `path`; `None` if it is outside the crate.
    fn resolve(&self, path: &[String], patience: usize) -> Option<ModulePath> {
        let mut module = ModulePath::new();
        for (i, name) in path.iter().enumerate() {
            let child = [module.as_slice(), std::slice::from_ref(name)].concat();
            if self.modules.contains_key(&child) {
                module = child;
                continue;
            }
            if self.modules.get(&module)?.defined.contains(name) {
                return Some(module);
            }
            let patience = patience.checked_sub(1)?;
            return match self.passed_on(&module, name) {
                Some(target) => self.resolve(&[&target?, &path[i + 1..]].concat(), patience),
                None => self.member(&module, name, patience).or(Some(module)),
            };
        }
        Some(module)
    }

    /// The path from which `module` imports `name`: `Some(None)` for one outside the crate, `None`
    /// without an import.
    fn passed_on(&self, module: &[String], name: &str) -> Option<Option<Vec<String>>> {
        let source = self.modules.get(module)?;
        let import = source.references.iter().find(|reference| match &reference.role {
            Role::Import(as_name) | Role::Reexport(as_name) => as_name == name,
            Role::Glob(_) | Role::Path => false,
        })?;
        Some(self.absolute(source, import))
    }

    /// The module that defines the item `name` of `module`, which may come from a `use` or a glob.
    fn member(&self, module: &[String], name: &str, patience: usize) -> Option<ModulePath> {
        let source = self.modules.get(module)?;
        if source.defined.contains(name) {
            return Some(module.to_vec());
        }
        let patience = patience.checked_sub(1)?;
        if let Some(target) = self.passed_on(module, name) {
            return self.resolve(&target?, patience);
        }
        let globs = source.references.iter().filter(|reference| matches!(reference.role, Role::Glob(_)));
        globs
            .filter_map(|glob| self.resolve(&self.absolute(source, glob)?, patience))
            .filter(|target| target != module)
            .find_map(|target| self.member(&target, name, patience))
    }
}
