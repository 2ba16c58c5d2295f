//! Multipath TCP schedulers written in Python.

use std::sync::Arc;

use anabranch_core::mptcp::scheduler::{self as core, Pick, Scheduler};
use pyo3::prelude::*;

use super::told::told;
use super::{Call, Object, read};

/// Creates the scheduler of a connection.
pub(super) fn make(number: usize, (): ()) -> Box<dyn Scheduler> {
    let call = Call::here();
    let object =
        call.python(|| "a new connection".to_owned(), |py| Object::make(py, number, "Scheduler", ()));
    Box::new(Written { call, object })
}

/// A scheduler written in Python.
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

/// Converts a return value; `None` for none, or for a subflow that does not exist.
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

told! {
    /// What is to be sent.
    Demand(core::Demand) {
        unsent: u64, window: u64, in_flight: u64, assigned: u64,
    }
}

told! {
    /// A path that can take data.
    Subflow(core::PathView) {
        index: usize, service: Option<f64>, wait: f64, loss: f64, stuck: bool, rtt: f64, rttvar: f64,
        min_rtt: f64, mss: u32, cwnd: u32, ssthresh: u32, w_min: u32, w_max: u32, in_flight: u32, rto: f64,
        room: u32, lacks: bool,
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
}
