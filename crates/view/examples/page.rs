//! Makes a page of an event log: `cargo run --example page -- in.ablog out.html`.

use std::fs::{self, File};
use std::io::BufReader;

use anabranch_view::page;
use anabranch_view::replay::{Part, Replay};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let [log, out] = paths.as_slice() else { return Err("name a log and a page".into()) };
    let replay = Replay::read(BufReader::new(File::open(log)?), Part::default())?;
    fs::write(out, page::html(&replay))?;
    Ok(())
}
