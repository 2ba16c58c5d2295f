//! Tests of the program `anabranch` on the command line.

mod companion;
mod config;
mod deployed;
mod emulate;
mod emulate_dtc;
mod emulate_faults;
mod emulate_programs;
mod emulate_sensors;
mod emulation;
mod key;
mod packaging;
mod push;
mod replay;
mod run;
mod tune;
mod wireshark;
