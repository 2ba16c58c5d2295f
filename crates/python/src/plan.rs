//! The closed forms. Each returns the JSON text that `anabranch plan ... --json` prints.

mod mptcp;
mod set;
mod sockbuf;

use pyo3::prelude::*;

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(set::plan_set, module)?)?;
    module.add_function(wrap_pyfunction!(mptcp::plan_csma, module)?)?;
    module.add_function(wrap_pyfunction!(mptcp::plan_rtt, module)?)?;
    module.add_function(wrap_pyfunction!(mptcp::plan_schedule, module)?)?;
    module.add_function(wrap_pyfunction!(sockbuf::plan_sockbuf, module)?)
}
