//! The programs of the host that change its network: `ip`, `iptables`, `ip6tables`.

use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use anabranch_deploy::error::Error;

/// Families of addresses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    pub(crate) const BOTH: [Self; 2] = [Self::V4, Self::V6];

    /// The family of an address.
    pub(crate) fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// The prefix that covers all addresses.
    pub(crate) fn any(self) -> &'static str {
        match self {
            Self::V4 => "0.0.0.0/0",
            Self::V6 => "::/0",
        }
    }

    /// The two prefixes that cover all addresses together.
    pub(crate) fn halves(self) -> [&'static str; 2] {
        match self {
            Self::V4 => ["0.0.0.0/1", "128.0.0.0/1"],
            Self::V6 => ["::/1", "8000::/1"],
        }
    }

    /// The option of `ip`.
    pub(crate) fn option(self) -> &'static str {
        match self {
            Self::V4 => "-4",
            Self::V6 => "-6",
        }
    }

    /// The program that lists rules.
    pub(crate) fn tables(self) -> &'static str {
        match self {
            Self::V4 => "iptables",
            Self::V6 => "ip6tables",
        }
    }

    /// The program that changes rules in one step.
    pub(crate) fn restore(self) -> &'static str {
        match self {
            Self::V4 => "iptables-restore",
            Self::V6 => "ip6tables-restore",
        }
    }
}

/// Why a program did not do its work.
#[derive(Debug)]
pub enum CommandError {
    /// The program cannot be started.
    Program {
        /// Its name.
        program: &'static str,
        /// The reason.
        error: io::Error,
    },
    /// The program failed.
    Failed {
        /// Its name and arguments.
        command: String,
        /// What it printed.
        reason: String,
    },
}

/// What the programs print if the kernel lacks a table.
pub(crate) const NO_TABLE: &str = "Table does not exist";

/// Runs a program with this input, and returns what it printed.
pub(crate) fn run(program: &'static str, arguments: &[&str], input: &str) -> Result<String, CommandError> {
    let failed = |error| CommandError::Program { program, error };
    let mut command = Command::new(program);
    command.args(arguments).env("LC_ALL", "C");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Ctrl-C signals a whole process group. In its own group, the program is not interrupted while
    // it cleans up.
    let mut child = command.process_group(0).spawn().map_err(failed)?;
    // A program that ends without reading says why.
    let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let reason = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    let command = format!("{program} {}", arguments.join(" "));
    Err(CommandError::Failed { command, reason })
}

impl CommandError {
    /// The error as the operator sees it. `modules` are those of the tables that the kernel needs.
    pub(crate) fn into_error(self, doing: &str, modules: &str) -> Error {
        match self {
            Self::Program { program, error } => {
                let package = if program == "ip" { "iproute2" } else { "iptables" };
                Error::missing(format!("cannot start {program}: {error}"))
                    .with_hint(format!("install {package}"))
            }
            Self::Failed { command, reason } => {
                let hint = match reason.contains(NO_TABLE) {
                    true => format!("the kernel needs the table: modprobe -a {modules}"),
                    false => PRIVILEGES.to_owned(),
                };
                Error::missing(format!("cannot {doing}: {command}: {reason}")).with_hint(hint)
            }
        }
    }
}

pub(crate) const PRIVILEGES: &str = "run as root, or with CAP_NET_ADMIN and CAP_NET_RAW";
