//! The deployed programs as processes of their own, over the kernel's sockets.

mod capacity;
mod deployed;
mod elsewhere;
mod embedded;
mod faults;
mod programs;
mod unread;
