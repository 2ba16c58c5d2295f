//! The program `anabranch` as a shell sees it.

mod companion;
mod config;
mod deployed;
mod emulate;
mod emulate_dtc;
mod emulation;
mod key;
mod packaging;
mod push;
mod replay;
mod run;
mod wireshark;
