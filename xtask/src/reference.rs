//! Generates `docs/reference/scenario.md`: every key of scenario files, from the schema that the
//! program prints.
//!
//! The schema has types, doc comments and most defaults. The default of an optional key without a
//! default in the schema is read from the record of a run: the resolved value of a scenario that
//! does not set the key. So no type, meaning or default is written twice.
//!
//! Code map: [`words`] describes the type of a key, [`tables`] lays the tables out, [`fragments`]
//! has an example for each.

mod fragments;
mod tables;
mod words;

use crate::cargo;
use crate::failure::Failure;
use serde_json::Value;
use tables::Silent;

/// Returns the whole page.
///
/// # Errors
/// The program fails, or the page and the schema do not match.
pub(crate) fn page() -> Result<Vec<u8>, Failure> {
    let schema = parsed(cargo::manual(&["schema"]), "anabranch-manual schema")?;
    let disk = |set: &[&str]| resolved("disk", set);
    let silent = Silent {
        disk: disk(&[])?,
        fragments: disk(&["radio.forwarding=fragments"])?,
        oqpsk: resolved("log-distance", &["radio.phy=oqpsk-250k"])?,
        fsk: resolved("log-distance", &["radio.phy=fsk-100k"])?,
        wifi: resolved("wifi", &[])?,
        ns2: resolved("wifi", &["wifi.base=ns2", "aodv.base=ns2"])?,
        hosts: resolved("hosts", &[])?,
    };
    for (set, _) in tables::IMPLIED {
        if disk(&[set])? != silent.disk {
            return Err(Failure::Job(format!(
                "`{set}` is no default, though xtask/src/reference/tables.rs says so"
            )));
        }
    }
    tables::page(&schema, &silent).map(String::into_bytes).map_err(Failure::Job)
}

/// Runs the program with these arguments and parses its output.
fn json(args: &[&str]) -> Result<Value, Failure> {
    parsed(cargo::anabranch(args), &format!("anabranch {}", args.join(" ")))
}

fn parsed(command: std::process::Command, name: &str) -> Result<Value, Failure> {
    serde_json::from_slice(&cargo::output(command)?)
        .map_err(|error| Failure::Job(format!("`{name}` printed no JSON: {error}")))
}

/// Returns one of the scenarios beside this module with all defaults, from the record of a run.
fn resolved(name: &str, set: &[&str]) -> Result<Value, Failure> {
    let file = format!("xtask/src/reference/{name}.toml");
    let mut args = vec!["run", &file, "--json"];
    args.extend(set.iter().flat_map(|assignment| ["--set", assignment]));
    let mut record = json(&args)?;
    let resolved = record.get_mut("resolved").map(Value::take);
    resolved.ok_or_else(|| Failure::Job("the record of a run has no resolved scenario".to_owned()))
}
