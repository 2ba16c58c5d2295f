//! Failures of a command and their exit codes.

/// Why a command failed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The job found a fault, or could not run: exit code 1.
    Job(String),
    /// The command line is invalid: exit code 2.
    Usage(String),
    /// This machine lacks a privilege or a device, so the job was skipped: exit code 3.
    Missing(String),
}

/// Refuses arguments for a command that takes none.
pub(crate) fn expect_none(args: &[String]) -> Result<(), Failure> {
    match args.first() {
        None => Ok(()),
        Some(arg) => Err(Failure::Usage(format!("unexpected argument `{arg}`"))),
    }
}

/// The given number of this name, or `usual`.
pub(crate) fn number(given: &[(&str, u64)], name: &str, usual: u64) -> u64 {
    given.iter().find(|(known, _)| *known == name).map_or(usual, |(_, number)| *number)
}

/// Parses options with whole numbers. `known` maps each option to the name of its result.
pub(crate) fn numbers(
    options: &[String],
    known: &[(&str, &'static str)],
    usage: &str,
) -> Result<Vec<(&'static str, u64)>, Failure> {
    let pairs = options.chunks(2).map(|pair| {
        let [option, value] = pair else { return None };
        let (_, name) = known.iter().find(|(known, _)| known == option)?;
        Some((*name, value.parse().ok()?))
    });
    pairs.collect::<Option<_>>().ok_or_else(|| Failure::Usage(usage.into()))
}
