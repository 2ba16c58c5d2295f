//! How a command ends without success.

/// Why a command ended without success.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The job ran and found something wrong, or could not run. Exit code 1.
    Job(String),
    /// The command line makes no sense. Exit code 2.
    Usage(String),
}

/// Refuses arguments where none are expected.
pub(crate) fn expect_none(args: &[String]) -> Result<(), Failure> {
    match args.first() {
        None => Ok(()),
        Some(arg) => Err(Failure::Usage(format!("unexpected argument `{arg}`"))),
    }
}
