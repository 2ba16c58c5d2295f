//! Schedulers of Multipath TCP.

use std::sync::Arc;

use anabranch_core::mptcp::scheduler::{self as core, Pick, Scheduler};
use anabranch_core::time::Duration;
use pyo3::prelude::*;

use super::{Call, Object, read};

/// Makes the scheduler of a connection.
pub(super) fn make(number: usize, (): ()) -> Box<dyn Scheduler> {
    let call = Call::here();
    let object =
        call.python(|| "a new connection".to_owned(), |py| Object::make(py, number, "Scheduler", ()));
    Box::new(Written { call, object })
}

/// A scheduler that is written in Python.
#[derive(Debug)]
struct Written {
    call: Arc<Call>,
    object: Option<Object>,
}

impl Scheduler for Written {
    fn pick(&mut self, demand: &core::Demand, paths: &[core::PathView]) -> Pick {
        let Some(Object { object, class }) = &self.object else { return Pick::Wait };
        let picked = self.call.python(
            || format!("{class}.pick"),
            |py| {
                let subflows: Vec<Subflow> = paths.iter().map(|path| Subflow(*path)).collect();
                let said = object.bind(py).call_method1("pick", (Demand(*demand), subflows))?;
                understood(&said, paths)?.ok_or_else(|| {
                    let indices: Vec<String> = paths.iter().map(|path| path.index.to_string()).collect();
                    let expected = format!(
                        "None, the index of a subflow ({}), Send, Copy or RESCUE of anabranch.policy",
                        indices.join(", ")
                    );
                    read::returned(class, "pick", &said, &expected)
                })
            },
        );
        picked.unwrap_or(Pick::Wait)
    }
}

/// What a result means; `None` if nothing, or a subflow that is not there.
fn understood(said: &Bound<'_, PyAny>, paths: &[core::PathView]) -> PyResult<Option<Pick>> {
    if said.is_none() {
        return Ok(Some(Pick::Wait));
    }
    let known = |said: &Bound<'_, PyAny>| {
        let index = said.extract::<usize>().ok()?;
        paths.iter().any(|path| path.index == index).then_some(index)
    };
    if let Some(index) = known(said) {
        return Ok(Some(Pick::Send { index, skip: 0 }));
    }
    let module = said.py().import("anabranch.policy")?;
    if said.is_instance(&module.getattr("Send")?)? {
        let skip = said.getattr("skip")?.extract::<u64>().ok();
        return Ok(known(&said.getattr("index")?).zip(skip).map(|(index, skip)| Pick::Send { index, skip }));
    }
    if said.is_instance(&module.getattr("Copy")?)? {
        return Ok(known(&said.getattr("index")?).map(|index| Pick::Copy { index }));
    }
    Ok(said.is(&module.getattr("RESCUE")?).then_some(Pick::Rescue))
}

/// What is to be sent.
#[pyclass(frozen, module = "anabranch.policy")]
pub(crate) struct Demand(core::Demand);

#[pymethods]
impl Demand {
    #[getter]
    fn unsent(&self) -> u64 {
        self.0.unsent
    }

    #[getter]
    fn window(&self) -> u64 {
        self.0.window
    }

    #[getter]
    fn in_flight(&self) -> u64 {
        self.0.in_flight
    }

    #[getter]
    fn assigned(&self) -> u64 {
        self.0.assigned
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// A path that could take data.
#[pyclass(frozen, module = "anabranch.policy")]
pub(crate) struct Subflow(core::PathView);

#[pymethods]
impl Subflow {
    #[getter]
    fn index(&self) -> usize {
        self.0.index
    }

    #[getter]
    fn service(&self) -> Option<f64> {
        self.0.service.map(Duration::as_secs_f64)
    }

    #[getter]
    fn wait(&self) -> f64 {
        self.0.wait.as_secs_f64()
    }

    #[getter]
    fn loss(&self) -> f64 {
        self.0.loss
    }

    #[getter]
    fn stuck(&self) -> bool {
        self.0.stuck
    }

    #[getter]
    fn rtt(&self) -> f64 {
        self.0.rtt.as_secs_f64()
    }

    #[getter]
    fn rttvar(&self) -> f64 {
        self.0.rttvar.as_secs_f64()
    }

    #[getter]
    fn min_rtt(&self) -> f64 {
        self.0.min_rtt.as_secs_f64()
    }

    #[getter]
    fn mss(&self) -> u32 {
        self.0.mss
    }

    #[getter]
    fn cwnd(&self) -> u32 {
        self.0.cwnd
    }

    #[getter]
    fn ssthresh(&self) -> u32 {
        self.0.ssthresh
    }

    #[getter]
    fn w_min(&self) -> u32 {
        self.0.w_min
    }

    #[getter]
    fn w_max(&self) -> u32 {
        self.0.w_max
    }

    #[getter]
    fn in_flight(&self) -> u32 {
        self.0.in_flight
    }

    #[getter]
    fn rto(&self) -> f64 {
        self.0.rto.as_secs_f64()
    }

    #[getter]
    fn room(&self) -> u32 {
        self.0.room
    }

    #[getter]
    fn lacks(&self) -> bool {
        self.0.lacks
    }

    #[getter]
    fn hops(&self) -> Option<u16> {
        self.0.facts.hops
    }

    #[getter]
    fn arrival(&self) -> f64 {
        self.0.arrival().as_secs_f64()
    }

    #[getter]
    fn overdue(&self) -> f64 {
        self.0.overdue().as_secs_f64()
    }

    fn takes(&self, left: u64) -> bool {
        self.0.takes(left)
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}
