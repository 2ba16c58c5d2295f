//! Tests of the deployed programs as separate processes over kernel sockets.

mod capacity;
mod deployed;
mod elsewhere;
mod embedded;
mod faults;
mod programs;
mod sense;
mod sense_in_c;
mod tune;
mod unread;
