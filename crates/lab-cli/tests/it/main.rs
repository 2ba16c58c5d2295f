//! Tests of the program `anabranch-lab` on the command line, and of everything that the
//! documentation shows.

mod compare;
mod completions;
mod docs;
mod lab;
mod own_protocol;
mod plan;
mod plan_mptcp;
mod plan_sockbuf;
mod robustness;
mod sweep;
