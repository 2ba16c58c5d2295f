//! Tests of event logs and replay pages: the simulator's knowledge, the reader's result, and what a
//! browser shows.

mod damage;
mod faithful;
mod grid;
mod million;
mod page;
mod world;
