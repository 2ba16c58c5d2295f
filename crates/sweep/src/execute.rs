//! Executes all missing runs of a sweep on all cores.

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

/// Options of the execution. They do not affect results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Number of simultaneous runs: see [`pool`].
    pub threads: usize,
    /// The part of the sweep to execute.
    pub shard: Shard,
}

impl Default for Options {
    fn default() -> Self {
        Self { threads: 0, shard: Shard::ALL }
    }
}

/// Progress of a sweep and its cancellation, shared between threads.
#[derive(Default)]
pub struct Watch<'w> {
    /// Set this flag to stop the sweep soon. Runs in progress are abandoned; finished runs are
    /// kept.
    pub cancel: AtomicBool,
    /// Number of runs to execute, as far as known. It grows when a check shows that a point needs
    /// more runs.
    pub total: AtomicU64,
    /// Number of runs executed.
    pub made: AtomicU64,
    /// Called after every run, from any thread.
    pub each: Option<&'w (dyn Fn() + Sync)>,
}

impl fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cancel, total, made, .. } = self;
        let mut watch = f.debug_struct("Watch");
        watch.field("cancel", cancel).field("total", total).field("made", made).finish_non_exhaustive()
    }
}

/// Result and statistics of an execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Number of runs executed.
    pub made: u64,
    /// True if the execution was cancelled.
    pub cancelled: bool,
    /// Processor time of the runs.
    pub runs: Duration,
    /// Processor time of the whole process meanwhile.
    pub process: Duration,
    /// Elapsed real time.
    pub wall: Duration,
    /// Time that the threads together waited for cores used by other programs.
    pub waited: Duration,
    /// Number of threads.
    pub threads: usize,
}

impl Outcome {
    /// Processor time outside of runs, as a fraction of the processor time of runs.
    pub fn overhead(&self) -> f64 {
        self.process.saturating_sub(self.runs).as_secs_f64() / self.runs.as_secs_f64().max(1e-9)
    }

    /// Fraction of the available time of all threads that runs used. Time that other programs used
    /// does not count as available.
    pub fn busy(&self) -> f64 {
        let left = self.wall.as_secs_f64() * self.threads as f64 - self.waited.as_secs_f64();
        self.runs.as_secs_f64() / left.max(1e-9)
    }
}

/// Time that rows wait to be written together with others. A row whose run took longer is written
/// at once. Killing the process therefore loses less than this much work per core, plus the runs in
/// progress.
const GATHER: Duration = Duration::from_millis(20);
/// Upper limit of waiting rows.
const GATHERED: usize = 4_096;
/// Interval of syncs to the disk, which limits the loss if the machine fails, not just the process.
const SYNC: Duration = Duration::from_secs(5);

/// Creates a pool of `threads` threads, at most one per core, since runs only compute. 0 means one
/// per core, or the value of `RAYON_NUM_THREADS`.
///
/// # Errors
/// The machine cannot start the threads.
pub fn pool(threads: usize) -> Result<ThreadPool, Error> {
    let threads = threads.min(available_parallelism().map_or(1, NonZero::get));
    let pool = ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("sweep {i}")).build();
    pool.map_err(|error| Error::Impossible {
        message: format!("cannot start threads: {error}"),
        hint: "take fewer with --jobs".to_owned(),
    })
}

/// Executes all missing runs of a shard and adds their rows to the store. `points` come from
/// [`Sweep::all_points`].
///
/// # Errors
/// The first error; rows written before it are kept.
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

/// As [`execute`], on the threads of the current pool. Returns the processor time of the runs.
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

/// As [`execute_here`], but runs follow each other on this thread, because a few short runs cost
/// less than starting a pool. `look` is called between slices of a run and may set
/// [`Watch::cancel`].
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

/// State shared by all threads.
struct Work<'w> {
    sweep: &'w Sweep,
    shard: Shard,
    watch: &'w Watch<'w>,
    sink: Mutex<Sink<'w>>,
    error: Mutex<Option<Error>>,
    /// Processor time of the runs in ns.
    processor: AtomicU64,
}

/// Runs of a point up to its next check.
struct Stage {
    job: Job,
    left: AtomicUsize,
    schema: OnceLock<Arc<Schema>>,
}

impl<'w> Work<'w> {
    /// Starts the runs of a point that are due now. The point is known to need at least `least`
    /// runs per seed.
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

    /// Executes one run. Returns false if the execution has stopped.
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
        // Later runs of the point share the first schema.
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

    /// Checks a point after its due runs are finished, and starts more if it needs them.
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

    /// Stores the first error and stops the execution.
    fn fail(&self, error: Error) {
        lock(&self.error).get_or_insert(error);
        self.watch.cancel.store(true, Ordering::Relaxed);
    }

    fn sink(&self) -> MutexGuard<'_, Sink<'w>> {
        lock(&self.sink)
    }
}

/// Locks a mutex. Poisoning is ignored, since a panic leaves no inconsistent state: each row is
/// either waiting or written.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Rows that wait to be written to the store.
struct Sink<'s> {
    store: &'s mut Store,
    waiting: Vec<Row>,
    written: Began,
    synced: Began,
}

impl Sink<'_> {
    fn put(&mut self, row: Row, took: Duration) -> Result<(), Error> {
        self.waiting.push(row);
        // A write per row would dominate short runs. See [`GATHER`] for what a kill can lose.
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
