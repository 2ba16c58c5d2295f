//! Event logs and the pages that replay them: what the simulator knows, what the reader makes of
//! it, and what a browser shows.

mod damage;
mod faithful;
mod grid;
mod million;
mod page;
mod world;
