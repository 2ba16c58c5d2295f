//! Manual pages, generated from the definition of the command line.

use std::fs;
use std::path::Path;

use anabranch_deploy::error::Error;
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

/// Writes a page for a program and for each of its commands.
///
/// # Errors
/// The folder is missing, or a page cannot be written.
pub(crate) fn write(folder: &Path, program: Command) -> Result<(), Error> {
    if !folder.is_dir() {
        return Err(Error::input(format!("{} is no folder", folder.display())).with_hint("make it first"));
    }
    let is_small = program.get_name() != "anabranch";
    let mut program = program.disable_help_subcommand(true);
    program.build();
    pages(&program, is_small, &[], folder)
}

fn pages(command: &Command, is_small: bool, ancestors: &[String], folder: &Path) -> Result<(), Error> {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let path = folder.join(format!("{name}.1"));
    let failed = |e| Error::job(format!("cannot write {}: {e}", path.display()));
    fs::write(&path, page(command, is_small, &name, ancestors).map_err(failed)?).map_err(failed)?;
    let ancestors = [ancestors, &[name]].concat();
    let mut shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    shown.try_for_each(|command| pages(command, is_small, &ancestors, folder))
}

fn page(command: &Command, is_small: bool, name: &str, ancestors: &[String]) -> std::io::Result<Vec<u8>> {
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(&mut page)?;
    }
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let mut roff = Roff::new();
    section(&mut roff, "EXIT STATUS", EXIT_STATUS);
    let more = MORE.iter().find(|more| more.page == name);
    if let Some(more) = more {
        section(&mut roff, "FILES", more.files);
        examples(&mut roff, is_small, more.examples);
    }
    let others = more.map_or(&[][..], |more| more.see_also);
    let all = ancestors.last().map(String::as_str).into_iter().chain(others.iter().copied());
    let all: Vec<String> = all.map(|page| format!("{page}(1)")).collect();
    if !all.is_empty() {
        roff.control("SH", ["SEE ALSO"]);
        roff.text([roman(all.join(", "))]);
    }
    roff.to_writer(&mut page)?;
    Ok(page)
}

fn section(roff: &mut Roff, title: &str, entries: &[(&str, &str)]) {
    if entries.is_empty() {
        return;
    }
    roff.control("SH", [title]);
    for (term, text) in entries {
        roff.control("TP", []);
        roff.text([bold(*term)]);
        roff.text([roman(*text)]);
    }
}

/// `is_small`: the command is a program of its own, `anabranch-node` in place of `anabranch node`.
fn examples(roff: &mut Roff, is_small: bool, examples: &[(&str, &str)]) {
    if examples.is_empty() {
        return;
    }
    roff.control("SH", ["EXAMPLES"]);
    for (what, line) in examples {
        roff.control("PP", []);
        roff.text([roman(*what)]);
        roff.control("PP", []);
        roff.control("RS", ["4"]);
        roff.control("nf", []);
        roff.text([bold(if is_small { line.replacen(' ', "-", 1) } else { (*line).to_owned() })]);
        roff.control("fi", []);
        roff.control("RE", []);
    }
}

const EXIT_STATUS: &[(&str, &str)] = &[
    ("0", "Done. A daemon: it was asked to end, by SIGTERM."),
    ("1", "The job failed: not delivered, or a check was broken."),
    ("2", "Usage or bad input."),
    ("3", "A privilege or a device is missing."),
    ("130", "Interrupted."),
];

/// Sections of a page that the definition of a command does not contain.
struct More {
    page: &'static str,
    files: &'static [(&'static str, &'static str)],
    examples: &'static [(&'static str, &'static str)],
    see_also: &'static [&'static str],
}

const MORE: &[More] = &[
    More {
        page: "anabranch",
        files: &[],
        examples: &[("Deliver a file through three simulated gateways:", "anabranch push firmware.bin")],
        see_also: &[],
    },
    More {
        page: "anabranch-node",
        files: &[
            (
                "/etc/anabranch/node.toml",
                "The options of the unit anabranch-node.service, which gives it to --config.",
            ),
            ("/var/lib/anabranch-node", "The folder in which that unit may write."),
        ],
        examples: &[
            (
                "Receive files, and announce two gateways:",
                "anabranch node --out firmware.bin --key node.key --senders senders.pub --gateways 10.0.0.1=gw1.pub,10.0.0.2=gw2.pub",
            ),
            (
                "See whether a configuration is good:",
                "anabranch node --config /etc/anabranch/node.toml --key /etc/anabranch/node.key --check",
            ),
        ],
        see_also: &["anabranch-gateway", "anabranch-push"],
    },
    More {
        page: "anabranch-gateway",
        files: &[(
            "/etc/anabranch/gateway.toml",
            "The options of the unit anabranch-gateway.service, which gives it to --config.",
        )],
        examples: &[(
            "Relay to the nodes of one network:",
            "anabranch gateway --allow 10.1.0.0/16 --key gateway.key --senders senders.pub",
        )],
        see_also: &["anabranch-node", "anabranch-push"],
    },
    More {
        page: "anabranch-push",
        files: &[],
        examples: &[
            (
                "Deliver a file to a node:",
                "anabranch push firmware.bin --to node1 --key sender.key --node-key node.pub",
            ),
            (
                "Through gateways of one's own choice:",
                "anabranch push firmware.bin --to node1 --via 10.0.0.1=gw1.pub,10.0.0.2=gw2.pub --key sender.key --node-key node.pub",
            ),
        ],
        see_also: &["anabranch-node", "anabranch-gateway"],
    },
    More {
        page: "anabranch-sense",
        files: &[(
            "/etc/anabranch/sense.toml",
            "The options of the unit anabranch-sense.service, which gives it to --config.",
        )],
        examples: &[(
            "Send each line that a program prints:",
            "measure | anabranch sense --to sink1 --key sensor.key --sink-key sink.pub",
        )],
        see_also: &["anabranch-sink"],
    },
    More {
        page: "anabranch-sink",
        files: &[
            (
                "/etc/anabranch/sink.toml",
                "The options of the unit anabranch-sink.service, which gives it to --config.",
            ),
            ("/var/lib/anabranch-sink", "The state and the records of that unit."),
        ],
        examples: &[
            (
                "Collect records in a file:",
                "anabranch sink --key sink.key --senders sensors.pub --out records.jsonl",
            ),
            (
                "Publish them:",
                "anabranch sink --key sink.key --senders sensors.pub --mqtt mqtt://localhost/site1",
            ),
        ],
        see_also: &["anabranch-sense"],
    },
    More {
        page: "anabranch-cache",
        files: &[(
            "/etc/anabranch/cache.toml",
            "The options of the unit anabranch-cache.service, which gives it to --config.",
        )],
        examples: &[
            ("Repair losses of the TCP that this host forwards:", "anabranch cache --queue 1 --setup"),
            ("Remove the rules of a process that was killed:", "anabranch cache --queue 1 --teardown"),
        ],
        see_also: &[],
    },
    More {
        page: "anabranch-multipath",
        files: &[
            (
                "/etc/anabranch/multipath.toml",
                "The options of the unit anabranch-multipath.service, which gives it to --config.",
            ),
            ("/run/anabranch-multipath", "Parameters of the kernel as they were before the start."),
        ],
        examples: &[
            ("Let a browser or curl use all interfaces:", "anabranch multipath --socks 127.0.0.1:1080"),
            ("Remove what a killed process has left:", "anabranch multipath --teardown"),
        ],
        see_also: &[],
    },
    More {
        page: "anabranch-tune",
        files: &[
            (
                "/etc/anabranch/tune.toml",
                "The options of the unit anabranch-tune@.service, which gives it to --config.",
            ),
            ("/run/anabranch-tune", "The settings that sockets had before, if root runs the program."),
        ],
        examples: &[
            (
                "Keep the send buffers of a program within 2 MB:",
                "anabranch tune --pid $(pidof iperf3) --budget \"2 MB\"",
            ),
            ("Restore what a killed process has left:", "anabranch tune --restore"),
        ],
        see_also: &[],
    },
    More {
        page: "anabranch-completions",
        files: &[],
        examples: &[(
            "For bash, for everybody:",
            "anabranch completions bash > /usr/share/bash-completion/completions/anabranch",
        )],
        see_also: &[],
    },
];
