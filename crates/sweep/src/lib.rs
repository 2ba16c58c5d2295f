//! Sweeps: many runs of a scenario or an experiment. The crate determines the runs, skips those
//! that are done, uses all cores, and writes the results as tables.
//!
//! It does not model networks or protocols. The content of a row never depends on the number of
//! threads, processes or machines, on the order of runs, or on interruptions.
//!
//! ```
//! use anabranch_sweep::{Options, Spec, Store, Sweep, Table, Watch, execute};
//! # let folder = tempfile::tempdir().unwrap();
//! # let place = folder.path();
//! let network = r#"
//!     node = [{ name = "a" }, { name = "b" }]
//!     link = [{ name = "cable", from = "a", to = "b", rate = "1 Mbit/s", delay = "5 ms" }]
//!     transfer = [{ name = "file", kind = "tcp", from = "a", to = "b", bytes = "20 kB" }]
//! "#;
//! std::fs::write(place.join("network.toml"), network).unwrap();
//! let spec = r#"
//!     scenario = "network.toml"
//!     runs = 3
//!     [grid]
//!     "link.cable.loss" = [0.0, 0.02]
//! "#;
//! let sweep = Sweep::new(Spec::parse("losses.toml", spec, place, &[])?)?;
//! let mut store = Store::open(place.join("losses"))?;
//! let points = sweep.all_points()?;
//! execute(&sweep, &points, &mut store, Options::default(), &Watch::default())?;
//! let table = Table::new(&sweep, &points, &store)?;
//! assert_eq!((table.len(), table.missing()), (6, 0));
//! # Ok::<(), anabranch_sweep::Error>(())
//! ```
//!
//! To distribute runs over machines, a driver holds the spec and the store; workers need neither.
//! [`Sweep::jobs`] returns the [`Job`]s that are due, each self-contained. A worker executes one
//! with [`Job::from_json`] and [`Job::run`] and sends its rows ([`row::to_bytes`]) back for
//! [`Store::append`]. A lost job is due again, and executing a job twice yields the same rows.
//!
//! | module | content |
//! | --- | --- |
//! | [`spec`] | the specification of a sweep |
//! | [`points`] | the points of a spec: its effect on the scenario or the [`experiment`] |
//! | [`address`] | the identity of a run |
//! | [`row`], [`store`] | the result of a run, and its storage |
//! | [`plan`], [`enough`] | which runs are due, and when a point has enough runs |
//! | [`job`], [`execute`](mod@execute) | runs for other processes, and execution on all cores |
//! | `table`, `series` | tables and time series of runs (feature `tables`, on by default) |
//!
//! Only `table` depends on Arrow, Parquet and CSV; `series` writes its files through it.

#![forbid(unsafe_code)]

pub mod address;
mod clock;
pub mod enough;
pub mod error;
pub mod execute;
pub mod experiment;
pub mod job;
pub mod plan;
pub mod points;
pub mod row;
#[cfg(feature = "tables")]
pub mod series;
pub mod spec;
pub mod store;
#[cfg(feature = "tables")]
pub mod table;
mod task;

pub use address::{Address, VERSION};
pub use error::Error;
pub use execute::{Options, Outcome, Watch, execute, execute_alone, execute_here, pool};
pub use job::Job;
pub use plan::Shard;
pub use points::{FEW, Point, Sweep};
pub use row::Row;
pub use spec::Spec;
pub use store::Store;
#[cfg(feature = "tables")]
pub use table::Table;
