//! The compiled part of the Python package `anabranch`. It never decides anything about a network
//! or a protocol, and it shows nobody anything: what people call and read is Python, in
//! `python/anabranch`.
//!
//! All work but that of `policy` is done on threads that know no Python, while the one that asked
//! waits without the interpreter's lock and looks for Ctrl-C (`work`).
//!
//! Code map: `fault` is how a Python exception is made of an error; `frame` holds tables;
//! `scenario` a scenario and its text; `record` makes a run again with observers; `sweep` makes
//! runs, and `sweep::driver` has them made by others; `lab` are the papers' experiments and `plan`
//! the closed forms, both of which answer in JSON; `policy` are controllers and schedulers written
//! in Python, the only Python that runs ask; `units` reads quantities.

mod fault;
mod frame;
mod lab;
mod plan;
mod policy;
mod record;
mod scenario;
mod sweep;
mod threads;
mod units;
mod work;

use pyo3::prelude::*;

/// What `import anabranch._anabranch` finds.
#[pymodule]
fn _anabranch(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("VERSION", anabranch_sweep::VERSION)?;
    module.add_class::<frame::Frame>()?;
    module.add_class::<scenario::Scenario>()?;
    module.add_class::<sweep::Sweep>()?;
    module.add_function(wrap_pyfunction!(sweep::driver::work_job, module)?)?;
    module.add_function(wrap_pyfunction!(frame::summary, module)?)?;
    module.add_function(wrap_pyfunction!(frame::survival, module)?)?;
    module.add_function(wrap_pyfunction!(frame::compared, module)?)?;
    module.add_function(wrap_pyfunction!(record::replay_page, module)?)?;
    module.add_function(wrap_pyfunction!(record::event_table, module)?)?;
    lab::add(module)?;
    plan::add(module)?;
    policy::add(module)?;
    units::add(module)
}
