//! `cargo xtask compare`: long forms of tests of anabranch-lab-cli and anabranch-cli. They compare our TCP with the
//! kernel's or with that of ns-3 over the same bottleneck or trace, our queues and radios with
//! those of ns-3, simulated pushes and sensors with deployed ones, and pushes with other tools.

use crate::cargo;
use crate::failure::Failure;
use std::path::Path;
use std::process::{Command, Stdio};

const USAGE: &str = "compare takes `linux|linux trace|ns3|ns3 radio|ns3 queues|ns3 arrivals|worlds|sensors|rivals [--quick] [--runs N] [--seconds N] [--at-once N] [--out FILE]`, with N above \
                     zero; `ns3 radio` also takes `--only hop|star|hidden|prr|dcf|dcf-hidden|aodv|mobility`, and `rivals` `--only standard|persistent` or the name of a recipe";

/// What our implementation is compared with.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Reference {
    Linux,
    /// The kernel's TCP over a trace.
    LinuxTrace,
    /// The TCP of ns-3.
    Ns3,
    /// The radios of ns-3.
    Ns3Radio,
    /// The queue discs of ns-3, with each simulator's own TCP.
    Ns3Queues,
    /// The queue discs of ns-3, with the same packet arrivals.
    Ns3Arrivals,
    /// The deployed programs.
    Worlds,
    /// `sense` and `sink`.
    Sensors,
    /// Other tools, beside the deployed programs.
    Rivals,
}

impl Reference {
    /// Parses the first words; returns the reference and the words after them.
    fn named(args: &[String]) -> Option<(Self, &[String])> {
        let (name, rest) = args.split_first()?;
        match (name.as_str(), rest.split_first()) {
            ("linux", Some((trace, rest))) if trace == "trace" => Some((Self::LinuxTrace, rest)),
            ("linux", _) => Some((Self::Linux, rest)),
            ("ns3", Some((radio, rest))) if radio == "radio" => Some((Self::Ns3Radio, rest)),
            ("ns3", Some((queues, rest))) if queues == "queues" => Some((Self::Ns3Queues, rest)),
            ("ns3", Some((arrivals, rest))) if arrivals == "arrivals" => Some((Self::Ns3Arrivals, rest)),
            ("ns3", _) => Some((Self::Ns3, rest)),
            ("worlds", _) => Some((Self::Worlds, rest)),
            ("sensors", _) => Some((Self::Sensors, rest)),
            ("rivals", _) => Some((Self::Rivals, rest)),
            _ => None,
        }
    }

    /// Part of a test's name that no other test's name contains.
    fn test(self) -> &'static str {
        match self {
            Self::Linux => "compare::our_tcp_does_as_linux",
            Self::LinuxTrace => "compare::trace::our_tcp_does_as_linux",
            Self::Ns3 => "compare::our_tcp_does_as_ns3",
            Self::Ns3Radio => "compare::radio::our_radio_does_as_ns3",
            Self::Ns3Queues => "compare::aqm::our_queues_do_as_ns3",
            Self::Ns3Arrivals => "compare::arrivals::our_queues_do_with_the_same_packets",
            Self::Worlds => "compare::worlds::a_push_takes_as_long",
            Self::Sensors => "emulate_sensors::sensors_deliver",
            Self::Rivals => "compare::rivals::tools_of_today_move_a_file",
        }
    }

    /// Packages of the test and of the programs that it runs.
    fn packages(self) -> &'static [&'static str] {
        match self {
            Self::Sensors => &["--package", "anabranch-cli", "--package", "anabranch-deploy"],
            _ => &["--package", "anabranch-lab-cli"],
        }
    }

    /// Parts that `--only` selects.
    fn parts(self) -> &'static [&'static str] {
        match self {
            Self::Ns3Radio => &["hop", "star", "hidden", "prr", "dcf", "dcf-hidden", "aodv", "mobility"],
            Self::Rivals => &[
                "standard",
                "persistent",
                "set",
                "set-1",
                "set-turns",
                "set-predictive",
                "http",
                "coap-put",
                "coap-get",
                "q-block-put",
                "q-block-get",
                "smp",
                "tftp-1",
                "tftp-4",
            ],
            _ => &[],
        }
    }

    /// What this machine or user lacks for the comparison.
    fn missing(self) -> Option<&'static str> {
        match self {
            Self::Linux | Self::LinuxTrace | Self::Worlds | Self::Sensors | Self::Rivals if !is_root() => {
                Some("network namespaces need root")
            }
            Self::Linux | Self::LinuxTrace | Self::Worlds | Self::Sensors | Self::Rivals
                if !Path::new("/dev/net/tun").exists() =>
            {
                Some("there is no /dev/net/tun")
            }
            Self::Ns3 | Self::Ns3Radio | Self::Ns3Queues | Self::Ns3Arrivals
                if !Path::new("/usr/include/ns3/internet-module.h").exists() =>
            {
                Some("there is no ns-3: apt-get install libns3-dev")
            }
            Self::Ns3 | Self::Ns3Radio | Self::Ns3Queues | Self::Ns3Arrivals
                if Command::new("g++").arg("--version").output().is_err() =>
            {
                Some("there is no C++ compiler: apt-get install g++")
            }
            _ => None,
        }
    }
}

/// Runs `compare REFERENCE [OPTIONS]`.
pub(crate) fn command(args: &[String]) -> Result<(), Failure> {
    let Some((reference, variables)) = read(args) else { return Err(Failure::Usage(USAGE.into())) };
    if let Some(what) = reference.missing() {
        return Err(Failure::Missing(format!("{what}: nothing is compared")));
    }
    let mut command = cargo::command(&["test", "--locked"]);
    command.args(reference.packages()).args(["--test", "it", reference.test(), "--", "--nocapture"]);
    command.env("ANABRANCH_COMPARE_COMMAND", format!("cargo xtask compare {}", args.join(" ")));
    for (name, value) in variables {
        // Make the path absolute: the test runs in another folder.
        let value = if name == OUT { absolute(&value)? } else { value };
        command.env(name, value);
    }
    cargo::run(command)
}

const OUT: &str = "ANABRANCH_COMPARE_OUT";
const ONLY: &str = "ANABRANCH_COMPARE_ONLY";

/// Environment variables of the test, by name.
type Variables = Vec<(&'static str, String)>;

/// Parses the arguments into the reference and the variables for its test; `None` if they are
/// invalid.
fn read(args: &[String]) -> Option<(Reference, Variables)> {
    let (reference, mut rest) = Reference::named(args)?;
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
            "--only" => ONLY,
            _ => return None,
        };
        if name == ONLY && !reference.parts().contains(&value.as_str()) {
            return None;
        }
        if ![OUT, ONLY].contains(&name) && value.parse::<u32>().ok()? == 0 {
            return None;
        }
        variables.push((name, value.clone()));
        rest = after;
    }
    variables.push(("ANABRANCH_COMPARE", size.into()));
    Some((reference, variables))
}

fn absolute(path: &str) -> Result<String, Failure> {
    let path = std::path::absolute(path)
        .map_err(|error| Failure::Job(format!("cannot tell the current folder: {error}")))?;
    Ok(path.display().to_string())
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").stderr(Stdio::null()).output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Option<(Reference, Variables)> {
        read(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn options_become_variables() {
        let whole = vec![("ANABRANCH_COMPARE", "whole".into())];
        assert_eq!(words(&["linux"]), Some((Reference::Linux, whole.clone())));
        assert_eq!(words(&["linux", "trace"]), Some((Reference::LinuxTrace, whole.clone())));
        assert_eq!(words(&["ns3"]), Some((Reference::Ns3, whole)));
        let expected = vec![
            ("ANABRANCH_COMPARE_RUNS", "2".into()),
            (OUT, "table.md".into()),
            ("ANABRANCH_COMPARE", "quick".into()),
        ];
        for (name, reference) in [("linux", Reference::Linux), ("ns3", Reference::Ns3)] {
            let read = words(&[name, "--quick", "--runs", "2", "--out", "table.md"]);
            assert_eq!(read, Some((reference, expected.clone())));
        }
        let star =
            vec![(ONLY, "star".into()), (OUT, "radio.md".into()), ("ANABRANCH_COMPARE", "whole".into())];
        let read = words(&["ns3", "radio", "--only", "star", "--out", "radio.md"]);
        assert_eq!(read, Some((Reference::Ns3Radio, star)));
        let queues = words(&["ns3", "queues"]).map(|(reference, _)| reference.test());
        assert_eq!(queues, Some("compare::aqm::our_queues_do_as_ns3"));
        let arrivals = words(&["ns3", "arrivals"]).map(|(reference, _)| reference.test());
        assert_eq!(arrivals, Some("compare::arrivals::our_queues_do_with_the_same_packets"));
        assert_eq!(words(&["worlds"]).map(|(reference, _)| reference), Some(Reference::Worlds));
        assert_eq!(words(&["sensors"]).map(|(reference, _)| reference), Some(Reference::Sensors));
        assert_eq!(words(&["ns3", "queue"]), None);
        for bad in [
            &[][..],
            &["bsd"],
            &["linux", "--runs"],
            &["linux", "--runs", "0"],
            &["linux", "quick", "1"],
            &["linux", "radio"],
            &["ns3", "--only", "star"],
            &["ns3", "radio", "--only", "token-ring"],
        ] {
            assert_eq!(words(bad), None, "{bad:?}");
        }
    }
}
