//! How a command ends without success.

/// Why a command ended without success.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The job ran and found something wrong, or could not run. Exit code 1.
    Job(String),
    /// The command line makes no sense. Exit code 2.
    Usage(String),
    /// This machine lacks a privilege or a device, so the job was skipped. Exit code 3.
    Missing(String),
}

/// Refuses arguments where none are expected.
pub(crate) fn expect_none(args: &[String]) -> Result<(), Failure> {
    match args.first() {
        None => Ok(()),
        Some(arg) => Err(Failure::Usage(format!("unexpected argument `{arg}`"))),
    }
}

/// The number that was given by this name, or the usual one.
pub(crate) fn number(given: &[(&str, u64)], name: &str, usual: u64) -> u64 {
    given.iter().find(|(known, _)| *known == name).map_or(usual, |(_, number)| *number)
}

/// Options with whole numbers, by the names in the second column of `known`.
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
