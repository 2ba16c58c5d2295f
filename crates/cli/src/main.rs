//! The program `anabranch`.
fn main() {}
