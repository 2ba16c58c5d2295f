//! Policies written in Python: a controller, scheduler or striping policy whose methods are those
//! of a Python object.
//!
//! A configuration of the core is plain data and cannot hold objects. It holds a number, with which
//! [`Known`] finds the class. An exception of a method cannot pass through the simulator: it is
//! stored in the [`Call`] that makes the run, and the run ends.

mod call;
mod congestion;
mod read;
mod scheduler;
mod striping;
mod told;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use anabranch_core::mptcp::{CustomScheduler, SchedulerKind};
use anabranch_core::set::{CustomStriping, StripingPolicy};
use anabranch_core::tcp::{CongestionAlgorithm, CustomCongestion};
use anabranch_scenario::Policies;
use anabranch_scenario::units::words_of;
use pyo3::prelude::*;

use crate::fault::Fault;

pub(crate) use call::Call;

/// A policy as Python passes it: kind, name, class, and a digest of its source.
pub(crate) type Brought = (String, String, Py<PyAny>, String);

/// The policies of a scenario.
pub(crate) fn policies(py: Python<'_>, brought: &[Brought]) -> PyResult<Policies> {
    let mut policies = Policies::default();
    for (kind, name, factory, digest) in brought {
        let ours = match kind.as_str() {
            "congestion" => words_of::<CongestionAlgorithm>(),
            "scheduler" => words_of::<SchedulerKind>(),
            _ => words_of::<StripingPolicy>(),
        };
        if ours.contains(&name.as_str()) {
            let fault = Fault::new(format!("`{name}` is a {kind} policy of Anabranch itself"));
            return Err(fault.with_hint("choose another name").into());
        }
        let (name, number) = (leaked(name), number(py, factory));
        policies = match kind.as_str() {
            "congestion" => policies.congestion(CustomCongestion::numbered(name, number, congestion::make)),
            "scheduler" => policies.scheduler(CustomScheduler::numbered(name, number, scheduler::make)),
            "striping" => policies.striping(CustomStriping::numbered(name, number, striping::make)),
            other => return Err(Fault::new(format!("there are no policies of the kind `{other}`")).into()),
        };
        policies = policies.identified(name, digest);
    }
    Ok(policies)
}

/// Classes of policies by number. Entries are never removed, since numbers are copied freely; a
/// process uses few classes.
static KNOWN: Mutex<Vec<Arc<Py<PyAny>>>> = Mutex::new(Vec::new());
/// Names of policies, kept for the life of the process.
static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Locks a mutex even if it is poisoned: nothing that panics and no Python runs under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn number(py: Python<'_>, factory: &Py<PyAny>) -> usize {
    let mut known = lock(&KNOWN);
    let found = known.iter().position(|other| other.is(factory));
    found.unwrap_or_else(|| {
        known.push(Arc::new(factory.clone_ref(py)));
        known.len() - 1
    })
}

fn leaked(name: &str) -> &'static str {
    let mut names = lock(&NAMES);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(name);
    name
}

/// A policy's object, and its class name for errors.
#[derive(Debug)]
struct Object {
    object: Py<PyAny>,
    class: String,
}

impl Object {
    /// Calls the class of this number. The result must be an instance of the class `base` of the
    /// module `anabranch.policy`.
    fn make<'py>(
        py: Python<'py>,
        number: usize,
        base: &str,
        arguments: impl pyo3::call::PyCallArgs<'py>,
    ) -> PyResult<Self> {
        let factory = lock(&KNOWN).get(number).cloned();
        let factory = factory.ok_or_else(|| Fault::new(format!("there is no policy of number {number}")))?;
        let object = factory.bind(py).call1(arguments)?;
        let class = object.get_type().qualname()?.to_string();
        if !object.is_instance(&py.import("anabranch.policy")?.getattr(base)?)? {
            let factory = read::shown(factory.bind(py));
            let fault = Fault::new(format!("{factory} makes a `{class}`, which is no anabranch.{base}"));
            return Err(fault.with_hint(format!("derive the class from anabranch.{base}")).into());
        }
        Ok(Self { object: object.unbind(), class })
    }
}

/// Adds the classes of the arguments of policies.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<congestion::Start>()?;
    module.add_class::<congestion::View>()?;
    module.add_class::<congestion::Windows>()?;
    module.add_class::<congestion::Sample>()?;
    module.add_class::<congestion::Lost>()?;
    module.add_class::<scheduler::Demand>()?;
    module.add_class::<scheduler::Subflow>()?;
    module.add_class::<striping::Session>()?;
    module.add_class::<striping::File>()
}
