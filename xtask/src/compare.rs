//! `cargo xtask compare linux`: our TCP and the kernel's over the same bottleneck, in the long form of a test of
//! anabranch-lab-cli.

use crate::cargo;
use crate::failure::Failure;
use std::path::Path;
use std::process::{Command, Stdio};

const USAGE: &str =
    "compare takes `linux [--quick] [--runs N] [--seconds N] [--at-once N] [--out FILE]`, with N above zero";

/// `compare linux [OPTIONS]`.
pub(crate) fn command(args: &[String]) -> Result<(), Failure> {
    let Some(variables) = variables(args) else { return Err(Failure::Usage(USAGE.into())) };
    if let Some(what) = missing() {
        return Err(Failure::Missing(format!("{what}: nothing is compared")));
    }
    let mut command =
        cargo::command(&["test", "--locked", "--package", "anabranch-lab-cli", "--test", "it", "compare::"]);
    command.args(["--", "--nocapture"]);
    command.env("ANABRANCH_COMPARE_COMMAND", format!("cargo xtask compare {}", args.join(" ")));
    for (name, value) in variables {
        // Paths count from the folder that xtask was started in; the test runs in another.
        let value = if name == OUT { absolute(&value)? } else { value };
        command.env(name, value);
    }
    cargo::run(command)
}

const OUT: &str = "ANABRANCH_COMPARE_OUT";

/// What the test reads; `None` if the arguments make no sense.
fn variables(args: &[String]) -> Option<Vec<(&'static str, String)>> {
    let (subject, mut rest) = args.split_first()?;
    if subject != "linux" {
        return None;
    }
    let mut size = "whole";
    let mut variables = Vec::new();
    while let Some((option, after)) = rest.split_first() {
        if option == "--quick" {
            (size, rest) = ("quick", after);
            continue;
        }
        let (value, after) = after.split_first()?;
        let name = match option.as_str() {
            "--runs" => "ANABRANCH_COMPARE_RUNS",
            "--seconds" => "ANABRANCH_COMPARE_SECONDS",
            "--at-once" => "ANABRANCH_COMPARE_AT_ONCE",
            "--out" => OUT,
            _ => return None,
        };
        if name != OUT && value.parse::<u32>().ok()? == 0 {
            return None;
        }
        variables.push((name, value.clone()));
        rest = after;
    }
    variables.push(("ANABRANCH_COMPARE", size.into()));
    Some(variables)
}

fn absolute(path: &str) -> Result<String, Failure> {
    let path = std::path::absolute(path)
        .map_err(|error| Failure::Job(format!("cannot tell the current folder: {error}")))?;
    Ok(path.display().to_string())
}

/// What the kernel or the user lacks for network namespaces and TUN devices.
fn missing() -> Option<String> {
    let id = Command::new("id").arg("-u").stderr(Stdio::null()).output().ok()?;
    if id.stdout.trim_ascii() != b"0" {
        return Some("network namespaces need root".into());
    }
    (!Path::new("/dev/net/tun").exists()).then(|| "there is no /dev/net/tun".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Option<Vec<(&'static str, String)>> {
        variables(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn options_become_variables() {
        assert_eq!(read(&["linux"]), Some(vec![("ANABRANCH_COMPARE", "whole".into())]));
        let expected = vec![
            ("ANABRANCH_COMPARE_RUNS", "2".into()),
            (OUT, "table.md".into()),
            ("ANABRANCH_COMPARE", "quick".into()),
        ];
        assert_eq!(read(&["linux", "--quick", "--runs", "2", "--out", "table.md"]), Some(expected));
        for bad in
            [&[][..], &["bsd"], &["linux", "--runs"], &["linux", "--runs", "0"], &["linux", "quick", "1"]]
        {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }
}
