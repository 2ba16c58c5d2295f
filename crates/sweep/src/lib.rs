//! Many runs of a scenario or of an experiment: which ones, what is done already, all cores, and
//! tables of what they said. This crate never decides anything about a network or a protocol, and
//! what a row says never depends on how many threads, processes or machines made it, in which
//! order, or how often they were killed.
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
//! Past one machine, a driver has the spec and the store, and workers have neither: [`Sweep::jobs`]
//! are the [`Job`]s that are due, each complete in itself; a worker makes it with
//! [`Job::from_json`] and [`Job::run`] and sends its rows ([`row::to_bytes`]) back to
//! [`Store::append`]. A job that was lost is due again, and one that was made twice makes the same
//! rows.
//!
//! Code map: [`spec`] is what is asked for, [`points`] what it makes of the scenario or the
//! [`experiment`]; [`address`] names a run by what it depends on; [`row`] is what a run says and
//! [`store`] keeps it; [`plan`] says what is due, and [`enough`] when a point has enough runs;
//! [`job`] is runs that can be sent away, [`execute`](mod@execute) makes them on all cores; `table`
//! is the only module that knows Arrow, Parquet and CSV, and `series` writes time series of runs
//! with it. They are there with the feature `tables`, which is on by default.

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
