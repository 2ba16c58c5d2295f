//! The compiled part of the Python package `anabranch`. It contains no network or protocol logic,
//! and users do not call it directly: the public API is Python, in `python/anabranch`.
//!
//! All work except that of `policy` runs on threads without Python. The calling thread waits
//! without the interpreter's lock and handles Ctrl-C (`work`).
//!
//! Code map: `fault` converts errors to Python exceptions; `frame` holds tables; `scenario` parses
//! scenarios; `record` repeats a run with observers; `sweep` makes runs, and `sweep::driver` hands
//! them to others; `lab` runs the experiments of the papers, and `plan` computes the closed forms,
//! both with results in JSON; `policy` calls controllers, schedulers and striping policies that are
//! written in Python; `units` parses quantities.

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

/// The module that `import anabranch._anabranch` loads.
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
