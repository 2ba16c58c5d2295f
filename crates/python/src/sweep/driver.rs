//! Hands out runs as text jobs, and accepts the rows that others return.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::AtomicBool;

use anabranch_lab::EXPERIMENTS;
use anabranch_sweep::address::RunKey;
use anabranch_sweep::{Job, Shard, row};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::{Inner, State};
use crate::fault::Fault;
use crate::policy::{self, Brought};
use crate::work::work;

/// Jobs waiting and handed out.
#[derive(Default)]
pub(crate) struct Lent {
    shard: Option<Shard>,
    /// Points with missing runs.
    waiting: VecDeque<(usize, VecDeque<RunKey>)>,
    /// Jobs handed out, by number.
    out: BTreeMap<u64, (usize, Vec<RunKey>)>,
    next: u64,
    /// Number of runs that were due at the last look.
    total: u64,
}

impl Inner {
    /// Finds the missing runs of all points.
    pub(crate) fn begin(&self, shard: Shard) -> u64 {
        let state = &mut *self.state();
        state.lent = Lent { shard: Some(shard), ..Lent::default() };
        for point in 0..self.points.len() {
            self.look(state, point);
        }
        state.lent.total
    }

    /// Takes runs of one point as a text job.
    pub(crate) fn take(&self, most: usize) -> Result<Option<(u64, String, usize)>, Fault> {
        let lent = &mut self.state().lent;
        let Some((point, runs)) = lent.waiting.front_mut() else { return Ok(None) };
        let (point, count) = (*point, runs.len().min(most.max(1)));
        let taken: Vec<RunKey> = runs.drain(..count).collect();
        if runs.is_empty() {
            lent.waiting.pop_front();
        }
        let job = Job::new(&self.sweep, &self.points[point], taken.clone())?;
        let number = lent.next;
        lent.next += 1;
        lent.out.insert(number, (point, taken));
        Ok(Some((number, job.to_json(), count)))
    }

    /// Accepts the rows of a job, if they match its runs. Rows that arrive twice count once.
    pub(crate) fn put(&self, number: u64, octets: &[u8]) -> Result<u64, Fault> {
        let state = &mut *self.state();
        let Some((point, runs)) = state.lent.out.remove(&number) else { return Ok(state.lent.total) };
        let root = &self.points[point].root;
        let rows = row::from_bytes(octets).filter(|rows| {
            rows.iter().map(|row| row.address).eq(runs.iter().map(|key| root.run(key.seed, key.run)))
        });
        let rows = rows.ok_or_else(|| {
            Fault::new(format!("a worker has sent other rows than those of point {point}"))
                .with_hint("all workers must have the same version of anabranch")
        })?;
        state.store.append(&rows)?;
        let lent = &state.lent;
        let busy = lent.out.values().any(|(other, _)| *other == point)
            || lent.waiting.iter().any(|(other, _)| *other == point);
        if !busy {
            self.look(state, point);
        }
        Ok(state.lent.total)
    }

    /// Finds the runs that are due at a point.
    fn look(&self, state: &mut State, point: usize) {
        let Some(shard) = state.lent.shard else { return };
        let due = self.sweep.due(&self.points[point], &state.store, shard);
        if !due.is_empty() {
            state.lent.total += due.len() as u64;
            state.lent.waiting.push_back((point, due.into()));
        }
    }
}

/// Makes the runs of a job on one thread and returns their rows. Its scenario may name the custom
/// policies in `brought`.
#[pyfunction]
pub(crate) fn work_job<'py>(
    py: Python<'py>,
    letter: String,
    brought: Vec<Brought>,
) -> PyResult<Bound<'py, PyBytes>> {
    let policies = policy::policies(py, &brought)?;
    let stop = std::sync::Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let octets = work(
        py,
        &stop,
        |_| Ok(()),
        move || {
            let rows = Job::from_json_with(&letter, EXPERIMENTS, policies)?.run(&stopped)?;
            Ok(row::to_bytes(&rows.unwrap_or_default()))
        },
    )?;
    Ok(PyBytes::new(py, &octets))
}
