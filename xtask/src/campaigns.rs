//! `cargo xtask campaign NAME`: long runs that search for a bad case.
//!
//! Campaigns with processes are long forms of tests, which [`CAMPAIGNS`] lists. Simulated ones are
//! in the example `campaign` of anabranch-campaign.

use crate::cargo;
use crate::failure::{Failure, numbers};
use crate::load;

/// Tests of a package whose names begin with a prefix.
struct Tests {
    package: &'static str,
    /// Test target of the package.
    target: &'static str,
    prefix: &'static str,
}

/// Long forms of tests.
struct Campaign {
    name: &'static str,
    /// Options with a number. `--at-once` sets the variable `ANABRANCH_<about>_AT_ONCE`.
    options: &'static [&'static str],
    about: &'static str,
    /// Variables, without `ANABRANCH_`, that make the tests long; options override them.
    long: &'static [(&'static str, u64)],
    profile: &'static [&'static str],
    /// Whether the tests measure, so that each one runs alone.
    alone: bool,
    /// In the order in which they run.
    tests: &'static [Tests],
}

const fn it(package: &'static str, prefix: &'static str) -> Tests {
    Tests { package, target: "it", prefix }
}

const CAMPAIGNS: [Campaign; 13] = [
    Campaign {
        name: "deployed-faults",
        options: &["--runs", "--first", "--seed", "--at-once"],
        about: "FAULTS",
        long: &[("FAULTS_RUNS", 500)],
        profile: &[],
        alone: false,
        tests: &[it("anabranch-deploy", "faults::whatever")],
    },
    Campaign {
        name: "emulated-faults",
        options: &["--runs", "--first", "--seed", "--at-once"],
        about: "EMULATED_FAULTS",
        long: &[("EMULATED_FAULTS_RUNS", 50)],
        profile: &[],
        alone: false,
        tests: &[it("anabranch-cli", "emulate_faults::whatever")],
    },
    Campaign {
        name: "deployed-recovery",
        options: &[],
        about: "RECOVERY",
        long: &[("RECOVERY", 1)],
        profile: &[],
        alone: false,
        tests: &[it("anabranch-deploy", "faults::recovery")],
    },
    // With strict limits.
    Campaign {
        name: "deployed-goodput",
        options: &[],
        about: "GOODPUT",
        long: &[("GOODPUT", 1)],
        profile: &[],
        alone: true,
        tests: &[it("anabranch-net", "set::goodput")],
    },
    Campaign {
        name: "sense",
        options: &["--runs", "--kills"],
        about: "SENSE",
        long: &[("SENSE_RUNS", 500), ("SENSE_KILLS", 60), ("SENSE_LONG", 1)],
        profile: &[],
        alone: false,
        tests: &[it("anabranch-net", "rdca::faults"), it("anabranch-deploy", "sense::")],
    },
    // Transfers over lossy hops with and without caches, and caches that are killed.
    Campaign {
        name: "cache",
        options: &["--transfers", "--kills"],
        about: "CACHE",
        long: &[("CACHE_TRANSFERS", 20), ("CACHE_KILLS", 100)],
        profile: &["--release"],
        alone: false,
        tests: &[it("anabranch-host", "chain::")],
    },
    // Beside the kernel's Multipath TCP. `--case` and `--means` are numbers in the lists of the
    // tests, from 0.
    Campaign {
        name: "multipath",
        options: &["--runs", "--case", "--means", "--tries", "--failing-at-once", "--kills", "--seed"],
        about: "MULTIPATH",
        long: &[
            ("MULTIPATH_RUNS", 3),
            ("MULTIPATH_TRIES", 100),
            ("MULTIPATH_KILLS", 500),
            ("MULTIPATH_AT_ONCE", 1000),
            ("MULTIPATH_IN_TURN", 10_000),
            ("MULTIPATH_PAGES", 50),
        ],
        profile: &["--release"],
        alone: true,
        tests: &[
            Tests {
                package: "anabranch-host",
                target: "routes",
                prefix: "nothing_remains_of_a_process_that_is_killed",
            },
            it("anabranch-host", "links::load"),
            it("anabranch-host", "links::browser"),
            it("anabranch-host", "links::requests"),
            it("anabranch-host", "links::rates::all"),
            it("anabranch-host", "links::failures::a_failing"),
        ],
    },
    // Programs over three paths against the kernel's tuning, and commands that are killed.
    Campaign {
        name: "tune",
        options: &["--runs", "--case", "--kills", "--seed"],
        about: "TUNE",
        long: &[("TUNE_RUNS", 3), ("TUNE_KILLS", 500)],
        profile: &[],
        alone: true,
        tests: &[
            it("anabranch-deploy", "tune::kills::the_buffers"),
            it("anabranch-deploy", "tune::links::a_striped"),
        ],
    },
    // The whole matrix, each cell with 10 MB in each direction.
    Campaign {
        name: "mptcp-linux",
        options: &["--bytes", "--at-once"],
        about: "MPTCP",
        long: &[("MPTCP_ALL", 1), ("MPTCP_BYTES", 10_000_000)],
        profile: &[],
        alone: false,
        tests: &[it("anabranch-emu", "linux_mptcp")],
    },
    // Sweeps that are killed.
    Campaign {
        name: "sweep",
        options: &["--runs", "--kills", "--seed"],
        about: "SWEEP",
        long: &[("SWEEP_RUNS", 10_000), ("SWEEP_KILLS", 100)],
        profile: &["--profile", "dist"],
        alone: false,
        tests: &[it("anabranch-lab-cli", "sweep::whoever_is_killed")],
    },
    // A search for routing loops.
    Campaign {
        name: "aodv-loops",
        options: &["--runs"],
        about: "AODV",
        long: &[("AODV_RUNS", 20_000)],
        profile: &[],
        alone: false,
        tests: &[it("anabranch-core", "aodv_loops::no_loop")],
    },
    // Reboots, deaths and changing link quality in meshes.
    Campaign {
        name: "rpl",
        options: &["--runs"],
        about: "RPL",
        long: &[("RPL_RUNS", 100)],
        profile: &["--profile", "dist"],
        alone: false,
        tests: &[it("anabranch-sim", "rpl::")],
    },
    // The C program with flash is killed while it receives.
    Campaign {
        name: "embedded-flash",
        options: &["--kills", "--seed"],
        about: "FLASH",
        long: &[("FLASH_KILLS", 200)],
        profile: &[],
        alone: false,
        tests: &[it("anabranch-deploy", "embedded::flash")],
    },
];

/// Runs `campaign NAME [ARGS...]`.
pub(crate) fn command(args: &[String]) -> Result<(), Failure> {
    let Some((name, options)) = args.split_first() else {
        return Err(Failure::Usage("campaign needs the name of a campaign".into()));
    };
    if name == "suite-under-load" {
        return load::campaign(options);
    }
    let Some(campaign) = CAMPAIGNS.iter().find(|campaign| campaign.name == name) else {
        let mut command =
            cargo::command(&["run", "--profile", "dist", "--locked", "--package", "anabranch-campaign"]);
        command.args(["--example", "campaign", "--"]).args(args);
        return cargo::run(command);
    };
    let variables = campaign.variables(options)?;
    campaign.tests.iter().try_for_each(|tests| campaign.run(tests, &variables))
}

impl Campaign {
    /// The environment of its tests; the user's numbers come last and override others.
    fn variables(&self, options: &[String]) -> Result<Vec<(String, u64)>, Failure> {
        let known: Vec<_> = self.options.iter().map(|option| (*option, *option)).collect();
        let given = numbers(options, &known, &self.usage())?;
        let given = given.into_iter().map(|(option, number)| (self.variable(option), number));
        let long = self.long.iter().map(|(name, number)| (format!("ANABRANCH_{name}"), *number));
        Ok(long.chain(given).collect())
    }

    fn variable(&self, option: &str) -> String {
        let name = option.trim_start_matches('-').replace('-', "_").to_uppercase();
        format!("ANABRANCH_{}_{name}", self.about)
    }

    fn usage(&self) -> String {
        let options: Vec<_> = self.options.iter().map(|option| format!("`{option} N`")).collect();
        match options.is_empty() {
            true => format!("{} takes no options", self.name),
            false => format!("{} takes {}", self.name, options.join(", ")),
        }
    }

    fn run(&self, tests: &Tests, variables: &[(String, u64)]) -> Result<(), Failure> {
        let Tests { package, target, prefix } = tests;
        let mut command = cargo::command(&["test", "--locked", "--package", package, "--test", target]);
        command.args(self.profile).args([prefix, "--", "--nocapture"]);
        if self.alone {
            command.arg("--test-threads=1");
        }
        command.envs(variables.iter().map(|(name, value)| (name, value.to_string())));
        cargo::run(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    fn args(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn named(name: &str) -> &'static Campaign {
        CAMPAIGNS.iter().find(|campaign| campaign.name == name).expect("it is one")
    }

    #[test]
    fn options_set_the_variables_of_the_tests() {
        let said = named("multipath").variables(&args(&["--failing-at-once", "2", "--tries", "7"]));
        let said = said.expect("good options");
        let last = |name: &str| said.iter().rfind(|(known, _)| known == name).map(|(_, number)| *number);
        assert_eq!(last("ANABRANCH_MULTIPATH_FAILING_AT_ONCE"), Some(2));
        assert_eq!(last("ANABRANCH_MULTIPATH_TRIES"), Some(7), "{said:?}");
        assert_eq!(last("ANABRANCH_MULTIPATH_KILLS"), Some(500));
        assert_eq!(named("deployed-recovery").variables(&[]), Ok(vec![("ANABRANCH_RECOVERY".into(), 1)]));
    }

    #[test]
    fn a_campaign_needs_a_name_and_options_that_it_has() {
        assert!(matches!(command(&[]), Err(Failure::Usage(_))));
        for campaign in &CAMPAIGNS {
            for bad in [&["--nothing", "2"][..], &["--runs"], &["--runs", "x"], &["2"]] {
                let outcome = command(&args(&[&[campaign.name], bad].concat()));
                let Err(Failure::Usage(said)) = outcome else { panic!("{}: {bad:?}", campaign.name) };
                assert!(said.starts_with(campaign.name), "{said}");
            }
        }
    }

    /// A test that is renamed or moved would make a campaign that finds nothing. Each variable has
    /// a reader, too.
    #[test]
    fn every_campaign_has_tests_and_every_variable_is_read() {
        for campaign in &CAMPAIGNS {
            let mut sources = String::new();
            for Tests { package, target, prefix } in campaign.tests {
                let short = package.strip_prefix("anabranch-").expect("one of ours");
                let folder = cargo::root().join("crates").join(short).join("tests");
                let root = [folder.join(target).join("main.rs"), folder.join(format!("{target}.rs"))];
                let root = root.into_iter().find(|file| file.is_file()).expect("a test target");
                let found = tests_of(&root, "");
                assert!(found.iter().any(|name| name.starts_with(prefix)), "{prefix} is not in {found:?}");
                sources.extend(
                    cargo::sources(&folder).iter().map(|file| fs::read_to_string(file).expect("text")),
                );
            }
            let options = campaign.options.iter().map(|option| campaign.variable(option));
            let long = campaign.long.iter().map(|(name, _)| format!("ANABRANCH_{name}"));
            for variable in options.chain(long) {
                let short = variable.strip_prefix(&format!("ANABRANCH_{}_", campaign.about));
                let read = |name: &str| sources.contains(&format!("\"{name}\""));
                assert!(read(&variable) || short.is_some_and(read), "{}: {variable}", campaign.name);
            }
        }
    }

    /// The names of the tests of a source file and its modules.
    fn tests_of(file: &Path, module: &str) -> Vec<String> {
        let text = fs::read_to_string(file).expect("a source file");
        let stem = file.file_stem().and_then(|stem| stem.to_str()).expect("a name");
        let parent = file.parent().expect("it is in a folder");
        let folder = if matches!(stem, "main" | "mod") { parent.to_owned() } else { parent.join(stem) };
        let mut found = Vec::new();
        let mut marked = false;
        for line in text.lines().map(str::trim_start) {
            marked |= line == "#[test]";
            let name = |rest: &str| rest.split(['(', ';']).next().map(|name| format!("{module}{name}"));
            if let Some(rest) = line.strip_prefix("fn ").filter(|_| marked) {
                found.extend(name(rest));
                marked = false;
            } else if let Some(rest) = line.strip_prefix("mod ").filter(|rest| rest.ends_with(';')) {
                let rest = rest.trim_end_matches(';');
                let files = [folder.join(format!("{rest}.rs")), folder.join(rest).join("mod.rs")];
                let within = format!("{module}{rest}::");
                let inner = files.iter().filter(|file| file.is_file());
                found.extend(inner.flat_map(|file| tests_of(file, &within)));
            }
        }
        found
    }
}
