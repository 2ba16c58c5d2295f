//! Determines the runs of a point that are due, given the rows in a store.

use crate::address::{Address, RunKey};
use crate::error::{Error, unknown_metric};
use crate::job::Job;
use crate::points::{Point, Sweep};
use crate::spec::Runs;
use crate::store::Store;

/// A part of a sweep, for one job of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    /// Number of the part, counted from 1.
    pub number: u32,
    /// Number of parts.
    pub of: u32,
}

impl Shard {
    /// The whole sweep.
    pub const ALL: Self = Self { number: 1, of: 1 };

    /// Part `number` of `of`.
    ///
    /// # Errors
    /// `number` is not in 1..=`of`.
    pub fn new(number: u32, of: u32) -> Result<Self, Error> {
        if number == 0 || number > of {
            return Err(Error::Impossible {
                message: format!("there is no shard {number} of {of}"),
                hint: "shards are numbered from 1: `--shard 1/4` to `--shard 4/4`".to_owned(),
            });
        }
        Ok(Self { number, of })
    }

    fn has(self, place: u64) -> bool {
        place % u64::from(self.of) == u64::from(self.number - 1)
    }
}

/// Progress of a point.
#[derive(Clone, PartialEq, Debug)]
pub struct Standing {
    /// Number of runs per seed, as far as known.
    pub runs: u64,
    /// True if all runs are done and no more are needed.
    pub complete: bool,
    /// Whether the required precision is reached; `None` if none is required.
    pub met: Option<bool>,
    /// The missing runs, in order.
    pub missing: Vec<RunKey>,
}

impl Sweep {
    /// The runs of a point with `each` runs per seed, in order.
    pub fn runs(&self, each: u64) -> impl Iterator<Item = RunKey> + '_ {
        self.seeds().iter().flat_map(move |&seed| (0..each).map(move |run| RunKey { seed, run }))
    }

    /// The progress of a point.
    pub fn standing(&self, point: &Point, store: &Store) -> Standing {
        self.standing_from(point, store, 0)
    }

    /// As [`Self::standing`], for a point that is known to need at least `least` runs per seed.
    pub(crate) fn standing_from(&self, point: &Point, store: &Store, least: u64) -> Standing {
        let enough = match &self.spec().runs {
            Runs::Fixed(runs) => {
                let keys = self
                    .addresses(point, *runs)
                    .filter(|(key, address)| !self.has(store, point, *key, address));
                let missing: Vec<RunKey> = keys.map(|(key, _)| key).collect();
                return Standing { runs: *runs, complete: missing.is_empty(), met: None, missing };
            }
            Runs::Enough(enough) => enough,
        };
        let mut runs = enough.first();
        loop {
            let next = enough.next(runs);
            // This number of runs was found insufficient before, so the check is not repeated.
            if runs < least
                && let Some(next) = next
            {
                runs = next;
                continue;
            }
            let (mut missing, mut values) = (Vec::new(), Vec::new());
            for (key, address) in self.addresses(point, runs) {
                match self.has(store, point, key, &address) {
                    true => values.extend(store.figure(&address, &enough.metric)),
                    false => missing.push(key),
                }
            }
            if !missing.is_empty() {
                return Standing { runs, complete: false, met: None, missing };
            }
            let met = enough.is_met(&values);
            match next.filter(|_| !met) {
                Some(next) => runs = next,
                None => return Standing { runs, complete: true, met: Some(met), missing },
            }
        }
    }

    /// Checks that the runs of a point have the metric of the stopping rule.
    ///
    /// # Errors
    /// [`Error::Impossible`] if none of the finished runs has it.
    pub(crate) fn check_metric(&self, point: &Point, store: &Store) -> Result<(), Error> {
        let Runs::Enough(enough) = &self.spec().runs else { return Ok(()) };
        let addresses = self.addresses(point, enough.first());
        let schemas: Vec<_> = addresses.filter_map(|(_, address)| store.schema(&address)).collect();
        let mut names = schemas.iter().flat_map(|schema| &schema.0).map(|(name, _)| name.as_str());
        if schemas.is_empty() || names.any(|name| name == enough.metric) {
            return Ok(());
        }
        Err(unknown_metric(
            &enough.metric,
            schemas.iter().flat_map(|schema| &schema.0).map(|(name, _)| name.as_str()),
        ))
    }

    /// The missing runs of a point that belong to this shard. With a fixed number of runs, a shard
    /// gets every n-th run. With a stopping rule it gets every n-th point, because the runs of a
    /// point determine how many there are.
    pub fn due(&self, point: &Point, store: &Store, shard: Shard) -> Vec<RunKey> {
        self.due_from(point, store, shard, 0)
    }

    /// As [`Self::due`], for a point that is known to need at least `least` runs per seed.
    pub(crate) fn due_from(&self, point: &Point, store: &Store, shard: Shard, least: u64) -> Vec<RunKey> {
        let whole_points = matches!(self.spec().runs, Runs::Enough(_));
        if whole_points && !shard.has(point.index as u64) {
            return Vec::new();
        }
        let Standing { runs, mut missing, .. } = self.standing_from(point, store, least);
        if !whole_points {
            let first = point.index as u64 * self.seeds().len() as u64 * runs;
            // Position of the run in the whole sweep; shards take positions in turn.
            let place = |key: &RunKey| {
                let seed = self.seeds().iter().position(|seed| *seed == key.seed).unwrap_or(0) as u64;
                first + seed * runs + key.run
            };
            missing.retain(|key| shard.has(place(key)));
        }
        missing
    }

    /// All runs that are due now, as jobs with a limited number of runs of one point each. With a
    /// stopping rule, more runs may be due after these are done: call this again until it returns
    /// nothing.
    ///
    /// # Errors
    /// As [`Job::new`].
    pub fn jobs(
        &self,
        points: &[Point],
        store: &Store,
        shard: Shard,
        most: usize,
    ) -> Result<Vec<Job>, Error> {
        let mut jobs = Vec::new();
        for point in points {
            for runs in self.due(point, store, shard).chunks(most.max(1)) {
                jobs.push(Job::new(self, point, runs.to_vec())?);
            }
        }
        Ok(jobs)
    }

    /// The store addresses of the runs of a point, in order, with `each` runs per seed.
    pub fn addresses<'s>(
        &'s self,
        point: &'s Point,
        each: u64,
    ) -> impl Iterator<Item = (RunKey, Address)> + 's {
        self.runs(each).map(|key| (key, point.root.run(key.seed, key.run)))
    }
}
