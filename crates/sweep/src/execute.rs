//! All runs of a sweep that are not done yet, on all cores.

use std::fmt;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::available_parallelism;
use std::time::Duration;

use rayon::{Scope, ThreadPool, ThreadPoolBuilder};

use crate::address::RunKey;
use crate::clock::{self, Began};
use crate::error::Error;
use crate::job::Job;
use crate::plan::Shard;
use crate::points::{Point, Sweep};
use crate::row::{Row, Schema};
use crate::spec::Runs;
use crate::store::Store;

/// How a sweep is executed. None of it alters a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Runs at the same time: see [`pool`].
    pub threads: usize,
    /// Which part of it.
    pub shard: Shard,
}

impl Default for Options {
    fn default() -> Self {
        Self { threads: 0, shard: Shard::ALL }
    }
}

/// What whoever waits may look at and do meanwhile, from any thread.
#[derive(Default)]
pub struct Watch<'w> {
    /// Set it, and the sweep stops soon: runs that are under way are given up, what is done is
    /// kept.
    pub cancel: AtomicBool,
    /// Runs that are to be made, as far as is known by now; it grows where one more look shows that
    /// a point needs more.
    pub total: AtomicU64,
    /// Runs that have been made.
    pub made: AtomicU64,
    /// Called after every run that was made, by any thread.
    pub each: Option<&'w (dyn Fn() + Sync)>,
}

impl fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cancel, total, made, .. } = self;
        let mut watch = f.debug_struct("Watch");
        watch.field("cancel", cancel).field("total", total).field("made", made).finish_non_exhaustive()
    }
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Runs that were made.
    pub made: u64,
    /// Somebody has stopped it.
    pub cancelled: bool,
    /// Processor time of the runs themselves.
    pub runs: Duration,
    /// Processor time of the process meanwhile.
    pub process: Duration,
    /// Time that went by meanwhile.
    pub wall: Duration,
    /// What of that the threads together had to wait for a core that some other program had.
    pub waited: Duration,
    /// Runs that could be under way at the same time.
    pub threads: usize,
}

impl Outcome {
    /// Processor time beside the runs, as a share of theirs.
    pub fn overhead(&self) -> f64 {
        self.process.saturating_sub(self.runs).as_secs_f64() / self.runs.as_secs_f64().max(1e-9)
    }

    /// Share of the time of all threads in which runs were under way, of that which other programs
    /// left them.
    pub fn busy(&self) -> f64 {
        let left = self.wall.as_secs_f64() * self.threads as f64 - self.waited.as_secs_f64();
        self.runs.as_secs_f64() / left.max(1e-9)
    }
}

/// Rows wait so long for others that can be written with them, and a row whose run took longer
/// waits for none: what a kill can take is less than that much work of each core, beside the runs
/// that are under way.
const GATHER: Duration = Duration::from_millis(20);
/// Rows that wait, at most.
const GATHERED: usize = 4_096;
/// How often the disk is waited for: what the death of the machine, not of the process, can take.
const SYNC: Duration = Duration::from_secs(5);

/// A pool of `threads` threads, at most one per core, since runs only compute. 0 means one per
/// core, or the value of `RAYON_NUM_THREADS`.
///
/// # Errors
/// The machine has no room for them.
pub fn pool(threads: usize) -> Result<ThreadPool, Error> {
    let threads = threads.min(available_parallelism().map_or(1, NonZero::get));
    let pool = ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("sweep {i}")).build();
    pool.map_err(|error| Error::Impossible {
        message: format!("cannot start threads: {error}"),
        hint: "take fewer with --jobs".to_owned(),
    })
}

/// Makes all runs of a shard that are not done, of points that [`Sweep::all_points`] has made, and
/// adds their rows to the store.
///
/// # Errors
/// The first thing that was wrong; rows that were made before are kept.
pub fn execute(
    sweep: &Sweep,
    points: &[Point],
    store: &mut Store,
    options: Options,
    watch: &Watch<'_>,
) -> Result<Outcome, Error> {
    let pool = pool(options.threads)?;
    let waiting = || pool.broadcast(|_| clock::thread_waited()).into_iter().sum::<Duration>();
    let (waited, began, processor) = (waiting(), Began::now(), clock::process());
    let runs = pool.install(|| execute_here(sweep, points, store, options.shard, watch))?;
    Ok(Outcome {
        made: watch.made.load(Ordering::Relaxed),
        cancelled: watch.cancel.load(Ordering::Relaxed),
        runs,
        process: clock::process().saturating_sub(processor),
        wall: began.elapsed(),
        waited: waiting().saturating_sub(waited),
        threads: pool.current_num_threads(),
    })
}

/// As [`execute`], on the threads of the pool that this is called in. Returns the processor time of
/// the runs.
///
/// # Errors
/// As [`execute`].
pub fn execute_here(
    sweep: &Sweep,
    points: &[Point],
    store: &mut Store,
    shard: Shard,
    watch: &Watch<'_>,
) -> Result<Duration, Error> {
    let work = Work {
        sweep,
        shard,
        watch,
        sink: Mutex::new(Sink { store, waiting: Vec::new(), written: Began::now(), synced: Began::now() }),
        error: Mutex::new(None),
        processor: AtomicU64::new(0),
    };
    rayon::in_place_scope(|scope| {
        for point in points {
            work.begin(scope, point, 0);
        }
    });
    let written = work.sink().finish();
    if let Some(error) = lock(&work.error).take() {
        return Err(error);
    }
    written?;
    Ok(Duration::from_nanos(work.processor.load(Ordering::Relaxed)))
}

/// As [`execute_here`], one run after another on this thread: what a few short runs take is less
/// than what a pool does. `look` is called between slices of a run, and may set [`Watch::cancel`].
///
/// # Errors
/// As [`execute`].
pub fn execute_alone(
    sweep: &Sweep,
    points: &[Point],
    store: &mut Store,
    shard: Shard,
    watch: &Watch<'_>,
    look: &dyn Fn(),
) -> Result<(), Error> {
    let is_over = || {
        look();
        watch.cancel.load(Ordering::Relaxed)
    };
    for point in points {
        let mut schema: Option<Arc<Schema>> = None;
        loop {
            let due = sweep.due(point, store, shard);
            if due.is_empty() {
                break;
            }
            watch.total.fetch_add(due.len() as u64, Ordering::Relaxed);
            let job = Job::new(sweep, point, due)?;
            for &key in &job.runs {
                let Some(row) = job.run_one(key, schema.as_ref(), &is_over)? else {
                    return store.sync();
                };
                schema = Some(row.schema.clone());
                store.append(std::slice::from_ref(&row))?;
                watch.made.fetch_add(1, Ordering::Relaxed);
                if let Some(told) = watch.each {
                    told();
                }
            }
            sweep.check_metric(point, store)?;
        }
    }
    store.sync()
}

/// What all threads share.
struct Work<'w> {
    sweep: &'w Sweep,
    shard: Shard,
    watch: &'w Watch<'w>,
    sink: Mutex<Sink<'w>>,
    error: Mutex<Option<Error>>,
    /// Nanoseconds of the runs.
    processor: AtomicU64,
}

/// Runs of a point after which one looks at it again.
struct Stage {
    job: Job,
    left: AtomicUsize,
    schema: OnceLock<Arc<Schema>>,
}

impl<'w> Work<'w> {
    /// Lets the runs of a point begin that are due now. It needs at least so many of each seed.
    fn begin<'s>(&'s self, scope: &Scope<'s>, point: &'s Point, least: u64)
    where
        'w: 's,
    {
        let due = self.sweep.due_from(point, self.sink().store, self.shard, least);
        if due.is_empty() {
            return;
        }
        self.watch.total.fetch_add(due.len() as u64, Ordering::Relaxed);
        scope.spawn(move |scope| {
            if self.is_over() {
                return;
            }
            let grows = matches!(self.sweep.spec().runs, Runs::Enough(_));
            let left = AtomicUsize::new(due.len());
            let stage = match Job::new(self.sweep, point, due) {
                Ok(job) => Arc::new(Stage { job, left, schema: OnceLock::new() }),
                Err(error) => return self.fail(error),
            };
            for &key in &stage.job.runs {
                let stage = stage.clone();
                scope.spawn(move |scope| {
                    let done = self.make(&stage, key);
                    if stage.left.fetch_sub(1, Ordering::AcqRel) == 1 && done && grows {
                        let least = stage.job.runs.last().map_or(0, |key| key.run + 1);
                        self.look(scope, point, least);
                    }
                });
            }
        });
    }

    /// Makes one run; false if all is over.
    fn make(&self, stage: &Stage, key: RunKey) -> bool {
        if self.is_over() {
            return false;
        }
        let began = clock::thread();
        let made = stage.job.run_one(key, stage.schema.get(), &|| self.is_over());
        let took = clock::thread().saturating_sub(began);
        self.processor.fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
        let row = match made {
            Ok(Some(row)) => row,
            Ok(None) => return false,
            Err(error) => {
                self.fail(error);
                return false;
            }
        };
        let _ = stage.schema.set(row.schema.clone());
        if let Err(error) = self.sink().put(row, took) {
            self.fail(error);
            return false;
        }
        self.watch.made.fetch_add(1, Ordering::Relaxed);
        if let Some(told) = self.watch.each {
            told();
        }
        true
    }

    /// The runs of a point are there that were due: perhaps there are more.
    fn look<'s>(&'s self, scope: &Scope<'s>, point: &'s Point, least: u64)
    where
        'w: 's,
    {
        let written = {
            let mut sink = self.sink();
            sink.write().and_then(|()| self.sweep.check_metric(point, sink.store))
        };
        match written {
            Ok(()) => self.begin(scope, point, least),
            Err(error) => self.fail(error),
        }
    }

    fn is_over(&self) -> bool {
        self.watch.cancel.load(Ordering::Relaxed)
    }

    /// The first error counts, and ends all.
    fn fail(&self, error: Error) {
        lock(&self.error).get_or_insert(error);
        self.watch.cancel.store(true, Ordering::Relaxed);
    }

    fn sink(&self) -> MutexGuard<'_, Sink<'w>> {
        lock(&self.sink)
    }
}

/// A lock. Whoever has panicked while holding it has left nothing half-done: rows are either
/// waiting or written.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Rows on their way into the store.
struct Sink<'s> {
    store: &'s mut Store,
    waiting: Vec<Row>,
    written: Began,
    synced: Began,
}

impl Sink<'_> {
    fn put(&mut self, row: Row, took: Duration) -> Result<(), Error> {
        self.waiting.push(row);
        if took < GATHER && self.written.elapsed() < GATHER && self.waiting.len() < GATHERED {
            return Ok(());
        }
        self.write()?;
        if self.synced.elapsed() >= SYNC {
            self.store.sync()?;
            self.synced = Began::now();
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), Error> {
        self.written = Began::now();
        let written = self.store.append(&self.waiting);
        self.waiting.clear();
        written
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.write()?;
        self.store.sync()
    }
}
